/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/scan/flows.h"

#include <assert.h>

static_assert((int)FLOWS_BACKLOG_IN_LAST - (int)FLOWS_BACKLOG_IN_BATCH == 3 &&
                  (int)COMPLETION_DUE_IN_LAST - (int)COMPLETION_DUE_IN_BATCH == 3 &&
                  (int)GROUPS_LOOK_IN_LAST - (int)GROUPS_LOOK_IN_BATCH == 3 &&
                  (int)FLOWS_KEPT_IN_LAST - (int)FLOWS_KEPT_IN_BATCH == 3,
              "the statements of flow_scan.sql end alike: batch, ns, first, last");
static_assert((int)GROUPS_DUE_IN_BEFORE == (int)COMPLETION_DUE_IN_BEFORE &&
                  (int)GROUPS_DUE_IN_LOOK == (int)COMPLETION_DUE_IN_LOOK &&
                  (int)GROUPS_DUE_IN_BATCH == (int)COMPLETION_DUE_IN_BATCH,
              "these two begin alike");

enum { LOOK = 10000 }; /* completions, or groups, of one look */

enum weft_rc weft_flow_scan_begin(struct weft_engine *engine, const struct weft_pass_config *config,
                                  struct weft_flow_scan *ret_scan, struct weft_err *err)
{
    struct weft_flow_scan scan = {.engine = engine, .config = config, .began_us = weft_boot_us()};
    enum weft_rc rc = weft_pass_namespace(engine, config, &scan.ns, err);
    if (rc)
        return rc;
    scan.arena = weft_arena_new();
    *ret_scan = scan;
    return WEFT_OK;
}

void weft_flow_scan_end(struct weft_flow_scan *scan)
{
    weft_arena_free(scan->arena);
}

bool weft_flow_scan_late(const struct weft_flow_scan *scan)
{
    return weft_boot_us() - scan->began_us > WEFT_FLOW_PASS_US;
}

void weft_flow_scan_call(const struct weft_flow_scan *scan, size_t batch,
                         struct weft_call *ret_call)
{
    weft_set_i64(ret_call, 0, batch, scan->config->batch);
    weft_set_i64(ret_call, 0, batch + 1, scan->ns);
    weft_set_i64(ret_call, 0, batch + 2, scan->config->partition_first);
    weft_set_i64(ret_call, 0, batch + 3, scan->config->partition_last);
}

enum weft_rc weft_flow_scan_look(const struct weft_flow_scan *scan, enum weft_stmt stmt,
                                 struct weft_rows *ret_rows, struct weft_err *err)
{
    struct weft_call call;
    weft_call_init(&call, scan->arena, stmt, 0);
    weft_set_i64(&call, 0, COMPLETION_DUE_IN_BEFORE,
                 weft_clock_now(scan->engine->clock) - WEFT_FLOW_LEFT_US);
    weft_set_i64(&call, 0, COMPLETION_DUE_IN_LOOK, LOOK);
    weft_flow_scan_call(scan, COMPLETION_DUE_IN_BATCH, &call);
    return weft_tx_once(scan->engine, WEFT_TX_READ, &call, scan->arena, ret_rows, err);
}
