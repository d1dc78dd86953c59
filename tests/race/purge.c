/* SPDX-License-Identifier: Apache-2.0 */

/* Two replicas purge one flow: each row is removed by one of them, and neither waits. */

#include "flows.h"
#include "race.h"

#include "base/id.h"
#include "engine/batch/files.h"
#include "engine/flow/flow.h"
#include "engine/scan/pass.h"
#include "store/fault/fault.h"
#include "weft/weft.h"

#include <string.h>

struct purge_run {
    struct weft_engine *engine;
    uint32_t batch;
    struct weft_pass_report report;
    enum weft_rc rc;
    struct weft_err err;
};

static void run_purge(void *context)
{
    struct purge_run *run = context;
    const struct weft_pass_config config = {.batch = run->batch};
    run->rc = weft_engine_pass(run->engine, WEFT_SCANNER_PURGE, &config, &run->report, &run->err);
}

static uint64_t counted(const struct purge_run *run, const char *name)
{
    for (size_t i = 0; i < run->report.counter_count; i++)
        if (strcmp(run->report.counter[i].name, name) == 0)
            return run->report.counter[i].value;
    return UINT64_MAX;
}

static void delete_flow(struct race *race, const struct drawn *flow)
{
    const struct weft_flow_cancelling args = {
        .ns = "default", .flow = flow->answer.id, .how = WEFT_FLOW_CANCEL_ALL, .remove = true};
    enum weft_flow_state state;
    struct weft_flow_drain drain;
    struct weft_err err = {0};
    is_int(weft_engine_flow_cancel(race->a, &args, &state, &drain, &err), WEFT_OK, "delete");
}

/* The first has locked, or removed, its members and has not committed while the second runs. */
RACE(two_replicas_purge_one_flow)
{
    static const enum weft_stmt places[] = {WEFT_STMT_PURGE_TAKE, WEFT_STMT_PURGE_MEMBERS};
    if (!only_on_pg())
        return;
    for (size_t i = 0; i < WEFT_LEN(places); i++) {
        struct drawn flow;
        struct stop stop;
        draw(&flow, "a; b; c; d; e");
        submit(race, &flow);
        delete_flow(race, &flow);
        struct purge_run first = {.engine = race->a, .batch = 2};
        struct purge_run second = {.engine = race->b, .batch = 100};
        struct ambush ambush = {
            .point = WEFT_FAULT_AFTER_RUN, .stmt = places[i], .act = ambush_stop, .context = &stop};
        struct task task = {.run = run_purge, .context = &first, .ambush = &ambush};
        struct task beside = {.run = run_purge, .context = &second};
        stop_init(&stop);
        task_start(&task);
        ok(stop_reached(&stop), "the first has %s", i == 0 ? "locked members" : "removed members");
        task_start(&beside);
        ok(task_finishes(&beside), "the second does not wait");
        task_join(&beside);
        is_int(second.rc, WEFT_OK, "the second succeeds");
        is_int((int64_t)counted(&second, "members"), 3, "it removes what the first has not locked");
        is_int((int64_t)counted(&second, "tombstones"), 0, "the flow stays while it has members");
        is_int((int64_t)counted(&second, "skipped_locked"), 2, "it says what it left");
        stop_release(&stop);
        task_join(&task);
        is_int(first.rc, WEFT_OK, "the first goes on");
        is_int((int64_t)counted(&first, "members"), 2, "and removes its own");
        run_purge(&second);
        is_int((int64_t)counted(&second, "members"), 0, "each row was removed once");
        is_int((int64_t)(counted(&first, "tombstones") + counted(&second, "tombstones")), 1,
               "the flow goes last");
        is_int(raw_int(&race->place, race->raw, "SELECT count(*) FROM weft.node"), 0,
               "nothing is left");
    }
}

static void put_deleted_file(struct race *race, int chunks)
{
    struct weft_id id;
    struct weft_err err = {0};
    bool good = !weft_engine_file_begin(race->a, "default", "in", &id, &err);
    for (int i = 0; i < chunks && good; i++) {
        const struct weft_file_chunk chunk = {
            .file = id, .at = 2 * (uint64_t)i, .line = (uint64_t)i, .data = "x\n", .size = 2};
        good = !weft_engine_file_put(race->a, &chunk, &err);
    }
    const struct weft_file sealed = {.id = id, .purpose = "batch", .flaws = ""};
    good = good && !weft_engine_file_seal(race->a, &sealed, &err);
    ok(good && !weft_engine_file_remove(race->a, "default", &id, &err), "a deleted file: %s",
       err.text);
}

RACE(two_replicas_purge_one_file)
{
    struct stop stop;
    if (!only_on_pg())
        return;
    put_deleted_file(race, 5);
    struct purge_run first = {.engine = race->a, .batch = 2};
    struct purge_run second = {.engine = race->b, .batch = 100};
    struct ambush ambush = {.point = WEFT_FAULT_AFTER_RUN,
                            .stmt = WEFT_STMT_PURGE_CHUNKS,
                            .act = ambush_stop,
                            .context = &stop};
    struct task task = {.run = run_purge, .context = &first, .ambush = &ambush};
    struct task beside = {.run = run_purge, .context = &second};
    stop_init(&stop);
    task_start(&task);
    ok(stop_reached(&stop), "the first has removed chunks");
    task_start(&beside);
    ok(task_finishes(&beside), "the second does not wait");
    task_join(&beside);
    is_int((int64_t)counted(&second, "chunks"), 3, "it removes what the first has not locked");
    is_int((int64_t)counted(&second, "tombstones"), 0, "the file stays while it has chunks");
    is_int((int64_t)counted(&second, "skipped_locked"), 2, "it says what it left");
    stop_release(&stop);
    task_join(&task);
    is_int(first.rc, WEFT_OK, "the first goes on");
    is_int((int64_t)counted(&first, "chunks"), 2, "and removes its own");
    run_purge(&second);
    is_int((int64_t)counted(&second, "chunks"), 0, "each chunk was removed once");
    is_int((int64_t)(counted(&first, "tombstones") + counted(&second, "tombstones")), 1,
           "the file goes last");
    is_int(raw_int(&race->place, race->raw, "SELECT count(*) FROM weft.file"), 0,
           "nothing is left");
}
