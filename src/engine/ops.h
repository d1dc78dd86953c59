/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_OPS_H
#define WEFT_ENGINE_OPS_H

/*
 * The operations of weft over one store. Arguments and answers are those of weft.h; `ns` is the
 * namespace of items that name none. Every call takes an array, answers each item on its own, and
 * is durable when it returns. Everything is thread-safe. Results are put in the caller's arena;
 * names in them (lane, kind, worker...) live as long as the engine.
 */

#include "base/clock.h"
#include "core/token.h"
#include "store/store.h"
#include "weft/weft.h"

struct weft_engine; /* opaque */

/* Of an engine in a program, and by default of a server. */
#define WEFT_UNUSED_AFTER_US ((weft_usec)30 * 24 * 3600 * WEFT_SECOND)

struct weft_engine_config {
    const char *url;
    const struct weft_driver *driver; /* NULL: the one for the URL */
    uint32_t connections;             /* 0: 4 */
    uint32_t namespace_queues;        /* queues of one namespace, at most; 0: no limit */
    uint32_t namespace_workers;       /* worker names of one namespace, at most; 0: no limit */
    weft_usec unused_after_us;        /* names and queues unused for so long go; 0: never */
    /* Threads get connections strictly in the order in which they ask: see may_take() in tx.c. */
    bool in_turn;
    bool no_migrate;
    uint32_t migrate_wait_s; /* how long a migration tries to get its locks; 0: 10 min */
    bool must_exist;         /* WEFT_NOT_FOUND instead of creating a store that is not there */
    bool statements_fit; /* known from another engine of this process: prepare none at the start */
};

/* Where the ids of an array of items are. */
struct weft_id_column {
    const struct weft_id *first;
    size_t stride;
    size_t count;
};

/* On success the caller owns *ret_engine and ends it with weft_engine_close(). */
WEFT_MUST_CHECK enum weft_rc weft_engine_open(const struct weft_engine_config *config,
                                              struct weft_engine **ret_engine,
                                              struct weft_err *err);
void weft_engine_close(struct weft_engine *engine); /* NULL is fine */
struct weft_clock *weft_engine_clock(struct weft_engine *engine);
/* WEFT_SCHEMA: this binary is too old for the store, which was migrated. Known without asking. */
WEFT_MUST_CHECK enum weft_rc weft_engine_version(struct weft_engine *engine, struct weft_err *err);
/* How many transactions may write at once: 1 for SQLite. */
size_t weft_engine_writers(const struct weft_engine *engine);

WEFT_MUST_CHECK enum weft_rc weft_engine_submit(struct weft_engine *engine, const char *ns,
                                                const struct weft_spec *spec, size_t count,
                                                struct weft_submitted *ret_answer,
                                                struct weft_err *err);

/*
 * Submits flows whole. Each answer's `node`, when not NULL, has room for the nodes of its spec. A
 * flow of up to a few ten thousand rows is one transaction (small ones share it); a larger one is
 * written in parts and nobody sees it before it is whole.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_submit(struct weft_engine *engine, const char *ns,
                                                     const struct weft_flow_spec *spec,
                                                     size_t count,
                                                     struct weft_flow_submitted *ret_answer,
                                                     struct weft_err *err);

/* Adds nodes to a flow that is open; `ns` is required. ret_answer->node, when not NULL, has room
 * for the nodes. */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_grow(struct weft_engine *engine,
                                                   const struct weft_flow_growth *growth,
                                                   struct weft_flow_submitted *ret_answer,
                                                   struct weft_err *err);

/*
 * Adds edges between nodes of a flow that is open; `ns` is required. WEFT_CONFLICT: another
 * revision, a node that is not blocked any more, an edge that is there; WEFT_INVALID_VALUE: a
 * circle, or no such node.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_edges(struct weft_engine *engine,
                                                    const struct weft_flow_edging *edging,
                                                    int32_t *ret_revision, struct weft_err *err);

/*
 * Marks a flow as cancelled: from here on its joins begin nothing. Members are left to the
 * cancel_backlog scanner, or to whoever calls weft_engine_flow_drain(). Again on a cancelled flow:
 * what lives again is cancelled too. WEFT_NOT_LIVE when it has ended otherwise.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_cancel(struct weft_engine *engine,
                                                     const struct weft_flow_cancelling *args,
                                                     enum weft_flow_state *ret_state,
                                                     struct weft_err *err);
/* The members of a cancelled flow, a chunk at a time. It begins with zeros. */
struct weft_flow_drain {
    struct weft_id flow; /* the caller's to set, as is `wait` */
    bool wait;           /* for whoever has the flow: for callers that somebody waits for */
    uint64_t cancelled;  /* members, by these calls */
    /* Members that went since weft_engine_flow_cancel_now() because the flow is cancelled, whoever
     * did it: these calls, the cancel_backlog scanner, the cascade. Only with `wait`. */
    uint64_t cancelled_now;
    uint64_t before; /* what had gone before that */
    bool more;       /* there may be more of them */
    bool locked;     /* nothing was done: somebody else had the flow */
};
/* Cancels the members among the next chunk, unless somebody else has the flow. */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_drain(struct weft_engine *engine,
                                                    struct weft_flow_drain *drain,
                                                    struct weft_err *err);
/*
 * As weft_engine_flow_cancel(), and cancels the first chunk in the same transaction: what a small
 * flow has is cancelled at once. *ret_drain goes on with the rest, if there is more.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_cancel_now(struct weft_engine *engine,
                                                         const struct weft_flow_cancelling *args,
                                                         enum weft_flow_state *ret_state,
                                                         struct weft_flow_drain *ret_drain,
                                                         struct weft_err *err);

/*
 * One flow with a page of its nodes; the page is put in the arena (ret_page->arena stays NULL).
 * A page may be short while there is more, where its nodes come after very many.
 */
struct weft_flow_asking {
    const char *ns;
    struct weft_id flow;
    uint32_t limit;    /* nodes, 1..1000; 0: none */
    const char *after; /* cursor of the last page, NULL: the first */
    bool counts;       /* also how many members are in each state, which looks at every one */
};
WEFT_MUST_CHECK enum weft_rc
weft_engine_flow(struct weft_engine *engine, const struct weft_flow_asking *asking,
                 struct weft_arena *arena, struct weft_flow_page *ret_page, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_flows(struct weft_engine *engine,
                                               const struct weft_flow_listing *listing,
                                               struct weft_arena *arena,
                                               struct weft_flows *ret_flows, struct weft_err *err);

struct weft_claim_result {
    struct weft_claimed *item; /* in the arena */
    /*
     * For each item, in the arena: it is a member of a flow whose upstreams have not been read,
     * because it comes after very many; weft_engine_claim_rest() reads them. NULL: there is none.
     */
    bool *apart;
    size_t count;
    size_t bytes;   /* that the items carry, besides results of upstreams */
    bool contended; /* see weft_claims; also when the bytes of one call were used up */
};
/* What weft_engine_claim() would refuse, before anything is asked of the store. */
WEFT_MUST_CHECK enum weft_rc weft_engine_claim_check(const struct weft_claim *claim,
                                                     struct weft_err *err);
/* The arena is the result's alone: it is emptied first. */
WEFT_MUST_CHECK enum weft_rc weft_engine_claim(struct weft_engine *engine, const char *ns,
                                               const struct weft_claim *claim, size_t count,
                                               struct weft_arena *arena,
                                               struct weft_claim_result *ret_result,
                                               struct weft_err *err);

/*
 * Reads the upstreams that a call of weft_engine_together() has left. When that fails, the items
 * without them must not be given to a worker: to it they would seem to come after nothing.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_claim_rest(struct weft_engine *engine,
                                                    struct weft_claim_result *result,
                                                    struct weft_arena *arena, struct weft_err *err);

WEFT_MUST_CHECK enum weft_rc weft_engine_renew(struct weft_engine *engine,
                                               const struct weft_renew *item, size_t count,
                                               struct weft_lease_answer *ret_answer,
                                               struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_complete(struct weft_engine *engine,
                                                  const struct weft_complete *item, size_t count,
                                                  struct weft_lease_answer *ret_answer,
                                                  struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_fail(struct weft_engine *engine,
                                              const struct weft_failure *item, size_t count,
                                              struct weft_lease_answer *ret_answer,
                                              struct weft_err *err);

/*
 * Several of the calls above at once: in one transaction where each is a single statement, in one
 * each where that cannot be or has failed. Every call is answered as if it had been made alone;
 * rc and err are what it would have returned.
 */
struct weft_complete_call {
    const struct weft_complete *item;
    size_t count;
    struct weft_lease_answer *answer;
    enum weft_rc rc;
    struct weft_err err;
};
struct weft_claim_call {
    const char *ns;
    const struct weft_claim *item;
    size_t count;
    struct weft_arena *arena; /* the result's alone */
    struct weft_claim_result result;
    enum weft_rc rc;
    struct weft_err err;
};
struct weft_submit_call {
    const char *ns;
    const struct weft_spec *item;
    size_t count;
    struct weft_submitted *answer;
    enum weft_rc rc;
    struct weft_err err;
};
enum weft_together_kind { WEFT_TOGETHER_COMPLETE, WEFT_TOGETHER_CLAIM, WEFT_TOGETHER_SUBMIT };
struct weft_together {
    struct weft_complete_call *complete; /* NULL: none of that kind; so with the others */
    struct weft_claim_call *claim;
    struct weft_submit_call *submit;
    /* Called when that call is durable and answered, while others may be under way; or NULL. */
    void (*answered)(void *context, enum weft_together_kind kind);
    void *context;
};
void weft_engine_together(struct weft_engine *engine, const struct weft_together *calls);

enum weft_put_back_kind { WEFT_PUT_BACK_DELAY, WEFT_PUT_BACK_RELEASE };
WEFT_MUST_CHECK enum weft_rc weft_engine_put_back(struct weft_engine *engine,
                                                  enum weft_put_back_kind kind,
                                                  const struct weft_put_back *item, size_t count,
                                                  struct weft_lease_answer *ret_answer,
                                                  struct weft_err *err);

/* What became of a worker's name. */
struct weft_worker_met {
    int32_t number;
    bool admitted;       /* the name is new, and there was room for it */
    struct weft_err err; /* WEFT_LIMIT_EXCEEDED: its namespace has as many names as it may */
};
/*
 * What stands for workers' names in news and in the poll; those that are new are added. A server
 * asks this before it folds claims into one call, so that a name too many is the error of one claim
 * alone, and many new names cost one transaction.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_meet_workers(struct weft_engine *engine,
                                                      const struct weft_watch *watch, size_t count,
                                                      struct weft_worker_met *ret_met,
                                                      struct weft_err *err);
/* The same for one. */
WEFT_MUST_CHECK enum weft_rc weft_engine_worker_number(struct weft_engine *engine,
                                                       const struct weft_watch *watch,
                                                       int32_t *ret_worker, struct weft_err *err);
/*
 * The leases of a worker that others ended and that it was not told of yet, up to WEFT_BATCH_MAX;
 * from here on it is taken to know. Never waits: watch->wait_ms is the caller's. `ns` of the watch
 * is required. The answer is in the arena (ret_watched->arena stays NULL).
 */
WEFT_MUST_CHECK enum weft_rc
weft_engine_watch(struct weft_engine *engine, const struct weft_watch *watch,
                  struct weft_arena *arena, struct weft_watched *ret_watched, struct weft_err *err);

/* A call of weft_steer(), with the namespace of items that name none. */
struct weft_steering {
    enum weft_steer_kind kind;
    const char *ns;
    const struct weft_steer *item;
    size_t count;
    /* NULL, or room for each execution as the call left it, read before others can change it: of
     * items whose answer has no err. In the arena; state NONE: its flow was deleted. */
    struct weft_execution *seen;
    struct weft_arena *arena;
};
WEFT_MUST_CHECK enum weft_rc weft_engine_steer(struct weft_engine *engine,
                                               const struct weft_steering *steering,
                                               struct weft_steered *ret_answer,
                                               struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_steer_all(struct weft_engine *engine,
                                                   const struct weft_steer_all *args,
                                                   struct weft_sweep *ret_sweep,
                                                   struct weft_err *err);

struct weft_read_page {
    struct weft_execution *item; /* in the arena */
    size_t count;
    const char *next;       /* in the arena, or NULL */
    weft_usec looked_to_us; /* of a short page with a next one; otherwise 0 */
};
WEFT_MUST_CHECK enum weft_rc weft_engine_describe(struct weft_engine *engine, const char *ns,
                                                  const struct weft_id *id, size_t count,
                                                  struct weft_arena *arena,
                                                  struct weft_execution *ret_item,
                                                  struct weft_err *err);

/*
 * Which of these executions and flows, in whatever namespace, are over or not there: a hint for
 * those that wait for their end. In the arena.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_ended(struct weft_engine *engine, const struct weft_id *id,
                                               size_t count, struct weft_arena *arena,
                                               struct weft_id **ret_id, size_t *ret_count,
                                               struct weft_err *err);

/* Where a list walks. */
enum weft_list_source {
    WEFT_LIST_BY_STATE, /* wherever the state of the filter is found */
    WEFT_LIST_LIVING,
    WEFT_LIST_ENDED,
};

/* How long a list looks before it gives an empty page with a next one. */
#define WEFT_LOOK_US (100 * WEFT_MS)

struct weft_listing {
    struct weft_filter filter; /* ns is required here */
    enum weft_list_source source;
    uint32_t limit;
    const char *after;
    weft_usec look_us; /* how long to look while nothing fits; 0: WEFT_LOOK_US */
};
WEFT_MUST_CHECK enum weft_rc
weft_engine_list(struct weft_engine *engine, const struct weft_listing *listing,
                 struct weft_arena *arena, struct weft_read_page *ret_page, struct weft_err *err);
/* A page of the attempts of an execution, oldest first. */
struct weft_attempts_asking {
    const char *ns;
    struct weft_id id;
    uint32_t limit;    /* 1..1000, 0: 50 */
    const char *after; /* cursor of the last page, NULL: the first */
};
struct weft_attempts_page {
    struct weft_attempt *item; /* in the arena */
    size_t count;
    const char *next; /* in the arena, or NULL */
};
WEFT_MUST_CHECK enum weft_rc weft_engine_attempts_page(struct weft_engine *engine,
                                                       const struct weft_attempts_asking *asking,
                                                       struct weft_arena *arena,
                                                       struct weft_attempts_page *ret_page,
                                                       struct weft_err *err);
/* All of them. */
WEFT_MUST_CHECK enum weft_rc weft_engine_attempts(struct weft_engine *engine, const char *ns,
                                                  const struct weft_id *id,
                                                  struct weft_arena *arena,
                                                  struct weft_attempts *ret_attempts,
                                                  struct weft_err *err);

enum weft_bytes_kind { WEFT_BYTES_RESULT, WEFT_BYTES_PAYLOAD };
/* Whose bytes. */
struct weft_bytes_of {
    enum weft_bytes_kind kind;
    const char *ns;
    struct weft_id id;
};
WEFT_MUST_CHECK enum weft_rc weft_engine_bytes(struct weft_engine *engine,
                                               const struct weft_bytes_of *of,
                                               struct weft_arena *arena,
                                               struct weft_bytes *ret_bytes, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_counts(struct weft_engine *engine, const char *ns,
                                                const char *lane, struct weft_arena *arena,
                                                struct weft_counts *ret_counts,
                                                struct weft_err *err);

/* The counts of every namespace, in the order of namespaces and lanes. */
struct weft_counted_lane {
    const char *ns;
    struct weft_lane_count lane;
};
struct weft_all_counts {
    struct weft_counted_lane *item; /* in the arena */
    size_t count;
    weft_usec as_of_us;
};
WEFT_MUST_CHECK enum weft_rc weft_engine_all_counts(struct weft_engine *engine,
                                                    struct weft_arena *arena,
                                                    struct weft_all_counts *ret_counts,
                                                    struct weft_err *err);

WEFT_MUST_CHECK enum weft_rc weft_engine_lane_put(struct weft_engine *engine, const char *ns,
                                                  const struct weft_lane *lane,
                                                  struct weft_err *err);
/*
 * The lanes in use: they have settings, executions that are not over, or executions that ended in
 * the last hour (as counts has them).
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_lanes(struct weft_engine *engine, const char *ns,
                                               struct weft_arena *arena,
                                               struct weft_lanes *ret_lanes, struct weft_err *err);
/*
 * The same where it is known which lanes are in use, by the counts of a moment ago: only settings
 * are read. `used` are names in their order.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_lanes_of(struct weft_engine *engine, const char *ns,
                                                  const char *const *used, size_t count,
                                                  struct weft_arena *arena,
                                                  struct weft_lanes *ret_lanes,
                                                  struct weft_err *err);
/* WEFT_NOT_FOUND: it is not in use. */
WEFT_MUST_CHECK enum weft_rc weft_engine_lane(struct weft_engine *engine, const char *ns,
                                              const char *name, struct weft_arena *arena,
                                              struct weft_lane *ret_lane, struct weft_err *err);
/* Removes its settings and tells what they were. WEFT_NOT_FOUND: it has none. */
WEFT_MUST_CHECK enum weft_rc weft_engine_lane_remove(struct weft_engine *engine, const char *ns,
                                                     const char *name, struct weft_arena *arena,
                                                     struct weft_lane *ret_lane,
                                                     struct weft_err *err);

/* What every scanner is; one table in engine/scan/pass.c. */
struct weft_scanner_info {
    const char *name;
    weft_usec interval_us; /* by default; the longest time between two looks */
    uint32_t batch;        /* by default; rows of one transaction */
    uint32_t batch_max;
    bool timed;        /* knows when it has something to do next, and the poll tells it too */
    bool partitioned;  /* can be limited to a range of partitions */
    bool takes_leases; /* waits the grace after a start or an outage */
    const char
        *counter[WEFT_COUNTERS_MAX + 1]; /* names of what its report counts; NULL ends them */
};
const struct weft_scanner_info *weft_scanner_info(enum weft_scanner scanner);
/* The scanner of that name, WEFT_SCANNER_COUNT: there is none. */
enum weft_scanner weft_scanner_find(const char *name);

/* How one pass is to run; all zero is the default. */
struct weft_pass_config {
    uint32_t batch;                          /* 0: the scanner's own */
    const char *ns;                          /* only work of this namespace; NULL: of all */
    uint8_t partition_first, partition_last; /* only ids of these partitions; 0 and 0: all */
    /* Leases that ran out before this moment were lost while nobody could renew: not counted. */
    weft_usec forgive_us;
    weft_usec most_us; /* retention: says that there is more after so long; 0: after its own time */
};
/* One bounded pass; see engine/scan/. config NULL: the default. */
WEFT_MUST_CHECK enum weft_rc weft_engine_pass(struct weft_engine *engine, enum weft_scanner scanner,
                                              const struct weft_pass_config *config,
                                              struct weft_pass_report *ret_report,
                                              struct weft_err *err);

/* ---- What a server needs --------------------------------------------------------------------- */

/* So many executions of a queue became claimable, or may be: a slot was freed, a lane was opened.
 */
struct weft_woken {
    int32_t queue;
    uint32_t count;
};

/*
 * What a commit of this process changed for others. Told after the commit by the thread that made
 * it, with no lock held; only hints, nothing is lost when they are.
 */
struct weft_news {
    const struct weft_woken *woken;
    size_t count;
    weft_usec due_us; /* something new becomes due then; WEFT_NEVER: nothing */
};
typedef void weft_news_fn(void *context, const struct weft_news *news);
/* To be set before the first operation; NULL: nobody listens. */
void weft_engine_on_news(struct weft_engine *engine, weft_news_fn *fn, void *context);
/*
 * Workers (by the number of weft_engine_worker_number()) that have to be told of leases which this
 * process ended, told like news; NULL: no listener. Each number once.
 */
typedef void weft_leases_fn(void *context, const int32_t *worker, size_t count);
void weft_engine_on_leases(struct weft_engine *engine, weft_leases_fn *fn, void *context);
/*
 * Flows that have completions, told like news: the listener sees to it that weft_engine_cascade()
 * runs soon, in a thread that nobody waits for. Without a listener the thread that committed runs
 * it. A call that is lost is made up for by the dependency scanner.
 */
typedef void weft_flows_fn(void *context, const struct weft_id *flow, size_t count);
void weft_engine_on_flows(struct weft_engine *engine, weft_flows_fn *fn, void *context);
/*
 * Calls that need the row of a flow (cancel, growth, edges, replay) wait for it only briefly, and
 * say WEFT_CAUSE_FLOW_LOCKED. Before the first call.
 */
void weft_engine_hold_briefly(struct weft_engine *engine);
/*
 * Called in the thread of a call that is about to do long work outside its transaction: a claim
 * that walks over a lane with many queues, a submission whose many new names are added in
 * transactions of their own. NULL: no listener. Before the first call.
 */
typedef void weft_side_work_fn(void *context);
void weft_engine_on_side_work(struct weft_engine *engine, weft_side_work_fn *fn, void *context);
/* Flows that ended by a commit of this process, told like news; NULL: nobody listens. */
void weft_engine_on_flows_ended(struct weft_engine *engine, weft_flows_fn *fn, void *context);
/*
 * Runs the cascade of flows, sibling cancels included, until they have no completions left, or
 * until somebody else, who has their lock, will see to it.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_cascade(struct weft_engine *engine,
                                                 const struct weft_id *flow, size_t count,
                                                 struct weft_err *err);
/*
 * The same for some hops, each a transaction. Flows that are not through by then are told to the
 * listener once more: those that were told meanwhile need not wait for the end of a large one.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_cascade_round(struct weft_engine *engine,
                                                       const struct weft_id *flow, size_t count,
                                                       struct weft_err *err);
/*
 * News from another replica: puts the queues on the list of claimable ones (loading the names of
 * those not met before), without telling this process's own listener.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_heard(struct weft_engine *engine,
                                               const struct weft_woken *woken, size_t count,
                                               struct weft_err *err);
/* True when the claim (its namespace given) may be served from the queue. No query is made. */
bool weft_engine_fits(struct weft_engine *engine, const struct weft_claim *claim, int32_t queue);
/* The namespace of a queue; NULL when this process has not met it. No query is made. */
const char *weft_engine_namespace_of(struct weft_engine *engine, int32_t queue);

/*
 * The slow poll: all a replica must know of what others did, in one statement (PostgreSQL: without
 * a transaction around it). Refreshes the list of claimable queues and the lane settings.
 */
#define WEFT_UNTOLD INT64_MIN
struct weft_poll {
    struct weft_woken *queue; /* claimable ones, count 1 each; in the arena */
    size_t count;
    bool inbox; /* the inbox holds something */
    /* When each pass has something to do; WEFT_NEVER, or WEFT_UNTOLD: this poll did not look. */
    weft_usec due_us[WEFT_SCANNER_COUNT];
    int64_t tokens;  /* changes when a token is added, rotated or revoked */
    int32_t *worker; /* workers that have to be told of leases; in the arena */
    size_t workers;
};
WEFT_MUST_CHECK enum weft_rc weft_engine_poll(struct weft_engine *engine, struct weft_arena *arena,
                                              struct weft_poll *ret_poll, struct weft_err *err);

/*
 * The namespace of each execution, NULL for one that does not exist: what a token that is bound to
 * a namespace is held against. An execution never changes its namespace, so asking first is safe.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_namespaces(struct weft_engine *engine,
                                                    const struct weft_id_column *ids,
                                                    const char **ret_ns, struct weft_err *err);

/* Workers: what replicas heard of them, written in batches, off the path of claims. */
struct weft_worker_seen {
    const char *ns;
    const char *name;
    const char *const *lanes;
    size_t lane_count;
    const char *const *capabilities;
    size_t capability_count;
    weft_usec seen_us;
};
WEFT_MUST_CHECK enum weft_rc weft_engine_workers_put(struct weft_engine *engine,
                                                     const struct weft_worker_seen *seen,
                                                     size_t count, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_workers(struct weft_engine *engine, const char *ns,
                                                 struct weft_arena *arena,
                                                 struct weft_workers *ret_workers,
                                                 struct weft_err *err);
/* Releases every lease of a worker at once and takes it off the list. */
WEFT_MUST_CHECK enum weft_rc weft_engine_goodbye(struct weft_engine *engine, const char *ns,
                                                 const char *worker, uint64_t *ret_released,
                                                 struct weft_err *err);

/* Replicas: a row each, written with every heartbeat. */
struct weft_replica_row {
    struct weft_id id;
    const char *host;
    int64_t pid;
    const char *version;
    const char *url;
    weft_usec started_us;
    weft_usec up_since_us; /* it has served without a gap since then: see the grace in net/ */
    weft_usec seen_us;     /* set by weft_engine_replica_put() to the store's time */
    const char *settings;  /* a JSON object */
    const char *scanners;  /* a JSON array of what GET /v1/scanners shows of this replica */
};
struct weft_replica_rows {
    struct weft_replica_row *item; /* by id descending; in the arena */
    size_t count;
};
/* The heartbeat: adds the row or replaces it. */
WEFT_MUST_CHECK enum weft_rc weft_engine_replica_put(struct weft_engine *engine,
                                                     const struct weft_replica_row *row,
                                                     struct weft_err *err);
/* A replica that stops in order leaves the list. */
WEFT_MUST_CHECK enum weft_rc weft_engine_replica_remove(struct weft_engine *engine,
                                                        const struct weft_id *id,
                                                        struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_replicas(struct weft_engine *engine,
                                                  struct weft_arena *arena,
                                                  struct weft_replica_rows *ret_rows,
                                                  struct weft_err *err);
#define WEFT_HEARTBEAT_US (5 * WEFT_SECOND)       /* how often a replica writes its row */
#define WEFT_DEAD_US      (3 * WEFT_HEARTBEAT_US) /* older than this: dead */
/* The row as it is shown; now_us is the store's. Texts are those of the row. */
struct weft_replica weft_replica_shown(const struct weft_replica_row *row, weft_usec now_us);
/* What the living ones wrote of their scanners, in the order of the rows; in the arena. */
struct weft_scanners weft_replica_scanners(const struct weft_replica_rows *rows, weft_usec now_us,
                                           struct weft_arena *arena);
/*
 * The scanners that those on the list do not run for every namespace and every partition, as
 * "name, name" in the arena; NULL: all are covered.
 */
const char *weft_scanners_uncovered(const struct weft_scanners *scanners, struct weft_arena *arena);

/* Tokens: see core/token.h for what they look like. A row is a secret. */
struct weft_token_row {
    int32_t id;
    const char *name;
    const char *ns;   /* NULL: any */
    uint32_t scopes;  /* enum weft_scope, or-ed */
    uint8_t hash[32]; /* SHA-256 of the secret */
    weft_usec created_us;
    weft_usec expires_us;   /* 0: never */
    int32_t token;          /* the token that it is a secret of: its own id, but for rotations */
    weft_usec last_used_us; /* 0: never */
};
struct weft_token_rows {
    struct weft_token_row *item; /* by id; in the arena */
    size_t count;
};
/* Sets token->id, token and created_us. */
WEFT_MUST_CHECK enum weft_rc weft_engine_token_add(struct weft_engine *engine,
                                                   struct weft_token_row *token,
                                                   struct weft_err *err);
/* All secrets of all tokens. */
WEFT_MUST_CHECK enum weft_rc weft_engine_tokens(struct weft_engine *engine,
                                                struct weft_arena *arena,
                                                struct weft_token_rows *ret_tokens,
                                                struct weft_err *err);

/* On whose behalf tokens are managed. NULL in the calls below: whoever can open the store. */
struct weft_token_caller {
    struct weft_rights rights; /* of the token that the request came with */
    int32_t token;             /* its id; 0: it came without one */
};
/* Tokens outside the rights of the caller are WEFT_FORBIDDEN; lists leave them out. An id may be
 * that of any secret of the token. */
WEFT_MUST_CHECK enum weft_rc
weft_engine_token_create(struct weft_engine *engine, const struct weft_token_caller *caller,
                         const struct weft_token_spec *spec, struct weft_arena *arena,
                         struct weft_token *ret_token, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc
weft_engine_token_rotate(struct weft_engine *engine, const struct weft_token_caller *caller,
                         const struct weft_token_rotation *rotation, struct weft_arena *arena,
                         struct weft_token *ret_token, struct weft_err *err);
/* *ret_token is what it was. */
WEFT_MUST_CHECK enum weft_rc weft_engine_token_revoke(struct weft_engine *engine,
                                                      const struct weft_token_caller *caller,
                                                      int32_t id, struct weft_arena *arena,
                                                      struct weft_token *ret_token,
                                                      struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_token_list(struct weft_engine *engine,
                                                    const struct weft_token_caller *caller,
                                                    struct weft_arena *arena,
                                                    struct weft_tokens *ret_tokens,
                                                    struct weft_err *err);
/* Secrets that were used, by their ids: written in batches, off the path of requests. */
struct weft_token_use {
    int32_t id;
    weft_usec at_us;
};
WEFT_MUST_CHECK enum weft_rc weft_engine_tokens_used(struct weft_engine *engine,
                                                     const struct weft_token_use *use, size_t count,
                                                     struct weft_err *err);

/* Writes what this process counted of ended executions; called about once a second. */
WEFT_MUST_CHECK enum weft_rc weft_engine_tally(struct weft_engine *engine, struct weft_err *err);

/*
 * Closes connections that nobody needs: those that grew by carrying much and have not done so since
 * `large_us`, because closing is the only way to free their memory, and those that a burst opened
 * and nobody has used since `unused_us`. Both are moments of boot time. The next call that needs
 * one opens it.
 */
void weft_engine_slim(struct weft_engine *engine, weft_usec large_us, weft_usec unused_us);
/*
 * The longest time without a transaction that the store carried out, since this was last asked: it
 * was away, or this process stood still. One that is slow among others that are not makes no gap.
 */
weft_usec weft_engine_gap(struct weft_engine *engine);
/*
 * Whether the store carried something out within the last so many microseconds, and no connection
 * to it was lost since. From memory: it makes no query and waits for none.
 */
bool weft_engine_answers(struct weft_engine *engine, weft_usec within_us);

/* What `weft doctor` looks at. */
enum weft_finding_level { WEFT_FINDING_OK, WEFT_FINDING_WARN, WEFT_FINDING_BAD };
struct weft_finding {
    enum weft_finding_level level;
    const char *what;   /* "old_transaction" */
    const char *detail; /* in the arena; a sentence with the figures */
    const char *advice; /* in the arena, or NULL: what to do */
};
struct weft_findings {
    struct weft_finding *item; /* in the arena */
    size_t count;
};
WEFT_MUST_CHECK enum weft_rc weft_engine_examine(struct weft_engine *engine,
                                                 struct weft_arena *arena,
                                                 struct weft_findings *ret_findings,
                                                 struct weft_err *err);

/*
 * Checks what must always be true of the whole store. WEFT_CORRUPT tells the first problem.
 * Reads everything: for tests and for `weft doctor`.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_check(struct weft_engine *engine, struct weft_err *err);

#endif
