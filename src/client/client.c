/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The calls of weft.h that change something.
 *
 * What a caller can get wrong about pointers and sizes is answered here, so that backends may take
 * them for granted; what a value may be is the engine's business. The story of a failure is
 * collected apart and handed over only when the call fails: backends write into theirs freely, and
 * a caller may pass NULL for it.
 */

#include "client/client.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/thread.h"
#include "core/spec.h"
#include "engine/call.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/tx/commit_effects.h"
#include "fetch/fetch.h"
#include "weft/weft.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Arguments ------------------------------------------------------------------------------- */

enum weft_rc weft_copy_err(enum weft_rc rc, const struct weft_err *story, struct weft_err *err)
{
    if (rc && err)
        *err = *story;
    return rc;
}

enum weft_rc weft_missing(const char *field, struct weft_err *err)
{
    return weft_invalid(err, field, "%s is NULL", field);
}

enum weft_rc weft_check_process(const struct weft *weft, struct weft_err *err)
{
    if (weft->forks == weft_forks())
        return WEFT_OK;
    return weft_hint(err, weft_fail(err, WEFT_MISUSE, "this handle was opened before fork()"),
                     "open a new one in the child");
}

enum weft_rc weft_check_given(const struct weft_given *given, struct weft_err *err)
{
    if (!given->weft)
        return weft_missing("weft", err);
    enum weft_rc rc = weft_check_process(given->weft, err);
    if (rc)
        return rc;
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

enum weft_rc weft_check_range(const struct weft_range *range, struct weft_err *err)
{
    if (range->value >= range->min && range->value <= range->max)
        return WEFT_OK;
    return weft_invalid(err, range->field, "%s is %lld, allowed are %lld to %lld", range->field,
                        (long long)range->value, (long long)range->min, (long long)range->max);
}

enum weft_rc weft_check_array(const void *array, size_t count, const char *field, size_t i,
                              struct weft_err *err)
{
    if (count == 0 || array)
        return WEFT_OK;
    return weft_invalid(err, field, "%s of item %zu is NULL but has %zu of them", field, i, count);
}

enum weft_rc weft_check_spec(const struct weft_spec *spec, size_t i, struct weft_err *err)
{
    enum weft_rc rc =
        weft_check_array(spec->capabilities, spec->capability_count, "capabilities", i, err);
    if (!rc)
        rc = weft_check_array(spec->tags, spec->tag_count, "tags", i, err);
    if (!rc)
        rc = weft_check_array(spec->budgets, spec->budget_count, "budgets", i, err);
    if (!rc)
        rc = weft_check_array(spec->cost, spec->cost_count, "cost", i, err);
    if (!rc && spec->policy)
        rc = weft_check_array(spec->policy->no_retry, spec->policy->no_retry_count,
                              "policy.no_retry", i, err);
    return rc;
}

static enum weft_rc check_specs(const struct weft_op_call *call, struct weft_err *err)
{
    const struct weft_spec *spec = call->in;
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < call->count && !rc; i++)
        rc = weft_check_spec(&spec[i], i, err);
    return rc;
}

static enum weft_rc check_wait(int64_t wait_ms, struct weft_err *err)
{
    return weft_check_range(
        &(struct weft_range){.field = "wait_ms", .value = wait_ms, .max = WEFT_CLAIM_WAIT_MAX},
        err);
}

static enum weft_rc check_claims(const struct weft_op_call *call, struct weft_err *err)
{
    const struct weft_claim *claim = call->in;
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < call->count && !rc; i++) {
        rc = weft_check_array(claim[i].lanes, claim[i].lane_count, "lanes", i, err);
        if (!rc)
            rc = weft_check_array(claim[i].kinds, claim[i].kind_count, "kinds", i, err);
        if (!rc)
            rc = weft_check_array(claim[i].capabilities, claim[i].capability_count, "capabilities",
                                  i, err);
        if (!rc)
            rc = check_wait(claim[i].wait_ms, err);
    }
    return rc;
}

static enum weft_rc check_results(const struct weft_op_call *call, struct weft_err *err)
{
    const struct weft_complete *item = call->in;
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < call->count && !rc; i++)
        rc = weft_check_array(item[i].result, item[i].result_size, "result", i, err);
    return rc;
}

static enum weft_rc check_watch(const struct weft_op_call *call, struct weft_err *err)
{
    const struct weft_watch *watch = call->in;
    return watch->worker ? check_wait(watch->wait_ms, err) : weft_missing("worker", err);
}

/* ---- Answers to items ------------------------------------------------------------------------ */

static const struct weft_err *err_of(const struct weft_err *err)
{
    static const struct weft_err none;
    return err ? err : &none;
}

static void give_submitted(const void *results, size_t count, void *ret_answer)
{
    const struct weft_submit_result *from = results;
    struct weft_submitted *to = ret_answer;
    for (size_t i = 0; i < count; i++)
        to[i] = (struct weft_submitted){.err = *err_of(from[i].err),
                                        .id = from[i].id,
                                        .state = from[i].state,
                                        .duplicate = from[i].duplicate};
}

static void give_lease_answers(const void *results, size_t count, void *ret_answer)
{
    const struct weft_lease_result *from = results;
    struct weft_lease_answer *to = ret_answer;
    for (size_t i = 0; i < count; i++)
        to[i] = (struct weft_lease_answer){.err = *err_of(from[i].err),
                                           .fence = from[i].fence,
                                           .state = from[i].state,
                                           .lease_expires_us = from[i].lease_expires_us,
                                           .run_at_us = from[i].run_at_us};
}

static void give_steered(const void *results, size_t count, void *ret_answer)
{
    const struct weft_steer_result *from = results;
    struct weft_steered *to = ret_answer;
    for (size_t i = 0; i < count; i++)
        to[i] = (struct weft_steered){
            .err = *err_of(from[i].err), .state = from[i].state, .changed = from[i].changed};
}

static void give_flows(const void *results, size_t count, void *ret_answer)
{
    const struct weft_flow_result *from = results;
    struct weft_flow_submitted *to = ret_answer;
    for (size_t i = 0; i < count; i++)
        to[i] = (struct weft_flow_submitted){.err = *err_of(from[i].err),
                                             .id = from[i].id,
                                             .state = from[i].state,
                                             .revision = from[i].revision,
                                             .duplicate = from[i].duplicate,
                                             .node = from[i].node,
                                             .blamed = from[i].blamed};
}

const struct weft_answer_kind weft_answers_submit = {sizeof(struct weft_submit_result),
                                                     give_submitted};
const struct weft_answer_kind weft_answers_lease = {sizeof(struct weft_lease_result),
                                                    give_lease_answers};
const struct weft_answer_kind weft_answers_steer = {sizeof(struct weft_steer_result), give_steered};
const struct weft_answer_kind weft_answers_flow = {sizeof(struct weft_flow_result), give_flows};

/* ---- Carrying out ---------------------------------------------------------------------------- */

enum weft_rc weft_do_items(struct weft *weft, const struct weft_op_call *call, weft_check_fn *check,
                           const struct weft_answer_kind *kind, struct weft_err *err)
{
    struct weft_err story = {0};
    struct weft_op_call mine = *call;
    const struct weft_given given = {weft, call->in, call->count, call->out};
    const struct weft_via via = {.weft = weft};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (!rc && check)
        rc = check(call, &story);
    if (rc || !call->count)
        return weft_copy_err(rc, &story, err);
    assert(kind); /* a call with items says what their answers are */
    mine.arena = weft_arena_new();
    mine.out = weft_arena_alloc(mine.arena, call->count, kind->size);
    if (kind == &weft_answers_flow)
        for (size_t i = 0; i < call->count; i++)
            ((struct weft_flow_result *)mine.out)[i].node =
                ((const struct weft_flow_submitted *)call->out)[i].node;
    rc = weft->backend->call(&via, &mine, &story);
    if (!rc)
        kind->give(mine.out, call->count, call->out);
    weft_arena_free(mine.arena);
    return weft_copy_err(rc, &story, err);
}

enum weft_rc weft_do_kept(struct weft *weft, const struct weft_op_call *call,
                          const void *ret_answer, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, call->in, call->count, call->out};
    const struct weft_via via = {.weft = weft};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (!rc && !ret_answer)
        rc = weft_missing("ret_answer", &story);
    if (!rc && call->count > 0)
        rc = weft->backend->call(&via, call, &story);
    if (rc)
        weft_arena_free(call->arena);
    return weft_copy_err(rc, &story, err);
}

enum weft_rc weft_do(const struct weft_via *via, const struct weft_op_call *call,
                     weft_check_fn *check, struct weft_arena **ret_arena, struct weft_err *err)
{
    struct weft_err story = {0};
    struct weft_op_call mine = *call;
    const struct weft_given given = {via->weft, call->count ? call->in : via,
                                     call->count ? call->count : 1, call->out};
    bool cancels = call->op == WEFT_OP_FLOW_CANCEL || call->op == WEFT_OP_FLOW_DELETE;
    const struct weft_range wait = {.field = "wait_ms",
                                    .value = via->wait_ms,
                                    .max = cancels ? WEFT_CLAIM_WAIT_MAX : WEFT_CLIENT_WAIT_MAX_MS};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (!rc)
        rc = weft_check_range(&wait, &story);
    if (!rc && check)
        rc = check(call, &story);
    if (!rc && !mine.arena)
        mine.arena = weft_arena_new();
    if (!rc && via->weft) /* a missing one was refused above */
        rc = via->weft->backend->call(via, &mine, &story);
    if (rc || !ret_arena)
        weft_arena_free(mine.arena);
    else
        *ret_arena = mine.arena;
    return weft_copy_err(rc, &story, err);
}

enum weft_rc weft_ask(struct weft *weft, const struct weft_op_call *call,
                      struct weft_arena **ret_arena, struct weft_err *err)
{
    return weft_do(&(struct weft_via){.weft = weft}, call, NULL, ret_arena, err);
}

const char *weft_ns_of(const struct weft *weft, const char *ns)
{
    return ns || !weft ? ns : weft->ns;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static struct weft *make_handle(const struct weft_backend *backend, const char *ns)
{
    struct weft *weft = weft_alloc(1, sizeof(*weft));
    weft->backend = backend;
    weft->forks = weft_forks();
    weft->ns = weft_strdup(ns);
    pthread_mutex_init(&weft->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&weft->changed, &attr);
    pthread_condattr_destroy(&attr);
    return weft;
}

/* An operation made more ready than its own items: nodes of a flow whose join it decided. */
static void on_news(void *context, const struct weft_news *news)
{
    if (news->count > 0)
        weft_wake_workers(context, true, WEFT_NEVER);
}

/* A call in this process ended leases that workers of this handle may hold. */
static void on_leases(void *context, const int32_t *worker, size_t count)
{
    (void)worker;
    (void)count;
    weft_wake_watches(context);
}

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
    *ret_weft = make_handle(&weft_backend_local, ns);
    (*ret_weft)->engine = engine;
    weft_engine_on_news(engine, on_news, *ret_weft);
    weft_engine_on_leases(engine, on_leases, *ret_weft);
    return WEFT_OK;
}

static enum weft_rc open_remote(const char *url, const struct weft_options *options,
                                struct weft **ret_weft, struct weft_err *err)
{
    const char *ns = options->ns ? options->ns : "default";
    const struct weft_fetch_config config = {
        .base_url = url, .token = options->token, .ca_file = options->ca_file};
    struct weft_fetch *fetch;
    enum weft_rc rc = weft_name_check(ns, "namespace", err);
    if (!rc)
        rc = weft_fetch_open(&config, &fetch, err);
    if (rc)
        return rc;
    *ret_weft = make_handle(&weft_backend_remote, ns);
    (*ret_weft)->fetch = fetch;
    (*ret_weft)->ns_given = options->ns != NULL;
    return WEFT_OK;
}

enum weft_rc weft_open(const char *url, const struct weft_options *options, struct weft **ret_weft,
                       struct weft_err *err)
{
    struct weft_err story = {0};
    static const struct weft_options none = {0};
    const struct weft_options *chosen = options ? options : &none;
    const struct weft_engine_config config = {.url = url,
                                              .unused_after_us = WEFT_UNUSED_AFTER_US,
                                              .connections = chosen->connections,
                                              .signing_key_file = chosen->signing_key_file,
                                              .no_migrate = chosen->no_migrate,
                                              .must_exist = chosen->must_exist};
    enum { CONNECTIONS_MAX = 1000 };
    if (!url || !ret_weft)
        return weft_missing(url ? "ret_weft" : "url", err);
    if (chosen->connections > CONNECTIONS_MAX)
        return weft_invalid(err, "connections", "connections is %u, at most %d are allowed",
                            chosen->connections, CONNECTIONS_MAX);
    bool remote = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
    return weft_copy_err(remote ? open_remote(url, chosen, ret_weft, &story)
                                : weft_open_with(&config, chosen->ns, ret_weft, &story),
                         &story, err);
}

void weft_close(struct weft *weft)
{
    /*
     * In a forked child the handle is left alone and its memory is not freed: closing would end the
     * parent's sessions with PostgreSQL and servers on the shared sockets, SQLite forbids it, and a
     * lock may be held for ever by a thread that the child does not have.
     */
    if (!weft || weft_check_process(weft, NULL))
        return;
    weft->backend->close(weft);
    pthread_cond_destroy(&weft->changed);
    pthread_mutex_destroy(&weft->lock);
    free(weft->ns);
    free(weft);
}

const char *weft_version(void)
{
    return WEFT_VERSION;
}

/* ---- Submitting and working ------------------------------------------------------------------ */

enum weft_rc weft_submit(struct weft *weft, const struct weft_spec *spec, size_t count,
                         struct weft_submitted *ret_answer, struct weft_err *err)
{
    const struct weft_op_call call = {
        .op = WEFT_OP_SUBMIT, .in = spec, .count = count, .out = ret_answer};
    return weft_do_items(weft, &call, check_specs, &weft_answers_submit, err);
}

enum weft_rc weft_claim(struct weft *weft, const struct weft_claim *claim, size_t count,
                        struct weft_claims *ret_claims, struct weft_err *err)
{
    struct weft_claim_result result = {0};
    struct weft_arena *arena = NULL;
    const struct weft_op_call call = {
        .op = WEFT_OP_CLAIM, .in = claim, .count = count, .out = ret_claims ? &result : NULL};
    enum weft_rc rc =
        count ? weft_do(&(struct weft_via){.weft = weft}, &call, check_claims, &arena, err)
              : weft_do_items(weft, &call, NULL, NULL, err);
    if (!rc && !ret_claims)
        return weft_missing("ret_claims", err);
    if (!rc)
        *ret_claims = (struct weft_claims){.item = result.item,
                                           .count = result.count,
                                           .contended = result.contended,
                                           .arena = arena};
    return rc;
}

WEFT_FREES(weft_claims)

enum weft_rc weft_watch(struct weft *weft, const struct weft_watch *watch,
                        struct weft_watched *ret_watched, struct weft_err *err)
{
    const struct weft_op_call call = {
        .op = WEFT_OP_WATCH, .in = watch, .count = 1, .out = ret_watched};
    return weft_do(&(struct weft_via){.weft = weft}, &call, check_watch, WEFT_ARENA_OF(ret_watched),
                   err);
}

WEFT_FREES(weft_watched)

/* An operation of the holder of leases. */
static enum weft_rc do_leases(struct weft *weft, enum weft_op op, const void *item, size_t count,
                              struct weft_lease_answer *ret_answer, struct weft_err *err)
{
    const struct weft_op_call call = {.op = op, .in = item, .count = count, .out = ret_answer};
    return weft_do_items(weft, &call, op == WEFT_OP_COMPLETE ? check_results : NULL,
                         &weft_answers_lease, err);
}

enum weft_rc weft_renew(struct weft *weft, const struct weft_renew *item, size_t count,
                        struct weft_lease_answer *ret_answer, struct weft_err *err)
{
    return do_leases(weft, WEFT_OP_RENEW, item, count, ret_answer, err);
}

enum weft_rc weft_complete(struct weft *weft, const struct weft_complete *item, size_t count,
                           struct weft_lease_answer *ret_answer, struct weft_err *err)
{
    return do_leases(weft, WEFT_OP_COMPLETE, item, count, ret_answer, err);
}

enum weft_rc weft_fail_lease(struct weft *weft, const struct weft_failure *item, size_t count,
                             struct weft_lease_answer *ret_answer, struct weft_err *err)
{
    return do_leases(weft, WEFT_OP_FAIL, item, count, ret_answer, err);
}

enum weft_rc weft_delay(struct weft *weft, const struct weft_put_back *item, size_t count,
                        struct weft_lease_answer *ret_answer, struct weft_err *err)
{
    return do_leases(weft, WEFT_OP_DELAY, item, count, ret_answer, err);
}

enum weft_rc weft_release(struct weft *weft, const struct weft_put_back *item, size_t count,
                          struct weft_lease_answer *ret_answer, struct weft_err *err)
{
    return do_leases(weft, WEFT_OP_RELEASE, item, count, ret_answer, err);
}

/* ---- Steering -------------------------------------------------------------------------------- */

enum weft_rc weft_steer(struct weft *weft, enum weft_steer_kind kind, const struct weft_steer *item,
                        size_t count, struct weft_steered *ret_answer, struct weft_err *err)
{
    static const enum weft_op ops[] = {
        [WEFT_STEER_CANCEL] = WEFT_OP_CANCEL,
        [WEFT_STEER_REPLAY] = WEFT_OP_REPLAY,
        [WEFT_STEER_REPRIORITIZE] = WEFT_OP_REPRIORITIZE,
        [WEFT_STEER_REVOKE] = WEFT_OP_REVOKE,
        [WEFT_STEER_SET_DEADLINE] = WEFT_OP_SET_DEADLINE,
        [WEFT_STEER_RESUME] = WEFT_OP_RESUME,
    };
    if ((unsigned)kind >= WEFT_LEN(ops))
        return weft_invalid(err, "kind", "there is no such kind of steering");
    const struct weft_op_call call = {
        .op = ops[kind], .in = item, .count = count, .out = ret_answer};
    return weft_do_items(weft, &call, NULL, &weft_answers_steer, err);
}

enum weft_rc weft_steer_all(struct weft *weft, const struct weft_steer_all *args,
                            struct weft_sweep *ret_sweep, struct weft_err *err)
{
    struct weft_steer_all mine = {0};
    struct weft_op_call call = {.op = WEFT_OP_CANCEL_MANY, .count = 1, .out = ret_sweep};
    if (args) {
        mine = *args;
        call.in = &mine;
        call.op = args->kind == WEFT_STEER_REPLAY ? WEFT_OP_REPLAY_MANY : WEFT_OP_CANCEL_MANY;
    }
    mine.filter.ns = weft_ns_of(weft, mine.filter.ns);
    return weft_ask(weft, &call, NULL, err);
}
