/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The cases that are made of lifecycles. A cell is one batch size on so many connections; its runs
 * go floor, product, floor, product..., so that noise hits both.
 */

#include "base/base.h"
#include "bench/bench.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static const char *const stores[] = {"pg", "sqlite"};
static const uint32_t batches[] = {1, 10, 100, 500};
static const uint32_t connections[] = {1, 2, 4};
static const uint32_t large_batches[] = {100, 500};

/* `queues` stands for its three rows, `http` for all that begins so. */
static bool is_case(const char *wanted, const char *name)
{
    bool queues =
        strcmp(name, "kinds") == 0 || strcmp(name, "tenants") == 0 || strcmp(name, "lanes") == 0;
    return strcmp(wanted, name) == 0 || (queues && strcmp(wanted, "queues") == 0) ||
           (strcmp(wanted, "http") == 0 && strncmp(name, "http", 4) == 0);
}

bool bench_wants(const struct bench *bench, const char *name, const char *store,
                 const struct bench_load *load)
{
    const struct bench_options *options = &bench->options;
    if (strcmp(store, "pg") == 0 && !bench->server)
        return false;
    return (!options->only_case || is_case(options->only_case, name)) &&
           (!options->only_store || strcmp(options->only_store, store) == 0) &&
           (!options->only_batch || options->only_batch == load->batch) &&
           (!options->only_connections || options->only_connections == load->connections);
}

void bench_remove_file(const char *path)
{
    static const char *const tail[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < WEFT_LEN(tail); i++) {
        char name[272];
        (void)snprintf(name, sizeof(name), "%s%s", path, tail[i]);
        (void)unlink(name); /* it may not be there */
    }
}

bool bench_empty_store(struct bench *bench, const char *name, struct bench_store *ret_store)
{
    if (strcmp(name, "sqlite") == 0) {
        bench_remove_file(bench->sqlite_path);
        *ret_store = (struct bench_store){.name = name, .url = bench->sqlite_url};
        return true;
    }
    *ret_store = (struct bench_store){.name = name,
                                      .url = bench->product_url,
                                      .floor = &bench->floor,
                                      .meter = bench_server_meter(bench->server)};
    return bench_server_clear(bench->server, "bench_product") &&
           bench_server_clear(bench->server, bench->floor.schema);
}

bool bench_on_stores(struct bench *bench, const char *name, const struct bench_load *load,
                     bool (*run)(struct bench *bench, const struct bench_store *store))
{
    for (size_t i = 0; i < WEFT_LEN(stores); i++) {
        struct bench_store store;
        if (bench_wants(bench, name, stores[i], load) &&
            (!bench_empty_store(bench, stores[i], &store) || !run(bench, &store)))
            return false;
    }
    return true;
}

/* One batch size on so many connections. */
struct cell {
    const char *name;
    struct bench_store store;
    struct bench_load load;
    struct bench_runs floors, runs;
};

static void show_progress(const struct bench *bench, const struct cell *cell, uint32_t run,
                          const char *what)
{
    bench_progress("%s: %s, batch %u, %u connections, run %u of %u%s", cell->name, cell->store.name,
                   cell->load.batch, cell->load.connections, run + 1, bench->options.repeats, what);
}

static bool run_floor(const struct bench *bench, struct cell *cell)
{
    if (!cell->store.floor)
        return true;
    show_progress(bench, cell, cell->floors.count, ", floor");
    return bench_floor_run(cell->store.floor, &cell->load, cell->store.meter,
                           &cell->floors.run[cell->floors.count++]);
}

static bool run_product(const struct bench *bench, struct cell *cell)
{
    show_progress(bench, cell, cell->runs.count, "");
    return bench_product_run(cell->store.url, &cell->load, cell->store.meter,
                             &cell->runs.run[cell->runs.count++]);
}

static void add_row(struct bench *bench, const struct cell *cell)
{
    const struct bench_row row = {.name = cell->name,
                                  .store = cell->store.name,
                                  .batch = cell->load.batch,
                                  .connections = cell->load.connections};
    bench_report_add(bench->report, row, &cell->runs, &cell->floors);
}

static bool run_cell(struct bench *bench, struct cell *cell)
{
    for (uint32_t i = 0; i < bench->options.repeats; i++)
        if (!run_floor(bench, cell) || !run_product(bench, cell))
            return false;
    add_row(bench, cell);
    return true;
}

/* A cell that begins with empty tables. */
static bool run_from_empty(struct bench *bench, const char *name, const char *store,
                           const struct bench_load *load)
{
    struct cell cell = {.name = name, .load = *load};
    return !bench_wants(bench, name, store, load) ||
           (bench_empty_store(bench, store, &cell.store) && run_cell(bench, &cell));
}

bool bench_case_lifecycle(struct bench *bench)
{
    for (size_t s = 0; s < WEFT_LEN(stores); s++)
        for (size_t b = 0; b < WEFT_LEN(batches); b++)
            for (size_t c = 0; c < WEFT_LEN(connections); c++) {
                const struct bench_load load = {.batch = batches[b],
                                                .connections = connections[c],
                                                .seconds = bench->options.seconds};
                if (!run_from_empty(bench, "lifecycle", stores[s], &load))
                    return false;
            }
    return true;
}

/* The floor of these is the floor of one queue: the rows are the same, the choice costs extra. */
bool bench_case_queues(struct bench *bench)
{
    static const struct {
        const char *name;
        enum weft_bench_spread spread;
    } shape[] = {
        {"kinds", WEFT_BENCH_KINDS}, {"tenants", WEFT_BENCH_TENANTS}, {"lanes", WEFT_BENCH_LANES}};
    for (size_t s = 0; s < WEFT_LEN(shape); s++)
        for (size_t b = 0; b < WEFT_LEN(large_batches); b++) {
            struct bench_load load = {.batch = large_batches[b],
                                      .connections = 2,
                                      .seconds = bench->options.seconds,
                                      .spread = shape[s].spread};
            if (!run_from_empty(bench, shape[s].name, "pg", &load))
                return false;
            load.connections = 1;
            if (!run_from_empty(bench, shape[s].name, "sqlite", &load))
                return false;
        }
    return true;
}

bool bench_case_snapshot(struct bench *bench)
{
    for (size_t b = 0; b < WEFT_LEN(large_batches); b++) {
        const struct bench_load load = {
            .batch = large_batches[b], .connections = 2, .seconds = bench->options.seconds};
        if (!bench_wants(bench, "snapshot", "pg", &load))
            continue;
        struct cell cell = {.name = "snapshot", .load = load};
        bool done = bench_empty_store(bench, "pg", &cell.store) &&
                    bench_server_hold_snapshot(bench->server, true) && run_cell(bench, &cell);
        if (!bench_server_hold_snapshot(bench->server, false) || !done)
            return false;
    }
    return true;
}

/* ---- With a backlog -------------------------------------------------------------------------- */

static bool fill(struct bench *bench, const struct bench_store *store)
{
    const uint32_t writers = strcmp(store->name, "pg") == 0 ? 2 : 1;
    const struct bench_load load = {.batch = 1000,
                                    .connections = writers,
                                    .turns = bench->options.backlog / 1000 / writers,
                                    .submit_only = true};
    struct bench_run ignored;
    bench_progress("backlog: %s, filling in %zu rows", store->name, bench->options.backlog);
    return bench_product_run(store->url, &load, NULL, &ignored) &&
           (!store->floor || bench_floor_run(store->floor, &load, NULL, &ignored));
}

/* Fresh and with the backlog, in turns. */
static bool run_backlog(struct bench *bench, const struct bench_store *store, const char *fresh_url,
                        const struct bench_load *load)
{
    struct cell cell = {.name = "backlog", .store = *store, .load = *load};
    struct cell fresh = {.name = "fresh", .store = *store, .load = *load};
    fresh.store.url = fresh_url;
    for (uint32_t i = 0; i < bench->options.repeats; i++)
        if (!run_product(bench, &fresh) || !run_floor(bench, &cell) || !run_product(bench, &cell))
            return false;
    add_row(bench, &fresh);
    add_row(bench, &cell);
    return true;
}

/* Empties both stores and fills in the backlog. */
static bool prepare_backlog(struct bench *bench, const char *name, struct bench_store *ret_store)
{
    bench_remove_file(bench->fresh_path);
    if (!bench_empty_store(bench, name, ret_store))
        return false;
    if (!ret_store->floor)
        return fill(bench, ret_store);
    return bench_server_clear(bench->server, "bench_fresh") && fill(bench, ret_store) &&
           bench_server_settle(bench->server, "bench_product") &&
           bench_server_settle(bench->server, bench->floor.schema);
}

bool bench_case_backlog(struct bench *bench)
{
    for (size_t s = 0; s < WEFT_LEN(stores); s++) {
        bool pg = strcmp(stores[s], "pg") == 0;
        struct bench_store store = {.name = NULL}; /* filled in once, and only if it is wanted */
        for (size_t b = 0; b < WEFT_LEN(large_batches); b++) {
            const struct bench_load load = {.batch = large_batches[b],
                                            .connections = pg ? 2 : 1,
                                            .seconds = bench->options.seconds};
            if (bench_wants(bench, "backlog", stores[s], &load) &&
                ((!store.name && !prepare_backlog(bench, stores[s], &store)) ||
                 !run_backlog(bench, &store, pg ? bench->fresh_url : bench->fresh_sqlite, &load)))
                return false;
        }
    }
    return true;
}
