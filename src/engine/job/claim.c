/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Claiming: from what a worker can do to the rows it gets.
 *
 * 1. The worker's lanes, kinds and capabilities select queues out of the list of those that had
 *    ready work (ready.c), at most 64, tenant by tenant (claim_choose.c).
 * 2. Lanes with a limit are locked (SKIP LOCKED) and their leases counted in a later statement.
 * 3. Tenants take weighted turns (core/share.h); within a tenant that has several of the queues, a
 *    look at their heads says how many to take from each.
 * 4. One statement locks and moves the rows. Queues that gave less than was hoped are dropped and
 *    what is left is shared out again, a bounded number of times.
 *
 * The list is only a hint and the settings may be stale: the statement checks pause and limit
 * again, and a claim that came up short looks at a fresh list once more before it gives up.
 */

#include "engine/job/claim.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "core/share.h"
#include "core/spec.h"
#include "engine/engine_state.h"
#include "engine/job/claim_choose.h"
#include "engine/job/claim_plan.h"
#include "engine/job/claim_state.h"
#include "engine/job/claim_upstreams.h"
#include "engine/job/joint.h"
#include "engine/job/leases.h"

#include <string.h>

enum {
    ROUNDS_MAX = 4,
    LONG_OFFER = 8,    /* capabilities; more are searched, not walked through */
    WALK_MAX = 64,     /* times 64 queues that turn out to be empty */
    RENEWALS_MAX = 16, /* of the list, while the queues of a lane have not all been seen */
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
    return weft_lease_ms_check(claim->lease_ms, err);
}

enum weft_rc weft_engine_claim_check(const struct weft_claim *claim, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    const char *capset;
    enum weft_rc rc = check_claim(claim, err);
    if (!rc && claim->ns)
        rc = weft_name_check(claim->ns, "namespace", err);
    if (!rc)
        rc = weft_capset_text(claim->capabilities, claim->capability_count, arena, &capset, err);
    weft_arena_free(arena);
    return rc;
}

static enum weft_rc prepare(struct weft_engine *engine, const char *ns,
                            struct weft_claim_request *request, struct weft_arena *arena,
                            struct weft_err *err)
{
    const struct weft_claim *claim = request->claim;
    enum weft_rc rc = check_claim(claim, err);
    if (!rc)
        rc = weft_name_check(claim->ns ? claim->ns : ns, "namespace", err);
    if (!rc)
        rc = weft_capset_text(claim->capabilities, claim->capability_count, arena, &request->capset,
                              err);
    if (rc)
        return rc;
    request->offer = weft_new(arena, struct weft_capset_offer);
    weft_capset_offer(request->capset, request->offer);
    if (claim->capability_count > LONG_OFFER)
        request->offered = weft_capset_split(request->capset, arena, &request->offers);
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

/* ---- Taking ---------------------------------------------------------------------------------- */

static size_t list_wants(struct weft_claiming *all, struct weft_want *want)
{
    size_t count = 0;
    for (size_t r = 0; r < all->count; r++)
        for (size_t c = 0; c < all->request[r].candidates; c++)
            if (all->request[r].candidate[c].take > 0)
                want[count++] = (struct weft_want){.request = &all->request[r],
                                                   .candidate = &all->request[r].candidate[c]};
    return count;
}

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
                                               const struct weft_want *want, size_t count,
                                               struct weft_call *call)
{
    struct weft_floors *floors = &tx->engine->floors;
    struct weft_floor floor;
    if (all->no_floors || !weft_floor_get(floors, want[0].candidate->queue->id, &floor))
        return NULL;
    struct weft_claim_above_in *in = weft_call_claim_above(call, tx->arena, count);
    for (size_t i = 0; i < count; i++) {
        if (!weft_floor_get(floors, want[i].candidate->queue->id, &floor))
            return NULL;
        in->row[i].floor_priority = floor.priority;
        in->row[i].floor_ord = floor.ord;
    }
    in->now = tx->now_us;
    return in;
}

static void claim_call(struct weft_tx *tx, struct weft_claiming *all, const struct weft_want *want,
                       size_t count, struct weft_call *call)
{
    all->asked_us = weft_boot_us();
    all->asked_at_us = weft_clock_now(tx->engine->clock);
    all->floor_tick = weft_floor_tick(&tx->engine->floors);
    struct weft_claim_above_in *above = find_floors(tx, all, want, count, call);
    struct weft_claim_in *plain = above ? NULL : weft_call_claim(call, tx->arena, count);
    if (plain)
        plain->now = tx->now_us;
    all->above = above != NULL;
    for (size_t i = 0; i < count; i++) {
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
        .lease_expires_us = row->due,
        .flow = row->flow.value,
    };
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
    want->request->left--;
}

/* A statement gives its rows in no particular order: puts them into that of their turns. */
static const struct weft_head *order_rows(const struct weft_rows *rows, struct weft_arena *arena)
{
    struct weft_head *order = weft_new_array(arena, struct weft_head, rows->count + 1);
    const struct weft_claim_out *row = weft_out_claim(rows);
    for (size_t i = 0; i < rows->count; i++)
        order[i] = (struct weft_head){
            .queue = row[i].queue,
            .priority = row[i].priority,
            .ord = row[i].ord,
            .row = i,
        };
    weft_share_order(order, rows->count);
    return order;
}

/* Takes back what was planned and not found, so that nobody is charged for it. */
static void settle_round(struct weft_claiming *all, struct weft_want *want, size_t count)
{
    for (size_t i = 0; i < count; i++) {
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

/* True when a request is short and one of its queues may have more, whatever this round brought. */
static bool may_have_more(const struct weft_claiming *all)
{
    for (size_t r = 0; r < all->count; r++)
        for (size_t c = 0; c < all->request[r].candidates && all->request[r].left > 0; c++)
            if (!all->request[r].candidate[c].empty &&
                weft_claim_lane_room(all, &all->request[r].candidate[c]) > 0)
                return true;
    return false;
}

/* Plans a round and writes its statement, unless nothing is wanted. */
static enum weft_rc plan_round(struct weft_tx *tx, struct weft_claiming *all,
                               struct weft_call *ret_call, struct weft_err *err)
{
    size_t candidates = 0;
    all->more = false;
    all->wants = 0;
    for (size_t r = 0; r < all->count; r++) {
        enum weft_rc rc = weft_claim_plan(tx, all, &all->request[r], err);
        if (rc)
            return rc;
        candidates += all->request[r].candidates;
    }
    all->want = weft_new_array(tx->arena, struct weft_want, candidates + 1);
    all->wants = list_wants(all, all->want);
    if (all->wants == 0)
        return WEFT_OK;
    all->share = (WEFT_BATCH_BYTES - all->bytes) / all->wants;
    claim_call(tx, all, all->want, all->wants, ret_call);
    return WEFT_OK;
}

/* Tells where the rows that are left begin. */
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

/* What this call had locked may be ready again: others may have moved floors past it. */
static void drop_floors(struct weft_engine *engine, const struct weft_claiming *all)
{
    for (size_t r = 0; r < all->count; r++)
        for (size_t c = 0; c < all->request[r].candidates; c++)
            weft_floor_drop(&engine->floors, all->request[r].candidate[c].queue->id);
}

/* Gives what the statement of a round brought, and settles. */
static void take_round(struct weft_tx *tx, struct weft_claiming *all, const struct weft_rows *rows)
{
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
    settle_round(all, all->want, all->wants);
    bool more = may_have_more(all), room = all->bytes + WEFT_PAYLOAD_MAX <= WEFT_BATCH_BYTES;
    all->contended |= more && !room && all->count > 1; /* somebody may have gone without for it */
    all->more = more && room;
}

/* One round. last: COMMIT goes with it. */
static enum weft_rc run_round(struct weft_tx *tx, struct weft_claiming *all, bool last,
                              struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    enum weft_rc rc = plan_round(tx, all, &call, err);
    if (rc || all->wants == 0)
        return rc;
    rc = last ? weft_tx_last(tx, &call, 1, &rows, err) : weft_tx_run(tx, &call, 1, &rows, err);
    if (!rc)
        take_round(tx, all, &rows);
    return rc;
}

static enum weft_rc run_rounds(struct weft_tx *tx, struct weft_claiming *all, int rounds,
                               struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    all->more = true;
    for (int round = 0; round < rounds && all->more && !rc; round++)
        rc = run_round(tx, all, false, err);
    /* The rounds are used up, and only the first of each is sure to get something. */
    all->contended |= all->more && all->count > 1;
    return rc;
}

/*
 * True when one round is all that is needed, but for payloads so large that the claims of a call
 * stand in each other's way: no lock is held for the rounds to come, and nobody has a second queue
 * to turn to.
 */
static bool is_simple(const struct weft_claiming *all)
{
    bool simple = all->limits == 0;
    for (size_t r = 0; r < all->count && simple; r++)
        simple = all->request[r].candidates <= 1;
    return simple;
}

/* A try begins; all->out is empty. */
static void begin_try(struct weft_tx *tx, struct weft_claiming *all)
{
    drop_floors(tx->engine, all); /* of a try before this one: it was rolled back */
    all->no_floors = false;
    all->items = all->members = all->fan_in = all->bytes = all->largest = 0;
    all->contended = false;
    all->limits = 0;
    all->rounds_left = 0;
    all->item = weft_new_array(all->out, struct weft_claimed, all->items_max + 1);
    all->apart = NULL;
    for (size_t r = 0; r < all->count; r++) {
        struct weft_claim_request *request = &all->request[r];
        request->left = request->claim->max ? request->claim->max : 1;
        weft_claim_choose(tx->engine, all, request);
    }
}

static enum weft_rc claim_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct weft_claiming *all = context;
    weft_arena_reset(all->out);
    begin_try(tx, all);
    if (is_simple(all)) {
        all->rounds_left = ROUNDS_MAX - 1;
        return run_round(tx, all, true, err);
    }
    enum weft_rc rc = all->limits ? weft_claim_lock_lanes(tx, all, err) : WEFT_OK;
    return rc ? rc : run_rounds(tx, all, ROUNDS_MAX, err);
}

/* A call that goes on in a second transaction: each try of it begins with what the first got. */
struct second {
    struct weft_claiming *all;
    struct weft_claiming was;
    const struct weft_claim_request *request;
};

static void go_back(const struct second *second)
{
    *second->all = second->was;
    memcpy(second->all->request, second->request, second->was.count * sizeof(*second->request));
}

static enum weft_rc second_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    const struct second *second = context;
    go_back(second);
    return run_rounds(tx, second->all, second->was.rounds_left, err);
}

/*
 * The rounds behind the first, which was committed on its own. A round sees what is committed when
 * it begins, so that makes no difference to what it finds; and what the first one got is given,
 * whatever becomes of these.
 */
static enum weft_rc claim_on(struct weft_engine *engine, struct weft_claiming *all,
                             struct weft_err *err)
{
    struct weft_claim_request *copy =
        weft_new_array(all->out, struct weft_claim_request, all->count + 1);
    memcpy(copy, all->request, all->count * sizeof(*copy));
    struct second second = {.all = all, .was = *all, .request = copy};
    struct weft_tx tx = {.engine = engine, .arena = all->out};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, second_body, &second, err);
    if (!rc)
        return WEFT_OK;
    go_back(&second);
    all->contended |= all->count > 1;
    return all->items > 0 ? WEFT_OK : rc;
}

/*
 * Takes queues that had nothing off the list, so that the next claim looks at others. Those in a
 * lane with settings stay: the lane may have refused. True when another choice may find others.
 */
static bool forget_empty(struct weft_engine *engine, const struct weft_claiming *all)
{
    bool any = false;
    for (size_t r = 0; r < all->count; r++) {
        any |= all->request[r].unseen;
        for (size_t c = 0; c < all->request[r].candidates; c++) {
            const struct weft_candidate *candidate = &all->request[r].candidate[c];
            if (!candidate->empty || candidate->fruitful || candidate->set)
                continue;
            weft_ready_forget(engine, candidate->queue->id, all->tick);
            any = true;
        }
    }
    return any;
}

/* What must be known before the transaction. *ret_any: there is a queue for somebody. */
static enum weft_rc look_first(struct weft_engine *engine, struct weft_claiming *all, bool *ret_any,
                               struct weft_err *err)
{
    struct weft_listed_for listed = weft_claim_look(engine, all);
    /* The end of a pause must hold at once, and the claim leaves paused lanes out: look again. */
    enum weft_rc rc = listed.paused ? weft_ready_refresh_lanes(engine, err) : WEFT_OK;
    all->tick = listed.tick;
    *ret_any = listed.any;
    return rc;
}

/* *ret_again: nothing was there, and other queues of the list have not been looked at. */
static enum weft_rc claim_listed(struct weft_engine *engine, struct weft_claiming *all,
                                 bool *ret_again, struct weft_err *err)
{
    bool any = true;
    enum weft_rc rc = WEFT_OK;
    *ret_again = false;
    if (!all->taken) {
        rc = look_first(engine, all, &any, err);
        if (rc || !any)
            return rc;
        struct weft_tx tx = {.engine = engine, .arena = all->out};
        rc = weft_tx_do(&tx, WEFT_TX_WRITE, claim_body, all, err);
    }
    all->taken = false;
    if (!rc && all->more && all->rounds_left > 0)
        rc = claim_on(engine, all, err);
    *ret_again = !rc && all->items == 0 && forget_empty(engine, all);
    return rc;
}

/* Walks the list until something is found, so that many empty queues do not hide a full one. */
static enum weft_rc claim_walk(struct weft_engine *engine, struct weft_claiming *all,
                               struct weft_err *err)
{
    bool again = true;
    enum weft_rc rc = WEFT_OK;
    for (int walked = 0; walked < WALK_MAX && again && !rc; walked++)
        rc = claim_listed(engine, all, &again, err);
    return rc;
}

/* How old the lists of the lanes of this call are, and which lanes a walk would go through. */
static void ask_for_lanes(struct weft_engine *engine, struct weft_claiming *all,
                          struct weft_arena *arena)
{
    all->age = WEFT_READY_FRESH;
    all->walks.count = 0;
    for (size_t r = 0; r < all->count; r++) {
        const struct weft_claim *claim = all->request[r].claim;
        for (size_t i = 0; i < (claim->lane_count ? claim->lane_count : 1); i++) {
            const char *lane = claim->lane_count ? claim->lanes[i] : "default";
            enum weft_ready_age age =
                weft_ready_ask(engine, all->request[r].ns, lane, arena, &all->walks);
            if (age > all->age)
                all->age = age;
        }
    }
}

/* Reads the list anew, as far as this call needs it. *ret_more: its lanes have more queues. */
static enum weft_rc renew_list(struct weft_engine *engine, struct weft_claiming *all,
                               struct weft_arena *arena, bool *ret_more, struct weft_err *err)
{
    enum weft_rc rc = weft_ready_hop_is_due(engine) ? weft_ready_refresh(engine, err) : WEFT_OK;
    *ret_more = false;
    if (rc || !weft_ready_has_many(engine))
        return rc;
    if (all->walks.count > 0 && engine->on_side_work)
        engine->on_side_work(engine->side_work_context);
    if (all->walks.count > 0)
        rc = weft_ready_walk(engine, &all->walks, arena, NULL, err);
    if (rc)
        return rc;
    ask_for_lanes(engine, all, arena);
    for (size_t i = 0; i < all->walks.count; i++)
        *ret_more |= all->walks.item[i].after != 0;
    return WEFT_OK;
}

static enum weft_rc claim_all(struct weft_engine *engine, struct weft_claiming *all,
                              struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    enum weft_rc rc = claim_walk(engine, all, err);
    /*
     * Nothing at all under an older list may only mean that the list is old. A claim that waits
     * needs no newer one, as it will be woken, unless its lanes have never been seen whole.
     */
    bool waits = true, more = all->more_queues;
    for (size_t r = 0; r < all->count; r++)
        waits &= all->request[r].claim->wait_ms > 0;
    bool renews = more || (!all->fresh && !waits);
    for (int i = 0; i < RENEWALS_MAX && renews && !rc && all->items == 0; i++) {
        ask_for_lanes(engine, all, arena);
        if (all->age == WEFT_READY_FRESH)
            break;
        rc = renew_list(engine, all, arena, &renews, err);
        if (!rc)
            rc = claim_walk(engine, all, err);
    }
    for (size_t r = 0; r < all->count && !rc; r++)
        weft_claim_keep_turns(engine, &all->request[r]);
    if (rc)
        drop_floors(engine, all);
    weft_arena_free(arena);
    return rc;
}

/* ---- The call -------------------------------------------------------------------------------- */

static bool ask_claim(struct weft_tx *tx, void *context, struct weft_call *ret_call)
{
    struct weft_claiming *all = context;
    begin_try(tx, all);
    if (!is_simple(all))
        return false;
    all->rounds_left = ROUNDS_MAX - 1;
    /* The plan of a simple claim asks nothing of the store, so it cannot fail. */
    return plan_round(tx, all, ret_call, NULL) == WEFT_OK && all->wants > 0;
}

static void take_claim(struct weft_tx *tx, void *context, const struct weft_rows *rows)
{
    take_round(tx, context, rows);
}

void weft_claim_begin(struct weft_engine *engine, struct weft_joint_call *call,
                      struct weft_arena *arena)
{
    const struct weft_claim *claim = call->item;
    struct weft_claiming *all = weft_new(arena, struct weft_claiming);
    size_t count = call->count;
    *all = (struct weft_claiming){.count = count, .out = call->arena};
    all->request = weft_new_array(arena, struct weft_claim_request, count + 1);
    all->limit = weft_new_array(arena, struct weft_limited, count * WEFT_CLAIM_QUEUES_MAX + 1);
    for (size_t r = 0; r < count && !call->rc; r++) {
        all->request[r].claim = &claim[r];
        call->rc = prepare(engine, call->ns, &all->request[r], arena, &call->err);
        all->items_max += all->request[r].left;
    }
    if (!call->rc && all->items_max > WEFT_BATCH_MAX)
        call->rc = weft_fail_field(&call->err, WEFT_TOO_LARGE, "max",
                                   "the claims of one call ask for %zu, at most %d are allowed",
                                   all->items_max, WEFT_BATCH_MAX);
    if (!call->rc)
        ask_for_lanes(engine, all, arena);
    all->fresh = all->age == WEFT_READY_OLD;
    if (all->fresh)
        call->rc = renew_list(engine, all, arena, &all->more_queues, &call->err);
    bool any = false;
    if (!call->rc)
        call->rc = look_first(engine, all, &any, &call->err);
    call->part = (struct weft_part){
        .context = all, .ask = ask_claim, .take = take_claim, .joins = any && !call->rc};
}

void weft_claim_end(struct weft_tx *tx, struct weft_joint_call *call, struct weft_arena *arena)
{
    const struct weft_part *part = &call->part;
    struct weft_engine *engine = tx->engine;
    struct weft_claiming *all = part->context;
    (void)arena;
    all->taken = part->fate == WEFT_PART_DONE;
    if (!all->taken && part->joins)
        drop_floors(engine, all);
    if (part->fate == WEFT_PART_FAILED) {
        call->rc = part->err.rc;
        call->err = part->err;
    }
    if (!call->rc)
        call->rc = claim_all(engine, all, &call->err);
    if (!call->rc)
        call->rc = weft_claim_upstreams(engine, all, &call->err);
    if (!call->rc)
        *(struct weft_claim_result *)call->answer =
            (struct weft_claim_result){.item = all->item,
                                       .apart = all->apart,
                                       .count = all->items,
                                       .bytes = all->bytes,
                                       .contended = all->contended};
}

enum weft_rc weft_engine_claim(struct weft_engine *engine, const char *ns,
                               const struct weft_claim *claim, size_t count,
                               struct weft_arena *arena, struct weft_claim_result *ret_result,
                               struct weft_err *err)
{
    struct weft_claim_result result = {0};
    struct weft_joint_call call = {.op = WEFT_OP_CLAIM,
                                   .ns = ns,
                                   .item = claim,
                                   .count = count,
                                   .answer = &result,
                                   .arena = arena};
    enum weft_rc rc = weft_engine_alone(engine, &call, err);
    if (!rc && result.apart)
        rc = weft_claim_all_upstreams(engine, &result, arena, &call.err);
    if (err && call.err.rc)
        *err = call.err;
    if (!rc)
        *ret_result = result;
    return rc;
}
