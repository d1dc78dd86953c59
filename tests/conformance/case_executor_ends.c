/* SPDX-License-Identifier: Apache-2.0 */

/* How calls of the executor end: results and failures, breakers, time, and what is counted. */

#include "executor_stage.h"

#include "base/arena.h"
#include "base/buf.h"
#include "engine/batch/batch.h"
#include "engine/flow/flow.h"

#include <stdlib.h>

/* ---- Results --------------------------------------------------------------------------------- */

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
    stage_begin(f);
    stage.known[0].setting.response_max = 8 << 20;
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        id[i] = stage_call(f, "one");
        stage_turns(2);
        is_int(stage.transfer[i].call.response_max, 8 << 20, "the endpoint says how large");
    }
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        stage_answer(&stage.transfer[i], 200, "text/plain", large_body(f, row[i].c, row[i].json));
    stage_turns(6);
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_execution shown = describe(f, &id[i]);
        is_int(shown.state, WEFT_STATE_SUCCEEDED, "an answer of 8 MiB is a result");
        const char *result = result_text(f, &id[i]);
        ok(result && strstr(result, row[i].member), "with %s", row[i].member);
        is_int(shown.result_size, result ? strlen(result) : 0, "which is whole");
    }
    stage_finish(f->a);
}

/* The lines of a batch are read in parts, which results must not swell. */
CASE(executor_large_answers_are_read_one_by_one)
{
    enum { LINES = 5 };
    stage_begin(f);
    stage.known[0].setting.response_max = 8 << 20;
    struct weft_node node[LINES] = {0};
    struct weft_id id[LINES];
    for (int i = 0; i < LINES; i++)
        node[i] = (struct weft_node){.name = weft_arena_printf(f->arena, "line-%d", i),
                                     .spec = stage_spec("{\"endpoint\":\"one\"}")};
    struct weft_flow_spec spec = {.nodes = node, .node_count = LINES};
    struct weft_flow_result flow = {.node = id};
    is_int(weft_engine_flow_submit(f->a, "default", &spec, 1, f->arena, &flow, &f->err), WEFT_OK,
           "the flow is submitted");
    stage_turns(2);
    is_int(stage.calls, LINES, "its calls begin");
    for (int i = 0; i < LINES && i < (int)stage.calls; i++)
        stage_answer(&stage.transfer[i], 200, "text/plain",
                     i < 3 ? large_body(f, 'x', false) : "a small one");
    stage_turns(6);
    static const size_t counts[] = {1, 1, 1, 2};
    struct weft_batch_page page = {.good = true, .members = LINES, .bytes = 1 << 20};
    for (size_t i = 0; i < WEFT_LEN(counts); i++) {
        is_int(weft_engine_batch_answers(f->b, &flow.id, &page, f->arena, &f->err), WEFT_OK,
               "a page");
        is_int(page.count, counts[i], "page %zu ends with the answer that makes it large", i);
        is_int(page.last, i + 1 == WEFT_LEN(counts), "and says whether there are more");
    }
    stage_finish(f->a);
}

CASE(executor_bounds_what_is_no_stream)
{
    static const struct weft_crowd_end stopped = {.status = 200, .sent = true, .aborted = true};
    stage_begin(f);
    struct weft_spec spec = stage_spec("{\"endpoint\":\"one\",\"stream\":true,\"body\":{}}");
    struct weft_id id = submit_ok(f, &spec);
    stage_turns(2);
    const struct weft_crowd_call *call = &stage.transfer[0].call;
    is_int(call->response_max, 8 << 20, "a stream may be longer than what it folds into");
    bool enough = false;
    call->ops->head(call->context, 200, NULL, 0);
    ok(call->ops->data(call->context, large_body(f, 'x', false), 1 << 20, &enough),
       "as much as the endpoint allows");
    ok(!call->ops->data(call->context, "x", 1, &enough) && !enough, "but not a byte more");
    stage_end(&stage.transfer[0], &stopped);
    stage_turns(1);
    struct weft_execution failed = describe(f, &id);
    is_int(failed.state, WEFT_STATE_FAILED, "the call is over, and not given back");
    is_str(failed.error_class, "http_too_large", "because of its answer");
    ok(strstr(failed.error_message, "1048576 bytes") != NULL, "%s", failed.error_message);
    stage_finish(f->a);
}

/* What came makes no sense, so data() stops the call: it must not be made again and again. */
CASE(executor_fails_broken_streams)
{
    static const struct weft_crowd_end stopped = {.status = 200, .sent = true, .aborted = true};
    static const struct weft_crowd_header header[] = {{"Content-Type", "text/event-stream"}};
    static const char bytes[] =
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[]}\n\n"
        "data: {\"broken\n\n";
    stage_begin(f);
    struct weft_spec spec = stage_spec("{\"endpoint\":\"one\",\"stream\":true,\"body\":{}}");
    struct weft_id id = submit_ok(f, &spec);
    stage_turns(2);
    const struct weft_crowd_call *call = &stage.transfer[0].call;
    bool enough = false;
    call->ops->head(call->context, 200, header, WEFT_LEN(header));
    ok(!call->ops->data(call->context, bytes, strlen(bytes), &enough) && !enough,
       "an event that is not JSON");
    stage_end(&stage.transfer[0], &stopped);
    stage_turns(1);
    struct weft_execution failed = describe(f, &id);
    is_int(failed.state, WEFT_STATE_FAILED, "the call has failed");
    is_str(failed.error_class, "http_protocol", "because of its answer");
    stage_finish(f->a);
}

CASE(executor_fails_without_memory)
{
    static const struct weft_crowd_end stopped = {.status = 200, .sent = true, .aborted = true};
    enum { TOO_MUCH = 257 << 20 }; /* WEFT_EXECUTOR_BYTES and more; it is not looked at */
    stage_begin(f);
    struct weft_id id = stage_call(f, "one");
    stage_turns(2);
    const struct weft_crowd_call *call = &stage.transfer[0].call;
    bool enough = false;
    call->ops->head(call->context, 200, NULL, 0);
    ok(!call->ops->data(call->context, "x", TOO_MUCH, &enough) && !enough, "there is no room");
    stage_end(&stage.transfer[0], &stopped);
    stage_turns(1);
    struct weft_execution failed = describe(f, &id);
    is_int(failed.state, WEFT_STATE_DELAYED, "a GET is made again later");
    expect_last_attempt(f, &id,
                        &(struct weft_attempt){.ended = "failed", .error_class = "http_memory"});
    is_int(stage_health("one").breaker, WEFT_ENDPOINT_CLOSED, "the endpoint is not to blame");
    id = stage_call(f, "one");
    stage_turns(2);
    stage_answer(&stage.transfer[1], 200, "text/plain", "x");
    stage_turns(1);
    is_int(state_of(f, &id), WEFT_STATE_SUCCEEDED, "there is room again");
    stage_finish(f->a);
}

CASE(executor_folds_streams)
{
    stage_begin(f);
    struct weft_spec spec = stage_spec("{\"endpoint\":\"one\",\"stream\":true,\"body\":{}}");
    struct weft_id id = submit_ok(f, &spec);
    stage_turns(2);
    stage_answer(
        &stage.transfer[0], 200, "text/event-stream",
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,"
        "\"delta\":{\"role\":\"assistant\",\"content\":\"He\"}}]}\n\n"
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,"
        "\"delta\":{\"content\":\"llo\"},\"finish_reason\":\"stop\"}]}\n\n"
        "data: [DONE]\n\n");
    stage_turns(1);
    const char *result = result_text(f, &id);
    ok(result && strstr(result, "\"content\":\"Hello\""), "the stream is one answer: %s", result);
    id = submit_ok(f, &spec);
    stage_turns(2);
    stage_answer(&stage.transfer[1], 200, "text/event-stream",
                 "data: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n");
    stage_turns(1);
    is_str(describe(f, &id).error_class, "http_503", "an error within a stream is a failure");
    stage_finish(f->a);
}

/* ---- Failures -------------------------------------------------------------------------------- */

CASE(executor_repeats_what_may_be_repeated)
{
    stage_begin(f);
    struct weft_id get = stage_call(f, "one");
    struct weft_spec spec = stage_spec("{\"endpoint\":\"one\",\"body\":{}}");
    struct weft_id post = submit_ok(f, &spec);
    stage_turns(2);
    stage_answer_all(503, "{\"busy\":true}");
    stage_turns(1);
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
    stage_turns(2);
    struct weft_transfer *last = &stage.transfer[stage.calls - 1];
    const struct weft_crowd_header header[] = {{"Retry-After", "7"}};
    last->call.ops->head(last->call.context, 429, header, 1);
    stage_end(last, &(struct weft_crowd_end){.status = 429, .sent = true});
    stage_turns(1);
    again = describe(f, &limited);
    is_int(again.state, WEFT_STATE_DELAYED, "429 says that it did not act on the POST");
    is_int(again.run_at_us - f->now_us, 7 * WEFT_SECOND, "Retry-After beats the backoff");
    stage_finish(f->a);
}

CASE(executor_fails_what_cannot_be_sent)
{
    stage_begin(f);
    stage.known[0].setting.idempotency_header = "X-Key";
    struct weft_spec spec = stage_spec("{\"endpoint\":\"one\",\"headers\":{\"x-key\":\"mine\"}}");
    struct weft_id id = submit_ok(f, &spec);
    stage_turns(3);
    is_int(stage.calls, 0, "no call begins");
    struct weft_execution failed = describe(f, &id);
    is_int(failed.state, WEFT_STATE_FAILED, "a header of the endpoint may not be given");
    is_str(failed.error_class, "http_payload", "the payload is to blame");
    stage_finish(f->a);
}

/* ---- Breakers -------------------------------------------------------------------------------- */

/* Waits until the open breaker lets one call begin, which is the probe. */
static struct weft_transfer *next_probe(void)
{
    weft_usec until_us = weft_boot_us() + 60 * WEFT_SECOND;
    while (stage.open == 0 && weft_boot_us() < until_us)
        stage_turns(1);
    stage_turns(3);
    is_int(stage.open, 1, "one call begins, and no other beside it");
    return &stage.transfer[stage.calls - 1];
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
    stage_begin(f);
    size_t bad = stage_break(f);
    struct weft_spec spec = stage_spec("{\"endpoint\":\"one\",\"stream\":true,\"body\":{}}");
    for (int i = 0; i < 4; i++)
        (void)submit_ok(f, &spec);
    uint64_t failed = stage_health("one").failed;

    struct weft_transfer *probe = next_probe();
    begin_answer(probe, "application/json", "{\"half\":");
    stage_turns(2);
    is_int(stage_health("one").breaker, WEFT_ENDPOINT_HALF_OPEN, "its status line decides nothing");
    stage_end(probe, &broken);
    stage_turns(1);
    is_int(stage_health("one").breaker, WEFT_ENDPOINT_OPEN, "a body that breaks off is a failure");
    is_int(stage_health("one").failed, failed + 1, "which is counted");

    probe = next_probe();
    stage_answer(probe, 200, "text/event-stream",
                 "data: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n");
    stage_turns(1);
    is_int(stage_health("one").breaker, WEFT_ENDPOINT_OPEN, "so is an error within a stream");

    probe = next_probe();
    stage_answer(probe, 200, "application/json", "1");
    stage_turns(3);
    struct weft_endpoint_health health = stage_health("one");
    is_int(health.breaker, WEFT_ENDPOINT_CLOSED, "a whole answer closes it");
    is_int(health.answers[1] + health.answers[4], bad + 2, "and each answer counts once");
    is_int(stage.open, 1, "the other call begins");
    stage_answer_all(200, "1");
    stage_turns(1);
    is_int(stage_health("one").answers[1], health.answers[1] + 1, "and is counted once");
    stage_finish(f->a);
}

/* ---- Metrics --------------------------------------------------------------------------------- */

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
    stage_begin(f);
    (void)stage_call(f, "one");
    stage_turns(2);
    ok(shows(f, "weft_calls_in_flight{" ONE "} 1"), "a call under way");
    ok(shows(f, "weft_call_breaker_state{" ONE "} 0"), "its breaker is closed");
    stage_answer_all(200, "1");
    (void)stage_call(f, "one");
    stage_turns(3);
    stage_end(&stage.transfer[1],
              &(struct weft_crowd_end){.failure = WEFT_HTTP_TIMEOUT, .sent = true});
    stage_turns(1);
    ok(shows(f, "weft_calls_total{" ONE ",code=\"200\"} 1"), "an answer counts by its status");
    ok(shows(f, "weft_calls_total{" ONE ",code=\"http_timeout\"} 1"), "a failure by its class");
    ok(shows(f, "weft_calls_in_flight{" ONE "} 0"), "none is under way");
    size_t bad = stage_break(f);
    ok(shows(f, weft_arena_printf(f->arena, "weft_calls_total{" ONE ",code=\"500\"} %zu", bad)),
       "each bad answer counts");
    ok(shows(f, "weft_call_breaker_state{" ONE "} 2"), "the breaker is open");
    stage_finish(f->a);
}

CASE(executor_bounds_its_metrics)
{
    stage_begin(f);
    enum { CODES = 40, SHOWN = 24 }; /* WEFT_CALL_CODES */
    stage.known[0].setting.max_in_flight = 1;
    for (int i = 0; i < CODES; i++) {
        (void)stage_call(f, "one");
        stage_turns(3);
        stage_answer_all(400 + i % 99, "1"); /* statuses that say nothing bad of the endpoint */
        stage_turns(1);
    }
    ok(shows(f, "weft_calls_total{" ONE ",code=\"400\"} 1"), "the first codes have lines");
    ok(shows(f, weft_arena_printf(f->arena, "weft_calls_total{" ONE ",code=\"other\"} %d",
                                  CODES - SHOWN)),
       "the rest share one");
    stage_finish(f->a);
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
    stage_begin(f);
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_policy policy = {.attempt_timeout_ms = row[i].attempt_ms};
        struct weft_spec spec = stage_spec("{\"endpoint\":\"one\",\"body\":{}}");
        spec.policy = &policy;
        spec.deadline_us = row[i].deadline_ms ? f->now_us + row[i].deadline_ms * WEFT_MS : 0;
        struct weft_id id = submit_ok(f, &spec);
        stage_turns(2);
        struct weft_transfer *last = &stage.transfer[stage.calls - 1];
        is_int(last->call.total_ms, row[i].total_ms,
               "of %d ms for the attempt and %d to the deadline", (int)row[i].attempt_ms,
               (int)row[i].deadline_ms);
        stage_end(last,
                  &(struct weft_crowd_end){.failure = WEFT_HTTP_TIMEOUT,
                                           .sent = true,
                                           .text = "the call was not over",
                                           .phases = {.total_us = last->call.total_ms * WEFT_MS}});
        stage_turns(1);
        struct weft_execution failed = describe(f, &id);
        is_str(failed.error_class, "http_timeout", "a timeout of the call, not of the attempt");
        is_int(failed.state, WEFT_STATE_FAILED, "so a POST is not made again");
        ok(!row[i].until || strstr(failed.error_message, row[i].until), "%s", failed.error_message);
    }
    stage_finish(f->a);
}

/* What was cut short says nothing about the endpoint; a timeout of its own does. */
CASE(executor_blames_no_endpoint_for_short_attempts)
{
    stage_begin(f);
    for (int i = 0; i < 30; i++) {
        bool cut = i < 20;
        struct weft_spec spec = stage_spec("{\"endpoint\":\"one\",\"body\":{}}");
        spec.policy = cut ? &(struct weft_policy){.attempt_timeout_ms = 100} : NULL;
        (void)submit_ok(f, &spec);
        stage_turns(3);
        if (stage.open == 0)
            break;
        const struct weft_crowd_end end = {
            .failure = WEFT_HTTP_TIMEOUT,
            .sent = true,
            .phases = {.total_us = cut ? 80 * WEFT_MS : 2 * WEFT_SECOND}};
        stage_end(&stage.transfer[stage.calls - 1], &end);
        stage_turns(1);
        if (cut)
            is_int(stage_health("one").breaker, WEFT_ENDPOINT_CLOSED, "a short attempt");
    }
    is_int(stage_health("one").breaker, WEFT_ENDPOINT_OPEN,
           "timeouts of the endpoint open the breaker");
    stage_finish(f->a);
}
