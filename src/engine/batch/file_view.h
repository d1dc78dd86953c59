/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_BATCH_FILE_VIEW_H
#define WEFT_ENGINE_BATCH_FILE_VIEW_H

/* Files as weft.h shows them. Answers are in the arena. */

#include "engine/batch/content.h"

WEFT_MUST_CHECK enum weft_rc weft_engine_file_info(struct weft_engine *engine,
                                                   const struct weft_file_asking *asking,
                                                   struct weft_arena *arena,
                                                   struct weft_file_info *ret_info,
                                                   struct weft_err *err);
struct weft_file_listing {
    const char *ns;
    uint32_t limit; /* 0: the default */
    const char *after;
};
/* Without the files of batches. */
WEFT_MUST_CHECK enum weft_rc weft_engine_file_infos(struct weft_engine *engine,
                                                    const struct weft_file_listing *listing,
                                                    struct weft_arena *arena,
                                                    struct weft_file_infos *ret_infos,
                                                    struct weft_err *err);
/* *ret_info: what it was. WEFT_INVALID_VALUE: of a batch, with which it goes. */
WEFT_MUST_CHECK enum weft_rc weft_engine_file_delete(struct weft_engine *engine,
                                                     const struct weft_file_asking *asking,
                                                     struct weft_arena *arena,
                                                     struct weft_file_info *ret_info,
                                                     struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_file_upload(struct weft_engine *engine, const char *ns,
                                                     const struct weft_upload *upload,
                                                     struct weft_arena *arena,
                                                     struct weft_file_info *ret_info,
                                                     struct weft_err *err);

#endif
