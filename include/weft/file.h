/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_FILE_H
#define WEFT_FILE_H

/*
 * Files, which are the input of batches, and models, which say where the lines of a batch go.
 * weft.h includes this file and says how its calls answer and fail; batch.h has the batches.
 */

#include "weft/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft;       /* opaque */
struct weft_arena; /* opaque */

/* ---- Files ----------------------------------------------------------------------------------- */

/* A file that is whole, with what is wrong with its lines. */
struct weft_file_info {
    struct weft_id id;
    const char *file_id; /* "file-" and 32 digits: the name that OpenAI's API has for it */
    const char *filename, *purpose;
    uint64_t bytes;       /* 0 for the output of a batch: they are not known before they are read */
    uint64_t requests;    /* lines that are not blank */
    uint64_t error_count; /* lines that have mistakes */
    const char *errors;   /* the first 100 as a JSON array of {"code","message","param","line"};
                             NULL: there are none */
    weft_usec created_us, expires_us; /* expires_us 0: never */
};
struct weft_file_infos {
    const struct weft_file_info *item; /* the newest first */
    size_t count;
    const char *next;         /* cursor of the next page; NULL: this is the last */
    struct weft_arena *arena; /* owned */
};

/* Puts up to `most` bytes into ret_data; *ret_size 0: there are no more. False: it failed, which
 * ends the call with WEFT_UNAVAILABLE. */
typedef bool weft_read_fn(void *context, void *ret_data, size_t most, size_t *ret_size);
/* Takes bytes. False: it cannot, which ends the call with WEFT_UNAVAILABLE. */
typedef bool weft_write_fn(void *context, const void *data, size_t size);

/* What is uploaded: read once, from its beginning to its end. */
struct weft_upload {
    const char *filename; /* NULL: upload.jsonl */
    int fd;               /* where it is read, unless there is `read` */
    weft_read_fn *read;
    int64_t expires_ms; /* from an hour to 30 days; 0: 30 days */
    /* Called now and then with how much has been read; or NULL. */
    void (*progress)(void *context, uint64_t bytes);
    void *context; /* of both functions */
};
/*
 * Stores a file; ret_files has it alone. Lines with mistakes are no failure: see error_count. An
 * upload that breaks off leaves nothing that a reader sees. Over a server it is sent once: after
 * WEFT_UNAVAILABLE it is uploaded again from the beginning. WEFT_TOO_LARGE: a server takes up to
 * its setting file_bytes, a store 1 GiB.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_file_put(struct weft *weft,
                                                       const struct weft_upload *upload,
                                                       struct weft_file_infos *ret_files,
                                                       struct weft_err *err);
/* id not NULL: this one alone, WEFT_NOT_FOUND if there is none. limit 0: 50; after NULL: the
 * first. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_files(struct weft *weft, const struct weft_id *id,
                                                    uint32_t limit, const char *after,
                                                    struct weft_file_infos *ret_files,
                                                    struct weft_err *err);
WEFT_EXPORT void weft_file_infos_free(struct weft_file_infos *files);
/* Batches whose lines have been read go on; others fail. WEFT_NOT_FOUND: there is none. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_file_remove(struct weft *weft, const struct weft_id *id, struct weft_err *err);

/* Which bytes are read. */
enum weft_content {
    WEFT_CONTENT_FILE,   /* of a file */
    WEFT_CONTENT_OUTPUT, /* of a batch: an answer on each line, in the order of the input */
    WEFT_CONTENT_ERRORS, /* of a batch: the lines that failed, expired or were cancelled */
};
/* Where they go. */
struct weft_sink {
    int fd; /* where they are written, unless there is `write` */
    weft_write_fn *write;
    void *context;
};
/*
 * Reads a file, or the lines of a batch that have ended so far, a part after the other, so its size
 * does not matter. After a failure some of it may have been written. *ret_bytes: how many bytes;
 * may be NULL.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_content(struct weft *weft, enum weft_content which,
                                                      const struct weft_id *id,
                                                      const struct weft_sink *sink,
                                                      uint64_t *ret_bytes, struct weft_err *err);

/* ---- Models ---------------------------------------------------------------------------------- */

/* Where the lines of batches go that name a model. */
struct weft_model {
    const char *name; /* "*": every model that has no row of its own */
    const char *endpoint;
    const char *lane;        /* NULL: named as the model, or "models" for "*" */
    int32_t max_running;     /* of its lane; 0: no limit */
    const char *escalate_to; /* lines that wait late in their window go to that model; NULL: none */
};

/* Makes a model or replaces it, for batches whose lines have not been read yet. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_model_put(struct weft *weft, const struct weft_model *model, struct weft_err *err);
/* Lines that have been read stay as they are. WEFT_NOT_FOUND: there is none. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_model_remove(struct weft *weft, const char *name,
                                                           struct weft_err *err);

struct weft_models {
    const struct weft_model *item; /* by name */
    size_t count;
    const char *next;         /* cursor of the next page; NULL: this is the last */
    struct weft_arena *arena; /* owned */
};
/* name not NULL: this one alone, WEFT_NOT_FOUND if there is none. limit 0: 50; after NULL: the
 * first. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_models(struct weft *weft, const char *name,
                                                     uint32_t limit, const char *after,
                                                     struct weft_models *ret_models,
                                                     struct weft_err *err);
WEFT_EXPORT void weft_models_free(struct weft_models *models);

#ifdef __cplusplus
}
#endif

#endif
