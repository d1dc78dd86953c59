/* SPDX-License-Identifier: Apache-2.0 */

/* Reading requests, what behaviours say, and finding the behaviour of a path. */

#include "upstream/connection.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { HEAD_MAX = 1 << 20 };

struct totals totals;

/* ---- Bytes ----------------------------------------------------------------------------------- */

static char *bytes_room(struct bytes *bytes, size_t size)
{
    if (bytes->size + size > bytes->capacity) {
        size_t wanted = bytes->capacity ? bytes->capacity : 512;
        while (wanted < bytes->size + size)
            wanted *= 2;
        bytes->data = realloc(bytes->data, wanted);
        if (!bytes->data)
            abort();
        bytes->capacity = wanted;
    }
    return bytes->data + bytes->size;
}

void bytes_add(struct bytes *bytes, const void *data, size_t size)
{
    if (size == 0)
        return;
    memcpy(bytes_room(bytes, size), data, size);
    bytes->size += size;
}

void bytes_print(struct bytes *bytes, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int size = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (size < 0)
        abort();
    va_start(args, fmt);
    (void)vsnprintf(bytes_room(bytes, (size_t)size + 1), (size_t)size + 1, fmt, args);
    va_end(args);
    bytes->size += (size_t)size;
}

void bytes_done(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){0};
}

/* ---- What behaviours do ---------------------------------------------------------------------- */

void say(struct connection *connection, const char *text)
{
    bytes_add(&connection->out, text, strlen(text));
}

void say_head(struct connection *connection, int status, const char *lines, int64_t length)
{
    struct bytes *out = &connection->out;
    if (status == 200)
        say(connection, "HTTP/1.1 200 OK\r\n");
    else
        bytes_print(out, "HTTP/1.1 %d Status %d\r\n", status, status);
    if (lines)
        say(connection, lines);
    if (length >= 0)
        bytes_print(out, "Content-Length: %" PRId64 "\r\n\r\n", length);
    else
        say(connection, length == IN_CHUNKS ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
}

void say_chunk(struct connection *connection, const char *data, size_t size)
{
    bytes_print(&connection->out, "%zx\r\n", size);
    bytes_add(&connection->out, data, size);
    say(connection, "\r\n");
}

void say_json(struct connection *connection, int status, const char *lines, const char *json)
{
    char more[PATH_MAX_SIZE + 200];
    (void)snprintf(more, sizeof(more), "Content-Type: application/json\r\n%s", lines ? lines : "");
    /* The answer to HEAD says how long the body would be. */
    say_head(connection, status, more, (int64_t)strlen(json));
    if (strcmp(connection->request.method, "HEAD") != 0)
        say(connection, json);
}

void step_after(struct connection *connection, int64_t ms,
                void (*step)(struct connection *connection))
{
    connection->step = step;
    if (ms > 0)
        wait_until(connection, now_us() + ms * 1000);
}

void end_answer(struct connection *connection, enum ending ending)
{
    connection->step = NULL;
    connection->ending = connection->request.keep_alive ? ending : ending == KEEP ? CLOSE : ending;
}

void hold(struct connection *connection)
{
    connection->phase = HOLD;
}

/* ---- The path -------------------------------------------------------------------------------- */

int64_t path_number(const struct request *request, int index, int64_t otherwise)
{
    const char *at = request->path;
    for (; at && index >= 0; index--) {
        at = strchr(at, '/');
        at = at ? at + 1 : NULL;
    }
    return at && isdigit((unsigned char)*at) ? strtoll(at, NULL, 10) : otherwise;
}

bool path_is(const struct request *request, const char *path)
{
    size_t size = strlen(path);
    return strncmp(request->path, path, size) == 0 &&
           (request->path[size] == '\0' || request->path[size] == '/');
}

int64_t query_number(const struct request *request, const char *name, int64_t otherwise)
{
    size_t size = strlen(name);
    for (const char *at = request->query; at && *at; at = strchr(at, '&')) {
        at += *at == '&';
        if (strncmp(at, name, size) == 0 && at[size] == '=')
            return strtoll(at + size + 1, NULL, 10);
    }
    return otherwise;
}

static const struct behaviour *find_behaviour(const struct request *request)
{
    static const struct behaviour *const tables[] = {plain_behaviour, stream_behaviour,
                                                     broken_behaviour};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        for (const struct behaviour *row = tables[i]; row->path; row++)
            if (path_is(request, row->path))
                return row;
    return plain_behaviour; /* the first row is /ok */
}

/* ---- Reading a request ----------------------------------------------------------------------- */

/* Copies a word of the request line; too long ones are cut. */
static void copy(char *ret_text, size_t max, const char *text, size_t size)
{
    size = size < max ? size : max - 1;
    memcpy(ret_text, text, size);
    ret_text[size] = '\0';
}

static bool read_request_line(struct request *request, const char *line, size_t size)
{
    const char *end = line + size, *target = memchr(line, ' ', size);
    if (!target)
        return false;
    copy(request->method, sizeof(request->method), line, (size_t)(target - line));
    target++;
    const char *version = memchr(target, ' ', (size_t)(end - target));
    if (!version || end - version < 9 || memcmp(version, " HTTP/1.", 8) != 0)
        return false;
    request->keep_alive = version[8] != '0';
    const char *query = memchr(target, '?', (size_t)(version - target));
    const char *path_end = query ? query : version;
    copy(request->path, sizeof(request->path), target, (size_t)(path_end - target));
    if (query)
        copy(request->query, sizeof(request->query), query + 1, (size_t)(version - query - 1));
    return true;
}

/* Names of executions come back in JSON, so nothing that JSON would escape is kept. */
static void copy_plain(char *ret_text, size_t max, const char *value, size_t size)
{
    copy(ret_text, max, value, size);
    for (char *c = ret_text; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("-_.:", *c))
            *c = '?';
}

static void read_header(struct request *request, const char *line, size_t size)
{
    const char *colon = memchr(line, ':', size), *end = line + size;
    if (!colon)
        return;
    size_t name = (size_t)(colon - line);
    const char *value = colon + 1;
    while (value < end && *value == ' ')
        value++;
    size_t length = (size_t)(end - value);
#define IS(text)   (name == sizeof(text) - 1 && strncasecmp(line, text, name) == 0)
#define SAYS(text) (length == sizeof(text) - 1 && strncasecmp(value, text, length) == 0)
    if (IS("Content-Length"))
        request->length = strtoll(value, NULL, 10);
    else if (IS("Transfer-Encoding"))
        request->chunked = SAYS("chunked");
    else if (IS("Connection") && SAYS("close"))
        request->keep_alive = false;
    else if (IS("Connection") && SAYS("keep-alive"))
        request->keep_alive = true;
    else if (IS("Expect"))
        request->expects_continue = SAYS("100-continue");
    else if (IS("X-Weft-Execution"))
        copy_plain(request->execution, sizeof(request->execution), value, length);
    else if (IS("X-Weft-Epoch"))
        request->epoch = strtoll(value, NULL, 10);
#undef SAYS
#undef IS
}

static void begin_request(struct request *request)
{
    struct bytes head = request->head, body = request->body;
    head.size = body.size = 0;
    if (body.capacity > 65536)
        bytes_done(&body);
    *request = (struct request){.head = head, .body = body, .chunk_left = -1};
}

/* The text of a head, up to its empty line. */
static bool read_head(struct request *request, const char *text, size_t size)
{
    const char *end = text + size, *line = text;
    begin_request(request);
    for (bool first = true; line < end; first = false) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        size_t length = (size_t)(newline - line);
        length -= length > 0 && line[length - 1] == '\r';
        if (first && !read_request_line(request, line, length))
            return false;
        if (!first)
            read_header(request, line, length);
        if (first)
            bytes_add(&request->head, newline + 1, (size_t)(end - newline - 1));
        line = newline + 1;
    }
    return request->length >= 0;
}

/* ---- Reading its body ------------------------------------------------------------------------ */

static void take_body(struct request *request, const char *data, size_t size)
{
    size_t room = KEPT_BODY_MAX - request->body.size;
    bytes_add(&request->body, data, size < room ? size : room);
    request->body_size += (int64_t)size;
}

static size_t smaller(size_t a, int64_t b)
{
    return (int64_t)a < b ? a : (size_t)b;
}

/* Takes chunks from the input. True when the last one is there; false with *ret_bad: no chunk. */
static bool take_chunks(struct connection *connection, bool *ret_bad)
{
    struct request *request = &connection->request;
    for (;;) {
        const char *at = connection->in.data + connection->taken;
        size_t size = connection->in.size - connection->taken;
        if (request->chunk_left > 0) {
            size_t taken = smaller(size, request->chunk_left);
            take_body(request, at, taken);
            connection->taken += taken;
            request->chunk_left -= (int64_t)taken;
            if (request->chunk_left > 0)
                return false;
            continue;
        }
        const char *newline = memchr(at, '\n', size);
        if (!newline)
            return false;
        connection->taken += (size_t)(newline - at) + 1;
        if (request->chunk_left == 0) { /* the line end behind a chunk */
            request->chunk_left = -1;
            continue;
        }
        if (request->chunk_left == -2) { /* the line behind the last chunk */
            return true;
        }
        request->chunk_left = strtoll(at, NULL, 16);
        *ret_bad = !isxdigit((unsigned char)*at) || request->chunk_left < 0;
        if (*ret_bad)
            return false;
        request->chunk_left = request->chunk_left == 0 ? -2 : request->chunk_left;
    }
}

/* True when the body is complete. */
static bool take_length(struct connection *connection)
{
    struct request *request = &connection->request;
    size_t taken =
        smaller(connection->in.size - connection->taken, request->length - request->body_size);
    take_body(request, connection->in.data + connection->taken, taken);
    connection->taken += taken;
    return request->body_size == request->length;
}

/* ---- From input to answer -------------------------------------------------------------------- */

static void begin_answer(struct connection *connection)
{
    connection->phase = ANSWER;
    connection->ending = KEEP;
    connection->step = NULL;
    connection->count = connection->limit = 0;
    connection->more.size = connection->more_at = 0;
    find_behaviour(&connection->request)->begin(connection);
}

/* With ?wait=MS the answer begins later. */
static void answer(struct connection *connection)
{
    struct request *request = &connection->request;
    request->number = ++totals.requests;
    seen_add(request->execution, request->epoch);
    int64_t wait_ms = *request->query ? query_number(request, "wait", 0) : 0;
    connection->phase = ANSWER;
    if (wait_ms > 0)
        step_after(connection, wait_ms, begin_answer);
    else
        begin_answer(connection);
}

/* Where the head that the input begins with ends; 0: not yet. */
static size_t head_size(const struct connection *connection)
{
    const char *at = connection->in.data + connection->taken;
    size_t size = connection->in.size - connection->taken;
    const char *end = size ? memmem(at, size, "\r\n\r\n", 4) : NULL;
    return end ? (size_t)(end - at) + 2 : 0;
}

/* False: nothing more can be taken from the input now. */
static bool take_head(struct connection *connection)
{
    struct request *request = &connection->request;
    size_t size = head_size(connection);
    if (connection->close_at_next && connection->in.size > connection->taken) {
        connection->phase = ANSWER;
        end_answer(connection, CLOSE);
        return true;
    }
    if (size == 0 && connection->in.size - connection->taken < HEAD_MAX)
        return false;
    if (size == 0 || !read_head(request, connection->in.data + connection->taken, size)) {
        connection->phase = ANSWER;
        request->keep_alive = false;
        say_json(connection, 400, "Connection: close\r\n", "{\"error\":\"no HTTP\"}");
        end_answer(connection, CLOSE);
        return true;
    }
    connection->taken += size + 2;
    connection->phase = READ_BODY;
    const struct behaviour *behaviour = find_behaviour(request);
    if (behaviour->continues || (request->expects_continue && !behaviour->early))
        say(connection, "HTTP/1.1 100 Continue\r\n\r\n");
    if (behaviour->early || (request->length == 0 && !request->chunked))
        answer(connection);
    return true;
}

static bool take_rest(struct connection *connection)
{
    bool bad = false;
    bool complete =
        connection->request.chunked ? take_chunks(connection, &bad) : take_length(connection);
    if (bad) {
        connection->phase = ANSWER;
        end_answer(connection, RESET);
        return true;
    }
    if (complete)
        answer(connection);
    return complete;
}

void take_input(struct connection *connection)
{
    bool more = true;
    while (more && (connection->phase == READ_HEAD || connection->phase == READ_BODY))
        more = connection->phase == READ_HEAD ? take_head(connection) : take_rest(connection);
    if (connection->taken == connection->in.size) {
        connection->in.size = connection->taken = 0;
        if (connection->in.capacity > 1 << 16)
            bytes_done(&connection->in);
    } else if (connection->taken > 1 << 16) {
        connection->in.size -= connection->taken;
        memmove(connection->in.data, connection->in.data + connection->taken, connection->in.size);
        connection->taken = 0;
    }
}
