/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_API_WORKERS_H
#define WEFT_NET_API_API_WORKERS_H

/* Handlers of workers. */

#include "net/route.h"

weft_route_fn weft_workers_read, weft_workers_run, weft_goodbye_read, weft_goodbye_run;

#endif
