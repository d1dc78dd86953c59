/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_UPKEEP_UPKEEP_H
#define WEFT_NET_UPKEEP_UPKEEP_H

/* The slow poll of the store, and the chores of a replica. */

#include "base/base.h"

struct weft_server;
struct weft_upkeep; /* opaque */

#define WEFT_POLL_US WEFT_SECOND /* the period of the slow poll */

struct weft_upkeep *weft_upkeep_new(struct weft_server *server);
void weft_upkeep_start(struct weft_upkeep *upkeep);
/* Ends the thread, which wakes waiting requests: their list must still be there. */
void weft_upkeep_stop(struct weft_upkeep *upkeep);
void weft_upkeep_free(struct weft_upkeep *upkeep);
/* Executions become due at this moment of the store's clock. */
void weft_upkeep_expect(struct weft_upkeep *upkeep, weft_usec due_us);

#endif
