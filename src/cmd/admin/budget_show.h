/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_ADMIN_BUDGET_SHOW_H
#define WEFT_CMD_ADMIN_BUDGET_SHOW_H

/* Budgets and their ledgers as people and programs read them. Failures have been printed. */

#include "cmd/cli/cli.h"
#include "weft/limits.h"

/* All budgets, a line for each of their dimensions. */
enum weft_exit weft_budget_list(const struct weft_cli *cli, struct weft *weft);
/* One budget with all its settings. */
enum weft_exit weft_budget_show(const struct weft_cli *cli, struct weft *weft, const char *name);

/* The options that weft_budget_show_ledger() reads. */
#define WEFT_LEDGER_OPTIONS                                                                        \
    {"ledger", 0, NULL, "list what each execution has reserved and used", NULL},                   \
        {"limit", 0, "N", "with --ledger: of at most so many executions; default: 50", NULL},      \
        {"all", 'a', NULL, "with --ledger: of all executions, page by page", NULL},                \
        {"after", 0, "CURSOR", "with --ledger: go on where another list ended", NULL},             \
    {                                                                                              \
        "long", 'L', NULL, "with --ledger: whole ids, also on a terminal", NULL                    \
    }
enum weft_exit weft_budget_show_ledger(const struct weft_cli *cli, struct weft *weft,
                                       const char *name);

/* "1month", "3months", or a duration as it would be typed; NULL: never. In the arena. */
const char *weft_budget_every_text(struct weft_arena *arena, const struct weft_budget *budget);

#endif
