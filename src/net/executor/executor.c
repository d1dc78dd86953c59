/* SPDX-License-Identifier: Apache-2.0 */

/* The thread of the executor: when a cycle runs, and how it starts and stops. */

#include "net/executor/executor.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"
#include "engine/job/leases.h"
#include "net/executor/claims.h"
#include "net/executor/cycle.h"
#include "net/executor/leases.h"

#include <stdlib.h>
#include <string.h>

#define LET_GO_US (2 * WEFT_SECOND) /* after the end of the grace, for writing what was aborted */
enum { IN_FLIGHT = 1000, CROWD_THREADS = 2 };

/* ---- What comes from other threads ----------------------------------------------------------- */

/* What was asked of the executor since the last turn. */
struct asked {
    struct weft_outgoing_list ended;
    size_t ends;
    int32_t woken[WEFT_EXECUTOR_WOKEN_MAX];
    size_t wokens;
    bool watches, stopping;
    weft_usec stop_us;
};

static void take_asked(struct weft_executor *executor, struct asked *ret_asked)
{
    pthread_mutex_lock(&executor->lock);
    TAILQ_INIT(&ret_asked->ended);
    TAILQ_CONCAT(&ret_asked->ended, &executor->ended, ended);
    ret_asked->ends = executor->ends;
    ret_asked->wokens = executor->wokens;
    memcpy(ret_asked->woken, executor->woken, sizeof(executor->woken));
    ret_asked->watches = executor->watches;
    ret_asked->stopping = executor->stopping;
    ret_asked->stop_us = executor->stop_us;
    executor->ends = executor->wokens = 0;
    pthread_mutex_unlock(&executor->lock);
}

void weft_executor_wake(struct weft_executor *executor, const struct weft_woken *woken,
                        size_t count)
{
    pthread_mutex_lock(&executor->lock);
    bool first = executor->wokens == 0 && count > 0;
    for (size_t i = 0; i < count && executor->wokens <= WEFT_EXECUTOR_WOKEN_MAX; i++) {
        size_t at = 0;
        while (at < executor->wokens && executor->woken[at] != woken[i].queue)
            at++;
        if (at == executor->wokens && executor->wokens++ < WEFT_EXECUTOR_WOKEN_MAX)
            executor->woken[at] = woken[i].queue;
    }
    if (first)
        pthread_cond_signal(&executor->news);
    pthread_mutex_unlock(&executor->lock);
}

void weft_executor_leases(struct weft_executor *executor, const int32_t *worker, size_t count)
{
    pthread_mutex_lock(&executor->lock);
    for (size_t i = 0; i < executor->spots; i++)
        for (size_t k = 0; k < count; k++)
            if (executor->spot[i].worker == worker[k])
                executor->spot[i].watch = executor->watches = true;
    if (executor->watches)
        pthread_cond_signal(&executor->news);
    pthread_mutex_unlock(&executor->lock);
}

static struct weft_executor_spot *find_spot(const struct weft_executor *executor, const char *ns)
{
    for (size_t i = 0; i < executor->spots; i++)
        if (strcmp(executor->spot[i].ns, ns) == 0)
            return &executor->spot[i];
    return NULL;
}

bool weft_executor_meet(struct weft_executor *executor, const char *ns)
{
    const struct weft_watch watch = {.ns = ns, .worker = executor->worker};
    struct weft_err err = {0};
    int32_t worker = 0;
    if (find_spot(executor, ns))
        return true;
    if (weft_engine_worker_number(executor->engine, &watch, &worker, &err)) {
        weft_warn("the executor cannot claim in a namespace", F_STR("namespace", ns),
                  F_STR("error", err.text));
        return false;
    }
    pthread_mutex_lock(&executor->lock);
    if (executor->spots == executor->spot_room) {
        executor->spot_room = executor->spot_room ? executor->spot_room * 2 : 16;
        executor->spot = weft_realloc(executor->spot, executor->spot_room, sizeof(*executor->spot));
    }
    executor->spot[executor->spots++] =
        (struct weft_executor_spot){.ns = weft_arena_strdup(executor->arena, ns), .worker = worker};
    pthread_mutex_unlock(&executor->lock);
    return true;
}

void weft_executor_health(void *context, const char *ns, const char *name,
                          struct weft_endpoint_health *ret_health)
{
    struct weft_executor *executor = context;
    weft_usec now_us = weft_boot_us();
    pthread_mutex_lock(&executor->lock);
    const struct weft_target *target = weft_target_find(executor, ns, name);
    if (target) {
        enum weft_breaker_state state = weft_breaker_look(&target->breaker, now_us);
        ret_health->breaker = state == WEFT_BREAKER_OPEN     ? WEFT_ENDPOINT_OPEN
                              : state == WEFT_BREAKER_CLOSED ? WEFT_ENDPOINT_CLOSED
                                                             : WEFT_ENDPOINT_HALF_OPEN;
        if (state == WEFT_BREAKER_OPEN)
            ret_health->open_until_us = weft_clock_now(weft_engine_clock(executor->engine)) +
                                        target->breaker.until_us - now_us;
        ret_health->in_flight = target->in_flight;
        memcpy(ret_health->answers, target->answers, sizeof(target->answers));
        ret_health->failed = target->failed;
    }
    pthread_mutex_unlock(&executor->lock);
}

void weft_executor_carrier(void *context, const char *ns, const char *target,
                           struct weft_carrier_state *ret_state)
{
    struct weft_executor *executor = context;
    weft_usec now_us = weft_boot_us();
    pthread_mutex_lock(&executor->lock);
    const struct weft_target *found = weft_target_find(executor, ns, target);
    ret_state->urls = executor->urls;
    if (found) {
        weft_usec next_us = weft_breaker_next(&found->breaker);
        ret_state->in_flight = found->in_flight;
        ret_state->no_secret = found->no_secret;
        ret_state->open = weft_breaker_room(&found->breaker, now_us) == 0;
        if (ret_state->open && next_us != WEFT_NEVER)
            ret_state->open_until_us =
                weft_clock_now(weft_engine_clock(executor->engine)) + next_us - now_us;
    }
    pthread_mutex_unlock(&executor->lock);
}

/* ---- A turn ---------------------------------------------------------------------------------- */

static void note_wakes(struct weft_executor *executor, const struct asked *asked)
{
    if (asked->wokens > WEFT_EXECUTOR_WOKEN_MAX)
        weft_claims_all_woken(executor);
    else
        weft_claims_woken(executor, asked->woken, asked->wokens);
}

static void renew_due(struct weft_executor *executor)
{
    struct weft_err err = {0};
    while (weft_boot_us() >= weft_executor_renew_us(executor))
        if (weft_executor_renew(executor, &err)) {
            weft_debug("leases of HTTP calls were not renewed", F_STR("error", err.text));
            executor->retry_us = weft_boot_us() + WEFT_SECOND;
        }
}

static void abort_all(struct weft_executor *executor)
{
    struct weft_outgoing *out;
    TAILQ_FOREACH (out, &executor->running, link)
        if (!out->aborted)
            weft_outgoing_abort(out);
}

/* When the next turn is due without news. */
static weft_usec next_turn(const struct weft_executor *executor, const struct asked *asked)
{
    weft_usec next_us = weft_executor_renew_us(executor);
    if (!asked->stopping && executor->next_us < next_us)
        next_us = executor->next_us;
    if (executor->overs > 0 || (executor->full && !asked->stopping))
        next_us = executor->retry_us; /* 0: at once */
    if (asked->stopping && executor->runs > 0 && asked->stop_us < next_us)
        next_us = asked->stop_us;
    return next_us;
}

weft_usec weft_executor_turn(struct weft_executor *executor)
{
    struct asked asked;
    take_asked(executor, &asked);
    weft_usec now_us = weft_boot_us();
    bool looks =
        asked.ends > 0 || asked.wokens > 0 || executor->full || now_us >= executor->next_us;
    if (asked.watches)
        weft_executor_watch(executor);
    note_wakes(executor, &asked);
    weft_cycle_run(executor, &asked.ended, looks && !asked.stopping);
    renew_due(executor);
    weft_targets_slim(executor, now_us);
    executor->done = asked.stopping && executor->runs == 0 &&
                     (executor->overs == 0 || now_us > asked.stop_us + LET_GO_US);
    if (asked.stopping && now_us >= asked.stop_us && executor->runs > 0) {
        executor->cut_short = true;
        abort_all(executor);
        return WEFT_NEVER; /* their ends come */
    }
    return next_turn(executor, &asked);
}

static void *run_thread(void *context)
{
    struct weft_executor *executor = context;
    weft_usec next_us = 0;
    for (;;) {
        pthread_mutex_lock(&executor->lock);
        while (executor->ends == 0 && executor->wokens == 0 && !executor->watches &&
               !executor->poked && weft_boot_us() < next_us)
            weft_cond_until(&executor->news, &executor->lock, next_us);
        executor->poked = false;
        pthread_mutex_unlock(&executor->lock);
        next_us = weft_executor_turn(executor);
        if (executor->done)
            return NULL;
    }
}

/* ---- Starting and stopping ------------------------------------------------------------------- */

static const struct weft_executor_ops real_ops = {
    .start = weft_crowd_start,
    .stop = weft_crowd_stop,
    .call = weft_crowd_call,
    .abort = weft_crowd_abort,
    .trust = weft_crowd_trust,
    .endpoint = weft_endpoint_get,
    .release = weft_endpoint_release,
};

enum weft_rc weft_executor_new(const struct weft_executor_config *config,
                               struct weft_executor **ret_executor, struct weft_err *err)
{
    struct weft_executor *executor = weft_alloc(1, sizeof(*executor));
    executor->engine = config->engine;
    executor->metrics = config->metrics;
    executor->secrets = config->secrets;
    executor->ops = config->ops ? *config->ops : real_ops;
    executor->arena = weft_arena_new();
    executor->worker = weft_arena_strdup(executor->arena, config->worker);
    executor->in_flight_max = config->in_flight ? config->in_flight : IN_FLIGHT;
    executor->urls = config->urls;
    executor->full = true; /* it looks once at the start */
    executor->next_us = WEFT_NEVER;
    TAILQ_INIT(&executor->running);
    TAILQ_INIT(&executor->over);
    TAILQ_INIT(&executor->ended);
    pthread_mutex_init(&executor->lock, NULL);
    pthread_cond_init(&executor->news, NULL);
    const struct weft_crowd_config crowd = {.threads = CROWD_THREADS,
                                            .in_flight = (uint32_t)executor->in_flight_max};
    enum weft_rc rc = weft_http_retry_read(NULL, &executor->retry, err);
    if (!rc)
        rc = executor->ops.start(&crowd, &executor->crowd, err);
    if (rc) {
        weft_executor_free(executor);
        return rc;
    }
    *ret_executor = executor;
    return WEFT_OK;
}

void weft_executor_start(struct weft_executor *executor)
{
    executor->started = true;
    weft_thread_start(&executor->thread, "weft-executor", run_thread, executor);
}

void weft_executor_trust(struct weft_executor *executor, const char *pem)
{
    if (executor)
        executor->ops.trust(executor->crowd, pem);
}

void weft_executor_quiesce(struct weft_executor *executor, weft_usec until_us)
{
    if (!executor)
        return;
    pthread_mutex_lock(&executor->lock);
    if (!executor->stopping) {
        executor->stop_us = until_us;
        executor->stopping = executor->poked = true;
        pthread_cond_signal(&executor->news);
    }
    pthread_mutex_unlock(&executor->lock);
}

bool weft_executor_stop(struct weft_executor *executor)
{
    if (!executor)
        return true;
    weft_executor_quiesce(executor, weft_boot_us());
    if (executor->started)
        pthread_join(executor->thread, NULL);
    executor->started = false;
    return !executor->cut_short;
}

void weft_executor_free(struct weft_executor *executor)
{
    struct weft_outgoing *out;
    if (!executor)
        return;
    (void)weft_executor_stop(executor);
    if (executor->crowd)
        executor->ops.stop(executor->crowd); /* every transfer has ended after this */
    while ((out = TAILQ_FIRST(&executor->running))) {
        TAILQ_REMOVE(&executor->running, out, link);
        weft_outgoing_free(out);
    }
    while ((out = TAILQ_FIRST(&executor->over))) {
        TAILQ_REMOVE(&executor->over, out, link);
        weft_outgoing_free(out);
    }
    weft_targets_done(executor);
    weft_map_done(&executor->by_id);
    free(executor->spot);
    pthread_cond_destroy(&executor->news);
    pthread_mutex_destroy(&executor->lock);
    weft_arena_free(executor->arena);
    free(executor);
}
