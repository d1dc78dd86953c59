/* SPDX-License-Identifier: Apache-2.0 */

/* Pending waitpoints and suspending. */

#include "waitmodel.h"

#include "base/arena.h"
#include "base/id.h"
#include "core/result.h"
#include "core/state.h"
#include "engine/engine.h"
#include "engine/wait/wait.h"

enum { TOGETHER = 3, POINTS_TOGETHER = TOGETHER * AT_MAX }; /* items of one call */

/* Mostly the epoch that runs. */
static int32_t draw_epoch(struct world *w, const struct execution *x)
{
    if (chance(w, 85) || x->epoch == 0)
        return x->epoch;
    return chance(w, 70) ? (int32_t)(1 + below(w, (size_t)x->epoch)) : x->epoch + 1;
}

static struct point *add_point(struct world *w, struct execution *x, const struct weft_id *id)
{
    struct point *point = &x->point[x->points++];
    *point =
        (struct point){.id = *id, .made = x->epoch, .replays = x->replays, .created_us = w->now_us};
    return point;
}

/* A waitpoint of an answer. */
static void check_point(struct world *w, struct point *point, const struct weft_waitpoint *got,
                        int32_t key, enum weft_waitpoint_state state)
{
    if (weft_id_cmp(&got->id, &point->id) != 0 || !got->name ||
        strcmp(got->name, point_text[point->name]) != 0 || got->created_us != point->created_us ||
        got->expires_us != point->expires_us || got->state != state || got->key_id != key)
        wrong(w, "a waitpoint is answered as %s, state %d, key %d; must be %s, %d, %d",
              got->name ? got->name : "-", got->state, got->key_id, point_text[point->name], state,
              key);
    else
        check_token(w, point, key, got->token);
}

/* ---- Pending waitpoints ---------------------------------------------------------------------- */

static struct point *find_pending(const struct world *w, struct execution *x, size_t name)
{
    for (size_t i = 0; i < x->points; i++)
        if (x->point[i].name == name &&
            state_of_point(w, x, &x->point[i]) == WEFT_WAITPOINT_PENDING)
            return &x->point[i];
    return NULL;
}

static void made(struct world *w, size_t engine, struct execution *x,
                 const struct weft_waitpoint_new *item, size_t name,
                 const struct weft_waitpoint_result *got)
{
    struct weft_lease_answer fate = {0};
    if (item->epoch < 1 || !holds(x, item->epoch))
        fate = fate_of(x, item->epoch, WEFT_ENDED_NONE);
    note(w, "engine %zu: waitpoint %s of #%zu, epoch %d, expires after %lld ms: %s %s", engine,
         item->name, number_of(w, x), item->epoch, (long long)item->expires_ms,
         weft_rc_wire(got->rc), weft_fence_name(got->fence));
    if (got->rc != fate.err.rc || got->fence != fate.fence)
        wrong(w, "a waitpoint is answered with %s %s, must be %s %s", weft_rc_wire(got->rc),
              weft_fence_name(got->fence), weft_rc_wire(fate.err.rc), weft_fence_name(fate.fence));
    if (w->failed || fate.err.rc)
        return;
    struct point *point = find_pending(w, x, name);
    if (!point) {
        point = add_point(w, x, &got->waitpoint.id);
        point->name = name;
        point->expires_us = item->expires_ms ? w->now_us + item->expires_ms * WEFT_MS : 0;
        point->key = key_current(w, engine);
    }
    x->touched = true;
    check_point(w, point, &got->waitpoint, key_to_sign(w, engine, point->key),
                WEFT_WAITPOINT_PENDING);
}

void op_waitpoint(struct world *w)
{
    struct execution *x[TOGETHER];
    struct weft_waitpoint_new item[TOGETHER];
    struct weft_waitpoint_result got[TOGETHER] = {0};
    struct weft_err err = {0};
    size_t name[TOGETHER], engine = any_engine(w), count = chance(w, 70) ? 1 : TOGETHER;
    for (size_t i = 0; i < count; i++) {
        x[i] = i > 0 && chance(w, 60) ? x[i - 1] : pick(w, WEFT_STATE_RUNNING);
        name[i] = below(w, POINT_NAMES);
        item[i] = (struct weft_waitpoint_new){
            .id = x[i]->id,
            .epoch = draw_epoch(w, x[i]),
            .name = point_text[name[i]],
            .expires_ms = chance(w, 40) ? (int64_t)(1 + below(w, 20)) * 1000 : 0};
        if (x[i]->points + TOGETHER > POINTS_MAX)
            return;
    }
    enum weft_rc rc =
        weft_engine_waitpoints_new(w->engine[engine], item, count, w->arena, got, &err);
    if (rc && count > 1)
        must_be(w, rc, WEFT_OK, "waitpoints");
    (void)key_current(w, engine);
    for (size_t i = 0; i < count && !w->failed; i++)
        made(w, engine, x[i], &item[i], name[i], &got[i]);
}

/* ---- Drawing a suspend ----------------------------------------------------------------------- */

/* A pending waitpoint, or another one, which will be refused. */
static bool draw_pending(struct world *w, const struct execution *x, size_t *ret_point)
{
    if (x->points == 0)
        return false;
    size_t from = below(w, x->points);
    for (size_t i = 0; i < x->points; i++) {
        *ret_point = (from + i) % x->points;
        const struct point *point = &x->point[*ret_point];
        bool again = point->at_once && point->taken == x->epoch && chance(w, 30);
        if (state_of_point(w, x, point) == WEFT_WAITPOINT_PENDING || again)
            return true;
    }
    return chance(w, 3);
}

static void draw_waitpoints(struct world *w, const struct execution *x, struct request *request,
                            struct scope *scope)
{
    size_t count = chance(w, 5) ? 0 : 1 + below(w, AT_MAX - 1);
    unsigned used = 0;
    for (size_t i = 0; i < count; i++) {
        size_t name = below(w, POINT_NAMES), point = 0;
        bool fresh = chance(w, 25) || !draw_pending(w, x, &point);
        if (!fresh)
            name = x->point[point].name;
        if ((used >> name & 1) && chance(w, 97))
            continue; /* a name that comes twice is refused */
        used |= 1u << name;
        request->at[request->count].fresh = fresh;
        request->at[request->count].name = name;
        if (!fresh)
            request->at[request->count].point = x->point[point].id;
        scope->name[request->count++] = name;
    }
    scope->count = request->count;
}

static struct request *draw_request(struct world *w, struct execution *x)
{
    static const char *const reasons[] = {NULL, "approval"};
    if (x->requests > 0 && chance(w, 25))
        return &x->request[below(w, x->requests)];
    if (x->requests == REQUESTS_MAX) {
        x->request[0] = x->request[1];
        x->requests--;
    }
    struct request *request = &x->request[x->requests++];
    struct scope scope = {.count = 0};
    *request = (struct request){
        .epoch = draw_epoch(w, x),
        .on_timeout = chance(w, 40) ? WEFT_ON_TIMEOUT_RESUME
                                    : (enum weft_on_timeout)below(w, WEFT_ON_TIMEOUT_ESCALATE + 1),
        .reason = reasons[below(w, WEFT_LEN(reasons))],
        .resume_delay_ms = chance(w, 20) ? (int64_t)(1 + below(w, 5)) * 1000 : 0};
    if (chance(w, 40))
        request->timeout_ms = (int64_t)(1 + below(w, 20)) * 1000;
    else if (chance(w, 20))
        request->timeout_us = w->now_us + ((weft_usec)below(w, 20) - 1) * WEFT_SECOND;
    scope.has_timeout = request->timeout_ms || request->timeout_us;
    draw_waitpoints(w, x, request, &scope);
    request->has_condition = chance(w, 75) || (request->count == 0 && chance(w, 95));
    if (request->has_condition)
        draw_condition(w, &scope, &request->condition);
    return request;
}

static struct weft_suspend item_of(struct world *w, const struct execution *x,
                                   const struct request *request)
{
    struct weft_suspend_at *at = weft_new_array(w->arena, struct weft_suspend_at, AT_MAX);
    for (size_t i = 0; i < request->count; i++) {
        at[i].name = request->at[i].fresh ? point_text[request->at[i].name] : NULL;
        at[i].id = request->at[i].point;
    }
    return (struct weft_suspend){
        .id = x->id,
        .epoch = request->epoch,
        .waitpoint = at,
        .waitpoint_count = request->count,
        .condition = request->has_condition ? request->condition.text : NULL,
        .timeout_ms = request->timeout_ms,
        .timeout_us = request->timeout_us,
        .on_timeout = request->on_timeout,
        .reason = request->reason,
        .resume_delay_ms = request->resume_delay_ms,
    };
}

/* ---- What a suspend must do ------------------------------------------------------------------ */

static struct point *find_point(struct execution *x, const struct weft_id *id)
{
    for (size_t i = 0; i < x->points; i++)
        if (weft_id_cmp(&x->point[i].id, id) == 0)
            return &x->point[i];
    return NULL;
}

/* Whether a suspend may take the waitpoint: it is pending, or this lease took it at once. */
static bool may_be_named(const struct world *w, const struct execution *x,
                         const struct point *point)
{
    bool again =
        point->at_once && !point->over && point->taken == x->epoch && point->replays == x->replays;
    return again || state_of_point(w, x, point) == WEFT_WAITPOINT_PENDING;
}

/* Finds the waitpoints that the request names by id; `point` of new ones is SIZE_MAX. */
static enum weft_rc resolve(const struct world *w, struct execution *x,
                            const struct request *request, size_t point[AT_MAX])
{
    for (size_t i = 0; i < request->count; i++) {
        const struct point *found =
            request->at[i].fresh ? NULL : find_point(x, &request->at[i].point);
        if (request->at[i].fresh && find_pending(w, x, request->at[i].name))
            return WEFT_CONFLICT;
        if (found && !may_be_named(w, x, found))
            return WEFT_INVALID_VALUE;
        point[i] = found ? (size_t)(found - x->point) : SIZE_MAX;
        for (size_t k = 0; k < i; k++)
            if (request->at[k].name == request->at[i].name)
                return WEFT_INVALID_VALUE;
    }
    if (request->timeout_us && request->timeout_us <= w->now_us)
        return WEFT_INVALID_VALUE;
    if (request->has_condition ? request->condition.refused : request->count == 0)
        return WEFT_INVALID_VALUE;
    return WEFT_OK;
}

/* It goes on under its lease: waitpoints of an earlier suspend of this lease are over. */
static void go_on(struct world *w, struct execution *x, const struct request *request,
                  const size_t point[AT_MAX], const struct weft_suspend_result *got)
{
    for (size_t i = 0; i < x->points; i++)
        x->point[i].over |= x->point[i].at_once;
    x->resumption = (struct resumption){.by = WEFT_RESUMED_BY_SIGNALS, .at_us = w->now_us};
    for (size_t i = 0; i < request->count; i++) {
        if (point[i] == SIZE_MAX)
            continue;
        struct point *taken = &x->point[point[i]];
        taken->taken = x->epoch;
        taken->at_once = true;
        taken->over = false;
        x->resumption.point[x->resumption.count++] = point[i];
    }
    w->at_once++;
    if (!got->satisfied || got->state != WEFT_STATE_RUNNING || got->waitpoint_count != 0)
        wrong(w, "a suspend is answered with %s, must be satisfied", weft_state_name(got->state));
    else
        check_signals(w, x, &x->resumption, got->signal, got->signal_count, got->more_signals);
}

static void suspend(struct world *w, size_t engine, struct execution *x,
                    const struct request *request, const size_t point[AT_MAX],
                    const struct weft_suspend_result *got)
{
    if (got->satisfied || got->state != WEFT_STATE_SUSPENDED ||
        got->waitpoint_count != request->count) {
        wrong(w, "a suspend is answered with %s and %zu waitpoints, must be suspended at %zu",
              weft_state_name(got->state), got->waitpoint_count, request->count);
        return;
    }
    x->suspension = (struct suspension){.condition = request->condition,
                                        .count = request->count,
                                        .on_timeout = request->on_timeout,
                                        .resume_delay_ms = request->resume_delay_ms,
                                        .since_us = w->now_us,
                                        .reason = request->reason};
    for (size_t i = 0; i < request->count && !w->failed; i++) {
        bool fresh = point[i] == SIZE_MAX;
        struct point *taken = fresh ? add_point(w, x, &got->waitpoint[i].id) : &x->point[point[i]];
        if (fresh) {
            taken->name = request->at[i].name;
            taken->key = key_current(w, engine);
        }
        taken->taken = x->epoch;
        taken->at_once = false;
        x->suspension.point[i] = (size_t)(taken - x->point);
        check_point(w, taken, &got->waitpoint[i], key_to_sign(w, engine, taken->key),
                    WEFT_WAITPOINT_OPEN);
    }
    x->resumption = (struct resumption){0};
    change_state(w, x,
                 &(struct change){.to = WEFT_STATE_SUSPENDED,
                                  .ended = WEFT_ENDED_SUSPENDED,
                                  .due_us = request->timeout_ms
                                                ? w->now_us + request->timeout_ms * WEFT_MS
                                                : request->timeout_us});
}

/* The waitpoints that the lease was suspended at, as far as the request names them. */
static void check_repeat(struct world *w, size_t engine, struct execution *x,
                         const struct request *request, const struct weft_suspend_result *got)
{
    size_t count = 0;
    for (size_t i = 0; i < request->count && !w->failed; i++) {
        struct point *found = NULL;
        for (size_t k = 0; k < x->points && !found; k++) {
            struct point *point = &x->point[k];
            bool meant = request->at[i].fresh ? point->name == request->at[i].name
                                              : weft_id_cmp(&point->id, &request->at[i].point) == 0;
            if (meant && point->taken == request->epoch && !point->at_once)
                found = point;
        }
        if (!found)
            continue;
        if (count < got->waitpoint_count)
            check_point(w, found, &got->waitpoint[count], key_to_sign(w, engine, found->key),
                        WEFT_WAITPOINT_OPEN);
        count++;
    }
    if (got->waitpoint_count != count || got->satisfied)
        wrong(w, "a repeat of a suspend is answered with %zu waitpoints, must be %zu",
              got->waitpoint_count, count);
}

static void suspended(struct world *w, size_t engine, struct execution *x,
                      const struct request *request, const struct weft_suspend_result *got)
{
    struct weft_lease_answer fate = {.state = WEFT_STATE_RUNNING};
    struct seen_signal seen[SIGNALS_MAX];
    size_t point[AT_MAX] = {0};
    bool held = request->epoch > 0 && holds(x, request->epoch);
    if (held)
        fate.err.rc = resolve(w, x, request, point);
    else
        fate = fate_of(x, request->epoch, WEFT_ENDED_SUSPENDED);
    note(w, "engine %zu: suspend #%zu, epoch %d, %zu waitpoints, %s: %s %s %s%s", engine,
         number_of(w, x), request->epoch, request->count,
         request->has_condition ? request->condition.text : "no condition", weft_rc_wire(got->rc),
         weft_fence_name(got->fence), weft_state_name(got->state),
         got->satisfied ? ", satisfied" : "");
    x->touched = true;
    if (got->rc != fate.err.rc || got->fence != fate.fence) {
        wrong(w, "a suspend is answered with %s %s (%s), must be %s %s", weft_rc_wire(got->rc),
              weft_fence_name(got->fence), got->err ? got->err->text : "",
              weft_rc_wire(fate.err.rc), weft_fence_name(fate.fence));
        return;
    }
    if (!held && got->state != fate.state)
        wrong(w, "a suspend says %s, must say %s", weft_state_name(got->state),
              weft_state_name(fate.state));
    if (fate.err.rc || w->failed)
        return;
    size_t count = held ? see_signals(x, point, request->count, seen) : 0;
    if (!held)
        check_repeat(w, engine, x, request, got);
    else if (is_satisfied(&request->condition, request->count, seen, count))
        go_on(w, x, request, point, got);
    else
        suspend(w, engine, x, request, point, got);
}

void op_suspend(struct world *w)
{
    struct execution *x[TOGETHER];
    struct request request[TOGETHER];
    struct weft_suspend item[TOGETHER];
    struct weft_suspend_result got[TOGETHER] = {0};
    struct weft_err err = {0};
    size_t engine = any_engine(w), count = chance(w, 80) ? 1 : TOGETHER;
    for (size_t i = 0; i < count; i++) {
        x[i] = pick(w, WEFT_STATE_RUNNING);
        if (x[i]->points + POINTS_TOGETHER > POINTS_MAX)
            return;
        request[i] = *draw_request(w, x[i]);
        item[i] = item_of(w, x[i], &request[i]);
        /* The array of the loop moves on; the text of the condition must stay. */
        if (request[i].has_condition)
            item[i].condition = weft_arena_strdup(w->arena, request[i].condition.text);
    }
    enum weft_rc rc = weft_engine_suspend(w->engine[engine], item, count, w->arena, got, &err);
    if (rc && count > 1)
        must_be(w, rc, WEFT_OK, "suspend");
    (void)key_current(w, engine);
    for (size_t i = 0; i < count && !w->failed; i++)
        suspended(w, engine, x[i], &request[i], &got[i]);
}
