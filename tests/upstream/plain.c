/* SPDX-License-Identifier: Apache-2.0 */

/* Paths that answer as a server should: statuses, delays, echoes, redirects, bodies of any size. */

#include "upstream/upstream.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void say_ok(struct connection *connection)
{
    static const char json[] = "{\"ok\":true}";
    say_json(connection, 200, NULL, json);
    end_answer(connection, KEEP);
}

/* ---- What was seen --------------------------------------------------------------------------- */

static void say_bytes(struct connection *connection, struct bytes *json)
{
    bytes_add(json, "", 1);
    say_json(connection, 200, NULL, json->data);
    bytes_done(json);
    end_answer(connection, KEEP);
}

/* Questions about requests are not counted as such. */
static void say_seen(struct connection *connection)
{
    struct bytes json = {0};
    totals.requests--;
    seen_print(&json, totals.requests);
    say_bytes(connection, &json);
}

static void say_open(struct connection *connection)
{
    struct bytes json = {0};
    totals.requests--;
    bytes_print(&json, "{\"open\":%" PRIu64 ",\"accepted\":%" PRIu64 ",\"left\":%" PRIu64 "}",
                totals.open, totals.accepted, totals.left);
    say_bytes(connection, &json);
}

static void forget(struct connection *connection)
{
    seen_clear();
    totals.requests = totals.left = 0;
    say_ok(connection);
}

/* ---- Echo ------------------------------------------------------------------------------------ */

/* Bytes above 126 become the characters with these numbers. */
static void add_string(struct bytes *json, const char *text, size_t size)
{
    bytes_add(json, "\"", 1);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < ' ' || c > '~')
            bytes_print(json, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            bytes_print(json, "\\%c", c);
        else
            bytes_add(json, &text[i], 1);
    }
    bytes_add(json, "\"", 1);
}

static void echo(struct connection *connection)
{
    const struct request *request = &connection->request;
    struct bytes json = {0};
    const struct {
        const char *name, *text;
        size_t size;
    } member[] = {{"{\"method\":", request->method, strlen(request->method)},
                  {",\"path\":", request->path, strlen(request->path)},
                  {",\"query\":", request->query, strlen(request->query)},
                  {",\"head\":", request->head.data, request->head.size},
                  {",\"body\":", request->body.data, request->body.size}};
    for (size_t i = 0; i < sizeof(member) / sizeof(member[0]); i++) {
        bytes_print(&json, "%s", member[i].name);
        add_string(&json, member[i].text, member[i].size);
    }
    bytes_print(&json, ",\"size\":%" PRId64 "}", request->body_size);
    say_bytes(connection, &json);
}

/* ---- Statuses -------------------------------------------------------------------------------- */

static void say_status(struct connection *connection, int status)
{
    char json[64];
    (void)snprintf(json, sizeof(json), status < 300 ? "{\"ok\":true}" : "{\"error\":%d}", status);
    if (status == 204 || status == 304)
        say_head(connection, status, NULL, NO_LENGTH);
    else
        say_json(connection, status, NULL, json);
    end_answer(connection, KEEP);
}

static void answer_status(struct connection *connection)
{
    const struct request *request = &connection->request;
    int64_t after = query_number(request, "retry-after", -1);
    int64_t date = query_number(request, "retry-date", -1);
    int status = (int)path_number(request, 1, 500);
    char line[100] = "";
    if (after >= 0)
        (void)snprintf(line, sizeof(line), "Retry-After: %" PRId64 "\r\n", after);
    if (date >= 0) {
        time_t moment = time(NULL) + (time_t)date;
        struct tm parts;
        (void)strftime(line, sizeof(line), "Retry-After: %a, %d %b %Y %H:%M:%S GMT\r\n",
                       gmtime_r(&moment, &parts));
    }
    if (!*line) {
        say_status(connection, status);
        return;
    }
    say_json(connection, status, line, "{\"error\":\"later\"}");
    end_answer(connection, KEEP);
}

static void answer_first(struct connection *connection)
{
    const struct request *request = &connection->request;
    uint64_t turn = seen_turn(request->execution, request->path);
    bool fails = turn <= (uint64_t)path_number(request, 1, 1);
    say_status(connection, fails ? (int)path_number(request, 2, 503) : 200);
}

static void answer_every(struct connection *connection)
{
    const struct request *request = &connection->request;
    int64_t every = path_number(request, 1, 10);
    bool fails = every > 0 && request->number % (uint64_t)every == 0;
    say_status(connection, fails ? (int)path_number(request, 2, 503) : 200);
}

static void answer_delay(struct connection *connection)
{
    step_after(connection, path_number(&connection->request, 1, 100), say_ok);
}

/* ---- Bodies ---------------------------------------------------------------------------------- */

static void say_bytes_piece(struct connection *connection)
{
    static const char digits[] =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-\n";
    int64_t piece = path_number(&connection->request, 2, connection->limit);
    int64_t ms = path_number(&connection->request, 3, 0);
    for (int64_t i = 0; i < piece && i < 65536 && connection->count < connection->limit; i++)
        bytes_add(&connection->out, &digits[connection->count++ % 64], 1);
    if (connection->count < connection->limit)
        step_after(connection, ms, say_bytes_piece);
    else
        end_answer(connection, KEEP);
}

static void answer_bytes(struct connection *connection)
{
    connection->limit = path_number(&connection->request, 1, 1000);
    say_head(connection, 200, "Content-Type: text/plain\r\n", connection->limit);
    step_after(connection, path_number(&connection->request, 3, 0), say_bytes_piece);
}

static void answer_http10(struct connection *connection)
{
    say(connection, "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{\"ok\":true}");
    end_answer(connection, CLOSE);
}

static void answer_hints(struct connection *connection)
{
    say(connection,
        "HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n"
        "Retry-After: 99\r\n\r\n");
    say_ok(connection);
}

static void only_continue(struct connection *connection)
{
    hold(connection);
}

/* The client has to close, because closing here would reset what it sends. */
static void answer_early(struct connection *connection)
{
    say_json(connection, 413, "Connection: close\r\n", "{\"error\":413}");
    hold(connection);
}

/* ---- Redirects ------------------------------------------------------------------------------- */

static void redirect(struct connection *connection)
{
    const struct request *request = &connection->request;
    int64_t left = path_number(request, 1, -1), port = path_number(request, 2, 1);
    char line[200];
    if (left == 0) {
        echo(connection);
        return;
    }
    int status = (int)query_number(request, "status", 302);
    if (left > 0)
        (void)snprintf(line, sizeof(line), "Location: /redirect/%" PRId64 "?status=%d\r\n",
                       left - 1, status);
    else
        (void)snprintf(line, sizeof(line), "Location: http://%s:%" PRId64 "/ok\r\n",
                       path_is(request, "/redirect/host") ? "localhost" : "127.0.0.1", port);
    say_json(connection, status, line, "{\"error\":\"elsewhere\"}");
    end_answer(connection, KEEP);
}

const struct behaviour plain_behaviour[] = {
    {"/ok", say_ok, false, false},
    {"/seen", say_seen, false, false},
    {"/open", say_open, false, false},
    {"/reset", forget, false, false},
    {"/echo", echo, false, false},
    {"/status", answer_status, false, false},
    {"/first", answer_first, false, false},
    {"/every", answer_every, false, false},
    {"/delay", answer_delay, false, false},
    {"/bytes", answer_bytes, false, false},
    {"/http10", answer_http10, false, false},
    {"/continue", say_ok, false, true},
    {"/hints", answer_hints, false, false},
    {"/only-continue", only_continue, false, true},
    {"/early", answer_early, true, false},
    {"/redirect", redirect, false, false},
    {NULL, NULL, false, false},
};
