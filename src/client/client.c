/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The calls of weft.h over an engine in this process.
 *
 * What a caller can get wrong about pointers and sizes is answered here, so that the engine may
 * take them for granted; what a value may be is the engine's business. The story of a failure is
 * collected apart and handed over only when the call fails: engines write into theirs freely, and
 * a caller may pass NULL for it.
 */

#include "client/client.h"

#include "base/arena.h"
#include "base/err.h"
#include "core/spec.h"

#include <stdlib.h>
#include <string.h>

/* ---- Arguments ------------------------------------------------------------------------------- */

enum weft_rc weft_told(enum weft_rc rc, const struct weft_err *story, struct weft_err *err)
{
    if (rc && err)
        *err = *story;
    return rc;
}

enum weft_rc weft_missing(const char *field, struct weft_err *err)
{
    return weft_fail_field(err, WEFT_INVALID_VALUE, field, "%s is NULL", field);
}

enum weft_rc weft_check_given(const struct weft_given *given, struct weft_err *err)
{
    if (!given->weft)
        return weft_missing("weft", err);
    if (given->count > WEFT_CALL_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "count",
                               "%zu items in one call, at most %d are allowed", given->count,
                               WEFT_CALL_MAX);
    if (given->count > 0 && !given->in)
        return weft_missing("the array of items", err);
    if (given->count > 0 && !given->out)
        return weft_missing("the array of answers", err);
    return WEFT_OK;
}

/* An array inside an item; `i` tells which item. */
static enum weft_rc check_array(const void *array, size_t count, const char *field, size_t i,
                                struct weft_err *err)
{
    if (count == 0 || array)
        return WEFT_OK;
    return weft_fail_field(err, WEFT_INVALID_VALUE, field,
                           "%s of item %zu is NULL but has %zu of them", field, i, count);
}

static enum weft_rc check_specs(const struct weft_spec *spec, size_t count, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        rc = check_array(spec[i].capabilities, spec[i].capability_count, "capabilities", i, err);
        if (!rc)
            rc = check_array(spec[i].tags, spec[i].tag_count, "tags", i, err);
        if (!rc && spec[i].policy)
            rc = check_array(spec[i].policy->no_retry, spec[i].policy->no_retry_count,
                             "policy.no_retry", i, err);
    }
    return rc;
}

static enum weft_rc check_claims(const struct weft_claim *claim, size_t count, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        rc = check_array(claim[i].lanes, claim[i].lane_count, "lanes", i, err);
        if (!rc)
            rc = check_array(claim[i].kinds, claim[i].kind_count, "kinds", i, err);
        if (!rc)
            rc = check_array(claim[i].capabilities, claim[i].capability_count, "capabilities", i,
                             err);
    }
    return rc;
}

/* ---- Opening --------------------------------------------------------------------------------- */

enum weft_rc weft_open_with(const struct weft_engine_config *config, const char *ns,
                            struct weft **ret_weft, struct weft_err *err)
{
    if (!ns)
        ns = "default";
    struct weft_engine *engine;
    enum weft_rc rc = weft_name_check(ns, "namespace", err);
    if (!rc)
        rc = weft_engine_open(config, &engine, err);
    if (rc)
        return rc;
    struct weft *weft = calloc(1, sizeof(*weft));
    if (!weft)
        weft_oom(sizeof(*weft));
    weft->engine = engine;
    weft->ns = strdup(ns);
    if (!weft->ns)
        weft_oom(strlen(ns) + 1);
    pthread_mutex_init(&weft->lock, NULL);
    *ret_weft = weft;
    return WEFT_OK;
}

enum weft_rc weft_open(const char *url, const struct weft_options *options, struct weft **ret_weft,
                       struct weft_err *err)
{
    struct weft_err story = {0};
    static const struct weft_options none = {0};
    const struct weft_options *chosen = options ? options : &none;
    const struct weft_engine_config config = {
        .url = url, .connections = chosen->connections, .no_migrate = chosen->no_migrate};
    enum { CONNECTIONS_MAX = 1000 };
    if (!url || !ret_weft)
        return weft_missing(url ? "ret_weft" : "url", err);
    if (chosen->connections > CONNECTIONS_MAX)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "connections",
                               "connections is %u, at most %d are allowed", chosen->connections,
                               CONNECTIONS_MAX);
    return weft_told(weft_open_with(&config, chosen->ns, ret_weft, &story), &story, err);
}

void weft_close(struct weft *weft)
{
    if (!weft)
        return;
    weft_engine_close(weft->engine);
    pthread_mutex_destroy(&weft->lock);
    free(weft->ns);
    free(weft);
}

const char *weft_version(void)
{
    return WEFT_VERSION;
}

/* ---- Waking ---------------------------------------------------------------------------------- */

void weft_wake_workers(struct weft *weft, bool ready, weft_usec due_us)
{
    pthread_mutex_lock(&weft->lock);
    for (struct weft_worker *w = weft->worker; w; w = *weft_worker_link(w))
        weft_worker_wake(w, ready, due_us);
    pthread_mutex_unlock(&weft->lock);
}

void weft_add_worker(struct weft *weft, struct weft_worker *worker)
{
    pthread_mutex_lock(&weft->lock);
    *weft_worker_link(worker) = weft->worker;
    weft->worker = worker;
    pthread_mutex_unlock(&weft->lock);
}

void weft_remove_worker(struct weft *weft, const struct weft_worker *worker)
{
    pthread_mutex_lock(&weft->lock);
    struct weft_worker **at = &weft->worker;
    while (*at && *at != worker)
        at = weft_worker_link(*at);
    if (*at)
        *at = *weft_worker_link(*at);
    pthread_mutex_unlock(&weft->lock);
}

/* Wakes the workers of this handle for what was accepted. */
static void wake_for(struct weft *weft, const struct weft_spec *spec, size_t count,
                     const struct weft_submitted *answer)
{
    bool ready = false;
    weft_usec due_us = WEFT_NEVER, now_us = weft_clock_now(weft_engine_clock(weft->engine));
    for (size_t i = 0; i < count; i++) {
        if (answer[i].err.rc)
            continue;
        ready |= answer[i].state == WEFT_STATE_READY;
        if (answer[i].state != WEFT_STATE_DELAYED)
            continue;
        weft_usec at_us =
            spec[i].run_at_us ? spec[i].run_at_us : now_us + spec[i].delay_ms * WEFT_MS;
        due_us = at_us < due_us ? at_us : due_us;
    }
    if (ready || due_us != WEFT_NEVER)
        weft_wake_workers(weft, ready, due_us);
}

/* ---- Submitting and working ------------------------------------------------------------------ */

enum weft_rc weft_submit(struct weft *weft, const struct weft_spec *spec, size_t count,
                         struct weft_submitted *ret_answer, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, spec, count, ret_answer};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (!rc)
        rc = check_specs(spec, count, &story);
    if (!rc && count) {
        rc = weft_engine_submit(weft->engine, weft->ns, spec, count, ret_answer, &story);
        if (!rc)
            wake_for(weft, spec, count, ret_answer);
    }
    return weft_told(rc, &story, err);
}

enum weft_rc weft_claim(struct weft *weft, const struct weft_claim *claim, size_t count,
                        struct weft_claims *ret_claims, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, claim, count, ret_claims};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (!rc)
        rc = check_claims(claim, count, &story);
    if (rc)
        return weft_told(rc, &story, err);
    if (!ret_claims)
        return weft_missing("ret_claims", err);
    struct weft_arena *arena = weft_arena_new();
    struct weft_claim_result result = {0};
    if (count)
        rc = weft_engine_claim(weft->engine, weft->ns, claim, count, arena, &result, &story);
    if (rc)
        weft_arena_free(arena);
    else
        *ret_claims = (struct weft_claims){.item = result.item,
                                           .count = result.count,
                                           .contended = result.contended,
                                           .arena = arena};
    return weft_told(rc, &story, err);
}

void weft_claims_free(struct weft_claims *claims)
{
    if (!claims)
        return;
    weft_arena_free(claims->arena);
    *claims = (struct weft_claims){0};
}

enum weft_rc weft_renew(struct weft *weft, const struct weft_renew *item, size_t count,
                        struct weft_lease_answer *ret_answer, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, item, count, ret_answer};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (!rc && count)
        rc = weft_engine_renew(weft->engine, item, count, ret_answer, &story);
    return weft_told(rc, &story, err);
}

enum weft_rc weft_complete(struct weft *weft, const struct weft_complete *item, size_t count,
                           struct weft_lease_answer *ret_answer, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, item, count, ret_answer};
    enum weft_rc rc = weft_check_given(&given, &story);
    for (size_t i = 0; i < count && !rc; i++)
        rc = check_array(item[i].result, item[i].result_size, "result", i, &story);
    if (!rc && count)
        rc = weft_engine_complete(weft->engine, item, count, ret_answer, &story);
    return weft_told(rc, &story, err);
}

enum weft_rc weft_fail_lease(struct weft *weft, const struct weft_failure *item, size_t count,
                             struct weft_lease_answer *ret_answer, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, item, count, ret_answer};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (!rc && count)
        rc = weft_engine_fail(weft->engine, item, count, ret_answer, &story);
    return weft_told(rc, &story, err);
}

static enum weft_rc put_back(const struct weft_given *given, enum weft_put_back_kind kind,
                             struct weft_lease_answer *ret_answer, struct weft_err *err)
{
    struct weft_err story = {0};
    enum weft_rc rc = weft_check_given(given, &story);
    if (!rc && given->count)
        rc = weft_engine_put_back(given->weft->engine, kind, given->in, given->count, ret_answer,
                                  &story);
    return weft_told(rc, &story, err);
}

enum weft_rc weft_delay(struct weft *weft, const struct weft_put_back *item, size_t count,
                        struct weft_lease_answer *ret_answer, struct weft_err *err)
{
    const struct weft_given given = {weft, item, count, ret_answer};
    return put_back(&given, WEFT_PUT_BACK_DELAY, ret_answer, err);
}

enum weft_rc weft_release(struct weft *weft, const struct weft_put_back *item, size_t count,
                          struct weft_lease_answer *ret_answer, struct weft_err *err)
{
    const struct weft_given given = {weft, item, count, ret_answer};
    return put_back(&given, WEFT_PUT_BACK_RELEASE, ret_answer, err);
}

/* ---- Steering -------------------------------------------------------------------------------- */

enum weft_rc weft_steer(struct weft *weft, enum weft_steer_kind kind, const struct weft_steer *item,
                        size_t count, struct weft_steered *ret_answer, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, item, count, ret_answer};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (!rc && (unsigned)kind > WEFT_STEER_SET_DEADLINE)
        rc = weft_fail_field(&story, WEFT_INVALID_VALUE, "kind",
                             "there is no such kind of steering");
    if (!rc && count) {
        const struct weft_steering steering = {
            .kind = kind, .ns = weft->ns, .item = item, .count = count};
        rc = weft_engine_steer(weft->engine, &steering, ret_answer, &story);
        if (!rc && (kind == WEFT_STEER_REPLAY || kind == WEFT_STEER_REVOKE))
            weft_wake_workers(weft, true, WEFT_NEVER);
    }
    return weft_told(rc, &story, err);
}

enum weft_rc weft_steer_all(struct weft *weft, const struct weft_steer_all *args,
                            struct weft_sweep *ret_sweep, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, args, 1, ret_sweep};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (!rc) {
        struct weft_steer_all mine = *args;
        mine.filter.ns = args->filter.ns ? args->filter.ns : weft->ns;
        rc = weft_engine_steer_all(weft->engine, &mine, ret_sweep, &story);
        if (!rc && mine.kind == WEFT_STEER_REPLAY && ret_sweep->changed > 0)
            weft_wake_workers(weft, true, WEFT_NEVER);
    }
    return weft_told(rc, &story, err);
}

/* ---- Lanes and upkeep ------------------------------------------------------------------------ */

enum weft_rc weft_lane_put(struct weft *weft, const struct weft_lane *lane, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, lane, 1, lane};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (!rc)
        rc = check_array(lane->weights, lane->weight_count, "weights", 0, &story);
    if (!rc) {
        rc = weft_engine_lane_put(weft->engine, weft->ns, lane, &story);
        if (!rc)
            weft_wake_workers(weft, true, WEFT_NEVER); /* it may have been paused, or full */
    }
    return weft_told(rc, &story, err);
}

enum weft_rc weft_lanes(struct weft *weft, struct weft_lanes *ret_lanes, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, weft, 1, ret_lanes};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (rc)
        return weft_told(rc, &story, err);
    struct weft_arena *arena = weft_arena_new();
    rc = weft_engine_lanes(weft->engine, weft->ns, arena, ret_lanes, &story);
    if (rc)
        weft_arena_free(arena);
    else
        ret_lanes->arena = arena;
    return weft_told(rc, &story, err);
}

void weft_lanes_free(struct weft_lanes *lanes)
{
    if (!lanes)
        return;
    weft_arena_free(lanes->arena);
    *lanes = (struct weft_lanes){0};
}

enum weft_rc weft_run_pass(struct weft *weft, enum weft_pass pass, uint32_t batch,
                           struct weft_pass_report *ret_report, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, weft, 1, ret_report};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (!rc) {
        rc = weft_engine_pass(weft->engine, pass, batch, ret_report, &story);
        if (!rc && ret_report->handled > 0)
            weft_wake_workers(weft, true, WEFT_NEVER);
    }
    return weft_told(rc, &story, err);
}
