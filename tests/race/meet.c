/* SPDX-License-Identifier: Apache-2.0 */

/* Two calls at one row, in a forced order. See race.h. */

#include "race.h"

struct either {
    struct race *race;
    struct task *task;
    uint64_t calls;
};

/* The second is through, or stands where it must wait for the first. */
static bool is_through_or_waits(void *context)
{
    const struct either *either = context;
    if (task_done(either->task))
        return true;
    if (!on_pg())
        return race_calls(either->race) > either->calls;
    return raw_int(&either->race->place, either->race->raw,
                   "SELECT count(*) FROM pg_locks WHERE NOT granted") > 0;
}

void race_meet(struct race *race, const struct meeting *meeting)
{
    struct stop stop;
    stop_init(&stop);
    struct ambush ambush = {
        .point = meeting->point, .stmt = meeting->stmt, .act = ambush_stop, .context = &stop};
    struct task slow = {.run = meeting->run, .context = meeting->slow, .ambush = &ambush};
    struct task fast = {.run = meeting->run, .context = meeting->fast};
    task_start(&slow);
    if (!stop_reached(&stop))
        bail_out("the first does not come by %s", weft_stmts[meeting->stmt].name);
    struct either either = {.race = race, .task = &fast, .calls = race_calls(race)};
    task_start(&fast);
    if (!wait_until(is_through_or_waits, &either))
        bail_out("the second hangs while the first stands at %s", weft_stmts[meeting->stmt].name);
    stop_release(&stop);
    task_join(&slow);
    task_join(&fast);
}
