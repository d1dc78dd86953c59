/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a cycle claims for. It looks at queues with ready work, a bounded number from where the last
 * look ended, gathers their lanes by target, and shares the calls that may still begin among the
 * targets with room: those that were served the longest ago come first, and none gets more than an
 * equal share while others want theirs. So no endpoint and no namespace waits for another.
 *
 * A target whose claim found nothing rests until a wake names one of its queues. Where there are
 * more queues than a look sees, the next cycles go on until all were seen once.
 */

#include "net/executor/claims.h"

#include "base/clock.h"
#include "engine/ready/ready.h"

#include <stdlib.h>
#include <string.h>

enum { LOOK_MAX = 1024 };           /* queues of one look */
#define LATER_US (10 * WEFT_SECOND) /* after a failure that nothing here can mend */

static const char *const carried_kinds[] = {"http"};

/* ---- Which targets --------------------------------------------------------------------------- */

static bool names_lane(const struct weft_target *target, const char *lane)
{
    for (size_t i = 0; i < target->lanes; i++)
        if (target->lane[i] == lane || strcmp(target->lane[i], lane) == 0)
            return true;
    return false;
}

/* Notes a queue under its target; the target is new to this look: it goes into the list. */
static void note_queue(struct weft_executor *executor, const struct weft_queue *queue,
                       struct weft_target **target, size_t *count)
{
    if (*queue->capset_text)
        return; /* it waits for a worker that has these capabilities */
    struct weft_target *found =
        weft_target_of(executor, queue->ns_name, queue->target ? queue->target : "");
    if (found->look != executor->looks) {
        found->look = executor->looks;
        found->lanes = 0;
        target[(*count)++] = found;
    }
    if (found->lanes < WEFT_CLAIM_LANES_MAX && !names_lane(found, queue->lane_name))
        found->lane[found->lanes++] = queue->lane_name;
}

static size_t find_targets(struct weft_executor *executor, struct weft_arena *arena,
                           struct weft_target **target)
{
    const struct weft_queue **queue = weft_new_array(arena, const struct weft_queue *, LOOK_MAX);
    size_t total, count = 0;
    size_t seen = weft_ready_carried(executor->engine, &executor->place, queue, LOOK_MAX, &total);
    executor->looks++;
    executor->looked_at += seen;
    executor->full = executor->looked_at < total; /* the next cycle goes on with this round */
    if (!executor->full)
        executor->looked_at = 0;
    for (size_t i = 0; i < seen; i++)
        note_queue(executor, queue[i], target, &count);
    return count;
}

/* Keeps the targets that may be claimed for now; the others say when they may be. */
static size_t keep_open(struct weft_executor *executor, struct weft_target **target, size_t count,
                        weft_usec now_us)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (target[i]->rest_us <= now_us)
            target[i]->rest_us = 0;
        target[i]->asked =
            target[i]->rest_us == 0 ? weft_target_room(executor, target[i], now_us) : 0;
        if (target[i]->asked > 0)
            target[kept++] = target[i];
        else if (weft_target_next(target[i], now_us) < executor->next_us)
            executor->next_us = weft_target_next(target[i], now_us);
    }
    return kept;
}

/* ---- How many -------------------------------------------------------------------------------- */

static int by_turn(const void *a, const void *b)
{
    uint64_t left = (*(struct weft_target *const *)a)->served,
             right = (*(struct weft_target *const *)b)->served;
    return (left > right) - (left < right);
}

static int by_room(const void *a, const void *b)
{
    size_t left = (*(struct weft_target *const *)a)->asked,
           right = (*(struct weft_target *const *)b)->asked;
    return (left > right) - (left < right);
}

/* Shares `left` calls; the targets with the least room come first, so what they leave is shared. */
static void share_out(struct weft_executor *executor, struct weft_target **target, size_t count,
                      size_t left)
{
    qsort((void *)target, count, sizeof(struct weft_target *), by_room);
    for (size_t i = 0; i < count; i++) {
        size_t share = left / (count - i);
        if (target[i]->asked > share)
            target[i]->asked = share;
        left -= target[i]->asked;
        target[i]->served = executor->looks;
    }
}

static size_t room_of_all(const struct weft_executor *executor)
{
    size_t room =
        executor->in_flight_max > executor->runs ? executor->in_flight_max - executor->runs : 0;
    /*
     * What is over is written in this cycle, up to a batch: more of it waits for the store. And
     * half of the memory is left to the answers of calls that are under way.
     */
    if (executor->overs > WEFT_BATCH_MAX || atomic_load(&executor->bytes) > WEFT_EXECUTOR_BYTES / 2)
        room = 0;
    return room < WEFT_BATCH_MAX ? room : WEFT_BATCH_MAX;
}

size_t weft_claims_choose(struct weft_executor *executor, struct weft_arena *arena,
                          struct weft_executor_claims *ret_claims)
{
    weft_usec now_us = weft_boot_us();
    struct weft_target **target = weft_new_array(arena, struct weft_target *, LOOK_MAX);
    size_t room = room_of_all(executor);
    *ret_claims = (struct weft_executor_claims){.target = target};
    if (executor->looked_at == 0)
        executor->next_us = WEFT_NEVER;
    /* The next cycle has room for what this one writes; after that, ends of calls make room. */
    executor->full = room == 0 && executor->overs > 0;
    if (room == 0)
        return 0;
    size_t count = keep_open(executor, target, find_targets(executor, arena, target), now_us);
    size_t most = room < WEFT_EXECUTOR_CLAIMS_MAX ? room : WEFT_EXECUTOR_CLAIMS_MAX;
    if (count > most) {
        qsort((void *)target, count, sizeof(struct weft_target *), by_turn);
        executor->full = true;
        count = most;
    }
    share_out(executor, target, count, room);
    for (size_t i = 0; i < count; i++) {
        if (!weft_executor_meet(executor, target[i]->ns)) {
            target[i]->rest_us = now_us + LATER_US;
            continue;
        }
        ret_claims->name[ret_claims->count] = target[i]->name;
        ret_claims->item[ret_claims->count] =
            (struct weft_claim){.ns = target[i]->ns,
                                .worker = executor->worker,
                                .lanes = target[i]->lane,
                                .lane_count = target[i]->lanes,
                                .kinds = carried_kinds,
                                .kind_count = WEFT_LEN(carried_kinds),
                                .max = (uint32_t)target[i]->asked,
                                .lease_ms = WEFT_EXECUTOR_LEASE_MS};
        target[i]->got = 0;
        target[ret_claims->count++] = target[i];
    }
    return ret_claims->count;
}

/* ---- What they found ------------------------------------------------------------------------- */

void weft_claims_settle(struct weft_executor *executor, const struct weft_executor_claims *claims,
                        const struct weft_claim_result *result)
{
    enum { SOON_US = 5000 }; /* another process has the lane in this moment */
    weft_usec now_us = weft_boot_us();
    weft_usec rest_us = result->opens_in_us ? now_us + result->opens_in_us : WEFT_NEVER;
    if (result->contended && rest_us > now_us + SOON_US)
        rest_us = now_us + SOON_US;
    for (size_t i = 0; i < result->count; i++)
        claims->target[result->item[i].claim]->got++;
    for (size_t i = 0; i < claims->count; i++) {
        struct weft_target *target = claims->target[i];
        target->used_us = now_us;
        if (target->got > 0)
            executor->full |= target->got == target->asked || result->contended; /* more? */
        else
            target->rest_us = rest_us;
        if (target->rest_us && target->rest_us < executor->next_us)
            executor->next_us = target->rest_us;
    }
}

void weft_claims_woken(struct weft_executor *executor, const int32_t *queue, size_t count)
{
    if (count > 0)
        executor->looked_at = 0;
    for (size_t i = 0; i < count; i++) {
        const struct weft_queue *found = weft_find_queue(executor->engine, queue[i]);
        if (!found || !found->carried)
            continue;
        struct weft_target *target =
            weft_target_find(executor, found->ns_name, found->target ? found->target : "");
        if (target)
            target->rest_us = 0;
    }
}

void weft_claims_all_woken(struct weft_executor *executor)
{
    executor->looked_at = 0;
    for (size_t i = 0; i < executor->target.capacity; i++)
        if (executor->target.entry[i].key)
            ((struct weft_target *)executor->target.entry[i].value)->rest_us = 0;
}
