/* SPDX-License-Identifier: Apache-2.0 */

/* The runner: every race on a store of its own. With arguments, only the races that are named. */

#include "race.h"

#include "base/clock.h"
#include "engine/engine.h"
#include "store/fault/fault.h"
#include "store/store.h"

static struct race_case *first;

/* Constructors run in no useful order: the list is kept sorted by name. */
void race_register(struct race_case *test)
{
    struct race_case **at = &first;
    while (*at && strcmp((*at)->name, test->name) < 0)
        at = &(*at)->next;
    test->next = *at;
    *at = test;
}

void race_forward(struct race *race, int64_t ms)
{
    race->now_us += ms * WEFT_MS;
    weft_clock_set(weft_engine_clock(race->a), race->now_us);
    weft_clock_set(weft_engine_clock(race->b), race->now_us);
}

uint64_t race_calls(struct race *race)
{
    return __atomic_load_n(&race->fault.calls, __ATOMIC_RELAXED);
}

struct begun {
    struct race *race;
    uint64_t calls;
};

static bool has_begun(void *context)
{
    const struct begun *begun = context;
    return race_calls(begun->race) > begun->calls;
}

bool race_begun(struct race *race, uint64_t calls)
{
    struct begun begun = {.race = race, .calls = calls};
    return wait_until(has_begun, &begun);
}

void race_no_deadlock(struct race *race)
{
    if (!on_pg())
        return;
    weft_engine_close(race->a);
    weft_engine_close(race->b);
    is_int(raw_deadlocks(&race->place, race->raw), 0, "the server met no deadlock");
    race->a = place_open(&race->place, race->driver, race->now_us);
    race->b = place_open(&race->place, race->driver, race->now_us);
}

static void run_case(const struct race_case *test)
{
    struct race race = {.now_us = START_US};
    weft_usec begun_us = weft_boot_us();
    printf("# %s\n", test->name);
    race.fault.inner = on_pg() ? &weft_driver_pg : &weft_driver_sqlite;
    race.fault.hook = ambush_hook;
    race.driver = weft_fault_install(&race.fault);
    place_init(&race.place, "race");
    race.a = place_open(&race.place, race.driver, race.now_us);
    race.b = place_open(&race.place, race.driver, race.now_us);
    race.raw = on_pg() ? raw_open(&race.place) : NULL;
    test->run(&race);
    PQfinish(race.raw);
    weft_engine_close(race.b);
    weft_engine_close(race.a);
    place_check(&race.place, test->name);
    place_done(&race.place);
    printf("# %s took %lld ms\n", test->name, (long long)((weft_boot_us() - begun_us) / WEFT_MS));
}

int main(int argc, char **argv)
{
    tests_begin("race");
    for (const struct race_case *test = first; test; test = test->next)
        if (is_named(test->name, argc, argv))
            run_case(test);
    return tests_end();
}
