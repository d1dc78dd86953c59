/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_API_WATCH_H
#define WEFT_NET_API_API_WATCH_H

/* Handlers of watches: a worker waits for the end of its leases by others. */

#include "net/route.h"

weft_route_fn weft_watch_read, weft_watch_run;

#endif
