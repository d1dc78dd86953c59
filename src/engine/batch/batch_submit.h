/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_BATCH_BATCH_SUBMIT_H
#define WEFT_ENGINE_BATCH_BATCH_SUBMIT_H

/* Creating and cancelling batches over the structs of weft/batch.h. Answers are in the arena. */

#include "base/json.h"
#include "engine/batch/batch_view.h"

/* *ret_info: without the details. Its lines are written by weft_engine_batch_step(). */
WEFT_MUST_CHECK enum weft_rc weft_engine_batch_submit(struct weft_engine *engine, const char *ns,
                                                      const struct weft_batch_spec *spec,
                                                      struct weft_arena *arena,
                                                      struct weft_batch_info *ret_info,
                                                      struct weft_err *err);
/* weft_engine_batch_cancel(), and the batch after it. */
WEFT_MUST_CHECK enum weft_rc weft_engine_batch_stop(struct weft_engine *engine,
                                                    const struct weft_batch_asking *asking,
                                                    struct weft_arena *arena,
                                                    struct weft_batch_info *ret_info,
                                                    struct weft_err *err);
/* metadata is an object with a few short texts. */
WEFT_MUST_CHECK enum weft_rc weft_batch_metadata_check(const struct weft_json *metadata,
                                                       struct weft_err *err);
/* endpoint is a path below /v1/. */
WEFT_MUST_CHECK enum weft_rc weft_batch_endpoint_check(const char *endpoint, struct weft_err *err);

#endif
