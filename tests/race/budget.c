/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Claims and settings of a budget in two processes: they meet each other, resets and removals, the
 * slow one stopped at each of its statements in turn. Whichever comes first, no more is reserved
 * than fits, the ledger adds up, and nothing deadlocks.
 */

#include "budgets.h"

#include "engine/limit/budgets.h"

static const struct where in_claim[] = {
    {"claim-locks", AFTER(BUDGET_LOCK)},   {"claim-sums", AFTER(DIMENSIONS_OF)},
    {"claim-looks", BEFORE(CHARGE_HEADS)}, {"claim-looked", AFTER(CHARGE_HEADS)},
    {"claim-takes", AFTER(CLAIM)},         {"claim-reserves", AFTER(LEDGER_PUT)},
    {"claim-adds", AFTER(SUMS_ADD)},       {"claim-commits", COMMIT(LEDGER_PUT)},
};
static const struct where in_reset[] = {
    {"reset-locks", AFTER(BUDGET_LOCK)},
    {"reset-begins", BEFORE(BUDGET_BEGIN)},
    {"reset-begun", AFTER(BUDGET_BEGIN)},
    {"reset-commits", COMMIT(BUDGET_BEGIN)},
};
static const struct where in_put[] = {
    {"put-locks", AFTER(BUDGET_LOCK)},         {"put-writes", AFTER(BUDGET_PUT)},
    {"put-dimensions", AFTER(DIMENSIONS_PUT)}, {"put-drops", AFTER(DIMENSIONS_DROP)},
    {"put-commits", COMMIT(BUDGETS_CHANGED)},
};

/* ---- Claims ---------------------------------------------------------------------------------- */

RACE(two_claims_under_one_budget)
{
    for (size_t i = 0; i < WEFT_LEN(in_claim); i++) {
        const char *name = in_claim[i].name;
        budget_make(race, name, false);
        struct deed slow = deed_of(race->a, name), fast = deed_of(race->b, name);
        deeds_meet(race, &slow, &fast, &in_claim[i]);
        ok(slow.rc == WEFT_OK && fast.rc == WEFT_OK, "%s: both succeed", name);
        is_int(slow.count + fast.count, FIT, "%s: together they get what fits", name);
        budget_expect(race, name, 0, (int64_t)FIT * ESTIMATE);
    }
    race_no_deadlock(race);
}

/* Used up before the reset: the claim finds nothing, or all that fits. */
static void claim_and_reset(struct race *race, const struct where *where, bool claim_first)
{
    struct weft_claimed lease[2];
    budget_make(race, where->name, false);
    budget_start_two(race, where->name, lease);
    struct deed claim = deed_of(race->a, where->name), reset = deed_of(race->b, where->name);
    for (size_t i = 0; i < 2; i++) {
        struct deed end = deed_of(race->b, where->name);
        end.lease = lease[i];
        end.amount = 40;
        end.what = REPORT;
        deed_do(&end);
        end.what = COMPLETE;
        deed_do(&end);
    }
    claim.what = CLAIM;
    reset.what = RESET;
    deeds_meet(race, claim_first ? &claim : &reset, claim_first ? &reset : &claim, where);
    ok(claim.rc == WEFT_OK && reset.rc == WEFT_OK, "%s: both succeed: %s %s", where->name,
       claim.err.text, reset.err.text);
    ok(claim.count == 0 || claim.count == FIT, "%s: nothing is claimed, or all that fits: %zu",
       where->name, claim.count);
    budget_expect(race, where->name, 0, ESTIMATE * (int64_t)claim.count);
}

RACE(claim_meets_reset)
{
    static const struct where early[] = {
        {"claim-locks", AFTER(BUDGET_LOCK)},
        {"claim-sums", AFTER(DIMENSIONS_OF)},
        {"claim-looked", AFTER(CHARGE_HEADS)},
    };
    for (size_t i = 0; i < WEFT_LEN(early); i++)
        claim_and_reset(race, &early[i], true);
    for (size_t i = 0; i < WEFT_LEN(in_reset); i++)
        claim_and_reset(race, &in_reset[i], false);
    race_no_deadlock(race);
}

static void claim_and_put(struct race *race, const struct where *where, bool claim_first)
{
    budget_make(race, where->name, false);
    struct deed claim = deed_of(race->a, where->name), lower = deed_of(race->b, where->name);
    claim.what = CLAIM;
    lower.what = PUT;
    lower.amount = ESTIMATE;
    deeds_meet(race, claim_first ? &claim : &lower, claim_first ? &lower : &claim, where);
    ok(claim.rc == WEFT_OK && lower.rc == WEFT_OK, "%s: both succeed", where->name);
    ok(claim.count == FIT || claim.count == 1, "%s: %zu fit into the one limit or the other",
       where->name, claim.count);
    budget_expect(race, where->name, 0, ESTIMATE * (int64_t)claim.count);
}

RACE(put_meets_claim)
{
    for (size_t i = 0; i < WEFT_LEN(in_claim); i++)
        claim_and_put(race, &in_claim[i], true);
    for (size_t i = 0; i < WEFT_LEN(in_put); i++)
        claim_and_put(race, &in_put[i], false);
    race_no_deadlock(race);
}

/* A budget is removed under a claim, and made again: nothing of the old one is in the new one. */
RACE(remove_meets_claim)
{
    for (size_t i = 0; i < WEFT_LEN(in_claim); i++) {
        const char *name = in_claim[i].name;
        budget_make(race, name, false);
        struct deed slow = deed_of(race->a, name), fast = deed_of(race->b, name);
        slow.what = CLAIM;
        fast.what = REMOVE;
        deeds_meet(race, &slow, &fast, &in_claim[i]);
        ok(slow.rc == WEFT_OK && fast.rc == WEFT_OK, "%s: both succeed", name);
        is_int(slow.count, FIT, "%s: the claim was there first", name);
        struct deed end = deed_of(race->b, name), again = deed_of(race->b, name);
        again.what = PUT;
        again.amount = HARD;
        deed_do(&again);
        end.what = COMPLETE;
        end.lease = slow.item[0];
        deed_do(&end);
        budget_expect(race, name, 0, 0);
    }
    race_no_deadlock(race);
}

/* ---- Settings -------------------------------------------------------------------------------- */

/* Two budgets that match the same lane are put at once: every process learns of both. */
RACE(two_puts_reach_all)
{
    for (size_t i = 0; i < WEFT_LEN(in_put); i++) {
        const char *name = in_put[i].name;
        char other[64];
        struct weft_err err = {0};
        budget_make(race, name, false);
        (void)snprintf(other, sizeof(other), "%s-2", name);
        const struct weft_budget_dimension tokens = {.name = "tokens", .estimate = 1};
        const struct weft_budget wide = {.name = other,
                                         .matches = true,
                                         .match_kind = "none",
                                         .dimension = &tokens,
                                         .dimension_count = 1};
        if (weft_engine_budget_put(race->a, "default", &wide, &err))
            bail_out("budget: %s", err.text);
        budgets_poll(race);
        struct deed slow = deed_of(race->a, name), fast = deed_of(race->b, other);
        slow.what = fast.what = PUT; /* the second one begins to match its own lane */
        slow.amount = fast.amount = HARD;
        deeds_meet(race, &slow, &fast, &in_put[i]);
        ok(slow.rc == WEFT_OK && fast.rc == WEFT_OK, "%s: both succeed", name);
        budgets_poll(race);
        struct weft_id id;
        put_work(race->a, &(struct weft_spec){.kind = "job", .lane = other}, 1, &id);
        struct deed claim[2] = {deed_of(race->a, other), deed_of(race->b, name)};
        deed_do(&claim[0]);
        deed_do(&claim[1]);
        budget_expect(race, other, 0, ESTIMATE);
        budget_expect(race, name, 0, (int64_t)FIT * ESTIMATE);
    }
    race_no_deadlock(race);
}

/* Two passes remove the ledger of a period and fold another one, each row once. */
RACE(two_passes_tidy_a_ledger)
{
    static const struct where where[] = {
        {"tidy-sweeps", AFTER(LEDGER_SWEEP)},
        {"tidy-swept", COMMIT(LEDGER_SWEEP)},
        {"tidy-folds", AFTER(LEDGER_FOLD)},
        {"tidy-folded", COMMIT(LEDGER_FOLD)},
    };
    for (size_t i = 0; i < WEFT_LEN(where); i++) {
        const char *name = where[i].name;
        struct weft_claimed lease[2];
        int64_t used = 0;
        budget_make(race, name, false);
        for (int period = 0; period < 2; period++) {
            budget_start_two(race, name, lease);
            for (size_t k = 0; k < 2; k++) {
                struct deed end = deed_of(race->b, name);
                end.lease = lease[k];
                end.amount = 5;
                end.what = REPORT;
                deed_do(&end);
                end.what = COMPLETE;
                deed_do(&end);
            }
            struct deed reset = deed_of(race->b, name);
            reset.what = RESET;
            if (period == 0)
                deed_do(&reset);
            used = period == 0 ? 0 : 10;
        }
        budget_expect(race, name, used, 0);
        const struct weft_budget never = {
            .name = name,
            .dimension = &(struct weft_budget_dimension){.name = "tokens", .hard = HARD},
            .dimension_count = 1};
        struct weft_err err = {0};
        if (weft_engine_budget_put(race->b, "default", &never, &err))
            bail_out("budget: %s", err.text);
        race_forward(race, INT64_C(8) * 86400000);
        struct deed slow = deed_of(race->a, name), fast = deed_of(race->b, name);
        slow.what = fast.what = SCAN;
        deeds_meet(race, &slow, &fast, &where[i]);
        ok(slow.rc == WEFT_OK && fast.rc == WEFT_OK, "%s: both succeed: %s %s", name, slow.err.text,
           fast.err.text);
        is_int(counter_of(&slow.pass, "removed") + counter_of(&fast.pass, "removed"), 2,
               "%s: the ledger of the first period is removed", name);
        is_int(counter_of(&slow.pass, "folded") + counter_of(&fast.pass, "folded"), 2,
               "%s: that of the second is folded", name);
        budget_expect(race, name, used, 0);
    }
    race_no_deadlock(race);
}
