/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A random walk over budgets, in two processes whose errands are lost now and then: executions are
 * submitted, claimed, report, end, are cancelled or lost; budgets are put with other limits and
 * dimensions, removed, made again, reset by hand and by time. A model in memory does the same by
 * the book (budget_model.c). After every step the store says the same of every budget, to the unit,
 * its ledger adds up, and no limit is passed by a claim or a report.
 *
 * A walk is replayed by WEFT_WALK_SEED; WEFT_SOAK=1 walks for longer.
 */

#include "budget_model.h"

#include "base/arena.h"
#include "engine/admin/workers.h"
#include "engine/limit/budgets.h"
#include "engine/tx/tx.h"
#include "store/store.h"
#include "weft/weft.h"

#include <stdlib.h>
#include <string.h>

enum { SEEDS = 6, SOAK_SEEDS = 3000, STEPS = 300, LIVING_MAX = 30, LEASE_MS = 3600000 };

struct walk {
    struct fixture *f;
    uint64_t random;
    struct model model;
    bool errands;       /* they are not lost */
    const char *did;    /* the step */
    const char *broken; /* what was found; NULL: nothing */
};

static uint32_t roll(struct walk *walk, uint32_t sides)
{
    return (uint32_t)(next_random(&walk->random) >> 33) % sides;
}

static struct weft_engine *any_engine(struct walk *walk)
{
    return roll(walk, 2) ? walk->f->a : walk->f->b;
}

static void let_errands_run(struct walk *walk, bool run)
{
    walk->errands = run;
    lose_errands(walk->f->a, !run);
    lose_errands(walk->f->b, !run);
}

/* ---- Steps: executions ----------------------------------------------------------------------- */

static void submit_one(struct walk *walk)
{
    struct model *model = &walk->model;
    size_t living = 0;
    for (size_t i = 0; i < model->items; i++)
        living += !model->item[i].over;
    if (living >= LIVING_MAX || model->items == ITEMS_MAX)
        return;
    struct item *item = &model->item[model->items++];
    *item = (struct item){.kind = roll(walk, 2) ? "a" : "b",
                          .tenant = roll(walk, 2) ? NULL : "x",
                          .named = roll(walk, 3) == 0,
                          .cost = (int64_t)roll(walk, 60) - 30};
    struct weft_spec spec = {.kind = item->kind, .tenant = item->tenant};
    const struct weft_amount cost = {"tokens", item->cost};
    static const char *const names[] = {"named", "nothing"};
    static const struct weft_policy policy = {.initial_ms = -1, .max_attempts = 100};
    spec.policy = &policy;
    if (item->cost >= 0) {
        spec.cost = &cost;
        spec.cost_count = 1;
    }
    if (item->named) {
        spec.budgets = names;
        spec.budget_count = WEFT_LEN(names);
    }
    item->id = submit_ok(walk->f, &spec);
}

/* Budgets as they are, for what the model cannot know: which periods a claim has ended. */
static void see_periods(struct walk *walk)
{
    for (size_t i = 0; i < BUDGETS; i++) {
        struct budget *budget = &walk->model.budget[i];
        if (!budget->there || budget->next_us == 0 || budget->next_us > walk->f->now_us)
            continue;
        if (budget_now(walk->f, budget->name).next_reset_us != budget->next_us)
            model_begin(budget, walk->f->now_us);
    }
}

static void claim_some(struct walk *walk)
{
    struct model *model = &walk->model;
    size_t room = LEASES_MAX - model_count_open(model);
    struct weft_engine *engine = any_engine(walk);
    if (room == 0)
        return;
    const struct weft_claim args = {.worker = engine == walk->f->a ? "worker-a" : "worker-b",
                                    .max = 1 + roll(walk, (uint32_t)room),
                                    .lease_ms = LEASE_MS};
    struct weft_claim_result got = claim_with(walk->f, engine, &args);
    see_periods(walk);
    for (size_t i = 0; i < got.count && !walk->broken; i++)
        walk->broken = model_claim(model, &got.item[i], args.worker);
}

/* A lease that runs; NULL: none does. */
static struct lease *any_running(struct walk *walk)
{
    struct model *model = &walk->model;
    size_t first = model->leases ? roll(walk, (uint32_t)model->leases) : 0;
    for (size_t i = 0; i < model->leases; i++) {
        struct lease *lease = &model->lease[(first + i) % model->leases];
        if (lease->runs)
            return lease;
    }
    return NULL;
}

static struct weft_claimed as_claimed(const struct lease *lease)
{
    return (struct weft_claimed){.id = lease->id, .epoch = lease->epoch};
}

static void report_one(struct walk *walk)
{
    struct model *model = &walk->model;
    bool any = roll(walk, 8) == 0 && model->leases > 0;
    struct lease *lease =
        any ? &model->lease[roll(walk, (uint32_t)model->leases)] : any_running(walk);
    if (!lease)
        return;
    struct weft_amount total[] = {{"tokens", lease->told + (int64_t)roll(walk, 60) - 8},
                                  {"cents", (int64_t)roll(walk, 30)},
                                  {"nonsense", 5}};
    if (total[0].amount < 0)
        total[0].amount = 0;
    size_t count = 1 + roll(walk, 3);
    const struct weft_claimed claimed = as_claimed(lease);
    struct weft_usage_result answer = report_all(walk->f, any_engine(walk), &claimed, total, count);
    const struct model_report given = {.lease = lease, .total = total, .count = count};
    enum weft_rc want = model_report(model, &given, walk->f->now_us, walk->errands);
    if (answer.rc != want)
        walk->broken = weft_arena_printf(walk->f->arena, "a report got %s in place of %s",
                                         weft_rc_wire(answer.rc), weft_rc_wire(want));
}

static void end_one(struct walk *walk)
{
    struct lease *lease = any_running(walk);
    if (!lease)
        return;
    const struct weft_claimed claimed = as_claimed(lease);
    uint32_t how = roll(walk, 4);
    struct weft_engine *engine = any_engine(walk);
    enum weft_rc rc;
    if (how == 0)
        rc = complete(walk->f, engine, &claimed, NULL).err.rc;
    else if (how == 1)
        rc = fail(walk->f, engine, &claimed, "busy").err.rc;
    else if (how == 2)
        rc = put_back(walk->f, WEFT_PUT_BACK_RELEASE, &claimed, 0).err.rc;
    else
        rc = steer_id(walk->f, WEFT_STEER_CANCEL, &claimed.id).err.rc;
    if (rc)
        walk->broken = "a lease that runs cannot be ended";
    model_end(&walk->model, lease, how == 0 || how == 3, walk->errands);
}

/* The worker of a process says goodbye, or renews nothing for an hour. */
static void end_many(struct walk *walk)
{
    struct model *model = &walk->model;
    struct weft_err err = {0};
    uint64_t released;
    const char *worker = roll(walk, 2) ? "worker-a" : "worker-b";
    bool all = roll(walk, 3) == 0;
    if (all) {
        forward_ms(walk->f, LEASE_MS);
        (void)run_pass(walk->f, any_engine(walk), WEFT_SCANNER_LEASE_EXPIRY);
    } else if (weft_engine_goodbye(any_engine(walk), "default", worker, &released, &err)) {
        walk->broken = "goodbye fails";
    }
    for (size_t i = 0; i < model->leases; i++)
        if (model->lease[i].runs && (all || strcmp(model->lease[i].worker, worker) == 0))
            model_end(model, &model->lease[i], false, walk->errands);
}

/* ---- Steps: budgets -------------------------------------------------------------------------- */

static void poll_both(struct walk *walk)
{
    struct weft_engine *b = walk->f->b;
    tell_other(walk->f);
    walk->f->b = walk->f->a;
    tell_other(walk->f);
    walk->f->b = b;
}

static void put_one(struct walk *walk, struct budget *budget)
{
    struct weft_budget_dimension dimension[] = {
        {.name = "tokens",
         .hard = roll(walk, 5) ? 40 + (int64_t)roll(walk, 200) : 0,
         .soft = (int64_t)roll(walk, 100),
         .estimate = (int64_t)roll(walk, 40)},
        {.name = "cents", .hard = roll(walk, 2) ? 20 + (int64_t)roll(walk, 60) : 0, .estimate = 2},
    };
    const struct weft_budget put = {.name = budget->name,
                                    .matches = budget->matches,
                                    .match_kind = budget->kind,
                                    .match_tenant = budget->tenant,
                                    .dimension = dimension,
                                    .dimension_count = 1 + roll(walk, 2),
                                    .every_ms = budget->every_ms,
                                    .anchor_us = budget->every_ms ? MODEL_ANCHOR_US : 0,
                                    .on_hard = budget->on_hard};
    struct weft_err err = {0};
    if (weft_engine_budget_put(any_engine(walk), "default", &put, &err))
        walk->broken = "a budget cannot be put";
    model_put(&walk->model, budget, &put, walk->f->now_us, walk->errands);
    poll_both(walk);
}

static void change_budget(struct walk *walk)
{
    struct budget *budget = &walk->model.budget[roll(walk, BUDGETS)];
    struct weft_budget got;
    struct weft_err err = {0};
    uint32_t what = roll(walk, 6);
    enum weft_rc want = budget->there ? WEFT_OK : WEFT_NOT_FOUND, rc = want;
    if (what == 0) {
        rc = weft_engine_budget_remove(any_engine(walk), "default", budget->name, walk->f->arena,
                                       &got, &err);
        model_remove(&walk->model, budget);
        poll_both(walk);
    } else if (what == 1) {
        rc = weft_engine_budget_reset(any_engine(walk), "default", budget->name, walk->f->arena,
                                      &got, &err);
        if (budget->there)
            model_begin(budget, walk->f->now_us);
    } else {
        put_one(walk, budget);
    }
    if (rc != want)
        walk->broken = "a budget cannot be removed or reset";
}

static void scan(struct walk *walk)
{
    struct weft_engine *engine = any_engine(walk);
    struct weft_pass_report pass = {.more = true};
    for (int i = 0; i < 10 && pass.more; i++)
        pass = run_pass(walk->f, engine, WEFT_SCANNER_BUDGET_RESET);
    if (pass.more)
        walk->broken = "a pass never ends";
    model_scan(&walk->model, walk->f->now_us);
}

/* ---- What must hold -------------------------------------------------------------------------- */

/* What the store and the model do not agree on; NULL: nothing. */
static const char *compare(struct walk *walk, struct budget *budget)
{
    struct weft_budget now = {0};
    struct weft_err err = {0};
    enum weft_rc rc =
        weft_engine_budget(walk->f->b, "default", budget->name, walk->f->arena, &now, &err);
    if (rc != (budget->there ? WEFT_OK : WEFT_NOT_FOUND))
        return "a budget is there, or not";
    if (!budget->there)
        return NULL;
    if (now.next_reset_us != budget->next_us)
        return "the end of a period";
    if (now.state != model_state(budget) || now.breaches != budget->breaches)
        return "the state or the breaches of a budget";
    if (now.dimension_count != model_dimensions(budget))
        return "the dimensions of a budget";
    for (size_t i = 0; i < now.dimension_count; i++) {
        const struct weft_budget_dimension *is = &now.dimension[i];
        const struct dimension *want = model_dimension(budget, is->name);
        if (is->used != want->sums.used || is->reserved != want->sums.reserved)
            return weft_arena_printf(walk->f->arena,
                                     "%s of %s: %lld used and %lld reserved, by the model %lld "
                                     "and %lld",
                                     is->name, budget->name, (long long)is->used,
                                     (long long)is->reserved, (long long)want->sums.used,
                                     (long long)want->sums.reserved);
        if (want->sums.hard > 0 && want->sums.used > want->sums.hard && !want->lowered)
            return "more is used than the limit allows";
    }
    return NULL;
}

static void check(struct walk *walk)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_err err = {0};
    weft_call_check_budgets(&call, arena);
    if (weft_tx_once(walk->f->b, WEFT_TX_READ, &call, arena, &rows, &err))
        walk->broken = "the check fails";
    else if (rows.count > 0)
        walk->broken = weft_arena_strdup(walk->f->arena, weft_out_check_budgets(&rows)->problem);
    weft_arena_free(arena);
    for (size_t i = 0; i < BUDGETS && !walk->broken; i++)
        walk->broken = compare(walk, &walk->model.budget[i]);
}

static void step(struct walk *walk)
{
    static const struct {
        const char *name;
        void (*run)(struct walk *walk);
        uint32_t weight;
    } steps[] = {
        {"submit", submit_one, 8}, {"claim", claim_some, 6},  {"report", report_one, 16},
        {"end", end_one, 5},       {"end many", end_many, 1}, {"change a budget", change_budget, 2},
        {"scan", scan, 1},
    };
    uint32_t sum = 3;
    for (size_t i = 0; i < WEFT_LEN(steps); i++)
        sum += steps[i].weight;
    uint32_t dice = roll(walk, sum);
    walk->did = dice < 2 ? "time" : "errands";
    if (dice < 2)
        forward_ms(walk->f, 1000 + (int64_t)roll(walk, 40000));
    else if (dice == 2)
        let_errands_run(walk, roll(walk, 3) > 0);
    uint32_t at = 3;
    for (size_t i = 0; i < WEFT_LEN(steps) && dice >= 3; i++, at += steps[i - 1].weight)
        if (dice >= at && dice < at + steps[i].weight) {
            walk->did = steps[i].name;
            steps[i].run(walk);
        }
    if (!walk->broken)
        check(walk);
}

/* With all limits gone, all that is ready can be claimed. */
static void finish(struct walk *walk)
{
    struct weft_budget gone;
    struct weft_err err = {0};
    let_errands_run(walk, true);
    for (size_t i = 0; i < BUDGETS; i++) {
        (void)!weft_engine_budget_remove(walk->f->a, "default", walk->model.budget[i].name,
                                         walk->f->arena, &gone, &err);
        model_remove(&walk->model, &walk->model.budget[i]);
    }
    poll_both(walk);
    const struct weft_filter ready = {.state = WEFT_STATE_READY};
    size_t left = count_rows(walk->f, &ready);
    ok(left == 0 || claim(walk->f, walk->f->a, 1000).count == left,
       "without budgets all that is left is claimed");
    for (size_t i = 0; i < walk->model.items; i++)
        if (weft_state_living(state_of(walk->f, &walk->model.item[i].id)))
            (void)steer_id(walk->f, WEFT_STEER_CANCEL, &walk->model.item[i].id);
    forward_ms(walk->f, INT64_C(2) * LEASE_MS); /* leases that drain run out */
    (void)run_pass(walk->f, walk->f->a, WEFT_SCANNER_LEASE_EXPIRY);
}

static void walk_once(struct fixture *f, uint64_t seed)
{
    struct walk *walk = weft_new(f->arena, struct walk);
    walk->f = f;
    walk->random = seed * 7919;
    int steps = 0;
    model_init(&walk->model);
    let_errands_run(walk, true);
    for (size_t i = 0; i < BUDGETS; i++)
        put_one(walk, &walk->model.budget[i]);
    while (steps < STEPS && !walk->broken) {
        step(walk);
        steps++;
    }
    const struct model *model = &walk->model;
    printf("# seed %d: %d claimed, %d recorded, %d refused, %d cancelled, %d periods\n", (int)seed,
           model->claimed, model->recorded, model->refused, model->cancelled, model->periods);
    ok(!walk->broken, "seed %d: %d steps; %s: %s", (int)seed, steps, walk->did,
       walk->broken ? walk->broken : "all holds");
    finish(walk);
}

CASE(budget_random_walk)
{
    const char *only = getenv("WEFT_WALK_SEED"); /* NOLINT(concurrency-mt-unsafe): one thread */
    if (only && *only) {
        walk_once(f, strtoull(only, NULL, 10));
        return;
    }
    for (uint64_t seed = 1; seed <= (soaking() ? SOAK_SEEDS : SEEDS); seed++)
        walk_once(f, seed);
}
