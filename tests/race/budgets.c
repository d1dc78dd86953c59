/* SPDX-License-Identifier: Apache-2.0 */

/* See budgets.h. */

#include "budgets.h"
#include "direct.h"

#include "engine/admin/doctor.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/limit/budgets.h"
#include "engine/limit/settle.h"
#include "engine/limit/usage.h"
#include "engine/ready/poll.h"
#include "engine/tx/commit_effects.h"

#include <string.h>

/* ---- Short forms ----------------------------------------------------------------------------- */

void budgets_poll(struct race *race)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_poll poll;
    struct weft_err err = {0};
    if (weft_engine_poll(race->a, arena, &poll, &err) ||
        weft_engine_poll(race->b, arena, &poll, &err))
        bail_out("poll: %s", err.text);
    weft_arena_free(arena);
}

/* A budget of a lane of the same name. */
enum weft_rc budget_put(struct weft_engine *engine, const char *name, int64_t hard, bool cancels,
                        struct weft_err *err)
{
    const struct weft_budget_dimension tokens = {
        .name = "tokens", .hard = hard, .estimate = ESTIMATE};
    const struct weft_budget budget = {.name = name,
                                       .matches = true,
                                       .match_lane = name,
                                       .dimension = &tokens,
                                       .dimension_count = 1,
                                       .every_ms = MINUTE_MS,
                                       .anchor_us = START_US,
                                       .on_hard =
                                           cancels ? WEFT_ON_HARD_CANCEL : WEFT_ON_HARD_HOLD};
    return weft_engine_budget_put(engine, "default", &budget, err);
}

/* A budget whose lane has WORK executions; both processes know it. */
void budget_make(struct race *race, const char *name, bool cancels)
{
    struct weft_id id[WORK];
    struct weft_err err = {0};
    if (budget_put(race->b, name, HARD, cancels, &err))
        bail_out("budget %s: %s", name, err.text);
    put_work(race->a, &(struct weft_spec){.kind = "job", .lane = name}, WORK, id);
    budgets_poll(race);
}

struct weft_budget budget_now(struct race *race, const char *name)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_budget budget = {0};
    struct weft_err err = {0};
    if (weft_engine_budget(race->b, "default", name, arena, &budget, &err))
        bail_out("budget %s: %s", name, err.text);
    static struct weft_budget_dimension tokens;
    tokens = budget.dimension[0];
    budget.dimension = &tokens;
    weft_arena_free(arena);
    return budget;
}

void budget_expect(struct race *race, const char *name, int64_t used, int64_t reserved)
{
    struct weft_err err = {0};
    struct weft_budget now = budget_now(race, name);
    if (!ok(now.dimension->used == used && now.dimension->reserved == reserved,
            "%s: %lld used, %lld reserved", name, (long long)used, (long long)reserved))
        printf("# got %lld used, %lld reserved\n", (long long)now.dimension->used,
               (long long)now.dimension->reserved);
    enum weft_rc rc = weft_engine_check(race->b, &err);
    ok(rc == WEFT_OK, "%s: the ledger adds up%s%s", name, rc ? ": " : "", rc ? err.text : "");
}

/* ---- What a thread does ---------------------------------------------------------------------- */

static void report(struct deed *deed)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_usage_result answer = {0};
    const struct weft_amount total = {"tokens", deed->amount};
    const struct weft_usage item = {
        .id = deed->lease.id, .epoch = deed->lease.epoch, .totals = &total, .total_count = 1};
    deed->rc = weft_engine_usage(deed->engine, &item, 1, arena, &answer, &deed->err);
    deed->rc = deed->rc ? deed->rc : answer.rc;
    weft_arena_free(arena);
}

static void claim(struct deed *deed)
{
    /* A claim that waited for the other for too long has found nothing: it comes again. */
    struct weft_arena *arena = weft_arena_new();
    const struct weft_claim args = {
        .worker = "claimer", .lanes = &deed->name, .lane_count = 1, .max = WORK};
    struct weft_claim_result got = {0};
    int tries = 0;
    do {
        deed->rc = weft_engine_claim(deed->engine, "default", &args, 1, arena, &got, &deed->err);
    } while (!deed->rc && got.contended && got.count == 0 && ++tries < 20);
    deed->count = got.count;
    for (size_t i = 0; i < got.count; i++)
        deed->item[i] = (struct weft_claimed){.id = got.item[i].id, .epoch = got.item[i].epoch};
    weft_arena_free(arena);
}

static void complete(struct deed *deed)
{
    struct weft_lease_answer answer = {0};
    const struct weft_complete item = {.id = deed->lease.id, .epoch = deed->lease.epoch};
    deed->rc = engine_complete(deed->engine, &item, 1, &answer, &deed->err);
    deed->rc = deed->rc ? deed->rc : answer.err.rc;
}

static void cancel(struct deed *deed)
{
    struct weft_budget_cancelled done = {.more = true};
    while (done.more && !deed->rc)
        deed->rc = weft_engine_budget_cancel(deed->engine, WORK, &done, &deed->err);
}

void deed_do(void *context)
{
    struct deed *deed = context;
    struct weft_arena *arena = weft_arena_new();
    struct weft_budget budget;
    const struct weft_lease_end end = {.lease = {.id = deed->lease.id, .epoch = deed->lease.epoch}};
    uint64_t settled = 0;
    if (deed->what == CLAIM)
        claim(deed);
    else if (deed->what == REPORT)
        report(deed);
    else if (deed->what == COMPLETE)
        complete(deed);
    else if (deed->what == CANCEL)
        cancel(deed);
    else if (deed->what == SETTLE)
        deed->rc = weft_engine_settle(deed->engine, &end, 1, &settled, &deed->err);
    else if (deed->what == RESET)
        deed->rc = weft_engine_budget_reset(deed->engine, "default", deed->name, arena, &budget,
                                            &deed->err);
    else if (deed->what == REMOVE)
        deed->rc = weft_engine_budget_remove(deed->engine, "default", deed->name, arena, &budget,
                                             &deed->err);
    else if (deed->what == PUT)
        deed->rc = budget_put(deed->engine, deed->name, deed->amount, false, &deed->err);
    else
        deed->rc = weft_engine_pass(deed->engine, WEFT_SCANNER_BUDGET_RESET, NULL, &deed->pass,
                                    &deed->err);
    if (deed->what == SETTLE)
        deed->count = settled;
    weft_arena_free(arena);
}

struct deed deed_of(struct weft_engine *engine, const char *name)
{
    return (struct deed){.engine = engine, .name = name};
}

void deeds_meet(struct race *race, struct deed *slow, struct deed *fast, const struct where *where)
{
    race_meet(race, &(struct meeting){.run = deed_do,
                                      .slow = slow,
                                      .fast = fast,
                                      .point = where->point,
                                      .stmt = where->stmt});
}

/* Two leases of the lane. */
void budget_start_two(struct race *race, const char *name, struct weft_claimed lease[2])
{
    struct deed two = deed_of(race->a, name);
    const struct weft_claim args = {.worker = "claimer", .lanes = &name, .lane_count = 1, .max = 2};
    struct weft_arena *arena = weft_arena_new();
    struct weft_claim_result got = {0};
    if (weft_engine_claim(race->a, "default", &args, 1, arena, &got, &two.err) || got.count != 2)
        bail_out("%s: two cannot be claimed: %s", name, two.err.text);
    for (size_t i = 0; i < 2; i++)
        lease[i] = (struct weft_claimed){.id = got.item[i].id, .epoch = got.item[i].epoch};
    weft_arena_free(arena);
}

static void lose(void *context, const struct weft_lease_end *ended, size_t count, bool cancels)
{
    (void)context;
    (void)ended;
    (void)count;
    (void)cancels;
}

void budgets_lose_errands(struct race *race, bool yes)
{
    weft_engine_on_budgets(race->a, yes ? lose : NULL, NULL);
    weft_engine_on_budgets(race->b, yes ? lose : NULL, NULL);
}
