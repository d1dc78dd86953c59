/* SPDX-License-Identifier: Apache-2.0 */

/*
 * POST /v1/leases/...: calls of a worker about the leases it holds, as one item or as {"items"},
 * each answered on its own. The messages are in wire/ops.def.
 */

#include "net/api/api_leases.h"

#include "base/err.h"
#include "core/result.h"
#include "net/api/api.h"
#include "wire/wire.h"

#include <string.h>

/* ---- Reading --------------------------------------------------------------------------------- */

enum weft_rc weft_lease_read(struct weft_request *request, struct weft_err *err)
{
    const struct weft_op_info *op = request->route->op;
    enum weft_rc rc = weft_request_one_or_items(request, op->takes, weft_wire_size(op->takes), err);
    if (rc || op->group != WEFT_GROUP_COMPLETE)
        return rc;
    const struct weft_complete *item = request->items.item;
    request->items.bytes = 0;
    for (size_t i = 0; i < request->items.count; i++)
        if (!request->items.err[i])
            request->items.bytes += item[i].result_size;
    return WEFT_OK;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* The id of an item, which is the first member of each kind. */
static const struct weft_id *id_of(const struct weft_request *request, size_t i)
{
    size_t item_size = weft_wire_size(request->route->op->takes);
    return (const void *)((const char *)request->items.item + i * item_size);
}

/* Of an item that could not be read the id may be missing. */
static void put_id(const struct weft_id *id, struct weft_json_writer *out)
{
    static const struct weft_id none;
    weft_json_key(out, "id");
    if (memcmp(id, &none, sizeof(none)) == 0)
        weft_json_put_null(out);
    else
        weft_wire_put_id(out, id);
}

/* One item is answered by itself: its error is the error of the request, with its status. */
static void write_one(struct weft_request *request)
{
    const struct weft_items *items = &request->items;
    const struct weft_lease_result *answer = items->answer;
    struct weft_json_writer out;
    if (items->err[0]) {
        weft_reply_error(request, items->err[0]);
    } else if (answer->rc) {
        weft_reply_fence(request, answer->err, answer->fence);
    } else {
        weft_reply_json(request, 200, &out);
        weft_json_begin_object(&out);
        put_id(id_of(request, 0), &out);
        weft_wire_write_members(request->route->op->gives, answer, &out);
        weft_json_end_object(&out);
    }
}

static void write_items(struct weft_request *request)
{
    const struct weft_items *items = &request->items;
    const struct weft_lease_result *answer = items->answer;
    struct weft_json_writer out;
    weft_reply_items(request, &out);
    for (size_t i = 0; i < items->count; i++) {
        weft_json_begin_object(&out);
        put_id(id_of(request, i), &out);
        if (items->err[i])
            weft_api_put_error(items->err[i], WEFT_FENCE_NONE, &out);
        else if (answer[i].rc)
            weft_api_put_error(answer[i].err, answer[i].fence, &out);
        else
            weft_wire_write_members(request->route->op->gives, &answer[i], &out);
        weft_json_end_object(&out);
    }
    weft_json_end_array(&out);
    weft_json_end_object(&out);
}

void weft_lease_write(struct weft_request *request)
{
    if (request->items.bulk)
        write_items(request);
    else
        write_one(request);
}
