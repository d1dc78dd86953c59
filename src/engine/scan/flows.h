/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_SCAN_FLOWS_H
#define WEFT_ENGINE_SCAN_FLOWS_H

/* Shared by the scanners of flows. */

#include "engine/scan/pass.h"
#include "store/store.h"

#define WEFT_FLOW_LEFT_US  WEFT_SECOND /* work older than this was left by its process */
#define WEFT_FLOW_STAGE_US ((weft_usec)600 * WEFT_SECOND) /* to write a flow in parts */
#define WEFT_FLOW_PASS_US  (50 * WEFT_MS) /* a pass over many flows ends after this */
enum { WEFT_FLOW_PASS_HOPS = 8 };         /* and cascades so far: others need the thread */

/* A running pass. */
struct weft_flow_scan {
    struct weft_engine *engine;
    const struct weft_pass_config *config;
    int32_t ns; /* see weft_pass_namespace() */
    struct weft_arena *arena;
    weft_usec began_us; /* boot time */
};
WEFT_MUST_CHECK enum weft_rc weft_flow_scan_begin(struct weft_engine *engine,
                                                  const struct weft_pass_config *config,
                                                  struct weft_flow_scan *ret_scan,
                                                  struct weft_err *err);
void weft_flow_scan_end(struct weft_flow_scan *scan);
bool weft_flow_scan_late(const struct weft_flow_scan *scan); /* it has used up its time */

/* The part of the statements of flow_scan.sql that all of them have. */
struct weft_scope_in weft_flow_scan_scope(const struct weft_flow_scan *scan);

/*
 * Runs completion_due or groups_due: flows with work older than WEFT_FLOW_LEFT_US.
 */
WEFT_MUST_CHECK enum weft_rc weft_flow_scan_look(const struct weft_flow_scan *scan,
                                                 enum weft_stmt stmt, struct weft_rows *ret_rows,
                                                 struct weft_err *err);

struct weft_erased {
    uint64_t flows, members, skipped_locked;
    bool more;
};
/* Continues to remove the marked flows. Adds to *ret_erased. */
WEFT_MUST_CHECK enum weft_rc weft_flows_erase(const struct weft_flow_scan *scan,
                                              struct weft_erased *ret_erased, struct weft_err *err);
/* Marks flows that are deleted or past their retention, and continues to remove marked flows. */
WEFT_MUST_CHECK enum weft_rc weft_flows_retire(struct weft_engine *engine,
                                               const struct weft_pass_config *config,
                                               struct weft_erased *ret_erased,
                                               struct weft_err *err);

#endif
