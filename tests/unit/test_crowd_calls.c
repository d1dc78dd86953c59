/* SPDX-License-Identifier: Apache-2.0 */

/* What a call sends and how often; ends by its owner; the order of calls that wait. */

#include "crowd_fixture.h"

#include "http_fixture.h"

static struct weft_err err;
static struct upstream upstream;

static struct weft_crowd *start(uint32_t in_flight)
{
    struct weft_crowd *crowd = NULL;
    const struct weft_crowd_config config = {.in_flight = in_flight};
    if (weft_crowd_start(&config, &crowd, &err) != WEFT_OK)
        abort();
    return crowd;
}

static void perform(struct weft_crowd *crowd, const struct weft_crowd_call *call,
                    struct taken *taken)
{
    struct weft_crowd_call own = *call;
    taken_init(taken);
    own.context = taken;
    (void)weft_crowd_call(crowd, &own);
    ok(await_end(taken), "%s %s ends", call->method, call->url);
}

static void print_url(char ret_url[200], const char *path)
{
    (void)snprintf(ret_url, 200, "http://127.0.0.1:%d%s", upstream.port, path);
}

/* ---- Requests -------------------------------------------------------------------------------- */

static void test_requests(void)
{
    static const struct weft_crowd_header header[] = {
        {"Authorization", "Bearer secret"}, {"X-Empty", ""}, {"Content-Type", "application/json"}};
    static const struct {
        const char *method, *body;
        bool once;
    } row[] = {
        {"GET", NULL, false},       {"HEAD", NULL, false},   {"POST", "{\"a\":1}", true},
        {"POST", "", false},        {"POST", NULL, true},    {"PUT", "[1]", false},
        {"DELETE", NULL, true},     {"PATCH", "{}", true},   {"DELETE", "{}", true},
        {"GET", "{\"b\":2}", true}, {"OPTIONS", NULL, true}, {"GET", NULL, true},
    };
    struct weft_crowd *crowd = start(0);
    struct taken taken;
    char url[200], text[200];
    print_url(url, "/echo?x=1");
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_crowd_call call = plain_call(url, NULL);
        bool head = strcmp(row[i].method, "HEAD") == 0;
        call.method = row[i].method;
        call.body = row[i].body;
        call.body_size = row[i].body ? strlen(row[i].body) : 0;
        call.once = row[i].once;
        call.header = header;
        call.header_count = row[i].body ? 3 : 2;
        perform(crowd, &call, &taken);
        is_int(taken.status, 200, "%s: answered: %s", row[i].method, taken.text);
        ok(strstr(taken.header, "Content-Type: application/json\n") != NULL,
           "%s: the headers of the answer", row[i].method);
        (void)snprintf(text, sizeof(text),
                       "{\"method\":\"%s\",\"path\":\"/echo\",\"query\":\"x=1\"", row[i].method);
        const char *body = taken.body ? taken.body : "";
        ok(head ? taken.size == 0 : strncmp(body, text, strlen(text)) == 0, "%s: %s", text, body);
        (void)snprintf(text, sizeof(text), "\"size\":%zu", call.body_size);
        ok(head || strstr(body, text), "%s: with %s", row[i].method, text);
        ok(head || strstr(body, "Authorization: Bearer secret\\u000d\\u000a"), "%s: the header",
           row[i].method);
        ok(head || strstr(body, "X-Empty:\\u000d\\u000a"), "%s: the empty header", row[i].method);
        ok(head || row[i].body || !strstr(body, "Content-Type:"), "%s: no type without a body",
           row[i].method);
        ok(!strstr(body, "Expect:"), "%s: no Expect", row[i].method);
        taken_done(&taken);
    }
    weft_crowd_stop(crowd);
}

/* A redirect that goes on as GET loses the body and what describes it. */
static void test_redirect_methods(void)
{
    static const struct {
        int status;
        const char *method, *then;
    } row[] = {
        {301, "POST", "GET"},  {302, "POST", "GET"}, {303, "PUT", "GET"},
        {307, "POST", "POST"}, {308, "PUT", "PUT"},  {302, "PUT", "PUT"},
    };
    struct taken taken;
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct stage stage;
        char lines[100];
        stage_init(&stage);
        (void)snprintf(lines, sizeof(lines), "Location: ../there?a=1#part\r\n");
        stage_add(&stage, (struct take){.status = row[i].status, .header = lines});
        stage_add(&stage, (struct take){0});
        stage_open(&stage);
        struct weft_crowd *crowd = start(0);
        static const struct weft_crowd_header header[] = {{"Content-Type", "text/plain"},
                                                          {"X-Api-Key", "secret"}};
        char url[200];
        (void)snprintf(url, sizeof(url), "%s/one/two", stage.url);
        struct weft_crowd_call call = plain_call(url, NULL);
        call.method = row[i].method;
        call.body = "words";
        call.body_size = 5;
        call.header = header;
        call.header_count = 2;
        call.redirects = call.once = true;
        perform(crowd, &call, &taken);
        bool kept = strcmp(row[i].method, row[i].then) == 0;
        is_int(taken.status, 200, "%d: followed: %s", row[i].status, taken.text);
        is_int(taken.heads, 1, "%d: one head is told", row[i].status);
        is_str(stage.asked[1].method, row[i].then, "%d: then a %s", row[i].status, row[i].then);
        is_str(stage.asked[1].path, "/there?a=1", "%d: there", row[i].status);
        ok(strstr(stage.asked[1].header, "\r\nX-Api-Key: secret\r\n") != NULL,
           "%d: with the headers", row[i].status);
        is_int(stage.asked[1].body_size, kept ? 5 : 0, "%d: the body", row[i].status);
        ok(kept == (strcasestr(stage.asked[1].header, "Content-Type: text/plain") != NULL),
           "%d: and its type", row[i].status);
        taken_done(&taken);
        weft_crowd_stop(crowd);
        stage_done(&stage);
    }
}

/* ---- How often a request is sent ---------------------------------------------------------------
 */

static void test_kept_connection(void)
{
    static const struct {
        const char *method, *body;
        bool once;
        int requests;
    } row[] = {
        {"POST", "{}", true, 2}, {"POST", NULL, true, 2},  {"GET", NULL, true, 2},
        {"GET", NULL, false, 3}, {"POST", "{}", false, 3},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct stage stage;
        struct taken taken;
        stage_init(&stage);
        stage_add(&stage, (struct take){0});
        stage_add(&stage, (struct take){.hang_up = true});
        stage_add(&stage, (struct take){0});
        stage_open(&stage);
        struct weft_crowd *crowd = start(0);
        struct weft_crowd_call call = plain_call(stage.url, NULL);
        call.method = row[i].method;
        call.body = row[i].body;
        call.body_size = row[i].body ? strlen(row[i].body) : 0;
        call.once = row[i].once;
        perform(crowd, &call, &taken);
        is_int(taken.status, 200, "the first is answered");
        ok(taken.end.phases.connected_us > 0 && taken.end.phases.first_byte_us > 0,
           "the first connects");
        taken_done(&taken);
        perform(crowd, &call, &taken);
        ok(row[i].once ? taken.end.failure == WEFT_HTTP_BROKEN && taken.end.sent
                       : taken.status == 200,
           "%s, once %d, on a connection that is lost: %s", row[i].method, row[i].once, taken.text);
        is_int(stage.requests, row[i].requests, "requests that came");
        taken_done(&taken);
        weft_crowd_stop(crowd);
        stage_done(&stage);
    }
}

/* What a server does with a connection that is idle is noticed before the next call uses it. */
static void test_idle_connection(void)
{
    static const char *const path[] = {"/stray", "/hang-up/after", "/length/short", "/echo"};
    struct weft_crowd *crowd = start(0);
    for (size_t i = 0; i < WEFT_LEN(path); i++) {
        struct taken taken;
        char url[200];
        print_url(url, path[i]);
        struct weft_crowd_call call = plain_call(url, NULL);
        call.once = true;
        call.method = "POST";
        perform(crowd, &call, &taken);
        is_int(taken.status, 200, "%s: answered", path[i]);
        taken_done(&taken);
        (void)poll(NULL, 0, 60); /* the stray answer comes after 20 ms */
        print_url(url, "/echo");
        perform(crowd, &call, &taken);
        ok(taken.status == 200 && strstr(taken.body, "\"path\":\"/echo\"") != NULL,
           "after %s: the next call gets its own answer: %s", path[i], taken.text);
        taken_done(&taken);
    }
    weft_crowd_stop(crowd);
}

/* ---- Was it sent -------------------------------------------------------------------------------
 */

/* A listener whose queue is full: connections neither succeed nor fail. */
static int open_full(int *ret_port, int fill[8])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(fd, 0) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) != 0)
        abort();
    for (int i = 0; i < 8; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(fill[i], (struct sockaddr *)&at, sizeof(at));
    }
    *ret_port = ntohs(at.sin_port);
    return fd;
}

/* TLS with a server that speaks something else. */
static void test_no_tls(struct weft_crowd *crowd)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    struct taken taken;
    char url[200];
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &size) != 0)
        abort();
    taken_init(&taken);
    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%d/", ntohs(at.sin_port));
    const struct weft_crowd_call call = plain_call(url, &taken);
    (void)weft_crowd_call(crowd, &call);
    int fd = accept(listener, NULL, NULL);
    ok(send(fd, "220 ready\r\n", 11, MSG_NOSIGNAL) == 11 && await_end(&taken), "no TLS");
    ok(taken.end.failure == WEFT_HTTP_TLS && !taken.end.sent, "%s", taken.text);
    (void)close(fd);
    (void)close(listener);
    taken_done(&taken);
}

static void test_not_sent(void)
{
    struct weft_crowd *crowd = start(0);
    struct taken taken;
    char url[200];
    int port, fill[8], full = open_full(&port, fill);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/", port);
    struct weft_crowd_call call = plain_call(url, NULL);
    call.connect_ms = 200;
    perform(crowd, &call, &taken);
    ok(taken.end.failure == WEFT_HTTP_TIMEOUT && !taken.end.sent &&
           taken.end.phases.total_us >= 200 * WEFT_MS && taken.end.phases.total_us < WEFT_SECOND,
       "no connection: %s", taken.text);
    taken_done(&taken);
    for (int i = 0; i < 8; i++)
        (void)close(fill[i]);
    (void)close(full);

    call.connect_ms = 5000;
    perform(crowd, &call, &taken); /* no server listens now */
    ok(taken.end.failure == WEFT_HTTP_CONNECT && !taken.end.sent, "refused: %s", taken.text);
    taken_done(&taken);

    /* TLS with a server that says nothing. */
    struct stage stage;
    stage_init(&stage);
    stage_add(&stage, (struct take){.hold = true});
    stage_open(&stage);
    (void)snprintf(url, sizeof(url), "https%s", strchr(stage.url, ':'));
    call.connect_ms = 300;
    perform(crowd, &call, &taken);
    ok(taken.end.failure == WEFT_HTTP_TIMEOUT && !taken.end.sent, "no handshake: %s", taken.text);
    taken_done(&taken);
    stage_done(&stage);

    test_no_tls(crowd);
    call.url = "ftp://127.0.0.1/x";
    perform(crowd, &call, &taken);
    ok(taken.end.failure == WEFT_HTTP_REFUSED && !taken.end.sent, "another scheme: %s", taken.text);
    taken_done(&taken);
    call.url = "http://user:word@127.0.0.1/";
    perform(crowd, &call, &taken);
    ok(taken.end.failure == WEFT_HTTP_REFUSED && !taken.end.sent && !strstr(taken.text, "word"),
       "user info: %s", taken.text);
    taken_done(&taken);
    weft_crowd_stop(crowd);
}

/* ---- Ends by the owner -------------------------------------------------------------------------
 */

static bool has_body(const struct taken *taken)
{
    return taken->size > 0 || taken->ends > 0;
}

static void test_enough(void)
{
    struct weft_crowd *crowd = start(0);
    for (int enough = 0; enough < 2; enough++) {
        struct taken taken;
        char url[200];
        taken_init(&taken);
        print_url(url, "/bytes/100000/10/1");
        taken.stop_at = 25;
        taken.not_enough = !enough;
        const struct weft_crowd_call call = plain_call(url, &taken);
        (void)weft_crowd_call(crowd, &call);
        ok(await_end(&taken) && taken.size < 1000, "stopped after some bytes");
        ok(enough ? taken.end.failure == WEFT_HTTP_ANSWERED && !taken.end.aborted && !taken.end.text
                  : taken.end.aborted,
           "with enough: %d", enough);
        is_int(taken.end.status, 200, "the status is known");
        taken_done(&taken);
    }
    weft_crowd_stop(crowd);
}

static void test_abort(void)
{
    static const struct {
        const char *path;
        bool body; /* abort when there are bytes; else after 30 ms */
        bool sent;
    } row[] = {
        {"/silent", false, true},
        {"/bytes/100000/1/5", true, true},
        {"/only-continue", false, true},
    };
    int files = count_descriptors();
    struct weft_crowd *crowd = start(0);
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct taken taken;
        char url[200];
        taken_init(&taken);
        print_url(url, row[i].path);
        const struct weft_crowd_call call = plain_call(url, &taken);
        struct weft_transfer *transfer = weft_crowd_call(crowd, &call);
        if (row[i].body)
            (void)await(&taken, has_body);
        else
            (void)poll(NULL, 0, 30);
        weft_usec from_us = weft_boot_us();
        weft_crowd_abort(crowd, transfer);
        ok(await_end(&taken) && taken.end.aborted && taken.end.sent == row[i].sent,
           "%s: aborted after %" PRId64 " us", row[i].path, weft_boot_us() - from_us);
        taken_done(&taken);
    }
    int port, fill[8], full = open_full(&port, fill);
    struct taken taken;
    char url[200];
    taken_init(&taken);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/", port);
    const struct weft_crowd_call call = plain_call(url, &taken);
    struct weft_transfer *transfer = weft_crowd_call(crowd, &call);
    (void)poll(NULL, 0, 30);
    weft_crowd_abort(crowd, transfer);
    ok(await_end(&taken) && taken.end.aborted && !taken.end.sent, "aborted while it connects");
    taken_done(&taken);
    for (int i = 0; i < 8; i++)
        (void)close(fill[i]);
    (void)close(full);
    weft_crowd_stop(crowd);
    is_int(count_descriptors(), files, "no descriptor is left");
}

/* ---- Calls that wait ---------------------------------------------------------------------------
 */

static void test_waiting(void)
{
    enum { WAITING = 30 };
    static struct taken taken[WAITING], slow, late, unwanted;
    struct weft_crowd *crowd = start(1);
    char url[200], slow_url[200];
    print_url(url, "/echo");
    print_url(slow_url, "/delay/400");
    taken_init(&slow);
    taken_init(&late);
    taken_init(&unwanted);
    struct weft_crowd_call call = plain_call(slow_url, &slow);
    (void)weft_crowd_call(crowd, &call);
    call = plain_call(url, &late);
    call.total_ms = 100;
    (void)weft_crowd_call(crowd, &call);
    call = plain_call(url, &unwanted);
    struct weft_transfer *transfer = weft_crowd_call(crowd, &call);
    for (int i = 0; i < WAITING; i++) {
        taken_init(&taken[i]);
        call = plain_call(url, &taken[i]);
        (void)weft_crowd_call(crowd, &call);
    }
    weft_crowd_abort(crowd, transfer);
    ok(await_end(&unwanted) && unwanted.end.aborted && !unwanted.end.sent && !slow.ends,
       "one that waits is aborted");
    ok(await_end(&late) && late.end.failure == WEFT_HTTP_TIMEOUT && !late.end.sent && !slow.ends,
       "one that waits ends at its deadline: %s", late.text);
    is_int(weft_crowd_in_flight(crowd), WAITING + 1, "the others are in flight");
    size_t well = 0;
    for (int i = 0; i < WAITING; i++)
        well += await_end(&taken[i]) && taken[i].status == 200 && slow.ends == 1;
    is_int(well, WAITING, "the others are answered after the slow one");
    for (int i = 0; i < WAITING; i++)
        taken_done(&taken[i]);
    taken_done(&slow);
    taken_done(&late);
    taken_done(&unwanted);
    weft_crowd_stop(crowd);
}

/* A stop ends all calls, those that wait too. */
static void test_stop(void)
{
    enum { CALLS = 400 };
    static const char *const path[] = {"/silent", "/bytes/100000/1/5", "/delay/100", "/echo"};
    static struct taken taken[CALLS];
    char url[WEFT_LEN(path)][200];
    int files = count_descriptors();
    struct weft_crowd *crowd = start(150);
    for (size_t i = 0; i < WEFT_LEN(path); i++)
        print_url(url[i], path[i]);
    for (size_t i = 0; i < CALLS; i++) {
        taken_init(&taken[i]);
        const struct weft_crowd_call call = plain_call(url[i % WEFT_LEN(path)], &taken[i]);
        (void)weft_crowd_call(crowd, &call);
    }
    (void)poll(NULL, 0, 50);
    weft_usec from_us = weft_boot_us();
    weft_crowd_stop(crowd);
    ok(weft_boot_us() - from_us < WEFT_SECOND, "stopped in %" PRId64 " us",
       weft_boot_us() - from_us);
    size_t ended = 0, aborted = 0;
    for (size_t i = 0; i < CALLS; i++) {
        ended += taken[i].ends == 1;
        aborted += taken[i].end.aborted;
        taken_done(&taken[i]);
    }
    ok(ended == CALLS && aborted >= CALLS / 2, "each has ended once, %zu by the stop", aborted);
    is_int(count_descriptors(), files, "no descriptor is left");
    weft_crowd_stop(NULL);
}

int main(void)
{
    upstream = upstream_start();
    test_requests();
    test_redirect_methods();
    test_kept_connection();
    test_idle_connection();
    test_not_sent();
    test_enough();
    test_abort();
    test_waiting();
    test_stop();
    upstream_stop(&upstream);
    return tap_done();
}
