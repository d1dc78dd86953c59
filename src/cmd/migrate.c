/* SPDX-License-Identifier: Apache-2.0 */

/* weft migrate: brings the schema of a store up to date, or tells whether it is. */

#include "cmd/json.h"
#include "cmd/settings.h"

#include "base/arena.h"
#include "base/err.h"
#include "store/migrate.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

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

/* Opening a file that is not there would make it, and --check makes nothing. */
static bool is_missing_file(const char *url, struct weft_arena *arena)
{
    static const char scheme[] = "sqlite:";
    if (strncmp(url, scheme, strlen(scheme)) != 0)
        return false;
    const char *path = url + strlen(scheme);
    path = weft_arena_printf(arena, "%.*s", (int)strcspn(path, "?"), path);
    return access(path, F_OK) != 0 && errno == ENOENT;
}

static enum weft_exit migrate(const struct weft_cli *cli, const char *url, struct weft_arena *arena)
{
    struct weft_err err = {0};
    const struct weft_driver *driver;
    struct weft_conn *conn = NULL;
    size_t before = 0, after = 0;
    const struct weft_migration_set set = {.migration = weft_migrations,
                                           .count = weft_migration_count,
                                           .check_only = weft_cli_has(cli, "check")};
    enum weft_rc rc = weft_driver_for(url, &driver, &err);
    if (!rc && set.check_only && is_missing_file(url, arena))
        rc = weft_fail(&err, WEFT_SCHEMA, "%s does not exist yet", url);
    if (!rc)
        rc = driver->open(url, &conn, &err);
    if (!rc)
        rc = weft_migrations_applied(conn, arena, &before, &err);
    if (!rc)
        rc = weft_migrate(conn, &set, arena, &err);
    if (!rc)
        rc = weft_migrations_applied(conn, arena, &after, &err);
    if (rc == WEFT_SCHEMA && set.check_only && before < weft_migration_count)
        err.hint = "`weft migrate` without --check applies what is missing";
    enum weft_exit code = rc ? weft_cli_fail(&err) : WEFT_EXIT_OK;
    if (!rc)
        put_done(cli, before, after);
    weft_conn_close(conn);
    return code;
}

static enum weft_exit run_migrate(struct weft_cli *cli)
{
    struct weft_arena *arena = weft_arena_new();
    const char *url = weft_settings_store(cli, arena);
    enum weft_exit code = url ? migrate(cli, url, arena) : WEFT_EXIT_USAGE;
    weft_arena_free(arena);
    return code;
}

const struct weft_command weft_command_migrate = {
    .name = "migrate",
    .args = "",
    .no_store = true,
    .summary = "bring the schema of a store up to date",
    .about =
        "Works on the store itself: the one of --store, or the one that `weft serve` would "
        "open here. `weft serve` migrates by itself unless it is told not to; this is for "
        "those who want it to be a step of its own. Each migration is one transaction; any "
        "number of processes may try at once. With --check nothing is changed, and the exit "
        "code is 1 when something is missing.",
    .example = "weft migrate --store postgres://weft@db/weft\nweft migrate --check",
    .option =
        (const struct weft_option[]){
            {.name = "store", .value = "URL", .about = "the store: sqlite:PATH or postgres://..."},
            {.name = "check", .about = "change nothing, tell whether something is missing"},
            {.name = NULL},
        },
    .run = run_migrate,
};
