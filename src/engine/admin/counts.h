/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_ADMIN_COUNTS_H
#define WEFT_ENGINE_ADMIN_COUNTS_H

/* How many executions of each lane are in each state. */

#include "engine/engine.h"

/* The counts of every namespace, in the order of namespaces and lanes. */
struct weft_counted_lane {
    const char *ns;
    struct weft_lane_count lane;
};

struct weft_all_counts {
    struct weft_counted_lane *item; /* in the arena */
    size_t count;
    weft_usec as_of_us;
};
WEFT_MUST_CHECK enum weft_rc weft_engine_counts(struct weft_engine *engine, const char *ns,
                                                const char *lane, struct weft_arena *arena,
                                                struct weft_counts *ret_counts,
                                                struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_all_counts(struct weft_engine *engine,
                                                    struct weft_arena *arena,
                                                    struct weft_all_counts *ret_counts,
                                                    struct weft_err *err);

#endif
