/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CLIENT_CLIENT_H
#define WEFT_CLIENT_CLIENT_H

/*
 * Shared by the files of this folder and by tests that bring a driver of their own.
 *
 * A handle knows the workers that were started on it, so that a submission in this process wakes
 * them at once. Locks: weft->lock, then the lock of a worker; never the other way round, and no
 * call to the store under either.
 */

#include "engine/ops.h"

#include <pthread.h>

enum { WEFT_CALL_MAX = 100000 }; /* items in one call */

struct weft {
    struct weft_engine *engine; /* owned */
    char *ns;                   /* owned */
    pthread_mutex_t lock;
    struct weft_worker *worker; /* the first of those that run, linked by their `next` */
};

/* What a call is given: all of it is borrowed. */
struct weft_given {
    const struct weft *weft;
    const void *in;
    size_t count;
    const void *out;
};

/* The handle is there, the count is in bounds, and arrays are there where there are items. */
WEFT_MUST_CHECK enum weft_rc weft_check_given(const struct weft_given *given, struct weft_err *err);
enum weft_rc weft_missing(const char *field, struct weft_err *err);
/* Hands the story over when there is one; gives rc back. */
enum weft_rc weft_told(enum weft_rc rc, const struct weft_err *story, struct weft_err *err);

/* What weft_open() does, with an engine configured at will. */
WEFT_MUST_CHECK enum weft_rc weft_open_with(const struct weft_engine_config *config, const char *ns,
                                            struct weft **ret_weft, struct weft_err *err);

/*
 * Tells the workers of the handle that there is something to claim, and when the earliest delayed
 * execution becomes due (WEFT_NEVER: none).
 */
void weft_wake_workers(struct weft *weft, bool ready, weft_usec due_us);
void weft_worker_wake(struct weft_worker *worker, bool ready, weft_usec due_us);

/* The list of running workers of a handle. */
void weft_add_worker(struct weft *weft, struct weft_worker *worker);
void weft_remove_worker(struct weft *weft, const struct weft_worker *worker);
struct weft_worker **weft_worker_link(struct weft_worker *worker);

#endif
