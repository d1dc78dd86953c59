/* SPDX-License-Identifier: Apache-2.0 */

/* How a worker ends, what it does while the store is away, and how it can be misused. */

#include "worker_fixture.h"

#include "engine/engine.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

/* ---- Stopping -------------------------------------------------------------------------------- */

/* Quick jobs pass; a slow one waits at the gate, however long that takes. */
static enum weft_verdict handle_slow(struct weft_job *job, void *context)
{
    struct world *w = context;
    (void)job;
    box_add(&w->box, &w->box.begun);
    (void)box_gate(&w->box, PATIENCE_MS);
    pthread_mutex_lock(&w->box.lock);
    w->box.fence = weft_job_fence(job);
    pthread_mutex_unlock(&w->box.lock);
    return WEFT_DONE;
}

static enum weft_verdict handle_again(struct weft_job *job, void *context)
{
    struct world *w = context;
    (void)job;
    box_add(&w->box, &w->box.ended);
    return WEFT_DONE;
}

/* One handler stands at the gate with the rest of the work behind it. */
static void test_straggler(struct world *w)
{
    enum { BEFORE = 300, AFTER = 100 };
    submit_numbered(w, "quick", 0, BEFORE);
    struct weft_id slow = submit(w, &(struct weft_spec){.kind = "slow"});
    submit_numbered(w, "quick", BEFORE, AFTER);
    struct weft_worker *worker =
        make_worker(w, w->weft, &(struct weft_worker_options){.stop_grace_ms = 100});
    handle(w, worker, "quick", handle_numbered);
    handle(w, worker, "slow", handle_slow);
    start(w, worker);
    ok(box_wait(&w->box, &w->box.begun, 1), "%s: the slow one begins", w->store);
    is_int(weft_worker_stop(worker), 1, "%s: the slow job outlasts the grace", w->store);
    is_int(weft_worker_stop(worker), 1, "%s: a second stop returns the same", w->store);
    is_int(count_in(w, WEFT_STATE_RUNNING), 0, "%s: no lease is left behind", w->store);
    int done = w->box.ended;
    is_int(count_in(w, WEFT_STATE_SUCCEEDED), done, "%s: each finished job is stored", w->store);
    is_int(count_in(w, WEFT_STATE_READY), BEFORE + AFTER + 1 - done,
           "%s: jobs that were not begun, or not finished, are ready", w->store);
    is_int(describe(w, &slow).attempt, 1, "%s: the slow one has spent no attempt", w->store);
    struct weft_worker_stats stats;
    weft_worker_stats(worker, &stats);
    is_int(stats.running, 1, "%s: its handler still runs", w->store);
    is_int(stats.put_back, stats.claimed - stats.completed, "%s: all of it was given back",
           w->store);

    struct weft_worker *next = make_worker(w, w->weft, NULL);
    handle(w, next, "quick", handle_numbered);
    handle(w, next, "slow", handle_again);
    start(w, next);
    ok(box_wait(&w->box, &w->box.ended, BEFORE + AFTER + 1), "%s: another worker does the rest",
       w->store);
    weft_worker_free(next);
    box_open(&w->box);
    weft_worker_free(worker); /* waits for the handler */
    is_int(w->box.fence, WEFT_FENCE_RELEASED, "%s: the straggler could see that it was late",
           w->store);
    is_int(count_in(w, WEFT_STATE_SUCCEEDED), BEFORE + AFTER + 1, "%s: everything is done",
           w->store);
    ok(each_once(&w->box, BEFORE + AFTER), "%s: each quick one once", w->store);
}

/* Jobs that were taken ahead and stand behind a slow one go back without a stop. */
static void test_waited(struct world *w)
{
    enum { BEFORE = 300, AFTER = 100 };
    submit_numbered(w, "quick", 0, BEFORE);
    (void)submit(w, &(struct weft_spec){.kind = "slow"});
    submit_numbered(w, "quick", BEFORE, AFTER);
    struct weft_worker *worker = make_worker(w, w->weft, NULL);
    handle(w, worker, "quick", handle_numbered);
    handle(w, worker, "slow", handle_slow);
    start(w, worker);
    ok(box_wait(&w->box, &w->box.begun, 1), "%s: a slow one with others behind it", w->store);
    struct box pause;
    box_init(&pause);
    uint64_t held = 0;
    for (int i = 0; i < PATIENCE_MS / 100; i++) {
        struct weft_worker_stats stats;
        (void)box_gate(&pause, 100);
        weft_worker_stats(worker, &stats);
        held = stats.claimed - stats.completed - stats.put_back;
        if (held == 1 && i > 10)
            break; /* for a moment it could be so before anything was taken ahead */
    }
    is_int(held, 1, "%s: the others are not kept waiting", w->store);
    box_open(&w->box);
    ok(box_wait(&w->box, &w->box.ended, BEFORE + AFTER), "%s: the quick jobs are done in the end",
       w->store);
    weft_worker_free(worker);
    ok(each_once(&w->box, BEFORE + AFTER), "%s: each job runs once", w->store);
}

/* Goes away as soon as it is asked to. */
static enum weft_verdict handle_polite(struct weft_job *job, void *context)
{
    struct world *w = context;
    box_add(&w->box, &w->box.begun);
    for (int i = 0; i < PATIENCE_MS / 5 && !weft_job_stopping(job); i++)
        (void)box_gate(&w->box, 5);
    return weft_job_fence(job) == WEFT_FENCE_NONE ? WEFT_NOT_NOW : WEFT_GIVE_UP;
}

static void test_polite(struct world *w)
{
    struct weft_id id = submit(w, &(struct weft_spec){.kind = "polite"});
    struct weft_worker *worker = make_worker(w, w->weft, NULL);
    handle(w, worker, "polite", handle_polite);
    start(w, worker);
    ok(box_wait(&w->box, &w->box.begun, 1), "%s: a polite one begins", w->store);
    is_int(weft_worker_stop(worker), 0, "%s: the handler returns within the grace", w->store);
    struct weft_execution found = describe(w, &id);
    is_int(found.state, WEFT_STATE_READY, "%s: the execution is ready again", w->store);
    is_int(found.attempt, 1, "%s: the execution has spent no attempt", w->store);
    weft_worker_free(worker);
}

/* ---- The store goes away --------------------------------------------------------------------- */

/* Results that the store does not take are kept until it does, and no more work is taken. */
static void test_refused(struct world *w)
{
    enum { JOBS = 50, REFUSED = 3 };
    static const struct {
        enum weft_stmt stmt;
        const char *name;
    } row[] = {{WEFT_STMT_LIVE_END, "complete"}, {WEFT_STMT_CLAIM, "claim"}};
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct refusal refusal = {.stmt = row[i].stmt, .left = REFUSED};
        struct weft *weft = NULL;
        refusal_init(w, &refusal, &weft);
        memset(w->box.seen, 0, sizeof(w->box.seen));
        w->box.ended = 0;
        submit_numbered(w, "square", 0, JOBS);
        struct weft_worker *worker =
            make_worker(w, weft, &(struct weft_worker_options){.threads = 2});
        handle(w, worker, "square", handle_numbered);
        start(w, worker);
        ok(box_wait(&w->box, &w->box.ended, JOBS), "%s: %s refused: all are handled", w->store,
           row[i].name);
        is_int(weft_worker_stop(worker), 0, "%s: %s refused: it stops", w->store, row[i].name);
        struct weft_worker_stats stats;
        weft_worker_stats(worker, &stats);
        is_int(stats.completed, JOBS, "%s: %s refused: all are completed", w->store, row[i].name);
        ok(stats.store_errors >= REFUSED && stats.last_error.rc == WEFT_STORAGE_FULL,
           "%s: %s refused: the errors are counted, the last is kept", w->store, row[i].name);
        ok(each_once(&w->box, JOBS), "%s: %s refused: each once", w->store, row[i].name);
        weft_worker_free(worker);
        weft_close(weft);
    }
    is_int(count_in(w, WEFT_STATE_RUNNING), 0, "%s: nothing is left running", w->store);
}

/* The connection breaks at each of the first calls in turn: nothing is lost, nothing done twice. */
static void test_lost(struct world *w)
{
    enum { JOBS = 20, STEP = 7, LAST = 60 };
    for (uint64_t at = 1; at < LAST; at += STEP) {
        struct refusal refusal = {.stmt = WEFT_STMT_COUNT};
        struct weft *weft = NULL;
        refusal_init(w, &refusal, &weft);
        refusal.fault.hook = NULL;
        refusal.fault.kind = at % 2 ? WEFT_FAULT_LOSE : WEFT_FAULT_LOSE_REPLY;
        memset(w->box.seen, 0, sizeof(w->box.seen));
        w->box.ended = 0;
        submit_numbered(w, "square", 0, JOBS);
        __atomic_store_n(&refusal.fault.strike_at, at, __ATOMIC_RELAXED);
        struct weft_worker *worker =
            make_worker(w, weft, &(struct weft_worker_options){.threads = 2});
        handle(w, worker, "square", handle_numbered);
        start(w, worker);
        ok(box_wait(&w->box, &w->box.ended, JOBS), "%s: lost at call %d: all are handled", w->store,
           (int)at);
        (void)weft_worker_stop(worker);
        struct weft_worker_stats stats;
        weft_worker_stats(worker, &stats);
        is_int(stats.completed, JOBS, "%s: lost at call %d: all are completed", w->store, (int)at);
        weft_worker_free(worker);
        weft_close(weft);
    }
    is_int(count_in(w, WEFT_STATE_RUNNING), 0, "%s: nothing is left running", w->store);
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

static void test_options(struct world *w)
{
    static const char *const bad[] = {"a b"};
    static const struct {
        const char *name;
        struct weft_worker_options options;
        enum weft_rc want;
    } row[] = {
        {"name", {.name = "a b"}, WEFT_INVALID_VALUE},
        {"lanes", {.lanes = bad, .lane_count = 1}, WEFT_INVALID_VALUE},
        {"no lanes", {.lane_count = 1}, WEFT_INVALID_VALUE},
        {"many lanes", {.lanes = bad, .lane_count = 65}, WEFT_TOO_LARGE},
        {"capabilities", {.capabilities = bad, .capability_count = 1}, WEFT_INVALID_VALUE},
        {"no capabilities", {.capability_count = 1}, WEFT_INVALID_VALUE},
        {"threads", {.threads = 1001}, WEFT_INVALID_VALUE},
        {"short lease", {.lease_ms = 999}, WEFT_INVALID_VALUE},
        {"poll", {.poll_ms = -1}, WEFT_INVALID_VALUE},
        {"grace", {.stop_grace_ms = -1}, WEFT_INVALID_VALUE},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_worker *none = NULL;
        is_int(weft_worker_new(w->weft, &row[i].options, &none, &w->err), row[i].want,
               "options: %s: %s", row[i].name, w->err.text);
    }
}

static void test_mistakes(struct world *w)
{
    test_options(w);
    struct weft_worker *worker = NULL;
    is_int(weft_worker_new(NULL, NULL, &worker, &w->err), WEFT_INVALID_VALUE,
           "a worker without a handle is refused");
    is_int(weft_worker_new(w->weft, NULL, NULL, NULL), WEFT_INVALID_VALUE, "no place for it");
    worker = make_worker(w, w->weft, NULL);
    is_int(weft_worker_start(worker, &w->err), WEFT_INVALID_VALUE, "no kinds: %s", w->err.text);
    is_int(weft_worker_on(worker, "k", NULL, NULL, &w->err), WEFT_INVALID_VALUE,
           "a worker without a handler is refused");
    is_int(weft_worker_on(worker, "a b", handle_again, w, &w->err), WEFT_INVALID_VALUE, "bad kind");
    is_int(weft_worker_on(worker, "", handle_again, w, &w->err), WEFT_INVALID_VALUE,
           "a worker without a kind is refused");
    is_int(weft_worker_on(worker, NULL, handle_again, w, &w->err), WEFT_OK, "all other kinds");
    is_int(weft_worker_on(worker, NULL, handle_again, w, &w->err), WEFT_CONFLICT, "two of them");
    is_int(weft_worker_on(worker, "k", handle_again, w, &w->err), WEFT_OK, "a kind");
    is_int(weft_worker_on(worker, "k", handle_again, w, &w->err), WEFT_CONFLICT,
           "a second handler for a kind is refused");
    is_int(weft_worker_stop(worker), 0, "a worker that was not started may be stopped");
    is_int(weft_worker_start(worker, &w->err), WEFT_OK,
           "a worker that was stopped before its start can be started");
    is_int(weft_worker_start(worker, &w->err), WEFT_CONFLICT,
           "a started worker cannot be started again");
    is_int(weft_worker_on(worker, "l", handle_again, w, &w->err), WEFT_CONFLICT,
           "the kinds of a started worker are fixed");
    weft_worker_free(worker);
    weft_worker_free(make_worker(w, w->weft, NULL));
    weft_worker_free(NULL);
    is_int(weft_worker_stop(NULL), 0, "there is nothing to stop");
    weft_worker_stats(NULL, NULL);
    ok(weft_job_stopping(NULL) && !weft_job_claimed(NULL), "there is no job");
    weft_job_progress(NULL, 1, NULL);
    weft_job_result(NULL, NULL, 0, NULL);
    weft_job_error(NULL, NULL, NULL);
    weft_job_delay(NULL, 1);
    is_int(weft_job_fence(NULL), WEFT_FENCE_UNKNOWN, "a NULL job has no fence");
}

/* ---- Every test on every store --------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(struct world *w);
    bool own; /* needs an engine of its own */
} tests[] = {
    {"straggler", test_straggler, false},
    {"waited", test_waited, false},
    {"polite", test_polite, false},
    {"refused", test_refused, true},
    {"lost", test_lost, true},
    {"mistakes", test_mistakes, false},
};

int main(int argc, char **argv)
{
    for (size_t s = 0; s < WEFT_LEN(world_stores); s++)
        for (size_t t = 0; t < WEFT_LEN(tests); t++) {
            if ((argc > 1 && strcmp(argv[1], tests[t].name) != 0) ||
                !world_exists(world_stores[s]) || (tests[t].own && world_is_http(world_stores[s])))
                continue;
            struct world w;
            world_init(&w, world_stores[s]);
            tests[t].run(&w);
            (void)describe(&w, NULL);
            world_done(&w);
        }
    return tap_done();
}
