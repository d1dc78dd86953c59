/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Cancel, complete, lease expiry and attempt timeout at the same row, in every pair and both
 * orders. An execution ends once, one lease has one end, and every caller that got a yes did it.
 */

#include "direct.h"
#include "race.h"

#include "core/state.h"
#include "engine/job/leases.h"
#include "engine/scan/pass.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

enum deed { CANCEL, COMPLETE, EXPIRE, TIME_OUT, DEEDS };

static const struct {
    const char *name;
    enum weft_stmt stmt; /* the one that locks */
} deeds[DEEDS] = {
    [CANCEL] = {"cancel", WEFT_STMT_LIVE_LOCK},
    [COMPLETE] = {"complete", WEFT_STMT_LIVE_END},
    [EXPIRE] = {"lease expiry", WEFT_STMT_DUE_LEASES},
    [TIME_OUT] = {"attempt timeout", WEFT_STMT_DUE_ATTEMPTS},
};

enum { ROWS = 40, ROUNDS = 30 };

/* A thread that does one deed to some rows, and the answers it got. */
struct doer {
    struct weft_engine *engine;
    enum deed deed;
    const struct weft_claimed *lease;
    size_t count;
    bool did[ROWS]; /* cancel, complete: to which rows */
    uint64_t total; /* all: how many */
    bool failed;    /* a call as a whole, or an answer that should not be */
};

static void do_cancel(struct doer *doer, size_t i)
{
    struct weft_steered answer =
        steer_one(doer->engine, WEFT_STEER_CANCEL, &(struct weft_steer){.id = doer->lease[i].id});
    doer->did[i] = answer.err.rc == WEFT_OK && answer.changed;
    doer->failed |= answer.err.rc != WEFT_OK && answer.err.rc != WEFT_NOT_LIVE;
}

static void do_complete(struct doer *doer, size_t i)
{
    struct weft_lease_answer answer = {0};
    struct weft_err err;
    const struct weft_complete item = {.id = doer->lease[i].id, .epoch = doer->lease[i].epoch};
    doer->failed |= engine_complete(doer->engine, &item, 1, &answer, &err) != WEFT_OK;
    doer->failed |= answer.err.rc != WEFT_OK && answer.err.rc != WEFT_FENCED;
    doer->did[i] = answer.err.rc == WEFT_OK;
}

static void do_pass(struct doer *doer)
{
    struct weft_pass_report report = {0};
    struct weft_err err;
    enum weft_scanner pass =
        doer->deed == EXPIRE ? WEFT_SCANNER_LEASE_EXPIRY : WEFT_SCANNER_ATTEMPT_TIMEOUT;
    doer->failed |= weft_engine_pass(doer->engine, pass, &(struct weft_pass_config){.batch = 4},
                                     &report, &err) != WEFT_OK;
    doer->total += report.handled;
}

static void do_deed(void *context)
{
    struct doer *doer = context;
    if (doer->deed == EXPIRE || doer->deed == TIME_OUT) {
        do_pass(doer);
        return;
    }
    for (size_t i = 0; i < doer->count; i++) {
        if (doer->deed == CANCEL)
            do_cancel(doer, i);
        else
            do_complete(doer, i);
        doer->total += doer->did[i];
    }
}

/*
 * Rows that run, whose lease is over time; `timed`: whose attempt is so too. That is the end of
 * them, whichever pass finds it, because there is no second attempt.
 */
static void take_rows(struct race *race, bool timed, size_t count, struct weft_claimed *ret_lease)
{
    const struct weft_policy policy = {.max_attempts = 1, .attempt_timeout_ms = timed ? 30000 : 0};
    struct weft_id id[ROWS];
    put_work(race->a, &(struct weft_spec){.kind = "job", .policy = &policy}, count, id);
    if (take_work(race->a, "default", (uint32_t)count, ret_lease) != count)
        bail_out("the rows cannot be claimed");
    race_forward(race, 60000);
}

/* ---- Every pair ------------------------------------------------------------------------------ */

/* True when one of the two did `deed` and its answer says that it changed the row. */
static bool done_by(const struct doer *doer, enum deed deed)
{
    return (doer[0].deed == deed && doer[0].total) || (doer[1].deed == deed && doer[1].total);
}

static void judge_pair(struct race *race, const struct doer doer[2], bool timed, const char *where)
{
    const struct weft_claimed *lease = doer[0].lease;
    enum weft_state state = state_at(race->a, &lease->id);
    const char *one = deeds[doer[0].deed].name, *two = deeds[doer[1].deed].name;
    bool lost = !timed && done_by(doer, EXPIRE);
    bool over = done_by(doer, TIME_OUT) || (timed && done_by(doer, EXPIRE));
    enum weft_state wanted = done_by(doer, COMPLETE) ? WEFT_STATE_SUCCEEDED
                             : over                  ? WEFT_STATE_FAILED
                             : done_by(doer, CANCEL) ? WEFT_STATE_CANCELLED
                             : lost                  ? WEFT_STATE_READY
                                                     : WEFT_STATE_RUNNING;
    int ends = done_by(doer, COMPLETE) + over + done_by(doer, CANCEL);
    bool passes = doer[0].deed >= EXPIRE && doer[1].deed >= EXPIRE;
    bool twice = (passes || (doer[0].deed == CANCEL && doer[1].deed == CANCEL)) &&
                 doer[0].total + doer[1].total != 1;
    ok(!doer[0].failed && !doer[1].failed && !twice && ends <= 1 && state == wanted &&
           !(lost && done_by(doer, COMPLETE)),
       "%s and %s (%s): %d end, it is %s", one, two, where, ends, weft_state_name(state));
    is_int(attempts_of(race->a, &lease->id), 1, "%s and %s (%s): the lease ended once", one, two,
           where);
    if (weft_state_living(state))
        (void)steer_one(race->a, WEFT_STEER_CANCEL, &(struct weft_steer){.id = lease->id});
}

static void race_pair(struct race *race, enum deed first, enum deed second,
                      enum weft_fault_point point)
{
    struct weft_claimed lease;
    bool timed = first == TIME_OUT || second == TIME_OUT;
    take_rows(race, timed, 1, &lease);
    struct doer doer[2] = {
        {.engine = race->a, .deed = first, .lease = &lease, .count = 1},
        {.engine = race->b, .deed = second, .lease = &lease, .count = 1},
    };
    race_meet(race, &(struct meeting){.run = do_deed,
                                      .slow = &doer[0],
                                      .fast = &doer[1],
                                      .point = point,
                                      .stmt = deeds[first].stmt});
    judge_pair(race, doer, timed, point == WEFT_FAULT_BEFORE_RUN ? "overtaken" : "waited for");
}

RACE(every_pair_of_ends)
{
    for (int first = 0; first < DEEDS; first++)
        for (int second = 0; second < DEEDS; second++) {
            race_pair(race, (enum deed)first, (enum deed)second, WEFT_FAULT_BEFORE_RUN);
            race_pair(race, (enum deed)first, (enum deed)second, WEFT_FAULT_BEFORE_COMMIT);
        }
}

/* ---- All at once ----------------------------------------------------------------------------- */

struct crew {
    struct doer doer[DEEDS]; /* the deeds of one thread, row by row in turn */
    uint64_t seed;
};

static void work_crew(void *context)
{
    struct crew *crew = context;
    size_t order[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        order[i] = i;
    for (size_t i = ROWS - 1; i > 0; i--) {
        size_t k = next_random(&crew->seed) % (i + 1);
        size_t keep = order[i];
        order[i] = order[k];
        order[k] = keep;
    }
    for (size_t i = 0; i < ROWS; i++) {
        struct doer *doer = &crew->doer[next_random(&crew->seed) % DEEDS];
        if (doer->deed == CANCEL)
            do_cancel(doer, order[i]);
        else if (doer->deed == COMPLETE)
            do_complete(doer, order[i]);
        else
            do_pass(doer);
    }
}

/* How many rows are not what was said about them. */
static size_t judge_round(struct race *race, const struct crew crew[2], bool timed,
                          const struct weft_claimed *lease)
{
    size_t bad = 0, failed = 0;
    for (size_t i = 0; i < ROWS; i++) {
        enum weft_state state = state_at(race->a, &lease[i].id);
        int cancels = crew[0].doer[CANCEL].did[i] + crew[1].doer[CANCEL].did[i];
        bool complete = crew[0].doer[COMPLETE].did[i] || crew[1].doer[COMPLETE].did[i];
        bad += cancels != (state == WEFT_STATE_CANCELLED);
        bad += complete != (state == WEFT_STATE_SUCCEEDED);
        bad += attempts_of(race->a, &lease[i].id) != (state != WEFT_STATE_RUNNING);
        failed += state == WEFT_STATE_FAILED;
        if (weft_state_living(state))
            (void)steer_one(race->a, WEFT_STEER_CANCEL, &(struct weft_steer){.id = lease[i].id});
    }
    uint64_t over = crew[0].doer[TIME_OUT].total + crew[1].doer[TIME_OUT].total;
    if (timed)
        over += crew[0].doer[EXPIRE].total + crew[1].doer[EXPIRE].total;
    bad += failed != over;
    for (int c = 0; c < 2; c++)
        for (int d = 0; d < DEEDS; d++)
            bad += crew[c].doer[d].failed;
    return bad;
}

RACE(all_ends_at_once)
{
    uint64_t seed = 88172645463325252u;
    size_t bad = 0;
    int rounds = soaking() ? ROUNDS * 20 : ROUNDS;
    for (int round = 0; round < rounds; round++) {
        struct weft_claimed lease[ROWS];
        bool timed = round % 2 != 0;
        take_rows(race, timed, ROWS, lease);
        struct crew crew[2] = {0};
        struct task task[2];
        for (int c = 0; c < 2; c++) {
            crew[c].seed = next_random(&seed);
            for (int d = 0; d < DEEDS; d++)
                crew[c].doer[d] = (struct doer){
                    .engine = c ? race->b : race->a, .deed = (enum deed)d, .lease = lease};
            task[c] = (struct task){.run = work_crew, .context = &crew[c]};
            task_start(&task[c]);
        }
        for (int c = 0; c < 2; c++)
            task_join(&task[c]);
        size_t wrong = judge_round(race, crew, timed, lease);
        if (wrong)
            printf("# round %d: %zu things do not fit\n", round, wrong);
        bad += wrong;
    }
    is_int(bad, 0, "in %d rounds every answer agrees with the store", rounds);
}
