/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_ENGINE_STATE_H
#define WEFT_ENGINE_ENGINE_STATE_H

/*
 * The parts of an engine. Private to src/engine: other layers see engine/engine.h.
 *
 * Locks: pool.lock, ord_lock, sample_lock, ready.lock, names.lock, census.lock, floors.lock,
 * tally.lock, unused.lock, budgets.lock, endpoints.lock. No query is made under any of them, and
 * none is taken under another, except names.lock and budgets.lock under ready.lock.
 */

#include "base/limits.h"
#include "engine/admin/tally.h"
#include "engine/http/endpoints.h"
#include "engine/job/span.h"
#include "engine/limit/admit.h"
#include "engine/limit/budget_rules.h"
#include "engine/limit/why.h"
#include "engine/names/census.h"
#include "engine/names/names.h"
#include "engine/names/unused.h"
#include "engine/ready/floor.h"
#include "engine/ready/ready.h"
#include "engine/tx/commit_effects.h"
#include "engine/tx/tx.h"
#include "engine/wait/keys.h"

#include <pthread.h>
#include <stdatomic.h>

/* Whether the passes of a scanner take turns between namespaces now: scan/due.c. */
struct weft_scan_turns {
    bool on;               /* the last pass left due rows, or did not look at all lanes */
    bool left;             /* a lane of this round may have more than was taken of it */
    int32_t after;         /* the lane that the next look begins behind; 0: a new round */
    uint32_t short_passes; /* how many more take a part of a batch only */
    uint32_t plain_passes; /* how many more go by time alone: the last look saw one namespace */
};

/* A row of the ledger; all 0: before the first. */
struct weft_ledger_place {
    int32_t dimension, epoch;
    struct weft_id id;
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
    struct weft_budget_rules budgets;
    struct weft_known_endpoints endpoints;
    struct weft_keys keys;
    pthread_mutex_t ord_lock;
    int64_t last_ord;
    pthread_mutex_t sample_lock;
    struct weft_id sampled;    /* position of invariant_check; all 0: begin anywhere */
    bool sample_goes_on;       /* the next pass continues there */
    struct weft_id reconciled; /* position of edge_cancel_reconciler; sample_lock */
    struct weft_scan_turns turns[WEFT_SCANNER_COUNT]; /* sample_lock */
    struct weft_inbox_turns inbox_turns;              /* sample_lock */
    atomic_int_fast64_t gates_walk_us;      /* when the unblock scanner walks over gates again */
    atomic_int_fast64_t budgets_walk_us;    /* when budget_reset settles again */
    struct weft_ledger_place ledger_walked; /* sample_lock; where budget_reset continues */
    char gates_walked[WEFT_GATE_KEY];       /* sample_lock; where the unblock scanner continues, */
    char gates_swept[WEFT_GATE_KEY];        /* and where it continues to remove unused gates; */
    bool gates_lost;       /* this walk has found gates whose errand was lost; sample_lock */
    bool gates_calm;       /* a whole walk has found none; sample_lock */
    weft_news_fn *on_news; /* NULL: no listener */
    void *news_context;
    weft_leases_fn *on_leases; /* NULL: no listener */
    void *leases_context;
    weft_flows_fn *on_flows; /* NULL: the cascade runs in the thread that committed */
    void *flows_context;
    weft_gates_fn *on_gates; /* NULL: the thread that committed admits */
    void *gates_context;
    weft_budgets_fn *on_budgets; /* NULL: the thread that committed does it */
    void *budgets_context;
    weft_ended_fn *on_ended; /* NULL: no listener */
    void *ended_context;
    const _Atomic size_t *ends_awaited; /* by so many */
    weft_carrier_fn *on_carrier;        /* NULL: this process carries nothing out itself */
    void *carrier_context;
    weft_side_work_fn *on_side_work; /* NULL: no listener */
    void *side_work_context;
    bool holds_briefly;                 /* flows: see flow_hold.c */
    atomic_bool carried_met;            /* a queue of a kind that weft carries out itself */
    atomic_bool statements_fit;         /* a connection has prepared all of them */
    atomic_int_fast64_t schema_seen_us; /* boot time; the last look at the schema: pool.c */
    atomic_int_fast64_t oldest_binary;  /* 0: this one is not too old */
    struct weft_unspanned unspanned;
};

#endif
