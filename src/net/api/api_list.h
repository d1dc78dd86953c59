/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_API_LIST_H
#define WEFT_NET_API_API_LIST_H

/* Handlers of the list of executions. */

#include "net/route.h"

weft_route_fn weft_executions_read, weft_executions_run;

#endif
