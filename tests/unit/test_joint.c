/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls of several kinds in one transaction (weft_engine_together()): which calls share
 * one, which do not, and that no call fails because of another. The loss of a connection in COMMIT
 * is in test_store_pg_last.c, faults at every step in tests/fault.
 */

#include "direct.h"
#include "store_fixture.h"

#include "base/arena.h"
#include "base/id.h"
#include "engine/admin/doctor.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/job/joint.h"
#include "engine/job/submit.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

enum { ITEMS_MAX = 4 };

struct world {
    struct fixture f;
    struct weft_fault fault;
    struct weft_engine *engine;
    int commits;
    enum weft_stmt order[16]; /* of the statements that ran */
    size_t statements;
};

/* The three calls with room for their answers. */
struct calls {
    struct weft_complete complete[ITEMS_MAX];
    struct weft_lease_result completed[ITEMS_MAX];
    struct weft_claim claim[ITEMS_MAX];
    struct weft_spec spec[ITEMS_MAX];
    struct weft_submit_result submitted[ITEMS_MAX];
    struct weft_claim_result claimed;
    struct weft_joint_call call[3]; /* not in the order in which they run */
};
enum { SUBMITS, COMPLETES, CLAIMS };

static void watch(void *context, enum weft_fault_point point, enum weft_stmt stmt)
{
    struct world *w = context;
    w->commits += point == WEFT_FAULT_AFTER_COMMIT;
    if (point == WEFT_FAULT_AFTER_RUN && w->statements < WEFT_LEN(w->order))
        w->order[w->statements++] = stmt;
}

static const char *name(const struct world *w)
{
    return w->f.driver->name;
}

static void submit(struct world *w, int count)
{
    for (int i = 0; i < count; i++) {
        const struct weft_spec spec = {.kind = "k", .payload = "{}", .payload_size = 2};
        struct weft_submitted answer;
        ok(engine_submit(w->engine, "default", &spec, 1, &answer, &w->f.err) == WEFT_OK &&
               !answer.err.rc,
           "%s: submit", name(w));
    }
}

/* Claims what is there; a claim of one, NULL when there is nothing. */
static const struct weft_claimed *claim(struct world *w)
{
    struct weft_claim_result result = {0};
    const struct weft_claim one = {.worker = "w", .max = 1};
    struct weft_arena *arena = weft_arena_new(); /* short-lived: kept values are copied */
    struct weft_claimed *kept = NULL;
    enum weft_rc rc = weft_engine_claim(w->engine, "default", &one, 1, arena, &result, &w->f.err);
    ok(rc == WEFT_OK, "%s: claim", name(w));
    if (!rc && result.count == 1) {
        kept = weft_new(w->f.arena, struct weft_claimed);
        *kept = result.item[0];
    }
    weft_arena_free(arena);
    return kept;
}

/* A completion, a claim and a submission of one item each. */
static void calls_init(struct world *w, struct calls *calls, const struct weft_claimed *held)
{
    *calls = (struct calls){
        .complete = {{.id = held->id, .epoch = held->epoch}},
        .claim = {{.worker = "w", .max = 1}},
        .spec = {{.kind = "k", .payload = "{}", .payload_size = 2}},
    };
    calls->call[SUBMITS] = (struct weft_joint_call){.op = WEFT_OP_SUBMIT,
                                                    .ns = "default",
                                                    .item = calls->spec,
                                                    .count = 1,
                                                    .answer = calls->submitted,
                                                    .arena = w->f.arena};
    calls->call[COMPLETES] = (struct weft_joint_call){.op = WEFT_OP_COMPLETE,
                                                      .item = calls->complete,
                                                      .count = 1,
                                                      .answer = calls->completed,
                                                      .arena = w->f.arena};
    calls->call[CLAIMS] = (struct weft_joint_call){.op = WEFT_OP_CLAIM,
                                                   .ns = "default",
                                                   .item = calls->claim,
                                                   .count = 1,
                                                   .answer = &calls->claimed,
                                                   .arena = weft_arena_new()};
    w->commits = 0;
    w->statements = 0;
}

static void run_all(struct world *w, struct calls *calls)
{
    weft_engine_together(w->engine, calls->call, WEFT_LEN(calls->call), NULL, NULL);
}

static bool is_completed(const struct calls *calls)
{
    return !calls->call[COMPLETES].rc && !calls->completed[0].rc &&
           calls->completed[0].state == WEFT_STATE_SUCCEEDED;
}

static bool is_submitted(const struct calls *calls, size_t i)
{
    return !calls->call[SUBMITS].rc && !calls->submitted[i].rc &&
           calls->submitted[i].state == WEFT_STATE_READY;
}

/* ---- The tests ------------------------------------------------------------------------------- */

static void test_one_commit(struct world *w)
{
    struct calls calls;
    submit(w, 2);
    calls_init(w, &calls, claim(w));
    run_all(w, &calls);
    ok(is_completed(&calls), "%s: completed", name(w));
    ok(!calls.call[CLAIMS].rc && calls.claimed.count == 1, "%s: claimed", name(w));
    ok(is_submitted(&calls, 0), "%s: submitted", name(w));
    is_int(w->commits, 1, "%s: one commit for all", name(w));
    ok(w->statements == 3 && w->order[0] == WEFT_STMT_LIVE_END && w->order[1] == WEFT_STMT_CLAIM &&
           w->order[2] == WEFT_STMT_SUBMIT,
       "%s: statements that may wait for a row come first", name(w));
    weft_arena_free(calls.call[CLAIMS].arena);
}

/*
 * A claim does not see what is submitted beside it; but when it found nothing else it looks again,
 * and by then that is committed, and its queue is on the list.
 */
static void test_claim_beside(struct world *w)
{
    struct calls calls;
    while (claim(w))
        ;
    submit(w, 1);
    calls_init(w, &calls, claim(w));
    run_all(w, &calls);
    ok(is_completed(&calls) && is_submitted(&calls, 0), "%s: the others are answered", name(w));
    ok(!calls.call[CLAIMS].rc && calls.claimed.count == 1 &&
           weft_id_cmp(&calls.claimed.item[0].id, &calls.submitted[0].id) == 0,
       "%s: claimed", name(w));
    is_int(w->commits, 2, "%s: the claim commits after the submission", name(w));
    ok(!claim(w), "%s: the execution is claimed once", name(w));
    weft_arena_free(calls.call[CLAIMS].arena);
}

/* A call that lost its lease is fenced, and no other call is. */
static void test_fenced(struct world *w)
{
    struct calls calls;
    submit(w, 2);
    const struct weft_claimed *held = claim(w);
    calls_init(w, &calls, held);
    calls.complete[0].epoch = held->epoch + 7;
    run_all(w, &calls);
    is_int(calls.completed[0].rc, WEFT_FENCED, "%s: fenced", name(w));
    ok(calls.claimed.count == 1 && is_submitted(&calls, 0), "%s: the other calls succeed", name(w));
    weft_arena_free(calls.call[CLAIMS].arena);
}

/* The store refuses a row of one kind: only its sender gets the error. */
static void test_bad_neighbour(struct world *w)
{
    struct calls calls;
    bool pg = w->f.driver == &weft_driver_pg;
    struct weft_conn *aside = fixture_open(&w->f);
    submit(w, 2);
    ok(fixture_script(&w->f, aside,
                      pg ? "ALTER TABLE weft.execution ADD CONSTRAINT odd CHECK "
                           "(convert_from(payload, 'UTF8') <> '\"bad\"')"
                         : "ALTER TABLE execution ADD COLUMN odd INTEGER"
                           " CHECK (payload <> CAST('\"bad\"' AS BLOB))") == WEFT_OK,
       "%s: a store that refuses: %s", name(w), w->f.err.text);
    calls_init(w, &calls, claim(w));
    calls.spec[1] = (struct weft_spec){.kind = "k", .payload = "\"bad\"", .payload_size = 5};
    calls.call[SUBMITS].count = 2;
    run_all(w, &calls);
    ok(is_completed(&calls), "%s: completed beside a bad one", name(w));
    ok(!calls.call[CLAIMS].rc && calls.claimed.count == 1, "%s: claimed", name(w));
    ok(is_submitted(&calls, 0), "%s: the good one is submitted", name(w));
    is_int(calls.submitted[1].rc, WEFT_INVALID_VALUE, "%s: the bad one is refused", name(w));
    ok(fixture_script(&w->f, aside,
                      pg ? "ALTER TABLE weft.execution DROP CONSTRAINT odd"
                         : "ALTER TABLE execution DROP COLUMN odd") == WEFT_OK,
       "%s: the store is as before", name(w));
    weft_conn_close(aside);
    weft_arena_free(calls.call[CLAIMS].arena);
}

/* A call that takes more than one statement has a transaction of its own. */
static void test_not_joining(struct world *w)
{
    struct calls calls;
    submit(w, 2);
    const struct weft_claimed *held = claim(w);
    calls_init(w, &calls, held);
    calls.spec[0].key = "a key";
    calls.complete[1] = calls.complete[0]; /* twice: in two transactions */
    calls.call[COMPLETES].count = 2;
    run_all(w, &calls);
    ok(is_completed(&calls) && !calls.completed[1].rc, "%s: both completions succeed", name(w));
    ok(!calls.call[CLAIMS].rc && calls.claimed.count == 1, "%s: claimed", name(w));
    ok(is_submitted(&calls, 0) && !calls.submitted[0].duplicate, "%s: submitted with a key",
       name(w));
    ok(w->commits > 1, "%s: more than one transaction", name(w));
    weft_arena_free(calls.call[CLAIMS].arena);
}

/* No call notices contention at any step; every call gets the error of a store that fails. */
static void test_struck(struct world *w)
{
    for (uint64_t at = 1; at <= 5; at++) {
        struct calls calls;
        submit(w, 2);
        calls_init(w, &calls, claim(w));
        w->fault.kind = at < 5 ? WEFT_FAULT_FAIL : WEFT_FAULT_FULL;
        w->fault.strike_at = at < 5 ? at : 3;
        w->fault.struck = false;
        run_all(w, &calls);
        ok(w->fault.struck, "%s: struck", name(w));
        w->fault.strike_at = 0;
        if (at < 5)
            ok(is_completed(&calls) && calls.claimed.count == 1 && is_submitted(&calls, 0),
               "%s: every call succeeds", name(w));
        else
            ok(calls.call[COMPLETES].rc == WEFT_STORAGE_FULL &&
                   calls.call[CLAIMS].rc == WEFT_STORAGE_FULL &&
                   calls.call[SUBMITS].rc == WEFT_STORAGE_FULL,
               "%s: every call gets the error of a full disk", name(w));
        weft_arena_free(calls.call[CLAIMS].arena);
    }
}

/* Any of them may be missing or have nothing to do. */
static void test_alone(struct world *w)
{
    struct calls calls;
    submit(w, 1);
    calls_init(w, &calls, claim(w));
    weft_engine_together(w->engine, &calls.call[COMPLETES], 1, NULL, NULL);
    ok(is_completed(&calls), "%s: completed alone", name(w));
    weft_engine_together(w->engine, &calls.call[SUBMITS], 1, NULL, NULL);
    ok(is_submitted(&calls, 0), "%s: submitted alone", name(w));
    calls.spec[0].kind = "";
    calls.claim[0].lanes = (const char *const[]){"elsewhere"};
    calls.claim[0].lane_count = 1;
    calls.call[COMPLETES].count = 0;
    run_all(w, &calls);
    is_int(calls.call[COMPLETES].rc, WEFT_OK, "%s: a call without items succeeds", name(w));
    ok(!calls.call[CLAIMS].rc && calls.claimed.count == 0, "%s: nothing elsewhere", name(w));
    ok(calls.submitted[0].rc != WEFT_OK, "%s: nothing to submit", name(w));
    weft_arena_free(calls.call[CLAIMS].arena);
}

static void test_store(const struct weft_driver *driver)
{
    struct world w = {.fault = {.inner = driver, .hook = watch}};
    w.fault.context = &w;
    fixture_init(&w.f, driver);
    const struct weft_engine_config config = {.url = w.f.url,
                                              .driver = weft_fault_install(&w.fault)};
    ok(weft_engine_open(&config, &w.engine, &w.f.err) == WEFT_OK, "%s: an engine: %s", driver->name,
       w.f.err.text);
    submit(&w, 1);
    ok(claim(&w) != NULL, "%s: names are known, and the list of queues is young", driver->name);
    test_one_commit(&w);
    test_claim_beside(&w);
    test_fenced(&w);
    test_bad_neighbour(&w);
    test_not_joining(&w);
    test_struck(&w);
    test_alone(&w);
    ok(weft_engine_check(w.engine, &w.f.err) == WEFT_OK, "%s: the invariants: %s", driver->name,
       w.f.err.text);
    weft_engine_close(w.engine);
    fixture_done(&w.f);
}

int main(void)
{
    test_store(&weft_driver_sqlite);
    if (fixture_has_pg())
        test_store(&weft_driver_pg);
    else
        tap_skip("WEFT_TEST_PG is not set");
    return tap_done();
}
