/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/scan/flows.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/engine_state.h"
#include "engine/scan/pass.h"

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

struct weft_scope_in weft_flow_scan_scope(const struct weft_flow_scan *scan)
{
    return (struct weft_scope_in){.batch = scan->config->batch,
                                  .ns = scan->ns,
                                  .first = scan->config->partition_first,
                                  .last = scan->config->partition_last};
}

enum weft_rc weft_flow_scan_look(const struct weft_flow_scan *scan, enum weft_stmt stmt,
                                 struct weft_rows *ret_rows, struct weft_err *err)
{
    struct weft_call call;
    weft_call_init(&call, scan->arena, stmt, 0);
    struct weft_completion_due_in *in = weft_in_completion_due(&call);
    in->before = weft_clock_now(scan->engine->clock) - WEFT_FLOW_LEFT_US;
    in->look = LOOK;
    in->scope = weft_flow_scan_scope(scan);
    return weft_tx_once(scan->engine, WEFT_TX_READ, &call, scan->arena, ret_rows, err);
}
