/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_SHARE_H
#define WEFT_CORE_SHARE_H

/*
 * Fair shares between tenants: stride scheduling. Pure.
 *
 * Every tenant has a `pass`, the virtual time up to which it has been served. The next turn goes to
 * the lowest pass and advances it by 1 / weight, so tenants with work get turns in proportion to
 * their weights, also when every claim takes one. A tenant that was idle starts at the virtual time
 * of the active tenants: it gets no credit for its idle time. Priority orders work within a tenant
 * and never crosses tenants.
 */

#include "base/base.h"

struct weft_share {
    double pass;    /* kept by the caller between claims */
    double weight;  /* > 0 */
    uint32_t taken; /* by this call */
    uint32_t most;  /* the ready executions it has; UINT32_MAX: unknown */
};

/* Gives out up to `max` turns; ties go to the earlier tenant. Returns how many were given. */
uint32_t weft_share_turns(struct weft_share *share, size_t count, uint32_t max);

/* Takes back turns that found no work: the tenant is not charged for them. */
void weft_share_refund(struct weft_share *share, uint32_t unused);

/* The head of a queue, as a claim sees it. */
struct weft_head {
    int32_t queue;
    int32_t priority;
    int64_t ord;
    size_t row; /* the caller's; breaks ties */
};

/*
 * Sorts the heads of several queues of one tenant into claim order: priority, then ord. The first
 * `max` of them say how many to take from each queue.
 */
void weft_share_order(struct weft_head *head, size_t count);

/* A lane with due rows, in a pass that cannot take all that is due. */
struct weft_lane_share {
    int32_t lane, ns; /* lane first: weft_i32_order() */
    uint32_t share;   /* out: how many rows the pass takes of it at most */
};

/*
 * Divides a batch between namespaces, and the part of each between its lanes, so that a namespace
 * with many lanes gets no more than one with a single lane. Sorts by (namespace, lane). If there
 * are fewer rows than namespaces or lanes, `random` decides which are served, so that no lane
 * starves.
 */
void weft_share_lanes(struct weft_lane_share *lane, size_t count, uint32_t batch, uint64_t random);

#endif
