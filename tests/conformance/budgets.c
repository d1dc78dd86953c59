/* SPDX-License-Identifier: Apache-2.0 */

/* See budgets.h. */

#include "budgets.h"

#include "base/arena.h"
#include "engine/limit/budgets.h"
#include "engine/limit/usage.h"
#include "engine/ready/poll.h"
#include "engine/tx/commit_effects.h"
#include "weft/weft.h"

#include <string.h>

void tell_other(struct fixture *f)
{
    struct weft_poll poll;
    enum weft_rc rc = weft_engine_poll(f->b, f->arena, &poll, &f->err);
    if (rc)
        ok(false, "the other process polls: %s", f->err.text);
}

void put_budget(struct fixture *f, const struct weft_budget *budget)
{
    enum weft_rc rc = weft_engine_budget_put(f->a, "default", budget, &f->err);
    if (rc)
        ok(false, "budget %s is put: %s", budget->name, f->err.text);
    tell_other(f);
}

void put_tokens(struct fixture *f, const char *name, int64_t hard, int64_t estimate)
{
    put_budget(f, &(struct weft_budget){
                      .name = name,
                      .matches = true,
                      DIMENSIONS({.name = "tokens", .hard = hard, .estimate = estimate})});
}

struct weft_budget budget_now(struct fixture *f, const char *name)
{
    struct weft_budget budget = {0};
    enum weft_rc rc = weft_engine_budget(f->b, "default", name, f->arena, &budget, &f->err);
    if (rc)
        ok(false, "budget %s can be read: %s", name, f->err.text);
    return budget;
}

struct weft_budget_dimension dimension_now(struct fixture *f, const char *name,
                                           const char *dimension)
{
    struct weft_budget budget = budget_now(f, name);
    for (size_t i = 0; i < budget.dimension_count; i++)
        if (strcmp(budget.dimension[i].name, dimension) == 0)
            return budget.dimension[i];
    ok(false, "budget %s has dimension %s", name, dimension);
    return (struct weft_budget_dimension){.name = "", .used = -1};
}

void expect_sums(struct fixture *f, const char *name, const char *dimension, int64_t used,
                 int64_t reserved, const char *when)
{
    struct weft_budget_dimension now = dimension_now(f, name, dimension ? dimension : "tokens");
    if (!ok(now.used == used && now.reserved == reserved, "%s: %lld used, %lld reserved of %s",
            when, (long long)used, (long long)reserved, name))
        printf("# got %lld used, %lld reserved\n", (long long)now.used, (long long)now.reserved);
}

void expect_state(struct fixture *f, const char *name, enum weft_budget_state state,
                  uint64_t breaches, const char *when)
{
    struct weft_budget now = budget_now(f, name);
    is_int(now.state, state, "%s: the state of %s", when, name);
    is_int(now.breaches, breaches, "%s: the breaches of %s", when, name);
}

struct weft_usage_result report_all(struct fixture *f, struct weft_engine *engine,
                                    const struct weft_claimed *lease,
                                    const struct weft_amount *total, size_t count)
{
    const struct weft_usage item = {
        .id = lease->id, .epoch = lease->epoch, .totals = total, .total_count = count};
    struct weft_usage_result answer = {0};
    enum weft_rc rc = weft_engine_usage(engine, &item, 1, f->arena, &answer, &f->err);
    if (rc && !answer.rc)
        ok(false, "the report is answered: %s", f->err.text);
    return answer;
}

struct weft_usage_result report(struct fixture *f, struct weft_engine *engine,
                                const struct weft_claimed *lease, int64_t total)
{
    return report_all(f, engine, lease, &(struct weft_amount){"tokens", total}, 1);
}

void report_ok(struct fixture *f, const struct weft_claimed *lease, int64_t total)
{
    struct weft_usage_result answer = report(f, f->a, lease, total);
    if (answer.rc)
        ok(false, "a report of %lld is recorded: %s", (long long)total, answer.err->text);
}

struct claiming {
    struct fixture *f;
    struct weft_engine *engine;
    uint32_t max;
    struct weft_claim_result got;
};

static bool has_claimed(void *context)
{
    struct claiming *claiming = context;
    claiming->got = claim(claiming->f, claiming->engine, claiming->max);
    return claiming->got.count > 0;
}

struct weft_claim_result claim_open(struct fixture *f, struct weft_engine *engine, uint32_t max)
{
    struct claiming claiming = {.f = f, .engine = engine, .max = max};
    (void)wait_until(has_claimed, &claiming);
    return claiming.got;
}

static void lose(void *context, const struct weft_lease_end *ended, size_t count, bool cancel)
{
    (void)context;
    (void)ended;
    (void)count;
    (void)cancel;
}

void lose_errands(struct weft_engine *engine, bool lost)
{
    weft_engine_on_budgets(engine, lost ? lose : NULL, NULL);
}

struct weft_ledger ledger_of(struct fixture *f, const char *name)
{
    struct weft_ledger all = {0}, page = {0};
    struct weft_charge *charge = NULL;
    do {
        const struct weft_ledger_asking asking = {
            .ns = "default", .name = name, .limit = WEFT_PAGE_MAX, .after = page.next};
        if (weft_engine_ledger(f->b, &asking, f->arena, &page, &f->err)) {
            ok(false, "the ledger of %s can be read: %s", name, f->err.text);
            break;
        }
        struct weft_charge *wider =
            weft_new_array(f->arena, struct weft_charge, all.count + page.count + 1);
        if (all.count > 0)
            memcpy(wider, charge, all.count * sizeof(*wider));
        if (page.count > 0)
            memcpy(wider + all.count, page.item, page.count * sizeof(*wider));
        charge = wider;
        all.count += page.count;
    } while (page.next);
    all.item = charge;
    return all;
}
