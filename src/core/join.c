/* SPDX-License-Identifier: Apache-2.0 */

#include "core/join.h"

#include <assert.h>

static uint32_t needed(const struct weft_join_state *join)
{
    if (join->total == 0)
        return 0;
    switch (join->join) {
    case WEFT_JOIN_ANY:
        return 1;
    case WEFT_JOIN_QUORUM:
        return join->k;
    case WEFT_JOIN_ALL:
        break;
    }
    return join->total;
}

enum weft_verdict_of_join weft_join_judge(const struct weft_join_state *join)
{
    uint32_t need = needed(join);
    assert(join->succeeded + join->failed <= join->total);
    if (join->succeeded >= need)
        return WEFT_JOIN_SATISFIED;
    if (join->total - join->failed < need)
        return WEFT_JOIN_IMPOSSIBLE;
    return WEFT_JOIN_PENDING;
}

enum weft_edge_state weft_edge_of(enum weft_state upstream)
{
    if (weft_state_living(upstream))
        return WEFT_EDGE_PENDING;
    return upstream == WEFT_STATE_SUCCEEDED ? WEFT_EDGE_SUCCEEDED : WEFT_EDGE_FAILED;
}

enum weft_flow_state weft_flow_judge(bool cancelled, bool bad)
{
    if (cancelled)
        return WEFT_FLOW_CANCELLED;
    return bad ? WEFT_FLOW_FAILED : WEFT_FLOW_SUCCEEDED;
}
