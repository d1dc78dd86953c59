/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_WAIT_H
#define WEFT_WAIT_H

/*
 * Waiting: executions that are suspended, waitpoints, signals; docs/waiting.md shows how they work
 * together. weft.h includes this file and says how its calls answer and fail.
 */

#include "weft/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft;       /* opaque */
struct weft_arena; /* opaque */

/* What a signal did. Stored: never renumber. */
enum weft_signal_effect {
    WEFT_SIGNAL_NONE = 0,
    WEFT_SIGNAL_RESUMED = 1,   /* the condition is satisfied: the execution goes on */
    WEFT_SIGNAL_RECORDED = 2,  /* it counts, but more is needed */
    WEFT_SIGNAL_BUFFERED = 3,  /* the execution is not suspended yet */
    WEFT_SIGNAL_DUPLICATE = 4, /* one with this key came before: nothing was done */
    WEFT_SIGNAL_IGNORED = 5,   /* kept, but the condition does not ask for it */
};

enum weft_waitpoint_state { WEFT_WAITPOINT_PENDING, WEFT_WAITPOINT_OPEN, WEFT_WAITPOINT_CLOSED };

/* A place where signals arrive. */
struct weft_waitpoint {
    struct weft_id id;
    const char *name;
    const char *token; /* the right to send signals; NULL in lists */
    enum weft_waitpoint_state state;
    weft_usec created_us;
    weft_usec expires_us; /* of a pending one; 0: with its execution */
    int32_t signals;      /* how many have come */
    int32_t key_id;       /* the signing key of its token */
};

/* A signal that has come. */
struct weft_signal_info {
    struct weft_id waitpoint;
    const char *waitpoint_name;
    int32_t n; /* its number at the waitpoint, from 1 */
    weft_usec at_us;
    const char *name, *source, *key; /* or NULL */
    const char *content_type;        /* NULL: JSON */
    const void *payload;             /* NULL: none */
    size_t payload_size;
};

/* ---- Suspending and signals ------------------------------------------------------------------ */

/* A waitpoint of a suspension: a new one by its name, or a pending one by its id. */
struct weft_suspend_at {
    const char *name;  /* NULL: it is pending */
    struct weft_id id; /* of the pending one */
};

struct weft_suspend {
    struct weft_id id;
    int32_t epoch;
    const struct weft_suspend_at *waitpoint; /* 100 at most */
    size_t waitpoint_count;
    const char *condition; /* JSON; NULL: a signal at every waitpoint */
    int64_t timeout_ms;    /* from now; not together with timeout_us */
    weft_usec timeout_us;  /* a moment; both 0: no timeout */
    enum weft_on_timeout on_timeout;
    const char *reason;      /* what it waits for, for people; or NULL */
    int64_t resume_delay_ms; /* from the resumption to ready */
};

/* Makes a waitpoint before the execution is suspended: signals that come early are kept. */
struct weft_waitpoint_new {
    struct weft_id id;
    int32_t epoch;
    const char *name;
    int64_t expires_ms; /* from now; 0: with its execution */
};

struct weft_signal {
    const char *token; /* of a waitpoint */
    const char *name, *source;
    const char *key; /* a second signal with it is a duplicate; or NULL */
    const void *payload;
    size_t payload_size;
    const char *content_type; /* NULL: JSON */
};

/* What became of an item of weft_suspend(). */
struct weft_suspended {
    struct weft_err err;
    enum weft_fence fence; /* why, when err.rc is WEFT_FENCED */
    enum weft_state state; /* SUSPENDED; or RUNNING: satisfied */
    bool satisfied;        /* at once, by signals that had come: the lease stays, go on */
    const struct weft_waitpoint *waitpoint; /* in the order of the item, with their tokens */
    size_t waitpoint_count;
    const struct weft_signal_info *signal; /* when satisfied */
    size_t signal_count;
    bool more_signals;
};
struct weft_suspensions {
    const struct weft_suspended *item; /* one for each item of the call */
    size_t count;
    struct weft_arena *arena; /* owned */
};

struct weft_waitpoint_made {
    struct weft_err err;
    enum weft_fence fence;
    struct weft_waitpoint waitpoint;
};
struct weft_waitpoints_made {
    const struct weft_waitpoint_made *item; /* one for each item of the call */
    size_t count;
    struct weft_arena *arena; /* owned */
};

struct weft_signalled {
    struct weft_err err;
    enum weft_signal_effect effect;
    enum weft_signal_effect first; /* of a duplicate: what the first one did */
    struct weft_id waitpoint;
};

/*
 * Gives executions back until their conditions are satisfied. The leases end, unless an answer says
 * `satisfied`. A repeat gets the same answer with the same tokens. Ends with
 * weft_suspensions_free(), which accepts an empty one.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_suspend(struct weft *weft,
                                                      const struct weft_suspend *item, size_t count,
                                                      struct weft_suspensions *ret_answer,
                                                      struct weft_err *err);
WEFT_EXPORT void weft_suspensions_free(struct weft_suspensions *answer);
/* Makes waitpoints before suspending; a pending one of the same name is given again. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_waitpoint_make(struct weft *weft, const struct weft_waitpoint_new *item, size_t count,
                    struct weft_waitpoints_made *ret_answer, struct weft_err *err);
WEFT_EXPORT void weft_waitpoints_made_free(struct weft_waitpoints_made *answer);
/* Sends signals. One without a key must not be repeated blindly. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_signal(struct weft *weft,
                                                     const struct weft_signal *item, size_t count,
                                                     struct weft_signalled *ret_answer,
                                                     struct weft_err *err);
WEFT_EXPORT const char *weft_signal_effect_name(enum weft_signal_effect effect); /* "resumed" */

/* Pages of what an execution has waited for. */
struct weft_waitpoints {
    const struct weft_waitpoint *item; /* in the order in which they were made */
    size_t count;
    const char *next;         /* cursor of the next page, NULL: that was all */
    struct weft_arena *arena; /* owned */
};
struct weft_signals {
    const struct weft_signal_info *item; /* by waitpoint, in the order of their arrival */
    size_t count;
    const char *next;
    struct weft_arena *arena; /* owned */
};

/* limit: 1..1000, 0: 50. after: NULL, or the `next` of the page before. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_waitpoints(struct weft *weft, const struct weft_id *id, uint32_t limit, const char *after,
                struct weft_waitpoints *ret_page, struct weft_err *err);
WEFT_EXPORT void weft_waitpoints_free(struct weft_waitpoints *page);
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_signals(struct weft *weft, const struct weft_id *id,
                                                      uint32_t limit, const char *after,
                                                      struct weft_signals *ret_page,
                                                      struct weft_err *err);
WEFT_EXPORT void weft_signals_free(struct weft_signals *page);

#ifdef __cplusplus
}
#endif

#endif
