/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Steering: cancel, replay, priority, deadline, revoke of one execution, folded with others of the
 * same kind; cancel and replay of many by id or by filter, which run alone because one route takes
 * both forms.
 */

#include "net/api/api_control.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "engine/job/control.h"
#include "net/api/api.h"
#include "net/api/handlers.h"
#include "net/server.h"
#include "weft/weft.h"
#include "wire/wire.h"

#include <string.h>

/* ---- One ------------------------------------------------------------------------------------- */

enum weft_rc weft_steer_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_steer *steer = weft_new(request->arena, struct weft_steer);
    request->items = (struct weft_items){
        .item = steer, .err = weft_new(request->arena, const struct weft_err *), .count = 1};
    enum weft_rc rc = weft_api_read_message(request, steer, err);
    return rc ? rc : weft_request_id(request, &steer->id, err);
}

/* The names in an execution are the engine's and its texts are in `arena`: it is written here. */
static void keep_seen(const struct weft_execution *seen, struct weft_steer_answer *answer)
{
    struct weft_buf buf;
    struct weft_json_writer out;
    if (seen->state == WEFT_STATE_NONE)
        return;
    weft_buf_init(&buf, SIZE_MAX);
    weft_json_writer_init(&out, &buf);
    weft_wire_write(&weft_wire_execution, seen, &out);
    answer->json = weft_arena_dup(answer->arena, buf.data, buf.size);
    answer->size = buf.size;
    weft_buf_done(&buf);
}

enum weft_rc weft_steer_call(struct weft_engine *engine, const struct weft_steering *steering,
                             struct weft_steer_answer *ret_answer, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_steering seeing = *steering;
    struct weft_steer_result *answer =
        weft_new_array(arena, struct weft_steer_result, steering->count + 1);
    seeing.seen = weft_new_array(arena, struct weft_execution, steering->count + 1);
    seeing.arena = arena;
    enum weft_rc rc = weft_engine_steer(engine, &seeing, answer, err);
    for (size_t i = 0; i < steering->count && !rc; i++) {
        ret_answer[i].steered = answer[i];
        if (answer[i].rc)
            ret_answer[i].steered.err = weft_err_dup(ret_answer[i].arena, answer[i].err);
        else
            keep_seen(&seeing.seen[i], &ret_answer[i]);
    }
    weft_arena_free(arena);
    return rc;
}

void weft_steer_write(struct weft_request *request)
{
    const struct weft_steer_answer *answer = request->items.answer;
    const struct weft_err *err = answer->steered.err;
    struct weft_json_writer out;
    if (!err && !answer->json)
        err = weft_err_new(request->arena, WEFT_NOT_FOUND, "id", "there is no such execution");
    if (err) {
        weft_reply_error(request, err);
        return;
    }
    weft_reply_json(request, 200, &out);
    weft_json_put_raw(&out, answer->json, answer->size);
}

/* A replay that found its flow locked runs alone. */
enum weft_rc weft_replay_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_steer_answer *answer = weft_new(request->arena, struct weft_steer_answer);
    const struct weft_steering steering = {
        .kind = WEFT_STEER_REPLAY, .ns = request->ns, .item = request->items.item, .count = 1};
    answer->arena = request->arena;
    enum weft_rc rc = weft_steer_call(request->server->engine, &steering, answer, err);
    request->items.answer = answer;
    if (!rc)
        weft_steer_write(request);
    return rc;
}

/* ---- Many ------------------------------------------------------------------------------------ */

enum many_field {
    MANY_IDS,
    MANY_FILTER,
    MANY_MAX,
    MANY_AFTER,
    MANY_REASON,
    MANY_FORCE,
    MANY_COUNT
};

static const char *const many_names[MANY_COUNT] = {"ids",   "filter", "max",
                                                   "after", "reason", "force"};

struct many {
    enum weft_steer_kind kind;
    unsigned met; /* a bit for each field that was there */
    bool by_filter;
    struct weft_filter filter;
    int64_t max;        /* by filter, how many at most; 0: as many as a call may change */
    const char *after;  /* by filter, the next of the call before; or NULL */
    const char *reason; /* of a cancel */
    bool force;         /* of a replay */
    const char **text;  /* the ids as they were given */
    struct weft_id *id;
    const struct weft_err **err; /* of ids that are none */
    size_t count;
};

static enum weft_rc read_ids(struct weft_request *request, const struct weft_json *value,
                             struct many *many, struct weft_err *err)
{
    if (value->kind != WEFT_JSON_ARRAY)
        return weft_invalid(err, "ids", "ids must be an array");
    many->text = weft_new_array(request->arena, const char *, WEFT_BATCH_MAX);
    many->id = weft_new_array(request->arena, struct weft_id, WEFT_BATCH_MAX);
    many->err = weft_new_array(request->arena, const struct weft_err *, WEFT_BATCH_MAX);
    struct weft_json_iter each;
    weft_json_iter_init(&each, value);
    while (weft_json_next(&each)) {
        size_t i = many->count;
        if (i == WEFT_BATCH_MAX)
            return weft_fail_field(err, WEFT_TOO_LARGE, "ids", "at most %d ids in one call",
                                   WEFT_BATCH_MAX);
        bool is_id = !weft_json_string(&each.value, request->arena, &many->text[i], NULL) &&
                     weft_id_parse(many->text[i], strlen(many->text[i]), &many->id[i]);
        if (!is_id)
            many->err[i] =
                weft_err_new(request->arena, WEFT_INVALID_VALUE, "id", "an id is a UUID in text");
        many->count++;
    }
    return WEFT_OK;
}

/* Reads the value of a field that is not null. */
static enum weft_rc read_many_value(struct weft_request *request, enum many_field field,
                                    const struct weft_json *value, struct many *many,
                                    struct weft_err *err)
{
    switch (field) {
    case MANY_IDS:
        return read_ids(request, value, many, err);
    case MANY_FILTER:
        many->by_filter = true;
        return weft_wire_read(&weft_wire_filter, value, request->arena, &many->filter, err);
    case MANY_MAX:
        if (!weft_json_i64(value, &many->max) || many->max < 1 || many->max > WEFT_SWEEP_MAX)
            return weft_invalid(err, "max", "max must be 1 to %d", WEFT_SWEEP_MAX);
        return WEFT_OK;
    case MANY_AFTER:
    case MANY_REASON:
        if (weft_json_string(value, request->arena,
                             field == MANY_AFTER ? &many->after : &many->reason, NULL))
            return weft_invalid(err, many_names[field], "%s must be a text", many_names[field]);
        return WEFT_OK;
    case MANY_FORCE:
        if (value->kind != WEFT_JSON_BOOL)
            return weft_invalid(err, "force", "force must be true or false");
        many->force = weft_json_bool(value);
        return WEFT_OK;
    case MANY_COUNT:
        break;
    }
    return WEFT_OK;
}

static enum weft_rc read_many_field(struct weft_request *request,
                                    const struct weft_json_iter *member, struct many *many,
                                    struct weft_err *err)
{
    /* A replay keeps no reason, and a cancel needs no force. */
    unsigned other = many->kind == WEFT_STEER_CANCEL ? MANY_FORCE : MANY_REASON, field = 0;
    while (field < MANY_COUNT && (field == other || !weft_json_is(&member->key, many_names[field])))
        field++;
    if (field == MANY_COUNT) {
        const char *name = NULL;
        enum weft_rc rc = weft_json_string(&member->key, request->arena, &name, err);
        return rc ? rc
                  : weft_fail_field(err, WEFT_UNKNOWN_FIELD, name, "this call has no such field");
    }
    if (many->met & 1U << field)
        return weft_invalid(err, many_names[field], "%s was given twice", many_names[field]);
    many->met |= 1U << field;
    if (member->value.kind == WEFT_JSON_NULL)
        return WEFT_OK;
    return read_many_value(request, (enum many_field)field, &member->value, many, err);
}

enum weft_rc weft_steer_many_read(struct weft_request *request, struct weft_err *err)
{
    struct many *many = weft_new(request->arena, struct many);
    struct weft_json object;
    many->kind = request->route->op == &weft_ops[WEFT_OP_CANCEL_MANY] ? WEFT_STEER_CANCEL
                                                                      : WEFT_STEER_REPLAY;
    request->state = many;
    enum weft_rc rc = weft_request_object(request, false, &object, err);
    if (rc)
        return rc;
    struct weft_json_iter member;
    weft_json_iter_init(&member, &object);
    while (!rc && weft_json_next(&member))
        rc = read_many_field(request, &member, many, err);
    if (!rc && many->by_filter == (many->id != NULL))
        rc = weft_invalid(err, "ids", "give either ids or a filter");
    many->filter.ns = request->ns;
    return rc;
}

static enum weft_rc run_filter(struct weft_request *request, const struct many *many,
                               struct weft_err *err)
{
    const struct weft_steer_all args = {.kind = many->kind,
                                        .filter = many->filter,
                                        .reason = many->reason,
                                        .max = (uint32_t)many->max,
                                        .after = many->after,
                                        .force = many->force};
    struct weft_sweep sweep;
    enum weft_rc rc = weft_engine_steer_all(request->server->engine, &args, &sweep, err);
    if (rc)
        return rc;
    const struct weft_wire_sweep answer = {.matched = sweep.matched,
                                           .changed = sweep.changed,
                                           .more = sweep.more,
                                           .next = sweep.more ? sweep.next : NULL};
    return weft_api_reply(request, WEFT_OK, &answer);
}

/* Gives each id its answer: that it is no id, or the next answer of the engine. */
static void write_ids(struct weft_request *request, const struct many *many,
                      const struct weft_steer_result *answer)
{
    struct weft_json_writer out;
    weft_reply_items(request, &out);
    for (size_t i = 0; i < many->count; i++) {
        const struct weft_err *failed = many->err[i];
        enum weft_state state = WEFT_STATE_NONE;
        bool changed = false;
        if (!failed) {
            state = answer->state;
            changed = answer->changed;
            failed = answer++->err;
        }
        weft_json_begin_object(&out);
        weft_json_add_text(&out, "id", many->text[i]);
        if (failed) {
            weft_api_put_error(failed, NULL, &out);
        } else {
            weft_json_add_text(&out, "state", weft_state_name(state));
            weft_json_add_bool(&out, "changed", changed);
        }
        weft_json_end_object(&out);
    }
    weft_json_end_array(&out);
    weft_json_end_object(&out);
}

static enum weft_rc run_ids(struct weft_request *request, const struct many *many,
                            struct weft_err *err)
{
    struct weft_steer *item = weft_new_array(request->arena, struct weft_steer, many->count + 1);
    struct weft_steer_result *answer =
        weft_new_array(request->arena, struct weft_steer_result, many->count + 1);
    struct weft_steering steering = {
        .kind = many->kind, .ns = request->ns, .item = item, .arena = request->arena};
    for (size_t i = 0; i < many->count; i++)
        if (!many->err[i])
            item[steering.count++] = (struct weft_steer){
                .id = many->id[i], .reason = many->reason, .force = many->force};
    enum weft_rc rc = WEFT_OK;
    if (steering.count > 0)
        rc = weft_engine_steer(request->server->engine, &steering, answer, err);
    if (rc)
        return rc;
    write_ids(request, many, answer);
    return WEFT_OK;
}

enum weft_rc weft_steer_many_run(struct weft_request *request, struct weft_err *err)
{
    const struct many *many = request->state;
    return many->by_filter ? run_filter(request, many, err) : run_ids(request, many, err);
}
