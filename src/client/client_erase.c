/* SPDX-License-Identifier: Apache-2.0 */

/* Erasures. */

#include "base/arena.h"
#include "base/err.h"
#include "client/client.h"
#include "engine/erase/erase.h"

/* An operation whose answer is one erasure, as a page of its own. */
static enum weft_rc one(struct weft *weft, enum weft_op op, const void *in,
                        struct weft_erasures *ret_erasures, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_erasure *erasure = weft_new(arena, struct weft_erasure);
    const struct weft_op_call call = {
        .op = op, .in = in, .count = 1, .out = ret_erasures ? erasure : NULL, .arena = arena};
    enum weft_rc rc = weft_do(&(struct weft_via){.weft = weft}, &call, NULL, &arena, err);
    if (!rc && ret_erasures)
        *ret_erasures = (struct weft_erasures){.item = erasure, .count = 1, .arena = arena};
    return rc;
}

enum weft_rc weft_erase(struct weft *weft, const struct weft_erasure_spec *spec,
                        struct weft_erasures *ret_erasures, struct weft_err *err)
{
    return one(weft, WEFT_OP_ERASE, spec, ret_erasures, err);
}

enum weft_rc weft_erasures(struct weft *weft, const struct weft_id *id, uint32_t limit,
                           const char *after, struct weft_erasures *ret_erasures,
                           struct weft_err *err)
{
    struct weft_erasure_asking asking = {
        .ns = weft_ns_of(weft, NULL), .limit = limit, .after = after};
    if (id && ret_erasures) {
        asking.id = *id;
        return one(weft, WEFT_OP_ERASURE, &asking, ret_erasures, err);
    }
    const struct weft_op_call call = {
        .op = WEFT_OP_ERASURES, .in = &asking, .count = 1, .out = ret_erasures};
    return weft_ask(weft, &call, WEFT_ARENA_OF(ret_erasures), err);
}

enum weft_rc weft_erasure_verify(struct weft *weft, const struct weft_id *id,
                                 struct weft_erasures *ret_erasures, struct weft_err *err)
{
    struct weft_erasure_asking asking = {.ns = weft_ns_of(weft, NULL)};
    if (!id)
        return weft_invalid(err, "id", "id is NULL");
    asking.id = *id;
    return one(weft, WEFT_OP_ERASURE_VERIFY, &asking, ret_erasures, err);
}

WEFT_FREES(weft_erasures)
