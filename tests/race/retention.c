/* SPDX-License-Identifier: Apache-2.0 */

/* Retention beside a replay, a session that locks a row, and a pass of another replica. */

#include "direct.h"
#include "race.h"

#include "base/id.h"
#include "engine/job/control.h"
#include "engine/job/submit.h"
#include "engine/scan/pass.h"
#include "store/fault/fault.h"
#include "weft/weft.h"

#include <stdlib.h>

enum { FIRST, SECOND, ROWS };
#define WEEK_MS ((int64_t)7 * 86400 * 1000)

struct pass_run {
    struct weft_engine *engine;
    struct weft_pass_report report;
    enum weft_rc rc;
    struct weft_err err;
};

static void run_retention(void *context)
{
    struct pass_run *run = context;
    run->rc = weft_engine_pass(run->engine, WEFT_SCANNER_RETENTION, NULL, &run->report, &run->err);
}

/* A pass that is stopped when it has deleted its rows and has not committed. */
struct removal {
    struct stop stop;
    struct ambush ambush;
    struct pass_run run;
    struct task task;
};

static void removal_start(struct removal *removal, struct race *race)
{
    *removal = (struct removal){
        .ambush = {.point = WEFT_FAULT_AFTER_RUN,
                   .stmt = WEFT_STMT_RETENTION_REMOVE,
                   .act = ambush_stop,
                   .context = &removal->stop},
        .run = {.engine = race->a},
        .task = {.run = run_retention, .context = &removal->run, .ambush = &removal->ambush}};
    stop_init(&removal->stop);
    task_start(&removal->task);
    ok(stop_reached(&removal->stop), "the rows are deleted, the transaction is open");
    stop_release(&removal->stop);
}

static struct weft_steered steer_now(struct weft_engine *engine, enum weft_steer_kind kind,
                                     const struct weft_id *id)
{
    struct weft_steered answer = {0};
    struct weft_err err = {0};
    const struct weft_steer item = {.id = *id};
    const struct weft_steering steering = {
        .kind = kind, .ns = "default", .item = &item, .count = 1};
    is_int(engine_steer(engine, &steering, &answer, &err), WEFT_OK, "steer");
    return answer;
}

/* Executions that are over, a millisecond apart; then a week goes by. */
static void end_some(struct race *race, struct weft_id id[ROWS])
{
    for (size_t i = 0; i < ROWS; i++) {
        put_work(race->a, &(struct weft_spec){.kind = "job"}, 1, &id[i]);
        is_int(steer_now(race->a, WEFT_STEER_CANCEL, &id[i]).err.rc, WEFT_OK, "%zu is over", i);
        race_forward(race, 1);
    }
    race_forward(race, WEEK_MS);
}

/* The pass has its snapshot and stands at the first row when the second comes back to life. */
RACE(replay_commits_after_the_snapshot_of_retention)
{
    struct weft_id id[ROWS];
    end_some(race, id);
    if (!on_pg())
        return; /* one writer at a time: there is no such moment */
    struct gate gate;
    struct pass_run run = {0};
    struct task task = {.run = run_retention, .context = &run};
    gate_shut(&gate, race, &id[FIRST]);
    run.engine = gate.slow;
    task_start(&task);
    ok(gate_reached(&gate), "the pass stands at the first row");
    is_int(steer_now(race->b, WEFT_STEER_REPLAY, &id[SECOND]).err.rc, WEFT_OK,
           "the second is replayed");
    ok(!task_done(&task), "the pass is still there");
    gate_open(&gate);
    task_join(&task);
    gate_done(&gate);
    is_int(run.rc, WEFT_OK, "the pass succeeds");
    is_int(run.report.handled, 1, "the pass removes one execution");
    is_int(state_at(race->a, &id[FIRST]), WEFT_STATE_NONE, "the first");
    is_int(state_at(race->a, &id[SECOND]), WEFT_STATE_READY, "the replayed one lives");
}

/* A replay that comes while the removal has not committed waits, and finds nothing. */
RACE(replay_of_an_execution_being_removed)
{
    struct weft_id id[ROWS];
    struct removal removal;
    end_some(race, id);
    removal_start(&removal, race);
    struct weft_steered answer = steer_now(race->b, WEFT_STEER_REPLAY, &id[SECOND]);
    task_join(&removal.task);
    ok(removal.run.rc == WEFT_OK && removal.run.report.handled == ROWS, "the pass removes both");
    is_int(answer.err.rc, WEFT_NOT_FOUND, "the replay finds nothing");
    is_int(state_at(race->b, &id[SECOND]), WEFT_STATE_NONE, "the removed execution stays gone");
}

RACE(retention_steps_around_a_locked_row)
{
    struct weft_id id[ROWS];
    char text[WEFT_ID_TEXT];
    end_some(race, id);
    if (!on_pg())
        return; /* a lock on a row is PostgreSQL's */
    weft_id_print(&id[FIRST], text);
    raw_run(&race->place, race->raw, "BEGIN");
    raw_run(&race->place, race->raw, "SELECT 1 FROM weft.outcome WHERE id = '%s' FOR UPDATE", text);
    struct pass_run run = {.engine = race->a};
    run_retention(&run);
    ok(run.rc == WEFT_OK && run.report.handled == 1, "the pass does not wait for it");
    ok(!run.report.more, "the pass does not ask to run again at once");
    is_int(counter_of(&run.report, "skipped_locked"), 1, "the locked row is counted as skipped");
    is_int(state_at(race->b, &id[FIRST]), WEFT_STATE_CANCELLED, "the locked row stays");
    is_int(state_at(race->b, &id[SECOND]), WEFT_STATE_NONE,
           "the row that is not locked is removed");
    raw_run(&race->place, race->raw, "COMMIT");
    run = (struct pass_run){.engine = race->b};
    run_retention(&run);
    ok(run.rc == WEFT_OK && run.report.handled == 1, "the next pass removes the row");
    is_int(counter_of(&run.report, "skipped_locked"), 0, "the next pass skips nothing");
}

/* Two replicas share the work: each row is removed, and counted, once. */
RACE(retention_on_two_replicas)
{
    enum { MANY = 500 };
    struct weft_id *id = calloc(MANY, sizeof(*id));
    put_work(race->a, &(struct weft_spec){.kind = "job"}, MANY, id);
    for (size_t i = 0; i < MANY; i++)
        (void)steer_now(race->a, WEFT_STEER_CANCEL, &id[i]);
    race_forward(race, WEEK_MS);
    struct pass_run run[] = {{.engine = race->a}, {.engine = race->b}};
    struct task task[WEFT_LEN(run)];
    for (size_t i = 0; i < WEFT_LEN(run); i++) {
        task[i] = (struct task){.run = run_retention, .context = &run[i]};
        task_start(&task[i]);
    }
    for (size_t i = 0; i < WEFT_LEN(run); i++)
        task_join(&task[i]);
    ok(run[0].rc == WEFT_OK && run[1].rc == WEFT_OK, "both passes succeed");
    is_int((int64_t)(run[0].report.handled + run[1].report.handled), MANY,
           "together they remove each once");
    for (size_t i = 0; i < MANY; i += 100)
        is_int(state_at(race->a, &id[i]), WEFT_STATE_NONE, "row %zu is gone", i);
    free(id);
}

/* The key of an execution that is being removed: a submission under it waits and gets the key. */
RACE(key_of_an_execution_being_removed)
{
    struct weft_id old;
    struct removal removal;
    const struct weft_spec spec = {.kind = "job", .key = "k"};
    put_work(race->a, &spec, 1, &old);
    (void)steer_now(race->a, WEFT_STEER_CANCEL, &old);
    race_forward(race, WEEK_MS);
    removal_start(&removal, race);
    struct weft_submitted answer = {0};
    struct weft_err err = {0};
    is_int(engine_submit(race->b, "default", &spec, 1, &answer, &err), WEFT_OK, "a submit");
    task_join(&removal.task);
    is_int(removal.run.rc, WEFT_OK, "the pass succeeds");
    ok(answer.err.rc == WEFT_OK && !answer.duplicate && weft_id_cmp(&answer.id, &old) != 0,
       "the submission gets the key for a new execution");
    is_int(state_at(race->a, &answer.id), WEFT_STATE_READY, "the new execution is ready");
}
