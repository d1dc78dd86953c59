/* SPDX-License-Identifier: Apache-2.0 */

/* HTTP calls: answers, errors without an answer, and how often a request is sent. */

#include "http_fixture.h"

#include "fetch/fetch.h"

static struct weft_err err;
static struct weft_fetch_failure failure;
static struct weft_fetch_answer answer;

static struct weft_fetch *open_fetch(const struct weft_fetch_config *config)
{
    struct weft_fetch *fetch = NULL;
    ok(weft_fetch_open(config, &fetch, &err) == WEFT_OK, "opened");
    return fetch;
}

static enum weft_rc fetch_do(struct weft_fetch *fetch, const struct weft_fetch_call *call)
{
    weft_fetch_answer_done(&answer);
    failure = (struct weft_fetch_failure){0};
    return weft_fetch_do(fetch, call, &answer, &failure, &err);
}

static const struct weft_fetch_call get = {.method = "GET", .path = "/v1/x?y=1"};
static const struct weft_fetch_call post = {
    .method = "POST", .path = "/v1/x", .body = "{\"a\":1}", .body_size = 7};
static const struct weft_fetch_call post_once = {
    .method = "POST", .path = "/v1/x", .body = "{\"a\":1}", .body_size = 7, .once = true};
static const struct weft_fetch_call bare_once = {.method = "POST", .path = "/v1/x", .once = true};

/* ---- Answers --------------------------------------------------------------------------------- */

static void test_answers(void)
{
    struct stage stage;
    stage_init(&stage);
    stage_add(&stage, (struct take){.header = "X-Request-Id: r-1\r\nretry-after:  7 \r\n"});
    stage_add(&stage, (struct take){.status = 404, .body = "{\"error\":null}"});
    stage_add(&stage, (struct take){.status = 503,
                                    .header = "Retry-After: Wed, 21 Oct 2065 07:28:00 GMT"
                                              "\r\n"});
    stage_add(&stage, (struct take){.status = 302, .header = "Location: http://127.0.0.1:1/\r\n"});
    stage_add(&stage, (struct take){0});
    stage_open(&stage);
    static const char *const header[] = {"X-Weft-Namespace: blue", NULL};
    char url[100];
    (void)snprintf(url, sizeof(url), "%s/under//", stage.url);
    struct weft_fetch *fetch = open_fetch(
        &(struct weft_fetch_config){.base_url = url, .token = "secret", .header = header});

    ok(fetch_do(fetch, &get) == WEFT_OK && answer.status == 200, "200");
    is_str(answer.body.data, "{}", "the answer has its body");
    is_str(answer.content_type, "application/json", "the answer has its content type");
    is_str(answer.request_id, "r-1", "the answer has its request id");
    is_int(answer.retry_after_ms, 7000, "the answer has its Retry-After");
    ok(fetch_do(fetch, &post) == WEFT_OK && answer.status == 404, "404 is an answer too");
    is_int(answer.retry_after_ms, -1, "an answer without Retry-After has -1");
    is_str(answer.request_id, "", "the answer without a request id has an empty one");
    ok(fetch_do(fetch, &post_once) == WEFT_OK && answer.status == 503, "503 as well");
    is_int(answer.retry_after_ms, 1000, "a date counts as a second");
    ok(fetch_do(fetch, &get) == WEFT_OK && answer.status == 302, "redirects are not followed");
    const struct weft_fetch_call put = {
        .method = "PUT", .path = "/v1/y", .body = "[]", .body_size = 2};
    ok(fetch_do(fetch, &put) == WEFT_OK, "PUT");
    weft_fetch_answer_done(&answer);

    const struct asked *asked = stage.asked;
    is_int(stage.connections, 1, "all on one connection");
    is_str(asked[0].method, "GET", "the first request is a GET");
    is_str(asked[0].path, "/under/v1/x?y=1", "the path, behind that of the server");
    ok(strstr(asked[0].header, "\r\nAuthorization: Bearer secret\r\n") != NULL,
       "the request has the token");
    ok(strstr(asked[0].header, "\r\nX-Weft-Namespace: blue\r\n") != NULL,
       "the request has the namespace header");
    ok(!strcasestr(asked[0].header, "Content-Type"), "no type without a body");
    is_str(asked[1].method, "POST", "the second request is a POST");
    is_str(asked[1].body, "{\"a\":1}", "the POST has its body");
    ok(strstr(asked[1].header, "\r\nContent-Type: application/json\r\n") != NULL,
       "the body is declared as JSON");
    is_str(asked[2].body, "{\"a\":1}", "the body of a call that is sent once");
    ok(strstr(asked[2].header, "\r\nContent-Length: 7\r\n") != NULL,
       "the body of a call that is sent once has a length");
    is_str(asked[4].method, "PUT", "the fifth request is a PUT");
    is_str(asked[4].body, "[]", "the PUT has its body");
    weft_fetch_close(fetch);
    stage_done(&stage);
}

static void test_large(void)
{
    enum { SIZE = 3 << 20 };
    char *large = malloc(SIZE + 1);
    memset(large, '7', SIZE);
    large[SIZE] = '\0';
    struct stage stage;
    stage_init(&stage);
    stage_add(&stage, (struct take){.body = large});
    stage_open(&stage);
    struct weft_fetch *fetch = open_fetch(&(struct weft_fetch_config){.base_url = stage.url});
    for (int i = 0; i < 2; i++) {
        const struct weft_fetch_call call = {
            .method = "POST", .path = "/", .body = large, .body_size = SIZE, .once = i == 1};
        ok(fetch_do(fetch, &call) == WEFT_OK && answer.body.size == SIZE, "3 MiB come");
        ok(stage.asked[i].body_size == SIZE && memcmp(stage.asked[i].body, large, SIZE) == 0,
           "3 MiB are sent without waiting for a 100");
        ok(!strcasestr(stage.asked[i].header, "Expect:"), "the request has no Expect header");
    }
    weft_fetch_close(fetch);
    fetch = open_fetch(&(struct weft_fetch_config){.base_url = stage.url, .body_max = SIZE - 1});
    ok(fetch_do(fetch, &get) == WEFT_TOO_LARGE && failure.sent, "one byte too many: %s", err.text);
    weft_fetch_close(fetch);
    weft_fetch_answer_done(&answer);
    stage_done(&stage);
    free(large);
}

/* ---- No answers ------------------------------------------------------------------------------ */

static void test_not_sent(void)
{
    struct stage stage;
    stage_init(&stage);
    struct weft_fetch *fetch = open_fetch(&(struct weft_fetch_config){.base_url = stage.url});
    ok(fetch_do(fetch, &post) == WEFT_UNAVAILABLE, "a call to a closed port is unavailable: %s",
       err.text);
    ok(!failure.sent && !failure.stopped, "the call was not sent");
    ok(fetch_do(fetch, &post_once) == WEFT_UNAVAILABLE && !failure.sent,
       "a call that may be sent once was not sent either");
    weft_fetch_close(fetch);
    fetch = open_fetch(&(struct weft_fetch_config){.base_url = "http://no.such.host.invalid"});
    ok(fetch_do(fetch, &post) == WEFT_UNAVAILABLE && !failure.sent, "no such host: %s", err.text);
    weft_fetch_close(fetch);

    stage_open(&stage);
    char url[100];
    (void)snprintf(url, sizeof(url), "https%.60s", strchr(stage.url, ':'));
    stage_add(&stage, (struct take){.raw = "this is no TLS"});
    fetch = open_fetch(&(struct weft_fetch_config){.base_url = url, .connect_ms = 500});
    ok(fetch_do(fetch, &post) == WEFT_UNAVAILABLE && !failure.sent, "no TLS there: %s", err.text);
    weft_fetch_close(fetch);
    stage_done(&stage);
}

static void test_broken(void)
{
    static const struct {
        const char *name;
        struct take take;
    } row[] = {
        {"no answer at all", {.hang_up = true}},
        {"no HTTP", {.raw = "\x01\x02\x03 nonsense\r\n\r\n"}},
        {"half a head", {.raw = "HTTP/1.1 200 OK\r\nContent-Le"}},
        {"half a body", {.raw = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"a\""}},
        {"bad chunks", {.raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        for (int once = 0; once < 2; once++) {
            struct stage stage;
            stage_init(&stage);
            stage_add(&stage, row[i].take);
            stage_open(&stage);
            struct weft_fetch *fetch =
                open_fetch(&(struct weft_fetch_config){.base_url = stage.url});
            bool failed = fetch_do(fetch, once ? &post_once : &post) == WEFT_UNAVAILABLE;
            /* A head that is cut off may pass for an answer without a body; a client reads JSON. */
            ok(failed ? failure.sent : answer.body.size == 0, "%s: %s", row[i].name,
               failed ? err.text : "an empty answer");
            is_int(stage.requests, 1, "%s: sent one time", row[i].name);
            weft_fetch_close(fetch);
            stage_done(&stage);
        }
    weft_fetch_answer_done(&answer);
}

/* A kept connection that is lost: repeated by itself, or not. */
static void test_lost_connection(void)
{
    static const struct {
        const char *name;
        const struct weft_fetch_call *call;
        int requests;
    } row[] = {
        {"may be repeated", &post, 3},
        {"once", &post_once, 2},
        {"a GET", &get, 3},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct stage stage;
        stage_init(&stage);
        stage_add(&stage, (struct take){0});
        stage_add(&stage, (struct take){.hang_up = true});
        stage_add(&stage, (struct take){0});
        stage_open(&stage);
        struct weft_fetch *fetch = open_fetch(&(struct weft_fetch_config){.base_url = stage.url});
        ok(fetch_do(fetch, row[i].call) == WEFT_OK, "%s: the first is answered", row[i].name);
        enum weft_rc rc = fetch_do(fetch, row[i].call);
        if (row[i].requests == 3)
            ok(rc == WEFT_OK, "%s: libcurl sends it again", row[i].name);
        else
            ok(rc == WEFT_UNAVAILABLE && failure.sent, "%s: it is not sent again: %s", row[i].name,
               err.text);
        is_int(stage.requests, row[i].requests, "%s: so many requests", row[i].name);
        ok(fetch_do(fetch, row[i].call) == WEFT_OK, "%s: the next is answered", row[i].name);
        weft_fetch_close(fetch);
        stage_done(&stage);
    }
    weft_fetch_answer_done(&answer);
}

/* Without a body there is nothing to hold back: every call has a connection of its own. */
static void test_bare_once(void)
{
    struct stage stage;
    stage_init(&stage);
    stage_add(&stage, (struct take){0});
    stage_add(&stage, (struct take){.hang_up = true});
    stage_open(&stage);
    struct weft_fetch *fetch = open_fetch(&(struct weft_fetch_config){.base_url = stage.url});
    ok(fetch_do(fetch, &bare_once) == WEFT_OK, "a bare call");
    ok(fetch_do(fetch, &bare_once) == WEFT_UNAVAILABLE && failure.sent,
       "the answer to the second call is lost");
    is_int(stage.requests, 2, "a bare call is sent once");
    weft_fetch_close(fetch);
    weft_fetch_answer_done(&answer);
    stage_done(&stage);
}

/* The server closed the connection while it was idle: nothing of the body was acted on. */
static void test_stale(void)
{
    struct stage stage;
    stage_init(&stage);
    stage_add(&stage, (struct take){.close_after = true});
    stage_open(&stage);
    struct weft_fetch *fetch = open_fetch(&(struct weft_fetch_config){.base_url = stage.url});
    int done = 0;
    for (int i = 0; i < 20; i++)
        done += fetch_do(fetch, i % 2 ? &post : &get) == WEFT_OK;
    is_int(done, 20, "closed connections are replaced");
    /* One that is known to be closed does not have to be tried: nothing is sent twice. */
    for (int i = 0; i < 10; i++) {
        ok(stage_wait_for(&stage, &stage.closed, stage.connections), "the server has closed");
        done += fetch_do(fetch, &post_once) == WEFT_OK;
    }
    is_int(done, 30, "calls that may be sent once are sent on a new connection");
    weft_fetch_close(fetch);
    weft_fetch_answer_done(&answer);
    stage_done(&stage);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

struct waiter {
    struct weft_fetch *fetch;
    _Atomic bool stop;
    enum weft_rc rc;
    struct weft_fetch_failure failure;
};

static void *wait_long(void *context)
{
    struct waiter *waiter = context;
    struct weft_fetch_answer mine = {0};
    struct weft_err story;
    const struct weft_fetch_call call = {
        .method = "GET", .path = "/wait", .timeout_ms = 60000, .stop = &waiter->stop};
    waiter->rc = weft_fetch_do(waiter->fetch, &call, &mine, &waiter->failure, &story);
    weft_fetch_answer_done(&mine);
    return NULL;
}

static void test_stop(void)
{
    enum { WAITERS = 8 };
    struct stage stage;
    stage_init(&stage);
    stage_add(&stage, (struct take){.hold = true});
    stage_open(&stage);
    struct weft_fetch *fetch = open_fetch(&(struct weft_fetch_config){.base_url = stage.url});
    struct waiter waiter[WAITERS];
    pthread_t thread[WAITERS];
    for (size_t i = 0; i < WAITERS; i++) {
        waiter[i] = (struct waiter){.fetch = fetch};
        (void)pthread_create(&thread[i], NULL, wait_long, &waiter[i]);
    }
    ok(stage_wait(&stage, WAITERS), "many calls wait at once");
    int64_t began_ms = mono_ms();
    for (size_t i = 0; i < WAITERS; i++)
        waiter[i].stop = true;
    int stopped = 0;
    for (size_t i = 0; i < WAITERS; i++) {
        (void)pthread_join(thread[i], NULL);
        stopped +=
            waiter[i].rc == WEFT_UNAVAILABLE && waiter[i].failure.stopped && waiter[i].failure.sent;
    }
    is_int(stopped, WAITERS, "every waiting call is stopped");
    ok(mono_ms() - began_ms < 2000, "a stopped call returns soon");
    const struct weft_fetch_call call = {
        .method = "GET", .path = "/", .stop = &waiter[0].stop, .timeout_ms = 60000};
    ok(fetch_do(fetch, &call) == WEFT_UNAVAILABLE && failure.stopped && !failure.sent,
       "a call that is stopped before it begins is not sent");
    weft_fetch_close(fetch);
    stage_done(&stage);
}

static void test_timeout(void)
{
    struct stage stage;
    stage_init(&stage);
    stage_add(&stage, (struct take){.hold = true});
    stage_open(&stage);
    struct weft_fetch *fetch = open_fetch(&(struct weft_fetch_config){.base_url = stage.url});
    const struct weft_fetch_call call = {.method = "GET", .path = "/", .timeout_ms = 120};
    int64_t began_ms = mono_ms();
    ok(fetch_do(fetch, &call) == WEFT_UNAVAILABLE && failure.sent && !failure.stopped,
       "a call of 120 ms runs out of time: %s", err.text);
    ok(mono_ms() - began_ms < 5000, "the slow answer is not waited for");
    weft_fetch_close(fetch);
    stage_done(&stage);
}

static void test_refused(void)
{
    static const char *const two_lines[] = {"A: b\nC: d", NULL};
    static const struct {
        const char *name;
        struct weft_fetch_config config;
    } row[] = {
        {"another scheme", {.base_url = "ftp://host"}},
        {"no host", {.base_url = "http://"}},
        {"a port that is none", {.base_url = "http://host:port"}},
        {"a user", {.base_url = "http://me:secret@host"}},
        {"a query", {.base_url = "http://host/?a=b"}},
        {"a fragment", {.base_url = "http://host/#a"}},
        {"a token of two lines", {.base_url = "http://host", .token = "a\r\nX: y"}},
        {"an empty token", {.base_url = "http://host", .token = ""}},
        {"a header of two lines", {.base_url = "http://host", .header = two_lines}},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_fetch *fetch = NULL;
        ok(weft_fetch_open(&row[i].config, &fetch, &err) == WEFT_INVALID_VALUE && !fetch &&
               !strstr(err.text, "secret"),
           "%s: %s", row[i].name, err.text);
    }
}

int main(void)
{
    test_answers();
    test_large();
    test_not_sent();
    test_broken();
    test_lost_connection();
    test_bare_once();
    test_stale();
    test_stop();
    test_timeout();
    test_refused();
    return tap_done();
}
