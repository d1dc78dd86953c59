/* SPDX-License-Identifier: Apache-2.0 */

/* Flows on an engine in this process. */

#include "client/client.h"

#include "base/arena.h"

enum weft_rc weft_local_flow_submit(const struct weft_via *via, const struct weft_flow_spec *spec,
                                    size_t count, struct weft_flow_submitted *ret_answer,
                                    struct weft_err *err)
{
    struct weft *weft = via->weft;
    enum weft_rc rc = weft_engine_flow_submit(weft->engine, weft->ns, spec, count, ret_answer, err);
    if (!rc)
        weft_wake_workers(weft, true, WEFT_NEVER);
    return rc;
}

enum weft_rc weft_local_flow_grow(const struct weft_via *via, const struct weft_flow_growth *growth,
                                  struct weft_flow_submitted *ret_answer, struct weft_err *err)
{
    enum weft_rc rc = weft_engine_flow_grow(via->weft->engine, growth, ret_answer, err);
    if (!rc)
        weft_wake_workers(via->weft, true, WEFT_NEVER);
    return rc;
}

/* An edge from a node that has ended may let its node begin. */
enum weft_rc weft_local_flow_link(const struct weft_via *via, const struct weft_flow_edging *edging,
                                  int32_t *ret_revision, struct weft_err *err)
{
    enum weft_rc rc = weft_engine_flow_edges(via->weft->engine, edging, ret_revision, err);
    if (!rc)
        weft_wake_workers(via->weft, true, WEFT_NEVER);
    return rc;
}

/* ---- Cancelling ------------------------------------------------------------------------------ */

static enum weft_rc read_state(const struct weft_via *via, const struct weft_flow_cancelling *args,
                               enum weft_flow_state *ret_state, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    const struct weft_flow_asking asking = {.ns = args->ns, .flow = args->flow};
    struct weft_flow_page page;
    enum weft_rc rc = weft_engine_flow(via->weft->engine, &asking, arena, &page, err);
    if (!rc)
        *ret_state = page.flow.state;
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_local_flow_cancel(const struct weft_via *via,
                                    const struct weft_flow_cancelling *args, int64_t wait_ms,
                                    struct weft_flow_cancelled *ret_answer, struct weft_err *err)
{
    struct weft_look look;
    weft_look_init(&look, via->weft, WEFT_CHANGE_ENDED, wait_ms);
    struct weft_engine *engine = via->weft->engine;
    struct weft_flow_drain drain = {0};
    enum weft_rc rc = weft_engine_flow_cancel_now(engine, args, &ret_answer->state, &drain, err);
    bool ends = args->how == WEFT_FLOW_CANCEL_ALL;
    while (!rc && !ret_answer->done) {
        while (!rc && drain.more)
            rc = weft_engine_flow_drain(engine, &drain, err);
        ret_answer->cancelled = drain.cancelled_now;
        if (!rc && args->remove)
            ret_answer->state =
                ret_answer->state == WEFT_FLOW_OPEN ? WEFT_FLOW_CANCELLED : ret_answer->state;
        else if (!rc)
            rc = read_state(via, args, &ret_answer->state, err);
        ret_answer->done = ret_answer->state != WEFT_FLOW_OPEN || !ends;
        if (!rc && !ret_answer->done && !weft_look_again(&look, via))
            break;
    }
    weft_note_change(via->weft, WEFT_CHANGE_ENDED);
    return rc;
}

/* ---- Reading --------------------------------------------------------------------------------- */

enum weft_rc weft_local_flow(const struct weft_via *via, const struct weft_flow_asking *asking,
                             int64_t wait_ms, struct weft_arena *arena,
                             struct weft_flow_page *ret_page, struct weft_err *err)
{
    struct weft_look look;
    weft_look_init(&look, via->weft, WEFT_CHANGE_ENDED, wait_ms);
    const struct weft_flow_asking head = {.ns = asking->ns, .flow = asking->flow};
    enum weft_rc rc = WEFT_OK;
    bool open = wait_ms > 0;
    while (!rc && open) { /* not at all its nodes each time */
        rc = weft_engine_flow(via->weft->engine, &head, arena, ret_page, err);
        open = !rc && ret_page->flow.state == WEFT_FLOW_OPEN && weft_look_again(&look, via);
    }
    return rc ? rc : weft_engine_flow(via->weft->engine, asking, arena, ret_page, err);
}

enum weft_rc weft_local_flows(const struct weft_via *via, const struct weft_flow_listing *listing,
                              struct weft_arena *arena, struct weft_flows *ret_flows,
                              struct weft_err *err)
{
    return weft_engine_flows(via->weft->engine, listing, arena, ret_flows, err);
}
