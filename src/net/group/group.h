/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_GROUP_GROUP_H
#define WEFT_NET_GROUP_GROUP_H

/* The engine threads and the queues in front of them. */

#include <stdbool.h>
#include <stddef.h>

struct weft_groups; /* opaque */
struct weft_request;
struct weft_server;

struct weft_groups *weft_groups_new(struct weft_server *server);
/* Runs all that is queued, then ends the threads. Requests that come later are refused. */
void weft_groups_stop(struct weft_groups *groups);
/* After all that may add tasks has ended: runs the tasks that came after the threads' end. */
void weft_groups_free(struct weft_groups *groups);
/*
 * Queues requests (linked by next), each by its route's group. Requests that find the queues full
 * are answered `rate_limited` at once.
 */
void weft_groups_put(struct weft_groups *groups, struct weft_request *first);
/* Queues a request that was accepted before: never refused. */
void weft_groups_put_again(struct weft_groups *groups, struct weft_request *request);
/* A request that had to wait may run now. */
void weft_groups_look(struct weft_groups *groups);
/* Answers reads that have waited too long for room for their answers; about once a second. */
void weft_groups_sweep(struct weft_groups *groups);
/* When little ran since the last call: true, and the threads give back memory they do not need. */
bool weft_groups_rest(struct weft_groups *groups);
/* The call of this thread does long work outside its transaction: weft_engine_on_side_work(). */
void weft_groups_side_work(void *context);
/*
 * Runs a task on an engine thread, beside the requests; fn frees its context. A task may write, but
 * does not count as a writing call: one that reads for long would keep all writing calls away from
 * a store with one writer.
 */
void weft_groups_do(struct weft_groups *groups, void (*fn)(struct weft_server *, void *),
                    void *context);

#endif
