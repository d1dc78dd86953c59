/* SPDX-License-Identifier: Apache-2.0 */

/* POST /v1/executions: one spec, or many as {"items"} or as lines. */

#include "net/api/api_submit.h"

#include "base/err.h"
#include "core/result.h"
#include "net/api/api.h"
#include "net/http/http_head.h"
#include "net/lines.h"
#include "wire/wire.h"

#include <string.h>

enum weft_rc weft_submit_read(struct weft_request *request, struct weft_err *err)
{
    enum weft_rc rc =
        weft_lines_type(weft_request_header(request, "Content-Type"))
            ? weft_request_lines(request, &weft_wire_spec, sizeof(struct weft_spec), err)
            : weft_request_one_or_items(request, &weft_wire_spec, sizeof(struct weft_spec), err);
    const struct weft_spec *spec = request->items.item;
    request->items.bytes = 0;
    for (size_t i = 0; i < request->items.count && !rc; i++)
        if (!request->items.err[i])
            request->items.bytes += spec[i].payload_size;
    return rc;
}

static void write_one(struct weft_request *request, const struct weft_submit_result *answer)
{
    if (answer->rc) {
        weft_reply_error(request, answer->err);
        return;
    }
    char id[WEFT_ID_TEXT];
    weft_id_print(&answer->id, id);
    request->reply.location = weft_arena_printf(request->arena, "/v1/executions/%s", id);
    weft_reply_wire(request, answer->duplicate ? 200 : 201, &weft_wire_submitted, answer);
}

static void write_item(const struct weft_items *items, size_t i, struct weft_json_writer *out)
{
    const struct weft_submit_result *answer = (const struct weft_submit_result *)items->answer + i;
    const struct weft_err *failed = items->err[i] ? items->err[i] : answer->err;
    if (!failed) {
        weft_wire_write(&weft_wire_submitted, answer, out);
        return;
    }
    weft_json_begin_object(out);
    weft_api_put_error(failed, WEFT_FENCE_NONE, out);
    if (items->line) {
        weft_json_add_i64(out, "line", items->line[i]);
    }
    weft_json_end_object(out);
}

static void write_lines(struct weft_request *request)
{
    struct weft_json_writer out;
    weft_reply_json(request, 200, &out);
    request->reply.type = WEFT_LINES_TYPE;
    for (size_t i = 0; i < request->items.count; i++) {
        weft_json_writer_init(&out, &request->reply.body); /* each line is a text of its own */
        write_item(&request->items, i, &out);
        weft_buf_add_char(&request->reply.body, '\n');
    }
}

void weft_submit_write(struct weft_request *request)
{
    const struct weft_items *items = &request->items;
    if (!items->bulk) {
        write_one(request, items->answer);
        return;
    }
    if (weft_request_wants_lines(request)) {
        write_lines(request);
        return;
    }
    struct weft_json_writer out;
    weft_reply_items(request, &out);
    for (size_t i = 0; i < items->count; i++)
        write_item(items, i, &out);
    weft_json_end_array(&out);
    weft_json_end_object(&out);
}
