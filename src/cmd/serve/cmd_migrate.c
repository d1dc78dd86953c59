/* SPDX-License-Identifier: Apache-2.0 */

/* weft migrate: brings the schema of a store up to date, or checks that it is. */

#include "base/str.h"
#include "cmd/cli/output.h"
#include "cmd/serve/settings.h"
#include "store/migrate.h"
#include "store/store.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_MS = 600000, WAIT_MOST_MS = 86400000 };

static void put_done(const struct weft_cli *cli, size_t before, size_t after)
{
    if (weft_cli_json(cli)) {
        printf("{\"before\":%zu,\"after\":%zu,\"known\":%zu}\n", before, after,
               weft_migration_count);
        return;
    }
    for (size_t i = before; i < after && i < weft_migration_count; i++)
        printf("applied %d %s\n", weft_migrations[i].number, weft_migrations[i].name);
    if (after > weft_migration_count)
        printf("the store has %zu migrations, %zu more than this binary knows; it may use it\n",
               after, after - weft_migration_count);
    else if (before == after)
        printf("the store is up to date: %zu migration%s\n", after, after == 1 ? "" : "s");
}

/* Opening a missing file would create it, and --check creates nothing. */
static bool is_missing_file(const char *url, struct weft_arena *arena)
{
    static const char scheme[] = "sqlite:";
    if (strncmp(url, scheme, strlen(scheme)) != 0)
        return false;
    const char *path = url + strlen(scheme);
    path = weft_arena_printf(arena, "%.*s", (int)strcspn(path, "?"), path);
    return access(path, F_OK) != 0 && errno == ENOENT;
}

/* Lets a role submit by SQL. */
static enum weft_rc grant_submit(struct weft_conn *conn, const char *role, struct weft_arena *arena,
                                 struct weft_err *err)
{
    const struct weft_driver *driver = conn->driver;
    struct weft_call call;
    struct weft_rows rows;
    if (driver != &weft_driver_pg)
        return weft_invalid(err, "grant-submit",
                            "--grant-submit is for PostgreSQL: SQLite has no roles");
    weft_call_grant_submit(&call, arena)->role = role;
    enum weft_rc rc = driver->begin(conn, WEFT_TX_WRITE, err);
    if (rc)
        return rc;
    rc = driver->run(conn, &call, 1, arena, &rows, err);
    if (!rc)
        return driver->commit(conn, err);
    driver->rollback(conn);
    if (strcmp(err->sqlstate, "42704") == 0) {
        rc = weft_fail(err, WEFT_NOT_FOUND, "the database has no role \"%.100s\"", role);
        return weft_hint(err, rc, "create it first: CREATE ROLE name LOGIN");
    }
    return rc;
}

/* Prints every 10 s what a migration waits for. */
static void put_wait(void *context, const struct weft_migration_wait *wait)
{
    weft_usec *next_us = context;
    if (wait->waited_us < *next_us)
        return;
    *next_us = wait->waited_us + 10 * WEFT_SECOND;
    weft_cli_say(
        "weft: migration %d (%s) waits for a transaction of process %d (%s), open for "
        "%d s; it tries again and holds up nothing",
        wait->migration->number, wait->migration->name, (int)wait->pid, wait->application,
        (int)(wait->open_us / WEFT_SECOND));
}

static enum weft_exit migrate(const struct weft_cli *cli, const char *url, int64_t wait_ms)
{
    struct weft_err err = {0};
    const struct weft_driver *driver;
    struct weft_conn *conn = NULL;
    size_t before = 0, after = 0;
    weft_usec put_us = 0;
    const struct weft_migration_set set = {.migration = weft_migrations,
                                           .count = weft_migration_count,
                                           .check_only = weft_cli_has(cli, "check"),
                                           .wait_us = wait_ms * WEFT_MS,
                                           .waits = put_wait,
                                           .context = &put_us};
    const char *role = weft_cli_get(cli, "grant-submit");
    struct weft_arena *arena = cli->arena;
    enum weft_rc rc = weft_driver_for(url, &driver, &err);
    if (!rc && set.check_only && is_missing_file(url, arena))
        rc = weft_fail(&err, WEFT_SCHEMA, "%s does not exist yet", weft_url_masked(url, arena));
    if (!rc)
        rc = driver->open(url, &conn, &err);
    if (!rc)
        rc = weft_migrations_applied(conn, arena, &before, &err);
    if (!rc)
        rc = weft_migrate(conn, &set, arena, &err);
    if (!rc)
        rc = weft_migrations_applied(conn, arena, &after, &err);
    if (!rc && role)
        rc = grant_submit(conn, role, arena, &err);
    if (rc == WEFT_SCHEMA && set.check_only && before < weft_migration_count)
        err.hint = "`weft migrate` without --check applies what is missing";
    enum weft_exit code = rc ? weft_cli_fail(&err) : WEFT_EXIT_OK;
    if (!rc)
        put_done(cli, before, after);
    if (!rc && role && !weft_cli_json(cli))
        printf("role %s may submit by SQL\n", role);
    weft_conn_close(conn);
    return code;
}

static enum weft_exit run_migrate(struct weft_cli *cli)
{
    struct weft_serve_settings settings;
    if (weft_cli_has(cli, "check") && weft_cli_has(cli, "grant-submit"))
        weft_cli_usage(cli, "--check changes nothing, --grant-submit does: give one of them");
    int64_t wait_ms = weft_cli_ms(cli, "migrate-wait", 1000, WAIT_MOST_MS, WAIT_MS);
    const char *store = weft_cli_get(cli, "store");
    if (store)
        return migrate(cli, store, wait_ms);
    bool good = weft_settings_read(cli, cli->arena, NULL, &settings); /* as `weft serve` would */
    return good ? migrate(cli, settings.server.store, wait_ms) : WEFT_EXIT_USAGE;
}

const struct weft_command weft_command_migrate = {
    .name = "migrate",
    .args = "",
    .no_store = true,
    .summary = "bring the schema of a store up to date",
    .about =
        "Works on the store itself: the one of --store, or the one that `weft serve` would open "
        "here. `weft serve` migrates by itself unless a setting forbids it; this makes it a "
        "step of its own. Each migration is one transaction; any number of "
        "processes may try at once, while servers work: a migration that meets an open transaction "
        "gives way at once and tries again. With --check nothing is changed, and the exit code is "
        "1 when something is missing.\n\n"
        "With --grant-submit the role of an application, which must exist, may call "
        "weft.weft_submit() in its own transactions from then on, in every namespace. It gets no "
        "right on any table of weft.",
    .example =
        "weft migrate --store postgres://weft@db/weft\nweft migrate --check\n"
        "weft migrate --store postgres://weft@db/weft --grant-submit shop",
    .option =
        (const struct weft_option[]){
            {"store", 0, "URL", "the store: sqlite:PATH or postgres://...", NULL},
            {"check", 0, NULL, "change nothing, tell whether something is missing", NULL},
            {"migrate-wait", 0, "TIME",
             "how long to try while open transactions of others are in the way; 10m", NULL},
            {"grant-submit", 0, "ROLE", "PostgreSQL: let this role submit by SQL, and nothing else",
             NULL},
            {.name = NULL},
        },
    .run = run_migrate,
};
