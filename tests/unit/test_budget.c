/* SPDX-License-Identifier: Apache-2.0 */

/* Budgets: sums, reports, states, and the checks of settings. */

#include "core/budget.h"

#include "base/clock.h"
#include "base/limits.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

/* ---- Sums ------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    struct weft_sums sums;
    int64_t cost;
    bool fits;
} fits[] = {
    {"the first claim", {.hard = 100}, 10, true},
    {"exactly the rest", {.hard = 100, .used = 50, .reserved = 40}, 10, true},
    {"one too many", {.hard = 100, .used = 50, .reserved = 40}, 11, false},
    {"a cost above the hard limit", {.hard = 100}, 101, false},
    {"a cost of nothing, all of it reserved", {.hard = 100, .reserved = 100}, 0, true},
    {"a cost of nothing, all of it used", {.hard = 100, .used = 100}, 0, false},
    {"a cost of nothing, more used than a lowered limit", {.hard = 100, .used = 150}, 0, false},
    {"more reserved than a lowered limit", {.hard = 100, .reserved = 150}, 1, false},
    {"the estimate is not looked at", {.hard = 100, .estimate = 90, .used = 50}, 50, true},
    {"the soft limit lets pass", {.hard = 100, .soft = 1, .used = 50}, 50, true},
    {"no hard limit", {.used = WEFT_AMOUNT_MOST}, WEFT_AMOUNT_MOST, true},
    {"no hard limit, as far as numbers go",
     {.used = WEFT_SUM_MOST - WEFT_AMOUNT_MOST},
     WEFT_AMOUNT_MOST,
     true},
    {"no hard limit, and a step beyond", {.used = WEFT_SUM_MOST - 1}, 2, false},
    {"both sums as large as they get, no overflow",
     {.used = WEFT_SUM_MOST, .reserved = WEFT_SUM_MOST},
     WEFT_AMOUNT_MOST,
     false},
    {"the largest limit", {.hard = WEFT_AMOUNT_MOST, .used = 1}, WEFT_AMOUNT_MOST - 1, true},
};

static void test_fit(void)
{
    for (size_t i = 0; i < WEFT_LEN(fits); i++)
        ok(weft_sums_fit(&fits[i].sums, fits[i].cost) == fits[i].fits, "%s: %s", fits[i].name,
           fits[i].fits ? "fits" : "does not fit");
}

static const struct {
    const char *name;
    struct weft_sums sums;
    int64_t left;
} lefts[] = {
    {"nothing used", {.hard = 100}, 100},
    {"what others have reserved may be spent", {.hard = 100, .used = 30, .reserved = 70}, 70},
    {"all used", {.hard = 100, .used = 100}, 0},
    {"more used than a lowered limit", {.hard = 100, .used = 101}, 0},
    {"no hard limit", {.used = 5}, WEFT_SUM_MOST - 5},
    {"no hard limit and all numbers used", {.used = WEFT_SUM_MOST}, 0},
};

static void test_left(void)
{
    for (size_t i = 0; i < WEFT_LEN(lefts); i++)
        is_int(weft_sums_left(&lefts[i].sums), lefts[i].left, "%s: what is left", lefts[i].name);
}

/* A report, whether it is allowed, and the sums behind it. */
static const struct {
    const char *name;
    struct weft_sums sums;
    struct weft_lease_charge charge;
    int64_t total;
    bool allowed;
    int64_t used, reserved, kept; /* kept: of the reservation of the lease */
} reports[] = {
    {"within its reservation", {.hard = 100, .reserved = 50}, {30, 0}, 20, true, 20, 30, 10},
    {"exactly its reservation", {.hard = 100, .reserved = 50}, {30, 0}, 30, true, 30, 20, 0},
    {"beyond its reservation", {.hard = 100, .reserved = 50}, {30, 0}, 45, true, 45, 20, 0},
    {"a later total adds the difference",
     {.hard = 100, .used = 20, .reserved = 40},
     {10, 20},
     25,
     true,
     25,
     35,
     5},
    {"the same total", {.hard = 100, .used = 20, .reserved = 9}, {9, 20}, 20, true, 20, 9, 9},
    {"a smaller total", {.hard = 100, .used = 20, .reserved = 9}, {9, 20}, 3, true, 20, 9, 9},
    {"a total of nothing", {.hard = 100, .reserved = 9}, {9, 0}, 0, true, 0, 9, 9},
    {"up to the hard limit", {.hard = 100, .used = 60}, {0, 60}, 100, true, 100, 0, 0},
    {"one beyond it", {.hard = 100, .used = 60}, {0, 60}, 101, false, 60, 0, 0},
    {"into what another has reserved",
     {.hard = 100, .used = 10, .reserved = 90},
     {20, 10},
     100,
     true,
     100,
     70,
     0},
    {"a repeat when all is used", {.hard = 100, .used = 100}, {0, 40}, 40, true, 100, 0, 0},
    {"a repeat above a lowered limit", {.hard = 50, .used = 100}, {0, 40}, 40, true, 100, 0, 0},
    {"more above a lowered limit", {.hard = 50, .used = 100}, {9, 40}, 41, false, 100, 0, 9},
    {"no hard limit", {.used = 7}, {0, 0}, WEFT_AMOUNT_MOST, true, WEFT_AMOUNT_MOST + 7, 0, 0},
    {"no hard limit, beyond all numbers",
     {.used = WEFT_SUM_MOST},
     {0, 5},
     6,
     false,
     WEFT_SUM_MOST,
     0,
     0},
};

static void test_report(void)
{
    for (size_t i = 0; i < WEFT_LEN(reports); i++) {
        struct weft_sums sums = reports[i].sums;
        struct weft_lease_charge charge = reports[i].charge;
        bool allowed = weft_sums_allow(&sums, &charge, reports[i].total);
        ok(allowed == reports[i].allowed, "%s: %s", reports[i].name,
           reports[i].allowed ? "allowed" : "refused");
        if (!allowed)
            continue;
        weft_sums_report(&sums, &charge, reports[i].total);
        ok(sums.used == reports[i].used && sums.reserved == reports[i].reserved &&
               charge.reserved == reports[i].kept,
           "%s: used %lld, reserved %lld, of these %lld its own", reports[i].name,
           (long long)sums.used, (long long)sums.reserved, (long long)charge.reserved);
        bool grew = reports[i].total > reports[i].charge.total;
        is_int(charge.total, grew ? reports[i].total : reports[i].charge.total,
               "%s: the largest total is kept", reports[i].name);
    }
}

static const struct {
    const char *name;
    struct weft_sums sums;
    enum weft_budget_state state;
} states[] = {
    {"nothing used", {.hard = 100, .soft = 80}, WEFT_BUDGET_OK},
    {"one below soft", {.hard = 100, .soft = 80, .used = 79}, WEFT_BUDGET_OK},
    {"soft", {.hard = 100, .soft = 80, .used = 80}, WEFT_BUDGET_SOFT},
    {"one below hard", {.hard = 100, .soft = 80, .used = 99}, WEFT_BUDGET_SOFT},
    {"hard", {.hard = 100, .soft = 80, .used = 100}, WEFT_BUDGET_HARD},
    {"above a lowered hard limit", {.hard = 100, .used = 200}, WEFT_BUDGET_HARD},
    {"soft above hard", {.hard = 100, .soft = 200, .used = 100}, WEFT_BUDGET_HARD},
    {"reservations reach no limit", {.hard = 100, .soft = 80, .reserved = 100}, WEFT_BUDGET_OK},
    {"no limits", {.used = WEFT_SUM_MOST}, WEFT_BUDGET_OK},
    {"only a soft limit", {.soft = 1, .used = WEFT_SUM_MOST}, WEFT_BUDGET_SOFT},
};

static void test_state(void)
{
    for (size_t i = 0; i < WEFT_LEN(states); i++)
        is_int(weft_sums_state(&states[i].sums), states[i].state, "%s: the limit that is reached",
               states[i].name);
}

static uint32_t roll(uint64_t *random, uint32_t sides)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33) % sides;
}

enum { LEASES = 20, LEASE_STEPS = 20000 };

/* A budget of one dimension and its leases, with their ledger. */
struct purse {
    struct weft_sums sums;
    struct weft_lease_charge lease[LEASES];
    int64_t earlier[LEASES]; /* of its total: what it spent in earlier periods */
    bool runs[LEASES];
    int64_t ended; /* what leases that have ended have spent in this period */
};

static bool purse_is_right(const struct purse *purse)
{
    int64_t used = purse->ended, reserved = 0;
    for (size_t i = 0; i < LEASES; i++) {
        used += purse->runs[i] ? purse->lease[i].total - purse->earlier[i] : 0;
        reserved += purse->runs[i] ? purse->lease[i].reserved : 0;
    }
    return purse->sums.used == used && purse->sums.reserved == reserved && used >= 0 &&
           used <= purse->sums.hard;
}

static void begin_period(struct purse *purse)
{
    for (size_t i = 0; i < LEASES; i++)
        purse->earlier[i] = purse->lease[i].total;
    purse->sums.used = purse->ended = 0;
}

/* One step of one lease; false: a claim reserved more than there is. */
static bool purse_step(struct purse *purse, uint64_t *random)
{
    size_t i = roll(random, LEASES);
    struct weft_lease_charge *own = &purse->lease[i];
    struct weft_sums *sums = &purse->sums;
    int64_t cost = roll(random, 2) ? sums->estimate : (int64_t)roll(random, 200);
    int64_t total = own->total + (int64_t)roll(random, 40) - 10;
    if (!purse->runs[i] && weft_sums_fit(sums, cost)) {
        *own = (struct weft_lease_charge){.reserved = cost};
        purse->earlier[i] = 0;
        sums->reserved += cost;
        purse->runs[i] = true;
        return cost == 0 || sums->used + sums->reserved <= sums->hard;
    }
    if (!purse->runs[i])
        return true;
    if (roll(random, 6) > 0 && weft_sums_left(sums) < 10)
        total = own->total + weft_sums_left(sums);
    if (roll(random, 6) > 0 && weft_sums_allow(sums, own, total)) {
        weft_sums_report(sums, own, total);
    } else {
        sums->reserved -= own->reserved;
        purse->ended += own->total - purse->earlier[i];
        purse->runs[i] = false;
    }
    return true;
}

/* Leases that claim, report and end at random: the sums are those of the leases, and in bounds. */
static void test_leases_at_random(void)
{
    struct purse purse = {.sums = {.hard = 1000, .estimate = 70}};
    uint64_t random = 5;
    int step = 0, periods = 0;
    while (step < LEASE_STEPS && purse_step(&purse, &random) && purse_is_right(&purse)) {
        step++;
        if (weft_sums_state(&purse.sums) != WEFT_BUDGET_HARD)
            continue;
        begin_period(&purse);
        periods++;
    }
    is_int(step, LEASE_STEPS, "the sums add up and stay within the limit, for %d steps", step);
    ok(periods > 20, "the limit was reached %d times", periods);
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static const char long_dimension[] =
    "a234567890123456789012345678901234567890123456789012345678901234"; /* 64 */

static const struct check {
    const char *name;
    struct weft_budget budget; /* its name and dimension are filled in where they are missing */
    struct weft_budget_dimension dimension;
    enum weft_rc rc;
    const char *field, *text; /* the text has this */
} checks[] = {
    {"plain", {0}, {.name = "tokens", .hard = 100, .soft = 80, .estimate = 5}, WEFT_OK, "", ""},
    {"no limits at all", {0}, {.name = "tokens"}, WEFT_OK, "", ""},
    {"estimate as large as hard", {0}, {.name = "t", .hard = 5, .estimate = 5}, WEFT_OK, "", ""},
    {"an estimate without a hard limit", {0}, {.name = "t", .estimate = 5}, WEFT_OK, "", ""},
    {"the largest amounts",
     {0},
     {.name = "t",
      .hard = WEFT_AMOUNT_MOST,
      .soft = WEFT_AMOUNT_MOST,
      .estimate = WEFT_AMOUNT_MOST},
     WEFT_OK,
     "",
     ""},
    {"a long name of a dimension", {0}, {.name = long_dimension}, WEFT_OK, "", ""},
    {"all that may be in a name", {0}, {.name = "A-z_0.9"}, WEFT_OK, "", ""},
    {"each day", {.every_ms = 86400000, .anchor_us = 5}, {.name = "t"}, WEFT_OK, "", ""},
    {"each second", {.every_ms = 1000}, {.name = "t"}, WEFT_OK, "", ""},
    {"each ten years", {.every_ms = WEFT_DELAY_MAX_MS}, {.name = "t"}, WEFT_OK, "", ""},
    {"each month", {.every_months = 1}, {.name = "t"}, WEFT_OK, "", ""},
    {"each century", {.every_months = WEFT_BUDGET_MONTHS_MAX}, {.name = "t"}, WEFT_OK, "", ""},
    {"cancels", {.on_hard = WEFT_ON_HARD_CANCEL}, {.name = "t"}, WEFT_OK, "", ""},
    {"matches all parts",
     {.matches = true, .match_lane = "l", .match_kind = "k", .match_tenant = "t"},
     {.name = "t"},
     WEFT_OK,
     "",
     ""},

    {"no name", {.name = ""}, {.name = "t"}, WEFT_INVALID_VALUE, "budget", "missing or empty"},
    {"a name with a space",
     {.name = "a b"},
     {.name = "t"},
     WEFT_INVALID_VALUE,
     "budget",
     "characters out of"},
    {"a bad lane",
     {.matches = true, .match_lane = ""},
     {.name = "t"},
     WEFT_INVALID_VALUE,
     "match.lane",
     "missing or empty"},
    {"a bad kind",
     {.matches = true, .match_kind = "a b"},
     {.name = "t"},
     WEFT_INVALID_VALUE,
     "match.kind",
     "characters out of"},
    {"a bad tenant",
     {.matches = true, .match_tenant = "a\n"},
     {.name = "t"},
     WEFT_INVALID_VALUE,
     "match.tenant",
     "characters out of"},
    {"a dimension without a name",
     {0},
     {.name = ""},
     WEFT_INVALID_VALUE,
     "dimensions",
     "a dimension must be 1 to 64 of"},
    {"a dimension with a slash",
     {0},
     {.name = "a/b"},
     WEFT_INVALID_VALUE,
     "dimensions",
     "a dimension must be"},
    {"hard below nothing",
     {0},
     {.name = "t", .hard = -1},
     WEFT_INVALID_VALUE,
     "dimensions",
     "hard of 't' is -1"},
    {"hard beyond the largest",
     {0},
     {.name = "t", .hard = WEFT_AMOUNT_MOST + 1},
     WEFT_INVALID_VALUE,
     "dimensions",
     "allowed are 0 to 1000000000000000"},
    {"soft below nothing",
     {0},
     {.name = "t", .soft = -1},
     WEFT_INVALID_VALUE,
     "dimensions",
     "soft of 't' is -1"},
    {"estimate beyond the largest",
     {0},
     {.name = "t", .estimate = INT64_MAX},
     WEFT_INVALID_VALUE,
     "dimensions",
     "estimate of 't' is 9223372036854775807"},
    {"estimate above hard",
     {0},
     {.name = "t", .hard = 5, .estimate = 6},
     WEFT_INVALID_VALUE,
     "dimensions",
     "nothing could ever be claimed"},
    {"both spans",
     {.every_ms = 1000, .every_months = 1},
     {.name = "t"},
     WEFT_INVALID_VALUE,
     "reset",
     "not both"},
    {"half a second",
     {.every_ms = 500},
     {.name = "t"},
     WEFT_INVALID_VALUE,
     "reset.every_ms",
     "1000 to"},
    {"a span below nothing",
     {.every_ms = -1000},
     {.name = "t"},
     WEFT_INVALID_VALUE,
     "reset.every_ms",
     "1000 to"},
    {"more than ten years",
     {.every_ms = WEFT_DELAY_MAX_MS + 1},
     {.name = "t"},
     WEFT_INVALID_VALUE,
     "reset.every_ms",
     "ten years"},
    {"months below nothing",
     {.every_months = -1},
     {.name = "t"},
     WEFT_INVALID_VALUE,
     "reset.every_months",
     "1 to 1200"},
    {"too many months",
     {.every_months = WEFT_BUDGET_MONTHS_MAX + 1},
     {.name = "t"},
     WEFT_INVALID_VALUE,
     "reset.every_months",
     "1 to 1200"},
    {"an anchor before 1970",
     {.every_ms = 1000, .anchor_us = -1},
     {.name = "t"},
     WEFT_INVALID_VALUE,
     "reset.anchor_at",
     "between 1970 and 9999"},
    {"an anchor behind 9999",
     {.every_ms = 1000, .anchor_us = WEFT_MOMENT_MAX_US + 1},
     {.name = "t"},
     WEFT_INVALID_VALUE,
     "reset.anchor_at",
     "between 1970 and 9999"},
    {"another thing to do at the limit",
     {.on_hard = (enum weft_on_hard)2},
     {.name = "t"},
     WEFT_INVALID_VALUE,
     "on_hard",
     "hold or cancel"},
};

static void expect(const char *name, enum weft_rc got, const struct weft_err *err,
                   const struct check *want)
{
    is_int(got, want->rc, "%s: the code", name);
    if (want->rc == WEFT_OK)
        return;
    is_str(err->field, want->field, "%s: the field", name);
    ok(strstr(err->text, want->text), "%s: '%s' says '%s'", name, err->text, want->text);
}

static void test_checks(void)
{
    for (size_t i = 0; i < WEFT_LEN(checks); i++) {
        struct weft_err err = {0};
        struct weft_budget budget = checks[i].budget;
        budget.name = budget.name ? budget.name : "team-a";
        budget.dimension = &checks[i].dimension;
        budget.dimension_count = 1;
        enum weft_rc rc = weft_budget_check(&budget, &err);
        expect(checks[i].name, rc, &err, &checks[i]);
    }
}

/* How many dimensions there are, and how they are called. */
static void test_dimension_lists(void)
{
    struct weft_budget_dimension list[WEFT_BUDGET_DIMENSIONS_MAX + 1] = {{0}};
    char name[WEFT_BUDGET_DIMENSIONS_MAX + 1][8];
    char longer[WEFT_DIMENSION_NAME_MAX + 2] = {0};
    struct weft_budget budget = {.name = "team-a", .dimension = list};
    struct weft_err err = {0};
    for (size_t i = 0; i < WEFT_LEN(list); i++) {
        (void)snprintf(name[i], sizeof(name[i]), "d%zu", i);
        list[i].name = name[i];
    }
    expect("no dimension", weft_budget_check(&budget, &err), &err,
           &(struct check){.rc = WEFT_INVALID_VALUE, .field = "dimensions", .text = "needs a"});
    budget.dimension_count = WEFT_BUDGET_DIMENSIONS_MAX;
    is_int(weft_budget_check(&budget, &err), WEFT_OK, "16 dimensions are allowed");
    budget.dimension_count++;
    expect("17 dimensions", weft_budget_check(&budget, &err), &err,
           &(struct check){
               .rc = WEFT_TOO_LARGE, .field = "dimensions", .text = "17 dimensions, at most 16"});
    budget.dimension_count = 3;
    list[2].name = "d0";
    expect("a dimension twice", weft_budget_check(&budget, &err), &err,
           &(struct check){.rc = WEFT_INVALID_VALUE, .field = "dimensions", .text = "given twice"});
    list[2].name = "D0";
    is_int(weft_budget_check(&budget, &err), WEFT_OK, "names differ in large and small letters");
    memset(longer, 'a', WEFT_DIMENSION_NAME_MAX + 1);
    list[2].name = longer;
    expect("a name of 65", weft_budget_check(&budget, &err), &err,
           &(struct check){.rc = WEFT_INVALID_VALUE, .field = "dimensions", .text = "1 to 64"});
    list[2].name = NULL;
    expect("no name", weft_budget_check(&budget, &err), &err,
           &(struct check){.rc = WEFT_INVALID_VALUE, .field = "dimensions", .text = "1 to 64"});
}

static void test_amounts(void)
{
    static const struct {
        const char *name;
        struct weft_amount amount[2];
        size_t count;
        struct check want;
    } row[] = {
        {"none", {{0}}, 0, {.rc = WEFT_OK}},
        {"two", {{"a", 0}, {"b", WEFT_AMOUNT_MOST}}, 2, {.rc = WEFT_OK}},
        {"one twice",
         {{"a", 1}, {"a", 1}},
         2,
         {.rc = WEFT_INVALID_VALUE, .field = "cost", .text = "dimension 'a' is given twice"}},
        {"below nothing",
         {{"a", 1}, {"b", -1}},
         2,
         {.rc = WEFT_INVALID_VALUE, .field = "cost", .text = "the amount of 'b' is -1"}},
        {"beyond the largest",
         {{"a", WEFT_AMOUNT_MOST + 1}},
         1,
         {.rc = WEFT_INVALID_VALUE, .field = "cost", .text = "allowed are 0 to"}},
        {"without a name",
         {{NULL, 1}},
         1,
         {.rc = WEFT_INVALID_VALUE, .field = "cost", .text = "a dimension must be"}},
        {"with a bad name",
         {{"a b", 1}},
         1,
         {.rc = WEFT_INVALID_VALUE, .field = "cost", .text = "a dimension must be"}},
    };
    struct weft_amount many[WEFT_BUDGET_DIMENSIONS_MAX + 1];
    struct weft_err err = {0};
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        expect(row[i].name, weft_amounts_check(row[i].amount, row[i].count, "cost", &err), &err,
               &row[i].want);
    for (size_t i = 0; i < WEFT_LEN(many); i++)
        many[i] = (struct weft_amount){.dimension = long_dimension + i, .amount = 1};
    is_int(weft_amounts_check(many, WEFT_BUDGET_DIMENSIONS_MAX, "totals", &err), WEFT_OK,
           "16 amounts are allowed");
    expect("17 amounts", weft_amounts_check(many, WEFT_LEN(many), "totals", &err), &err,
           &(struct check){.rc = WEFT_TOO_LARGE, .field = "totals", .text = "at most 16"});
}

int main(void)
{
    test_fit();
    test_left();
    test_report();
    test_state();
    test_leases_at_random();
    test_checks();
    test_dimension_lists();
    test_amounts();
    return tap_done();
}
