/* SPDX-License-Identifier: Apache-2.0 */

/* The cycles of the executor: what is claimed, what begins, what becomes of leases. */

#include "executor_stage.h"

#include "base/arena.h"
#include "base/err.h"
#include "engine/engine_state.h"
#include "engine/flow/flow.h"

#include <stdlib.h>

/* ---- Results --------------------------------------------------------------------------------- */

CASE(executor_carries_out_a_call)
{
    stage_begin(f);
    struct weft_id id = stage_call(f, "one");
    stage_turns(2);
    is_int(stage.calls, 1, "the call begins");
    is_str(stage.transfer[0].url, "http://127.0.0.1:1/v1/x", "at the endpoint");
    is_str(stage.transfer[0].method, "GET", "without a body it is a GET");
    is_int(stage.transfer[0].call.total_ms, 4000, "with the timeouts of the endpoint");
    struct weft_execution running = describe(f, &id);
    is_int(running.state, WEFT_STATE_RUNNING, "its lease is durable by then");
    is_str(running.worker, "http-x", "and the executor's");
    stage_answer(&stage.transfer[0], 200, "application/json; charset=utf-8", "{\"n\": 1.50 }");
    stage_turns(1);
    is_int(state_of(f, &id), WEFT_STATE_SUCCEEDED, "its end is written by the next cycle");
    is_str(result_text(f, &id),
           "{\"status\":200,\"headers\":{\"content-type\":\"application/json; charset=utf-8\","
           "\"x-request-id\":\"r1\"},\"body\":{\"n\": 1.50 }}",
           "the body is kept byte for byte");
    stage_finish(f->a);
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
    stage_begin(f);
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_id id = stage_call(f, "one");
        stage_turns(2);
        stage_answer(&stage.transfer[i], 200, "text/plain", row[i].body);
        stage_turns(1);
        const char *result = result_text(f, &id);
        ok(result && strstr(result, row[i].shown), "%s in %s", row[i].shown, result);
    }
    stage_finish(f->a);
}

/* ---- Which are claimed ----------------------------------------------------------------------- */

CASE(executor_waits_for_the_endpoint)
{
    stage_begin(f);
    struct weft_id id = stage_call(f, "two");
    stage_turns(3);
    is_int(state_of(f, &id), WEFT_STATE_READY, "without its endpoint it stays ready");
    is_int(stage.calls, 0, "and no call begins");
    (void)stage_endpoint(1, "two");
    struct weft_id other = stage_call(f, "two"); /* its wake is as good as that of the poll */
    stage_turns(3);
    is_int(state_of(f, &id), WEFT_STATE_RUNNING, "it runs when the endpoint is made");
    stage.known[1].there = false;
    stage_answer_all(200, "1");
    stage_turns(2);
    is_int(state_of(f, &id), WEFT_STATE_SUCCEEDED, "its call ends without the endpoint");
    is_int(state_of(f, &other), WEFT_STATE_SUCCEEDED, "so does the other");
    stage_finish(f->a);
}

CASE(executor_waits_for_the_secret)
{
    stage_begin(f);
    stage.known[0].endpoint.auth.name = "X-Key";
    stage.known[0].setting.secret = "key";
    struct weft_id id = stage_call(f, "one");
    stage_turns(3);
    is_int(state_of(f, &id), WEFT_STATE_READY, "without the secret of the endpoint it stays ready");
    stage.known[0].endpoint.auth.name = NULL;
    stage.known[0].endpoint.version++;
    (void)stage_call(f, "one");
    stage_turns(3);
    is_int(stage.open, 2, "both begin when the endpoint names none");
    stage_finish(f->a);
}

CASE(executor_keeps_limits_of_endpoints)
{
    stage_begin_with(f, f->a, 10);
    struct weft_endpoint *one = stage_endpoint(0, "one");
    one->max_in_flight = 4;
    for (int i = 0; i < 20; i++)
        (void)stage_call(f, "one");
    stage_turns(4);
    is_int(stage.open, 4, "no more than the endpoint takes at once");
    (void)stage_endpoint(1, "two");
    for (int i = 0; i < 20; i++)
        (void)stage_call(f, "two");
    stage_turns(4);
    is_int(stage.open, 10, "no more than the executor makes at once");
    size_t before = stage.calls;
    while (stage.open > 0) {
        stage_answer_all(200, "1");
        stage_turns(4);
        ok(stage.open <= 10, "never more");
    }
    ok(before < stage.calls, "the ends make room");
    is_int(stage.calls, 40, "all are made");
    is_int(count_rows(f, &(struct weft_filter){.state = WEFT_STATE_SUCCEEDED}), 40, "and succeed");
    stage_finish(f->a);
}

CASE(executor_shares_calls_among_endpoints)
{
    stage_begin_with(f, f->a, 6);
    static const char *const name[] = {"one", "two", "three"};
    for (size_t i = 0; i < WEFT_LEN(name); i++) {
        (void)stage_endpoint(i, name[i]);
        for (int k = 0; k < (i == 0 ? 60 : 6); k++)
            (void)stage_call(f, name[i]);
    }
    size_t of_two = 0, rounds = 0;
    for (; rounds < 4; rounds++) {
        stage_turns(3);
        stage_answer_all(200, "1");
    }
    stage_turns(1);
    for (size_t i = 0; i < WEFT_LEN(name); i++) {
        struct weft_endpoint_health health = {0};
        weft_executor_health(stage.executor, "default", name[i], &health);
        of_two += i > 0 ? health.answers[1] : 0;
    }
    is_int(of_two, 12, "a long queue of one endpoint does not hold up the others");
    stage_finish(f->a);
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
    stage_begin_with(f, engine, 0);
    f->a = engine;
    ok(stage_break(f) < 50, "failures open the breaker");
    size_t calls = stage.calls;
    for (int i = 0; i < 10; i++)
        (void)stage_call(f, "one");
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
    stage_finish(engine);
    weft_engine_close(engine);
}

/* A lane that is full is looked at once, and not again before its room comes. */
CASE(executor_rests_where_a_lane_is_full)
{
    static struct weft_fault fault;
    fault = (struct weft_fault){.hook = count_statement};
    struct weft_engine *engine = open_faulty(f, &fault), *plain = f->a;
    stage_begin_with(f, engine, 0);
    f->a = engine;
    struct weft_lane lane = {.name = "default", .max_running = 2};
    put_lane(f, engine, &lane);
    for (int i = 0; i < 5; i++)
        (void)stage_call(f, "one");
    stage_turns(6);
    is_int(stage.open, 2, "as many calls as the lane runs");
    uint64_t before = stage.statements;
    stage_turns(100);
    is_int(stage.statements - before, 0, "no statement while it is full");
    for (int i = 0; i < 3; i++) {
        stage_answer_all(200, "1");
        stage_turns(4);
    }
    is_int(stage.calls, 5, "each end makes room");
    f->a = plain;
    stage_finish(engine);
    weft_engine_close(engine);
}

CASE(executor_makes_no_calls_to_urls_of_their_own)
{
    stage_begin(f);
    struct weft_spec spec = stage_spec("{\"url\":\"https://example.com/\"}");
    struct weft_id id = submit_ok(f, &spec);
    stage_turns(3);
    is_int(state_of(f, &id), WEFT_STATE_READY, "unless it was told to");
    stage_finish(f->a);
}

CASE(executor_serves_every_namespace)
{
    stage_begin(f);
    struct weft_spec spec = stage_spec("{\"endpoint\":\"one\"}");
    static const char *const ns[] = {"alpha", "beta", "default"};
    for (size_t i = 0; i < WEFT_LEN(ns); i++) {
        spec.ns = ns[i];
        (void)submit_ok(f, &spec);
    }
    stage_turns(3);
    is_int(stage.open, 3, "a call of each begins");
    stage_answer_all(200, "1");
    stage_turns(2);
    for (size_t i = 0; i < WEFT_LEN(ns); i++)
        is_int(count_rows(f, &(struct weft_filter){.ns = ns[i], .state = WEFT_STATE_SUCCEEDED}), 1,
               "namespace %s has its result", ns[i]);
    stage_finish(f->a);
}

/* ---- Flows ----------------------------------------------------------------------------------- */

CASE(executor_takes_parts_of_results)
{
    stage_begin(f);
    stage.known[0].setting.response_max = 8 << 20;
    static const char check[] =
        "{\"endpoint\":\"one\",\"body\":{\"was\":null,\"n\":0},"
        "\"from\":{\"/body/was\":\"draft#/body/text\"}}";
    static const char wrong[] =
        "{\"endpoint\":\"one\",\"body\":{\"was\":null},"
        "\"from\":{\"/body/was\":\"draft#/body/none\"}}";
    static const char *const after[] = {"draft"};
    struct weft_node node[] = {
        {.name = "draft", .spec = stage_spec("{\"endpoint\":\"one\"}")},
        {.name = "check", .spec = stage_spec(check), .after = after, .after_count = 1},
        {.name = "wrong", .spec = stage_spec(wrong), .after = after, .after_count = 1},
    };
    struct weft_id id[WEFT_LEN(node)];
    struct weft_flow_spec spec = {.nodes = node, .node_count = WEFT_LEN(node)};
    struct weft_flow_result flow = {.node = id};
    is_int(weft_engine_flow_submit(f->a, "default", &spec, 1, f->arena, &flow, &f->err), WEFT_OK,
           "the flow is submitted");
    stage_turns(2);
    /* More than comes along with a claim, and than a worker may give: it is read by its id. */
    enum { LARGE = 5 << 20 };
    char *body = weft_arena_alloc(f->arena, LARGE + 64, 1);
    memset(body, 'x', LARGE);
    memcpy(body, "{\"text\":\"", 9); /* NOLINT(bugprone-not-null-terminated-result): more follows */
    body[LARGE] = '"';
    body[LARGE + 1] = '}';
    stage_answer(&stage.transfer[0], 200, "application/json", body);
    stage_turns(3);
    is_int(stage.calls, 2, "the call after it begins");
    const struct weft_crowd_call *sent = &stage.transfer[1].call;
    is_int(sent->body_size, strlen("{\"was\":\"\",\"n\":0}") + LARGE - 9,
           "its body has the part, however large");
    struct weft_execution failed = describe(f, &id[2]);
    is_str(failed.error_class, "http_from", "a pointer that leads nowhere fails the node");
    is_int(failed.state, WEFT_STATE_FAILED, "for good");
    stage_finish(f->a);
}

/* ---- Leases ---------------------------------------------------------------------------------- */

CASE(executor_aborts_what_is_cancelled)
{
    stage_begin(f);
    struct weft_id id = stage_call(f, "one"), kept = stage_call(f, "one");
    stage_turns(2);
    is_int(stage.open, 2, "both are under way");
    is_int(steer_id(f, WEFT_STEER_CANCEL, &id).err.rc, WEFT_OK, "one is cancelled");
    stage_turns(1);
    size_t at = stage.transfer[0].aborted ? 0 : 1;
    ok(stage.transfer[at].aborted && !stage.transfer[1 - at].aborted, "its transfer is aborted");
    stage_end(&stage.transfer[at], &(struct weft_crowd_end){.aborted = true});
    stage_turns(1);
    is_int(state_of(f, &id), WEFT_STATE_CANCELLED, "it stays cancelled");
    struct weft_lane lane = {.name = "default", .max_running = 2};
    put_lane(f, f->a, &lane);
    (void)stage_call(f, "one");
    stage_turns(2);
    is_int(stage.open, 2, "its draining lease was let go, so the lane has room");
    stage_answer_all(200, "1");
    stage_turns(1);
    is_int(state_of(f, &kept), WEFT_STATE_SUCCEEDED, "the other one goes on");
    stage_finish(f->a);
}

CASE(executor_stops_and_gives_back)
{
    stage_begin(f);
    struct weft_id ends = stage_call(f, "one"), cut = stage_call(f, "one");
    stage_turns(2);
    weft_executor_quiesce(stage.executor, weft_boot_us() + WEFT_SECOND);
    struct weft_id later = stage_call(f, "one");
    stage_turns(2);
    is_int(stage.calls, 2, "no call begins any more");
    stage_answer(&stage.transfer[0], 200, "text/plain", "x");
    stage_turns(1);
    weft_executor_quiesce(stage.executor, 0); /* the first word holds */
    is_int(stage.transfer[1].aborted, false, "what is under way has its grace");
    stage_end(&stage.transfer[1], &(struct weft_crowd_end){.aborted = true});
    stage_turns(2);
    bool first = state_of(f, &ends) == WEFT_STATE_SUCCEEDED;
    is_int(state_of(f, first ? &cut : &ends), WEFT_STATE_READY,
           "what the stop cuts off is ready at once");
    is_int(state_of(f, first ? &ends : &cut), WEFT_STATE_SUCCEEDED, "what ended has its result");
    is_int(state_of(f, &later), WEFT_STATE_READY, "what was not begun waits");
    stage_finish(f->a);
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
            stage_begin_with(f, engine, 0);
            f->a = engine;
            struct weft_id id = stage_call(f, "one");
            stage_turns(2);
            stage_answer_all(200, "1");
            fault.kind = kinds[k];
            fault.calls = 0;
            fault.strike_at = strike;
            weft_usec until_us = weft_boot_us() + 10 * WEFT_SECOND;
            while (state_of(f, &id) != WEFT_STATE_SUCCEEDED && weft_boot_us() < until_us)
                stage_turns(1);
            is_int(state_of(f, &id), WEFT_STATE_SUCCEEDED, "fault %zu at call %d: the end is kept",
                   k, (int)strike);
            is_int(stage.calls, 1, "and the call is made once");
            fault.kind = WEFT_FAULT_NONE;
            f->a = plain;
            stage_finish(engine);
            weft_engine_close(engine);
        }
}
