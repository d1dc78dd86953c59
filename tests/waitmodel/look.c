/* SPDX-License-Identifier: Apache-2.0 */

/* Reads executions, waitpoints, signals and attempts, and compares them with the model. */

#include "waitmodel.h"

#include "base/arena.h"
#include "base/id.h"
#include "base/limits.h"
#include "core/state.h"
#include "core/stored.h"
#include "engine/engine.h"
#include "engine/job/execution_read.h"
#include "engine/wait/wait.h"

#include <stdlib.h>

static bool same_text(const char *got, const char *want)
{
    return !got == !want && (!got || strcmp(got, want) == 0);
}

static const char *or_dash(const char *text)
{
    return text ? text : "-";
}

/* ---- Signals --------------------------------------------------------------------------------- */

static bool same_signal(const struct execution *x, const struct sent *want,
                        const struct weft_signal_info *got)
{
    if (!want)
        return false;
    const struct point *point = &x->point[want->point];
    struct weft_bytes payload = payload_of(want->payload);
    return weft_id_cmp(&got->waitpoint, &point->id) == 0 &&
           same_text(got->waitpoint_name, point_text[point->name]) && got->n == want->n &&
           got->at_us == want->at_us && same_text(got->name, name_text[want->name]) &&
           same_text(got->source, source_text[want->source]) &&
           same_text(got->key, dedupe_text[want->dedupe]) && !got->payload == !payload.data &&
           got->payload_size == payload.size &&
           (payload.size == 0 || !got->payload ||
            memcmp(got->payload, payload.data, payload.size) == 0);
}

/* Sorts signals: with `by_time` as they came, else by waitpoint; n is the order of a waitpoint. */
static void sort_signals(const struct execution *x, const struct sent **signal, size_t count,
                         bool by_time)
{
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0; k--) {
            const struct sent *one = signal[k - 1], *other = signal[k];
            int order = weft_id_cmp(&x->point[one->point].id, &x->point[other->point].id);
            order = order ? order : one->n - other->n;
            if (by_time && one->at_us != other->at_us)
                order = one->at_us < other->at_us ? -1 : 1;
            if (order < 0)
                break;
            signal[k - 1] = other;
            signal[k] = one;
        }
}

void check_signals(struct world *w, const struct execution *x, const struct resumption *resumption,
                   const struct weft_signal_info *got, size_t count, bool more)
{
    const struct sent *want[SIGNALS_MAX] = {NULL};
    size_t wanted = 0, fit = 0, bytes = 0;
    for (size_t i = 0; i < x->signals; i++)
        for (size_t k = 0; k < resumption->count; k++)
            if (x->signal[i].point == resumption->point[k])
                want[wanted++] = &x->signal[i];
    sort_signals(x, want, wanted, true);
    for (; fit < wanted; fit++) {
        bytes += payload_of(want[fit]->payload).size + WEFT_SIGNAL_BYTES;
        if (bytes > WEFT_SIGNALS_CLAIM_BYTES)
            break;
    }
    if (count != fit || more != (fit < wanted))
        wrong(w, "#%zu has %zu signals along%s, must have %zu%s", number_of(w, x), count,
              more ? " and more" : "", fit, fit < wanted ? " and more" : "");
    for (size_t i = 0; i < fit && !w->failed; i++)
        if (!same_signal(x, want[i], &got[i]))
            wrong(w, "signal %zu of #%zu differs from the sent one", i, number_of(w, x));
}

static void compare_signals(struct world *w, struct weft_engine *engine, const struct execution *x)
{
    const struct sent *want[SIGNALS_MAX] = {NULL};
    struct weft_wait_asking asking = {
        .id = x->id, .ns = "default", .limit = chance(w, 80) ? 0 : 1 + (uint32_t)below(w, 5)};
    size_t seen = 0;
    for (size_t i = 0; i < x->signals; i++)
        want[i] = &x->signal[i];
    sort_signals(x, want, x->signals, false);
    do {
        struct weft_signals page = {0};
        struct weft_err err = {0};
        must_be(w, weft_engine_signal_list(engine, &asking, w->arena, &page, &err), WEFT_OK,
                "the list of signals");
        for (size_t i = 0; i < page.count && !w->failed; i++, seen++)
            if (seen >= x->signals || !same_signal(x, want[seen], &page.item[i]))
                wrong(w, "signal %zu in the list of #%zu differs from the sent one", seen,
                      number_of(w, x));
        asking.after = page.next;
    } while (asking.after && !w->failed);
    if (seen != x->signals && !w->failed)
        wrong(w, "#%zu has %zu signals, must have %zu", number_of(w, x), seen, x->signals);
}

/* ---- Waitpoints ------------------------------------------------------------------------------ */

static const struct execution *sorted; /* one thread */

static int by_id(const void *a, const void *b)
{
    return weft_id_cmp(&sorted->point[*(const size_t *)a].id,
                       &sorted->point[*(const size_t *)b].id);
}

static void compare_point(struct world *w, const struct execution *x, const struct point *point,
                          const struct weft_waitpoint *got)
{
    enum weft_waitpoint_state state = state_of_point(w, x, point);
    int32_t signals = 0;
    for (size_t i = 0; i < x->signals; i++)
        signals += &x->point[x->signal[i].point] == point;
    if (weft_id_cmp(&got->id, &point->id) != 0 || !same_text(got->name, point_text[point->name]) ||
        got->state != state || got->created_us != point->created_us ||
        got->expires_us != point->expires_us || got->signals != signals || got->token ||
        got->key_id != point->key)
        wrong(w,
              "waitpoint %zu of #%zu is listed as %s, state %d, %d signals, key %d; must be %s, "
              "%d, %d, %d",
              (size_t)(point - x->point), number_of(w, x), or_dash(got->name), got->state,
              got->signals, got->key_id, point_text[point->name], state, signals, point->key);
}

static void compare_points(struct world *w, struct weft_engine *engine, const struct execution *x)
{
    size_t order[POINTS_MAX] = {0}, seen = 0;
    struct weft_wait_asking asking = {
        .id = x->id, .ns = "default", .limit = chance(w, 80) ? 0 : 1 + (uint32_t)below(w, 5)};
    for (size_t i = 0; i < x->points; i++)
        order[i] = i;
    sorted = x;
    if (x->points > 0)
        qsort(order, x->points, sizeof(*order), by_id);
    do {
        struct weft_waitpoints page = {0};
        struct weft_err err = {0};
        must_be(w, weft_engine_waitpoint_list(engine, &asking, w->arena, &page, &err), WEFT_OK,
                "the list of waitpoints");
        for (size_t i = 0; i < page.count && seen < x->points && !w->failed; i++)
            compare_point(w, x, &x->point[order[seen++]], &page.item[i]);
        asking.after = page.next;
        seen += seen == x->points && asking.after; /* more than there are */
    } while (asking.after && !w->failed && seen <= x->points);
    if (seen != x->points && !w->failed)
        wrong(w, "#%zu has %zu waitpoints, must have %zu", number_of(w, x), seen, x->points);
}

/* ---- Attempts -------------------------------------------------------------------------------- */

static bool same_attempt(const struct lease *want, const struct weft_attempt *got)
{
    return got->epoch == want->epoch && got->attempt == want->attempt &&
           same_text(got->worker, want->claimed_us ? "worker" : NULL) &&
           same_text(got->ended, weft_ended_name(want->ended)) &&
           same_text(got->error_class, want->error_class) &&
           same_text(got->error_message, want->error_message) &&
           got->started_us == want->claimed_us && got->ended_us == want->ended_us &&
           got->run_at_us == want->run_at_us;
}

static void compare_attempts(struct world *w, struct weft_engine *engine, const struct execution *x)
{
    struct weft_attempts got = {0};
    struct weft_err err = {0};
    const struct lease last = {.epoch = x->epoch,
                               .attempt = x->attempt,
                               .ended = x->ended,
                               .error_class = x->error_class,
                               .error_message = x->error_message,
                               .claimed_us = x->claimed_us,
                               .ended_us = x->finished_us};
    must_be(w, weft_engine_attempts(engine, "default", &x->id, w->arena, &got, &err), WEFT_OK,
            "the attempts");
    if (got.count != x->leases + x->held)
        wrong(w, "#%zu has %zu attempts, must have %zu", number_of(w, x), got.count,
              x->leases + x->held);
    for (size_t i = 0; i < got.count && !w->failed; i++) {
        const struct lease *want = i < x->leases ? &x->lease[i] : &last;
        if (!same_attempt(want, &got.item[i]))
            wrong(w,
                  "lease %d of #%zu ended as %s, attempt %d, run_at %lld; must be %d, %s, %d, %lld",
                  got.item[i].epoch, number_of(w, x), got.item[i].ended, got.item[i].attempt,
                  (long long)got.item[i].run_at_us, want->epoch, weft_ended_name(want->ended),
                  want->attempt, (long long)want->run_at_us);
    }
}

/* ---- Executions ------------------------------------------------------------------------------ */

static struct weft_execution as_read(const struct execution *x)
{
    bool suspended = x->state == WEFT_STATE_SUSPENDED;
    return (struct weft_execution){
        .state = x->state,
        .attempt = x->attempt,
        .epoch = x->epoch,
        .lost = x->lost,
        .worker = x->claimed_us ? "worker" : NULL,
        .reason = suspended ? x->suspension.reason : x->reason,
        .by = x->by,
        .error_class = x->error_class,
        .error_message = x->error_message,
        .created_us = x->created_us,
        .started_us = x->started_us,
        .claimed_us = x->claimed_us,
        .finished_us = x->finished_us,
        .run_at_us = x->state == WEFT_STATE_DELAYED ? x->due_us : 0,
        .deadline_us = x->deadline_us,
        .lease_expires_us = x->state == WEFT_STATE_RUNNING ? x->due_us : 0,
        .suspended_us = suspended ? x->suspension.since_us : 0,
        .timeout_us = suspended ? x->due_us : 0,
        .escalated = suspended && x->suspension.escalated,
    };
}

static const char *say(const struct weft_execution *x, struct weft_arena *arena)
{
    return weft_arena_printf(
        arena,
        "%s attempt=%d epoch=%d lost=%d worker=%s reason=%s by=%s class=%s message=%s "
        "created=%lld started=%lld claimed=%lld finished=%lld run_at=%lld deadline=%lld "
        "lease=%lld suspended=%lld timeout=%lld escalated=%d",
        weft_state_name(x->state), x->attempt, x->epoch, x->lost, or_dash(x->worker),
        or_dash(x->reason), or_dash(x->by), or_dash(x->error_class), or_dash(x->error_message),
        (long long)x->created_us, (long long)x->started_us, (long long)x->claimed_us,
        (long long)x->finished_us, (long long)x->run_at_us, (long long)x->deadline_us,
        (long long)x->lease_expires_us, (long long)x->suspended_us, (long long)x->timeout_us,
        x->escalated);
}

void compare(struct world *w, bool all)
{
    struct weft_engine *engine = w->engine[any_engine(w)];
    struct weft_id id[EXECUTIONS_MAX];
    struct weft_execution got[EXECUTIONS_MAX];
    struct weft_err err = {0};
    for (size_t i = 0; i < w->executions; i++)
        id[i] = w->execution[i].id;
    must_be(w, weft_engine_describe(engine, "default", id, w->executions, w->arena, got, &err),
            WEFT_OK, "describe");
    for (size_t i = 0; i < w->executions && !w->failed; i++) {
        struct execution *x = &w->execution[i];
        const struct weft_execution want = as_read(x);
        const char *wanted = say(&want, w->arena), *given = say(&got[i], w->arena);
        if (strcmp(wanted, given) != 0)
            wrong(w, "#%zu is\n#   %s, must be\n#   %s", i, given, wanted);
        if (!w->failed && (x->touched || all)) {
            compare_points(w, engine, x);
            compare_signals(w, engine, x);
            compare_attempts(w, engine, x);
        }
        x->touched = false;
    }
}
