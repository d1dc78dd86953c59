/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_API_SCANNERS_H
#define WEFT_NET_API_API_SCANNERS_H

/* Handlers of replicas and scanners. */

#include "net/route.h"

weft_route_fn weft_replicas_read, weft_replicas_run, weft_scanners_read, weft_scanners_run,
    weft_scan_read, weft_scan_run;

#endif
