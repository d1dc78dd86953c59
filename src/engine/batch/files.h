/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_BATCH_FILES_H
#define WEFT_ENGINE_BATCH_FILES_H

/*
 * Files of batches: written once, chunk by chunk, sealed, and read in ranges. What a file holds is
 * its uploader's business; the engine neither looks at the bytes nor knows multipart.
 */

#include "base/err.h"

struct weft_arena;
struct weft_engine;

enum {
    WEFT_FILE_CHUNK = 256 << 10, /* bytes of a chunk, about */
    WEFT_FILE_NAME_MAX = 255,    /* bytes */
    WEFT_FILES_PAGE_MAX = 10000, /* files of a list */
    WEFT_FILE_EXPIRES_MIN_S = 3600,
    WEFT_FILE_EXPIRES_MAX_S = 2592000, /* 30 days, which is also the default */
};

struct weft_file {
    struct weft_id id;
    const char *filename, *purpose;
    uint64_t bytes, requests; /* requests: lines that are not blank */
    const char *flaws;        /* the first ones: elements of a JSON array; "": none */
    uint64_t flaw_count;      /* all of them */
    weft_usec created_us;
    weft_usec expires_us; /* 0: never */
};

/* A file that is being uploaded: no reader sees it. */
WEFT_MUST_CHECK enum weft_rc weft_engine_file_begin(struct weft_engine *engine, const char *ns,
                                                    const char *filename, struct weft_id *ret_id,
                                                    struct weft_err *err);
/* A chunk, in a transaction of its own. They come in order, without gaps. */
struct weft_file_chunk {
    struct weft_id file;
    uint64_t at;   /* bytes before it */
    uint64_t line; /* lines that end before it */
    const void *data;
    size_t size;
};
/* WEFT_UNAVAILABLE: the upload paused for so long that its file was given up. */
WEFT_MUST_CHECK enum weft_rc weft_engine_file_put(struct weft_engine *engine,
                                                  const struct weft_file_chunk *chunk,
                                                  struct weft_err *err);
/* From here on the file is there. Of `file` all but the name, the size and created_us is stored. */
WEFT_MUST_CHECK enum weft_rc weft_engine_file_seal(struct weft_engine *engine,
                                                   const struct weft_file *file,
                                                   struct weft_err *err);
/* The upload failed. Does what it can: file_expiry does the rest. */
void weft_engine_file_give_up(struct weft_engine *engine, const struct weft_id *file);

WEFT_MUST_CHECK enum weft_rc weft_engine_file(struct weft_engine *engine, const char *ns,
                                              const struct weft_id *id, struct weft_arena *arena,
                                              struct weft_file *ret_file, struct weft_err *err);

struct weft_files_asking {
    const char *ns;
    const char *purpose; /* NULL: any */
    struct weft_id after;
    bool has_after;
    bool oldest_first;
    uint32_t limit; /* 1..WEFT_FILES_PAGE_MAX */
};
struct weft_file_list {
    const struct weft_file *item;
    size_t count;
    bool more;
};
WEFT_MUST_CHECK enum weft_rc
weft_engine_files(struct weft_engine *engine, const struct weft_files_asking *asking,
                  struct weft_arena *arena, struct weft_file_list *ret_list, struct weft_err *err);
/* The chunk in which a byte is; WEFT_NOT_FOUND: there is none. */
WEFT_MUST_CHECK enum weft_rc weft_engine_file_read(struct weft_engine *engine,
                                                   const struct weft_id *file, uint64_t at,
                                                   struct weft_arena *arena,
                                                   struct weft_file_chunk *ret_chunk,
                                                   struct weft_err *err);
/* Hides the file from here on; its bytes are removed later. */
WEFT_MUST_CHECK enum weft_rc weft_engine_file_remove(struct weft_engine *engine, const char *ns,
                                                     const struct weft_id *id,
                                                     struct weft_err *err);

#endif
