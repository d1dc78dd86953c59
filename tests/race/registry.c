/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Workers that come back, or are written by another replica, while worker_expiry looks at them. On
 * SQLite the two come one after the other, which the conformance cases have.
 */

#include "race.h"

#include "base/arena.h"
#include "base/limits.h"
#include "engine/admin/workers.h"
#include "engine/scan/pass.h"
#include "weft/weft.h"

struct expiry_run {
    struct weft_engine *engine;
    struct weft_pass_report report;
    enum weft_rc rc;
    struct weft_err err;
};

static void run_expiry(void *context)
{
    struct expiry_run *run = context;
    run->rc =
        weft_engine_pass(run->engine, WEFT_SCANNER_WORKER_EXPIRY, NULL, &run->report, &run->err);
}

static void hear(struct race *race, const char *name)
{
    const struct weft_worker_seen seen = {.ns = "default", .name = name, .seen_us = race->now_us};
    struct weft_err err;
    is_int(weft_engine_workers_put(race->b, &seen, 1, &err), WEFT_OK, "%s is heard of", name);
}

static bool is_listed(struct race *race, const char *name)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_workers list = {0};
    struct weft_err err;
    bool found = false;
    is_int(weft_engine_workers(race->b, "default", arena, &list, &err), WEFT_OK, "the list");
    for (size_t i = 0; i < list.count; i++)
        found |= strcmp(list.item[i].name, name) == 0;
    weft_arena_free(arena);
    return found;
}

/* The pass stops while it reads leases: it has its snapshot and has locked no worker yet. */
RACE(worker_comes_back_after_the_snapshot_of_worker_expiry)
{
    if (!on_pg()) {
        tap_skip("SQLite has one writer: the pass cannot be inside");
        return;
    }
    struct weft_id id;
    struct weft_claimed lease;
    struct gate gate;
    struct expiry_run run = {0};
    struct task task = {.run = run_expiry, .context = &run};
    put_work(race->a, &(struct weft_spec){.kind = "job"}, 1, &id);
    is_int(take_work(race->a, "default", 1, &lease), 1, "a worker holds a lease");
    hear(race, "back");
    hear(race, "gone");
    race_forward(race, WEFT_WORKER_TTL_US / WEFT_MS);
    gate_shut(&gate, race, &id);
    run.engine = gate.slow;
    task_start(&task);
    ok(gate_reached(&gate), "the pass asks for leases");
    hear(race, "back");
    ok(!task_done(&task), "the pass still stands when a worker has come back");
    gate_open(&gate);
    task_join(&task);
    is_int(run.rc, WEFT_OK, "the pass succeeds");
    is_int(run.report.handled, 1, "the pass removes one worker");
    ok(is_listed(race, "back"), "the one that came back stays");
    ok(!is_listed(race, "gone"), "the worker that stayed away is removed");
    gate_done(&gate);
}

RACE(worker_expiry_waits_for_no_row)
{
    if (!on_pg()) {
        tap_skip("SQLite has one writer");
        return;
    }
    struct expiry_run run = {.engine = race->a};
    hear(race, "one");
    hear(race, "other");
    race_forward(race, WEFT_WORKER_TTL_US / WEFT_MS);
    raw_run(&race->place, race->raw,
            "BEGIN; SELECT 1 FROM weft.worker w JOIN weft.name n ON n.id = w.name "
            "WHERE n.text = 'one' FOR UPDATE OF w");
    run_expiry(&run);
    ok(run.rc == WEFT_OK && run.report.handled == 1, "the worker that is not locked is removed");
    is_int(counter_of(&run.report, "skipped_locked"), 1, "the locked worker is counted as skipped");
    raw_run(&race->place, race->raw, "ROLLBACK");
    ok(is_listed(race, "one"), "the locked worker stays listed");
    run_expiry(&run);
    ok(run.rc == WEFT_OK && run.report.handled == 1, "the next pass removes the worker");
}
