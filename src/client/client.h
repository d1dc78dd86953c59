/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CLIENT_CLIENT_H
#define WEFT_CLIENT_CLIENT_H

/*
 * Shared by the files of this folder and by tests that bring a driver of their own.
 *
 * A handle carries out the operations of wire/ops.def by an engine in this process (local/) or by a
 * server (remote/). Errors of a caller about pointers and sizes are answered above both, in
 * client*.c.
 *
 * A handle knows the workers that were started on it and the calls that wait on it, so that changes
 * in this process wake them at once (worker/worker.c). Locks: weft->lock, then the lock of a
 * worker; never the other way round, and no call to the store under either.
 */

#include "engine/call.h"
#include "engine/engine.h"
#include "weft/weft.h"

#include <pthread.h>

enum {
    WEFT_CALL_MAX = 100000,             /* items in one call */
    WEFT_CLAIM_WAIT_MAX = 60000,        /* wait_ms of a claim */
    WEFT_CLIENT_WAIT_MAX_MS = 86400000, /* wait_ms of weft_wait() */
};

/* Changes that calls wait for. */
enum weft_local_change {
    WEFT_CHANGE_READY, /* there may be something to claim */
    WEFT_CHANGE_ENDED, /* an execution may be over */
    WEFT_CHANGE_LEASE, /* a lease of a worker may have been ended */
    WEFT_CHANGE_COUNT,
};

struct weft_fetch;   /* see fetch.h */
struct weft_backend; /* below */

struct weft {
    const struct weft_backend *backend;
    uint64_t forks;             /* weft_forks() when it was opened: a child must not use it */
    struct weft_engine *engine; /* owned; NULL: the handle is of a server */
    struct weft_fetch *fetch;   /* owned; of a server; NULL: it is local */
    char *ns;                   /* owned */
    bool ns_given;              /* false: a server may choose another, by the token */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* monotonic; for calls that wait */
    uint64_t changes[WEFT_CHANGE_COUNT];
    struct weft_worker *worker; /* the first that runs; they are linked by `next` */
};

/*
 * How an operation is carried out. A worker repeats failed calls at a pace of its own, so its calls
 * are tried once; others are tried again where that is safe.
 */
struct weft_via {
    struct weft *weft;
    const _Atomic bool *stop; /* true ends a call that waits; or NULL */
    bool one_try;
    int64_t timeout_ms; /* of one try; 0: the default */
    bool waits;         /* DESCRIBE, FLOW, FLOW_CANCEL: for the end, at most wait_ms */
    int64_t wait_ms;
};

/*
 * Carries out operations. Arguments were checked as far as pointers go; operations on items have at
 * least one. Results are in the arena of the call; names in them live as long as the arena or the
 * handle. `ns` of the call is not looked at: a handle knows its own.
 *
 * Claims and watches wait as long as they say. A DESCRIBE that waits is of one execution, which
 * must exist. Filters, watches, and the arguments about flows name their namespace.
 */
struct weft_backend {
    enum weft_rc (*call)(const struct weft_via *via, const struct weft_op_call *call,
                         struct weft_err *err);
    void (*close)(struct weft *weft);
};

extern const struct weft_backend weft_backend_local;
extern const struct weft_backend weft_backend_remote;

/* The arguments of a call: all of it is borrowed. */
struct weft_given {
    const struct weft *weft;
    const void *in;
    size_t count;
    const void *out;
};

/* WEFT_MISUSE: this process is a forked child of the one that opened the handle. Takes no lock. */
WEFT_MUST_CHECK enum weft_rc weft_check_process(const struct weft *weft, struct weft_err *err);
/* The handle is there and of this process, the count is in bounds, and arrays are there where there
 * are items. */
WEFT_MUST_CHECK enum weft_rc weft_check_given(const struct weft_given *given, struct weft_err *err);
enum weft_rc weft_missing(const char *field, struct weft_err *err);
/* Copies the story of a failure to the caller, if it wants one; returns rc. */
enum weft_rc weft_copy_err(enum weft_rc rc, const struct weft_err *story, struct weft_err *err);

/* A value that must lie in a range; `field` is blamed. */
struct weft_range {
    const char *field;
    int64_t value, min, max;
};
WEFT_MUST_CHECK enum weft_rc weft_check_range(const struct weft_range *range, struct weft_err *err);
/* An array inside an item; `i` tells which item. */
WEFT_MUST_CHECK enum weft_rc weft_check_array(const void *array, size_t count, const char *field,
                                              size_t i, struct weft_err *err);

/* The arrays inside a spec; `i` tells which item it is. */
WEFT_MUST_CHECK enum weft_rc weft_check_spec(const struct weft_spec *spec, size_t i,
                                             struct weft_err *err);

/* Checks the values of an argument or of items, whose pointers were checked; NULL: no check. */
typedef enum weft_rc weft_check_fn(const struct weft_op_call *call, struct weft_err *err);
/* What an operation answers items with: the size of a result, and how the answers of weft.h are
 * filled from results. */
struct weft_answer_kind {
    size_t size;
    void (*give)(const void *results, size_t count, void *ret_answer);
};
extern const struct weft_answer_kind weft_answers_submit, weft_answers_lease, weft_answers_steer,
    weft_answers_flow;

/* Carries out an operation that answers each item; without items there is nothing to do. call->out
 * are the answers of weft.h. */
WEFT_MUST_CHECK enum weft_rc weft_do_items(struct weft *weft, const struct weft_op_call *call,
                                           weft_check_fn *check,
                                           const struct weft_answer_kind *kind,
                                           struct weft_err *err);
/*
 * The same of answers that hold pointers: call->out are results and lie in call->arena, which is
 * the caller's on success and freed on failure. ret_answer NULL is refused.
 */
WEFT_MUST_CHECK enum weft_rc weft_do_kept(struct weft *weft, const struct weft_op_call *call,
                                          const void *ret_answer, struct weft_err *err);
/*
 * Carries out an operation with one argument (count 0: none is required). The answer has an arena
 * of its own, that of the call if it has one: on success the caller owns *ret_arena, on failure it
 * is freed. ret_arena NULL: the answer needs none once it is given.
 */
WEFT_MUST_CHECK enum weft_rc weft_do(const struct weft_via *via, const struct weft_op_call *call,
                                     weft_check_fn *check, struct weft_arena **ret_arena,
                                     struct weft_err *err);
/* The same, of an operation that does not wait and whose argument needs no other check. */
WEFT_MUST_CHECK enum weft_rc weft_ask(struct weft *weft, const struct weft_op_call *call,
                                      struct weft_arena **ret_arena, struct weft_err *err);
/* Where the arena of an answer is; NULL: the caller gave no room for one. */
#define WEFT_ARENA_OF(answer) ((answer) ? &(answer)->arena : NULL)
/* Defines the function of weft.h that frees an answer of the type and empties it. */
#define WEFT_FREES(type)                                                                           \
    void type##_free(struct type *answer)                                                          \
    {                                                                                              \
        if (!answer)                                                                               \
            return;                                                                                \
        weft_arena_free(answer->arena);                                                            \
        *answer = (struct type){0};                                                                \
    }
/* The namespace of an argument that may name none. */
const char *weft_ns_of(const struct weft *weft, const char *ns);

/* The same as weft_open(), with any configuration of the engine. */
WEFT_MUST_CHECK enum weft_rc weft_open_with(const struct weft_engine_config *config, const char *ns,
                                            struct weft **ret_weft, struct weft_err *err);

/* ---- Waking and waiting (worker/worker.c) ---------------------------------------------------- */

/*
 * A wake is a hint: workers and calls that wait also look by themselves, because other processes
 * change the store as well.
 */

/* CLOCK_MONOTONIC. */
weft_usec weft_mono_us(void);

/*
 * Tells the workers of the handle and the claims that wait on it that there is something to claim,
 * and when the earliest delayed execution becomes due (WEFT_NEVER: none).
 */
void weft_wake_workers(struct weft *weft, bool ready, weft_usec due_us);
/* Tells them that a call in this process ended a lease, which may be one of theirs. */
void weft_wake_watches(struct weft *weft);
/* Something happened that calls may be waiting for. */
void weft_note_change(struct weft *weft, enum weft_local_change change);

/* A call that looks at the store again and again. */
struct weft_look {
    enum weft_local_change change;
    weft_usec until_us; /* monotonic; when it gives up */
    weft_usec pause_us; /* before the next look */
    uint64_t changes;   /* of the handle, when the last look began */
};
void weft_look_init(struct weft_look *look, struct weft *weft, enum weft_local_change change,
                    int64_t wait_ms);
/* Pauses until it is worth looking again. False: the wait is over, or was stopped. */
bool weft_look_again(struct weft_look *look, const struct weft_via *via);

#endif
