/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The HTTP of the benchmark: its parser, with answers cut at every byte, and calls to a small
 * server that answers from a script.
 */

#include "base/buf.h"
#include "cmd/bench/bench.h"
#include "tap.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- The parser ------------------------------------------------------------------------------ */

#define OK_HEAD "HTTP/1.1 200 OK\r\n"

static const struct {
    const char *name, *data;
    bool ended;
    enum weft_bench_parsed parsed;
    int status;
    const char *body;
    const char *rest; /* bytes that belong to the next answer */
} row[] = {
    {"a plain answer", OK_HEAD "Content-Length: 5\r\n\r\nhello", false, WEFT_BENCH_WHOLE, 200,
     "hello", ""},
    {"names in any case", OK_HEAD "cOnTeNt-LeNgTh:5\r\n\r\nhello", false, WEFT_BENCH_WHOLE, 200,
     "hello", ""},
    {"an empty body", OK_HEAD "Content-Length: 0\r\n\r\n", false, WEFT_BENCH_WHOLE, 200, "", ""},
    {"a status without a reason", "HTTP/1.1 429\r\nContent-Length: 0\r\n\r\n", false,
     WEFT_BENCH_WHOLE, 429, "", ""},
    {"two in a row", OK_HEAD "Content-Length: 2\r\n\r\nabHTTP/1.1 503 X\r\n", false,
     WEFT_BENCH_WHOLE, 200, "ab", "HTTP/1.1 503 X\r\n"},
    {"an interim answer before it",
     "HTTP/1.1 100 Continue\r\n\r\n" OK_HEAD "Content-Length: 1\r\n\r\nx", false, WEFT_BENCH_WHOLE,
     200, "x", ""},
    {"no content", "HTTP/1.1 204 No Content\r\n\r\nHTTP", false, WEFT_BENCH_WHOLE, 204, "", "HTTP"},
    {"no length, open", OK_HEAD "\r\nhel", false, WEFT_BENCH_MORE, 0, NULL, NULL},
    {"no length, closed", OK_HEAD "\r\nhel", true, WEFT_BENCH_WHOLE, 200, "hel", ""},
    {"chunks",
     OK_HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\nHT",
     false, WEFT_BENCH_WHOLE, 200, "abc0123456789", "HT"},
    {"chunks with a trailer",
     OK_HEAD "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nSum: 1\r\n\r\n", false,
     WEFT_BENCH_WHOLE, 200, "x", ""},
    {"a chunk without its end", OK_HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
     false, WEFT_BENCH_BAD, 0, NULL, NULL},
    {"a chunk without a size", OK_HEAD "Transfer-Encoding: chunked\r\n\r\n\r\nabc", false,
     WEFT_BENCH_BAD, 0, NULL, NULL},
    {"a chunk size that is no number", OK_HEAD "Transfer-Encoding: chunked\r\n\r\nxyz\r\nabc",
     false, WEFT_BENCH_BAD, 0, NULL, NULL},
    {"a chunk size that is too large",
     OK_HEAD "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", false, WEFT_BENCH_BAD, 0,
     NULL, NULL},
    {"another encoding", OK_HEAD "Transfer-Encoding: gzip\r\n\r\n", false, WEFT_BENCH_BAD, 0, NULL,
     NULL},
    {"chunks and a length", OK_HEAD "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
     false, WEFT_BENCH_BAD, 0, NULL, NULL},
    {"a bad status", "HTTP/1.1 2x0 OK\r\n\r\n", false, WEFT_BENCH_BAD, 0, NULL, NULL},
    {"a short status", "HTTP/1.1 20\r\n\r\n", false, WEFT_BENCH_BAD, 0, NULL, NULL},
    {"another protocol", "SSH-2.0-x\r\n\r\n", false, WEFT_BENCH_BAD, 0, NULL, NULL},
    {"HTTP/2", "HTTP/2.0 200 OK\r\n\r\n", false, WEFT_BENCH_BAD, 0, NULL, NULL},
    {"switching", "HTTP/1.1 101 Switching\r\n\r\n", false, WEFT_BENCH_BAD, 0, NULL, NULL},
    {"a Content-Length that is no number", OK_HEAD "Content-Length: five\r\n\r\n", false,
     WEFT_BENCH_BAD, 0, NULL, NULL},
    {"a negative Content-Length", OK_HEAD "Content-Length: -1\r\n\r\n", false, WEFT_BENCH_BAD, 0,
     NULL, NULL},
    {"a Content-Length that is too large", OK_HEAD "Content-Length: 99999999999999999999\r\n\r\n",
     false, WEFT_BENCH_BAD, 0, NULL, NULL},
    {"two lengths", OK_HEAD "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", false,
     WEFT_BENCH_BAD, 0, NULL, NULL},
    {"a header without a name", OK_HEAD "what is this\r\n\r\n", false, WEFT_BENCH_BAD, 0, NULL,
     NULL},
    {"nothing, ended", "", true, WEFT_BENCH_BAD, 0, NULL, NULL},
    {"half a head, ended", OK_HEAD, true, WEFT_BENCH_BAD, 0, NULL, NULL},
    {"half a body, ended", OK_HEAD "Content-Length: 5\r\n\r\nhel", true, WEFT_BENCH_BAD, 0, NULL,
     NULL},
};

static void test_parser(void)
{
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_err err = {0};
        struct weft_bench_answer answer = {0};
        size_t size = strlen(row[i].data);
        char *data = strdup(row[i].data);
        enum weft_bench_parsed parsed = weft_bench_parse(data, size, row[i].ended, &answer, &err);
        is_int(parsed, row[i].parsed, "%s: parsed %s", row[i].name, err.text);
        if (parsed == WEFT_BENCH_WHOLE && row[i].body) {
            is_int(answer.status, row[i].status, "%s: status", row[i].name);
            ok(answer.body_size == strlen(row[i].body) &&
                   memcmp(answer.body, row[i].body, answer.body_size) == 0,
               "%s: body", row[i].name);
            is_str(data + answer.total, row[i].rest, "%s: the rest", row[i].name);
        }
        free(data);
    }
}

/* An answer that is cut anywhere is neither whole nor bad. */
static void test_splits(void)
{
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        if (row[i].parsed != WEFT_BENCH_WHOLE || row[i].ended)
            continue;
        size_t whole = strlen(row[i].data) - strlen(row[i].rest);
        bool right = true;
        for (size_t size = 0; size < whole; size++) {
            struct weft_err err;
            struct weft_bench_answer answer;
            char *data = strndup(row[i].data, size); /* so that reading past it is seen */
            right = right && weft_bench_parse(data, size, false, &answer, &err) == WEFT_BENCH_MORE;
            right = right && memcmp(data, row[i].data, size) == 0;
            free(data);
        }
        ok(right, "%s: every prefix gives MORE and stays unchanged", row[i].name);
    }
}

static void test_fields(void)
{
    struct weft_err err;
    struct weft_bench_answer answer = {0};
    char busy[] =
        "HTTP/1.1 429 Busy\r\nRetry-After: 2\r\nConnection: Close\r\n"
        "Content-Length: 0\r\n\r\n";
    ok(weft_bench_parse(busy, strlen(busy), false, &answer, &err) == WEFT_BENCH_WHOLE &&
           answer.retry_after_ms == 2000 && answer.closes,
       "Retry-After and Connection: close are read");
    char plain[] = OK_HEAD "Content-Length: 0\r\n\r\n";
    ok(weft_bench_parse(plain, strlen(plain), false, &answer, &err) == WEFT_BENCH_WHOLE &&
           answer.retry_after_ms == -1 && !answer.closes,
       "without them: no retry time, not closing");
    char old[] = "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n";
    ok(weft_bench_parse(old, strlen(old), false, &answer, &err) == WEFT_BENCH_WHOLE &&
           answer.closes,
       "an HTTP/1.0 answer closes the connection");
}

/* ---- What is taken from answers -------------------------------------------------------------- */

static void test_claim(void)
{
    char body[] =
        "{\"items\":[{\"lane\":\"l\",\"id\":\"018f-a\",\"epoch\":3,\"payload\":{\"id\":1}},"
        "{\"epoch\":1,\"id\":\"018f-b\"}]}";
    struct weft_bench_answer answer = {.status = 200, .body = body, .body_size = strlen(body)};
    struct weft_buf out;
    struct weft_err err = {0};
    weft_buf_init(&out, 1 << 20);
    size_t claimed = 0;
    ok(weft_bench_read_claim(&answer, &out, &claimed, &err) == WEFT_OK && claimed == 2,
       "a claim with two items gives two %s", err.text);
    ok(strstr(out.data, "{\"items\":[{\"id\":\"018f-a\",\"epoch\":3,\"result\":{") == out.data &&
           strstr(out.data, "},{\"id\":\"018f-b\",\"epoch\":1,\"result\":{"),
       "the completion has their ids and epochs");
    static const char *const bad[] = {"",
                                      "[]",
                                      "{}",
                                      "{\"items\":{}}",
                                      "{\"items\":[{\"id\":\"x\"}]}",
                                      "{\"items\":[1]}",
                                      "{\"items\":[{\"id\":1,\"epoch\":1}]}"};
    for (size_t i = 0; i < WEFT_LEN(bad); i++) {
        char *text = strdup(bad[i]);
        answer.body = text;
        answer.body_size = strlen(text);
        ok(weft_bench_read_claim(&answer, &out, &claimed, &err) != WEFT_OK, "not a claim: %s",
           bad[i]);
        free(text);
    }
    weft_buf_done(&out);
}

static void test_items(void)
{
    struct weft_bench_errors errors = {0};
    size_t items = 0;
    struct weft_err err;
    char mixed[] =
        "{\"items\":[{\"id\":\"a\"},{\"error\":{\"code\":\"fenced\"}},{\"id\":\"b\"},"
        "{\"error\":{\"code\":\"fenced\"}}]}";
    struct weft_bench_answer answer = {.status = 200, .body = mixed, .body_size = strlen(mixed)};
    ok(weft_bench_read_items(&answer, &errors, &items, &err) == WEFT_OK && items == 2 &&
           errors.total == 2,
       "items are counted as good and bad");
    ok(errors.total == 2 && errors.codes == 1 && strcmp(errors.item[0].code, "fenced") == 0,
       "bad items are counted by their code");
    char one[] = "{\"id\":\"a\",\"state\":\"ready\",\"duplicate\":false}";
    answer = (struct weft_bench_answer){.status = 201, .body = one, .body_size = strlen(one)};
    ok(weft_bench_read_items(&answer, &errors, &items, &err) == WEFT_OK && items == 1,
       "an answer without items is one good item");
    char busy[] = "{\"error\":{\"code\":\"busy\",\"message\":\"x\"}}";
    answer = (struct weft_bench_answer){.status = 429, .body = busy, .body_size = strlen(busy)};
    weft_bench_read_refusal(&answer, &errors);
    char html[] = "<html>";
    answer = (struct weft_bench_answer){.status = 502, .body = html, .body_size = strlen(html)};
    weft_bench_read_refusal(&answer, &errors);
    ok(errors.codes == 3 && strcmp(errors.item[1].code, "busy") == 0 &&
           strcmp(errors.item[2].code, "http_502") == 0,
       "refusals are counted by their code or status");
    for (int i = 0; i < 30; i++) {
        char code[16];
        int size = snprintf(code, sizeof(code), "code_%d", i);
        weft_bench_count_error(&errors, code, (size_t)size);
    }
    ok(errors.codes == WEFT_BENCH_CODES_MAX && errors.total == 34 &&
           strcmp(errors.item[WEFT_BENCH_CODES_MAX - 1].code, "other") == 0,
       "codes beyond the limit are counted as other");
}

static void test_bodies(void)
{
    const struct weft_bench_plan plan = {.lane = "l", .batch = 3, .payload_size = 200};
    struct weft_buf out;
    weft_buf_init(&out, 1 << 20);
    weft_bench_document(&out, 200, 0);
    is_int(out.size, 200, "a document has its size");
    weft_bench_submission(&plan, &out);
    size_t count = 0;
    for (const char *at = out.data; (at = strstr(at, "\"lane\":\"l\"")); at++)
        count++;
    is_int(count, 3, "a submission has its items");
    weft_bench_claim_body(&plan, 7, 250, &out);
    ok(strstr(out.data, "\"max\":7") && strstr(out.data, "\"wait_ms\":250"), "a claim: %s",
       out.data);
    weft_buf_done(&out);
}

static void test_urls(void)
{
    static const struct {
        const char *url, *host, *prefix;
        int port; /* 0: refused */
    } url[] = {
        {"http://127.0.0.1:7717", "127.0.0.1:7717", "", 7717},
        {"http://127.0.0.1:7717/", "127.0.0.1:7717", "", 7717},
        {"http://127.0.0.1:7717/weft/", "127.0.0.1:7717", "/weft", 7717},
        {"http://127.0.0.1", "127.0.0.1", "", 80},
        {"http://[::1]:99/x", "[::1]:99", "/x", 99},
        {"https://127.0.0.1:1", "", "", 0},
        {"http://", "", "", 0},
        {"http://u@127.0.0.1:1", "", "", 0},
        {"http://[::1", "", "", 0},
        {"sqlite:x", "", "", 0},
    };
    for (size_t i = 0; i < WEFT_LEN(url); i++) {
        struct weft_bench_target target = {0};
        struct weft_err err = {0};
        enum weft_rc rc = weft_bench_resolve(url[i].url, &target, &err);
        if (url[i].port == 0) {
            ok(rc != WEFT_OK, "%s: %s", url[i].url, err.text);
            continue;
        }
        /* The port is at the same place for both families. */
        const struct sockaddr_in *address = (const struct sockaddr_in *)&target.address;
        ok(rc == WEFT_OK && ntohs(address->sin_port) == url[i].port, "%s: port", url[i].url);
        is_str(target.host, url[i].host, "%s: host", url[i].url);
        is_str(target.prefix, url[i].prefix, "%s: prefix", url[i].url);
    }
}

/* ---- A conversation -------------------------------------------------------------------------- */

enum { PATIENCE_MS = 10000 };

struct script {
    int listener;
    const char *answer; /* sent in pieces of `piece` bytes once a request has arrived */
    size_t piece;
    bool close;
    char request[4096];
};

static void *play(void *context)
{
    struct script *script = context;
    int fd = accept(script->listener, NULL, NULL);
    size_t size = 0;
    while (!strstr(script->request, "\r\n\r\n") && size < sizeof(script->request) - 1) {
        ssize_t got = recv(fd, script->request + size, sizeof(script->request) - 1 - size, 0);
        if (got <= 0)
            break;
        size += (size_t)got;
    }
    size_t left = strlen(script->answer);
    for (const char *at = script->answer; left > 0;) {
        size_t piece = left < script->piece ? left : script->piece;
        if (send(fd, at, piece, MSG_NOSIGNAL) < 0)
            break;
        at += piece;
        left -= piece;
    }
    if (!script->close) { /* wait until the other side is done */
        char byte;
        (void)recv(fd, &byte, 1, 0);
    }
    (void)close(fd);
    return NULL;
}

static bool listen_somewhere(int *ret_fd, char *ret_url, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *ret_fd = fd;
    bool works = bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, 4) == 0 &&
                 getsockname(fd, (struct sockaddr *)&address, &length) == 0;
    (void)snprintf(ret_url, size, "http://127.0.0.1:%d", ntohs(address.sin_port));
    return works;
}

static void converse(struct script script, const char *name, enum weft_rc want, const char *body)
{
    char url[64];
    struct weft_err err = {0};
    struct weft_bench_target target = {.token = "secret", .ns = "mine"};
    struct weft_bench_conn conn = {.fd = -1};
    struct weft_bench_answer answer = {0};
    if (!ok(listen_somewhere(&script.listener, url, sizeof(url)), "%s: listens", name))
        return;
    pthread_t thread;
    (void)pthread_create(&thread, NULL, play, &script);
    enum weft_rc rc = weft_bench_resolve(url, &target, &err);
    if (!rc)
        rc = weft_bench_connect(&conn, &target, &err);
    ok(rc == WEFT_OK, "%s: connects %s", name, err.text);
    struct weft_buf request, text;
    weft_buf_init(&request, 4096);
    weft_buf_init(&text, 4096);
    weft_buf_add_text(&text, "{\"a\":1}");
    weft_bench_request(&target, "/v1/claims", &text, &request);
    if (!rc)
        rc = weft_bench_send(&conn, request.data, request.size, &err);
    if (!rc)
        rc = weft_bench_await(&conn, PATIENCE_MS, &answer, &err);
    is_int(rc, want, "%s: %s", name, rc ? err.text : "answered");
    if (body && !rc)
        ok(answer.body_size == strlen(body) && memcmp(answer.body, body, answer.body_size) == 0,
           "%s: with its body", name);
    weft_bench_close(&conn);
    (void)pthread_join(thread, NULL);
    ok(strstr(script.request, "POST /v1/claims HTTP/1.1\r\nHost: 127.0.0.1:") &&
           strstr(script.request, "\r\nAuthorization: Bearer secret\r\n") &&
           strstr(script.request, "\r\nX-Weft-Namespace: mine\r\n") &&
           strstr(script.request, "\r\nContent-Length: 7\r\n"),
       "%s: the request is well formed", name);
    (void)close(script.listener);
    weft_buf_done(&request);
    weft_buf_done(&text);
}

static void test_conversation(void)
{
    converse((struct script){.answer = OK_HEAD "Content-Length: 5\r\n\r\nhello", .piece = 1000},
             "at once", WEFT_OK, "hello");
    converse((struct script){.answer = OK_HEAD "Content-Length: 5\r\n\r\nhello", .piece = 1},
             "byte by byte", WEFT_OK, "hello");
    converse((struct script){.answer = OK_HEAD "\r\nhello", .piece = 3, .close = true},
             "until it closes", WEFT_OK, "hello");
    converse((struct script){.answer = OK_HEAD "Content-Length: 9\r\n\r\nhello",
                             .piece = 1000,
                             .close = true},
             "cut off", WEFT_UNAVAILABLE, NULL);
    converse((struct script){.answer = "", .piece = 1, .close = true}, "hung up", WEFT_UNAVAILABLE,
             NULL);

    struct weft_bench_conn conn = {.fd = -1};
    struct weft_bench_target target = {0};
    struct weft_err err = {0};
    char url[64];
    int fd;
    if (ok(listen_somewhere(&fd, url, sizeof(url)), "a port without a listener"))
        (void)close(fd);
    ok(weft_bench_resolve(url, &target, &err) == WEFT_OK &&
           weft_bench_connect(&conn, &target, &err) == WEFT_UNAVAILABLE,
       "a connection to it is refused: %s", err.text);
    weft_bench_close(&conn);
}

int main(void)
{
    test_parser();
    test_splits();
    test_fields();
    test_claim();
    test_items();
    test_bodies();
    test_urls();
    test_conversation();
    return tap_done();
}
