/* SPDX-License-Identifier: Apache-2.0 */

/* Erasure: what goes, what is scrubbed, what stays, and what verification says. */

#include "erasing.h"

#include "direct.h"
#include "flows.h"

#include "base/arena.h"
#include "base/id.h"
#include "engine/erase/erase.h"
#include "engine/flow/flow.h"
#include "weft/admin.h"

#include <string.h>

static struct weft_spec of(const char *tenant, const char *kind)
{
    return (struct weft_spec){.kind = kind,
                              .tenant = tenant,
                              .payload = tenant,
                              .payload_size = tenant ? strlen(tenant) : 0};
}

CASE(erase_takes_all_of_a_tenant)
{
    struct weft_spec ready = of(CANARY, "ready"), other = of("other", "other"),
                     none = of(NULL, "x");
    struct weft_spec later = of(CANARY, "later"), keyed = of(CANARY, "keyed");
    later.delay_ms = 100000;
    keyed.key = "order-of-" CANARY;
    struct weft_id mine = submit_ok(f, &ready), delayed = submit_ok(f, &later);
    struct weft_id with_key = submit_ok(f, &keyed);
    struct weft_id theirs = submit_ok(f, &other), nobodys = submit_ok(f, &none);
    struct weft_spec run = of(CANARY, "run"), failed = of(CANARY, "failed");
    struct weft_claimed running = start(f, &run);
    struct weft_claimed ended = bring(f, WEFT_STATE_FAILED, &failed);
    struct weft_erasure order =
        erase_ask(f, &(struct weft_erasure_spec){.tenant = CANARY, .reason = "asked"});
    struct weft_erasure receipt = erase_to_the_end(f, &order.id);
    is_int(erase_counted(&receipt, "removed"), 5, "all of its executions are removed");
    is_int(erase_counted(&receipt, "cancelled"), 4, "those that lived were cancelled first");
    is_int(erase_counted(&receipt, "key"), 1, "its key is free");
    is_int(erase_counted(&receipt, "name"), 1, "its name is gone");
    const struct weft_id gone[] = {mine, delayed, with_key, running.id, ended.id};
    for (size_t i = 0; i < WEFT_LEN(gone); i++)
        is_int(state_of(f, &gone[i]), WEFT_STATE_NONE, "execution %zu is gone", i);
    is_int(state_of(f, &theirs), WEFT_STATE_READY, "another tenant's is there");
    is_int(state_of(f, &nobodys), WEFT_STATE_READY, "so is one without a tenant");
    is_int(complete(f, f->a, &running, "1").err.rc, WEFT_NOT_FOUND, "the worker is told");
    is_int((int64_t)erase_verify(f, &order.id).remains, 0, "nothing remains");
    ok(receipt.digest && receipt.unreached, "the receipt says what it could not reach");
    struct weft_id again = submit_ok(f, &keyed);
    is_str(describe(f, &again).tenant, CANARY, "the tenant may come back");
    is_int((int64_t)erase_verify(f, &order.id).remains, 0, "what came later does not count");
}

CASE(erase_says_when_a_row_is_put_back)
{
    struct weft_spec spec = of(CANARY, "mine");
    (void)submit_ok(f, &spec);
    struct weft_erasure order =
        erase_ask(f, &(struct weft_erasure_spec){.tenant = CANARY, .reason = "asked"});
    struct weft_erasure asking = {0};
    const struct weft_erasure_asking early = {.id = order.id, .ns = "default"};
    is_int(weft_engine_erasure_verify(f->a, &early, f->arena, &asking, &f->err), WEFT_CONFLICT,
           "verification has to wait");
    (void)erase_to_the_end(f, &order.id);
    (void)submit_ok(f, &spec);
    run_sql_of(f, "UPDATE weft.execution SET created = 0", "UPDATE execution SET created = 0");
    is_int((int64_t)erase_verify(f, &order.id).remains, 1, "the row is found");
    run_sql_of(f, "UPDATE weft.execution SET created = 4000000000000000",
               "UPDATE execution SET created = 4000000000000000");
}

/* A tenant that weft does not know: executions without a tenant are not its. */
CASE(erase_of_nobody_touches_nothing)
{
    struct weft_id id = submit_job(f);
    struct weft_erasure order =
        erase_ask(f, &(struct weft_erasure_spec){.tenant = "nobody", .reason = "asked"});
    struct weft_erasure receipt = erase_to_the_end(f, &order.id);
    is_int(erase_counted(&receipt, "removed"), 0, "nothing is removed");
    is_int(state_of(f, &id), WEFT_STATE_READY, "the execution is there");
}

CASE(erase_keeps_the_name_of_a_tenant_that_goes_on)
{
    struct weft_spec spec = of(CANARY, "mine");
    struct weft_id before = submit_ok(f, &spec);
    struct weft_erasure order =
        erase_ask(f, &(struct weft_erasure_spec){.tenant = CANARY, .reason = "asked"});
    forward_ms(f, 1);
    struct weft_id after = submit_ok(f, &spec);
    struct weft_erasure receipt = erase_to_the_end(f, &order.id);
    is_int(state_of(f, &before), WEFT_STATE_NONE, "what was there is gone");
    is_int(state_of(f, &after), WEFT_STATE_READY, "what came later is there");
    is_str(describe(f, &after).tenant, CANARY, "under its name");
    is_int(erase_counted(&receipt, "name"), 0, "the name stays");
    ok(strstr(receipt.unreached, "name of the tenant stays") != NULL, "the receipt says so");
    is_int((int64_t)erase_verify(f, &order.id).remains, 0, "nothing of before remains");
}

CASE(erase_by_tag_scrubs_members_that_others_share)
{
    static const struct weft_tag mine[] = {{"user", "42"}}, theirs[] = {{"user", "421"}};
    struct weft_spec tagged = {.kind = "k", .tags = mine, .tag_count = 1};
    struct weft_spec like_it = {.kind = "k", .tags = theirs, .tag_count = 1};
    struct weft_id gone = submit_ok(f, &tagged), kept = submit_ok(f, &like_it);
    struct drawn flow;
    draw(&flow, "a; b:a; c:b");
    node_of(&flow, "a")->spec.tags = mine;
    node_of(&flow, "a")->spec.tag_count = 1;
    node_of(&flow, "a")->spec.payload = CANARY;
    node_of(&flow, "a")->spec.payload_size = strlen(CANARY);
    submit_drawn(f, &flow);
    struct weft_claimed lease = claim_node(f, "a");
    (void)fail_as(f, f->a, &lease,
                  &(struct weft_failure){.message = CANARY,
                                         .detail = "{\"for\":\"" CANARY "\"}",
                                         .retry_after_ms = -1});
    end_node(f, &flow, "a", true);
    end_node(f, &flow, "b", true);
    ok(attempts(f, &lease.id).item[0].error_detail != NULL, "a failed attempt has its detail");
    struct weft_erasure order =
        erase_ask(f, &(struct weft_erasure_spec){.tag = "user:42", .reason = "asked"});
    struct weft_erasure receipt = erase_to_the_end(f, &order.id);
    is_int(erase_counted(&receipt, "scrubbed"), 1, "the member is scrubbed");
    is_int(erase_counted(&receipt, "removed"), 1, "the execution outside of it is removed");
    is_int(state_of(f, &gone), WEFT_STATE_NONE, "it is gone");
    is_int(state_of(f, &kept), WEFT_STATE_READY, "one with a longer value is there");
    is_str(states(f, &flow), "ssr", "the graph is whole");
    struct weft_execution member = describe(f, id_of(&flow, "a"));
    is_int((int64_t)member.tag_count, 0, "the member has no tags any more");
    ok(!result_text(f, id_of(&flow, "a")), "nor a result");
    ok(!attempts(f, &lease.id).item[0].error_detail, "nor the detail of a failed attempt");
    ok(result_text(f, id_of(&flow, "b")) != NULL, "the next member has its own");
    is_int((int64_t)erase_verify(f, &order.id).remains, 0, "nothing remains");
    end_node(f, &flow, "c", true);
    is_int(flow_state(f, &flow), WEFT_FLOW_SUCCEEDED, "the flow comes to its end");
}

CASE(erase_removes_flows_of_the_subject_alone)
{
    struct drawn flow;
    draw(&flow, "a; b:a");
    node_of(&flow, "a")->spec.tenant = node_of(&flow, "b")->spec.tenant = CANARY;
    submit_drawn(f, &flow);
    struct weft_erasure order =
        erase_ask(f, &(struct weft_erasure_spec){.tenant = CANARY, .reason = "asked"});
    struct weft_erasure receipt = erase_to_the_end(f, &order.id);
    is_int(erase_counted(&receipt, "flows"), 1, "the flow is deleted whole");
    is_int(flow_state(f, &flow), -1, "it is gone");
    is_int(state_of(f, id_of(&flow, "a")), WEFT_STATE_NONE, "with its members");
}

CASE(erase_refuses_what_it_cannot_do)
{
    static const struct weft_erasure_spec bad[] = {
        {.reason = "nothing is named"},
        {.tenant = "a", .tag = "b:c", .reason = "both"},
        {.tag = "no-colon", .reason = "why"},
        {.tenant = "acme"},
        {.tenant = "acme", .reason = "acme has asked"},
        {.tag = "user:42", .reason = "for 42"},
    };
    struct weft_erasure erasure = {0};
    for (size_t i = 0; i < WEFT_LEN(bad); i++)
        is_int(weft_engine_erase(f->a, "default", &bad[i], 0, f->arena, &erasure, &f->err),
               WEFT_INVALID_VALUE, "spec %zu is refused", i);
    const struct weft_erasure_asking unknown = {.ns = "default"};
    is_int(weft_engine_erasure(f->a, &unknown, f->arena, &erasure, &f->err), WEFT_NOT_FOUND,
           "an unknown one is not found");
}

/* A handle of a process that died in the midst: its order goes on elsewhere, step by step. */
CASE(erase_goes_on_where_it_stopped)
{
    enum { MANY = 600 };
    struct weft_spec *spec = weft_new_array(f->arena, struct weft_spec, MANY);
    struct weft_submitted *answer = weft_new_array(f->arena, struct weft_submitted, MANY);
    for (size_t i = 0; i < MANY; i++)
        spec[i] = of(i % 3 ? CANARY : "other", "many");
    is_int(engine_submit(f->a, "default", spec, MANY, answer, &f->err), WEFT_OK, "submit");
    struct weft_erasure order =
        erase_ask(f, &(struct weft_erasure_spec){.tenant = CANARY, .reason = "asked"});
    const struct weft_pass_config brief = {.most_us = 1}; /* one step each */
    struct weft_pass_report report = {.more = true};
    for (int i = 0; i < 200 && erase_read(f, &order.id).state == WEFT_ERASURE_RUNNING; i++) {
        struct weft_engine *engine = open_engine(f);
        is_int(weft_engine_pass(engine, WEFT_SCANNER_ERASURE, &brief, &report, &f->err), WEFT_OK,
               "a step");
        weft_engine_close(engine);
        forward_ms(f, 1000);
    }
    struct weft_erasure receipt = erase_read(f, &order.id);
    is_int(receipt.state, WEFT_ERASURE_DONE, "it is done");
    is_int(erase_counted(&receipt, "removed"), MANY * 2 / 3, "each was removed once");
    is_int(count_rows(f, &(struct weft_filter){.kind = "many"}), MANY / 3, "the others are there");
}
