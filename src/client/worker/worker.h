/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CLIENT_WORKER_WORKER_H
#define WEFT_CLIENT_WORKER_WORKER_H

/*
 * The inside of a worker, shared by worker.c (its life), job.c (handlers), keeper.c, words.c (how
 * jobs ended) and the claimer.
 *
 * Threads. The keeper decides everything and does all that is quick: it sends words, renews leases,
 * runs the passes, and claims. Over a server a claim waits there until there is work, so a second
 * thread, the claimer, makes it: the keeper says how many jobs there is room for (`asked`), the
 * claimer asks for so many, queues the jobs for the handlers and leaves the grant in `granted`,
 * where the keeper takes it over. So heartbeats and results never wait behind a claim. A third, the
 * watcher, waits at the server for leases that others end (watcher.c). Over an engine there is
 * neither a claimer nor a watcher; over a server there are no passes: the server runs them.
 * Handlers run jobs.
 *
 * A job is made by the thread that claimed it, waits in `queue`, is run by a handler, waits in
 * `finished` and is ended by the keeper. One whose suspend was satisfied at once goes back to
 * `queue` instead. The jobs of one claim are one allocation (a grant), which
 * the keeper frees with the last of them.
 *
 * Locks: worker->lock guards everything that is marked as shared. It is a leaf: nothing else is
 * taken and no store is called under it. Fields marked as the keeper's need no lock, because other
 * threads touch them only before the keeper begins and after it has ended.
 */

#include "client/client.h"

#include "base/arena.h"
#include "base/base.h"
#include "core/pace.h"
#include "core/result.h"

#include <stdatomic.h>

enum {
    WEFT_WORKER_THREADS_MAX = 1000,
    WEFT_AHEAD_MAX = 500, /* jobs taken beyond the number of handlers, at most */
    WEFT_EARLY_MAX = 64,  /* ended leases that are remembered for a claim under way */
};

/* How a handler ended a job, or how the worker ends jobs that it gives back by itself. */
enum weft_word {
    WEFT_WORD_COMPLETE,
    WEFT_WORD_FAIL,
    WEFT_WORD_DELAY,
    WEFT_WORD_RELEASE,
    WEFT_WORD_SUSPEND,
    WEFT_WORD_COUNT,
};

enum weft_stage {
    WEFT_STAGE_QUEUED,
    WEFT_STAGE_RUNNING,
    WEFT_STAGE_FINISHED, /* its word is not accepted yet */
    WEFT_STAGE_GONE,     /* nothing is held any more */
};

struct weft_kind_handler {
    const char *kind; /* in the worker's arena; NULL: any that has no handler of its own */
    weft_handler handler;
    void *context;
};

struct weft_job {
    struct weft_worker *worker;
    struct weft_grant *grant;
    const struct weft_claimed *claimed; /* in the grant's arena */
    const struct weft_kind_handler *on;
    struct weft_job *next; /* in queue, in finished, or in the keeper's unsent */
    weft_usec queued_us;   /* monotonic; when it was put into the queue last */

    /* Shared. */
    enum weft_stage stage;
    enum weft_fence fence; /* why the lease is gone */
    bool abandoned;        /* outlasted the grace: its word is not sent */
    int32_t percent;
    char *note;             /* owned */
    uint32_t progress;      /* grows with each report; 0: none was made */
    uint32_t progress_sent; /* the last report that the store has */

    /* The handler's while it runs, then the keeper's. */
    enum weft_word word;
    bool permanent;
    bool delay_given;
    int64_t delay_ms;
    void *result; /* owned */
    size_t result_size;
    char *content_type;                 /* owned */
    char *error_class;                  /* owned */
    char *error_message;                /* owned */
    const char *unusable;               /* static; why the result cannot be stored, or NULL */
    struct weft_arena *arena;           /* owned; what follows, signals, waitpoints made; or NULL */
    const struct weft_suspend *suspend; /* NULL: the handler asked for none */
    const struct weft_err *refused;     /* why this request cannot be sent, or NULL */
    struct weft_spent *spent;           /* owned; what was reported under this lease */
    size_t spent_count;

    /* The keeper's: suspends that were satisfied at once under this lease. */
    uint32_t satisfied;
    size_t signals_seen; /* in the last answer */
};

/* One claim's worth of jobs. */
struct weft_grant {
    struct weft_grant *next;
    struct weft_arena *arena; /* owned; holds the claimed items */
    struct weft_job *job;     /* owned; array of count */
    size_t count;
    size_t left;          /* jobs that are not gone */
    weft_usec lease_us;   /* the shortest of its leases */
    weft_usec arrived_us; /* monotonic */
};

/* How the last claim of the claimer went. */
struct weft_claim_summary {
    enum weft_rc rc;
    struct weft_err err;
    uint32_t wanted;
    size_t count;
    bool contended;
    weft_usec opens_in_us; /* as in struct weft_claim_result */
    bool waited;           /* for work, at the server: the next one may follow at once */
};

/* A lease that was ended before the answer of its claim was taken in. */
struct weft_early {
    struct weft_ended_lease lease;
    weft_usec at_us; /* monotonic; 0: there is none */
};

/* When to do something next; failures push it away. Passes have a pace of their own. */
struct weft_next {
    weft_usec at_us; /* monotonic */
    uint32_t failures;
};

struct weft_job_list {
    struct weft_job *first;
    struct weft_job **last; /* where the next one is linked */
    size_t count;
};

struct weft_worker {
    struct weft *weft;                  /* borrowed */
    struct weft_worker *next;           /* in the handle's list; under the handle's lock */
    struct weft_arena *arena;           /* options and kinds */
    struct weft_worker_options options; /* resolved: no zeros */
    struct weft_kind_handler *on;       /* by kind; fixed once it is started */
    size_t on_count;
    struct weft_kind_handler on_rest; /* handler NULL: no other kinds are claimed */
    const char **kinds;               /* the same kinds, for the claim */
    struct weft_via via;              /* of all calls but claims */
    bool remote;                      /* there is a claimer, and there are no passes */
    bool own_name;                    /* made here, so no other process has it */
    pthread_t keeper, claimer, watcher;
    pthread_t *handler; /* in the arena; array of handlers */
    size_t handlers;

    /* Shared. */
    pthread_mutex_t lock;
    pthread_cond_t work; /* for handlers: the queue is not empty, or the worker stops */
    pthread_cond_t news; /* for the keeper: poked */
    pthread_cond_t ask;  /* for the claimer: asked, or the worker stops */
    pthread_cond_t held; /* for the watcher: there are leases to watch, or the worker stops */
    pthread_cond_t done; /* for weft_worker_stop(): the keeper has ended */
    bool started, stopping, ended;
    bool poked;           /* the keeper should check its lists now */
    bool claim_now;       /* woken: there is work */
    bool progressed;      /* a handler has reported progress */
    weft_usec delayed_us; /* the store's time; the earliest delayed execution heard of */
    weft_usec stop_us;    /* monotonic; when the grace ends */
    size_t stragglers;
    size_t running;
    struct weft_job_list queue, finished;
    struct weft_worker_stats stats;
    uint32_t asked;      /* jobs the claimer should ask for; 0: none */
    bool claiming;       /* it was asked, and the keeper has not taken the answer */
    bool claim_answered; /* the answer is there */
    struct weft_claim_summary last_claim; /* it */
    struct weft_grant *granted;           /* new ones, for the keeper */
    _Atomic bool claim_stop, all_stop;    /* end the calls that are under way: claims, all */
    bool watch_now;                       /* a call in this process ended a lease */
    struct weft_ended_lease *lost;        /* owned; found by the watcher, for the keeper */
    size_t lost_count, lost_room;
    _Atomic bool watch_stop; /* ends the call of the watcher */

    /* The keeper's. */
    struct weft_grant *grant;
    struct weft_job_list unsent;
    struct weft_next claim, send, beat, report;
    struct weft_next watch;                  /* over an engine */
    bool to_report;                          /* there is progress that the store may not have */
    struct weft_early early[WEFT_EARLY_MAX]; /* the next one takes the place of the oldest */
    size_t early_next;
    struct weft_pace pass[WEFT_SCANNER_COUNT]; /* monotonic */
    weft_usec claim_began_us;                  /* when the claimer was asked last; monotonic */
    weft_usec outage_us;  /* since when the store has not answered; 0: it answers */
    weft_usec forgive_us; /* the store's time; leases that ended before are not counted lost */
    weft_usec rate_since_us;
    size_t rate_count; /* jobs finished since */
    double rate;       /* jobs finished in a second, lately */
};

/* ---- worker.c -------------------------------------------------------------------------------- */

void weft_job_list_init(struct weft_job_list *list);
void weft_job_list_add(struct weft_job_list *list, struct weft_job *job);
/* Moves all of `from` to the end of `to`. */
void weft_job_list_move(struct weft_job_list *to, struct weft_job_list *from);
void weft_grant_free(struct weft_grant *grant);
/* Adds to the numbers that weft_worker_stats() shows. */
void weft_worker_count(struct weft_worker *worker, uint64_t *number, uint64_t more);

/* ---- job.c ----------------------------------------------------------------------------------- */

void *weft_handler_main(void *context); /* the worker */
/* Frees the texts and bytes that the handler set. */
void weft_job_clear(struct weft_job *job);
/* Frees the words of the handler's last run and forgets them: it can be called again. */
void weft_job_forget_words(struct weft_job *job);

/* ---- suspend.c ------------------------------------------------------------------------------- */

/*
 * A suspend of the job was satisfied at once: makes it ready for another call of its handler, with
 * these signals. False: it has them already, and fails.
 */
WEFT_MUST_CHECK bool weft_job_go_on(struct weft_job *job, const struct weft_suspend_result *answer);

/* ---- usage.c --------------------------------------------------------------------------------- */

/* The handler is called again under the same lease, and counts from zero. */
void weft_job_usage_again(struct weft_job *job);
void weft_job_usage_forget(struct weft_job *job);

/* ---- keeper.c -------------------------------------------------------------------------------- */

void *weft_keeper_main(void *context); /* the worker */
/* Remembers how a call to the store went; a failed one is tried later. True: it worked. */
bool weft_keeper_note_result(struct weft_worker *worker, struct weft_next *next, enum weft_rc rc,
                             const struct weft_err *err);

/* An execution becomes ready at this moment of the store's clock. */
void weft_keeper_expect_due(struct weft_worker *worker, weft_usec due_us);

/* ---- words.c: how jobs ended ----------------------------------------------------------------- */

/* Sends the words of finished jobs; words that were not accepted stay in unsent. */
void weft_words_send(struct weft_worker *worker);
/* Gives back the leases of handlers that outlast the grace; their words are not sent. */
void weft_words_abandon(struct weft_worker *worker);

/* ---- worker_claim.c: jobs that are held ------------------------------------------------------ */

/* How many jobs may be claimed now; none while a claim is under way. */
uint32_t weft_hold_room(struct weft_worker *worker);
/* Claims, or asks the claimer to. */
void weft_hold_claim(struct weft_worker *worker);
/* The keeper takes over the grants of the claimer; it renews and frees them. The lock is held. */
void weft_hold_adopt(struct weft_worker *worker);
/* Takes in how the last claim of the claimer went, if it is over. */
void weft_hold_take_claim(struct weft_worker *worker);
void *weft_claimer_main(void *context); /* the worker */
/* Renews every lease in one call; progress rides along. */
void weft_hold_renew(struct weft_worker *worker);
/* The same for leases whose handlers have reported progress since; at most once a second. */
void weft_hold_report(struct weft_worker *worker);
/* Moves the jobs of the queue for which `goes` is true to ret_gone. The lock is held. */
void weft_hold_take_out(struct weft_worker *worker,
                        bool (*goes)(const struct weft_job *job, weft_usec before_us),
                        weft_usec before_us, struct weft_job_list *ret_gone);
/* Puts a job whose lease stays before the handlers again; while the worker stops, gives it back. */
void weft_hold_requeue(struct weft_worker *worker, struct weft_job *job);
/* Turns jobs that were queued before this moment into words of release. */
void weft_hold_give_back(struct weft_worker *worker, weft_usec before_us);
/* The job holds nothing any more; frees its grant with the last of its jobs. */
void weft_hold_drop(struct weft_worker *worker, struct weft_job *job);

/* ---- watcher.c: leases that others ended ----------------------------------------------------- */

void *weft_watcher_main(void *context); /* the worker; over a server */
/* Asks an engine for ended leases when that is due, and takes in what the watcher found. */
void weft_watch_look(struct weft_worker *worker);
/*
 * Takes jobs whose leases are gone out of the queue: where the lease was ended by others the job is
 * given back, so that the store knows that no handler runs it; other jobs are dropped.
 */
void weft_watch_sift(struct weft_worker *worker);
/* When weft_watch_look() is due; WEFT_NEVER over a server, or while nothing is held. */
weft_usec weft_watch_due(const struct weft_worker *worker);

#endif
