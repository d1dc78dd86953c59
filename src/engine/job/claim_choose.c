/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which queues a claim looks at: up to 64, from the rings of its lanes (rings.h), tenant by tenant.
 *
 * The first lap takes one queue of each tenant, so that a tenant with many queues does not push out
 * one that has few; further laps take more of the same tenants as long as there is room. A choice
 * looks at a bounded number of queues. One that met only queues of other kinds or with capabilities
 * that the worker does not have moves these queues to the back, and the claim chooses again.
 */

#include "engine/job/claim_state.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "engine/limit/budget_rules.h"

#include <stdlib.h>
#include <string.h>

enum {
    RINGS_MAX = 256,  /* in one choice */
    SMALL_RING = 64,  /* the queues of a ring up to this size are looked at one by one */
    LOOKS_MAX = 4096, /* at tenants and queues, in one choice */
};
#define TURN_UNUSED_US (60 * WEFT_SECOND)
#define TURN_EPSILON   1e-9

/* ---- Fitting --------------------------------------------------------------------------------- */

static bool named(const char *const *name, size_t count, const char *wanted)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name[i], wanted) == 0)
            return true;
    return false;
}

const char *const *weft_claim_lanes(const struct weft_claim *claim, size_t *ret_count)
{
    static const char *const default_lane[] = {"default"};
    *ret_count = claim->lane_count ? claim->lane_count : 1;
    return claim->lane_count ? claim->lanes : default_lane;
}

/* Lane and kind alone. What weft carries out itself is for claims that name its kind. */
static bool wants(const struct weft_claim *claim, const struct weft_queue *queue)
{
    size_t lanes;
    const char *const *lane = weft_claim_lanes(claim, &lanes);
    return named(lane, lanes, queue->lane_name) &&
           (claim->kind_count == 0 ? !queue->carried
                                   : named(claim->kinds, claim->kind_count, queue->kind));
}

static bool is_target(const struct weft_claim_request *request, const struct weft_queue *queue)
{
    return !request->target || strcmp(request->target, queue->target ? queue->target : "") == 0;
}

/* True when the claim may take from the queue: namespace, lane, kind, capabilities. */
static bool fits(const struct weft_claim_request *request, const struct weft_listed *listed)
{
    const struct weft_queue *queue = listed->queue;
    return weft_capset_may_fit(listed->need, request->offer) && queue->ns == request->ns &&
           wants(request->claim, queue) && is_target(request, queue) &&
           (request->offered
                ? weft_capset_within(queue->capset_text, request->offered, request->offers)
                : weft_capset_fits(queue->capset_text, request->capset));
}

const char *weft_engine_namespace_of(struct weft_engine *engine, int32_t queue)
{
    const struct weft_queue *found = weft_find_queue(engine, queue);
    return found ? found->ns_name : NULL;
}

bool weft_engine_fits(struct weft_engine *engine, const struct weft_claim *claim, int32_t queue)
{
    const struct weft_queue *found = weft_find_queue(engine, queue);
    return found && strcmp(found->ns_name, claim->ns ? claim->ns : "default") == 0 &&
           wants(claim, found) &&
           weft_capset_offered(found->capset_text, claim->capabilities, claim->capability_count);
}

const struct weft_lane_setting *weft_claim_setting(const struct weft_ready *ready, int32_t lane)
{
    return ready->lane_count == 0 ? NULL
                                  : bsearch(&lane, ready->lane, ready->lane_count,
                                            sizeof(*ready->lane), weft_i32_order);
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

/* ---- Turns ----------------------------------------------------------------------------------- */

/*
 * Drops the turns that were not used for a minute, when there are twice as many as were left the
 * last time: so each costs the same over time. A tenant without a turn starts where the others are.
 */
static void drop_unused_turns(struct weft_ready *ready)
{
    enum { FEW = 1024 };
    if (ready->turn.count < FEW || ready->turn.count < 2 * ready->turns_kept)
        return;
    struct weft_int_map kept = {0};
    weft_usec since_us = weft_boot_us() - TURN_UNUSED_US;
    for (size_t i = 0; i < ready->turn.capacity; i++) {
        struct weft_turn *turn = ready->turn.slot[i];
        if (turn && turn->used_us >= since_us)
            weft_int_map_put(&kept, turn);
        else
            free(turn);
    }
    weft_int_map_done(&ready->turn);
    ready->turn = kept;
    ready->turns_kept = kept.count;
}

/* Where a tenant's pass is kept between claims; made when it is new. Under ready.lock. */
static struct weft_turn *turn_of(struct weft_ready *ready, const struct weft_claim_request *request,
                                 int32_t tenant)
{
    int32_t id = tenant ? tenant : -request->ns;
    struct weft_turn *turn = weft_int_map_find(&ready->turn, id);
    if (!turn) {
        drop_unused_turns(ready);
        turn = weft_alloc(1, sizeof(*turn));
        turn->id = id;
        weft_int_map_put(&ready->turn, turn);
    }
    turn->used_us = weft_boot_us();
    return turn;
}

/* Gives each tenant of the request its pass. Under ready.lock. */
static void read_turns(struct weft_ready *ready, struct weft_claim_request *request)
{
    /* A tenant that was idle starts where the others are: at the lowest pass that is in use. */
    double low = 0, high = 0;
    for (size_t t = 0; t < request->tenants; t++) {
        request->share[t].pass = turn_of(ready, request, request->tenant[t].id)->pass;
        if (request->share[t].pass > 0 && (low == 0 || request->share[t].pass < low))
            low = request->share[t].pass;
        if (request->share[t].pass - 1 > high)
            high = request->share[t].pass - 1;
    }
    /* Tenants that always had work are less than a turn apart: one further behind was idle. */
    if (low < high)
        low = high;
    for (size_t t = 0; t < request->tenants; t++)
        if (request->share[t].pass < low)
            request->share[t].pass = low;
}

void weft_claim_keep_turns(struct weft_engine *engine, const struct weft_claim_request *request)
{
    struct weft_ready *ready = &engine->ready;
    pthread_mutex_lock(&ready->lock);
    for (size_t t = 0; t < request->tenants; t++) {
        struct weft_turn *turn = turn_of(ready, request, request->tenant[t].id);
        if (request->share[t].pass > turn->pass)
            turn->pass = request->share[t].pass;
    }
    pthread_mutex_unlock(&ready->lock);
}

/* ---- Choosing -------------------------------------------------------------------------------- */

/* A tenant of whom the first lap took a queue. */
struct picked {
    struct weft_ring *ring;
    struct weft_ring_tenant *tenant;
    size_t share;
};

struct choice {
    struct weft_claiming *all;
    struct weft_claim_request *request;
    struct weft_ready *ready;
    uint64_t number;
    struct weft_ring *ring[RINGS_MAX];
    size_t rings;
    size_t looks;
    struct picked picked[WEFT_CLAIM_QUEUES_MAX];
    size_t picks;
};

static void add_ring(struct choice *choice, struct weft_ring *ring)
{
    if (!ring || ring->queues == 0 || ring->choice == choice->number || choice->rings == RINGS_MAX)
        return;
    ring->choice = choice->number;
    choice->ring[choice->rings++] = ring;
}

static bool is_paused(const struct weft_ready *ready, const struct weft_ring *ring)
{
    const struct weft_lane_setting *setting = weft_claim_setting(ready, ring->lane_id);
    return setting && setting->paused;
}

/* Finds the rings of the lanes of a request, or of its kinds where a lane has many queues. */
static void find_rings(struct choice *choice)
{
    /* cppcheck-suppress ctuuninitvar; the members that are read here are set */
    const struct weft_claim_request *request = choice->request;
    const struct weft_claim *claim = request->claim;
    const struct weft_rings *rings = &choice->ready->rings;
    size_t lanes;
    const char *const *lane = weft_claim_lanes(claim, &lanes);
    choice->number = ++choice->ready->choices;
    for (size_t i = 0; i < lanes; i++) {
        struct weft_ring *ring = weft_rings_of(rings, request->ns, lane[i], NULL);
        if (!ring || ring->queues == 0)
            continue;
        /* A paused lane must not take the turns of lanes that have work to give. */
        if (is_paused(choice->ready, ring))
            continue;
        /* Every lane that is still to come has a place. */
        bool by_kind = claim->kind_count > 0 && ring->queues > SMALL_RING &&
                       choice->rings + claim->kind_count + lanes - i <= RINGS_MAX;
        if (!by_kind)
            add_ring(choice, ring);
        for (size_t k = 0; k < claim->kind_count && by_kind; k++)
            add_ring(choice, weft_rings_of(rings, request->ns, lane[i], claim->kinds[k]));
    }
}

/* The index of a tenant in a request; request->tenants: it is new. */
static size_t find_tenant(const struct weft_claim_request *request, int32_t tenant)
{
    size_t t = 0;
    while (t < request->tenants && request->tenant[t].id != tenant)
        t++;
    return t;
}

static void add_candidate(struct weft_claiming *all, struct weft_claim_request *request,
                          const struct weft_ready *ready, const struct weft_queue *queue)
{
    const struct weft_lane_setting *setting = weft_claim_setting(ready, queue->lane);
    struct weft_candidate *next = &request->candidate[request->candidates++];
    *next = (struct weft_candidate){.queue = queue,
                                    .share = find_tenant(request, queue->tenant),
                                    .lane = WEFT_NO_LANE,
                                    .set = setting != NULL};
    if (next->share == request->tenants) {
        request->tenant[request->tenants] = (struct weft_claim_tenant){.id = queue->tenant};
        request->share[request->tenants++] =
            (struct weft_share){.weight = weight_of(setting, queue->tenant_name)};
    }
    request->tenant[next->share].queues++;
    if (!setting || (setting->max_running == 0 && !setting->timed))
        return;
    for (next->lane = 0; next->lane < all->limits; next->lane++)
        if (all->limit[next->lane].lane == queue->lane)
            return;
    all->limit[all->limits++] = (struct weft_limited){.lane = queue->lane};
}

/* Takes the next queue of a tenant that fits. */
static void take_next(struct choice *choice, struct weft_ring *ring,
                      struct weft_ring_tenant *tenant, bool first)
{
    struct weft_claim_request *request = choice->request;
    if (tenant->choice != choice->number)
        tenant->looked = 0;
    tenant->choice = choice->number;
    choice->looks++;
    /* A tenant that was found in another ring has had its first queue. */
    if (first && choice->rings > 1 && find_tenant(request, tenant->id) < request->tenants)
        return;
    while (tenant->looked < tenant->count && choice->looks < LOOKS_MAX) {
        const struct weft_listed *listed =
            tenant->queue[(tenant->next + tenant->looked++) % tenant->count];
        choice->looks++;
        if (!fits(request, listed) ||
            weft_budget_queue_is_closed(choice->all->engine, listed->queue->id))
            continue;
        add_candidate(choice->all, request, choice->ready, listed->queue);
        if (first)
            choice->picked[choice->picks++] =
                (struct picked){ring, tenant, request->candidate[request->candidates - 1].share};
        return;
    }
}

/* One queue of each tenant, the rings by turns. True when any was taken. */
static bool run_lap(struct choice *choice, bool first)
{
    struct weft_ring_tenant *at[RINGS_MAX];
    size_t left[RINGS_MAX], before = choice->request->candidates, open = choice->rings;
    for (size_t r = 0; r < choice->rings; r++) {
        at[r] = choice->ring[r]->first;
        left[r] = choice->ring[r]->tenant.count;
    }
    for (size_t r = 0; open > 0; r = (r + 1) % choice->rings) {
        if (left[r] == 0)
            continue;
        if (choice->request->candidates == WEFT_CLAIM_QUEUES_MAX || choice->looks >= LOOKS_MAX)
            break;
        take_next(choice, choice->ring[r], at[r], first);
        at[r] = at[r]->after;
        open -= --left[r] == 0;
    }
    return choice->request->candidates > before;
}

/*
 * Moves the tenants that this claim is about to serve to the back, so that the next one, also one
 * that chooses before this one is done, begins behind them. A tenant with a weight stays in front
 * until it has had that many turns.
 */
static void move_on(struct choice *choice)
{
    const struct weft_claim_request *request = choice->request;
    for (size_t i = 0; i < choice->picks; i++) {
        struct picked *picked = &choice->picked[i];
        const struct weft_share *share = &request->share[picked->share];
        uint32_t step = request->left < picked->tenant->looked ? request->left : 1;
        picked->tenant->next = (picked->tenant->next + step) % picked->tenant->count;
        int64_t now = (int64_t)(share->pass + TURN_EPSILON);
        if (i < request->left && (int64_t)(share->pass + 1 / share->weight + TURN_EPSILON) > now)
            weft_ring_move_back(picked->ring, picked->tenant);
    }
}

/* Nothing of all that was met fits: the next choice begins behind it. */
static void move_past(struct choice *choice)
{
    for (size_t r = 0; r < choice->rings; r++) {
        struct weft_ring *ring = choice->ring[r];
        for (size_t left = ring->tenant.count; left > 0; left--) {
            struct weft_ring_tenant *tenant = ring->first;
            if (tenant->choice != choice->number)
                break;
            tenant->next = (tenant->next + tenant->looked) % tenant->count;
            if (tenant->looked < tenant->count)
                break; /* its next queues are looked at first */
            ring->first = tenant->after;
        }
    }
}

/* Fills in the candidates of a request. Under ready.lock. */
static void choose_for(struct weft_ready *ready, struct weft_claiming *all,
                       struct weft_claim_request *request)
{
    struct choice choice;
    choice.all = all;
    choice.request = request;
    choice.ready = ready;
    choice.rings = choice.looks = choice.picks = 0;
    request->candidates = request->tenants = 0;
    find_rings(&choice);
    bool first = true;
    while (run_lap(&choice, first) && request->candidates < WEFT_CLAIM_QUEUES_MAX)
        first = false;
    read_turns(ready, request);
    if (request->candidates > 0)
        move_on(&choice);
    request->unseen = request->candidates == 0 && choice.looks >= LOOKS_MAX;
    if (!request->unseen)
        return;
    move_past(&choice);
    /* A call goes around once: where nothing fits, it ends behind the last queue. */
    size_t most = 0;
    for (size_t r = 0; r < choice.rings; r++)
        most += choice.ring[r]->tenant.count + choice.ring[r]->queues;
    request->looked += choice.looks;
    request->unseen = request->looked < most;
}

void weft_claim_choose(struct weft_engine *engine, struct weft_claiming *all)
{
    struct weft_ready *ready = &engine->ready;
    all->limits = 0;
    all->engine = engine;
    pthread_mutex_lock(&ready->lock);
    all->tick = ready->tick;
    for (size_t r = 0; r < all->count; r++)
        choose_for(ready, all, &all->request[r]);
    pthread_mutex_unlock(&ready->lock);
    weft_claim_find_budgets(engine, all);
}

bool weft_claim_meets_pause(struct weft_engine *engine, const struct weft_claiming *all)
{
    struct weft_ready *ready = &engine->ready;
    bool paused = false;
    pthread_mutex_lock(&ready->lock);
    for (size_t r = 0; r < all->count && ready->lane_count > 0 && !paused; r++) {
        size_t lanes;
        const char *const *lane = weft_claim_lanes(all->request[r].claim, &lanes);
        for (size_t i = 0; i < lanes && !paused; i++) {
            const struct weft_ring *ring =
                weft_rings_of(&ready->rings, all->request[r].ns, lane[i], NULL);
            paused = ring && ring->queues > 0 && is_paused(ready, ring);
        }
    }
    pthread_mutex_unlock(&ready->lock);
    return paused;
}
