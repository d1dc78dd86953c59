/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_API_SUBMIT_H
#define WEFT_NET_API_API_SUBMIT_H

/* Handlers of submissions. */

#include "net/route.h"

weft_route_fn weft_submit_read;
weft_route_write_fn weft_submit_write;

#endif
