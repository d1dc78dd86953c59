/* SPDX-License-Identifier: Apache-2.0 */

/* What workers say about their leases: with the current epoch, an older, a later, or none. */

#include "direct.h"
#include "model.h"

#include "base/arena.h"
#include "base/limits.h"
#include "core/policy.h"
#include "core/state.h"
#include "engine/job/leases.h"
#include "weft/weft.h"

/* The leases a call names; the same one may come several times. */
struct call {
    struct subject *subject[ITEMS_MAX];
    int32_t epoch[ITEMS_MAX];
    struct weft_lease_answer want[ITEMS_MAX], got[ITEMS_MAX];
    struct weft_id id[ITEMS_MAX]; /* in the store at hand */
    size_t count;
};

static int32_t random_epoch(struct world *w, const struct subject *x)
{
    int32_t now = x ? x->live.epoch : 1;
    if (chance(w, 75))
        return now > 0 ? now : 1;
    if (chance(w, 60))
        return now > 1 ? (int32_t)(1 + below(w, (size_t)now)) : 1;
    return chance(w, 70) ? now + 1 : (int32_t)below(w, 2) - 1;
}

static void random_call(struct world *w, struct call *call)
{
    call->count = 1 + below(w, chance(w, 10) ? ITEMS_MAX : 4);
    for (size_t i = 0; i < call->count; i++) {
        bool again = i > 0 && chance(w, 15);
        call->subject[i] = again ? call->subject[i - 1] : pick_subject(w, WEFT_STATE_RUNNING);
        call->epoch[i] =
            again && chance(w, 80) ? call->epoch[i - 1] : random_epoch(w, call->subject[i]);
    }
}

/*
 * The call has named the execution WEFT_REPEATS_MAX times before: the item changes nothing and gets
 * the last answer about its epoch, or `busy`. Items that were refused do not count.
 */
static bool named_often(struct call *call, size_t i)
{
    struct weft_lease_answer answer = {.err = {.rc = WEFT_BUSY}};
    size_t named = 0;
    for (size_t k = 0; k < i && named < WEFT_REPEATS_MAX; k++) {
        if (call->subject[k] != call->subject[i] || call->want[k].err.rc == WEFT_INVALID_VALUE)
            continue;
        named++;
        if (call->epoch[k] == call->epoch[i])
            answer = call->want[k];
    }
    if (named < WEFT_REPEATS_MAX)
        return false;
    call->want[i] = answer;
    return true;
}

static void note_item(struct world *w, const struct call *call, size_t i, const char *word)
{
    note(w, "%s %zu/%zu #%zd epoch %d -> %s %s %s", word, i + 1, call->count,
         call->subject[i] ? (ssize_t)call->subject[i]->number : -1, call->epoch[i],
         weft_rc_wire(call->want[i].err.rc), weft_fence_name(call->want[i].fence),
         weft_state_name(call->want[i].state));
}

static void ids_in(struct call *call, size_t store)
{
    for (size_t i = 0; i < call->count; i++)
        call->id[i] = id_in(call->subject[i], store);
    memset(call->got, 0, sizeof(call->got));
}

static void finish(struct world *w, size_t s, struct call *call, enum weft_rc rc,
                   const struct weft_err *err)
{
    broken_call(w, s, rc, err);
    if (!rc)
        compare_leases(w, s, call->want, call->got, call->count);
}

static void answer_step(struct call *call, size_t i)
{
    const struct weft_live *live = &call->subject[i]->live;
    call->want[i] = (struct weft_lease_answer){
        .state = live->state, .run_at_us = live->state == WEFT_STATE_DELAYED ? live->due_us : 0};
}

/* Answers what needs no step of the holder: bad input, too many repeats, a lease that is gone. */
static bool is_answered(struct world *w, struct call *call, size_t i, bool valid,
                        enum weft_ended asked)
{
    struct subject *x = call->subject[i];
    if (!valid || call->epoch[i] < 1) {
        call->want[i] = (struct weft_lease_answer){.err = {.rc = WEFT_INVALID_VALUE}};
        return true;
    }
    /* The other operations take all items about an execution in one transaction. */
    bool one_statement = asked == WEFT_ENDED_NONE || asked == WEFT_ENDED_COMPLETED;
    if (one_statement && named_often(call, i))
        return true;
    if (model_holds(x, call->epoch[i]))
        return false;
    call->want[i] = model_fate(x, call->epoch[i], asked);
    if (asked != WEFT_ENDED_NONE)
        model_let_go(w, x, call->epoch[i]);
    return true;
}

/* ---- Renew and progress ---------------------------------------------------------------------- */

static void model_renew(struct world *w, struct call *call, size_t i, const struct weft_renew *item)
{
    struct subject *x = call->subject[i];
    bool valid = (!item->lease_ms || item->lease_ms >= WEFT_LEASE_MIN_MS) &&
                 (!item->has_progress || item->percent <= 100);
    if (is_answered(w, call, i, valid, WEFT_ENDED_NONE))
        return;
    weft_usec lease_us = item->lease_ms ? item->lease_ms * WEFT_MS : x->spec.rules.lease_us;
    const struct weft_event event = {.kind = WEFT_EVENT_RENEW, .due_us = w->now_us + lease_us};
    (void)model_step(w, x, &event, NULL);
    if (item->has_progress) {
        x->percent = item->percent;
        x->note = item->note;
        x->progress_epoch = item->epoch;
    }
    call->want[i] =
        (struct weft_lease_answer){.state = WEFT_STATE_RUNNING, .lease_expires_us = x->live.due_us};
}

void op_renew(struct world *w)
{
    static const char *const notes[] = {NULL, "half way", "nearly \"done\""};
    struct call call;
    struct weft_renew item[ITEMS_MAX];
    random_call(w, &call);
    for (size_t i = 0; i < call.count; i++) {
        item[i] = (struct weft_renew){
            .epoch = call.epoch[i],
            .lease_ms = chance(w, 40) ? 1000 + (int64_t)below(w, 30000) : 0,
            .has_progress = chance(w, 40),
            .percent = (int32_t)below(w, 101) + (chance(w, 3) ? 101 : 0),
            .note = notes[below(w, WEFT_LEN(notes))],
        };
        if (chance(w, 3))
            item[i].lease_ms = 5;
        model_renew(w, &call, i, &item[i]);
        note_item(w, &call, i, "renew");
    }
    for (size_t s = 0; s < w->stores; s++) {
        struct weft_err err = {0};
        ids_in(&call, s);
        for (size_t i = 0; i < call.count; i++)
            item[i].id = call.id[i];
        finish(w, s, &call, engine_renew(w->store[s].engine, item, call.count, call.got, &err),
               &err);
    }
}

/* ---- Complete -------------------------------------------------------------------------------- */

static void model_complete(struct world *w, struct call *call, size_t i, const char *result)
{
    struct subject *x = call->subject[i];
    if (is_answered(w, call, i, true, WEFT_ENDED_COMPLETED))
        return;
    (void)model_step(w, x, &(struct weft_event){.kind = WEFT_EVENT_COMPLETE}, NULL);
    x->result = result;
    answer_step(call, i);
}

void op_complete(struct world *w)
{
    struct call call;
    struct weft_complete item[ITEMS_MAX];
    random_call(w, &call);
    for (size_t i = 0; i < call.count; i++) {
        const char *result =
            chance(w, 70) ? weft_arena_printf(w->arena, "{\"n\":%zu}", below(w, 1000)) : NULL;
        item[i] = (struct weft_complete){
            .epoch = call.epoch[i], .result = result, .result_size = result ? strlen(result) : 0};
        model_complete(w, &call, i, result);
        note_item(w, &call, i, "complete");
    }
    for (size_t s = 0; s < w->stores; s++) {
        struct weft_err err = {0};
        ids_in(&call, s);
        for (size_t i = 0; i < call.count; i++)
            item[i].id = call.id[i];
        finish(w, s, &call, engine_complete(w->store[s].engine, item, call.count, call.got, &err),
               &err);
    }
}

/* ---- Fail ------------------------------------------------------------------------------------ */

static void model_fail(struct world *w, struct call *call, size_t i,
                       const struct weft_failure *item)
{
    struct subject *x = call->subject[i];
    if (is_answered(w, call, i, item->retry_after_ms >= -1, WEFT_ENDED_FAILED))
        return;
    const struct weft_fault_report report = {
        .how = WEFT_ENDED_FAILED,
        .error_class = item->error_class ? item->error_class : "error",
        .permanent = item->permanent,
        .retry_after_ms = item->retry_after_ms,
        .now_us = w->now_us,
    };
    const struct story story = {.error_class = report.error_class, .error_message = item->message};
    struct weft_event event = weft_retry_decide(&x->spec.rules, &x->live, &report);
    (void)model_step(w, x, &event, &story);
    answer_step(call, i);
}

void op_fail(struct world *w)
{
    static const char *const class[] = {NULL, "fatal", "io"}, *const text[] = {NULL, "it broke"};
    struct call call;
    struct weft_failure item[ITEMS_MAX];
    random_call(w, &call);
    for (size_t i = 0; i < call.count; i++) {
        item[i] = (struct weft_failure){
            .epoch = call.epoch[i],
            .error_class = class[below(w, WEFT_LEN(class))],
            .message = text[below(w, WEFT_LEN(text))],
            .permanent = chance(w, 10),
            .retry_after_ms = chance(w, 20) ? (int64_t)below(w, 9000) - 1 : 0,
        };
        if (chance(w, 2))
            item[i].retry_after_ms = -2;
        model_fail(w, &call, i, &item[i]);
        note_item(w, &call, i, "fail");
    }
    for (size_t s = 0; s < w->stores; s++) {
        struct weft_err err = {0};
        ids_in(&call, s);
        for (size_t i = 0; i < call.count; i++)
            item[i].id = call.id[i];
        finish(w, s, &call, engine_fail(w->store[s].engine, item, call.count, call.got, &err),
               &err);
    }
}

/* ---- Delay and release ----------------------------------------------------------------------- */

static void model_put_back(struct world *w, struct call *call, size_t i, enum weft_ended asked,
                           int64_t delay_ms)
{
    struct subject *x = call->subject[i];
    if (is_answered(w, call, i, delay_ms >= 0, asked))
        return;
    const struct weft_event event = {.kind = delay_ms ? WEFT_EVENT_DELAY : WEFT_EVENT_RELEASE,
                                     .how = asked,
                                     .due_us = delay_ms ? w->now_us + delay_ms * WEFT_MS : 0};
    (void)model_step(w, x, &event, NULL);
    answer_step(call, i);
}

void op_put_back(struct world *w)
{
    struct call call;
    struct weft_put_back item[ITEMS_MAX];
    enum weft_put_back_kind kind = chance(w, 50) ? WEFT_PUT_BACK_DELAY : WEFT_PUT_BACK_RELEASE;
    enum weft_ended asked = kind == WEFT_PUT_BACK_DELAY ? WEFT_ENDED_DELAYED : WEFT_ENDED_RELEASED;
    random_call(w, &call);
    for (size_t i = 0; i < call.count; i++) {
        item[i] = (struct weft_put_back){.epoch = call.epoch[i],
                                         .delay_ms = chance(w, 50) ? (int64_t)below(w, 9000) : 0};
        if (chance(w, 2))
            item[i].delay_ms = -1;
        model_put_back(w, &call, i, asked, item[i].delay_ms);
        note_item(w, &call, i, weft_ended_name(asked));
    }
    for (size_t s = 0; s < w->stores; s++) {
        struct weft_err err = {0};
        ids_in(&call, s);
        for (size_t i = 0; i < call.count; i++)
            item[i].id = call.id[i];
        finish(w, s, &call,
               engine_put_back(w->store[s].engine, kind, item, call.count, call.got, &err), &err);
    }
}
