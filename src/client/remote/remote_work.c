/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Submitting, working and steering through a server. A call of many items is cut into requests that
 * the server takes; they go out one after the other. When the first fails, the call fails; when a
 * later one does, earlier items are done, so its items and all after them are answered with the
 * failure.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/moment.h"
#include "client/remote/remote.h"
#include "core/budget.h"
#include "engine/call.h"
#include "engine/job/claim.h"
#include "engine/wait/wait.h"
#include "weft/weft.h"
#include "wire/wire.h"

#include <string.h>

/* ---- Many items ------------------------------------------------------------------------------ */

static const void *item_at(const struct weft_op_call *call, size_t i)
{
    return (const char *)call->in + i * weft_wire_size(weft_ops[call->op].takes);
}

/* Whether the operation steers executions; how the server takes that: many at a time, or one. */
static bool steers(const struct weft_op_call *call)
{
    return weft_ops[call->op].gives == &weft_wire_execution;
}

static bool steers_one(const struct weft_op_call *call)
{
    return steers(call) && call->op != WEFT_OP_CANCEL && call->op != WEFT_OP_REPLAY;
}

static const char *ns_at(const struct weft_op_call *call, size_t i)
{
    return call->op == WEFT_OP_SUBMIT ? ((const struct weft_spec *)item_at(call, i))->ns : NULL;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_moment(weft_usec moment_us)
{
    return moment_us >= 0 && moment_us <= WEFT_MOMENT_MAX_US;
}

/* JSON has no member without a name. */
static enum weft_rc check_amounts(const char *field, const struct weft_amount *amount, size_t count,
                                  struct weft_err *err)
{
    for (size_t i = 0; i < count; i++)
        if (!amount[i].dimension)
            return weft_amounts_check(amount, count, field, err);
    return WEFT_OK;
}

enum weft_rc weft_remote_check_spec(const struct weft_spec *spec, struct weft_err *err)
{
    if (!spec->payload && spec->payload_size > 0)
        return weft_invalid(err, "payload", "payload is NULL but has a size");
    for (size_t i = 0; i < spec->tag_count; i++)
        if (!spec->tags[i].key || !spec->tags[i].value)
            return weft_invalid(err, "tags", "a tag is NULL");
    enum weft_rc rc = check_amounts("cost", spec->cost, spec->cost_count, err);
    if (rc)
        return rc;
    if (spec->policy && (unsigned)spec->policy->backoff > WEFT_BACKOFF_FIXED)
        return weft_invalid(err, "policy.backoff.kind", "there is no such kind of backoff");
    if (!is_moment(spec->run_at_us))
        return weft_invalid(err, "run_at", "run_at is no moment");
    if (!is_moment(spec->deadline_us))
        return weft_invalid(err, "deadline_at", "deadline_at is no moment");
    return WEFT_OK;
}

static enum weft_rc check_size(const char *field, size_t size, struct weft_err *err)
{
    if (size <= WEFT_PAYLOAD_MAX)
        return WEFT_OK;
    return weft_fail_field(err, WEFT_TOO_LARGE, field, "%s is larger than %d bytes", field,
                           WEFT_PAYLOAD_MAX);
}

/* Items that no request could carry are refused here; the server judges all others. */
static enum weft_rc check_item(const struct weft_op_call *call, size_t i, struct weft_err *err)
{
    if (call->op == WEFT_OP_SUBMIT) {
        const struct weft_spec *spec = item_at(call, i);
        enum weft_rc rc = check_size("payload", spec->payload_size, err);
        return rc ? rc : weft_remote_check_spec(spec, err);
    }
    if (call->op == WEFT_OP_COMPLETE)
        return check_size("result", ((const struct weft_complete *)item_at(call, i))->result_size,
                          err);
    if (call->op == WEFT_OP_USAGE) {
        const struct weft_usage *usage = item_at(call, i);
        return check_amounts("totals", usage->totals, usage->total_count, err);
    }
    if (call->op == WEFT_OP_SUSPEND)
        return weft_suspend_check(item_at(call, i), err);
    if (steers_one(call) && !is_moment(((const struct weft_steer *)item_at(call, i))->deadline_us))
        return weft_invalid(err, "deadline_at", "deadline_at is no moment");
    return WEFT_OK;
}

/* Writes as many items from `at` on as one request may hold; returns how many. */
static size_t write_part(const struct weft_op_call *call, size_t at,
                         struct weft_remote_request *request, struct weft_buf *body)
{
    struct weft_json_writer out;
    weft_json_writer_init(&out, body);
    weft_json_begin_object(&out);
    weft_json_add_array(&out, "items");
    size_t i = at;
    request->ns = ns_at(call, at);
    while (i < call->count && i - at < WEFT_BATCH_MAX && body->size < WEFT_REMOTE_BODY &&
           same_text(request->ns, ns_at(call, i)) && check_item(call, i, NULL) == WEFT_OK) {
        if (call->op == WEFT_OP_SUBMIT)
            request->keyless |= !((const struct weft_spec *)item_at(call, i))->key;
        weft_wire_write(weft_ops[call->op].takes, item_at(call, i++), &out);
    }
    weft_json_end_array(&out);
    weft_json_end_object(&out);
    return i - at;
}

/* Fields of a cancel or replay of many besides the executions. */
static void put_options(struct weft_json_writer *out, enum weft_op op, const char *reason,
                        bool force)
{
    if (reason && op == WEFT_OP_CANCEL_MANY)
        weft_json_add_text(out, "reason", reason);
    if (force && op == WEFT_OP_REPLAY_MANY) /* older servers do not know the field */
        weft_json_add_bool(out, "force", true);
}

/* The same for cancels and replays: ids, under the operation that takes many. */
static size_t write_ids(const struct weft_op_call *call, size_t at,
                        struct weft_remote_request *request, struct weft_buf *body)
{
    const struct weft_steer *first = item_at(call, at), *item = first;
    size_t count = 0;
    struct weft_json_writer out;
    request->op = call->op == WEFT_OP_CANCEL ? WEFT_OP_CANCEL_MANY : WEFT_OP_REPLAY_MANY;
    request->ns = first->ns;
    weft_json_writer_init(&out, body);
    weft_json_begin_object(&out);
    weft_json_add_array(&out, "ids");
    while (at + count < call->count && count < WEFT_BATCH_MAX && same_text(item->ns, first->ns) &&
           same_text(item->reason, first->reason) && item->force == first->force) {
        weft_wire_put_id(&out, &item->id);
        item = first + ++count;
    }
    weft_json_end_array(&out);
    put_options(&out, request->op, first->reason, first->force);
    weft_json_end_object(&out);
    return count;
}

/* Answers an item with a failure. */
static void answer_error(const struct weft_op_call *call, size_t i, const struct weft_err *story,
                         const struct weft_wire_detail *detail)
{
    if (call->op == WEFT_OP_SUBMIT)
        ((struct weft_submit_result *)call->out)[i] =
            (struct weft_submit_result){WEFT_FAILED(story)};
    else if (steers(call))
        ((struct weft_steer_result *)call->out)[i] = (struct weft_steer_result){WEFT_FAILED(story)};
    else {
        /* All about leases begin as a struct weft_lease_result does. */
        struct weft_lease_result *answer =
            (void *)((char *)call->out + i * weft_wire_size(weft_ops[call->op].gives));
        answer->err = story;
        answer->rc = story->rc;
        answer->fence = detail ? detail->fence : WEFT_FENCE_NONE;
    }
    if (call->op == WEFT_OP_USAGE && detail) {
        struct weft_usage_result *answer = (struct weft_usage_result *)call->out + i;
        answer->left = detail->left;
        answer->left_count = detail->left_count;
    }
}

/* The state in an answer, and whether it was changed, where the answer says so. */
static bool read_steered(const struct weft_json *value, struct weft_arena *arena,
                         struct weft_steer_result *ret_answer)
{
    struct weft_json changed;
    struct weft_lease_result ended;
    if (weft_wire_read_answer(&weft_wire_finished, value, arena, &ended, NULL))
        return false;
    *ret_answer = (struct weft_steer_result){
        .state = ended.state,
        .changed = !weft_wire_member(value, "changed", &changed) ||
                   changed.kind != WEFT_JSON_BOOL || weft_json_bool(&changed)};
    return true;
}

/* One answer to an item. False: no server of weft writes that. */
static bool read_item(const struct weft_op_call *call, size_t i, const struct weft_json *value,
                      struct weft_arena *arena)
{
    const struct weft_wire_type *gives = weft_ops[call->op].gives;
    struct weft_wire_detail detail;
    struct weft_err story;
    struct weft_json error;
    bool failed = weft_wire_member(value, "error", &error) && error.kind != WEFT_JSON_NULL;
    if (failed && weft_remote_error(&error, arena, &story, &detail, NULL) == WEFT_OK) {
        answer_error(call, i, weft_err_dup(call->arena, &story), &detail);
        return true;
    }
    if (steers(call)) /* an execution may have an error of its own, which is none of the call */
        return read_steered(value, arena, (struct weft_steer_result *)call->out + i);
    void *answer = (char *)call->out + i * weft_wire_size(gives);
    bool read = !failed && weft_wire_read_answer(gives, value, arena, answer, NULL) == WEFT_OK;
    if (call->op == WEFT_OP_RENEW)
        ((struct weft_lease_result *)answer)->state = WEFT_STATE_RUNNING; /* it is not said */
    return read;
}

/* One request: items from `at` on. *ret_count: so many. */
static enum weft_rc send_part(const struct weft_via *via, const struct weft_op_call *call,
                              size_t at, size_t *ret_count, struct weft_err *err)
{
    /* The answers of these point into the text of the response. */
    bool kept =
        call->op == WEFT_OP_SUSPEND || call->op == WEFT_OP_WAITPOINT || call->op == WEFT_OP_USAGE;
    struct weft_arena *arena = kept ? call->arena : weft_arena_new();
    struct weft_buf body;
    weft_buf_init(&body, SIZE_MAX);
    struct weft_remote_request request = {.op = call->op, .body = &body};
    size_t count =
        steers(call) ? write_ids(call, at, &request, &body) : write_part(call, at, &request, &body);
    struct weft_json object;
    struct weft_json_iter iter;
    enum weft_rc rc = weft_remote_ask(via, &request, arena, &object, err);
    if (!rc && !weft_remote_items(&object, count, &iter))
        rc = weft_remote_garbled(&request, err);
    for (size_t i = 0; i < count && !rc; i++)
        if (!weft_json_next(&iter) || !read_item(call, at + i, &iter.value, arena))
            rc = weft_remote_garbled(&request, err);
    weft_buf_done(&body);
    if (!kept)
        weft_arena_free(arena);
    *ret_count = count;
    return rc;
}

/* True when a failure is about the execution; others are about the call. */
static bool is_about_item(enum weft_rc rc)
{
    return rc == WEFT_INVALID_VALUE || rc == WEFT_TOO_LARGE || rc == WEFT_NOT_FOUND ||
           rc == WEFT_CONFLICT || rc == WEFT_NOT_LIVE;
}

/* One request that steers one execution. */
static enum weft_rc steer_one(const struct weft_via *via, const struct weft_op_call *call, size_t i,
                              struct weft_err *err)
{
    const struct weft_steer *item = item_at(call, i);
    struct weft_arena *arena = weft_arena_new();
    const struct weft_remote_request request = {
        .op = call->op, .place = weft_remote_id(arena, &item->id), .ns = item->ns, .item = item};
    struct weft_json object;
    enum weft_rc rc = weft_remote_ask(via, &request, arena, &object, err);
    if (!rc && !read_item(call, i, &object, arena))
        rc = weft_remote_garbled(&request, err);
    if (rc && is_about_item(rc)) {
        answer_error(call, i, weft_err_dup(call->arena, err), NULL);
        rc = WEFT_OK;
    }
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_remote_bulk(const struct weft_via *via, const struct weft_op_call *call,
                              struct weft_err *err)
{
    bool any = false;
    size_t part;
    for (size_t at = 0; at < call->count; at += part) {
        struct weft_err refused;
        part = 1;
        if (check_item(call, at, &refused)) {
            any |= steers(call);
            answer_error(call, at, weft_err_dup(call->arena, &refused), NULL);
            continue;
        }
        enum weft_rc rc =
            steers_one(call) ? steer_one(via, call, at, err) : send_part(via, call, at, &part, err);
        if (rc && !any)
            return rc;
        any = true;
        if (!rc)
            continue;
        const struct weft_err *story = weft_err_dup(call->arena, err);
        struct weft_err *not_sent = weft_err_dup(call->arena, err);
        not_sent->hint = NULL;
        for (size_t i = at; i < call->count; i++)
            answer_error(call, i, i < at + part ? story : not_sent, NULL);
        break;
    }
    return WEFT_OK;
}

/* ---- Claiming -------------------------------------------------------------------------------- */

/* Adds the executions that one claim is given. */
static enum weft_rc claim_one(const struct weft_via *via, const struct weft_claim *claim,
                              uint32_t index, struct weft_arena *arena,
                              struct weft_remote_list *given, struct weft_err *err)
{
    const struct weft_remote_request request = {
        .op = WEFT_OP_CLAIM, .ns = claim->ns, .item = claim, .wait_ms = claim->wait_ms};
    size_t before = given->count;
    enum weft_rc rc = weft_remote_page(via, &request, arena, given, err);
    if (rc)
        given->count = before;
    struct weft_claimed *item = given->item;
    for (size_t i = before; i < given->count; i++) {
        item[i].claim = index;
        if (item[i].lease_ms == 0) /* an older server: an unknown lease is taken to be short */
            item[i].lease_ms = claim->lease_ms ? claim->lease_ms : WEFT_LEASE_MIN_MS;
    }
    return rc;
}

/* Asks for each claim in turn, without waiting. After a failure the executions given so far are
 * the answer. */
static enum weft_rc claim_all(const struct weft_via *via, const struct weft_op_call *call,
                              struct weft_remote_list *given, struct weft_err *err)
{
    const struct weft_claim *claim = call->in;
    for (size_t i = 0; i < call->count; i++) {
        struct weft_claim mine = claim[i];
        mine.wait_ms = 0;
        enum weft_rc rc = claim_one(via, &mine, (uint32_t)i, call->arena, given, err);
        if (rc)
            return given->count ? WEFT_OK : rc;
    }
    return WEFT_OK;
}

enum weft_rc weft_remote_claim(const struct weft_via *via, const struct weft_op_call *call,
                               struct weft_err *err)
{
    const struct weft_claim *claim = call->in;
    struct weft_remote_list given = {0};
    enum weft_rc rc;
    if (call->count == 1) {
        rc = claim_one(via, claim, 0, call->arena, &given, err);
    } else {
        int64_t wait_ms = 0;
        for (size_t i = 0; i < call->count; i++)
            wait_ms = claim[i].wait_ms > wait_ms ? claim[i].wait_ms : wait_ms;
        struct weft_look look;
        weft_look_init(&look, via->weft, WEFT_CHANGE_READY, wait_ms);
        do
            rc = claim_all(via, call, &given, err);
        while (!rc && given.count == 0 && wait_ms > 0 && weft_look_again(&look, via));
    }
    if (!rc)
        *(struct weft_claim_result *)call->out =
            (struct weft_claim_result){.item = given.item, .count = given.count};
    return rc;
}

/* ---- Watching -------------------------------------------------------------------------------- */

enum weft_rc weft_remote_watch(const struct weft_via *via, const struct weft_op_call *call,
                               struct weft_err *err)
{
    const struct weft_watch *watch = call->in;
    const struct weft_remote_request request = {
        .op = WEFT_OP_WATCH, .ns = watch->ns, .item = watch, .wait_ms = watch->wait_ms};
    struct weft_remote_list listing = {0};
    enum weft_rc rc = weft_remote_page(via, &request, call->arena, &listing, err);
    if (!rc)
        *(struct weft_watched *)call->out =
            (struct weft_watched){.item = listing.item, .count = listing.count};
    return rc;
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
    if (args->max)
        weft_json_add_i64(&out, "max", args->max);
    if (args->after)
        weft_json_add_text(&out, "after", args->after);
    weft_json_end_object(&out);
}

enum weft_rc weft_remote_steer_many(const struct weft_via *via, const struct weft_op_call *call,
                                    struct weft_err *err)
{
    const struct weft_steer_all *args = call->in;
    struct weft_sweep *ret_sweep = call->out;
    if (args->kind != WEFT_STEER_CANCEL && args->kind != WEFT_STEER_REPLAY)
        return weft_invalid(err, "kind", "only cancel and replay take a filter");
    if ((unsigned)args->filter.state >= WEFT_STATE_COUNT)
        return weft_invalid(err, "state", "there is no such state");
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
