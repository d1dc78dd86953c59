/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs due hops before a call depends on the state of a flow.
 *
 * The end of a member is acknowledged before the cascade has handled it, so for a moment the row of
 * a flow says "open" although its last member has ended. A call that depends on the state of the
 * flow (cancel, delete, growth, replay, edges) checks, under the lock of the flow, whether hops are
 * due. If so it ends its transaction without a change, runs some hops, and starts over.
 *
 * The check sees every end that was acknowledged before the call: its completion was committed
 * before, and the check is a later statement than the one that locked the flow. An end that commits
 * after the check is concurrent with the call; its completion stays in the outbox, and the cascade
 * handles it after the call.
 *
 * The rounds end. If no member lives, only skipped and re-blocked nodes add completions, and each
 * of them costs a hop: the outbox becomes empty, unless replays arrive faster, and then the call
 * fails with WEFT_BUSY. If a member lives, the flow is not over, whatever the outbox holds: after a
 * few rounds the call is carried out as if it had come before the ends that keep arriving. Another
 * replica may hold the lock of the flow and run the hops; the next round of the caller waits for
 * that lock, so rounds do not spin.
 */

#include "engine/flow/flow_settle.h"

#include "base/err.h"
#include "engine/flow/cascade.h"
#include "engine/flow/flow_hold.h"

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
    return weft_hint(err, weft_fail(err, WEFT_BUSY, "the flow is being brought up to date"),
                     "try again in a moment");
}
