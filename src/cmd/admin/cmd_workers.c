/* SPDX-License-Identifier: Apache-2.0 */

/* weft workers: the workers, the leases that they hold, and when they were last seen. */

#include "base/limits.h"
#include "cmd/cli/filter_args.h"
#include "cmd/cli/output.h"

#include <inttypes.h>
#include <string.h>

static void put_offers(struct weft_table *table, const void *item)
{
    const struct weft_worker_info *worker = item;
    struct weft_arena *arena = weft_table_arena(table);
    weft_table_cell(table, "%s", weft_joined(arena, worker->lanes, worker->lane_count, " "));
    weft_table_cell(table, "%s",
                    weft_joined(arena, worker->capabilities, worker->capability_count, " "));
}

static const struct weft_column columns[] = {
    {"WORKER", WEFT_LEFT, 3, weft_cell_text, offsetof(struct weft_worker_info, name)},
    {"LEASES", WEFT_RIGHT, 0, weft_cell_u64, offsetof(struct weft_worker_info, leases)},
    {"SEEN", WEFT_RIGHT, 0, weft_cell_ago, offsetof(struct weft_worker_info, seen_us)},
    {"LANES", WEFT_LEFT, 2, put_offers, 0},
    {"CAPABILITIES", WEFT_LEFT, 1, NULL, 0},
};

/* Writes the executions that a worker holds: as rows of the table; as JSON when it is NULL. */
static enum weft_rc read_held(struct weft *weft, const char *name, struct weft_table *table,
                              struct weft_json_writer *json, struct weft_err *err)
{
    const struct weft_filter filter = {.worker = name, .state = WEFT_STATE_RUNNING};
    struct weft_pages pages = {.more = true};
    enum weft_rc rc = WEFT_OK;
    while (pages.more && !rc) {
        rc = weft_next_page(weft, &filter, WEFT_PAGE_MAX, &pages, err);
        for (size_t i = 0; i < pages.page.count && !rc; i++) {
            if (table)
                weft_table_row(table, &pages.page.item[i]);
            else
                weft_wire_write(&weft_wire_execution, &pages.page.item[i], json);
        }
    }
    weft_page_free(&pages.page);
    return rc;
}

#define AT(member) offsetof(struct weft_execution, member)
static enum weft_exit show_one(const struct weft_cli *cli, struct weft *weft,
                               const struct weft_worker_info *worker)
{
    static const struct weft_column held[] = {
        {"ID", WEFT_LEFT, 0, weft_cell_id, AT(id)},
        {"LANE", WEFT_LEFT, 1, weft_cell_text, AT(lane)},
        {"KIND", WEFT_LEFT, 2, weft_cell_text, AT(kind)},
        {"TRY", WEFT_RIGHT, 0, weft_cell_i32, AT(attempt)},
        {"CLAIMED", WEFT_RIGHT, 0, weft_cell_ago, AT(claimed_us)},
        {"LEASE ENDS", WEFT_RIGHT, 0, weft_cell_ago, AT(lease_expires_us)},
    };
    struct weft_err err = {0};
    struct weft_json_out out;
    struct weft_table *table = NULL;
    if (weft_cli_json(cli)) {
        weft_json_out_begin_items(&out);
        weft_wire_write(&weft_wire_worker, worker, &out.json);
        weft_json_end_array(&out.json);
        weft_json_add_array(&out.json, "holds");
    } else {
        table = weft_table_new(cli, columns, WEFT_LEN(columns));
        weft_table_row(table, worker);
        weft_table_print(table);
        table = weft_table_new(cli, held, WEFT_LEN(held));
    }
    enum weft_rc rc = read_held(weft, worker->name, table, &out.json, &err);
    if (!table && rc)
        weft_json_out_drop(&out);
    else if (!table)
        weft_json_out_end_items(&out);
    else if (rc || worker->leases == 0)
        weft_table_free(table);
    else {
        putchar('\n');
        weft_table_print(table);
    }
    return rc ? weft_cli_fail(&err) : WEFT_EXIT_OK;
}

static const struct weft_worker_info *find(const struct weft_workers *workers, const char *name)
{
    for (size_t i = 0; i < workers->count; i++)
        if (strcmp(workers->item[i].name, name) == 0)
            return &workers->item[i];
    return NULL;
}

static enum weft_exit not_there(const char *name)
{
    weft_cli_say("weft: there is no worker '%s'", name);
    weft_cli_say("hint: `weft workers` lists them");
    return WEFT_EXIT_NOT_FOUND;
}

/* A worker that is not on the list may still hold leases. */
static enum weft_exit say_goodbye(const struct weft_cli *cli, struct weft *weft, const char *name,
                                  bool listed)
{
    struct weft_err err = {0};
    uint64_t released = 0;
    if (weft_goodbye(weft, name, &released, &err))
        return weft_cli_fail(&err);
    if (!listed && released == 0)
        return not_there(name);
    if (weft_cli_json(cli))
        printf("{\"released\":%" PRIu64 "}\n", released);
    else
        printf("%" PRIu64 " lease%s released\n", released, released == 1 ? "" : "s");
    return WEFT_EXIT_OK;
}

static enum weft_exit run_workers(struct weft_cli *cli)
{
    const char *name = cli->arg[0];
    bool goodbye = weft_cli_has(cli, "goodbye");
    struct weft_err err = {0};
    struct weft_workers workers = {0};
    enum weft_exit code = WEFT_EXIT_OK;
    if (goodbye && !name)
        weft_cli_usage(cli, "name the worker that is gone");
    struct weft *weft = weft_cli_open(cli);
    if (weft_workers(weft, &workers, &err))
        return weft_cli_fail(&err);
    const struct weft_worker_info *worker = name ? find(&workers, name) : NULL;
    if (goodbye)
        code = say_goodbye(cli, weft, name, worker != NULL);
    else if (name)
        code = worker ? show_one(cli, weft, worker) : not_there(name);
    else
        weft_cli_put_list(cli, WEFT_LIST(columns, weft_wire_worker, workers));
    weft_workers_free(&workers);
    return code;
}

const struct weft_command weft_command_workers = {
    .name = "workers",
    .args = "[NAME]",
    .summary = "show workers and what they hold",
    .about =
        "Workers are known from their claims through a server. Its columns are WORKER, the name; "
        "LEASES, how many executions it holds; SEEN, when it last claimed; LANES and CAPABILITIES, "
        "as in its last claim. With NAME the executions that it holds follow: CLAIMED is when each "
        "lease began, LEASE ENDS when it runs out unless it is renewed. With --json that is "
        "{\"items\":[worker],\"holds\":[execution,...]}.\n\n"
        "--goodbye releases all leases of a worker at once, for one that is known to be gone: what "
        "it held can be claimed without waiting for its leases to run out, and it leaves the list. "
        "The exit code is 3 when there is no such worker.",
    .example = "weft workers\nweft workers host-1-4711\nweft workers host-1-4711 --goodbye",
    .option =
        (const struct weft_option[]){
            {"goodbye", 0, NULL, "release the leases of this worker", NULL},
            {.name = NULL},
        },
    .run = run_workers,
};
