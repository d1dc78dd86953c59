/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Group commit. Requests of the same kind that wait at the same time become one call of the
 * engine, hence one transaction; no request is answered before it has committed. There is no delay
 * to collect more: requests that come while a transaction runs go into the next one, so groups grow
 * by themselves as the store gets slower, and a lone request does not wait.
 *
 * Here are the threads; plan.c decides which requests come next, group_run.c runs the requests
 * that were taken together.
 */

#include "net/group/group.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/thread.h"
#include "engine/engine.h"
#include "net/auth.h"
#include "net/group/plan.h"
#include "net/http/body.h"
#include "net/http/loop.h"
#include "net/metrics.h"
#include "net/request.h"
#include "net/server.h"
#include "net/wait/waits.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUIET_RUNS = 20,       /* in a few seconds: passes, and the odd request */
    LARGE_BODY = 64 << 10, /* an answer that may wait in memory takes no more than it needs */
};

struct task {
    struct task *next;
    void (*fn)(struct weft_server *server, void *context);
    void *context;
};

struct weft_groups {
    struct weft_server *server;
    pthread_t *thread;
    uint32_t threads;

    pthread_mutex_t lock; /* over all below */
    pthread_cond_t work;
    struct weft_plan plan;
    struct task *task, **last_task;
    unsigned runs;  /* batches and tasks so far */
    unsigned seen;  /* runs at the last look of weft_groups_rest() */
    unsigned rests; /* how often the threads were asked to rest */
    bool stopping;
    bool ended; /* the last thread has left: no thread takes a request that is queued now */
    uint32_t alive;
};

/* ---- Queues, under the lock ------------------------------------------------------------------ */

static void show_depth(struct weft_groups *groups, enum weft_group group)
{
    weft_metric_set(groups->server->metrics, WEFT_METRIC_QUEUE_DEPTH, group,
                    groups->plan.queue[group].fair.all.count);
}

static struct task *pop_task(struct weft_groups *groups)
{
    struct task *task = groups->task;
    groups->task = task->next;
    if (!groups->task)
        groups->last_task = &groups->task;
    return task;
}

/* Wakes a thread if there is something for it; it will wake the next. */
static void wake_one(struct weft_groups *groups)
{
    weft_usec now_us = weft_boot_us();
    if (weft_plan_may_run(&groups->plan, now_us) || weft_plan_gathers(&groups->plan, now_us))
        pthread_cond_signal(&groups->work);
}

/* The next batch or task (owned, else NULL) in turn; false when nothing may run now. */
static bool next_batch(struct weft_groups *groups, struct weft_batch *batch, struct task **ret_task)
{
    if (!weft_plan_take(&groups->plan, weft_boot_us(), batch))
        return false;
    *ret_task = batch->task ? pop_task(groups) : NULL;
    for (size_t i = 0; i < batch->parts; i++)
        show_depth(groups, batch->part[i].group);
    wake_one(groups);
    return true;
}

/* ---- Running --------------------------------------------------------------------------------- */

/*
 * Calls the route, or the function that makes the next part of its answer, and writes a failure.
 * False: there is nothing to send yet. Rows that it reads are in an arena that is freed at once,
 * not when the answer has been sent: a client that reads slowly holds the answer alone. Texts that
 * the answer keeps are copied.
 */
static bool run_route(struct weft_server *server, struct weft_request *request)
{
    struct weft_err err = {0};
    struct weft_reply *reply = &request->reply;
    struct weft_arena *kept = request->arena;
    request->arena = weft_arena_new();
    bool streaming = reply->status && reply->stream;
    enum weft_rc rc = weft_auth_again(server, request, &err);
    if (!rc && streaming)
        rc = reply->stream(request, &reply->body, &reply->last, &err);
    else if (!rc)
        rc = request->route->run(request, &err);
    if (rc && request->route->locks_flow && err.cause == WEFT_CAUSE_FLOW_LOCKED &&
        weft_wait_for_lock(request))
        rc = WEFT_OK; /* once more, later */
    if (rc && streaming)
        reply->broken = true; /* the head has been sent: all that can be done is to stop */
    else if (rc)
        weft_reply_error(request, &err);
    if (!streaming)
        weft_reply_keep_headers(reply, kept);
    if (reply->body.capacity > LARGE_BODY)
        weft_buf_fit(&reply->body);
    weft_arena_free(request->arena);
    request->arena = kept;
    return streaming ? rc || reply->last || reply->body.size > 0 : reply->status != 0;
}

/* Reads the body; false: it is answered, waits in a queue of its own, or the loop reads on. */
static bool read_body(struct weft_server *server, enum weft_group class,
                      struct weft_request *request)
{
    struct weft_err err = {0};
    request->unread = false;
    enum weft_rc rc = weft_body_read(request, &err);
    if (rc)
        weft_reply_error(request, &err);
    bool here =
        request->route->op->group == class || (request->items.alone && class == WEFT_GROUP_HEAVY);
    bool back = request->reply.status || request->more;
    if (!back && here)
        return true;
    if (back)
        weft_loop_answer(server, &request, 1);
    else
        weft_groups_put_again(server->groups, request);
    return false;
}

/* One that runs alone; it may have been queued only to be read. */
static void run_alone(struct weft_server *server, enum weft_group class,
                      struct weft_request *request)
{
    if (request->unread && !read_body(server, class, request))
        return;
    if (!run_route(server, request) && weft_waits_sleep_till_end(server->waits, request))
        return;
    weft_wait_done(request);
    if (request->reply.body.capacity > LARGE_BODY)
        weft_loop_hold(request); /* before the next read looks for room */
    weft_loop_answer(server, &request, 1);
}

static void run_batch(struct weft_server *server, struct weft_batch *batch)
{
    struct weft_metrics *metrics = server->metrics;
    weft_usec began_us = weft_boot_us();
    for (size_t i = 0; i < batch->parts; i++) {
        const struct weft_group_part *part = &batch->part[i];
        assert(part->count > 0); /* only queues with work are taken from */
        weft_metric_observe(metrics, WEFT_METRIC_GROUP_ITEMS, part->group, part->items);
        weft_metric_observe(metrics, WEFT_METRIC_GROUP_REQUESTS, part->group, part->count);
    }
    if (weft_group_alone(batch->part[0].group))
        run_alone(server, batch->part[0].group, batch->part[0].request[0]);
    else
        weft_group_run(server, batch->part, batch->parts);
    for (size_t i = 0; i < batch->parts; i++)
        weft_metric_observe(metrics, WEFT_METRIC_GROUP_SECONDS, batch->part[i].group,
                            (uint64_t)(weft_boot_us() - began_us));
}

/* The batch that this thread runs; or NULL. */
static _Thread_local struct weft_batch *own_batch;

void weft_groups_side_work(void *context)
{
    struct weft_groups *groups = context;
    if (!own_batch)
        return;
    pthread_mutex_lock(&groups->lock);
    weft_plan_side_work(&groups->plan, own_batch);
    wake_one(groups);
    pthread_mutex_unlock(&groups->lock);
}

static void *run_thread(void *context)
{
    struct weft_groups *groups = context;
    struct weft_request *request[WEFT_JOINT_MAX][WEFT_BATCH_MAX] = {0};
    struct weft_batch batch = {0};
    struct task *task = NULL;
    unsigned rests = 0;
    for (size_t i = 0; i < WEFT_JOINT_MAX; i++)
        batch.part[i].request = request[i];
    pthread_mutex_lock(&groups->lock);
    for (;;) {
        if (next_batch(groups, &batch, &task)) {
            groups->runs++;
            own_batch = &batch;
            pthread_mutex_unlock(&groups->lock);
            if (task)
                task->fn(groups->server, task->context);
            else
                run_batch(groups->server, &batch);
            free(task);
            own_batch = NULL;
            pthread_mutex_lock(&groups->lock);
            weft_plan_give_back(&groups->plan, &batch, weft_boot_us());
        } else if (groups->stopping && groups->plan.waiting == 0 && !groups->task) {
            break;
        } else if (rests != groups->rests) {
            rests = groups->rests;
            pthread_mutex_unlock(&groups->lock);
            weft_heap_rest();
            pthread_mutex_lock(&groups->lock);
        } else {
            weft_cond_until(&groups->work, &groups->lock,
                            weft_plan_next_look(&groups->plan, weft_boot_us()));
        }
    }
    groups->ended = --groups->alive == 0;
    pthread_cond_broadcast(&groups->work);
    pthread_mutex_unlock(&groups->lock);
    return NULL;
}

void weft_groups_sweep(struct weft_groups *groups)
{
    struct weft_request *request[WEFT_BATCH_MAX];
    size_t count = WEFT_LEN(request);
    while (count == WEFT_LEN(request)) {
        pthread_mutex_lock(&groups->lock);
        const struct weft_answers *answers = groups->plan.answers;
        count = weft_plan_take_roomless(&groups->plan, weft_boot_us() - WEFT_ANSWERS_WAIT_US,
                                        request, WEFT_LEN(request));
        show_depth(groups, WEFT_GROUP_NONE);
        show_depth(groups, WEFT_GROUP_LIST);
        pthread_mutex_unlock(&groups->lock);
        for (size_t i = 0; i < count; i++) {
            struct weft_err err = {0};
            if (request[i]->reply.status && request[i]->reply.stream) {
                request[i]->reply.broken = true;
            } else {
                (void)weft_answers_full(answers, request[i]->ns, &err);
                weft_reply_error(request[i], &err);
            }
            weft_wait_done(request[i]);
        }
        if (count > 0)
            weft_loop_answer(groups->server, request, count);
    }
}

void weft_groups_look(struct weft_groups *groups)
{
    pthread_mutex_lock(&groups->lock);
    wake_one(groups);
    pthread_mutex_unlock(&groups->lock);
}

bool weft_groups_rest(struct weft_groups *groups)
{
    pthread_mutex_lock(&groups->lock);
    bool quiet = groups->runs - groups->seen <= QUIET_RUNS;
    groups->seen = groups->runs;
    if (quiet) {
        groups->rests++;
        pthread_cond_broadcast(&groups->work);
    }
    pthread_mutex_unlock(&groups->lock);
    return quiet;
}

/* ---- In and out ------------------------------------------------------------------------------ */

/* Under the lock. */
static void put(struct weft_groups *groups, struct weft_request *request)
{
    request->queued_us = weft_boot_us();
    show_depth(groups, weft_plan_put(&groups->plan, request));
}

/* No thread will take it any more. A stream is cut off, so that its part is not taken for all. */
static void turn_away(struct weft_groups *groups, struct weft_request *request)
{
    struct weft_err err = {0};
    if (request->reply.stream) {
        request->reply.broken = true;
    } else {
        (void)weft_fail(&err, WEFT_UNAVAILABLE, "the server is stopping");
        weft_reply_error(request, &err);
    }
    weft_loop_answer(groups->server, &request, 1);
}

void weft_groups_put_again(struct weft_groups *groups, struct weft_request *request)
{
    pthread_mutex_lock(&groups->lock);
    bool ended = groups->ended;
    if (!ended) {
        put(groups, request);
        wake_one(groups);
    }
    pthread_mutex_unlock(&groups->lock);
    if (ended)
        turn_away(groups, request);
}

static void refuse(struct weft_groups *groups, struct weft_request *request, bool walk)
{
    struct weft_err err = {0};
    if (walk) {
        (void)weft_fail(&err, WEFT_RATE_LIMITED,
                        "%d lists with a filter are waiting already for this %s",
                        WEFT_WALKS_WAITING, request->token ? "token" : "namespace");
        err.hint =
            "a list whose filter fits little takes long: ask for one at a time and follow its "
            "cursor, or narrow it with created_since";
    } else {
        (void)weft_fail(&err, WEFT_RATE_LIMITED, "%u requests are waiting already",
                        groups->server->config.queue_max);
        err.hint =
            "the store is slower than the requests come: try again later, or send fewer, larger "
            "requests";
    }
    weft_reply_error(request, &err);
    weft_loop_answer(groups->server, &request, 1);
}

static void prepend(struct weft_request **list, struct weft_request *request)
{
    request->next = *list;
    *list = request;
}

void weft_groups_put(struct weft_groups *groups, struct weft_request *first)
{
    const struct weft_plan *plan = &groups->plan;
    struct weft_request *refused[2] = {NULL}; /* the second: more walks than may wait */
    pthread_mutex_lock(&groups->lock);
    bool ended = groups->ended;
    while (first) {
        struct weft_request *request = first;
        first = request->next;
        if (ended || !weft_plan_has_room(plan, request->ns, groups->server->config.queue_max))
            prepend(&refused[0], request);
        else if (!weft_plan_has_room_to_walk(plan, request))
            prepend(&refused[1], request);
        else
            put(groups, request);
    }
    wake_one(groups);
    pthread_mutex_unlock(&groups->lock);
    for (size_t walk = 0; walk < WEFT_LEN(refused); walk++)
        while (refused[walk]) {
            struct weft_request *request = refused[walk];
            refused[walk] = request->next;
            if (ended)
                turn_away(groups, request);
            else
                refuse(groups, request, walk);
        }
}

void weft_groups_do(struct weft_groups *groups, void (*fn)(struct weft_server *, void *),
                    void *context)
{
    struct task *task = weft_alloc(1, sizeof(*task));
    *task = (struct task){.fn = fn, .context = context};
    pthread_mutex_lock(&groups->lock);
    *groups->last_task = task;
    groups->last_task = &task->next;
    groups->plan.tasks++;
    wake_one(groups);
    pthread_mutex_unlock(&groups->lock);
}

struct weft_groups *weft_groups_new(struct weft_server *server)
{
    struct weft_groups *groups = weft_alloc(1, sizeof(*groups));
    groups->server = server;
    groups->last_task = &groups->task;
    pthread_mutex_init(&groups->lock, NULL);
    pthread_cond_init(&groups->work, NULL);
    groups->threads = groups->alive = server->config.threads;
    weft_plan_init(&groups->plan, groups->threads, weft_engine_writers(server->engine));
    if (server->loop)
        groups->plan.answers = weft_loop_answers(server->loop);
    groups->thread = weft_alloc(groups->threads, sizeof(*groups->thread));
    for (uint32_t i = 0; i < groups->threads; i++)
        weft_thread_start(&groups->thread[i], "weft-engine", run_thread, groups);
    return groups;
}

void weft_groups_stop(struct weft_groups *groups)
{
    if (!groups)
        return;
    pthread_mutex_lock(&groups->lock);
    groups->stopping = true;
    groups->plan.answers = NULL; /* requests that still wait are answered, and then all is freed */
    pthread_cond_broadcast(&groups->work);
    pthread_mutex_unlock(&groups->lock);
    for (uint32_t i = 0; i < groups->threads; i++)
        pthread_join(groups->thread[i], NULL);
    groups->threads = 0;
}

void weft_groups_free(struct weft_groups *groups)
{
    if (!groups)
        return;
    weft_groups_stop(groups);
    while (groups->task) {
        struct task *task = pop_task(groups);
        task->fn(groups->server, task->context);
        free(task);
    }
    weft_plan_done(&groups->plan);
    pthread_cond_destroy(&groups->work);
    pthread_mutex_destroy(&groups->lock);
    free(groups->thread);
    free(groups);
}
