/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_UPKEEP_SUPERVISOR_H
#define WEFT_NET_UPKEEP_SUPERVISOR_H

/* Runs the passes of the scanners on the engine threads, as scanner_schedule.h decides. */

#include "engine/scan/pass.h"
#include "net/server.h"
#include "weft/admin.h"

struct weft_supervisor; /* opaque */

struct weft_supervisor *weft_supervisor_new(struct weft_server *server);
void weft_supervisor_start(struct weft_supervisor *supervisor);
/* No new passes begin from here on. */
void weft_supervisor_quiesce(struct weft_supervisor *supervisor);
/*
 * The same, and waits for passes under way, at most until then (boot time); logs what is left.
 * False: some are still under way. The engine threads must still be there.
 */
bool weft_supervisor_stop(struct weft_supervisor *supervisor, weft_usec until_us);
void weft_supervisor_free(struct weft_supervisor *supervisor); /* NULL is fine */

/* Runs a pass instead of weft_engine_pass(); a test sets its own, before the start. */
typedef enum weft_rc weft_run_pass_fn(struct weft_engine *engine, enum weft_scanner scanner,
                                      const struct weft_pass_config *config,
                                      struct weft_pass_report *ret_report, struct weft_err *err);
void weft_supervisor_use(struct weft_supervisor *supervisor, weft_run_pass_fn *pass,
                         struct weft_engine *engine);

/* The slow poll found these due times. */
void weft_supervisor_set_due(struct weft_supervisor *supervisor,
                             const weft_usec due_us[WEFT_SCANNER_COUNT]);
/* A notice says that this scanner has work now: see weft_schedule_wake(). */
void weft_supervisor_wake(struct weft_supervisor *supervisor, enum weft_scanner scanner);
/* No lease is taken away before this moment of the store's clock, nor is its loss counted. */
void weft_supervisor_hold(struct weft_supervisor *supervisor, weft_usec until_us);
/* New settings hold at once. */
void weft_supervisor_set(struct weft_supervisor *supervisor,
                         const struct weft_scanner_setting setting[WEFT_SCANNER_COUNT]);

/* Settings and totals of each scanner of this replica: WEFT_SCANNER_COUNT of them. */
struct weft_scanner_status *weft_supervisor_status(struct weft_server *server,
                                                   struct weft_arena *arena);
/*
 * One pass now, for an operator, with the scanner's own batch and filter, whether it is enabled or
 * not; counted like any other. Blocks: for handlers on engine threads.
 */
WEFT_MUST_CHECK enum weft_rc weft_supervisor_run(struct weft_server *server,
                                                 enum weft_scanner scanner,
                                                 struct weft_pass_report *ret_report,
                                                 struct weft_err *err);

#endif
