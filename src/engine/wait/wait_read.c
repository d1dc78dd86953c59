/* SPDX-License-Identifier: Apache-2.0 */

/* Reading: the waitpoints and signals of an execution, and the token of a waitpoint again. */

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "core/cursor.h"
#include "engine/engine_state.h"
#include "engine/job/list.h"
#include "engine/wait/wait.h"

#include <stdlib.h>
#include <string.h>

/* The living row of an execution of the namespace, as far as waitpoints need it. */
struct seen {
    struct weft_live live;
    bool lives;
};

/* Reads the row of an execution; the first column of `call` is its namespace, which must fit. */
static enum weft_rc read_own(struct weft_engine *engine, const struct weft_wait_asking *asking,
                             struct weft_call *call, struct weft_arena *arena,
                             struct weft_rows *ret_rows, struct weft_err *err)
{
    int32_t ns = 0;
    struct weft_rows rows = {0};
    enum weft_rc rc = asking->ns ? weft_find_namespace(engine, asking->ns, &ns, err) : WEFT_OK;
    if (!rc)
        rc = weft_tx_once(engine, WEFT_TX_READ, call, arena, &rows, err);
    if (rc)
        return rc;
    if (rows.count == 0 || (asking->ns && *(const int32_t *)rows.row != ns))
        return weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no such execution");
    *ret_rows = rows;
    return WEFT_OK;
}

static enum weft_rc look(struct weft_engine *engine, const struct weft_wait_asking *asking,
                         struct weft_arena *arena, struct seen *ret_seen, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_wait_live(&call, arena)->id = asking->id;
    enum weft_rc rc = read_own(engine, asking, &call, arena, &rows, err);
    if (rc)
        return rc;
    const struct weft_wait_live_out *row = weft_out_wait_live(&rows);
    *ret_seen = (struct seen){.lives = row->state.set};
    ret_seen->live.epoch = row->epoch.value;
    ret_seen->live.replays = row->replays.value;
    ret_seen->live.state = (enum weft_state)row->state.value;
    return WEFT_OK;
}

/* A list of an execution. */
static struct weft_cursor_list list_of(const char *name, const struct weft_wait_asking *asking,
                                       char text[WEFT_ID_TEXT])
{
    weft_id_print(&asking->id, text);
    return (struct weft_cursor_list){.name = name, .ns = asking->ns, .filter = text};
}

/* A row as lists show it, without a token. */
static struct weft_waitpoint shown(const struct weft_waitpoint_out *row,
                                   enum weft_waitpoint_state state)
{
    return (struct weft_waitpoint){
        .id = row->waitpoint,
        .name = row->name,
        .state = state,
        .created_us = row->created,
        .expires_us = row->expires.value,
        .signals = row->signals,
        .key_id = row->key,
    };
}

enum weft_rc weft_engine_waitpoint_list(struct weft_engine *engine,
                                        const struct weft_wait_asking *asking,
                                        struct weft_arena *arena, struct weft_waitpoints *ret_page,
                                        struct weft_err *err)
{
    char text[WEFT_ID_TEXT];
    const struct weft_cursor_list list = list_of("waitpoints", asking, text);
    size_t limit = asking->limit ? asking->limit : WEFT_PAGE_DEFAULT;
    struct weft_call call;
    struct weft_rows rows = {0};
    struct seen seen = {0};
    struct weft_waitpoints_list_in *in = weft_call_waitpoints_list(&call, arena);
    *in = (struct weft_waitpoints_list_in){.id = asking->id, .most = (int64_t)limit + 1};
    enum weft_rc rc = weft_page_limit(asking->limit, err);
    if (!rc)
        rc = weft_cursor_read_id(&list, asking->after, &in->after, err);
    if (!rc)
        rc = look(engine, asking, arena, &seen, err);
    if (!rc)
        rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    size_t count = rows.count < limit ? rows.count : limit;
    struct weft_waitpoint *item = weft_new_array(arena, struct weft_waitpoint, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct weft_waitpoint_out *row = weft_out_waitpoint(&rows, i);
        item[i] = shown(row, weft_waitpoint_state_of(row, seen.lives ? &seen.live : NULL,
                                                     weft_clock_now(engine->clock)));
    }
    *ret_page = (struct weft_waitpoints){.item = item, .count = count};
    if (rows.count > limit)
        ret_page->next = weft_cursor_write_id(&list, &item[count - 1].id, arena);
    return WEFT_OK;
}

/* ---- Signals --------------------------------------------------------------------------------- */

/* The place behind a signal: its waitpoint and its number. */
struct place {
    struct weft_id waitpoint;
    int32_t n;
};

static enum weft_rc read_place(const struct weft_cursor_list *list, const char *after,
                               struct weft_signals_list_in *in, struct weft_err *err)
{
    char bytes[WEFT_CURSOR_PLACE_MAX + 1];
    struct place place;
    size_t size = 0;
    if (!after)
        return WEFT_OK;
    enum weft_rc rc = weft_cursor_read(list, after, bytes, &size, err);
    if (!rc && size != sizeof(place))
        rc = weft_cursor_refuse(err);
    if (rc)
        return rc;
    memcpy(&place, bytes, sizeof(place));
    in->after = place.waitpoint;
    in->after_n = place.n;
    return WEFT_OK;
}

enum weft_rc weft_engine_signal_list(struct weft_engine *engine,
                                     const struct weft_wait_asking *asking,
                                     struct weft_arena *arena, struct weft_signals *ret_page,
                                     struct weft_err *err)
{
    char text[WEFT_ID_TEXT];
    const struct weft_cursor_list list = list_of("signals", asking, text);
    size_t limit = asking->limit ? asking->limit : WEFT_PAGE_DEFAULT;
    struct weft_call call;
    struct weft_rows rows = {0};
    struct seen seen = {0};
    struct weft_signals_list_in *in = weft_call_signals_list(&call, arena);
    *in = (struct weft_signals_list_in){
        .id = asking->id, .most = (int64_t)limit + 1, .bytes = WEFT_BATCH_BYTES};
    enum weft_rc rc = weft_page_limit(asking->limit, err);
    if (!rc)
        rc = read_place(&list, asking->after, in, err);
    if (!rc)
        rc = look(engine, asking, arena, &seen, err);
    if (!rc)
        rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    /* A page is cut at `bytes` too, one signal behind them: then the last one is for the next. */
    size_t count = rows.count < limit ? rows.count : limit, bytes = 0;
    struct weft_signal_info *item = weft_new_array(arena, struct weft_signal_info, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct weft_signals_list_out *row = &weft_out_signals_list(&rows)[i];
        item[i] = (struct weft_signal_info){.waitpoint = row->waitpoint,
                                            .waitpoint_name = row->waitpoint_name,
                                            .n = row->n,
                                            .at_us = row->at,
                                            .name = row->name,
                                            .source = row->source,
                                            .key = row->key,
                                            .content_type = row->content_type ? row->content_type
                                                                              : WEFT_JSON_TYPE,
                                            .payload = row->payload.data,
                                            .payload_size = row->payload.size};
        bytes += row->payload.size;
    }
    *ret_page = (struct weft_signals){.item = item, .count = count};
    if (rows.count > limit || bytes > WEFT_BATCH_BYTES) {
        struct place last;
        memset(&last, 0, sizeof(last));
        last.waitpoint = item[count - 1].waitpoint;
        last.n = item[count - 1].n;
        ret_page->next = weft_cursor_write(&list, &last, sizeof(last), arena);
    }
    return WEFT_OK;
}

/* ---- What it waits for ----------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    const struct weft_waitpoint *one = a, *other = b;
    return weft_id_cmp(&one->id, &other->id);
}

/* The waitpoints of a suspension. They are open, or were when the suspension was read. */
static enum weft_rc read_bound(struct weft_engine *engine, const struct weft_id *id, int32_t epoch,
                               struct weft_arena *arena, struct weft_waiting *waiting,
                               struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_waitpoints_bound_in *in = weft_call_waitpoints_bound(&call, arena, 1);
    in->row[0].id = *id;
    in->row[0].bound = epoch;
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    struct weft_waitpoint *item = weft_new_array(arena, struct weft_waitpoint, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++)
        item[i] = shown(weft_out_waitpoint(&rows, i), WEFT_WAITPOINT_OPEN);
    qsort(item, rows.count, sizeof(*item), by_id);
    waiting->waitpoint = item;
    waiting->waitpoint_count = rows.count;
    return WEFT_OK;
}

enum weft_rc weft_engine_waiting(struct weft_engine *engine, const struct weft_wait_asking *asking,
                                 struct weft_arena *arena, struct weft_waiting *ret_waiting,
                                 struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_waiting_read(&call, arena)->id = asking->id;
    enum weft_rc rc = read_own(engine, asking, &call, arena, &rows, err);
    if (rc)
        return rc;
    const struct weft_waiting_read_out *row = weft_out_waiting_read(&rows);
    struct weft_waiting waiting = {
        .suspended = row->epoch.set,
        .suspended_us = row->since.value,
        .reason = row->reason,
        .condition = row->condition,
        .timeout_us = row->timeout.value,
        .on_timeout = (enum weft_on_timeout)row->on_timeout.value,
        .resume_delay_ms = row->delay.value / WEFT_MS,
        .escalated_us = row->escalated.value,
        .resumed = row->resumed.set,
        .resumed_by = (enum weft_resumed_by)row->by.value,
        .resumed_us = row->resumed.value,
        .resume_reason = row->resumed_reason,
    };
    if (waiting.suspended)
        rc = read_bound(engine, &asking->id, row->epoch.value, arena, &waiting, err);
    if (!rc)
        *ret_waiting = waiting;
    return rc;
}

/* ---- A token again --------------------------------------------------------------------------- */

enum weft_rc weft_engine_waitpoint_token(struct weft_engine *engine,
                                         const struct weft_wait_asking *asking,
                                         struct weft_arena *arena,
                                         struct weft_waitpoint *ret_waitpoint, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct seen seen = {0};
    weft_call_waitpoints_named(&call, arena, 1)->row[0].waitpoint = asking->id;
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    struct weft_wait_asking execution = *asking;
    if (rows.count > 0)
        execution.id = weft_out_waitpoint(&rows, 0)->id;
    if (rows.count == 0 || look(engine, &execution, arena, &seen, err))
        return weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no such waitpoint");
    if (weft_waitpoint_state_of(weft_out_waitpoint(&rows, 0), seen.lives ? &seen.live : NULL,
                                weft_clock_now(engine->clock)) == WEFT_WAITPOINT_CLOSED)
        return weft_fail_field(err, WEFT_NOT_LIVE, "id", "the waitpoint is closed");
    return weft_waitpoint_sign(engine, weft_out_waitpoint(&rows, 0), arena, ret_waitpoint, err);
}
