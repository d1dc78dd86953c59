/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_EXECUTOR_LEASES_H
#define WEFT_NET_EXECUTOR_LEASES_H

/* The leases of calls that are under way. Private to net/executor. */

#include "net/executor/executor_state.h"

/* When leases are to be renewed (boot time); WEFT_NEVER: there are none. */
weft_usec weft_executor_renew_us(const struct weft_executor *executor);
/* Renews up to WEFT_BATCH_MAX of them. */
WEFT_MUST_CHECK enum weft_rc weft_executor_renew(struct weft_executor *executor,
                                                 struct weft_err *err);
/* Aborts the calls whose leases others have ended, in the namespaces where that was reported. */
void weft_executor_watch(struct weft_executor *executor);

#endif
