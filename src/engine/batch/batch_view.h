/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_BATCH_BATCH_VIEW_H
#define WEFT_ENGINE_BATCH_BATCH_VIEW_H

/* weft's own calls on batches, over the structs of weft/batch.h. Answers are in the arena. */

#include "base/err.h"
#include "weft/batch.h"

struct weft_arena;
struct weft_engine;

/* With all details, for which every line is looked at. */
WEFT_MUST_CHECK enum weft_rc weft_engine_batch_info(struct weft_engine *engine,
                                                    const struct weft_batch_asking *asking,
                                                    struct weft_arena *arena,
                                                    struct weft_batch_info *ret_info,
                                                    struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_batch_infos(struct weft_engine *engine,
                                                     const struct weft_batch_listing *listing,
                                                     struct weft_arena *arena,
                                                     struct weft_batch_infos *ret_infos,
                                                     struct weft_err *err);
/*
 * Every line that has failed, expired or been cancelled runs again. If the batch has ended, its
 * window starts again. WEFT_NOT_LIVE: its lines are not all there, or it is being cancelled.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_batch_retry(struct weft_engine *engine,
                                                     const struct weft_batch_asking *asking,
                                                     struct weft_arena *arena,
                                                     struct weft_batch_retried *ret_retried,
                                                     struct weft_err *err);
/*
 * It is shown no more. What lives of it is cancelled, the first lines at once and the rest by
 * weft_engine_flow_drain() or the scanner cancel_backlog; then the scanner `purge` removes it.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_batch_delete(struct weft_engine *engine,
                                                      const struct weft_batch_asking *asking,
                                                      struct weft_arena *arena,
                                                      struct weft_batch_removed *ret_removed,
                                                      struct weft_err *err);

#endif
