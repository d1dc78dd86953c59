/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The news of a commit: work became ready, a slot was freed in a lane with a limit, a lane was
 * opened, something new becomes due, a worker lost a lease before its time.
 *
 * An operation gathers its news per queue when its transaction has committed and passes it on once:
 * first to the list of claimable queues (ready.c), then to the listener, with no lock held. A freed
 * slot is news only where a claim may have waited for it, so without a listener and in lanes
 * without a limit it costs a comparison.
 */

#include "engine/tx/commit_effects.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "engine/engine_state.h"
#include "engine/flow/cascade.h"
#include "engine/job/change.h"
#include "engine/job/claim.h"
#include "engine/limit/admit.h"

#include <string.h>

enum {
    FIRST_ITEMS = 8,
    MANY = 1000000,  /* executions that a lane may have to give now: they are not counted */
    WAKES_MAX = 64,  /* queues of a lane that claims are woken for, */
    LOOKS_MAX = 256, /* of so many that are looked at */
};

struct weft_commit_effects weft_news_new(struct weft_arena *arena, weft_usec now_us)
{
    return (struct weft_commit_effects){.arena = arena, .now_us = now_us, .due_us = WEFT_NEVER};
}

/* Room for one more of `count` items: the array itself, or a copy with twice the room. */
static void *widen(struct weft_arena *arena, void *item, size_t size, size_t count, size_t *room)
{
    if (count < *room)
        return item;
    *room = *room ? 2 * *room : FIRST_ITEMS;
    void *wider = weft_arena_alloc(arena, *room, size);
    return count > 0 ? memcpy(wider, item, count * size) : wider;
}

struct weft_queue_news *weft_news_of(struct weft_commit_effects *news, int32_t queue)
{
    /* From the end: neighbours mostly share a queue. */
    for (size_t i = news->count; i > 0; i--)
        if (news->item[i - 1].queue == queue)
            return &news->item[i - 1];
    news->item = widen(news->arena, news->item, sizeof(*news->item), news->count, &news->capacity);
    struct weft_queue_news *next = &news->item[news->count++];
    *next = (struct weft_queue_news){.queue = queue};
    return next;
}

void weft_news_fresh(struct weft_commit_effects *news, int32_t queue, int32_t priority, int64_t ord)
{
    struct weft_queue_news *item = weft_news_of(news, queue);
    if (item->fresh == 0 || item->priority < priority)
        item->priority = priority;
    if (item->fresh == 0 || item->ord > ord)
        item->ord = ord;
    item->fresh++;
    item->ready++;
}

void weft_news_due(struct weft_commit_effects *news, weft_usec due_us)
{
    if (due_us != 0 && due_us < news->due_us)
        news->due_us = due_us;
}

void weft_news_ended(struct weft_commit_effects *news, int32_t queue, enum weft_state state)
{
    if (state == WEFT_STATE_SUCCEEDED)
        weft_news_of(news, queue)->succeeded++;
    else if (state == WEFT_STATE_FAILED || state == WEFT_STATE_EXPIRED)
        weft_news_of(news, queue)->failed++;
}

void weft_news_flow(struct weft_commit_effects *news, const struct weft_id *flow)
{
    /* Neighbours mostly share a flow. */
    if (news->flows > 0 && weft_id_cmp(&news->flow[news->flows - 1], flow) == 0)
        return;
    news->flow = widen(news->arena, news->flow, sizeof(*news->flow), news->flows, &news->flow_room);
    news->flow[news->flows++] = *flow;
}

void weft_news_gate(struct weft_commit_effects *news, const char *gate)
{
    if (news->gates > 0 && strcmp(news->gate[news->gates - 1], gate) == 0)
        return;
    news->gate =
        widen(news->arena, (void *)news->gate, sizeof(*news->gate), news->gates, &news->gate_room);
    news->gate[news->gates++] = gate;
}

void weft_news_lease(struct weft_commit_effects *news, const struct weft_lease *lease,
                     int32_t queue)
{
    news->lease =
        widen(news->arena, news->lease, sizeof(*news->lease), news->leases, &news->lease_room);
    news->lease[news->leases++] = (struct weft_lease_end){.lease = *lease, .queue = queue};
}

void weft_news_worker(struct weft_commit_effects *news, int32_t worker)
{
    /* From the end: neighbours mostly share a worker. */
    for (size_t i = news->workers; i > 0; i--)
        if (news->worker[i - 1] == worker)
            return;
    news->worker =
        widen(news->arena, news->worker, sizeof(*news->worker), news->workers, &news->worker_room);
    news->worker[news->workers++] = worker;
}

/* ---- Slots ----------------------------------------------------------------------------------- */

/* So many leases of a lane with a limit ended. */
struct freed_lane {
    int32_t ns;
    const char *lane;
    uint32_t count;
};

/* The lanes among the news that claims may wait for a slot of. Under ready.lock. */
static size_t freed_lanes(struct weft_engine *engine, const struct weft_commit_effects *news,
                          struct freed_lane *ret_lane)
{
    size_t count = 0;
    for (size_t i = 0; i < news->count; i++) {
        const struct weft_queue *queue =
            news->item[i].freed ? weft_find_queue(engine, news->item[i].queue) : NULL;
        const struct weft_lane_setting *setting =
            queue ? weft_claim_setting(&engine->ready, queue->lane) : NULL;
        if (!setting || setting->max_running == 0 || setting->paused)
            continue;
        size_t at = 0;
        while (at < count && ret_lane[at].lane != queue->lane_name)
            at++;
        if (at == count)
            ret_lane[count++] = (struct freed_lane){.ns = queue->ns, .lane = queue->lane_name};
        ret_lane[at].count += news->item[i].freed;
    }
    return count;
}

/* A slot serves one execution, whether that is a new one or not: counts are not added up. */
static void wake(struct weft_woken *woken, size_t *count, int32_t queue, uint32_t number)
{
    size_t at = 0;
    while (at < *count && woken[at].queue != queue)
        at++;
    if (at == *count)
        woken[(*count)++] = (struct weft_woken){.queue = queue};
    if (woken[at].count < number)
        woken[at].count = number;
}

/*
 * Adds claimable queues of a lane, one for each kind and route: a claim that may take from one may
 * take from all that differ in the tenant alone. Looks at the first of the ring, so a lane with
 * very many kinds may leave some out; their waiters are woken by the poll. Under ready.lock.
 */
static void wake_lane(struct weft_engine *engine, const struct freed_lane *lane,
                      struct weft_woken *woken, size_t *count)
{
    int32_t family[WAKES_MAX];
    size_t families = 0, looks = 0;
    const struct weft_ring *ring = weft_rings_of(&engine->ready.rings, lane->ns, lane->lane, NULL);
    const struct weft_ring_tenant *tenant = ring ? ring->first : NULL;
    for (size_t left = ring ? ring->tenant.count : 0; left > 0; left--, tenant = tenant->after)
        for (uint32_t i = 0; i < tenant->count; i++) {
            const struct weft_queue *queue = tenant->queue[i]->queue;
            size_t at = 0;
            while (at < families && family[at] != queue->family)
                at++;
            if (++looks > LOOKS_MAX || at == WAKES_MAX)
                return;
            if (at < families)
                continue;
            family[families++] = queue->family;
            wake(woken, count, queue->id, lane->count);
        }
}

/* ---- Telling --------------------------------------------------------------------------------- */

/* Loads the queues with freed slots that this process has never met: their lanes must be known. */
static void know_queues(struct weft_engine *engine, const struct weft_commit_effects *news)
{
    struct weft_id_list unknown = {.id = weft_new_array(news->arena, int32_t, news->count + 1)};
    for (size_t i = 0; i < news->count; i++) {
        const struct weft_queue_news *item = &news->item[i];
        if (item->freed > 0 && !weft_find_queue(engine, item->queue))
            unknown.id[unknown.count++] = item->queue;
    }
    /* News are hints: without the names of a queue its slots are found by the next poll. */
    if (unknown.count > 0)
        (void)!weft_load_queues(engine, &unknown, NULL);
}

static void tell_listener(struct weft_engine *engine, const struct weft_commit_effects *news,
                          const struct weft_woken *noted, size_t count)
{
    struct weft_ready *ready = &engine->ready;
    struct freed_lane *lane = weft_new_array(news->arena, struct freed_lane, news->count + 1);
    pthread_mutex_lock(&ready->lock);
    bool limits = ready->lane_count > 0;
    pthread_mutex_unlock(&ready->lock);
    if (limits)
        know_queues(engine, news);
    pthread_mutex_lock(&ready->lock);
    size_t lanes = ready->lane_count ? freed_lanes(engine, news, lane) : 0;
    struct weft_woken *woken =
        weft_new_array(news->arena, struct weft_woken, count + lanes * WAKES_MAX + 1);
    if (count > 0)
        memcpy(woken, noted, count * sizeof(*woken));
    for (size_t i = 0; i < lanes; i++)
        wake_lane(engine, &lane[i], woken, &count);
    pthread_mutex_unlock(&ready->lock);
    if (count > 0 || news->due_us != WEFT_NEVER)
        engine->on_news(
            engine->news_context,
            &(struct weft_news){.woken = woken, .count = count, .due_us = news->due_us});
}

static size_t copy_ids(const struct weft_id_column *ids, struct weft_id *ret_id)
{
    for (size_t i = 0; i < ids->count; i++)
        ret_id[i] = *weft_column_id(ids, i);
    return ids->count;
}

static void tell_ended(struct weft_engine *engine, const struct weft_commit_effects *news)
{
    size_t count = 0, most = (news->changes ? news->changes->count : 0) + news->completed.count +
                             news->ended_flows.count;
    if (most == 0 || !engine->on_ended || atomic_load(engine->ends_awaited) == 0)
        return;
    struct weft_id *id = weft_new_array(news->arena, struct weft_id, most);
    if (news->changes)
        count = weft_change_ended(news->changes, id);
    count += copy_ids(&news->completed, id + count);
    count += copy_ids(&news->ended_flows, id + count);
    if (count > 0)
        engine->on_ended(engine->ended_context, id, count);
}

/* After a failure here the dependency scanner runs the cascade. */
static void tell_flows(struct weft_engine *engine, const struct weft_commit_effects *news)
{
    struct weft_err err;
    if (engine->on_flows)
        engine->on_flows(engine->flows_context, news->flow, news->flows);
    else
        (void)!weft_engine_cascade(engine, news->flow, news->flows, &err);
}

/* After a failure here the unblock scanner admits. */
static void tell_gates(struct weft_engine *engine, const struct weft_commit_effects *news)
{
    struct weft_err err;
    if (engine->on_gates)
        engine->on_gates(engine->gates_context, news->gate, news->gates);
    else
        (void)!weft_engine_admit(engine, news->gate, news->gates, NULL, &err);
}

/* After a failure here the budget_reset scanner does it. */
static void work_on_budgets(struct weft_engine *engine, const struct weft_lease_end *ended,
                            size_t count, bool cancel)
{
    struct weft_budget_cancelled cancelled = {.more = cancel};
    struct weft_err err;
    if (engine->on_budgets) {
        engine->on_budgets(engine->budgets_context, ended, count, cancel);
        return;
    }
    if (count > 0)
        (void)!weft_engine_settle(engine, ended, count, NULL, &err);
    while (cancelled.more && !weft_engine_budget_cancel(engine, WEFT_BATCH_MAX, &cancelled, &err))
        ;
}

void weft_news_cancel_budgets(struct weft_engine *engine)
{
    work_on_budgets(engine, NULL, 0, true);
}

static void tell_budgets(struct weft_engine *engine, const struct weft_commit_effects *news)
{
    size_t count = news->leases, changes = news->changes ? news->changes->count : 0;
    if (count + changes == 0 || !weft_budgets_in_use(engine))
        return;
    struct weft_lease_end *ended =
        weft_new_array(news->arena, struct weft_lease_end, count + changes);
    if (count > 0)
        memcpy(ended, news->lease, count * sizeof(*ended));
    for (size_t i = 0; i < changes; i++) {
        const struct weft_change *change = &news->changes->change[i];
        const struct weft_live *before = &change->before;
        if (change->apply && before->state == WEFT_STATE_RUNNING &&
            change->step.after.state != WEFT_STATE_RUNNING &&
            weft_budgets_apply(engine, before->queue))
            ended[count++] = (struct weft_lease_end){
                .lease = {.id = before->id, .epoch = before->epoch}, .queue = before->queue};
    }
    if (count > 0)
        work_on_budgets(engine, ended, count, false);
}

/* Rows that are not new may be anywhere in their queue. */
static void tell_floors(struct weft_engine *engine, const struct weft_queue_news *item,
                        weft_usec now_us)
{
    const struct weft_floor first = {.priority = item->priority, .ord = item->ord};
    if (item->fresh < item->ready)
        weft_floor_drop(&engine->floors, item->queue);
    else
        weft_floor_added(&engine->floors, item->queue, &first, now_us);
}

void weft_news_tell(struct weft_engine *engine, const struct weft_commit_effects *news)
{
    weft_usec now_us = weft_clock_now(engine->clock);
    struct weft_woken *woken = weft_new_array(news->arena, struct weft_woken, news->count + 1);
    size_t count = 0;
    for (size_t i = 0; i < news->count; i++) {
        if (news->item[i].ready == 0)
            continue;
        tell_floors(engine, &news->item[i], now_us);
        woken[count].queue = news->item[i].queue;
        woken[count++].count = news->item[i].ready;
    }
    weft_ready_note(engine, woken, count);
    weft_tally_count(engine, news);
    if (engine->on_news)
        tell_listener(engine, news, woken, count);
    if (news->workers > 0 && engine->on_leases)
        engine->on_leases(engine->leases_context, news->worker, news->workers);
    tell_ended(engine, news);
    if (news->flows > 0)
        tell_flows(engine, news);
    if (news->gates > 0)
        tell_gates(engine, news);
    tell_budgets(engine, news);
}

void weft_news_lane(struct weft_engine *engine, int32_t ns, const char *lane)
{
    struct weft_ready *ready = &engine->ready;
    if (!engine->on_news)
        return;
    const struct freed_lane all = {.ns = ns, .lane = lane, .count = MANY};
    struct weft_woken woken[WAKES_MAX];
    size_t count = 0;
    pthread_mutex_lock(&ready->lock);
    wake_lane(engine, &all, woken, &count);
    pthread_mutex_unlock(&ready->lock);
    if (count > 0)
        engine->on_news(engine->news_context,
                        &(struct weft_news){.woken = woken, .count = count, .due_us = WEFT_NEVER});
}

void weft_engine_on_news(struct weft_engine *engine, weft_news_fn *fn, void *context)
{
    engine->on_news = fn;
    engine->news_context = context;
}

void weft_engine_on_leases(struct weft_engine *engine, weft_leases_fn *fn, void *context)
{
    engine->on_leases = fn;
    engine->leases_context = context;
}

void weft_engine_on_flows(struct weft_engine *engine, weft_flows_fn *fn, void *context)
{
    engine->on_flows = fn;
    engine->flows_context = context;
}

void weft_engine_on_gates(struct weft_engine *engine, weft_gates_fn *fn, void *context)
{
    engine->on_gates = fn;
    engine->gates_context = context;
}

void weft_engine_on_budgets(struct weft_engine *engine, weft_budgets_fn *fn, void *context)
{
    engine->on_budgets = fn;
    engine->budgets_context = context;
}

void weft_engine_on_ended(struct weft_engine *engine, weft_ended_fn *fn, void *context,
                          const _Atomic size_t *awaited)
{
    engine->on_ended = fn;
    engine->ended_context = context;
    engine->ends_awaited = awaited;
}

enum weft_rc weft_engine_heard(struct weft_engine *engine, const struct weft_woken *woken,
                               size_t count, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_id_list queues = {.id = weft_new_array(arena, int32_t, count + 1)};
    for (size_t i = 0; i < count; i++)
        queues.id[queues.count++] = woken[i].queue;
    enum weft_rc rc = weft_load_queues(engine, &queues, err);
    weft_budget_queues_heard(engine, woken, count);
    if (!rc)
        weft_ready_note(engine, woken, count);
    weft_arena_free(arena);
    return rc;
}
