/* SPDX-License-Identifier: Apache-2.0 */

/* Handlers that suspend: by signals and timeouts, at once, refused, fenced, stopped, interrupted.
 */

#include "worker_fixture.h"

#include "store/store.h"
#include "weft/weft.h"

enum { TOKEN_TEXT = 256 };

/* What the handlers below tell the test. The lock of the box guards it; one test at a time. */
static struct {
    char token[TOKEN_TEXT];
    struct weft_id waitpoint;
    enum weft_resumed_by resumed_by;
    int32_t epoch;
    size_t signals;
    char payload[16];
    bool early; /* the handler signals before it suspends */
} told;

static void tell(struct world *w, const struct weft_job *job)
{
    size_t count;
    const struct weft_claimed *claimed = weft_job_claimed(job);
    const struct weft_signal_info *signal = weft_job_signals(job, &count);
    pthread_mutex_lock(&w->box.lock);
    told.resumed_by = claimed->resumed_by;
    told.epoch = claimed->epoch;
    told.signals = count;
    if (count > 0)
        (void)snprintf(told.payload, sizeof(told.payload), "%.*s",
                       (int)signal[count - 1].payload_size,
                       (const char *)signal[count - 1].payload);
    pthread_mutex_unlock(&w->box.lock);
}

static enum weft_signal_effect send_signal(struct world *w, const char *token)
{
    const struct weft_signal signal = {
        .token = token, .name = "approved", .payload = "\"ann\"", .payload_size = 5};
    struct weft_signalled sent = {0};
    struct weft_err err = {0};
    if (weft_signal(w->weft, &signal, 1, &sent, &err) || sent.err.rc)
        printf("# the signal was not sent: %s%s\n", err.text, sent.err.text);
    return sent.effect;
}

/* Makes a waitpoint, perhaps signals it, and asks to suspend there. */
static enum weft_verdict suspend_at_new(struct weft_job *job, struct world *w)
{
    struct weft_waitpoint waitpoint;
    struct weft_err err = {0};
    if (weft_job_waitpoint(job, "approval", 0, &waitpoint, &err)) {
        weft_job_error(job, "waitpoint", err.text);
        return WEFT_GIVE_UP;
    }
    pthread_mutex_lock(&w->box.lock);
    (void)snprintf(told.token, sizeof(told.token), "%s", waitpoint.token);
    told.waitpoint = waitpoint.id;
    pthread_mutex_unlock(&w->box.lock);
    if (told.early)
        (void)send_signal(w, waitpoint.token);
    const struct weft_suspend_at at = {.id = waitpoint.id};
    char reason[] = "waiting_for_approval";
    weft_job_suspend(
        job, &(struct weft_suspend){.waitpoint = &at, .waitpoint_count = 1, .reason = reason});
    reason[0] = 'X'; /* the request was copied */
    return WEFT_SUSPEND;
}

static enum weft_verdict handle_approval(struct weft_job *job, void *context)
{
    struct world *w = context;
    box_add(&w->box, &w->box.begun);
    if (!weft_job_claimed(job)->resumed)
        return suspend_at_new(job, w);
    tell(w, job);
    weft_job_result(job, "true", 4, NULL);
    return WEFT_DONE;
}

static bool wait_state(struct world *w, const struct weft_id *id, enum weft_state state)
{
    struct box pause;
    bool there = false;
    box_init(&pause);
    for (int waited = 0; waited < PATIENCE_MS && !there; waited += 5) {
        there = describe(w, id).state == state;
        if (!there)
            (void)box_gate(&pause, 5);
    }
    pthread_cond_destroy(&pause.changed);
    pthread_mutex_destroy(&pause.lock);
    return there;
}

static struct weft_worker *begin(struct world *w, weft_handler handler)
{
    struct weft_worker *worker = make_worker(
        w, w->weft, &(struct weft_worker_options){.threads = 2, .poll_ms = 20, .lease_ms = 5000});
    handle(w, worker, "mine", handler);
    start(w, worker);
    return worker;
}

/* Stops the worker and says what it did. */
static struct weft_worker_stats end(struct world *w, struct weft_worker *worker)
{
    struct weft_worker_stats stats;
    is_int(weft_worker_stop(worker), 0, "%s: the worker stops", w->store);
    weft_worker_stats(worker, &stats);
    weft_worker_free(worker);
    return stats;
}

static struct weft_id submit_mine(struct world *w)
{
    static const struct weft_policy once = {.max_attempts = 1};
    memset(&told, 0, sizeof(told));
    return submit(w, &(struct weft_spec){.kind = "mine", .policy = &once});
}

/* ---- Going on -------------------------------------------------------------------------------- */

static void test_signal(struct world *w)
{
    struct weft_id id = submit_mine(w);
    struct weft_worker *worker = begin(w, handle_approval);
    ok(wait_state(w, &id, WEFT_STATE_SUSPENDED), "%s: the execution is suspended", w->store);
    is_str(describe(w, &id).reason, "waiting_for_approval", "%s: the reason is stored", w->store);
    is_int(send_signal(w, told.token), WEFT_SIGNAL_RESUMED, "%s: the signal resumes it", w->store);
    ok(wait_state(w, &id, WEFT_STATE_SUCCEEDED), "%s: its next lease completes it", w->store);
    ok(told.resumed_by == WEFT_RESUMED_BY_SIGNALS && told.signals == 1 && told.epoch == 2,
       "%s: the handler has the signal under a new lease", w->store);
    is_str(told.payload, "\"ann\"", "%s: with its payload", w->store);
    struct weft_worker_stats stats = end(w, worker);
    ok(stats.suspended == 1 && stats.completed == 1 && stats.claimed == 2,
       "%s: one suspend and one completion are counted", w->store);
}

static void test_satisfied(struct world *w)
{
    struct weft_id id = submit_mine(w);
    told.early = true;
    struct weft_worker *worker = begin(w, handle_approval);
    ok(wait_state(w, &id, WEFT_STATE_SUCCEEDED), "%s: an early signal is enough", w->store);
    ok(told.resumed_by == WEFT_RESUMED_BY_SIGNALS && told.signals == 1,
       "%s: the handler has the early signal", w->store);
    is_str(told.payload, "\"ann\"", "%s: a copy of its payload", w->store);
    is_int(told.epoch, 1, "%s: the lease stayed", w->store);
    is_int(w->box.begun, 2, "%s: the handler was called twice", w->store);
    struct weft_worker_stats stats = end(w, worker);
    ok(stats.suspended == 0 && stats.completed == 1 && stats.claimed == 1,
       "%s: no suspend is counted", w->store);
}

static enum weft_verdict handle_sleep(struct weft_job *job, void *context)
{
    struct world *w = context;
    if (weft_job_claimed(job)->resumed) {
        tell(w, job);
        return WEFT_DONE;
    }
    weft_job_suspend(job, &(struct weft_suspend){.condition = "{\"timeout\":true}",
                                                 .timeout_ms = 20,
                                                 .on_timeout = WEFT_ON_TIMEOUT_RESUME});
    return WEFT_SUSPEND;
}

static void test_timeout(struct world *w)
{
    struct weft_id id = submit_mine(w);
    struct weft_worker *worker = begin(w, handle_sleep);
    ok(wait_state(w, &id, WEFT_STATE_SUCCEEDED), "%s: a timeout resumes", w->store);
    is_int(told.resumed_by, WEFT_RESUMED_BY_TIMEOUT, "%s: the handler sees why", w->store);
    is_int(told.signals, 0, "%s: a timeout brings no signals", w->store);
    is_int(end(w, worker).suspended, 1, "%s: the durable sleep is counted", w->store);
}

/* ---- Mistakes of handlers -------------------------------------------------------------------- */

/* Suspends at the waitpoint that it has the signal of. */
static enum weft_verdict handle_stubborn(struct weft_job *job, void *context)
{
    struct world *w = context;
    box_add(&w->box, &w->box.begun);
    if (!weft_job_claimed(job)->resumed)
        return suspend_at_new(job, w);
    const struct weft_suspend_at at = {.id = told.waitpoint};
    weft_job_suspend(job, &(struct weft_suspend){.waitpoint = &at, .waitpoint_count = 1});
    return WEFT_SUSPEND;
}

static void test_stubborn(struct world *w)
{
    struct weft_id id = submit_mine(w);
    told.early = true;
    struct weft_worker *worker = begin(w, handle_stubborn);
    ok(wait_state(w, &id, WEFT_STATE_FAILED), "%s: suspending for nothing new fails", w->store);
    is_str(describe(w, &id).error_class, "suspend_repeated", "%s: with its class", w->store);
    is_int(w->box.begun, 2, "%s: the handler is not called a third time", w->store);
    is_int(end(w, worker).failed, 1, "%s: a failure is counted", w->store);
}

/* The payload is the number of the mistake. */
static const struct {
    const char *name;
    struct weft_suspend request; /* all zeros: none is made */
    const char *error_class;
} mistakes[] = {
    {"no request", .error_class = "bad_verdict"},
    {"no JSON", {.condition = "{\"operator\":"}, "suspend_refused"},
    {"no such waitpoint", {.condition = "{\"waitpoint\":\"a\"}"}, "suspend_refused"},
    {"a negative timeout",
     {.condition = "{\"operator\":true}", .timeout_ms = -1},
     "suspend_refused"},
    {"no array", {.waitpoint_count = 1}, "suspend_refused"},
    {"a name that is pending", {.reason = "pending"}, "suspend_refused"},
    {"none", {.condition = "{\"operator\":true}"}, NULL},
};

static enum weft_verdict handle_mistake(struct weft_job *job, void *context)
{
    static const struct weft_suspend_at at = {.name = "taken"};
    struct weft_suspend request = mistakes[number_of(job)].request;
    struct weft_waitpoint waitpoint;
    (void)context;
    if (request.reason) {
        if (weft_job_waitpoint(job, "taken", 60000, &waitpoint, NULL))
            return WEFT_GIVE_UP;
        request.waitpoint = &at;
        request.waitpoint_count = 1;
    }
    if (request.condition || request.waitpoint_count)
        weft_job_suspend(job, &request);
    return WEFT_SUSPEND;
}

/* They are sent together: a bad one does not harm its neighbours. */
static void test_mistakes(struct world *w)
{
    static const struct weft_policy once = {.max_attempts = 1};
    struct weft_id id[WEFT_LEN(mistakes)];
    char number[4];
    for (size_t i = 0; i < WEFT_LEN(mistakes); i++) {
        (void)snprintf(number, sizeof(number), "%d", (int)i);
        id[i] = submit(w, &(struct weft_spec){.kind = "mine",
                                              .payload = number,
                                              .payload_size = strlen(number),
                                              .policy = &once});
    }
    struct weft_worker *worker = begin(w, handle_mistake);
    for (size_t i = 0; i < WEFT_LEN(mistakes); i++) {
        const char *want = mistakes[i].error_class;
        ok(wait_state(w, &id[i], want ? WEFT_STATE_FAILED : WEFT_STATE_SUSPENDED),
           "%s: mistake %s: %s", w->store, mistakes[i].name, want ? "the attempt fails" : "none");
        struct weft_execution found = describe(w, &id[i]);
        if (want)
            is_str(found.error_class, want, "%s: mistake %s: %s", w->store, mistakes[i].name,
                   found.error_message ? found.error_message : "");
    }
    struct weft_worker_stats stats = end(w, worker);
    ok(stats.suspended == 1 && stats.failed == WEFT_LEN(mistakes) - 1 && stats.fenced == 0,
       "%s: failures are counted as such", w->store);
}

static void test_no_job(struct world *w)
{
    struct weft_waitpoint waitpoint;
    size_t count = 7;
    weft_job_suspend(NULL, NULL);
    ok(!weft_job_signals(NULL, &count) && count == 0, "a NULL job has no signals");
    is_int(weft_job_waitpoint(NULL, "a", 0, &waitpoint, &w->err), WEFT_INVALID_VALUE,
           "a NULL job makes no waitpoint");
}

/* ---- Interrupted ----------------------------------------------------------------------------- */

/* Suspends when the gate is opened, or when the worker stops. */
static enum weft_verdict handle_gate(struct weft_job *job, void *context)
{
    struct world *w = context;
    if (weft_job_claimed(job)->resumed) {
        tell(w, job);
        return WEFT_DONE;
    }
    enum weft_verdict verdict = suspend_at_new(job, w);
    box_add(&w->box, &w->box.begun);
    while (!box_gate(&w->box, 5) && !weft_job_stopping(job))
        ;
    return verdict;
}

static void test_cancelled(struct world *w)
{
    struct weft_id id = submit_mine(w);
    struct weft_worker *worker = begin(w, handle_gate);
    struct weft_steered steered;
    ok(box_wait(&w->box, &w->box.begun, 1), "%s: the handler is about to suspend", w->store);
    is_int(weft_steer(w->weft, WEFT_STEER_CANCEL, &(struct weft_steer){.id = id}, 1, &steered,
                      &w->err),
           WEFT_OK, "%s: it is cancelled meanwhile", w->store);
    box_open(&w->box);
    struct weft_worker_stats stats = end(w, worker);
    is_int(describe(w, &id).state, WEFT_STATE_CANCELLED, "%s: it stays cancelled", w->store);
    ok(stats.fenced == 1 && stats.suspended == 0, "%s: the suspend was fenced", w->store);
}

static void test_stop(struct world *w)
{
    for (int early = 0; early < 2; early++) {
        struct weft_id id = submit_mine(w);
        told.early = early;
        w->box.begun = 0;
        struct weft_worker *worker = begin(w, handle_gate);
        ok(box_wait(&w->box, &w->box.begun, 1), "%s: the handler is about to suspend", w->store);
        struct weft_worker_stats stats = end(w, worker);
        is_int(describe(w, &id).state, early ? WEFT_STATE_READY : WEFT_STATE_SUSPENDED,
               "%s: stop while suspending%s", w->store, early ? ", satisfied: given back" : "");
        ok(stats.suspended == !early && stats.put_back == (uint64_t)early,
           "%s: stop while suspending is counted", w->store);
        if (!early)
            is_int(send_signal(w, told.token), WEFT_SIGNAL_RESUMED, "%s: it is resumed", w->store);
        worker = begin(w, handle_gate);
        ok(wait_state(w, &id, WEFT_STATE_SUCCEEDED), "%s: the next worker goes on", w->store);
        is_int(told.signals, 1, "%s: with the signal", w->store);
        (void)end(w, worker);
    }
}

static enum weft_verdict handle_operator(struct weft_job *job, void *context)
{
    struct world *w = context;
    weft_job_suspend(job, &(struct weft_suspend){.condition = "{\"operator\":true}"});
    box_add(&w->box, &w->box.ended);
    return WEFT_SUSPEND;
}

/* The store refuses suspends, or the connection breaks at each of the first calls in turn. */
static void test_store_fails(struct world *w)
{
    enum { JOBS = 20, REFUSED = 3, STEP = 5, LAST = 60 };
    size_t suspended = 0;
    for (uint64_t at = 0; at < LAST; at += STEP) {
        struct refusal refusal = {.stmt = at ? WEFT_STMT_COUNT : WEFT_STMT_SUSPENSION_ADD,
                                  .left = at ? 0 : REFUSED};
        struct weft *weft = NULL;
        struct weft_worker_stats stats;
        refusal_init(w, &refusal, &weft);
        if (at)
            refusal.fault.kind = at % 2 ? WEFT_FAULT_LOSE : WEFT_FAULT_LOSE_REPLY;
        w->box.ended = 0;
        submit_numbered(w, "mine", 0, JOBS);
        __atomic_store_n(&refusal.fault.strike_at, at, __ATOMIC_RELAXED);
        struct weft_worker *worker =
            make_worker(w, weft, &(struct weft_worker_options){.threads = 4});
        handle(w, worker, "mine", handle_operator);
        start(w, worker);
        ok(box_wait(&w->box, &w->box.ended, JOBS), "%s: failure at %d: all are handled", w->store,
           (int)at);
        (void)weft_worker_stop(worker);
        weft_worker_stats(worker, &stats);
        suspended += JOBS;
        is_int(stats.suspended, JOBS, "%s: failure at %d: all suspends are counted", w->store,
               (int)at);
        is_int(count_in(w, WEFT_STATE_SUSPENDED), suspended, "%s: failure at %d: all are suspended",
               w->store, (int)at);
        if (!at)
            ok(stats.store_errors >= REFUSED, "%s: refused suspends are store errors", w->store);
        weft_worker_free(worker);
        weft_close(weft);
    }
}

/* The server is gone when the handler suspends; the next one is asked. */
static void test_server_restarts(struct world *w)
{
    struct weft_id id = submit_mine(w);
    struct weft_worker *worker = begin(w, handle_gate);
    ok(box_wait(&w->box, &w->box.begun, 1), "%s: the handler is about to suspend", w->store);
    world_stop_server(w);
    box_open(&w->box);
    struct weft_worker_stats stats = {0};
    struct box pause;
    box_init(&pause);
    for (int i = 0; i < PATIENCE_MS / 10 && stats.store_errors == 0; i++) {
        (void)box_gate(&pause, 10);
        weft_worker_stats(worker, &stats);
    }
    ok(stats.store_errors > 0, "%s: the suspend is not heard", w->store);
    world_restart_server(w);
    ok(wait_state(w, &id, WEFT_STATE_SUSPENDED), "%s: the next server suspends it", w->store);
    is_int(end(w, worker).suspended, 1, "%s: the suspend is counted", w->store);
}

/* ---- Every test on every store --------------------------------------------------------------- */

enum where { ANYWHERE, STORE, SERVER };

static const struct {
    const char *name;
    void (*run)(struct world *w);
    enum where where;
} tests[] = {
    {"signal", test_signal, ANYWHERE},        {"satisfied", test_satisfied, ANYWHERE},
    {"timeout", test_timeout, ANYWHERE},      {"stubborn", test_stubborn, ANYWHERE},
    {"mistakes", test_mistakes, ANYWHERE},    {"no_job", test_no_job, STORE},
    {"cancelled", test_cancelled, ANYWHERE},  {"stop", test_stop, ANYWHERE},
    {"store_fails", test_store_fails, STORE}, {"server_restarts", test_server_restarts, SERVER},
};

int main(int argc, char **argv)
{
    for (size_t s = 0; s < WEFT_LEN(world_stores); s++)
        for (size_t t = 0; t < WEFT_LEN(tests); t++) {
            bool http = world_is_http(world_stores[s]);
            if ((argc > 1 && strcmp(argv[1], tests[t].name) != 0) ||
                !world_exists(world_stores[s]) || (tests[t].where == STORE && http) ||
                (tests[t].where == SERVER && !http))
                continue;
            struct world w;
            world_init(&w, world_stores[s]);
            tests[t].run(&w);
            (void)describe(&w, NULL);
            world_done(&w);
        }
    return tap_done();
}
