/* SPDX-License-Identifier: Apache-2.0 */

/* weft replicas: the servers that share a store. */

#include "cmd/cli/cli_json.h"
#include "cmd/cli/line.h"
#include "cmd/cli/table.h"
#include "cmd/cli/text.h"

#include "base/arena.h"
#include "base/base.h"
#include "base/id.h"

#include <inttypes.h>
#include <string.h>

/* The scanners that the replica runs: all, none, or their names; "-" for a dead one. */
static const char *scanners_of(const struct weft_replica *replica,
                               const struct weft_scanners *scanners, struct weft_arena *arena)
{
    const char *names = "";
    size_t on = 0, all = 0;
    for (size_t i = 0; i < scanners->count; i++) {
        const struct weft_scanner_status *one = &scanners->item[i];
        if (weft_id_cmp(&one->replica, &replica->id) != 0)
            continue;
        all++;
        if (one->enabled)
            names = weft_arena_printf(arena, "%s%s%s", names, on++ ? " " : "", one->name);
    }
    if (all == 0)
        return "-";
    return on == all ? "all" : on == 0 ? "none" : names;
}

static void put_table(const struct weft_cli *cli, const struct weft_replicas *replicas,
                      const struct weft_scanners *scanners, struct weft_arena *arena)
{
    static const struct weft_column column[] = {
        {.title = "REPLICA"},
        {.title = "HOST", .give = 4},
        {.title = "PID", .align = WEFT_RIGHT},
        {.title = "VERSION", .give = 2},
        {.title = "STATE"},
        {.title = "UP", .align = WEFT_RIGHT},
        {.title = "SEEN", .align = WEFT_RIGHT},
        {.title = "URL", .give = 3},
        {.title = "SCANNERS", .give = 1},
    };
    struct weft_table *table = weft_table_new(cli, column, WEFT_LEN(column));
    for (size_t i = 0; i < replicas->count; i++) {
        const struct weft_replica *one = &replicas->item[i];
        char up[WEFT_AGO_TEXT];
        weft_usec span_us = (one->alive ? weft_wall_us() : one->seen_us) - one->started_us;
        weft_span(span_us > 0 ? span_us : 0, up);
        weft_table_cell(table, "%s", weft_short_id(&one->id, arena));
        weft_table_cell(table, "%s", one->host);
        weft_table_cell(table, "%" PRId64, one->pid);
        weft_table_cell(table, "%s", one->version);
        weft_table_paint(table, one->alive ? "32" : "31", "%s", one->alive ? "alive" : "dead");
        weft_table_cell(table, "%s", up);
        weft_table_ago(table, one->seen_us);
        weft_table_cell(table, "%s", one->url);
        weft_table_cell(table, "%s", scanners_of(one, scanners, arena));
    }
    weft_table_print(table);
}

static enum weft_exit put_replicas(const struct weft_cli *cli, struct weft *weft)
{
    struct weft_err err = {0};
    struct weft_replicas replicas = {0};
    struct weft_scanners scanners = {0};
    bool json = weft_cli_json(cli);
    enum weft_rc rc = weft_replicas(weft, &replicas, &err);
    if (!rc && !json)
        rc = weft_scanners(weft, &scanners, &err);
    if (!rc && json)
        weft_json_out_items(&weft_wire_replica, replicas.item, sizeof(*replicas.item),
                            replicas.count);
    else if (!rc)
        put_table(cli, &replicas, &scanners, replicas.arena);
    weft_scanners_free(&scanners);
    weft_replicas_free(&replicas);
    return rc ? weft_cli_fail(&err) : WEFT_EXIT_OK;
}

static enum weft_exit run_replicas(struct weft_cli *cli)
{
    return weft_cli_watch(cli, 2000, put_replicas);
}

const struct weft_command weft_command_replicas = {
    .name = "replicas",
    .args = "",
    .summary = "show the servers that share the store",
    .about =
        "Each server says every 5 s that it lives; one that was not heard of for 15 s is shown as "
        "dead. A server that stops in order leaves the list. SCANNERS tells which of them it runs: "
        "all, none, or their names. HOST, PID and URL tell where it is, VERSION what it runs, UP "
        "how long it has been up, SEEN when it was last heard of. REPLICA is the end of the id "
        "that it gave itself when it started.",
    .example = "weft replicas\nweft replicas --store postgres:///weft --json",
    .option =
        (const struct weft_option[]){
            WEFT_WATCH_OPTION("2 s"),
            {.name = NULL},
        },
    .run = run_replicas,
};
