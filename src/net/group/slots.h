/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_GROUP_SLOTS_H
#define WEFT_NET_GROUP_SLOTS_H

/* Requests that run alone, and tasks: how many threads each class, namespace and token may have. */

#include "net/group/plan.h"

/* Each group has a turn, with the number of the group; the last turn is that of tasks. */
enum { WEFT_TURN_TASKS = WEFT_GROUP_COUNT };

/* Every request that is folded writes. */
bool weft_turn_writes(size_t turn);
/* Its calls may take long: all that runs alone but quick reads, and tasks. */
bool weft_turn_is_slow(size_t turn);

/* Threads that one class may have. */
uint32_t weft_slots_of(const struct weft_plan *plan, enum weft_group class);
/* Whether a thread is left for this turn beside the calls that run already. */
bool weft_slot_has_thread(const struct weft_plan *plan, size_t turn);

/* A class of a plan, for the turns of namespaces in it. */
struct weft_class_of_plan {
    const struct weft_plan *plan;
    enum weft_group class;
};
/*
 * Whether the namespace and the token of a request may have one more thread for a class; context is
 * a weft_class_of_plan. Reads wait while the answers of their namespace fill the memory.
 */
bool weft_slot_is_free(const void *context, const struct weft_request *request);
struct weft_holder *weft_slot_hold(struct weft_plan *plan, enum weft_group class,
                                   const struct weft_request *request);

#endif
