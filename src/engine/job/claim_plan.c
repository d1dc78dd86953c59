/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a claim should take: what the limits of its lanes leave, and how its turns are shared out
 * between tenants and their queues.
 */

#include "engine/job/claim_plan.h"

#include "base/arena.h"
#include "base/clock.h"
#include "core/share.h"
#include "engine/engine_state.h"
#include "engine/job/claim_state.h"

/* ---- Limits ---------------------------------------------------------------------------------- */

/* How many more a lane may have running: its limit less its leases, draining ones included. */
static uint32_t room_in(const struct weft_rows *running, int32_t lane, int64_t most)
{
    if (most == 0)
        return UINT32_MAX; /* the limit was lifted */
    for (size_t i = 0; i < running->count; i++) {
        const struct weft_lane_running_out *row = &weft_out_lane_running(running)[i];
        int64_t now = row->running;
        if (row->lane == lane && now < most)
            return (uint32_t)(most - now);
    }
    return 0;
}

/* Locks the lanes that have a limit, then counts their leases with a snapshot from after that. */
enum weft_rc weft_claim_lock_lanes(struct weft_tx *tx, struct weft_claiming *all,
                                   struct weft_err *err)
{
    struct weft_call lock, count;
    struct weft_rows locked, running;
    struct weft_lane_lock_in *lock_in = weft_call_lane_lock(&lock, tx->arena, all->limits);
    for (size_t i = 0; i < all->limits; i++) {
        all->limit[i].left = 0; /* a lane that somebody else holds gives nothing */
        lock_in->row[i].lane = all->limit[i].lane;
    }
    enum weft_rc rc = weft_tx_run(tx, &lock, 1, &locked, err);
    if (rc)
        return rc;
    all->contended = locked.count < all->limits;
    struct weft_lane_running_in *count_in = weft_call_lane_running(&count, tx->arena, locked.count);
    count_in->now = tx->now_us;
    const struct weft_lane_lock_out *row = weft_out_lane_lock(&locked);
    for (size_t i = 0; i < locked.count; i++)
        count_in->row[i].lane = row[i].lane;
    rc = weft_tx_run(tx, &count, 1, &running, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < all->limits; i++)
        for (size_t k = 0; k < locked.count; k++)
            if (row[k].lane == all->limit[i].lane)
                all->limit[i].left = room_in(&running, all->limit[i].lane, row[k].max_running);
    /*
     * The leases counted as gone ended before this moment, at times that are not ahead of the
     * store's; this start is not behind it. So recorded starts and ends never overlap.
     */
    tx->now_us = weft_clock_latest(tx->engine->clock);
    return WEFT_OK;
}

/* ---- The plan of a round --------------------------------------------------------------------- */

uint32_t weft_claim_lane_room(const struct weft_claiming *all,
                              const struct weft_candidate *candidate)
{
    return candidate->lane == WEFT_NO_LANE ? UINT32_MAX : all->limit[candidate->lane].left;
}

static void plan_take(struct weft_claiming *all, struct weft_candidate *candidate, uint32_t wanted)
{
    uint32_t room = weft_claim_lane_room(all, candidate);
    uint32_t more = wanted < room ? wanted : room;
    candidate->take += more;
    if (candidate->lane != WEFT_NO_LANE)
        all->limit[candidate->lane].left -= more;
}

/*
 * Gives a tenant's turns to its queues by what is at their heads. Turns that no head could use are
 * not charged, and say that the tenant has nothing beyond this round.
 */
static void split_turns(struct weft_claiming *all, struct weft_claim_request *request, size_t t,
                        const struct weft_head *head, size_t heads)
{
    uint32_t turns = request->share[t].taken;
    for (size_t h = 0; h < heads && turns > 0; h++)
        for (size_t c = 0; c < request->candidates; c++) {
            struct weft_candidate *candidate = &request->candidate[c];
            if (candidate->share != t || candidate->queue->id != head[h].queue ||
                weft_claim_lane_room(all, candidate) == 0)
                continue;
            plan_take(all, candidate, 1);
            turns--;
            break;
        }
    weft_share_refund(&request->share[t], turns);
    for (size_t c = 0; c < request->candidates && turns > 0; c++)
        if (request->candidate[c].share == t)
            request->candidate[c].empty = true;
}

/* Looks at the heads of the queues of tenants that have several. */
static enum weft_rc plan_by_heads(struct weft_tx *tx, struct weft_claiming *all,
                                  struct weft_claim_request *request, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_queue_heads_in *in = weft_call_queue_heads(&call, tx->arena, request->candidates);
    size_t asked = 0;
    for (size_t c = 0; c < request->candidates; c++) {
        const struct weft_candidate *candidate = &request->candidate[c];
        uint32_t depth = request->share[candidate->share].taken;
        if (candidate->empty || depth == 0 || request->tenant[candidate->share].queues < 2)
            continue;
        in->row[asked].queue = candidate->queue->id;
        in->row[asked++].depth = depth;
    }
    if (asked == 0)
        return WEFT_OK;
    call.rows = asked;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc)
        return rc;
    struct weft_head *head = weft_new_array(tx->arena, struct weft_head, rows.count + 1);
    for (size_t t = 0; t < request->tenants; t++) {
        if (request->tenant[t].queues < 2 || request->share[t].taken == 0)
            continue;
        size_t heads = 0;
        for (size_t i = 0; i < rows.count; i++) {
            const struct weft_queue_heads_out *row = &weft_out_queue_heads(&rows)[i];
            int32_t id = row->queue;
            if (weft_find_queue(tx->engine, id)->tenant == request->tenant[t].id)
                head[heads++] = (struct weft_head){
                    .queue = id,
                    .priority = row->priority,
                    .ord = row->ord,
                };
        }
        weft_share_order(head, heads);
        split_turns(all, request, t, head, heads);
    }
    return WEFT_OK;
}

/* What the limits leave to a request: more turns than that would go by place, not by share. */
static uint32_t room_of_all(const struct weft_claiming *all,
                            const struct weft_claim_request *request)
{
    uint64_t sum = 0;
    for (size_t c = 0; c < request->candidates; c++) {
        const struct weft_candidate *candidate = &request->candidate[c];
        size_t before = 0;
        while (before < c && (request->candidate[before].empty ||
                              request->candidate[before].lane != candidate->lane))
            before++;
        if (!candidate->empty && before == c)
            sum += weft_claim_lane_room(all, candidate);
    }
    return sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
}

/* Decides how many rows to take from each queue in this round. */
enum weft_rc weft_claim_plan(struct weft_tx *tx, struct weft_claiming *all,
                             struct weft_claim_request *request, struct weft_err *err)
{
    uint32_t room[WEFT_CLAIM_QUEUES_MAX] = {0};
    for (size_t c = 0; c < request->candidates; c++) {
        struct weft_candidate *candidate = &request->candidate[c];
        candidate->take = 0;
        uint32_t more = candidate->empty ? 0 : weft_claim_lane_room(all, candidate);
        uint32_t *sum = &room[candidate->share];
        *sum = *sum > UINT32_MAX - more ? UINT32_MAX : *sum + more;
    }
    for (size_t t = 0; t < request->tenants; t++)
        request->share[t].most = room[t];
    uint32_t most = room_of_all(all, request);
    weft_share_turns(request->share, request->tenants, most < request->left ? most : request->left);
    for (size_t c = 0; c < request->candidates; c++) {
        struct weft_candidate *candidate = &request->candidate[c];
        struct weft_share *share = &request->share[candidate->share];
        if (!candidate->empty && request->tenant[candidate->share].queues == 1) {
            plan_take(all, candidate, share->taken);
            weft_share_refund(share, share->taken - candidate->take);
        }
    }
    return plan_by_heads(tx, all, request, err);
}
