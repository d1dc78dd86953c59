/* SPDX-License-Identifier: Apache-2.0 */

/* weft scanners: scanners of every replica, and one pass by hand. weft replicas: the servers. */

#include "base/clock.h"
#include "base/id.h"
#include "cmd/cli/output.h"

#include <inttypes.h>
#include <string.h>

#define LATE_US (60 * WEFT_SECOND) /* as in the alert rules of docs/operations.md */
#define RED     "31"
#define GREY    "90"

/* ---- Looking --------------------------------------------------------------------------------- */

/* "processed 12, ended 1": the counters that are not zero, or all of them. */
static const char *counted(const struct weft_counter *counter, size_t count, bool all,
                           struct weft_arena *arena)
{
    const char *text = "";
    for (size_t i = 0; i < count; i++)
        if (all || counter[i].value > 0)
            text = weft_arena_printf(arena, "%s%s%s %" PRIu64, text, *text ? ", " : "",
                                     counter[i].name, counter[i].value);
    return text;
}

/* The last 8 digits of an id, which are random: enough to distinguish a few. */
static void put_short_id(struct weft_table *table, const void *field)
{
    char text[WEFT_ID_TEXT];
    weft_id_print(field, text);
    weft_table_cell(table, "%s", text + strlen(text) - 8);
}

static void put_every(struct weft_table *table, const void *item)
{
    const struct weft_scanner_status *one = item;
    if (one->enabled)
        weft_table_span(table, one->interval_ms * WEFT_MS, NULL);
    else
        weft_table_paint(table, GREY, "off");
}

/* How long the last pass took, how late it is, what it is limited to, what it counted, its error.
 */
static void put_passes(struct weft_table *table, const void *item)
{
    const struct weft_scanner_status *one = item;
    const char *ns = one->ns ? one->ns : "";
    if (one->passes > 0)
        weft_table_span(table, one->duration_us, NULL);
    else
        weft_table_cell(table, "-");
    if (one->lag_us > 0)
        weft_table_span(table, one->lag_us, one->lag_us > LATE_US ? RED : NULL);
    else
        weft_table_cell(table, "-");
    if (one->partition_first > 0 || one->partition_last < 255)
        weft_table_cell(table, "%s%spartitions %u-%u", ns, *ns ? ", " : "", one->partition_first,
                        one->partition_last);
    else
        weft_table_cell(table, "%s", ns);
    weft_table_cell(table, "%s",
                    counted(one->counters, one->counter_count, false, weft_table_arena(table)));
    weft_table_paint(table, RED, "%s", one->last_error ? one->last_error : "");
}

#define AT(member) offsetof(struct weft_scanner_status, member)
static const struct weft_column columns[] = {
    {"SCANNER", WEFT_LEFT, 0, weft_cell_text, AT(name)},
    {"HOST", WEFT_LEFT, 3, weft_cell_text, AT(host)},
    {"REPLICA", WEFT_LEFT, 4, put_short_id, AT(replica)},
    {"EVERY", WEFT_RIGHT, 0, put_every, 0},
    {"LAST", WEFT_RIGHT, 0, weft_cell_ago, AT(last_pass_us)},
    {"TOOK", WEFT_RIGHT, 0, put_passes, 0},
    {"LAG", WEFT_RIGHT, 0, NULL, 0},
    {"ONLY", WEFT_LEFT, 1, NULL, 0},
    {"COUNTED", WEFT_LEFT, 2, NULL, 0},
    {"ERROR", WEFT_LEFT, 5, NULL, 0},
};
#undef AT

static enum weft_exit put_scanners(const struct weft_cli *cli, struct weft *weft)
{
    struct weft_err err = {0};
    struct weft_scanners scanners = {0};
    if (weft_scanners(weft, &scanners, &err))
        return weft_cli_fail(&err);
    weft_cli_put_list(cli, WEFT_LIST(columns, weft_wire_scanner, scanners));
    weft_scanners_free(&scanners);
    return WEFT_EXIT_OK;
}

/* ---- One pass -------------------------------------------------------------------------------- */

/* The scanner of that name. */
static enum weft_scanner find(const char *name, struct weft_arena *arena)
{
    const char *known[WEFT_SCANNER_COUNT + 1] = {NULL}, *all = "";
    for (int i = 0; i < WEFT_SCANNER_COUNT; i++) {
        known[i] = weft_scanner_name((enum weft_scanner)i);
        all = weft_arena_printf(arena, "%s%s%s", all, i ? ", " : "", known[i]);
        if (strcmp(known[i], name) == 0)
            return (enum weft_scanner)i;
    }
    const char *near = weft_nearest(name, known);
    weft_cli_say("weft: there is no scanner '%s'%s%s%s", name, near ? ", did you mean '" : "",
                 near ? near : "", near ? "'?" : "");
    weft_cli_say("  there are: %s", all);
    weft_quit(WEFT_EXIT_NOT_FOUND);
}

static void put_report(const struct weft_wire_pass *pass, struct weft_arena *arena)
{
    char text[WEFT_AGO_TEXT];
    weft_span(pass->duration_us, text);
    if (pass->counter_count > 0)
        printf("%s: %s (%s)\n", pass->name,
               counted(pass->counters, pass->counter_count, true, arena), text);
    else
        printf("%s: handled %" PRIu64 " (%s)\n", pass->name, pass->handled, text);
    if (pass->more)
        printf("there may be more: run it again\n");
    if (pass->next_due_us == INT64_MAX)
        return;
    weft_ago(pass->next_due_us, weft_wall_us(), text);
    printf("due next: %s\n", text);
}

static enum weft_exit run_pass(struct weft_cli *cli, enum weft_scanner scanner)
{
    struct weft_err err = {0};
    struct weft_pass_report report = {0};
    struct weft *weft = weft_cli_open(cli);
    weft_usec begun_us = weft_boot_us();
    if (weft_run_pass(weft, scanner, 0, &report, &err))
        return weft_cli_fail(&err);
    const struct weft_wire_pass pass = {
        .name = weft_scanner_name(scanner),
        .handled = report.handled,
        .failed = report.failed,
        .counters = report.counter,
        .counter_count = report.counter_count,
        .more = report.more,
        .next_due_us = report.next_due_us,
        .duration_us = weft_boot_us() - begun_us,
    };
    if (weft_cli_json(cli))
        weft_json_out_item(&weft_wire_pass, &pass);
    else
        put_report(&pass, cli->arena);
    return WEFT_EXIT_OK;
}

static enum weft_exit run_scanners(struct weft_cli *cli)
{
    if (cli->arg_count == 0)
        return weft_cli_watch(cli, 1000, put_scanners);
    if (strcmp(cli->arg[0], "run") != 0)
        weft_cli_usage(cli, "'%s' is not known here: it is `run NAME` or nothing", cli->arg[0]);
    if (cli->arg_count == 1)
        weft_cli_usage(cli, "name the scanner to run");
    return run_pass(cli, find(cli->arg[1], cli->arena));
}

const struct weft_command weft_command_scanners = {
    .name = "scanners",
    .args = "[run NAME]",
    .summary = "show what the scanners do, or run one now",
    .about =
        "Scanners find what time or a crash left behind: leases that ran out, delayed work that is "
        "due, outcomes that were kept long enough. Every server runs them by itself. The table has "
        "a line for each scanner on each living server: how often it looks at least (EVERY), when "
        "its last pass ended (LAST) and how long it took (TOOK), the age of the oldest row that is "
        "due (LAG), what it is limited to (ONLY), what it counted since the server started "
        "(COUNTED), and the error of its last pass. REPLICA is the end of the server's id in `weft "
        "replicas`.\n\n"
        "`run NAME` runs one pass now, whether the scanner is on or off, and prints what it did. "
        "Through a server it runs there, with that server's batch and limits; the token must have "
        "the scope admin. With --store it runs here, and neither waits for the grace after an "
        "outage nor knows of limits.",
    .example =
        "weft scanners --watch\n"
        "weft scanners run lease_expiry\n"
        "weft scanners --store postgres:///weft --json",
    .option =
        (const struct weft_option[]){
            WEFT_WATCH_OPTION("second"),
            {.name = NULL},
        },
    .run = run_scanners,
};

/* ---- weft replicas --------------------------------------------------------------------------- */

/* A replica and the scanners of all replicas. */
struct row {
    struct weft_replica replica;
    const struct weft_scanners *scanners;
};

static void put_pid(struct weft_table *table, const void *field)
{
    weft_table_cell(table, "%" PRId64, *(const int64_t *)field);
}

static void put_alive(struct weft_table *table, const void *item)
{
    const struct weft_replica *one = item;
    weft_usec span_us = (one->alive ? weft_wall_us() : one->seen_us) - one->started_us;
    weft_table_paint(table, one->alive ? "32" : RED, "%s", one->alive ? "alive" : "dead");
    weft_table_span(table, span_us > 0 ? span_us : 0, NULL);
}

/* The scanners that the replica runs: all, none, or their names; "-" for a dead one. */
static void put_scanners_of(struct weft_table *table, const void *item)
{
    const struct row *row = item;
    const char *names = "";
    size_t on = 0, all = 0;
    for (size_t i = 0; i < row->scanners->count; i++) {
        const struct weft_scanner_status *one = &row->scanners->item[i];
        if (weft_id_cmp(&one->replica, &row->replica.id) != 0)
            continue;
        all++;
        if (one->enabled)
            names = weft_arena_printf(weft_table_arena(table), "%s%s%s", names, on++ ? " " : "",
                                      one->name);
    }
    weft_table_cell(table, "%s", all == 0 ? "-" : on == all ? "all" : on == 0 ? "none" : names);
}

/* What it carries out itself; "-" is nothing. */
static void put_carries(struct weft_table *table, const void *item)
{
    const struct weft_replica *one = item;
    weft_table_cell(table, "%s",
                    one->carries_count == 0 ? "-"
                                            : weft_joined(weft_table_arena(table), one->carries,
                                                          one->carries_count, " "));
}

#define AT(member) offsetof(struct row, replica.member)
static const struct weft_column replica_columns[] = {
    {"REPLICA", WEFT_LEFT, 0, put_short_id, AT(id)},
    {"HOST", WEFT_LEFT, 4, weft_cell_text, AT(host)},
    {"PID", WEFT_RIGHT, 0, put_pid, AT(pid)},
    {"VERSION", WEFT_LEFT, 2, weft_cell_text, AT(version)},
    {"STATE", WEFT_LEFT, 0, put_alive, 0},
    {"UP", WEFT_RIGHT, 0, NULL, 0},
    {"SEEN", WEFT_RIGHT, 0, weft_cell_ago, AT(seen_us)},
    {"URL", WEFT_LEFT, 3, weft_cell_text, AT(url)},
    {"CARRIES", WEFT_LEFT, 0, put_carries, 0},
    {"SCANNERS", WEFT_LEFT, 1, put_scanners_of, 0},
};

static enum weft_exit put_replicas(const struct weft_cli *cli, struct weft *weft)
{
    struct weft_err err = {0};
    struct weft_replicas replicas = {0};
    struct weft_scanners scanners = {0};
    enum weft_rc rc = weft_replicas(weft, &replicas, &err);
    if (!rc && !weft_cli_json(cli))
        rc = weft_scanners(weft, &scanners, &err);
    if (!rc) {
        struct weft_list list = *WEFT_LIST(replica_columns, weft_wire_replica, replicas);
        struct row *row = weft_new_array(replicas.arena, struct row, replicas.count + 1);
        for (size_t i = 0; i < replicas.count; i++)
            row[i] = (struct row){replicas.item[i], &scanners};
        list.item = row; /* the replica is the first member of a row */
        list.size = sizeof(*row);
        weft_cli_put_list(cli, &list);
    }
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
        "dead. A server that stops in order leaves the list. CARRIES tells which kinds of "
        "executions it carries out itself: http, or - for a server with --executor=off. SCANNERS "
        "tells which of them it runs: all, none, or their names. HOST, PID and URL tell where it "
        "is, VERSION what it runs, UP "
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
