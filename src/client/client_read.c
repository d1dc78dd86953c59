/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The calls of weft.h that read executions, and the reads of admin.h. Each answer has an arena of
 * its own, which is freed with the answer; names in it may belong to the engine, which is why
 * answers must be freed before the handle is closed.
 */

#include "base/arena.h"
#include "base/err.h"
#include "client/client.h"
#include "core/spec.h"
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
    if (!rc && ret_page)
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
    if (!rc && ret_page)
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
    struct weft_read_page page = {0};
    struct weft_arena *arena;
    const struct weft_op_call call = {
        .op = WEFT_OP_LIST, .in = &listing, .count = 1, .out = ret_page ? &page : NULL};
    enum weft_rc rc = weft_ask(weft, &call, &arena, err);
    if (!rc && ret_page)
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

/* ---- Lanes ----------------------------------------------------------------------------------- */

static enum weft_rc check_lane(const struct weft_op_call *call, struct weft_err *err)
{
    const struct weft_lane *lane = call->in;
    return weft_check_array(lane->weights, lane->weight_count, "weights", 0, err);
}

enum weft_rc weft_lane_put(struct weft *weft, const struct weft_lane *lane, struct weft_err *err)
{
    char no_answer;
    const struct weft_op_call call = {
        .op = WEFT_OP_LANE_PUT, .in = lane, .count = 1, .out = &no_answer};
    return weft_do(&(struct weft_via){.weft = weft}, &call, check_lane, NULL, err);
}

static enum weft_rc check_lane_name(const struct weft_op_call *call, struct weft_err *err)
{
    return weft_name_check(call->in, "lane", err);
}

enum weft_rc weft_lane_remove(struct weft *weft, const char *lane, struct weft_err *err)
{
    struct weft_lane before;
    const struct weft_op_call call = {.op = WEFT_OP_LANE_REMOVE, .in = lane, .out = &before};
    return weft_do(&(struct weft_via){.weft = weft}, &call, check_lane_name, NULL, err);
}

enum weft_rc weft_lanes(struct weft *weft, struct weft_lanes *ret_lanes, struct weft_err *err)
{
    const struct weft_op_call call = {.op = WEFT_OP_LANES, .out = ret_lanes};
    return weft_ask(weft, &call, WEFT_ARENA_OF(ret_lanes), err);
}

WEFT_FREES(weft_lanes)

/* ---- Workers --------------------------------------------------------------------------------- */

enum weft_rc weft_workers(struct weft *weft, struct weft_workers *ret_workers, struct weft_err *err)
{
    const struct weft_op_call call = {.op = WEFT_OP_WORKERS, .out = ret_workers};
    return weft_ask(weft, &call, WEFT_ARENA_OF(ret_workers), err);
}

WEFT_FREES(weft_workers)

static enum weft_rc check_worker_name(const struct weft_op_call *call, struct weft_err *err)
{
    return weft_name_check(call->in, "worker", err);
}

enum weft_rc weft_goodbye(struct weft *weft, const char *worker, uint64_t *ret_released,
                          struct weft_err *err)
{
    uint64_t released = 0;
    const struct weft_op_call call = {.op = WEFT_OP_GOODBYE, .in = worker, .out = &released};
    enum weft_rc rc =
        weft_do(&(struct weft_via){.weft = weft}, &call, check_worker_name, NULL, err);
    if (!rc && ret_released)
        *ret_released = released;
    return rc;
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

/* An operation that answers with one token, as a list of one. */
static enum weft_rc make_token(struct weft *weft, struct weft_op_call call, weft_check_fn *check,
                               struct weft_tokens *ret_token, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_token *token = weft_new(arena, struct weft_token);
    call.count = 1;
    call.arena = arena;
    call.out = ret_token ? token : NULL;
    enum weft_rc rc = weft_do(&(struct weft_via){.weft = weft}, &call, check, &arena, err);
    if (!rc && ret_token)
        *ret_token = (struct weft_tokens){.item = token, .count = 1, .arena = arena};
    return rc;
}

static enum weft_rc check_token_spec(const struct weft_op_call *call, struct weft_err *err)
{
    const struct weft_token_spec *spec = call->in;
    enum weft_rc rc = weft_check_array(spec->scopes, spec->scope_count, "scopes", 0, err);
    for (size_t i = 0; !rc && i < spec->scope_count; i++)
        if (!spec->scopes[i])
            rc = weft_missing("scopes", err);
    if (!rc && !spec->name)
        rc = weft_missing("name", err);
    return rc;
}

enum weft_rc weft_token_create(struct weft *weft, const struct weft_token_spec *spec,
                               struct weft_tokens *ret_token, struct weft_err *err)
{
    const struct weft_op_call call = {.op = WEFT_OP_TOKEN_CREATE, .in = spec};
    return make_token(weft, call, check_token_spec, ret_token, err);
}

static enum weft_rc check_token_id(int32_t id, struct weft_err *err)
{
    return weft_check_range(
        &(struct weft_range){.field = "id", .value = id, .min = 1, .max = INT32_MAX}, err);
}

static enum weft_rc check_rotation(const struct weft_op_call *call, struct weft_err *err)
{
    return check_token_id(((const struct weft_token_rotation *)call->in)->id, err);
}

enum weft_rc weft_token_rotate(struct weft *weft, const struct weft_token_rotation *rotation,
                               struct weft_tokens *ret_token, struct weft_err *err)
{
    const struct weft_op_call call = {.op = WEFT_OP_TOKEN_ROTATE, .in = rotation};
    return make_token(weft, call, check_rotation, ret_token, err);
}

static enum weft_rc check_revoked(const struct weft_op_call *call, struct weft_err *err)
{
    return check_token_id(*(const int32_t *)call->in, err);
}

enum weft_rc weft_token_revoke(struct weft *weft, int32_t id, struct weft_err *err)
{
    struct weft_token before;
    const struct weft_op_call call = {
        .op = WEFT_OP_TOKEN_REVOKE, .in = &id, .count = 1, .out = &before};
    return weft_do(&(struct weft_via){.weft = weft}, &call, check_revoked, NULL, err);
}

enum weft_rc weft_tokens(struct weft *weft, struct weft_tokens *ret_tokens, struct weft_err *err)
{
    const struct weft_op_call call = {.op = WEFT_OP_TOKENS, .out = ret_tokens};
    return weft_ask(weft, &call, WEFT_ARENA_OF(ret_tokens), err);
}

WEFT_FREES(weft_tokens)

/* ---- Scanners and replicas ------------------------------------------------------------------- */

enum weft_rc weft_run_pass(struct weft *weft, enum weft_scanner scanner, uint32_t batch,
                           struct weft_pass_report *ret_report, struct weft_err *err)
{
    const struct weft_run_scanner args = {.scanner = scanner, .batch = batch};
    const struct weft_op_call call = {
        .op = WEFT_OP_RUN_SCANNER, .in = &args, .count = 1, .out = ret_report};
    return weft_ask(weft, &call, NULL, err);
}

enum weft_rc weft_replicas(struct weft *weft, struct weft_replicas *ret_replicas,
                           struct weft_err *err)
{
    const struct weft_op_call call = {.op = WEFT_OP_REPLICAS, .out = ret_replicas};
    return weft_ask(weft, &call, WEFT_ARENA_OF(ret_replicas), err);
}

WEFT_FREES(weft_replicas)

enum weft_rc weft_scanners(struct weft *weft, struct weft_scanners *ret_scanners,
                           struct weft_err *err)
{
    const struct weft_op_call call = {.op = WEFT_OP_SCANNERS, .out = ret_scanners};
    return weft_ask(weft, &call, WEFT_ARENA_OF(ret_scanners), err);
}

WEFT_FREES(weft_scanners)
