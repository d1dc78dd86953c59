/* SPDX-License-Identifier: Apache-2.0 */

#include "core/fence.h"

static enum weft_fence fence_after(enum weft_ended ended)
{
    static const enum weft_fence fence[WEFT_ENDED_COUNT] = {
        [WEFT_ENDED_COMPLETED] = WEFT_FENCE_FINISHED,
        [WEFT_ENDED_FAILED] = WEFT_FENCE_FINISHED,
        [WEFT_ENDED_TIMED_OUT] = WEFT_FENCE_TIMED_OUT,
        [WEFT_ENDED_LOST] = WEFT_FENCE_LOST,
        [WEFT_ENDED_RELEASED] = WEFT_FENCE_RELEASED,
        [WEFT_ENDED_DELAYED] = WEFT_FENCE_RELEASED,
        [WEFT_ENDED_REVOKED] = WEFT_FENCE_REVOKED,
        [WEFT_ENDED_CANCELLED] = WEFT_FENCE_CANCELLED,
        [WEFT_ENDED_EXPIRED] = WEFT_FENCE_EXPIRED,
        [WEFT_ENDED_SUSPENDED] = WEFT_FENCE_SUSPENDED,
    };
    return (unsigned)ended < WEFT_ENDED_COUNT ? fence[ended] : WEFT_FENCE_NONE;
}

static enum weft_fence fence_of(const struct weft_lease_facts *facts, int32_t epoch)
{
    enum weft_fence fence = fence_after(facts->ended);
    if (fence == WEFT_FENCE_LOST)
        return facts->epoch > epoch ? WEFT_FENCE_RECLAIMED : WEFT_FENCE_LOST;
    if (fence != WEFT_FENCE_NONE)
        return fence;
    return facts->epoch > epoch && epoch > 0 ? WEFT_FENCE_RECLAIMED : WEFT_FENCE_UNKNOWN;
}

struct weft_fate weft_lease_fate(const struct weft_lease_facts *facts, int32_t epoch,
                                 enum weft_ended asked)
{
    if (facts->state == WEFT_STATE_NONE)
        return (struct weft_fate){.rc = WEFT_NOT_FOUND};
    if (asked != WEFT_ENDED_NONE && facts->ended == asked)
        return (struct weft_fate){
            .rc = WEFT_OK, .state = facts->answer, .run_at_us = facts->run_at_us};
    return (struct weft_fate){
        .rc = WEFT_FENCED, .fence = fence_of(facts, epoch), .state = facts->state};
}

bool weft_lease_drains(enum weft_ended ended, weft_usec due_us, weft_usec now_us)
{
    return weft_drain_fence(ended) != WEFT_FENCE_NONE && due_us > now_us;
}

/* The holder itself asked for the other ends, and a LOST lease has run out. */
bool weft_fence_drains(enum weft_fence fence)
{
    return fence == WEFT_FENCE_CANCELLED || fence == WEFT_FENCE_EXPIRED ||
           fence == WEFT_FENCE_TIMED_OUT || fence == WEFT_FENCE_REVOKED;
}

enum weft_fence weft_drain_fence(enum weft_ended ended)
{
    enum weft_fence fence = fence_after(ended);
    return weft_fence_drains(fence) ? fence : WEFT_FENCE_NONE;
}

const char *weft_fence_name(enum weft_fence fence)
{
    static const char *const name[] = {
        [WEFT_FENCE_NONE] = "none",           [WEFT_FENCE_CANCELLED] = "cancelled",
        [WEFT_FENCE_EXPIRED] = "expired",     [WEFT_FENCE_TIMED_OUT] = "timed_out",
        [WEFT_FENCE_LOST] = "lost",           [WEFT_FENCE_RECLAIMED] = "reclaimed",
        [WEFT_FENCE_REVOKED] = "revoked",     [WEFT_FENCE_RELEASED] = "released",
        [WEFT_FENCE_FINISHED] = "finished",   [WEFT_FENCE_UNKNOWN] = "unknown_epoch",
        [WEFT_FENCE_SUSPENDED] = "suspended",
    };
    return (unsigned)fence < WEFT_LEN(name) ? name[fence] : "none";
}
