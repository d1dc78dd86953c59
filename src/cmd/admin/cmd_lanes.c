/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft lanes: what is set for lanes and what is in them; and setting it.
 *
 * A lane is in use while it has settings, executions that are not over, or executions that ended
 * in the last hour; the list joins settings and counts. Settings are replaced as a whole: what the
 * command line does not name is read first and put back. A lane that is not in use is taken for a
 * mistyped name, unless --create says otherwise.
 */

#include "base/limits.h"
#include "cmd/admin/limit_args.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Looking --------------------------------------------------------------------------------- */

/* The age of counts, on a line below their table. */
static void put_age(const struct weft_counts *counts)
{
    enum { NOW_MS = 50 };
    if (counts->count == 0 || counts->age_ms < 0)
        return;
    if (counts->age_ms < NOW_MS)
        printf("as of now\n");
    else
        printf("as of %.1f s ago\n", (double)counts->age_ms / 1000);
}

/* Settings and counts of one lane; either may be missing. */
struct row {
    struct weft_lane lane;
    const struct weft_lane_count *count;
};

struct rows {
    struct row *item;
    size_t count;
};

static int by_name(const void *a, const void *b)
{
    const struct row *left = a, *right = b;
    return strcmp(left->lane.name, right->lane.name);
}

static struct rows join(const struct weft_lanes *lanes, const struct weft_counts *counts,
                        struct weft_arena *arena)
{
    struct rows rows = {.item =
                            weft_new_array(arena, struct row, lanes->count + counts->count + 1)};
    for (size_t i = 0; i < lanes->count; i++)
        rows.item[rows.count++].lane = lanes->item[i];
    for (size_t i = 0; i < counts->count; i++) {
        const struct row key = {.lane = {.name = counts->item[i].lane}};
        struct row *found = bsearch(&key, rows.item, lanes->count, sizeof(key), by_name);
        if (!found) {
            found = &rows.item[rows.count++];
            found->lane.name = counts->item[i].lane;
        }
        found->count = &counts->item[i];
    }
    qsort(rows.item, rows.count, sizeof(*rows.item), by_name);
    return rows;
}

/* The settings of a lane and the number of its executions. */
static void put_settings(struct weft_table *table, const void *item)
{
    const struct row *row = item;
    const struct weft_lane *lane = &row->lane;
    const uint64_t *count = row->count ? row->count->count : NULL;
    weft_table_cell(table, "%s", lane->paused ? "paused" : "open");
    if (lane->max_running > 0)
        weft_table_cell(table, "%d", lane->max_running);
    else
        weft_table_cell(table, "-");
    weft_table_cell(table, "%s", weft_window_text(weft_table_arena(table), &lane->window));
    weft_table_cell(table, "%s", weft_rate_text(weft_table_arena(table), &lane->rate));
    if (lane->retention_ms > 0)
        weft_table_cell(table, "%s",
                        weft_duration_text(weft_table_arena(table), lane->retention_ms));
    else
        weft_table_cell(table, "-");
    weft_table_cell(table, "%" PRIu64, count ? count[WEFT_STATE_READY] : 0);
    weft_table_cell(table, "%" PRIu64, count ? count[WEFT_STATE_RUNNING] : 0);
    const char *weights = "";
    for (size_t i = 0; i < lane->weight_count; i++)
        weights = weft_arena_printf(weft_table_arena(table), "%s%s%s=%d", weights, i ? " " : "",
                                    lane->weights[i].tenant, lane->weights[i].weight);
    weft_table_cell(table, "%s", weights);
}

static const struct weft_column columns[] = {
    {"LANE", WEFT_LEFT, 2, weft_cell_text, offsetof(struct row, lane.name)},
    {"CLAIMS", WEFT_LEFT, 0, put_settings, 0},
    {"LIMIT", WEFT_RIGHT, 0, NULL, 0},
    {"WINDOW", WEFT_RIGHT, 2, NULL, 0},
    {"RATE", WEFT_RIGHT, 3, NULL, 0},
    {"KEPT", WEFT_RIGHT, 0, NULL, 0},
    {"READY", WEFT_RIGHT, 0, NULL, 0},
    {"RUNNING", WEFT_RIGHT, 0, NULL, 0},
    {"WEIGHTS", WEFT_LEFT, 1, NULL, 0},
};

/* The error for an unknown lane; its hint lists the lanes in use. */
static enum weft_exit no_such_lane(const struct weft_cli *cli, const char *name, const char *advice,
                                   const struct weft_lanes *lanes)
{
    enum { SHOWN_MAX = 10 };
    struct weft_err err = {0};
    const char **word = weft_new_array(cli->arena, const char *, lanes->count + 1);
    const char *text = lanes->count > 0 ? "lanes in use: " : "no lane is in use";
    for (size_t i = 0; i < lanes->count; i++) {
        word[i] = lanes->item[i].name;
        if (i < SHOWN_MAX)
            text = weft_arena_printf(cli->arena, "%s%s%s", text, i ? ", " : "", word[i]);
    }
    if (lanes->count > SHOWN_MAX)
        text = weft_arena_printf(cli->arena, "%s and %zu more", text, lanes->count - SHOWN_MAX);
    const char *near = weft_nearest(name, word);
    if (near)
        text = weft_arena_printf(cli->arena, "did you mean '%s'? %s", near, text);
    (void)weft_fail_field(&err, WEFT_NOT_FOUND, "lane", "no such lane: %s", name);
    err.hint = weft_arena_printf(cli->arena, "%s%s", advice, text);
    return weft_cli_fail(&err);
}

static enum weft_exit put_lanes(const struct weft_cli *cli, const char *name,
                                const struct weft_lanes *lanes, const struct weft_counts *counts)
{
    struct rows rows = join(lanes, counts, cli->arena);
    if (name) {
        const struct row key = {.lane = {.name = name}};
        struct row *found = bsearch(&key, rows.item, rows.count, sizeof(key), by_name);
        if (!found)
            return no_such_lane(cli, name, "", lanes);
        rows = (struct rows){.item = found, .count = 1};
    }
    if (name && weft_cli_json(cli)) /* the lane is the first member of a row */
        weft_json_out_item(&weft_wire_lane, rows.item);
    else
        weft_cli_put_list(cli, WEFT_LIST(columns, weft_wire_lane, rows));
    if (!weft_cli_json(cli))
        put_age(counts);
    return WEFT_EXIT_OK;
}

static enum weft_exit show(const struct weft_cli *cli, struct weft *weft, const char *name)
{
    struct weft_err err = {0};
    struct weft_lanes lanes = {0};
    struct weft_counts counts = {0};
    enum weft_rc rc = weft_lanes(weft, &lanes, &err);
    if (!rc)
        rc = weft_counts(weft, NULL, &counts, &err);
    enum weft_exit code = rc ? weft_cli_fail(&err) : put_lanes(cli, name, &lanes, &counts);
    weft_counts_free(&counts);
    weft_lanes_free(&lanes);
    return code;
}

/* ---- Setting --------------------------------------------------------------------------------- */

/* The first option that changes the lane; NULL: none was given. */
static const char *first_change(const struct weft_cli *cli)
{
    static const char *const changes[] = {"pause", "resume",    "max-running", "window", "rate",
                                          "burst", "retention", "weight",      "create"};
    for (size_t i = 0; i < WEFT_LEN(changes); i++)
        if (weft_cli_has(cli, changes[i]))
            return changes[i];
    return NULL;
}

/* Puts TENANT=N into the list; with N = 0 the tenant is removed from it. */
static void put_weight(const struct weft_cli *cli, const char *text, struct weft_weight *weight,
                       size_t *count)
{
    const char *equals = strrchr(text, '=');
    int64_t number;
    if (!equals || equals == text || !weft_number_typed(equals + 1, &number) || number < 0 ||
        number > 1000)
        weft_cli_usage(cli, "--weight is '%s': it must be TENANT=N, N up to 1000", text);
    const char *tenant = weft_arena_printf(cli->arena, "%.*s", (int)(equals - text), text);
    size_t i = 0;
    while (i < *count && strcmp(weight[i].tenant, tenant) != 0)
        i++;
    if (number > 0) {
        weight[i] = (struct weft_weight){.tenant = tenant, .weight = (int32_t)number};
        *count += i == *count;
    } else if (i < *count) {
        weight[i] = weight[--*count];
    }
}

/* Replaces the settings that the command line names; the others stay as they are. */
static void amend(const struct weft_cli *cli, struct weft_lane *lane)
{
    const char *const *text;
    size_t given = weft_cli_all(cli, "weight", &text), count = lane->weight_count;
    struct weft_weight *weight = weft_new_array(cli->arena, struct weft_weight, count + given + 1);
    for (size_t i = 0; i < count; i++)
        weight[i] = lane->weights[i];
    for (size_t i = 0; i < given; i++)
        put_weight(cli, text[i], weight, &count);
    lane->weights = weight;
    lane->weight_count = count;
    if (weft_cli_has(cli, "pause") || weft_cli_has(cli, "resume"))
        lane->paused = weft_cli_has(cli, "pause");
    lane->max_running = (int32_t)weft_cli_i64(cli, "max-running", 0, INT32_MAX, lane->max_running);
    weft_limit_args_read(cli, &lane->window, &lane->rate);
    lane->retention_ms = weft_cli_ms(cli, "retention", 0, WEFT_DELAY_MAX_MS, lane->retention_ms);
}

static enum weft_exit set(const struct weft_cli *cli, struct weft *weft, const char *name)
{
    struct weft_err err = {0};
    struct weft_lanes lanes = {0};
    struct weft_lane lane = {.name = name};
    enum weft_exit code;
    bool in_use = false;
    if (weft_lanes(weft, &lanes, &err))
        return weft_cli_fail(&err);
    for (size_t i = 0; i < lanes.count && !in_use; i++) {
        in_use = strcmp(lanes.item[i].name, name) == 0;
        lane = in_use ? lanes.item[i] : lane;
    }
    if (!in_use && !weft_cli_has(cli, "create")) {
        code = no_such_lane(cli, name, "use --create to set it up before its first work; ", &lanes);
    } else {
        amend(cli, &lane);
        code = weft_lane_put(weft, &lane, &err) ? weft_cli_fail(&err) : WEFT_EXIT_OK;
    }
    weft_lanes_free(&lanes);
    return code == WEFT_EXIT_OK ? show(cli, weft, name) : code;
}

static enum weft_exit remove_settings(const struct weft_cli *cli, struct weft *weft,
                                      const char *name)
{
    struct weft_err err = {0};
    if (weft_lane_remove(weft, name, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli)) {
        struct weft_json_out out;
        weft_json_out_begin_object(&out);
        weft_json_add_text(&out.json, "lane", name);
        weft_json_add_bool(&out.json, "removed", true);
        weft_json_out_end_object(&out);
    } else {
        printf("the settings of lane %s are removed; it is listed while work uses it\n", name);
    }
    return WEFT_EXIT_OK;
}

static enum weft_exit run_lanes(struct weft_cli *cli)
{
    const char *name = cli->arg[0], *change = first_change(cli);
    bool removal = weft_cli_has(cli, "remove");
    if (removal && change)
        weft_cli_usage(cli, "--remove and --%s exclude each other", change);
    if ((removal || change) && !name)
        weft_cli_usage(cli, "name the lane that is to be changed");
    if (weft_cli_has(cli, "pause") && weft_cli_has(cli, "resume"))
        weft_cli_usage(cli, "--pause and --resume exclude each other");
    struct weft *weft = weft_cli_open(cli);
    return removal  ? remove_settings(cli, weft, name)
           : change ? set(cli, weft, name)
                    : show(cli, weft, name);
}

const struct weft_command weft_command_lanes = {
    .name = "lanes",
    .args = "[NAME]",
    .summary = "show lanes, pause and limit them",
    .about =
        "Nothing is claimed from a paused lane; its work stays ready, and what runs goes on. A "
        "limit holds over all workers together: --max-running of what runs at once, --window and "
        "--rate of how often executions start. Tenants of a lane take turns by their "
        "weights; one without a weight has 1. Outcomes are kept for the time of --retention, "
        "unless their policy says otherwise; failed and expired ones four times as long. What an "
        "option does not name stays as it is.\n\n"
        "A lane is in use while it has settings, executions that are not over, or executions "
        "that ended in the last hour. Settings for any other lane are refused, because its name "
        "may be mistyped; with --create they are made before its first work. With --remove the "
        "settings go and the defaults hold again, also for how long its outcomes are kept; a "
        "lane that work uses stays in the list.\n\n"
        "The columns are CLAIMS, whether it is open or paused; LIMIT, of what runs at once; WINDOW "
        "and RATE, of starts; KEPT, how long outcomes are kept; READY and RUNNING, how many "
        "executions wait for a worker and "
        "are held by one; WEIGHTS, of tenants.",
    .example =
        "weft lanes\nweft lanes mail --pause\nweft lanes gpu --max-running 4 --weight acme=3\n"
        "weft lanes api --window 100/1m --rate 10/1s --burst 20\n"
        "weft lanes nightly --pause --create\nweft lanes nightly --remove",
    .option =
        (const struct weft_option[]){
            {"pause", 0, NULL, "claim nothing from it", NULL},
            {"resume", 0, NULL, "claim from it again", NULL},
            {"max-running", 0, "N", "at most so many at once; 0: no limit", NULL},
            WEFT_LIMIT_OPTIONS,
            {"retention", 0, "TIME", "how long outcomes are kept; 0: as by default, 7d", NULL},
            {"weight", 0, "TENANT=N", "give a tenant N turns; 0 forgets it; may be repeated", NULL},
            {"create", 0, NULL, "set up a lane that nothing uses yet", NULL},
            {"remove", 0, NULL, "remove its settings", NULL},
            {.name = NULL},
        },
    .run = run_lanes,
};

/* ---- weft counts ----------------------------------------------------------------------------- */

#define AT(member)   offsetof(struct weft_lane_count, member)
#define STATE(state) AT(count[WEFT_STATE_##state])
static const struct weft_column count_columns[] = {
    {"LANE", WEFT_LEFT, 4, weft_cell_text, AT(lane)},
    {"READY", WEFT_RIGHT, 0, weft_cell_u64, STATE(READY)},
    {"RUNNING", WEFT_RIGHT, 0, weft_cell_u64, STATE(RUNNING)},
    {"DELAYED", WEFT_RIGHT, 0, weft_cell_u64, STATE(DELAYED)},
    {"BLOCKED", WEFT_RIGHT, 3, weft_cell_u64, STATE(BLOCKED)},
    {"SUSPENDED", WEFT_RIGHT, 2, weft_cell_u64, STATE(SUSPENDED)},
    {"ESCALATED", WEFT_RIGHT, 2, weft_cell_u64, AT(escalated)},
    {"HELD", WEFT_RIGHT, 1, weft_cell_u64, STATE(HELD)},
    {"DRAINING", WEFT_RIGHT, 4, weft_cell_u64, AT(draining)},
    {"DONE/1H", WEFT_RIGHT, 0, weft_cell_u64, AT(succeeded_1h)},
    {"FAILED/1H", WEFT_RIGHT, 0, weft_cell_u64, AT(failed_1h)},
};

static void put_counts_table(const struct weft_cli *cli, const struct weft_counts *counts)
{
    struct weft_table *table = weft_table_new(cli, count_columns, WEFT_LEN(count_columns));
    struct weft_lane_count all = {.lane = "(all)"};
    for (size_t i = 0; i < counts->count; i++) {
        weft_table_row(table, &counts->item[i]);
        for (size_t state = 0; state < WEFT_STATE_COUNT; state++)
            all.count[state] += counts->item[i].count[state];
        all.succeeded_1h += counts->item[i].succeeded_1h;
        all.failed_1h += counts->item[i].failed_1h;
        all.draining += counts->item[i].draining;
        all.escalated += counts->item[i].escalated;
    }
    if (counts->count > 1)
        weft_table_row(table, &all);
    weft_table_print(table);
    put_age(counts);
}

static void put_counts_json(const struct weft_counts *counts)
{
    struct weft_json_out out;
    weft_json_out_begin_object(&out);
    weft_json_key(&out.json, "as_of");
    weft_wire_put_moment(&out.json, counts->as_of_us);
    if (counts->age_ms >= 0)
        weft_json_add_i64(&out.json, "age_ms", counts->age_ms);
    weft_json_add_array(&out.json, "items");
    for (size_t i = 0; i < counts->count; i++)
        weft_wire_write(&weft_wire_lane_count, &counts->item[i], &out.json);
    weft_json_out_end_items(&out);
}

static enum weft_exit put_counts(const struct weft_cli *cli, struct weft *weft)
{
    struct weft_err err = {0};
    struct weft_counts counts = {0};
    if (weft_counts(weft, weft_cli_get(cli, "lane"), &counts, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli))
        put_counts_json(&counts);
    else
        put_counts_table(cli, &counts);
    weft_counts_free(&counts);
    return WEFT_EXIT_OK;
}

static enum weft_exit run_counts(struct weft_cli *cli)
{
    return weft_cli_watch(cli, 2000, put_counts);
}

const struct weft_command weft_command_counts = {
    .name = "counts",
    .args = "",
    .summary = "count what is in each lane",
    .about =
        "Living executions by state, and executions that ended within the last hour. Failed and "
        "expired ones count as failed, unless they were replayed since. A server counts at most "
        "once a second: the last line tells how old the numbers are.\n\n"
        "READY wait for a worker. DELAYED wait for their time, or for the next attempt. BLOCKED "
        "wait for what they come after in a flow. RUNNING are held by a worker. DRAINING are over, "
        "but a worker is still at them: they keep their places in a lane with a limit. DONE/1H and "
        "FAILED/1H count what ended within the last hour. Where there are several lanes, (all) is "
        "their sum.",
    .example = "weft counts\nweft counts --lane mail --watch=5s",
    .option =
        (const struct weft_option[]){
            {"lane", 'l', "NAME", "this lane only", NULL},
            WEFT_WATCH_OPTION("2 s"),
            {.name = NULL},
        },
    .run = run_counts,
};
