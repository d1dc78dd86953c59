/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_GROUP_CLAIMS_H
#define WEFT_NET_GROUP_CLAIMS_H

/* Claims: several requests share one call of the engine; a claim that finds no work may wait. */

#include "engine/job/joint.h"
#include "net/http/answers.h"
#include "net/request.h"
#include "net/route.h"
#include "net/server.h"
#include "weft/weft.h"

struct weft_answers_room;
struct weft_request;
struct weft_server;

enum { WEFT_LONG_POLL_MAX_MS = 60000 };

weft_route_fn weft_claims_read;
/* The claim of a request, from weft_claims_read() on. */
const struct weft_claim *weft_claims_of(const struct weft_request *request);
/* Runs the claims of several requests in one call and answers each, or puts it to sleep. */
void weft_claims_run(struct weft_server *server, struct weft_request **request, size_t count);
/* The same in two steps; between them the caller makes the call, if its count is not 0. */
struct weft_claims_lot {
    struct weft_arena *arena;
    struct weft_request **request;
    struct weft_answers_room *room; /* reserved for the answers */
    size_t rooms;
    struct weft_claim_call call;
    size_t *apart; /* indexes of claims whose answers need many upstreams, which are read last */
    size_t aparts;
};
struct weft_claims_lot *weft_claims_begin(struct weft_server *server, struct weft_request **request,
                                          size_t count);
void weft_claims_end(struct weft_server *server, struct weft_claims_lot *lot);
/* The answer of a claim was not delivered: its leases are released. On the loop thread. */
void weft_claims_undelivered(struct weft_request *request);

#endif
