/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Submitting to a server that says what the test tells it to, and what holds for every call: what
 * is repeated and what is not, and that answers which make no sense do no harm.
 */

#include "remote_fixture.h"

#include "base/buf.h"

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
    is_str(answer[1].err.field, "key", "the refused item names its key");
    is_str(answer[1].err.text, "other work (ask Ada)", "a hint that is not known is in the text");
    asked_for(0, "POST", "/v1/executions",
              "{\"items\":[{\"kind\":\"mail\",\"payload\":[1, 2],\"tags\":{\"a\":\"b\"},"
              "\"key\":\"k1\"},{\"kind\":\"mail\",\"payload_base64\":\"/w==\","
              "\"content_type\":\"application/json\",\"key\":\"k2\"}]}");
    ok(strstr(stage.asked[0].header, "\r\nX-Weft-Namespace: blue\r\n") != NULL,
       "the request has the namespace");
    ok(strstr(stage.asked[0].header, "\r\nAuthorization: Bearer secret\r\n") != NULL,
       "the request has the token");
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
    is_int(stage.requests, 9, "requests are split by namespace and at refused items");
    static const enum weft_rc want[] = {WEFT_OK,
                                        WEFT_TOO_LARGE,
                                        WEFT_OK,
                                        WEFT_INVALID_VALUE,
                                        WEFT_INVALID_VALUE,
                                        WEFT_INVALID_VALUE,
                                        WEFT_OK};
    for (size_t i = 0; i < WEFT_LEN(odd); i++)
        is_int(answer[i].err.rc, want[i], "odd one %zu", i);
    ok(strstr(stage.asked[7].header, "\r\nX-Weft-Namespace: red\r\n") != NULL,
       "the request has the namespace of its items");
    end();
    free(large);
}

/* ---- What is repeated ------------------------------------------------------------------------ */

#define ACCEPTED "{\"items\":[{\"id\":\"" ID_TEXT "\",\"state\":\"ready\",\"duplicate\":false}]}"
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
    ok(mono_ms() - began_ms >= 1000, "the call waits a second before it tries again");
    end();
    const struct take later = {
        .status = 503, .header = "Retry-After: 60\r\n", .body = ERROR("unavailable", "null")};
    begin(&later, 1);
    began_ms = mono_ms();
    is_int(do_keyed(), WEFT_UNAVAILABLE, "a minute is too long");
    is_int(stage.requests, 1, "a call that should wait a minute is not repeated");
    ok(mono_ms() - began_ms < 5000, "a call that should wait a minute returns at once");
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
    is_int(do_bare(), WEFT_OK, "a call that was never sent is tried again: %s", err.text);
    is_int(stage.requests, 1, "the request arrives once");
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

static void test_open(void)
{
    ok(weft_open("http://", NULL, &weft, &err) == WEFT_INVALID_VALUE, "no host: %s", err.text);
    is_str(err.field, "url", "the error names the url");
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
    return tap_done();
}
