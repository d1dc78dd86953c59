/* SPDX-License-Identifier: Apache-2.0 */

/* Gates and budgets. */

#include "base/arena.h"
#include "base/err.h"
#include "client/client.h"
#include "core/budget.h"
#include "core/spec.h"
#include "engine/limit/budgets.h"
#include "engine/limit/gates.h"

/* ---- Gates ----------------------------------------------------------------------------------- */

static enum weft_rc check_gate(const struct weft_op_call *call, struct weft_err *err)
{
    return weft_name_check(((const struct weft_gate *)call->in)->name, "gate", err);
}

static enum weft_rc check_name(const struct weft_op_call *call, struct weft_err *err)
{
    return weft_name_check(call->in, "gate", err);
}

enum weft_rc weft_gate_put(struct weft *weft, const struct weft_gate *gate, struct weft_err *err)
{
    char no_answer;
    const struct weft_op_call call = {
        .op = WEFT_OP_GATE_PUT, .in = gate, .count = 1, .out = &no_answer};
    return weft_do(&(struct weft_via){.weft = weft}, &call, check_gate, NULL, err);
}

enum weft_rc weft_gate_remove(struct weft *weft, const char *name, struct weft_err *err)
{
    struct weft_gate before;
    const struct weft_op_call call = {.op = WEFT_OP_GATE_REMOVE, .in = name, .out = &before};
    return weft_do(&(struct weft_via){.weft = weft}, &call, check_name, NULL, err);
}

enum weft_rc weft_gate_get(struct weft *weft, const char *name, struct weft_gate *ret_gate,
                           struct weft_err *err)
{
    struct weft_gate gate = {0};
    const struct weft_op_call call = {
        .op = WEFT_OP_GATE, .in = name, .out = ret_gate ? &gate : NULL};
    enum weft_rc rc = weft_do(&(struct weft_via){.weft = weft}, &call, check_name, NULL, err);
    if (!rc && ret_gate) {
        gate.name = name;
        *ret_gate = gate;
    }
    return rc;
}

enum weft_rc weft_gates(struct weft *weft, const char *prefix, uint32_t limit, const char *after,
                        struct weft_gates *ret_gates, struct weft_err *err)
{
    const struct weft_gate_asking asking = {
        .ns = weft_ns_of(weft, NULL), .prefix = prefix, .limit = limit, .after = after};
    const struct weft_op_call call = {
        .op = WEFT_OP_GATES, .in = &asking, .count = 1, .out = ret_gates};
    return weft_ask(weft, &call, WEFT_ARENA_OF(ret_gates), err);
}

WEFT_FREES(weft_gates)

/* ---- Budgets --------------------------------------------------------------------------------- */

static enum weft_rc check_budget_name(const struct weft_op_call *call, struct weft_err *err)
{
    return weft_name_check(call->in, "budget", err);
}

/* As the engine checks it, so that a server need not be asked, and what JSON cannot carry is
 * refused. */
static enum weft_rc check_budget(const struct weft_op_call *call, struct weft_err *err)
{
    const struct weft_budget *budget = call->in;
    if (budget->dimension_count > 0 && !budget->dimension)
        return weft_missing("dimensions", err);
    return weft_budget_check(budget, err);
}

enum weft_rc weft_budget_put(struct weft *weft, const struct weft_budget *budget,
                             struct weft_err *err)
{
    char no_answer;
    const struct weft_op_call call = {
        .op = WEFT_OP_BUDGET_PUT, .in = budget, .count = 1, .out = &no_answer};
    return weft_do(&(struct weft_via){.weft = weft}, &call, check_budget, NULL, err);
}

/* Changes a budget; how it was or is then is not told. */
static enum weft_rc change(struct weft *weft, enum weft_op op, const char *name,
                           struct weft_err *err)
{
    struct weft_budget shown;
    const struct weft_op_call call = {.op = op, .in = name, .out = &shown};
    return weft_do(&(struct weft_via){.weft = weft}, &call, check_budget_name, NULL, err);
}

enum weft_rc weft_budget_remove(struct weft *weft, const char *name, struct weft_err *err)
{
    return change(weft, WEFT_OP_BUDGET_REMOVE, name, err);
}

enum weft_rc weft_budget_reset(struct weft *weft, const char *name, struct weft_err *err)
{
    return change(weft, WEFT_OP_BUDGET_RESET, name, err);
}

/* One budget as a page of its own. */
static enum weft_rc read_budget(struct weft *weft, const char *name,
                                struct weft_budgets *ret_budgets, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_budget *budget = weft_new(arena, struct weft_budget);
    const struct weft_op_call call = {
        .op = WEFT_OP_BUDGET, .in = name, .out = budget, .arena = arena};
    enum weft_rc rc =
        weft_do(&(struct weft_via){.weft = weft}, &call, check_budget_name, &arena, err);
    if (!rc)
        *ret_budgets = (struct weft_budgets){.item = budget, .count = 1, .arena = arena};
    return rc;
}

enum weft_rc weft_budgets(struct weft *weft, const char *name, uint32_t limit, const char *after,
                          struct weft_budgets *ret_budgets, struct weft_err *err)
{
    if (name && ret_budgets)
        return read_budget(weft, name, ret_budgets, err);
    const struct weft_budget_asking asking = {
        .ns = weft_ns_of(weft, NULL), .limit = limit, .after = after};
    const struct weft_op_call call = {
        .op = WEFT_OP_BUDGETS, .in = &asking, .count = 1, .out = ret_budgets};
    return weft_ask(weft, &call, WEFT_ARENA_OF(ret_budgets), err);
}

WEFT_FREES(weft_budgets)

static enum weft_rc check_ledger(const struct weft_op_call *call, struct weft_err *err)
{
    return weft_name_check(((const struct weft_ledger_asking *)call->in)->name, "budget", err);
}

enum weft_rc weft_budget_ledger(struct weft *weft, const char *name, uint32_t limit,
                                const char *after, struct weft_ledger *ret_ledger,
                                struct weft_err *err)
{
    const struct weft_ledger_asking asking = {
        .ns = weft_ns_of(weft, NULL), .name = name, .limit = limit, .after = after};
    const struct weft_op_call call = {
        .op = WEFT_OP_LEDGER, .in = &asking, .count = 1, .out = ret_ledger};
    return weft_do(&(struct weft_via){.weft = weft}, &call, check_ledger, WEFT_ARENA_OF(ret_ledger),
                   err);
}

WEFT_FREES(weft_ledger)

enum weft_rc weft_report_usage(struct weft *weft, const struct weft_usage *item, size_t count,
                               struct weft_reports *ret_answer, struct weft_err *err)
{
    for (size_t i = 0; item && i < count && count <= WEFT_CALL_MAX; i++) {
        enum weft_rc rc = weft_check_array(item[i].totals, item[i].total_count, "totals", i, err);
        if (rc)
            return rc;
    }
    size_t room = count <= WEFT_CALL_MAX ? count + 1 : 1;
    struct weft_arena *arena = weft_arena_new();
    struct weft_usage_result *result = weft_new_array(arena, struct weft_usage_result, room);
    const struct weft_op_call call = {
        .op = WEFT_OP_USAGE, .in = item, .count = count, .out = result, .arena = arena};
    enum weft_rc rc = weft_do_kept(weft, &call, ret_answer, err);
    if (rc)
        return rc;
    struct weft_reported *answer = weft_new_array(arena, struct weft_reported, room);
    for (size_t i = 0; i < count; i++) {
        answer[i] = (struct weft_reported){.fence = result[i].fence,
                                           .budget = result[i].budget,
                                           .budget_count = result[i].budget_count,
                                           .left = result[i].left,
                                           .left_count = result[i].left_count};
        if (result[i].err)
            answer[i].err = *result[i].err;
    }
    *ret_answer = (struct weft_reports){.item = answer, .count = count, .arena = arena};
    return WEFT_OK;
}

WEFT_FREES(weft_reports)
