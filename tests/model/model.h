/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_MODEL_MODEL_H
#define WEFT_TESTS_MODEL_MODEL_H

/*
 * Random operations against a model in memory, SQLite and PostgreSQL at once.
 *
 * The model is nothing but the pure functions of core and a few arrays. Every operation is applied
 * to it first, then to each store; every answer and then the whole visible state must be the same.
 * Answers and states are compared as texts, in which an id is the number of its execution here,
 * because each store mints its own.
 *
 * Which of several tenants is served first depends on turns that each process counts for itself, so
 * a claim here names lanes of one tenant, or takes all there is, or consists of several claims on
 * lanes of different tenants. Then the set of rows is determined: the best by priority and order of
 * submission, within the limits of lanes. The order inside a reply over several queues is not part
 * of the contract, so replies are compared as sets. Policies have no jitter, for the same reason.
 */

#include "dice.h"
#include "tap.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/map.h"
#include "core/capset.h"
#include "core/fence.h"
#include "core/policy.h"
#include "core/spec.h"
#include "core/state.h"
#include "weft/admin.h"
#include "weft/weft.h"

enum {
    STORES_MAX = 2,
    SUBJECTS_MAX = 160, /* executions of one seed */
    ITEMS_MAX = 24,     /* items of one call */
    DRAINS_MAX = 4096,  /* leases of one seed that others ended */
    LANES = 4,
    WORKERS = 3,
    LOG_LINES = 20,
};

/* One row of the history of leases: what `attempts` shows. */
struct past {
    int32_t epoch, replay, attempt, worker;
    enum weft_ended ended;
    enum weft_state answer;
    bool held;
    weft_usec claimed_us, ended_us, run_at_us;
    const char *error_class, *error_message;
};

/* How an end came about. */
struct story {
    const char *by, *reason, *error_class, *error_message;
};

/* An execution as the model has it. */
struct subject {
    size_t number;
    struct weft_live live; /* worker: place in worker_name; id is not used */
    struct weft_resolved spec;
    weft_usec created_us, finished_us;
    enum weft_ended ended; /* of what is over */
    bool held;
    struct story story;
    const char *result;
    int32_t percent; /* of the lease progress_epoch, and shown as long as no other was given */
    const char *note;
    int32_t progress_epoch;
    struct past *past;
    size_t past_count, past_capacity;
    struct weft_id id[STORES_MAX];
    bool touched; /* by the step in hand */
};

/* A lease that others ended, and whose holder has not let go. */
struct drain {
    size_t number; /* of the subject, which may be gone */
    int32_t epoch;
    size_t lane;
    weft_usec until_us;
};

struct lane_state {
    bool paused;
    int32_t max_running;
    int64_t retention_ms;
};

struct store {
    const char *name;
    char url[512];
    struct weft_engine *engine, *reader; /* two processes: one acts, the other looks */
    struct weft_map by_id;               /* id -> subject */
};

struct world {
    uint64_t random;
    uint64_t seed;
    size_t step;
    weft_usec now_us;
    struct weft_arena *arena; /* lives as long as the seed */
    struct store store[STORES_MAX];
    size_t stores;
    struct subject *subject[SUBJECTS_MAX];
    size_t subjects;
    size_t numbers; /* given to subjects, also to removed ones */
    struct drain drain[DRAINS_MAX];
    size_t drains;
    int64_t last_ord;
    struct lane_state lane[LANES];
    struct diary diary;
    bool failed;
};

extern const char *const lane_name[LANES];
extern const char *const lane_tenant[LANES]; /* NULL: none */
extern const char *const worker_name[WORKERS + 1];

/* model.c: the effect that each call must have. */
struct subject *model_add(struct world *w, const struct weft_resolved *spec);
bool model_step(struct world *w, struct subject *x, const struct weft_event *event,
                const struct story *story);
struct subject *model_by_key(struct world *w, const char *key);
bool model_holds(const struct subject *x, int32_t epoch);
/* The answer to a caller that does not hold the lease; x is NULL for an unknown id. */
struct weft_lease_answer model_fate(const struct subject *x, int32_t epoch, enum weft_ended asked);
/* The worker that calls with this epoch learns that the lease is gone, and lets go. */
void model_let_go(struct world *w, const struct subject *x, int32_t epoch);
/* Takes what fits the claim; returns how many, best first. */
size_t model_claim(struct world *w, const struct weft_claim *claim, struct subject **ret_taken);
struct weft_steered model_steer(struct world *w, enum weft_steer_kind kind,
                                const struct weft_steer *item, struct subject *x);
/* When what is over is removed. */
weft_usec model_kept_until(const struct world *w, const struct subject *x);
bool model_fits(const struct subject *x, const struct weft_filter *filter);
struct weft_pass_report model_pass(struct world *w, enum weft_scanner pass);

/* ops.c, ops_lease.c, ops_steer.c: one random operation on the model and on every store. */
void op_submit(struct world *w);
void op_claim(struct world *w);
void op_renew(struct world *w);
void op_complete(struct world *w);
void op_fail(struct world *w);
void op_put_back(struct world *w);
void op_steer(struct world *w);
void op_sweep(struct world *w);
void op_list(struct world *w);
void op_lane(struct world *w);
void op_pass(struct world *w);
void op_clock(struct world *w);

/* random.c: dice and the diary. */
size_t below(struct world *w, size_t bound); /* 0 .. bound - 1 */
bool chance(struct world *w, unsigned percent);
void note(struct world *w, const char *fmt, ...) WEFT_PRINTF(2, 3);
/* A subject of preference in the given state, any other else; NULL for an unknown id. */
struct subject *pick_subject(struct world *w, enum weft_state state);
struct weft_id id_in(const struct subject *x, size_t store);

/* compare.c: texts of the model and of a store, and whether they are the same. */
void say_subject(const struct world *w, size_t store, const struct weft_id *id,
                 struct weft_buf *out);
void compare_text(struct world *w, const char *who, const char *want, const char *got);
void compare_leases(struct world *w, size_t store, const struct weft_lease_answer *want,
                    const struct weft_lease_answer *got, size_t count);
/* After a step: every execution, and the attempts of the touched ones, or of all. */
void compare_state(struct world *w, bool all);
void broken_call(struct world *w, size_t store, enum weft_rc rc, const struct weft_err *err);

#endif
