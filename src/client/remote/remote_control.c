/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Steering through a server. Cancels and replays go out many at a time; the server takes the other
 * kinds one by one.
 */

#include "client/remote/remote.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/moment.h"
#include "wire/wire.h"

#include <string.h>

/* ---- Many at a time -------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* How many items from the first on can share a request. */
static size_t part_of(const struct weft_steer *item, size_t count)
{
    size_t i = 1;
    while (i < count && i < WEFT_BATCH_MAX && same_text(item[i].ns, item->ns) &&
           same_text(item[i].reason, item->reason) && item[i].force == item->force)
        i++;
    return i;
}

/* Fields of a cancel or replay of many besides the executions. */
static void put_options(struct weft_json_writer *out, enum weft_op op, const char *reason,
                        bool force)
{
    if (reason && op == WEFT_OP_CANCEL_MANY) {
        weft_json_key(out, "reason");
        weft_json_put_text(out, reason);
    }
    if (force && op == WEFT_OP_REPLAY_MANY) { /* older servers do not know the field */
        weft_json_key(out, "force");
        weft_json_put_bool(out, true);
    }
}

static void write_ids(const struct weft_steer *item, size_t count, enum weft_op op,
                      struct weft_buf *body)
{
    struct weft_json_writer out;
    weft_json_writer_init(&out, body);
    weft_json_begin_object(&out);
    weft_json_key(&out, "ids");
    weft_json_begin_array(&out);
    for (size_t i = 0; i < count; i++)
        weft_wire_put_id(&out, &item[i].id);
    weft_json_end_array(&out);
    put_options(&out, op, item->reason, item->force);
    weft_json_end_object(&out);
}

/* The state in an answer, and whether it was changed, where the answer says so. */
static bool read_steered(const struct weft_json *value, struct weft_arena *kept,
                         struct weft_arena *arena, struct weft_steer_result *ret_answer)
{
    struct weft_err story;
    struct weft_json error, changed;
    *ret_answer = (struct weft_steer_result){0};
    if (value->kind != WEFT_JSON_OBJECT)
        return false;
    if (weft_wire_member(value, "error", &error) && error.kind == WEFT_JSON_OBJECT &&
        weft_remote_error(&error, arena, &story, NULL, NULL) == WEFT_OK) {
        const struct weft_err *failed = weft_err_dup(kept, &story);
        *ret_answer = (struct weft_steer_result){WEFT_FAILED(failed)};
        return true;
    }
    struct weft_lease_result ended;
    if (weft_wire_read_answer(&weft_wire_finished, value, arena, &ended, NULL))
        return false;
    ret_answer->state = ended.state;
    ret_answer->changed = !weft_wire_member(value, "changed", &changed) ||
                          changed.kind != WEFT_JSON_BOOL || weft_json_bool(&changed);
    return true;
}

/* Sends the items of the call as one request of `op`, which takes many. */
static enum weft_rc steer_part(const struct weft_via *via, const struct weft_op_call *part,
                               enum weft_op op, struct weft_err *err)
{
    const struct weft_steer *item = part->in;
    struct weft_steer_result *answer = part->out;
    struct weft_arena *arena = weft_arena_new();
    struct weft_buf body;
    weft_buf_init(&body, SIZE_MAX);
    write_ids(item, part->count, op, &body);
    const struct weft_remote_request request = {.op = op, .ns = item->ns, .body = &body};
    struct weft_json object;
    struct weft_json_iter iter;
    enum weft_rc rc = weft_remote_ask(via, &request, arena, &object, err);
    if (!rc && !weft_remote_items(&object, part->count, &iter))
        rc = weft_remote_garbled(&request, err);
    for (size_t i = 0; i < part->count && !rc; i++)
        if (!weft_json_next(&iter) || !read_steered(&iter.value, part->arena, arena, &answer[i]))
            rc = weft_remote_garbled(&request, err);
    weft_buf_done(&body);
    weft_arena_free(arena);
    return rc;
}

/* ---- One by one ------------------------------------------------------------------------------ */

/* True when a failure is about the execution; others are about the call. */
static bool is_about_item(enum weft_rc rc)
{
    return rc == WEFT_INVALID_VALUE || rc == WEFT_TOO_LARGE || rc == WEFT_NOT_FOUND ||
           rc == WEFT_CONFLICT || rc == WEFT_NOT_LIVE;
}

static enum weft_rc steer_one(const struct weft_via *via, const struct weft_op_call *part,
                              struct weft_err *err)
{
    const struct weft_steer *item = part->in;
    struct weft_steer_result *answer = part->out;
    if (item->deadline_us < 0 || item->deadline_us > WEFT_MOMENT_MAX_US) {
        const struct weft_err *story = weft_err_new(part->arena, WEFT_INVALID_VALUE, "deadline_at",
                                                    "deadline_at is no moment");
        *answer = (struct weft_steer_result){WEFT_FAILED(story)};
        return WEFT_OK;
    }
    struct weft_arena *arena = weft_arena_new();
    struct weft_buf body;
    weft_remote_write(&body, weft_ops[part->op].takes, item);
    const struct weft_remote_request request = {
        .op = part->op, .place = weft_remote_id(arena, &item->id), .ns = item->ns, .body = &body};
    struct weft_json object;
    enum weft_rc rc = weft_remote_ask(via, &request, arena, &object, err);
    if (!rc && !read_steered(&object, part->arena, arena, answer))
        rc = weft_remote_garbled(&request, err);
    if (rc && is_about_item(rc)) {
        const struct weft_err *story = weft_err_dup(part->arena, err);
        *answer = (struct weft_steer_result){WEFT_FAILED(story)};
        rc = WEFT_OK;
    }
    weft_buf_done(&body);
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_remote_steer(const struct weft_via *via, const struct weft_op_call *call,
                               struct weft_err *err)
{
    bool many = call->op == WEFT_OP_CANCEL || call->op == WEFT_OP_REPLAY;
    enum weft_op op_many = call->op == WEFT_OP_CANCEL ? WEFT_OP_CANCEL_MANY : WEFT_OP_REPLAY_MANY;
    const struct weft_steer *item = call->in;
    struct weft_steer_result *answer = call->out;
    size_t count;
    for (size_t at = 0; at < call->count; at += count) {
        count = many ? part_of(&item[at], call->count - at) : 1;
        const struct weft_op_call part = {.op = call->op,
                                          .in = &item[at],
                                          .count = count,
                                          .out = &answer[at],
                                          .arena = call->arena};
        enum weft_rc rc = many ? steer_part(via, &part, op_many, err) : steer_one(via, &part, err);
        if (rc && at == 0)
            return rc;
        if (!rc)
            continue;
        /* Earlier items are done: the failure goes into the answers. */
        const struct weft_err *story = weft_err_dup(call->arena, err);
        struct weft_err *not_sent = weft_err_dup(call->arena, err);
        not_sent->hint = NULL;
        for (size_t i = at; i < call->count; i++)
            answer[i] = (struct weft_steer_result){WEFT_FAILED(i < at + count ? story : not_sent)};
        break;
    }
    return WEFT_OK;
}

/* ---- By filter ------------------------------------------------------------------------------- */

static void write_sweep(const struct weft_steer_all *args, enum weft_op op, struct weft_buf *body)
{
    struct weft_json_writer out;
    weft_json_writer_init(&out, body);
    weft_json_begin_object(&out);
    weft_json_key(&out, "filter");
    weft_wire_write(&weft_wire_filter, &args->filter, &out);
    put_options(&out, op, args->reason, args->force);
    if (args->max) {
        weft_json_key(&out, "max");
        weft_json_put_i64(&out, args->max);
    }
    if (args->after) {
        weft_json_key(&out, "after");
        weft_json_put_text(&out, args->after);
    }
    weft_json_end_object(&out);
}

enum weft_rc weft_remote_steer_many(const struct weft_via *via, const struct weft_op_call *call,
                                    struct weft_err *err)
{
    const struct weft_steer_all *args = call->in;
    struct weft_sweep *ret_sweep = call->out;
    if (args->kind != WEFT_STEER_CANCEL && args->kind != WEFT_STEER_REPLAY)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "kind",
                               "only cancel and replay take a filter");
    if ((unsigned)args->filter.state >= WEFT_STATE_COUNT)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "state", "there is no such state");
    struct weft_buf body;
    weft_buf_init(&body, SIZE_MAX);
    write_sweep(args, call->op, &body);
    const struct weft_remote_request request = {
        .op = call->op, .ns = args->filter.ns, .body = &body};
    struct weft_json object, matched;
    struct weft_wire_sweep sweep = {0};
    enum weft_rc rc = weft_remote_ask(via, &request, call->arena, &object, err);
    if (!rc && (!weft_wire_member(&object, "matched", &matched) ||
                weft_wire_read_answer(&weft_wire_sweep, &object, call->arena, &sweep, NULL)))
        rc = weft_remote_garbled(&request, err);
    if (!rc && sweep.next && strlen(sweep.next) >= sizeof(ret_sweep->next))
        rc = weft_remote_garbled(&request, err);
    if (!rc) {
        *ret_sweep = (struct weft_sweep){
            .matched = sweep.matched, .changed = sweep.changed, .more = sweep.more};
        if (sweep.next)
            memcpy(ret_sweep->next, sweep.next, strlen(sweep.next) + 1);
    }
    weft_buf_done(&body);
    return rc;
}
