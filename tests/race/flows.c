/* SPDX-License-Identifier: Apache-2.0 */

#include "flows.h"
#include "direct.h"

#include "base/arena.h"
#include "engine/flow/cascade.h"
#include "engine/flow/flow.h"
#include "engine/job/claim.h"
#include "engine/job/leases.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

void submit(struct race *race, struct drawn *flow)
{
    struct weft_err err = {0};
    const struct weft_flow_spec spec = {.nodes = flow->node, .node_count = flow->count};
    flow->answer.node = flow->id;
    if (engine_flow_submit(race->a, "default", &spec, 1, &flow->answer, &err) ||
        flow->answer.err.rc)
        bail_out("submit: %s %s", err.text, flow->answer.err.text);
}

struct weft_claimed take(struct race *race, const char *name)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_claim_result result = {0};
    struct weft_err err = {0};
    const struct weft_claim claim = {.worker = "worker", .kinds = &name, .kind_count = 1, .max = 2};
    if (weft_engine_claim(race->b, "default", &claim, 1, arena, &result, &err))
        bail_out("claim: %s", err.text);
    is_int(result.count, 1, "%s can be claimed, once", name);
    struct weft_claimed lease = {0};
    if (result.count > 0) {
        lease.id = result.item[0].id;
        lease.epoch = result.item[0].epoch;
    }
    weft_arena_free(arena);
    return lease;
}

void is_in(struct race *race, const struct drawn *flow, const char *name, enum weft_state state)
{
    for (size_t i = 0; i < flow->count; i++)
        if (strcmp(flow->node[i].name, name) == 0) {
            is_str(weft_state_name(state_at(race->b, &flow->id[i])), weft_state_name(state),
                   "%s is %s", name, weft_state_name(state));
            return;
        }
    bail_out("the flow has no node %s", name);
}

void nothing_left(struct race *race)
{
    is_int(raw_int(&race->place, race->raw, "SELECT count(*) FROM weft.completion"), 0,
           "no completion is left");
    is_int(raw_int(&race->place, race->raw,
                   "SELECT count(*) FROM weft.cancel_group WHERE NOT waiting"),
           0, "no group is left");
}

void do_complete(void *context)
{
    struct doer *doer = context;
    struct weft_lease_answer answer = {0};
    const struct weft_complete item = {.id = doer->lease.id, .epoch = doer->lease.epoch};
    doer->rc = engine_complete(doer->engine, &item, 1, &answer, &doer->err);
    if (!doer->rc)
        doer->rc = answer.err.rc;
}

void do_fail(void *context)
{
    struct doer *doer = context;
    struct weft_lease_answer answer = {0};
    const struct weft_failure item = {
        .id = doer->lease.id, .epoch = doer->lease.epoch, .permanent = true};
    doer->rc = engine_fail(doer->engine, &item, 1, &answer, &doer->err);
    if (!doer->rc)
        doer->rc = answer.err.rc;
}

void do_cascade(void *context)
{
    struct doer *doer = context;
    doer->rc = weft_engine_cascade(doer->engine, &doer->flow->answer.id, 1, &doer->err);
}

void do_grow(void *context)
{
    struct doer *doer = context;
    struct weft_flow_submitted answer = {.node = &doer->grown};
    const struct weft_flow_growth growth = {.ns = "default",
                                            .flow = doer->flow->answer.id,
                                            .revision = 1,
                                            .nodes = doer->node,
                                            .node_count = 1};
    doer->rc = engine_flow_grow(doer->engine, &growth, &answer, &doer->err);
}

void do_cancel(void *context)
{
    struct doer *doer = context;
    enum weft_flow_state state;
    const struct weft_flow_cancelling args = {
        .ns = "default", .flow = doer->flow->answer.id, .how = WEFT_FLOW_CANCEL_ALL};
    doer->rc = weft_engine_flow_cancel(doer->engine, &args, &state, NULL, &doer->err);
}

void do_nothing(void *context, const struct weft_id *flow, size_t count)
{
    (void)context;
    (void)flow;
    (void)count;
}

void stop_at(struct stopped *stopped, enum weft_fault_point point, enum weft_stmt stmt,
             void (*run)(void *context), struct doer *doer)
{
    stop_init(&stopped->stop);
    stopped->ambush = (struct ambush){
        .point = point, .stmt = stmt, .act = ambush_stop, .context = &stopped->stop};
    stopped->task = (struct task){.run = run, .context = doer, .ambush = &stopped->ambush};
    task_start(&stopped->task);
    ok(stop_reached(&stopped->stop), "the first stands there");
}

void go_on(struct stopped *stopped, const struct doer *doer)
{
    stop_release(&stopped->stop);
    task_join(&stopped->task);
    ok(doer->rc == WEFT_OK, "the first succeeds%s%s", doer->rc ? ": " : "",
       doer->rc ? doer->err.text : "");
}

void come_by(void (*run)(void *context), struct doer *doer)
{
    struct task task = {.run = run, .context = doer};
    task_start(&task);
    ok(task_finishes(&task), "the second does not wait");
    task_join(&task);
    ok(doer->rc == WEFT_OK, "the second succeeds%s%s", doer->rc ? ": " : "",
       doer->rc ? doer->err.text : "");
}

bool only_on_pg(void)
{
    if (!on_pg())
        tap_skip("SQLite has one writer: no other cascade can run");
    return on_pg();
}
