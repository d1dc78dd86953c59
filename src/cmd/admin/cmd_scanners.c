/* SPDX-License-Identifier: Apache-2.0 */

/* weft scanners: their state on every replica, and one pass by hand. weft replicas: the servers. */

#include "base/arena.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/id.h"
#include "cmd/cli/cli.h"
#include "cmd/cli/output.h"
#include "cmd/cli/text.h"

#include <inttypes.h>
#include <string.h>

#define LATE_US (60 * WEFT_SECOND) /* as in the alert rules of docs/operations.md */
#define RED     "31"
#define GREY    "90"

/* ---- Looking --------------------------------------------------------------------------------- */

/* "processed 12, ended 1": what is not zero, or all of it. */
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

/* "blue, partitions 0-127": what it is limited to. */
static const char *limits(const struct weft_scanner_status *one, struct weft_arena *arena)
{
    const char *text = one->ns ? one->ns : "";
    if (one->partition_first > 0 || one->partition_last < 255)
        text = weft_arena_printf(arena, "%s%spartitions %u-%u", text, one->ns ? ", " : "",
                                 one->partition_first, one->partition_last);
    return text;
}

static void put_span(struct weft_table *table, weft_usec span_us, const char *color)
{
    char text[WEFT_AGO_TEXT];
    weft_span(span_us, text);
    weft_table_paint(table, color, "%s", text);
}

static void put_row(struct weft_table *table, const struct weft_scanner_status *one,
                    struct weft_arena *arena)
{
    weft_table_cell(table, "%s", one->name);
    weft_table_cell(table, "%s", one->host ? one->host : "");
    weft_table_cell(table, "%s", weft_short_id(&one->replica, arena));
    if (one->enabled)
        put_span(table, one->interval_ms * WEFT_MS, NULL);
    else
        weft_table_paint(table, GREY, "off");
    weft_table_ago(table, one->last_pass_us);
    if (one->passes > 0)
        put_span(table, one->duration_us, NULL);
    else
        weft_table_cell(table, "-");
    if (one->lag_us > 0)
        put_span(table, one->lag_us, one->lag_us > LATE_US ? RED : NULL);
    else
        weft_table_cell(table, "-");
    weft_table_cell(table, "%s", limits(one, arena));
    weft_table_cell(table, "%s", counted(one->counters, one->counter_count, false, arena));
    weft_table_paint(table, RED, "%s", one->last_error ? one->last_error : "");
}

static void put_table(const struct weft_cli *cli, const struct weft_scanners *scanners)
{
    static const struct weft_column column[] = {
        {.title = "SCANNER"},
        {.title = "HOST", .give = 3},
        {.title = "REPLICA", .give = 4},
        {.title = "EVERY", .align = WEFT_RIGHT},
        {.title = "LAST", .align = WEFT_RIGHT},
        {.title = "TOOK", .align = WEFT_RIGHT},
        {.title = "LAG", .align = WEFT_RIGHT},
        {.title = "ONLY", .give = 1},
        {.title = "COUNTED", .give = 2},
        {.title = "ERROR", .give = 5},
    };
    struct weft_table *table = weft_table_new(cli, column, WEFT_LEN(column));
    for (size_t i = 0; i < scanners->count; i++)
        put_row(table, &scanners->item[i], scanners->arena);
    weft_table_print(table);
}

static enum weft_exit put_scanners(const struct weft_cli *cli, struct weft *weft)
{
    struct weft_err err = {0};
    struct weft_scanners scanners = {0};
    if (weft_scanners(weft, &scanners, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli))
        weft_json_out_items(&weft_wire_scanner, scanners.item, sizeof(*scanners.item),
                            scanners.count);
    else
        put_table(cli, &scanners);
    weft_scanners_free(&scanners);
    return WEFT_EXIT_OK;
}

/* ---- One pass -------------------------------------------------------------------------------- */

/* The scanner of that name; WEFT_SCANNER_COUNT: none, and that has been printed. */
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
    (void)fprintf(stderr, "weft: there is no scanner '");
    weft_put_clean(stderr, name);
    (void)fprintf(stderr, "'%s%s%s\n  there are: %s\n", near ? ", did you mean '" : "",
                  near ? near : "", near ? "'?" : "", all);
    return WEFT_SCANNER_COUNT;
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

static enum weft_exit run_pass(struct weft_cli *cli, struct weft *weft, enum weft_scanner scanner)
{
    struct weft_err err = {0};
    struct weft_pass_report report = {0};
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
    const char *const *arg;
    size_t count = weft_cli_args(cli, &arg);
    struct weft *weft;
    enum weft_exit code;
    enum weft_scanner scanner = WEFT_SCANNER_COUNT;
    if (count > 0 && strcmp(arg[0], "run") != 0)
        return weft_cli_usage(cli, "'%s' is not known here: it is `run NAME` or nothing", arg[0]);
    if (count == 1)
        return weft_cli_usage(cli, "name the scanner to run");
    if (count > 0) {
        scanner = find(arg[1], cli->arena);
        if (scanner == WEFT_SCANNER_COUNT)
            return WEFT_EXIT_NOT_FOUND;
    }
    if (count == 0)
        return weft_cli_watch(cli, 1000, put_scanners);
    return weft_cli_open(cli, &weft, &code) ? run_pass(cli, weft, scanner) : code;
}

const struct weft_command weft_command_scanners = {
    .name = "scanners",
    .args = "[run NAME]",
    .args_max = 2,
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

static void put_replica_table(const struct weft_cli *cli, const struct weft_replicas *replicas,
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
        put_replica_table(cli, &replicas, &scanners, replicas.arena);
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
