/* SPDX-License-Identifier: Apache-2.0 */

/* weft workers: the workers, the leases that they hold, and when they were last seen. */

#include "cmd/cli/cli.h"
#include "cmd/cli/output.h"
#include "cmd/cli/text.h"

#include "base/arena.h"
#include "base/base.h"
#include "base/limits.h"

#include <inttypes.h>
#include <string.h>

static void put_table(const struct weft_cli *cli, const struct weft_worker_info *worker,
                      size_t count)
{
    static const struct weft_column column[] = {
        {.title = "WORKER", .give = 3},         {.title = "LEASES", .align = WEFT_RIGHT},
        {.title = "SEEN", .align = WEFT_RIGHT}, {.title = "LANES", .give = 2},
        {.title = "CAPABILITIES", .give = 1},
    };
    struct weft_table *table = weft_table_new(cli, column, WEFT_LEN(column));
    for (size_t i = 0; i < count; i++) {
        weft_table_cell(table, "%s", worker[i].name);
        weft_table_cell(table, "%" PRIu64, worker[i].leases);
        weft_table_ago(table, worker[i].seen_us);
        weft_table_cell(table, "%s",
                        weft_joined(cli->arena, worker[i].lanes, worker[i].lane_count, " "));
        weft_table_cell(
            table, "%s",
            weft_joined(cli->arena, worker[i].capabilities, worker[i].capability_count, " "));
    }
    weft_table_print(table);
}

/* ---- What one of them holds ------------------------------------------------------------------ */

struct held {
    const struct weft_cli *cli;
    struct weft_table *table; /* NULL: JSON */
    struct weft_json_writer *json;
};

static void put_held(const struct held *held, const struct weft_execution *item)
{
    char id[WEFT_ID_TEXT];
    if (!held->table) {
        weft_wire_write(&weft_wire_execution, item, held->json);
        return;
    }
    weft_cli_id(held->cli, &item->id, id);
    weft_table_cell(held->table, "%s", id);
    weft_table_cell(held->table, "%s", item->lane);
    weft_table_cell(held->table, "%s", item->kind);
    weft_table_cell(held->table, "%d", item->attempt);
    weft_table_ago(held->table, item->claimed_us);
    weft_table_ago(held->table, item->lease_expires_us);
}

static enum weft_rc read_held(const struct held *held, struct weft *weft, const char *name,
                              struct weft_err *err)
{
    const struct weft_filter filter = {.worker = name, .state = WEFT_STATE_RUNNING};
    char next[WEFT_CURSOR_TEXT] = "";
    bool more = true;
    while (more) {
        struct weft_page page = {0};
        enum weft_rc rc =
            weft_list(weft, &filter, WEFT_PAGE_MAX, next[0] ? next : NULL, &page, err);
        if (rc)
            return rc;
        for (size_t i = 0; i < page.count; i++)
            put_held(held, &page.item[i]);
        more = page.next != NULL;
        (void)snprintf(next, sizeof(next), "%s", page.next ? page.next : "");
        weft_page_free(&page);
    }
    return WEFT_OK;
}

static enum weft_exit show_one(const struct weft_cli *cli, struct weft *weft,
                               const struct weft_worker_info *worker)
{
    static const struct weft_column column[] = {
        {.title = "ID"},
        {.title = "LANE", .give = 1},
        {.title = "KIND", .give = 2},
        {.title = "TRY", .align = WEFT_RIGHT},
        {.title = "CLAIMED", .align = WEFT_RIGHT},
        {.title = "LEASE ENDS", .align = WEFT_RIGHT},
    };
    struct weft_err err = {0};
    struct weft_json_out out;
    struct held held = {.cli = cli, .json = &out.json};
    bool json = weft_cli_json(cli);
    if (json) {
        weft_json_out_begin_items(&out);
        weft_wire_write(&weft_wire_worker, worker, &out.json);
        weft_json_end_array(&out.json);
        weft_json_key(&out.json, "holds");
        weft_json_begin_array(&out.json);
    } else {
        put_table(cli, worker, 1);
        held.table = weft_table_new(cli, column, WEFT_LEN(column));
    }
    enum weft_rc rc = read_held(&held, weft, worker->name, &err);
    if (json && rc)
        weft_buf_done(&out.buf);
    else if (json)
        weft_json_out_end_items(&out);
    else if (rc || worker->leases == 0)
        weft_table_free(held.table);
    else {
        putchar('\n');
        weft_table_print(held.table);
    }
    return rc ? weft_cli_fail(&err) : WEFT_EXIT_OK;
}

/* ---- All of them ----------------------------------------------------------------------------- */

static const struct weft_worker_info *find(const struct weft_workers *workers, const char *name)
{
    for (size_t i = 0; i < workers->count; i++)
        if (strcmp(workers->item[i].name, name) == 0)
            return &workers->item[i];
    return NULL;
}

static enum weft_exit not_there(const char *name)
{
    (void)fputs("weft: there is no worker '", stderr);
    weft_put_clean(stderr, name);
    (void)fputs("'\nhint: `weft workers` lists them\n", stderr);
    return WEFT_EXIT_NOT_FOUND;
}

static enum weft_exit list(const struct weft_cli *cli, struct weft *weft, const char *name)
{
    struct weft_err err = {0};
    struct weft_workers workers = {0};
    enum weft_exit code = WEFT_EXIT_OK;
    if (weft_workers(weft, &workers, &err))
        return weft_cli_fail(&err);
    if (name) {
        const struct weft_worker_info *worker = find(&workers, name);
        code = worker ? show_one(cli, weft, worker) : not_there(name);
    } else if (weft_cli_json(cli)) {
        weft_json_out_items(&weft_wire_worker, workers.item, sizeof(*workers.item), workers.count);
    } else {
        put_table(cli, workers.item, workers.count);
    }
    weft_workers_free(&workers);
    return code;
}

/* A worker that is not on the list may still hold leases. */
static enum weft_exit say_goodbye(const struct weft_cli *cli, struct weft *weft, const char *name)
{
    struct weft_err err = {0};
    struct weft_workers workers = {0};
    uint64_t released = 0;
    if (weft_workers(weft, &workers, &err))
        return weft_cli_fail(&err);
    bool listed = find(&workers, name) != NULL;
    weft_workers_free(&workers);
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
    const char *const *arg;
    const char *name = weft_cli_args(cli, &arg) > 0 ? arg[0] : NULL;
    struct weft *weft;
    enum weft_exit code;
    bool goodbye = weft_cli_has(cli, "goodbye");
    if (goodbye && !name)
        return weft_cli_usage(cli, "name the worker that is gone");
    if (!weft_cli_open(cli, &weft, &code))
        return code;
    return goodbye && name ? say_goodbye(cli, weft, name) : list(cli, weft, name);
}

const struct weft_command weft_command_workers = {
    .name = "workers",
    .args = "[NAME]",
    .args_max = 1,
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
            {.name = "goodbye", .about = "release the leases of this worker"},
            {.name = NULL},
        },
    .run = run_workers,
};
