/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_API_LEASES_H
#define WEFT_NET_API_API_LEASES_H

/* Handlers of calls with a lease: renew, complete, fail, delay, release. */

#include "net/route.h"

weft_route_fn weft_lease_read;
weft_route_write_fn weft_lease_write;

#endif
