/* SPDX-License-Identifier: Apache-2.0 */

/* The sequences. See sequence.h. */

#include "sequence.h"
#include "direct.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "engine/admin/lanes.h"
#include "engine/admin/tally.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/job/claim.h"
#include "engine/job/control.h"
#include "engine/job/joint.h"
#include "engine/job/leases.h"
#include "engine/job/submit.h"
#include "engine/limit/admit.h"
#include "engine/scan/pass.h"
#include "engine/tx/commit_effects.h"
#include "weft/weft.h"

static const struct weft_policy policy = {
    .backoff = WEFT_BACKOFF_FIXED, .initial_ms = 5000, .no_jitter = true};
/* Of its own: an attempt that is overdue is timed out, whichever pass finds it first. */
static const struct weft_policy timed_policy = {.backoff = WEFT_BACKOFF_FIXED,
                                                .initial_ms = 5000,
                                                .no_jitter = true,
                                                .attempt_timeout_ms = 120000};

/* ---- Helpers --------------------------------------------------------------------------------- */

/* Writes what a call gave back; the flag comes last, in case the process dies before it. */
static void hear(struct heard *heard, enum weft_rc rc, const struct weft_err *err)
{
    heard->rc = rc;
    heard->unknown = rc && err->hint && strcmp(err->hint, "outcome_unknown") == 0;
    (void)snprintf(heard->text, sizeof(heard->text), "%.150s", rc ? err->text : "");
    __atomic_store_n(&heard->answered, true, __ATOMIC_RELEASE);
}

/* ---- Getting ready --------------------------------------------------------------------------- */

static void prepare_nothing(struct run *run, struct weft_engine *clean)
{
    (void)run;
    (void)clean;
}

static void prepare_ready(struct run *run, struct weft_engine *clean)
{
    const struct weft_spec spec = {.kind = run->kind, .lane = run->lane, .policy = &policy};
    put_work(clean, &spec, ITEMS, run->id);
}

static void prepare_delayed(struct run *run, struct weft_engine *clean)
{
    const struct weft_spec spec = {.kind = run->kind, .lane = run->lane, .delay_ms = 60000};
    put_work(clean, &spec, ITEMS, run->id);
}

static void prepare_deadline(struct run *run, struct weft_engine *clean)
{
    const struct weft_spec spec = {
        .kind = run->kind, .lane = run->lane, .deadline_us = run->now_us + 60 * WEFT_SECOND};
    put_work(clean, &spec, ITEMS, run->id);
}

/* Keeps the key of the gate instead of admitting: the errand is lost. */
static char lost_gate[WEFT_GATE_KEY];

static void lose_errand(void *context, const char *const *gate, size_t count)
{
    (void)context;
    (void)snprintf(lost_gate, sizeof(lost_gate), "%s", gate[count - 1]);
}

static void prepare_held(struct run *run, struct weft_engine *clean)
{
    const struct weft_spec spec = {.kind = run->kind, .lane = run->lane, .gate = run->lane};
    weft_engine_on_gates(clean, lose_errand, NULL);
    put_work(clean, &spec, ITEMS, run->id);
    weft_engine_on_gates(clean, NULL, NULL);
}

static void claim_prepared(struct run *run, struct weft_engine *clean)
{
    struct weft_claimed item[ITEMS];
    if (take_work(clean, run->lane, ITEMS, item) != ITEMS)
        bail_out("the work of a run cannot be claimed");
    for (size_t i = 0; i < ITEMS; i++) {
        run->id[i] = item[i].id;
        run->epoch[i] = item[i].epoch;
    }
}

static void prepare_running(struct run *run, struct weft_engine *clean)
{
    prepare_ready(run, clean);
    claim_prepared(run, clean);
}

static void prepare_timed(struct run *run, struct weft_engine *clean)
{
    const struct weft_spec spec = {.kind = run->kind, .lane = run->lane, .policy = &timed_policy};
    put_work(clean, &spec, ITEMS, run->id);
    claim_prepared(run, clean);
}

static void complete_run(struct run *run, struct weft_engine *engine, struct heard *heard)
{
    struct weft_complete item[ITEMS];
    struct weft_lease_answer answer[ITEMS] = {0};
    struct weft_err err = {0};
    for (size_t i = 0; i < ITEMS; i++)
        item[i] = (struct weft_complete){
            .id = run->id[i], .epoch = run->epoch[i], .result = "1", .result_size = 1};
    enum weft_rc rc = engine_complete(engine, item, ITEMS, answer, &err);
    for (size_t i = 0; i < ITEMS; i++)
        heard->item[i] = answer[i].err.rc;
    hear(heard, rc, &err);
}

/* The same in one transaction with a submission, which leaves no trace in this run. */
static void together_run(struct run *run, struct weft_engine *engine, struct heard *heard)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_complete item[ITEMS];
    struct weft_lease_result answer[ITEMS] = {0};
    struct weft_submit_result submitted = {0};
    const struct weft_spec spec = {.kind = "beside", .lane = "beside"};
    struct weft_joint_call call[] = {
        {.op = WEFT_OP_COMPLETE, .item = item, .count = ITEMS, .answer = answer, .arena = arena},
        {.op = WEFT_OP_SUBMIT,
         .ns = "default",
         .item = &spec,
         .count = 1,
         .answer = &submitted,
         .arena = arena},
    };
    for (size_t i = 0; i < ITEMS; i++)
        item[i] = (struct weft_complete){.id = run->id[i], .epoch = run->epoch[i]};
    weft_engine_together(engine, call, WEFT_LEN(call), NULL, NULL);
    for (size_t i = 0; i < ITEMS; i++)
        heard->item[i] = answer[i].rc;
    enum weft_rc rc = call[0].rc ? call[0].rc : call[1].rc;
    hear(heard, rc ? rc : submitted.rc, call[0].rc ? &call[0].err : &call[1].err);
    weft_arena_free(arena);
}

static void prepare_ended(struct run *run, struct weft_engine *clean)
{
    struct heard heard = {0};
    prepare_running(run, clean);
    complete_run(run, clean, &heard);
}

/* What ended may go a moment later. */
static void prepare_kept(struct run *run, struct weft_engine *clean)
{
    struct weft_err err = {0};
    const struct weft_lane lane = {.name = run->lane, .retention_ms = 1};
    prepare_ended(run, clean);
    if (weft_engine_lane_put(clean, "default", &lane, &err))
        bail_out("lane: %s", err.text);
}

static void prepare_inbox(struct run *run, struct weft_engine *clean)
{
    (void)clean;
    PGconn *raw = raw_open(run->place);
    raw_run(run->place, raw,
            "SELECT weft.weft_submit(kind => '%s', lane => '%s') FROM generate_series(1, %d)",
            run->kind, run->lane, ITEMS);
    PQfinish(raw);
}

/* ---- Submitting ------------------------------------------------------------------------------ */

static void submit_run(struct run *run, struct weft_engine *engine, struct heard *heard,
                       size_t first_key)
{
    struct weft_spec spec[ITEMS];
    struct weft_submitted answer[ITEMS] = {0};
    struct weft_err err = {0};
    for (size_t i = 0; i < ITEMS; i++)
        spec[i] = (struct weft_spec){.kind = run->kind,
                                     .lane = run->lane,
                                     .payload = "[1]",
                                     .payload_size = 3,
                                     .key = i >= first_key ? run->key[i] : NULL};
    enum weft_rc rc = engine_submit(engine, "default", spec, ITEMS, answer, &err);
    for (size_t i = 0; i < ITEMS; i++) {
        heard->item[i] = answer[i].err.rc;
        heard->id[i] = answer[i].id;
    }
    hear(heard, rc, &err);
}

static void submit_plain(struct run *run, struct weft_engine *engine, struct heard *heard)
{
    submit_run(run, engine, heard, ITEMS);
}

static void submit_keyed(struct run *run, struct weft_engine *engine, struct heard *heard)
{
    submit_run(run, engine, heard, 0);
}

static void submit_mixed(struct run *run, struct weft_engine *engine, struct heard *heard)
{
    submit_run(run, engine, heard, 1);
}

/* Whether the execution of item i is there: by its key, or by how many have no key. */
static bool submitted(struct run *run, struct weft_engine *clean, const struct heard *heard,
                      size_t i)
{
    (void)clean;
    size_t plain = 0;
    bool found = false, known = false;
    for (size_t k = 0; k < run->seen_count; k++) {
        plain += run->seen[k].key < 0;
        found |= run->seen[k].key == (int)i;
        known |= weft_id_cmp(&run->seen[k].id, &heard->id[i]) == 0;
    }
    if (heard->answered && !heard->rc && !heard->item[i])
        return known; /* the very id that was promised */
    return found || plain > i;
}

/* ---- Claiming -------------------------------------------------------------------------------- */

static void claim_run(struct run *run, struct weft_engine *engine, struct heard *heard)
{
    const char *lane = run->lane;
    struct weft_claim_result result = {0};
    struct weft_err err = {0};
    struct weft_arena *arena = weft_arena_new();
    /* As a process that has just begun: after slow looks at the list a claim may go without one. */
    weft_ready_suspect(&engine->ready);
    const struct weft_claim claim = {
        .worker = run->worker, .lanes = &lane, .lane_count = 1, .max = ITEMS};
    enum weft_rc rc = weft_engine_claim(engine, "default", &claim, 1, arena, &result, &err);
    heard->number = result.count;
    for (size_t i = 0; i < result.count; i++) {
        heard->id[i] = result.item[i].id;
        heard->epoch[i] = result.item[i].epoch;
    }
    weft_arena_free(arena);
    hear(heard, rc, &err);
}

static bool claimed(struct run *run, struct weft_engine *clean, const struct heard *heard, size_t i)
{
    struct weft_execution now = run_now(run, clean, i);
    bool runs = now.state == WEFT_STATE_RUNNING && now.epoch == 1;
    if (!heard->answered || heard->rc)
        return runs;
    for (size_t k = 0; k < heard->number; k++)
        if (weft_id_cmp(&heard->id[k], &run->id[i]) == 0)
            return runs && heard->epoch[k] == now.epoch;
    return false;
}

/* ---- Leases ---------------------------------------------------------------------------------- */

static void renew_run(struct run *run, struct weft_engine *engine, struct heard *heard)
{
    struct weft_renew item[ITEMS];
    struct weft_lease_answer answer[ITEMS] = {0};
    struct weft_err err = {0};
    for (size_t i = 0; i < ITEMS; i++)
        item[i] = (struct weft_renew){.id = run->id[i],
                                      .epoch = run->epoch[i],
                                      .lease_ms = 77000,
                                      .has_progress = true,
                                      .percent = 50,
                                      .note = "half"};
    enum weft_rc rc = engine_renew(engine, item, ITEMS, answer, &err);
    for (size_t i = 0; i < ITEMS; i++)
        heard->item[i] = answer[i].err.rc;
    hear(heard, rc, &err);
}

static bool renewed(struct run *run, struct weft_engine *clean, const struct heard *heard, size_t i)
{
    (void)heard;
    struct weft_execution now = run_now(run, clean, i);
    bool lease = now.lease_expires_us == run->now_us + 77000 * WEFT_MS;
    return lease && now.percent == 50; /* one without the other shows as not done after an OK */
}

static bool succeeded(struct run *run, struct weft_engine *clean, const struct heard *heard,
                      size_t i)
{
    (void)heard;
    return run_now(run, clean, i).state == WEFT_STATE_SUCCEEDED;
}

static void fail_run(struct run *run, struct weft_engine *engine, struct heard *heard,
                     bool permanent)
{
    struct weft_failure item[ITEMS];
    struct weft_lease_answer answer[ITEMS] = {0};
    struct weft_err err = {0};
    for (size_t i = 0; i < ITEMS; i++)
        item[i] = (struct weft_failure){.id = run->id[i],
                                        .epoch = run->epoch[i],
                                        .message = "it broke",
                                        .permanent = permanent};
    enum weft_rc rc = engine_fail(engine, item, ITEMS, answer, &err);
    for (size_t i = 0; i < ITEMS; i++) {
        heard->item[i] = answer[i].err.rc;
        if (!rc && !permanent && answer[i].run_at_us != run->now_us + 5 * WEFT_SECOND)
            heard->item[i] = WEFT_INTERNAL; /* first or repeated, the answer is the same */
    }
    hear(heard, rc, &err);
}

static void fail_retry(struct run *run, struct weft_engine *engine, struct heard *heard)
{
    fail_run(run, engine, heard, false);
}

static void fail_final(struct run *run, struct weft_engine *engine, struct heard *heard)
{
    fail_run(run, engine, heard, true);
}

static bool retried(struct run *run, struct weft_engine *clean, const struct heard *heard, size_t i)
{
    (void)heard;
    struct weft_execution now = run_now(run, clean, i);
    return now.state == WEFT_STATE_DELAYED && now.attempt == 2;
}

static bool failed(struct run *run, struct weft_engine *clean, const struct heard *heard, size_t i)
{
    (void)heard;
    return run_now(run, clean, i).state == WEFT_STATE_FAILED;
}

static void put_back_run(struct run *run, struct weft_engine *engine, struct heard *heard,
                         enum weft_put_back_kind kind)
{
    struct weft_put_back item[ITEMS];
    struct weft_lease_answer answer[ITEMS] = {0};
    struct weft_err err = {0};
    for (size_t i = 0; i < ITEMS; i++)
        item[i] = (struct weft_put_back){.id = run->id[i],
                                         .epoch = run->epoch[i],
                                         .delay_ms = kind == WEFT_PUT_BACK_DELAY ? 9000 : 0};
    enum weft_rc rc = engine_put_back(engine, kind, item, ITEMS, answer, &err);
    for (size_t i = 0; i < ITEMS; i++)
        heard->item[i] = answer[i].err.rc;
    hear(heard, rc, &err);
}

static void delay_run(struct run *run, struct weft_engine *engine, struct heard *heard)
{
    put_back_run(run, engine, heard, WEFT_PUT_BACK_DELAY);
}

static void release_run(struct run *run, struct weft_engine *engine, struct heard *heard)
{
    put_back_run(run, engine, heard, WEFT_PUT_BACK_RELEASE);
}

static bool delayed(struct run *run, struct weft_engine *clean, const struct heard *heard, size_t i)
{
    (void)heard;
    struct weft_execution now = run_now(run, clean, i);
    return now.state == WEFT_STATE_DELAYED && now.attempt == 1;
}

static bool ready(struct run *run, struct weft_engine *clean, const struct heard *heard, size_t i)
{
    (void)heard;
    return run_now(run, clean, i).state == WEFT_STATE_READY;
}

/* ---- Steering -------------------------------------------------------------------------------- */

static void steer_run(struct run *run, struct weft_engine *engine, struct heard *heard,
                      enum weft_steer_kind kind)
{
    struct weft_steer item[ITEMS];
    struct weft_steered answer[ITEMS] = {0};
    struct weft_err err = {0};
    for (size_t i = 0; i < ITEMS; i++)
        item[i] = (struct weft_steer){
            .id = run->id[i], .priority = 7, .deadline_us = run->now_us + 777 * WEFT_SECOND};
    const struct weft_steering steering = {
        .kind = kind, .ns = "default", .item = item, .count = ITEMS};
    enum weft_rc rc = engine_steer(engine, &steering, answer, &err);
    for (size_t i = 0; i < ITEMS; i++)
        heard->item[i] = answer[i].err.rc;
    hear(heard, rc, &err);
}

#define STEER(name, kind)                                                                          \
    static void name(struct run *run, struct weft_engine *engine, struct heard *heard)             \
    {                                                                                              \
        steer_run(run, engine, heard, kind);                                                       \
    }
STEER(cancel_run, WEFT_STEER_CANCEL)
STEER(replay_run, WEFT_STEER_REPLAY)
STEER(reprioritize_run, WEFT_STEER_REPRIORITIZE)
STEER(revoke_run, WEFT_STEER_REVOKE)
STEER(set_deadline_run, WEFT_STEER_SET_DEADLINE)

static bool cancelled(struct run *run, struct weft_engine *clean, const struct heard *heard,
                      size_t i)
{
    (void)heard;
    return run_now(run, clean, i).state == WEFT_STATE_CANCELLED;
}

/* ---- Letting go of leases that others ended -------------------------------------------------- */

static void prepare_drained(struct run *run, struct weft_engine *clean)
{
    struct heard heard = {0};
    prepare_running(run, clean);
    cancel_run(run, clean, &heard);
}

/* The last word of a worker whose leases are gone: refused, and that is the right answer. */
static void let_go_run(struct run *run, struct weft_engine *engine, struct heard *heard)
{
    release_run(run, engine, heard);
    for (size_t i = 0; i < ITEMS; i++)
        if (heard->item[i] == WEFT_FENCED)
            heard->item[i] = WEFT_OK;
}

static bool let_go(struct run *run, struct weft_engine *clean, const struct heard *heard, size_t i)
{
    (void)heard;
    (void)i;
    struct weft_arena *arena = weft_arena_new();
    struct weft_counts counts = {0};
    struct weft_err err = {0};
    if (weft_engine_counts(clean, "default", run->lane, arena, &counts, &err))
        bail_out("counts: %s", err.text);
    bool gone = counts.count == 0 || counts.item[0].draining == 0;
    weft_arena_free(arena);
    return gone;
}

static bool reprioritized(struct run *run, struct weft_engine *clean, const struct heard *heard,
                          size_t i)
{
    (void)heard;
    return run_now(run, clean, i).priority == 7;
}

static bool deadline_set(struct run *run, struct weft_engine *clean, const struct heard *heard,
                         size_t i)
{
    (void)heard;
    return run_now(run, clean, i).deadline_us == run->now_us + 777 * WEFT_SECOND;
}

static void sweep_run(struct run *run, struct weft_engine *engine, struct heard *heard)
{
    struct weft_sweep sweep = {0};
    struct weft_err err = {0};
    const struct weft_steer_all all = {.kind = WEFT_STEER_CANCEL,
                                       .filter = {.ns = "default", .kind = run->kind}};
    enum weft_rc rc = weft_engine_steer_all(engine, &all, &sweep, &err);
    heard->number = sweep.changed;
    hear(heard, rc, &err);
}

static void lane_run(struct run *run, struct weft_engine *engine, struct heard *heard)
{
    struct weft_err err = {0};
    const struct weft_lane lane = {.name = run->lane, .max_running = 7};
    hear(heard, weft_engine_lane_put(engine, "default", &lane, &err), &err);
}

static bool lane_is_put(struct run *run, struct weft_engine *clean, const struct heard *heard,
                        size_t i)
{
    (void)heard;
    (void)i;
    struct weft_arena *arena = weft_arena_new();
    struct weft_lanes lanes = {0};
    struct weft_err err = {0};
    bool found = false;
    if (weft_engine_lanes(clean, "default", arena, &lanes, &err))
        bail_out("lanes: %s", err.text);
    for (size_t k = 0; k < lanes.count; k++)
        found |= strcmp(lanes.item[k].name, run->lane) == 0 && lanes.item[k].max_running == 7;
    weft_arena_free(arena);
    return found;
}

static void admit_run(struct run *run, struct weft_engine *engine, struct heard *heard)
{
    struct weft_err err = {0};
    struct weft_admitted admitted = {0};
    const char *gate = lost_gate;
    (void)run;
    enum weft_rc rc = weft_engine_admit(engine, &gate, 1, &admitted, &err);
    heard->number = admitted.admitted;
    hear(heard, rc, &err);
}

/* ---- Passes ---------------------------------------------------------------------------------- */

static void pass_run(struct run *run, struct weft_engine *engine, struct heard *heard,
                     enum weft_scanner pass)
{
    /* Retention in several transactions, of which one may be struck. */
    const struct weft_pass_config config = {.batch = pass == WEFT_SCANNER_RETENTION};
    struct weft_pass_report report = {0};
    struct weft_err err = {0};
    weft_clock_set(weft_engine_clock(engine), run_later(run));
    enum weft_rc rc;
    heard->number = 0;
    do { /* retention ends after a while, on a slow machine before it is through */
        rc = weft_engine_pass(engine, pass, &config, &report, &err);
        heard->number += report.handled;
    } while (!rc && report.more && pass == WEFT_SCANNER_RETENTION);
    hear(heard, rc, &err);
}

#define PASS(name, pass)                                                                           \
    static void name(struct run *run, struct weft_engine *engine, struct heard *heard)             \
    {                                                                                              \
        pass_run(run, engine, heard, pass);                                                        \
    }
PASS(lease_expiry_run, WEFT_SCANNER_LEASE_EXPIRY)
PASS(attempt_timeout_run, WEFT_SCANNER_ATTEMPT_TIMEOUT)
PASS(promoter_run, WEFT_SCANNER_DELAYED_PROMOTER)
PASS(deadline_run, WEFT_SCANNER_EXECUTION_DEADLINE)
PASS(intake_run, WEFT_SCANNER_INTAKE)
PASS(unblock_run, WEFT_SCANNER_UNBLOCK)
PASS(retention_run, WEFT_SCANNER_RETENTION)

static bool removed(struct run *run, struct weft_engine *clean, const struct heard *heard, size_t i)
{
    (void)heard;
    return run_now(run, clean, i).state == WEFT_STATE_NONE;
}

static bool expired(struct run *run, struct weft_engine *clean, const struct heard *heard, size_t i)
{
    (void)heard;
    return run_now(run, clean, i).state == WEFT_STATE_EXPIRED;
}

static bool taken_in(struct run *run, struct weft_engine *clean, const struct heard *heard,
                     size_t i)
{
    (void)clean;
    (void)heard;
    return run->seen_count > i;
}

/* ---- All of them ----------------------------------------------------------------------------- */

const struct sequence sequences[] = {
#define X(word, statement, made, call, test, history, ...)                                         \
    {.name = #word,                                                                                \
     .stmt = WEFT_STMT_##statement,                                                                \
     .prepare = prepare_##made,                                                                    \
     .act = call,                                                                                  \
     .done = test,                                                                                 \
     .attempts = history,                                                                          \
     __VA_ARGS__},
#include "sequences.def"
#undef X
};
const size_t sequence_count = WEFT_LEN(sequences);
