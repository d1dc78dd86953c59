/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whether this binary may still use the store. A newer binary that migrates the schema says in it
 * how old a binary may be. At the open weft_migrate() checks that; while the engine runs, another
 * process may migrate at any time. A server reads the schema with each poll. An engine without a
 * poll (a worker with its own store, a library) reads it before a transaction when the last look is
 * LOOK_US old.
 *
 * An engine that is too old begins no transaction any more: an operation, a scanner or a claim that
 * goes on would do what the migration forbids. It stays so, because a binary does not become newer.
 * A transaction that began before that look is carried out.
 */

#include "engine/tx/schema_version.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/engine_state.h"
#include "store/migrate.h"

#define LOOK_US (10 * WEFT_SECOND)

void weft_version_seen(struct weft_engine *engine, int64_t version, int64_t oldest_binary)
{
    atomic_store(&engine->schema_seen_us, weft_boot_us());
    if (oldest_binary <= (int64_t)weft_migration_count)
        return;
    if (atomic_exchange(&engine->oldest_binary, (int_fast64_t)oldest_binary) == 0)
        weft_error(
            "this binary is too old for the store, which was migrated: it stops serving; "
            "install a newer weft",
            F_I64("known", (int64_t)weft_migration_count), F_I64("applied", version),
            F_I64("oldest", oldest_binary));
}

enum weft_rc weft_engine_version(struct weft_engine *engine, struct weft_err *err)
{
    int_fast64_t oldest_binary = atomic_load(&engine->oldest_binary);
    return oldest_binary == 0 ? WEFT_OK : weft_too_old(weft_migration_count, oldest_binary, err);
}

enum weft_rc weft_version_look(struct weft_engine *engine, struct weft_conn *conn,
                               struct weft_err *err)
{
    if (weft_boot_us() - (weft_usec)atomic_load(&engine->schema_seen_us) < LOOK_US)
        return WEFT_OK;
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_schema_read(&call, arena);
    enum weft_rc rc = conn->driver->begin(conn, WEFT_TX_BARE, err);
    if (!rc)
        rc = conn->driver->run(conn, &call, 1, arena, &rows, err);
    if (!rc)
        rc = conn->driver->commit(conn, err);
    const struct weft_schema_read_out *row = weft_out_schema_read(&rows);
    if (rc)
        conn->driver->rollback(conn);
    else if (rows.count > 0)
        weft_version_seen(engine, row->version, row->oldest_binary);
    weft_arena_free(arena);
    return rc ? rc : weft_engine_version(engine, err);
}
