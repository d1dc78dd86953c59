/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Work goes in and out: POST /v1/executions takes one spec, or many as {"items"} or as lines;
 * POST /v1/leases/... are the calls of a worker about the leases that it holds, one or {"items"},
 * each answered on its own; POST /v1/leases/watch reports the leases of a worker that another party
 * ended, as soon as there is one.
 */

#include "net/api/handlers.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "core/result.h"
#include "engine/job/leases.h"
#include "net/api/api.h"
#include "net/http/loop.h"
#include "net/server.h"
#include "net/wait/waits.h"
#include "wire/wire.h"

#include <string.h>

/* ---- Submissions ----------------------------------------------------------------------------- */

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

static void answer_submit(struct weft_request *request, const struct weft_submit_result *answer)
{
    if (answer->rc)
        weft_reply_error(request, answer->err);
    else
        weft_api_reply_made(request, &answer->id, answer->duplicate, answer);
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
    weft_api_put_error(failed, NULL, out);
    if (items->line)
        weft_json_add_i64(out, "line", items->line[i]);
    weft_json_end_object(out);
}

static void write_lines(struct weft_request *request)
{
    struct weft_json_writer out;
    weft_reply_json(request, 200, &out);
    weft_reply_as_lines(request);
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
        answer_submit(request, items->answer);
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

/* ---- Leases ---------------------------------------------------------------------------------- */

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

/* The answer to an item; all kinds begin as a struct weft_lease_result does. */
static const struct weft_lease_result *answer_of(const struct weft_request *request, size_t i)
{
    size_t size = weft_wire_size(request->route->op->gives);
    return (const void *)((const char *)request->items.answer + i * size);
}

/* What is said of a lease besides the error. */
static struct weft_wire_detail detail_of(const struct weft_request *request, size_t i)
{
    const struct weft_lease_result *answer = answer_of(request, i);
    struct weft_wire_detail detail = {.fence = answer->fence};
    if (request->route->op->group == WEFT_GROUP_USAGE) {
        const struct weft_usage_result *usage = (const void *)answer;
        detail.left = usage->left;
        detail.left_count = usage->left_count;
    }
    return detail;
}

/* One item is answered by itself: its error is the error of the request, with its status. */
static void answer_lease(struct weft_request *request)
{
    const struct weft_items *items = &request->items;
    const struct weft_lease_result *answer = answer_of(request, 0);
    struct weft_json_writer out;
    if (items->err[0]) {
        weft_reply_error(request, items->err[0]);
    } else if (answer->rc) {
        const struct weft_wire_detail detail = detail_of(request, 0);
        weft_reply_detail(request, answer->err, &detail);
    } else {
        weft_reply_json(request, 200, &out);
        weft_json_begin_object(&out);
        put_id(id_of(request, 0), &out);
        weft_wire_write_members(request->route->op->gives, answer, &out);
        weft_json_end_object(&out);
    }
}

static void answer_leases(struct weft_request *request)
{
    const struct weft_items *items = &request->items;
    struct weft_json_writer out;
    weft_reply_items(request, &out);
    for (size_t i = 0; i < items->count; i++) {
        const struct weft_lease_result *answer = answer_of(request, i);
        weft_json_begin_object(&out);
        put_id(id_of(request, i), &out);
        if (items->err[i]) {
            weft_api_put_error(items->err[i], NULL, &out);
        } else if (answer->rc) {
            const struct weft_wire_detail detail = detail_of(request, i);
            weft_api_put_error(answer->err, &detail, &out);
        } else {
            weft_wire_write_members(request->route->op->gives, answer, &out);
        }
        weft_json_end_object(&out);
    }
    weft_json_end_array(&out);
    weft_json_end_object(&out);
}

void weft_lease_write(struct weft_request *request)
{
    if (request->items.bulk)
        answer_leases(request);
    else
        answer_lease(request);
}

/* ---- Watches --------------------------------------------------------------------------------- */

/*
 * A watch enters the list of waiting requests before it looks, and looks again only when it is
 * woken, so a waiting watch costs no query.
 */
struct watch_state {
    struct weft_watch watch;
    weft_usec until_us; /* boot time; 0: does not wait */
    int32_t worker;     /* its number; 0: not known yet */
};

enum weft_rc weft_watch_read(struct weft_request *request, struct weft_err *err)
{
    struct watch_state *state = weft_new(request->arena, struct watch_state);
    enum weft_rc rc = weft_api_read_message(request, &state->watch, err);
    if (rc)
        return rc;
    state->watch.ns = request->ns;
    if (state->watch.wait_ms > 0)
        state->until_us = weft_boot_us() + state->watch.wait_ms * WEFT_MS;
    request->state = state;
    return WEFT_OK;
}

static void reply_watch(struct weft_request *request, const struct weft_watched *watched)
{
    struct weft_json_writer out;
    weft_reply_items(request, &out);
    for (size_t i = 0; i < watched->count; i++)
        weft_wire_write(&weft_wire_ended_lease, &watched->item[i], &out);
    weft_json_end_array(&out);
    weft_json_end_object(&out);
}

enum weft_rc weft_watch_run(struct weft_request *request, struct weft_err *err)
{
    struct watch_state *state = request->state;
    struct weft_engine *engine = request->server->engine;
    struct weft_watched watched = {0};
    bool again = state->worker != 0; /* it has slept */
    enum weft_rc rc =
        again ? WEFT_OK : weft_engine_worker_number(engine, &state->watch, &state->worker, err);
    if (rc)
        return rc;
    bool waits =
        state->until_us > 0 && weft_wait_for_leases(request, state->worker, state->until_us);
    /* When its time is up or the server stops it does not look: the next watch finds what came
     * meanwhile. Nor when the client hung up: an ended lease is reported once, to the next watch.
     */
    bool looks = (waits || !again) && !(again && weft_loop_gone(request));
    if (looks)
        rc = weft_engine_watch(engine, &state->watch, request->arena, &watched, err);
    if (!rc && (watched.count > 0 || !waits || !looks))
        reply_watch(request, &watched);
    return rc;
}
