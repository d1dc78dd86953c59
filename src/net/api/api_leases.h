/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_API_LEASES_H
#define WEFT_NET_API_API_LEASES_H

/* Handlers of calls with a lease: renew, complete, fail, delay, release. */

#include "net/route.h"

weft_route_fn weft_renew_read, weft_complete_read, weft_fail_read, weft_delay_read,
    weft_release_read;
weft_route_write_fn weft_renew_write, weft_complete_write, weft_fail_write, weft_put_back_write;

#endif
