/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Turns between namespaces, for passes that cannot take all due rows.
 *
 * A pass takes due rows in the order of time, over all namespaces. That is right while everything
 * due fits into a batch. When it does not, a namespace with very many due rows would keep the
 * others waiting until all of its own are done. So the pass after a full batch reads which lanes
 * have due rows, divides the batch between their namespaces (core/share.h) and takes the oldest
 * rows of each lane. This continues until a pass finds no more rows to take; then passes go by time
 * again. As long as batches are not full, none of these statements runs.
 *
 * A look reads at most LOOKED lanes for each row of the batch; the next look continues behind them.
 * A round ends when a look reaches the last lane. If every lane of the round gave fewer rows than
 * its share, no row is left that a pass could take: a row that is still due is locked by another
 * session, or became due since, and finish_rows() in pass.c finds it. Otherwise the next round
 * begins.
 *
 * A row that becomes due waits for the running pass and is handled by the next one. So passes are
 * shorter while recent looks have seen several namespaces. A single namespace gets whole batches,
 * which cost less per row, and only every fifth pass looks: another namespace whose rows become due
 * waits for four batches at most.
 *
 * The state is only a hint in this process: if it is lost or overwritten (two passes of a scanner
 * at the same time), that costs a useless look, or one batch in the order of time, because any pass
 * may follow any other. Replicas divide the rows by SKIP LOCKED in all cases.
 */

#include "engine/scan/turns.h"

#include "base/arena.h"
#include "base/id.h"
#include "core/share.h"
#include "engine/engine_state.h"
#include "engine/scan/pass.h"
#include "engine/scan/scan.h"

#include <assert.h>
#include <stdlib.h>

enum {
    LOOKED = 4,  /* each lane costs two probes of an index */
    PARTS = 4,   /* of a batch, where several namespaces have due rows */
    SHORT = 100, /* passes, after the last look that saw several */
    PLAIN = 4,   /* passes, after a look over all lanes that saw one namespace */
};

struct weft_scan_turns weft_turns_read(struct weft_engine *engine, enum weft_scanner scanner)
{
    pthread_mutex_lock(&engine->sample_lock);
    struct weft_scan_turns turns = engine->turns[scanner];
    pthread_mutex_unlock(&engine->sample_lock);
    return turns;
}

void weft_turns_write(struct weft_engine *engine, enum weft_scanner scanner,
                      const struct weft_scan_turns *turns)
{
    pthread_mutex_lock(&engine->sample_lock);
    engine->turns[scanner] = *turns;
    pthread_mutex_unlock(&engine->sample_lock);
}

/* The lanes with due rows behind scan->turns.after, which becomes the place to go on from. */
static enum weft_rc look(struct weft_scan *scan, struct weft_lane_share **ret_lane,
                         size_t *ret_count, struct weft_err *err)
{
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    weft_call_init(&call[0], scan->tx->arena, scan->by_lane->lanes, 0);
    struct weft_lease_lanes_in *in = weft_in_lease_lanes(&call[0]);
    in->now = scan->tx->now_us;
    in->after = scan->turns.after;
    in->most = (int64_t)LOOKED * scan->config->batch;
    if (scan->beside)
        call[1] = *scan->beside;
    enum weft_rc rc = weft_tx_run(scan->tx, call, scan->beside ? 2 : 1, rows, err);
    if (rc)
        return rc;
    scan->beside_rows = rows[1];
    const struct weft_lease_lanes_out *row = weft_out_lease_lanes(&rows[0]);
    scan->turns.after = row[0].next;
    struct weft_lane_share *lane =
        weft_new_array(scan->tx->arena, struct weft_lane_share, rows[0].count + 1);
    *ret_count = 0;
    for (size_t i = 0; i < rows[0].count; i++)
        if (row[i].lane.set)
            lane[(*ret_count)++] =
                (struct weft_lane_share){.ns = row[i].namespace, .lane = row[i].lane.value};
    *ret_lane = lane;
    return WEFT_OK;
}

static int by_lane(const void *left, const void *right)
{
    const struct weft_lane_share *a = left, *b = right;
    return (a->lane > b->lane) - (a->lane < b->lane);
}

/* Whether every lane gave fewer rows than its share. */
static bool all_gave_less(struct weft_lane_share *lane, size_t count, const struct weft_rows *rows)
{
    bool delayed = rows->stmt == WEFT_STMT_DELAYED_TURNS;
    qsort(lane, count, sizeof(*lane), by_lane);
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_lane_share key = {.lane = delayed ? weft_out_delayed_turns(rows)[i].lane
                                                            : weft_out_live(rows, i)->lane};
        struct weft_lane_share *found = bsearch(&key, lane, count, sizeof(*lane), by_lane);
        if (found && found->share > 0)
            found->share--;
    }
    for (size_t i = 0; i < count; i++)
        if (lane[i].share == 0)
            return false;
    return true;
}

static enum weft_rc take(struct weft_scan *scan, const struct weft_lane_share *lane, size_t count,
                         struct weft_rows *ret_rows, struct weft_err *err)
{
    struct weft_call call;
    size_t lanes = 0, row = 0;
    for (size_t i = 0; i < count; i++)
        lanes += lane[i].share > 0;
    weft_call_init(&call, scan->tx->arena, scan->by_lane->take, lanes);
    struct weft_lease_turns_in *in = weft_in_lease_turns(&call);
    in->now = scan->tx->now_us;
    in->first = scan->config->partition_first;
    in->last = scan->config->partition_last;
    for (size_t i = 0; i < count; i++)
        if (lane[i].share > 0) {
            in->row[row].lane = lane[i].lane;
            in->row[row++].share = lane[i].share;
        }
    return weft_tx_run(scan->tx, &call, 1, ret_rows, err);
}

/* How many rows this pass takes; notes whether the look saw several namespaces. */
static uint32_t size_of(struct weft_scan *scan, const struct weft_lane_share *lane, size_t count)
{
    bool several = false;
    for (size_t i = 1; i < count; i++)
        several |= lane[i].ns != lane[0].ns;
    if (several)
        scan->turns.short_passes = SHORT;
    else if (scan->turns.short_passes > 0)
        scan->turns.short_passes--;
    uint32_t part = scan->config->batch / PARTS;
    return scan->turns.short_passes == 0 || part == 0 ? scan->config->batch : part;
}

enum weft_rc weft_scan_in_turns(struct weft_scan *scan, struct weft_rows *ret_rows,
                                struct weft_err *err)
{
    struct weft_lane_share *lane = NULL;
    size_t count = 0;
    uint64_t random;
    bool whole = scan->turns.after == 0;
    if (whole)
        scan->turns.left = false;
    *ret_rows = (struct weft_rows){0};
    enum weft_rc rc = look(scan, &lane, &count, err);
    weft_random(&random, sizeof(random));
    if (!rc && count > 0) {
        weft_share_lanes(lane, count, size_of(scan, lane, count), random);
        rc = take(scan, lane, count, ret_rows, err);
    }
    if (rc)
        return rc;
    if (!all_gave_less(lane, count, ret_rows))
        scan->turns.left = true;
    scan->turns.on = scan->turns.left || scan->turns.after != 0;
    if (whole && scan->turns.after == 0 && scan->turns.short_passes == 0)
        scan->turns.plain_passes = PLAIN;
    return WEFT_OK;
}
