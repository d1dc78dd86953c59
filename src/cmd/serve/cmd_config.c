/* SPDX-License-Identifier: Apache-2.0 */

/* weft config: the settings of the server and where each came from. */

#include "cmd/serve/settings.h"

#include "cmd/cli/cli_json.h"
#include "cmd/cli/table.h"

#include "base/arena.h"
#include "base/str.h"

static void put_json(const struct weft_setting_value *value, struct weft_arena *arena)
{
    struct weft_json_out out;
    weft_json_out_begin_items(&out);
    for (size_t i = 0; i < weft_setting_count; i++) {
        weft_json_begin_object(&out.json);
        weft_json_add_text(&out.json, "name", weft_settings[i].name);
        weft_json_add_text(&out.json, "value", weft_url_masked(value[i].text, arena));
        weft_json_add_text(&out.json, "from", value[i].from);
        weft_json_end_object(&out.json);
    }
    weft_json_out_end_items(&out);
}

static void put_table(const struct weft_cli *cli, const struct weft_setting_value *value,
                      struct weft_arena *arena)
{
    static const struct weft_column column[] = {
        {.title = "NAME"},
        {.title = "VALUE", .give = 2},
        {.title = "FROM", .give = 3},
        {.title = "MEANING", .give = 1},
    };
    struct weft_table *table = weft_table_new(cli, column, 4);
    for (size_t i = 0; i < weft_setting_count; i++) {
        const char *shown = weft_url_masked(value[i].text, arena);
        weft_table_cell(table, "%s", weft_settings[i].name);
        weft_table_cell(table, "%s", shown[0] ? shown : "-");
        weft_table_cell(table, "%s", value[i].from);
        weft_table_cell(table, "%s", weft_settings[i].about);
    }
    weft_table_print(table);
}

static enum weft_exit run_config(struct weft_cli *cli)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_serve_settings settings;
    struct weft_setting_value *value =
        weft_new_array(arena, struct weft_setting_value, weft_setting_count);
    bool good = weft_settings_read(cli, arena, value, &settings);
    if (good && weft_cli_json(cli))
        put_json(value, arena);
    else if (good)
        put_table(cli, value, arena);
    weft_arena_free(arena);
    return good ? WEFT_EXIT_OK : WEFT_EXIT_USAGE;
}

const struct weft_command weft_command_config = {
    .name = "config",
    .args = "",
    .no_store = true,
    .summary = "show the settings of the server and where each came from",
    .about =
        "Takes the flags of `weft serve` and reads the same environment and file. A flag beats a "
        "variable, a variable beats the file, the file beats the default. The file is the one "
        "named by --config or WEFT_CONFIG, else ./weft.conf, else /etc/weft.conf; its lines are "
        "`name = value`, and # begins a comment. Passwords are not shown.",
    .example = "weft config\nweft config --config /etc/weft.conf --json",
    .option = weft_serve_options + 1,
    .run = run_config,
};
