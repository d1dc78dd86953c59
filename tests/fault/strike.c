/* SPDX-License-Identifier: Apache-2.0 */

/* See strike.h. */

#include "strike.h"

#include "base/clock.h"
#include "engine/admin/doctor.h"
#include "engine/engine.h"
#include "store/store.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

const struct strike_kind strike_kinds[STRIKE_KINDS] = {
    {"fail", WEFT_FAULT_FAIL},         {"lose", WEFT_FAULT_LOSE},
    {"full", WEFT_FAULT_FULL},         {"lose_reply", WEFT_FAULT_LOSE_REPLY},
    {"crash", WEFT_FAULT_CRASH_AFTER},
};

/* ---- Engines --------------------------------------------------------------------------------- */

void striker_init(struct striker *striker, const char *name)
{
    *striker = (struct striker){.now_us = START_US};
    striker->fault.inner = on_pg() ? &weft_driver_pg : &weft_driver_sqlite;
    striker->driver = weft_fault_install(&striker->fault);
    place_init(&striker->place, name);
    striker->raw = on_pg() ? raw_open(&striker->place) : NULL;
}

void striker_done(struct striker *striker)
{
    struct weft_err err = {0};
    if (weft_engine_check(striker_clean(striker), &err))
        bail_out("the invariants are broken: %s", err.text);
    striker_close_engines(striker);
    PQfinish(striker->raw);
    place_done(&striker->place);
}

struct weft_engine *striker_clean(struct striker *striker)
{
    if (!striker->clean)
        striker->clean = place_open(&striker->place, NULL, striker->now_us);
    return striker->clean;
}

struct weft_engine *striker_faulty(struct striker *striker)
{
    if (!striker->faulty)
        striker->faulty = place_open(&striker->place, striker->driver, striker->now_us);
    return striker->faulty;
}

void striker_close_engines(struct striker *striker)
{
    weft_engine_close(striker->clean);
    weft_engine_close(striker->faulty);
    striker->clean = striker->faulty = NULL;
}

void striker_set_time(struct striker *striker, weft_usec now_us)
{
    striker->now_us = now_us;
    if (striker->clean)
        weft_clock_set(weft_engine_clock(striker->clean), now_us);
    if (striker->faulty)
        weft_clock_set(weft_engine_clock(striker->faulty), now_us);
}

/* ---- Striking -------------------------------------------------------------------------------- */

static void act_in_child(struct striker *striker, enum weft_fault_kind kind, uint64_t at,
                         strike_fn *act, void *context)
{
    struct place mine = striker->place;
    size_t used = strlen(mine.url);
    if (on_pg())
        (void)snprintf(mine.url + used, sizeof(mine.url) - used, "&application_name=child_%s",
                       mine.schema);
    struct weft_engine *engine = place_open(&mine, striker->driver, striker->now_us);
    striker->fault.kind = kind;
    striker->fault.strike_at = at;
    act(context, engine);
    striker->fault.strike_at = 0;
    weft_engine_close(engine);
    _exit(0);
}

/* Locks of SQLite would not survive the fork. Returns whether the child was struck. */
static bool strike_child(struct striker *striker, enum weft_fault_kind kind, uint64_t at,
                         strike_fn *act, void *context)
{
    char sql[200];
    int status = 0;
    if (!on_pg())
        striker_close_engines(striker);
    (void)fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        bail_out("cannot fork");
    if (child == 0)
        act_in_child(striker, kind, at, act, context);
    (void)waitpid(child, &status, 0);
    (void)snprintf(sql, sizeof(sql),
                   "SELECT (count(*) = 0)::int FROM pg_stat_activity "
                   "WHERE application_name = 'child_%s'",
                   striker->place.schema);
    if (striker->raw && !raw_wait(&striker->place, striker->raw, sql))
        bail_out("the session of a dead process stays");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return false;
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        bail_out("a child ended in another way: status %d", status);
    return true;
}

bool strike(struct striker *striker, enum weft_fault_kind kind, uint64_t at, strike_fn *act,
            void *context)
{
    if (kind == WEFT_FAULT_CRASH_AFTER)
        return strike_child(striker, kind, at, act, context);
    struct weft_engine *engine = striker_faulty(striker);
    striker->fault.kind = kind;
    striker->fault.struck = false;
    striker->fault.strike_at = at;
    act(context, engine);
    striker->fault.strike_at = 0;
    return striker->fault.struck;
}

/* ---- Several loops --------------------------------------------------------------------------- */

enum { LOOPS_AT_ONCE = 5 };

static const char *const *loop_at(const struct loop_set *set, size_t i)
{
    return (const void *)((const char *)set->first + i * set->size);
}

void loop_set_run(const struct loop_set *set, wanted_fn *wanted, int argc, char **argv)
{
    struct loop_finding(*found)[STRIKE_KINDS] =
        mmap(NULL, sizeof(*found) * set->count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
             -1, 0);
    pid_t worker[64] = {0};
    int status[WEFT_LEN(worker)] = {0};
    if (found == MAP_FAILED || set->count > WEFT_LEN(worker))
        bail_out("no shared memory, or too many loops");
    (void)fflush(stdout);
    for (size_t i = 0; i < set->count; i++) {
        /* More at once only wait for each other, and for connections that a strike has cut. */
        if (i >= LOOPS_AT_ONCE && worker[i - LOOPS_AT_ONCE])
            (void)waitpid(worker[i - LOOPS_AT_ONCE], &status[i - LOOPS_AT_ONCE], 0);
        if (!wanted(*loop_at(set, i), argc, argv))
            continue;
        worker[i] = fork();
        if (worker[i] < 0)
            bail_out("cannot fork");
        if (worker[i] == 0) {
            set->run(loop_at(set, i), found[i]);
            (void)fflush(stdout);
            _exit(0);
        }
    }
    for (size_t i = 0; i < set->count; i++) {
        const char *name = *loop_at(set, i);
        if (worker[i] == 0)
            continue;
        if (i + LOOPS_AT_ONCE >= set->count)
            (void)waitpid(worker[i], &status[i], 0);
        ok(status[i] == 0, "%s: its worker comes through", name);
        for (size_t k = 0; k < STRIKE_KINDS; k++)
            ok(found[i][k].bad == 0 && found[i][k].calls >= set->calls_min &&
                   found[i][k].calls < set->calls_max,
               "%s: %s at each of %llu calls", name, strike_kinds[k].name,
               (unsigned long long)found[i][k].calls);
    }
    (void)munmap(found, sizeof(*found) * set->count);
}
