/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An erasure beside calls about the same execution: each call comes by while a step of the walk has
 * locked the ended executions, or has removed them and has not committed. No transaction waits for
 * long and nothing of the subject is left, whichever came first. And an erasure beside what is not
 * committed yet: a submission, an intake.
 */

#include "budgets.h"
#include "direct.h"
#include "race.h"
#include "waiting.h"

#include "base/arena.h"
#include "base/id.h"
#include "engine/erase/erase.h"
#include "engine/job/claim.h"
#include "engine/job/control.h"
#include "engine/job/submit.h"
#include "engine/limit/usage.h"
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
    const struct weft_tag tag = {"who", TENANT};
    const struct weft_spec spec = {.kind = "mine", .tenant = TENANT, .tags = &tag, .tag_count = 1};
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

static struct weft_id order_by(struct weft_engine *engine, const struct weft_erasure_spec *spec)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_erasure erasure = {0};
    struct weft_err err = {0};
    is_int(weft_engine_erase(engine, "default", spec, 0, arena, &erasure, &err), WEFT_OK, "order");
    weft_arena_free(arena);
    return erasure.id;
}

static struct weft_id order(struct weft_engine *engine)
{
    return order_by(engine, &(struct weft_erasure_spec){.tenant = TENANT, .reason = "race"});
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

/* Sends a signal. */
struct doing {
    struct weft_engine *engine;
    struct wait_answer made;
    struct signal_answer sent;
};

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

/* ---- Signals --------------------------------------------------------------------------------- */

static void signal_it(void *context)
{
    struct doing *doing = context;
    doing->sent = wait_signal(doing->engine, doing->made.token[0], "late");
}

/* A signal needs the living row: it comes before the end of the execution, or is refused. */
static void meet_signal(struct race *race, enum weft_fault_point point, enum weft_stmt place,
                        bool taken)
{
    struct stop stop;
    (void)submit_mine(race->a);
    struct weft_claimed lease = claim_mine(race->b);
    struct doing doing = {
        .engine = race->b,
        .made = wait_suspend_at(race->b, &lease, "ab", &(struct weft_suspend){.timeout_ms = 0})};
    is_int(doing.made.rc, WEFT_OK, "it is suspended");
    struct signal_answer early = wait_signal(race->b, doing.made.token[1], "early");
    is_int(early.rc, WEFT_OK, "a signal is stored");
    struct weft_id id = order(race->a);
    struct erase_run run = {.engine = race->a};
    struct ambush ambush = {.point = point, .stmt = place, .act = ambush_stop, .context = &stop};
    struct task task = {.run = run_erase, .context = &run, .ambush = &ambush};
    struct task beside = {.run = signal_it, .context = &doing};
    race_forward(race, 1);
    stop_init(&stop);
    task_start(&task);
    ok(stop_reached(&stop), "the step is in its midst");
    task_start(&beside);
    (void)task_finishes(&beside);
    stop_release(&stop);
    task_join(&task);
    task_join(&beside);
    is_int(run.rc, WEFT_OK, "the step succeeds");
    is_int(doing.sent.rc == WEFT_OK, taken, "the signal was taken: %d", (int)doing.sent.rc);
    finish(race, &id, false);
    is_int(raw_int(&race->place, race->raw,
                   "SELECT (SELECT count(*) FROM weft.signal) + (SELECT count(*) FROM "
                   "weft.waitpoint) + (SELECT count(*) FROM weft.resumption)"),
           0, "no signal, waitpoint or resumption is left");
}

RACE(erase_meets_a_signal_before_the_cancel)
{
    if (on_pg())
        meet_signal(race, WEFT_FAULT_BEFORE_RUN, WEFT_STMT_LIVE_LOCK, true);
}

RACE(erase_meets_a_signal_behind_the_cancel)
{
    if (on_pg())
        meet_signal(race, WEFT_FAULT_AFTER_RUN, WEFT_STMT_ERASE_TAKE, false);
}

RACE(erase_meets_a_signal_behind_the_removal)
{
    if (on_pg())
        meet_signal(race, WEFT_FAULT_BEFORE_COMMIT, WEFT_STMT_RETENTION_REMOVE, false);
}

/* ---- What is not committed yet --------------------------------------------------------------- */

/* A submission that began before the request and commits when the walk has long been past it. */
static void meet_open_submission(struct race *race, const struct weft_erasure_spec *spec)
{
    const struct place *place = &race->place;
    (void)submit_mine(race->b);
    raw_run(place, race->raw, "CREATE TEMP TABLE e AS SELECT * FROM weft.execution");
    raw_run(place, race->raw, "CREATE TEMP TABLE l AS SELECT * FROM weft.live");
    raw_run(place, race->raw, "DELETE FROM weft.live");
    raw_run(place, race->raw, "DELETE FROM weft.execution");
    raw_run(place, race->raw, "BEGIN");
    raw_run(place, race->raw, "INSERT INTO weft.execution SELECT * FROM e");
    raw_run(place, race->raw, "INSERT INTO weft.live SELECT * FROM l");
    struct weft_id id = order_by(race->a, spec);
    struct erase_run run = {.engine = race->a};
    struct weft_arena *arena = weft_arena_new();
    const struct weft_erasure_asking asking = {.id = id, .ns = "default"};
    struct weft_erasure erasure = {0};
    for (int i = 0; i < 20; i++) {
        run_erase(&run);
        is_int(run.rc, WEFT_OK, "a pass");
        race_forward(race, 1000);
    }
    is_int(weft_engine_erasure(race->a, &asking, arena, &erasure, &run.err), WEFT_OK, "read");
    is_int(erasure.state, WEFT_ERASURE_RUNNING, "the erasure waits for the submission");
    raw_run(place, race->raw, "COMMIT");
    weft_arena_free(arena);
    finish(race, &id, false);
}

RACE(erase_waits_for_an_open_submission)
{
    if (on_pg())
        meet_open_submission(race, &(struct weft_erasure_spec){.tenant = TENANT, .reason = "race"});
}

RACE(erase_by_tag_waits_for_an_open_submission)
{
    if (on_pg())
        meet_open_submission(race,
                             &(struct weft_erasure_spec){.tag = "who:" TENANT, .reason = "race"});
}

static void take_in(void *context)
{
    struct erase_run *run = context;
    struct weft_pass_report report;
    run->rc = weft_engine_pass(run->engine, WEFT_SCANNER_INTAKE, NULL, &report, &run->err);
}

/* An intake has the row in hand when the erasure looks into the inbox, and creates later. */
RACE(erase_meets_an_intake)
{
    if (!on_pg())
        return;
    struct stop stop;
    raw_run(&race->place, race->raw,
            "INSERT INTO weft.inbox (id, namespace, lane, kind, payload, tenant) VALUES "
            "('00000000-0001-7000-8000-000000000001', 'default', 'default', 'mine', '1', '" TENANT
            "')");
    struct weft_id id = order(race->a);
    struct erase_run run = {.engine = race->a}, intake = {.engine = race->b};
    struct ambush ambush = {.point = WEFT_FAULT_AFTER_RUN,
                            .stmt = WEFT_STMT_INBOX_TAKE,
                            .act = ambush_stop,
                            .context = &stop};
    struct task task = {.run = take_in, .context = &intake, .ambush = &ambush};
    struct task beside = {.run = run_erase, .context = &run};
    race_forward(race, 1);
    stop_init(&stop);
    task_start(&task);
    ok(stop_reached(&stop), "the intake has taken the row and not committed");
    task_start(&beside);
    ok(raw_wait(&race->place, race->raw,
                "SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted"),
       "the erasure waits for it");
    stop_release(&stop);
    task_join(&task);
    task_join(&beside);
    is_int(intake.rc, WEFT_OK, "the intake succeeds");
    is_int(run.rc, WEFT_OK, "so does the step");
    finish(race, &id, false);
}

/* ---- Reports of usage ------------------------------------------------------------------------ */

static void report_it(void *context)
{
    struct visitor *visitor = context;
    struct weft_arena *arena = weft_arena_new();
    struct weft_usage_result answer = {0};
    struct weft_err err = {0};
    const struct weft_amount amount = {.dimension = "tokens", .amount = 7};
    const struct weft_usage item = {.id = visitor->lease.id,
                                    .epoch = visitor->lease.epoch,
                                    .totals = &amount,
                                    .total_count = 1};
    (void)!weft_engine_usage(visitor->engine, &item, 1, arena, &answer, &err);
    visitor->rc = answer.rc ? answer.rc : err.rc;
    weft_arena_free(arena);
}

/*
 * Behind the cancel the lease is fenced: a report finds the end and writes nothing. What was
 * reserved is in the ledger, under another id.
 */
RACE(erase_meets_a_report)
{
    struct weft_err err;
    if (!on_pg())
        return;
    is_int(budget_put(race->a, "default", HARD, false, &err), WEFT_OK, "a budget");
    budgets_poll(race);
    meet(race, report_it, WEFT_STMT_ERASE_TAKE, false);
    is_int(raw_int(&race->place, race->raw, "SELECT count(*) FROM weft.ledger"), 1,
           "the charge of the lease is kept");
    is_int(raw_int(&race->place, race->raw,
                   "SELECT count(*) FROM weft.ledger WHERE substr(id::text, 15, 1) = '7'"),
           0, "and does not name its execution");
}
