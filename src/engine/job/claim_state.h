/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_JOB_CLAIM_STATE_H
#define WEFT_ENGINE_JOB_CLAIM_STATE_H

/*
 * A call to claim under way; shared by claim.c, which runs it, claim_choose.c, which finds queues,
 * claim_budget.c, which reserves, claim_round.c, which takes rows, and claim_upstreams.c, which
 * adds the results of upstreams.
 */

#include "base/limits.h"
#include "core/capset.h"
#include "core/limit.h"
#include "core/share.h"
#include "engine/engine_state.h"
#include "engine/job/claim.h"
#include "engine/limit/budget_rows.h"

/* A queue that a claim may take from. */
struct weft_candidate {
    const struct weft_queue *queue;
    size_t share;  /* index of its tenant */
    size_t lane;   /* index of its lane's limit, or WEFT_NO_LANE */
    uint32_t take; /* planned for this round */
    bool empty;    /* gave less than planned: nothing more to get */
    bool fruitful; /* gave something in this call */
    bool set;      /* its lane has settings */
    const struct weft_budget_ref *budget;
    size_t budgets;
    bool shut; /* its next head does not fit into a budget */
};
#define WEFT_NO_LANE SIZE_MAX

/* A lane with a limit. */
struct weft_limited {
    int32_t lane;
    uint32_t left;  /* room for so many more leases; 0 unless this transaction has its lock */
    uint32_t given; /* leases of this transaction */
    struct weft_limits limits;
    struct weft_limit_now now; /* before this transaction */
};

struct weft_claim_tenant {
    int32_t id;
    uint32_t queues; /* how many candidates are its */
};

/* One claim of the call. */
struct weft_claim_request {
    const struct weft_claim *claim;
    int32_t ns;
    int32_t worker;
    const char *capset; /* canonical capabilities */
    struct weft_capset_offer *offer;
    const char *const *offered; /* the same as tokens, when they are many; else NULL */
    size_t offers;
    const char *target; /* as in weft_joint_call */
    uint32_t left;      /* how many it may still get */
    struct weft_candidate candidate[WEFT_CLAIM_QUEUES_MAX];
    size_t candidates;
    struct weft_claim_tenant tenant[WEFT_CLAIM_QUEUES_MAX];
    struct weft_share share[WEFT_CLAIM_QUEUES_MAX];
    size_t tenants;
    bool unseen;   /* no queue that was looked at fits, and there are more */
    size_t looked; /* at so many by choices that found none */
};

/* Costs that specs name, by the ids of their executions. */
struct weft_costs {
    struct weft_costs_of_out *row;
    size_t count;
};

/* A want row of a round: which request and candidate it belongs to. */
struct weft_want {
    struct weft_claim_request *request;
    struct weft_candidate *candidate;
    uint32_t got;
    size_t bytes;
    struct weft_floor last; /* where the last that it got was */
};

/* The whole call. */
struct weft_claiming {
    struct weft_engine *engine;
    struct weft_arena *plan; /* of the whole call */
    struct weft_claim_request *request;
    size_t count;
    struct weft_limited *limit;
    size_t limits;
    struct weft_budget_ref *ref; /* the budgets of all candidates */
    size_t refs;
    struct weft_locked_budgets
        locked;                   /* while there are any; in the arena of the transaction, as */
    struct weft_costs head_costs; /* costs of the heads that a plan looks at, */
    const struct weft_candidate **from; /* for each item the queue that it came from, */
    bool *costs;                        /* and whether its spec names costs */
    struct weft_arena *out;             /* for the result */
    struct weft_claimed *item;
    size_t items, items_max;
    size_t members;         /* of flows, in item */
    size_t resumed;         /* in item, that were suspended, perhaps */
    bool *apart;            /* for each item: it comes after too many to read along; see below */
    size_t fan_in;          /* upstreams of the members that are not */
    size_t bytes;           /* carried by item: the sum of weft_live.size */
    size_t share;           /* of the rest of WEFT_BATCH_BYTES, for each want of the round */
    size_t largest;         /* row so far, plus 1; 0: none was seen */
    bool above;             /* the round begins at floors: see floor.c */
    bool no_floors;         /* one did and came up short: not again in this call */
    uint64_t floor_tick;    /* before its statement, as these two */
    weft_usec came_us;      /* boot time; when the last claim of this call came */
    weft_usec asked_us;     /* boot time */
    weft_usec asked_at_us;  /* the store's clock */
    struct weft_want *want; /* of the round; in the arena of the transaction */
    size_t wants;
    bool contended;
    weft_usec opens_us; /* the store's clock: a lane that is full by time has room; WEFT_NEVER */
    struct weft_walks walks; /* lanes whose queues may have to be looked for: see ready.c */
    enum weft_ready_age age; /* of the oldest list that a claim of this call needs */
    bool fresh;              /* the list was read anew for this call */
    bool more_queues;        /* and a lane has queues that it does not show yet */
    bool chosen;             /* candidates were chosen for a transaction that has not begun */
    bool taken;              /* the first transaction was a joint one: see weft_claim_begin() */
    uint64_t tick;           /* of the list, when the candidates were chosen */
    uint64_t history;        /* of the store, before that: as in weft_tx */
    bool more;               /* a request is short and one of its queues may have more */
    int rounds_left; /* of a call whose first transaction was committed with its first round */
};

/* The lanes of a claim: "default" when it names none. */
const char *const *weft_claim_lanes(const struct weft_claim *claim, size_t *ret_count);

/* Whether a lane of the call has queues and was paused when the settings were last read. */
bool weft_claim_meets_pause(struct weft_engine *engine, const struct weft_claiming *all);

/* Fills in the candidates of all requests from the list as it is now. */
void weft_claim_choose(struct weft_engine *engine, struct weft_claiming *all);

/* Remembers how far each tenant was served. */
void weft_claim_keep_turns(struct weft_engine *engine, const struct weft_claim_request *request);

/* Locks the lanes that have a limit, then counts their leases with a snapshot from after that. */
WEFT_MUST_CHECK enum weft_rc weft_claim_lock_lanes(struct weft_tx *tx, struct weft_claiming *all,
                                                   struct weft_err *err);

/* Records what was started in lanes with a window or a rate. Their locks are held. */
WEFT_MUST_CHECK enum weft_rc weft_claim_charge_lanes(struct weft_tx *tx, struct weft_claiming *all,
                                                     struct weft_err *err);

/* ---- Budgets: claim_budget.c ----------------------------------------------------------------- */

/* Which budgets the candidates are under. */
void weft_claim_find_budgets(struct weft_engine *engine, struct weft_claiming *all);
/* Locks them. */
WEFT_MUST_CHECK enum weft_rc weft_claim_lock_budgets(struct weft_tx *tx, struct weft_claiming *all,
                                                     struct weft_err *err);
/* A plan reserves what its heads cost, to see which fit; its end takes that back. */
int64_t *weft_claim_plan_begins(struct weft_tx *tx, const struct weft_claiming *all);
void weft_claim_plan_ends(const struct weft_claiming *all, int64_t *reserved);
/* The rows of charge_heads that a plan is about to look at. */
WEFT_MUST_CHECK enum weft_rc weft_claim_read_heads(struct weft_tx *tx, struct weft_claiming *all,
                                                   const struct weft_rows *heads,
                                                   struct weft_err *err);
/* Whether the next head of a queue fits; once it does not, none behind it does. */
bool weft_claim_head_fits(struct weft_claiming *all, struct weft_candidate *candidate,
                          const struct weft_id *id);
/* The same without reserving it. */
bool weft_claim_would_fit(const struct weft_claiming *all, const struct weft_candidate *candidate,
                          const struct weft_id *id);
/* Reserves what the items from `first` on really cost. */
WEFT_MUST_CHECK enum weft_rc weft_claim_reserve(struct weft_tx *tx, struct weft_claiming *all,
                                                size_t first, struct weft_err *err);
/* Writes what was reserved; COMMIT goes with it unless lanes are to be charged. */
WEFT_MUST_CHECK enum weft_rc
weft_claim_charge_budgets(struct weft_tx *tx, struct weft_claiming *all, struct weft_err *err);
/* A session holds a lock of them for long: the queues under budgets are left out for a second. */
void weft_claim_leave_budgets(struct weft_engine *engine, const struct weft_claiming *all);
/* After the commit: remembers the queues whose next head did not fit. */
void weft_claim_keep_closed(struct weft_engine *engine, const struct weft_claiming *all);

/* ---- Rounds ---------------------------------------------------------------------------------- */

/* Plans a round and writes its statement, unless all->wants is 0: no request can get more, or, with
 * all->more, not before another plan. */
WEFT_MUST_CHECK enum weft_rc weft_claim_plan_round(struct weft_tx *tx, struct weft_claiming *all,
                                                   struct weft_call *ret_call,
                                                   struct weft_err *err);

/* Gives the rows of the statement to the requests; all->more: another round may get more. */
void weft_claim_take_round(struct weft_tx *tx, void *context, const struct weft_rows *rows);

/* Rows that this call had locked may be ready again: others may have moved floors past them. */
void weft_claim_drop_floors(struct weft_engine *engine, const struct weft_claiming *all);

/* The last item is a member of a flow; its claim carries so many bytes: weft_live.size. */
void weft_claim_add_member(struct weft_claiming *all, size_t bytes);

/* The last item may have been suspended: it is marked by resumed_by until it is known. */
void weft_claim_add_resumed(struct weft_claiming *all);

/* Gives resumed executions their signals; claim_signals.c. */
WEFT_MUST_CHECK enum weft_rc weft_claim_signals(struct weft_engine *engine,
                                                struct weft_claiming *all, struct weft_err *err);

/* Gives members of flows their names and upstreams, but for the items that are read apart. */
WEFT_MUST_CHECK enum weft_rc weft_claim_upstreams(struct weft_engine *engine,
                                                  struct weft_claiming *all, struct weft_err *err);

/* weft_engine_claim_rest(), which drops the items whose upstreams could not be read. */
WEFT_MUST_CHECK enum weft_rc weft_claim_all_upstreams(struct weft_engine *engine,
                                                      struct weft_claim_result *result,
                                                      struct weft_arena *arena,
                                                      struct weft_err *err);

#endif
