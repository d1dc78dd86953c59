/* SPDX-License-Identifier: Apache-2.0 */

/* Waitpoints: pending ones, their tokens, and the signals that a later lease is given. */

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/str.h"
#include "engine/engine_state.h"
#include "engine/job/lease_call.h"
#include "engine/wait/wait.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

static_assert(offsetof(struct weft_waitpoint_new, epoch) == offsetof(struct weft_lease, epoch),
              "id, then epoch");

enum weft_waitpoint_state weft_waitpoint_state_of(const struct weft_waitpoint_out *row,
                                                  const struct weft_live *live, weft_usec now_us)
{
    bool over = row->closed.set || (row->expires.set && row->expires.value <= now_us);
    if (!live || row->replay != live->replays)
        return WEFT_WAITPOINT_CLOSED;
    if (row->bound == 0)
        return over ? WEFT_WAITPOINT_CLOSED : WEFT_WAITPOINT_PENDING;
    return live->state == WEFT_STATE_SUSPENDED && row->bound == live->epoch ? WEFT_WAITPOINT_OPEN
                                                                            : WEFT_WAITPOINT_CLOSED;
}

enum weft_rc weft_waitpoint_sign(struct weft_engine *engine, const struct weft_waitpoint_out *row,
                                 struct weft_arena *arena, struct weft_waitpoint *ret_waitpoint,
                                 struct weft_err *err)
{
    struct weft_signal_token token = {
        .key = row->key, .waitpoint = row->waitpoint, .execution = row->id, .epoch = row->epoch};
    char *text = weft_arena_alloc(arena, 1, WEFT_SIGNAL_TOKEN_TEXT);
    enum weft_rc rc = weft_keys_sign(engine, &token, text, err);
    if (!rc)
        *ret_waitpoint = (struct weft_waitpoint){.id = row->waitpoint,
                                                 .name = weft_arena_strdup(arena, row->name),
                                                 .token = text,
                                                 .created_us = row->created,
                                                 .expires_us = row->expires.value,
                                                 .signals = row->signals,
                                                 .key_id = token.key};
    return rc;
}

/* ---- Pending waitpoints ---------------------------------------------------------------------- */

/* The whole call; lease comes first, because the body of a lease operation gets it. */
struct making {
    struct weft_lease_call lease;
    struct weft_waitpoint_result *answer;
    bool *held;
    struct weft_signing_key key;
    struct weft_waitpoint_add_in *add; /* of the last try */
    size_t added;
};

static enum weft_rc check_new(const void *lease, struct weft_err *err)
{
    const struct weft_waitpoint_new *item = lease;
    if (!item->name || !weft_name_valid(item->name))
        return weft_invalid(err, "name", "name must be 1 to %d of A-Z a-z 0-9 _ . : / -",
                            WEFT_NAME_MAX);
    if (item->expires_ms < 0 || item->expires_ms > WEFT_DELAY_MAX_MS)
        return weft_invalid(err, "expires_ms", "expires_ms must be 1 to %lld",
                            (long long)WEFT_DELAY_MAX_MS);
    return WEFT_OK;
}

/* The pending waitpoint of a name, or NULL; *ret_count: how many the execution has. */
static const struct weft_waitpoint_out *find_pending(const struct weft_rows *rows,
                                                     const struct weft_live *live, const char *name,
                                                     weft_usec now_us, size_t *ret_count)
{
    const struct weft_waitpoint_out *found = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_waitpoint_out *row = weft_out_waitpoint(rows, i);
        if (weft_id_cmp(&row->id, &live->id) != 0 ||
            weft_waitpoint_state_of(row, live, now_us) != WEFT_WAITPOINT_PENDING)
            continue;
        ++*ret_count;
        if (strcmp(row->name, name) == 0)
            found = row;
    }
    return found;
}

static enum weft_rc make_one(struct weft_tx *tx, struct making *call, size_t k,
                             const struct weft_live *live, const struct weft_rows *rows,
                             struct weft_err *err)
{
    const struct weft_waitpoint_new *given = weft_lease_item(&call->lease, k);
    struct weft_waitpoint_result *answer = &call->answer[call->lease.chunk.item[k]];
    size_t pending;
    const struct weft_waitpoint_out *found =
        find_pending(rows, live, given->name, tx->now_us, &pending);
    *answer = (struct weft_waitpoint_result){0};
    if (!found && pending >= WEFT_WAITPOINTS_MAX) {
        const struct weft_err *story =
            weft_err_new(call->lease.arena, WEFT_TOO_LARGE, "name",
                         "the execution has %zu pending waitpoints, at most %d are allowed",
                         pending, WEFT_WAITPOINTS_MAX);
        *answer = (struct weft_waitpoint_result){WEFT_FAILED(story)};
        return WEFT_OK;
    }
    struct weft_waitpoint_out fresh = {.id = given->id,
                                       .created = tx->now_us,
                                       .epoch = given->epoch,
                                       .key = call->key.id,
                                       .replay = live->replays,
                                       .name = given->name};
    if (!found) {
        weft_id_new(&fresh.waitpoint, tx->now_us, weft_id_partition(&given->id));
        fresh.expires.set = given->expires_ms > 0;
        fresh.expires.value = fresh.expires.set ? tx->now_us + given->expires_ms * WEFT_MS : 0;
        call->add->row[call->added++] =
            (struct weft_waitpoint_add_item){.waitpoint = fresh.waitpoint,
                                             .id = fresh.id,
                                             .created = fresh.created,
                                             .expires = fresh.expires,
                                             .epoch = fresh.epoch,
                                             .key = fresh.key,
                                             .replay = fresh.replay,
                                             .name = fresh.name};
    }
    return weft_waitpoint_sign(tx->engine, found ? found : &fresh, call->lease.arena,
                               &answer->waitpoint, err);
}

static enum weft_rc make_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct making *call = context;
    struct weft_lease_call *lease = &call->lease;
    enum { LOCK, PENDING, CALLS };
    struct weft_call ask[CALLS], put;
    struct weft_rows rows[CALLS] = {0};
    size_t count;
    const struct weft_id *id = weft_chunk_ids(&lease->chunk, &lease->ids, tx->arena, &count);
    struct weft_waitpoints_bound_in *in =
        weft_call_waitpoints_bound(&ask[PENDING], tx->arena, count);
    for (size_t i = 0; i < count; i++)
        in->row[i].id = id[i]; /* bound 0: pending */
    call->add = weft_call_waitpoint_add(&put, tx->arena, lease->chunk.count + 1);
    call->added = 0;
    const struct weft_change_reads reads = {ask, rows, CALLS};
    enum weft_rc rc = weft_change_lock_and(tx, id, count, &lease->changes, &reads, err);
    lease->found = weft_new_array(tx->arena, bool, lease->chunk.count + 1);
    for (size_t k = 0; k < lease->chunk.count && !rc; k++) {
        const struct weft_lease *given = weft_lease_item(lease, k);
        const struct weft_change *change = weft_change_find(&lease->changes, &given->id);
        lease->found[k] = change && change->before.state == WEFT_STATE_RUNNING &&
                          change->before.epoch == given->epoch;
        call->held[lease->chunk.item[k]] = lease->found[k];
    }
    for (size_t k = 0; k < lease->chunk.count && !rc; k++)
        if (lease->found[k]) {
            const struct weft_lease *given = weft_lease_item(lease, k);
            rc = make_one(tx, call, k, &weft_change_find(&lease->changes, &given->id)->before,
                          &rows[PENDING], err);
        }
    put.rows = call->added;
    return rc || call->added == 0 ? rc : weft_tx_last(tx, &put, 1, NULL, err);
}

enum weft_rc weft_engine_waitpoints_new(struct weft_engine *engine,
                                        const struct weft_waitpoint_new *item, size_t count,
                                        struct weft_arena *arena,
                                        struct weft_waitpoint_result *ret_answer,
                                        struct weft_err *err)
{
    /* No `decide`: a second name for an execution waits for a later transaction. */
    static const struct weft_lease_op op = {
        .item_size = sizeof(struct weft_waitpoint_new), .check = check_new, .body = make_body};
    struct making call = {.answer = ret_answer};
    enum weft_rc rc = weft_keys_current(engine, &call.key, err);
    if (rc)
        return rc;
    struct weft_arena *plan = weft_arena_new();
    struct weft_lease_result *lease = weft_new_array(arena, struct weft_lease_result, count + 1);
    call.lease = weft_lease_call(&op, item, count, arena, lease);
    call.held = weft_new_array(plan, bool, count + 1);
    rc = weft_lease_run_call(engine, &call.lease, err);
    for (size_t i = 0; i < count; i++)
        if (rc || !call.held[i] || lease[i].rc)
            ret_answer[i] = (struct weft_waitpoint_result){
                .err = lease[i].err, .rc = lease[i].rc, .fence = lease[i].fence};
    weft_arena_free(plan);
    explicit_bzero(&call.key, sizeof(call.key));
    return rc;
}

/* ---- Signals for a later lease --------------------------------------------------------------- */

void weft_waited_call(struct weft_call *ret_call, const struct weft_waited *waited, size_t count,
                      struct weft_arena *arena)
{
    struct weft_signals_read_in *in = weft_call_signals_read(ret_call, arena, count);
    in->bytes = WEFT_SIGNALS_CLAIM_BYTES;
    for (size_t i = 0; i < count; i++) {
        in->row[i].id = waited[i].id;
        in->row[i].bound = weft_unless_zero(waited[i].epoch);
    }
}

static struct weft_signal_info read_signal(const struct weft_signals_read_out *row,
                                           struct weft_arena *arena)
{
    struct weft_signal_info signal = {
        .waitpoint = row->waitpoint.value,
        .waitpoint_name = weft_arena_strdup(arena, row->waitpoint_name),
        .n = row->n.value,
        .at_us = row->at.value,
        .name = row->name ? weft_arena_strdup(arena, row->name) : NULL,
        .source = row->source ? weft_arena_strdup(arena, row->source) : NULL,
        .key = row->key ? weft_arena_strdup(arena, row->key) : NULL,
        .content_type =
            weft_arena_strdup(arena, row->content_type ? row->content_type : WEFT_JSON_TYPE),
        .payload_size = row->payload.size,
    };
    if (row->payload.data) {
        char *copy = weft_arena_alloc(arena, 1, row->payload.size + 1);
        memcpy(copy, row->payload.data, row->payload.size);
        signal.payload = copy;
    }
    return signal;
}

/* The rows of an execution follow each other. */
void weft_waited_take(struct weft_waited *waited, size_t count, const struct weft_rows *rows,
                      struct weft_arena *arena)
{
    struct weft_signal_info *signal =
        weft_new_array(arena, struct weft_signal_info, rows->count + 1);
    struct weft_waited *at = waited;
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_signals_read_out *row = &weft_out_signals_read(rows)[i];
        while (at < waited + count && weft_id_cmp(&at->id, &row->id) != 0)
            at++;
        if (at == waited + count)
            return;
        at->resumed = row->resumed.set;
        at->resumed_us = row->resumed.value;
        at->by = (enum weft_resumed_by)row->by.value;
        at->more |= row->waitpoint.set && row->more.value;
        if (!row->waitpoint.set || row->more.value)
            continue;
        signal[i] = read_signal(row, arena);
        if (at->count++ == 0)
            at->signal = &signal[i];
    }
}
