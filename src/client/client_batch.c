/* SPDX-License-Identifier: Apache-2.0 */

/* Batches. */

#include "base/arena.h"
#include "base/err.h"
#include "client/client.h"
#include "engine/batch/batch_submit.h"

/* One batch as a page of its own. */
static enum weft_rc one_batch(struct weft *weft, enum weft_op op, const void *in,
                              weft_check_fn *check, struct weft_batch_infos *ret_batches,
                              struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_batch_info *batch = weft_new(arena, struct weft_batch_info);
    const struct weft_op_call call = {
        .op = op, .in = in, .count = 1, .out = ret_batches ? batch : NULL, .arena = arena};
    enum weft_rc rc = weft_do(&(struct weft_via){.weft = weft}, &call, check, &arena, err);
    if (!rc && ret_batches) /* without it there was no room for the answer */
        *ret_batches = (struct weft_batch_infos){.item = batch, .count = 1, .arena = arena};
    return rc;
}

static enum weft_rc check_spec(const struct weft_op_call *call, struct weft_err *err)
{
    const struct weft_batch_spec *spec = call->in;
    if (!spec->input_file)
        return weft_missing("input_file_id", err);
    return spec->endpoint ? WEFT_OK : weft_missing("endpoint", err);
}

enum weft_rc weft_batch_create(struct weft *weft, const struct weft_batch_spec *spec,
                               struct weft_batch_infos *ret_batches, struct weft_err *err)
{
    return one_batch(weft, WEFT_OP_BATCH_CREATE, spec, check_spec, ret_batches, err);
}

enum weft_rc weft_batch_get(struct weft *weft, const struct weft_id *id,
                            struct weft_batch_infos *ret_batches, struct weft_err *err)
{
    struct weft_batch_asking asking = {.ns = weft_ns_of(weft, NULL)};
    if (id)
        asking.id = *id;
    return one_batch(weft, WEFT_OP_BATCH, id ? &asking : NULL, NULL, ret_batches, err);
}

enum weft_rc weft_batch_list(struct weft *weft, const struct weft_batch_listing *listing,
                             struct weft_batch_infos *ret_batches, struct weft_err *err)
{
    struct weft_batch_listing mine = {0};
    if (listing)
        mine = *listing;
    mine.ns = weft_ns_of(weft, mine.ns);
    const struct weft_op_call call = {
        .op = WEFT_OP_BATCHES, .in = &mine, .count = 1, .out = ret_batches};
    return weft_ask(weft, &call, WEFT_ARENA_OF(ret_batches), err);
}

WEFT_FREES(weft_batch_infos)

enum weft_rc weft_batch_cancel(struct weft *weft, const struct weft_id *id,
                               struct weft_batch_infos *ret_batches, struct weft_err *err)
{
    struct weft_batch_asking asking = {.ns = weft_ns_of(weft, NULL)};
    if (id)
        asking.id = *id;
    return one_batch(weft, WEFT_OP_BATCH_CANCEL, id ? &asking : NULL, NULL, ret_batches, err);
}

enum weft_rc weft_batch_retry(struct weft *weft, const struct weft_id *id,
                              struct weft_batch_retried *ret_retried, struct weft_err *err)
{
    struct weft_batch_asking asking = {.ns = weft_ns_of(weft, NULL)};
    const struct weft_op_call call = {
        .op = WEFT_OP_BATCH_RETRY, .in = id ? &asking : NULL, .count = 1, .out = ret_retried};
    if (id)
        asking.id = *id;
    return weft_ask(weft, &call, NULL, err);
}

enum weft_rc weft_batch_remove(struct weft *weft, const struct weft_id *id, struct weft_err *err)
{
    struct weft_batch_asking asking = {.ns = weft_ns_of(weft, NULL)};
    struct weft_batch_removed removed;
    const struct weft_op_call call = {
        .op = WEFT_OP_BATCH_DELETE, .in = id ? &asking : NULL, .count = 1, .out = &removed};
    if (id)
        asking.id = *id;
    return weft_ask(weft, &call, NULL, err);
}
