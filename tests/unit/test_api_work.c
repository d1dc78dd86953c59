/* SPDX-License-Identifier: Apache-2.0 */

/* The rest of the API: leases, lanes, workers, counts, and what is outside /v1. */

#include "api_fixture.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "engine/admin/workers.h"
#include "engine/job/claim.h"
#include "weft/weft.h"

#include <poll.h>

struct lease {
    char id[WEFT_ID_TEXT];
    int32_t epoch;
};

/* Submits one and claims it. */
static struct lease begin(struct api_fixture *f)
{
    struct lease lease = {.epoch = 0};
    struct weft_arena *arena = weft_arena_new();
    const struct weft_claim wanted = {.worker = "w"};
    struct weft_claim_result result = {0};
    struct weft_err err;
    is_int(ask_for(f, "POST", "/v1/executions", "{\"kind\":\"k\"}"), 201, "submit one execution");
    if (!weft_engine_claim(f->server.engine, f->ns, &wanted, 1, arena, &result, &err) &&
        result.count == 1) {
        weft_id_print(&result.item[0].id, lease.id);
        lease.epoch = result.item[0].epoch;
    }
    ok(lease.epoch > 0, "the execution is claimed");
    weft_arena_free(arena);
    return lease;
}

/* Says one thing about a lease; more is what stands behind id and epoch. */
static int say(struct api_fixture *f, const char *what, const struct lease *lease, const char *more)
{
    char target[64], body[300];
    (void)snprintf(target, sizeof(target), "/v1/leases/%s", what);
    (void)snprintf(body, sizeof(body), "{\"items\":[{\"id\":\"%s\",\"epoch\":%d%s}]}", lease->id,
                   lease->epoch, more);
    f->ended = 0;
    return ask_for(f, "POST", target, body);
}

static void test_leases(struct api_fixture *f)
{
    struct lease lease = begin(f);
    is_int(say(f, "renew", &lease, ",\"progress\":{\"percent\":40,\"note\":\"n\"}"), 200,
           "the lease can be renewed");
    ok(has(f, lease.id) && has(f, "\"lease_expires_at\":\"2"), "the lease goes on");
    is_int(say(f, "release", &lease, ",\"delay_ms\":1000"), 200, "the lease can be released");
    ok(has(f, "\"state\":\"delayed\"") && has(f, "\"run_at\":\"2"),
       "the released execution is delayed");
    is_int(f->ended, 0, "nothing ended");
    is_int(say(f, "complete", &lease, ""), 200, "complete the released lease");
    ok(has(f, "\"code\":\"fenced\"") && has(f, "\"reason\":\"released\""),
       "a complete after the release is fenced as released");
    ok(has(f, lease.id), "the fenced answer has the id");
    is_int(f->ended, 0, "nothing ended");

    lease = begin(f);
    is_int(say(f, "fail", &lease, ",\"class\":\"c\",\"message\":\"m\""), 200,
           "the lease can be failed");
    ok(has(f, "\"state\":\"delayed\"") || has(f, "\"state\":\"ready\""),
       "the failed execution is retried");
    is_int(f->ended, 0, "no execution ended");
    lease = begin(f);
    is_int(say(f, "fail", &lease, ",\"retryable\":false"), 200, "fail for good");
    ok(has(f, "\"state\":\"failed\"") && has(f, "\"run_at\":null"),
       "the execution failed for good");
    is_int(f->ended, 1, "the waiters hear that it ended");
    lease = begin(f);
    is_int(say(f, "delay", &lease, ",\"delay_ms\":5000"), 200, "the lease can be delayed");
    ok(has(f, "\"state\":\"delayed\""), "the execution is delayed");
}

static void test_lease_items(struct api_fixture *f)
{
    struct lease lease = begin(f);
    char body[500];
    (void)snprintf(body, sizeof(body),
                   "{\"items\":[{\"id\":\"x\",\"epoch\":1},3,{\"id\":\"%s\",\"epoch\":%d,"
                   "\"x\":1},{\"id\":\"018f0000-0000-7000-8000-000000000000\",\"epoch\":1},"
                   "{\"id\":\"%s\",\"epoch\":%d}]}",
                   lease.id, lease.epoch, lease.id, lease.epoch);
    is_int(ask_for(f, "POST", "/v1/leases/complete", body), 200, "five items");
    is_int(count_of(f, "\"error\":"), 4, "four are refused");
    is_int(count_of(f, "\"state\":\"succeeded\""), 1, "one is done");
    is_int(count_of(f, "{\"id\":"), 5, "each has an id");
    ok(has(f, "{\"items\":[{\"id\":null,"), "an item without an id has null");
    is_int(ask_for(f, "POST", "/v1/leases/delay", "{}"), 400, "items are required");
    is_int(ask_for(f, "POST", "/v1/leases/renew", NULL), 400, "a body is required");
}

static void test_lanes(struct api_fixture *f)
{
    is_int(ask_for(f, "GET", "/v1/lanes", NULL), 200, "the lanes can be listed");
    ok(has(f, "\"lane\":\"default\"") && !has(f, "\"paused\":true"), "nothing is set");
    is_int(ask_for(f, "GET", "/v1/lanes/default", NULL), 200, "a lane that work uses");
    ok(has(f, "\"paused\":false") && has(f, "\"max_running\":0") && has(f, "\"weights\":{}"),
       "a lane without settings has the defaults");
    is_int(ask_for(f, "GET", "/v1/lanes/any", NULL), 404, "a lane that nothing uses");
    is_int(ask_for(f, "PUT", "/v1/lanes/a%2Fb",
                   "{\"paused\":true,\"max_running\":3,\"weights\":{\"t\":2}}"),
           200, "put one with a slash");
    ok(has(f, "\"lane\":\"a/b\"") && has(f, "\"paused\":true"), "the answer is the lane");
    is_int(ask_for(f, "GET", "/v1/lanes/a%2fb", NULL), 200, "get it");
    ok(has(f, "\"max_running\":3") && has(f, "\"weights\":{\"t\":2}"),
       "the lane has the settings that were put");
    is_int(ask_for(f, "PUT", "/v1/lanes/a%2Fb", f->text.data), 200, "the body of a get can be put");
    is_int(ask_for(f, "PUT", "/v1/lanes/other", "{\"lane\":\"a/b\"}"), 400, "elsewhere not");
    is_int(ask_for(f, "PUT", "/v1/lanes/a%2Fb", "{\"paused\":false}"), 200, "put less");
    ok(has(f, "\"max_running\":0") && has(f, "\"weights\":{}"), "replaces all");
    is_int(ask_for(f, "PUT", "/v1/lanes/c", "{\"max_running\":-1}"), 400, "a limit below zero");
    is_int(ask_for(f, "PUT", "/v1/lanes/c", "{\"weights\":{\"t\":0}}"), 400, "a weight of zero");
    is_int(ask_for(f, "PUT", "/v1/lanes/c%20d", "{}"), 400, "a name that is none");
    is_int(ask_for(f, "GET", "/v1/lanes/c%20d", NULL), 400, "a get of a bad lane name is refused");
    is_int(ask_for(f, "PUT", "/v1/lanes/c", "{}"), 200, "lane c is put");
    is_int(ask_for(f, "PUT", "/v1/lanes/d", "{}"), 200, "lane d is put");
    is_int(ask_for(f, "GET", "/v1/lanes?limit=2", NULL), 200, "the first two");
    is_int(count_of(f, "\"lane\":"), 2, "the first page has two lanes");
    char path[300];
    (void)snprintf(path, sizeof(path), "/v1/lanes?limit=2&%s", next_page(f));
    is_int(ask_for(f, "GET", path, NULL), 200, "the second page can be read");
    ok(has(f, "\"lane\":\"d\"") && has(f, "\"next\":null"), "the second page is the last");
    is_int(ask_for(f, "GET", "/v1/lanes?after=%20", NULL), 400, "a bad cursor");
    f->ns = "other";
    is_int(ask_for(f, "GET", path, NULL), 400, "the cursor of another namespace");
    is_int(ask_for(f, "GET", "/v1/lanes", NULL), 200,
           "the lanes of another namespace can be listed");
    is_str(f->text.data, "{\"items\":[],\"next\":null}", "another namespace has no lanes");
    f->ns = "default";
}

static void test_workers(struct api_fixture *f)
{
    static const char *const lanes[] = {"default"};
    const struct weft_worker_seen seen[] = {
        {.ns = "default", .name = "a/b", .lanes = lanes, .lane_count = 1, .seen_us = WEFT_SECOND},
        {.ns = "default", .name = "w", .lanes = lanes, .lane_count = 1, .seen_us = WEFT_SECOND},
    };
    struct weft_err err = {0};
    begin(f);
    ok(!weft_engine_workers_put(f->server.engine, seen, 2, &err), "two are heard of");
    is_int(ask_for(f, "GET", "/v1/workers?limit=1", NULL), 200,
           "the first page of workers can be read");
    char path[300];
    (void)snprintf(path, sizeof(path), "/v1/workers?%s", next_page(f));
    is_int(ask_for(f, "GET", path, NULL), 200, "the second page");
    is_int(count_of(f, "\"leases\":"), 1, "the second page has one worker");
    ok(has(f, "\"leases\":1") && has(f, "\"lanes\":[\"default\"]"),
       "the worker has its leases and lanes");
    is_int(ask_for(f, "POST", "/v1/workers/w/goodbye", NULL), 200, "a goodbye is accepted");
    is_str(f->text.data, "{\"released\":1}", "says how many leases were released");
    is_int(ask_for(f, "GET", "/v1/workers", NULL), 200, "the workers can be listed");
    is_int(count_of(f, "\"leases\":"), 1, "one is gone");
    is_str(f->forgotten, "w", "the server forgets the worker");
    is_int(ask_for(f, "POST", "/v1/workers/w/goodbye", "{\"x\":1}"), 400,
           "a goodbye with fields is refused");
    is_int(ask_for(f, "POST", "/v1/workers/a%20b/goodbye", NULL), 400,
           "a worker name with a space is refused");
}

/* Counts are at most a second old, or older on a slow machine. */
static bool comes_to_have(struct api_fixture *f, const char *target, const char *text)
{
    for (int i = 0; i < 3000; i++) {
        if (ask_for(f, "GET", target, NULL) == 200 && has(f, text))
            return true;
        (void)poll(NULL, 0, 10);
    }
    return false;
}

static void test_counts(struct api_fixture *f)
{
    char before[64], after[64];
    is_int(ask_for(f, "POST", "/v1/executions", "{\"kind\":\"k\",\"lane\":\"counted\"}"), 201,
           "one execution is submitted");
    ok(comes_to_have(f, "/v1/counts?lane=counted", "\"lane\":\"counted\",\"ready\":1"),
       "counts of a lane");
    member(f, "as_of", before);
    is_int(ask_for(f, "POST", "/v1/executions", "{\"kind\":\"k\",\"lane\":\"counted\"}"), 201,
           "one more execution is submitted");
    is_int(ask_for(f, "GET", "/v1/counts?lane=counted", NULL), 200,
           "the counts are read again at once");
    member(f, "as_of", after);
    /* A second may have passed on a slow machine: then they were computed again. */
    ok(strcmp(before, after) != 0 || has(f, "\"ready\":1"), "the same count has the same moment");
    ok(*before && *after && has(f, "\"age_ms\":"), "counts have a moment and an age");
    ok(comes_to_have(f, "/v1/counts", "\"lane\":\"counted\",\"ready\":2"), "all lanes");
    is_int(ask_for(f, "GET", "/v1/counts?lane=%20", NULL), 400, "a bad lane");
    f->ns = "other";
    is_int(ask_for(f, "GET", "/v1/counts", NULL), 200,
           "the counts of another namespace can be read");
    ok(has(f, "\"items\":[]"), "another namespace has no counts");
    f->ns = "default";
    size_t wrong = 0;
    for (int i = 0; i < 600; i++) { /* more than the cache holds */
        char target[64];
        (void)snprintf(target, sizeof(target), "/v1/counts?lane=lane%d", i);
        wrong += ask_for(f, "GET", target, NULL) != 200;
    }
    is_int(wrong, 0, "600 lanes are counted");
}

enum { CALLERS = 8 };

static void *count_again(void *context)
{
    struct api_fixture *f = context;
    const struct weft_counts_of of = {.ns = "shared", .text = WEFT_COUNTS_JSON};
    struct weft_buf *text = calloc(1, sizeof(*text));
    assert(text);
    weft_buf_init(text, 1 << 20);
    if (weft_counts_cache_get(f->server.api->counts, f->server.engine, &of, text, NULL))
        weft_buf_clear(text);
    return text;
}

static void test_counts_shared(struct api_fixture *f)
{
    pthread_t thread[CALLERS];
    size_t started = 0, answered = 0;
    while (started < CALLERS && !pthread_create(&thread[started], NULL, count_again, f))
        started++;
    for (size_t i = 0; i < started; i++) {
        void *result = NULL;
        (void)pthread_join(thread[i], &result);
        struct weft_buf *text = result;
        answered += text->size > 0;
        weft_buf_done(text);
        free(text);
    }
    is_int(answered, started, "callers at the same time are all answered");
}

static void test_outside(struct api_fixture *f)
{
    is_int(ask_for(f, "GET", "/healthz", NULL), 200, "/healthz is answered 200");
    is_str(f->text.data, "{\"status\":\"ok\"}", "health is ok");
    is_int(ask_for(f, "GET", "/readyz", NULL), 200, "/readyz is answered 200");
    is_str(f->text.data, "{\"status\":\"ok\"}", "ready is ok");
    is_int(ask_for(f, "GET", "/metrics", NULL), 200, "/metrics is answered 200");
    is_str(f->type, "text/plain; version=0.0.4; charset=utf-8", "metrics have their content type");
    static const char *const lines[] = {
        "\nweft_http_connections 0\n",
        "\nprocess_open_fds ",
        "\nprocess_threads ",
        "\nprocess_resident_memory_bytes ",
        "\nprocess_cpu_seconds_total ",
        "\nprocess_start_time_seconds 1",
        "\nweft_build_info{version=\"",
        "\nweft_store_clock_offset_seconds ",
        "\nweft_store_up 1\n",
        "\n# TYPE weft_executions gauge\n",
        "\nweft_executions{namespace=\"default\",lane=\"counted\",state=\"ready\"} 2\n",
    };
    for (size_t i = 0; i < WEFT_LEN(lines); i++)
        ok(has(f, lines[i]), "metrics have line %zu", i);
    is_int(ask_for(f, "GET", "/openapi.json", NULL), 200, "/openapi.json is answered 200");
    ok(has(f, "\"openapi\":\"3.1.0\""), "the document is OpenAPI 3.1.0");
}

/* The gauge as the metrics tell it. */
static int told_connections(struct api_fixture *f)
{
    static const char name[] = "\nweft_http_connections ";
    const char *at = ask_for(f, "GET", "/metrics", NULL) == 200 ? strstr(f->text.data, name) : NULL;
    return at ? (int)strtol(at + sizeof(name) - 1, NULL, 10) : -1;
}

static void test_metrics_flood(struct api_fixture *f)
{
    enum { ASKED = 200, FRESH_MS = 5 };
    struct weft_metrics *metrics = f->server.metrics;
    weft_usec began_us = weft_boot_us();
    int different = 0, last = -1;
    for (int i = 1; i <= ASKED; i++) {
        weft_metric_set(metrics, WEFT_METRIC_HTTP_CONNECTIONS, 0, (uint64_t)i);
        int told = told_connections(f);
        different += told != last;
        last = told;
    }
    int most = (int)((weft_boot_us() - began_us) / (FRESH_MS * WEFT_MS)) + 2;
    ok(different <= most && different < ASKED,
       "%d requests in a row: metrics are written %d times, %d allowed", ASKED, different, most);
    while (last != ASKED && weft_boot_us() - began_us < 60 * WEFT_SECOND)
        last = told_connections(f);
    is_int(last, ASKED, "a moment later the metrics give the current number");
    weft_metric_set(metrics, WEFT_METRIC_HTTP_CONNECTIONS, 0, 0);
}

int main(void)
{
    struct api_fixture f;
    fixture_init(&f);
    test_leases(&f);
    test_lease_items(&f);
    test_lanes(&f);
    test_workers(&f);
    test_counts(&f);
    test_counts_shared(&f);
    test_outside(&f);
    test_metrics_flood(&f);
    fixture_done(&f);
    return tap_done();
}
