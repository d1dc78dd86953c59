/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_WAIT_NOTICE_TEXT_H
#define WEFT_NET_WAIT_NOTICE_TEXT_H

/*
 * The text of a notice between replicas: words, each followed by a space.
 *
 *   QUEUE:COUNT   a queue got work: so many executions became ready
 *   wWORKER       a worker has to be told of leases that others ended
 *   *             more than fits: look at everything
 *   inbox         an application submitted by SQL; the trigger of 0006-sql-submit sends it alone
 *
 * A reader skips a word that it does not know, so a newer replica may add words of its own: what
 * they tell of, the poll of an older one finds within a second.
 */

#include "engine/tx/commit_effects.h"

enum { WEFT_NOTICE_QUEUES_MAX = 256, WEFT_NOTICE_WORKERS_MAX = 64 };

struct weft_notice {
    bool everything; /* '*' */
    bool inbox;
    struct weft_woken queue[WEFT_NOTICE_QUEUES_MAX];
    size_t queues;
    int32_t worker[WEFT_NOTICE_WORKERS_MAX];
    size_t workers;
};

/* Queues and workers beyond what fits are left out. */
void weft_notice_read(const char *text, struct weft_notice *ret_notice);

#endif
