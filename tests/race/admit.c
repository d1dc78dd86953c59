/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Admissions of one gate by two processes: lock, look, admit are three statements, and between any
 * two of them another admission, an end, a cancel or a new setting may come. Never more than the
 * limit are ready or running, and a gate that has room never stands still.
 */

#include "direct.h"
#include "race.h"

#include "engine/limit/admit.h"
#include "engine/limit/gates.h"
#include "engine/tx/commit_effects.h"
#include "weft/weft.h"

#include <string.h>

enum { LIMIT = 3, WORK = 10 };

/* The key of the last gate that an engine reported: the test plays the part of the errand. */
static char told[WEFT_GATE_KEY];

static void keep_key(void *context, const char *const *gate, size_t count)
{
    (void)context;
    (void)snprintf(told, sizeof(told), "%s", gate[count - 1]);
}

static void set_limit(struct weft_engine *engine, const char *gate, int64_t most)
{
    struct weft_err err = {0};
    const struct weft_gate setting = {.name = gate, .limits = {.max_running = most}};
    if (weft_engine_gate_put(engine, "default", &setting, &err))
        bail_out("gate: %s", err.text);
}

/* A gate with a limit and WORK executions, none of them admitted. */
static void fill(struct race *race, const char *gate, int64_t most, struct weft_id *ret_id)
{
    weft_engine_on_gates(race->a, keep_key, NULL);
    weft_engine_on_gates(race->b, keep_key, NULL);
    set_limit(race->b, gate, most);
    put_work(race->a, &(struct weft_spec){.kind = "job", .lane = gate, .gate = gate}, WORK, ret_id);
    if (!strstr(told, gate))
        bail_out("no errand for gate %s, but for %s", gate, told);
}

static size_t count_in(struct race *race, const struct weft_id *id, enum weft_state state)
{
    size_t count = 0;
    for (size_t i = 0; i < WORK; i++)
        count += state_at(race->b, &id[i]) == state;
    return count;
}

/* What a thread does about a gate. */
struct deed {
    enum { ADMIT, COMPLETE, CANCEL, PUT } what;
    struct weft_engine *engine;
    const char *gate;
    struct weft_claimed lease; /* COMPLETE, and then the errand */
    bool errand_lost;
    struct weft_id id; /* CANCEL */
    enum weft_rc rc;
    struct weft_err err;
};

static void admit(struct deed *deed)
{
    const char *name = told;
    deed->rc = weft_engine_admit(deed->engine, &name, 1, NULL, &deed->err);
}

static void do_deed(void *context)
{
    struct deed *deed = context;
    struct weft_lease_answer answer = {0};
    const struct weft_complete complete = {.id = deed->lease.id, .epoch = deed->lease.epoch};
    if (deed->what == COMPLETE) {
        deed->rc = engine_complete(deed->engine, &complete, 1, &answer, &deed->err);
        deed->rc = deed->rc ? deed->rc : answer.err.rc;
    } else if (deed->what == CANCEL) {
        deed->rc =
            steer_one(deed->engine, WEFT_STEER_CANCEL, &(struct weft_steer){.id = deed->id}).err.rc;
    } else if (deed->what == PUT) {
        set_limit(deed->engine, deed->gate, 1);
    }
    if (deed->what == ADMIT || (deed->what == COMPLETE && !deed->rc && !deed->errand_lost))
        admit(deed);
}

static void meet(struct race *race, struct deed *slow, struct deed *fast, enum weft_fault_point at,
                 enum weft_stmt stmt)
{
    race_meet(race, &(struct meeting){
                        .run = do_deed, .slow = slow, .fast = fast, .point = at, .stmt = stmt});
    ok(slow->rc == WEFT_OK && fast->rc == WEFT_OK, "%s: both succeed: %s %s", slow->gate,
       slow->err.text, fast->err.text);
}

static const struct {
    const char *gate;
    enum weft_fault_point point;
    enum weft_stmt stmt;
} place[] = {
    {"added", WEFT_FAULT_AFTER_RUN, WEFT_STMT_GATE_ADD},
    {"locked", WEFT_FAULT_AFTER_RUN, WEFT_STMT_GATE_LOCK},
    {"looked", WEFT_FAULT_AFTER_RUN, WEFT_STMT_GATE_LOOK},
    {"admitting", WEFT_FAULT_BEFORE_RUN, WEFT_STMT_GATE_ADMIT},
    {"admitted", WEFT_FAULT_AFTER_RUN, WEFT_STMT_GATE_ADMIT},
    {"committing", WEFT_FAULT_BEFORE_COMMIT, WEFT_STMT_GATE_ADMIT},
};

RACE(two_admissions_of_one_gate)
{
    for (size_t i = 0; i < WEFT_LEN(place); i++) {
        struct weft_id id[WORK];
        fill(race, place[i].gate, LIMIT, id);
        is_int(count_in(race, id, WEFT_STATE_HELD), WORK, "%s: all are held", place[i].gate);
        struct deed slow = {.what = ADMIT, .engine = race->a, .gate = place[i].gate};
        struct deed fast = {.what = ADMIT, .engine = race->b, .gate = place[i].gate};
        meet(race, &slow, &fast, place[i].point, place[i].stmt);
        is_int(count_in(race, id, WEFT_STATE_READY), LIMIT, "%s: the limit is admitted, once",
               place[i].gate);
    }
}

/* An end frees a place while an admission runs: that one sees it, or the errand of the end does. */
RACE(an_end_meets_an_admission)
{
    for (size_t i = 1; i < WEFT_LEN(place); i++) { /* the row of the gate is there already */
        struct weft_id id[WORK];
        struct weft_claimed lease[LIMIT];
        fill(race, place[i].gate, 2, id);
        struct deed first = {.what = ADMIT, .engine = race->a, .gate = place[i].gate};
        do_deed(&first);
        is_int(take_work(race->a, place[i].gate, LIMIT, lease), 2, "%s: two run", place[i].gate);
        struct deed lost = {.what = COMPLETE,
                            .engine = race->b,
                            .gate = place[i].gate,
                            .lease = lease[0],
                            .errand_lost = true};
        do_deed(&lost);
        struct deed slow = {.what = ADMIT, .engine = race->a, .gate = place[i].gate};
        struct deed fast = {
            .what = COMPLETE, .engine = race->b, .gate = place[i].gate, .lease = lease[1]};
        meet(race, &slow, &fast, place[i].point, place[i].stmt);
        is_int(count_in(race, id, WEFT_STATE_READY), 2, "%s: both places are taken", place[i].gate);
    }
}

/* What was admitted under the old limit stays; nothing more is, until that has ended. */
RACE(a_limit_is_lowered_under_an_admission)
{
    for (size_t i = 0; i < WEFT_LEN(place); i++) {
        struct weft_id id[WORK];
        struct weft_claimed lease[WORK];
        fill(race, place[i].gate, LIMIT, id);
        struct deed slow = {.what = ADMIT, .engine = race->a, .gate = place[i].gate};
        struct deed fast = {.what = PUT, .engine = race->b, .gate = place[i].gate};
        meet(race, &slow, &fast, place[i].point, place[i].stmt);
        struct deed later = {.what = ADMIT, .engine = race->b, .gate = place[i].gate};
        do_deed(&later);
        size_t ready = count_in(race, id, WEFT_STATE_READY);
        ok(ready == LIMIT || ready == 1, "%s: %zu are admitted, by the one limit or the other",
           place[i].gate, ready);
        is_int(take_work(race->a, place[i].gate, WORK, lease), ready, "%s: the admitted ones run",
               place[i].gate);
        for (size_t k = 0; k < ready; k++) {
            is_int(count_in(race, id, WEFT_STATE_READY), 0, "%s: no other is admitted beside them",
                   place[i].gate);
            struct deed end = {
                .what = COMPLETE, .engine = race->b, .gate = place[i].gate, .lease = lease[k]};
            do_deed(&end);
        }
        is_int(count_in(race, id, WEFT_STATE_READY), 1,
               "%s: the next is admitted when all have ended", place[i].gate);
    }
}

/* A cancel has locked the first of the line, or the admission comes first: one place, one ready. */
RACE(a_cancel_meets_an_admission)
{
    static const struct {
        const char *gate;
        bool cancel_first;
        enum weft_fault_point point;
        enum weft_stmt stmt;
    } row[] = {
        {"cancel-locked", true, WEFT_FAULT_AFTER_RUN, WEFT_STMT_LIVE_LOCK},
        {"cancel-commits", true, WEFT_FAULT_BEFORE_COMMIT, WEFT_STMT_LIVE_END},
        {"admitted-first", false, WEFT_FAULT_AFTER_RUN, WEFT_STMT_GATE_ADMIT},
        {"looked-first", false, WEFT_FAULT_AFTER_RUN, WEFT_STMT_GATE_LOOK},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_id id[WORK];
        fill(race, row[i].gate, 1, id);
        struct deed admission = {.what = ADMIT, .engine = race->a, .gate = row[i].gate};
        struct deed cancel = {.what = CANCEL, .engine = race->b, .gate = row[i].gate, .id = id[0]};
        if (row[i].cancel_first)
            meet(race, &cancel, &admission, row[i].point, row[i].stmt);
        else
            meet(race, &admission, &cancel, row[i].point, row[i].stmt);
        is_int(state_at(race->b, &id[0]), WEFT_STATE_CANCELLED,
               "%s: the first of the line is cancelled", row[i].gate);
        struct deed errand = {.what = ADMIT, .engine = race->b, .gate = row[i].gate};
        do_deed(&errand); /* of the cancel */
        is_int(count_in(race, id, WEFT_STATE_READY), 1, "%s: another one is ready", row[i].gate);
    }
}
