/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bodies that a route takes in pieces, answers whose stream sleeps until it is woken, and headers
 * of answers: over sockets, against a server with routes of its own.
 */

#include "server_fixture.h"
#include "tap.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "net/metrics.h"
#include "net/request.h"
#include "net/wait/waits.h"
#include "weft/weft.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { BODY_MAX = 4 << 20, PATIENCE_S = 20 };

/* ---- A route that takes its body in pieces --------------------------------------------------- */

struct sum {
    size_t pieces, bytes, largest;
    bool in_order; /* byte i of the body is i % 251 */
};

static _Atomic int begun, forgotten;
static _Atomic bool held, holds; /* a piece waits in take(); pieces wait there */
static _Atomic bool fails;

static enum weft_rc take_piece(struct weft_request *request, struct weft_err *err)
{
    struct sum *sum = request->state;
    if (!sum) {
        request->state = sum = calloc(1, sizeof(*sum));
        sum->in_order = true;
        begun++;
    }
    while (holds) {
        held = true;
        (void)poll(NULL, 0, 1);
    }
    const struct weft_buf *piece = &request->body;
    for (size_t i = 0; i < piece->size; i++)
        sum->in_order &= (uint8_t)piece->data[i] == (sum->bytes + i) % 251;
    sum->pieces++;
    sum->bytes += piece->size;
    sum->largest = piece->size > sum->largest ? piece->size : sum->largest;
    return fails ? weft_fail(err, WEFT_INVALID_VALUE, "this piece is not taken") : WEFT_OK;
}

static enum weft_rc read_end(struct weft_request *request, struct weft_err *err)
{
    (void)request;
    (void)err;
    return WEFT_OK;
}

static enum weft_rc run_pieces(struct weft_request *request, struct weft_err *err)
{
    static const struct sum none;
    const struct sum *sum = request->state ? request->state : &none;
    char text[128];
    int size = snprintf(text, sizeof(text), "pieces=%zu bytes=%zu largest=%zu order=%d",
                        sum->pieces, sum->bytes, sum->largest, sum->in_order);
    (void)err;
    weft_reply_bytes(request, text, (size_t)size, "text/plain");
    weft_reply_header(request, "ETag", "\"1\"");
    weft_reply_header(request, "ETag", "\"2\"");
    return WEFT_OK;
}

static void forget_sum(struct weft_request *request)
{
    free(request->state);
    forgotten++;
}

/* ---- A route whose answer is events ---------------------------------------------------------- */

static const struct weft_id topic = {.byte = {1, 2, 3}};
static _Atomic int events, calls;
static _Atomic weft_usec patience_us;

static enum weft_rc more_events(struct weft_request *request, struct weft_buf *out, bool *ret_last,
                                struct weft_err *err)
{
    int *sent = request->state;
    (void)err;
    calls++;
    if (request->server->stopping) {
        *ret_last = true;
        return WEFT_OK;
    }
    if (events > *sent) {
        weft_buf_printf(out, "event %d\n", ++*sent);
        *ret_last = *sent == 3;
        return WEFT_OK;
    }
    static weft_usec until_us;
    until_us = request->waiter ? until_us : weft_boot_us() + patience_us;
    if (!weft_wait_for_end(request, &topic, until_us, WEFT_WAIT_NOTIFIED))
        weft_buf_add_text(out, "tick\n");
    return WEFT_OK;
}

static enum weft_rc read_events(struct weft_request *request, struct weft_err *err)
{
    (void)err;
    request->state = weft_new(request->arena, int);
    return WEFT_OK;
}

static enum weft_rc run_events(struct weft_request *request, struct weft_err *err)
{
    (void)err;
    weft_reply_bytes(request, "", 0, "text/event-stream");
    request->reply.stream = more_events;
    return WEFT_OK;
}

static const struct weft_op_info pieces_op = {.id = "pieces", .method = "POST", .path = "/pieces"};
static const struct weft_op_info events_op = {.id = "events", .method = "GET", .path = "/events"};

static const struct weft_route rows[] = {
    {.op = &pieces_op,
     .body_max = BODY_MAX,
     .take = take_piece,
     .read = read_end,
     .run = run_pieces,
     .forget = forget_sum,
     .header = {{"Cache-Control", "no-store"}}},
    {.op = &events_op, .read = read_events, .run = run_events},
};
static const struct weft_route_table table = {rows, WEFT_LEN(rows)};

/* ---- A client -------------------------------------------------------------------------------- */

static struct weft_server *server;
static char path[256];

static void serve(void)
{
    static char url[300];
    const char *folder = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): one thread */
    (void)snprintf(path, sizeof(path), "%s/weft-streaming-%d.db", folder ? folder : "/tmp",
                   (int)getpid());
    (void)snprintf(url, sizeof(url), "sqlite:%s", path);
    struct weft_err err = {0};
    const struct weft_server_config config = {
        .store = url, .listen = "127.0.0.1:0", .routes = &table, .receive_s = 1};
    if (weft_server_start(&config, &server, &err)) {
        printf("Bail out! %s\n", err.text);
        exit(1); /* NOLINT(concurrency-mt-unsafe) */
    }
}

static int reach(void)
{
    const char *colon = strrchr(weft_server_url(server), ':');
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
        printf("Bail out! no connection\n");
    return fd;
}

static void send_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        data += sent;
        size -= (size_t)sent;
    }
}

/* Reads until the text has come, or the end. */
static const char *read_until(int fd, const char *text)
{
    static char answer[8192];
    size_t size = 0;
    memset(answer, 0, sizeof(answer));
    while (size < sizeof(answer) - 1 && !strstr(answer, text)) {
        ssize_t got = recv(fd, answer + size, sizeof(answer) - 1 - size, 0);
        if (got <= 0)
            break;
        size += (size_t)got;
    }
    return answer;
}

static char *make_body(size_t size)
{
    char *body = malloc(size + 1);
    for (size_t i = 0; i < size; i++)
        body[i] = (char)(i % 251);
    return body;
}

static void send_head(int fd, const char *more, size_t length)
{
    char head[300];
    int size = snprintf(head, sizeof(head),
                        "POST /pieces HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %zu\r\n\r\n",
                        more, length);
    send_all(fd, head, (size_t)size);
}

static void send_chunked(int fd, const char *body, size_t size)
{
    static const char head[] =
        "POST /pieces HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    send_all(fd, head, sizeof(head) - 1);
    for (size_t at = 0; at < size;) {
        size_t part = size - at < 10007 ? size - at : 10007;
        char line[32];
        int line_size = snprintf(line, sizeof(line), "%zx\r\n", part);
        send_all(fd, line, (size_t)line_size);
        send_all(fd, body + at, part);
        send_all(fd, "\r\n", 2);
        at += part;
    }
    send_all(fd, "0\r\n\r\n", 5);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static void test_sizes(void)
{
    const size_t sizes[] = {
        0,       1, WEFT_PIECE_MAX, WEFT_PIECE_MAX + 1, 2 * (size_t)WEFT_PIECE_MAX, (1 << 20) + 7,
        BODY_MAX};
    char *body = make_body(BODY_MAX);
    for (size_t i = 0; i < WEFT_LEN(sizes); i++)
        for (int chunked = 0; chunked < 2; chunked++) {
            char want[128];
            size_t size = sizes[i], largest = size < WEFT_PIECE_MAX ? size : WEFT_PIECE_MAX;
            int fd = reach();
            if (chunked) {
                send_chunked(fd, body, size);
            } else {
                send_head(fd, "", size);
                send_all(fd, body, size);
            }
            (void)snprintf(want, sizeof(want), "pieces=%zu bytes=%zu largest=%zu order=%d",
                           (size + WEFT_PIECE_MAX - 1) / WEFT_PIECE_MAX, size, largest, size > 0);
            ok(strstr(read_until(fd, "order="), want), "a body of %zu bytes%s is taken in pieces",
               size, chunked ? ", chunked," : "");
            (void)close(fd);
        }
    free(body);
}

static void test_headers(void)
{
    int fd = reach();
    send_head(fd, "", 0);
    const char *answer = read_until(fd, "order=");
    ok(strstr(answer, "ETag: \"2\"") && !strstr(answer, "\"1\""), "a handler sets a header");
    ok(strstr(answer, "Cache-Control: no-store") && strstr(answer, "Content-Type: text/plain"),
       "the header of the route is sent with it");
    (void)close(fd);
    fd = reach();
    send_head(fd, "Content-Encoding: gzip\r\n", 2);
    send_all(fd, "{}", 2);
    answer = read_until(fd, "}}");
    ok(strstr(answer, "415") && strstr(answer, "Accept-Encoding: identity"),
       "a compressed body is refused where it is taken in pieces");
    ok(!strstr(answer, "Cache-Control"), "an error has no header of the route");
    (void)close(fd);
    fd = reach();
    send_head(fd, "", BODY_MAX + 1);
    ok(strstr(read_until(fd, "}}"), "413"), "a body above body_max is refused");
    (void)close(fd);
}

static void *send_body(void *context)
{
    char *body = make_body(1 << 20);
    send_all(*(int *)context, body, 1 << 20);
    free(body);
    return NULL;
}

static void test_held_piece(void)
{
    pthread_t sender;
    int fd = reach(), other = reach();
    holds = true;
    held = false;
    send_head(fd, "", 1 << 20);
    (void)pthread_create(&sender, NULL, send_body, &fd);
    while (!held)
        (void)poll(NULL, 0, 1);
    static const char question[] = "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n";
    send_all(other, question, sizeof(question) - 1);
    ok(strstr(read_until(other, "}}"), "404"), "the loop answers others while a piece is taken");
    ok(weft_metric_get(server->metrics, WEFT_METRIC_HTTP_BODY_BYTES, 0) <= WEFT_PIECE_MAX,
       "the server holds one piece meanwhile");
    holds = false;
    ok(strstr(read_until(fd, "order="), "pieces=4 bytes=1048576 largest=262144 order=1"),
       "the rest follows when the piece is taken");
    (void)pthread_join(sender, NULL);
    (void)close(fd);
    (void)close(other);
}

static void test_broken_off(void)
{
    char *body = make_body(1 << 20);
    int fd = reach();
    fails = true;
    send_head(fd, "", 1 << 20);
    send_all(fd, body, 1 << 20);
    ok(strstr(read_until(fd, "}}"), "this piece is not taken"),
       "the failure of a piece is answered");
    fails = false;
    (void)close(fd);
    fd = reach();
    send_head(fd, "", 1 << 20);
    send_all(fd, body, WEFT_PIECE_MAX + 1);
    weft_usec before_us = weft_boot_us();
    is_str(read_until(fd, "}"), "", "a body that stands still is cut off");
    ok(weft_boot_us() - before_us >= WEFT_SECOND / 2, "not before its time");
    (void)close(fd);
    for (int i = 0; i < PATIENCE_S * 1000 && forgotten < begun; i++)
        (void)poll(NULL, 0, 1);
    is_int(forgotten, begun, "every begun request is freed, however it ended");
    free(body);
}

/* The stream looks a few times by itself, then it sleeps until it is woken. */
static bool sleeps(void)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_id *id;
    size_t count = 0;
    for (int i = 0; i < PATIENCE_S * 1000 && count == 0; i++) {
        (void)poll(NULL, 0, 1);
        count = weft_waits_ids(server->waits, arena, &id);
    }
    weft_arena_free(arena);
    return count == 1;
}

static void test_events(void)
{
    static const char question[] = "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int fd = reach();
    patience_us = 3600 * WEFT_SECOND;
    send_all(fd, question, sizeof(question) - 1);
    ok(strstr(read_until(fd, "\r\n\r\n"), "text/event-stream"),
       "the head is sent before any event");
    while (!atomic_load(&calls))
        (void)poll(NULL, 0, 1);
    events = 1;
    weft_wait_ended(server, &topic, 1);
    ok(strstr(read_until(fd, "event 1\n"), "event 1\n"), "a wake brings the first event");
    ok(sleeps(), "a stream with nothing to send sleeps, without a thread that looks for it");
    events = 3;
    weft_wait_ended(server, &topic, 1);
    ok(strstr(read_until(fd, "0\r\n\r\n"), "event 3\n"),
       "the next wake brings the rest and the end");
    (void)close(fd);

    events = 0;
    patience_us = WEFT_SECOND / 10;
    fd = reach();
    send_all(fd, question, sizeof(question) - 1);
    ok(strstr(read_until(fd, "tick\n"), "tick\n"), "without a wake the stream goes on in time");
    patience_us = 3600 * WEFT_SECOND;
    weft_server_free(server); /* with the stream open */
    ok(!strstr(read_until(fd, "event"), "event"), "a server that stops ends its streams");
    (void)close(fd);
}

int main(void)
{
    weft_log_init(WEFT_SILENT, WEFT_LOGFMT, STDERR_FILENO);
    serve();
    test_sizes();
    test_headers();
    test_held_piece();
    test_broken_off();
    test_events();
    static const char *const suffix[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        char name[300];
        (void)snprintf(name, sizeof(name), "%s%s", path, suffix[i]);
        (void)unlink(name);
    }
    return tap_done();
}
