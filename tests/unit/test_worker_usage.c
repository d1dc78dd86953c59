/* SPDX-License-Identifier: Apache-2.0 */

/* Handlers that report what they spend: totals, refused, fenced, called again, without a server. */

#include "worker_fixture.h"

#include "weft/weft.h"

#include <netinet/in.h>
#include <sys/socket.h>

enum { REPORTS = 4, HARD = 1000 };

/* What the handlers below tell the test. The lock of the box guards it; one test at a time. */
static struct {
    enum weft_rc rc[REPORTS];
    int64_t used[REPORTS]; /* of the budget, after each report */
    char text[sizeof(((struct weft_err *)0)->text)];
    bool stopping;
    enum weft_fence fence;
    int64_t took_ms;
} told;

static int64_t used_now(struct world *w)
{
    struct weft_budgets one = {0};
    struct weft_err err = {0};
    int64_t used = -1;
    if (!weft_budgets(w->weft, "team", 0, NULL, &one, &err))
        used = one.item[0].dimension[0].used;
    weft_budgets_free(&one);
    return used;
}

static enum weft_rc report(struct weft_job *job, int64_t tokens, struct weft_err *err)
{
    const struct weft_amount totals[] = {{"tokens", tokens}, {"pages", 1}};
    return weft_job_usage(job, totals, WEFT_LEN(totals), err);
}

/* Reports, and tells the test under this number. */
static void report_and_tell(struct weft_job *job, struct world *w, int number, int64_t tokens)
{
    struct weft_err err = {0};
    enum weft_rc rc = report(job, tokens, &err);
    int64_t used = used_now(w);
    pthread_mutex_lock(&w->box.lock);
    told.rc[number] = rc;
    told.used[number] = used;
    (void)snprintf(told.text, sizeof(told.text), "%s", err.text);
    told.stopping = weft_job_stopping(job);
    told.fence = weft_job_fence(job);
    pthread_mutex_unlock(&w->box.lock);
}

static struct weft_worker *begin(struct world *w, weft_handler handler, int64_t grace_ms)
{
    struct weft_worker *worker = make_worker(
        w, w->weft,
        &(struct weft_worker_options){.poll_ms = 20, .lease_ms = 5000, .stop_grace_ms = grace_ms});
    handle(w, worker, "mine", handler);
    start(w, worker);
    return worker;
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

/* An execution under a budget of so many tokens. */
static struct weft_id submit_spender(struct world *w)
{
    static const char *const budgets[] = {"team"};
    static const struct weft_policy once = {.max_attempts = 1};
    const struct weft_budget_dimension tokens = {.name = "tokens", .hard = HARD, .estimate = 100};
    const struct weft_budget budget = {.name = "team", .dimension = &tokens, .dimension_count = 1};
    memset(&told, 0, sizeof(told));
    if (weft_budget_put(w->weft, &budget, &w->err))
        ok(false, "%s: a budget: %s", w->store, w->err.text);
    return submit(w, &(struct weft_spec){
                         .kind = "mine", .budgets = budgets, .budget_count = 1, .policy = &once});
}

/* ---- Reports --------------------------------------------------------------------------------- */

static enum weft_verdict handle_totals(struct weft_job *job, void *context)
{
    struct world *w = context;
    report_and_tell(job, w, 0, 300);
    report_and_tell(job, w, 1, 700);
    report_and_tell(job, w, 2, 700);
    report_and_tell(job, w, 3, 500);
    return WEFT_DONE;
}

static void test_totals(struct world *w)
{
    struct weft_id id = submit_spender(w);
    struct weft_worker *worker = begin(w, handle_totals, 0);
    ok(wait_state(w, &id, WEFT_STATE_SUCCEEDED), "%s: a handler that reports completes", w->store);
    for (int i = 0; i < REPORTS; i++)
        is_int(told.rc[i], WEFT_OK, "%s: report %d is recorded", w->store, i);
    is_int(told.used[0], 300, "%s: the first total is used", w->store);
    is_int(told.used[1], 700, "%s: the second one replaces it", w->store);
    is_int(told.used[2], 700, "%s: a repeat changes nothing", w->store);
    is_int(told.used[3], 700, "%s: a smaller one subtracts nothing", w->store);
    ok(!told.stopping, "%s: the handler may go on", w->store);
    weft_worker_free(worker);
}

static enum weft_verdict handle_too_much(struct weft_job *job, void *context)
{
    struct world *w = context;
    report_and_tell(job, w, 0, 800);
    report_and_tell(job, w, 1, HARD + 1);
    weft_job_delay(job, 3600000);
    return WEFT_NOT_NOW;
}

static void test_exceeded(struct world *w)
{
    struct weft_id id = submit_spender(w);
    struct weft_worker *worker = begin(w, handle_too_much, 0);
    ok(wait_state(w, &id, WEFT_STATE_DELAYED), "%s: a handler over its budget comes back later",
       w->store);
    is_int(told.rc[0], WEFT_OK, "%s: a report within the limit is recorded", w->store);
    is_int(told.rc[1], WEFT_BUDGET_EXCEEDED, "%s: one beyond it is refused", w->store);
    is_int(told.used[1], 800, "%s: a refused report is not recorded", w->store);
    ok(strstr(told.text, "'team' has 200 of 'tokens' left"), "%s: the error says what is left: %s",
       w->store, told.text);
    ok(!told.stopping && told.fence == WEFT_FENCE_NONE, "%s: the lease stays", w->store);
    weft_worker_free(worker);
}

static enum weft_verdict handle_cancelled(struct weft_job *job, void *context)
{
    struct world *w = context;
    struct weft_steered steered = {0};
    struct weft_err err = {0};
    const struct weft_steer item = {.id = weft_job_claimed(job)->id};
    report_and_tell(job, w, 0, 100);
    if (weft_steer(w->weft, WEFT_STEER_CANCEL, &item, 1, &steered, &err) || steered.err.rc)
        return WEFT_GIVE_UP;
    report_and_tell(job, w, 1, 200);
    return WEFT_DONE;
}

static void test_fenced(struct world *w)
{
    struct weft_worker_stats stats;
    struct weft_id id = submit_spender(w);
    struct weft_worker *worker = begin(w, handle_cancelled, 0);
    ok(wait_state(w, &id, WEFT_STATE_CANCELLED), "%s: the execution is cancelled", w->store);
    (void)weft_worker_stop(worker);
    weft_worker_stats(worker, &stats);
    is_int(told.rc[1], WEFT_FENCED, "%s: a report after a cancel is fenced", w->store);
    is_int(told.used[1], 100, "%s: it is not recorded", w->store);
    ok(told.stopping, "%s: the handler learns that it should stop", w->store);
    is_int(told.fence, WEFT_FENCE_CANCELLED, "%s: and why", w->store);
    is_int(stats.fenced, 1, "%s: the job counts as fenced", w->store);
    is_int(stats.completed, 0, "%s: and not as completed", w->store);
    weft_worker_free(worker);
}

/* ---- Called again under the same lease ------------------------------------------------------- */

/* Spends 300, asks for a signal that has come by then, and spends 200 more. */
static enum weft_verdict handle_again(struct weft_job *job, void *context)
{
    struct world *w = context;
    struct weft_waitpoint waitpoint;
    struct weft_signalled sent = {0};
    struct weft_err err = {0};
    if (weft_job_claimed(job)->resumed) {
        report_and_tell(job, w, 1, 150);
        report_and_tell(job, w, 2, 200);
        return WEFT_DONE;
    }
    report_and_tell(job, w, 0, 300);
    if (weft_job_waitpoint(job, "early", 0, &waitpoint, &err))
        return WEFT_GIVE_UP;
    const struct weft_signal signal = {.token = waitpoint.token};
    if (weft_signal(w->weft, &signal, 1, &sent, &err) || sent.err.rc)
        return WEFT_GIVE_UP;
    const struct weft_suspend_at at = {.id = waitpoint.id};
    weft_job_suspend(job, &(struct weft_suspend){.waitpoint = &at, .waitpoint_count = 1});
    return WEFT_SUSPEND;
}

static void test_again(struct world *w)
{
    struct weft_id id = submit_spender(w);
    struct weft_worker *worker = begin(w, handle_again, 0);
    ok(wait_state(w, &id, WEFT_STATE_SUCCEEDED), "%s: an early signal calls the handler again",
       w->store);
    is_int(describe(w, &id).epoch, 1, "%s: under the same lease", w->store);
    is_int(told.used[0], 300, "%s: the first call spends", w->store);
    is_int(told.used[1], 450, "%s: the second one counts from zero, and both are used", w->store);
    is_int(told.used[2], 500, "%s: its totals replace each other", w->store);
    weft_worker_free(worker);
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

static enum weft_verdict handle_mistakes(struct weft_job *job, void *context)
{
    struct world *w = context;
    const struct weft_amount bad = {"no dimension", 1}, twice[] = {{"tokens", 1}, {"tokens", 2}};
    const struct weft_amount unknown = {"pages", 7}, nameless = {NULL, 1};
    struct weft_err err = {0};
    enum weft_rc rc[] = {
        weft_job_usage(NULL, &unknown, 1, &err), weft_job_usage(job, NULL, 1, &err),
        weft_job_usage(job, NULL, 0, &err),      weft_job_usage(job, &bad, 1, &err),
        weft_job_usage(job, twice, 2, &err),     weft_job_usage(job, &nameless, 1, NULL)};
    for (size_t i = 0; i < WEFT_LEN(rc); i++)
        is_int(rc[i], WEFT_INVALID_VALUE, "%s: mistake %zu is not valid", w->store, i);
    is_int(weft_job_usage(job, &unknown, 1, &err), WEFT_OK,
           "%s: a dimension that no budget has is ignored", w->store);
    is_int(used_now(w), 0, "%s: nothing is used", w->store);
    return WEFT_DONE;
}

static void test_mistakes(struct world *w)
{
    struct weft_id id = submit_spender(w);
    struct weft_worker *worker = begin(w, handle_mistakes, 0);
    ok(wait_state(w, &id, WEFT_STATE_SUCCEEDED), "%s: mistakes do not harm the job", w->store);
    weft_worker_free(worker);
}

/* ---- Without a server ------------------------------------------------------------------------ */

/* Reports when the gate is opened, until there is an answer. */
static enum weft_verdict handle_gate(struct weft_job *job, void *context)
{
    struct world *w = context;
    struct weft_err err = {0};
    box_add(&w->box, &w->box.begun);
    while (!box_gate(&w->box, 1000))
        ;
    weft_usec began_us = weft_mono_us();
    enum weft_rc rc = report(job, 400, &err);
    while (rc == WEFT_UNAVAILABLE && !weft_job_stopping(job))
        rc = report(job, 400, &err);
    pthread_mutex_lock(&w->box.lock);
    told.rc[0] = rc;
    told.took_ms = (weft_mono_us() - began_us) / 1000;
    pthread_mutex_unlock(&w->box.lock);
    box_add(&w->box, &w->box.ended);
    return WEFT_DONE;
}

/* Waits until a call of the worker has failed. */
static void wait_outage(struct world *w, const struct weft_worker *worker)
{
    struct weft_worker_stats stats = {0};
    struct box pause;
    box_init(&pause);
    for (int waited = 0; waited < PATIENCE_MS && stats.store_errors == 0; waited += 5) {
        (void)box_gate(&pause, 5);
        weft_worker_stats(worker, &stats);
    }
    ok(stats.store_errors > 0, "%s: the server is away", w->store);
    pthread_cond_destroy(&pause.changed);
    pthread_mutex_destroy(&pause.lock);
}

static void test_server_restarts(struct world *w)
{
    struct weft_id id = submit_spender(w);
    struct weft_worker *worker = begin(w, handle_gate, 0);
    ok(box_wait(&w->box, &w->box.begun, 1), "%s: the handler is about to report", w->store);
    world_stop_server(w);
    box_open(&w->box);
    wait_outage(w, worker);
    world_restart_server(w);
    ok(wait_state(w, &id, WEFT_STATE_SUCCEEDED), "%s: the job is completed", w->store);
    is_int(told.rc[0], WEFT_OK, "%s: the report is recorded by the next server", w->store);
    is_int(used_now(w), 400, "%s: once", w->store);
    weft_worker_free(worker);
}

/* In the place of the server: a socket that is never accepted from. */
static int listen_only(const struct world *w)
{
    const int one = 1;
    const long port = strtol(strrchr(w->url, ':') + 1, NULL, 10);
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    ok(bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 64) == 0,
       "%s: something listens there and does not answer", w->store);
    return fd;
}

static void test_stopped(struct world *w)
{
    (void)submit_spender(w);
    struct weft_worker *worker = begin(w, handle_gate, 1);
    ok(box_wait(&w->box, &w->box.begun, 1), "%s: the handler is about to report", w->store);
    world_stop_server(w);
    int fd = listen_only(w);
    box_open(&w->box);
    is_int(weft_worker_stop(worker), 1, "%s: the handler outlasts the stop", w->store);
    weft_worker_free(worker);
    is_int(w->box.ended, 1, "%s: but not for long", w->store);
    is_int(told.rc[0], WEFT_UNAVAILABLE, "%s: its report was not answered", w->store);
    ok(told.took_ms < 15000, "%s: the stop ended it after %d ms, before its 30 s", w->store,
       (int)told.took_ms);
    (void)close(fd);
    world_restart_server(w);
}

/* ---- Every test on every store --------------------------------------------------------------- */

enum where { ANYWHERE, SERVER };

static const struct {
    const char *name;
    void (*run)(struct world *w);
    enum where where;
} tests[] = {
    {"totals", test_totals, ANYWHERE},     {"exceeded", test_exceeded, ANYWHERE},
    {"fenced", test_fenced, ANYWHERE},     {"again", test_again, ANYWHERE},
    {"mistakes", test_mistakes, ANYWHERE}, {"server_restarts", test_server_restarts, SERVER},
    {"stopped", test_stopped, SERVER},
};

int main(int argc, char **argv)
{
    for (size_t s = 0; s < WEFT_LEN(world_stores); s++)
        for (size_t t = 0; t < WEFT_LEN(tests); t++) {
            bool http = world_is_http(world_stores[s]);
            if ((argc > 1 && strcmp(argv[1], tests[t].name) != 0) ||
                !world_exists(world_stores[s]) || (tests[t].where == SERVER && !http))
                continue;
            struct world w;
            world_init(&w, world_stores[s]);
            tests[t].run(&w);
            (void)describe(&w, NULL);
            world_done(&w);
        }
    return tap_done();
}
