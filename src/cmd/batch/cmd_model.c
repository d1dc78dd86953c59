/* SPDX-License-Identifier: Apache-2.0 */

/* weft model: where the lines of batches go, by the model that they name. */

#include "base/limits.h"
#include "cmd/cli/output.h"

#include <string.h>

static void put_limit(struct weft_table *table, const void *item)
{
    const struct weft_model *model = item;
    if (model->max_running > 0)
        weft_table_cell(table, "%d", model->max_running);
    else
        weft_table_cell(table, "-");
}

#define AT(member) offsetof(struct weft_model, member)
static const struct weft_column columns[] = {
    {"MODEL", WEFT_LEFT, 0, weft_cell_text, AT(name)},
    {"ENDPOINT", WEFT_LEFT, 1, weft_cell_text, AT(endpoint)},
    {"LANE", WEFT_LEFT, 1, weft_cell_text, AT(lane)},
    {"LIMIT", WEFT_RIGHT, 0, put_limit, 0},
    {"ESCALATES TO", WEFT_LEFT, 2, weft_cell_text, AT(escalate_to)},
};
#undef AT

static enum weft_exit list_models(struct weft_cli *cli, struct weft *weft)
{
    struct weft_err err = {0};
    struct weft_json_out out;
    struct weft_table *table =
        weft_cli_json(cli) ? NULL : weft_table_new(cli, columns, WEFT_LEN(columns));
    char next[WEFT_CURSOR_TEXT] = "";
    enum weft_rc rc = WEFT_OK;
    if (!table)
        weft_json_out_begin_items(&out);
    do {
        struct weft_models models = {0};
        rc = weft_models(weft, NULL, WEFT_PAGE_MAX, *next ? next : NULL, &models, &err);
        for (size_t i = 0; i < models.count; i++) {
            if (table)
                weft_table_row(table, &models.item[i]);
            else
                weft_wire_write(&weft_wire_model, &models.item[i], &out.json);
        }
        (void)snprintf(next, sizeof(next), "%s", models.next ? models.next : "");
        weft_models_free(&models);
    } while (!rc && *next);
    if (table && rc)
        weft_table_free(table);
    else if (table)
        weft_table_print(table);
    else if (rc)
        weft_json_out_drop(&out);
    else
        weft_json_out_end_items(&out);
    return rc ? weft_cli_fail(&err) : WEFT_EXIT_OK;
}

static enum weft_exit show_model(const struct weft_cli *cli, struct weft *weft, const char *name)
{
    struct weft_err err = {0};
    struct weft_models models = {0};
    if (weft_models(weft, name, 0, NULL, &models, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli))
        weft_json_out_item(&weft_wire_model, models.item);
    else
        weft_cli_put_list(cli, WEFT_LIST(columns, weft_wire_model, models));
    weft_models_free(&models);
    return WEFT_EXIT_OK;
}

/* What no option names stays as it is. */
static enum weft_exit put_model(struct weft_cli *cli, struct weft *weft, const char *name)
{
    struct weft_err err = {0};
    struct weft_models now = {0};
    struct weft_model model = {.name = name};
    enum weft_rc rc = weft_models(weft, name, 0, NULL, &now, &err);
    if (rc && rc != WEFT_NOT_FOUND)
        return weft_cli_fail(&err);
    if (!rc)
        model = now.item[0];
    if (weft_cli_has(cli, "endpoint"))
        model.endpoint = weft_cli_get(cli, "endpoint");
    if (weft_cli_has(cli, "lane"))
        model.lane = weft_cli_get(cli, "lane");
    if (weft_cli_has(cli, "escalate-to"))
        model.escalate_to = weft_cli_get(cli, "escalate-to");
    if (model.escalate_to && strcmp(model.escalate_to, "none") == 0)
        model.escalate_to = NULL;
    model.max_running = (int32_t)weft_cli_i64(cli, "max-running", 0, INT32_MAX, model.max_running);
    if (!model.endpoint)
        weft_cli_usage(cli,
                       "there is no model '%s' yet: say where its calls go, with --endpoint, "
                       "as `weft endpoint ls` lists them",
                       name);
    rc = weft_model_put(weft, &model, &err);
    weft_models_free(&now);
    return rc ? weft_cli_fail(&err) : show_model(cli, weft, name);
}

static enum weft_exit remove_model(const struct weft_cli *cli, struct weft *weft, const char *name)
{
    struct weft_err err = {0};
    if (weft_model_remove(weft, name, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli)) {
        struct weft_json_out out;
        weft_json_out_begin_object(&out);
        weft_json_add_text(&out.json, "model", name);
        weft_json_add_bool(&out.json, "removed", true);
        weft_json_out_end_object(&out);
    } else {
        printf("model %s is removed\n", name);
    }
    return WEFT_EXIT_OK;
}

static enum weft_exit run_model(struct weft_cli *cli)
{
    const char *action = cli->arg[0], *name = cli->arg_count > 1 ? cli->arg[1] : NULL;
    if (!weft_is_word(action, "put ls list show rm"))
        weft_cli_usage(cli, "'%s' is neither put, ls, show nor rm", action);
    bool list = weft_is_word(action, "ls list"), put = strcmp(action, "put") == 0;
    if (list && name)
        weft_cli_usage(cli, "'%s' takes no name; 'show' does", action);
    if (!list && !name)
        weft_cli_usage(cli, "'%s' needs the name of a model, or '*' for every other one", action);
    if (!put && (weft_cli_has(cli, "endpoint") || weft_cli_has(cli, "lane") ||
                 weft_cli_has(cli, "max-running") || weft_cli_has(cli, "escalate-to")))
        weft_cli_usage(cli, "options of put do not go with '%s'", action);
    struct weft *weft = weft_cli_open(cli);
    return list                        ? list_models(cli, weft)
           : put                       ? put_model(cli, weft, name)
           : strcmp(action, "rm") == 0 ? remove_model(cli, weft, name)
                                       : show_model(cli, weft, name);
}

const struct weft_command weft_command_model = {
    .name = "model",
    .args = "put|ls|show|rm [NAME]",
    .summary = "say where the lines of batches go, by the model that they name",
    .about =
        "A line of a batch names a model in its body. The model says to which endpoint its call "
        "goes (weft endpoint), and in which lane. The model '*' is that of every line whose model "
        "has no row of its own.\n\n"
        "put makes a model or changes it: what no option names stays as it is. --max-running is a "
        "setting of the lane: so many calls run at a time, over all servers. Lines that have been "
        "read stay as they are.",
    .example =
        "weft model put gpt-4o --endpoint openai --max-running 100\n"
        "weft model put '*' --endpoint local\nweft model ls\nweft model rm gpt-4o",
    .option =
        (const struct weft_option[]){
            {"endpoint", 0, "NAME", "put: the endpoint that its calls go to", NULL},
            {"lane", 0, "NAME", "put: the lane of its calls; default: named as the model", NULL},
            {"max-running", 0, "N", "put: calls at a time; 0: no limit", NULL},
            {"escalate-to", 0, "NAME",
             "put: the model of lines that have not begun near the end of the window; or none",
             NULL},
            {.name = NULL},
        },
    .run = run_model,
};
