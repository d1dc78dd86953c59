/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ADMIN_H
#define WEFT_ADMIN_H

/*
 * What operators look at and set: lanes, workers, tokens, scanners, replicas. weft.h includes this
 * file and says how its calls answer and fail.
 */

#include "weft/limits.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft;       /* opaque */
struct weft_bytes; /* weft.h */
struct weft_arena; /* opaque */

/* ---- Lanes ----------------------------------------------------------------------------------- */

struct weft_weight {
    const char *tenant;
    int32_t weight; /* 1..1000; a tenant without one has 1 */
};

struct weft_lane {
    const char *name;
    bool paused;         /* nothing is claimed; its work stays ready */
    int32_t max_running; /* 0: no limit */
    /* How long outcomes are kept whose policy does not say; failed and expired ones four times as
     * long. 0: 7 days. */
    int64_t retention_ms;
    const struct weft_weight *weights;
    size_t weight_count;
    struct weft_window window; /* how often its executions start; limit 0: no limit */
    struct weft_rate rate;
};

/*
 * Replaces all settings of a lane. Holds for every claim, in any process, that begins afterwards;
 * retention also for what has ended already.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_lane_put(struct weft *weft, const struct weft_lane *lane, struct weft_err *err);
/*
 * Removes the settings of a lane; the defaults hold for its work, also for how long outcomes are
 * kept. WEFT_NOT_FOUND: it has no settings.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_lane_remove(struct weft *weft, const char *lane,
                                                          struct weft_err *err);

struct weft_lanes {
    /* By name: the lanes in use, which have settings, executions that are not over, or
     * executions that ended in the last hour. */
    const struct weft_lane *item;
    size_t count;
    struct weft_arena *arena; /* owned */
};
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_lanes(struct weft *weft, struct weft_lanes *ret_lanes,
                                                    struct weft_err *err);
WEFT_EXPORT void weft_lanes_free(struct weft_lanes *lanes);

/* ---- Workers --------------------------------------------------------------------------------- */

/* A worker as the store knows it: from its claims and heartbeats through a server. */
struct weft_worker_info {
    const char *name;
    const char *const *lanes;
    size_t lane_count;
    const char *const *capabilities;
    size_t capability_count;
    uint64_t leases; /* that it holds now */
    weft_usec seen_us;
};

struct weft_workers {
    const struct weft_worker_info *item; /* by name */
    size_t count;
    struct weft_arena *arena; /* owned */
};

WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_workers(struct weft *weft, struct weft_workers *ret_workers, struct weft_err *err);
WEFT_EXPORT void weft_workers_free(struct weft_workers *workers);
/*
 * Releases every lease of a worker at once: for one that is known to be gone. *ret_released (which
 * may be NULL) is how many.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_goodbye(struct weft *weft, const char *worker,
                                                      uint64_t *ret_released, struct weft_err *err);

/* ---- Suspended executions -------------------------------------------------------------------- */

/* What an execution waits for now, and how it went on the last time. */
struct weft_waiting {
    bool suspended; /* false: nothing of this up to waitpoint_count is set */
    weft_usec suspended_us;
    const char *reason;    /* of the worker; or NULL */
    const char *condition; /* JSON, never NULL */
    weft_usec timeout_us;  /* 0: it does not time out, or has and was escalated */
    enum weft_on_timeout on_timeout;
    int64_t resume_delay_ms;
    weft_usec escalated_us;                 /* when it was left to an operator; 0: it was not */
    const struct weft_waitpoint *waitpoint; /* of the suspension, without tokens */
    size_t waitpoint_count;
    bool resumed; /* false: nothing of this up to the arena is set */
    enum weft_resumed_by resumed_by;
    weft_usec resumed_us;
    const char *resume_reason; /* of an operator; or NULL */
    struct weft_arena *arena;  /* owned */
};
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_waiting(struct weft *weft, const struct weft_id *id,
                                                      struct weft_waiting *ret_waiting,
                                                      struct weft_err *err);
WEFT_EXPORT void weft_waiting_free(struct weft_waiting *waiting);

/* ---- Erasure ------------------------------------------------------------------------------------
 */

enum weft_erasure_of { WEFT_ERASURE_TENANT, WEFT_ERASURE_TAG };
enum weft_erasure_state { WEFT_ERASURE_RUNNING, WEFT_ERASURE_DONE };

struct weft_erasure_spec {
    const char *tenant; /* everything of this tenant; or */
    const char *tag;    /* "key:value": everything with this tag */
    const char *reason; /* stays in the receipt, so it must not name the subject */
};

/* What was asked and what came of it: an order while it runs, then its receipt. */
struct weft_erasure {
    struct weft_id id;
    enum weft_erasure_of of;
    enum weft_erasure_state state;
    const char *subject_hash; /* HMAC-SHA-256 of the subject, in hexadecimal digits */
    const char *reason;
    const char *by;                    /* the name of the token that asked; or NULL */
    weft_usec asked_us;                /* what was created later is not touched */
    weft_usec finished_us;             /* 0: it is not done */
    const struct weft_counter *counts; /* rows by what became of them */
    size_t count_count;
    const char *unreached; /* what it could not reach, in words; NULL: it is not done */
    const char *digest;    /* SHA-256 over the receipt; NULL: it is not done */
    weft_usec verified_us; /* the last verification; 0: none */
    uint64_t remains;      /* rows of the subject that it found */
};

struct weft_erasures {
    const struct weft_erasure *item; /* the newest first */
    size_t count;
    const char *next;         /* for `after` of the next page; NULL: this was the last one */
    struct weft_arena *arena; /* owned */
};

/*
 * Erases everything of a tenant, or with a tag, that was created before this call: the scanner
 * `erasure` does it. *ret_erasures has the one order. Must not be repeated blindly. See
 * docs/erasure.md. Over a server these need the scope admin.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_erase(struct weft *weft,
                                                    const struct weft_erasure_spec *spec,
                                                    struct weft_erasures *ret_erasures,
                                                    struct weft_err *err);
/* One of them, or with id NULL a page of all. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_erasures(struct weft *weft, const struct weft_id *id,
                                                       uint32_t limit, const char *after,
                                                       struct weft_erasures *ret_erasures,
                                                       struct weft_err *err);
/* Looks for the subject again. WEFT_CONFLICT: the erasure is not done. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_erasure_verify(struct weft *weft,
                                                             const struct weft_id *id,
                                                             struct weft_erasures *ret_erasures,
                                                             struct weft_err *err);
WEFT_EXPORT void weft_erasures_free(struct weft_erasures *erasures);

/* ---- Signing keys of signal tokens ------------------------------------------------------------
 */

struct weft_signing_key_info {
    int32_t key_id;
    weft_usec created_us;
    weft_usec retires_us; /* until then its tokens are good; 0: no end is set */
    bool current;         /* it signs */
};

struct weft_signing_keys {
    const struct weft_signing_key_info *item; /* by key_id */
    size_t count;
    struct weft_arena *arena; /* owned */
};

struct weft_key_rotation {
    int64_t grace_ms; /* how long tokens of the keys before stay good */
};

/* Over a server these need a token with the scope admin that is bound to no namespace. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_signing_keys(struct weft *weft, struct weft_signing_keys *ret_keys, struct weft_err *err);
/* Makes a new key; *ret_keys are all that are good then. Must not be repeated blindly. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_signing_key_rotate(struct weft *weft, const struct weft_key_rotation *rotation,
                        struct weft_signing_keys *ret_keys, struct weft_err *err);
WEFT_EXPORT void weft_signing_keys_free(struct weft_signing_keys *keys);
/* The token of a waitpoint again, for operators: ret_bytes->data, a text. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_waitpoint_token(struct weft *weft,
                                                              const struct weft_id *waitpoint,
                                                              struct weft_bytes *ret_token,
                                                              struct weft_err *err);

/* ---- Tokens ---------------------------------------------------------------------------------- */

/* A bearer token of the servers over a store, to be made. */
struct weft_token_spec {
    const char *name;          /* whose it is; required */
    const char *const *scopes; /* at least one of read, submit, work, and admin, which means all */
    size_t scope_count;
    /* The only namespace that it is good for. NULL: every one, or, where the call itself is made
     * with a token that is bound to a namespace, that one. */
    const char *ns;
    int64_t expires_ms;   /* from now; not together with expires_us */
    weft_usec expires_us; /* a moment; both 0: never */
};

/* Gives a token another secret. */
struct weft_token_rotation {
    int32_t id;
    /* How long the secret that it had stays good; -1: no longer. 0: no longer either, but a minute
     * for the token that the call itself is made with, so that a lost answer does no harm. */
    int64_t grace_ms;
    int64_t expires_ms; /* as in the spec; both 0: when it expires stays as it is */
    weft_usec expires_us;
};

struct weft_token {
    int32_t id;
    const char *name;
    const char *const *scopes;
    size_t scope_count;
    const char *ns; /* NULL: every namespace */
    weft_usec created_us;
    weft_usec expires_us;     /* 0: never */
    weft_usec last_used_us;   /* to about a minute; 0: never */
    weft_usec rotated_us;     /* when it got its secret; 0: with its creation */
    weft_usec old_expires_us; /* until when the secret before that is good; 0: it is not */
    const char *token;        /* the text sent to servers; given once, by create and rotate */
};

struct weft_tokens {
    const struct weft_token *item; /* by id */
    size_t count;
    struct weft_arena *arena; /* owned */
};

/*
 * Over a server these need a token with the scope admin; one that is bound to a namespace reaches
 * only tokens of that namespace, and no token hands out more than it has itself: WEFT_FORBIDDEN.
 * Create and rotate give one item. They must not be repeated blindly.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_token_create(struct weft *weft,
                                                           const struct weft_token_spec *spec,
                                                           struct weft_tokens *ret_token,
                                                           struct weft_err *err);
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_token_rotate(struct weft *weft, const struct weft_token_rotation *rotation,
                  struct weft_tokens *ret_token, struct weft_err *err);
/* Refused at once by the server that is asked, and by the others within a second. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_token_revoke(struct weft *weft, int32_t id,
                                                           struct weft_err *err);
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_tokens(struct weft *weft, struct weft_tokens *ret_tokens, struct weft_err *err);
WEFT_EXPORT void weft_tokens_free(struct weft_tokens *tokens);

/* ---- Scanners and replicas ------------------------------------------------------------------- */

/*
 * Scanners find what time or a crash left behind and put it right. A pass is one bounded run of a
 * scanner. Every server runs them by itself, and so does a worker on an embedded store.
 */
enum weft_scanner {
    WEFT_SCANNER_INTAKE,
    WEFT_SCANNER_LEASE_EXPIRY,
    WEFT_SCANNER_ATTEMPT_TIMEOUT,
    WEFT_SCANNER_DELAYED_PROMOTER,
    WEFT_SCANNER_EXECUTION_DEADLINE,
    WEFT_SCANNER_WORKER_EXPIRY,
    WEFT_SCANNER_INVARIANT_CHECK,
    WEFT_SCANNER_RETENTION,
    WEFT_SCANNER_DEPENDENCY,
    WEFT_SCANNER_EDGE_CANCEL_DISPATCHER,
    WEFT_SCANNER_EDGE_CANCEL_RECONCILER,
    WEFT_SCANNER_CANCEL_BACKLOG,
    WEFT_SCANNER_UNUSED_NAMES,
    WEFT_SCANNER_SUSPENSION_TIMEOUT,
    WEFT_SCANNER_WAITPOINT_EXPIRY,
    WEFT_SCANNER_UNBLOCK,
    WEFT_SCANNER_BUDGET_RESET,
    WEFT_SCANNER_PURGE,
    WEFT_SCANNER_FILE_EXPIRY,
    WEFT_SCANNER_BATCH_PROGRESS,
    WEFT_SCANNER_ERASURE,
    WEFT_SCANNER_COUNT
};
WEFT_EXPORT const char *weft_scanner_name(enum weft_scanner scanner);

/* What a pass did, by name: processed, skipped_locked... */
struct weft_counter {
    const char *name; /* constant */
    uint64_t value;
};
enum { WEFT_COUNTERS_MAX = 8 };

struct weft_pass_report {
    uint64_t handled; /* rows changed */
    uint64_t failed;  /* executions ended (poison pills, no attempts left, invalid inbox rows) */
    bool more;        /* there may be more: run it again at once */
    weft_usec next_due_us; /* when it has something to do again; INT64_MAX: nothing is known */
    struct weft_counter counter[WEFT_COUNTERS_MAX];
    size_t counter_count;
};

/* One bounded pass over at most `batch` rows (0: as many as the scanner takes by default). */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_run_pass(struct weft *weft, enum weft_scanner scanner,
                                                       uint32_t batch,
                                                       struct weft_pass_report *ret_report,
                                                       struct weft_err *err);

/* A server that shares the store. */
struct weft_replica {
    struct weft_id id; /* a new one at each start */
    const char *host;
    int64_t pid;
    const char *version;
    const char *url;
    bool alive; /* its heartbeat is not late */
    weft_usec started_us;
    weft_usec seen_us;          /* its last heartbeat */
    const char *settings;       /* a JSON object: the settings that may differ between replicas */
    const char *const *carries; /* kinds that it carries out itself: "http", or none */
    size_t carries_count;
};

struct weft_replicas {
    const struct weft_replica *item; /* the newest first */
    size_t count;
    struct weft_arena *arena; /* owned */
};
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_replicas(struct weft *weft, struct weft_replicas *ret_replicas, struct weft_err *err);
WEFT_EXPORT void weft_replicas_free(struct weft_replicas *replicas);

/* A scanner on a replica: how it is set, and what it last did. */
struct weft_scanner_status {
    const char *name;
    struct weft_id replica;
    const char *host;
    bool enabled;
    int64_t interval_ms; /* 0: off */
    uint32_t batch;
    int64_t pause_ms;                         /* between two batches while there is more */
    const char *ns;                           /* limited to it; NULL: all */
    uint32_t partition_first, partition_last; /* limited to them; 0 and 255: all */
    uint64_t passes, failures;
    weft_usec last_pass_us; /* when a pass last went well, or the server saw that it had nothing to
                               do; 0: not yet */
    weft_usec duration_us;  /* of the last pass */
    weft_usec next_us;      /* when it runs next */
    weft_usec lag_us;       /* age of the oldest row that is due; 0: none is */
    const char *last_error; /* NULL: the last pass went well */
    const struct weft_counter *counters; /* all passes since the start together */
    size_t counter_count;
};

struct weft_scanners {
    const struct weft_scanner_status *item; /* by replica, then in the order of the scanners */
    size_t count;
    struct weft_arena *arena; /* owned */
};
/* Of the living replicas. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_scanners(struct weft *weft, struct weft_scanners *ret_scanners, struct weft_err *err);
WEFT_EXPORT void weft_scanners_free(struct weft_scanners *scanners);

#ifdef __cplusplus
}
#endif

#endif
