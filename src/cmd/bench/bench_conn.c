/* SPDX-License-Identifier: Apache-2.0 */

/* Connections of the benchmark: sockets that do not block, one request at a time on each. */

#include "cmd/bench/bench_conn.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CONNECT_MS = 5000,
    FIRST_ROOM = 65536,
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
    char *in = conn->in;
    size_t room = conn->in_room;
    if (conn->fd >= 0 && conn->in)
        (void)close(conn->fd);
    if (!in) {
        room = FIRST_ROOM;
        in = weft_realloc(NULL, room, 1);
    }
    *conn = (struct weft_bench_conn){.fd = -1, .in = in, .in_room = room};
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
        size_t room = conn->in_room * 2;
        conn->in = weft_realloc(conn->in, room, 1);
        conn->in_room = room;
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
