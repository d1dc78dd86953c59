/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_RESULT_H
#define WEFT_CORE_RESULT_H

/*
 * What became of each item of a call, as engine, server and backends of the client pass it on. The
 * structs of weft.h, which the client fills from these (client/client.c), hold a whole struct
 * weft_err for each item; a result holds a pointer. It comes first in every result. NULL: the item
 * went well, rc is WEFT_OK. Otherwise it is in the arena of the call, and items may share one.
 */

#include "weft/weft.h"

/* The members of a result that tell of a failure. */
#define WEFT_FAILED(story) .err = (story), .rc = (story)->rc

struct weft_submit_result {
    const struct weft_err *err;
    enum weft_rc rc;
    enum weft_state state;
    struct weft_id id;
    bool duplicate;
};

/* What a submission became, for the JSON of it (wire/types_submit.c). */
static inline struct weft_submit_result weft_submit_result_of(const struct weft_submitted *answer)
{
    return (struct weft_submit_result){
        .state = answer->state, .id = answer->id, .duplicate = answer->duplicate};
}

struct weft_lease_result {
    const struct weft_err *err;
    enum weft_rc rc;
    enum weft_fence fence;
    enum weft_state state;
    weft_usec lease_expires_us;
    weft_usec run_at_us;
};

/* Results of lease calls begin alike: err, rc, fence. */
struct weft_suspend_result {
    const struct weft_err *err;
    enum weft_rc rc;
    enum weft_fence fence;
    enum weft_state state;
    bool satisfied; /* at once, by signals that had come: the worker keeps its lease */
    const struct weft_waitpoint *waitpoint;
    size_t waitpoint_count;
    const struct weft_signal_info *signal; /* when satisfied */
    size_t signal_count;
    bool more_signals;
};

struct weft_waitpoint_result {
    const struct weft_err *err;
    enum weft_rc rc;
    enum weft_fence fence;
    struct weft_waitpoint waitpoint;
};

/* err WEFT_BUDGET_EXCEEDED: `left` says how much more may be reported. */
struct weft_usage_result {
    const struct weft_err *err;
    enum weft_rc rc;
    enum weft_fence fence;
    const struct weft_budget_now *budget;
    size_t budget_count;
    const struct weft_amount *left;
    size_t left_count;
};

struct weft_signal_result {
    const struct weft_err *err;
    enum weft_rc rc;
    enum weft_signal_effect effect;
    enum weft_signal_effect first; /* of a duplicate: the effect of the first one */
    struct weft_id waitpoint;
};

struct weft_steer_result {
    const struct weft_err *err;
    enum weft_rc rc;
    enum weft_state state;
    bool changed;
};

struct weft_flow_result {
    const struct weft_err *err;
    enum weft_rc rc;
    enum weft_flow_state state;
    struct weft_id id;
    int32_t revision;
    bool duplicate;
    struct weft_id *node; /* the caller's array, or NULL */
    size_t blamed;
};

#endif
