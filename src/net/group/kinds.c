/* SPDX-License-Identifier: Apache-2.0 */

#include "net/group/kinds.h"

#include "engine/call.h"
#include "engine/job/claim.h"
#include "engine/job/control.h"
#include "net/api/api_control.h"
#include "net/route.h"
#include "weft/weft.h"

#include <assert.h>

/* Steering writes each execution as the call left it: see struct weft_steer_told. */
static enum weft_rc steer(struct weft_engine *engine, enum weft_steer_kind kind, const void *item,
                          size_t count, struct weft_arena *arena, void *ret_answer,
                          struct weft_err *err)
{
    const struct weft_steering steering = {
        .kind = kind, .ns = "default", .item = item, .count = count, .arena = arena};
    return weft_steer_call(engine, &steering, ret_answer, err);
}

enum weft_rc weft_kind_call(struct weft_engine *engine, const struct weft_kind *kind,
                            const void *item, size_t count, struct weft_arena *arena,
                            void *ret_answer, struct weft_err *err)
{
    static const enum weft_steer_kind steers[WEFT_OP_COUNT] = {
        [WEFT_OP_CANCEL] = WEFT_STEER_CANCEL,
        [WEFT_OP_REPLAY] = WEFT_STEER_REPLAY,
        [WEFT_OP_REPRIORITIZE] = WEFT_STEER_REPRIORITIZE,
        [WEFT_OP_SET_DEADLINE] = WEFT_STEER_SET_DEADLINE,
        [WEFT_OP_REVOKE] = WEFT_STEER_REVOKE,
    };
    const struct weft_op_call call = {.op = kind->op,
                                      .ns = "default",
                                      .in = item,
                                      .count = count,
                                      .arena = arena,
                                      .out = ret_answer};
    if (kind->item == WEFT_ITEM_STEER)
        return steer(engine, steers[kind->op], item, count, arena, ret_answer, err);
    return weft_engine_call(engine, &call, err);
}

#define ITEM_KIND(type)                                                                            \
    _Generic((type *)0, struct weft_claim *                                                        \
             : WEFT_ITEM_NONE, struct weft_spec *                                                  \
             : WEFT_ITEM_SPEC, struct weft_steer *                                                 \
             : WEFT_ITEM_STEER, struct weft_flow_spec *                                            \
             : WEFT_ITEM_FLOW, default                                                             \
             : WEFT_ITEM_LEASE)
#define ANSWER_SIZE(type)                                                                          \
    _Generic((type *)0, struct weft_steer_result *                                                 \
             : sizeof(struct weft_steer_told), default                                             \
             : sizeof(type))
enum { APART, JOINS };

const struct weft_kind weft_kinds[WEFT_GROUP_COUNT] = {
#define FOLDED(op_, label_, joins_, id_, method_, path_, scope_, repeat_, in_, takes_, out_, ...)  \
    [WEFT_GROUP_##op_] = {.op = WEFT_OP_##op_,                                                     \
                          .item_size = sizeof(in_),                                                \
                          .answer_size = ANSWER_SIZE(out_),                                        \
                          .item = ITEM_KIND(in_),                                                  \
                          .calls = 1,                                                              \
                          .writes = true,                                                          \
                          .joins = (joins_) == JOINS},
#define ALONE(...)
#include "wire/ops.def"
};

/* Every lease item begins with the id: the namespace check reads it there. */
static_assert(offsetof(struct weft_renew, id) == 0, "id first");
static_assert(offsetof(struct weft_complete, id) == 0, "id first");
static_assert(offsetof(struct weft_failure, id) == 0, "id first");
static_assert(offsetof(struct weft_put_back, id) == 0, "id first");

/* Every result begins with the pointer to its error: group_run.c moves the error to the request. */
static_assert(offsetof(struct weft_submit_result, err) == 0, "err first");
static_assert(offsetof(struct weft_lease_result, err) == 0, "err first");
static_assert(offsetof(struct weft_steer_told, steered.err) == 0, "err first");
static_assert(offsetof(struct weft_flow_result, err) == 0, "err first");
