/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_WAIT_NOTICE_H
#define WEFT_NET_WAIT_NOTICE_H

/* Notices between replicas: which queues have new work, which workers lost leases. */

#include "engine/tx/commit_effects.h"
#include "net/server.h"

struct weft_notices; /* opaque */
struct weft_server;

struct weft_notices *weft_notices_new(struct weft_server *server);
/* Ends the thread, which wakes waiting requests: their list must still be there. */
void weft_notices_stop(struct weft_notices *notices); /* NULL is fine */
void weft_notices_free(struct weft_notices *notices); /* NULL is fine */
/* Sends these wakes to the other replicas, soon and together with others. */
void weft_notices_add(struct weft_notices *notices, const struct weft_woken *woken, size_t count);
/* The same: others ended leases of these workers, by number. */
void weft_notices_add_workers(struct weft_notices *notices, const int32_t *worker, size_t count);

#endif
