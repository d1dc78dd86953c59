/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_GROUP_GATE_WORK_H
#define WEFT_NET_GROUP_GATE_WORK_H

/*
 * Admissions of gates, on the engine threads beside the requests: one task at a time admits for all
 * gates that were added since the last one, so gates that move at the same time share transactions.
 * A failure is left to the unblock scanner.
 */

#include <stddef.h>

struct weft_gate_work; /* opaque */
struct weft_server;

struct weft_gate_work *weft_gate_work_new(struct weft_server *server);
/* Gates that are added from here on are left to the scanner. NULL is fine. */
void weft_gate_work_stop(struct weft_gate_work *work);
void weft_gate_work_free(struct weft_gate_work *work); /* the engine threads are gone; or NULL */
/* context is the weft_gate_work: see weft_engine_on_gates(). */
void weft_gate_work_add(void *context, const char *const *gate, size_t count);

#endif
