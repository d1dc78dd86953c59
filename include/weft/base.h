/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_H
#define WEFT_BASE_H

/*
 * The words that weft.h and every layer below it share: error codes, states, fences, ids, time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_EXPORT     __attribute__((visibility("default")))
#define WEFT_MUST_CHECK __attribute__((warn_unused_result))

enum weft_rc {
#define X(name, number, wire, http, retry, text) WEFT_##name = (number),
#include "weft/errors.def"
#undef X
    WEFT_RC_COUNT
};

enum weft_state {
    WEFT_STATE_NONE,
#define X(name, number, wire, living) WEFT_STATE_##name = (number),
#include "weft/states.def"
#undef X
    WEFT_STATE_COUNT
};

/* Why a lease is gone; the word is in weft_fence_name(). */
enum weft_fence {
    WEFT_FENCE_NONE,
    WEFT_FENCE_CANCELLED,
    WEFT_FENCE_EXPIRED,   /* the execution's deadline passed */
    WEFT_FENCE_TIMED_OUT, /* the attempt took too long */
    WEFT_FENCE_LOST,      /* the lease ran out; no other worker has claimed it yet */
    WEFT_FENCE_RECLAIMED, /* another worker has it */
    WEFT_FENCE_REVOKED,
    WEFT_FENCE_RELEASED,  /* this holder gave it back itself */
    WEFT_FENCE_FINISHED,  /* this holder has ended it already, in another way */
    WEFT_FENCE_UNKNOWN,   /* no worker ever had this epoch */
    WEFT_FENCE_SUSPENDED, /* this holder has suspended it */
};

/* What becomes of a suspended execution when its timeout passes. Stored: never renumber. */
enum weft_on_timeout {
    WEFT_ON_TIMEOUT_FAIL = 0, /* it fails with the class suspension_timeout */
    WEFT_ON_TIMEOUT_CANCEL = 1,
    WEFT_ON_TIMEOUT_EXPIRE = 2,
    WEFT_ON_TIMEOUT_RESUME = 3,   /* it is ready again */
    WEFT_ON_TIMEOUT_ESCALATE = 4, /* it stays suspended, and is shown to operators */
};

/* Why an execution goes on. Stored: never renumber. */
enum weft_resumed_by {
    WEFT_RESUMED_NOT = 0,
    WEFT_RESUMED_BY_SIGNALS = 1,
    WEFT_RESUMED_BY_TIMEOUT = 2,
    WEFT_RESUMED_BY_OPERATOR = 3,
};

typedef int64_t weft_usec; /* microseconds; since the Unix epoch (UTC) where it is a moment */

struct weft_id {
    uint8_t byte[16]; /* UUIDv7, see src/base/id.h */
};

/* What the store said, for the code that decides whether to try again. */
enum weft_cause {
    WEFT_CAUSE_NONE,
    WEFT_CAUSE_CONTENTION,     /* deadlock, serialization failure, busy file: nothing was written */
    WEFT_CAUSE_LOCK_TIMEOUT,   /* another open transaction holds a lock or a key */
    WEFT_CAUSE_DUPLICATE,      /* a unique constraint refused a row */
    WEFT_CAUSE_DATA,           /* a value was refused by the store */
    WEFT_CAUSE_LOST,           /* the connection broke before COMMIT was sent */
    WEFT_CAUSE_LOST_IN_COMMIT, /* the connection broke after COMMIT was sent */
    WEFT_CAUSE_FLOW_LOCKED,    /* another transaction holds the flow: nothing was written */
};

/* The details of a failure. Written only when a call returns something other than WEFT_OK. */
struct weft_err {
    enum weft_rc rc;
    enum weft_cause cause;
    const char *field; /* static; the field of the input that is to blame, or NULL */
    const char *hint;  /* static; what to do about it, or NULL */
    char sqlstate[6];  /* empty unless PostgreSQL spoke */
    char text[230];
};

#ifdef __cplusplus
extern "C" {
#endif

WEFT_EXPORT const char *weft_rc_wire(enum weft_rc rc);          /* "fenced" */
WEFT_EXPORT const char *weft_rc_text(enum weft_rc rc);          /* a sentence */
WEFT_EXPORT const char *weft_state_name(enum weft_state state); /* "ready" */
WEFT_EXPORT const char *weft_fence_name(enum weft_fence fence); /* "lost" */

enum { WEFT_ID_TEXT = 37 }; /* 36 characters and the NUL */
WEFT_EXPORT void weft_id_print(const struct weft_id *id, char ret_text[WEFT_ID_TEXT]);
/* Reads 36 characters of lower or upper case hex with dashes; false for anything else. */
WEFT_EXPORT WEFT_MUST_CHECK bool weft_id_parse(const char *text, size_t size,
                                               struct weft_id *ret_id);

/*
 * Called when the system has no memory left. The embedding program may replace the hook (NULL puts
 * the default back); whatever a hook does, the process is aborted when it returns.
 */
WEFT_EXPORT void weft_set_oom(void (*hook)(size_t wanted));

#ifdef __cplusplus
}
#endif

#endif
