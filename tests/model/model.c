/* SPDX-License-Identifier: Apache-2.0 */

/* The model: what each operation must do, said with the pure functions of core and plain loops. */

#include "model.h"

#include <assert.h>
#include <stdlib.h>

struct subject *model_add(struct world *w, const struct weft_resolved *spec)
{
    struct subject *x = weft_new(w->arena, struct subject);
    x->number = w->numbers++;
    x->spec = *spec;
    x->created_us = w->now_us;
    x->percent = -1;
    x->touched = true;
    x->live = (struct weft_live){
        .state = spec->state,
        .priority = spec->priority,
        .ord = ++w->last_ord,
        .attempt = 1,
        .due_us = spec->due_us,
        .deadline_us = spec->deadline_us,
    };
    w->subject[w->subjects++] = x;
    return x;
}

struct subject *model_by_key(struct world *w, const char *key)
{
    for (size_t i = 0; i < w->subjects; i++)
        if (w->subject[i]->spec.key && strcmp(w->subject[i]->spec.key, key) == 0)
            return w->subject[i];
    return NULL;
}

static void remember(struct world *w, struct subject *x, const struct past *past)
{
    if (x->past_count == x->past_capacity) {
        size_t capacity = x->past_capacity ? x->past_capacity * 2 : 4;
        struct past *more = weft_new_array(w->arena, struct past, capacity);
        if (x->past_count)
            memcpy(more, x->past, x->past_count * sizeof(*more));
        x->past = more;
        x->past_capacity = capacity;
    }
    x->past[x->past_count++] = *past;
}

/* The outcome that a replay removes stays in the history. */
static void remember_outcome(struct world *w, struct subject *x, int32_t replay)
{
    remember(w, x,
             &(struct past){.epoch = x->live.epoch,
                            .replay = replay,
                            .attempt = x->live.attempt,
                            .worker = x->live.worker,
                            .ended = x->ended,
                            .answer = x->live.state,
                            .held = x->held,
                            .claimed_us = x->live.claimed_us,
                            .ended_us = x->finished_us,
                            .error_class = x->story.error_class,
                            .error_message = x->story.error_message});
    x->ended = WEFT_ENDED_NONE;
    x->held = false;
    x->finished_us = 0;
    x->story = (struct story){0};
    x->result = NULL;
}

static size_t lane_of(const struct subject *x)
{
    size_t lane = 0;
    while (strcmp(lane_name[lane], x->spec.lane) != 0)
        lane++;
    return lane;
}

static void note_drain(struct world *w, const struct subject *x, const struct weft_live *before,
                       enum weft_ended ended)
{
    if (!weft_lease_drains(ended, before->due_us, w->now_us))
        return;
    assert(w->drains < DRAINS_MAX);
    w->drain[w->drains++] = (struct drain){.number = x->number,
                                           .epoch = before->epoch,
                                           .lane = lane_of(x),
                                           .until_us = before->due_us};
}

void model_let_go(struct world *w, const struct subject *x, int32_t epoch)
{
    for (size_t i = 0; x && i < w->drains; i++)
        if (w->drain[i].number == x->number && w->drain[i].epoch == epoch) {
            w->drain[i] = w->drain[--w->drains];
            return;
        }
}

bool model_step(struct world *w, struct subject *x, const struct weft_event *event,
                const struct story *story)
{
    static const struct story nothing = {0};
    struct weft_step step;
    const struct weft_live before = x->live;
    if (!weft_state_step(&before, event, &step))
        return false;
    x->touched = true;
    story = story ? story : &nothing;
    if (event->kind == WEFT_EVENT_REPLAY) {
        remember_outcome(w, x, step.after.replays);
    } else if (!weft_state_living(step.after.state)) {
        enum weft_ended without_lease =
            step.after.state == WEFT_STATE_EXPIRED ? WEFT_ENDED_EXPIRED : WEFT_ENDED_CANCELLED;
        x->ended = step.ended ? step.ended : without_lease;
        x->held = before.state == WEFT_STATE_RUNNING;
        x->finished_us = w->now_us;
        x->story = *story;
    } else if (step.ended) {
        remember(w, x,
                 &(struct past){.epoch = before.epoch,
                                .attempt = before.attempt,
                                .worker = before.worker,
                                .ended = step.ended,
                                .answer = step.after.state,
                                .held = true,
                                .claimed_us = before.claimed_us,
                                .ended_us = w->now_us,
                                .run_at_us = step.after.due_us,
                                .error_class = story->error_class,
                                .error_message = story->error_message});
    }
    note_drain(w, x, &before, step.ended);
    x->live = step.after;
    return true;
}

/* ---- Leases ---------------------------------------------------------------------------------- */

bool model_holds(const struct subject *x, int32_t epoch)
{
    return x && x->live.state == WEFT_STATE_RUNNING && x->live.epoch == epoch;
}

struct weft_lease_answer model_fate(const struct subject *x, int32_t epoch, enum weft_ended asked)
{
    struct weft_lease_facts facts = {0};
    if (x) {
        facts.state = x->live.state;
        facts.epoch = x->live.epoch;
        if (x->held && x->live.epoch == epoch) {
            facts.ended = x->ended;
            facts.answer = x->live.state;
        }
        for (size_t i = 0; i < x->past_count && !facts.ended; i++)
            if (x->past[i].held && x->past[i].epoch == epoch) {
                facts.ended = x->past[i].ended;
                facts.answer = x->past[i].answer;
                facts.run_at_us = x->past[i].run_at_us;
            }
    }
    struct weft_fate fate = weft_lease_fate(&facts, epoch, asked);
    return (struct weft_lease_answer){.err = {.rc = fate.rc},
                                      .fence = fate.fence,
                                      .state = fate.state,
                                      .run_at_us = fate.run_at_us};
}

/* ---- Claiming -------------------------------------------------------------------------------- */

static bool named(const char *const *name, size_t count, const char *wanted)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name[i], wanted) == 0)
            return true;
    return false;
}

static uint32_t room_in(const struct world *w, size_t lane)
{
    int32_t running = 0, most = w->lane[lane].max_running;
    for (size_t i = 0; i < w->subjects; i++)
        running +=
            w->subject[i]->live.state == WEFT_STATE_RUNNING && lane_of(w->subject[i]) == lane;
    for (size_t i = 0; i < w->drains; i++)
        running += w->drain[i].lane == lane && w->drain[i].until_us > w->now_us;
    if (w->lane[lane].paused)
        return 0;
    if (most == 0)
        return UINT32_MAX;
    return running < most ? (uint32_t)(most - running) : 0;
}

static int by_turn(const void *left, const void *right)
{
    const struct weft_live *a = &(*(struct subject *const *)left)->live,
                           *b = &(*(struct subject *const *)right)->live;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return (a->ord > b->ord) - (a->ord < b->ord);
}

static void take(struct world *w, struct subject *x, const struct weft_claim *claim)
{
    const struct weft_rules *rules = &x->spec.rules;
    int32_t worker = 1;
    while (strcmp(worker_name[worker], claim->worker) != 0)
        worker++;
    const struct weft_event event = {
        .kind = WEFT_EVENT_CLAIM,
        .worker = worker,
        .now_us = w->now_us,
        .due_us = w->now_us + (claim->lease_ms ? claim->lease_ms * WEFT_MS : rules->lease_us),
        .attempt_deadline_us =
            rules->attempt_timeout_us ? w->now_us + rules->attempt_timeout_us : 0,
    };
    (void)model_step(w, x, &event, NULL);
}

size_t model_claim(struct world *w, const struct weft_claim *claim, struct subject **ret_taken)
{
    struct subject *fits[SUBJECTS_MAX];
    uint32_t room[LANES];
    const char *offered = "";
    size_t count = 0, taken = 0;
    struct weft_err err;
    if (weft_capset_text(claim->capabilities, claim->capability_count, w->arena, &offered, &err))
        return 0;
    for (size_t i = 0; i < w->subjects; i++) {
        struct subject *x = w->subject[i];
        if (x->live.state == WEFT_STATE_READY &&
            named(claim->lanes, claim->lane_count, x->spec.lane) &&
            (claim->kind_count == 0 || named(claim->kinds, claim->kind_count, x->spec.kind)) &&
            weft_capset_fits(x->spec.needs, offered))
            fits[count++] = x;
    }
    for (size_t lane = 0; lane < LANES; lane++)
        room[lane] = room_in(w, lane);
    if (count > 0)
        qsort(fits, count, sizeof(struct subject *), by_turn);
    for (size_t i = 0; i < count && taken < (claim->max ? claim->max : 1); i++) {
        size_t lane = lane_of(fits[i]);
        if (room[lane] == 0)
            continue;
        room[lane]--;
        take(w, fits[i], claim);
        ret_taken[taken++] = fits[i];
    }
    return taken;
}

/* ---- Steering -------------------------------------------------------------------------------- */

static bool steer_valid(const struct world *w, enum weft_steer_kind kind,
                        const struct weft_steer *item)
{
    if (kind == WEFT_STEER_REPRIORITIZE)
        return item->priority >= INT16_MIN && item->priority <= INT16_MAX;
    return kind != WEFT_STEER_SET_DEADLINE || item->deadline_us == 0 ||
           item->deadline_us > w->now_us;
}

struct weft_steered model_steer(struct world *w, enum weft_steer_kind kind,
                                const struct weft_steer *item, struct subject *x)
{
    static const enum weft_event_kind event_kind[] = {
        [WEFT_STEER_CANCEL] = WEFT_EVENT_CANCEL,
        [WEFT_STEER_REPLAY] = WEFT_EVENT_REPLAY,
        [WEFT_STEER_REPRIORITIZE] = WEFT_EVENT_PRIORITIZE,
        [WEFT_STEER_REVOKE] = WEFT_EVENT_REVOKE,
        [WEFT_STEER_SET_DEADLINE] = WEFT_EVENT_SET_DEADLINE,
    };
    if (!steer_valid(w, kind, item))
        return (struct weft_steered){.err = {.rc = WEFT_INVALID_VALUE}};
    if (!x || item->ns)
        return (struct weft_steered){.err = {.rc = WEFT_NOT_FOUND}};
    const struct weft_event event = {
        .kind = event_kind[kind],
        .how = x->ended,
        .priority = item->priority,
        .deadline_us = kind == WEFT_STEER_SET_DEADLINE ? item->deadline_us : 0,
    };
    const struct weft_live before = x->live;
    const struct story story = {.by = "operator", .reason = item->reason};
    if (kind == WEFT_STEER_CANCEL && before.state == WEFT_STATE_CANCELLED)
        return (struct weft_steered){.state = before.state};
    if (!model_step(w, x, &event, &story))
        return (struct weft_steered){.err = {.rc = WEFT_NOT_LIVE}, .state = before.state};
    return (struct weft_steered){.state = x->live.state,
                                 .changed = before.state != x->live.state ||
                                            before.priority != x->live.priority ||
                                            before.deadline_us != x->live.deadline_us};
}

static bool same_text(const char *wanted, const char *got)
{
    return !wanted || (got && strcmp(wanted, got) == 0);
}

weft_usec model_kept_until(const struct world *w, const struct subject *x)
{
    weft_usec lane_us = w->lane[lane_of(x)].retention_ms * WEFT_MS;
    return x->finished_us + weft_policy_keeps(&x->spec.rules, lane_us, x->live.state);
}

bool model_fits(const struct subject *x, const struct weft_filter *filter)
{
    bool tagged = !filter->tag;
    size_t count = 0;
    struct weft_arena *arena = weft_arena_new();
    const struct weft_tag *tag = weft_tags_parse(x->spec.tags, arena, &count);
    for (size_t i = 0; i < count && !tagged; i++)
        tagged = strcmp(tag[i].key, filter->tag->key) == 0 &&
                 strcmp(tag[i].value, filter->tag->value) == 0;
    weft_arena_free(arena);
    return tagged && same_text(filter->lane, x->spec.lane) &&
           same_text(filter->kind, x->spec.kind) && same_text(filter->tenant, x->spec.tenant) &&
           same_text(filter->key, x->spec.key) &&
           (!filter->state || filter->state == x->live.state);
}
