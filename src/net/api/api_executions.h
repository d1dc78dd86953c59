/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_API_EXECUTIONS_H
#define WEFT_NET_API_API_EXECUTIONS_H

/* Handlers that read one execution. */

#include "net/route.h"

weft_route_fn weft_execution_read, weft_execution_run, weft_result_read, weft_payload_read,
    weft_bytes_run, weft_attempts_read, weft_attempts_run;

#endif
