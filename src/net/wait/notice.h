/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_WAIT_NOTICE_H
#define WEFT_NET_WAIT_NOTICE_H

/* Notices between replicas: which queues have new work, which workers lost leases. */

#include "engine/tx/commit_effects.h"

struct weft_notices; /* opaque */
struct weft_server;

struct weft_notices *weft_notices_new(struct weft_server *server); /* or NULL: no store for it */
/* Ends the thread, which wakes waiting requests: their list must still be there. */
void weft_notices_stop(struct weft_notices *notices); /* NULL is fine */
void weft_notices_free(struct weft_notices *notices); /* NULL is fine */
/* Sends these wakes to the other replicas, soon and together with others. */
void weft_notices_add(struct weft_notices *notices, const struct weft_woken *woken, size_t count);
/* The same: others ended leases of these workers, by number. */
void weft_notices_add_workers(struct weft_notices *notices, const int32_t *worker, size_t count);

enum { WEFT_NOTICE_QUEUES_MAX = 256, WEFT_NOTICE_WORKERS_MAX = 64 };

/*
 * What a notice says. Its text is words, each followed by a space:
 *
 *   QUEUE:COUNT   a queue got work: so many executions became ready
 *   wWORKER       others ended leases of a worker
 *   *             more than fits: look at everything
 *   inbox         an application submitted by SQL; the trigger of 0006-sql-submit sends it alone
 *
 * A reader skips a word that it does not know, so a newer replica may add words of its own: the
 * poll of an older one finds the same within a second.
 */
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
