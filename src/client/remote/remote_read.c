/* SPDX-License-Identifier: Apache-2.0 */

/* Reading through a server: one request for each execution, and lists page by page. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/moment.h"
#include "client/remote/remote.h"
#include "client/worker/wake.h"
#include "core/state.h"
#include "engine/call.h"
#include "engine/job/execution_read.h"
#include "engine/job/list.h"
#include "weft/weft.h"
#include "wire/wire.h"

#include <string.h>

/* ---- One execution --------------------------------------------------------------------------- */

static enum weft_rc read_one(const struct weft_via *via, const struct weft_id *id, int64_t wait_ms,
                             struct weft_arena *arena, struct weft_execution *ret_item,
                             struct weft_err *err)
{
    const struct weft_remote_request request = {.op = WEFT_OP_DESCRIBE,
                                                .place = weft_remote_id(arena, id),
                                                .query = weft_remote_wait_query(arena, wait_ms),
                                                .wait_ms = wait_ms};
    return weft_remote_one(via, &request, NULL, arena, ret_item, err);
}

/* One execution, which must exist, when it has ended or the wait is over. */
static enum weft_rc wait_for_end(const struct weft_via *via, const struct weft_op_call *call,
                                 struct weft_err *err)
{
    weft_usec until_us = weft_mono_us() + via->wait_ms * WEFT_MS;
    struct weft_execution *item = call->out;
    for (;;) {
        int64_t slice_ms = weft_remote_wait_slice(until_us);
        enum weft_rc rc = read_one(via, call->in, slice_ms, call->arena, item, err);
        if (rc || !weft_state_living(item->state) || slice_ms < WEFT_REMOTE_SLICE_MS)
            return rc;
    }
}

enum weft_rc weft_remote_describe(const struct weft_via *via, const struct weft_op_call *call,
                                  struct weft_err *err)
{
    const struct weft_id *id = call->in;
    struct weft_execution *item = call->out;
    if (via->waits)
        return wait_for_end(via, call, err);
    for (size_t i = 0; i < call->count; i++) {
        enum weft_rc rc = read_one(via, &id[i], 0, call->arena, &item[i], err);
        if (rc == WEFT_NOT_FOUND)
            item[i] = (struct weft_execution){.id = id[i], .percent = -1};
        else if (rc)
            return rc;
    }
    return WEFT_OK;
}

enum weft_rc weft_remote_bytes(const struct weft_via *via, const struct weft_op_call *call,
                               struct weft_err *err)
{
    const struct weft_remote_request request = {.op = call->op,
                                                .place = weft_remote_id(call->arena, call->in)};
    struct weft_remote_response response;
    enum weft_rc rc = weft_remote_send(via, &request, call->arena, &response, err);
    if (!rc)
        *(struct weft_bytes *)call->out = (struct weft_bytes){
            .data = response.body, .size = response.size, .content_type = response.content_type};
    return rc;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static void *add_item(struct weft_remote_list *listing, size_t size, struct weft_arena *arena)
{
    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity ? 2 * listing->capacity : 16;
        void *item = weft_arena_alloc(arena, capacity, size);
        if (listing->count)
            memcpy(item, listing->item, listing->count * size);
        listing->item = item;
        listing->capacity = capacity;
    }
    return (char *)listing->item + listing->count++ * size;
}

static weft_usec looked_to(const struct weft_json *object)
{
    struct weft_json value;
    weft_usec moment_us = 0;
    if (weft_wire_member(object, "looked_to", &value) && value.kind == WEFT_JSON_STRING &&
        !weft_moment_parse(value.text + 1, value.size - 2, &moment_us))
        moment_us = 0;
    return moment_us;
}

enum weft_rc weft_remote_page(const struct weft_via *via, const struct weft_remote_request *request,
                              struct weft_arena *arena, struct weft_remote_list *listing,
                              struct weft_json *ret_object, struct weft_err *err)
{
    const struct weft_wire_type *type = weft_ops[request->op].gives;
    struct weft_json_iter iter;
    struct weft_json next;
    enum weft_rc rc = weft_remote_ask(via, request, arena, ret_object, err);
    if (rc)
        return rc;
    if (!weft_remote_items(ret_object, SIZE_MAX, &iter))
        return weft_remote_garbled(request, err);
    while (weft_json_next(&iter))
        if (weft_wire_read_answer(type, &iter.value, arena,
                                  add_item(listing, weft_wire_size(type), arena), NULL))
            return weft_remote_garbled(request, err);
    listing->next = NULL;
    if (weft_wire_member(ret_object, "next", &next) && next.kind == WEFT_JSON_STRING &&
        weft_json_string(&next, arena, &listing->next, NULL))
        return weft_remote_garbled(request, err);
    listing->looked_to_us = looked_to(ret_object);
    return WEFT_OK;
}

enum weft_rc weft_remote_whole_list(const struct weft_via *via, const struct weft_op_call *call,
                                    struct weft_err *err)
{
    struct {
        const void *item;
        size_t count;
    } *answer = call->out; /* how every list of weft.h begins */
    struct weft_remote_list listing = {0};
    struct weft_remote_request request = {.op = call->op};
    bool attempts = call->op == WEFT_OP_ATTEMPTS;
    if (attempts)
        request.place = weft_remote_id(call->arena, call->in);
    enum weft_rc rc;
    do {
        struct weft_buf query;
        struct weft_json object;
        weft_buf_init(&query, SIZE_MAX);
        weft_remote_query(&query, "limit", attempts ? NULL : "1000");
        weft_remote_query(&query, "after", listing.next);
        request.query = query.data;
        rc = weft_remote_page(via, &request, call->arena, &listing, &object, err);
        weft_buf_done(&query);
    } while (!rc && listing.next);
    if (!rc) {
        answer->item = listing.item;
        answer->count = listing.count;
    }
    return rc;
}

static void query_moment(struct weft_buf *query, const char *name, weft_usec moment_us)
{
    char text[WEFT_MOMENT_TEXT];
    if (moment_us <= 0 || moment_us > WEFT_MOMENT_MAX_US)
        return;
    weft_moment_print(moment_us, text);
    weft_remote_query(query, name, text);
}

static void query_filter(struct weft_buf *query, const struct weft_filter *filter,
                         struct weft_arena *arena)
{
    weft_remote_query(query, "lane", filter->lane);
    weft_remote_query(query, "kind", filter->kind);
    weft_remote_query(query, "state", filter->state ? weft_state_name(filter->state) : NULL);
    weft_remote_query(query, "tenant", filter->tenant);
    weft_remote_query(query, "key", filter->key);
    weft_remote_query(query, "error_class", filter->error_class);
    weft_remote_query(query, "worker", filter->worker);
    weft_remote_query(query, "id", filter->id);
    query_moment(query, "created_since", filter->created_since_us);
    query_moment(query, "created_until", filter->created_until_us);
    query_moment(query, "finished_since", filter->finished_since_us);
    query_moment(query, "finished_until", filter->finished_until_us);
    if (!weft_id_is_zero(&filter->flow))
        weft_remote_query(query, "flow", weft_remote_id(arena, &filter->flow));
    if (filter->tag)
        weft_remote_query(query, "tag",
                          weft_arena_printf(arena, "%s:%s",
                                            filter->tag->key ? filter->tag->key : "",
                                            filter->tag->value ? filter->tag->value : ""));
}

enum weft_rc weft_remote_list(const struct weft_via *via, const struct weft_op_call *call,
                              struct weft_err *err)
{
    const struct weft_listing *wanted = call->in;
    if ((unsigned)wanted->filter.state >= WEFT_STATE_COUNT)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "state", "there is no such state");
    struct weft_buf query;
    weft_buf_init(&query, SIZE_MAX);
    query_filter(&query, &wanted->filter, call->arena);
    if (wanted->limit)
        weft_remote_query(&query, "limit", weft_arena_printf(call->arena, "%u", wanted->limit));
    weft_remote_query(&query, "after", wanted->after);
    const struct weft_remote_request request = {
        .op = call->op, .query = query.data, .ns = wanted->filter.ns};
    struct weft_remote_list listing = {0};
    struct weft_json object;
    enum weft_rc rc = weft_remote_page(via, &request, call->arena, &listing, &object, err);
    weft_buf_done(&query);
    if (!rc)
        *(struct weft_read_page *)call->out =
            (struct weft_read_page){.item = listing.item,
                                    .count = listing.count,
                                    .next = listing.next,
                                    .looked_to_us = listing.looked_to_us};
    return rc;
}

enum weft_rc weft_remote_counts(const struct weft_via *via, const struct weft_op_call *call,
                                struct weft_err *err)
{
    struct weft_buf query;
    weft_buf_init(&query, SIZE_MAX);
    weft_remote_query(&query, "lane", call->in);
    const struct weft_remote_request request = {.op = call->op, .query = query.data};
    struct weft_remote_list listing = {0};
    struct weft_json object, as_of, age;
    weft_usec as_of_us = 0;
    int64_t age_ms;
    enum weft_rc rc = weft_remote_page(via, &request, call->arena, &listing, &object, err);
    if (!rc && (!weft_wire_member(&object, "as_of", &as_of) || as_of.kind != WEFT_JSON_STRING ||
                !weft_moment_parse(as_of.text + 1, as_of.size - 2, &as_of_us)))
        rc = weft_remote_garbled(&request, err);
    weft_buf_done(&query);
    if (rc || !weft_wire_member(&object, "age_ms", &age) || !weft_json_i64(&age, &age_ms) ||
        age_ms < 0)
        age_ms = -1; /* an older server */
    if (!rc)
        *(struct weft_counts *)call->out = (struct weft_counts){
            .item = listing.item, .count = listing.count, .as_of_us = as_of_us, .age_ms = age_ms};
    return rc;
}
