/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_BATCH_MODELS_H
#define WEFT_ENGINE_BATCH_MODELS_H

/*
 * Models: which endpoint and lane the lines of a batch use, by the model that they name. The model
 * `*` stands for every other one. How many calls of a model run at once is a setting of its lane.
 */

#include "base/err.h"
#include "weft/file.h"

struct weft_arena;
struct weft_engine;

/* lane NULL: named as the model, or `models` for `*`. */
WEFT_MUST_CHECK enum weft_rc weft_engine_model_put(struct weft_engine *engine, const char *ns,
                                                   const struct weft_model *model,
                                                   struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_model(struct weft_engine *engine, const char *ns,
                                               const char *name, struct weft_arena *arena,
                                               struct weft_model *ret_model, struct weft_err *err);
/* The setting of the lane stays. *ret_model: what it was. */
WEFT_MUST_CHECK enum weft_rc weft_engine_model_remove(struct weft_engine *engine, const char *ns,
                                                      const char *name, struct weft_arena *arena,
                                                      struct weft_model *ret_model,
                                                      struct weft_err *err);
struct weft_models_asking {
    const char *ns;
    uint32_t limit;    /* 0: the default */
    const char *after; /* NULL: the first page */
};
WEFT_MUST_CHECK enum weft_rc
weft_engine_models(struct weft_engine *engine, const struct weft_models_asking *asking,
                   struct weft_arena *arena, struct weft_models *ret_models, struct weft_err *err);
/* The one that a line uses which names this model; NULL: there is neither it nor `*`. */
WEFT_MUST_CHECK enum weft_rc weft_model_find(struct weft_engine *engine, int32_t ns,
                                             const char *name, struct weft_arena *arena,
                                             const struct weft_model **ret_model,
                                             struct weft_err *err);

#endif
