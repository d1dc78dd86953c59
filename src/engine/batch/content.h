/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_BATCH_CONTENT_H
#define WEFT_ENGINE_BATCH_CONTENT_H

/*
 * The bytes of files, a part after the other, whatever their size: those of an uploaded file, or
 * the lines of a batch, which have no bytes of their own and are made from its members. Also of
 * uploads, which come from a descriptor or a function of the caller.
 */

#include "base/buf.h"
#include "engine/batch/batch.h"
#include "engine/batch/files.h"
#include "weft/file.h"

/* A file by the name that OpenAI's API has for it, or by its id. */
struct weft_file_asking {
    const char *ns;
    enum weft_content which;
    struct weft_id id; /* of the file; of OUTPUT and ERRORS that of the batch */
};
/* "file-..." and its kin, or an id with dashes, which is that of an uploaded file. */
WEFT_MUST_CHECK bool weft_file_id_parse(const char *text, struct weft_file_asking *ret_asking);
/* "file-..." and its kin; in the arena. */
const char *weft_file_id_text(enum weft_content which, const struct weft_id *id,
                              struct weft_arena *arena);

/* Where a walk over bytes stands. */
struct weft_content_walk {
    struct weft_file_asking of;
    bool growing;     /* lines of a batch that runs: they may become more */
    uint64_t at, end; /* bytes that are still to be given; end UINT64_MAX: all that there are */
    /* Of OUTPUT and ERRORS: */
    struct weft_batch_page page;
    uint64_t passed; /* bytes of the lines before the page */
};
/*
 * Looks the file up and begins at its first byte. *ret_file: as OpenAI's API shows it, in the
 * arena. WEFT_NOT_FOUND: there is no such file.
 */
WEFT_MUST_CHECK enum weft_rc weft_content_begin(struct weft_engine *engine,
                                                const struct weft_file_asking *asking,
                                                struct weft_arena *arena,
                                                struct weft_content_walk *ret_walk,
                                                struct weft_file *ret_file, struct weft_err *err);
/*
 * Lines of a batch: passes the next ones over without giving any. At the end *ret_size is the size
 * of the file; the walk cannot be used for anything else.
 */
WEFT_MUST_CHECK enum weft_rc weft_content_measure(struct weft_engine *engine,
                                                  struct weft_content_walk *walk,
                                                  uint64_t *ret_size, bool *ret_last,
                                                  struct weft_err *err);
/* Appends the next part, around a MiB; only the last part may be empty. */
WEFT_MUST_CHECK enum weft_rc weft_content_next(struct weft_engine *engine,
                                               struct weft_content_walk *walk, struct weft_buf *out,
                                               bool *ret_last, struct weft_err *err);

/* ---- To and from the caller ------------------------------------------------------------------ */

/* The argument of WEFT_OP_FILE_CONTENT. */
struct weft_content_asking {
    struct weft_file_asking of;
    const struct weft_sink *sink;
};
WEFT_MUST_CHECK enum weft_rc weft_engine_content(struct weft_engine *engine,
                                                 const struct weft_content_asking *asking,
                                                 uint64_t *ret_bytes, struct weft_err *err);
/* Stores what an upload has. *ret_id: the file. */
WEFT_MUST_CHECK enum weft_rc weft_engine_upload(struct weft_engine *engine, const char *ns,
                                                const struct weft_upload *upload,
                                                struct weft_id *ret_id, struct weft_err *err);

/* The next bytes of an upload; *ret_size 0: there are no more. *done: bytes so far. */
WEFT_MUST_CHECK enum weft_rc weft_upload_next(const struct weft_upload *upload, void *ret_data,
                                              size_t most, size_t *ret_size, uint64_t *done,
                                              struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_sink_put(const struct weft_sink *sink, const void *data,
                                           size_t size, struct weft_err *err);

#endif
