/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CLIENT_CLIENT_H
#define WEFT_CLIENT_CLIENT_H

/*
 * Shared by the files of this folder and by tests that bring a driver of their own.
 *
 * A handle is a table of operations (struct weft_backend) over either an engine in this process
 * (local.c) or a server (remote.c). What a caller can get wrong about pointers and sizes is
 * answered above both, in client.c and client_read.c.
 *
 * A handle knows the workers that were started on it and the calls that wait on it, so that what
 * happens in this process wakes them at once (wake.c). Locks: weft->lock, then the lock of a
 * worker; never the other way round, and no call to the store under either.
 */

#include "engine/ops.h"

#include <pthread.h>

enum {
    WEFT_CALL_MAX = 100000,             /* items in one call */
    WEFT_CLAIM_WAIT_MAX = 60000,        /* wait_ms of a claim */
    WEFT_CLIENT_WAIT_MAX_MS = 86400000, /* wait_ms of weft_wait() */
    WEFT_LOOK_FIRST_MS = 20,            /* how soon a call that waits on a store looks again, */
    WEFT_LOOK_SLOWEST_MS = 250,         /* how rarely it gets, */
    WEFT_LOOK_LEAST_MS = 5,             /* and how often at most, whatever it is told */
};

/* What calls wait for. */
enum weft_change {
    WEFT_CHANGE_READY, /* there may be something to claim */
    WEFT_CHANGE_ENDED, /* an execution may be over */
    WEFT_CHANGE_LEASE, /* a worker may have to be told of a lease */
    WEFT_CHANGE_COUNT,
};

struct weft_remote;  /* see remote.h */
struct weft_backend; /* below */

struct weft {
    const struct weft_backend *backend;
    uint64_t forks;             /* weft_forks() when it was opened: a child must not use it */
    struct weft_engine *engine; /* owned; NULL: the handle is remote */
    struct weft_remote *remote; /* owned; NULL: it is local */
    char *ns;                   /* owned */
    bool ns_given;              /* false: a server may have another in mind, by the token */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* monotonic; for calls that wait */
    uint64_t changes[WEFT_CHANGE_COUNT];
    struct weft_worker *worker; /* the first of those that run, linked by their `next` */
};

/*
 * How an operation is carried out. A worker has a pace of its own for what fails, so its calls are
 * tried once; others are tried again where that is safe.
 */
struct weft_via {
    struct weft *weft;
    const _Atomic bool *stop; /* true ends a call that waits; or NULL */
    bool one_try;
    int64_t timeout_ms; /* of one try; 0: the default */
};

/*
 * The operations. Arguments were checked as far as pointers go; arrays have at least one item.
 * Results are in the arena; names in them live as long as the arena or the handle.
 */
struct weft_backend {
    enum weft_rc (*submit)(const struct weft_via *via, const struct weft_spec *spec, size_t count,
                           struct weft_submitted *ret_answer, struct weft_err *err);
    /* Waits as long as the claims say. */
    enum weft_rc (*claim)(const struct weft_via *via, const struct weft_claim *claim, size_t count,
                          struct weft_arena *arena, struct weft_claim_result *ret_result,
                          struct weft_err *err);
    enum weft_rc (*renew)(const struct weft_via *via, const struct weft_renew *item, size_t count,
                          struct weft_lease_answer *ret_answer, struct weft_err *err);
    enum weft_rc (*complete)(const struct weft_via *via, const struct weft_complete *item,
                             size_t count, struct weft_lease_answer *ret_answer,
                             struct weft_err *err);
    enum weft_rc (*fail)(const struct weft_via *via, const struct weft_failure *item, size_t count,
                         struct weft_lease_answer *ret_answer, struct weft_err *err);
    enum weft_rc (*put_back)(const struct weft_via *via, enum weft_put_back_kind kind,
                             const struct weft_put_back *item, size_t count,
                             struct weft_lease_answer *ret_answer, struct weft_err *err);
    /* Waits as long as the watch says; it names its namespace. */
    enum weft_rc (*watch)(const struct weft_via *via, const struct weft_watch *watch,
                          struct weft_arena *arena, struct weft_watched *ret_watched,
                          struct weft_err *err);
    enum weft_rc (*steer)(const struct weft_via *via, const struct weft_steering *steering,
                          struct weft_steered *ret_answer, struct weft_err *err);
    /* The filter names its namespace. */
    enum weft_rc (*steer_all)(const struct weft_via *via, const struct weft_steer_all *args,
                              struct weft_sweep *ret_sweep, struct weft_err *err);
    enum weft_rc (*describe)(const struct weft_via *via, const struct weft_id *id, size_t count,
                             struct weft_arena *arena, struct weft_execution *ret_item,
                             struct weft_err *err);
    /* One execution, when it is over or the wait is. WEFT_NOT_FOUND: there is none. */
    enum weft_rc (*wait)(const struct weft_via *via, const struct weft_id *id, int64_t wait_ms,
                         struct weft_arena *arena, struct weft_execution *ret_item,
                         struct weft_err *err);
    /* The filter names its namespace. */
    enum weft_rc (*list)(const struct weft_via *via, const struct weft_listing *listing,
                         struct weft_arena *arena, struct weft_read_page *ret_page,
                         struct weft_err *err);
    enum weft_rc (*attempts)(const struct weft_via *via, const struct weft_id *id,
                             struct weft_arena *arena, struct weft_attempts *ret_attempts,
                             struct weft_err *err);
    enum weft_rc (*bytes)(const struct weft_via *via, enum weft_bytes_kind kind,
                          const struct weft_id *id, struct weft_arena *arena,
                          struct weft_bytes *ret_bytes, struct weft_err *err);
    enum weft_rc (*counts)(const struct weft_via *via, const char *lane, struct weft_arena *arena,
                           struct weft_counts *ret_counts, struct weft_err *err);
    enum weft_rc (*lane_put)(const struct weft_via *via, const struct weft_lane *lane,
                             struct weft_err *err);
    enum weft_rc (*lane_remove)(const struct weft_via *via, const char *lane, struct weft_err *err);
    enum weft_rc (*lanes)(const struct weft_via *via, struct weft_arena *arena,
                          struct weft_lanes *ret_lanes, struct weft_err *err);
    enum weft_rc (*workers)(const struct weft_via *via, struct weft_arena *arena,
                            struct weft_workers *ret_workers, struct weft_err *err);
    enum weft_rc (*goodbye)(const struct weft_via *via, const char *worker, uint64_t *ret_released,
                            struct weft_err *err);
    enum weft_rc (*run_pass)(const struct weft_via *via, enum weft_scanner pass, uint32_t batch,
                             struct weft_pass_report *ret_report, struct weft_err *err);
    enum weft_rc (*replicas)(const struct weft_via *via, struct weft_arena *arena,
                             struct weft_replicas *ret_replicas, struct weft_err *err);
    enum weft_rc (*scanners)(const struct weft_via *via, struct weft_arena *arena,
                             struct weft_scanners *ret_scanners, struct weft_err *err);
    enum weft_rc (*token_create)(const struct weft_via *via, const struct weft_token_spec *spec,
                                 struct weft_arena *arena, struct weft_token *ret_token,
                                 struct weft_err *err);
    enum weft_rc (*token_rotate)(const struct weft_via *via,
                                 const struct weft_token_rotation *rotation,
                                 struct weft_arena *arena, struct weft_token *ret_token,
                                 struct weft_err *err);
    enum weft_rc (*token_revoke)(const struct weft_via *via, int32_t id, struct weft_err *err);
    enum weft_rc (*tokens)(const struct weft_via *via, struct weft_arena *arena,
                           struct weft_tokens *ret_tokens, struct weft_err *err);
    enum weft_rc (*flow_submit)(const struct weft_via *via, const struct weft_flow_spec *spec,
                                size_t count, struct weft_flow_submitted *ret_answer,
                                struct weft_err *err);
    /* These five name their namespace. */
    enum weft_rc (*flow_grow)(const struct weft_via *via, const struct weft_flow_growth *growth,
                              struct weft_flow_submitted *ret_answer, struct weft_err *err);
    enum weft_rc (*flow_link)(const struct weft_via *via, const struct weft_flow_edging *edging,
                              int32_t *ret_revision, struct weft_err *err);
    enum weft_rc (*flow_cancel)(const struct weft_via *via, const struct weft_flow_cancelling *args,
                                int64_t wait_ms, struct weft_flow_cancelled *ret_answer,
                                struct weft_err *err);
    /* wait_ms only with the first page. */
    enum weft_rc (*flow)(const struct weft_via *via, const struct weft_flow_asking *asking,
                         int64_t wait_ms, struct weft_arena *arena, struct weft_flow_page *ret_page,
                         struct weft_err *err);
    enum weft_rc (*flows)(const struct weft_via *via, const struct weft_flow_listing *listing,
                          struct weft_arena *arena, struct weft_flows *ret_flows,
                          struct weft_err *err);
    void (*close)(struct weft *weft);
};

extern const struct weft_backend weft_backend_local;
extern const struct weft_backend weft_backend_remote;

/* What a call is given: all of it is borrowed. */
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
/* Hands the story over when there is one; gives rc back. */
enum weft_rc weft_told(enum weft_rc rc, const struct weft_err *story, struct weft_err *err);

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

/* ---- local_flow.c ---------------------------------------------------------------------------- */

enum weft_rc weft_local_flow_submit(const struct weft_via *via, const struct weft_flow_spec *spec,
                                    size_t count, struct weft_flow_submitted *ret_answer,
                                    struct weft_err *err);
enum weft_rc weft_local_flow_grow(const struct weft_via *via, const struct weft_flow_growth *growth,
                                  struct weft_flow_submitted *ret_answer, struct weft_err *err);
enum weft_rc weft_local_flow_link(const struct weft_via *via, const struct weft_flow_edging *edging,
                                  int32_t *ret_revision, struct weft_err *err);
enum weft_rc weft_local_flow_cancel(const struct weft_via *via,
                                    const struct weft_flow_cancelling *args, int64_t wait_ms,
                                    struct weft_flow_cancelled *ret_answer, struct weft_err *err);
enum weft_rc weft_local_flow(const struct weft_via *via, const struct weft_flow_asking *asking,
                             int64_t wait_ms, struct weft_arena *arena,
                             struct weft_flow_page *ret_page, struct weft_err *err);
enum weft_rc weft_local_flows(const struct weft_via *via, const struct weft_flow_listing *listing,
                              struct weft_arena *arena, struct weft_flows *ret_flows,
                              struct weft_err *err);

/* ---- client_token.c -------------------------------------------------------------------------- */

enum weft_rc weft_local_token_create(const struct weft_via *via, const struct weft_token_spec *spec,
                                     struct weft_arena *arena, struct weft_token *ret_token,
                                     struct weft_err *err);
enum weft_rc weft_local_token_rotate(const struct weft_via *via,
                                     const struct weft_token_rotation *rotation,
                                     struct weft_arena *arena, struct weft_token *ret_token,
                                     struct weft_err *err);
enum weft_rc weft_local_token_revoke(const struct weft_via *via, int32_t id, struct weft_err *err);
enum weft_rc weft_local_tokens(const struct weft_via *via, struct weft_arena *arena,
                               struct weft_tokens *ret_tokens, struct weft_err *err);

/* What weft_open() does, with an engine configured at will. */
WEFT_MUST_CHECK enum weft_rc weft_open_with(const struct weft_engine_config *config, const char *ns,
                                            struct weft **ret_weft, struct weft_err *err);

/* CLOCK_MONOTONIC. */
weft_usec weft_mono_us(void);

/* ---- wake.c ---------------------------------------------------------------------------------- */

/*
 * Tells the workers of the handle and the claims that wait on it that there is something to claim,
 * and when the earliest delayed execution becomes due (WEFT_NEVER: none).
 */
void weft_wake_workers(struct weft *weft, bool ready, weft_usec due_us);
void weft_worker_wake(struct weft_worker *worker, bool ready, weft_usec due_us);
/* Tells them that a call in this process ended a lease, which may be one of theirs. */
void weft_wake_watches(struct weft *weft);
void weft_worker_watch(struct weft_worker *worker);
/* Something happened that calls may be waiting for. */
void weft_note_change(struct weft *weft, enum weft_change change);

/* A call that looks at the store again and again. */
struct weft_look {
    enum weft_change change;
    weft_usec until_us; /* monotonic; when it gives up */
    weft_usec pause_us; /* before the next look */
    uint64_t changes;   /* of the handle, when the last look began */
};
void weft_look_init(struct weft_look *look, struct weft *weft, enum weft_change change,
                    int64_t wait_ms);
/* Pauses until it is worth looking again. False: the wait is over, or was stopped. */
bool weft_look_again(struct weft_look *look, const struct weft_via *via);

/* The list of running workers of a handle. */
void weft_add_worker(struct weft *weft, struct weft_worker *worker);
void weft_remove_worker(struct weft *weft, const struct weft_worker *worker);
struct weft_worker **weft_worker_link(struct weft_worker *worker);

#endif
