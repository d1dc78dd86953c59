/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The fault loop over budgets: claims, reports, ends, resets, settings, and what the scanner does.
 * Each is run in peace; then it is struck at each of its calls to the store, before the call or
 * behind it, COMMIT included.
 *
 * What must hold after each strike:
 *   - contention and lost connections are not noticed by the caller. SQLite cannot say what became
 *     of a commit that was not answered; then, and only then, the answer is outcome_unknown;
 *   - the store is as before the call or as after it, unless the call has several transactions, and
 *     the ledger adds up in any case;
 *   - the call again, and a pass of the scanner, end as they end without a fault: nothing counts
 *     twice, nothing stays reserved.
 */

#include "budget.h"
#include "direct.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "engine/admin/doctor.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/limit/budgets.h"
#include "engine/limit/settle.h"
#include "engine/limit/usage.h"
#include "engine/scan/pass.h"
#include "engine/tx/commit_effects.h"
#include "store/store.h"
#include "weft/weft.h"

#include <string.h>

enum { CALLS_MAX = 200, JOBS = 5, LEASES = 2, TRACE_MAX = 96, TEXT_MAX = 600, MINUTE_MS = 60000 };

/* One run: a budget, a lane and executions of its own. */
struct budget_run {
    const struct budget_play *of;
    struct striker *striker;
    char name[32]; /* of the budget and the lane */
    struct weft_id id[JOBS];
    struct weft_claimed lease[LEASES];
    bool answered, unknown;
    enum weft_rc rc;
};

struct budget_play {
    const char *name; /* first: see struct loop_set */
    void (*prepare)(struct budget_run *run, struct weft_engine *clean);
    void (*act)(struct budget_run *run, struct weft_engine *engine);
    enum weft_stmt stmt; /* one that the call must have run */
    /* In place of the call again, where a second one would do more: only if it may not be done. */
    void (*again)(struct budget_run *run, struct weft_engine *clean);
    int64_t later_ms;       /* the call comes so much later than prepare() */
    bool stages;            /* several transactions: the store may be in between */
    enum weft_rc repeat_rc; /* another word that a repeat of what is done may get */
};

/* ---- Getting ready --------------------------------------------------------------------------- */

static void hear(struct budget_run *run, enum weft_rc rc, const struct weft_err *err)
{
    run->rc = rc;
    run->unknown = rc && err && err->hint && strcmp(err->hint, weft_hint_outcome_unknown) == 0;
}

static enum weft_rc put_budget(struct budget_run *run, struct weft_engine *engine,
                               const struct weft_budget *how, struct weft_err *err)
{
    struct weft_budget budget = *how;
    static const struct weft_budget_dimension tokens = {"tokens", .hard = 100, .estimate = 30};
    budget.name = run->name;
    if (!budget.dimension) {
        budget.dimension = &tokens;
        budget.dimension_count = 1;
    }
    return weft_engine_budget_put(engine, "default", &budget, err);
}

static void prepare_jobs(struct budget_run *run, struct weft_engine *clean)
{
    const char *budgets[] = {run->name};
    put_work(clean,
             &(struct weft_spec){
                 .kind = "job", .lane = run->name, .budgets = budgets, .budget_count = 1},
             JOBS, run->id);
}

static void make(struct budget_run *run, struct weft_engine *clean, const struct weft_budget *how)
{
    struct weft_err err = {0};
    if (put_budget(run, clean, how, &err))
        bail_out("budget %s: %s", run->name, err.text);
    prepare_jobs(run, clean);
}

static enum weft_rc claim_some(struct budget_run *run, struct weft_engine *engine, uint32_t most,
                               size_t *ret_count, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    const char *lane = run->name;
    const struct weft_claim args = {
        .worker = "worker", .lanes = &lane, .lane_count = 1, .max = most, .lease_ms = 3600000};
    struct weft_claim_result got = {0};
    enum weft_rc rc = weft_engine_claim(engine, "default", &args, 1, arena, &got, err);
    for (size_t i = 0; i < got.count && i < LEASES && !rc; i++)
        run->lease[i] = (struct weft_claimed){.id = got.item[i].id, .epoch = got.item[i].epoch};
    *ret_count = rc ? 0 : got.count;
    weft_arena_free(arena);
    return rc;
}

static void start_leases(struct budget_run *run, struct weft_engine *clean)
{
    size_t count;
    struct weft_err err = {0};
    if (claim_some(run, clean, LEASES, &count, &err) || count != LEASES)
        bail_out("%s: %zu are claimed: %s", run->name, count, err.text);
}

static enum weft_rc report_totals(struct budget_run *run, struct weft_engine *engine,
                                  const int64_t total[LEASES], struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_amount amount[LEASES];
    struct weft_usage item[LEASES];
    struct weft_usage_result answer[LEASES] = {{0}};
    for (size_t i = 0; i < LEASES; i++) {
        amount[i] = (struct weft_amount){"tokens", total[i]};
        item[i] = (struct weft_usage){.id = run->lease[i].id,
                                      .epoch = run->lease[i].epoch,
                                      .totals = &amount[i],
                                      .total_count = 1};
    }
    enum weft_rc rc = weft_engine_usage(engine, item, LEASES, arena, answer, err);
    for (size_t i = 0; i < LEASES && !rc; i++) {
        rc = answer[i].rc;
        if (rc)
            *err = *answer[i].err;
    }
    weft_arena_free(arena);
    return rc;
}

static void prepare_ready(struct budget_run *run, struct weft_engine *clean)
{
    make(run, clean, &(struct weft_budget){.name = ""});
}

static void prepare_running(struct budget_run *run, struct weft_engine *clean)
{
    prepare_ready(run, clean);
    start_leases(run, clean);
}

static void prepare_used(struct budget_run *run, struct weft_engine *clean)
{
    static const int64_t total[LEASES] = {20, 10};
    struct weft_err err = {0};
    prepare_running(run, clean);
    if (report_totals(run, clean, total, &err))
        bail_out("%s: report: %s", run->name, err.text);
}

static void prepare_strict(struct budget_run *run, struct weft_engine *clean)
{
    make(run, clean, &(struct weft_budget){.on_hard = WEFT_ON_HARD_CANCEL});
    start_leases(run, clean);
}

static void lose(void *context, const struct weft_lease_end *ended, size_t count, bool cancel)
{
    (void)context;
    (void)ended;
    (void)count;
    (void)cancel;
}

/* A hard limit is broken, and nothing is cancelled yet. */
static void prepare_broken(struct budget_run *run, struct weft_engine *clean)
{
    static const int64_t total[LEASES] = {20, 90};
    struct weft_err err = {0};
    prepare_strict(run, clean);
    weft_engine_on_budgets(clean, lose, NULL);
    if (report_totals(run, clean, total, &err) != WEFT_BUDGET_EXCEEDED)
        bail_out("%s: the limit holds: %s", run->name, err.text);
    weft_engine_on_budgets(clean, NULL, NULL);
}

static void act_end_first(struct budget_run *run, struct weft_engine *engine)
{
    struct weft_lease_answer answer = {0};
    struct weft_err err = {0};
    const struct weft_complete item = {.id = run->lease[0].id, .epoch = run->lease[0].epoch};
    enum weft_rc rc = engine_complete(engine, &item, 1, &answer, &err);
    hear(run, rc ? rc : answer.err.rc, rc ? &err : &answer.err);
}

/* One lease has ended, and is not settled. */
static void prepare_ended(struct budget_run *run, struct weft_engine *clean)
{
    prepare_used(run, clean);
    weft_engine_on_budgets(clean, lose, NULL);
    act_end_first(run, clean);
    weft_engine_on_budgets(clean, NULL, NULL);
}

/* The period will be over when the call comes. */
static void end_period(struct budget_run *run, struct weft_engine *clean)
{
    const struct weft_budget minute = {.every_ms = MINUTE_MS, .anchor_us = run->striker->now_us};
    struct weft_err err = {0};
    if (put_budget(run, clean, &minute, &err))
        bail_out("budget %s: %s", run->name, err.text);
}

static void prepare_over(struct budget_run *run, struct weft_engine *clean)
{
    prepare_used(run, clean);
    end_period(run, clean);
}

static void prepare_ended_over(struct budget_run *run, struct weft_engine *clean)
{
    prepare_ended(run, clean);
    end_period(run, clean);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

struct claiming {
    struct budget_run *run;
    struct weft_engine *engine;
};

/* An engine that has just looked which queues have work finds work of another one a moment later.
 */
static bool claims_or_fails(void *context)
{
    const struct claiming *claiming = context;
    struct weft_err err = {0};
    size_t count;
    enum weft_rc rc = claim_some(claiming->run, claiming->engine, JOBS, &count, &err);
    hear(claiming->run, rc, &err);
    return rc || count > 0;
}

static void act_claim(struct budget_run *run, struct weft_engine *engine)
{
    struct claiming claiming = {.run = run, .engine = engine};
    (void)wait_until(claims_or_fails, &claiming);
}

/* No process knows these leases: they run out. */
static void claim_again(struct budget_run *run, struct weft_engine *clean)
{
    struct weft_pass_report pass;
    struct weft_err err = {0};
    weft_clock_set(weft_engine_clock(clean), run->striker->now_us + 3600 * WEFT_SECOND);
    if (weft_engine_pass(clean, WEFT_SCANNER_LEASE_EXPIRY, NULL, &pass, &err) ||
        weft_engine_pass(clean, WEFT_SCANNER_BUDGET_RESET, NULL, &pass, &err))
        bail_out("%s: the scanners fail: %s", run->name, err.text);
    act_claim(run, clean);
}

static void act_report(struct budget_run *run, struct weft_engine *engine)
{
    static const int64_t total[LEASES] = {25, 15};
    struct weft_err err = {0};
    hear(run, report_totals(run, engine, total, &err), &err);
}

/* Refused, and all that runs is cancelled. */
static void act_break(struct budget_run *run, struct weft_engine *engine)
{
    static const int64_t total[LEASES] = {20, 90};
    struct weft_err err = {0};
    enum weft_rc rc = report_totals(run, engine, total, &err);
    hear(run, rc == WEFT_BUDGET_EXCEEDED ? WEFT_OK : rc, &err);
}

static void act_settle(struct budget_run *run, struct weft_engine *engine)
{
    struct weft_err err = {0};
    const struct weft_lease_end end = {
        .lease = {.id = run->lease[0].id, .epoch = run->lease[0].epoch}};
    hear(run, weft_engine_settle(engine, &end, 1, NULL, &err), &err);
}

static void act_reset(struct budget_run *run, struct weft_engine *engine)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_budget budget;
    struct weft_err err = {0};
    hear(run, weft_engine_budget_reset(engine, "default", run->name, arena, &budget, &err), &err);
    weft_arena_free(arena);
}

static void act_remove(struct budget_run *run, struct weft_engine *engine)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_budget budget;
    struct weft_err err = {0};
    hear(run, weft_engine_budget_remove(engine, "default", run->name, arena, &budget, &err), &err);
    weft_arena_free(arena);
}

static void act_put(struct budget_run *run, struct weft_engine *engine)
{
    static const struct weft_budget_dimension dimension[] = {
        {.name = "cents", .hard = 9, .estimate = 1}, {.name = "tokens", .hard = 25}};
    const struct weft_budget budget = {.dimension = dimension, .dimension_count = 2};
    struct weft_err err = {0};
    hear(run, put_budget(run, engine, &budget, &err), &err);
}

static void act_cancel(struct budget_run *run, struct weft_engine *engine)
{
    struct weft_budget_cancelled done = {.more = true};
    struct weft_err err = {0};
    enum weft_rc rc = WEFT_OK;
    while (done.more && !rc)
        rc = weft_engine_budget_cancel(engine, JOBS, &done, &err);
    hear(run, rc, &err);
}

static void act_scan(struct budget_run *run, struct weft_engine *engine)
{
    struct weft_pass_report pass = {.more = true};
    struct weft_err err = {0};
    enum weft_rc rc = WEFT_OK;
    while (pass.more && !rc)
        rc = weft_engine_pass(engine, WEFT_SCANNER_BUDGET_RESET, NULL, &pass, &err);
    hear(run, rc, &err);
}

/* clang-format off */
#define PLAY(word, made, call, statement, ...)                                                     \
    {.name = "budget_" word, .prepare = prepare_##made, .act = act_##call,                         \
     .stmt = WEFT_STMT_##statement, __VA_ARGS__}

static const struct budget_play plays[] = {
    PLAY("claim", ready, claim, LEDGER_PUT, .again = claim_again),
    PLAY("report", running, report, SUMS_ADD, .stages = false),
    PLAY("report_beyond", strict, break, BUDGET_MARK, .stages = true, .repeat_rc = WEFT_FENCED),
    PLAY("report_over", over, report, BUDGET_BEGIN, .later_ms = MINUTE_MS, .stages = false),
    PLAY("end", used, end_first, SETTLE, .stages = true),
    PLAY("settle", ended, settle, SETTLE, .stages = false),
    PLAY("reset", used, reset, BUDGET_BEGIN, .stages = false),
    PLAY("scan", ended_over, scan, SETTLE, .later_ms = MINUTE_MS, .stages = true),
    PLAY("cancel", broken, cancel, CANCELLING_DONE, .stages = true),
    PLAY("put_first", jobs, put, BUDGET_PUT, .stages = false),
    PLAY("put", used, put, LEDGER_WIDEN, .stages = false),
    PLAY("remove", used, remove, BUDGET_REMOVE, .repeat_rc = WEFT_NOT_FOUND),
};
/* clang-format on */

/* ---- What the store says --------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void add(char *text, const char *fmt, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text + used, TEXT_MAX - used, fmt, args);
    va_end(args);
}

static void describe_ledger(struct budget_run *run, struct weft_engine *clean,
                            struct weft_arena *arena, char text[TEXT_MAX])
{
    const struct weft_ledger_asking asking = {.ns = "default", .name = run->name};
    struct weft_ledger ledger = {0};
    struct weft_err err = {0};
    int64_t used = 0, reserved = 0;
    size_t settled = 0;
    if (weft_engine_ledger(clean, &asking, arena, &ledger, &err))
        bail_out("ledger %s: %s", run->name, err.text);
    for (size_t i = 0; i < ledger.count; i++) {
        used += ledger.item[i].used;
        reserved += ledger.item[i].reserved;
        settled += ledger.item[i].settled;
    }
    add(text, "; ledger %zu rows, %zu settled, %lld used, %lld reserved", ledger.count, settled,
        (long long)used, (long long)reserved);
}

/* The budget and the states of the executions. */
static void describe(struct budget_run *run, struct weft_engine *clean, char text[TEXT_MAX])
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_budget budget = {0};
    struct weft_err err = {0};
    size_t count[WEFT_STATE_COUNT] = {0};
    *text = '\0';
    enum weft_rc rc = weft_engine_budget(clean, "default", run->name, arena, &budget, &err);
    if (rc && rc != WEFT_NOT_FOUND)
        bail_out("budget %s: %s", run->name, err.text);
    add(text, "%s", rc ? "no budget" : budget.state == WEFT_BUDGET_HARD ? "hard" : "open");
    for (size_t i = 0; i < budget.dimension_count; i++)
        add(text, ", %s %lld of %lld, %lld reserved", budget.dimension[i].name,
            (long long)budget.dimension[i].used, (long long)budget.dimension[i].hard,
            (long long)budget.dimension[i].reserved);
    if (!rc)
        describe_ledger(run, clean, arena, text);
    for (size_t i = 0; i < JOBS; i++)
        count[state_at(clean, &run->id[i])]++;
    for (size_t i = 0; i < WEFT_STATE_COUNT; i++)
        if (count[i] > 0)
            add(text, "; %zu %s", count[i], weft_state_name((enum weft_state)i));
    weft_arena_free(arena);
}

/* ---- Judging --------------------------------------------------------------------------------- */

struct texts {
    char before[TEXT_MAX], after[TEXT_MAX], last[TEXT_MAX]; /* last: when all was repeated */
};

static const char *judge_answer(const struct budget_run *run, enum weft_fault_kind kind)
{
    if (!run->answered)
        return kind == WEFT_FAULT_CRASH_AFTER ? NULL : "the call did not come back";
    if (!run->rc || (kind == WEFT_FAULT_FULL && run->rc == WEFT_STORAGE_FULL))
        return NULL;
    bool may_be_unknown = !on_pg() && (kind == WEFT_FAULT_LOSE || kind == WEFT_FAULT_LOSE_REPLY);
    return may_be_unknown && run->unknown ? NULL : "the caller got an error that could be retried";
}

/* After the strike and before the repeat. */
static const char *judge_store(const struct budget_run *run, const struct texts *peace,
                               const char *now)
{
    struct weft_err err;
    bool done = strcmp(now, peace->after) == 0;
    if (run->answered && !run->rc && !done && !run->of->stages)
        return "it was answered and is not there";
    if (!done && strcmp(now, peace->before) != 0 && !run->of->stages)
        return "a part of it happened";
    return weft_engine_check(run->striker->clean, &err) ? "the invariants are broken" : NULL;
}

/* The call again, and what a pass of the scanner does then. */
static const char *repeat(struct budget_run *run, struct weft_engine *clean)
{
    bool promised = run->answered && !run->rc;
    struct weft_err err;
    if (run->of->again && !promised)
        run->of->again(run, clean);
    else if (!run->of->again)
        run->of->act(run, clean);
    if (run->rc && run->rc != run->of->repeat_rc)
        return "a repeat fails";
    act_scan(run, clean);
    if (run->rc)
        return "the scanner fails";
    return weft_engine_check(clean, &err) ? "the invariants are broken then" : NULL;
}

/* ---- Striking -------------------------------------------------------------------------------- */

static void begin_run(struct budget_run *run, struct striker *striker, const struct budget_play *of)
{
    static int number;
    *run = (struct budget_run){.of = of, .striker = striker};
    (void)snprintf(run->name, sizeof(run->name), "b-%d", ++number);
    striker_set_time(striker, START_US + (weft_usec)number * 7200 * WEFT_SECOND);
    of->prepare(run, striker_clean(striker));
    striker_set_time(striker, striker->now_us + of->later_ms * WEFT_MS);
}

static void end_run(struct budget_run *run, struct weft_engine *clean)
{
    act_remove(run, clean);
    for (size_t i = 0; i < JOBS; i++)
        if (weft_state_living(state_at(clean, &run->id[i])))
            (void)steer_one(clean, WEFT_STEER_CANCEL, &(struct weft_steer){.id = run->id[i]});
}

static void act_on(void *context, struct weft_engine *engine)
{
    struct budget_run *run = context;
    run->of->act(run, engine);
    run->answered = true;
}

/* One strike; NULL when all is well. */
static const char *strike_once(struct striker *striker, const struct budget_play *of,
                               const struct strike_kind *with, uint64_t at,
                               const struct texts *peace, struct texts *ret_got, bool *ret_struck)
{
    struct budget_run run;
    begin_run(&run, striker, of);
    *ret_struck = strike(striker, with->kind, at, act_on, &run);
    if (!*ret_struck && with->kind == WEFT_FAULT_CRASH_AFTER)
        return NULL; /* the child was over before, and the next number of calls ends the loop */
    struct weft_engine *clean = striker_clean(striker);
    describe(&run, clean, ret_got->after);
    const char *wrong = judge_answer(&run, with->kind);
    if (!wrong)
        wrong = judge_store(&run, peace, ret_got->after);
    if (!wrong)
        wrong = repeat(&run, clean);
    describe(&run, clean, ret_got->last);
    if (!wrong && strcmp(ret_got->last, peace->last) != 0)
        wrong = "after the repeat the store is not as it was in peace";
    end_run(&run, clean);
    return wrong;
}

/* The statements and commits of the call in peace. */
struct trace {
    size_t count;
    enum weft_stmt stmt[TRACE_MAX];
};

static void trace_hook(void *context, enum weft_fault_point point, enum weft_stmt stmt)
{
    struct trace *trace = context;
    bool counts = point == WEFT_FAULT_BEFORE_RUN || point == WEFT_FAULT_BEFORE_COMMIT;
    if (counts && trace->count < TRACE_MAX)
        trace->stmt[trace->count++] = stmt;
}

static void run_in_peace(struct striker *striker, const struct budget_play *of,
                         struct trace *ret_trace, struct texts *ret_peace)
{
    struct budget_run run;
    *ret_trace = (struct trace){0};
    begin_run(&run, striker, of);
    describe(&run, striker_clean(striker), ret_peace->before);
    (void)striker_faulty(striker); /* opened before the trace begins */
    striker->fault.context = ret_trace;
    striker->fault.hook = trace_hook;
    (void)strike(striker, WEFT_FAULT_NONE, CALLS_MAX, act_on, &run);
    striker->fault.hook = NULL;
    describe(&run, striker_clean(striker), ret_peace->after);
    if (repeat(&run, striker_clean(striker)))
        bail_out("%s fails in peace", of->name);
    describe(&run, striker_clean(striker), ret_peace->last);
    end_run(&run, striker_clean(striker));
}

static void print_peace(const struct budget_play *of, const struct trace *trace,
                        const struct texts *peace)
{
    bool found = false;
    printf("# %s, before: %s\n#   after: %s\n#   last: %s\n#   statements:", of->name,
           peace->before, peace->after, peace->last);
    for (size_t i = 0; i < trace->count; i++) {
        enum weft_stmt stmt = trace->stmt[i];
        found |= stmt == of->stmt;
        printf(" %s", stmt == WEFT_STMT_COUNT ? "COMMIT" : weft_stmts[stmt].name);
    }
    printf("\n");
    if (!found)
        bail_out("%s does not run %s", of->name, weft_stmts[of->stmt].name);
}

static void loop_play(const void *context, struct loop_finding finding[STRIKE_KINDS])
{
    const struct budget_play *of = context;
    struct striker striker;
    struct trace trace;
    struct texts peace, got;
    weft_usec begun_us = weft_boot_us();
    striker_init(&striker, of->name);
    run_in_peace(&striker, of, &trace, &peace);
    run_in_peace(&striker, of, &trace, &peace); /* now the engine has cached what it can */
    print_peace(of, &trace, &peace);
    for (size_t i = 0; i < STRIKE_KINDS; i++) {
        bool struck = true;
        uint64_t at = 0;
        while (struck && ++at < CALLS_MAX) {
            const char *wrong =
                strike_once(&striker, of, &strike_kinds[i], at, &peace, &got, &struck);
            if (wrong && finding[i].bad++ == 0)
                printf("# %s, %s at call %llu: %s\n#   struck: %s\n#   repeated: %s\n", of->name,
                       strike_kinds[i].name, (unsigned long long)at, wrong, got.after, got.last);
        }
        finding[i].calls = at - 1;
        finding[i].bad += at - 1 < trace.count; /* each of them, and BEGIN */
    }
    striker_done(&striker);
    printf("# %s took %lld ms\n", of->name, (long long)((weft_boot_us() - begun_us) / WEFT_MS));
}

void budget_faults(wanted_fn *wanted, int argc, char **argv)
{
    const struct loop_set set = {.run = loop_play,
                                 .first = plays,
                                 .size = sizeof(*plays),
                                 .count = WEFT_LEN(plays),
                                 .calls_min = 4,
                                 .calls_max = CALLS_MAX - 1};
    loop_set_run(&set, wanted, argc, argv);
}
