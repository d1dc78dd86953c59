/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Races about waiting. All that ends a suspension changes the living row under its lock: of the
 * last signal, the timeout, an operator and a cancel that come together one ends it and records its
 * reason, and the answers of the others show that they came too late. Each pair in both orders: the
 * first is stopped before it locks the row and is overtaken, or stands before its commit and is
 * waited for.
 */

#include "race.h"
#include "waiting.h"

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/scan/pass.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

enum deed { SIGNAL, TIME_OUT, CANCEL, RESUME, SUSPEND, LOSE, EXPIRE, REPLAY };
enum { ENDS = RESUME + 1 };

static const struct {
    const char *name;
    enum weft_stmt stmt; /* the one that locks */
} deeds[] = {
    [SIGNAL] = {"signal", WEFT_STMT_LIVE_LOCK},
    [TIME_OUT] = {"suspension timeout", WEFT_STMT_DUE_SUSPENSIONS},
    [CANCEL] = {"cancel", WEFT_STMT_LIVE_LOCK},
    [RESUME] = {"operator's resume", WEFT_STMT_LIVE_LOCK},
    [SUSPEND] = {"suspend", WEFT_STMT_LIVE_LOCK},
    [LOSE] = {"lease expiry", WEFT_STMT_DUE_LEASES},
    [EXPIRE] = {"waitpoint expiry", WEFT_STMT_WAITPOINT_EXPIRE},
    [REPLAY] = {"replay", WEFT_STMT_OUTCOME_LOCK},
};

/* What is raced about. */
struct waiting {
    struct weft_claimed lease;
    struct wait_answer made;
};

/* One call about it, and its answer. */
struct doer {
    struct weft_engine *engine;
    enum deed deed;
    struct waiting *waiting;
    size_t token;    /* SIGNAL: at which waitpoint */
    const char *key; /* SIGNAL */
    bool did;
    enum weft_rc rc;
    struct signal_answer sent;
    struct wait_answer suspended;
};

static void do_pass(struct doer *doer, enum weft_scanner scanner)
{
    uint64_t handled = 0;
    struct weft_err err = {0};
    doer->rc = wait_pass(doer->engine, scanner, &handled, &err);
    doer->did = handled > 0;
}

static void do_steer(struct doer *doer, enum weft_steer_kind kind)
{
    struct weft_steered answer =
        steer_one(doer->engine, kind, &(struct weft_steer){.id = doer->waiting->lease.id});
    doer->rc = answer.err.rc;
    doer->did = !answer.err.rc && answer.changed;
}

static void do_deed(void *context)
{
    struct doer *doer = context;
    struct waiting *waiting = doer->waiting;
    const struct weft_suspend_at pending = {.id = waiting->made.waitpoint[0]},
                                 fresh = {.name = "a"};
    const struct weft_suspend suspend = {.id = waiting->lease.id,
                                         .epoch = waiting->lease.epoch,
                                         .waitpoint = waiting->made.count ? &pending : &fresh,
                                         .waitpoint_count = 1};
    switch (doer->deed) {
    case SIGNAL:
        doer->sent = wait_signal(doer->engine, waiting->made.token[doer->token], doer->key);
        doer->rc = doer->sent.rc;
        doer->did = doer->sent.effect == WEFT_SIGNAL_RESUMED;
        break;
    case TIME_OUT:
        do_pass(doer, WEFT_SCANNER_SUSPENSION_TIMEOUT);
        break;
    case LOSE:
        do_pass(doer, WEFT_SCANNER_LEASE_EXPIRY);
        break;
    case EXPIRE:
        do_pass(doer, WEFT_SCANNER_WAITPOINT_EXPIRY);
        break;
    case SUSPEND:
        doer->suspended = wait_suspend(doer->engine, &suspend);
        doer->rc = doer->suspended.rc;
        doer->did = !doer->rc && doer->suspended.state == WEFT_STATE_SUSPENDED;
        break;
    default:
        do_steer(doer, doer->deed == CANCEL   ? WEFT_STEER_CANCEL
                       : doer->deed == RESUME ? WEFT_STEER_RESUME
                                              : WEFT_STEER_REPLAY);
        break;
    }
}

/* Two calls in a forced order, the first on engine a and the second on b. */
static void meet(struct race *race, struct doer doer[2], enum weft_fault_point point,
                 enum weft_stmt stmt)
{
    doer[0].engine = race->a;
    doer[1].engine = race->b;
    race_meet(
        race,
        &(struct meeting){
            .run = do_deed, .slow = &doer[0], .fast = &doer[1], .point = point, .stmt = stmt});
}

static const enum weft_fault_point points[] = {WEFT_FAULT_BEFORE_RUN, WEFT_FAULT_BEFORE_COMMIT};

static const char *how(enum weft_fault_point point)
{
    return point == WEFT_FAULT_BEFORE_RUN ? "overtaken" : "waited for";
}

/* A lane of its own for each execution. */
static const char *next_lane(void)
{
    static char lane[32];
    static int number;
    (void)snprintf(lane, sizeof(lane), "lane-%d", ++number);
    return lane;
}

/* Suspended; its timeout has come. */
static struct waiting wait_due(struct race *race, const struct weft_suspend *of)
{
    struct waiting waiting = {.lease = wait_lease(race->a, next_lane())};
    struct weft_suspend item = *of;
    item.timeout_ms = 1000;
    waiting.made = wait_suspend_at(race->a, &waiting.lease, "ab", &item);
    if (waiting.made.rc || waiting.made.count != 2)
        bail_out("the execution cannot be suspended");
    race_forward(race, 1000);
    return waiting;
}

static void clear(struct race *race, const struct waiting *waiting)
{
    if (weft_state_living(state_at(race->a, &waiting->lease.id)))
        (void)steer_one(race->a, WEFT_STEER_CANCEL, &(struct weft_steer){.id = waiting->lease.id});
}

/* How often a word stands in a text. */
static size_t count_words(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        count++;
    return count;
}

/* ---- What ends a suspension ------------------------------------------------------------------ */

static bool done_by(const struct doer doer[2], enum deed deed)
{
    return (doer[0].deed == deed && doer[0].did) || (doer[1].deed == deed && doer[1].did);
}

/* A pass finds nothing, a second cancel succeeds, the others get not_live. */
static bool answer_fits(const struct doer *doer)
{
    if (doer->did || doer->deed == TIME_OUT)
        return doer->rc == WEFT_OK;
    return doer->rc == WEFT_NOT_LIVE || (doer->deed == CANCEL && doer->rc == WEFT_OK);
}

static void judge_ends(struct race *race, const struct doer doer[2],
                       enum weft_on_timeout on_timeout, enum weft_fault_point point)
{
    const struct waiting *waiting = doer[0].waiting;
    char text[WAIT_TEXT], by[32];
    bool fails = on_timeout == WEFT_ON_TIMEOUT_FAIL;
    int resumed = done_by(doer, SIGNAL)               ? WEFT_RESUMED_BY_SIGNALS
                  : done_by(doer, TIME_OUT) && !fails ? WEFT_RESUMED_BY_TIMEOUT
                  : done_by(doer, RESUME)             ? WEFT_RESUMED_BY_OPERATOR
                                                      : WEFT_RESUMED_NOT;
    /* A cancel also ends what has been resumed a moment before. */
    size_t ends =
        (size_t)(doer[0].did && doer[0].deed != CANCEL) + (doer[1].did && doer[1].deed != CANCEL);
    size_t cancels =
        (size_t)(doer[0].did && doer[0].deed == CANCEL) + (doer[1].did && doer[1].deed == CANCEL);
    enum weft_state wanted = cancels                            ? WEFT_STATE_CANCELLED
                             : done_by(doer, TIME_OUT) && fails ? WEFT_STATE_FAILED
                                                                : WEFT_STATE_READY;
    wait_describe(race->a, &waiting->lease.id, text);
    (void)snprintf(by, sizeof(by), "resumed from 1 by %d", resumed);
    bool recorded = resumed ? strstr(text, by) != NULL : strstr(text, "resumed") == NULL;
    bool once = cancels <= 1 && ends <= 1 && ends + cancels >= 1 &&
                !(fails && done_by(doer, TIME_OUT) && cancels);
    bool kept = count_words(text, "; signal") == (size_t)done_by(doer, SIGNAL);
    ok(once && recorded && kept && state_at(race->b, &waiting->lease.id) == wanted &&
           answer_fits(&doer[0]) && answer_fits(&doer[1]),
       "%s (%s) and %s: one ends the suspension and is recorded: %s", deeds[doer[0].deed].name,
       how(point), deeds[doer[1].deed].name, text);
    clear(race, waiting);
}

static void race_ends(struct race *race, enum deed first, enum deed second,
                      enum weft_on_timeout on_timeout, enum weft_fault_point point)
{
    struct waiting waiting =
        wait_due(race, &(struct weft_suspend){.condition = "{\"waitpoint\":\"a\"}",
                                              .on_timeout = on_timeout});
    struct doer doer[2] = {{.deed = first, .waiting = &waiting},
                           {.deed = second, .waiting = &waiting}};
    meet(race, doer, point, deeds[first].stmt);
    judge_ends(race, doer, on_timeout, point);
}

/* (a) timeout and last signal, (b) signal and cancel, (f) operator, signal and timeout. */
RACE(every_pair_that_ends_a_suspension)
{
    static const enum weft_on_timeout what[] = {WEFT_ON_TIMEOUT_RESUME, WEFT_ON_TIMEOUT_FAIL};
    for (int first = 0; first < ENDS; first++)
        for (int second = 0; second < ENDS; second++)
            for (size_t p = 0; p < WEFT_LEN(points); p++)
                for (size_t w = 0; w < WEFT_LEN(what); w++)
                    if (w == 0 || first == TIME_OUT || second == TIME_OUT)
                        race_ends(race, (enum deed)first, (enum deed)second, what[w], points[p]);
    race_no_deadlock(race);
}

/* An escalated one stays suspended, so the signal resumes it in either order. */
RACE(an_escalation_against_the_last_signal)
{
    for (int turn = 0; turn < 4; turn++) {
        struct waiting waiting =
            wait_due(race, &(struct weft_suspend){.condition = "{\"waitpoint\":\"a\"}",
                                                  .on_timeout = WEFT_ON_TIMEOUT_ESCALATE});
        struct doer doer[2] = {{.deed = turn % 2 ? SIGNAL : TIME_OUT, .waiting = &waiting},
                               {.deed = turn % 2 ? TIME_OUT : SIGNAL, .waiting = &waiting}};
        meet(race, doer, points[turn / 2], deeds[doer[0].deed].stmt);
        ok(done_by(doer, SIGNAL) && state_at(race->a, &waiting.lease.id) == WEFT_STATE_READY,
           "%s (%s): the signal resumes it", deeds[doer[0].deed].name, how(points[turn / 2]));
        clear(race, &waiting);
    }
}

/* (c) Two replicas send the two signals that the condition asks for. */
RACE(two_signals_that_complete_a_count_resume_once)
{
    static const enum weft_stmt stmt[] = {WEFT_STMT_LIVE_LOCK, WEFT_STMT_LIVE_LOCK,
                                          WEFT_STMT_SIGNAL_ADD};
    static const enum weft_fault_point at[] = {WEFT_FAULT_BEFORE_RUN, WEFT_FAULT_BEFORE_COMMIT,
                                               WEFT_FAULT_AFTER_RUN};
    for (size_t same = 0; same < 2; same++)
        for (size_t i = 0; i < WEFT_LEN(at); i++) {
            char text[WAIT_TEXT];
            struct waiting waiting = wait_due(
                race,
                &(struct weft_suspend){.condition = "{\"count\":{\"n\":2,\"of\":\"signals\"}}"});
            struct doer doer[2] = {
                {.deed = SIGNAL, .waiting = &waiting, .key = "one"},
                {.deed = SIGNAL, .waiting = &waiting, .key = "two", .token = same}};
            meet(race, doer, at[i], stmt[i]);
            wait_describe(race->b, &waiting.lease.id, text);
            ok(doer[0].did != doer[1].did && doer[doer[1].did].sent.effect == WEFT_SIGNAL_RESUMED &&
                   doer[doer[0].did].sent.effect == WEFT_SIGNAL_RECORDED,
               "one of two signals resumes, the other is recorded");
            ok(count_words(text, "; signal") == 2 && strstr(text, "resumed from 1 by 1"),
               "both are kept: %s", text);
            clear(race, &waiting);
        }
}

/* Two replicas send the same signal: a sender that got no answer tries another server. */
RACE(a_signal_sent_twice_counts_once)
{
    for (size_t p = 0; p < WEFT_LEN(points); p++) {
        char text[WAIT_TEXT];
        struct waiting waiting = wait_due(
            race, &(struct weft_suspend){.condition = "{\"count\":{\"n\":2,\"of\":\"signals\"}}"});
        struct doer doer[2] = {{.deed = SIGNAL, .waiting = &waiting, .key = "k"},
                               {.deed = SIGNAL, .waiting = &waiting, .key = "k"}};
        meet(race, doer, points[p], WEFT_STMT_LIVE_LOCK);
        wait_describe(race->b, &waiting.lease.id, text);
        int first = doer[0].sent.effect == WEFT_SIGNAL_DUPLICATE;
        ok(doer[first].sent.effect == WEFT_SIGNAL_RECORDED &&
               doer[!first].sent.effect == WEFT_SIGNAL_DUPLICATE &&
               doer[!first].sent.first == WEFT_SIGNAL_RECORDED,
           "one of two signals with one key is recorded, the other is a duplicate");
        ok(count_words(text, "; signal") == 1, "one is kept: %s", text);
        clear(race, &waiting);
    }
}

/* ---- Suspending ------------------------------------------------------------------------------ */

/* (d) The lease of a worker that suspends has run out. */
RACE(a_suspend_against_the_expiry_of_its_lease)
{
    for (int turn = 0; turn < 4; turn++) {
        enum weft_fault_point point = points[turn / 2];
        struct waiting waiting = {.lease = wait_lease(race->a, next_lane())};
        struct doer doer[2] = {{.deed = turn % 2 ? SUSPEND : LOSE, .waiting = &waiting},
                               {.deed = turn % 2 ? LOSE : SUSPEND, .waiting = &waiting}};
        const struct doer *suspend = &doer[turn % 2 == 0], *lose = &doer[turn % 2];
        race_forward(race, 60000);
        meet(race, doer, point, deeds[doer[0].deed].stmt);
        ok(suspend->did != lose->did && suspend->rc == (suspend->did ? WEFT_OK : WEFT_FENCED),
           "%s (%s): the lease is suspended or lost, not both", deeds[doer[0].deed].name,
           how(point));
        is_int(state_at(race->a, &waiting.lease.id),
               suspend->did ? WEFT_STATE_SUSPENDED : WEFT_STATE_READY, "the state says which");
        is_int(attempts_of(race->a, &waiting.lease.id), 1, "the lease ended once");
        if (suspend->did)
            is_int(wait_signal(race->b, suspend->suspended.token[0], NULL).effect,
                   WEFT_SIGNAL_RESUMED, "the token that it got is good");
        clear(race, &waiting);
    }
}

/*
 * (e) A pending waitpoint comes to its time at one replica a moment before it does at another that
 * suspends with it. The promise of the suspend holds: its waitpoint takes signals.
 */
static void race_expiry(struct race *race, bool suspend_first, enum weft_fault_point point,
                        enum weft_stmt stmt)
{
    struct waiting waiting = {.lease = wait_lease(race->a, next_lane())};
    waiting.made = wait_pending(race->a, &waiting.lease, "a", 1000);
    race_forward(race, 1000);
    struct doer doer[2] = {{.deed = suspend_first ? SUSPEND : EXPIRE, .waiting = &waiting},
                           {.deed = suspend_first ? EXPIRE : SUSPEND, .waiting = &waiting}};
    weft_clock_set(weft_engine_clock(suspend_first ? race->a : race->b), race->now_us - 1);
    meet(race, doer, point, stmt);
    race_forward(race, 0);
    const struct doer *suspend = &doer[!suspend_first], *expire = &doer[suspend_first];
    struct signal_answer sent = wait_signal(race->b, waiting.made.token[0], NULL);
    if (suspend->did)
        ok(sent.effect == WEFT_SIGNAL_RESUMED &&
               state_at(race->a, &waiting.lease.id) == WEFT_STATE_READY,
           "%s stopped at %s: the suspend took the waitpoint, and a signal resumes it",
           deeds[doer[0].deed].name, weft_stmts[stmt].name);
    else
        ok(suspend->rc == WEFT_INVALID_VALUE && expire->did && sent.rc == WEFT_NOT_LIVE &&
               state_at(race->a, &waiting.lease.id) == WEFT_STATE_RUNNING,
           "%s stopped at %s: the waitpoint expired, and the suspend is refused",
           deeds[doer[0].deed].name, weft_stmts[stmt].name);
    clear(race, &waiting);
}

RACE(a_suspend_against_the_expiry_of_its_waitpoint)
{
    race_expiry(race, true, WEFT_FAULT_BEFORE_RUN, WEFT_STMT_LIVE_LOCK);
    race_expiry(race, true, WEFT_FAULT_BEFORE_RUN, WEFT_STMT_WAITPOINTS_BOUND);
    race_expiry(race, true, WEFT_FAULT_BEFORE_RUN, WEFT_STMT_WAITPOINT_BIND);
    race_expiry(race, true, WEFT_FAULT_BEFORE_COMMIT, WEFT_STMT_WAITPOINT_BIND);
    race_expiry(race, false, WEFT_FAULT_BEFORE_RUN, WEFT_STMT_WAITPOINT_EXPIRE);
    race_expiry(race, false, WEFT_FAULT_BEFORE_COMMIT, WEFT_STMT_WAITPOINT_EXPIRE);
    race_no_deadlock(race);
}

/* ---- Replay ---------------------------------------------------------------------------------- */

/* (g) The token of before a replay is no token of what is replayed. */
RACE(a_replay_against_a_late_signal)
{
    for (int turn = 0; turn < 4; turn++) {
        enum weft_fault_point point = points[turn / 2];
        char text[WAIT_TEXT];
        uint64_t handled;
        struct weft_err err;
        struct waiting waiting =
            wait_due(race, &(struct weft_suspend){.on_timeout = WEFT_ON_TIMEOUT_FAIL});
        if (wait_pass(race->a, WEFT_SCANNER_SUSPENSION_TIMEOUT, &handled, &err) || handled != 1)
            bail_out("the suspension does not time out");
        struct doer doer[2] = {{.deed = turn % 2 ? SIGNAL : REPLAY, .waiting = &waiting},
                               {.deed = turn % 2 ? REPLAY : SIGNAL, .waiting = &waiting}};
        meet(race, doer, point, deeds[doer[0].deed].stmt);
        const struct doer *signal = &doer[turn % 2 == 0], *replay = &doer[turn % 2];
        wait_describe(race->b, &waiting.lease.id, text);
        ok(replay->did && signal->rc == WEFT_NOT_LIVE,
           "%s (%s): the signal of before the replay is refused", deeds[doer[0].deed].name,
           how(point));
        ok(count_words(text, "; signal") == 0 && !strstr(text, "resumed") &&
               state_at(race->a, &waiting.lease.id) == WEFT_STATE_READY,
           "nothing of it is kept: %s", text);
        clear(race, &waiting);
    }
}
