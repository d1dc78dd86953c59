/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Eight processes that drain a lane, eight under a limit, some that die, ten that open a store.
 * With arguments, only the tests that are named.
 */

#include "direct.h"
#include "process.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "engine/admin/lanes.h"
#include "engine/admin/tally.h"
#include "engine/engine.h"
#include "engine/job/submit.h"
#include "weft/weft.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PROCESSES = 8,
    DRAINED = 20000,
    LIMIT = 3,
    LIMITED = 400,
    DOOMED = 5,
    LEFT = 40,
    OPENERS = 10
};

static void fill(const struct place *place, const char *lane, size_t count, int32_t limit)
{
    struct weft_engine *engine = place_open(place, NULL, 0);
    struct weft_id *id = calloc(count, sizeof(*id));
    struct weft_err err = {0};
    if (!id)
        bail_out("no memory");
    put_work(engine, &(struct weft_spec){.kind = "job", .lane = lane}, count, id);
    const struct weft_lane setting = {.name = lane, .max_running = limit};
    if (limit && weft_engine_lane_put(engine, "default", &setting, &err))
        bail_out("lane: %s", err.text);
    free(id);
    weft_engine_close(engine);
}

static int by_id(const void *a, const void *b)
{
    return weft_id_cmp(&((const struct record *)a)->id, &((const struct record *)b)->id);
}

/* How many ids were reported a second time with this word. */
static size_t count_repeats(struct crew *crew, int what)
{
    size_t repeats = 0;
    qsort(crew->record, crew->records, sizeof(*crew->record), by_id);
    for (size_t i = 0; i < crew->records; i++)
        for (size_t k = i + 1; k < crew->records && by_id(&crew->record[i], &crew->record[k]) == 0;
             k++)
            repeats += (int)crew->record[i].what == what && (int)crew->record[k].what == what;
    return repeats;
}

static size_t count_unlike(const struct weft_execution *all, size_t count, enum weft_state state,
                           int32_t epoch)
{
    size_t unlike = 0;
    for (size_t i = 0; i < count; i++)
        unlike += all[i].state != state || (epoch && all[i].epoch != epoch);
    return unlike;
}

static void test_drain(void)
{
    struct place place;
    struct crew crew;
    struct work work = {.lane = "work", .batch = 100};
    size_t size = DRAINED, count;
    place_init(&place, "drain");
    fill(&place, "work", size, 0);
    weft_usec begun_us = weft_boot_us();
    crew_start(&crew, &place, PROCESSES, work_lane, &work);
    ok(crew_join(&crew), "%d processes drain a lane of %zu", PROCESSES, size);
    printf("# that took %lld ms\n", (long long)((weft_boot_us() - begun_us) / WEFT_MS));
    is_int(crew_count(&crew, CLAIMED), (int64_t)size,
           "as many claims were reported as there are executions");
    is_int(count_repeats(&crew, CLAIMED), 0, "no claim was reported twice");
    is_int(crew_count(&crew, COMPLETED), (int64_t)size,
           "as many completions were reported as there are executions");
    is_int(count_repeats(&crew, COMPLETED), 0, "no completion was reported twice");
    struct weft_arena *arena = weft_arena_new();
    struct weft_engine *engine = place_open(&place, NULL, 0);
    struct weft_execution *all = read_lane(engine, "work", arena, &count);
    is_int(count, (int64_t)size, "the store has so many");
    is_int(count_unlike(all, count, WEFT_STATE_SUCCEEDED, 1), 0,
           "all succeeded under their first epoch");
    weft_engine_close(engine);
    weft_arena_free(arena);
    crew_done(&crew);
    place_check(&place, "drain");
    place_done(&place);
}

/* ---- Under a limit --------------------------------------------------------------------------- */

struct edge {
    weft_usec at_us;
    int step; /* +1 a start, -1 an end */
};

/* Ends before starts at the same moment: a slot is free when its holder is done. */
static int by_time(const void *a, const void *b)
{
    const struct edge *left = a, *right = b;
    if (left->at_us != right->at_us)
        return left->at_us < right->at_us ? -1 : 1;
    return left->step - right->step;
}

/* The most that ran at one moment, by what the store recorded of starts and ends. */
static int most_at_once(const struct weft_execution *all, size_t count, struct weft_arena *arena)
{
    struct edge *edge = weft_new_array(arena, struct edge, 2 * count + 1);
    for (size_t i = 0; i < count; i++) {
        edge[2 * i] = (struct edge){.at_us = all[i].claimed_us, .step = 1};
        edge[2 * i + 1] = (struct edge){.at_us = all[i].finished_us, .step = -1};
    }
    qsort(edge, 2 * count, sizeof(*edge), by_time);
    int running = 0, most = 0;
    for (size_t i = 0; i < 2 * count; i++) {
        running += edge[i].step;
        most = running > most ? running : most;
    }
    return most;
}

struct watch {
    struct weft_engine *engine;
    uint64_t most, looks;
};

/* One read in one snapshot: rows that it shows together were there together. */
static bool watch_lane(void *context)
{
    struct watch *watch = context;
    struct weft_arena *arena = weft_arena_new();
    struct weft_counts counts = {0};
    struct weft_err err = {0};
    uint64_t living = 0, running = 0;
    if (weft_engine_counts(watch->engine, "default", "narrow", arena, &counts, &err))
        bail_out("counts: %s", err.text);
    for (size_t s = 0; counts.count && s < WEFT_STATE_COUNT; s++)
        living += counts.item[0].count[s];
    if (counts.count)
        running = counts.item[0].count[WEFT_STATE_RUNNING];
    watch->most = running > watch->most ? running : watch->most;
    watch->looks++;
    weft_arena_free(arena);
    return living == 0;
}

static void test_limit(void)
{
    struct place place;
    struct crew crew;
    struct work work = {.lane = "narrow", .batch = 2, .lingers = true};
    size_t count;
    place_init(&place, "limit");
    fill(&place, "narrow", LIMITED, LIMIT);
    crew_start(&crew, &place, PROCESSES, work_lane, &work);
    struct watch watch = {.engine = place_open(&place, NULL, 0)};
    ok(wait_until(watch_lane, &watch), "%d processes work in a lane with limit %d", PROCESSES,
       LIMIT);
    weft_engine_close(watch.engine);
    ok(watch.most <= LIMIT, "at most %d ran in each of %llu looks (%llu did)", LIMIT,
       (unsigned long long)watch.looks, (unsigned long long)watch.most);
    ok(crew_join(&crew), "all processes end well");
    is_int(crew_count(&crew, COMPLETED), LIMITED, "all executions are completed");
    is_int(count_repeats(&crew, CLAIMED), 0, "no execution was claimed twice");
    struct weft_arena *arena = weft_arena_new();
    struct weft_engine *engine = place_open(&place, NULL, 0);
    struct weft_execution *all = read_lane(engine, "narrow", arena, &count);
    is_int(count_unlike(all, count, WEFT_STATE_SUCCEEDED, 1), 0, "everything succeeded");
    int most = most_at_once(all, count, arena);
    ok(count == LIMITED && most == LIMIT, "at most %d ran at any moment (%d did)", LIMIT, most);
    weft_engine_close(engine);
    weft_arena_free(arena);
    crew_done(&crew);
    place_check(&place, "limit");
    place_done(&place);
}

/* ---- Killed ---------------------------------------------------------------------------------- */

/* Waits until each of the doomed holds leases, then kills them. */
static size_t kill_all(struct crew *doomed)
{
    bool holds[DOOMED] = {false};
    size_t holders = 0;
    while (holders < DOOMED) {
        if (!crew_hear(doomed, doomed->records + 1))
            bail_out("the processes that are to be killed do not claim");
        const struct record *last = &doomed->record[doomed->records - 1];
        if (last->what != CLAIMED)
            continue;
        holders += !holds[last->worker];
        holds[last->worker] = true;
    }
    for (size_t i = 0; i < doomed->count; i++)
        (void)kill(doomed->child[i], SIGKILL);
    return crew_join(doomed) ? crew_count(doomed, CLAIMED) : 0;
}

static void test_kill(void)
{
    struct place place;
    struct crew doomed, heirs;
    struct work fatal = {.lane = "work", .batch = 4, .lease_ms = 1000, .dies = true};
    struct work work = {.lane = "work", .batch = 10, .lease_ms = 1000, .expires = true};
    size_t count, again = 0, uneven = 0;
    place_init(&place, "kill");
    fill(&place, "work", LEFT, 0);
    crew_start(&doomed, &place, DOOMED, work_lane, &fatal);
    size_t held = kill_all(&doomed);
    ok(held >= DOOMED, "%d processes die with %zu leases in hand", DOOMED, held);
    crew_start(&heirs, &place, 2, work_lane, &work);
    ok(crew_join(&heirs), "two others take over");
    is_int(crew_count(&heirs, COMPLETED), LEFT, "the two others complete all the work");
    is_int(count_repeats(&heirs, COMPLETED), 0, "no execution is completed twice");
    struct weft_arena *arena = weft_arena_new();
    struct weft_engine *engine = place_open(&place, NULL, 0);
    struct weft_execution *all = read_lane(engine, "work", arena, &count);
    is_int(count_unlike(all, count, WEFT_STATE_SUCCEEDED, 0), 0, "everything succeeded");
    for (size_t i = 0; i < count; i++) {
        again += all[i].lost > 0;
        uneven += attempts_of(engine, &all[i].id) != (size_t)all[i].epoch;
    }
    ok(count == LEFT && uneven == 0, "every lease of %zu executions has one end", count);
    ok(again >= held, "the leases of the dead processes were lost and given again (%zu)", again);
    weft_engine_close(engine);
    weft_arena_free(arena);
    crew_done(&heirs);
    crew_done(&doomed);
    place_check(&place, "kill");
    place_done(&place);
}

/* Killed in the midst of it, wherever that is, again and again. */
static void test_kill_anywhere(void)
{
    struct place place;
    struct work work = {.lane = "work", .batch = 3, .lease_ms = 1000, .expires = true};
    size_t count, size = 1200, told = 0;
    place_init(&place, "anywhere");
    fill(&place, "work", size, 0);
    struct crew crew[DOOMED];
    for (size_t i = 0; i < DOOMED; i++) {
        crew_start(&crew[i], &place, 2, work_lane, &work);
        ok(crew_hear(&crew[i], 20 + 7 * i), "two are at work");
        for (size_t k = 0; k < crew[i].count; k++)
            (void)kill(crew[i].child[k], SIGKILL);
        ok(crew_join(&crew[i]), "both processes are killed");
        told += crew_count(&crew[i], COMPLETED);
    }
    struct crew heirs;
    crew_start(&heirs, &place, 2, work_lane, &work);
    ok(crew_join(&heirs), "two others take over");
    told += crew_count(&heirs, COMPLETED);
    struct weft_arena *arena = weft_arena_new();
    struct weft_engine *engine = place_open(&place, NULL, 0);
    struct weft_execution *all = read_lane(engine, "work", arena, &count);
    is_int(count, (int64_t)size, "the store has as many executions as before");
    is_int(count_unlike(all, count, WEFT_STATE_SUCCEEDED, 0), 0, "everything succeeded");
    ok(told <= size, "at most one completion of each was reported (%zu of %zu)", told, size);
    /* Two of them can each have completed a batch and died before telling. */
    ok(told + (size_t)DOOMED * 2 * 3 >= size,
       "no more reports are missing than the killed processes could not send");
    weft_engine_close(engine);
    weft_arena_free(arena);
    for (size_t i = 0; i < DOOMED; i++)
        crew_done(&crew[i]);
    crew_done(&heirs);
    place_check(&place, "killed anywhere");
    place_done(&place);
}

/* ---- Opening --------------------------------------------------------------------------------- */

struct start {
    int gate[2]; /* closed for writing when all may go */
};

static void open_store(const struct place *place, int number, int out, void *context)
{
    const struct start *start = context;
    struct weft_submitted answer = {0};
    struct weft_err err = {0};
    char byte;
    (void)close(start->gate[1]);
    (void)!read(start->gate[0], &byte, 1); /* until all processes are there */
    struct weft_engine *engine = place_open(place, NULL, 0);
    const struct weft_spec spec = {.kind = "job", .key = "first"};
    if (engine_submit(engine, "default", &spec, 1, &answer, &err) || answer.err.rc)
        _exit(2);
    tell(out, &(struct record){
                  .what = OPENED, .id = answer.id, .epoch = answer.duplicate, .worker = number});
    weft_engine_close(engine);
}

static void test_open(void)
{
    struct place place;
    struct crew crew;
    struct start start;
    size_t first = 0, other = 0;
    place_init(&place, "open");
    if (pipe(start.gate))
        bail_out("no pipe");
    crew_start(&crew, &place, OPENERS, open_store, &start);
    (void)close(start.gate[1]);
    (void)close(start.gate[0]);
    ok(crew_join(&crew), "%d processes open a fresh store at once", OPENERS);
    is_int(crew_count(&crew, OPENED), OPENERS, "all processes can use the store");
    for (size_t i = 0; i < crew.records; i++) {
        first += crew.record[i].epoch == 0;
        other += weft_id_cmp(&crew.record[i].id, &crew.record[0].id) != 0;
    }
    ok(first == 1 && other == 0, "exactly one process was the first with the shared key");
    crew_done(&crew);
    place_check(&place, "open");
    place_done(&place);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        {"open", test_open},   {"kill", test_kill},   {"kill_anywhere", test_kill_anywhere},
        {"limit", test_limit}, {"drain", test_drain},
    };
    tests_begin("process");
    for (size_t i = 0; i < WEFT_LEN(tests); i++) {
        bool wanted = argc < 2;
        for (int k = 1; k < argc; k++)
            wanted |= strcmp(argv[k], tests[i].name) == 0;
        if (wanted)
            tests[i].run();
    }
    return tests_end();
}
