/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Claiming: from what a worker can do to the rows it gets.
 *
 * 1. The worker's lanes, kinds and capabilities select queues out of the list of those that had
 *    ready work (ready.c), at most 64, from a cursor that moves on with every claim.
 * 2. Lanes with a limit are locked (SKIP LOCKED) and their leases counted in a later statement.
 * 3. Tenants take weighted turns (core/share.h); within a tenant that has several of the queues, a
 *    look at their heads says how many to take from each.
 * 4. One statement locks and moves the rows. Queues that gave less than was hoped are dropped and
 *    what is left is shared out again, a bounded number of times.
 *
 * The list is only a hint and the settings may be stale: the statement checks pause and limit
 * again, and a claim that came up short looks at a fresh list once more before it gives up.
 */

#include "engine/engine.h"

#include "core/route.h"
#include "core/share.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 4 };

/* A queue that a claim may take from. */
struct candidate {
    const struct weft_queue *queue;
    size_t share;  /* index of its tenant */
    size_t lane;   /* index of its lane's limit, or NO_LANE */
    uint32_t take; /* planned for this round */
    bool empty;    /* gave less than planned: nothing more to get */
};
#define NO_LANE SIZE_MAX

/* A lane with a limit, under lock in this transaction. */
struct limited {
    int32_t lane;
    uint32_t left; /* room for so many more leases */
};

struct tenant {
    int32_t id;
    uint32_t queues; /* how many candidates are its */
};

/* One claim of the call. */
struct request {
    const struct weft_claim *claim;
    int32_t ns;
    int32_t worker;
    const char *route; /* canonical capabilities */
    uint32_t left;     /* how many it may still get */
    struct candidate candidate[WEFT_CLAIM_QUEUES_MAX];
    size_t candidates;
    struct tenant tenant[WEFT_CLAIM_QUEUES_MAX];
    struct weft_share share[WEFT_CLAIM_QUEUES_MAX];
    size_t tenants;
};

/* The whole call. */
struct claiming {
    struct request *request;
    size_t count;
    struct limited *limit;
    size_t limits;
    struct weft_arena *out; /* for what is given back */
    struct weft_claimed *item;
    size_t items, items_max;
    size_t bytes;   /* of the payloads in item */
    size_t share;   /* of what is left of WEFT_BATCH_BYTES, for each want of the round */
    size_t largest; /* payload so far; 0: none was seen */
    bool contended;
};

/* ---- Arguments ------------------------------------------------------------------------------- */

static enum weft_rc check_names(const char *const *name, size_t count, size_t max,
                                const char *field, struct weft_err *err)
{
    if (count > max)
        return weft_fail_field(err, WEFT_TOO_LARGE, field, "%zu %s, at most %zu are allowed", count,
                               field, max);
    for (size_t i = 0; i < count; i++) {
        enum weft_rc rc = weft_name_check(name[i], field, err);
        if (rc)
            return rc;
    }
    return WEFT_OK;
}

static enum weft_rc check_claim(const struct weft_claim *claim, struct weft_err *err)
{
    enum weft_rc rc = weft_name_check(claim->worker, "worker", err);
    if (!rc)
        rc = check_names(claim->lanes, claim->lane_count, WEFT_CLAIM_LANES_MAX, "lanes", err);
    if (!rc)
        rc = check_names(claim->kinds, claim->kind_count, WEFT_CLAIM_KINDS_MAX, "kinds", err);
    if (rc)
        return rc;
    if (claim->max > WEFT_BATCH_MAX)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "max", "max is %u, allowed are 1 to %d",
                               claim->max, WEFT_BATCH_MAX);
    if (claim->lease_ms != 0 &&
        (claim->lease_ms < WEFT_LEASE_MIN_MS || claim->lease_ms > WEFT_LEASE_MAX_MS))
        return weft_fail_field(err, WEFT_INVALID_VALUE, "lease_ms",
                               "lease_ms is %lld, allowed are %d to %d", (long long)claim->lease_ms,
                               WEFT_LEASE_MIN_MS, WEFT_LEASE_MAX_MS);
    return WEFT_OK;
}

static enum weft_rc prepare(struct weft_engine *engine, const char *ns, struct request *request,
                            struct weft_arena *arena, struct weft_err *err)
{
    const struct weft_claim *claim = request->claim;
    enum weft_rc rc = check_claim(claim, err);
    if (!rc)
        rc = weft_name_check(claim->ns ? claim->ns : ns, "namespace", err);
    if (!rc)
        rc = weft_route_text(claim->capabilities, claim->capability_count, arena, &request->route,
                             err);
    if (rc)
        return rc;
    request->left = claim->max ? claim->max : 1;
    struct weft_name_want space = {.sort = WEFT_NAME_NAMESPACE, .text = claim->ns ? claim->ns : ns};
    rc = weft_intern_names(engine, true, &space, 1, err);
    if (rc)
        return rc;
    struct weft_name_want worker = {
        .sort = WEFT_NAME_WORKER, .ns = space.id, .text = claim->worker};
    rc = weft_intern_names(engine, true, &worker, 1, err);
    request->ns = space.id;
    request->worker = worker.id;
    return rc;
}

/* ---- Which queues ---------------------------------------------------------------------------- */

static bool named(const char *const *name, size_t count, const char *wanted)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name[i], wanted) == 0)
            return true;
    return false;
}

static bool can_serve(const struct request *request, const struct weft_queue *queue)
{
    const struct weft_claim *claim = request->claim;
    static const char *const default_lane[] = {"default"};
    const char *const *lanes = claim->lane_count ? claim->lanes : default_lane;
    return queue->ns == request->ns &&
           named(lanes, claim->lane_count ? claim->lane_count : 1, queue->lane_name) &&
           (claim->kind_count == 0 || named(claim->kinds, claim->kind_count, queue->kind)) &&
           weft_route_fits(queue->route_text, request->route);
}

static int by_lane(const void *key, const void *member)
{
    int32_t lane = *(const int32_t *)key, other = ((const struct weft_lane_setting *)member)->lane;
    return (lane > other) - (lane < other);
}

static const struct weft_lane_setting *setting_of(const struct weft_ready *ready, int32_t lane)
{
    return ready->lane_count == 0
               ? NULL
               : bsearch(&lane, ready->lane, ready->lane_count, sizeof(*ready->lane), by_lane);
}

/* The weight of a tenant in a lane; the JSON was checked when it was put. */
static double weight_of(const struct weft_lane_setting *setting, const char *tenant)
{
    struct weft_json weights;
    if (!setting || !setting->weights ||
        weft_json_check(setting->weights, strlen(setting->weights), &weights, NULL))
        return 1;
    struct weft_json_iter member;
    weft_json_iter_init(&member, &weights);
    while (weft_json_next(&member)) {
        int64_t weight;
        if (weft_json_is(&member.key, tenant) && weft_json_i64(&member.value, &weight))
            return (double)weight;
    }
    return 1;
}

static int by_tenant(const void *key, const void *member)
{
    int32_t tenant = *(const int32_t *)key, other = ((const struct weft_turn *)member)->tenant;
    return (tenant > other) - (tenant < other);
}

/* Where a tenant's pass is kept between claims; made when it is new. Under ready.lock. */
static struct weft_turn *turn_of(struct weft_ready *ready, int32_t tenant)
{
    struct weft_turn *turn =
        ready->turn_count == 0
            ? NULL
            : bsearch(&tenant, ready->turn, ready->turn_count, sizeof(*ready->turn), by_tenant);
    if (turn)
        return turn;
    if (ready->turn_count == ready->turn_capacity) {
        ready->turn_capacity = ready->turn_capacity ? ready->turn_capacity * 2 : 16;
        ready->turn = realloc(ready->turn, ready->turn_capacity * sizeof(*ready->turn));
        if (!ready->turn)
            weft_oom(ready->turn_capacity * sizeof(*ready->turn));
    }
    size_t at = ready->turn_count++;
    while (at > 0 && ready->turn[at - 1].tenant > tenant) {
        ready->turn[at] = ready->turn[at - 1];
        at--;
    }
    ready->turn[at] = (struct weft_turn){.tenant = tenant};
    return &ready->turn[at];
}

static void add_candidate(struct claiming *all, struct request *request,
                          const struct weft_ready *ready, const struct weft_queue *queue)
{
    const struct weft_lane_setting *setting = setting_of(ready, queue->lane);
    struct candidate *next = &request->candidate[request->candidates++];
    *next = (struct candidate){.queue = queue, .lane = NO_LANE};
    while (next->share < request->tenants && request->tenant[next->share].id != queue->tenant)
        next->share++;
    if (next->share == request->tenants) {
        request->tenant[request->tenants] = (struct tenant){.id = queue->tenant};
        request->share[request->tenants++] =
            (struct weft_share){.weight = weight_of(setting, queue->tenant_name)};
    }
    request->tenant[next->share].queues++;
    if (!setting || setting->max_running == 0)
        return;
    for (next->lane = 0; next->lane < all->limits; next->lane++)
        if (all->limit[next->lane].lane == queue->lane)
            return;
    all->limit[all->limits++] = (struct limited){.lane = queue->lane};
}

/* Fills in the candidates of a request from the list as it is now. */
static void choose_queues(struct weft_engine *engine, struct claiming *all, struct request *request)
{
    struct weft_ready *ready = &engine->ready;
    request->candidates = request->tenants = 0;
    pthread_mutex_lock(&ready->lock);
    size_t start = ready->count ? ready->cursor++ % ready->count : 0;
    for (size_t i = 0; i < ready->count && request->candidates < WEFT_CLAIM_QUEUES_MAX; i++) {
        const struct weft_queue *queue =
            weft_find_queue(engine, ready->queue[(start + i) % ready->count]);
        const struct weft_lane_setting *setting = queue ? setting_of(ready, queue->lane) : NULL;
        /* A paused lane must not take the turns of those that have work to give. */
        if (queue && can_serve(request, queue) && !(setting && setting->paused))
            add_candidate(all, request, ready, queue);
    }
    /* Somebody who was away starts where those who stayed are: the lowest pass of the present. */
    double low = 0, high = 0;
    for (size_t t = 0; t < request->tenants; t++) {
        request->share[t].pass = turn_of(ready, request->tenant[t].id)->pass;
        if (request->share[t].pass > 0 && (low == 0 || request->share[t].pass < low))
            low = request->share[t].pass;
        if (request->share[t].pass - 1 > high)
            high = request->share[t].pass - 1;
    }
    /* Those who always had work are less than a turn apart: whoever is further behind was away. */
    if (low < high)
        low = high;
    for (size_t t = 0; t < request->tenants; t++)
        if (request->share[t].pass < low)
            request->share[t].pass = low;
    pthread_mutex_unlock(&ready->lock);
}

static void keep_turns(struct weft_engine *engine, const struct request *request)
{
    struct weft_ready *ready = &engine->ready;
    pthread_mutex_lock(&ready->lock);
    for (size_t t = 0; t < request->tenants; t++) {
        struct weft_turn *turn = turn_of(ready, request->tenant[t].id);
        if (request->share[t].pass > turn->pass)
            turn->pass = request->share[t].pass;
    }
    pthread_mutex_unlock(&ready->lock);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

/* How many more a lane may have running: its limit less its leases. */
static uint32_t room_in(const struct weft_rows *running, int32_t lane, int64_t most)
{
    if (most == 0)
        return UINT32_MAX; /* the limit was lifted */
    for (size_t i = 0; i < running->count; i++) {
        int64_t now = weft_get_i64(running, i, LANE_RUNNING_OUT_RUNNING);
        if (weft_get_i64(running, i, LANE_RUNNING_OUT_LANE) == lane && now < most)
            return (uint32_t)(most - now);
    }
    return 0;
}

/* Locks the lanes that have a limit, then counts their leases with a snapshot from after that. */
static enum weft_rc lock_lanes(struct weft_tx *tx, struct claiming *all, struct weft_err *err)
{
    struct weft_call lock, count;
    struct weft_rows locked, running;
    weft_call_init(&lock, tx->arena, WEFT_STMT_LANE_LOCK, all->limits);
    for (size_t i = 0; i < all->limits; i++) {
        all->limit[i].left = 0; /* a lane that somebody else holds gives nothing */
        weft_set_i64(&lock, i, LANE_LOCK_IN_LANE, all->limit[i].lane);
    }
    enum weft_rc rc = weft_tx_run(tx, &lock, 1, &locked, err);
    if (rc)
        return rc;
    all->contended = locked.count < all->limits;
    weft_call_init(&count, tx->arena, WEFT_STMT_LANE_RUNNING, locked.count);
    for (size_t i = 0; i < locked.count; i++)
        weft_set_i64(&count, i, LANE_RUNNING_IN_LANE, weft_get_i64(&locked, i, LANE_LOCK_OUT_LANE));
    rc = weft_tx_run(tx, &count, 1, &running, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < all->limits; i++)
        for (size_t k = 0; k < locked.count; k++)
            if (weft_get_i64(&locked, k, LANE_LOCK_OUT_LANE) == all->limit[i].lane)
                all->limit[i].left = room_in(&running, all->limit[i].lane,
                                             weft_get_i64(&locked, k, LANE_LOCK_OUT_MAX_RUNNING));
    /* The leases counted as gone ended before this moment: starts and ends never overlap. */
    tx->now_us = weft_clock_now(tx->engine->clock);
    return WEFT_OK;
}

/* ---- The plan of a round --------------------------------------------------------------------- */

static uint32_t lane_room(const struct claiming *all, const struct candidate *candidate)
{
    return candidate->lane == NO_LANE ? UINT32_MAX : all->limit[candidate->lane].left;
}

static void plan_take(struct claiming *all, struct candidate *candidate, uint32_t wanted)
{
    uint32_t room = lane_room(all, candidate);
    uint32_t more = wanted < room ? wanted : room;
    candidate->take += more;
    if (candidate->lane != NO_LANE)
        all->limit[candidate->lane].left -= more;
}

/*
 * Gives a tenant's turns to its queues by what is at their heads. Turns that no head could use are
 * not charged, and say that the tenant has nothing beyond this round.
 */
static void split_turns(struct claiming *all, struct request *request, size_t t,
                        const struct weft_head *head, size_t heads)
{
    uint32_t turns = request->share[t].taken;
    for (size_t h = 0; h < heads && turns > 0; h++)
        for (size_t c = 0; c < request->candidates; c++) {
            struct candidate *candidate = &request->candidate[c];
            if (candidate->share != t || candidate->queue->id != head[h].queue ||
                lane_room(all, candidate) == 0)
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
static enum weft_rc plan_by_heads(struct weft_tx *tx, struct claiming *all, struct request *request,
                                  struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, tx->arena, WEFT_STMT_QUEUE_HEADS, request->candidates);
    size_t asked = 0;
    for (size_t c = 0; c < request->candidates; c++) {
        const struct candidate *candidate = &request->candidate[c];
        uint32_t depth = request->share[candidate->share].taken;
        if (candidate->empty || depth == 0 || request->tenant[candidate->share].queues < 2)
            continue;
        weft_set_i64(&call, asked, QUEUE_HEADS_IN_QUEUE, candidate->queue->id);
        weft_set_i64(&call, asked++, QUEUE_HEADS_IN_DEPTH, depth);
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
            int32_t id = (int32_t)weft_get_i64(&rows, i, QUEUE_HEADS_OUT_QUEUE);
            if (weft_find_queue(tx->engine, id)->tenant == request->tenant[t].id)
                head[heads++] = (struct weft_head){
                    .queue = id,
                    .priority = (int32_t)weft_get_i64(&rows, i, QUEUE_HEADS_OUT_PRIORITY),
                    .ord = weft_get_i64(&rows, i, QUEUE_HEADS_OUT_ORD),
                };
        }
        weft_share_order(head, heads);
        split_turns(all, request, t, head, heads);
    }
    return WEFT_OK;
}

/* What the limits leave to a request: more turns than that would go by place, not by share. */
static uint32_t room_of_all(const struct claiming *all, const struct request *request)
{
    uint64_t sum = 0;
    for (size_t c = 0; c < request->candidates; c++) {
        const struct candidate *candidate = &request->candidate[c];
        size_t before = 0;
        while (before < c && (request->candidate[before].empty ||
                              request->candidate[before].lane != candidate->lane))
            before++;
        if (!candidate->empty && before == c)
            sum += lane_room(all, candidate);
    }
    return sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
}

/* Decides how many rows to take from each queue in this round. */
static enum weft_rc plan(struct weft_tx *tx, struct claiming *all, struct request *request,
                         struct weft_err *err)
{
    uint32_t room[WEFT_CLAIM_QUEUES_MAX] = {0};
    for (size_t c = 0; c < request->candidates; c++) {
        struct candidate *candidate = &request->candidate[c];
        candidate->take = 0;
        uint32_t more = candidate->empty ? 0 : lane_room(all, candidate);
        uint32_t *sum = &room[candidate->share];
        *sum = *sum > UINT32_MAX - more ? UINT32_MAX : *sum + more;
    }
    for (size_t t = 0; t < request->tenants; t++)
        request->share[t].most = room[t];
    uint32_t most = room_of_all(all, request);
    weft_share_turns(request->share, request->tenants, most < request->left ? most : request->left);
    for (size_t c = 0; c < request->candidates; c++) {
        struct candidate *candidate = &request->candidate[c];
        struct weft_share *share = &request->share[candidate->share];
        if (!candidate->empty && request->tenant[candidate->share].queues == 1) {
            plan_take(all, candidate, share->taken);
            weft_share_refund(share, share->taken - candidate->take);
        }
    }
    return plan_by_heads(tx, all, request, err);
}

/* ---- Taking ---------------------------------------------------------------------------------- */

/* The want rows of a round: which request and candidate each belongs to. */
struct want {
    struct request *request;
    struct candidate *candidate;
    uint32_t got;
    size_t bytes;
};

static size_t list_wants(struct claiming *all, struct want *want)
{
    size_t count = 0;
    for (size_t r = 0; r < all->count; r++)
        for (size_t c = 0; c < all->request[r].candidates; c++)
            if (all->request[r].candidate[c].take > 0)
                want[count++] = (struct want){.request = &all->request[r],
                                              .candidate = &all->request[r].candidate[c]};
    return count;
}

/* Two requests may want the same queue: the later one takes the places behind the earlier. */
static uint32_t places_before(const struct want *want, size_t at)
{
    uint32_t before = 0;
    for (size_t i = 0; i < at; i++)
        if (want[i].candidate->queue == want[at].candidate->queue)
            before += want[i].candidate->take;
    return before;
}

static void claim_call(struct weft_tx *tx, const struct claiming *all, const struct want *want,
                       size_t count, struct weft_call *call)
{
    weft_call_init(call, tx->arena, WEFT_STMT_CLAIM, count);
    weft_set_i64(call, 0, CLAIM_IN_NOW, tx->now_us);
    for (size_t i = 0; i < count; i++) {
        const struct candidate *candidate = want[i].candidate;
        uint32_t skip = all->count > 1 ? places_before(want, i) : 0;
        weft_set_i64(call, i, CLAIM_IN_WANT, (int64_t)i);
        weft_set_i64(call, i, CLAIM_IN_QUEUE, candidate->queue->id);
        weft_set_i64(call, i, CLAIM_IN_LANE, candidate->queue->lane);
        weft_set_i64(call, i, CLAIM_IN_COUNTED, candidate->lane != NO_LANE);
        weft_set_i64(call, i, CLAIM_IN_WORKER, want[i].request->worker);
        if (want[i].request->claim->lease_ms)
            weft_set_i64(call, i, CLAIM_IN_LEASE, want[i].request->claim->lease_ms * WEFT_MS);
        weft_set_i64(call, i, CLAIM_IN_SKIP, skip);
        weft_set_i64(call, i, CLAIM_IN_UPTO, skip + candidate->take);
        weft_set_i64(call, i, CLAIM_IN_BYTES, (int64_t)all->share);
    }
}

static void give(struct claiming *all, struct want *want, const struct weft_rows *rows, size_t i)
{
    const struct weft_queue *queue = want->candidate->queue;
    const struct weft_cell *payload = weft_get(rows, i, CLAIM_OUT_PAYLOAD);
    const char *type = weft_get_text(rows, i, CLAIM_OUT_CONTENT_TYPE);
    struct weft_claimed *item = &all->item[all->items++];
    *item = (struct weft_claimed){
        .id = weft_get_id(rows, i, CLAIM_OUT_ID),
        .epoch = (int32_t)weft_get_i64(rows, i, CLAIM_OUT_EPOCH),
        .attempt = (int32_t)weft_get_i64(rows, i, CLAIM_OUT_ATTEMPT),
        .claim = (uint32_t)(want->request - all->request),
        .lane = queue->lane_name,
        .kind = queue->kind,
        .payload = payload->null ? NULL : payload->data,
        .payload_size = payload->null ? 0 : payload->size,
        .content_type = type ? type : "application/json",
        .priority = (int32_t)weft_get_i64(rows, i, CLAIM_OUT_PRIORITY),
        .tenant = *queue->tenant_name ? queue->tenant_name : NULL,
        .created_us = weft_get_i64(rows, i, CLAIM_OUT_CREATED),
        .deadline_us = weft_get_i64(rows, i, CLAIM_OUT_DEADLINE),
        .lease_expires_us = weft_get_i64(rows, i, CLAIM_OUT_DUE),
    };
    item->tags =
        weft_tags_parse(weft_get_text(rows, i, CLAIM_OUT_TAGS), all->out, &item->tag_count);
    all->bytes += item->payload_size;
    if (all->largest <= item->payload_size)
        all->largest = item->payload_size + 1;
    want->bytes += item->payload_size;
    want->got++;
    want->request->left--;
}

/* A statement gives its rows in no particular order: puts them into that of their turns. */
static const struct weft_head *order_rows(const struct weft_rows *rows, struct weft_arena *arena)
{
    struct weft_head *order = weft_new_array(arena, struct weft_head, rows->count + 1);
    for (size_t i = 0; i < rows->count; i++)
        order[i] = (struct weft_head){
            .queue = (int32_t)weft_get_i64(rows, i, CLAIM_OUT_QUEUE),
            .priority = (int32_t)weft_get_i64(rows, i, CLAIM_OUT_PRIORITY),
            .ord = weft_get_i64(rows, i, CLAIM_OUT_ORD),
            .row = i,
        };
    weft_share_order(order, rows->count);
    return order;
}

/* Takes back what was planned and not found, so that nobody is charged for it. */
static void settle_round(struct claiming *all, struct want *want, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct candidate *candidate = want[i].candidate;
        uint32_t missing = candidate->take - want[i].got;
        if (missing == 0)
            continue;
        /* Only the first is sure to get a row: the others may have stopped for their share. */
        size_t next = all->largest ? all->largest : WEFT_PAYLOAD_MAX;
        candidate->empty = i == 0 || want[i].bytes + next <= all->share;
        weft_share_refund(&want[i].request->share[candidate->share], missing);
        if (candidate->lane != NO_LANE && all->limit[candidate->lane].left != UINT32_MAX)
            all->limit[candidate->lane].left += missing;
    }
}

/* True when somebody is short and one of its queues may have more, whatever this round brought. */
static bool may_have_more(const struct claiming *all)
{
    for (size_t r = 0; r < all->count; r++)
        for (size_t c = 0; c < all->request[r].candidates && all->request[r].left > 0; c++)
            if (!all->request[r].candidate[c].empty &&
                lane_room(all, &all->request[r].candidate[c]) > 0)
                return true;
    return false;
}

/* One round: plan, take, settle. *ret_more: somebody is short and some queue may have more. */
static enum weft_rc run_round(struct weft_tx *tx, struct claiming *all, bool *ret_more,
                              struct weft_err *err)
{
    *ret_more = false;
    for (size_t r = 0; r < all->count; r++) {
        enum weft_rc rc = plan(tx, all, &all->request[r], err);
        if (rc)
            return rc;
    }
    struct want *want =
        weft_new_array(tx->arena, struct want, all->count * WEFT_CLAIM_QUEUES_MAX + 1);
    size_t count = list_wants(all, want);
    if (count == 0)
        return WEFT_OK;
    struct weft_call call;
    struct weft_rows rows;
    all->share = (WEFT_BATCH_BYTES - all->bytes) / count;
    claim_call(tx, all, want, count, &call);
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc)
        return rc;
    const struct weft_head *order = order_rows(&rows, tx->arena);
    for (size_t i = 0; i < rows.count; i++) {
        size_t row = order[i].row;
        give(all, &want[weft_get_i64(&rows, row, CLAIM_OUT_WANT)], &rows, row);
    }
    settle_round(all, want, count);
    *ret_more = may_have_more(all) && all->bytes + WEFT_PAYLOAD_MAX <= WEFT_BATCH_BYTES;
    return WEFT_OK;
}

static enum weft_rc claim_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct claiming *all = context;
    all->items = all->bytes = all->largest = 0;
    all->contended = false;
    all->limits = 0;
    weft_arena_reset(all->out);
    all->item = weft_new_array(all->out, struct weft_claimed, all->items_max + 1);
    for (size_t r = 0; r < all->count; r++) {
        struct request *request = &all->request[r];
        request->left = request->claim->max ? request->claim->max : 1;
        choose_queues(tx->engine, all, request);
    }
    enum weft_rc rc = all->limits ? lock_lanes(tx, all, err) : WEFT_OK;
    bool more = true;
    for (int round = 0; round < ROUNDS_MAX && more && !rc; round++)
        rc = run_round(tx, all, &more, err);
    return rc;
}

/* What the list holds for the claims of this call. */
struct listed {
    bool any;    /* a queue for somebody: without one no transaction need be opened */
    bool paused; /* one of them is in a lane that was paused when the settings were read */
};

static struct listed look_at_list(struct weft_engine *engine, const struct claiming *all)
{
    struct weft_ready *ready = &engine->ready;
    struct listed found = {0};
    pthread_mutex_lock(&ready->lock);
    for (size_t i = 0; i < ready->count && !(found.any && found.paused); i++) {
        const struct weft_queue *queue = weft_find_queue(engine, ready->queue[i]);
        bool fits = false;
        for (size_t r = 0; r < all->count && queue && !fits; r++)
            fits = can_serve(&all->request[r], queue);
        if (!fits)
            continue;
        const struct weft_lane_setting *setting = setting_of(ready, queue->lane);
        found.any = true;
        found.paused |= setting && setting->paused;
    }
    pthread_mutex_unlock(&ready->lock);
    return found;
}

static enum weft_rc claim_listed(struct weft_engine *engine, struct claiming *all,
                                 struct weft_err *err)
{
    struct listed listed = look_at_list(engine, all);
    if (!listed.any)
        return WEFT_OK;
    /* The end of a pause must hold at once, and the claim leaves paused lanes out: look again. */
    if (listed.paused) {
        enum weft_rc rc = weft_ready_refresh_lanes(engine, err);
        if (rc)
            return rc;
    }
    struct weft_tx tx = {.engine = engine, .arena = all->out};
    return weft_tx_do(&tx, WEFT_TX_WRITE, claim_body, all, err);
}

static enum weft_rc claim_all(struct weft_engine *engine, struct claiming *all,
                              struct weft_err *err)
{
    bool fresh = weft_ready_is_old(engine);
    enum weft_rc rc = fresh ? weft_ready_refresh(engine, err) : WEFT_OK;
    if (!rc)
        rc = claim_listed(engine, all, err);
    /* Nothing at all under an older list may only mean that the list is old. */
    if (!rc && all->items == 0 && !fresh && weft_ready_may_refresh(engine)) {
        rc = weft_ready_refresh(engine, err);
        if (!rc)
            rc = claim_listed(engine, all, err);
    }
    for (size_t r = 0; r < all->count && !rc; r++)
        keep_turns(engine, &all->request[r]);
    return rc;
}

enum weft_rc weft_engine_claim(struct weft_engine *engine, const char *ns,
                               const struct weft_claim *claim, size_t count,
                               struct weft_arena *arena, struct weft_claim_result *ret_result,
                               struct weft_err *err)
{
    struct weft_arena *scratch = weft_arena_new();
    struct claiming all = {.count = count, .out = arena};
    all.request = weft_new_array(scratch, struct request, count + 1);
    all.limit = weft_new_array(scratch, struct limited, count * WEFT_CLAIM_QUEUES_MAX + 1);
    enum weft_rc rc = WEFT_OK;
    for (size_t r = 0; r < count && !rc; r++) {
        all.request[r].claim = &claim[r];
        rc = prepare(engine, ns, &all.request[r], scratch, err);
        all.items_max += all.request[r].left;
    }
    if (!rc && all.items_max > WEFT_BATCH_MAX)
        rc = weft_fail_field(err, WEFT_TOO_LARGE, "max",
                             "the claims of one call ask for %zu, at most %d are allowed",
                             all.items_max, WEFT_BATCH_MAX);
    if (!rc)
        rc = claim_all(engine, &all, err);
    if (!rc)
        *ret_result = (struct weft_claim_result){
            .item = all.item, .count = all.items, .contended = all.contended};
    weft_arena_free(scratch);
    return rc;
}
