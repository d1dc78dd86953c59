/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A round of a claim: the room that the limits of lanes leave, how the turns are shared out between
 * tenants and their queues, the statement that takes the rows, and the rows that it gave.
 */

#include "engine/job/claim_state.h"

#include "base/arena.h"
#include "base/clock.h"
#include "core/spec.h"

enum { STARTS_MAX = 1000 }; /* rows of lane_start in a span */

/* ---- Limits of lanes --------------------------------------------------------------------------
 */

static struct weft_limits limits_of(const struct weft_lane_lock_out *row)
{
    return (struct weft_limits){.max_running = row->max_running,
                                .window = {row->window_limit, row->window_us / WEFT_MS},
                                .rate = {row->rate_limit, row->rate_us / WEFT_MS, row->rate_burst}};
}

/* How many more a lane may start: its leases count, draining ones included, and its starts. */
static void look_at_lane(struct weft_limited *limit, const struct weft_rows *running)
{
    const struct weft_lane_running_out *row = weft_out_lane_running(running);
    size_t i = 0;
    while (i < running->count && row[i].lane != limit->lane)
        i++;
    if (i == running->count)
        return;
    limit->now.running = row[i].running;
    limit->now.started = row[i].started;
    limit->now.oldest_us = row[i].oldest.value;
    int64_t room = weft_limit_room(&limit->limits, &limit->now).room;
    limit->left = room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
}

enum weft_rc weft_claim_lock_lanes(struct weft_tx *tx, struct weft_claiming *all,
                                   struct weft_err *err)
{
    struct weft_call lock, count;
    struct weft_rows locked, running;
    struct weft_lane_lock_in *lock_in = weft_call_lane_lock(&lock, tx->arena, all->limits);
    for (size_t i = 0; i < all->limits; i++) {
        /* a lane that another claim holds gives nothing */
        all->limit[i] = (struct weft_limited){.lane = all->limit[i].lane};
        lock_in->row[i].lane = all->limit[i].lane;
    }
    enum weft_rc rc = weft_tx_run(tx, &lock, 1, &locked, err);
    if (rc)
        return rc;
    all->contended = locked.count < all->limits;
    struct weft_lane_running_in *count_in = weft_call_lane_running(&count, tx->arena, locked.count);
    count_in->now = tx->now_us;
    const struct weft_lane_lock_out *row = weft_out_lane_lock(&locked);
    for (size_t k = 0; k < locked.count; k++) {
        struct weft_limits limits = limits_of(&row[k]);
        count_in->row[k].lane = row[k].lane;
        count_in->row[k].span = weft_window_span(&limits.window);
    }
    rc = weft_tx_run(tx, &count, 1, &running, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < all->limits; i++)
        for (size_t k = 0; k < locked.count; k++)
            if (row[k].lane == all->limit[i].lane) {
                all->limit[i].limits = limits_of(&row[k]);
                all->limit[i].now =
                    (struct weft_limit_now){.now_us = tx->now_us, .full_ns = row[k].full_ns.value};
                look_at_lane(&all->limit[i], &running);
            }
    /*
     * The leases counted as gone ended before this moment, at times that are not ahead of the
     * store's; this start is not behind it. So recorded starts and ends never overlap. The same
     * holds for windows: starts were counted up to an earlier moment than the one they are
     * recorded at, so a start counts for a little longer than its window.
     */
    tx->now_us = weft_clock_latest(tx->engine->clock);
    return WEFT_OK;
}

/* When a start counts in a window: the end of the thousandth of the span that it falls into. */
static weft_usec counted_at(const struct weft_window *window, weft_usec now_us)
{
    weft_usec grain_us = window->per_ms * WEFT_MS / STARTS_MAX;
    return grain_us ? now_us + grain_us - now_us % grain_us : now_us;
}

/* Counts the starts of this transaction. */
static void charge(struct weft_limited *limit, weft_usec now_us, struct weft_lane_charge_item *item)
{
    const struct weft_limits *limits = &limit->limits;
    struct weft_limit_now *now = &limit->now;
    weft_usec at_us = counted_at(&limits->window, now_us);
    if (limits->rate.limit)
        now->full_ns = weft_rate_take(&limits->rate, now->full_ns, now_us, limit->given);
    if (now->started == 0)
        now->oldest_us = at_us;
    now->now_us = now_us;
    now->started += limit->given;
    now->running += limit->given;
    *item = (struct weft_lane_charge_item){
        .lane = limit->lane,
        .at = at_us,
        .count = limits->window.limit ? limit->given : 0,
        .full_ns = {.value = now->full_ns, .set = limits->rate.limit > 0},
        .until = now_us - weft_window_span(&limits->window)};
}

enum weft_rc weft_claim_charge_lanes(struct weft_tx *tx, struct weft_claiming *all,
                                     struct weft_err *err)
{
    struct weft_call call;
    size_t rows = 0;
    struct weft_lane_charge_in *in = weft_call_lane_charge(&call, tx->arena, all->limits + 1);
    for (size_t i = 0; i < all->limits; i++) {
        struct weft_limited *limit = &all->limit[i];
        if (!limit->limits.window.limit && !limit->limits.rate.limit)
            continue;
        if (limit->given > 0)
            charge(limit, tx->now_us, &in->row[rows++]);
        struct weft_limit_room room = weft_limit_room(&limit->limits, &limit->now);
        if (room.room == 0 && room.next_us < all->opens_us)
            all->opens_us = room.next_us;
    }
    call.rows = rows;
    return rows ? weft_tx_last(tx, &call, 1, NULL, err) : WEFT_OK;
}

/* ---- The plan of a round --------------------------------------------------------------------- */

/* How many more the lane of a candidate may have running. */
static uint32_t lane_room(const struct weft_claiming *all, const struct weft_candidate *candidate)
{
    return candidate->lane == WEFT_NO_LANE ? UINT32_MAX : all->limit[candidate->lane].left;
}

static void plan_take(struct weft_claiming *all, struct weft_candidate *candidate, uint32_t wanted)
{
    uint32_t room = lane_room(all, candidate);
    uint32_t more = wanted < room ? wanted : room;
    candidate->take += more;
    if (candidate->lane != WEFT_NO_LANE)
        all->limit[candidate->lane].left -= more;
}

/* Rows at the heads of queues. */
struct heads {
    struct weft_head *head;
    size_t count;
    const struct weft_charge_heads_out *ids; /* NULL: no queue of the call is under a budget */
};

/*
 * Gives a tenant's turns to its queues by the rows at their heads. Turns that no head could use are
 * not charged; they show that the tenant has nothing beyond this round.
 */
static void split_turns(struct weft_claiming *all, struct weft_claim_request *request, size_t t,
                        const struct heads *heads)
{
    const struct weft_head *head = heads->head;
    uint32_t turns = request->share[t].taken;
    for (size_t h = 0; h < heads->count && turns > 0; h++)
        for (size_t c = 0; c < request->candidates; c++) {
            struct weft_candidate *candidate = &request->candidate[c];
            if (candidate->share != t || candidate->queue->id != head[h].queue ||
                lane_room(all, candidate) == 0)
                continue;
            if (heads->ids && !weft_claim_head_fits(all, candidate, &heads->ids[head[h].row].id))
                break;
            plan_take(all, candidate, 1);
            turns--;
            break;
        }
    weft_share_refund(&request->share[t], turns);
    for (size_t c = 0; c < request->candidates && turns > 0; c++)
        if (request->candidate[c].share == t)
            request->candidate[c].empty = true;
}

/* Whether the heads of a queue decide how many are taken from it: its tenant has several queues, or
 * each head has to fit into a budget. */
static bool goes_by_heads(const struct weft_claim_request *request,
                          const struct weft_candidate *candidate)
{
    return request->tenant[candidate->share].queues > 1 || candidate->budgets > 0;
}

/* How many places of a queue earlier claims of the call take in this round. */
static uint32_t planned_before(const struct weft_claiming *all,
                               const struct weft_claim_request *request,
                               const struct weft_queue *queue)
{
    uint32_t before = 0;
    for (const struct weft_claim_request *r = all->request; r < request; r++)
        for (size_t c = 0; c < r->candidates; c++)
            if (r->candidate[c].queue == queue)
                before += r->candidate[c].take;
    return before;
}

/* Prepares the look at the heads; false: no queue goes by them. The twin statements take the same
 * parameters. The heads for this claim lie behind the heads that earlier claims of the call take. A
 * queue under a budget is looked at in any case: many closed queues must not take turns. */
static bool ask_for_heads(struct weft_tx *tx, const struct weft_claiming *all,
                          const struct weft_claim_request *request, struct weft_call *call)
{
    weft_call_init(call, tx->arena, all->refs ? WEFT_STMT_CHARGE_HEADS : WEFT_STMT_QUEUE_HEADS,
                   request->candidates);
    struct weft_queue_heads_in *in = weft_in_queue_heads(call);
    size_t asked = 0;
    for (size_t c = 0; c < request->candidates; c++) {
        const struct weft_candidate *candidate = &request->candidate[c];
        uint32_t depth = request->share[candidate->share].taken;
        if (depth == 0 && candidate->budgets > 0)
            depth = 1;
        if (candidate->empty || candidate->shut || depth == 0 || !goes_by_heads(request, candidate))
            continue;
        if (all->refs)
            depth += planned_before(all, request, candidate->queue);
        in->row[asked].queue = candidate->queue->id;
        in->row[asked++].depth = depth;
    }
    call->rows = asked;
    return asked > 0;
}

/* The heads of a tenant, in the order of their turns. */
static struct heads heads_of(struct weft_tx *tx, const struct weft_claiming *all,
                             const struct weft_claim_request *request, size_t t,
                             const struct weft_rows *rows)
{
    struct heads heads = {.head = weft_new_array(tx->arena, struct weft_head, rows->count + 1),
                          .ids = all->refs ? weft_out_charge_heads(rows) : NULL};
    uint32_t skip = 0;
    int32_t queue = 0;
    for (size_t i = 0; i < rows->count; i++) {
        struct weft_head head = {.row = i};
        if (all->refs) {
            head.queue = heads.ids[i].queue;
            head.priority = heads.ids[i].priority;
            head.ord = heads.ids[i].ord;
        } else {
            const struct weft_queue_heads_out *row = &weft_out_queue_heads(rows)[i];
            head.queue = row->queue;
            head.priority = row->priority;
            head.ord = row->ord;
        }
        const struct weft_queue *own = weft_find_queue(tx->engine, head.queue);
        if (head.queue != queue) {
            queue = head.queue;
            skip = all->refs ? planned_before(all, request, own) : 0;
        }
        if (skip > 0)
            skip--;
        else if (own->tenant == request->tenant[t].id)
            heads.head[heads.count++] = head;
    }
    weft_share_order(heads.head, heads.count);
    return heads;
}

/* Leaves out queues that are to get nothing in this round, and would not in the next. */
static void leave_out_closed(struct weft_claiming *all, struct weft_claim_request *request,
                             const struct weft_rows *rows)
{
    const struct weft_charge_heads_out *row = weft_out_charge_heads(rows);
    for (size_t c = 0; c < request->candidates; c++) {
        struct weft_candidate *candidate = &request->candidate[c];
        if (candidate->budgets == 0 || candidate->shut || candidate->empty ||
            request->share[candidate->share].taken > 0)
            continue;
        uint32_t skip = planned_before(all, request, candidate->queue);
        size_t i = 0;
        while (i < rows->count && (row[i].queue != candidate->queue->id || skip-- > 0))
            i++;
        if (i < rows->count)
            candidate->shut = !weft_claim_would_fit(all, candidate, &row[i].id);
        else
            candidate->empty = true;
    }
}

/* Looks at the heads of queues that go by them. */
static enum weft_rc plan_by_heads(struct weft_tx *tx, struct weft_claiming *all,
                                  struct weft_claim_request *request, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    if (!ask_for_heads(tx, all, request, &call))
        return WEFT_OK;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (!rc && all->refs)
        rc = weft_claim_read_heads(tx, all, &rows, err);
    bool asked[WEFT_CLAIM_QUEUES_MAX] = {false};
    for (size_t c = 0; c < request->candidates; c++)
        asked[request->candidate[c].share] |= goes_by_heads(request, &request->candidate[c]);
    for (size_t t = 0; t < request->tenants && !rc; t++) {
        if (!asked[t] || request->share[t].taken == 0)
            continue;
        struct heads heads = heads_of(tx, all, request, t, &rows);
        split_turns(all, request, t, &heads);
    }
    if (!rc && all->refs)
        leave_out_closed(all, request, &rows);
    return rc;
}

/* The room that the limits leave to a request: more turns would go by place, not by share. */
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
            sum += lane_room(all, candidate);
    }
    return sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
}

/* Decides how many rows a request takes from each queue in this round. */
static enum weft_rc plan_request(struct weft_tx *tx, struct weft_claiming *all,
                                 struct weft_claim_request *request, struct weft_err *err)
{
    uint32_t room[WEFT_CLAIM_QUEUES_MAX] = {0};
    for (size_t c = 0; c < request->candidates; c++) {
        struct weft_candidate *candidate = &request->candidate[c];
        candidate->take = 0;
        uint32_t more = candidate->empty || candidate->shut ? 0 : lane_room(all, candidate);
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
        if (!candidate->empty && !goes_by_heads(request, candidate)) {
            plan_take(all, candidate, share->taken);
            weft_share_refund(share, share->taken - candidate->take);
        }
    }
    return plan_by_heads(tx, all, request, err);
}

/* ---- The statement of a round ---------------------------------------------------------------- */

/* Two requests may want the same queue: the later one takes the places behind the earlier. */
static uint32_t places_before(const struct weft_want *want, size_t at)
{
    uint32_t before = 0;
    for (size_t i = 0; i < at; i++)
        if (want[i].candidate->queue == want[at].candidate->queue)
            before += want[i].candidate->take;
    return before;
}

/* Prepares claim_above when every want has a floor; otherwise NULL. */
static struct weft_claim_above_in *find_floors(struct weft_tx *tx, const struct weft_claiming *all,
                                               struct weft_call *call)
{
    const struct weft_want *want = all->want;
    struct weft_floors *floors = &tx->engine->floors;
    struct weft_floor floor;
    if (all->no_floors || !weft_floor_get(floors, want[0].candidate->queue->id, &floor))
        return NULL;
    struct weft_claim_above_in *in = weft_call_claim_above(call, tx->arena, all->wants);
    for (size_t i = 0; i < all->wants; i++) {
        if (!weft_floor_get(floors, want[i].candidate->queue->id, &floor))
            return NULL;
        in->row[i].floor_priority = floor.priority;
        in->row[i].floor_ord = floor.ord;
    }
    in->now = tx->now_us;
    return in;
}

static void claim_call(struct weft_tx *tx, struct weft_claiming *all, struct weft_call *call)
{
    const struct weft_want *want = all->want;
    all->asked_us = weft_boot_us();
    all->asked_at_us = weft_clock_now(tx->engine->clock);
    all->floor_tick = weft_floor_tick(&tx->engine->floors);
    struct weft_claim_above_in *above = find_floors(tx, all, call);
    struct weft_claim_in *plain = above ? NULL : weft_call_claim(call, tx->arena, all->wants);
    if (!above)
        plain->now = tx->now_us;
    all->above = above != NULL;
    for (size_t i = 0; i < all->wants; i++) {
        const struct weft_candidate *candidate = want[i].candidate;
        uint32_t skip = all->count > 1 ? places_before(want, i) : 0;
        *(above ? &above->row[i].take : &plain->row[i].take) = (struct weft_take_in){
            .want = (int64_t)i,
            .queue = candidate->queue->id,
            .lane = candidate->queue->lane,
            .counted = candidate->lane != WEFT_NO_LANE,
            .worker = want[i].request->worker,
            .lease = weft_unless_zero(want[i].request->claim->lease_ms * WEFT_MS),
            .skip = skip,
            .upto = skip + candidate->take,
            .bytes = (int64_t)all->share,
        };
    }
}

/* ---- Its rows -------------------------------------------------------------------------------- */

static void give(struct weft_claiming *all, struct weft_want *want, const struct weft_rows *rows,
                 size_t i)
{
    const struct weft_queue *queue = want->candidate->queue;
    const struct weft_claim_out *row = &weft_out_claim(rows)[i];
    const char *type = row->content_type;
    struct weft_claimed *item = &all->item[all->items++];
    *item = (struct weft_claimed){
        .id = row->id,
        .epoch = row->epoch,
        .attempt = row->attempt,
        .claim = (uint32_t)(want->request - all->request),
        .lane = queue->lane_name,
        .kind = queue->kind,
        .payload = row->payload.data,
        .payload_size = row->payload.size,
        .content_type = type ? type : "application/json",
        .priority = row->priority,
        .tenant = *queue->tenant_name ? queue->tenant_name : NULL,
        .created_us = row->created,
        .deadline_us = row->deadline.value,
        .attempt_deadline_us = row->attempt_deadline.value,
        .lease_expires_us = row->due,
        .flow = row->flow.value,
    };
    if (row->has & WEFT_HAS_RESUMPTION)
        weft_claim_add_resumed(all);
    if (all->refs > 0) {
        all->from[all->items - 1] = want->candidate;
        all->costs[all->items - 1] = row->has & WEFT_HAS_COST;
    }
    item->tags = weft_tags_parse(row->tags, all->out, &item->tag_count);
    size_t size = row->size;
    if (row->flow.set)
        weft_claim_add_member(all, size);
    all->bytes += size;
    if (all->largest <= size)
        all->largest = size + 1;
    want->bytes += size;
    want->got++;
    want->candidate->fruitful = true;
    if (want->candidate->lane != WEFT_NO_LANE)
        all->limit[want->candidate->lane].given++;
    want->request->left--;
}

/* A statement gives its rows in no particular order: puts them into that of their turns. */
static const struct weft_head *order_rows(const struct weft_rows *rows, struct weft_arena *arena)
{
    struct weft_head *order = weft_new_array(arena, struct weft_head, rows->count + 1);
    const struct weft_claim_out *row = weft_out_claim(rows);
    for (size_t i = 0; i < rows->count; i++)
        order[i] = (struct weft_head){
            .queue = row[i].queue, .priority = row[i].priority, .ord = row[i].ord, .row = i};
    weft_share_order(order, rows->count);
    return order;
}

/* Takes back turns that were planned and found no row, so that no tenant is charged for them. */
static void settle_round(struct weft_claiming *all)
{
    const struct weft_want *want = all->want;
    for (size_t i = 0; i < all->wants; i++) {
        struct weft_candidate *candidate = want[i].candidate;
        uint32_t missing = candidate->take - want[i].got;
        if (missing == 0)
            continue;
        all->no_floors |= all->above; /* once more, from the front */
        /* Only the first is sure to get a row: the others may have stopped for their share. */
        size_t next = all->largest ? all->largest : WEFT_PAYLOAD_MAX;
        bool nothing = want[0].got == 0 && candidate->queue == want[0].candidate->queue;
        candidate->empty = !all->above && (i == 0 || nothing || want[i].bytes + next <= all->share);
        weft_share_refund(&want[i].request->share[candidate->share], missing);
        if (candidate->lane != WEFT_NO_LANE && all->limit[candidate->lane].left != UINT32_MAX)
            all->limit[candidate->lane].left += missing;
    }
}

/* True when a request is short and one of its queues may have more. */
static bool may_have_more(const struct weft_claiming *all)
{
    for (size_t r = 0; r < all->count; r++)
        for (size_t c = 0; c < all->request[r].candidates && all->request[r].left > 0; c++)
            if (!all->request[r].candidate[c].empty && !all->request[r].candidate[c].shut &&
                lane_room(all, &all->request[r].candidate[c]) > 0)
                return true;
    return false;
}

enum weft_rc weft_claim_plan_round(struct weft_tx *tx, struct weft_claiming *all,
                                   struct weft_call *ret_call, struct weft_err *err)
{
    size_t candidates = 0;
    int64_t *reserved = all->refs ? weft_claim_plan_begins(tx, all) : NULL;
    all->more = false;
    all->wants = 0;
    for (size_t r = 0; r < all->count; r++) {
        enum weft_rc rc = plan_request(tx, all, &all->request[r], err);
        if (rc)
            return rc;
        candidates += all->request[r].candidates;
    }
    if (reserved)
        weft_claim_plan_ends(all, reserved);
    all->want = weft_new_array(tx->arena, struct weft_want, candidates + 1);
    for (size_t r = 0; r < all->count; r++)
        for (size_t c = 0; c < all->request[r].candidates; c++)
            if (all->request[r].candidate[c].take > 0)
                all->want[all->wants++] = (struct weft_want){
                    .request = &all->request[r], .candidate = &all->request[r].candidate[c]};
    if (all->wants == 0) {
        /* Turns that went to queues which a budget closes go to others in the next round. */
        all->more = all->refs > 0 && may_have_more(all);
        return WEFT_OK;
    }
    all->share = (WEFT_BATCH_BYTES - all->bytes) / all->wants;
    claim_call(tx, all, ret_call);
    return WEFT_OK;
}

/* Records where the rows that are left begin. */
static void note_floors(struct weft_engine *engine, const struct weft_claiming *all)
{
    weft_usec took_us = weft_boot_us() - all->asked_us;
    for (size_t i = 0; i < all->wants; i++) {
        const struct weft_want *want = &all->want[i];
        const struct weft_floor_claim claim = {.queue = want->candidate->queue->id,
                                               .above = all->above,
                                               .short_of = want->got < want->candidate->take,
                                               .got = want->got,
                                               .last = want->last,
                                               .tick = all->floor_tick,
                                               .began_us = all->asked_at_us,
                                               .took_us = took_us};
        weft_floor_claimed(&engine->floors, &claim);
    }
}

void weft_claim_drop_floors(struct weft_engine *engine, const struct weft_claiming *all)
{
    for (size_t r = 0; r < all->count; r++)
        for (size_t c = 0; c < all->request[r].candidates; c++)
            weft_floor_drop(&engine->floors, all->request[r].candidate[c].queue->id);
}

void weft_claim_take_round(struct weft_tx *tx, void *context, const struct weft_rows *rows)
{
    struct weft_claiming *all = context;
    const struct weft_head *order = order_rows(rows, tx->arena);
    for (size_t i = 0; i < rows->count; i++) {
        size_t row = order[i].row;
        struct weft_want *want = &all->want[weft_out_claim(rows)[row].want];
        want->last = (struct weft_floor){order[i].priority, order[i].ord};
        give(all, want, rows, row);
        struct weft_claimed *item = &all->item[all->items - 1];
        item->lease_ms = (item->lease_expires_us - tx->now_us) / WEFT_MS;
    }
    note_floors(tx->engine, all);
    settle_round(all);
    bool more = may_have_more(all), room = all->bytes + WEFT_PAYLOAD_MAX <= WEFT_BATCH_BYTES;
    all->contended |=
        more && !room && all->count > 1; /* another claim of the call may have got nothing for it */
    all->more = more && room;
}
