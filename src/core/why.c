/* SPDX-License-Identifier: Apache-2.0 */

#include "core/why.h"

#include <assert.h>

const char *weft_reason_word(enum weft_reason reason)
{
    static const char *const word[WEFT_REASON_COUNT] = {
#define X(name, text) [WEFT_REASON_##name] = (text),
        WEFT_REASONS(X)
#undef X
    };
    assert(reason < WEFT_REASON_COUNT);
    return word[reason];
}

static enum weft_reason of_ready(const struct weft_why_facts *facts)
{
    if (facts->lane_paused)
        return WEFT_REASON_LANE_PAUSED;
    if (facts->lane_limit == WEFT_LIMIT_RUNNING)
        return WEFT_REASON_LANE_FULL;
    if (facts->budget_full)
        return WEFT_REASON_BUDGET;
    if (facts->lane_limit != WEFT_LIMIT_NONE)
        return WEFT_REASON_RATE;
    if (facts->carried != WEFT_REASON_ENDED)
        return facts->carried;
    return facts->workers == 0 ? WEFT_REASON_NO_WORKER : WEFT_REASON_READY;
}

enum weft_reason weft_why_decide(const struct weft_why_facts *facts)
{
    switch (facts->state) {
    case WEFT_STATE_RUNNING:
        return WEFT_REASON_RUNNING;
    case WEFT_STATE_SUSPENDED:
        return WEFT_REASON_SUSPENDED;
    case WEFT_STATE_BLOCKED:
        return WEFT_REASON_BLOCKED;
    case WEFT_STATE_DELAYED:
        return WEFT_REASON_DELAYED;
    case WEFT_STATE_HELD: /* one that is admitted in this moment waits for its gate as well */
        return facts->gate_limit == WEFT_LIMIT_WINDOW || facts->gate_limit == WEFT_LIMIT_RATE
                   ? WEFT_REASON_RATE
                   : WEFT_REASON_GATE;
    case WEFT_STATE_READY:
        return of_ready(facts);
    case WEFT_STATE_NONE:
    case WEFT_STATE_SUCCEEDED:
    case WEFT_STATE_FAILED:
    case WEFT_STATE_CANCELLED:
    case WEFT_STATE_EXPIRED:
    case WEFT_STATE_SKIPPED:
    case WEFT_STATE_COUNT:
        break;
    }
    return WEFT_REASON_ENDED;
}
