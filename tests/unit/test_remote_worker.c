/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A worker on a server that is slow, silent, lying or restarted. That it does its work on one that
 * is well is tested by test_worker.c.
 */

#include "http_fixture.h"
#include "server_fixture.h"
#include "worker_fixture.h"

#include "base/buf.h"

/* How a server takes suspends. */
enum suspends {
    SUSPEND_LOST,    /* the first answer does not arrive */
    SUSPEND_UNHEARD, /* no answer arrives, but heartbeats are fenced by the suspend */
    SUSPEND_UNKNOWN, /* it is older than the call */
};

/* A server that gives one job, and counts what is said about it. */
struct script {
    struct box box;     /* its lock guards what follows */
    const char *kind;   /* of the job */
    bool empty_at_once; /* claims do not wait */
    enum suspends suspends;
    bool silent; /* nothing is answered any more, but claims that bring the job */
    int claims, renewals, completed, delayed, released, suspended, failed;
};

static void script_init(struct script *script, const char *kind)
{
    *script = (struct script){.kind = kind};
    box_init(&script->box);
}

static void script_done(struct script *script)
{
    pthread_cond_destroy(&script->box.changed);
    pthread_mutex_destroy(&script->box.lock);
}

#define LEASE_ID "01890000-0000-7000-8000-000000000001"

static char *text_of(const char *fmt, const char *word)
{
    struct weft_buf text;
    weft_buf_init(&text, SIZE_MAX);
    const char *at = strchr(fmt, '@');
    weft_buf_add(&text, fmt, at ? (size_t)(at - fmt) : strlen(fmt));
    if (at) {
        weft_buf_add_text(&text, word);
        weft_buf_add_text(&text, at + 1);
    }
    return text.data;
}

static char *answer_claim(struct script *script, struct take *ret_take)
{
    if (script->claims++ > 0) {
        ret_take->hold = !script->empty_at_once;
        return text_of("{\"items\":[]}", NULL);
    }
    return text_of("{\"items\":[{\"id\":\"" LEASE_ID
                   "\",\"epoch\":1,\"attempt\":1,\"lane\":"
                   "\"default\",\"kind\":\"@\",\"content_type\":\"application/json\","
                   "\"lease_ms\":1000}]}",
                   script->kind);
}

static char *answer_suspend(struct script *script, struct take *ret_take)
{
    bool lost = script->suspends == SUSPEND_LOST && script->suspended == 0;
    ret_take->hang_up = lost || script->suspends == SUSPEND_UNHEARD;
    script->suspended++;
    if (script->suspends != SUSPEND_UNKNOWN)
        return text_of("{\"items\":[{\"id\":\"" LEASE_ID
                       "\",\"state\":\"suspended\",\"waitpoints\":[]}]}",
                       NULL);
    ret_take->status = 404;
    return text_of("{\"error\":{\"code\":\"not_found\",\"message\":\"no such path\"}}", NULL);
}

/* A heartbeat of a lease that a suspend has ended. */
static char *answer_fenced(void)
{
    return text_of("{\"items\":[{\"id\":\"" LEASE_ID
                   "\",\"error\":{\"code\":\"fenced\","
                   "\"message\":\"it is suspended\",\"reason\":\"suspended\"}}]}",
                   NULL);
}

static char *play(void *context, const struct asked *asked, struct take *ret_take)
{
    static const struct {
        const char *path, *answer;
        size_t number;
    } row[] = {
        {"/v1/leases/renew",
         "{\"items\":[{\"id\":\"" LEASE_ID
         "\",\"lease_expires_at\":\"2026-01-01T00:00:00.000Z\"}]}",
         offsetof(struct script, renewals)},
        {"/v1/leases/complete", "{\"items\":[{\"id\":\"" LEASE_ID "\",\"state\":\"succeeded\"}]}",
         offsetof(struct script, completed)},
        {"/v1/leases/delay", "{\"items\":[{\"id\":\"" LEASE_ID "\",\"state\":\"delayed\"}]}",
         offsetof(struct script, delayed)},
        {"/v1/leases/release", "{\"items\":[{\"id\":\"" LEASE_ID "\",\"state\":\"ready\"}]}",
         offsetof(struct script, released)},
        {"/v1/leases/fail", "{\"items\":[{\"id\":\"" LEASE_ID "\",\"state\":\"failed\"}]}",
         offsetof(struct script, failed)},
    };
    struct script *script = context;
    char *text = NULL;
    pthread_mutex_lock(&script->box.lock);
    if (strcmp(asked->path, "/v1/claims") == 0)
        text = answer_claim(script, ret_take);
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        if (strcmp(asked->path, row[i].path) == 0) {
            ++*(int *)(void *)((char *)script + row[i].number);
            ret_take->hold = script->silent;
            text = text_of(row[i].answer, NULL);
        }
    if (strcmp(asked->path, "/v1/leases/suspend") == 0)
        text = answer_suspend(script, ret_take);
    if (script->suspends == SUSPEND_UNHEARD && strcmp(asked->path, "/v1/leases/renew") == 0) {
        free(text);
        text = answer_fenced();
    }
    pthread_cond_broadcast(&script->box.changed);
    pthread_mutex_unlock(&script->box.lock);
    return text ? text : text_of("{}", NULL);
}

struct play {
    struct stage stage;
    struct script script;
    struct weft *weft;
    struct weft_err err;
    struct weft_worker *worker;
};

static void play_begin(struct play *p, const char *kind, const struct weft_worker_options *options,
                       weft_handler handler)
{
    *p = (struct play){0};
    script_init(&p->script, kind);
    stage_init(&p->stage);
    p->stage.make = play;
    p->stage.context = &p->script;
    stage_open(&p->stage);
    ok(weft_open(p->stage.url, NULL, &p->weft, &p->err) == WEFT_OK &&
           weft_worker_new(p->weft, options, &p->worker, &p->err) == WEFT_OK &&
           weft_worker_on(p->worker, "mine", handler, &p->script, &p->err) == WEFT_OK,
       "a worker %s", p->err.text);
}

static void play_end(struct play *p)
{
    stage_release(&p->stage);
    weft_worker_free(p->worker);
    weft_close(p->weft);
    stage_done(&p->stage);
    script_done(&p->script);
}

static enum weft_verdict wait_at_gate(struct weft_job *job, void *context)
{
    struct script *script = context;
    (void)job;
    box_add(&script->box, &script->box.begun);
    (void)box_gate(&script->box, PATIENCE_MS);
    return WEFT_DONE;
}

/* The second claim hangs at the server; heartbeats and the result pass it by. */
static void test_claim_waits(void)
{
    struct play p;
    play_begin(&p, "mine", &(struct weft_worker_options){.threads = 2}, wait_at_gate);
    struct script *script = &p.script;
    ok(weft_worker_start(p.worker, &p.err) == WEFT_OK, "started");
    ok(box_wait(&script->box, &script->box.begun, 1), "the job begins");
    ok(box_wait(&script->box, &script->claims, 2), "the next claim waits");
    int64_t began_ms = mono_ms();
    ok(box_wait(&script->box, &script->renewals, 3), "heartbeats go on");
    ok(mono_ms() - began_ms < 5000, "heartbeats come at a third of the lease");
    box_open(&script->box);
    ok(box_wait(&script->box, &script->completed, 1), "the result arrives");
    is_int(script->claims, 2, "while the claim still waits");
    struct weft_worker_stats stats;
    began_ms = mono_ms();
    is_int(weft_worker_stop(p.worker), 0, "the worker stops");
    ok(mono_ms() - began_ms < 2000, "without waiting for the claim");
    weft_worker_stats(p.worker, &stats);
    ok(stats.completed == 1 && stats.claimed == 1 && stats.store_errors == 0, "all is well: %s",
       stats.last_error.text);
    play_end(&p);
}

/* A server that takes the result and never says a word again. */
static void test_silence(void)
{
    struct play p;
    play_begin(&p, "mine", &(struct weft_worker_options){.stop_grace_ms = 100}, wait_at_gate);
    struct script *script = &p.script;
    script->silent = true;
    ok(weft_worker_start(p.worker, &p.err) == WEFT_OK, "started");
    box_open(&script->box);
    ok(box_wait(&script->box, &script->completed, 1), "the result is sent");
    int64_t began_ms = mono_ms();
    (void)weft_worker_stop(p.worker);
    ok(mono_ms() - began_ms < 6000, "a stop does not wait for the answer");
    play_end(&p);
}

/* A kind that was not asked for goes back. */
static void test_job_of_another_kind(void)
{
    struct play p;
    play_begin(&p, "theirs", &(struct weft_worker_options){.threads = 1}, wait_at_gate);
    ok(weft_worker_start(p.worker, &p.err) == WEFT_OK, "started");
    ok(box_wait(&p.script.box, &p.script.delayed, 1), "a strange job goes back");
    (void)weft_worker_stop(p.worker);
    is_int(p.script.box.begun, 0, "no handler sees the job of another kind");
    play_end(&p);
}

/* A server that answers claims at once is asked no more often than a store. */
static void test_impatient(void)
{
    struct play p;
    play_begin(&p, "mine", &(struct weft_worker_options){.poll_ms = 50}, wait_at_gate);
    p.script.empty_at_once = true;
    box_open(&p.script.box);
    int64_t began_ms = mono_ms();
    ok(weft_worker_start(p.worker, &p.err) == WEFT_OK, "started");
    ok(box_wait(&p.script.box, &p.script.claims, 8), "claims come back empty");
    ok(mono_ms() - began_ms >= 200, "empty claims are not repeated at once");
    play_end(&p);
}

static enum weft_verdict suspend_now(struct weft_job *job, void *context)
{
    (void)context;
    weft_job_suspend(job, &(struct weft_suspend){.condition = "{\"operator\":true}"});
    return WEFT_SUSPEND;
}

/* A suspend is sent again until it is answered, or until a heartbeat is: the lease has ended. */
static void test_suspend_answers(void)
{
    static const struct {
        const char *name;
        enum suspends suspends;
        bool fails;
    } row[] = {
        {"lost answer", SUSPEND_LOST, false},
        {"no answer but that of a heartbeat", SUSPEND_UNHEARD, false},
        {"older server", SUSPEND_UNKNOWN, true},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct play p;
        struct weft_worker_stats stats;
        play_begin(&p, "mine", NULL, suspend_now);
        struct script *script = &p.script;
        script->suspends = row[i].suspends;
        ok(weft_worker_start(p.worker, &p.err) == WEFT_OK, "%s: started", row[i].name);
        const int *number = row[i].fails                         ? &script->failed
                            : row[i].suspends == SUSPEND_UNHEARD ? &script->renewals
                                                                 : &script->suspended;
        ok(box_wait(&script->box, number, number == &script->suspended ? 2 : 1),
           "%s: the worker goes on", row[i].name);
        (void)weft_worker_stop(p.worker);
        weft_worker_stats(p.worker, &stats);
        ok(stats.suspended == !row[i].fails && stats.failed == row[i].fails && stats.fenced == 0,
           "%s: it has %s", row[i].name, row[i].fails ? "failed" : "been suspended");
        play_end(&p);
    }
}

/* ---- A real server --------------------------------------------------------------------------- */

static void test_restart(struct world *w)
{
    enum { JOBS = 300, ROUNDS = 3 };
    struct weft_worker *worker =
        make_worker(w, w->weft, &(struct weft_worker_options){.threads = 4, .lease_ms = 2000});
    handle(w, worker, "square", handle_numbered);
    start(w, worker);
    for (int round = 0; round < ROUNDS; round++) {
        submit_numbered(w, "square", round * JOBS, JOBS);
        ok(box_wait(&w->box, &w->box.ended, round * JOBS + JOBS / 4), "%s: work goes on", w->store);
        world_stop_server(w);
        world_restart_server(w);
    }
    int seen = 0;
    for (int waited = 0; waited < PATIENCE_MS && seen < ROUNDS * JOBS; waited += 20) {
        (void)box_gate(&w->box, 20);
        seen = (int)count_in(w, WEFT_STATE_SUCCEEDED);
    }
    is_int(seen, ROUNDS * JOBS, "%s: all have succeeded", w->store);
    is_int(weft_worker_stop(worker), 0, "%s: the worker stops", w->store);
    struct weft_worker_stats stats;
    weft_worker_stats(worker, &stats);
    printf("# %s: claimed %d, completed %d, fenced %d, errors %d: %s\n", w->store,
           (int)stats.claimed, (int)stats.completed, (int)stats.fenced, (int)stats.store_errors,
           stats.last_error.text);
    weft_worker_free(worker);
}

int main(void)
{
    test_claim_waits();
    test_silence();
    test_job_of_another_kind();
    test_impatient();
    test_suspend_answers();
    for (size_t s = 0; s < WEFT_LEN(world_stores); s++) {
        if (!world_is_http(world_stores[s]) || !world_exists(world_stores[s]))
            continue;
        struct world w;
        world_init(&w, world_stores[s]);
        test_restart(&w);
        (void)describe(&w, NULL);
        world_done(&w);
    }
    return tap_done();
}
