/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_UPKEEP_PRESENCE_H
#define WEFT_NET_UPKEEP_PRESENCE_H

/* This replica among the others: its row in the store, and the grace after a gap in service. */

#include "engine/admin/replicas.h"
#include "net/server.h"
#include "weft/admin.h"

struct weft_presence; /* opaque */
struct weft_server;

struct weft_presence *weft_presence_new(struct weft_server *server); /* needs the supervisor */
void weft_presence_free(struct weft_presence *presence);             /* NULL is fine */
/* It serves from here on, after a gap: the grace begins. On the upkeep thread, as the next two. */
void weft_presence_up(struct weft_presence *presence);
/* Writes the row when it is due, and reads the other replicas' rows. After a poll that succeeded.
 */
void weft_presence_turn(struct weft_presence *presence, struct weft_arena *arena);
/* Removes the row. */
void weft_presence_leave(struct weft_presence *presence);
/* Sets replica and host of a status; the host is borrowed. */
void weft_presence_sign(const struct weft_presence *presence, struct weft_scanner_status *status);
/* When the grace of a service ends that this replica has been part of since up_since_us. */
weft_usec weft_presence_grace(const struct weft_replica_rows *rows, const struct weft_id *self,
                              weft_usec up_since_us);
/* Scanners that no living replica runs, as "name, name"; NULL: all are covered, as last seen. */
const char *weft_presence_uncovered(struct weft_server *server, struct weft_arena *arena);

#endif
