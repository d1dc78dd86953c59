/* SPDX-License-Identifier: Apache-2.0 */

/* weft workers: who works, on what, and when it was last heard of. */

#include "cmd/json.h"
#include "cmd/line.h"

#include "base/arena.h"
#include "base/base.h"

#include <inttypes.h>
#include <string.h>

static const char *joined(struct weft_arena *arena, const char *const *word, size_t count)
{
    const char *text = "";
    for (size_t i = 0; i < count; i++)
        text = weft_arena_printf(arena, "%s%s%s", text, i ? " " : "", word[i]);
    return text;
}

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
        weft_table_cell(table, "%s", joined(cli->arena, worker[i].lanes, worker[i].lane_count));
        weft_table_cell(table, "%s",
                        joined(cli->arena, worker[i].capabilities, worker[i].capability_count));
    }
    weft_table_print(table);
}

static enum weft_exit list(const struct weft_cli *cli, struct weft *weft, const char *name)
{
    struct weft_err err = {0};
    struct weft_workers workers = {0};
    struct weft_json_out out;
    if (weft_workers(weft, &workers, &err))
        return weft_cli_fail(&err);
    const struct weft_worker_info *worker = workers.item;
    size_t count = workers.count;
    for (size_t i = 0; name && i < workers.count; i++)
        if (strcmp(workers.item[i].name, name) == 0)
            worker = &workers.item[i];
    bool found = !name || (count > 0 && strcmp(worker->name, name) == 0);
    if (name)
        count = found ? 1 : 0;
    if (!found)
        (void)fprintf(stderr, "weft: there is no worker '%s'\n", name);
    else if (!weft_cli_json(cli))
        put_table(cli, worker, count);
    if (found && weft_cli_json(cli)) {
        weft_json_out_begin_items(&out);
        for (size_t i = 0; i < count; i++)
            weft_wire_write(&weft_wire_worker, &worker[i], &out.json);
        weft_json_out_end_items(&out);
    }
    weft_workers_free(&workers);
    return found ? WEFT_EXIT_OK : WEFT_EXIT_NOT_FOUND;
}

static enum weft_exit say_goodbye(const struct weft_cli *cli, struct weft *weft, const char *name)
{
    struct weft_err err = {0};
    uint64_t released = 0;
    if (weft_goodbye(weft, name, &released, &err))
        return weft_cli_fail(&err);
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
    if (weft_cli_has(cli, "goodbye") && !name)
        return weft_cli_usage(cli, "name the worker that is gone");
    if (!weft_cli_open(cli, &weft, &code))
        return code;
    code = weft_cli_has(cli, "goodbye") ? say_goodbye(cli, weft, name) : list(cli, weft, name);
    weft_close(weft);
    return code;
}

const struct weft_command weft_command_workers = {
    .name = "workers",
    .args = "[NAME]",
    .args_max = 1,
    .summary = "show workers and what they hold",
    .about =
        "Workers are known from their claims and heartbeats through a server. --goodbye "
        "releases all leases of a worker at once, for one that is known to be gone: what it "
        "held can be claimed without waiting for its leases to run out.",
    .example = "weft workers\nweft workers host-1-4711 --goodbye",
    .option =
        (const struct weft_option[]){
            {.name = "goodbye", .about = "release the leases of this worker"},
            {.name = NULL},
        },
    .run = run_workers,
};
