/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_JOB_DETAIL_H
#define WEFT_ENGINE_JOB_DETAIL_H

/*
 * Details of failures: what a worker says besides class and message, any JSON. They are rows beside
 * the execution (0032), so a failure without one writes nothing more, and only readers of failures
 * look for them.
 */

#include "base/base.h"

struct weft_arena;
struct weft_engine;

enum { WEFT_DETAIL_MAX = 64 << 10 }; /* bytes */

/* A lease that failed, and where its detail is to be put; it stays NULL if there is none. */
struct weft_detail_of {
    struct weft_id id;
    int32_t epoch;
    const char **ret_detail;
};

/* WEFT_OK or why it is refused; the error names the field `detail`. NULL is fine. */
WEFT_MUST_CHECK enum weft_rc weft_detail_check(const char *detail, struct weft_err *err);

/*
 * In the arena. Of many together no more than some 8 MiB are read, in their order, so that a page
 * of failures stays within bounds; of one alone it always is.
 */
WEFT_MUST_CHECK enum weft_rc weft_details_read(struct weft_engine *engine,
                                               const struct weft_detail_of *of, size_t count,
                                               struct weft_arena *arena, struct weft_err *err);

#endif
