/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_API_LANES_H
#define WEFT_NET_API_API_LANES_H

/* Handlers of lanes. */

#include "net/route.h"

weft_route_fn weft_lanes_read, weft_lanes_run, weft_lane_read, weft_lane_run, weft_lane_put_read,
    weft_lane_put_run, weft_lane_remove_run;

#endif
