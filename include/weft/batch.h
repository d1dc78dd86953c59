/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BATCH_H
#define WEFT_BATCH_H

/*
 * Batches: an HTTP call for each line of a file. See docs/batches.md. weft.h includes this file and
 * says how its calls answer and fail; file.h has the files, and the lines of output and errors.
 */

#include "weft/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft;       /* opaque */
struct weft_arena; /* opaque */

enum weft_batch_status {
    WEFT_BATCH_STATUS_VALIDATING,
    WEFT_BATCH_STATUS_FAILED,
    WEFT_BATCH_STATUS_IN_PROGRESS,
    WEFT_BATCH_STATUS_FINALIZING,
    WEFT_BATCH_STATUS_COMPLETED,
    WEFT_BATCH_STATUS_EXPIRED,
    WEFT_BATCH_STATUS_CANCELLING,
    WEFT_BATCH_STATUS_CANCELLED,
};

/* The lines of a batch that name one model. */
struct weft_batch_model {
    const char *model; /* NULL: those of all further models, where a batch has very many */
    uint64_t total;
    uint64_t succeeded, failed, expired, cancelled; /* lines that have ended so */
    uint64_t running;                               /* calls under way; the others wait */
    const char *escalated_to; /* lines that had not begun were moved to this one; NULL: none was */
};

struct weft_batch_info {
    struct weft_id id;    /* also of its flow */
    const char *batch_id; /* "batch_" and the digits of the id: as OpenAI's clients know it */
    enum weft_batch_status status;
    const char *endpoint, *window;
    const char *input_file;               /* "file-..." */
    const char *output_file, *error_file; /* NULL: it has none, or has not begun */
    const char *metadata;                 /* a JSON object; NULL: none */
    const char *errors; /* why the file cannot be used, a JSON array; NULL: nothing is wrong */
    uint64_t total, succeeded, failed, expired, cancelled, running; /* as of a model */
    weft_usec created_us, started_us, expires_us;                   /* 0: not yet */
    weft_usec cancelling_us, finished_us, retried_us;               /* 0: not, or not yet */
    bool detailed;              /* what follows is there: it is not in lists */
    uint64_t ended_last_minute; /* lines */
    weft_usec estimated_end_us; /* at the pace of the last minute; 0: it cannot be told */
    const struct weft_batch_model *model;
    size_t model_count;
};

struct weft_batch_listing {
    const char *ns; /* NULL: the namespace of the handle */
    bool by_status;
    enum weft_batch_status status; /* with by_status */
    uint32_t limit;                /* 1..1000, 0: 50 */
    const char *after;             /* NULL, or the `next` of the page before */
};
struct weft_batch_infos {
    const struct weft_batch_info
        *item; /* the newest first; a page may be short while there is more */
    size_t count;
    const char *next;
    struct weft_arena *arena; /* owned */
};

/* Which batch a call is about. */
struct weft_batch_asking {
    const char *ns; /* NULL: the namespace of the handle */
    struct weft_id id;
};
struct weft_batch_retried {
    uint64_t retried; /* lines that had failed, expired or been cancelled */
    bool more;        /* they are still being brought back, which goes on by itself */
    enum weft_batch_status status;
    weft_usec expires_us;
};
struct weft_batch_removed {
    struct weft_id id;
    enum weft_batch_status status; /* that it had */
};

/* What is to be made of a file. */
struct weft_batch_spec {
    const char *input_file; /* "file-...", or the id with dashes */
    const char *endpoint;   /* "/v1/chat/completions": the url of each of its lines */
    const char *window;     /* "24h": a number and s, m, h or d, 30 days at most; NULL: 24h */
    const char *metadata;   /* a JSON object, up to 16 short texts; NULL: none */
    const char *key;        /* the same key with the same file gives the same batch; NULL: none */
};
/*
 * Creates a batch; ret_batches has it alone. Mistakes in the file fail the batch later, and not
 * this call. Calls are made by servers: over a store the lines are written at once, and wait for a
 * server. WEFT_NOT_FOUND: there is no such file; WEFT_CONFLICT: the key has another batch.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_batch_create(struct weft *weft,
                                                           const struct weft_batch_spec *spec,
                                                           struct weft_batch_infos *ret_batches,
                                                           struct weft_err *err);
/* One batch, with its details. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_batch_get(struct weft *weft, const struct weft_id *id,
                                                        struct weft_batch_infos *ret_batches,
                                                        struct weft_err *err);
/* listing NULL: the newest ones. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_batch_list(struct weft *weft,
                                                         const struct weft_batch_listing *listing,
                                                         struct weft_batch_infos *ret_batches,
                                                         struct weft_err *err);
WEFT_EXPORT void weft_batch_infos_free(struct weft_batch_infos *batches);
/* Lines that have not begun are cancelled; calls under way finish, and count. WEFT_NOT_LIVE: it has
 * ended otherwise. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_batch_cancel(struct weft *weft,
                                                           const struct weft_id *id,
                                                           struct weft_batch_infos *ret_batches,
                                                           struct weft_err *err);
/* Lines that have failed, expired or been cancelled run again. WEFT_NOT_LIVE: its lines are not all
 * there, or it is being cancelled. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_batch_retry(struct weft *weft,
                                                          const struct weft_id *id,
                                                          struct weft_batch_retried *ret_retried,
                                                          struct weft_err *err);
/* It is shown no more; what lives of it is cancelled. Its input file stays. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_batch_remove(struct weft *weft, const struct weft_id *id, struct weft_err *err);

#ifdef __cplusplus
}
#endif

#endif
