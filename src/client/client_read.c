/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The calls of weft.h that read executions. Each answer has an arena of its own, which is freed
 * with the answer; names in it may belong to the engine, which is why answers must be freed before
 * the handle is closed.
 */

#include "base/arena.h"
#include "client/client.h"
#include "engine/call.h"
#include "engine/job/execution_read.h"
#include "engine/job/list.h"
#include "weft/weft.h"

/* ---- Executions ------------------------------------------------------------------------------ */

static enum weft_rc describe(const struct weft_via *via, const struct weft_id *id, size_t count,
                             struct weft_page *ret_page, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_execution *item = weft_new_array(arena, struct weft_execution, count + 1);
    const struct weft_op_call call = {.op = WEFT_OP_DESCRIBE,
                                      .in = id,
                                      .count = count,
                                      .out = ret_page ? item : NULL,
                                      .arena = arena};
    enum weft_rc rc = weft_do(via, &call, NULL, &arena, err);
    if (!rc)
        *ret_page = (struct weft_page){.item = item, .count = count, .arena = arena};
    return rc;
}

enum weft_rc weft_describe(struct weft *weft, const struct weft_id *id, size_t count,
                           struct weft_page *ret_page, struct weft_err *err)
{
    if (count)
        return describe(&(struct weft_via){.weft = weft}, id, count, ret_page, err);
    enum weft_rc rc =
        weft_do_items(weft, &(struct weft_op_call){.op = WEFT_OP_DESCRIBE}, NULL, NULL, err);
    if (!rc && !ret_page)
        return weft_missing("ret_page", err);
    if (!rc)
        *ret_page = (struct weft_page){0};
    return rc;
}

enum weft_rc weft_wait(struct weft *weft, const struct weft_id *id, int64_t wait_ms,
                       struct weft_page *ret_page, struct weft_err *err)
{
    const struct weft_via via = {.weft = weft, .waits = true, .wait_ms = wait_ms};
    return describe(&via, id, 1, ret_page, err);
}

enum weft_rc weft_list(struct weft *weft, const struct weft_filter *filter, uint32_t limit,
                       const char *after, struct weft_page *ret_page, struct weft_err *err)
{
    struct weft_listing listing = {.limit = limit, .after = after};
    if (filter)
        listing.filter = *filter;
    listing.filter.ns = weft_ns_of(weft, listing.filter.ns);
    struct weft_read_page page;
    struct weft_arena *arena;
    const struct weft_op_call call = {
        .op = WEFT_OP_LIST, .in = &listing, .count = 1, .out = ret_page ? &page : NULL};
    enum weft_rc rc = weft_ask(weft, &call, &arena, err);
    if (!rc)
        *ret_page = (struct weft_page){.item = page.item,
                                       .count = page.count,
                                       .next = page.next,
                                       .arena = arena,
                                       .looked_to_us = page.looked_to_us};
    return rc;
}

WEFT_FREES(weft_page)

enum weft_rc weft_attempts(struct weft *weft, const struct weft_id *id,
                           struct weft_attempts *ret_attempts, struct weft_err *err)
{
    const struct weft_op_call call = {
        .op = WEFT_OP_ATTEMPTS, .in = id, .count = 1, .out = ret_attempts};
    return weft_ask(weft, &call, WEFT_ARENA_OF(ret_attempts), err);
}

WEFT_FREES(weft_attempts)

/* ---- Bytes ----------------------------------------------------------------------------------- */

static enum weft_rc read_bytes(struct weft *weft, enum weft_op op, const struct weft_id *id,
                               struct weft_bytes *ret_bytes, struct weft_err *err)
{
    const struct weft_op_call call = {.op = op, .in = id, .count = 1, .out = ret_bytes};
    return weft_ask(weft, &call, WEFT_ARENA_OF(ret_bytes), err);
}

enum weft_rc weft_result(struct weft *weft, const struct weft_id *id, struct weft_bytes *ret_bytes,
                         struct weft_err *err)
{
    return read_bytes(weft, WEFT_OP_RESULT, id, ret_bytes, err);
}

enum weft_rc weft_payload(struct weft *weft, const struct weft_id *id, struct weft_bytes *ret_bytes,
                          struct weft_err *err)
{
    return read_bytes(weft, WEFT_OP_PAYLOAD, id, ret_bytes, err);
}

WEFT_FREES(weft_bytes)

/* ---- Counts ---------------------------------------------------------------------------------- */

enum weft_rc weft_counts(struct weft *weft, const char *lane, struct weft_counts *ret_counts,
                         struct weft_err *err)
{
    const struct weft_op_call call = {.op = WEFT_OP_COUNTS, .in = lane, .out = ret_counts};
    return weft_ask(weft, &call, WEFT_ARENA_OF(ret_counts), err);
}

WEFT_FREES(weft_counts)
