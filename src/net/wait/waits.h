/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_WAIT_WAITS_H
#define WEFT_NET_WAIT_WAITS_H

/*
 * The list of requests that wait, and the thread that ends their waits in time: claims for work
 * (wait_claims.h); reads for the end of an execution, watches of workers, changes of flows for the
 * lock of the flow (wait_ends.h).
 */

struct weft_server;
struct weft_waits; /* opaque */

struct weft_waits *weft_waits_new(struct weft_server *server);
/* Needs the server's loop and groups, which its thread sweeps once a second. */
void weft_waits_start(struct weft_waits *waits);
/* From here on no request sleeps: all are answered with what there is. */
void weft_waits_stop(struct weft_waits *waits);
void weft_waits_free(struct weft_waits *waits); /* NULL is fine */
/* Tokens have changed: waiting requests whose token is no longer valid are answered. */
void weft_waits_recheck(struct weft_waits *waits);

#endif
