/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

/*
 * weft: hand over work, have it carried out once by effect, whatever crashes.
 *
 * A `struct weft` is an open store. It is safe to use from many threads, and any number of
 * processes may open the same store. Every call takes an array and answers each item on its own:
 * the call returns WEFT_OK when every item was looked at, and each answer holds an `err` whose `rc`
 * is WEFT_OK or says why not. When the call as a whole returns something else (the store cannot be
 * reached, the arguments are malformed), *err has the details and no answer may be read. It may be
 * repeated: anything but submit without a key, claim, replay and revoke may be repeated blindly.
 *
 * Zero in an optional field means the default, so `{.kind = "mail"}` is a complete spec. Pointers
 * going in are borrowed until the call returns. Pointers coming out live in the result object,
 * which must be freed before the handle is closed.
 * A handle and its workers belong to the process that opened it: after fork() every call on them in
 * the child is WEFT_MISUSE, and closing, stopping and freeing do nothing there.
 * Nothing here logs, exits, or installs signal handlers. Out of memory calls the hook given to
 * weft_set_oom(), which aborts by default.
 */

#include "weft/admin.h"
#include "weft/base.h"
#include "weft/batch.h"
#include "weft/file.h"
#include "weft/http.h"
#include "weft/limits.h"
#include "weft/wait.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft; /* opaque */

/* ---- Opening --------------------------------------------------------------------------------- */

struct weft_options {
    const char *ns;       /* the namespace of every call; NULL: "default" */
    uint32_t connections; /* to PostgreSQL, at most; 0: 4. SQLite: so many readers, one writer */
    bool no_migrate;      /* refuse a store that is not up to date instead of migrating it */
    const char *token;    /* http(s): what the server asks for; NULL: none */
    const char *ca_file;  /* https: PEM file of the authorities to trust; NULL: the system's */
    bool must_exist;      /* a store that is not there is WEFT_NOT_FOUND instead of being created */
    const char *signing_key_file; /* a store: keys of signal tokens; NULL: rows of the store */
};

/*
 * Opens "sqlite:PATH", "postgres://...", or the server at "http(s)://HOST:PORT", which need not
 * answer yet. The caller ends *ret_weft with weft_close(). options may be NULL.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_open(const char *url,
                                                   const struct weft_options *options,
                                                   struct weft **ret_weft, struct weft_err *err);
WEFT_EXPORT void weft_close(struct weft *weft); /* NULL is fine */
WEFT_EXPORT const char *weft_version(void);

/* ---- Submitting ------------------------------------------------------------------------------ */

struct weft_tag {
    const char *key;   /* [A-Za-z0-9_.-]{1,64} */
    const char *value; /* up to 256 bytes */
};

enum weft_backoff {
    WEFT_BACKOFF_EXPONENTIAL,
    WEFT_BACKOFF_FIXED,
};

struct weft_policy {
    int32_t max_attempts;        /* 0: 25 */
    enum weft_backoff backoff;   /* how the wait before a retry grows */
    int64_t initial_ms;          /* 0: 1,000; -1: retry at once */
    double factor;               /* 0: 2 */
    int64_t max_ms;              /* the longest wait; 0: 3,600,000, or initial_ms if more */
    bool no_jitter;              /* false: each wait is random, 80 % to 120 %, up to max_ms */
    int64_t attempt_timeout_ms;  /* 0: none */
    int64_t lease_ms;            /* 0: 30,000; when the claim names none */
    int32_t max_lost;            /* leases that may be lost before it is given up; 0: 10 */
    int64_t retention_ms;        /* how long its outcome is kept; 0: the lane says, else 7 days */
    const char *const *no_retry; /* error classes that are final */
    size_t no_retry_count;
};

struct weft_spec {
    const char *ns;   /* NULL: the namespace of the handle */
    const char *lane; /* NULL: "default" */
    const char *kind; /* required */
    const void *payload;
    size_t payload_size;
    const char *content_type; /* NULL: application/json when there is a payload */
    int32_t priority;         /* -32768..32767, higher first */
    int64_t delay_ms;         /* from now; not together with run_at_us */
    weft_usec run_at_us;      /* a moment; in the past means now */
    weft_usec deadline_us;    /* a moment in the future by which it must be over; 0: none */
    const char *const *capabilities;
    size_t capability_count;
    const char *tenant;
    const struct weft_tag *tags;
    size_t tag_count;
    const char *key; /* idempotency key, unique in its namespace */
    const struct weft_policy *policy;
    const char *gate;           /* "class:key", whose limits hold for it: limits.h; NULL: none */
    const char *const *budgets; /* names of budgets it is under, besides budgets that match it */
    size_t budget_count;        /* 8 at most */
    const struct weft_amount *cost; /* what it is expected to spend; else as its budgets estimate */
    size_t cost_count;
};

struct weft_submitted {
    struct weft_err err;
    struct weft_id id; /* of the first execution with this key when `duplicate` */
    enum weft_state state;
    bool duplicate;
};

WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_submit(struct weft *weft,
                                                     const struct weft_spec *spec, size_t count,
                                                     struct weft_submitted *ret_answer,
                                                     struct weft_err *err);

/* ---- Flows ----------------------------------------------------------------------------------- */

/* When a node that comes after others may begin; an upstream that did not succeed has failed. */
enum weft_join {
    WEFT_JOIN_ALL, /* all have succeeded */
    WEFT_JOIN_ANY,
    WEFT_JOIN_QUORUM, /* k of them have */
};

/* What becomes of the other upstreams when a join is decided, either way. */
enum weft_on_satisfied {
    WEFT_ON_SATISFIED_DEFAULT, /* all: let them run; any, quorum: cancel them */
    WEFT_ON_SATISFIED_CANCEL_REMAINING,
    WEFT_ON_SATISFIED_LET_RUN,
};

/* A member of a flow: an execution with a name, and what it comes after. */
struct weft_node {
    const char *name; /* unique in the flow */
    struct weft_spec spec;
    const char *const *after; /* names of nodes of the same flow */
    size_t after_count;
    enum weft_join join;
    uint32_t k; /* of a quorum: 1..after_count */
    enum weft_on_satisfied on_satisfied;
};

enum weft_flow_state {
    WEFT_FLOW_OPEN,
    WEFT_FLOW_SUCCEEDED, /* every sink, a node that nothing comes after, succeeded */
    WEFT_FLOW_FAILED,
    WEFT_FLOW_CANCELLED,
    WEFT_FLOW_STATE_COUNT
};

struct weft_flow_spec {
    const char *ns;   /* NULL: the namespace of the handle */
    const char *name; /* for people and lists; NULL: none */
    const char *key;  /* idempotency key of the flow, unique in its namespace */
    const struct weft_node *nodes;
    size_t node_count;
};

struct weft_flow_submitted {
    struct weft_err err;
    struct weft_id id; /* of the first flow with this key when `duplicate` */
    enum weft_flow_state state;
    int32_t revision;
    bool duplicate;
    struct weft_id *node; /* ids of the executions in the order of the spec; the caller's array */
    size_t blamed;        /* with err: 1 + the index of the node it is about; 0: none of them */
};

/* How a flow is cancelled. */
enum weft_flow_cancel {
    WEFT_FLOW_CANCEL_NONE,
    WEFT_FLOW_CANCEL_ALL,     /* every living member */
    WEFT_FLOW_CANCEL_PENDING, /* all but running members, whose results stand */
    WEFT_FLOW_CANCEL_ONLY,    /* no member; but nothing more begins by a join */
};

/* Adds nodes to a flow that is open; they may come after nodes that are there. */
struct weft_flow_growth {
    const char *ns; /* NULL: the namespace of the handle */
    struct weft_id flow;
    int32_t revision; /* that of the flow as the caller knows it: otherwise WEFT_CONFLICT */
    const struct weft_node *nodes;
    size_t node_count;
};

/* Adds edges between nodes of a flow that is open. */
struct weft_flow_edge {
    const char *from, *to; /* names of nodes; `to` comes after `from`, and is blocked */
};
struct weft_flow_edging {
    const char *ns; /* NULL: the namespace of the handle */
    struct weft_id flow;
    int32_t revision; /* as in struct weft_flow_growth */
    const struct weft_flow_edge *edges;
    size_t edge_count; /* up to 1,000 */
};

struct weft_flow_cancelling {
    const char *ns; /* NULL: the namespace of the handle */
    struct weft_id flow;
    enum weft_flow_cancel how;
    const char *reason; /* NULL: none */
    bool remove;        /* make it invisible, and remove it */
};

struct weft_flow_cancelled {
    enum weft_flow_state state; /* of the flow, when the call returned */
    uint64_t cancelled;         /* members that have been cancelled because of the call */
    bool done; /* all members that were to be cancelled are; otherwise it goes on by itself */
};

/* Which flows a list has. */
struct weft_flow_listing {
    const char *ns; /* NULL: the namespace of the handle */
    bool by_state;
    enum weft_flow_state state; /* with by_state */
    const char *name;           /* NULL: any */
    uint32_t limit;             /* 1..1000, 0: 50 */
    const char *after;          /* NULL, or the `next` of the page before */
    const char *id;             /* a short form of the id, as in struct weft_filter */
};

/* A member of a flow as readers see it. */
struct weft_flow_node {
    const char *name;
    struct weft_id id; /* of its execution */
    enum weft_state state;
    int32_t attempt;
    const char *worker;
    weft_usec started_us, finished_us; /* 0: not yet */
    const char *reason;
    const char *error_class, *error_message;
    const char *const *after;
    size_t after_count;
    enum weft_join join;
    uint32_t k;
    enum weft_on_satisfied on_satisfied; /* never the default: what it came to */
    bool fired;                          /* its join is decided */
    /* Of a suspended one; `reason` says what it waits for, if its worker did. */
    weft_usec timeout_us;          /* 0: it does not time out */
    bool escalated;                /* its timeout passed: an operator must look */
    const char *const *waitpoints; /* names of up to 4, sorted */
    size_t waitpoint_count;
    const char *error_detail; /* JSON; NULL: none, or those of the nodes before are 8 MiB */
};

struct weft_flow {
    struct weft_id id;
    const char *name;
    enum weft_flow_state state;
    int32_t revision;
    weft_usec created_us, finished_us; /* finished 0: it is open */
    enum weft_flow_cancel cancel;      /* how it was cancelled, if it was */
    const char *reason;
    uint64_t node_count;
    uint64_t count[WEFT_STATE_COUNT]; /* members by state; not filled in lists */
};

/* A flow, and its nodes in pages, in the order in which they were submitted. */
struct weft_flow_page {
    struct weft_flow flow;
    const struct weft_flow_node *node;
    size_t count;
    const char *next;         /* cursor of the next page, NULL: that was all */
    struct weft_arena *arena; /* owned */
};

struct weft_flows {
    const struct weft_flow *item; /* the newest first; a page may be short while there is more */
    size_t count;
    const char *next;
    struct weft_arena *arena; /* owned */
    weft_usec looked_to_us;   /* as in struct weft_page */
};

/*
 * Submits flows whole: a part is never visible. Each answer's `node`, when not NULL, has room for
 * the nodes of its spec; a server is asked for a flow at a time.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_flow_submit(struct weft *weft, const struct weft_flow_spec *spec, size_t count,
                 struct weft_flow_submitted *ret_answer, struct weft_err *err);
/* ret_answer->node, when not NULL, has room for the nodes. The answer's err is not used. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_flow_grow(struct weft *weft,
                                                        const struct weft_flow_growth *growth,
                                                        struct weft_flow_submitted *ret_answer,
                                                        struct weft_err *err);
/*
 * All edges or none. *ret_revision is that of the flow with them. WEFT_CONFLICT: another revision,
 * an edge that is there, or a `to` that is not blocked any more. WEFT_INVALID_VALUE: a circle, or
 * no such node. An edge from a node that has ended counts at once. Must not be repeated blindly.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_flow_link(struct weft *weft,
                                                        const struct weft_flow_edging *edging,
                                                        int32_t *ret_revision,
                                                        struct weft_err *err);
/*
 * From here on the joins of the flow begin nothing; members are cancelled as `how` says (NONE:
 * all), for up to wait_ms (60,000) before the call returns, and after that by the store's
 * scanners. WEFT_NOT_LIVE: it has ended otherwise.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_flow_cancel(struct weft *weft, const struct weft_flow_cancelling *args, int64_t wait_ms,
                 struct weft_flow_cancelled *ret_answer, struct weft_err *err);
/* Cancels it if it is open, and makes it invisible. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_flow_delete(struct weft *weft, const struct weft_id *flow, struct weft_err *err);
/*
 * The flow with its first nodes, up to 1,000, as soon as it is over or wait_ms (up to a day) have
 * passed. Ends with weft_flow_page_free(), as the next.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_flow_get(struct weft *weft,
                                                       const struct weft_id *flow, int64_t wait_ms,
                                                       struct weft_flow_page *ret_page,
                                                       struct weft_err *err);
/*
 * limit: 1..1000, 0: 1000. after: NULL, or the `next` of the page before. Of the flow itself only
 * its id is always set.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_flow_nodes(struct weft *weft, const struct weft_id *flow, uint32_t limit, const char *after,
                struct weft_flow_page *ret_page, struct weft_err *err);
WEFT_EXPORT void weft_flow_page_free(struct weft_flow_page *page);
/* listing NULL: all flows of the namespace. Ends with weft_flows_free(). */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_flow_list(struct weft *weft,
                                                        const struct weft_flow_listing *listing,
                                                        struct weft_flows *ret_flows,
                                                        struct weft_err *err);
WEFT_EXPORT void weft_flows_free(struct weft_flows *flows);

/* What an upstream came to, given along with a claim. */
struct weft_upstream {
    const char *node;
    struct weft_id id;
    enum weft_state state;
    const char *content_type; /* NULL: JSON */
    const void *result;       /* NULL: none, or too large to come along: read it by its id */
    size_t result_size;
    bool too_large;
};

/* ---- Working --------------------------------------------------------------------------------- */

struct weft_claim {
    const char *ns;
    const char *worker;       /* required; names one process */
    const char *const *lanes; /* none: "default" */
    size_t lane_count;
    const char *const *kinds; /* none: every kind */
    size_t kind_count;
    const char *const *capabilities;
    size_t capability_count;
    uint32_t max;     /* 1..1000; 0: 1 */
    int64_t lease_ms; /* 1,000..86,400,000; 0: what the policy of each execution says */
    int64_t wait_ms;  /* how long to wait for the first one, up to 60,000; 0: do not wait */
};

struct weft_claimed {
    struct weft_id id;
    int32_t epoch;
    int32_t attempt;
    uint32_t claim; /* which of the claims of the call this one answers */
    const char *lane;
    const char *kind;
    const void *payload; /* NULL: none was given */
    size_t payload_size;
    const char *content_type;
    int32_t priority;
    const char *tenant; /* or NULL */
    const struct weft_tag *tags;
    size_t tag_count;
    weft_usec created_us;
    weft_usec deadline_us;         /* 0: none */
    weft_usec attempt_deadline_us; /* when this attempt times out; 0: it does not */
    weft_usec lease_expires_us;
    int64_t lease_ms;                     /* how long the lease lasts, from when it was given */
    struct weft_id flow;                  /* all zeros: none */
    const char *node;                     /* its name in the flow, or NULL */
    const struct weft_upstream *upstream; /* what it comes after, in the order of submission */
    size_t upstream_count;
    /* Of an execution that was suspended and goes on. */
    bool resumed;
    enum weft_resumed_by resumed_by;
    weft_usec resumed_us; /* 0: its suspend was satisfied at once, see weft_job_suspend() */
    const struct weft_signal_info *signal; /* in the order of their arrival */
    size_t signal_count;
    bool more_signals; /* 64 KiB of them have come along: read the others by weft_signals() */
};

struct weft_claims {
    const struct weft_claimed *item;
    size_t count;
    bool contended; /* a lane with a limit was just being claimed from elsewhere: ask again soon */
    struct weft_arena *arena; /* owned */
};

/* Takes work for one or more claims. Ends with weft_claims_free(), which accepts an empty one. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_claim(struct weft *weft,
                                                    const struct weft_claim *claim, size_t count,
                                                    struct weft_claims *ret_claims,
                                                    struct weft_err *err);
WEFT_EXPORT void weft_claims_free(struct weft_claims *claims);

struct weft_renew {
    struct weft_id id;
    int32_t epoch;
    int64_t lease_ms;  /* 0: what the policy says */
    bool has_progress; /* percent and note are set */
    int32_t percent;   /* 0..100 */
    const char *note;  /* or NULL */
};

struct weft_complete {
    struct weft_id id;
    int32_t epoch;
    const void *result; /* NULL: none */
    size_t result_size;
    const char *content_type; /* NULL: application/json */
};

struct weft_failure {
    struct weft_id id;
    int32_t epoch;
    const char *error_class; /* NULL: "error" */
    const char *message;
    bool permanent;         /* do not retry; over HTTP the opposite word, "retryable": false */
    int64_t retry_after_ms; /* beats the backoff; 0: not given; -1: at once */
    const char *detail;     /* any JSON of up to 64 KiB, kept byte for byte; NULL: none */
};

struct weft_put_back {
    struct weft_id id;
    int32_t epoch;
    int64_t delay_ms; /* 0: ready at once */
};

/* The answer to anything a worker says about a lease. A repeat by the holder gets the same one. */
struct weft_lease_answer {
    struct weft_err err;
    enum weft_fence fence;      /* why, when err.rc is WEFT_FENCED */
    enum weft_state state;      /* what the execution is in now */
    weft_usec lease_expires_us; /* renew */
    weft_usec run_at_us;        /* fail, delay, release: when it becomes ready; 0: it is */
};

WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_renew(struct weft *weft,
                                                    const struct weft_renew *item, size_t count,
                                                    struct weft_lease_answer *ret_answer,
                                                    struct weft_err *err);
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_complete(struct weft *weft, const struct weft_complete *item, size_t count,
              struct weft_lease_answer *ret_answer, struct weft_err *err);
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_fail_lease(struct weft *weft, const struct weft_failure *item, size_t count,
                struct weft_lease_answer *ret_answer, struct weft_err *err);
/* Not now: come back after delay_ms. Spends no attempt. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_delay(struct weft *weft,
                                                    const struct weft_put_back *item, size_t count,
                                                    struct weft_lease_answer *ret_answer,
                                                    struct weft_err *err);
/* Gives it back for another worker. Uses no attempt. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_release(struct weft *weft, const struct weft_put_back *item, size_t count,
             struct weft_lease_answer *ret_answer, struct weft_err *err);

/*
 * A lease that a cancel, deadline, attempt timeout or revoke ended before its time.
 * Until its holder ends it, by any of complete, fail, delay and release (which all answer
 * WEFT_FENCED), or until the lease would have run out, it keeps its place in a lane with a limit.
 */
struct weft_ended_lease {
    struct weft_id id;
    int32_t epoch;
    enum weft_fence reason; /* CANCELLED, EXPIRED, TIMED_OUT or REVOKED */
};

struct weft_watch {
    const char *ns;     /* NULL: the namespace of the handle */
    const char *worker; /* required; the name under which leases were claimed */
    int64_t wait_ms;    /* how long to wait for the first one, up to 60,000; 0: do not wait */
};

struct weft_watched {
    const struct weft_ended_lease *item;
    size_t count;
    struct weft_arena *arena; /* owned */
};

/*
 * The leases of a worker that others ended, as soon as there is one or wait_ms have passed. Each is
 * reported once; if that answer is lost, the next renewal of the lease says the same. The worker
 * helper below does this by itself. Ends with weft_watched_free(), which accepts an empty one.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_watch(struct weft *weft,
                                                    const struct weft_watch *watch,
                                                    struct weft_watched *ret_watched,
                                                    struct weft_err *err);
WEFT_EXPORT void weft_watched_free(struct weft_watched *watched);

/* ---- Steering -------------------------------------------------------------------------------- */

struct weft_steer {
    const char *ns; /* NULL: the namespace of the handle */
    struct weft_id id;
    const char *reason;    /* cancel, revoke, resume: stored; or NULL */
    int32_t priority;      /* reprioritize */
    weft_usec deadline_us; /* set deadline; 0: none any more */
    bool force;            /* replay: also if upstreams stand in the way */
};

struct weft_steered {
    struct weft_err err;
    enum weft_state state;
    bool changed; /* false: it was so already (cancel of a cancelled one) */
};

enum weft_steer_kind {
    WEFT_STEER_CANCEL,
    WEFT_STEER_REPLAY,
    WEFT_STEER_REPRIORITIZE,
    WEFT_STEER_REVOKE,
    WEFT_STEER_SET_DEADLINE,
    WEFT_STEER_RESUME, /* a suspended one */
};

WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_steer(struct weft *weft, enum weft_steer_kind kind,
                                                    const struct weft_steer *item, size_t count,
                                                    struct weft_steered *ret_answer,
                                                    struct weft_err *err);

/* Which executions; every field that is set must fit. */
struct weft_filter {
    const char *ns;
    const char *lane;
    const char *kind;
    const char *tenant;
    const char *key;
    enum weft_state state; /* WEFT_STATE_NONE: any */
    const struct weft_tag *tag;
    struct weft_id flow; /* members of that flow; all zeros: any */
    const char *error_class;
    const char *worker; /* the one that holds the lease, or held the last one */
    bool escalated;     /* suspended ones that were left to an operator */
    /* Moments: since is inclusive, until exclusive; 0: any. What has not ended has not finished. */
    weft_usec created_since_us, created_until_us;
    weft_usec finished_since_us, finished_until_us;
    /*
     * Lists only: a short form of the id, its first 4 or more hexadecimal digits, or these
     * digits, ".." and its last digits, up to 12. Dashes do not count.
     */
    const char *id;
};

enum { WEFT_CURSOR_TEXT = 64 };

struct weft_sweep {
    uint64_t matched;
    uint64_t changed;
    bool more; /* the bound of the call was reached: call again, with `next` as `after` */
    char next[WEFT_CURSOR_TEXT]; /* where the next call goes on; empty when there is no more */
};

struct weft_steer_all {
    enum weft_steer_kind kind; /* CANCEL or REPLAY */
    struct weft_filter filter; /* an empty one is refused */
    const char *reason;        /* cancel: stored; or NULL */
    uint32_t max;              /* 1..10,000; 0: 10,000 */
    const char *after;         /* NULL, or the `next` of the call before */
    bool force;                /* replay: also if upstreams stand in the way */
};

/*
 * Cancels or replays what fits, newest first, in chunks. A call that ends with `more` is followed
 * by one with its `next` as `after`, also when it changed nothing: what is submitted meanwhile is
 * not taken.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_steer_all(struct weft *weft,
                                                        const struct weft_steer_all *args,
                                                        struct weft_sweep *ret_sweep,
                                                        struct weft_err *err);

/* ---- Reading --------------------------------------------------------------------------------- */

/* Why an execution that failed got no further attempt. */
enum weft_not_retried {
    WEFT_NOT_RETRIED_NONE,      /* it has not failed */
    WEFT_NOT_RETRIED_ATTEMPTS,  /* max_attempts of its policy are used up */
    WEFT_NOT_RETRIED_CLASS,     /* its error class is in no_retry of its policy */
    WEFT_NOT_RETRIED_PERMANENT, /* its worker said so: permanent, or retryable false over HTTP */
    WEFT_NOT_RETRIED_LOST,      /* more than max_lost of its leases ran out */
    WEFT_NOT_RETRIED_INVALID,   /* submitted by SQL with values that are not valid */
    WEFT_NOT_RETRIED_COUNT
};

struct weft_execution {
    struct weft_id id;
    const char *ns;
    const char *lane;
    const char *kind;
    enum weft_state state;
    int32_t priority;
    int32_t attempt;
    int32_t epoch;
    int32_t lost;
    const char *tenant; /* or NULL, as every pointer below */
    const char *key;
    const struct weft_tag *tags;
    size_t tag_count;
    const char *const *capabilities;
    size_t capability_count;
    const char *worker;
    const char *reason;
    const char *by; /* who ended it, when that was not the worker */
    const char *error_class;
    const char *error_message;
    int32_t percent; /* -1: no progress was reported */
    const char *note;
    weft_usec created_us; /* 0, here and below: not set */
    weft_usec started_us;
    weft_usec claimed_us; /* when the lease began; of an ended one, its last lease */
    weft_usec finished_us;
    weft_usec run_at_us;
    weft_usec deadline_us;
    weft_usec lease_expires_us;
    struct weft_id flow; /* all zeros: none */
    const char *node;
    /*
     * Attempts since the last replay that failed, timed out, succeeded or run now, and how many
     * more may begin; 0 when it is over. A lost, released or revoked lease uses none up.
     */
    int32_t attempts_used;
    int32_t attempts_left;
    weft_usec next_attempt_us;         /* when it is tried again; 0: it waits for no such moment */
    enum weft_not_retried not_retried; /* of a failed one */
    const struct weft_policy *policy;  /* every default filled in; NULL: not known */
    int64_t result_size;               /* bytes; 0: it has no result */
    weft_usec suspended_us;            /* since when it is suspended; 0: it is not */
    weft_usec timeout_us;              /* when that times out; 0: it does not */
    bool escalated;                    /* its timeout passed: an operator must look */
    const char *gate;                  /* NULL: none */
    const char *const *budgets;        /* that its submission named */
    size_t budget_count;
    const char *error_detail; /* JSON; NULL: none. Of a list of many, some 8 MiB in all */
};

struct weft_page {
    const struct weft_execution *item; /* newest first */
    size_t count;
    const char *next;         /* cursor for the next page, NULL at the end */
    struct weft_arena *arena; /* owned */
    weft_usec looked_to_us;   /* a short page that has a next: all created later was looked at; 0 */
};

/* Answers each id; one that does not exist has state WEFT_STATE_NONE. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_describe(struct weft *weft, const struct weft_id *id,
                                                       size_t count, struct weft_page *ret_page,
                                                       struct weft_err *err);
/* One execution, as soon as it is over or wait_ms (up to a day) have passed. WEFT_NOT_FOUND. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_wait(struct weft *weft, const struct weft_id *id,
                                                   int64_t wait_ms, struct weft_page *ret_page,
                                                   struct weft_err *err);
/* limit: 1..1000, 0: 50. after: NULL, or the `next` of the page before. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_list(struct weft *weft,
                                                   const struct weft_filter *filter, uint32_t limit,
                                                   const char *after, struct weft_page *ret_page,
                                                   struct weft_err *err);
WEFT_EXPORT void weft_page_free(struct weft_page *page);

/* How a lease ended. */
struct weft_attempt {
    int32_t epoch;
    int32_t attempt;
    const char *worker;
    const char *ended; /* completed failed timed_out lost released delayed revoked cancelled ... */
    const char *error_class;
    const char *error_message;
    weft_usec started_us;
    weft_usec ended_us;
    weft_usec run_at_us;
    const char *error_detail; /* JSON; NULL: none. Of a page of many, some 8 MiB in all */
};

struct weft_attempts {
    const struct weft_attempt *item; /* oldest first */
    size_t count;
    struct weft_arena *arena; /* owned */
};
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_attempts(struct weft *weft, const struct weft_id *id,
                                                       struct weft_attempts *ret_attempts,
                                                       struct weft_err *err);
WEFT_EXPORT void weft_attempts_free(struct weft_attempts *attempts);

struct weft_bytes {
    const void *data;
    size_t size;
    const char *content_type;
    struct weft_arena *arena; /* owned */
};
/* WEFT_NOT_FOUND before success, or when no result was given. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_result(struct weft *weft, const struct weft_id *id,
                                                     struct weft_bytes *ret_bytes,
                                                     struct weft_err *err);
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_payload(struct weft *weft, const struct weft_id *id,
                                                      struct weft_bytes *ret_bytes,
                                                      struct weft_err *err);
WEFT_EXPORT void weft_bytes_free(struct weft_bytes *bytes);

struct weft_lane_count {
    const char *lane;
    uint64_t count[WEFT_STATE_COUNT]; /* of the living states */
    uint64_t succeeded_1h;            /* ended so within the last hour, to the minute */
    uint64_t failed_1h;               /* failed or expired, and not replayed since */
    uint64_t draining;  /* leases that others ended and whose workers have not let go yet */
    uint64_t escalated; /* suspended ones that were left to an operator */
};

struct weft_counts {
    const struct weft_lane_count *item; /* by lane name */
    size_t count;
    weft_usec as_of_us;       /* when they were counted, by the clock of the store */
    struct weft_arena *arena; /* owned */
    int64_t age_ms; /* how old they were when they were given: 0 without a server, which counts at
                       most once a second; -1: the server does not tell */
};
/* lane NULL: all lanes of the namespace. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_counts(struct weft *weft, const char *lane,
                                                     struct weft_counts *ret_counts,
                                                     struct weft_err *err);
WEFT_EXPORT void weft_counts_free(struct weft_counts *counts);

/* ---- The worker ------------------------------------------------------------------------------ */

struct weft_worker; /* opaque */
struct weft_job;    /* opaque; one execution in a handler's hands */

enum weft_verdict {
    WEFT_DONE,    /* complete, with the result set by weft_job_result() if any */
    WEFT_RETRY,   /* failed, may be tried again */
    WEFT_GIVE_UP, /* failed for good: permanent of struct weft_failure */
    WEFT_NOT_NOW, /* delayed by weft_job_delay()'s time, spending no attempt */
    WEFT_SUSPEND, /* suspended, as weft_job_suspend() said, spending no attempt */
};

typedef enum weft_verdict (*weft_handler)(struct weft_job *job, void *context);

struct weft_worker_options {
    const char *name;         /* NULL: HOST-PID-RANDOM */
    const char *const *lanes; /* none: "default" */
    size_t lane_count;
    const char *const *capabilities;
    size_t capability_count;
    uint32_t threads;      /* handlers at once; 0: 1 */
    int64_t lease_ms;      /* 0: the policy's */
    int64_t poll_ms;       /* how often an idle worker asks a store; 0: 200. A server wakes it */
    int64_t stop_grace_ms; /* how long weft_worker_stop() waits for handlers; 0: 10,000 */
};

/*
 * Only the kinds registered with weft_worker_on() are claimed. kind NULL stands for every kind that
 * has no handler of its own.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_worker_new(struct weft *weft,
                                                         const struct weft_worker_options *options,
                                                         struct weft_worker **ret_worker,
                                                         struct weft_err *err);
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_worker_on(struct weft_worker *worker,
                                                        const char *kind, weft_handler handler,
                                                        void *context, struct weft_err *err);
/* Starts the threads and returns. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_worker_start(struct weft_worker *worker,
                                                           struct weft_err *err);
/*
 * Claims nothing more, gives back what was claimed but not begun, and waits for the handlers, which
 * see weft_job_stopping() from here on. The leases of handlers that outlast the grace are released
 * and what they still report is not sent. Returns the number of these handlers.
 */
WEFT_EXPORT size_t weft_worker_stop(struct weft_worker *worker);
/* Stops it first, then waits for every handler to return, however long that takes. */
WEFT_EXPORT void weft_worker_free(struct weft_worker *worker);

struct weft_worker_stats {
    uint64_t claimed, completed, failed, put_back, fenced;
    uint64_t running;
    uint64_t store_errors;
    struct weft_err last_error; /* the last failure of the store, rc WEFT_OK when none */
    uint64_t suspended;
};
WEFT_EXPORT void weft_worker_stats(const struct weft_worker *worker,
                                   struct weft_worker_stats *ret_stats);

WEFT_EXPORT const struct weft_claimed *weft_job_claimed(const struct weft_job *job);
/* True when the handler should stop: cancelled, timed out, lease lost, or the worker stops. */
WEFT_EXPORT bool weft_job_stopping(const struct weft_job *job);
/* Why the lease is gone, WEFT_FENCE_NONE while it is held. */
WEFT_EXPORT enum weft_fence weft_job_fence(const struct weft_job *job);
/* Sent at once, or within a second of the last report of this worker. The note is copied. */
WEFT_EXPORT void weft_job_progress(struct weft_job *job, int32_t percent, const char *note);
/*
 * Reports what the handler has spent since it was called, by dimension: totals, 16 at most. Blocks
 * until the store has answered. WEFT_BUDGET_EXCEEDED: it would pass a hard limit and was not
 * recorded; err says what is left. The handler decides what to do then, for example to return
 * WEFT_NOT_NOW or WEFT_GIVE_UP. WEFT_FENCED: the lease is gone, as weft_job_stopping() says too.
 * Unlike the other calls it may come from another thread than the handler's, one at a time.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_job_usage(struct weft_job *job,
                                                        const struct weft_amount *totals,
                                                        size_t count, struct weft_err *err);
/* Copied. */
WEFT_EXPORT void weft_job_result(struct weft_job *job, const void *result, size_t size,
                                 const char *content_type);
WEFT_EXPORT void weft_job_error(struct weft_job *job, const char *error_class, const char *message);
WEFT_EXPORT void weft_job_delay(struct weft_job *job, int64_t delay_ms); /* for RETRY and NOT_NOW */
/*
 * For WEFT_SUSPEND: what to wait for. Copied; its id and epoch are not looked at. NULL: nothing.
 * When signals that came early satisfy the request, the lease stays: the handler is called again
 * with these signals. It must not suspend until it has what it has: an attempt that gets no new
 * signal by being called again fails with the class suspend_repeated.
 */
WEFT_EXPORT void weft_job_suspend(struct weft_job *job, const struct weft_suspend *request);
/*
 * Makes a pending waitpoint before the handler suspends, for a token to send away first; a pending
 * one of that name is given again. The request then names it by its id. expires_ms: 0: with its
 * execution. The texts live until the handler returns.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_job_waitpoint(struct weft_job *job, const char *name,
                                                            int64_t expires_ms,
                                                            struct weft_waitpoint *ret_waitpoint,
                                                            struct weft_err *err);
/*
 * The signals of the last suspension, as in struct weft_claimed, which also says why the execution
 * goes on. NULL: none.
 */
WEFT_EXPORT const struct weft_signal_info *weft_job_signals(const struct weft_job *job,
                                                            size_t *ret_count);

#ifdef __cplusplus
}
#endif

#endif
