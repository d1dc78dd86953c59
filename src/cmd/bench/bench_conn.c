/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Connections of the benchmark: sockets that do not block, one request at a time on each.
 *
 * The parser of answers keeps no state: after each read it starts at the first byte of the answer.
 * Heads are short, so that costs less than keeping a state.
 */

#include "cmd/bench/bench.h"

#include "base/clock.h"
#include "base/str.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- Answers: the head ----------------------------------------------------------------------- */

enum {
    HEAD_MAX = 65536,
    BODY_MAX = 1 << 30,
    RETRY_AFTER_MAX_S = 3600,
};

struct head {
    int status;
    int64_t length; /* -1: no Content-Length */
    bool chunked, closes;
    int64_t retry_after_ms;
    size_t size;
};

static enum weft_bench_parsed bad(struct weft_err *err, const char *what)
{
    (void)weft_fail(err, WEFT_UNAVAILABLE, "the server's answer is not understood: %s", what);
    return WEFT_BENCH_BAD;
}

/* A number of digits alone; -1 for other texts and for numbers above max. */
static int64_t read_digits(const char *text, size_t size, int64_t max)
{
    int64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        value = value * 10 + (text[i] - '0');
        if (value > max)
            return -1;
    }
    return size > 0 ? value : -1;
}

static bool is_word(const char *text, size_t size, const char *word)
{
    return size == strlen(word) && strncasecmp(text, word, size) == 0;
}

static bool read_status(const char *line, size_t size, struct head *head)
{
    if (size < 12 || memcmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') ||
        line[8] != ' ' || (size > 12 && line[12] != ' '))
        return false;
    head->status = (int)read_digits(line + 9, 3, 999);
    head->closes = line[7] == '0';
    return head->status >= 100;
}

static const char *read_field(const char *line, size_t size, struct head *head)
{
    const char *colon = memchr(line, ':', size);
    if (!colon || colon == line)
        return "a header line has no name";
    size_t name = (size_t)(colon - line);
    const char *value = colon + 1, *end = line + size;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    size_t length = (size_t)(end - value);
    if (is_word(line, name, "Content-Length")) {
        int64_t said = read_digits(value, length, BODY_MAX);
        if (said < 0 || (head->length >= 0 && head->length != said))
            return "its Content-Length is no number";
        head->length = said;
    } else if (is_word(line, name, "Transfer-Encoding")) {
        if (!is_word(value, length, "chunked"))
            return "its Transfer-Encoding is not chunked";
        head->chunked = true;
    } else if (is_word(line, name, "Connection")) {
        head->closes = is_word(value, length, "close");
    } else if (is_word(line, name, "Retry-After")) {
        int64_t seconds = read_digits(value, length, RETRY_AFTER_MAX_S);
        head->retry_after_ms = seconds < 0 ? -1 : seconds * 1000;
    }
    return NULL;
}

static enum weft_bench_parsed read_head(const char *data, size_t size, struct head *head,
                                        struct weft_err *err)
{
    const char *end = memmem(data, size, "\r\n\r\n", 4);
    if (!end)
        return size > HEAD_MAX ? bad(err, "its head does not end") : WEFT_BENCH_MORE;
    *head = (struct head){.length = -1, .retry_after_ms = -1, .size = (size_t)(end - data) + 4};
    const char *line = data;
    for (const char *next; line < end + 2; line = next + 2) {
        next = memmem(line, (size_t)(end + 2 - line), "\r\n", 2);
        size_t length = (size_t)(next - line);
        if (line == data) {
            if (!read_status(line, length, head))
                return bad(err, "it does not begin with an HTTP/1.1 status");
            continue;
        }
        const char *why = read_field(line, length, head);
        if (why)
            return bad(err, why);
    }
    if (head->chunked && head->length >= 0)
        return bad(err, "it is chunked and has a Content-Length");
    return WEFT_BENCH_WHOLE;
}

/* ---- The body -------------------------------------------------------------------------------- */

/* The size of a chunk in hex, with extensions after it that mean nothing to us. */
static int64_t read_chunk_size(const char *line, size_t size)
{
    int64_t value = 0;
    size_t i = 0;
    for (; i < size && line[i] != ';' && line[i] != ' '; i++) {
        int digit = weft_hex_digit(line[i]);
        value = value * 16 + digit;
        if (digit < 0 || value > BODY_MAX)
            return -1;
    }
    return i > 0 ? value : -1;
}

/* The size of the line at `at` without its end, -1: its end has not come yet. */
static ssize_t line_at(const char *data, size_t size, size_t at)
{
    const char *end = memmem(data + at, size - at, "\r\n", 2);
    return end ? end - (data + at) : -1;
}

/*
 * Walks over chunks. With `together` the data of all is moved to the front; that is done only after
 * a walk that found the end.
 */
static enum weft_bench_parsed walk_chunks(char *data, size_t size, bool together, size_t *ret_body,
                                          size_t *ret_total, struct weft_err *err)
{
    size_t at = 0, body = 0;
    ssize_t line;
    for (int64_t chunk = 1; chunk > 0; at += (size_t)chunk + (chunk > 0 ? 2 : 0)) {
        line = line_at(data, size, at);
        if (line < 0)
            return WEFT_BENCH_MORE;
        chunk = read_chunk_size(data + at, (size_t)line);
        if (chunk < 0)
            return bad(err, "the size of a chunk is no number");
        at += (size_t)line + 2;
        if (chunk > 0 && size - at < (size_t)chunk + 2)
            return WEFT_BENCH_MORE;
        if (chunk > 0 && memcmp(data + at + chunk, "\r\n", 2) != 0)
            return bad(err, "a chunk does not end where it should");
        if (together)
            memmove(data + body, data + at, (size_t)chunk);
        body += (size_t)chunk;
    }
    do { /* trailers, then an empty line */
        line = line_at(data, size, at);
        if (line < 0)
            return WEFT_BENCH_MORE;
        at += (size_t)line + 2;
    } while (line > 0);
    *ret_body = body;
    *ret_total = at;
    return WEFT_BENCH_WHOLE;
}

static enum weft_bench_parsed read_body(const struct head *head, char *data, size_t size,
                                        bool ended, struct weft_bench_answer *answer,
                                        struct weft_err *err)
{
    answer->body = data;
    size_t total = 0;
    if (head->status == 204 || head->status == 304)
        return WEFT_BENCH_WHOLE;
    if (head->chunked) {
        enum weft_bench_parsed parsed =
            walk_chunks(data, size, false, &answer->body_size, &total, err);
        if (parsed == WEFT_BENCH_WHOLE)
            parsed = walk_chunks(data, size, true, &answer->body_size, &total, err);
        answer->total += total;
        return parsed;
    }
    if (head->length < 0) { /* the end of the connection is the end of the body */
        answer->body_size = size;
        answer->total += size;
        answer->closes = true;
        return ended ? WEFT_BENCH_WHOLE : WEFT_BENCH_MORE;
    }
    answer->body_size = (size_t)head->length;
    answer->total += (size_t)head->length;
    return size >= answer->body_size ? WEFT_BENCH_WHOLE : WEFT_BENCH_MORE;
}

enum weft_bench_parsed weft_bench_parse(char *data, size_t size, bool ended,
                                        struct weft_bench_answer *ret_answer, struct weft_err *err)
{
    struct head head;
    size_t at = 0;
    enum weft_bench_parsed parsed;
    do {
        parsed = read_head(data + at, size - at, &head, err);
        if (parsed == WEFT_BENCH_WHOLE)
            at += head.size;
    } while (parsed == WEFT_BENCH_WHOLE && head.status < 200 && head.status != 101);
    if (parsed == WEFT_BENCH_WHOLE && head.status == 101)
        return bad(err, "it switches to another protocol");
    struct weft_bench_answer answer = {0};
    if (parsed == WEFT_BENCH_WHOLE) {
        answer = (struct weft_bench_answer){.status = head.status,
                                            .total = at,
                                            .closes = head.closes,
                                            .retry_after_ms = head.retry_after_ms};
        parsed = read_body(&head, data + at, size - at, ended, &answer, err);
    }
    if (parsed == WEFT_BENCH_WHOLE)
        *ret_answer = answer;
    if (parsed == WEFT_BENCH_MORE && ended)
        return bad(err, size > 0 ? "it ends in the middle" : "there is none");
    return parsed;
}

enum {
    CONNECT_MS = 5000,
    FIRST_ROOM = 65536,
    REQUEST_MAX = 1 << 20,
    IN_MAX = 64 << 20, /* an answer is refused beyond that */
};

/* ---- Where to -------------------------------------------------------------------------------- */

static enum weft_rc resolve_host(const char *host, const char *port,
                                 struct weft_bench_target *target, struct weft_err *err)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *found = NULL;
    int failed = getaddrinfo(host, port, &wanted, &found);
    if (failed)
        return weft_fail(err, WEFT_UNAVAILABLE, "cannot find the host '%s': %s", host,
                         gai_strerror(failed));
    memcpy(&target->address, found->ai_addr, found->ai_addrlen);
    target->address_size = found->ai_addrlen;
    freeaddrinfo(found);
    return WEFT_OK;
}

static enum weft_rc bad_target(const char *url, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    enum weft_rc rc = weft_fail(err, WEFT_INVALID_VALUE,
                                "the benchmark speaks plain HTTP: '%s' is no http://HOST:PORT",
                                weft_url_masked(url, arena));
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_bench_resolve(const char *url, struct weft_bench_target *target,
                                struct weft_err *err)
{
    static const char scheme[] = "http://";
    if (strncmp(url, scheme, sizeof(scheme) - 1) != 0)
        return bad_target(url, err);
    const char *host = url + sizeof(scheme) - 1;
    size_t size = strcspn(host, "/?#");
    const char *path = host + size;
    size_t path_size = strlen(path);
    while (path_size > 0 && path[path_size - 1] == '/')
        path_size--;
    if (size == 0 || size >= sizeof(target->host) || path_size >= sizeof(target->prefix) ||
        strcspn(path, "?# \r\n") < path_size || memchr(host, '@', size))
        return bad_target(url, err);
    memcpy(target->host, host, size);
    target->host[size] = '\0';
    memcpy(target->prefix, path, path_size);
    target->prefix[path_size] = '\0';

    char name[sizeof(target->host)];
    memcpy(name, target->host, size + 1);
    char *begin = name, *colon = strrchr(name, ':');
    const char *port = "80";
    if (name[0] == '[') {
        char *close = strchr(name, ']');
        if (!close || (close[1] != '\0' && close[1] != ':'))
            return bad_target(url, err);
        colon = close[1] == ':' ? close + 1 : NULL;
        *close = '\0';
        begin++;
    }
    if (colon) {
        *colon = '\0';
        port = colon + 1;
    }
    return resolve_host(begin, port, target, err);
}

void weft_bench_request(const struct weft_bench_target *target, const char *path,
                        const struct weft_buf *body, struct weft_buf *out)
{
    weft_buf_clear(out);
    weft_buf_printf(out, "POST %s%s HTTP/1.1\r\nHost: %s\r\n", target->prefix, path, target->host);
    if (target->token)
        weft_buf_printf(out, "Authorization: Bearer %s\r\n", target->token);
    if (target->ns)
        weft_buf_printf(out, "X-Weft-Namespace: %s\r\n", target->ns);
    weft_buf_printf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                    body->size);
    weft_buf_add(out, body->data, body->size);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static bool wait_for(int fd, short events, int64_t timeout_ms)
{
    struct pollfd wait = {.fd = fd, .events = events};
    weft_usec until_us = weft_boot_us() + timeout_ms * WEFT_MS;
    for (;;) {
        weft_usec left_us = until_us - weft_boot_us();
        int ready = poll(&wait, 1, left_us > 0 ? (int)(left_us / 1000) + 1 : 0);
        if (ready > 0)
            return true;
        if (left_us <= 0 || (ready < 0 && errno != EINTR))
            return false;
    }
}

static int connect_socket(const struct weft_bench_target *target, int *ret_fd)
{
    int fd = socket(target->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    const int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    int failed = 0;
    if (connect(fd, (const struct sockaddr *)&target->address, target->address_size) != 0)
        failed = errno;
    if (failed == EINPROGRESS) {
        socklen_t size = sizeof(failed);
        if (!wait_for(fd, POLLOUT, CONNECT_MS))
            failed = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size) != 0)
            failed = errno;
    }
    if (failed)
        (void)close(fd);
    else
        *ret_fd = fd;
    return failed;
}

enum weft_rc weft_bench_connect(struct weft_bench_conn *conn,
                                const struct weft_bench_target *target, struct weft_err *err)
{
    struct weft_bench_conn fresh = {.target = target,
                                    .request = conn->request,
                                    .fd = -1,
                                    .in = conn->in,
                                    .in_room = conn->in_room};
    if (conn->fd >= 0 && conn->in)
        (void)close(conn->fd);
    if (!fresh.in) {
        fresh.in_room = FIRST_ROOM;
        fresh.in = weft_alloc(FIRST_ROOM, 1);
        weft_buf_init(&fresh.request, REQUEST_MAX);
    }
    *conn = fresh;
    int failed = connect_socket(target, &conn->fd);
    if (failed)
        return weft_fail(err, WEFT_UNAVAILABLE, "cannot reach a server at %s: %s", target->host,
                         strerrordesc_np(failed));
    return WEFT_OK;
}

void weft_bench_close(struct weft_bench_conn *conn)
{
    if (conn->in && conn->fd >= 0)
        (void)close(conn->fd);
    free(conn->in);
    weft_buf_done(&conn->request);
    *conn = (struct weft_bench_conn){.fd = -1};
}

/* ---- Talking --------------------------------------------------------------------------------- */

enum weft_rc weft_bench_flush(struct weft_bench_conn *conn, struct weft_err *err)
{
    while (conn->out_sent < conn->out_size) {
        ssize_t put = send(conn->fd, conn->out + conn->out_sent, conn->out_size - conn->out_sent,
                           MSG_NOSIGNAL);
        if (put >= 0)
            conn->out_sent += (size_t)put;
        else if (errno == EAGAIN)
            return WEFT_OK;
        else if (errno != EINTR)
            return weft_fail(err, WEFT_UNAVAILABLE, "the connection broke: %s",
                             strerrordesc_np(errno));
    }
    return WEFT_OK;
}

enum weft_rc weft_bench_send(struct weft_bench_conn *conn, const char *data, size_t size,
                             struct weft_err *err)
{
    conn->out = data;
    conn->out_size = size;
    conn->out_sent = 0;
    return weft_bench_flush(conn, err);
}

static enum weft_rc read_more(struct weft_bench_conn *conn, struct weft_err *err)
{
    if (conn->in_size == conn->in_room) {
        if (conn->in_room >= IN_MAX)
            return weft_fail(err, WEFT_TOO_LARGE, "the server's answer is too large");
        conn->in_room *= 2;
        conn->in = weft_realloc(conn->in, conn->in_room, 1);
    }
    ssize_t got = recv(conn->fd, conn->in + conn->in_size, conn->in_room - conn->in_size, 0);
    if (got > 0)
        conn->in_size += (size_t)got;
    else if (got == 0)
        conn->ended = true;
    else if (errno != EAGAIN && errno != EINTR)
        return weft_fail(err, WEFT_UNAVAILABLE, "the connection broke: %s", strerrordesc_np(errno));
    return WEFT_OK;
}

enum weft_rc weft_bench_receive(struct weft_bench_conn *conn, struct weft_bench_answer *ret_answer,
                                enum weft_bench_parsed *ret_parsed, struct weft_err *err)
{
    if (conn->in_used > 0) {
        conn->in_size -= conn->in_used;
        memmove(conn->in, conn->in + conn->in_used, conn->in_size);
        conn->in_used = 0;
    }
    enum weft_rc rc = read_more(conn, err);
    if (rc)
        return rc;
    *ret_parsed = weft_bench_parse(conn->in, conn->in_size, conn->ended, ret_answer, err);
    if (*ret_parsed == WEFT_BENCH_WHOLE)
        conn->in_used = ret_answer->total;
    return *ret_parsed == WEFT_BENCH_BAD ? WEFT_UNAVAILABLE : WEFT_OK;
}

enum weft_rc weft_bench_await(struct weft_bench_conn *conn, int64_t timeout_ms,
                              struct weft_bench_answer *ret_answer, struct weft_err *err)
{
    weft_usec until_us = weft_boot_us() + timeout_ms * WEFT_MS;
    enum weft_bench_parsed parsed = WEFT_BENCH_MORE;
    enum weft_rc rc = WEFT_OK;
    while (!rc && parsed == WEFT_BENCH_MORE) {
        bool unsent = conn->out_sent < conn->out_size;
        int64_t left_ms = (until_us - weft_boot_us()) / 1000;
        if (left_ms <= 0 || !wait_for(conn->fd, unsent ? POLLIN | POLLOUT : POLLIN, left_ms))
            return weft_fail(err, WEFT_UNAVAILABLE, "the server does not answer");
        if (unsent)
            rc = weft_bench_flush(conn, err);
        if (!rc)
            rc = weft_bench_receive(conn, ret_answer, &parsed, err);
    }
    return rc;
}
