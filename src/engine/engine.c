/* SPDX-License-Identifier: Apache-2.0 */

/* Opening and closing an engine: the driver, the schema, the clock, the pool. */

#include "engine/engine.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/engine_state.h"
#include "store/migrate.h"

#include <stdlib.h>
#include <string.h>

static enum weft_rc no_store(const char *url, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    enum weft_rc rc = weft_fail_field(err, WEFT_NOT_FOUND, "url", "there is no store at %s",
                                      weft_url_masked(url, arena));
    weft_arena_free(arena);
    return weft_hint(
        err, rc,
        "check the path or URL; `weft serve`, `submit`, `work` and `migrate` create a store");
}

/* Once at first, then each time that the wait has doubled. */
static void log_wait(void *context, const struct weft_migration_wait *wait)
{
    weft_usec *next_us = context;
    if (wait->waited_us < *next_us)
        return;
    *next_us = wait->waited_us > WEFT_SECOND ? wait->waited_us * 2 : WEFT_SECOND;
    weft_warn("a migration waits for an open transaction; it tries again and holds up nothing",
              F_I64("migration", wait->migration->number), F_I64("pid", wait->pid),
              F_STR("application", wait->application), F_I64("open_ms", wait->open_us / WEFT_MS),
              F_I64("waited_ms", wait->waited_us / WEFT_MS));
}

/*
 * Brings the schema up to date on a connection of its own, before anything is prepared. Where the
 * store must exist, a file is looked for before it is opened: opening would create it.
 */
static enum weft_rc bring_schema(const struct weft_engine_config *config,
                                 const struct weft_driver *driver, struct weft_err *err)
{
    struct weft_conn *conn;
    weft_usec log_us = 0;
    if (config->must_exist && driver->absent && driver->absent(config->url))
        return no_store(config->url, err);
    enum weft_rc rc = driver->open(config->url, &conn, err);
    if (rc)
        return rc;
    struct weft_arena *arena = weft_arena_new();
    const struct weft_migration_set known = {.migration = weft_migrations,
                                             .count = weft_migration_count,
                                             .check_only = config->no_migrate,
                                             .must_exist = config->must_exist,
                                             .wait_us = config->migrate_wait_s * WEFT_SECOND,
                                             .waits = log_wait,
                                             .context = &log_us};
    rc = weft_migrate(conn, &known, arena, err);
    weft_arena_free(arena);
    weft_conn_close(conn);
    return rc == WEFT_NOT_FOUND ? no_store(config->url, err) : rc;
}

/* One empty transaction: opens a connection, prepares every statement, measures the clock. */
static enum weft_rc look(struct weft_tx *tx, void *context, struct weft_err *err)
{
    (void)tx;
    (void)context;
    (void)err;
    return WEFT_OK;
}

enum weft_rc weft_engine_open(const struct weft_engine_config *config,
                              struct weft_engine **ret_engine, struct weft_err *err)
{
    const struct weft_driver *driver = config->driver;
    enum weft_rc rc = driver ? WEFT_OK : weft_driver_for(config->url, &driver, err);
    if (!rc)
        rc = bring_schema(config, driver, err);
    if (rc)
        return rc;

    struct weft_engine *engine = weft_alloc(1, sizeof(*engine));
    engine->driver = driver;
    engine->url = weft_strdup(config->url);
    engine->clock = weft_clock_new();
    weft_names_init(&engine->names);
    weft_keys_init(&engine->keys);
    weft_ready_init(&engine->ready);
    weft_census_init(&engine->census, config);
    weft_floors_init(&engine->floors, strcmp(engine->driver->name, weft_driver_pg.name) == 0);
    weft_tally_init(&engine->tally);
    weft_unused_init(&engine->unused, config->unused_after_us);
    weft_budget_rules_init(&engine->budgets);
    weft_endpoints_init(&engine->endpoints);
    pthread_mutex_init(&engine->ord_lock, NULL);
    pthread_mutex_init(&engine->sample_lock, NULL);
    weft_pool_init(engine, config->connections, config->in_turn);
    atomic_init(&engine->statements_fit, config->statements_fit);
    atomic_init(&engine->schema_seen_us, weft_boot_us());

    rc = weft_keys_load(&engine->keys, config->signing_key_file, err);
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    if (!rc)
        rc = weft_tx_do(&tx, WEFT_TX_READ, look, NULL, err);
    weft_arena_free(tx.arena);
    if (rc) {
        weft_engine_close(engine);
        return rc;
    }
    *ret_engine = engine;
    return WEFT_OK;
}

void weft_engine_close(struct weft_engine *engine)
{
    if (!engine)
        return;
    weft_tally_flush(engine);
    weft_pool_done(engine);
    weft_ready_done(&engine->ready);
    weft_census_done(&engine->census);
    weft_floors_done(&engine->floors);
    weft_tally_done(&engine->tally);
    weft_unused_done(&engine->unused);
    weft_budget_rules_done(&engine->budgets);
    weft_endpoints_done(&engine->endpoints);
    weft_keys_done(&engine->keys);
    weft_names_done(&engine->names);
    pthread_mutex_destroy(&engine->ord_lock);
    pthread_mutex_destroy(&engine->sample_lock);
    weft_clock_free(engine->clock);
    free(engine->url);
    free(engine);
}

struct weft_clock *weft_engine_clock(struct weft_engine *engine)
{
    return engine->clock;
}

void weft_engine_on_side_work(struct weft_engine *engine, weft_side_work_fn *fn, void *context)
{
    engine->on_side_work = fn;
    engine->side_work_context = context;
}

size_t weft_engine_writers(const struct weft_engine *engine)
{
    return engine->driver->writers_max;
}
