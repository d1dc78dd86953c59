/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Claiming: from the lanes, kinds and capabilities of a worker to the rows it gets.
 *
 * 1. They select queues out of the list of queues with ready work (ready.c), at most 64, tenant by
 *    tenant (claim_choose.c).
 * 2. Lanes with a limit are locked (SKIP LOCKED) and their leases counted in a later statement, and
 *    budgets of the queues are locked (claim_budget.c).
 * 3. Tenants take weighted turns (core/share.h); within a tenant that has several of the queues, a
 *    look at their heads decides how many to take from each (claim_round.c).
 * 4. One statement locks and moves the rows. Queues that gave less than planned are dropped and the
 *    rest is shared out again, a bounded number of times.
 *
 * The list is only a hint and the settings may be stale: the statement checks pause and limit
 * again, and a claim that came up short looks at a fresh list once more before it gives up.
 */

#include "engine/job/claim.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "core/spec.h"
#include "engine/job/claim_state.h"
#include "engine/job/joint.h"
#include "engine/job/leases.h"
#include "engine/limit/budget_rules.h"

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

static enum weft_rc check_claim(const struct weft_claim *claim, const char *ns,
                                struct weft_err *err)
{
    enum weft_rc rc = weft_name_check(claim->worker, "worker", err);
    if (!rc)
        rc = check_names(claim->lanes, claim->lane_count, WEFT_CLAIM_LANES_MAX, "lanes", err);
    if (!rc)
        rc = check_names(claim->kinds, claim->kind_count, WEFT_CLAIM_KINDS_MAX, "kinds", err);
    if (!rc && claim->max > WEFT_BATCH_MAX)
        rc = weft_invalid(err, "max", "max is %u, allowed are 1 to %d", claim->max, WEFT_BATCH_MAX);
    if (!rc)
        rc = weft_lease_ms_check(claim->lease_ms, err);
    if (!rc && ns)
        rc = weft_name_check(ns, "namespace", err);
    if (rc)
        return rc;
    struct weft_arena *arena = weft_arena_new();
    const char *capset;
    rc = weft_capset_text(claim->capabilities, claim->capability_count, arena, &capset, err);
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_engine_claim_check(const struct weft_claim *claim, struct weft_err *err)
{
    return check_claim(claim, claim->ns, err);
}

static enum weft_rc prepare(struct weft_engine *engine, const char *ns,
                            struct weft_claim_request *request, struct weft_arena *arena,
                            struct weft_err *err)
{
    const struct weft_claim *claim = request->claim;
    enum weft_rc rc = weft_capset_text(claim->capabilities, claim->capability_count, arena,
                                       &request->capset, err);
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

/* ---- One transaction ------------------------------------------------------------------------- */

/* One round. last: COMMIT goes with it. */
static enum weft_rc run_round(struct weft_tx *tx, struct weft_claiming *all, bool last,
                              struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    enum weft_rc rc = weft_claim_plan_round(tx, all, &call, err);
    if (rc || all->wants == 0)
        return rc;
    rc = last ? weft_tx_last(tx, &call, 1, &rows, err) : weft_tx_run(tx, &call, 1, &rows, err);
    size_t first = all->items;
    if (!rc)
        weft_claim_take_round(tx, all, &rows);
    return rc || all->refs == 0 ? rc : weft_claim_reserve(tx, all, first, err);
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
 * True when one round is enough, unless payloads are so large that the claims of a call take each
 * other's room: no lock is held for the rounds to come, and no claim has a second queue.
 */
static bool is_simple(const struct weft_claiming *all)
{
    bool simple = all->limits == 0 && all->refs == 0;
    for (size_t r = 0; r < all->count && simple; r++)
        simple = all->request[r].candidates <= 1;
    return simple;
}

/* A try begins; all->out is empty. The first takes the choice that was made before it. */
static void begin_try(struct weft_tx *tx, struct weft_claiming *all)
{
    if (!all->chosen) {
        weft_claim_drop_floors(tx->engine, all); /* of a try before this one: it was rolled back */
        weft_claim_choose(tx->engine, all);
    }
    all->chosen = all->no_floors = false;
    all->items = all->members = all->fan_in = all->bytes = all->largest = 0;
    all->contended = false;
    all->opens_us = WEFT_NEVER;
    all->rounds_left = 0;
    all->locked = (struct weft_locked_budgets){0};
    all->item = weft_new_array(all->out, struct weft_claimed, all->items_max + 1);
    all->apart = NULL;
    for (size_t r = 0; r < all->count; r++)
        all->request[r].left = all->request[r].claim->max ? all->request[r].claim->max : 1;
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
    if (!rc && all->refs > 0)
        rc = weft_claim_lock_budgets(tx, all, err);
    if (!rc)
        rc = run_rounds(tx, all, ROUNDS_MAX, err);
    if (!rc && all->refs > 0)
        rc = weft_claim_charge_budgets(tx, all, err);
    return rc || !all->limits ? rc : weft_claim_charge_lanes(tx, all, err);
}

/* A call that goes on in a second transaction: each try of it begins with the result of the first.
 */
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
 * The rounds behind the first, which was committed on its own. A round reads the rows committed
 * before it begins, in the same transaction as in a second one. The rows of the first round are
 * given to the claims also if the later rounds fail.
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
 * Takes queues that gave nothing off the list, so that the next claim looks at others. A queue of a
 * lane with settings stays: the lane may have refused. So does one that a budget closes, which
 * choices leave out for a while. True when another choice may find others.
 */
static bool forget_empty(struct weft_engine *engine, const struct weft_claiming *all)
{
    bool any = false;
    for (size_t r = 0; r < all->count; r++) {
        any |= all->request[r].unseen;
        for (size_t c = 0; c < all->request[r].candidates; c++) {
            const struct weft_candidate *candidate = &all->request[r].candidate[c];
            any |= candidate->shut;
            if (!candidate->empty || candidate->fruitful || candidate->set || candidate->shut)
                continue;
            weft_ready_forget(engine, candidate->queue->id, all->tick);
            any = true;
        }
    }
    return any;
}

/* Chooses the queues of all claims of the call. */
static enum weft_rc choose(struct weft_engine *engine, struct weft_claiming *all,
                           struct weft_err *err)
{
    all->history = weft_engine_history(engine);
    /* The end of a pause must hold at once, and a choice leaves paused lanes out: look again. */
    enum weft_rc rc =
        weft_claim_meets_pause(engine, all) ? weft_ready_refresh_lanes(engine, err) : WEFT_OK;
    if (!rc)
        weft_claim_choose(engine, all);
    all->chosen = !rc;
    return rc;
}

static bool has_candidates(const struct weft_claiming *all)
{
    for (size_t r = 0; r < all->count; r++)
        if (all->request[r].candidates > 0)
            return true;
    return false;
}

/*
 * A claim waits for its budgets, because reports and other claims hold them for as long as a commit
 * takes; but not for a session that hangs: then it looks again, without the queues under budgets. A
 * claim whose rows went to others in each of its tries has found nothing.
 */
static enum weft_rc run_first(struct weft_tx *tx, struct weft_claiming *all, bool *ret_without,
                              struct weft_err *err)
{
    bool waits = all->refs > 0;
    enum weft_rc rc = weft_tx_do(tx, waits ? WEFT_TX_HOT : WEFT_TX_WRITE, claim_body, all, err);
    if (!rc)
        weft_claim_keep_closed(tx->engine, all);
    *ret_without = waits && rc && err->cause == WEFT_CAUSE_LOCK_TIMEOUT;
    if (!waits || !rc || (!*ret_without && err->cause != WEFT_CAUSE_CONTENTION))
        return rc;
    if (*ret_without)
        weft_claim_leave_budgets(tx->engine, all);
    weft_claim_drop_floors(tx->engine, all);
    all->items = 0;
    all->more = false;
    all->contended = true;
    return WEFT_OK;
}

/* *ret_again: nothing was there, and other queues of the list have not been looked at. */
static enum weft_rc claim_listed(struct weft_engine *engine, struct weft_claiming *all,
                                 bool *ret_again, struct weft_err *err)
{
    bool ran = all->taken, without = false;
    enum weft_rc rc = ran || all->chosen ? WEFT_OK : choose(engine, all, err);
    if (!rc && !ran && has_candidates(all)) {
        struct weft_tx tx = {.engine = engine, .arena = all->out, .history = all->history};
        rc = run_first(&tx, all, &without, err);
        ran = true;
    }
    all->taken = all->chosen = false;
    if (!rc && ran && all->more && all->rounds_left > 0)
        rc = claim_on(engine, all, err);
    *ret_again = !rc && all->items == 0 && (forget_empty(engine, all) || without);
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
        size_t lanes;
        const char *const *lane = weft_claim_lanes(all->request[r].claim, &lanes);
        for (size_t i = 0; i < lanes; i++) {
            enum weft_ready_age age =
                weft_ready_ask(engine, all->request[r].ns, lane[i], arena, &all->walks);
            if (age > all->age)
                all->age = age;
        }
    }
}

/* Reads the list anew, as far as this call needs it. *ret_more: its lanes have more queues. */
static enum weft_rc renew_list(struct weft_engine *engine, struct weft_claiming *all,
                               struct weft_arena *arena, bool *ret_more, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    if (weft_ready_hop_is_due(engine, all->came_us))
        rc = weft_ready_refresh(engine, err);
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
        weft_claim_drop_floors(engine, all);
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
    return weft_claim_plan_round(tx, all, ret_call, NULL) == WEFT_OK && all->wants > 0;
}

void weft_claim_begin(struct weft_engine *engine, struct weft_joint_call *call,
                      struct weft_arena *arena)
{
    const struct weft_claim *claim = call->item;
    struct weft_claiming *all = weft_new(arena, struct weft_claiming);
    size_t count = call->count;
    *all = (struct weft_claiming){.count = count,
                                  .plan = arena,
                                  .out = call->arena,
                                  .opens_us = WEFT_NEVER,
                                  .came_us = call->asked_us ? call->asked_us : weft_boot_us()};
    all->request = weft_new_array(arena, struct weft_claim_request, count + 1);
    all->limit = weft_new_array(arena, struct weft_limited, count * WEFT_CLAIM_QUEUES_MAX + 1);
    for (size_t r = 0; r < count && !call->rc; r++) {
        all->request[r].claim = &claim[r];
        all->request[r].target = call->target ? call->target[r] : NULL;
        call->rc = prepare(engine, call->ns, &all->request[r], arena, &call->err);
        all->items_max += all->request[r].left;
    }
    if (!call->rc && all->items_max > WEFT_BATCH_MAX)
        call->rc = weft_fail_field(&call->err, WEFT_TOO_LARGE, "max",
                                   "the claims of one call ask for %zu, at most %d are allowed",
                                   all->items_max, WEFT_BATCH_MAX);
    if (!call->rc)
        call->rc = weft_budget_rules_renew(engine, &call->err);
    if (!call->rc)
        ask_for_lanes(engine, all, arena);
    all->fresh = all->age == WEFT_READY_OLD;
    if (all->fresh)
        call->rc = renew_list(engine, all, arena, &all->more_queues, &call->err);
    if (!call->rc)
        call->rc = choose(engine, all, &call->err);
    call->part = (struct weft_part){.context = all,
                                    .ask = ask_claim,
                                    .take = weft_claim_take_round,
                                    .joins = !call->rc && has_candidates(all) && is_simple(all)};
}

/* At least a moment, so that a claim that looks again then does not look at once. */
static weft_usec opens_in(const struct weft_engine *engine, const struct weft_claiming *all)
{
    if (all->opens_us == WEFT_NEVER)
        return 0;
    weft_usec in_us = all->opens_us - weft_clock_now(engine->clock);
    return in_us > WEFT_MS ? in_us : WEFT_MS;
}

void weft_claim_end(struct weft_tx *tx, struct weft_joint_call *call, struct weft_arena *arena)
{
    const struct weft_part *part = &call->part;
    struct weft_engine *engine = tx->engine;
    struct weft_claiming *all = part->context;
    (void)arena;
    all->taken = part->fate == WEFT_PART_DONE;
    if (!all->taken && !all->chosen)
        weft_claim_drop_floors(engine, all); /* of a joint transaction, which was rolled back */
    if (part->fate == WEFT_PART_FAILED) {
        call->rc = part->err.rc;
        call->err = part->err;
    }
    if (!call->rc)
        call->rc = claim_all(engine, all, &call->err);
    if (!call->rc && all->resumed > 0)
        call->rc = weft_claim_signals(engine, all, &call->err);
    if (!call->rc)
        call->rc = weft_claim_upstreams(engine, all, &call->err);
    if (!call->rc)
        *(struct weft_claim_result *)call->answer =
            (struct weft_claim_result){.item = all->item,
                                       .apart = all->apart,
                                       .count = all->items,
                                       .bytes = all->bytes,
                                       .contended = all->contended,
                                       .opens_in_us = opens_in(engine, all)};
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
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++)
        rc = check_claim(&claim[i], claim[i].ns ? claim[i].ns : ns, &call.err);
    if (!rc)
        rc = weft_engine_alone(engine, &call, err);
    if (!rc && result.apart)
        rc = weft_claim_all_upstreams(engine, &result, arena, &call.err);
    if (err && call.err.rc)
        *err = call.err;
    if (!rc)
        *ret_result = result;
    return rc;
}
