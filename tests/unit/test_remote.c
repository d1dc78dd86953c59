/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The calls of weft.h over a server that says what the test tells it to: what is asked, how answers
 * are read, what is repeated and what is not.
 */

#include "http_fixture.h"

#include "base/buf.h"
#include "weft/weft.h"

#define ID_TEXT  "01890000-0000-7000-8000-000000000001"
#define ID2_TEXT "01890000-0000-7000-8000-000000000002"

static struct weft_err err;
static struct stage stage;
static struct weft *weft;
static struct weft_id id, id2;

static void begin(const struct take *take, size_t count)
{
    stage_init(&stage);
    for (size_t i = 0; i < count; i++)
        stage_add(&stage, take[i]);
    stage_open(&stage);
    weft = NULL;
    enum weft_rc rc =
        weft_open(stage.url, &(struct weft_options){.ns = "blue", .token = "secret"}, &weft, &err);
    if (rc) {
        printf("Bail out! cannot open %s: %s\n", stage.url, err.text);
        exit(1); /* NOLINT(concurrency-mt-unsafe) */
    }
    err = (struct weft_err){0};
}

static void end(void)
{
    weft_close(weft);
    stage_done(&stage);
}

/* The request `i` was this. */
static void asked_for(size_t i, const char *method, const char *path, const char *body)
{
    const struct asked *asked = &stage.asked[i];
    is_str(asked->method, method, "%s %s: the method", method, path);
    is_str(asked->path, path, "%s %s: the path", method, path);
    if (body)
        is_str(asked->body, body, "%s %s: the body", method, path);
}

/* ---- Submitting ------------------------------------------------------------------------------ */

static void test_submit(void)
{
    begin(&(struct take){.body = "{\"items\":[{\"id\":\"" ID_TEXT "\",\"state\":\"ready\","
                                 "\"duplicate\":true,\"new\":1},"
                                 "{\"error\":{\"code\":\"conflict\",\"message\":\"other work\","
                                 "\"hint\":\"ask Ada\",\"field\":\"key\"}}]}"},
          1);
    const struct weft_tag tag = {"a", "b"};
    const struct weft_spec spec[] = {
        {.kind = "mail",
         .key = "k1",
         .payload = "[1, 2]",
         .payload_size = 6,
         .tags = &tag,
         .tag_count = 1},
        {.kind = "mail", .key = "k2", .payload = "\xff", .payload_size = 1},
    };
    struct weft_submitted answer[2];
    is_int(weft_submit(weft, spec, 2, answer, &err), WEFT_OK, "submitted %s", err.text);
    ok(answer[0].err.rc == WEFT_OK && answer[0].duplicate && answer[0].state == WEFT_STATE_READY &&
           memcmp(&answer[0].id, &id, sizeof(id)) == 0,
       "the first was known");
    is_int(answer[1].err.rc, WEFT_CONFLICT, "the second is refused");
    is_str(answer[1].err.field, "key", "for its key");
    is_str(answer[1].err.text, "other work (ask Ada)", "a hint that is not known is in the text");
    asked_for(0, "POST", "/v1/executions",
              "{\"items\":[{\"kind\":\"mail\",\"payload\":[1, 2],\"tags\":{\"a\":\"b\"},"
              "\"key\":\"k1\"},{\"kind\":\"mail\",\"payload_base64\":\"/w==\","
              "\"content_type\":\"application/json\",\"key\":\"k2\"}]}");
    ok(strstr(stage.asked[0].header, "\r\nX-Weft-Namespace: blue\r\n") != NULL, "the namespace");
    ok(strstr(stage.asked[0].header, "\r\nAuthorization: Bearer secret\r\n") != NULL, "the token");
    end();
}

/* Answers a bulk request of submissions, whatever it holds. */
static char *accept_all(void *context, const struct asked *asked, struct take *ret_take)
{
    (void)context;
    (void)ret_take;
    size_t count = 0;
    for (const char *at = asked->body; (at = strstr(at, "\"kind\":")); at++)
        count++;
    static const char one[] = "{\"id\":\"" ID_TEXT "\",\"state\":\"ready\",\"duplicate\":false},";
    struct weft_buf text;
    weft_buf_init(&text, SIZE_MAX);
    weft_buf_add_text(&text, "{\"items\":[");
    for (size_t i = 0; i < count; i++)
        weft_buf_add(&text, one, sizeof(one) - 1 - (i + 1 == count));
    weft_buf_add_text(&text, "]}");
    return text.data;
}

static void test_parts(void)
{
    enum { MANY = 2500, LARGE = 30, SIZE = 1 << 20 };
    static struct weft_spec spec[MANY];
    static struct weft_submitted answer[MANY];
    char *large = malloc(SIZE + 1);
    memset(large, '7', SIZE);
    begin(NULL, 0);
    stage.make = accept_all;
    for (size_t i = 0; i < MANY; i++)
        spec[i] = (struct weft_spec){.kind = "k"};
    is_int(weft_submit(weft, spec, MANY, answer, &err), WEFT_OK, "many %s", err.text);
    is_int(stage.requests, 3, "a thousand at a time");
    size_t good = 0;
    for (size_t i = 0; i < MANY; i++)
        good += answer[i].err.rc == WEFT_OK && answer[i].state == WEFT_STATE_READY;
    is_int(good, MANY, "all have answers");

    for (size_t i = 0; i < LARGE; i++)
        spec[i] = (struct weft_spec){.kind = "k", .payload = large, .payload_size = SIZE};
    is_int(weft_submit(weft, spec, LARGE, answer, &err), WEFT_OK, "large ones %s", err.text);
    is_int(stage.requests, 6, "twelve megabytes at a time");

    struct weft_spec odd[] = {
        {.kind = "k"},
        {.kind = "k", .payload = large, .payload_size = SIZE + 1},
        {.kind = "k", .ns = "red"},
        {.kind = "k", .ns = "red", .tags = &(struct weft_tag){0}, .tag_count = 1},
        {.kind = "k", .deadline_us = -5},
        {.kind = "k", .policy = &(struct weft_policy){.backoff = (enum weft_backoff)7}},
        {.kind = "k", .ns = "red"},
    };
    is_int(weft_submit(weft, odd, WEFT_LEN(odd), answer, &err), WEFT_OK, "odd ones %s", err.text);
    is_int(stage.requests, 9, "a request for each namespace, and around what is refused");
    static const enum weft_rc want[] = {WEFT_OK,
                                        WEFT_TOO_LARGE,
                                        WEFT_OK,
                                        WEFT_INVALID_VALUE,
                                        WEFT_INVALID_VALUE,
                                        WEFT_INVALID_VALUE,
                                        WEFT_OK};
    for (size_t i = 0; i < WEFT_LEN(odd); i++)
        is_int(answer[i].err.rc, want[i], "odd one %zu", i);
    ok(strstr(stage.asked[7].header, "\r\nX-Weft-Namespace: red\r\n") != NULL, "its namespace");
    end();
    free(large);
}

/* ---- What is repeated ------------------------------------------------------------------------ */

#define ACCEPTED "{\"items\":[{\"id\":\"" ID_TEXT "\",\"state\":\"ready\",\"duplicate\":false}]}"
#define ERROR(code, hint)                                                                          \
    "{\"error\":{\"code\":\"" code "\",\"message\":\"m\",\"hint\":" hint ",\"field\":null}}"

#define EXECUTION(id_, state)                                                                      \
    "{\"id\":\"" id_ "\",\"namespace\":\"blue\",\"lane\":\"l\",\"kind\":\"k\",\"state\":\"" state  \
    "\",\"priority\":1,\"tags\":{\"a\":\"b\"},\"capabilities\":[\"gpu\"],\"attempt\":1,"           \
    "\"epoch\":2,\"worker\":\"w\",\"progress\":{\"percent\":40,\"note\":null},"                    \
    "\"error\":{\"class\":\"c\",\"message\":\"m\"},\"reason\":null}"

static enum weft_rc do_submit(const char *key)
{
    struct weft_submitted answer;
    return weft_submit(weft, &(struct weft_spec){.kind = "k", .key = key}, 1, &answer, &err);
}

static enum weft_rc do_keyed(void)
{
    return do_submit("key");
}

static enum weft_rc do_bare(void)
{
    return do_submit(NULL);
}

static enum weft_rc do_claim(void)
{
    struct weft_claims claims = {0};
    enum weft_rc rc = weft_claim(weft, &(struct weft_claim){.worker = "w"}, 1, &claims, &err);
    weft_claims_free(&claims);
    return rc;
}

static enum weft_rc do_complete(void)
{
    struct weft_lease_answer answer;
    return weft_complete(weft, &(struct weft_complete){.id = id, .epoch = 1}, 1, &answer, &err);
}

static enum weft_rc do_steer(enum weft_steer_kind kind)
{
    struct weft_steered answer;
    return weft_steer(weft, kind, &(struct weft_steer){.id = id}, 1, &answer, &err);
}

static enum weft_rc do_cancel(void)
{
    return do_steer(WEFT_STEER_CANCEL);
}

static enum weft_rc do_replay(void)
{
    return do_steer(WEFT_STEER_REPLAY);
}

static enum weft_rc do_revoke(void)
{
    return do_steer(WEFT_STEER_REVOKE);
}

static enum weft_rc do_describe(void)
{
    struct weft_page page = {0};
    enum weft_rc rc = weft_describe(weft, &id, 1, &page, &err);
    weft_page_free(&page);
    return rc;
}

static const struct {
    const char *name;
    enum weft_rc (*run)(void);
    bool once;
    const char *answer;
} calls[] = {
    {"submit with a key", do_keyed, false, ACCEPTED},
    {"submit without", do_bare, true, ACCEPTED},
    {"claim", do_claim, true, "{\"items\":[]}"},
    {"complete", do_complete, false,
     "{\"items\":[{\"id\":\"" ID_TEXT "\",\"state\":"
     "\"succeeded\"}]}"},
    {"cancel", do_cancel, false, "{\"items\":[{\"state\":\"cancelled\"}]}"},
    {"replay", do_replay, true, "{\"items\":[{\"state\":\"ready\"}]}"},
    {"revoke", do_revoke, true, "{\"state\":\"ready\"}"},
    {"describe", do_describe, false, EXECUTION(ID_TEXT, "ready")},
};

/* A first answer, then a good one: which calls reach the good one? */
static void test_repeats(void)
{
    static const struct {
        const char *name;
        struct take first;
        bool harmless; /* the server has done nothing */
    } row[] = {
        {"the answer is lost", {.hang_up = true}, false},
        {"half an answer", {.raw = "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"}, false},
        {"a proxy gives up", {.status = 502, .body = "<html>"}, false},
        {"it is away", {.status = 503, .body = ERROR("unavailable", "null")}, true},
        {"it does not know",
         {.status = 503, .body = ERROR("unavailable", "\"outcome_unknown\"")},
         false},
        {"it is full", {.status = 429, .body = ERROR("busy", "null")}, true},
        {"too many", {.status = 429, .body = "slow down"}, true},
    };
    for (size_t r = 0; r < WEFT_LEN(row); r++)
        for (size_t c = 0; c < WEFT_LEN(calls); c++) {
            const struct take take[] = {row[r].first, {.body = calls[c].answer}};
            begin(take, 2);
            enum weft_rc rc = calls[c].run();
            if (row[r].harmless || !calls[c].once) {
                is_int(rc, WEFT_OK, "%s: %s: tried again %s", row[r].name, calls[c].name, err.text);
                is_int(stage.requests, 2, "%s: %s: one more time", row[r].name, calls[c].name);
            } else {
                is_int(rc, WEFT_UNAVAILABLE, "%s: %s: %s", row[r].name, calls[c].name, err.text);
                is_str(err.hint, "outcome_unknown", "%s: %s: the hint", row[r].name, calls[c].name);
                is_int(stage.requests, 1, "%s: %s: not tried again", row[r].name, calls[c].name);
            }
            end();
        }
}

/* What the server says for good is not argued with. */
static void test_final(void)
{
    static const struct {
        const char *name;
        struct take take;
        enum weft_rc rc;
    } row[] = {
        {"unauthorized", {.status = 401, .body = ERROR("unauthorized", "null")}, WEFT_UNAUTHORIZED},
        {"forbidden", {.status = 403, .body = ERROR("forbidden", "null")}, WEFT_FORBIDDEN},
        {"bare 403", {.status = 403, .body = "no"}, WEFT_FORBIDDEN},
        {"invalid", {.status = 400, .body = ERROR("invalid_value", "null")}, WEFT_INVALID_VALUE},
        {"full", {.status = 507, .body = ERROR("storage_full", "null")}, WEFT_STORAGE_FULL},
        {"a word of a newer server",
         {.status = 400, .body = ERROR("novel", "null")},
         WEFT_INTERNAL},
        {"a redirect", {.status = 302}, WEFT_UNAVAILABLE},
    };
    for (size_t r = 0; r < WEFT_LEN(row); r++) {
        begin(&row[r].take, 1);
        stage_add(&stage, (struct take){.body = ACCEPTED});
        is_int(do_keyed(), row[r].rc, "%s: %s", row[r].name, err.text);
        is_int(stage.requests, 1, "%s: not tried again", row[r].name);
        end();
    }
}

static void test_retry_after(void)
{
    const struct take take[] = {
        {.status = 503, .header = "Retry-After: 1\r\n", .body = ERROR("unavailable", "null")},
        {.body = ACCEPTED},
    };
    begin(take, 2);
    int64_t began_ms = mono_ms();
    is_int(do_bare(), WEFT_OK, "after a second %s", err.text);
    ok(mono_ms() - began_ms >= 1000, "and not before");
    end();
    const struct take later = {
        .status = 503, .header = "Retry-After: 60\r\n", .body = ERROR("unavailable", "null")};
    begin(&later, 1);
    began_ms = mono_ms();
    is_int(do_keyed(), WEFT_UNAVAILABLE, "a minute is too long");
    is_int(stage.requests, 1, "to try again");
    ok(mono_ms() - began_ms < 5000, "or to wait for");
    end();
}

/* A server that begins to listen while the call is being tried. */
static void *open_later(void *context)
{
    struct stage *late = context;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 150000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&late->lock);
    while (pthread_cond_timedwait(&late->changed, &late->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&late->lock);
    stage_open(late);
    return NULL;
}

static void test_refused(void)
{
    stage_init(&stage);
    stage_add(&stage, (struct take){.body = ACCEPTED});
    ok(weft_open(stage.url, NULL, &weft, &err) == WEFT_OK, "opening asks nothing");
    pthread_t thread;
    (void)pthread_create(&thread, NULL, open_later, &stage);
    is_int(do_bare(), WEFT_OK, "what was never sent is tried again, whatever it is: %s", err.text);
    is_int(stage.requests, 1, "and arrives once");
    (void)pthread_join(thread, NULL);
    end();
}

/* ---- Garbage --------------------------------------------------------------------------------- */

static enum weft_rc do_renew(void)
{
    struct weft_lease_answer answer;
    return weft_renew(weft, &(struct weft_renew){.id = id, .epoch = 1}, 1, &answer, &err);
}

static enum weft_rc do_priority(void)
{
    return do_steer(WEFT_STEER_REPRIORITIZE);
}

static enum weft_rc do_sweep(void)
{
    struct weft_sweep sweep;
    const struct weft_steer_all args = {.kind = WEFT_STEER_CANCEL, .filter = {.lane = "l"}};
    return weft_steer_all(weft, &args, &sweep, &err);
}

static enum weft_rc do_list(void)
{
    struct weft_page page = {0};
    enum weft_rc rc = weft_list(weft, NULL, 0, NULL, &page, &err);
    weft_page_free(&page);
    return rc;
}

static enum weft_rc do_wait(void)
{
    struct weft_page page = {0};
    enum weft_rc rc = weft_wait(weft, &id, 10, &page, &err);
    weft_page_free(&page);
    return rc;
}

static enum weft_rc do_attempts(void)
{
    struct weft_attempts attempts = {0};
    enum weft_rc rc = weft_attempts(weft, &id, &attempts, &err);
    weft_attempts_free(&attempts);
    return rc;
}

static enum weft_rc do_counts(void)
{
    struct weft_counts counts = {0};
    enum weft_rc rc = weft_counts(weft, NULL, &counts, &err);
    weft_counts_free(&counts);
    return rc;
}

static enum weft_rc do_lanes(void)
{
    struct weft_lanes lanes = {0};
    enum weft_rc rc = weft_lanes(weft, &lanes, &err);
    weft_lanes_free(&lanes);
    return rc;
}

static enum weft_rc do_workers(void)
{
    struct weft_workers workers = {0};
    enum weft_rc rc = weft_workers(weft, &workers, &err);
    weft_workers_free(&workers);
    return rc;
}

static void test_garbage(void)
{
    static enum weft_rc (*const run[])(void) = {
        do_keyed,    do_bare, do_claim, do_complete, do_renew,  do_cancel, do_priority, do_sweep,
        do_describe, do_list, do_wait,  do_attempts, do_counts, do_lanes,  do_workers};
    static const char *const body[] = {
        "",
        "<html>hello</html>",
        "[]",
        "null",
        "{\"items\":{}}",
        "{\"items\":[1]}",
        "{\"items\":[{}]}",
        "{\"items\":[null,null,null]}",
        "{\"items\":[{\"error\":7}]}",
        "{\"items\":[{\"error\":{\"code\":5}}]}",
        "{\"items\":[{\"id\":\"nonsense\",\"epoch\":{},\"state\":\"odd\",\"lane\":5}]}",
        "{\"state\":5,\"id\":5,\"matched\":\"x\",\"as_of\":7,\"next\":5}",
        "{\"items\":[],\"next\":\"\\u0000\",\"as_of\":\"nonsense\"}",
    };
    for (size_t b = 0; b < WEFT_LEN(body); b++) {
        begin(&(struct take){.body = body[b]}, 1);
        size_t refused = 0, fine = 0;
        for (size_t i = 0; i < WEFT_LEN(run); i++) {
            enum weft_rc rc = run[i]();
            refused += rc == WEFT_UNAVAILABLE;
            fine += rc == WEFT_OK;
        }
        ok(refused + fine == WEFT_LEN(run) && refused > 0, "garbage %zu: %zu refused, %zu fine", b,
           refused, fine);
        end();
    }
}

/* ---- Working --------------------------------------------------------------------------------- */

static void test_claim(void)
{
    begin(
        &(struct take){
            .body = "{\"items\":[{\"id\":\"" ID_TEXT "\",\"epoch\":3,\"attempt\":2,"
                    "\"lane\":\"l\",\"kind\":\"k\",\"payload\":{\"a\": 1},\"content_type\":"
                    "\"application/json\",\"priority\":7,\"tenant\":null,\"tags\":{\"a\":\"b\"},"
                    "\"created_at\":\"2026-01-01T00:00:00.001Z\",\"deadline_at\":null,"
                    "\"lease_expires_at\":\"2026-01-01T00:00:30.000Z\",\"lease_ms\":30000,"
                    "\"flow_id\":null,\"node\":null,\"upstream\":{}}]}"},
        1);
    static const char *const lanes[] = {"l", "m"};
    struct weft_claims claims = {0};
    const struct weft_claim claim[2] = {{.worker = "w",
                                         .lanes = lanes,
                                         .lane_count = 2,
                                         .max = 5,
                                         .lease_ms = 2000,
                                         .wait_ms = 1500},
                                        {.worker = "w", .ns = "red"}};
    is_int(weft_claim(weft, claim, 1, &claims, &err), WEFT_OK, "claimed %s", err.text);
    asked_for(0, "POST", "/v1/claims",
              "{\"worker\":\"w\",\"lanes\":[\"l\",\"m\"],\"max\":5,\"lease_ms\":2000,"
              "\"wait_ms\":1500}");
    const struct weft_claimed *item = claims.item;
    ok(claims.count == 1 && item->epoch == 3 && item->attempt == 2 && item->priority == 7 &&
           item->lease_ms == 30000 && !item->tenant && item->tag_count == 1,
       "its numbers");
    is_str(item->kind, "k", "its kind");
    ok(item->payload_size == 8 && memcmp(item->payload, "{\"a\": 1}", 8) == 0, "its payload");
    weft_claims_free(&claims);
    is_int(weft_claim(weft, claim, 2, &claims, &err), WEFT_OK, "two claims in a call");
    ok(claims.count == 2 && claims.item[0].claim == 0 && claims.item[1].claim == 1,
       "are asked for one by one");
    ok(!strstr(stage.asked[1].body, "wait_ms"), "without waiting for one of them");
    ok(strstr(stage.asked[2].header, "X-Weft-Namespace: red") != NULL, "in their namespaces");
    weft_claims_free(&claims);
    struct weft_claim bad = {.worker = "w", .wait_ms = 60001};
    is_int(weft_claim(weft, &bad, 1, &claims, &err), WEFT_INVALID_VALUE, "waiting has a bound");
    is_str(err.field, "wait_ms", "which is named");
    bad.wait_ms = -1;
    is_int(weft_claim(weft, &bad, 1, &claims, NULL), WEFT_INVALID_VALUE, "on both sides");
    end();
}

static void test_leases(void)
{
    const struct take take[] = {
        {.body = "{\"items\":[{\"id\":\"" ID_TEXT "\",\"lease_expires_at\":"
                 "\"2026-01-01T00:00:30.000Z\"},{\"id\":\"" ID2_TEXT "\",\"error\":{\"code\":"
                 "\"fenced\",\"message\":\"gone\",\"reason\":\"timed_out\"}}]}"},
        {.body = "{\"items\":[{\"id\":\"" ID_TEXT "\",\"state\":\"succeeded\"}]}"},
        {.body = "{\"items\":[{\"id\":\"" ID_TEXT
                 "\",\"state\":\"delayed\",\"run_at\":\"2026-01-01T00:00:00.001Z\"}]}"},
        {.body = "{\"items\":[{\"id\":\"" ID_TEXT "\",\"state\":\"ready\",\"run_at\":null}]}"},
    };
    begin(take, WEFT_LEN(take));
    struct weft_lease_answer answer[2];
    const struct weft_renew renew[2] = {
        {.id = id, .epoch = 1, .has_progress = true, .percent = 50, .note = "half"},
        {.id = id2, .epoch = 2}};
    is_int(weft_renew(weft, renew, 2, answer, &err), WEFT_OK, "renewed");
    ok(answer[0].err.rc == WEFT_OK && answer[0].lease_expires_us == 1767225630000000,
       "one of them");
    ok(answer[1].err.rc == WEFT_FENCED && answer[1].fence == WEFT_FENCE_TIMED_OUT,
       "the other is gone, and why");
    asked_for(0, "POST", "/v1/leases/renew",
              "{\"items\":[{\"id\":\"" ID_TEXT
              "\",\"epoch\":1,\"progress\":{\"percent\":50,"
              "\"note\":\"half\"}},{\"id\":\"" ID2_TEXT "\",\"epoch\":2}]}");
    const struct weft_complete done = {
        .id = id, .epoch = 1, .result = "hi", .result_size = 2, .content_type = "text/plain"};
    ok(weft_complete(weft, &done, 1, answer, &err) == WEFT_OK &&
           answer->state == WEFT_STATE_SUCCEEDED,
       "completed");
    asked_for(1, "POST", "/v1/leases/complete",
              "{\"items\":[{\"id\":\"" ID_TEXT
              "\",\"epoch\":1,\"result_base64\":\"aGk=\",\"content_type\":\"text/plain\"}]}");
    const struct weft_failure failed = {
        .id = id, .epoch = 1, .error_class = "c", .message = "m", .retry_after_ms = -1};
    ok(weft_fail_lease(weft, &failed, 1, answer, &err) == WEFT_OK &&
           answer->state == WEFT_STATE_DELAYED && answer->run_at_us == 1767225600001000,
       "failed");
    asked_for(2, "POST", "/v1/leases/fail",
              "{\"items\":[{\"id\":\"" ID_TEXT
              "\",\"epoch\":1,\"class\":\"c\",\"message\":\"m\",\"retry_after_ms\":0}]}");
    const struct weft_put_back back = {.id = id, .epoch = 1};
    ok(weft_release(weft, &back, 1, answer, &err) == WEFT_OK && answer->state == WEFT_STATE_READY &&
           answer->run_at_us == 0,
       "released");
    asked_for(3, "POST", "/v1/leases/release",
              "{\"items\":[{\"id\":\"" ID_TEXT "\",\"epoch\":1,\"delay_ms\":0}]}");
    ok(weft_delay(weft, &back, 1, answer, &err) == WEFT_OK, "delayed");
    asked_for(4, "POST", "/v1/leases/delay",
              "{\"items\":[{\"id\":\"" ID_TEXT "\",\"epoch\":1,\"delay_ms\":0}]}");
    end();
}

/* ---- Steering -------------------------------------------------------------------------------- */

static void test_steer(void)
{
    const struct take take[] = {
        {.body = "{\"items\":[{\"id\":\"" ID_TEXT "\",\"state\":\"cancelled\",\"changed\":false},"
                 "{\"error\":{\"code\":\"not_live\",\"message\":\"over\"}}]}"},
        {.body = "{\"items\":[{\"id\":\"" ID2_TEXT "\",\"state\":\"cancelled\"}]}"},
        {.body = "{\"id\":\"" ID_TEXT "\",\"state\":\"ready\"}"},
        {.status = 404, .body = ERROR("not_found", "null")},
        {.body = "{\"matched\":5,\"changed\":4,\"more\":true}"},
        {.body = "{}"},
        {.body = "{\"released\":3}"},
        {.body = "{\"handled\":2,\"failed\":1,\"more\":true,"
                 "\"next_due_at\":\"2026-01-01T00:00:00.001Z\"}"},
    };
    begin(take, WEFT_LEN(take));
    struct weft_steered answer[3];
    const struct weft_steer cancel[3] = {
        {.id = id, .reason = "a"}, {.id = id2, .reason = "a"}, {.id = id2, .reason = "b"}};
    is_int(weft_steer(weft, WEFT_STEER_CANCEL, cancel, 3, answer, &err), WEFT_OK, "cancelled");
    ok(answer[0].state == WEFT_STATE_CANCELLED && !answer[0].changed &&
           answer[1].err.rc == WEFT_NOT_LIVE && answer[2].changed,
       "each has its answer");
    asked_for(0, "POST", "/v1/executions/cancel",
              "{\"ids\":[\"" ID_TEXT "\",\"" ID2_TEXT "\"],\"reason\":\"a\"}");
    asked_for(1, "POST", "/v1/executions/cancel", "{\"ids\":[\"" ID2_TEXT "\"],\"reason\":\"b\"}");
    const struct weft_steer priority[2] = {{.id = id, .priority = -3}, {.id = id2}};
    is_int(weft_steer(weft, WEFT_STEER_REPRIORITIZE, priority, 2, answer, &err), WEFT_OK,
           "priorities");
    ok(answer[0].state == WEFT_STATE_READY && answer[1].err.rc == WEFT_NOT_FOUND,
       "are set one by one");
    asked_for(2, "POST", "/v1/executions/" ID_TEXT "/priority", "{\"priority\":-3}");
    struct weft_sweep sweep;
    const struct weft_steer_all all = {
        .kind = WEFT_STEER_REPLAY, .filter = {.lane = "l", .state = WEFT_STATE_FAILED}, .max = 7};
    ok(weft_steer_all(weft, &all, &sweep, &err) == WEFT_OK && sweep.matched == 5 &&
           sweep.changed == 4 && sweep.more,
       "a sweep");
    asked_for(4, "POST", "/v1/executions/replay",
              "{\"filter\":{\"lane\":\"l\",\"state\":\"failed\"},\"max\":7}");
    const struct weft_weight weight = {"t", 2};
    const struct weft_lane lane = {
        .name = "a/b", .max_running = 5, .weights = &weight, .weight_count = 1};
    is_int(weft_lane_put(weft, &lane, &err), WEFT_OK, "a lane");
    asked_for(5, "PUT", "/v1/lanes/a%2Fb", NULL);
    ok(!strstr(stage.asked[5].body, "a/b") && strstr(stage.asked[5].body, "\"t\":2"),
       "its settings: %s", stage.asked[5].body);
    uint64_t released = 0;
    ok(weft_goodbye(weft, "w:1", &released, &err) == WEFT_OK && released == 3, "a goodbye");
    asked_for(6, "POST", "/v1/workers/w%3A1/goodbye", "");
    struct weft_pass_report report;
    ok(weft_run_pass(weft, WEFT_PASS_LEASE_EXPIRY, 0, &report, &err) == WEFT_OK &&
           report.handled == 2 && report.failed == 1 && report.more &&
           report.next_due_us == 1767225600001000,
       "a pass");
    end();
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void test_describe(void)
{
    const struct take take[] = {
        {.body = EXECUTION(ID_TEXT, "running")},
        {.status = 404, .body = ERROR("not_found", "null")},
        {.body = EXECUTION(ID_TEXT, "running")},
        {.body = EXECUTION(ID_TEXT, "succeeded")},
        {.status = 404, .body = ERROR("not_found", "null")},
    };
    begin(take, WEFT_LEN(take));
    struct weft_page page = {0};
    const struct weft_id both[] = {id, id2};
    is_int(weft_describe(weft, both, 2, &page, &err), WEFT_OK, "two executions %s", err.text);
    const struct weft_execution *one = page.item;
    ok(page.count == 2 && one->state == WEFT_STATE_RUNNING && one->epoch == 2 &&
           one->percent == 40 && one->capability_count == 1 && one->tag_count == 1,
       "one is there");
    is_str(one->error_class, "c", "with its error");
    is_str(one->ns, "blue", "and its namespace");
    ok(page.item[1].state == WEFT_STATE_NONE && page.item[1].percent == -1 &&
           memcmp(&page.item[1].id, &id2, sizeof(id2)) == 0,
       "the other is not");
    weft_page_free(&page);
    is_int(weft_wait(weft, &id, 60, &page, &err), WEFT_OK, "a wait that is over");
    is_int(page.item[0].state, WEFT_STATE_RUNNING, "before the execution is");
    ok(strstr(stage.asked[2].path, "?wait_ms=") != NULL, "waits at the server");
    weft_page_free(&page);
    is_int(weft_wait(weft, &id, 30000, &page, &err), WEFT_OK, "a wait");
    is_int(page.item[0].state, WEFT_STATE_SUCCEEDED, "for the end");
    asked_for(3, "GET", "/v1/executions/" ID_TEXT "?wait_ms=20000", NULL);
    weft_page_free(&page);
    is_int(weft_wait(weft, &id2, 10, &page, &err), WEFT_NOT_FOUND, "for nothing");
    is_int(weft_wait(weft, &id2, -1, &page, &err), WEFT_INVALID_VALUE, "or less");
    end();
}

static void test_lists(void)
{
    const struct take take[] = {
        {.body = "{\"items\":[" EXECUTION(ID_TEXT, "ready") "],\"next\":\"c/1\"}"},
        {.body = "{\"items\":[{\"epoch\":1,\"attempt\":1,\"worker\":\"w\",\"ended\":\"lost\"}],"
                 "\"next\":\"2 \"}"},
        {.body = "{\"items\":[{\"epoch\":2,\"attempt\":1,\"worker\":\"w\",\"ended\":\"failed\","
                 "\"error\":{\"class\":\"c\",\"message\":\"m\"}}],\"next\":null}"},
        {.body = "{\"as_of\":\"2026-01-01T00:00:00.001Z\",\"items\":[{\"lane\":\"l\",\"ready\":3,"
                 "\"running\":2,\"succeeded_1h\":9}]}"},
        {.body = "{\"items\":[{\"lane\":\"l\",\"paused\":true,\"max_running\":4,\"weights\":"
                 "{\"t\":2}}],\"next\":null}"},
        {.body = "{\"items\":[{\"worker\":\"w\",\"lanes\":[\"l\"],\"capabilities\":[],\"leases\":5,"
                 "\"seen_at\":\"2026-01-01T00:00:00.001Z\"}],\"next\":null}"},
    };
    begin(take, WEFT_LEN(take));
    struct weft_page page = {0};
    const struct weft_tag tag = {"k", "a b"};
    const struct weft_filter filter = {.ns = "red",
                                       .lane = "l",
                                       .kind = "k",
                                       .tenant = "t",
                                       .key = "a&b",
                                       .state = WEFT_STATE_READY,
                                       .tag = &tag};
    is_int(weft_list(weft, &filter, 7, "x=", &page, &err), WEFT_OK, "a page %s", err.text);
    ok(page.count == 1 && page.item[0].state == WEFT_STATE_READY, "of one");
    is_str(page.next, "c/1", "and there is more");
    asked_for(0, "GET",
              "/v1/executions?lane=l&kind=k&state=ready&tenant=t&key=a%26b&tag=k%3Aa%20b&limit=7"
              "&after=x%3D",
              NULL);
    ok(strstr(stage.asked[0].header, "X-Weft-Namespace: red") != NULL, "in its namespace");
    weft_page_free(&page);
    struct weft_attempts attempts = {0};
    is_int(weft_attempts(weft, &id, &attempts, &err), WEFT_OK, "attempts %s", err.text);
    ok(attempts.count == 2 && attempts.item[0].epoch == 1, "of all pages");
    is_str(attempts.item[1].error_class, "c", "with their errors");
    asked_for(2, "GET", "/v1/executions/" ID_TEXT "/attempts?after=2%20", NULL);
    weft_attempts_free(&attempts);
    struct weft_counts counts = {0};
    is_int(weft_counts(weft, "l", &counts, &err), WEFT_OK, "counts %s", err.text);
    ok(counts.count == 1 && counts.item[0].count[WEFT_STATE_READY] == 3 &&
           counts.item[0].succeeded_1h == 9 && counts.as_of_us == 1767225600001000,
       "with their moment");
    asked_for(3, "GET", "/v1/counts?lane=l", NULL);
    weft_counts_free(&counts);
    struct weft_lanes lanes = {0};
    is_int(weft_lanes(weft, &lanes, &err), WEFT_OK, "lanes %s", err.text);
    ok(lanes.count == 1 && lanes.item[0].paused && lanes.item[0].max_running == 4 &&
           lanes.item[0].weight_count == 1,
       "with their settings");
    weft_lanes_free(&lanes);
    struct weft_workers workers = {0};
    is_int(weft_workers(weft, &workers, &err), WEFT_OK, "workers %s", err.text);
    ok(workers.count == 1 && workers.item[0].leases == 5 && workers.item[0].lane_count == 1,
       "with their leases");
    weft_workers_free(&workers);
    end();
}

static void test_bytes(void)
{
    const struct take take[] = {
        {.raw = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"},
        {.status = 404, .body = ERROR("not_found", "null")},
    };
    begin(take, WEFT_LEN(take));
    struct weft_bytes bytes = {0};
    is_int(weft_result(weft, &id, &bytes, &err), WEFT_OK, "a result %s", err.text);
    ok(bytes.size == 5 && memcmp(bytes.data, "hello", 5) == 0, "its bytes");
    is_str(bytes.content_type, "text/plain", "its type");
    asked_for(0, "GET", "/v1/executions/" ID_TEXT "/result", NULL);
    weft_bytes_free(&bytes);
    is_int(weft_payload(weft, &id, &bytes, &err), WEFT_NOT_FOUND, "no payload");
    asked_for(1, "GET", "/v1/executions/" ID_TEXT "/payload", NULL);
    end();
}

static void test_open(void)
{
    ok(weft_open("http://", NULL, &weft, &err) == WEFT_INVALID_VALUE, "no host: %s", err.text);
    is_str(err.field, "url", "is named");
    ok(weft_open("http://h", &(struct weft_options){.ns = "a b"}, &weft, &err) ==
           WEFT_INVALID_VALUE,
       "a namespace with a space");
    ok(weft_open("http://h", &(struct weft_options){.token = "a\nb"}, &weft, &err) ==
           WEFT_INVALID_VALUE,
       "a token with a line break");
}

int main(void)
{
    ok(weft_id_parse(ID_TEXT, 36, &id) && weft_id_parse(ID2_TEXT, 36, &id2), "ids");
    test_open();
    test_submit();
    test_parts();
    test_repeats();
    test_final();
    test_retry_after();
    test_refused();
    test_garbage();
    test_claim();
    test_leases();
    test_steer();
    test_describe();
    test_lists();
    test_bytes();
    return tap_done();
}
