/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The cycles of the executor, over a crowd and endpoints that the case plays: what is claimed,
 * what begins, what is written about the end of a call. Real servers are called in
 * tests/http/executor.py.
 */

#include "conformance.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "engine/batch/batch.h"
#include "engine/engine_state.h"
#include "engine/flow/flow.h"
#include "net/executor/executor.h"

#include <stdlib.h>

/* ---- A crowd that does as it is told --------------------------------------------------------- */

enum { CALLS_MAX = 3000, ENDPOINTS_MAX = 4 };

struct weft_transfer {
    struct weft_crowd_call call;
    const char *url, *method; /* copies, in stage.arena */
    bool ended, aborted;
};

struct known {
    struct weft_known_endpoint endpoint;
    struct weft_endpoint setting;
    bool there;
};

static struct stage {
    struct fixture *f;
    struct weft_executor *executor;
    struct weft_transfer transfer[CALLS_MAX];
    size_t calls, open;
    struct known known[ENDPOINTS_MAX];
    struct weft_arena *arena;
    uint64_t statements; /* counted where the engine has a fault driver */
} stage;

static enum weft_rc crowd_start(const struct weft_crowd_config *config,
                                struct weft_crowd **ret_crowd, struct weft_err *err)
{
    (void)config, (void)err;
    *ret_crowd = (struct weft_crowd *)&stage;
    return WEFT_OK;
}

static void end_transfer(struct weft_transfer *transfer, const struct weft_crowd_end *end)
{
    if (transfer->ended)
        return;
    transfer->ended = true;
    stage.open--;
    transfer->call.ops->ended(transfer->call.context, end);
}

static void crowd_stop(struct weft_crowd *crowd)
{
    (void)crowd;
    for (size_t i = 0; i < stage.calls; i++)
        end_transfer(&stage.transfer[i], &(struct weft_crowd_end){.aborted = true});
}

static struct weft_transfer *crowd_call(struct weft_crowd *crowd,
                                        const struct weft_crowd_call *call)
{
    (void)crowd;
    struct weft_transfer *transfer = &stage.transfer[stage.calls++];
    *transfer = (struct weft_transfer){.call = *call,
                                       .url = weft_arena_strdup(stage.arena, call->url),
                                       .method = weft_arena_strdup(stage.arena, call->method)};
    stage.open++;
    return transfer;
}

/* The lock of the executor is held here: the end comes later, as from a thread of a crowd. */
static void crowd_abort(struct weft_crowd *crowd, struct weft_transfer *transfer)
{
    (void)crowd;
    transfer->aborted = true;
}

static void crowd_trust(struct weft_crowd *crowd, const char *pem)
{
    (void)crowd, (void)pem;
}

static const struct weft_known_endpoint *endpoint_of(struct weft_engine *engine, const char *ns,
                                                     const char *name)
{
    (void)engine, (void)ns;
    for (size_t i = 0; i < ENDPOINTS_MAX; i++)
        if (stage.known[i].there && strcmp(stage.known[i].setting.name, name) == 0)
            return &stage.known[i].endpoint;
    return NULL;
}

static void release(const struct weft_known_endpoint *endpoint)
{
    (void)endpoint;
}

static const struct weft_executor_ops ops = {
    .start = crowd_start,
    .stop = crowd_stop,
    .call = crowd_call,
    .abort = crowd_abort,
    .trust = crowd_trust,
    .endpoint = endpoint_of,
    .release = release,
};

/* ---- The stage ------------------------------------------------------------------------------- */

static struct weft_endpoint *add_endpoint(size_t at, const char *name)
{
    struct known *known = &stage.known[at];
    *known = (struct known){.there = true,
                            .setting = {.name = name,
                                        .url = "http://127.0.0.1:1/v1",
                                        .max_in_flight = 64,
                                        .connect_ms = 1000,
                                        .first_byte_ms = 2000,
                                        .idle_ms = 3000,
                                        .total_ms = 4000,
                                        .retry_after_max_ms = 3600000,
                                        .response_max = 1 << 20}};
    known->endpoint.setting = &known->setting;
    known->endpoint.version = at + 1;
    is_int(weft_http_base_read(known->setting.url, "url", stage.arena, &known->endpoint.url, NULL),
           WEFT_OK, "the endpoint %s is made", name);
    is_int(weft_http_retry_read(NULL, &known->endpoint.retry, NULL), WEFT_OK, "with usual retries");
    return &known->setting;
}

static void on_news(void *context, const struct weft_news *news)
{
    struct weft_engine *engine = context;
    if (stage.executor && weft_ready_wakes_carried(engine, news->woken, news->count))
        weft_executor_wake(stage.executor, news->woken, news->count);
}

static void on_leases(void *context, const int32_t *worker, size_t count)
{
    (void)context;
    if (stage.executor)
        weft_executor_leases(stage.executor, worker, count);
}

static void begin_with(struct fixture *f, struct weft_engine *engine, uint32_t in_flight)
{
    stage = (struct stage){.f = f, .arena = weft_arena_new()};
    weft_engine_on_news(engine, on_news, engine);
    weft_engine_on_leases(engine, on_leases, NULL);
    const struct weft_executor_config config = {
        .engine = engine, .worker = "http-x", .in_flight = in_flight, .ops = &ops};
    is_int(weft_executor_new(&config, &stage.executor, &f->err), WEFT_OK, "the executor is made");
    (void)add_endpoint(0, "one");
}

static void begin(struct fixture *f)
{
    begin_with(f, f->a, 0);
}

static void finish(struct weft_engine *engine)
{
    weft_engine_on_news(engine, NULL, NULL);
    weft_engine_on_leases(engine, NULL, NULL);
    weft_executor_free(stage.executor);
    stage.executor = NULL;
    weft_arena_free(stage.arena);
}

static void turns(int count)
{
    while (count-- > 0)
        (void)weft_executor_turn(stage.executor);
}

static struct weft_spec spec_of(const char *payload)
{
    return (struct weft_spec){.kind = "http", .payload = payload, .payload_size = strlen(payload)};
}

static struct weft_id call_to(struct fixture *f, const char *endpoint)
{
    struct weft_spec spec =
        spec_of(weft_arena_printf(f->arena, "{\"endpoint\":\"%s\",\"path\":\"/x\"}", endpoint));
    return submit_ok(f, &spec);
}

/* A whole answer. */
static void answer(struct weft_transfer *transfer, int status, const char *type, const char *body)
{
    const struct weft_crowd_header header[] = {{"Content-Type", type}, {"X-Request-Id", "r1"}};
    bool enough = false;
    transfer->call.ops->head(transfer->call.context, status, header, WEFT_LEN(header));
    bool more = transfer->call.ops->data(transfer->call.context, body, strlen(body), &enough);
    ok(more || enough, "the body is taken");
    end_transfer(transfer, &(struct weft_crowd_end){.status = status, .sent = true});
}

static void answer_all(int status, const char *body)
{
    for (size_t i = 0; i < stage.calls; i++)
        if (!stage.transfer[i].ended)
            answer(&stage.transfer[i], status, "application/json", body);
}

/* ---- Results --------------------------------------------------------------------------------- */

CASE(executor_carries_out_a_call)
{
    begin(f);
    struct weft_id id = call_to(f, "one");
    turns(2);
    is_int(stage.calls, 1, "the call begins");
    is_str(stage.transfer[0].url, "http://127.0.0.1:1/v1/x", "at the endpoint");
    is_str(stage.transfer[0].method, "GET", "without a body it is a GET");
    is_int(stage.transfer[0].call.total_ms, 4000, "with the timeouts of the endpoint");
    struct weft_execution running = describe(f, &id);
    is_int(running.state, WEFT_STATE_RUNNING, "its lease is durable by then");
    is_str(running.worker, "http-x", "and the executor's");
    answer(&stage.transfer[0], 200, "application/json; charset=utf-8", "{\"n\": 1.50 }");
    turns(1);
    is_int(state_of(f, &id), WEFT_STATE_SUCCEEDED, "its end is written by the next cycle");
    is_str(result_text(f, &id),
           "{\"status\":200,\"headers\":{\"content-type\":\"application/json; charset=utf-8\","
           "\"x-request-id\":\"r1\"},\"body\":{\"n\": 1.50 }}",
           "the body is kept byte for byte");
    finish(f->a);
}

CASE(executor_keeps_any_bytes)
{
    static const struct {
        const char *body, *shown;
    } row[] = {
        {"plain \"text\"", "\"body_text\":\"plain \\\"text\\\"\""},
        {"\xff\xfe", "\"body_base64\":\"//4=\""},
        {"", "}}"},
        {"{\"a\":1} trailing", "\"body_text\":\"{\\\"a\\\":1} trailing\""},
    };
    begin(f);
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_id id = call_to(f, "one");
        turns(2);
        answer(&stage.transfer[i], 200, "text/plain", row[i].body);
        turns(1);
        const char *result = result_text(f, &id);
        ok(result && strstr(result, row[i].shown), "%s in %s", row[i].shown, result);
    }
    finish(f->a);
}

/* As large as an endpoint allows, of one character; JSON has it between quotes. */
static char *large_body(struct fixture *f, char c, bool json)
{
    enum { LARGE = 8 << 20 };
    char *body = weft_arena_alloc(f->arena, LARGE + 1, 1);
    memset(body, c, LARGE);
    if (json)
        body[0] = body[LARGE - 1] = '"';
    return body;
}

/* A batch of a transaction is smaller than two of these answers. */
CASE(executor_keeps_large_answers)
{
    static const struct {
        char c;
        bool json;
        const char *member;
    } row[] = {
        {'x', true, "\"body\":\""},
        {'x', false, "\"body_text\":\"xx"},
        {'"', false, "\"body_base64\":\""}, /* as a text it would be twice as long */
        {'\xff', false, "\"body_base64\":\""},
    };
    struct weft_id id[WEFT_LEN(row)];
    begin(f);
    stage.known[0].setting.response_max = 8 << 20;
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        id[i] = call_to(f, "one");
        turns(2);
        is_int(stage.transfer[i].call.response_max, 8 << 20, "the endpoint says how large");
    }
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        answer(&stage.transfer[i], 200, "text/plain", large_body(f, row[i].c, row[i].json));
    turns(6);
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_execution shown = describe(f, &id[i]);
        is_int(shown.state, WEFT_STATE_SUCCEEDED, "an answer of 8 MiB is a result");
        const char *result = result_text(f, &id[i]);
        ok(result && strstr(result, row[i].member), "with %s", row[i].member);
        is_int(shown.result_size, result ? strlen(result) : 0, "which is whole");
    }
    finish(f->a);
}

/* The lines of a batch are read in parts, which results must not swell. */
CASE(executor_large_answers_are_read_one_by_one)
{
    enum { LINES = 5 };
    begin(f);
    stage.known[0].setting.response_max = 8 << 20;
    struct weft_node node[LINES] = {0};
    struct weft_id id[LINES];
    for (int i = 0; i < LINES; i++)
        node[i] = (struct weft_node){.name = weft_arena_printf(f->arena, "line-%d", i),
                                     .spec = spec_of("{\"endpoint\":\"one\"}")};
    struct weft_flow_spec spec = {.nodes = node, .node_count = LINES};
    struct weft_flow_result flow = {.node = id};
    is_int(weft_engine_flow_submit(f->a, "default", &spec, 1, f->arena, &flow, &f->err), WEFT_OK,
           "the flow is submitted");
    turns(2);
    is_int(stage.calls, LINES, "its calls begin");
    for (int i = 0; i < LINES && i < (int)stage.calls; i++)
        answer(&stage.transfer[i], 200, "text/plain",
               i < 3 ? large_body(f, 'x', false) : "a small one");
    turns(6);
    static const size_t counts[] = {1, 1, 1, 2};
    struct weft_batch_page page = {.good = true, .members = LINES, .bytes = 1 << 20};
    for (size_t i = 0; i < WEFT_LEN(counts); i++) {
        is_int(weft_engine_batch_answers(f->b, &flow.id, &page, f->arena, &f->err), WEFT_OK,
               "a page");
        is_int(page.count, counts[i], "page %zu ends with the answer that makes it large", i);
        is_int(page.last, i + 1 == WEFT_LEN(counts), "and says whether there are more");
    }
    finish(f->a);
}

CASE(executor_bounds_what_is_no_stream)
{
    static const struct weft_crowd_end stopped = {.status = 200, .sent = true, .aborted = true};
    begin(f);
    struct weft_spec spec = spec_of("{\"endpoint\":\"one\",\"stream\":true,\"body\":{}}");
    struct weft_id id = submit_ok(f, &spec);
    turns(2);
    const struct weft_crowd_call *call = &stage.transfer[0].call;
    is_int(call->response_max, 8 << 20, "a stream may be longer than what it folds into");
    bool enough = false;
    call->ops->head(call->context, 200, NULL, 0);
    ok(call->ops->data(call->context, large_body(f, 'x', false), 1 << 20, &enough),
       "as much as the endpoint allows");
    ok(!call->ops->data(call->context, "x", 1, &enough) && !enough, "but not a byte more");
    end_transfer(&stage.transfer[0], &stopped);
    turns(1);
    struct weft_execution failed = describe(f, &id);
    is_int(failed.state, WEFT_STATE_FAILED, "the call is over, and not given back");
    is_str(failed.error_class, "http_too_large", "because of its answer");
    ok(strstr(failed.error_message, "1048576 bytes") != NULL, "%s", failed.error_message);
    finish(f->a);
}

/* What came makes no sense, so data() stops the call: it must not be made again and again. */
CASE(executor_fails_broken_streams)
{
    static const struct weft_crowd_end stopped = {.status = 200, .sent = true, .aborted = true};
    static const struct weft_crowd_header header[] = {{"Content-Type", "text/event-stream"}};
    static const char bytes[] =
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[]}\n\n"
        "data: {\"broken\n\n";
    begin(f);
    struct weft_spec spec = spec_of("{\"endpoint\":\"one\",\"stream\":true,\"body\":{}}");
    struct weft_id id = submit_ok(f, &spec);
    turns(2);
    const struct weft_crowd_call *call = &stage.transfer[0].call;
    bool enough = false;
    call->ops->head(call->context, 200, header, WEFT_LEN(header));
    ok(!call->ops->data(call->context, bytes, strlen(bytes), &enough) && !enough,
       "an event that is not JSON");
    end_transfer(&stage.transfer[0], &stopped);
    turns(1);
    struct weft_execution failed = describe(f, &id);
    is_int(failed.state, WEFT_STATE_FAILED, "the call has failed");
    is_str(failed.error_class, "http_protocol", "because of its answer");
    finish(f->a);
}

CASE(executor_folds_streams)
{
    begin(f);
    struct weft_spec spec = spec_of("{\"endpoint\":\"one\",\"stream\":true,\"body\":{}}");
    struct weft_id id = submit_ok(f, &spec);
    turns(2);
    answer(&stage.transfer[0], 200, "text/event-stream",
           "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,"
           "\"delta\":{\"role\":\"assistant\",\"content\":\"He\"}}]}\n\n"
           "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,"
           "\"delta\":{\"content\":\"llo\"},\"finish_reason\":\"stop\"}]}\n\n"
           "data: [DONE]\n\n");
    turns(1);
    const char *result = result_text(f, &id);
    ok(result && strstr(result, "\"content\":\"Hello\""), "the stream is one answer: %s", result);
    id = submit_ok(f, &spec);
    turns(2);
    answer(&stage.transfer[1], 200, "text/event-stream",
           "data: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n");
    turns(1);
    is_str(describe(f, &id).error_class, "http_503", "an error within a stream is a failure");
    finish(f->a);
}

/* ---- Failures -------------------------------------------------------------------------------- */

CASE(executor_repeats_what_may_be_repeated)
{
    begin(f);
    struct weft_id get = call_to(f, "one");
    struct weft_spec spec = spec_of("{\"endpoint\":\"one\",\"body\":{}}");
    struct weft_id post = submit_ok(f, &spec);
    turns(2);
    answer_all(503, "{\"busy\":true}");
    turns(1);
    struct weft_execution again = describe(f, &get);
    is_int(again.state, WEFT_STATE_DELAYED, "a GET that met a 503 is made again");
    expect_last_attempt(f, &get,
                        &(struct weft_attempt){.ended = "failed", .error_class = "http_503"});
    struct weft_execution failed = describe(f, &post);
    is_int(failed.state, WEFT_STATE_FAILED, "a POST may have had its effect");
    is_str(failed.error_detail,
           "{\"status\":503,\"headers\":{\"content-type\":\"application/json\","
           "\"x-request-id\":\"r1\"},\"body\":{\"busy\":true}}",
           "its failure has what was answered");
    struct weft_id limited = submit_ok(f, &spec);
    turns(2);
    struct weft_transfer *last = &stage.transfer[stage.calls - 1];
    const struct weft_crowd_header header[] = {{"Retry-After", "7"}};
    last->call.ops->head(last->call.context, 429, header, 1);
    end_transfer(last, &(struct weft_crowd_end){.status = 429, .sent = true});
    turns(1);
    again = describe(f, &limited);
    is_int(again.state, WEFT_STATE_DELAYED, "429 says that it did not act on the POST");
    is_int(again.run_at_us - f->now_us, 7 * WEFT_SECOND, "Retry-After beats the backoff");
    finish(f->a);
}

CASE(executor_fails_what_cannot_be_sent)
{
    begin(f);
    stage.known[0].setting.idempotency_header = "X-Key";
    struct weft_spec spec = spec_of("{\"endpoint\":\"one\",\"headers\":{\"x-key\":\"mine\"}}");
    struct weft_id id = submit_ok(f, &spec);
    turns(3);
    is_int(stage.calls, 0, "no call begins");
    struct weft_execution failed = describe(f, &id);
    is_int(failed.state, WEFT_STATE_FAILED, "a header of the endpoint may not be given");
    is_str(failed.error_class, "http_payload", "the payload is to blame");
    finish(f->a);
}

/* ---- Which are claimed ----------------------------------------------------------------------- */

CASE(executor_waits_for_the_endpoint)
{
    begin(f);
    struct weft_id id = call_to(f, "two");
    turns(3);
    is_int(state_of(f, &id), WEFT_STATE_READY, "without its endpoint it stays ready");
    is_int(stage.calls, 0, "and no call begins");
    (void)add_endpoint(1, "two");
    struct weft_id other = call_to(f, "two"); /* its wake is as good as that of the poll */
    turns(3);
    is_int(state_of(f, &id), WEFT_STATE_RUNNING, "it runs when the endpoint is made");
    stage.known[1].there = false;
    answer_all(200, "1");
    turns(2);
    is_int(state_of(f, &id), WEFT_STATE_SUCCEEDED, "its call ends without the endpoint");
    is_int(state_of(f, &other), WEFT_STATE_SUCCEEDED, "so does the other");
    finish(f->a);
}

CASE(executor_waits_for_the_secret)
{
    begin(f);
    stage.known[0].endpoint.auth.name = "X-Key";
    stage.known[0].setting.secret = "key";
    struct weft_id id = call_to(f, "one");
    turns(3);
    is_int(state_of(f, &id), WEFT_STATE_READY, "without the secret of the endpoint it stays ready");
    stage.known[0].endpoint.auth.name = NULL;
    stage.known[0].endpoint.version++;
    (void)call_to(f, "one");
    turns(3);
    is_int(stage.open, 2, "both begin when the endpoint names none");
    finish(f->a);
}

CASE(executor_keeps_limits_of_endpoints)
{
    begin_with(f, f->a, 10);
    struct weft_endpoint *one = add_endpoint(0, "one");
    one->max_in_flight = 4;
    for (int i = 0; i < 20; i++)
        (void)call_to(f, "one");
    turns(4);
    is_int(stage.open, 4, "no more than the endpoint takes at once");
    (void)add_endpoint(1, "two");
    for (int i = 0; i < 20; i++)
        (void)call_to(f, "two");
    turns(4);
    is_int(stage.open, 10, "no more than the executor makes at once");
    size_t before = stage.calls;
    while (stage.open > 0) {
        answer_all(200, "1");
        turns(4);
        ok(stage.open <= 10, "never more");
    }
    ok(before < stage.calls, "the ends make room");
    is_int(stage.calls, 40, "all are made");
    is_int(count_rows(f, &(struct weft_filter){.state = WEFT_STATE_SUCCEEDED}), 40, "and succeed");
    finish(f->a);
}

CASE(executor_shares_calls_among_endpoints)
{
    begin_with(f, f->a, 6);
    static const char *const name[] = {"one", "two", "three"};
    for (size_t i = 0; i < WEFT_LEN(name); i++) {
        (void)add_endpoint(i, name[i]);
        for (int k = 0; k < (i == 0 ? 60 : 6); k++)
            (void)call_to(f, name[i]);
    }
    size_t of_two = 0, rounds = 0;
    for (; rounds < 4; rounds++) {
        turns(3);
        answer_all(200, "1");
    }
    turns(1);
    for (size_t i = 0; i < WEFT_LEN(name); i++) {
        struct weft_endpoint_health health = {0};
        weft_executor_health(stage.executor, "default", name[i], &health);
        of_two += i > 0 ? health.answers[1] : 0;
    }
    is_int(of_two, 12, "a long queue of one endpoint does not hold up the others");
    finish(f->a);
}

static size_t bad_until_open(struct fixture *f)
{
    struct weft_endpoint_health health = {0};
    size_t bad = 0;
    for (; bad < 50 && health.breaker != WEFT_ENDPOINT_OPEN; bad++) {
        (void)call_to(f, "one");
        turns(2);
        answer_all(500, "{}");
        turns(1);
        weft_executor_health(stage.executor, "default", "one", &health);
    }
    return bad;
}

/* Whether the metrics have this line. */
static bool shows(struct fixture *f, const char *line)
{
    struct weft_buf text;
    weft_buf_init(&text, 1 << 20);
    weft_executor_metrics(stage.executor, f->arena, &text);
    weft_buf_add_char(&text, '\0');
    const char *wanted = weft_arena_printf(f->arena, "\n%s\n", line);
    bool found = strstr(text.data, wanted) != NULL;
    weft_buf_done(&text);
    return found;
}

#define ONE "namespace=\"default\",endpoint=\"one\""

CASE(executor_counts_calls_by_endpoint)
{
    begin(f);
    (void)call_to(f, "one");
    turns(2);
    ok(shows(f, "weft_calls_in_flight{" ONE "} 1"), "a call under way");
    ok(shows(f, "weft_call_breaker_state{" ONE "} 0"), "its breaker is closed");
    answer_all(200, "1");
    (void)call_to(f, "one");
    turns(3);
    end_transfer(&stage.transfer[1],
                 &(struct weft_crowd_end){.failure = WEFT_HTTP_TIMEOUT, .sent = true});
    turns(1);
    ok(shows(f, "weft_calls_total{" ONE ",code=\"200\"} 1"), "an answer counts by its status");
    ok(shows(f, "weft_calls_total{" ONE ",code=\"http_timeout\"} 1"), "a failure by its class");
    ok(shows(f, "weft_calls_in_flight{" ONE "} 0"), "none is under way");
    size_t bad = bad_until_open(f);
    ok(shows(f, weft_arena_printf(f->arena, "weft_calls_total{" ONE ",code=\"500\"} %zu", bad)),
       "each bad answer counts");
    ok(shows(f, "weft_call_breaker_state{" ONE "} 2"), "the breaker is open");
    finish(f->a);
}

CASE(executor_bounds_its_metrics)
{
    begin(f);
    enum { CODES = 40, SHOWN = 24 }; /* WEFT_CALL_CODES */
    stage.known[0].setting.max_in_flight = 1;
    for (int i = 0; i < CODES; i++) {
        (void)call_to(f, "one");
        turns(3);
        answer_all(400 + i % 99, "1"); /* statuses that say nothing bad of the endpoint */
        turns(1);
    }
    ok(shows(f, "weft_calls_total{" ONE ",code=\"400\"} 1"), "the first codes have lines");
    ok(shows(f, weft_arena_printf(f->arena, "weft_calls_total{" ONE ",code=\"other\"} %d",
                                  CODES - SHOWN)),
       "the rest share one");
    finish(f->a);
}

static void count_statement(void *context, enum weft_fault_point point, enum weft_stmt stmt)
{
    (void)context, (void)stmt;
    stage.statements += point == WEFT_FAULT_BEFORE_RUN;
}

CASE(executor_open_breaker_costs_nothing)
{
    static struct weft_fault fault;
    fault = (struct weft_fault){.hook = count_statement};
    struct weft_engine *engine = open_faulty(f, &fault), *plain = f->a;
    begin_with(f, engine, 0);
    f->a = engine;
    ok(bad_until_open(f) < 50, "failures open the breaker");
    size_t calls = stage.calls;
    for (int i = 0; i < 10; i++)
        (void)call_to(f, "one");
    uint64_t before = stage.statements;
    weft_usec next_us = 0;
    for (int i = 0; i < 100; i++)
        next_us = weft_executor_turn(stage.executor);
    is_int(stage.statements - before, 0, "an open breaker causes no statement, so no lease");
    is_int(stage.calls, calls, "and no call");
    ok(next_us > weft_boot_us() && next_us < weft_boot_us() + 3600 * WEFT_SECOND,
       "the executor sleeps until the breaker lets one through");
    struct weft_endpoint_health health = {0};
    weft_executor_health(stage.executor, "default", "one", &health);
    ok(health.open_until_us > 0, "readers see until when it is open");
    f->a = plain;
    finish(engine);
    weft_engine_close(engine);
}

/* Waits until the open breaker lets one call begin, which is the probe. */
static struct weft_transfer *next_probe(void)
{
    weft_usec until_us = weft_boot_us() + 60 * WEFT_SECOND;
    while (stage.open == 0 && weft_boot_us() < until_us)
        turns(1);
    turns(3);
    is_int(stage.open, 1, "one call begins, and no other beside it");
    return &stage.transfer[stage.calls - 1];
}

static struct weft_endpoint_health health_of(const char *endpoint)
{
    struct weft_endpoint_health health = {0};
    weft_executor_health(stage.executor, "default", endpoint, &health);
    return health;
}

/* The head of an answer and a part of its body. */
static void begin_answer(struct weft_transfer *transfer, const char *type, const char *body)
{
    const struct weft_crowd_header header[] = {{"Content-Type", type}};
    bool enough = false;
    transfer->call.ops->head(transfer->call.context, 200, header, WEFT_LEN(header));
    ok(transfer->call.ops->data(transfer->call.context, body, strlen(body), &enough) && !enough,
       "an answer begins well");
}

CASE(executor_judges_a_probe_at_its_end)
{
    static const struct weft_crowd_end broken = {
        .failure = WEFT_HTTP_BROKEN, .status = 200, .sent = true};
    begin(f);
    size_t bad = bad_until_open(f);
    struct weft_spec spec = spec_of("{\"endpoint\":\"one\",\"stream\":true,\"body\":{}}");
    for (int i = 0; i < 4; i++)
        (void)submit_ok(f, &spec);
    uint64_t failed = health_of("one").failed;

    struct weft_transfer *probe = next_probe();
    begin_answer(probe, "application/json", "{\"half\":");
    turns(2);
    is_int(health_of("one").breaker, WEFT_ENDPOINT_HALF_OPEN, "its status line decides nothing");
    end_transfer(probe, &broken);
    turns(1);
    is_int(health_of("one").breaker, WEFT_ENDPOINT_OPEN, "a body that breaks off is a failure");
    is_int(health_of("one").failed, failed + 1, "which is counted");

    probe = next_probe();
    answer(probe, 200, "text/event-stream",
           "data: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n");
    turns(1);
    is_int(health_of("one").breaker, WEFT_ENDPOINT_OPEN, "so is an error within a stream");

    probe = next_probe();
    answer(probe, 200, "application/json", "1");
    turns(3);
    struct weft_endpoint_health health = health_of("one");
    is_int(health.breaker, WEFT_ENDPOINT_CLOSED, "a whole answer closes it");
    is_int(health.answers[1] + health.answers[4], bad + 2, "and each answer counts once");
    is_int(stage.open, 1, "the other call begins");
    answer_all(200, "1");
    turns(1);
    is_int(health_of("one").answers[1], health.answers[1] + 1, "and is counted once");
    finish(f->a);
}

/* ---- Time ------------------------------------------------------------------------------------ */

CASE(executor_ends_calls_before_their_attempts)
{
    static const struct {
        int64_t attempt_ms, deadline_ms, total_ms;
        const char *until;
    } row[] = {
        {0, 0, 4000, NULL},
        {10000, 0, 4000, NULL},
        {2000, 0, 1900, "timeout of the attempt"},
        {0, 1000, 950, "deadline"},
        {2000, 1000, 950, "deadline"},
        {30, 0, 15, "timeout of the attempt"},
    };
    begin(f);
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_policy policy = {.attempt_timeout_ms = row[i].attempt_ms};
        struct weft_spec spec = spec_of("{\"endpoint\":\"one\",\"body\":{}}");
        spec.policy = &policy;
        spec.deadline_us = row[i].deadline_ms ? f->now_us + row[i].deadline_ms * WEFT_MS : 0;
        struct weft_id id = submit_ok(f, &spec);
        turns(2);
        struct weft_transfer *last = &stage.transfer[stage.calls - 1];
        is_int(last->call.total_ms, row[i].total_ms,
               "of %d ms for the attempt and %d to the deadline", (int)row[i].attempt_ms,
               (int)row[i].deadline_ms);
        end_transfer(
            last, &(struct weft_crowd_end){.failure = WEFT_HTTP_TIMEOUT,
                                           .sent = true,
                                           .text = "the call was not over",
                                           .phases = {.total_us = last->call.total_ms * WEFT_MS}});
        turns(1);
        struct weft_execution failed = describe(f, &id);
        is_str(failed.error_class, "http_timeout", "a timeout of the call, not of the attempt");
        is_int(failed.state, WEFT_STATE_FAILED, "so a POST is not made again");
        ok(!row[i].until || strstr(failed.error_message, row[i].until), "%s", failed.error_message);
    }
    finish(f->a);
}

/* What was cut short says nothing about the endpoint; a timeout of its own does. */
CASE(executor_blames_no_endpoint_for_short_attempts)
{
    begin(f);
    for (int i = 0; i < 30; i++) {
        bool cut = i < 20;
        struct weft_spec spec = spec_of("{\"endpoint\":\"one\",\"body\":{}}");
        spec.policy = cut ? &(struct weft_policy){.attempt_timeout_ms = 100} : NULL;
        (void)submit_ok(f, &spec);
        turns(3);
        if (stage.open == 0)
            break;
        const struct weft_crowd_end end = {
            .failure = WEFT_HTTP_TIMEOUT,
            .sent = true,
            .phases = {.total_us = cut ? 80 * WEFT_MS : 2 * WEFT_SECOND}};
        end_transfer(&stage.transfer[stage.calls - 1], &end);
        turns(1);
        if (cut)
            is_int(health_of("one").breaker, WEFT_ENDPOINT_CLOSED, "a short attempt");
    }
    is_int(health_of("one").breaker, WEFT_ENDPOINT_OPEN,
           "timeouts of the endpoint open the breaker");
    finish(f->a);
}

/* A lane that is full is looked at once, and not again before its room comes. */
CASE(executor_rests_where_a_lane_is_full)
{
    static struct weft_fault fault;
    fault = (struct weft_fault){.hook = count_statement};
    struct weft_engine *engine = open_faulty(f, &fault), *plain = f->a;
    begin_with(f, engine, 0);
    f->a = engine;
    struct weft_lane lane = {.name = "default", .max_running = 2};
    put_lane(f, engine, &lane);
    for (int i = 0; i < 5; i++)
        (void)call_to(f, "one");
    turns(6);
    is_int(stage.open, 2, "as many calls as the lane runs");
    uint64_t before = stage.statements;
    turns(100);
    is_int(stage.statements - before, 0, "no statement while it is full");
    for (int i = 0; i < 3; i++) {
        answer_all(200, "1");
        turns(4);
    }
    is_int(stage.calls, 5, "each end makes room");
    f->a = plain;
    finish(engine);
    weft_engine_close(engine);
}

CASE(executor_makes_no_calls_to_urls_of_their_own)
{
    begin(f);
    struct weft_spec spec = spec_of("{\"url\":\"https://example.com/\"}");
    struct weft_id id = submit_ok(f, &spec);
    turns(3);
    is_int(state_of(f, &id), WEFT_STATE_READY, "unless it was told to");
    finish(f->a);
}

CASE(executor_serves_every_namespace)
{
    begin(f);
    struct weft_spec spec = spec_of("{\"endpoint\":\"one\"}");
    static const char *const ns[] = {"alpha", "beta", "default"};
    for (size_t i = 0; i < WEFT_LEN(ns); i++) {
        spec.ns = ns[i];
        (void)submit_ok(f, &spec);
    }
    turns(3);
    is_int(stage.open, 3, "a call of each begins");
    answer_all(200, "1");
    turns(2);
    for (size_t i = 0; i < WEFT_LEN(ns); i++)
        is_int(count_rows(f, &(struct weft_filter){.ns = ns[i], .state = WEFT_STATE_SUCCEEDED}), 1,
               "namespace %s has its result", ns[i]);
    finish(f->a);
}

/* ---- Flows ----------------------------------------------------------------------------------- */

CASE(executor_takes_parts_of_results)
{
    begin(f);
    stage.known[0].setting.response_max = 8 << 20;
    static const char check[] =
        "{\"endpoint\":\"one\",\"body\":{\"was\":null,\"n\":0},"
        "\"from\":{\"/body/was\":\"draft#/body/text\"}}";
    static const char wrong[] =
        "{\"endpoint\":\"one\",\"body\":{\"was\":null},"
        "\"from\":{\"/body/was\":\"draft#/body/none\"}}";
    static const char *const after[] = {"draft"};
    struct weft_node node[] = {
        {.name = "draft", .spec = spec_of("{\"endpoint\":\"one\"}")},
        {.name = "check", .spec = spec_of(check), .after = after, .after_count = 1},
        {.name = "wrong", .spec = spec_of(wrong), .after = after, .after_count = 1},
    };
    struct weft_id id[WEFT_LEN(node)];
    struct weft_flow_spec spec = {.nodes = node, .node_count = WEFT_LEN(node)};
    struct weft_flow_result flow = {.node = id};
    is_int(weft_engine_flow_submit(f->a, "default", &spec, 1, f->arena, &flow, &f->err), WEFT_OK,
           "the flow is submitted");
    turns(2);
    /* More than comes along with a claim, and than a worker may give: it is read by its id. */
    enum { LARGE = 5 << 20 };
    char *body = weft_arena_alloc(f->arena, LARGE + 64, 1);
    memset(body, 'x', LARGE);
    memcpy(body, "{\"text\":\"", 9);
    body[LARGE] = '"';
    body[LARGE + 1] = '}';
    answer(&stage.transfer[0], 200, "application/json", body);
    turns(3);
    is_int(stage.calls, 2, "the call after it begins");
    const struct weft_crowd_call *sent = &stage.transfer[1].call;
    is_int(sent->body_size, strlen("{\"was\":\"\",\"n\":0}") + LARGE - 9,
           "its body has the part, however large");
    struct weft_execution failed = describe(f, &id[2]);
    is_str(failed.error_class, "http_from", "a pointer that leads nowhere fails the node");
    is_int(failed.state, WEFT_STATE_FAILED, "for good");
    finish(f->a);
}

/* ---- Leases ---------------------------------------------------------------------------------- */

CASE(executor_aborts_what_is_cancelled)
{
    begin(f);
    struct weft_id id = call_to(f, "one"), kept = call_to(f, "one");
    turns(2);
    is_int(stage.open, 2, "both are under way");
    is_int(steer_id(f, WEFT_STEER_CANCEL, &id).err.rc, WEFT_OK, "one is cancelled");
    turns(1);
    size_t at = stage.transfer[0].aborted ? 0 : 1;
    ok(stage.transfer[at].aborted && !stage.transfer[1 - at].aborted, "its transfer is aborted");
    end_transfer(&stage.transfer[at], &(struct weft_crowd_end){.aborted = true});
    turns(1);
    is_int(state_of(f, &id), WEFT_STATE_CANCELLED, "it stays cancelled");
    struct weft_lane lane = {.name = "default", .max_running = 2};
    put_lane(f, f->a, &lane);
    (void)call_to(f, "one");
    turns(2);
    is_int(stage.open, 2, "its draining lease was let go, so the lane has room");
    answer_all(200, "1");
    turns(1);
    is_int(state_of(f, &kept), WEFT_STATE_SUCCEEDED, "the other one goes on");
    finish(f->a);
}

CASE(executor_stops_and_gives_back)
{
    begin(f);
    struct weft_id ends = call_to(f, "one"), cut = call_to(f, "one");
    turns(2);
    weft_executor_quiesce(stage.executor, weft_boot_us() + WEFT_SECOND);
    struct weft_id later = call_to(f, "one");
    turns(2);
    is_int(stage.calls, 2, "no call begins any more");
    answer(&stage.transfer[0], 200, "text/plain", "x");
    turns(1);
    weft_executor_quiesce(stage.executor, 0); /* the first word holds */
    is_int(stage.transfer[1].aborted, false, "what is under way has its grace");
    end_transfer(&stage.transfer[1], &(struct weft_crowd_end){.aborted = true});
    turns(2);
    bool first = state_of(f, &ends) == WEFT_STATE_SUCCEEDED;
    is_int(state_of(f, first ? &cut : &ends), WEFT_STATE_READY,
           "what the stop cuts off is ready at once");
    is_int(state_of(f, first ? &ends : &cut), WEFT_STATE_SUCCEEDED, "what ended has its result");
    is_int(state_of(f, &later), WEFT_STATE_READY, "what was not begun waits");
    finish(f->a);
}

/* Every statement and every commit fails once, in turn: the result is written all the same. */
CASE(executor_survives_a_lost_store)
{
    static struct weft_fault fault;
    static const enum weft_fault_kind kinds[] = {WEFT_FAULT_FAIL, WEFT_FAULT_LOSE,
                                                 WEFT_FAULT_LOSE_REPLY};
    for (size_t k = 0; k < WEFT_LEN(kinds); k++)
        for (uint64_t strike = 1; strike < 12; strike++) {
            fault = (struct weft_fault){0};
            struct weft_engine *engine = open_faulty(f, &fault), *plain = f->a;
            begin_with(f, engine, 0);
            f->a = engine;
            struct weft_id id = call_to(f, "one");
            turns(2);
            answer_all(200, "1");
            fault.kind = kinds[k];
            fault.calls = 0;
            fault.strike_at = strike;
            weft_usec until_us = weft_boot_us() + 10 * WEFT_SECOND;
            while (state_of(f, &id) != WEFT_STATE_SUCCEEDED && weft_boot_us() < until_us)
                turns(1);
            is_int(state_of(f, &id), WEFT_STATE_SUCCEEDED, "fault %zu at call %d: the end is kept",
                   k, (int)strike);
            is_int(stage.calls, 1, "and the call is made once");
            fault.kind = WEFT_FAULT_NONE;
            f->a = plain;
            finish(engine);
            weft_engine_close(engine);
        }
}
