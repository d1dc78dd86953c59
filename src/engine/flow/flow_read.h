/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_FLOW_FLOW_READ_H
#define WEFT_ENGINE_FLOW_FLOW_READ_H

/* Reading one flow with a page of its nodes, and lists of flows. */

#include "engine/engine.h"

/*
 * One flow with a page of its nodes; the page is put in the arena (ret_page->arena stays NULL).
 * A page may be short while there is more, where its nodes come after very many.
 */
struct weft_flow_asking {
    const char *ns;
    struct weft_id flow;
    uint32_t limit;    /* nodes, 1..1000; 0: none */
    const char *after; /* cursor of the last page, NULL: the first */
    bool counts;       /* also how many members are in each state, which looks at every one */
};
WEFT_MUST_CHECK enum weft_rc
weft_engine_flow(struct weft_engine *engine, const struct weft_flow_asking *asking,
                 struct weft_arena *arena, struct weft_flow_page *ret_page, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_flows(struct weft_engine *engine,
                                               const struct weft_flow_listing *listing,
                                               struct weft_arena *arena,
                                               struct weft_flows *ret_flows, struct weft_err *err);

#endif
