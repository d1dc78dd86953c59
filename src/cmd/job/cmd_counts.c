/* SPDX-License-Identifier: Apache-2.0 */

/* weft counts: how much of what is in each lane. */

#include "cmd/cli/cli_json.h"
#include "cmd/cli/table.h"

#include "base/base.h"

#include <inttypes.h>
#include <string.h>

static const enum weft_state shown[] = {WEFT_STATE_READY,     WEFT_STATE_RUNNING,
                                        WEFT_STATE_DELAYED,   WEFT_STATE_BLOCKED,
                                        WEFT_STATE_SUSPENDED, WEFT_STATE_HELD};

static void put_row(struct weft_table *table, const struct weft_lane_count *row)
{
    weft_table_cell(table, "%s", row->lane);
    for (size_t i = 0; i < WEFT_LEN(shown); i++)
        weft_table_cell(table, "%" PRIu64, row->count[shown[i]]);
    weft_table_cell(table, "%" PRIu64, row->draining);
    weft_table_cell(table, "%" PRIu64, row->succeeded_1h);
    weft_table_cell(table, "%" PRIu64, row->failed_1h);
}

static void put_table(const struct weft_cli *cli, const struct weft_counts *counts)
{
    static const struct weft_column column[] = {
        {.title = "LANE", .give = 4},
        {.title = "READY", .align = WEFT_RIGHT},
        {.title = "RUNNING", .align = WEFT_RIGHT},
        {.title = "DELAYED", .align = WEFT_RIGHT},
        {.title = "BLOCKED", .align = WEFT_RIGHT, .give = 3},
        {.title = "SUSPENDED", .align = WEFT_RIGHT, .give = 2},
        {.title = "HELD", .align = WEFT_RIGHT, .give = 1},
        {.title = "DRAINING", .align = WEFT_RIGHT, .give = 4},
        {.title = "DONE/1H", .align = WEFT_RIGHT},
        {.title = "FAILED/1H", .align = WEFT_RIGHT},
    };
    struct weft_table *table = weft_table_new(cli, column, WEFT_LEN(column));
    struct weft_lane_count all = {.lane = "(all)"};
    for (size_t i = 0; i < counts->count; i++) {
        put_row(table, &counts->item[i]);
        for (size_t state = 0; state < WEFT_STATE_COUNT; state++)
            all.count[state] += counts->item[i].count[state];
        all.succeeded_1h += counts->item[i].succeeded_1h;
        all.failed_1h += counts->item[i].failed_1h;
        all.draining += counts->item[i].draining;
    }
    if (counts->count > 1)
        put_row(table, &all);
    weft_table_print(table);
    weft_cli_put_age(counts);
}

static void put_json(const struct weft_counts *counts)
{
    struct weft_json_out out;
    weft_json_out_begin_object(&out);
    weft_json_key(&out.json, "as_of");
    weft_wire_put_moment(&out.json, counts->as_of_us);
    if (counts->age_ms >= 0)
        weft_json_add_i64(&out.json, "age_ms", counts->age_ms);
    weft_json_key(&out.json, "items");
    weft_json_begin_array(&out.json);
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
        put_json(&counts);
    else
        put_table(cli, &counts);
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
        "Living executions by state, and those that ended within the last hour. Failed and "
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
            {.name = "lane", .letter = 'l', .value = "NAME", .about = "this lane only"},
            WEFT_WATCH_OPTION("2 s"),
            {.name = NULL},
        },
    .run = run_counts,
};
