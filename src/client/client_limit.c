/* SPDX-License-Identifier: Apache-2.0 */

/* Gates. */

#include "base/arena.h"
#include "client/client.h"
#include "core/spec.h"
#include "engine/limit/gates.h"

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
