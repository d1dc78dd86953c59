/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_UPKEEP_UPKEEP_H
#define WEFT_NET_UPKEEP_UPKEEP_H

/*
 * The slow poll of the store, the chores of a replica, and this replica among the others: its row
 * in the store, and the grace after a gap in service.
 */

#include "engine/admin/replicas.h"
#include "weft/admin.h"

struct weft_server;
struct weft_upkeep; /* opaque */

#define WEFT_POLL_US WEFT_SECOND /* the period of the slow poll */

struct weft_upkeep *weft_upkeep_new(struct weft_server *server);        /* needs the supervisor */
const struct weft_id *weft_upkeep_id(const struct weft_upkeep *upkeep); /* of this replica */
void weft_upkeep_start(struct weft_upkeep *upkeep);
/* Ends the thread, which wakes waiting requests: their list must still be there. */
void weft_upkeep_stop(struct weft_upkeep *upkeep);
void weft_upkeep_free(struct weft_upkeep *upkeep);
/* Executions become due at this moment of the store's clock. */
void weft_upkeep_expect(struct weft_upkeep *upkeep, weft_usec due_us);
/* Sets replica and host of a status; the host is borrowed. */
void weft_upkeep_sign(const struct weft_upkeep *upkeep, struct weft_scanner_status *status);
/* When the grace of a service ends that this replica has been part of since up_since_us. */
weft_usec weft_upkeep_grace(const struct weft_replica_rows *rows, const struct weft_id *self,
                            weft_usec up_since_us);
/* Scanners that no living replica runs, as "name, name"; NULL: all are covered, as last seen. */
const char *weft_upkeep_uncovered(struct weft_server *server, struct weft_arena *arena);

#endif
