/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_EXECUTOR_CYCLE_H
#define WEFT_NET_EXECUTOR_CYCLE_H

/* One cycle of the executor. Private to net/executor. */

#include "net/executor/executor_state.h"

/* Takes over the calls that have ended. `claims`: new ones may begin. */
void weft_cycle_run(struct weft_executor *executor, struct weft_outgoing_list *ended, bool claims);

#endif
