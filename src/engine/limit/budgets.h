/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_LIMIT_BUDGETS_H
#define WEFT_ENGINE_LIMIT_BUDGETS_H

/* Settings of budgets, what they hold, and their ledgers. */

#include "weft/limits.h"

struct weft_engine;

struct weft_budget_asking {
    const char *ns;
    uint32_t limit;    /* 0: the default */
    const char *after; /* NULL: the first page */
};

struct weft_ledger_asking {
    const char *ns, *name;
    uint32_t limit;    /* of executions; 0: the default */
    const char *after; /* NULL: the first page */
};

WEFT_MUST_CHECK enum weft_rc weft_engine_budget_put(struct weft_engine *engine, const char *ns,
                                                    const struct weft_budget *budget,
                                                    struct weft_err *err);
/* ret_budget: as it was. */
WEFT_MUST_CHECK enum weft_rc weft_engine_budget_remove(struct weft_engine *engine, const char *ns,
                                                       const char *name, struct weft_arena *arena,
                                                       struct weft_budget *ret_budget,
                                                       struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_budget(struct weft_engine *engine, const char *ns,
                                                const char *name, struct weft_arena *arena,
                                                struct weft_budget *ret_budget,
                                                struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_budgets(struct weft_engine *engine,
                                                 const struct weft_budget_asking *asking,
                                                 struct weft_arena *arena,
                                                 struct weft_budgets *ret_budgets,
                                                 struct weft_err *err);
/* An operator begins a new period. ret_budget: as it is then. */
WEFT_MUST_CHECK enum weft_rc weft_engine_budget_reset(struct weft_engine *engine, const char *ns,
                                                      const char *name, struct weft_arena *arena,
                                                      struct weft_budget *ret_budget,
                                                      struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc
weft_engine_ledger(struct weft_engine *engine, const struct weft_ledger_asking *asking,
                   struct weft_arena *arena, struct weft_ledger *ret_ledger, struct weft_err *err);

#endif
