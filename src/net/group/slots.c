/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests that are not folded run alone, in classes with slots of their own: quick reads; lists
 * and parts of streams; large bodies to be parsed; large flows, their growth, cancel and replay of
 * many; administration. A class never has all threads, slow ones and tasks together leave two, and
 * one is left to quick reads. One namespace never has all slots of a slow class, nor all threads
 * for slow classes, so that another need not wait for its long calls. Of these threads one is kept
 * for a list and one for a task while none runs, because the others may run for seconds. With
 * fewer than four threads all that is one or none, and things take turns.
 */

#include "net/group/slots.h"

#include "base/limits.h"

#include <stdio.h>
#include <string.h>

enum {
    /* Lists with a filter at once, of one token: they may look at many rows and find nothing, and
     * another token and plain lists need not wait. More of them wait in the queue, or are refused.
     */
    WALKS_MAX = 2,
    PARSED_MAX = 16 * WEFT_BATCH_MAX, /* items of one namespace that wait for their transaction */
};

/* Every request that is folded writes. */
bool weft_turn_writes(size_t turn)
{
    return turn != WEFT_TURN_TASKS && !weft_group_alone((enum weft_group)turn);
}

bool weft_turn_is_slow(size_t group)
{
    return group == WEFT_TURN_TASKS ||
           (group != WEFT_GROUP_NONE && weft_group_alone((enum weft_group)group));
}

/* Threads that slow classes and tasks may have together. */
static uint32_t slow_max(const struct weft_plan *plan)
{
    uint32_t kept = plan->threads > 3 ? 2 : plan->threads > 1 ? 1 : 0;
    return plan->threads - kept;
}

/* Threads that one class may have. */
uint32_t weft_slots_of(const struct weft_plan *plan, enum weft_group class)
{
    if (class == WEFT_GROUP_NONE)
        return slow_max(plan);
    /* With one writer, large flows one at a time are as quick. */
    if (class == WEFT_GROUP_HEAVY && plan->writers == 1)
        return 1;
    /* Tasks would wait behind passes that an operator began: these have fewer. */
    uint32_t of = class == WEFT_GROUP_ADMIN ? 6 : class == WEFT_GROUP_LIST ? 2 : 3;
    uint32_t slots = plan->threads / of;
    return slots > 0 ? slots : 1;
}

/* How many slots of a class one namespace may have. */
static uint32_t slots_of_one(uint32_t slots)
{
    return slots < 2 ? 1 : slots - 1;
}

/*
 * Whether a namespace has so much parsed already that its next body may wait: items take several
 * times the memory of the body they come from.
 */
static bool has_parsed_enough(const struct weft_plan *plan, const char *ns)
{
    size_t items = 0;
    for (size_t i = 0; i < WEFT_GROUP_COUNT; i++)
        if (!weft_group_alone((enum weft_group)i) && i != WEFT_GROUP_CLAIM)
            items += weft_fair_of(&plan->queue[i].fair, ns).items;
    return items >= PARSED_MAX;
}

/*
 * Whether the namespace and the token of a request may have one more thread for a class. Reads wait
 * while the answers of their namespace fill the memory.
 */
bool weft_slot_is_free(const void *context, const struct weft_request *request)
{
    const struct weft_class_of_plan *of = context;
    const char *ns = request->ns ? request->ns : "";
    bool reads = of->class == WEFT_GROUP_NONE || of->class == WEFT_GROUP_LIST;
    if (reads && of->plan->answers && !weft_answers_has_room(of->plan->answers, ns))
        return false;
    if (of->class == WEFT_GROUP_NONE)
        return true;
    if (of->class == WEFT_GROUP_PARSE && has_parsed_enough(of->plan, ns))
        return false;
    uint32_t walks = 0, same = 0, all = 0;
    for (uint32_t i = 0; i < of->plan->threads; i++) {
        const struct weft_holder *holder = &of->plan->holder[i];
        bool own = holder->busy && strcmp(holder->ns, ns) == 0;
        all += own;
        same += own && holder->class == of->class;
        walks += own && holder->walks && holder->token == request->token;
    }
    uint32_t slots = slots_of_one(weft_slots_of(of->plan, of->class));
    uint32_t most_walks = slots_of_one(slots);
    if (most_walks > WALKS_MAX)
        most_walks = WALKS_MAX;
    return same < slots && all < slots_of_one(slow_max(of->plan)) &&
           (!request->walks || walks < most_walks);
}

struct weft_holder *weft_slot_hold(struct weft_plan *plan, enum weft_group class,
                                   const struct weft_request *request)
{
    struct weft_holder *holder = plan->holder;
    while (holder->busy) /* there are as many as threads */
        holder++;
    holder->busy = true;
    holder->class = class;
    holder->walks = request->walks;
    holder->token = request->token;
    (void)snprintf(holder->ns, sizeof(holder->ns), "%s", request->ns ? request->ns : "");
    return holder;
}

/*
 * How many threads for slow classes are kept free of this one: for a list and for a task, while
 * none runs. Calls of the other classes may take seconds, and a list, the next node of
 * a flow and the pass over due rows would have to wait for them.
 */
static uint32_t kept_free(const struct weft_plan *plan, size_t turn)
{
    uint32_t kept = (turn != WEFT_GROUP_LIST && plan->queue[WEFT_GROUP_LIST].running == 0) +
                    (turn != WEFT_TURN_TASKS && plan->tasks_running == 0);
    uint32_t most = slow_max(plan) > 2 ? slow_max(plan) - 2 : 0; /* two may run in any case */
    return kept < most ? kept : most;
}

/* Whether a thread is left for this turn beside the calls that run already. */
bool weft_slot_has_thread(const struct weft_plan *plan, size_t turn)
{
    if (weft_turn_is_slow(turn) && plan->slow + kept_free(plan, turn) >= slow_max(plan))
        return false;
    return turn == WEFT_GROUP_NONE || plan->threads < 3 || plan->others + 1 < plan->threads;
}
