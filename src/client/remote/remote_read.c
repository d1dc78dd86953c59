/* SPDX-License-Identifier: Apache-2.0 */

/* Reading through a server: one request for each thing, pages put together where a call has all. */

#include "client/remote/remote.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/moment.h"
#include "core/state.h"
#include "wire/wire.h"

#include <string.h>

enum { WAIT_SLICE_MS = 20000 }; /* how long one request waits for the end of an execution */

/* ---- One execution --------------------------------------------------------------------------- */

static enum weft_rc read_one(const struct weft_via *via, const struct weft_id *id, int64_t wait_ms,
                             struct weft_arena *arena, struct weft_execution *ret_item,
                             struct weft_err *err)
{
    const char *tail = wait_ms ? weft_arena_printf(arena, "?wait_ms=%lld", (long long)wait_ms) : "";
    const struct weft_request request = {
        .method = "GET", .path = weft_remote_path(arena, id, tail), .wait_ms = wait_ms};
    struct weft_json object;
    enum weft_rc rc = weft_remote_ask(via, &request, arena, &object, err);
    if (!rc && weft_wire_read_answer(&weft_wire_execution, &object, arena, ret_item, NULL))
        rc = weft_remote_garbled(&request, err);
    return rc;
}

enum weft_rc weft_remote_describe(const struct weft_via *via, const struct weft_id *id,
                                  size_t count, struct weft_arena *arena,
                                  struct weft_execution *ret_item, struct weft_err *err)
{
    for (size_t i = 0; i < count; i++) {
        enum weft_rc rc = read_one(via, &id[i], 0, arena, &ret_item[i], err);
        if (rc == WEFT_NOT_FOUND)
            ret_item[i] = (struct weft_execution){.id = id[i], .percent = -1};
        else if (rc)
            return rc;
    }
    return WEFT_OK;
}

enum weft_rc weft_remote_wait(const struct weft_via *via, const struct weft_id *id, int64_t wait_ms,
                              struct weft_arena *arena, struct weft_execution *ret_item,
                              struct weft_err *err)
{
    weft_usec until_us = weft_mono_us() + wait_ms * WEFT_MS;
    for (;;) {
        int64_t left_ms = (until_us - weft_mono_us()) / WEFT_MS;
        int64_t slice_ms = left_ms < 0 ? 0 : left_ms < WAIT_SLICE_MS ? left_ms : WAIT_SLICE_MS;
        enum weft_rc rc = read_one(via, id, slice_ms, arena, ret_item, err);
        if (rc || !weft_state_living(ret_item->state) || slice_ms == left_ms || left_ms <= 0)
            return rc;
    }
}

enum weft_rc weft_remote_bytes(const struct weft_via *via, enum weft_bytes_kind kind,
                               const struct weft_id *id, struct weft_arena *arena,
                               struct weft_bytes *ret_bytes, struct weft_err *err)
{
    const struct weft_request request = {
        .method = "GET",
        .path = weft_remote_path(arena, id, kind == WEFT_BYTES_RESULT ? "/result" : "/payload")};
    struct weft_response response;
    enum weft_rc rc = weft_remote_send(via, &request, arena, &response, err);
    if (!rc)
        *ret_bytes = (struct weft_bytes){
            .data = response.body, .size = response.size, .content_type = response.content_type};
    return rc;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static void *add_item(struct weft_remote_list *listing, struct weft_arena *arena)
{
    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity ? 2 * listing->capacity : 64;
        void *item = weft_arena_alloc(arena, capacity, listing->item_size);
        if (listing->count)
            memcpy(item, listing->item, listing->count * listing->item_size);
        listing->item = item;
        listing->capacity = capacity;
    }
    return (char *)listing->item + listing->count++ * listing->item_size;
}

enum weft_rc weft_remote_page(const struct weft_via *via, const struct weft_request *request,
                              struct weft_arena *arena, struct weft_remote_list *listing,
                              struct weft_json *ret_object, struct weft_err *err)
{
    struct weft_json_iter iter;
    struct weft_json next;
    enum weft_rc rc = weft_remote_ask(via, request, arena, ret_object, err);
    if (rc)
        return rc;
    if (!weft_remote_items(ret_object, SIZE_MAX, &iter))
        return weft_remote_garbled(request, err);
    while (weft_json_next(&iter))
        if (weft_wire_read_answer(listing->type, &iter.value, arena, add_item(listing, arena),
                                  NULL))
            return weft_remote_garbled(request, err);
    listing->next = NULL;
    if (weft_wire_member(ret_object, "next", &next) && next.kind == WEFT_JSON_STRING &&
        weft_json_string(&next, arena, &listing->next, NULL))
        return weft_remote_garbled(request, err);
    return WEFT_OK;
}

void weft_remote_query(struct weft_buf *url, const char *name, const char *value)
{
    if (!value)
        return;
    weft_buf_printf(url, "%c%s=", strchr(url->data, '?') ? '&' : '?', name);
    weft_remote_encode(url, value);
}

static void query_moment(struct weft_buf *url, const char *name, weft_usec moment_us)
{
    char text[WEFT_MOMENT_TEXT];
    if (moment_us <= 0 || moment_us > WEFT_MOMENT_MAX_US)
        return;
    weft_moment_print(moment_us, text);
    weft_remote_query(url, name, text);
}

weft_usec weft_remote_looked_to(const struct weft_json *object)
{
    struct weft_json value;
    weft_usec moment_us = 0;
    if (weft_wire_member(object, "looked_to", &value) && value.kind == WEFT_JSON_STRING &&
        !weft_moment_parse(value.text + 1, value.size - 2, &moment_us))
        moment_us = 0;
    return moment_us;
}

enum weft_rc weft_remote_all(const struct weft_via *via, const char *path, struct weft_arena *arena,
                             struct weft_remote_list *listing, struct weft_err *err)
{
    enum weft_rc rc;
    do {
        struct weft_buf url;
        weft_buf_init(&url, SIZE_MAX);
        weft_buf_add_text(&url, path);
        weft_remote_query(&url, "after", listing->next);
        struct weft_json object;
        const struct weft_request request = {.method = "GET", .path = url.data};
        rc = weft_remote_page(via, &request, arena, listing, &object, err);
        weft_buf_done(&url);
    } while (!rc && listing->next);
    return rc;
}

enum weft_rc weft_remote_list(const struct weft_via *via, const struct weft_listing *wanted,
                              struct weft_arena *arena, struct weft_read_page *ret_page,
                              struct weft_err *err)
{
    const struct weft_filter *filter = &wanted->filter;
    if ((unsigned)filter->state >= WEFT_STATE_COUNT)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "state", "there is no such state");
    struct weft_buf url;
    weft_buf_init(&url, SIZE_MAX);
    weft_buf_add_text(&url, "/executions");
    weft_remote_query(&url, "lane", filter->lane);
    weft_remote_query(&url, "kind", filter->kind);
    weft_remote_query(&url, "state", filter->state ? weft_state_name(filter->state) : NULL);
    weft_remote_query(&url, "tenant", filter->tenant);
    weft_remote_query(&url, "key", filter->key);
    weft_remote_query(&url, "error_class", filter->error_class);
    weft_remote_query(&url, "worker", filter->worker);
    weft_remote_query(&url, "id", filter->id);
    query_moment(&url, "created_since", filter->created_since_us);
    query_moment(&url, "created_until", filter->created_until_us);
    query_moment(&url, "finished_since", filter->finished_since_us);
    query_moment(&url, "finished_until", filter->finished_until_us);
    if (!weft_id_is_zero(&filter->flow)) {
        char flow[WEFT_ID_TEXT];
        weft_id_print(&filter->flow, flow);
        weft_remote_query(&url, "flow", flow);
    }
    if (filter->tag)
        weft_remote_query(&url, "tag",
                          weft_arena_printf(arena, "%s:%s",
                                            filter->tag->key ? filter->tag->key : "",
                                            filter->tag->value ? filter->tag->value : ""));
    if (wanted->limit)
        weft_remote_query(&url, "limit", weft_arena_printf(arena, "%u", wanted->limit));
    weft_remote_query(&url, "after", wanted->after);
    const struct weft_request request = {.method = "GET", .path = url.data, .ns = filter->ns};
    struct weft_remote_list listing = {.type = &weft_wire_execution,
                                       .item_size = sizeof(struct weft_execution)};
    struct weft_json object;
    enum weft_rc rc = weft_remote_page(via, &request, arena, &listing, &object, err);
    weft_buf_done(&url);
    if (!rc)
        *ret_page = (struct weft_read_page){.item = listing.item,
                                            .count = listing.count,
                                            .next = listing.next,
                                            .looked_to_us = weft_remote_looked_to(&object)};
    return rc;
}

enum weft_rc weft_remote_attempts(const struct weft_via *via, const struct weft_id *id,
                                  struct weft_arena *arena, struct weft_attempts *ret_attempts,
                                  struct weft_err *err)
{
    struct weft_remote_list listing = {.type = &weft_wire_attempt,
                                       .item_size = sizeof(struct weft_attempt)};
    enum weft_rc rc =
        weft_remote_all(via, weft_remote_path(arena, id, "/attempts"), arena, &listing, err);
    if (!rc)
        *ret_attempts = (struct weft_attempts){.item = listing.item, .count = listing.count};
    return rc;
}

enum weft_rc weft_remote_counts(const struct weft_via *via, const char *lane,
                                struct weft_arena *arena, struct weft_counts *ret_counts,
                                struct weft_err *err)
{
    struct weft_buf url;
    weft_buf_init(&url, SIZE_MAX);
    weft_buf_add_text(&url, "/counts");
    weft_remote_query(&url, "lane", lane);
    const struct weft_request request = {.method = "GET", .path = url.data};
    struct weft_remote_list listing = {.type = &weft_wire_lane_count,
                                       .item_size = sizeof(struct weft_lane_count)};
    struct weft_json object, as_of, age;
    weft_usec as_of_us = 0;
    int64_t age_ms;
    enum weft_rc rc = weft_remote_page(via, &request, arena, &listing, &object, err);
    if (!rc && (!weft_wire_member(&object, "as_of", &as_of) || as_of.kind != WEFT_JSON_STRING ||
                !weft_moment_parse(as_of.text + 1, as_of.size - 2, &as_of_us)))
        rc = weft_remote_garbled(&request, err);
    weft_buf_done(&url);
    if (rc || !weft_wire_member(&object, "age_ms", &age) || !weft_json_i64(&age, &age_ms) ||
        age_ms < 0)
        age_ms = -1; /* an older server */
    if (!rc)
        *ret_counts = (struct weft_counts){
            .item = listing.item, .count = listing.count, .as_of_us = as_of_us, .age_ms = age_ms};
    return rc;
}

enum weft_rc weft_remote_lanes(const struct weft_via *via, struct weft_arena *arena,
                               struct weft_lanes *ret_lanes, struct weft_err *err)
{
    struct weft_remote_list listing = {.type = &weft_wire_lane,
                                       .item_size = sizeof(struct weft_lane)};
    enum weft_rc rc = weft_remote_all(via, "/lanes?limit=1000", arena, &listing, err);
    if (!rc)
        *ret_lanes = (struct weft_lanes){.item = listing.item, .count = listing.count};
    return rc;
}

enum weft_rc weft_remote_workers(const struct weft_via *via, struct weft_arena *arena,
                                 struct weft_workers *ret_workers, struct weft_err *err)
{
    struct weft_remote_list listing = {.type = &weft_wire_worker,
                                       .item_size = sizeof(struct weft_worker_info)};
    enum weft_rc rc = weft_remote_all(via, "/workers?limit=1000", arena, &listing, err);
    if (!rc)
        *ret_workers = (struct weft_workers){.item = listing.item, .count = listing.count};
    return rc;
}

enum weft_rc weft_remote_replicas(const struct weft_via *via, struct weft_arena *arena,
                                  struct weft_replicas *ret_replicas, struct weft_err *err)
{
    struct weft_remote_list listing = {.type = &weft_wire_replica,
                                       .item_size = sizeof(struct weft_replica)};
    enum weft_rc rc = weft_remote_all(via, "/replicas?limit=1000", arena, &listing, err);
    if (!rc)
        *ret_replicas = (struct weft_replicas){.item = listing.item, .count = listing.count};
    return rc;
}

enum weft_rc weft_remote_scanners(const struct weft_via *via, struct weft_arena *arena,
                                  struct weft_scanners *ret_scanners, struct weft_err *err)
{
    struct weft_remote_list listing = {.type = &weft_wire_scanner,
                                       .item_size = sizeof(struct weft_scanner_status)};
    enum weft_rc rc = weft_remote_all(via, "/scanners?limit=1000", arena, &listing, err);
    if (!rc)
        *ret_scanners = (struct weft_scanners){.item = listing.item, .count = listing.count};
    return rc;
}
