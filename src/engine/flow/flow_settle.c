/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What has ended is looked at before a flow is judged.
 *
 * The end of a member is acknowledged before the cascade has looked at it, so for a moment the row
 * of a flow says "open" although its last member has ended. A call that depends on how the flow
 * stands (cancel, delete, growth, replay, edges) asks, under the lock of the flow, whether hops are
 * due. If so it ends its transaction without a change, runs some hops, and begins again.
 *
 * An end that was acknowledged before the call is seen: its completion was committed before, and
 * the question is asked by a later statement than the one that locked the flow. An end that commits
 * after the question is concurrent with the call; its completion stays in the outbox, and the
 * cascade looks at it after the call.
 *
 * This comes to an end. Where no member lives, no completion is added but by skips and returns,
 * each of which costs a hop of its own: the flow runs dry, unless replays come in faster, and then
 * the caller is told to try again. Where a member lives, the flow is not over, whatever the outbox
 * holds: after a few rounds the call is carried out as if it had come before the ends that keep
 * arriving. Another replica may have the lock of the flow and so the hops; the next round of the
 * caller waits for that lock, so rounds do not spin.
 */

#include "engine/flow/flow.h"

enum {
    HOPS_AT_ONCE = 8,
    FLOWS_AT_ONCE = 256,
    ROUNDS_LIVING = 4,
    ROUNDS_MOST = 250,
};

bool weft_flow_unsettled(const struct weft_flow_due *due, unsigned round)
{
    return due->pending && !(due->living && round >= ROUNDS_LIVING);
}

enum weft_rc weft_flow_settle(struct weft_engine *engine, const struct weft_id *flow, size_t count,
                              unsigned round, struct weft_err *err)
{
    struct weft_cascaded cascaded = {0};
    enum weft_rc rc = WEFT_OK;
    for (size_t at = 0; at < count && round < ROUNDS_MOST && !rc; at += FLOWS_AT_ONCE)
        rc = weft_cascade_some(engine, flow + at,
                               count - at < FLOWS_AT_ONCE ? count - at : FLOWS_AT_ONCE,
                               HOPS_AT_ONCE, &cascaded, err);
    if (round < ROUNDS_MOST)
        return rc;
    rc = weft_fail(err, WEFT_BUSY, "the flow is being brought up to date");
    if (err)
        err->hint = "try again in a moment";
    return rc;
}
