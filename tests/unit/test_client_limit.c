/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Budgets through the C library: the same calls on a store in this process and through a server,
 * over both databases. Each answer is written to a log, in which ids are numbers; the logs must be
 * the same.
 */

#include "worker_fixture.h"

#include "base/buf.h"
#include "base/id.h"
#include "weft/limits.h"

#include <string.h>

enum { IDS = 3 };

struct trial {
    struct world world;
    struct weft_buf log;
    struct weft_id id[IDS]; /* of the executions, in the order of their submission */
};

#define SAY(trial, ...) weft_buf_printf(&(trial)->log, __VA_ARGS__)

/* What came of a call. A handle of a server has most hints in the text, in brackets. */
static void say_err(struct trial *t, const char *what, enum weft_rc rc, const struct weft_err *err)
{
    if (rc == WEFT_OK)
        SAY(t, "%s: ok\n", what);
    else
        SAY(t, "%s: %s %s: %s%s%s%s\n", what, weft_rc_wire(rc), err->field ? err->field : "-",
            err->text, err->hint ? " (" : "", err->hint ? err->hint : "", err->hint ? ")" : "");
}

static int place_of(const struct trial *t, const struct weft_id *id)
{
    for (int i = 0; i < IDS; i++)
        if (weft_id_cmp(&t->id[i], id) == 0)
            return i;
    return -1;
}

/* ---- Settings -------------------------------------------------------------------------------- */

static const struct weft_budget_dimension tokens[] = {
    {.name = "tokens", .hard = 1000, .soft = 500, .estimate = 400}};
static const struct weft_budget_dimension two[] = {{.name = "tokens", .hard = 5000},
                                                   {.name = "usd"}};
static const struct weft_budget team = {.name = "team",
                                        .matches = true,
                                        .match_tenant = "acme",
                                        .dimension = tokens,
                                        .dimension_count = 1,
                                        .every_ms = 86400000};
static const struct weft_budget named = {.name = "named",
                                         .dimension = two,
                                         .dimension_count = 2,
                                         .every_months = 1,
                                         .anchor_us = 1700000000000000,
                                         .on_hard = WEFT_ON_HARD_CANCEL};

static void say_budget(struct trial *t, const struct weft_budget *budget)
{
    static const weft_usec day_us = INT64_C(86400) * 1000000;
    SAY(t, "budget %s matches %d %s %s %s every %lld %d anchor %lld on_hard %d state %d",
        budget->name, budget->matches, budget->match_lane ? budget->match_lane : "-",
        budget->match_kind ? budget->match_kind : "-",
        budget->match_tenant ? budget->match_tenant : "-", (long long)budget->every_ms,
        (int)budget->every_months, (long long)budget->anchor_us, (int)budget->on_hard,
        (int)budget->state);
    SAY(t, " next %d %lld began %d breaches %llu\n",
        budget->next_reset_us > budget->period_began_us,
        (long long)((budget->next_reset_us - budget->anchor_us) % day_us),
        budget->period_began_us > 0, (unsigned long long)budget->breaches);
    for (size_t i = 0; i < budget->dimension_count; i++) {
        const struct weft_budget_dimension *own = &budget->dimension[i];
        SAY(t, "  %s hard %lld soft %lld estimate %lld used %lld reserved %lld\n", own->name,
            (long long)own->hard, (long long)own->soft, (long long)own->estimate,
            (long long)own->used, (long long)own->reserved);
    }
}

/* From `after` on; without it also the second page. */
static void say_budgets(struct trial *t, const char *name, uint32_t limit, const char *after)
{
    struct weft_budgets page[2] = {0};
    struct weft_err err = {0};
    for (int p = 0; p < 2; p++) {
        enum weft_rc rc = weft_budgets(t->world.weft, name, limit, after, &page[p], &err);
        say_err(t, "budgets", rc, &err);
        for (size_t i = 0; i < page[p].count; i++)
            say_budget(t, &page[p].item[i]);
        SAY(t, "next %d\n", page[p].next != NULL);
        if (after || !page[p].next)
            break;
        name = NULL;
        after = page[p].next;
    }
    weft_budgets_free(&page[0]);
    weft_budgets_free(&page[1]);
}

static void put(struct trial *t, const struct weft_budget *budget)
{
    struct weft_err err = {0};
    say_err(t, "put", weft_budget_put(t->world.weft, budget, &err), &err);
}

/* A change of one thing in good settings. */
#define BAD(...)                                                                                   \
    {                                                                                              \
        .name = "bad", .dimension = tokens, .dimension_count = 1, __VA_ARGS__                      \
    }

static void bad_settings(struct trial *t)
{
    static const struct weft_budget_dimension nameless = {.hard = 5}, spaced = {.name = "a b"},
                                              above = {.name = "t", .hard = 5, .estimate = 6},
                                              negative = {.name = "t", .soft = -1};
    static const struct weft_budget_dimension twice[] = {{.name = "t"}, {.name = "t"}};
    const struct weft_budget bad[] = {
        {.name = NULL},
        {.name = "a b"},
        {.name = "bad"},
        {.name = "bad", .dimension_count = 1},
        {.name = "bad", .dimension = tokens, .dimension_count = 17},
        {.name = "bad", .dimension = &nameless, .dimension_count = 1},
        {.name = "bad", .dimension = &spaced, .dimension_count = 1},
        {.name = "bad", .dimension = &above, .dimension_count = 1},
        {.name = "bad", .dimension = &negative, .dimension_count = 1},
        {.name = "bad", .dimension = twice, .dimension_count = 2},
        BAD(.matches = true, .match_lane = "a b"),
        BAD(.every_ms = 999),
        BAD(.every_ms = -1),
        BAD(.every_ms = 1000, .every_months = 1),
        BAD(.every_months = -1),
        BAD(.every_months = 1, .anchor_us = -5),
        BAD(.anchor_us = 5000),
        BAD(.on_hard = (enum weft_on_hard)7),
    };
    for (size_t i = 0; i < WEFT_LEN(bad); i++)
        put(t, &bad[i]);
    put(t, NULL);
}

static void settings(struct trial *t)
{
    struct weft *weft = t->world.weft;
    struct weft_err err = {0};
    say_budgets(t, NULL, 0, NULL);
    bad_settings(t);
    put(t, &team);
    put(t, &named);
    say_budgets(t, NULL, 0, NULL);
    say_budgets(t, NULL, 1, NULL);
    say_budgets(t, "team", 0, NULL);
    say_budgets(t, "nope", 0, NULL);
    say_budgets(t, "a b", 0, NULL);
    say_err(t, "remove", weft_budget_remove(weft, "nope", &err), &err);
    say_err(t, "remove", weft_budget_remove(weft, NULL, &err), &err);
    say_err(t, "reset", weft_budget_reset(weft, "nope", &err), &err);
    say_err(t, "budgets", weft_budgets(weft, NULL, 0, NULL, NULL, &err), &err);
    say_err(t, "budgets", weft_budgets(weft, "team", 0, NULL, NULL, &err), &err);
    /* What was read may be put back. */
    struct weft_budgets page = {0};
    is_int(weft_budgets(weft, "named", 0, NULL, &page, &err), WEFT_OK, "%s: a budget is read",
           t->world.store);
    put(t, page.item);
    weft_budgets_free(&page);
    say_budgets(t, "named", 0, NULL);
}

/* ---- Executions ------------------------------------------------------------------------------ */

static void bad_specs(struct trial *t)
{
    static const char *const none[] = {NULL}, *const spaced[] = {"a b"}, *const nine[] = {"1", "2",
                                                                                          "3", "4",
                                                                                          "5", "6",
                                                                                          "7", "8",
                                                                                          "9"};
    static const struct weft_amount nameless = {.amount = 1}, negative = {"t", -1};
    const struct weft_spec bad[] = {
        {.kind = "k", .budget_count = 1},
        {.kind = "k", .budgets = spaced, .budget_count = 1},
        {.kind = "k", .budgets = nine, .budget_count = 9},
        {.kind = "k", .cost_count = 1},
        {.kind = "k", .cost = &nameless, .cost_count = 1},
        {.kind = "k", .cost = &negative, .cost_count = 1},
        {.kind = "k", .budgets = none, .budget_count = 1},
    };
    for (size_t i = 0; i < WEFT_LEN(bad); i++) {
        struct weft_submitted answer = {0};
        struct weft_err err = {0};
        enum weft_rc rc = weft_submit(t->world.weft, &bad[i], 1, &answer, &err);
        ok(rc == WEFT_OK ? answer.err.rc != WEFT_OK : rc == WEFT_INVALID_VALUE,
           "%s: bad spec %zu is refused: %s%s", t->world.store, i, err.text, answer.err.text);
        const struct weft_err *story = rc ? &err : &answer.err;
        SAY(t, "submit: %s %s\n", weft_rc_wire(story->rc), story->field ? story->field : "-");
    }
}

/* Two of three are claimed: the third does not fit under the hard limit. */
static void executions(struct trial *t)
{
    static const char *const names[] = {"named"};
    static const struct weft_amount cost[] = {{"tokens", 300}, {"seconds", 9}};
    const struct weft_spec spec[IDS] = {{.kind = "k",
                                         .tenant = "acme",
                                         .budgets = names,
                                         .budget_count = 1,
                                         .cost = cost,
                                         .cost_count = 2},
                                        {.kind = "k", .tenant = "acme"},
                                        {.kind = "k", .tenant = "acme"}};
    struct weft_submitted answer[IDS] = {0};
    struct weft_err err = {0};
    struct weft_claims claims = {0};
    struct weft_page page = {0};
    bad_specs(t);
    say_err(t, "submit", weft_submit(t->world.weft, spec, IDS, answer, &err), &err);
    for (int i = 0; i < IDS; i++)
        t->id[i] = answer[i].id;
    const struct weft_claim claim = {.worker = "w", .max = 10, .lease_ms = 600000};
    say_err(t, "claim", weft_claim(t->world.weft, &claim, 1, &claims, &err), &err);
    for (size_t i = 0; i < claims.count; i++)
        SAY(t, "claimed %d\n", place_of(t, &claims.item[i].id));
    weft_claims_free(&claims);
    say_err(t, "describe", weft_describe(t->world.weft, t->id, IDS, &page, &err), &err);
    for (size_t i = 0; i < page.count; i++)
        SAY(t, "execution %zu has %zu budgets %s\n", i, page.item[i].budget_count,
            page.item[i].budget_count ? page.item[i].budgets[0] : "-");
    weft_page_free(&page);
    say_budgets(t, NULL, 0, NULL);
}

/* ---- Reports --------------------------------------------------------------------------------- */

static void report(struct trial *t, const struct weft_usage *item, size_t count)
{
    struct weft_reports answer = {0};
    struct weft_err err = {0};
    say_err(t, "report", weft_report_usage(t->world.weft, item, count, &answer, &err), &err);
    for (size_t i = 0; i < answer.count; i++) {
        const struct weft_reported *own = &answer.item[i];
        SAY(t, " fence %d ", (int)own->fence);
        say_err(t, "item", own->err.rc, &own->err);
        for (size_t b = 0; b < own->budget_count; b++)
            SAY(t, "  %s %s used %lld hard %lld state %d\n", own->budget[b].name,
                own->budget[b].dimension, (long long)own->budget[b].used,
                (long long)own->budget[b].hard, (int)own->budget[b].state);
        for (size_t b = 0; b < own->left_count; b++)
            SAY(t, "  left %s %lld\n", own->left[b].dimension, (long long)own->left[b].amount);
    }
    weft_reports_free(&answer);
}

static void bad_reports(struct trial *t)
{
    static const struct weft_amount nameless = {.amount = 1}, negative = {"tokens", -1},
                                    few = {"tokens", 1};
    const struct weft_usage bad[] = {
        {.id = t->id[0], .epoch = 1},
        {.id = t->id[0], .epoch = 1, .totals = &negative, .total_count = 1},
        {.id = {{9}}, .epoch = 1, .totals = &few, .total_count = 1},
        {.id = t->id[0], .totals = &few, .total_count = 1},
        {.id = t->id[0], .epoch = 7, .totals = &few, .total_count = 1},
        {.id = t->id[2], .epoch = 1, .totals = &few, .total_count = 1},
    };
    report(t, bad, WEFT_LEN(bad));
    report(t,
           &(struct weft_usage){.id = t->id[0], .epoch = 1, .totals = &nameless, .total_count = 1},
           1);
    report(t, &(struct weft_usage){.id = t->id[0], .total_count = 1}, 1);
    report(t, NULL, 1);
    report(t, NULL, 0);
    struct weft_err err = {0};
    say_err(t, "report", weft_report_usage(t->world.weft, bad, 1, NULL, &err), &err);
}

static void reports(struct trial *t)
{
    static const struct weft_amount first[] = {{"tokens", 350}, {"usd", 2}, {"seconds", 5}};
    static const struct weft_amount less = {"tokens", 10}, soft = {"tokens", 600},
                                    much = {"tokens", 1201};
    const struct weft_usage good = {.id = t->id[0], .epoch = 1, .totals = first, .total_count = 3};
    struct weft_usage next = {.id = t->id[0], .epoch = 1, .totals = &less, .total_count = 1};
    report(t, &good, 1);
    report(t, &good, 1);
    report(t, &next, 1);
    next.totals = &soft;
    report(t, &next, 1);
    bad_reports(t);
    next.totals = &much;
    const struct weft_usage both[] = {
        next, {.id = t->id[1], .epoch = 1, .totals = &less, .total_count = 1}};
    report(t, both, 2);
    say_budgets(t, NULL, 0, NULL);
}

/* From `after` on; without it also the second page. */
static void say_ledger(struct trial *t, const char *name, uint32_t limit, const char *after)
{
    struct weft_ledger page[2] = {0};
    struct weft_err err = {0};
    for (int p = 0; p < 2; p++) {
        enum weft_rc rc = weft_budget_ledger(t->world.weft, name, limit, after, &page[p], &err);
        say_err(t, "ledger", rc, &err);
        for (size_t i = 0; i < page[p].count; i++) {
            const struct weft_charge *charge = &page[p].item[i];
            SAY(t, "  execution %d %s reserved %lld used %lld settled %d\n",
                place_of(t, &charge->id), charge->dimension, (long long)charge->reserved,
                (long long)charge->used, charge->settled);
        }
        SAY(t, "next %d\n", page[p].next != NULL);
        if (after || !page[p].next)
            break;
        after = page[p].next;
    }
    weft_ledger_free(&page[0]);
    weft_ledger_free(&page[1]);
}

static void ledgers(struct trial *t)
{
    struct weft *weft = t->world.weft;
    struct weft_err err = {0};
    say_ledger(t, "team", 0, NULL);
    say_ledger(t, "named", 1, NULL);
    say_ledger(t, "team", 1, NULL);
    say_ledger(t, "team", 1, "nonsense");
    say_ledger(t, "nope", 0, NULL);
    say_ledger(t, NULL, 0, NULL);
    say_err(t, "ledger", weft_budget_ledger(weft, "team", 0, NULL, NULL, &err), &err);
    say_err(t, "reset", weft_budget_reset(weft, "team", &err), &err);
    say_budgets(t, "team", 0, NULL);
    say_ledger(t, "team", 0, NULL);
}

/* After the reset there is room for the third; what has ended is fenced. */
static void ends(struct trial *t)
{
    struct weft *weft = t->world.weft;
    struct weft_err err = {0};
    struct weft_claims claims = {0};
    struct weft_lease_answer ended = {0};
    static const struct weft_amount more = {"tokens", 700};
    const struct weft_claim claim = {
        .worker = "w", .max = 10, .lease_ms = 600000, .wait_ms = PATIENCE_MS};
    say_err(t, "claim", weft_claim(weft, &claim, 1, &claims, &err), &err);
    ok(claims.count == 1 && place_of(t, &claims.item[0].id) == 2,
       "%s: after the reset the third execution is claimed", t->world.store);
    weft_claims_free(&claims);
    const struct weft_complete done = {.id = t->id[0], .epoch = 1};
    say_err(t, "complete", weft_complete(weft, &done, 1, &ended, &err), &err);
    report(t, &(struct weft_usage){.id = t->id[0], .epoch = 1, .totals = &more, .total_count = 1},
           1);
    say_err(t, "remove", weft_budget_remove(weft, "named", &err), &err);
    say_err(t, "remove", weft_budget_remove(weft, "named", &err), &err);
    say_ledger(t, "named", 0, NULL);
}

/* What the log of every store must have. */
static void check(const struct trial *t)
{
    static const char *const lines[] = {
        /* the claim reserved a cost and an estimate, which leave no room for another estimate */
        "claimed 0\nclaimed 1\ndescribe: ok\nexecution 0 has 1 budgets named\n",
        "  tokens hard 1000 soft 500 estimate 400 used 0 reserved 700\n",
        /* a report, once more and with less */
        "  team tokens used 350 hard 1000 state 0\n  named tokens used 350 hard 5000 state 0\n"
        "  named usd used 2 hard 0 state 0\n",
        "  team tokens used 600 hard 1000 state 1\n",
        /* one that is too much, and one beside it */
        "it was not recorded (stop, or have the hard limit of the budget raised)\n"
        "  left tokens 400\n",
        "  team tokens used 610 hard 1000 state 2\n",
        "  execution 0 tokens reserved 0 used 600 settled 0\n"
        "  execution 1 tokens reserved 390 used 10 settled 0\nnext 0\n",
        /* after the reset */
        "  tokens hard 1000 soft 500 estimate 400 used 0 reserved 390\n",
    };
    for (size_t i = 0; i < WEFT_LEN(lines); i++)
        ok(strstr(t->log.data, lines[i]) != NULL, "%s: the log has text %zu", t->world.store, i);
}

/* Shows the first line that differs. */
static void compare(const struct trial *t, const struct weft_buf *first)
{
    const char *left = t->log.data, *right = first->data;
    while (*left && *right) {
        size_t size = strcspn(left, "\n") + 1;
        if (strncmp(left, right, size) != 0)
            break;
        left += size;
        right += size;
    }
    is_str(left, right, "%s: the answers are those of the first store", t->world.store);
}

static void run(const char *store, struct weft_buf *first)
{
    struct trial t = {0};
    weft_buf_init(&t.log, SIZE_MAX / 4);
    world_init(&t.world, store);
    settings(&t);
    executions(&t);
    reports(&t);
    ledgers(&t);
    ends(&t);
    check(&t);
    world_done(&t.world);
    if (!first->data) {
        *first = t.log;
        return;
    }
    compare(&t, first);
    weft_buf_done(&t.log);
}

int main(void)
{
    struct weft_buf first = {0};
    for (size_t i = 0; i < WEFT_LEN(world_stores); i++)
        if (world_exists(world_stores[i]))
            run(world_stores[i], &first);
    weft_buf_done(&first);
    return tap_done();
}
