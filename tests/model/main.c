/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The runner: model [SEED [STEPS]]. Without a seed some fixed and some fresh ones are run, and with
 * WEFT_SOAK=1 fresh ones for ten minutes. Every seed is printed before it is used, and makes the
 * same operations again whenever it is given. Without WEFT_TEST_PG there is only one store.
 */

#include "model.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/map.h"
#include "engine/admin/doctor.h"
#include "engine/engine.h"
#include "store/store.h"

#include <stdlib.h>
#include <unistd.h>

enum { STEPS = 400, FIXED_SEEDS = 3, FRESH_SEEDS = 2, ALL_EVERY = 100 };
#define START_US ((weft_usec)1700000000 * WEFT_SECOND)
#define SOAK_US  (600 * WEFT_SECOND)

static const struct {
    void (*run)(struct world *w);
    unsigned share;
} operations[] = {
    {op_submit, 20}, {op_claim, 20},   {op_renew, 9},  {op_complete, 9},
    {op_fail, 9},    {op_put_back, 7}, {op_steer, 12}, {op_sweep, 2},
    {op_list, 4},    {op_lane, 3},     {op_pass, 14},  {op_clock, 14},
};

static struct weft_engine *open_engine(const char *url)
{
    struct weft_engine *engine = NULL;
    struct weft_err err;
    const struct weft_engine_config config = {.url = url};
    if (weft_engine_open(&config, &engine, &err)) {
        printf("Bail out! cannot open %s: %s\n", url, err.text);
        exit(1); /* NOLINT(concurrency-mt-unsafe): one thread, here and below */
    }
    weft_clock_set(weft_engine_clock(engine), START_US);
    return engine;
}

static void open_stores(struct world *w)
{
    static int number;
    const char *pg = getenv("WEFT_TEST_PG"); /* NOLINT(concurrency-mt-unsafe) */
    const char *folder = getenv("TMPDIR");   /* NOLINT(concurrency-mt-unsafe) */
    number++;
    struct store *lite = &w->store[w->stores++];
    lite->name = "sqlite";
    (void)snprintf(lite->url, sizeof(lite->url), "sqlite:%s/model-%d-%d.db?synchronous=normal",
                   folder ? folder : "/tmp", (int)getpid(), number);
    if (pg && *pg) {
        struct store *big = &w->store[w->stores++];
        big->name = "pg";
        (void)snprintf(big->url, sizeof(big->url), "%s%cweft_schema=model_%d_%d", pg,
                       strchr(pg, '?') ? '&' : '?', (int)getpid(), number);
    }
    for (size_t s = 0; s < w->stores; s++) {
        w->store[s].engine = open_engine(w->store[s].url);
        w->store[s].reader = open_engine(w->store[s].url);
    }
}

static void drop_schema(const char *url)
{
    struct weft_conn *conn = NULL;
    struct weft_err err;
    if (weft_driver_pg.open(url, &conn, &err) == WEFT_OK &&
        weft_driver_pg.begin(conn, WEFT_TX_WRITE, &err) == WEFT_OK &&
        weft_driver_pg.script(conn, "DROP SCHEMA IF EXISTS weft CASCADE", &err) == WEFT_OK)
        (void)!weft_driver_pg.commit(conn, &err);
    weft_conn_close(conn);
}

static void remove_file(const char *url)
{
    static const char *const suffix[] = {"", "-wal", "-shm"};
    const char *path = url + strlen("sqlite:");
    for (size_t i = 0; i < WEFT_LEN(suffix); i++) {
        char name[600];
        (void)snprintf(name, sizeof(name), "%.*s%s", (int)strcspn(path, "?"), path, suffix[i]);
        (void)unlink(name);
    }
}

static void close_stores(struct world *w)
{
    for (size_t s = 0; s < w->stores; s++) {
        struct weft_err err = {0};
        enum weft_rc rc = weft_engine_check(w->store[s].reader, &err);
        ok(rc == WEFT_OK, "seed %" PRIu64 ": the invariants of %s hold%s%s", w->seed,
           w->store[s].name, rc ? ": " : "", rc ? err.text : "");
        weft_engine_close(w->store[s].engine);
        weft_engine_close(w->store[s].reader);
        weft_map_done(&w->store[s].by_id);
        if (strcmp(w->store[s].name, "pg") == 0)
            drop_schema(w->store[s].url);
        else
            remove_file(w->store[s].url);
    }
}

static void random_step(struct world *w)
{
    operations[dice_share(&w->random, &operations[0].share, sizeof(operations[0]),
                          WEFT_LEN(operations))]
        .run(w);
}

static void print_diary(const struct world *w, size_t steps)
{
    printf("# the last operations, by step:\n");
    diary_print(&w->diary, LOG_LINES);
    printf("# to see it again: model %" PRIu64 " %zu\n", w->seed, steps);
}

static void run_seed(uint64_t seed, size_t steps)
{
    struct world *w = calloc(1, sizeof(*w));
    if (!w)
        weft_oom(sizeof(*w));
    printf("# seed %" PRIu64 "\n", seed);
    (void)fflush(stdout);
    *w =
        (struct world){.random = seed, .seed = seed, .now_us = START_US, .arena = weft_arena_new()};
    open_stores(w);
    for (w->step = 1; w->step <= steps && !w->failed; w->step++) {
        random_step(w);
        if (!w->failed)
            compare_state(w, w->step % ALL_EVERY == 0 || w->step == steps);
    }
    if (w->failed)
        print_diary(w, steps);
    ok(!w->failed, "seed %" PRIu64 ": %zu steps, %zu executions, the model and %zu stores agree",
       seed, steps, w->subjects, w->stores);
    close_stores(w);
    weft_arena_free(w->arena);
    free(w);
}

static uint64_t fresh_seed(void)
{
    uint32_t seed; /* short enough to be typed */
    weft_random(&seed, sizeof(seed));
    return seed;
}

int main(int argc, char **argv)
{
    const char *soak = getenv("WEFT_SOAK"); /* NOLINT(concurrency-mt-unsafe) */
    if (argc > 1) {
        run_seed(strtoull(argv[1], NULL, 10), argc > 2 ? strtoul(argv[2], NULL, 10) : STEPS);
        return tap_done();
    }
    for (uint64_t seed = 1; seed <= FIXED_SEEDS; seed++)
        run_seed(seed, STEPS);
    weft_usec until_us = weft_boot_us() + (soak && *soak && *soak != '0' ? SOAK_US : 0);
    for (int i = 0; i < FRESH_SEEDS || weft_boot_us() < until_us; i++)
        run_seed(fresh_seed(), STEPS);
    return tap_done();
}
