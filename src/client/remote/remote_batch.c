/* SPDX-License-Identifier: Apache-2.0 */

/* Batches of a server. */

#include "base/arena.h"
#include "base/err.h"
#include "client/remote/remote.h"

enum weft_rc weft_remote_batch(const struct weft_via *via, const struct weft_op_call *call,
                               struct weft_err *err)
{
    const struct weft_batch_asking *asking = call->in;
    const struct weft_remote_request request = {
        .op = call->op, .place = weft_remote_id(call->arena, &asking->id), .ns = asking->ns};
    return weft_remote_one(via, &request, call->arena, call->out, err);
}

enum weft_rc weft_remote_batch_create(const struct weft_via *via, const struct weft_op_call *call,
                                      struct weft_err *err)
{
    const struct weft_batch_spec *spec = call->in;
    const struct weft_remote_request request = {
        .op = call->op, .item = spec, .keyless = !spec->key};
    return weft_remote_one(via, &request, call->arena, call->out, err);
}

enum weft_rc weft_remote_batches(const struct weft_via *via, const struct weft_op_call *call,
                                 struct weft_err *err)
{
    const struct weft_batch_listing *listing = call->in;
    struct weft_remote_list list = {0};
    if (listing->by_status && (unsigned)listing->status > WEFT_BATCH_STATUS_CANCELLED)
        return weft_invalid(err, "status", "there is no such status");
    const char *status = listing->by_status ? weft_wire_batch_statuses[listing->status] : NULL;
    const char *limit =
        listing->limit ? weft_arena_printf(call->arena, "%u", listing->limit) : NULL;
    const struct weft_remote_request request = {.op = call->op,
                                                .query = WEFT_QUERY(call->arena, {"status", status},
                                                                    {"limit", limit},
                                                                    {"after", listing->after}),
                                                .ns = listing->ns};
    enum weft_rc rc = weft_remote_page(via, &request, call->arena, &list, err);
    if (!rc)
        *(struct weft_batch_infos *)call->out =
            (struct weft_batch_infos){.item = list.item, .count = list.count, .next = list.next};
    return rc;
}
