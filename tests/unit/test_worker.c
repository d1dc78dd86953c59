/* SPDX-License-Identifier: Apache-2.0 */

/* A worker runs each job once, in time, and reports what the handler returned. */

#include "worker_fixture.h"

#include "base/str.h"

/* ---- Work is done, once ---------------------------------------------------------------------- */

static void test_once(struct world *w)
{
    enum { JOBS = 500 };
    submit_numbered(w, "square", 0, JOBS);
    struct weft_id one =
        submit(w, &(struct weft_spec){.kind = "square", .payload = "900", .payload_size = 3});
    struct weft_worker *worker =
        make_worker(w, w->weft, &(struct weft_worker_options){.threads = 4});
    handle(w, worker, "square", handle_numbered);
    start(w, worker);
    ok(box_wait(&w->box, &w->box.ended, JOBS + 1), "%s: all are handled", w->store);
    is_int(weft_worker_stop(worker), 0, "%s: no handler is left running", w->store);
    ok(each_once(&w->box, JOBS), "%s: each job runs once", w->store);
    is_int(count_in(w, WEFT_STATE_SUCCEEDED), JOBS + 1, "%s: all have succeeded", w->store);
    struct weft_worker_stats stats;
    weft_worker_stats(worker, &stats);
    is_int(stats.claimed, JOBS + 1, "%s: all jobs were claimed", w->store);
    is_int(stats.completed, JOBS + 1, "%s: all jobs were completed", w->store);
    is_int(stats.store_errors, 0, "%s: no store errors %s", w->store, stats.last_error.text);
    ok(stats.running == 0 && stats.fenced == 0 && stats.put_back == 0,
       "%s: no job runs, was fenced or was put back", w->store);
    struct weft_bytes bytes = {0};
    ok(weft_result(w->weft, &one, &bytes, &w->err) == WEFT_OK && bytes.size == 17 &&
           memcmp(bytes.data, "{\"square\":810000}", 17) == 0,
       "%s: the result is stored", w->store);
    weft_bytes_free(&bytes);
    struct weft_execution found = describe(w, &one);
    ok(found.worker && weft_name_valid(found.worker), "%s: done by %s", w->store,
       found.worker ? found.worker : "no worker");
    weft_worker_free(worker);
}

static void test_kinds(struct world *w)
{
    submit_numbered(w, "mine", 0, 10);
    struct weft_id other = submit(w, &(struct weft_spec){.kind = "other"});
    struct weft_id lane = submit(w, &(struct weft_spec){.kind = "mine", .lane = "elsewhere"});
    struct weft_worker *worker = make_worker(w, w->weft, NULL);
    handle(w, worker, "mine", handle_numbered);
    start(w, worker);
    ok(box_wait(&w->box, &w->box.ended, 10), "%s: its kind is done", w->store);
    (void)weft_worker_stop(worker);
    is_int(describe(w, &other).epoch, 0, "%s: another kind was never claimed", w->store);
    is_int(describe(w, &lane).epoch, 0, "%s: another lane was never claimed", w->store);
    weft_worker_free(worker);
}

static enum weft_verdict handle_rest(struct weft_job *job, void *context)
{
    struct world *w = context;
    (void)job;
    box_add(&w->box, &w->box.begun);
    return WEFT_DONE;
}

/* A handler for all kinds that have none of their own. */
static void test_rest(struct world *w)
{
    submit_numbered(w, "mine", 0, 10);
    struct weft_id id[3];
    static const char *const kind[] = {"one", "two", "one"};
    struct weft_worker *worker =
        make_worker(w, w->weft, &(struct weft_worker_options){.threads = 2});
    handle(w, worker, NULL, handle_rest);
    handle(w, worker, "mine", handle_numbered);
    start(w, worker);
    for (size_t i = 0; i < WEFT_LEN(id); i++)
        id[i] = submit(w, &(struct weft_spec){.kind = kind[i]});
    ok(box_wait(&w->box, &w->box.ended, 10), "%s: its kind has a handler of its own", w->store);
    ok(box_wait(&w->box, &w->box.begun, 3), "%s: the other kinds have the general one", w->store);
    (void)weft_worker_stop(worker);
    ok(each_once(&w->box, 10), "%s: each job runs once", w->store);
    is_int(w->box.begun, 3, "%s: nor more often", w->store);
    for (size_t i = 0; i < WEFT_LEN(id); i++)
        is_int(describe(w, &id[i]).state, WEFT_STATE_SUCCEEDED, "%s: kind %s is done", w->store,
               kind[i]);
    weft_worker_free(worker);
}

/* Several workers of two handles, which stand for two processes. */
static void test_many(struct world *w)
{
    enum { JOBS = 400, WORKERS = 6 };
    struct weft *second = world_open(w);
    submit_numbered(w, "square", 0, JOBS);
    struct weft_worker *worker[WORKERS];
    for (size_t i = 0; i < WORKERS; i++) {
        worker[i] = make_worker(w, i % 2 ? second : w->weft,
                                &(struct weft_worker_options){.threads = 2, .poll_ms = 20});
        handle(w, worker[i], "square", handle_numbered);
        start(w, worker[i]);
    }
    ok(box_wait(&w->box, &w->box.ended, JOBS), "%s: many workers do it all", w->store);
    uint64_t completed = 0;
    for (size_t i = 0; i < WORKERS; i++) {
        is_int(weft_worker_stop(worker[i]), 0, "%s: worker %zu stops", w->store, i);
        struct weft_worker_stats stats;
        weft_worker_stats(worker[i], &stats);
        completed += stats.completed;
        weft_worker_free(worker[i]);
    }
    ok(each_once(&w->box, JOBS), "%s: each job runs once", w->store);
    is_int(completed, JOBS, "%s: together they completed all", w->store);
    is_int(count_in(w, WEFT_STATE_SUCCEEDED), JOBS, "%s: all have succeeded", w->store);
    weft_close(second);
}

/* ---- Waking ---------------------------------------------------------------------------------- */

/* Submits its successor on the same handle until ten have run. */
static enum weft_verdict handle_chain(struct weft_job *job, void *context)
{
    struct world *w = context;
    int number = number_of(job);
    if (number < 9) {
        char text[12];
        int size = snprintf(text, sizeof(text), "%d", number + 1);
        const struct weft_spec spec = {
            .kind = "chain", .payload = text, .payload_size = (size_t)size};
        struct weft_submitted answer;
        struct weft_err err;
        if (weft_submit(w->weft, &spec, 1, &answer, &err))
            return WEFT_RETRY;
    }
    box_add(&w->box, &w->box.ended);
    return WEFT_DONE;
}

/* The worker polls once in an hour: only being woken can make it work now. */
static void test_wake(struct world *w)
{
    struct weft_worker *worker =
        make_worker(w, w->weft, &(struct weft_worker_options){.threads = 2, .poll_ms = 3600000});
    handle(w, worker, "chain", handle_chain);
    handle(w, worker, "square", handle_numbered);
    start(w, worker);
    (void)submit(w, &(struct weft_spec){.kind = "chain", .payload = "0", .payload_size = 1});
    ok(box_wait(&w->box, &w->box.ended, 10), "%s: submissions wake the worker, in handlers too",
       w->store);
    (void)submit(w, &(struct weft_spec){
                        .kind = "square", .payload = "1", .payload_size = 1, .delay_ms = 150});
    ok(box_wait(&w->box, &w->box.ended, 11), "%s: a delayed job wakes the worker when it is due",
       w->store);
    if (world_is_pg(w->store)) {
        world_sql(w, "SELECT weft.weft_submit('square', '2')");
        ok(box_wait(&w->box, &w->box.ended, 12), "%s: a job submitted by SQL wakes the worker",
           w->store);
    }
    weft_worker_free(worker);
}

/* ---- Leases ---------------------------------------------------------------------------------- */

/* Waits for longer than its lease. */
static enum weft_verdict handle_long(struct weft_job *job, void *context)
{
    struct world *w = context;
    weft_job_progress(job, 50, "half\nway");
    box_add(&w->box, &w->box.begun);
    (void)box_gate(&w->box, 1500);
    bool stopping = weft_job_stopping(job);
    box_add(&w->box, &w->box.ended);
    return stopping ? WEFT_GIVE_UP : WEFT_DONE;
}

static void test_heartbeat(struct world *w)
{
    struct weft_id id = submit(w, &(struct weft_spec){.kind = "long"});
    struct weft *second = world_open(w);
    struct weft_worker *worker[2];
    for (size_t i = 0; i < 2; i++) {
        worker[i] = make_worker(
            w, i ? second : w->weft,
            &(struct weft_worker_options){.lease_ms = 1000, .poll_ms = 20, .threads = 2});
        handle(w, worker[i], "long", handle_long);
        start(w, worker[i]);
    }
    ok(box_wait(&w->box, &w->box.begun, 1), "%s: a long job begins", w->store);
    ok(box_wait(&w->box, &w->box.ended, 1), "%s: the long job ends after 1.5 leases", w->store);
    struct weft_execution running = describe(w, &id);
    ok(running.state == WEFT_STATE_SUCCEEDED || running.percent == 50,
       "%s: progress rode along with a heartbeat", w->store);
    (void)weft_worker_stop(worker[0]);
    (void)weft_worker_stop(worker[1]);
    struct weft_execution found = describe(w, &id);
    is_int(found.state, WEFT_STATE_SUCCEEDED, "%s: the long job has succeeded", w->store);
    is_int(found.lost, 0, "%s: the lease was never lost", w->store);
    is_int(found.epoch, 1, "%s: the job was claimed once, with two workers", w->store);
    is_int(w->box.begun, 1, "%s: the job was run once", w->store);
    weft_worker_free(worker[0]);
    weft_worker_free(worker[1]);
    weft_close(second);
}

/* Works until the worker asks it to stop. */
static enum weft_verdict handle_until_stopped(struct weft_job *job, void *context)
{
    struct world *w = context;
    box_add(&w->box, &w->box.begun);
    for (int i = 0; i < PATIENCE_MS / 10 && !weft_job_stopping(job); i++)
        (void)box_gate(&w->box, 10);
    pthread_mutex_lock(&w->box.lock);
    w->box.fence = weft_job_fence(job);
    pthread_mutex_unlock(&w->box.lock);
    box_add(&w->box, &w->box.ended);
    return WEFT_DONE;
}

static void test_cancel(struct world *w)
{
    struct weft_id id = submit(w, &(struct weft_spec){.kind = "endless"});
    struct weft_worker *worker =
        make_worker(w, w->weft, &(struct weft_worker_options){.lease_ms = 1000});
    handle(w, worker, "endless", handle_until_stopped);
    start(w, worker);
    ok(box_wait(&w->box, &w->box.begun, 1), "%s: an endless job begins", w->store);
    const struct weft_steer cancel = {.id = id, .reason = "enough"};
    struct weft_steered steered = {0};
    ok(weft_steer(w->weft, WEFT_STEER_CANCEL, &cancel, 1, &steered, &w->err) == WEFT_OK &&
           steered.changed,
       "%s: the job is cancelled", w->store);
    ok(box_wait(&w->box, &w->box.ended, 1), "%s: the handler sees the cancel", w->store);
    is_int(w->box.fence, WEFT_FENCE_CANCELLED, "%s: the handler sees the reason", w->store);
    (void)weft_worker_stop(worker);
    struct weft_worker_stats stats;
    weft_worker_stats(worker, &stats);
    is_int(stats.fenced, 1, "%s: its word is not heard", w->store);
    is_int(describe(w, &id).state, WEFT_STATE_CANCELLED, "%s: the job stays cancelled", w->store);
    weft_worker_free(worker);
}

static int64_t now_ms(void)
{
    return weft_mono_us() / WEFT_MS;
}

/* With a heartbeat every 20 s only a watch can tell in time; `who` may be another process. */
static void cancel_promptly(struct world *w, struct weft *who, const char *by)
{
    struct box *box = &w->box;
    int before = box->ended;
    struct weft_id id = submit(w, &(struct weft_spec){.kind = "endless", .lane = "narrow"});
    ok(box_wait(box, &box->begun, before + 1), "%s: an endless job begins", w->store);
    const struct weft_steer cancel = {.id = id};
    struct weft_steered steered = {0};
    int64_t began = now_ms();
    ok(weft_steer(who, WEFT_STEER_CANCEL, &cancel, 1, &steered, &w->err) == WEFT_OK, "%s: cancel",
       w->store);
    ok(box_wait(box, &box->ended, before + 1), "%s: the handler is asked to stop", w->store);
    int64_t took = now_ms() - began;
    is_int(box->fence, WEFT_FENCE_CANCELLED, "%s: the handler sees the reason", w->store);
    ok(took < 5000, "%s: cancelled by %s, seen after %lld ms, before the heartbeat", w->store, by,
       (long long)took);
}

static void test_cancel_is_prompt(struct world *w)
{
    static const char *const narrow[] = {"narrow"};
    struct weft *other = world_open(w);
    struct weft_worker *worker = make_worker(
        w, w->weft,
        &(struct weft_worker_options){.lease_ms = 60000, .lanes = narrow, .lane_count = 1});
    handle(w, worker, "endless", handle_until_stopped);
    start(w, worker);
    cancel_promptly(w, w->weft, "the same handle");
    cancel_promptly(w, other, "another handle");
    (void)weft_worker_stop(worker);
    struct weft_counts counts = {0};
    ok(weft_counts(w->weft, "narrow", &counts, &w->err) == WEFT_OK, "%s: counts", w->store);
    ok(counts.count == 0 || counts.item[0].draining == 0, "%s: the worker let go of both",
       w->store);
    weft_counts_free(&counts);
    weft_worker_free(worker);
    weft_close(other);
}

/* Stays a while after it was asked to stop, as long as the gate is shut. */
static enum weft_verdict handle_slowly(struct weft_job *job, void *context)
{
    struct world *w = context;
    pthread_mutex_lock(&w->box.lock);
    bool alone = w->box.begun == w->box.ended;
    w->box.seen[0] += !alone;
    pthread_mutex_unlock(&w->box.lock);
    box_add(&w->box, &w->box.begun);
    for (int i = 0; i < PATIENCE_MS / 10 && !weft_job_stopping(job); i++)
        (void)box_gate(&w->box, 10);
    box_add(&w->box, &w->box.seen[1]); /* it knows, and stays */
    (void)box_gate(&w->box, PATIENCE_MS);
    box_add(&w->box, &w->box.ended);
    return WEFT_DONE;
}

/* A lane of limit 1: the next one begins when the handler of a cancelled one has returned. */
static void test_cancelled_keeps_its_slot(struct world *w)
{
    static const char *const narrow[] = {"narrow"};
    const struct weft_lane lane = {.name = "narrow", .max_running = 1};
    ok(weft_lane_put(w->weft, &lane, &w->err) == WEFT_OK, "%s: a lane of limit 1", w->store);
    struct weft_worker *worker =
        make_worker(w, w->weft,
                    &(struct weft_worker_options){
                        .lease_ms = 60000, .lanes = narrow, .lane_count = 1, .threads = 2});
    handle(w, worker, "slow", handle_slowly);
    const struct weft_spec spec = {.kind = "slow", .lane = "narrow"};
    struct weft_id first = submit(w, &spec);
    start(w, worker);
    ok(box_wait(&w->box, &w->box.begun, 1), "%s: the first begins", w->store);
    struct weft_id second = submit(w, &spec);
    const struct weft_steer cancel = {.id = first};
    struct weft_steered steered = {0};
    ok(weft_steer(w->weft, WEFT_STEER_CANCEL, &cancel, 1, &steered, &w->err) == WEFT_OK,
       "%s: the job is cancelled", w->store);
    ok(box_wait(&w->box, &w->box.seen[1], 1),
       "%s: the handler has seen the cancel and has not returned", w->store);
    const char *const lanes[] = {"narrow"};
    const struct weft_claim claim = {.worker = "another", .lanes = lanes, .lane_count = 1};
    struct weft_claims none = {0};
    ok(weft_claim(w->weft, &claim, 1, &none, &w->err) == WEFT_OK && none.count == 0,
       "%s: no worker gets the second job", w->store);
    weft_claims_free(&none);
    is_int(describe(w, &second).state, WEFT_STATE_READY, "%s: the second job is ready", w->store);
    box_open(&w->box);
    int64_t began = now_ms();
    ok(box_wait(&w->box, &w->box.begun, 2),
       "%s: the second job begins when the handler has returned", w->store);
    ok(now_ms() - began < 5000, "%s: at once: %lld ms", w->store, (long long)(now_ms() - began));
    is_int(w->box.seen[0], 0, "%s: never two at once", w->store);
    const struct weft_steer end = {.id = second};
    ok(weft_steer(w->weft, WEFT_STEER_CANCEL, &end, 1, &steered, &w->err) == WEFT_OK, "%s: over",
       w->store);
    weft_worker_free(worker);
}

/* ---- Verdicts -------------------------------------------------------------------------------- */

static enum weft_verdict handle_moods(struct weft_job *job, void *context)
{
    struct world *w = context;
    static char large[2 << 20];
    const char *mood = weft_job_claimed(job)->kind;
    bool first = weft_job_claimed(job)->epoch == 1;
    enum weft_verdict verdict = WEFT_DONE;
    if (strcmp(mood, "flaky") == 0 && first) {
        weft_job_error(job, "fl\naky", "once \xff more");
        weft_job_delay(job, 0);
        verdict = WEFT_RETRY;
    } else if (strcmp(mood, "hopeless") == 0) {
        weft_job_error(job, "hopeless", "no use");
        verdict = WEFT_GIVE_UP;
    } else if (strcmp(mood, "later") == 0 && first) {
        weft_job_delay(job, 40);
        verdict = WEFT_NOT_NOW;
    } else if (strcmp(mood, "large") == 0) {
        weft_job_result(job, large, sizeof(large), NULL);
    } else if (strcmp(mood, "odd") == 0 && first) {
        weft_job_delay(job, 1);
        verdict = (enum weft_verdict)99;
    }
    box_add(&w->box, &w->box.ended);
    return verdict;
}

static void test_verdicts(struct world *w)
{
    static const char *const mood[] = {"flaky", "hopeless", "later", "large", "odd"};
    enum { FLAKY, HOPELESS, LATER, LARGE, ODD, MOODS };
    struct weft_id id[MOODS];
    struct weft_worker *worker =
        make_worker(w, w->weft, &(struct weft_worker_options){.threads = 3});
    for (size_t i = 0; i < MOODS; i++) {
        id[i] = submit(w, &(struct weft_spec){.kind = mood[i]});
        handle(w, worker, mood[i], handle_moods);
    }
    start(w, worker);
    ok(box_wait(&w->box, &w->box.ended, MOODS + 3), "%s: moods are handled, three of them twice",
       w->store);
    (void)weft_worker_stop(worker);
    struct weft_execution found = describe(w, &id[FLAKY]);
    is_int(found.state, WEFT_STATE_SUCCEEDED, "%s: flaky: succeeds", w->store);
    is_int(found.attempt, 2, "%s: flaky: at the second attempt", w->store);
    struct weft_attempts attempts = {0};
    ok(weft_attempts(w->weft, &id[FLAKY], &attempts, &w->err) == WEFT_OK && attempts.count >= 1,
       "%s: flaky: the first is remembered", w->store);
    is_str(attempts.count ? attempts.item[0].error_class : NULL, "fl aky",
           "%s: flaky: with its class, made printable", w->store);
    is_str(attempts.count ? attempts.item[0].error_message : NULL, "once ? more",
           "%s: flaky: and its message, made valid", w->store);
    weft_attempts_free(&attempts);
    found = describe(w, &id[HOPELESS]);
    is_int(found.state, WEFT_STATE_FAILED, "%s: hopeless: fails for good", w->store);
    is_str(found.error_class, "hopeless", "%s: hopeless: with its class", w->store);
    found = describe(w, &id[LATER]);
    is_int(found.state, WEFT_STATE_SUCCEEDED, "%s: later: succeeds later", w->store);
    is_int(found.attempt, 1, "%s: later: and spent no attempt", w->store);
    found = describe(w, &id[LARGE]);
    is_int(found.state, WEFT_STATE_FAILED, "%s: large: a result that is too large", w->store);
    is_str(found.error_class, "result_refused", "%s: large: has a class of its own", w->store);
    is_int(describe(w, &id[ODD]).state, WEFT_STATE_SUCCEEDED,
           "%s: odd: an invalid verdict is a retry", w->store);
    weft_worker_free(worker);
}

/* ---- Every test on every store --------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(struct world *w);
} tests[] = {
    {"once", test_once},
    {"kinds", test_kinds},
    {"rest", test_rest},
    {"many", test_many},
    {"wake", test_wake},
    {"heartbeat", test_heartbeat},
    {"cancel", test_cancel},
    {"cancel is prompt", test_cancel_is_prompt},
    {"slot", test_cancelled_keeps_its_slot},
    {"verdicts", test_verdicts},
};

int main(int argc, char **argv)
{
    for (size_t s = 0; s < WEFT_LEN(world_stores); s++)
        for (size_t t = 0; t < WEFT_LEN(tests); t++) {
            if ((argc > 1 && strcmp(argv[1], tests[t].name) != 0) || !world_exists(world_stores[s]))
                continue;
            struct world w;
            world_init(&w, world_stores[s]);
            tests[t].run(&w);
            (void)describe(&w, NULL);
            world_done(&w);
        }
    return tap_done();
}
