/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_GROUP_CLAIMS_H
#define WEFT_NET_GROUP_CLAIMS_H

/* Claims: several requests share one call of the engine; a claim that finds no work may wait. */

#include "net/group/group_run.h"
#include "net/route.h"

enum { WEFT_LONG_POLL_MAX_MS = 60000 };

weft_route_fn weft_claims_read; /* items.count is how many executions it may give */
/* Claims as a part of a batch. The end answers each, or puts it to sleep. */
weft_part_begin_fn weft_claims_begin;
weft_part_end_fn weft_claims_end;
/* The answer of a claim was not delivered: its leases are released. On the loop thread. */
void weft_claims_undelivered(struct weft_request *request);

#endif
