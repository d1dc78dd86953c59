/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_HTTP_ANSWERS_H
#define WEFT_NET_HTTP_ANSWERS_H

/*
 * The memory that answers take until their clients have read them (answer_bytes). While a namespace
 * holds half of the budget, or all of it is taken, its reads wait in their queues (plan.c) and its
 * claims in the list of waiters (waits.c), both for WEFT_ANSWERS_WAIT_US; then they are answered
 * `unavailable`. Connections that take nothing of their answers are shut first (peer.c). What is
 * beyond twice the budget is not sent at all.
 *
 * A claim cannot be refused once its leases are given. So room is reserved before it runs, and the
 * answer is counted by the engine thread that writes it, before it gives that room back. The
 * reservation is for a whole call of the engine, whose claims share WEFT_BATCH_BYTES of payloads,
 * and at most a sixteenth of the budget: with a small budget the calls of a quiet server would run
 * one at a time otherwise. What a namespace can hold is therefore half of the budget, and one
 * answer for each call that is under way: there are at most WEFT_JOINTS_MAX + 1 of these.
 */

#include "base/err.h"

#include <stdatomic.h>

enum { WEFT_ANSWERS_BUCKETS = 256 };

#define WEFT_ANSWERS_WAIT_US (5 * WEFT_SECOND) /* how long a request waits for room */

struct weft_answers {
    uint64_t most;                             /* bytes; set before the first call */
    _Atomic uint64_t all;                      /* `reserved` included */
    _Atomic uint64_t reserved;                 /* for claims that run */
    _Atomic uint64_t of[WEFT_ANSWERS_BUCKETS]; /* namespaces; some may share a number */
};

void weft_answers_take(struct weft_answers *answers, const char *ns, size_t size);
/* True when reads that had to wait may begin. */
bool weft_answers_give(struct weft_answers *answers, const char *ns, size_t size);
/* Whether a read or a claim of a namespace may begin. */
bool weft_answers_has_room(const struct weft_answers *answers, const char *ns);
/* WEFT_UNAVAILABLE: names the budget that is full, its size, and the setting that makes it larger.
 */
enum weft_rc weft_answers_full(const struct weft_answers *answers, const char *ns,
                               struct weft_err *err);

/* Room that is reserved for one claim of a call. The name may be gone when it is given back. */
struct weft_answers_room {
    size_t bucket, size;
};
/* Bytes that may be reserved for one call of the engine. */
size_t weft_answers_call_max(const struct weft_answers *answers);
struct weft_answers_room weft_answers_reserve(struct weft_answers *answers, const char *ns,
                                              size_t size);
/* True when reads that had to wait may begin. */
bool weft_answers_unreserve(struct weft_answers *answers, const struct weft_answers_room *room);

/* Whether an answer must not be sent: one that takes so many bytes beyond the counted ones. */
bool weft_answers_refuse(const struct weft_answers *answers, size_t size);
/* Bytes to be freed by shutting connections; 0: there is enough room. */
uint64_t weft_answers_excess(const struct weft_answers *answers);

#endif
