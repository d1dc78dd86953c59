/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The cases that are made of lifecycles. A cell is one batch size on so many connections; its runs
 * go floor, product, floor, product..., so that noise hits both.
 */

#include "bench/bench.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static const uint32_t batches[] = {1, 10, 100, 500};
static const uint32_t connections[] = {1, 2, 4};
static const uint32_t large_batches[] = {100, 500};

/* `queues` stands for its three rows. */
static bool is_case(const char *wanted, const char *name)
{
    bool queues =
        strcmp(name, "kinds") == 0 || strcmp(name, "tenants") == 0 || strcmp(name, "lanes") == 0;
    return strcmp(wanted, name) == 0 || (queues && strcmp(wanted, "queues") == 0);
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

/* What a cell runs, and what it is called. */
struct cell {
    const char *name;
    const char *store;
    const char *url;
    const struct bench_floor *floor; /* or NULL */
    const struct bench_meter *meter; /* or NULL */
    struct bench_load load;
    struct bench_runs floors, runs;
};

static bool run_floor(const struct bench *bench, struct cell *cell)
{
    if (!cell->floor)
        return true;
    bench_progress("%s: %s, batch %u, %u connections, run %u of %u, floor", cell->name, cell->store,
                   cell->load.batch, cell->load.connections, cell->floors.count + 1,
                   bench->options.repeats);
    return bench_floor_run(cell->floor, &cell->load, cell->meter,
                           &cell->floors.run[cell->floors.count++]);
}

static bool run_product(const struct bench *bench, struct cell *cell)
{
    bench_progress("%s: %s, batch %u, %u connections, run %u of %u", cell->name, cell->store,
                   cell->load.batch, cell->load.connections, cell->runs.count + 1,
                   bench->options.repeats);
    return bench_product_run(cell->url, &cell->load, cell->meter,
                             &cell->runs.run[cell->runs.count++]);
}

static void add_row(struct bench *bench, const struct cell *cell)
{
    const struct bench_row row = {
        .name = cell->name,
        .store = cell->store,
        .batch = cell->load.batch,
        .connections = cell->load.connections,
        .per_s = bench_middle(&cell->runs),
        .floor = bench_middle(&cell->floors),
        .wal_bytes = bench_middle_wal(&cell->runs),
        .commits = bench_middle_commits(&cell->runs),
    };
    bench_report_add(bench->report, &row);
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
    struct cell cell = {.name = name, .store = store, .load = *load};
    if (!bench_wants(bench, name, store, load))
        return true;
    if (strcmp(store, "sqlite") == 0) {
        bench_remove_file(bench->sqlite_path);
        cell.url = bench->sqlite_url;
        return run_cell(bench, &cell);
    }
    cell.url = bench->product_url;
    cell.floor = &bench->floor;
    cell.meter = bench_server_meter(bench->server);
    return bench_server_clear(bench->server, "bench_product") &&
           bench_server_clear(bench->server, bench->floor.schema) && run_cell(bench, &cell);
}

bool bench_case_lifecycle(struct bench *bench)
{
    static const char *const store[] = {"pg", "sqlite"};
    for (size_t s = 0; s < WEFT_LEN(store); s++)
        for (size_t b = 0; b < WEFT_LEN(batches); b++)
            for (size_t c = 0; c < WEFT_LEN(connections); c++) {
                const struct bench_load load = {.batch = batches[b],
                                                .connections = connections[c],
                                                .seconds = bench->options.seconds};
                if (!run_from_empty(bench, "lifecycle", store[s], &load))
                    return false;
            }
    return true;
}

/* The floor of these is the floor of one queue: the rows are the same, the choice costs extra. */
bool bench_case_queues(struct bench *bench)
{
    static const struct {
        const char *name;
        enum bench_spread spread;
    } shape[] = {{"kinds", BENCH_KINDS}, {"tenants", BENCH_TENANTS}, {"lanes", BENCH_LANES}};
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
        struct cell cell = {.name = "snapshot",
                            .store = "pg",
                            .url = bench->product_url,
                            .floor = &bench->floor,
                            .meter = bench_server_meter(bench->server),
                            .load = load};
        bool done = bench_server_clear(bench->server, "bench_product") &&
                    bench_server_clear(bench->server, bench->floor.schema) &&
                    bench_server_hold_snapshot(bench->server, true) && run_cell(bench, &cell);
        if (!bench_server_hold_snapshot(bench->server, false) || !done)
            return false;
    }
    return true;
}

/* ---- With a backlog -------------------------------------------------------------------------- */

/* The fill is a load that submits alone; its rows are those of a run. */
static bool fill(struct bench *bench, const struct cell *cell)
{
    const uint32_t writers = strcmp(cell->store, "pg") == 0 ? 2 : 1;
    const struct bench_load load = {.batch = 1000,
                                    .connections = writers,
                                    .turns = bench->options.backlog / 1000 / writers,
                                    .submit_only = true};
    struct bench_run ignored;
    bench_progress("backlog: %s, filling in %zu rows", cell->store, bench->options.backlog);
    if (!bench_product_run(cell->url, &load, NULL, &ignored))
        return false;
    return !cell->floor || bench_floor_run(cell->floor, &load, NULL, &ignored);
}

/* A backlog takes a while to write: not for nothing. */
static bool wants_backlog(const struct bench *bench, const struct cell *cell)
{
    bool wanted = false;
    for (size_t b = 0; b < WEFT_LEN(large_batches); b++) {
        struct bench_load load = cell->load;
        load.batch = large_batches[b];
        wanted |= bench_wants(bench, "backlog", cell->store, &load);
    }
    return wanted;
}

/* Fresh and with the backlog behind, in turns. */
static bool run_backlog(struct bench *bench, const struct cell *behind, const char *fresh_url)
{
    for (size_t b = 0; b < WEFT_LEN(large_batches); b++) {
        struct cell cell = *behind;
        cell.load.batch = large_batches[b];
        if (!bench_wants(bench, "backlog", cell.store, &cell.load))
            continue;
        struct cell fresh = cell;
        fresh.name = "fresh";
        fresh.url = fresh_url;
        for (uint32_t i = 0; i < bench->options.repeats; i++)
            if (!run_product(bench, &fresh) || !run_floor(bench, &cell) ||
                !run_product(bench, &cell))
                return false;
        add_row(bench, &fresh);
        add_row(bench, &cell);
    }
    return true;
}

bool bench_case_backlog(struct bench *bench)
{
    struct cell pg = {.name = "backlog",
                      .store = "pg",
                      .url = bench->product_url,
                      .floor = &bench->floor,
                      .load = {.connections = 2, .seconds = bench->options.seconds}};
    struct cell sqlite = {.name = "backlog",
                          .store = "sqlite",
                          .url = bench->sqlite_url,
                          .load = {.connections = 1, .seconds = bench->options.seconds}};
    if (wants_backlog(bench, &pg)) {
        pg.meter = bench_server_meter(bench->server);
        if (!bench_server_clear(bench->server, "bench_product") ||
            !bench_server_clear(bench->server, bench->floor.schema) ||
            !bench_server_clear(bench->server, "bench_fresh") || !fill(bench, &pg) ||
            !bench_server_settle(bench->server, "bench_product") ||
            !bench_server_settle(bench->server, bench->floor.schema) ||
            !run_backlog(bench, &pg, bench->fresh_url))
            return false;
    }
    if (!wants_backlog(bench, &sqlite))
        return true;
    bench_remove_file(bench->sqlite_path);
    bench_remove_file(bench->fresh_path);
    return fill(bench, &sqlite) && run_backlog(bench, &sqlite, bench->fresh_sqlite);
}
