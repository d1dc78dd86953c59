/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_ENGINE_H
#define WEFT_ENGINE_ENGINE_H

/*
 * Shared by the files of the engine; nothing outside this folder includes it.
 *
 * Threads: any number call in. Locks: pool.lock, ord_lock, sample_lock, ready.lock, names.lock,
 * census.lock, floors.lock,
 * tally.lock, unused.lock. No query is made under any of them, and none is taken under another,
 * except names.lock under ready.lock.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/map.h"
#include "core/capset.h"
#include "core/policy.h"
#include "core/spec.h"
#include "core/state.h"
#include "core/stored.h"
#include "engine/ops.h"
#include "engine/ready/rings.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- Connections ----------------------------------------------------------------------------- */

struct weft_slot {
    struct weft_conn *conn; /* owned; NULL: not open */
    weft_usec used_us;      /* boot time; when it was last given back */
    uint64_t history;       /* of the pool, when the connection was opened */
    bool busy;
};

/* A thread that waits for a slot; on its stack. */
struct weft_pool_turn {
    struct weft_pool_turn *next;
    bool reads;
    weft_usec since_us; /* boot time */
    pthread_cond_t woken;
};

struct weft_pool {
    pthread_mutex_t lock;
    struct weft_slot *slot;
    size_t count;
    size_t writers; /* the first so many slots may write; readers prefer the others */
    /* Threads that wait for a slot, the first come first. */
    struct weft_pool_turn *first, **last;
    weft_usec passed_max_us;      /* so long a thread that waits may be passed by later ones */
    uint64_t waits;               /* how often a thread had to wait for a slot */
    weft_usec waited_us;          /* boot time; when a thread that writes last had to wait */
    weft_usec answered_us;        /* boot time; the last transaction that the store carried out */
    weft_usec gap_us;             /* the longest time between two of them; see weft_engine_gap() */
    weft_usec lost_us;            /* boot time; when a connection was last lost, or not to be had */
    struct weft_lineage lineage;  /* of the last connection that knew it */
    atomic_uint_fast64_t history; /* from 1; counts lineages, see weft_engine_history() */
};

/* ---- Interned rows, cached ------------------------------------------------------------------- */

struct weft_name {
    int32_t id, sort, ns;
    const char *text;
    bool retired; /* names.lock; its id is not written before it was looked up again: unused.h */
};

/* A queue with all its names at hand. Lives as long as the engine. */
struct weft_queue {
    int32_t id, ns, lane, capset, tenant;
    int32_t family; /* the first queue met here that differs in the tenant alone: see may_serve() */
    struct weft_capset_need need; /* of route_text */
    const char *ns_name, *lane_name, *kind, *capset_text, *tenant_name;
};

struct weft_policy_entry {
    int32_t id;
    struct weft_rules rules;
    struct weft_policy shown; /* the same as readers are told it */
};

/*
 * Everything here was committed before it was cached, and is never freed. When the store changes
 * its lineage, the caches begin anew: see weft_names_suspect(). What is retired in the store is not
 * written from here: see unused.h.
 */
struct weft_names {
    pthread_mutex_t lock;
    struct weft_arena *arena;
    struct weft_map by_text;   /* (sort, namespace, text) -> weft_name */
    struct weft_map by_id;     /* id -> weft_name */
    struct weft_map queue;     /* the five names -> weft_queue */
    struct weft_map queue_id;  /* id -> weft_queue */
    struct weft_map family;    /* all but the tenant -> the first weft_queue */
    struct weft_map policy;    /* text -> weft_policy_entry */
    struct weft_map policy_id; /* id -> weft_policy_entry */
    struct weft_names *before; /* owned; the caches of the lineage before, or NULL */
    weft_usec told_us;         /* boot time; what was retired until then is known here */
};

/* ---- What can be claimed --------------------------------------------------------------------- */

struct weft_lane_setting {
    int32_t lane;
    int32_t ns;
    bool paused;
    int32_t max_running;
    const char *weights; /* JSON text or NULL */
};

/* How far a tenant has been served: see core/share.h. */
struct weft_turn {
    int32_t id; /* the tenant, or minus the namespace for the executions without one */
    double pass;
    weft_usec used_us; /* boot time */
};

/* How far the look over the ready queues of all namespaces has come: see ready.c. */
struct weft_ready_hop {
    int32_t after;     /* the last queue seen; 0: the next look begins anew */
    uint64_t began;    /* the tick when the look over all of them began */
    bool many;         /* the last one that began anew did not see them all at once */
    weft_usec at_us;   /* boot time; the last one; 0: none */
    weft_usec all_us;  /* the last one that saw all; 0: none */
    bool slow;         /* the last one was */
    weft_usec rest_us; /* so long no claim looks again: the last two were slow */
};

struct weft_ready {
    pthread_mutex_t lock;
    struct weft_rings rings; /* the queues that had ready work */
    struct weft_ready_hop hop;
    uint64_t tick;      /* of notes, refreshes and walks: one that is newer is larger */
    uint64_t refreshes; /* begun so far: the number of the youngest */
    uint64_t lanes_of;  /* the refresh that brought the lanes: an older one changes nothing */
    uint64_t choices;
    struct weft_lane_setting *lane; /* owned, texts too; sorted by lane */
    size_t lane_count;
    struct weft_int_map turn; /* of weft_turn, owned */
    size_t turns_kept;      /* how many were left when those long unused were last dropped */
};

/* ---- What ended ------------------------------------------------------------------------------ */

struct weft_tally_entry {
    int32_t queue; /* one of the lane */
    int32_t lane;  /* 0: this process never met the queue, so it does not know */
    int64_t minute;
    int64_t succeeded, failed; /* failed: below 0 where more were replayed than failed here */
};

/* What was counted and is not in the store yet. */
struct weft_tally {
    pthread_mutex_t lock;
    struct weft_tally_entry *entry; /* owned */
    size_t count, capacity;
    int64_t purged; /* the minute in which old rows were last removed by this process */
};

/*
 * The moments of ids that may be in no span (span.h). The migration wrote them, so they never
 * change while the engine is open: two threads that read them at the same time set the same. In
 * SQLite all ids may be in none while there is one namespace, which is asked anew for each list
 * until there are two. That a list walks all ids is right at any time, only slower.
 */
struct weft_unspanned {
    atomic_bool known, all;
    _Atomic(weft_usec) since_us, until_us; /* 0: there are none */
};

/* Where the ready rows of queues begin: floor.c. */
struct weft_floors {
    pthread_mutex_t lock;
    bool used;               /* the store needs them */
    _Atomic size_t count;    /* of queue; read without the lock to leave early */
    struct weft_int_map queue; /* by queue; owned */
    uint64_t tick;
};

/* How many queues and worker names namespaces have: census.c. */
struct weft_census {
    pthread_mutex_t lock;
    uint32_t most;             /* queues of a namespace; 0: no limit */
    uint32_t most_workers;     /* worker names of a namespace; 0: no limit */
    struct weft_int_map ns;      /* queues, by namespace; owned */
    struct weft_int_map workers; /* worker names, by namespace; owned */
};

/* The walk for interned rows that no row refers to: scan/unused_names.c. */
struct weft_unused {
    pthread_mutex_t lock;
    weft_usec after_us; /* rows that are unused for so long are removed; 0: never */
    int64_t walker;     /* the number of this engine among those that walk */
    int32_t base;       /* where the ids begin that the next walk looks at; of the pass */
    bool busy;          /* a pass is running, and has the walk */
    struct weft_unused_walk *walk; /* owned; NULL: none is under way */
};

/* Whether the passes of a scanner take turns between namespaces now: scan/turns.c. */
struct weft_scan_turns {
    bool on;               /* the last pass left due rows, or did not look at all lanes */
    bool left;             /* a lane of this round may have more than was taken of it */
    int32_t after;         /* the lane that the next look begins behind; 0: a new round */
    uint32_t short_passes; /* how many more take a part of a batch only */
    uint32_t plain_passes; /* how many more go by time alone: the last look saw one namespace */
};

/* The same for intake, which knows namespaces by their names. */
struct weft_inbox_turns {
    bool on;
    char start[4 * WEFT_NAME_MAX + 1]; /* the namespace that the next look begins with */
};

struct weft_engine {
    const struct weft_driver *driver;
    char *url;
    struct weft_clock *clock;
    struct weft_pool pool;
    struct weft_names names;
    struct weft_ready ready;
    weft_usec poll_whole_us; /* boot time; from then on a poll looks at everything; see poll.c */
    struct weft_floors floors;
    struct weft_census census;
    struct weft_tally tally;
    struct weft_unused unused;
    pthread_mutex_t ord_lock;
    int64_t last_ord;
    pthread_mutex_t sample_lock;
    struct weft_id sampled;    /* how far invariant_check came; all 0: begin anywhere */
    bool sample_goes_on;       /* the next pass goes on there */
    struct weft_id reconciled; /* how far edge_cancel_reconciler came; sample_lock */
    struct weft_scan_turns turns[WEFT_SCANNER_COUNT]; /* sample_lock */
    struct weft_inbox_turns inbox_turns;              /* sample_lock */
    weft_news_fn *on_news;                            /* NULL: no listener */
    void *news_context;
    weft_leases_fn *on_leases; /* NULL: no listener */
    void *leases_context;
    weft_flows_fn *on_flows; /* NULL: the cascade runs in the thread that committed */
    void *flows_context;
    weft_flows_fn *on_flows_ended; /* NULL: nobody listens */
    void *flows_ended_context;
    weft_side_work_fn *on_side_work; /* NULL: no listener */
    void *side_work_context;
    bool holds_briefly;         /* flows: see flow_hold.c */
    atomic_bool statements_fit; /* a connection has prepared all of them */
    atomic_int_fast64_t
        schema_seen_us; /* boot time; the last look at the schema: schema_version.c */
    atomic_int_fast64_t oldest_binary; /* 0: this one is not too old */
    struct weft_unspanned unspanned;
};

/* ---- Transactions (tx.c) --------------------------------------------------------------------- */

struct weft_tx {
    struct weft_engine *engine;
    struct weft_conn *conn;
    struct weft_arena *arena;
    weft_usec now_us;      /* one value per transaction */
    struct weft_lost lost; /* the last try, for the question what became of it */
    weft_usec began_us;    /* the last try, in boot time, for the same */
    uint64_t history;      /* in which the ids of names that it writes were read; 0: at its start */
    bool no_retry;         /* one try, on a connection that is open: see weft_tally_flush() */
    bool repeatable;       /* a second time finds what the first did, and does nothing twice */
    bool maybe_committed;  /* an earlier try may have been committed: this was a second time */
    bool brief;            /* others wait for the only writer: see weft_engine_is_contended() */
    bool ended;            /* the last calls of this try have run: see weft_tx_last() */
    bool answered;         /* the body of the last try got all its rows */
};

typedef enum weft_rc weft_tx_body(struct weft_tx *tx, void *context, struct weft_err *err);

/*
 * Runs body in a transaction and commits. Contention and lost connections are retried here and
 * nowhere else, with a bound and jitter, so body may run several times: it must set all that it
 * answers each time. When the connection was lost in COMMIT, the store is asked what became of it.
 */
WEFT_MUST_CHECK enum weft_rc weft_tx_do(struct weft_tx *tx, enum weft_tx_mode mode,
                                        weft_tx_body *body, void *context, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_tx_run(struct weft_tx *tx, const struct weft_call *call,
                                         size_t count, struct weft_rows *ret_rows,
                                         struct weft_err *err);
/*
 * The last calls of the body: COMMIT goes with them, in one round trip where the store allows it.
 * After it has succeeded the body runs nothing more and cannot fail any more.
 */
WEFT_MUST_CHECK enum weft_rc weft_tx_last(struct weft_tx *tx, const struct weft_call *call,
                                          size_t count, struct weft_rows *ret_rows,
                                          struct weft_err *err);
/* A transaction of one call. ret_rows may be NULL. */
WEFT_MUST_CHECK enum weft_rc weft_tx_once(struct weft_engine *engine, enum weft_tx_mode mode,
                                          const struct weft_call *call, struct weft_arena *arena,
                                          struct weft_rows *ret_rows, struct weft_err *err);

/*
 * Whether this store has one writer and a thread had to wait for it within the last second. Calls
 * that write many rows, for flows and passes over them, make shorter transactions then. A longer
 * one that is under way when the first thread comes delays that thread once.
 */
bool weft_engine_is_contended(struct weft_engine *engine);

/* ---- The version of the schema (schema_version.c) -------------------------------------------- */

/* What another process may have made of the schema. */
void weft_version_seen(struct weft_engine *engine, int64_t version, int64_t oldest_binary);
/* weft_engine_version(), after a look at the schema when the last one is old. No transaction is
 * open. */
WEFT_MUST_CHECK enum weft_rc weft_version_look(struct weft_engine *engine, struct weft_conn *conn,
                                               struct weft_err *err);

/* ---- Joint transactions (joint.c) ------------------------------------------------------------ */

/* What became of a part. */
enum weft_part_fate {
    WEFT_PART_ALONE,           /* nothing: it is left to a transaction of its own */
    WEFT_PART_MAYBE_COMMITTED, /* as this, but it may have been done: the second time will find it
                                */
    WEFT_PART_DONE,            /* committed, and its rows were taken */
    WEFT_PART_FAILED, /* err tells: a try of its own would end no better, or must not be made */
};

/*
 * An operation between its beginning and its end, of which one statement is left to be run: it can
 * share a transaction with others. Whoever began it ends it, and the end runs what was not done.
 */
struct weft_part {
    void *context;
    /* Writes the statement of this try; false: it takes more than one, so it is left alone. */
    bool (*ask)(struct weft_tx *tx, void *context, struct weft_call *ret_call);
    void (*take)(struct weft_tx *tx, void *context, const struct weft_rows *rows);
    bool joins;      /* there is such a statement; false: nothing is to be run, or much */
    bool repeatable; /* as in weft_tx */
    enum weft_part_fate fate;
    struct weft_err err;
};

void weft_complete_begin(struct weft_complete_call *call, struct weft_arena *arena,
                         struct weft_part *ret_part);
void weft_complete_end(struct weft_engine *engine, struct weft_complete_call *call,
                       struct weft_part *part, struct weft_tx *tx);
void weft_claim_begin(struct weft_engine *engine, struct weft_claim_call *call,
                      struct weft_arena *arena, struct weft_part *ret_part);
void weft_claim_end(struct weft_engine *engine, struct weft_claim_call *call,
                    struct weft_part *part);
void weft_submit_begin(struct weft_engine *engine, struct weft_submit_call *call,
                       struct weft_arena *arena, struct weft_part *ret_part);
void weft_submit_end(struct weft_engine *engine, struct weft_submit_call *call,
                     struct weft_part *part, struct weft_arena *arena);

/*
 * The number of the lineage that the store is of, as far as is known: see struct weft_lineage. Ids
 * of interned rows that were read in one history may not exist in the next, because a standby that
 * is behind is promoted without them. A write transaction whose ids are of an older history is
 * refused before it begins.
 */
uint64_t weft_engine_history(struct weft_engine *engine);

void weft_pool_init(struct weft_engine *engine, uint32_t connections, bool in_turn);
void weft_pool_done(struct weft_engine *engine);
/* How often somebody had to wait for a connection so far. */
uint64_t weft_pool_waits(struct weft_engine *engine);

/* ---- Batches (batch.c) ----------------------------------------------------------------------- */

/* A part of a call that fits one transaction: indexes of items. */
struct weft_chunk {
    const size_t *item;
    size_t count;
    size_t round; /* so many earlier items of the call have the id of each of these */
};

struct weft_chunks {
    struct weft_chunk *chunk;
    size_t count;
};

/*
 * Splits items into transactions: sorted by id, no id twice in one (a client's retry met its
 * original), at most WEFT_BATCH_MAX each. skip[i] leaves item i out; skip may be NULL.
 */
struct weft_chunks weft_chunks_by_id(const struct weft_id_column *ids, const bool *skip,
                                     struct weft_arena *arena);
/*
 * The next item with this id in the chunks from *at on, which moves on; SIZE_MAX: there is none in
 * the rounds before `round`.
 */
size_t weft_chunks_next(const struct weft_chunks *chunks, size_t round,
                        const struct weft_id_column *ids, const struct weft_id *id, size_t *at);
/* The place of an id in a chunk, which must hold it. */
size_t weft_chunk_find(const struct weft_chunk *chunk, const struct weft_id_column *ids,
                       const struct weft_id *id);
const struct weft_id *weft_column_id(const struct weft_id_column *ids, size_t i);

/* ---- Interning (names.c) --------------------------------------------------------------------- */

void weft_names_init(struct weft_names *names);
void weft_names_done(struct weft_names *names);
/* The store has another lineage: what is cached may not exist there. */
void weft_names_suspect(struct weft_names *names);

/* A look at what is retired in the store found this row. */
void weft_names_retired(struct weft_names *names, enum weft_interned what, int32_t id);
/* A look that began at `began_us` (boot time) has told of all. */
void weft_names_told(struct weft_names *names, weft_usec began_us);
/* Before ids are taken from the caches to be written: forgets the texts if no look was lately. */
void weft_names_check_age(struct weft_names *names);
/* Takes back that these rows were retired, in a transaction of its own. */
struct weft_id_list;
WEFT_MUST_CHECK enum weft_rc weft_names_keep(struct weft_engine *engine, enum weft_interned what,
                                             const struct weft_id_list *list, struct weft_err *err);

struct weft_name_want {
    enum weft_name_sort sort;
    int32_t ns; /* 0 for namespaces and routes */
    const char *text;
    int32_t id; /* the answer; 0: there is none */
};
/* Finds names, and adds what is missing when `add` (in a transaction of its own). */
WEFT_MUST_CHECK enum weft_rc weft_intern_names(struct weft_engine *engine, bool add,
                                               struct weft_name_want *want, size_t count,
                                               struct weft_err *err);
/*
 * The queue of each resolved spec; items with skip[i] are left out. refused: NULL for no limit, or
 * whether an item was refused because its namespace may not have a queue more; its queue is NULL.
 */
WEFT_MUST_CHECK enum weft_rc weft_intern_queues(struct weft_engine *engine,
                                                const struct weft_resolved *spec, const bool *skip,
                                                size_t count, const struct weft_queue **ret_queue,
                                                bool *ret_refused, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_intern_policies(struct weft_engine *engine,
                                                  const struct weft_resolved *spec,
                                                  const bool *skip, size_t count,
                                                  int32_t *ret_policy, struct weft_err *err);

/*
 * Loads queues, policies and names by id; then the find functions cannot miss. Inside a transaction
 * `tx` must be given: asking for a second connection while holding one could wait for ever.
 */
struct weft_id_list {
    int32_t *id;
    size_t count;
    struct weft_tx *tx; /* NULL: none is open in this thread */
};
WEFT_MUST_CHECK enum weft_rc
weft_load_queues(struct weft_engine *engine, const struct weft_id_list *list, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_load_policies(struct weft_engine *engine,
                                                const struct weft_id_list *list,
                                                struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_load_names(struct weft_engine *engine,
                                             const struct weft_id_list *list, struct weft_err *err);
const struct weft_queue *weft_find_queue(struct weft_engine *engine, int32_t id);
const struct weft_policy_entry *weft_find_policy(struct weft_engine *engine, int32_t id);
const struct weft_rules *weft_find_rules(struct weft_engine *engine, int32_t id);
const char *weft_find_name(struct weft_engine *engine, int32_t id); /* NULL for 0 */
/* The id of a namespace; 0 when there is none of that name. */
WEFT_MUST_CHECK enum weft_rc weft_find_namespace(struct weft_engine *engine, const char *ns,
                                                 int32_t *ret_id, struct weft_err *err);

/* ---- Floors (floor.c) ------------------------------------------------------------------------ */

struct weft_floor {
    int32_t priority;
    int64_t ord;
};

/* What a claim took from a queue. */
struct weft_floor_claim {
    int32_t queue;
    bool above;    /* it began at a floor */
    bool short_of; /* and got less than it asked for */
    uint32_t got;
    struct weft_floor last; /* where the last of these was */
    uint64_t tick;          /* before its statement, as the time: */
    weft_usec began_us;     /* the clock of the store */
    weft_usec took_us;
};

void weft_floors_init(struct weft_floors *floors, bool used);
void weft_floors_done(struct weft_floors *floors);
uint64_t weft_floor_tick(struct weft_floors *floors);
bool weft_floor_get(struct weft_floors *floors, int32_t queue, struct weft_floor *ret_floor);
void weft_floor_claimed(struct weft_floors *floors, const struct weft_floor_claim *claim);
/* A row may have become ready anywhere in the queue. */
void weft_floor_drop(struct weft_floors *floors, int32_t queue);
/* New rows are ready: with at most this priority, and none before this place in the order. */
void weft_floor_added(struct weft_floors *floors, int32_t queue, const struct weft_floor *first,
                      weft_usec now_us);

/* ---- How many queues and worker names (census.c) --------------------------------------------- */

void weft_census_init(struct weft_census *census, const struct weft_engine_config *config);
void weft_census_done(struct weft_census *census);
/* How many of `wanted` queues more a namespace may have. */
WEFT_MUST_CHECK enum weft_rc weft_census_room(struct weft_engine *engine, int32_t ns, size_t wanted,
                                              size_t *ret_room, struct weft_err *err);
/* How many of `wanted` worker names more. */
WEFT_MUST_CHECK enum weft_rc weft_census_workers(struct weft_engine *engine, int32_t ns,
                                                 size_t wanted, size_t *ret_room,
                                                 struct weft_err *err);
/* The error of a submission that needs a queue too many, and of a worker whose name is one. */
enum weft_rc weft_census_refuse(const struct weft_engine *engine, const char *ns,
                                struct weft_err *err);
enum weft_rc weft_census_refuse_worker(const struct weft_engine *engine, const char *ns,
                                       struct weft_err *err);

/* ---- Changing rows (change.c) ---------------------------------------------------------------- */

/* One row of `live`, what becomes of it, and the story that is stored with it. */
struct weft_change {
    struct weft_live before;
    struct weft_step step;
    bool apply;  /* false: leave the row alone */
    bool drains; /* its lease does, if it is applied; set by weft_change_calls() */
    const char *by;
    const char *reason;
    const char *error_class;
    const char *error_message;
};

struct weft_changes {
    struct weft_change *change; /* in the order of the rows */
    size_t count;
    struct weft_id *flow; /* flows of which a member ended; set by weft_change_write() */
    size_t flows;
};

struct weft_commit_effects;

/* Locks the living rows of the ids, in their order, in tx. Ids that are not living are missing. */
WEFT_MUST_CHECK enum weft_rc weft_change_lock(struct weft_tx *tx, const struct weft_id *id,
                                              size_t count, struct weft_changes *ret_changes,
                                              struct weft_err *err);
/* The rows of any statement that has the columns of live_lock. */
struct weft_changes weft_change_rows(const struct weft_rows *rows, struct weft_arena *arena);
/* The change of an id, NULL when it is not living. */
struct weft_change *weft_change_find(const struct weft_changes *changes, const struct weft_id *id);
/* Loads the policies of the rows; then weft_find_rules() cannot miss. */
WEFT_MUST_CHECK enum weft_rc
weft_change_rules(struct weft_tx *tx, const struct weft_changes *changes, struct weft_err *err);
/* Takes the step; false when the transition table refuses it. */
bool weft_change_step(struct weft_change *change, const struct weft_event *event);
/* Writes all that apply: rows that live on, outcomes, attempts; in one round trip. */
WEFT_MUST_CHECK enum weft_rc weft_change_write(struct weft_tx *tx, struct weft_changes *changes,
                                               struct weft_err *err);
/* The same for calls that travel with others: makes them, and looks at what they gave. */
enum { WEFT_CHANGE_CALLS = 4 };
void weft_change_calls(struct weft_tx *tx, const struct weft_changes *changes,
                       struct weft_call ret_call[WEFT_CHANGE_CALLS]);
WEFT_MUST_CHECK enum weft_rc weft_change_wrote(struct weft_tx *tx, struct weft_changes *changes,
                                               const struct weft_rows rows[WEFT_CHANGE_CALLS],
                                               struct weft_err *err);
/* Whether one of them ends: weft_change_wrote() may fail then, so it is not for weft_tx_last(). */
bool weft_change_ends(const struct weft_changes *changes);
/* A row of outcome_lock, as it would live on, and a row of outcome_back, which brings it back. */
struct weft_live weft_outcome_read(const struct weft_rows *rows, size_t i);
void weft_outcome_back(struct weft_outcome_back_item *item, const struct weft_live *after);
/* What the changes are news of. */
void weft_change_news(struct weft_commit_effects *news, const struct weft_changes *changes);

/* ---- News (commit_effects.c) ----------------------------------------------------------------- */

/* What a transaction did to one queue. */
struct weft_queue_news {
    int32_t queue;
    uint32_t ready;             /* executions that became ready */
    uint32_t freed;             /* leases that ended */
    uint32_t succeeded, failed; /* executions that ended so; failed or expired */
    uint32_t fresh;             /* of `ready`: new executions, */
    int32_t priority;           /* the highest priority of these, */
    int64_t ord;                /* and the first in order */
};

/* What a transaction did: gathered when it has committed, then told once. */
struct weft_commit_effects {
    struct weft_arena *arena;
    weft_usec now_us; /* of the transaction */
    struct weft_queue_news *item;
    size_t count, capacity;
    weft_usec due_us;     /* the earliest new one */
    struct weft_id *flow; /* flows that have completions, some perhaps twice */
    size_t flows, flow_room;
    int32_t *worker; /* workers that have to be told of leases, each once */
    size_t workers, worker_room;
};

struct weft_commit_effects weft_news_new(struct weft_arena *arena, weft_usec now_us);
/* A new execution is ready. */
void weft_news_fresh(struct weft_commit_effects *news, int32_t queue, int32_t priority,
                     int64_t ord);
/* Where the news of a queue is gathered; good until the next call. */
struct weft_queue_news *weft_news_of(struct weft_commit_effects *news, int32_t queue);
/* Something becomes due then; 0: nothing. */
void weft_news_due(struct weft_commit_effects *news, weft_usec due_us);
/* A flow has a completion. */
void weft_news_flow(struct weft_commit_effects *news, const struct weft_id *flow);
/* A lease of this worker is draining from now on. */
void weft_news_worker(struct weft_commit_effects *news, int32_t worker);
/* An execution of a queue is over. */
void weft_news_ended(struct weft_commit_effects *news, int32_t queue, enum weft_state state);
/* Puts queues with ready work on the list and tells the listener. No transaction is open. */
void weft_news_tell(struct weft_engine *engine, const struct weft_commit_effects *news);
/* The settings of a lane have changed: its queues may have something to give. */
void weft_news_lane(struct weft_engine *engine, int32_t ns, const char *lane);

/* ---- Lists (list.c) -------------------------------------------------------------------------- */

/* How far a list has looked, and how long it may go on while nothing fits. */
struct weft_list_scan {
    uint64_t looked;    /* rows */
    weft_usec began_us; /* CLOCK_BOOTTIME */
    weft_usec allowed_us;
};
bool weft_list_goes_on(const struct weft_list_scan *look, size_t count, size_t limit);
uint32_t weft_list_next_rows(const struct weft_list_scan *look, uint32_t first);

/* A short form of an id, and the first id that does not begin so. */
WEFT_MUST_CHECK enum weft_rc weft_short_read(const char *text, struct weft_id_short *ret_short,
                                             struct weft_err *err);
struct weft_id weft_id_above(const struct weft_id_short *wanted);

/* Row i of a statement that has the columns of describe; its names are known (execution_read.c). */
struct weft_execution weft_read_execution(struct weft_engine *engine, const struct weft_rows *rows,
                                          size_t i, struct weft_arena *arena);
/* Describes executions inside a transaction, whose writes it sees; the rows are in the arena, and
 * weft_read_execution() reads them. */
WEFT_MUST_CHECK enum weft_rc weft_describe_in(struct weft_tx *tx, const struct weft_id *id,
                                              size_t count, struct weft_arena *arena,
                                              struct weft_rows *ret_rows, struct weft_err *err);
/* Runs such a statement and makes the names of its rows known. */
WEFT_MUST_CHECK enum weft_rc weft_read_chunk(struct weft_engine *engine,
                                             const struct weft_call *call, struct weft_arena *arena,
                                             struct weft_rows *ret_rows, struct weft_err *err);

enum { WEFT_PAGE_DEFAULT = 50 }; /* rows of a list that names no limit */

WEFT_MUST_CHECK enum weft_rc weft_page_limit(uint32_t limit, struct weft_err *err);
/* Behind every id: where a list begins that has the newest first. */
#define WEFT_ID_LAST                                                                               \
    ((struct weft_id){{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,     \
                       0xff, 0xff, 0xff, 0xff}})

/* ---- Claimable queues (ready.c) -------------------------------------------------------------- */

enum {
    WEFT_HOP_QUEUES = 1000,  /* a look over the ready queues of all namespaces sees so many */
    WEFT_WALK_QUEUES = 1000, /* a walk over the queues of a lane sees so many, ready or not */
    WEFT_WALK_LANES = 64,    /* of so many lanes at once, which then share the number */
};

void weft_ready_init(struct weft_ready *ready);
void weft_ready_done(struct weft_ready *ready);
/* The store has another lineage: what is listed may not exist there. */
void weft_ready_suspect(struct weft_ready *ready);
/* Queues got ready work. May ask the store for the names of queues that are new here. */
void weft_ready_note(struct weft_engine *engine, const struct weft_woken *woken, size_t count);
/* A queue gave nothing: takes it off the list unless it was noted after the tick. */
void weft_ready_forget(struct weft_engine *engine, int32_t queue, uint64_t tick);
/* Reads the list and the lane settings anew, as far as that goes at once. */
WEFT_MUST_CHECK enum weft_rc weft_ready_refresh(struct weft_engine *engine, struct weft_err *err);
/* Whether a claim has to do so; and whether there are more ready queues than one look can see. */
bool weft_ready_hop_is_due(struct weft_engine *engine);
bool weft_ready_has_many(struct weft_engine *engine);
/* Reads the lane settings alone. */
WEFT_MUST_CHECK enum weft_rc weft_ready_refresh_lanes(struct weft_engine *engine,
                                                      struct weft_err *err);

/* A lane in the store whose queues are to be walked over. */
struct weft_walk {
    int32_t ns;
    const char *lane; /* in the caller's arena */
    int32_t after;    /* where it begins: behind this queue */
};
struct weft_walks {
    struct weft_walk item[WEFT_WALK_LANES];
    size_t count;
    weft_usec began_us; /* the last step of these walks; 0: none has begun */
};
/* Adds a lane that a claim asks for. Says whether its list is old: see the rule in ready.c. */
enum weft_ready_age { WEFT_READY_FRESH, WEFT_READY_SHORT, WEFT_READY_OLD };
enum weft_ready_age weft_ready_ask(struct weft_engine *engine, int32_t ns, const char *lane,
                                   struct weft_arena *arena, struct weft_walks *walks);
/* The lanes that claims asked for lately, when the look over all namespaces cannot see them all. */
void weft_ready_asked(struct weft_engine *engine, struct weft_arena *arena,
                      struct weft_walks *ret_walks);
/* Walks on over the queues of lanes. ret_queue may be NULL: else the ready ones are added. */
struct weft_queue_ids {
    int32_t *id; /* in the arena */
    size_t count;
};
WEFT_MUST_CHECK enum weft_rc weft_ready_walk(struct weft_engine *engine, struct weft_walks *walks,
                                             struct weft_arena *arena,
                                             struct weft_queue_ids *ret_queues,
                                             struct weft_err *err);

/*
 * A look over the ready queues by other means: weft_ready_begin() says behind which queue it
 * begins, and weft_ready_end() takes over what was read, all or nothing.
 */
struct weft_ready_look {
    uint64_t refresh; /* its number */
    int32_t after;
    weft_usec began_us; /* boot time */
};
struct weft_ready_list {
    int32_t *queue; /* loaded; in the order of the numbers */
    size_t count;
    const struct weft_lane_setting *lane; /* copied */
    size_t lane_count;
};
struct weft_ready_look weft_ready_begin(struct weft_engine *engine);
void weft_ready_end(struct weft_engine *engine, const struct weft_ready_look *look,
                    const struct weft_ready_list *list);

/* ---- Tallies (tally.c) ----------------------------------------------------------------------- */

void weft_tally_init(struct weft_tally *tally);
void weft_tally_done(struct weft_tally *tally);
/* Counts what the news say has ended. */
void weft_tally_count(struct weft_engine *engine, const struct weft_commit_effects *news);
/* An execution of the queue that had failed at finished_us was replayed: it is not counted. */
void weft_tally_replayed(struct weft_engine *engine, int32_t queue, weft_usec finished_us);

/* Writes what is left when the engine is closed: one try, which never waits for a connection. */
void weft_tally_flush(struct weft_engine *engine);

/* How a lane did in the last hour. */
struct weft_lane_hour {
    int32_t ns, lane;
    int64_t succeeded, failed; /* failed may be below 0: see tally.c */
};
struct weft_lane_hours {
    struct weft_lane_hour *item; /* in the arena */
    size_t count;
};
enum { WEFT_ALL_NAMESPACES = -1 };
/* Of the lanes of a namespace, or of all, that had any end, from the store and from memory. */
WEFT_MUST_CHECK enum weft_rc weft_tally_hours(struct weft_engine *engine, int32_t ns,
                                              struct weft_arena *arena,
                                              struct weft_lane_hours *ret_hours,
                                              struct weft_err *err);

/* ---- Passes (scan/pass.c) -------------------------------------------------------------------- */

/* When each pass has work, by the times of the poll in the order of its columns. */
enum { WEFT_PASS_TIMES = 4 };
void weft_pass_due(const struct weft_opt_i64 time[WEFT_PASS_TIMES],
                   weft_usec ret_due_us[WEFT_SCANNER_COUNT]);

/* ---- Unused names (scan/unused_names.c) ------------------------------------------------------ */

void weft_unused_init(struct weft_unused *unused, weft_usec after_us);
void weft_unused_done(struct weft_unused *unused);

/* ---- doctor_replicas.c ----------------------------------------------------------------------- */

/* The part of weft_engine_examine() that looks at replicas and their scanners. */
WEFT_MUST_CHECK enum weft_rc weft_doctor_replicas(struct weft_engine *engine,
                                                  struct weft_arena *arena,
                                                  struct weft_findings *ret_findings,
                                                  struct weft_err *err);

#endif
