/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_ANSWERS_H
#define WEFT_NET_ANSWERS_H

/*
 * The memory that answers take until their clients have read them. While a namespace holds half of
 * the budget, or all of it is taken, its reads wait in their queues (plan.c); connections that take
 * nothing of their answers are shut first (peer.c). What is beyond twice the budget is not sent at
 * all. Numbers are added on the loop thread and read on any.
 */

#include "base/base.h"

#include <stdatomic.h>

enum { WEFT_ANSWERS_BUCKETS = 256 };

struct weft_answers {
    uint64_t most; /* bytes; set before the first call */
    _Atomic uint64_t all;
    _Atomic uint64_t of[WEFT_ANSWERS_BUCKETS]; /* namespaces; some may share a number */
};

void weft_answers_take(struct weft_answers *answers, const char *ns, size_t size);
/* True when reads that had to wait may begin. */
bool weft_answers_give(struct weft_answers *answers, const char *ns, size_t size);
/* Whether a read of a namespace may begin. A weft_fair_may: context is the weft_answers. */
bool weft_answers_has_room(const void *context, const char *ns);
/* Whether an answer of this size must not be sent. */
bool weft_answers_refuse(const struct weft_answers *answers, size_t size);
/* Bytes to be freed by shutting connections; 0: there is enough room. */
uint64_t weft_answers_excess(const struct weft_answers *answers);

#endif
