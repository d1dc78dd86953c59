/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_API_HEALTH_H
#define WEFT_NET_API_API_HEALTH_H

/* Handlers outside /v1: health, readiness, metrics, the OpenAPI document. */

#include "net/route.h"

weft_route_fn weft_health_read, weft_readiness_read, weft_metrics_read, weft_metrics_run,
    weft_openapi_read;

#endif
