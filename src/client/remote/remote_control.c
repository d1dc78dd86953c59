/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Steering, lanes and upkeep through a server. Cancels and replays go out many at a time; the
 * server takes the other kinds one by one.
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

/* How many items from `at` on can share a request. */
static size_t part_of(const struct weft_steering *steering, size_t at)
{
    const struct weft_steer *item = steering->item;
    size_t i = at + 1;
    while (i < steering->count && i - at < WEFT_BATCH_MAX && same_text(item[i].ns, item[at].ns) &&
           same_text(item[i].reason, item[at].reason) && item[i].force == item[at].force)
        i++;
    return i - at;
}

static void write_ids(const struct weft_steer *item, size_t count, enum weft_steer_kind kind,
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
    if (item->reason && kind == WEFT_STEER_CANCEL) {
        weft_json_key(&out, "reason");
        weft_json_put_text(&out, item->reason);
    }
    if (item->force && kind == WEFT_STEER_REPLAY) { /* older servers do not know the field */
        weft_json_key(&out, "force");
        weft_json_put_bool(&out, true);
    }
    weft_json_end_object(&out);
}

/* The state that an answer tells, and whether it was changed, where it tells that. */
static bool read_steered(const struct weft_json *value, struct weft_arena *arena,
                         struct weft_steered *ret_answer)
{
    struct weft_json error, changed;
    *ret_answer = (struct weft_steered){0};
    if (value->kind != WEFT_JSON_OBJECT)
        return false;
    if (weft_wire_member(value, "error", &error) && error.kind == WEFT_JSON_OBJECT &&
        weft_remote_error(&error, arena, &ret_answer->err, NULL, NULL) == WEFT_OK)
        return true;
    struct weft_lease_answer told;
    if (weft_wire_read_answer(&weft_wire_finished, value, arena, &told, NULL))
        return false;
    ret_answer->state = told.state;
    ret_answer->changed = !weft_wire_member(value, "changed", &changed) ||
                          changed.kind != WEFT_JSON_BOOL || weft_json_bool(&changed);
    return true;
}

static enum weft_rc steer_part(const struct weft_via *via, const struct weft_steering *part,
                               struct weft_steered *ret_answer, struct weft_err *err)
{
    bool replay = part->kind == WEFT_STEER_REPLAY;
    struct weft_arena *arena = weft_arena_new();
    struct weft_buf body;
    weft_buf_init(&body, SIZE_MAX);
    write_ids(part->item, part->count, part->kind, &body);
    const struct weft_request request = {.method = "POST",
                                         .path =
                                             replay ? "/executions/replay" : "/executions/cancel",
                                         .ns = part->item->ns,
                                         .body = &body,
                                         .once = replay};
    struct weft_json object;
    struct weft_json_iter iter;
    enum weft_rc rc = weft_remote_ask(via, &request, arena, &object, err);
    if (!rc && !weft_remote_items(&object, part->count, &iter))
        rc = weft_remote_garbled(&request, err);
    for (size_t i = 0; i < part->count && !rc; i++)
        if (!weft_json_next(&iter) || !read_steered(&iter.value, arena, &ret_answer[i]))
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

static enum weft_rc steer_one(const struct weft_via *via, const struct weft_steering *part,
                              struct weft_steered *ret_answer, struct weft_err *err)
{
    static const struct {
        const char *tail;
        const struct weft_wire_type *takes;
    } row[] = {
        [WEFT_STEER_REPRIORITIZE] = {"/priority", &weft_wire_priority},
        [WEFT_STEER_REVOKE] = {"/revoke", &weft_wire_cancel},
        [WEFT_STEER_SET_DEADLINE] = {"/deadline", &weft_wire_deadline},
    };
    const struct weft_steer *item = part->item;
    if (item->deadline_us < 0 || item->deadline_us > WEFT_MOMENT_MAX_US) {
        *ret_answer = (struct weft_steered){0};
        (void)weft_fail_field(&ret_answer->err, WEFT_INVALID_VALUE, "deadline_at",
                              "deadline_at is no moment");
        return WEFT_OK;
    }
    struct weft_arena *arena = weft_arena_new();
    struct weft_buf body;
    weft_buf_init(&body, SIZE_MAX);
    struct weft_json_writer out;
    weft_json_writer_init(&out, &body);
    weft_wire_write(row[part->kind].takes, item, &out);
    const struct weft_request request = {
        .method = "POST",
        .path = weft_remote_path(arena, &item->id, row[part->kind].tail),
        .ns = item->ns,
        .body = &body,
        .once = part->kind == WEFT_STEER_REVOKE,
    };
    struct weft_json object;
    enum weft_rc rc = weft_remote_ask(via, &request, arena, &object, err);
    if (!rc && !read_steered(&object, arena, ret_answer))
        rc = weft_remote_garbled(&request, err);
    if (rc && is_about_item(rc)) {
        *ret_answer = (struct weft_steered){.err = *err};
        rc = WEFT_OK;
    }
    weft_buf_done(&body);
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_remote_steer(const struct weft_via *via, const struct weft_steering *steering,
                               struct weft_steered *ret_answer, struct weft_err *err)
{
    bool many = steering->kind == WEFT_STEER_CANCEL || steering->kind == WEFT_STEER_REPLAY;
    size_t count;
    for (size_t at = 0; at < steering->count; at += count) {
        count = many ? part_of(steering, at) : 1;
        const struct weft_steering part = {
            .kind = steering->kind, .item = &steering->item[at], .count = count};
        enum weft_rc rc = many ? steer_part(via, &part, &ret_answer[at], err)
                               : steer_one(via, &part, &ret_answer[at], err);
        if (rc && at == 0)
            return rc;
        if (!rc)
            continue;
        /* What came before is done: the failure is told in the answers. */
        for (size_t i = at; i < steering->count; i++) {
            ret_answer[i] = (struct weft_steered){.err = *err};
            if (i >= at + count)
                ret_answer[i].err.hint = NULL; /* of these it is known: they were not sent */
        }
        break;
    }
    return WEFT_OK;
}

/* ---- By filter ------------------------------------------------------------------------------- */

static void write_sweep(const struct weft_steer_all *args, struct weft_buf *body)
{
    struct weft_json_writer out;
    weft_json_writer_init(&out, body);
    weft_json_begin_object(&out);
    weft_json_key(&out, "filter");
    weft_wire_write(&weft_wire_filter, &args->filter, &out);
    if (args->reason && args->kind == WEFT_STEER_CANCEL) {
        weft_json_key(&out, "reason");
        weft_json_put_text(&out, args->reason);
    }
    if (args->force && args->kind == WEFT_STEER_REPLAY) {
        weft_json_key(&out, "force");
        weft_json_put_bool(&out, true);
    }
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

enum weft_rc weft_remote_steer_all(const struct weft_via *via, const struct weft_steer_all *args,
                                   struct weft_sweep *ret_sweep, struct weft_err *err)
{
    if (args->kind != WEFT_STEER_CANCEL && args->kind != WEFT_STEER_REPLAY)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "kind",
                               "only cancel and replay take a filter");
    if ((unsigned)args->filter.state >= WEFT_STATE_COUNT)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "state", "there is no such state");
    bool replay = args->kind == WEFT_STEER_REPLAY;
    struct weft_arena *arena = weft_arena_new();
    struct weft_buf body;
    weft_buf_init(&body, SIZE_MAX);
    write_sweep(args, &body);
    const struct weft_request request = {.method = "POST",
                                         .path =
                                             replay ? "/executions/replay" : "/executions/cancel",
                                         .ns = args->filter.ns,
                                         .body = &body,
                                         .once = replay};
    struct weft_json object, matched;
    struct weft_wire_sweep sweep = {0};
    enum weft_rc rc = weft_remote_ask(via, &request, arena, &object, err);
    if (!rc && (!weft_wire_member(&object, "matched", &matched) ||
                weft_wire_read_answer(&weft_wire_sweep, &object, arena, &sweep, NULL)))
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
    weft_arena_free(arena);
    return rc;
}

/* ---- Lanes, workers, upkeep ------------------------------------------------------------------ */

enum weft_rc weft_remote_lane_put(const struct weft_via *via, const struct weft_lane *lane,
                                  struct weft_err *err)
{
    enum weft_rc rc = lane->name ? WEFT_OK : weft_missing("name", err);
    for (size_t i = 0; i < lane->weight_count && !rc; i++)
        if (!lane->weights[i].tenant)
            rc = weft_missing("weights", err);
    if (rc)
        return rc;
    struct weft_arena *arena = weft_arena_new();
    struct weft_buf body, path;
    weft_buf_init(&body, SIZE_MAX);
    weft_buf_init(&path, SIZE_MAX);
    weft_buf_add_text(&path, "/lanes/");
    weft_remote_encode(&path, lane->name);
    struct weft_lane settings = *lane;
    settings.name = NULL; /* the path says it */
    struct weft_json_writer out;
    weft_json_writer_init(&out, &body);
    weft_wire_write(&weft_wire_lane, &settings, &out);
    const struct weft_request request = {.method = "PUT", .path = path.data, .body = &body};
    struct weft_response response;
    rc = weft_remote_send(via, &request, arena, &response, err);
    weft_buf_done(&path);
    weft_buf_done(&body);
    weft_arena_free(arena);
    return rc;
}

/*
 * Sent again when its answer was lost: then the second one finds nothing, and that is not told
 * apart from a lane that had no settings.
 */
enum weft_rc weft_remote_lane_remove(const struct weft_via *via, const char *lane,
                                     struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_buf path;
    weft_buf_init(&path, SIZE_MAX);
    weft_buf_add_text(&path, "/lanes/");
    weft_remote_encode(&path, lane);
    const struct weft_request request = {.method = "DELETE", .path = path.data};
    struct weft_response response;
    enum weft_rc rc = weft_remote_send(via, &request, arena, &response, err);
    weft_buf_done(&path);
    weft_arena_free(arena);
    return rc;
}

/* A member that is a number of things; 0 when it is not there. */
static uint64_t number_in(const struct weft_json *object, const char *name)
{
    struct weft_json value;
    int64_t number;
    if (!weft_wire_member(object, name, &value) || !weft_json_i64(&value, &number) || number < 0)
        return 0;
    return (uint64_t)number;
}

enum weft_rc weft_remote_goodbye(const struct weft_via *via, const char *worker,
                                 uint64_t *ret_released, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_buf path;
    weft_buf_init(&path, SIZE_MAX);
    weft_buf_add_text(&path, "/workers/");
    weft_remote_encode(&path, worker);
    weft_buf_add_text(&path, "/goodbye");
    const struct weft_request request = {.method = "POST", .path = path.data};
    struct weft_json object;
    enum weft_rc rc = weft_remote_ask(via, &request, arena, &object, err);
    if (!rc)
        *ret_released = number_in(&object, "released");
    weft_buf_done(&path);
    weft_arena_free(arena);
    return rc;
}

/* The names of counters outlive the answer: those of a newer server that are not known are lost. */
static struct weft_pass_report report_of(const struct weft_wire_pass *pass,
                                         enum weft_scanner scanner)
{
    struct weft_pass_report report = {.handled = pass->handled,
                                      .failed = pass->failed,
                                      .more = pass->more,
                                      .next_due_us = pass->next_due_us};
    const char *const *name = weft_scanner_info(scanner)->counter;
    for (; *name; name++) {
        size_t i = 0;
        while (i < pass->counter_count && strcmp(pass->counters[i].name, *name) != 0)
            i++;
        if (i < pass->counter_count)
            report.counter[report.counter_count++] =
                (struct weft_counter){.name = *name, .value = pass->counters[i].value};
    }
    return report;
}

enum weft_rc weft_remote_run_pass(const struct weft_via *via, enum weft_scanner scanner,
                                  uint32_t batch, struct weft_pass_report *ret_report,
                                  struct weft_err *err)
{
    (void)batch; /* the server knows its own */
    if ((unsigned)scanner >= WEFT_SCANNER_COUNT)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "scanner", "there is no such scanner");
    struct weft_arena *arena = weft_arena_new();
    const struct weft_request request = {
        .method = "POST",
        .path = weft_arena_printf(arena, "/scanners/%s/run", weft_scanner_name(scanner)),
    };
    struct weft_json object;
    struct weft_wire_pass pass;
    enum weft_rc rc = weft_remote_ask(via, &request, arena, &object, err);
    if (!rc && weft_wire_read_answer(&weft_wire_pass, &object, arena, &pass, NULL))
        rc = weft_remote_garbled(&request, err);
    if (!rc)
        *ret_report = report_of(&pass, scanner);
    weft_arena_free(arena);
    return rc;
}
