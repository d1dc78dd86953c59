/* SPDX-License-Identifier: Apache-2.0 */

/* Paths that answer as no server should. */

#include "upstream/upstream.h"

#include <stdio.h>
#include <string.h>

enum { PIECE = 1 << 16 };

static const char body[] = "{\"ok\":true}";
static const char json_type[] = "Content-Type: application/json\r\n";

static const char *last_word(const struct request *request)
{
    const char *slash = strrchr(request->path, '/');
    return slash ? slash + 1 : request->path;
}

/* ---- Hanging up ------------------------------------------------------------------------------ */

/* What was said so far is sent before. */
static void close_now(struct connection *connection)
{
    end_answer(connection, CLOSE);
}

static void drop_now(struct connection *connection)
{
    end_answer(connection, RESET);
}

static void answer_and_close(struct connection *connection)
{
    const char *where = last_word(&connection->request);
    bool drops = path_is(&connection->request, "/drop");
    if (strcmp(where, "next") == 0 || strcmp(where, "after") == 0) {
        say_json(connection, 200, NULL, body);
        end_answer(connection, where[0] == 'n' ? KEEP : CLOSE);
        connection->close_at_next = where[0] == 'n';
        return;
    }
    if (strcmp(where, "head") == 0)
        say(connection, "HTTP/1.1 200 OK\r\nContent-Type: appl");
    else if (strcmp(where, "body") == 0) {
        say_head(connection, 200, json_type, 1000);
        say(connection, "{\"ok\":");
    }
    /* A reset at once could overtake what was sent. */
    step_after(connection, drops && connection->out.size > 0 ? 20 : 0,
               drops ? drop_now : close_now);
}

static void say_unasked(struct connection *connection)
{
    say_json(connection, 200, NULL, "{\"stray\":true}");
    connection->step = NULL;
}

/* The client may use the connection for its next request before the stray answer comes. */
static void answer_twice(struct connection *connection)
{
    say_json(connection, 200, NULL, body);
    step_after(connection, 20, say_unasked);
    connection->ending = KEEP;
}

/* ---- Lengths and chunks ---------------------------------------------------------------------- */

static void answer_length(struct connection *connection)
{
    static const struct {
        const char *word, *line;
        bool closes;
    } row[] = {
        {"long", "Content-Length: 111\r\n", true},
        {"open", "Content-Length: 111\r\n", false},
        {"short", "Content-Length: 5\r\n", false},
        {"two", "Content-Length: 11\r\nContent-Length: 7\r\n", false},
        {"word", "Content-Length: eleven\r\n", true},
        {"negative", "Content-Length: -1\r\n", true},
        {"huge", "Content-Length: 1180591620717411303424\r\n", true},
    };
    const char *word = last_word(&connection->request);
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        if (strcmp(word, row[i].word) != 0)
            continue;
        say_head(connection, 200, row[i].line, NO_LENGTH);
        say(connection, body);
        end_answer(connection, row[i].closes ? CLOSE : KEEP);
        if (strcmp(word, "open") == 0)
            hold(connection);
        return;
    }
    say_json(connection, 404, NULL, "{\"error\":404}");
    end_answer(connection, KEEP);
}

static void answer_chunked(struct connection *connection)
{
    const char *word = last_word(&connection->request);
    say_head(connection, 200, json_type, IN_CHUNKS);
    say_chunk(connection, body, 6);
    if (strcmp(word, "bad") == 0) {
        say(connection, "xyz\r\n");
        hold(connection);
    } else if (strcmp(word, "huge") == 0) {
        say(connection, "100000000000000000\r\n");
        hold(connection);
    } else if (strcmp(word, "cut") == 0) {
        end_answer(connection, CLOSE);
    } else {
        say_chunk(connection, body + 6, sizeof(body) - 1 - 6);
        say(connection, "0\r\n\r\n");
        end_answer(connection, KEEP);
    }
}

/* ---- Heads ----------------------------------------------------------------------------------- */

static void say_lines(struct connection *connection)
{
    bool one = strcmp(last_word(&connection->request), "line") == 0;
    for (int i = 0; i < PIECE / 64; i++)
        say(connection, one ? "################################################################"
                            : "X-More: ###################################################\r\n");
    step_after(connection, 0, say_lines);
}

static void answer_head(struct connection *connection)
{
    const struct request *request = &connection->request;
    const char *word = last_word(request);
    say(connection, "HTTP/1.1 200 OK\r\n");
    if (strcmp(word, "endless") == 0 || strcmp(word, "line") == 0) {
        say(connection, strcmp(word, "line") == 0 ? "X-Line: " : "");
        step_after(connection, 0, say_lines);
        return;
    }
    if (strcmp(word, "nul") == 0)
        bytes_add(&connection->out, "X-Bytes: a\0b\r\n", 14);
    else if (strcmp(word, "bytes") == 0)
        say(connection, "X-Bytes: \xff\xfe\xc3(\r\n");
    int64_t lines = path_number(request, 1, 0), size = path_number(request, 2, 10);
    for (int64_t i = 0; i < lines; i++) {
        bytes_print(&connection->out, "X-Line-%d: ", (int)i);
        for (int64_t j = 0; j < size; j++)
            say(connection, "x");
        say(connection, "\r\n");
    }
    bytes_print(&connection->out, "%sContent-Length: 11\r\n\r\n%s", json_type, body);
    end_answer(connection, KEEP);
}

/* ---- Bodies ---------------------------------------------------------------------------------- */

static void say_piece(struct connection *connection)
{
    static const char piece[PIECE] = {0};
    bytes_add(&connection->out, piece, sizeof(piece));
    step_after(connection, 0, say_piece);
}

static void answer_body(struct connection *connection)
{
    static const char bytes[] = "a\0b\xff\xfe\xc3(\xed\xa0\x80\r\n";
    if (strcmp(last_word(&connection->request), "bytes") == 0) {
        say_head(connection, 200, "Content-Type: text/plain\r\n", sizeof(bytes) - 1);
        bytes_add(&connection->out, bytes, sizeof(bytes) - 1);
        end_answer(connection, KEEP);
        return;
    }
    say_head(connection, 200, "Connection: close\r\n", NO_LENGTH);
    step_after(connection, 0, say_piece);
}

/* ---- No HTTP --------------------------------------------------------------------------------- */

static void answer_garbage(struct connection *connection)
{
    const char *word = last_word(&connection->request);
    if (strcmp(word, "endless") == 0) {
        step_after(connection, 0, say_piece);
        return;
    }
    if (strcmp(word, "status") == 0)
        say(connection, "HTTP/1.1 abc\r\nContent-Length: 0\r\n\r\n");
    else if (strcmp(word, "short") == 0)
        say(connection, "HTTP");
    else
        say(connection, "\x15\x03\x01\x00\x02\x02(SSH-2.0-OpenSSH_9.2\r\n\r\n220 ready\r\n");
    end_answer(connection, CLOSE);
}

static void answer_switch(struct connection *connection)
{
    say(connection,
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
        "Upgrade: other\r\n\r\nother words");
    hold(connection);
}

static void read_no_more(struct connection *connection)
{
    connection->unread = true;
    hold(connection);
}

const struct behaviour broken_behaviour[] = {
    {"/hang-up", answer_and_close, false, false}, {"/drop", answer_and_close, false, false},
    {"/stray", answer_twice, false, false},       {"/length", answer_length, false, false},
    {"/chunked", answer_chunked, false, false},   {"/head", answer_head, false, false},
    {"/body", answer_body, false, false},         {"/garbage", answer_garbage, false, false},
    {"/switch", answer_switch, false, false},     {"/silent", hold, false, false},
    {"/unread", read_no_more, true, false},       {NULL, NULL, false, false},
};
