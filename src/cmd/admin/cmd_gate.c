/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft gate: the limits of gates and classes, what is in them, and setting it. Settings are
 * replaced as a whole: what the command line does not name is read first and put back.
 */

#include "base/limits.h"
#include "cmd/admin/limit_args.h"

#include <inttypes.h>
#include <string.h>

/* ---- Looking --------------------------------------------------------------------------------- */

static void put_limits(struct weft_table *table, const void *item)
{
    const struct weft_gate *gate = item;
    const struct weft_limits *limits = &gate->limits;
    if (limits->max_running > 0)
        weft_table_cell(table, "%" PRId64, limits->max_running);
    else
        weft_table_cell(table, "-");
    weft_table_cell(table, "%s", weft_window_text(weft_table_arena(table), &limits->window));
    weft_table_cell(table, "%s", weft_rate_text(weft_table_arena(table), &limits->rate));
}

#define AT(member) offsetof(struct weft_gate, member)
static const struct weft_column columns[] = {
    {"GATE", WEFT_LEFT, 2, weft_cell_text, AT(name)},
    {"LIMIT", WEFT_RIGHT, 0, put_limits, 0},
    {"WINDOW", WEFT_RIGHT, 0, NULL, 0},
    {"RATE", WEFT_RIGHT, 1, NULL, 0},
    {"RUNNING", WEFT_RIGHT, 0, weft_cell_u64, AT(running)},
    {"READY", WEFT_RIGHT, 0, weft_cell_u64, AT(ready)},
    {"HELD", WEFT_RIGHT, 0, weft_cell_u64, AT(held)},
};

static enum weft_exit show_one(const struct weft_cli *cli, struct weft *weft, const char *name)
{
    struct weft_err err = {0};
    struct weft_gate gate;
    if (weft_gate_get(weft, name, &gate, &err))
        return weft_cli_fail(&err);
    const struct weft_gates one = {.item = &gate, .count = 1};
    if (weft_cli_json(cli))
        weft_json_out_item(&weft_wire_gate, &gate);
    else
        weft_cli_put_list(cli, WEFT_LIST(columns, weft_wire_gate, one));
    return WEFT_EXIT_OK;
}

static enum weft_exit show_all(const struct weft_cli *cli, struct weft *weft)
{
    struct weft_err err = {0};
    struct weft_gates gates = {0};
    if (weft_gates(weft, weft_cli_get(cli, "prefix"), WEFT_PAGE_MAX, NULL, &gates, &err))
        return weft_cli_fail(&err);
    weft_cli_put_list(cli, WEFT_LIST(columns, weft_wire_gate, gates));
    if (gates.next && !weft_cli_json(cli))
        printf("and more: use --prefix\n");
    weft_gates_free(&gates);
    return WEFT_EXIT_OK;
}

/* ---- Setting --------------------------------------------------------------------------------- */

static enum weft_exit set(const struct weft_cli *cli, struct weft *weft, const char *name)
{
    struct weft_err err = {0};
    struct weft_gate gate = {.name = name};
    enum weft_rc rc = weft_gate_get(weft, name, &gate, &err);
    if (rc && rc != WEFT_NOT_FOUND)
        return weft_cli_fail(&err);
    struct weft_limits *limits = &gate.limits;
    limits->max_running = weft_cli_i64(cli, "max-running", 0, 1000000000, limits->max_running);
    weft_limit_args_read(cli, &limits->window, &limits->rate);
    if (weft_gate_put(weft, &gate, &err))
        return weft_cli_fail(&err);
    return show_one(cli, weft, name);
}

static enum weft_exit remove_settings(const struct weft_cli *cli, struct weft *weft,
                                      const char *name)
{
    struct weft_err err = {0};
    if (weft_gate_remove(weft, name, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli)) {
        struct weft_json_out out;
        weft_json_out_begin_object(&out);
        weft_json_add_text(&out.json, "gate", name);
        weft_json_add_bool(&out.json, "removed", true);
        weft_json_out_end_object(&out);
    } else {
        printf("gate %s has no limits of its own any more\n", name);
    }
    return WEFT_EXIT_OK;
}

static enum weft_exit run_gate(struct weft_cli *cli)
{
    static const char *const changes[] = {"max-running", "window", "rate", "burst"};
    const char *name = cli->arg[0];
    bool removal = weft_cli_has(cli, "remove"), change = false;
    for (size_t i = 0; i < WEFT_LEN(changes); i++)
        change |= weft_cli_has(cli, changes[i]);
    if (removal && change)
        weft_cli_usage(cli, "--remove and a limit exclude each other");
    if ((removal || change) && !name)
        weft_cli_usage(cli, "name the gate or class that is to be changed");
    if (name && weft_cli_has(cli, "prefix"))
        weft_cli_usage(cli, "--prefix is for the list: give it without a name");
    struct weft *weft = weft_cli_open(cli);
    return removal  ? remove_settings(cli, weft, name)
           : change ? set(cli, weft, name)
           : name   ? show_one(cli, weft, name)
                    : show_all(cli, weft);
}

const struct weft_command weft_command_gate = {
    .name = "gate",
    .args = "[NAME]",
    .summary = "show gates, limit how many of a key run and how often they start",
    .about =
        "An execution may name a gate, for example customer:42 (weft submit --gate). The part "
        "before the first colon is its class. Limits belong to a class, and then hold for each of "
        "its gates, or to one gate, and then replace the limits of its class. An execution that "
        "its gate does not admit yet is held; the highest priority goes first, then the oldest.\n\n"
        "A limit that no option names stays as it is. A changed limit holds at once for what "
        "waits; what was admitted before stays admitted. With --remove the limits go.\n\n"
        "The columns are LIMIT, of what is ready or running at a time; WINDOW, of starts in any "
        "span; RATE, of starts on average; RUNNING, READY and HELD, how many executions are so "
        "now, for a class over all its gates.",
    .example =
        "weft gate\nweft gate customer --max-running 1\nweft gate api:github --window "
        "100/1m\nweft gate mail --rate 10/1s --burst 50\nweft gate api:github --remove",
    .option =
        (const struct weft_option[]){
            {"max-running", 0, "N", "ready and running ones at a time; 0: no limit", NULL},
            WEFT_LIMIT_OPTIONS,
            {"prefix", 0, "TEXT", "list only names that begin so", NULL},
            {"remove", 0, NULL, "remove its limits", NULL},
            {.name = NULL},
        },
    .run = run_gate,
};
