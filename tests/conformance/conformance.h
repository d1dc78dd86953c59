/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_CONFORMANCE_CONFORMANCE_H
#define WEFT_TESTS_CONFORMANCE_CONFORMANCE_H

/*
 * One suite over every store. WEFT_TEST_STORE names the store: sqlite or pg.
 *
 * A case is a function under CASE(name). It gets a fresh store with two engines that stand for two
 * processes, and a clock that stands still until the case moves it: no case ever sleeps. After the
 * case, the invariants of the whole store are checked.
 */

#include "support.h"

#include "base/limits.h"
#include "engine/job/claim.h"
#include "engine/job/execution_read.h"
#include "engine/job/leases.h"
#include "engine/job/list.h"
#include "engine/scan/pass.h"
#include "weft/weft.h"

struct fixture {
    const char *store; /* "sqlite" or "pg" */
    char url[512];
    struct weft_engine *a, *b;
    struct weft_arena *arena; /* lives as long as the case */
    weft_usec now_us;
    struct weft_err err; /* of the last call of a helper below */
};

typedef void case_fn(struct fixture *f);

struct test_case {
    const char *name;
    case_fn *run;
    struct test_case *next;
};
void case_register(struct test_case *test);

#define CASE(id)                                                                                   \
    static void case_##id(struct fixture *f);                                                      \
    __attribute__((constructor)) static void register_##id(void)                                   \
    {                                                                                              \
        static struct test_case test = {.name = #id, .run = case_##id};                            \
        case_register(&test);                                                                      \
    }                                                                                              \
    static void case_##id(struct fixture *f)

/* Moves the clock of both engines. */
void forward_ms(struct fixture *f, int64_t ms);
/* Another engine on the same store with the same clock; the caller closes it. */
struct weft_engine *open_engine(struct fixture *f);
/* The same over the fault driver, whose plan outlives the engine. */
struct weft_engine *open_faulty(struct fixture *f, struct weft_fault *fault);
/* Runs SQL on the store, outside the engine. pg only: weft. is replaced by the schema of the case.
 */
void run_sql(struct fixture *f, const char *sql);
/* Runs the text that is for the store of the case. */
void run_sql_of(struct fixture *f, const char *pg, const char *sqlite);
bool is_pg(const struct fixture *f);
/* True on PostgreSQL; on SQLite a skipped point gives the reason. */
bool only_on_pg(const struct fixture *f, const char *why);

/* ---- Short forms; each fails the case when the call as a whole fails ------------------------- */

/* Submits one; the answer is given back as it is. */
struct weft_submitted submit(struct fixture *f, struct weft_engine *engine,
                             const struct weft_spec *spec);
/* Submits one that must be accepted. */
struct weft_id submit_ok(struct fixture *f, const struct weft_spec *spec);
/* Submits one of kind "job" into lane "default" with no frills. */
struct weft_id submit_job(struct fixture *f);

/* Claims up to max of lane "default"; items live in f->arena. */
struct weft_claim_result claim(struct fixture *f, struct weft_engine *engine, uint32_t max);
struct weft_claim_result claim_with(struct fixture *f, struct weft_engine *engine,
                                    const struct weft_claim *args);
/* Claims exactly one, which must be there. */
struct weft_claimed claim_one(struct fixture *f, struct weft_engine *engine);
/* Claims one of a kind for a minute as worker-a; it must be there. */
struct weft_claimed take_kind(struct fixture *f, const char *kind);

struct weft_lease_answer renew(struct fixture *f, struct weft_engine *engine,
                               const struct weft_claimed *lease);
struct weft_lease_answer complete(struct fixture *f, struct weft_engine *engine,
                                  const struct weft_claimed *lease, const char *result);
struct weft_lease_answer fail(struct fixture *f, struct weft_engine *engine,
                              const struct weft_claimed *lease, const char *error_class);
struct weft_lease_answer put_back(struct fixture *f, enum weft_put_back_kind kind,
                                  const struct weft_claimed *lease, int64_t delay_ms);
struct weft_steered steer(struct fixture *f, enum weft_steer_kind kind,
                          const struct weft_steer *item);
struct weft_execution describe(struct fixture *f, const struct weft_id *id);
enum weft_state state_of(struct fixture *f, const struct weft_id *id);
struct weft_attempts attempts(struct fixture *f, const struct weft_id *id);
struct weft_pass_report run_pass(struct fixture *f, struct weft_engine *engine,
                                 enum weft_scanner pass);
/* A pass of engine b. */
struct weft_pass_report pass_with(struct fixture *f, enum weft_scanner scanner,
                                  const struct weft_pass_config *config);
void put_lane(struct fixture *f, struct weft_engine *engine, const struct weft_lane *lane);

/* All five lease operations with this lease must be refused, with this reason, changing nothing. */
void expect_fenced(struct fixture *f, const struct weft_claimed *lease, enum weft_fence fence);

/* ---- Executions side by side: each is in a lane of its own, lease.lane ----------------------- */

/* Submits one (spec NULL: a plain one) into a fresh lane; the lane stays valid for the case. */
struct weft_id submit_apart(struct fixture *f, const struct weft_spec *spec, const char **ret_lane);
/* The same, claimed by worker-a through engine a. */
struct weft_claimed start(struct fixture *f, const struct weft_spec *spec);
struct weft_claimed start_policy(struct fixture *f, const struct weft_policy *policy);
/* Claims what is ready in a lane: at most one, and with take() one that must be there. */
struct weft_claim_result claim_lane(struct fixture *f, struct weft_engine *engine,
                                    const char *lane);
struct weft_claimed take(struct fixture *f, struct weft_engine *engine, const char *lane);
/*
 * Starts one and brings it to a state: ready by release, delayed by 1 s, failed for good, cancelled
 * or expired while it was running. The lease given back is over in every state but running.
 */
struct weft_claimed bring(struct fixture *f, enum weft_state state, const struct weft_spec *spec);

/* Fails with all that *how says but id and epoch, which are the lease's. */
struct weft_lease_answer fail_as(struct fixture *f, struct weft_engine *engine,
                                 const struct weft_claimed *lease, const struct weft_failure *how);
/* Steers with nothing but the id. */
struct weft_steered steer_id(struct fixture *f, enum weft_steer_kind kind,
                             const struct weft_id *id);
/* The stored result as text, NULL when there is none to be had. */
const char *result_text(struct fixture *f, const struct weft_id *id);

/* True when a reader cannot tell the two apart. */
bool same_execution(const struct weft_execution *a, const struct weft_execution *b);
/* Two answers to a worker that say the same, both of them a yes. */
bool same_answer(const struct weft_lease_answer *a, const struct weft_lease_answer *b);
/* The list of attempts ends with this one; zero fields of *want are not looked at. */
void expect_last_attempt(struct fixture *f, const struct weft_id *id,
                         const struct weft_attempt *want);

/* ---- Several at once, lists, errors ---------------------------------------------------------- */

bool same_id(const struct weft_id *a, const struct weft_id *b);
/* Submits in one call; the answers live in f->arena. */
struct weft_submitted *submit_many(struct fixture *f, struct weft_engine *engine,
                                   const struct weft_spec *spec, size_t count);
/* Submits the same spec `count` times in one call, all accepted. Ids in order, in f->arena. */
struct weft_id *submit_copies(struct fixture *f, const struct weft_spec *spec, size_t count);
/* Several claims in one call; items live in f->arena. */
struct weft_claim_result claim_several(struct fixture *f, struct weft_engine *engine,
                                       const struct weft_claim *args, size_t count);
/* One page of namespace "default" when the filter names none; in f->arena. */
struct weft_read_page list_page(struct fixture *f, const struct weft_listing *listing);
/* How many rows fit, over all pages. */
size_t count_rows(struct fixture *f, const struct weft_filter *filter);
/* The story must have this code, blame this field (NULL: none), and say something. */
void expect_err(const struct weft_err *err, enum weft_rc rc, const char *field, const char *name);

#endif
