/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An erasure beside calls about the same execution: each call comes by while a step of the walk has
 * locked the ended executions, or has removed them and has not committed. Nobody waits for long and
 * nothing of the subject is left, whichever came first.
 */

#include "direct.h"
#include "race.h"

#include "base/arena.h"
#include "base/id.h"
#include "engine/erase/erase.h"
#include "engine/job/claim.h"
#include "engine/job/control.h"
#include "engine/job/submit.h"
#include "engine/scan/pass.h"
#include "store/fault/fault.h"
#include "weft/weft.h"

#define TENANT "kanarie"

struct erase_run {
    struct weft_engine *engine;
    enum weft_rc rc;
    struct weft_err err;
};

static void run_erase(void *context)
{
    struct erase_run *run = context;
    struct weft_pass_report report;
    run->rc = weft_engine_pass(run->engine, WEFT_SCANNER_ERASURE, NULL, &report, &run->err);
}

static struct weft_id submit_mine(struct weft_engine *engine)
{
    struct weft_submitted answer = {0};
    struct weft_err err = {0};
    const struct weft_spec spec = {.kind = "mine", .tenant = TENANT};
    is_int(engine_submit(engine, "default", &spec, 1, &answer, &err), WEFT_OK, "submit");
    return answer.id;
}

static struct weft_claimed claim_mine(struct weft_engine *engine)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_claim_result result = {0};
    struct weft_err err = {0};
    const char *kind = "mine";
    const struct weft_claim claim = {
        .worker = "w", .kinds = &kind, .kind_count = 1, .max = 1, .lease_ms = 60000};
    is_int(weft_engine_claim(engine, "default", &claim, 1, arena, &result, &err), WEFT_OK, "claim");
    struct weft_claimed lease = {0};
    if (result.count == 1) {
        lease.id = result.item[0].id;
        lease.epoch = result.item[0].epoch;
    }
    weft_arena_free(arena);
    return lease;
}

static struct weft_id order(struct weft_engine *engine)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_erasure erasure = {0};
    struct weft_err err = {0};
    const struct weft_erasure_spec spec = {.tenant = TENANT, .reason = "race"};
    is_int(weft_engine_erase(engine, "default", &spec, 0, arena, &erasure, &err), WEFT_OK, "order");
    weft_arena_free(arena);
    return erasure.id;
}

/* ---- What comes by --------------------------------------------------------------------------- */

struct visitor {
    struct weft_engine *engine;
    struct weft_claimed lease;
    enum weft_rc rc;
};

static void complete_it(void *context)
{
    struct visitor *visitor = context;
    struct weft_lease_answer answer = {0};
    struct weft_err err = {0};
    const struct weft_complete item = {.id = visitor->lease.id, .epoch = visitor->lease.epoch};
    (void)!engine_complete(visitor->engine, &item, 1, &answer, &err);
    visitor->rc = answer.err.rc;
}

static void replay_it(void *context)
{
    struct visitor *visitor = context;
    struct weft_steered answer = {0};
    struct weft_err err = {0};
    const struct weft_steer item = {.id = visitor->lease.id};
    const struct weft_steering steering = {
        .kind = WEFT_STEER_REPLAY, .ns = "default", .item = &item, .count = 1};
    (void)!engine_steer(visitor->engine, &steering, &answer, &err);
    visitor->rc = answer.err.rc;
}

static void submit_more(void *context)
{
    struct visitor *visitor = context;
    (void)submit_mine(visitor->engine);
    visitor->rc = WEFT_OK;
}

static void claim_any(void *context)
{
    struct visitor *visitor = context;
    (void)claim_mine(visitor->engine);
    visitor->rc = WEFT_OK;
}

/* Goes on until the receipt is there; what was submitted after the request stays. */
static void finish(struct race *race, const struct weft_id *id, int64_t left)
{
    struct weft_arena *arena = weft_arena_new();
    const struct weft_erasure_asking asking = {.id = *id, .ns = "default"};
    struct weft_erasure erasure = {0};
    struct weft_err err = {0};
    struct erase_run run = {.engine = race->a};
    for (int i = 0; i < 100; i++) {
        run_erase(&run);
        is_int(run.rc, WEFT_OK, "a pass");
        race_forward(race, 1000);
        is_int(weft_engine_erasure(race->a, &asking, arena, &erasure, &err), WEFT_OK, "read");
        if (erasure.state == WEFT_ERASURE_DONE)
            break;
    }
    is_int(erasure.state, WEFT_ERASURE_DONE, "it comes to its end");
    is_int(weft_engine_erasure_verify(race->b, &asking, arena, &erasure, &err), WEFT_OK, "verify");
    is_int((int64_t)erasure.remains, 0, "nothing of before remains");
    is_int(raw_int(&race->place, race->raw, "SELECT count(*) FROM weft.execution"), left,
           "only what came later is there");
    weft_arena_free(arena);
}

static void meet(struct race *race, void (*visit)(void *context), enum weft_stmt place, bool more)
{
    struct stop stop;
    (void)submit_mine(race->a);
    struct visitor visitor = {.engine = race->b, .lease = claim_mine(race->b)};
    struct weft_id id = order(race->a);
    struct erase_run run = {.engine = race->a};
    struct ambush ambush = {
        .point = WEFT_FAULT_AFTER_RUN, .stmt = place, .act = ambush_stop, .context = &stop};
    struct task task = {.run = run_erase, .context = &run, .ambush = &ambush};
    struct task beside = {.run = visit, .context = &visitor};
    race_forward(race, 1);
    stop_init(&stop);
    task_start(&task);
    ok(stop_reached(&stop), "the step is in its midst");
    task_start(&beside);
    (void)task_finishes(&beside); /* one that needs the row waits for the end of the step */
    stop_release(&stop);
    task_join(&task);
    task_join(&beside);
    is_int(run.rc, WEFT_OK, "the step succeeds");
    ok(visitor.rc == WEFT_OK || visitor.rc == WEFT_FENCED || visitor.rc == WEFT_NOT_FOUND ||
           visitor.rc == WEFT_NOT_LIVE || visitor.rc == WEFT_CONFLICT || visitor.rc == WEFT_BUSY,
       "the call is answered: %d", (int)visitor.rc);
    finish(race, &id, more);
}

RACE(erase_meets_a_complete)
{
    if (on_pg())
        meet(race, complete_it, WEFT_STMT_ERASE_TAKE, false);
}

RACE(erase_meets_a_replay)
{
    if (on_pg())
        meet(race, replay_it, WEFT_STMT_RETENTION_REMOVE, false);
}

RACE(erase_meets_a_submission)
{
    if (on_pg())
        meet(race, submit_more, WEFT_STMT_ERASE_TAKE, true);
}

RACE(erase_meets_a_claim)
{
    if (on_pg())
        meet(race, claim_any, WEFT_STMT_ERASE_TAKE, false);
}
