/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_EXECUTOR_EXECUTOR_STATE_H
#define WEFT_NET_EXECUTOR_EXECUTOR_STATE_H

/*
 * The parts of an executor. Private to net/executor.
 *
 * Everything belongs to the thread of the executor but what stands under `lock`, and the part of an
 * outgoing call that belongs to the crowd while its transfer is under way. The lock stands alone.
 */

#include "base/arena.h"
#include "base/limits.h"
#include "base/map.h"
#include "core/http_call.h"
#include "core/sse_fold.h"
#include "engine/names/names.h"
#include "net/executor/executor.h"
#include "net/secrets.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

enum {
    WEFT_EXECUTOR_WOKEN_MAX = 256,   /* queues that wakes name between two cycles; more: all */
    WEFT_EXECUTOR_WORKERS_MAX = 256, /* likewise workers */
    WEFT_EXECUTOR_LEASE_MS = 60000,
    WEFT_CALL_TARGETS = 200,         /* endpoints with metrics of their own */
    WEFT_CALL_CODES = 24,            /* statuses and error classes of one of them */
    WEFT_EXECUTOR_BYTES = 256 << 20, /* in memory, before calls are given up */
};

/* ---- Targets: target.c ----------------------------------------------------------------------- */

/*
 * The header with the secret of an endpoint, held by its target and by the calls that send it. On
 * the thread of the executor alone.
 */
struct weft_target_auth {
    size_t holders;
    const struct weft_secret *secret, *header;
};

/* Calls that ended, by their status or their error class. */
struct weft_call_counts {
    struct {
        char code[24];
        uint64_t count;
    } item[WEFT_CALL_CODES];
    size_t count;
    uint64_t others;
};

/* What calls go to: an endpoint of a namespace, or URLs of their own. */
struct weft_target {
    char *key; /* owned: both names, each with its NUL */
    size_t key_size;
    const char *ns, *name;                      /* in key */
    const struct weft_known_endpoint *endpoint; /* counted; NULL: there is none of this name */
    bool own_url;                               /* it needs none */
    struct weft_target_auth *auth;              /* NULL: it has no secret, or that is not here */
    bool no_secret; /* this server lacks the secret that the endpoint names */
    struct weft_breaker breaker;
    size_t in_flight; /* from the claim to the end of the transfer */
    uint64_t answers[5], failed;
    struct weft_call_counts *counts; /* owned; NULL: it has no metrics of its own */
    weft_usec used_us;               /* boot time; a claim or an end */

    /* Of the look at the ready queues that is under way, or was the last one. */
    uint64_t look;
    const char *lane[WEFT_CLAIM_LANES_MAX];
    size_t lanes;
    uint64_t served;   /* the look that claimed for it last: the longest ago comes first */
    weft_usec rest_us; /* boot time; no claim before: the last one found nothing */
    size_t asked, got; /* of the claim */
};

struct weft_executor;

struct weft_target *weft_target_of(struct weft_executor *executor, const char *ns,
                                   const char *name);
/* NULL: it is not known. */
struct weft_target *weft_target_find(const struct weft_executor *executor, const char *ns,
                                     const char *name);
/* How many calls may begin. Looks at the endpoint as it is known now. */
size_t weft_target_room(struct weft_executor *executor, struct weft_target *target,
                        weft_usec now_us);
/* When a target without room for claims has some by itself; WEFT_NEVER. */
weft_usec weft_target_next(const struct weft_target *target, weft_usec now_us);
void weft_target_let_go(struct weft_target_auth *auth); /* NULL is fine */
/* Forgets targets that were not used for long and whose endpoint is gone, or that are many. */
void weft_targets_slim(struct weft_executor *executor, weft_usec now_us);
void weft_targets_done(struct weft_executor *executor);

/* ---- Figures: figures.c; all under the lock ---------------------------------------------------
 */

void weft_figures_begun(struct weft_executor *executor, struct weft_target *target);
void weft_figures_ended(struct weft_executor *executor, struct weft_target *target);
/* A call ended with this status or error class. */
void weft_figures_count(struct weft_executor *executor, struct weft_target *target,
                        const char *code);
void weft_figures_forget(struct weft_executor *executor, struct weft_target *target);

/* ---- Calls: outgoing.c, judge.c, answer.c -----------------------------------------------------
 */

/* What is to be written about a call that is over. */
enum weft_outgoing_end {
    WEFT_OUTGOING_COMPLETE,
    WEFT_OUTGOING_FAIL,
    WEFT_OUTGOING_RELEASE, /* the lease is given back, or let go of after another party ended it */
};

struct weft_outgoing {
    TAILQ_ENTRY(weft_outgoing) link;  /* in the list of running or of over ones */
    TAILQ_ENTRY(weft_outgoing) ended; /* in that of ended ones; under the lock */
    struct weft_executor *executor;
    struct weft_arena *arena; /* its own */
    struct weft_target *target;
    const struct weft_known_endpoint *endpoint; /* as it was when the call began; counted */
    struct weft_target_auth *auth;              /* likewise */
    struct weft_id id;
    int32_t epoch;
    weft_usec lease_us; /* boot time: when the lease was given, or renewed last */
    bool gone;          /* another party ended the lease: nothing is written but that it lets go */
    bool aborted;       /* by us */
    uint32_t ticket;    /* of the breaker */
    bool begun;         /* it has one */
    struct weft_transfer *transfer; /* under the lock; NULL: it has not begun, or has ended */

    /* The request. */
    struct weft_http_call call;
    const char *url;
    struct weft_crowd_header *header; /* count in headers */
    size_t headers;
    struct weft_buf filled; /* the body, when parts of it came from upstreams */
    size_t filled_counted;  /* bytes of executor->bytes */
    size_t response_max;    /* bytes of an answer; of a stream: of what it folds into */
    int64_t cut_ms;         /* the total timeout, if less was left than the endpoint allows; or 0 */
    const char *cut_by;     /* static: what ends then */

    /* The crowd's until the transfer has ended. */
    int status;
    const char *content_type, *request_id, *retry_after; /* in the arena; or NULL */
    struct weft_buf body;                                /* what came, unless it is folded */
    size_t counted;                                      /* bytes of executor->bytes */
    struct weft_sse_fold *fold;
    bool no_memory;
    struct weft_err story; /* of the fold; rc WEFT_OK: none */
    struct weft_crowd_end end;

    /* When it is over. */
    enum weft_outgoing_end outcome;
    struct weft_buf result; /* a result, or the detail of a failure */
    char error_class[24];
    char message[512];
    bool permanent;
    int64_t retry_after_ms;
    int64_t delay_ms;
};
TAILQ_HEAD(weft_outgoing_list, weft_outgoing);

struct weft_outgoing *weft_outgoing_new(struct weft_executor *executor, struct weft_target *target,
                                        const struct weft_claimed *item);
/*
 * Reads the payload of what was claimed; then, with its endpoint set, writes the request. After an
 * error it is over, with what is to be written about it.
 */
WEFT_MUST_CHECK enum weft_rc weft_outgoing_read(struct weft_outgoing *out,
                                                const struct weft_claimed *item);
WEFT_MUST_CHECK enum weft_rc weft_outgoing_write(struct weft_outgoing *out,
                                                 const struct weft_claimed *item);
void weft_outgoing_begin(struct weft_outgoing *out, const struct weft_claimed *item);
void weft_outgoing_abort(struct weft_outgoing *out); /* fine when it has ended already */
/* The transfer is over: decides what is to be written. */
void weft_outgoing_judge(struct weft_outgoing *out);
/* An end without an answer of a server. */
void weft_outgoing_refuse(struct weft_outgoing *out, const char *error_class, const char *message);
void weft_outgoing_release(struct weft_outgoing *out, int64_t delay_ms);
void weft_outgoing_free(struct weft_outgoing *out);

/*
 * The result of an answer, or its detail in a failure: its status, some of its headers and its
 * body. False: it does not fit the buffer. A result keeps all of the body: one that is a text of
 * many escapes becomes base64 where that makes it fit. A detail cuts it to body_max bytes.
 */
WEFT_MUST_CHECK bool weft_answer_write(const struct weft_outgoing *out,
                                       const struct weft_folded *folded, struct weft_buf *buf);
WEFT_MUST_CHECK bool weft_answer_write_cut(const struct weft_outgoing *out,
                                           const struct weft_folded *folded, size_t body_max,
                                           struct weft_buf *buf);

/* ---- The executor ---------------------------------------------------------------------------- */

/* A namespace in which the executor has claimed: its worker has a number there. */
struct weft_executor_spot {
    const char *ns; /* in executor->arena */
    int32_t worker;
    bool watch; /* others ended leases of it */
};

struct weft_executor {
    struct weft_engine *engine;
    struct weft_metrics *metrics;
    struct weft_executor_ops ops;
    struct weft_secrets *secrets;
    struct weft_arena *arena;
    char *worker;
    size_t in_flight_max;
    bool urls;
    struct weft_crowd *crowd;
    pthread_t thread;
    bool started;
    _Atomic size_t bytes; /* of answers, and of bodies that took parts of results, in memory */

    /* The thread's. */
    struct weft_map target;                  /* by namespace, NUL, name */
    struct weft_outgoing_list running, over; /* running: by the time of the last renewal */
    struct weft_map by_id;                   /* of running */
    size_t runs, overs;                      /* how many of each */
    struct weft_http_retry retry;            /* of calls with URLs of their own */
    size_t place;                            /* where the next look at ready queues begins */
    size_t looked_at;                        /* queues since the round began; 0: a new one */
    uint64_t looks;
    bool full;            /* the last claims left work behind */
    weft_usec next_us;    /* boot time: when a target that was left out may be claimed for */
    weft_usec retry_us;   /* boot time: nothing is written before, because the store failed; or 0 */
    weft_usec pause_us;   /* how long that is */
    weft_usec slimmed_us; /* boot time */
    bool done;            /* stopped, and nothing is left to do */
    bool cut_short;       /* calls were aborted by the stop */

    pthread_mutex_t lock; /* over all below, over `target` for readers of health, and stats */
    pthread_cond_t news;
    struct weft_outgoing_list ended; /* by the crowd */
    size_t ends;
    int32_t woken[WEFT_EXECUTOR_WOKEN_MAX];
    size_t wokens; /* above the maximum: any queue */
    struct weft_executor_spot *spot;
    size_t spots, spot_room;
    bool watches;                                 /* a spot has one */
    struct weft_target *shown[WEFT_CALL_TARGETS]; /* those with metrics of their own */
    size_t showns, in_flight;                     /* in_flight: calls of all targets */
    struct weft_call_counts others;               /* of targets without */
    bool poked, stopping;
    weft_usec stop_us; /* boot time: what is under way then is aborted */
};

/* Gives its worker a number in a namespace. False: that could not be written. */
bool weft_executor_meet(struct weft_executor *executor, const char *ns);

#endif
