/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The connections of the mock: HTTP/1.1 with keep-alive on one thread over epoll.
 *
 * A connection reads a request, waits as long as the answer should take, sends it, and goes on with
 * what came in the meantime. A body needs a Content-Length.
 */

#include "base/clock.h"
#include "base/str.h"
#include "cmd/cli/cli.h"
#include "cmd/mock/mock.h"
#include "core/address.h"
#include "fetch/crowd_due.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    HEAD_MAX = 64 << 10,
    BODY_MAX = 32 << 20,
    READ_SIZE = 64 << 10,
    SPARE_MAX = 64 << 10, /* of a buffer that is kept for the next request */
    EVENTS_MAX = 256,
    BACKLOG = 4096,
    SIGNAL_CHECK_MS = 200, /* a signal between two waits is noticed so late */
};

struct server {
    const struct mock_settings *settings;
    struct weft_arena *arena; /* of one answer */
    int listener, poller;
    uint64_t requests;
    struct weft_dues dues;
    struct connection *first;
};

struct connection {
    struct connection *next, **previous; /* in the list of all */
    struct server *server;
    int fd;
    uint32_t watched; /* events that epoll knows of */
    struct weft_buf in, out, body;
    size_t sent;     /* of out */
    size_t streamed; /* of body, when it is a stream */
    struct mock_answer answer;
    bool answers, continues, closes;
    struct weft_due due;
};

/* ---- A connection ---------------------------------------------------------------------------- */

static void close_connection(struct connection *connection)
{
    weft_dues_remove(&connection->server->dues, &connection->due);
    if (connection->next)
        connection->next->previous = connection->previous;
    *connection->previous = connection->next;
    (void)close(connection->fd);
    weft_buf_done(&connection->in);
    weft_buf_done(&connection->out);
    weft_buf_done(&connection->body);
    free(connection);
}

static void clear(struct weft_buf *buf)
{
    weft_buf_clear(buf);
    if (buf->capacity > SPARE_MAX)
        weft_buf_fit(buf);
}

/* False: the client is gone. */
static bool flush(struct connection *connection)
{
    struct weft_buf *out = &connection->out;
    while (connection->sent < out->size) {
        ssize_t sent = send(connection->fd, out->data + connection->sent,
                            out->size - connection->sent, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN)
            return true;
        if (sent < 0)
            return false;
        connection->sent += (size_t)sent;
    }
    connection->sent = 0;
    clear(out);
    return true;
}

static void watch(struct connection *connection)
{
    bool full = connection->answers && connection->in.size > READ_SIZE;
    uint32_t wanted = (full ? 0 : EPOLLIN) | (connection->out.size > 0 ? EPOLLOUT : 0);
    if (wanted == connection->watched)
        return;
    struct epoll_event event = {.events = wanted, .data.ptr = connection};
    (void)epoll_ctl(connection->server->poller, EPOLL_CTL_MOD, connection->fd, &event);
    connection->watched = wanted;
}

/* ---- Answers --------------------------------------------------------------------------------- */

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } row[] = {{200, "OK"},
               {400, "Bad Request"},
               {404, "Not Found"},
               {405, "Method Not Allowed"},
               {411, "Length Required"},
               {413, "Content Too Large"},
               {429, "Too Many Requests"}};
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        if (row[i].status == status)
            return row[i].reason;
    return "Internal Server Error";
}

static void put_number(struct weft_buf *out, const char *name, int64_t number)
{
    char text[WEFT_NUMBER_TEXT];
    size_t size = weft_i64_print(number, text);
    weft_buf_add_text(out, name);
    weft_buf_add(out, text, size);
    weft_buf_add(out, "\r\n", 2);
}

static void say_head(struct connection *connection)
{
    const struct mock_answer *answer = &connection->answer;
    struct weft_buf *out = &connection->out;
    char status[WEFT_NUMBER_TEXT];
    weft_buf_add_text(out, "HTTP/1.1 ");
    weft_buf_add(out, status, weft_i64_print(answer->status, status));
    weft_buf_add_char(out, ' ');
    weft_buf_add_text(out, reason_of(answer->status));
    weft_buf_add_text(out, answer->stream ? "\r\nContent-Type: text/event-stream\r\n"
                                            "Transfer-Encoding: chunked\r\n"
                                          : "\r\nContent-Type: application/json\r\n");
    if (!answer->stream)
        put_number(out, "Content-Length: ", (int64_t)connection->body.size);
    if (answer->retry_after_s)
        put_number(out, "Retry-After: ", answer->retry_after_s);
    if (connection->closes)
        weft_buf_add_text(out, "Connection: close\r\n");
    weft_buf_add(out, "\r\n", 2);
}

/* The next event of a stream, or all of them when there is no delay. False: that was the last. */
static bool say_event(struct connection *connection)
{
    struct weft_buf *body = &connection->body;
    const char *at = body->data + connection->streamed;
    size_t left = body->size - connection->streamed;
    const char *end = connection->server->settings->stream_delay_ms ? strstr(at, "\n\n") : NULL;
    size_t size = end ? (size_t)(end + 2 - at) : left;
    weft_buf_printf(&connection->out, "%zx\r\n", size);
    weft_buf_add(&connection->out, at, size);
    connection->streamed += size;
    weft_buf_add_text(&connection->out, size == left ? "\r\n0\r\n\r\n" : "\r\n");
    return size < left;
}

/* Says what is to be said now. */
static void speak(struct connection *connection)
{
    struct server *server = connection->server;
    if (connection->streamed == 0)
        say_head(connection);
    if (!connection->answer.stream) {
        weft_buf_add(&connection->out, connection->body.data, connection->body.size);
    } else if (say_event(connection)) {
        weft_dues_set(&server->dues, &connection->due,
                      weft_boot_us() + server->settings->stream_delay_ms * WEFT_MS);
        return;
    }
    connection->answers = false;
    connection->streamed = 0;
    clear(&connection->body);
}

static void answer_later(struct connection *connection)
{
    connection->answers = true;
    if (connection->answer.wait_ms > 0)
        weft_dues_set(&connection->server->dues, &connection->due,
                      weft_boot_us() + connection->answer.wait_ms * WEFT_MS);
    else
        speak(connection);
}

/* An answer after which nothing more is read. */
static void refuse(struct connection *connection, int status, const char *message)
{
    connection->answer = weft_mock_refuse(status, message, &connection->body);
    connection->closes = true;
    answer_later(connection);
}

/* ---- Requests -------------------------------------------------------------------------------- */

struct head {
    size_t size; /* with its empty line */
    size_t length;
    bool chunked, continues, closes;
    struct mock_request request;
};

static void read_line(struct head *ret_head, const char *line)
{
    if (strncasecmp(line, "content-length:", 15) == 0)
        ret_head->length = strtoul(line + 15, NULL, 10);
    else if (strncasecmp(line, "transfer-encoding:", 18) == 0)
        ret_head->chunked = true;
    else if (strncasecmp(line, "expect:", 7) == 0)
        ret_head->continues = true;
    else if (strncasecmp(line, "connection:", 11) == 0 && strcasestr(line, "close"))
        ret_head->closes = true;
}

/* Cuts the words of a request line apart. False: it is none. */
static bool read_request_line(char *line, struct mock_request *ret_request)
{
    char *path = strchr(line, ' '), *version = path ? strchr(path + 1, ' ') : NULL;
    if (!version || strncmp(version + 1, "HTTP/1.", 7) != 0)
        return false;
    *path++ = *version = '\0';
    path[strcspn(path, "?")] = '\0';
    *ret_request = (struct mock_request){.method = line, .path = path};
    return true;
}

/* A copy of the head, taken apart. False: this is no HTTP. */
static bool read_head(struct weft_arena *arena, const char *text, size_t size,
                      struct head *ret_head)
{
    char *line = weft_arena_alloc(arena, size + 1, 1), *end;
    memcpy(line, text, size);
    *ret_head = (struct head){.size = size};
    for (bool first = true; (end = strstr(line, "\r\n")) && end != line; first = false) {
        *end = '\0';
        if (first && !read_request_line(line, &ret_head->request))
            return false;
        if (!first)
            read_line(ret_head, line);
        line = end + 2;
    }
    return ret_head->request.path != NULL;
}

/* Says 100 once, to a client that waits for it. */
static void say_continue(struct connection *connection, const struct head *head)
{
    if (head->continues && !connection->continues)
        weft_buf_add_text(&connection->out, "HTTP/1.1 100 Continue\r\n\r\n");
    connection->continues = head->continues;
}

/* The request is complete. */
static void take_whole(struct connection *connection, struct head *head)
{
    struct weft_buf *in = &connection->in;
    struct server *server = connection->server;
    head->request.body = in->data + head->size;
    head->request.body_size = head->length;
    head->request.number = server->requests++;
    connection->answer =
        weft_mock_answer(server->settings, &head->request, server->arena, &connection->body);
    size_t taken = head->size + head->length, left = in->size - taken;
    memmove(in->data, in->data + taken, left + 1); /* with the NUL */
    in->size = left;
    if (left == 0)
        clear(in);
    connection->continues = false;
    connection->closes = head->closes;
    answer_later(connection);
}

/* True when the request is complete, or refused. */
static bool take_body(struct connection *connection, struct head *head)
{
    if (head->chunked) {
        refuse(connection, 411, "a body needs a Content-Length here");
    } else if (head->length > BODY_MAX) {
        refuse(connection, 413, "the body is too large");
    } else if (connection->in.size - head->size < head->length) {
        say_continue(connection, head);
        return false;
    } else {
        take_whole(connection, head);
    }
    return true;
}

/* True when something is said or will be. */
static bool take_request(struct connection *connection)
{
    struct weft_buf *in = &connection->in;
    struct head head;
    const char *end = memmem(in->data, in->size, "\r\n\r\n", 4);
    bool taken = true;
    if (!end && in->size <= HEAD_MAX)
        return false;
    if (!end ||
        !read_head(connection->server->arena, in->data, (size_t)(end + 4 - in->data), &head))
        refuse(connection, 400, "this is no HTTP");
    else
        taken = take_body(connection, &head);
    weft_arena_reset(connection->server->arena);
    return taken;
}

/* Goes on as far as possible. False: the connection is over. */
static bool work(struct connection *connection)
{
    do {
        if (!flush(connection))
            return false;
        bool over = connection->out.size == 0 && !connection->answers;
        if (over && connection->closes)
            return false;
        if (!over)
            break;
    } while (take_request(connection));
    bool alive = flush(connection); /* a 100, if any */
    watch(connection);
    return alive;
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* False: the client is gone. */
static bool take_input(struct connection *connection)
{
    static char data[READ_SIZE];
    ssize_t size = recv(connection->fd, data, sizeof(data), 0);
    if (size < 0)
        return errno == EAGAIN;
    weft_buf_add(&connection->in, data, (size_t)size);
    return size > 0 && !connection->in.full;
}

static void take_event(struct connection *connection, uint32_t events)
{
    bool alive = !(events & (EPOLLERR | EPOLLHUP));
    if (alive && (events & EPOLLIN))
        alive = take_input(connection);
    if (!alive || !work(connection))
        close_connection(connection);
}

static void accept_all(struct server *server)
{
    const int one = 1;
    int fd;
    while ((fd = accept4(server->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct connection *connection = weft_alloc(1, sizeof(*connection));
        *connection = (struct connection){.server = server,
                                          .fd = fd,
                                          .watched = EPOLLIN,
                                          .next = server->first,
                                          .previous = &server->first};
        if (server->first)
            server->first->previous = &connection->next;
        server->first = connection;
        weft_buf_init(&connection->in, HEAD_MAX + BODY_MAX + READ_SIZE);
        weft_buf_init(&connection->out, SIZE_MAX);
        weft_buf_init(&connection->body, SIZE_MAX);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
        if (epoll_ctl(server->poller, EPOLL_CTL_ADD, fd, &event) != 0)
            close_connection(connection);
    }
}

static void speak_due(struct server *server)
{
    struct weft_due *due;
    for (weft_usec now_us = weft_boot_us();
         (due = weft_dues_first(&server->dues)) && due->at_us <= now_us;) {
        struct connection *connection =
            (struct connection *)((char *)due - offsetof(struct connection, due));
        weft_dues_remove(&server->dues, due);
        speak(connection);
        if (!work(connection))
            close_connection(connection);
    }
}

static int wait_ms(const struct server *server)
{
    const struct weft_due *first = weft_dues_first(&server->dues);
    weft_usec left_us = first ? first->at_us - weft_boot_us() : WEFT_NEVER;
    if (left_us <= 0)
        return 0;
    return left_us > SIGNAL_CHECK_MS * WEFT_MS ? SIGNAL_CHECK_MS
                                               : (int)((left_us + WEFT_MS - 1) / WEFT_MS);
}

static void run(struct server *server)
{
    struct epoll_event event[EVENTS_MAX];
    while (!weft_cli_interrupted()) {
        int count = epoll_wait(server->poller, event, EVENTS_MAX, wait_ms(server));
        for (int i = 0; i < count; i++) {
            if (event[i].data.ptr == server)
                accept_all(server);
            else
                take_event(event[i].data.ptr, event[i].events);
        }
        speak_due(server);
    }
}

/* ---- Starting -------------------------------------------------------------------------------- */

/* "127.0.0.1:7718" or "localhost:7718". */
static bool read_place(const char *text, struct sockaddr_in *ret_at)
{
    const char *colon = strrchr(text, ':');
    struct weft_address address;
    char *end;
    if (!colon || colon[1] < '0' || colon[1] > '9')
        return false;
    unsigned long port = strtoul(colon + 1, &end, 10);
    if (*end || port > UINT16_MAX)
        return false;
    *ret_at = (struct sockaddr_in){.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (colon - text == 9 && strncmp(text, "localhost", 9) == 0)
        return true;
    if (weft_host_read(text, (size_t)(colon - text), &address) != WEFT_HOST_ADDRESS)
        return false;
    memcpy(&ret_at->sin_addr, address.byte, address.size);
    return true;
}

static enum weft_rc open_listener(struct server *server, struct weft_err *err)
{
    const int one = 1;
    const char *where = server->settings->listen;
    struct sockaddr_in at;
    socklen_t size = sizeof(at);
    struct weft_address address = {.size = 4};
    char text[WEFT_ADDRESS_TEXT];
    if (!read_place(where, &at))
        return weft_invalid(err, "listen",
                            "cannot listen on '%.100s': it should be an IPv4 address "
                            "and a port, like 127.0.0.1:7718",
                            where);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (server->listener < 0 ||
        setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
        bind(server->listener, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        listen(server->listener, BACKLOG) != 0 ||
        getsockname(server->listener, (struct sockaddr *)&at, &size) != 0)
        return weft_fail_field(err, errno == EADDRINUSE ? WEFT_CONFLICT : WEFT_INVALID_VALUE,
                               "listen", "cannot listen on %.100s: %s", where,
                               strerrordesc_np(errno));
    memcpy(address.byte, &at.sin_addr, 4);
    weft_address_print(&address, text);
    printf("mock-llm listens on http://%s:%d/v1\n", text, ntohs(at.sin_port));
    (void)fflush(stdout);
    return WEFT_OK;
}

static enum weft_rc open_poller(struct server *server, struct weft_err *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = server};
    server->poller = epoll_create1(EPOLL_CLOEXEC);
    if (server->poller >= 0 &&
        epoll_ctl(server->poller, EPOLL_CTL_ADD, server->listener, &event) == 0)
        return WEFT_OK;
    return weft_fail(err, WEFT_INTERNAL, "cannot wait for connections: %s", strerrordesc_np(errno));
}

/* As many connections as the system allows. */
static void raise_file_limit(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

enum weft_rc weft_mock_serve(const struct mock_settings *settings, struct weft_err *err)
{
    struct server server = {
        .settings = settings, .arena = weft_arena_new(), .listener = -1, .poller = -1};
    raise_file_limit();
    enum weft_rc rc = open_listener(&server, err);
    if (!rc)
        rc = open_poller(&server, err);
    if (!rc)
        run(&server);
    for (struct connection *connection = server.first, *next; connection; connection = next) {
        next = connection->next;
        close_connection(connection);
    }
    if (server.poller >= 0)
        (void)close(server.poller);
    if (server.listener >= 0)
        (void)close(server.listener);
    weft_dues_done(&server.dues);
    weft_arena_free(server.arena);
    return rc;
}
