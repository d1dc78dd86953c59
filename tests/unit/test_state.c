/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The whole square of states and events against a table that was written from the design, not from
 * the code; then what every legal step does to the fields of the row.
 */

#include "core/state.h"
#include "tap.h"

static const char *const event_name[WEFT_EVENT_COUNT] = {
#define X(name) #name,
    WEFT_EVENTS(X)
#undef X
};

/* A letter per state, a column per event in the order of enum weft_event_kind. */
/* clang-format off */
static const struct {
    enum weft_state state;
    char letter;
    const char *after; /* PROMOTE CLAIM RENEW COMPLETE FAIL RETRY RETRY_NOW DELAY RELEASE LOSE
                          REVOKE CANCEL EXPIRE REPLAY PRIORITIZE SET_DEADLINE UNBLOCK
                          UNBLOCK_LATER SKIP REARM REPLAY_BLOCKED SUSPEND RESUME
                          RESUME_LATER ESCALATE ADMIT */
} square[] = {
    {WEFT_STATE_NONE,      '.', ".........................."},
    {WEFT_STATE_READY,     'R', ".U.........cx.RR.........."},
    {WEFT_STATE_DELAYED,   'D', "R..........cx.DD.........."},
    {WEFT_STATE_BLOCKED,   'B', "...........cx.BBRDk......."},
    {WEFT_STATE_RUNNING,   'U', "..UsfDRDRRRcx.UU.....S...."},
    {WEFT_STATE_SUSPENDED, 'S', "....f......cx.SS......RDS."},
    {WEFT_STATE_HELD,      'H', "...........cx.HH.........R"},
    {WEFT_STATE_SUCCEEDED, 's', ".............R......B....."},
    {WEFT_STATE_FAILED,    'f', ".............R......B....."},
    {WEFT_STATE_CANCELLED, 'c', ".............R......B....."},
    {WEFT_STATE_EXPIRED,   'x', ".............R......B....."},
    {WEFT_STATE_SKIPPED,   'k', ".............R.....BB....."},
};
/* clang-format on */

static enum weft_state by_letter(char letter)
{
    for (size_t i = 0; i < WEFT_LEN(square); i++)
        if (square[i].letter == letter)
            return square[i].state;
    return WEFT_STATE_COUNT;
}

/* A row in which every field has a value of its own, as far as its state allows. */
static struct weft_live sample(enum weft_state state)
{
    struct weft_live live = {
        .id = {{1, 2, 3}},
        .state = state,
        .queue = 11,
        .lane = 12,
        .policy = 13,
        .priority = -5,
        .ord = 77,
        .epoch = 4,
        .attempt = 3,
        .forgiven = 1,
        .lost = 2,
        .replays = 1,
        .size = 99,
        .deadline_us = 9000,
        .started_us = 1000,
    };
    if (state == WEFT_STATE_RUNNING || !weft_state_living(state)) {
        live.worker = 14;
        live.due_us = 5000;
        live.attempt_deadline_us = 6000;
        live.claimed_us = 2000;
    }
    if (state == WEFT_STATE_DELAYED || state == WEFT_STATE_SUSPENDED)
        live.due_us = 5000;
    return live;
}

static struct weft_event event_of(enum weft_event_kind kind)
{
    return (struct weft_event){
        .kind = kind,
        .how = kind == WEFT_EVENT_RETRY || kind == WEFT_EVENT_FAIL ? WEFT_ENDED_TIMED_OUT
                                                                   : WEFT_ENDED_FAILED,
        .worker = 21,
        .priority = 22,
        .now_us = 3000,
        .due_us = 7000,
        .attempt_deadline_us = 8000,
        .deadline_us = 12000,
    };
}

static void test_square(void)
{
    is_int(WEFT_LEN(square), WEFT_STATE_COUNT, "the table knows every state");
    for (size_t i = 0; i < WEFT_LEN(square); i++) {
        is_int(square[i].state, i, "row %zu of the table is in its place", i);
        is_int(strlen(square[i].after), WEFT_EVENT_COUNT, "row %zu of the table has every event",
               i);
        for (int e = 0; e < WEFT_EVENT_COUNT; e++) {
            enum weft_event_kind event = (enum weft_event_kind)e;
            enum weft_state want = by_letter(square[i].after[e]);
            is_int(weft_state_next(square[i].state, event), want, "%s %s -> %s",
                   weft_state_name(square[i].state), event_name[event], weft_state_name(want));
        }
    }
}

static void test_refusal(void)
{
    for (size_t i = 0; i < WEFT_LEN(square); i++) {
        int refused = 0, wrong = 0;
        for (int e = 0; e < WEFT_EVENT_COUNT; e++) {
            if (square[i].after[e] != '.')
                continue;
            struct weft_step step, untouched;
            memset(&step, 0x5a, sizeof(step));
            memset(&untouched, 0x5a, sizeof(untouched));
            const struct weft_live before = sample(square[i].state);
            const struct weft_event event = event_of((enum weft_event_kind)e);
            refused++;
            wrong += weft_state_step(&before, &event, &step);
            wrong += memcmp((const char *)&step, (const char *)&untouched, sizeof(step)) != 0;
        }
        ok(wrong == 0, "%s refuses %d events and leaves the step alone",
           weft_state_name(square[i].state), refused);
    }
}

/* How the lease that was held must have ended, by event; NONE for an event that leaves it. */
static enum weft_ended wanted_end(const struct weft_event *event)
{
    static const enum weft_ended by_event[WEFT_EVENT_COUNT] = {
        [WEFT_EVENT_COMPLETE] = WEFT_ENDED_COMPLETED, [WEFT_EVENT_FAIL] = WEFT_ENDED_TIMED_OUT,
        [WEFT_EVENT_RETRY] = WEFT_ENDED_TIMED_OUT,    [WEFT_EVENT_RETRY_NOW] = WEFT_ENDED_FAILED,
        [WEFT_EVENT_DELAY] = WEFT_ENDED_DELAYED,      [WEFT_EVENT_RELEASE] = WEFT_ENDED_RELEASED,
        [WEFT_EVENT_LOSE] = WEFT_ENDED_LOST,          [WEFT_EVENT_REVOKE] = WEFT_ENDED_REVOKED,
        [WEFT_EVENT_CANCEL] = WEFT_ENDED_CANCELLED,   [WEFT_EVENT_EXPIRE] = WEFT_ENDED_EXPIRED,
        [WEFT_EVENT_SUSPEND] = WEFT_ENDED_SUSPENDED,
    };
    return by_event[event->kind];
}

/* The counters: each grows at its own events and nowhere else. */
static void check_counters(const struct weft_live *before, const struct weft_live *after,
                           const struct weft_event *event, const char *name)
{
    enum weft_event_kind kind = event->kind;
    bool replay =
        kind == WEFT_EVENT_REPLAY || kind == WEFT_EVENT_REPLAY_BLOCKED || kind == WEFT_EVENT_REARM;
    bool spends =
        kind == WEFT_EVENT_RETRY || kind == WEFT_EVENT_RETRY_NOW ||
        (replay && (event->how == WEFT_ENDED_FAILED || event->how == WEFT_ENDED_TIMED_OUT));
    is_int(after->epoch, before->epoch + (kind == WEFT_EVENT_CLAIM), "%s: epoch", name);
    is_int(after->attempt, before->attempt + spends, "%s: attempt", name);
    is_int(after->lost, replay ? 0 : before->lost + (kind == WEFT_EVENT_LOSE), "%s: lost", name);
    is_int(after->forgiven, replay ? after->attempt - 1 : before->forgiven, "%s: forgiven", name);
    is_int(after->replays, before->replays + replay, "%s: replays", name);
}

/* The lease: there while it runs, kept by what ended for reads and fences, gone otherwise. */
static void check_lease(const struct weft_live *before, const struct weft_live *after,
                        const struct weft_event *event, const char *name)
{
    struct weft_live want = *before;
    if (event->kind == WEFT_EVENT_CLAIM) {
        want.worker = event->worker;
        want.claimed_us = event->now_us;
        want.attempt_deadline_us = event->attempt_deadline_us;
    } else if (weft_state_living(after->state) && after->state != WEFT_STATE_RUNNING) {
        want.worker = 0;
        want.claimed_us = want.attempt_deadline_us = 0;
    }
    ok(after->worker == want.worker && after->claimed_us == want.claimed_us &&
           after->attempt_deadline_us == want.attempt_deadline_us,
       "%s: the lease is %s", name, want.worker ? "there" : "gone");

    weft_usec due_us = before->due_us;
    if (event->kind == WEFT_EVENT_CLAIM || event->kind == WEFT_EVENT_RENEW ||
        event->kind == WEFT_EVENT_RETRY || event->kind == WEFT_EVENT_DELAY ||
        event->kind == WEFT_EVENT_UNBLOCK_LATER || event->kind == WEFT_EVENT_SUSPEND ||
        event->kind == WEFT_EVENT_RESUME_LATER)
        due_us = event->due_us;
    else if (after->state == WEFT_STATE_READY || event->kind == WEFT_EVENT_ESCALATE ||
             event->kind == WEFT_EVENT_REARM || event->kind == WEFT_EVENT_REPLAY_BLOCKED)
        due_us = 0;
    is_int(after->due_us, due_us, "%s: due", name);
}

static void check_step(const struct weft_live *before, const struct weft_event *event)
{
    char name[64];
    struct weft_step step;
    (void)snprintf(name, sizeof(name), "%s %s", weft_state_name(before->state),
                   event_name[event->kind]);
    if (!ok(weft_state_step(before, event, &step), "%s is legal", name))
        return;
    const struct weft_live *after = &step.after;
    is_int(after->state, weft_state_next(before->state, event->kind), "%s: the state", name);
    check_counters(before, after, event, name);
    check_lease(before, after, event, name);
    is_int(step.ended, before->state == WEFT_STATE_RUNNING ? wanted_end(event) : WEFT_ENDED_NONE,
           "%s: how the lease ended", name);
    is_int(after->priority,
           event->kind == WEFT_EVENT_PRIORITIZE ? event->priority : before->priority,
           "%s: priority", name);
    weft_usec deadline_us = before->deadline_us;
    if (event->kind == WEFT_EVENT_SET_DEADLINE || event->kind == WEFT_EVENT_REPLAY ||
        event->kind == WEFT_EVENT_REPLAY_BLOCKED || event->kind == WEFT_EVENT_REARM)
        deadline_us = event->deadline_us;
    is_int(after->deadline_us, deadline_us, "%s: deadline", name);
    ok(memcmp(&after->id, &before->id, sizeof(after->id)) == 0 && after->queue == before->queue &&
           after->lane == before->lane && after->policy == before->policy &&
           after->ord == before->ord && after->size == before->size &&
           after->started_us == before->started_us,
       "%s: the fixed fields are unchanged", name);
}

static void test_fields(void)
{
    for (size_t i = 0; i < WEFT_LEN(square); i++)
        for (int e = 0; e < WEFT_EVENT_COUNT; e++) {
            if (square[i].after[e] == '.')
                continue;
            const struct weft_live before = sample(square[i].state);
            const struct weft_event event = event_of((enum weft_event_kind)e);
            check_step(&before, &event);
        }
}

/* The first claim sets `started`, a later one does not move it. */
static void test_started(void)
{
    struct weft_live live = sample(WEFT_STATE_READY);
    struct weft_step step;
    const struct weft_event claim = event_of(WEFT_EVENT_CLAIM);
    live.started_us = 0;
    ok(weft_state_step(&live, &claim, &step), "the first claim");
    is_int(step.after.started_us, 3000, "the first claim sets started_us");
}

/* A worker's delay of 0 is a release that must be remembered as a delay, and the other way round.
 */
static void test_put_back_words(void)
{
    static const struct {
        enum weft_event_kind kind;
        enum weft_ended how, want;
    } row[] = {
        {WEFT_EVENT_DELAY, WEFT_ENDED_DELAYED, WEFT_ENDED_DELAYED},
        {WEFT_EVENT_DELAY, WEFT_ENDED_RELEASED, WEFT_ENDED_RELEASED},
        {WEFT_EVENT_DELAY, WEFT_ENDED_NONE, WEFT_ENDED_DELAYED},
        {WEFT_EVENT_RELEASE, WEFT_ENDED_RELEASED, WEFT_ENDED_RELEASED},
        {WEFT_EVENT_RELEASE, WEFT_ENDED_DELAYED, WEFT_ENDED_DELAYED},
        {WEFT_EVENT_RELEASE, WEFT_ENDED_NONE, WEFT_ENDED_RELEASED},
    };
    const struct weft_live live = sample(WEFT_STATE_RUNNING);
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_step step;
        const struct weft_event event = {.kind = row[i].kind, .how = row[i].how, .due_us = 1};
        ok(weft_state_step(&live, &event, &step) && step.ended == row[i].want,
           "%s said as %s is remembered as %s", event_name[row[i].kind],
           weft_ended_name(row[i].how), weft_ended_name(row[i].want));
    }
}

/* Only an attempt that failed or timed out leaves a number owed to the next life. */
static void test_replay_owes(void)
{
    for (int how = WEFT_ENDED_COMPLETED; how < WEFT_ENDED_COUNT; how++) {
        const struct weft_live live = sample(WEFT_STATE_FAILED);
        const struct weft_event replay = {.kind = WEFT_EVENT_REPLAY, .how = (enum weft_ended)how};
        struct weft_step step;
        bool owes = how == WEFT_ENDED_FAILED || how == WEFT_ENDED_TIMED_OUT;
        ok(weft_state_step(&live, &replay, &step) && step.after.attempt == live.attempt + owes,
           "replay after %s: %s", weft_ended_name((enum weft_ended)how),
           owes ? "the next attempt" : "the same attempt");
    }
}

static void test_words(void)
{
    int living = 0;
    for (int s = 1; s < WEFT_STATE_COUNT; s++) {
        enum weft_state state = (enum weft_state)s;
        is_int(weft_state_parse(weft_state_name(state)), state, "%s reads back",
               weft_state_name(state));
        living += weft_state_living(state);
        is_int(weft_state_living(state), s <= WEFT_STATE_HELD, "%s lives or not",
               weft_state_name(state));
    }
    is_int(living, 6, "six states live");
    is_int(weft_state_parse("none"), WEFT_STATE_NONE, "the word none is no state");
    is_int(weft_state_parse("READY"), WEFT_STATE_NONE, "case matters");
    is_int(weft_state_parse(""), WEFT_STATE_NONE, "nothing is no state");
    is_str(weft_state_name((enum weft_state)99), "unknown", "a state out of range has a word");
    is_str(weft_ended_name(WEFT_ENDED_TIMED_OUT), "timed_out", "ends have words");
    is_str(weft_ended_name((enum weft_ended)99), "unknown",
           "an end out of range has the word unknown");
    for (int e = 0; e < WEFT_EVENT_COUNT; e++)
        for (int other = 0; other < e; other++)
            if (strcmp(event_name[e], event_name[other]) == 0)
                ok(false, "two events are called %s", event_name[e]);
}

/* An execution with a gate becomes held wherever another one becomes ready. */
static void test_gated(void)
{
    for (size_t i = 0; i < WEFT_LEN(square); i++)
        for (int kind = 0; kind < WEFT_EVENT_COUNT; kind++) {
            struct weft_live before = sample(square[i].state);
            struct weft_step step;
            const struct weft_event event = {.kind = (enum weft_event_kind)kind};
            enum weft_state plain = weft_state_next(before.state, event.kind);
            before.gate = "1/g:1";
            bool legal = weft_state_step(&before, &event, &step);
            bool stays = before.state == WEFT_STATE_READY || kind == WEFT_EVENT_ADMIT;
            enum weft_state want = plain == WEFT_STATE_READY && !stays ? WEFT_STATE_HELD : plain;
            ok(legal == (plain != WEFT_STATE_NONE) && (!legal || step.after.state == want),
               "%s with a gate, event %d: %s", weft_state_name(before.state), kind,
               weft_state_name(want));
        }
}

int main(void)
{
    test_square();
    test_refusal();
    test_fields();
    test_started();
    test_put_back_words();
    test_replay_owes();
    test_replay_owes();
    test_words();
    test_gated();
    return tap_done();
}
