/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads: describe, list, attempts, result and payload bytes. Nothing here locks.
 *
 * A cursor is the id of the last row looked at, so it stays valid whatever happens to that row.
 */

#include "engine/engine.h"

#include "base/id.h"
#include "core/retry.h"
#include "core/route.h"

#include <stdlib.h>
#include <string.h>

enum {
    WALK_FIRST = 64, /* rows beyond twice the page that a list looks at first */
};

/* ---- Executions ------------------------------------------------------------------------------ */

/* The columns of describe; list has the same and two more. */
static struct weft_execution read_execution(struct weft_engine *engine,
                                            const struct weft_rows *rows, size_t i,
                                            struct weft_arena *arena)
{
    const struct weft_queue *queue =
        weft_find_queue(engine, (int32_t)weft_get_i64(rows, i, DESCRIBE_OUT_QUEUE));
    enum weft_state state = (enum weft_state)weft_get_i64(rows, i, DESCRIBE_OUT_STATE);
    weft_usec due_us = weft_get_i64(rows, i, DESCRIBE_OUT_DUE);
    bool has_progress = !weft_get(rows, i, DESCRIBE_OUT_PERCENT)->null;
    struct weft_execution out = {
        .id = weft_get_id(rows, i, DESCRIBE_OUT_ID),
        .ns = queue->ns_name,
        .lane = queue->lane_name,
        .kind = queue->kind,
        .state = state,
        .priority = (int32_t)weft_get_i64(rows, i, DESCRIBE_OUT_PRIORITY),
        .attempt = (int32_t)weft_get_i64(rows, i, DESCRIBE_OUT_ATTEMPT),
        .epoch = (int32_t)weft_get_i64(rows, i, DESCRIBE_OUT_EPOCH),
        .lost = (int32_t)weft_get_i64(rows, i, DESCRIBE_OUT_LOST),
        .tenant = *queue->tenant_name ? queue->tenant_name : NULL,
        .key = weft_get_text(rows, i, DESCRIBE_OUT_KEY),
        .worker = weft_find_name(engine, (int32_t)weft_get_i64(rows, i, DESCRIBE_OUT_WORKER)),
        .reason = weft_get_text(rows, i, DESCRIBE_OUT_REASON),
        .by = weft_get_text(rows, i, DESCRIBE_OUT_BY),
        .error_class = weft_get_text(rows, i, DESCRIBE_OUT_ERROR_CLASS),
        .error_message = weft_get_text(rows, i, DESCRIBE_OUT_ERROR_MESSAGE),
        .percent = has_progress ? (int32_t)weft_get_i64(rows, i, DESCRIBE_OUT_PERCENT) : -1,
        .note = weft_get_text(rows, i, DESCRIBE_OUT_NOTE),
        .created_us = weft_get_i64(rows, i, DESCRIBE_OUT_CREATED),
        .started_us = weft_get_i64(rows, i, DESCRIBE_OUT_STARTED),
        .claimed_us = weft_get_i64(rows, i, DESCRIBE_OUT_CLAIMED),
        .finished_us = weft_get_i64(rows, i, DESCRIBE_OUT_FINISHED),
        .run_at_us = state == WEFT_STATE_DELAYED ? due_us : 0,
        .deadline_us = weft_get_i64(rows, i, DESCRIBE_OUT_DEADLINE),
        .lease_expires_us = state == WEFT_STATE_RUNNING ? due_us : 0,
        .flow = weft_get_id(rows, i, DESCRIBE_OUT_FLOW),
        .node = weft_get_text(rows, i, DESCRIBE_OUT_NODE),
    };
    const struct weft_policy_entry *policy =
        weft_find_policy(engine, (int32_t)weft_get_i64(rows, i, DESCRIBE_OUT_POLICY));
    const struct weft_retry_view retry = weft_retry_look(
        &policy->rules, &(struct weft_retry_facts){
                            .state = state,
                            .ended = (enum weft_ended)weft_get_i64(rows, i, DESCRIBE_OUT_ENDED),
                            .attempt = out.attempt,
                            .forgiven = (int32_t)weft_get_i64(rows, i, DESCRIBE_OUT_FORGIVEN),
                            .due_us = due_us,
                            .error_class = out.error_class,
                        });
    out.attempts_used = retry.used;
    out.attempts_left = retry.left;
    out.next_attempt_us = retry.next_us;
    out.not_retried = retry.not_retried;
    out.policy = &policy->shown;
    out.tags = weft_tags_parse(weft_get_text(rows, i, DESCRIBE_OUT_TAGS), arena, &out.tag_count);
    out.capabilities = weft_route_split(queue->route_text, arena, &out.capability_count);
    return out;
}

/* Makes the queues, workers and policies of the rows known, so that read_execution() cannot miss.
 */
static enum weft_rc know_names(struct weft_engine *engine, const struct weft_rows *rows,
                               struct weft_arena *arena, struct weft_err *err)
{
    struct weft_id_list queue = {.id = weft_new_array(arena, int32_t, rows->count + 1)};
    struct weft_id_list worker = {.id = weft_new_array(arena, int32_t, rows->count + 1)};
    struct weft_id_list policy = {.id = weft_new_array(arena, int32_t, rows->count + 1)};
    for (size_t i = 0; i < rows->count; i++) {
        if (weft_get(rows, i, DESCRIBE_OUT_ID)->null)
            continue;
        queue.id[queue.count++] = (int32_t)weft_get_i64(rows, i, DESCRIBE_OUT_QUEUE);
        worker.id[worker.count++] = (int32_t)weft_get_i64(rows, i, DESCRIBE_OUT_WORKER);
        policy.id[policy.count++] = (int32_t)weft_get_i64(rows, i, DESCRIBE_OUT_POLICY);
    }
    enum weft_rc rc = weft_load_queues(engine, &queue, err);
    if (!rc)
        rc = weft_load_names(engine, &worker, err);
    return rc ? rc : weft_load_policies(engine, &policy, err);
}

static enum weft_rc describe_chunk(struct weft_engine *engine, const struct weft_call *call,
                                   struct weft_arena *arena, struct weft_rows *ret_rows,
                                   struct weft_err *err)
{
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, call, arena, ret_rows, err);
    return rc ? rc : know_names(engine, ret_rows, arena, err);
}

static int by_row_id(const void *left, const void *right)
{
    const struct weft_cell *a = left, *b = right;
    return memcmp(a->data, b->data, sizeof(struct weft_id));
}

/* A part of a describe: the ids that were asked for and where their answers go. */
struct picking {
    const struct weft_id *id;
    struct weft_execution *item;
    size_t count;
};

/* Rows are sorted by their first column, the id, so that each item finds its own. */
static void pick_items(struct weft_engine *engine, const struct weft_rows *rows, int32_t space,
                       struct weft_arena *arena, const struct picking *picking)
{
    size_t row_size = rows->width * sizeof(*rows->cell);
    if (rows->count > 0) /* where there are none there is no array, which qsort() wants */
        qsort(rows->cell, rows->count, row_size, by_row_id);
    for (size_t i = 0; i < picking->count; i++) {
        picking->item[i] = (struct weft_execution){.id = picking->id[i], .percent = -1};
        const struct weft_cell key = {.data = &picking->id[i]};
        const struct weft_cell *row =
            rows->count ? bsearch(&key, rows->cell, rows->count, row_size, by_row_id) : NULL;
        size_t r = row ? (size_t)(row - rows->cell) / rows->width : 0;
        if (row &&
            weft_find_queue(engine, (int32_t)weft_get_i64(rows, r, DESCRIBE_OUT_QUEUE))->ns ==
                space)
            picking->item[i] = read_execution(engine, rows, r, arena);
    }
}

enum weft_rc weft_engine_describe(struct weft_engine *engine, const char *ns,
                                  const struct weft_id *id, size_t count, struct weft_arena *arena,
                                  struct weft_execution *ret_item, struct weft_err *err)
{
    int32_t space;
    enum weft_rc rc = weft_find_namespace(engine, ns, &space, err);
    for (size_t at = 0; at < count && !rc; at += WEFT_BATCH_MAX) {
        size_t part = count - at < WEFT_BATCH_MAX ? count - at : WEFT_BATCH_MAX;
        struct weft_call call;
        struct weft_rows rows;
        weft_call_init(&call, arena, WEFT_STMT_DESCRIBE, part);
        for (size_t i = 0; i < part; i++)
            weft_set_id(&call, i, DESCRIBE_IN_ID, &id[at + i]);
        rc = describe_chunk(engine, &call, arena, &rows, err);
        if (rc)
            break;
        pick_items(engine, &rows, space, arena, &(struct picking){id + at, ret_item + at, part});
    }
    return rc;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

/* The filter in terms of the store. `nothing`: it names something that does not exist. */
struct resolved_filter {
    int32_t ns, lane, tenant; /* 0: not given */
    const char *needle;
    bool nothing;
};

static enum weft_rc resolve_filter(struct weft_engine *engine, const struct weft_filter *filter,
                                   struct weft_arena *arena, struct resolved_filter *out,
                                   struct weft_err *err)
{
    *out = (struct resolved_filter){0};
    enum weft_rc rc = weft_find_namespace(engine, filter->ns, &out->ns, err);
    if (!rc && filter->lane)
        rc = weft_name_check(filter->lane, "lane", err);
    if (!rc && filter->tenant)
        rc = weft_name_check(filter->tenant, "tenant", err);
    if (!rc && filter->kind)
        rc = weft_name_check(filter->kind, "kind", err);
    if (!rc && filter->tag)
        rc = weft_tag_needle(filter->tag, arena, &out->needle, err);
    if (!rc && (unsigned)filter->state >= WEFT_STATE_COUNT)
        rc = weft_fail_field(err, WEFT_INVALID_VALUE, "state", "there is no such state");
    if (rc)
        return rc;
    struct weft_name_want want[2];
    size_t count = 0;
    if (filter->lane)
        want[count++] =
            (struct weft_name_want){.sort = WEFT_NAME_LANE, .ns = out->ns, .text = filter->lane};
    if (filter->tenant)
        want[count++] = (struct weft_name_want){
            .sort = WEFT_NAME_TENANT, .ns = out->ns, .text = filter->tenant};
    rc = count ? weft_intern_names(engine, false, want, count, err) : WEFT_OK;
    out->nothing = out->ns == 0;
    for (size_t i = 0; i < count; i++)
        out->nothing |= want[i].id == 0;
    out->lane = filter->lane ? want[0].id : 0;
    out->tenant = filter->tenant ? want[count - 1].id : 0;
    return rc;
}

enum weft_rc weft_cursor_read(const char *after, struct weft_id *id, struct weft_err *err)
{
    if (!after || weft_id_parse(after, strlen(after), id))
        return WEFT_OK;
    return weft_fail_field(err, WEFT_INVALID_VALUE, "after",
                           "after is not a cursor that a list gave");
}

const char *weft_cursor_write(const struct weft_id *id, struct weft_arena *arena)
{
    char *text = weft_arena_alloc(arena, WEFT_ID_TEXT, 1);
    weft_id_print(id, text);
    return text;
}

enum weft_rc weft_page_limit(uint32_t limit, struct weft_err *err)
{
    if (limit <= WEFT_PAGE_MAX)
        return WEFT_OK;
    return weft_fail_field(err, WEFT_INVALID_VALUE, "limit", "limit is %u, allowed are 1 to %d",
                           limit, WEFT_PAGE_MAX);
}

/* As the statement has them. */
enum {
    SOURCE_EXECUTION,
    SOURCE_LIVE,
    SOURCE_OUTCOME,
    SOURCE_MEMBERS,
    SOURCE_LIVING_MEMBERS,
    SOURCE_ENDED_MEMBERS,
};

static int source_of(const struct weft_listing *listing)
{
    enum weft_state state = listing->filter.state;
    bool of_flow = !weft_id_is_zero(&listing->filter.flow);
    if (listing->source == WEFT_LIST_BY_STATE && state == WEFT_STATE_NONE)
        return of_flow ? SOURCE_MEMBERS : SOURCE_EXECUTION;
    bool living = listing->source == WEFT_LIST_BY_STATE ? weft_state_living(state)
                                                        : listing->source == WEFT_LIST_LIVING;
    if (living)
        return of_flow ? SOURCE_LIVING_MEMBERS : SOURCE_LIVE;
    return of_flow ? SOURCE_ENDED_MEMBERS : SOURCE_OUTCOME;
}

static void list_call(struct weft_call *call, struct weft_arena *arena,
                      const struct weft_listing *listing, const struct resolved_filter *filter)
{
    weft_call_init(call, arena, WEFT_STMT_LIST, 0);
    weft_set_i64(call, 0, LIST_IN_SOURCE, source_of(listing));
    weft_set_i64(call, 0, LIST_IN_NAMESPACE, filter->ns);
    if (filter->lane)
        weft_set_i64(call, 0, LIST_IN_LANE, filter->lane);
    weft_set_text(call, 0, LIST_IN_KIND, listing->filter.kind);
    if (filter->tenant)
        weft_set_i64(call, 0, LIST_IN_TENANT, filter->tenant);
    if (listing->filter.state)
        weft_set_i64(call, 0, LIST_IN_STATE, listing->filter.state);
    weft_set_text(call, 0, LIST_IN_TAG, filter->needle);
    if (!weft_id_is_zero(&listing->filter.flow))
        weft_set_id(call, 0, LIST_IN_FLOW, &listing->filter.flow);
}

/* The one execution with a key, when it fits the rest of the filter as well. */
static enum weft_rc list_by_key(struct weft_engine *engine, const struct weft_listing *listing,
                                struct weft_arena *arena, struct weft_read_page *page,
                                struct weft_err *err)
{
    const struct weft_filter *filter = &listing->filter;
    struct weft_call call;
    struct weft_rows rows;
    int32_t ns;
    enum weft_rc rc = weft_text_check(filter->key, WEFT_KEY_MAX, "key", err);
    if (!rc)
        rc = weft_find_namespace(engine, filter->ns, &ns, err);
    if (rc)
        return rc;
    weft_call_init(&call, arena, WEFT_STMT_KEY_READ, 1);
    weft_set_i64(&call, 0, KEY_READ_IN_NAMESPACE, ns);
    weft_set_text(&call, 0, KEY_READ_IN_KEY, filter->key);
    rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    struct weft_id id = weft_get_id(&rows, 0, KEY_READ_OUT_ID);
    rc = weft_engine_describe(engine, filter->ns, &id, 1, arena, page->item, err);
    const struct weft_execution *found = page->item;
    bool fits =
        !rc && found->state != WEFT_STATE_NONE &&
        (listing->source == WEFT_LIST_BY_STATE ||
         weft_state_living(found->state) == (listing->source == WEFT_LIST_LIVING)) &&
        (!filter->state || filter->state == found->state) &&
        (!filter->lane || strcmp(filter->lane, found->lane) == 0) &&
        (!filter->kind || strcmp(filter->kind, found->kind) == 0) &&
        (!filter->tenant || (found->tenant && strcmp(filter->tenant, found->tenant) == 0)) &&
        (weft_id_is_zero(&filter->flow) || weft_id_cmp(&filter->flow, &found->flow) == 0);
    for (size_t i = 0; fits && filter->tag && i <= found->tag_count; i++) {
        fits = i < found->tag_count;
        if (fits && strcmp(found->tags[i].key, filter->tag->key) == 0 &&
            strcmp(found->tags[i].value, filter->tag->value) == 0)
            break;
    }
    page->count = fits;
    return rc;
}

/* A list under way: it looks at more and more rows at a time until its page is full. */
struct walk {
    struct weft_call call;
    struct weft_read_page *page;
    uint32_t limit;
    uint32_t looked;
    struct weft_id after; /* the last row that was looked at */
    bool at_end;
};

static enum weft_rc walk_on(struct weft_engine *engine, struct walk *walk, struct weft_arena *arena,
                            struct weft_err *err)
{
    uint32_t left = WEFT_SCAN_MAX - walk->looked;
    uint32_t scan = walk->looked ? 4 * walk->looked : 2 * walk->limit + WALK_FIRST;
    if (scan > left)
        scan = left;
    weft_set_id(&walk->call, 0, LIST_IN_AFTER, &walk->after);
    weft_set_i64(&walk->call, 0, LIST_IN_SCAN, scan);
    weft_set_i64(&walk->call, 0, LIST_IN_LIMIT, walk->limit - (uint32_t)walk->page->count);
    struct weft_rows rows;
    enum weft_rc rc = describe_chunk(engine, &walk->call, arena, &rows, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < rows.count; i++)
        if (!weft_get(&rows, i, LIST_OUT_ID)->null)
            walk->page->item[walk->page->count++] = read_execution(engine, &rows, i, arena);
    uint32_t scanned = (uint32_t)weft_get_i64(&rows, 0, LIST_OUT_SCANNED);
    walk->looked += scanned;
    walk->at_end = scanned < scan;
    if (scanned > 0)
        walk->after = weft_get_id(&rows, 0, LIST_OUT_LAST);
    return WEFT_OK;
}

static int newest_first(const void *a, const void *b)
{
    return weft_id_cmp(&((const struct weft_execution *)b)->id,
                       &((const struct weft_execution *)a)->id);
}

enum weft_rc weft_engine_list(struct weft_engine *engine, const struct weft_listing *listing,
                              struct weft_arena *arena, struct weft_read_page *ret_page,
                              struct weft_err *err)
{
    struct resolved_filter filter;
    struct weft_id after = WEFT_ID_LAST;
    enum weft_rc rc = resolve_filter(engine, &listing->filter, arena, &filter, err);
    if (!rc)
        rc = weft_cursor_read(listing->after, &after, err);
    if (!rc)
        rc = weft_page_limit(listing->limit, err);
    uint32_t limit = listing->limit ? listing->limit : WEFT_PAGE_DEFAULT;
    struct weft_read_page page = {.item = weft_new_array(arena, struct weft_execution, limit + 1)};
    if (!rc && !filter.nothing && listing->filter.key)
        rc = list_by_key(engine, listing, arena, &page, err);
    if (rc)
        return rc;
    if (filter.nothing || listing->filter.key) {
        *ret_page = page;
        return WEFT_OK;
    }
    struct walk walk = {.page = &page, .limit = limit, .after = after};
    list_call(&walk.call, arena, listing, &filter);
    while (!rc && page.count < limit && !walk.at_end && walk.looked < WEFT_SCAN_MAX)
        rc = walk_on(engine, &walk, arena, err);
    if (rc)
        return rc;
    /* A full page goes on after its last row, a short one after the last that was looked at. */
    if (!walk.at_end || page.count == limit)
        page.next =
            weft_cursor_write(page.count == limit ? &page.item[limit - 1].id : &walk.after, arena);
    /* SQLite walks the living and the ended by number: the same order but for one millisecond. */
    qsort(page.item, page.count, sizeof(*page.item), newest_first);
    *ret_page = page;
    return WEFT_OK;
}

/* ---- One execution --------------------------------------------------------------------------- */

enum weft_rc weft_engine_attempts(struct weft_engine *engine, const char *ns,
                                  const struct weft_id *id, struct weft_arena *arena,
                                  struct weft_attempts *ret_attempts, struct weft_err *err)
{
    struct weft_execution execution;
    enum weft_rc rc = weft_engine_describe(engine, ns, id, 1, arena, &execution, err);
    if (!rc && execution.state == WEFT_STATE_NONE)
        rc = weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no such execution");
    if (rc)
        return rc;
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, arena, WEFT_STMT_ATTEMPTS, 0);
    weft_set_id(&call, 0, ATTEMPTS_IN_ID, id);
    rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    struct weft_id_list workers = {.id = weft_new_array(arena, int32_t, rows.count + 1)};
    for (size_t i = 0; i < rows.count; i++)
        workers.id[workers.count++] = (int32_t)weft_get_i64(&rows, i, ATTEMPTS_OUT_WORKER);
    rc = weft_load_names(engine, &workers, err);
    if (rc)
        return rc;
    struct weft_attempt *item = weft_new_array(arena, struct weft_attempt, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++)
        item[i] = (struct weft_attempt){
            .epoch = (int32_t)weft_get_i64(&rows, i, ATTEMPTS_OUT_EPOCH),
            .attempt = (int32_t)weft_get_i64(&rows, i, ATTEMPTS_OUT_ATTEMPT),
            .worker = weft_find_name(engine, workers.id[i]),
            .ended = weft_ended_name((enum weft_ended)weft_get_i64(&rows, i, ATTEMPTS_OUT_ENDED)),
            .error_class = weft_get_text(&rows, i, ATTEMPTS_OUT_ERROR_CLASS),
            .error_message = weft_get_text(&rows, i, ATTEMPTS_OUT_ERROR_MESSAGE),
            .started_us = weft_get_i64(&rows, i, ATTEMPTS_OUT_CLAIMED),
            .ended_us = weft_get_i64(&rows, i, ATTEMPTS_OUT_ENDED_AT),
            .run_at_us = weft_get_i64(&rows, i, ATTEMPTS_OUT_RUN_AT),
        };
    *ret_attempts = (struct weft_attempts){.item = item, .count = rows.count};
    return WEFT_OK;
}

enum weft_rc weft_engine_bytes(struct weft_engine *engine, const struct weft_bytes_of *of,
                               struct weft_arena *arena, struct weft_bytes *ret_bytes,
                               struct weft_err *err)
{
    bool result = of->kind == WEFT_BYTES_RESULT;
    int32_t ns;
    enum weft_rc rc = weft_find_namespace(engine, of->ns, &ns, err);
    if (rc)
        return rc;
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, arena, result ? WEFT_STMT_RESULT : WEFT_STMT_PAYLOAD, 0);
    weft_set_id(&call, 0, 0, &of->id);
    rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    /* Both give the namespace first, the content type and the bytes last. */
    bool visible = rows.count > 0 && weft_get_i64(&rows, 0, 0) == ns;
    const struct weft_cell *bytes = visible ? weft_get(&rows, 0, rows.width - 1) : NULL;
    if (!bytes || bytes->null ||
        (result && weft_get_i64(&rows, 0, RESULT_OUT_STATE) != WEFT_STATE_SUCCEEDED))
        return weft_fail_field(err, WEFT_NOT_FOUND, "id", "%s",
                               result ? "there is no result (yet) under this id"
                                      : "there is no payload under this id");
    const char *type = weft_get_text(&rows, 0, rows.width - 2);
    *ret_bytes = (struct weft_bytes){
        .data = bytes->data, .size = bytes->size, .content_type = type ? type : "application/json"};
    return WEFT_OK;
}
