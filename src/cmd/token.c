/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft token: makes, lists and revokes the bearer tokens of servers.
 *
 * It works on the store itself, so whoever can open the store is the one who hands out tokens. The
 * secret is printed once, alone on stdout; the store keeps its hash.
 */

#include "cmd/json.h"
#include "cmd/line.h"
#include "cmd/settings.h"

#include "base/arena.h"
#include "base/base.h"
#include "core/spec.h"
#include "core/token.h"
#include "engine/ops.h"

#include <inttypes.h>
#include <string.h>

static void put_token_json(const struct weft_token_row *row, const char *secret,
                           struct weft_json_writer *json)
{
    char scopes[WEFT_SCOPES_TEXT];
    weft_scopes_print(row->scopes, scopes);
    weft_json_begin_object(json);
    weft_json_key(json, "id");
    weft_json_put_i64(json, row->id);
    weft_json_key(json, "name");
    weft_json_put_text(json, row->name);
    weft_json_key(json, "namespace");
    weft_json_put_text(json, row->ns);
    weft_json_key(json, "scopes");
    weft_json_put_text(json, scopes);
    weft_json_key(json, "created_at");
    weft_wire_put_moment(json, row->created_us);
    weft_json_key(json, "expires_at");
    weft_wire_put_moment(json, row->expires_us);
    if (secret) {
        weft_json_key(json, "token");
        weft_json_put_text(json, secret);
    }
    weft_json_end_object(json);
}

/* ---- create ---------------------------------------------------------------------------------- */

/* What is to be made, from the options. */
static enum weft_exit read_wish(const struct weft_cli *cli, struct weft_token_row *row)
{
    struct weft_err err = {0};
    const char *scopes = weft_cli_get(cli, "scopes"), *expires = weft_cli_get(cli, "expires");
    row->name = weft_cli_get(cli, "name");
    row->ns = weft_cli_get(cli, "namespace");
    if (!row->name)
        return weft_cli_usage(cli, "give the token a --name that tells whose it is");
    if (!scopes)
        return weft_cli_usage(cli, "say with --scopes what it may do: read,submit,work or admin");
    if (weft_scopes_parse(scopes, &row->scopes, &err) || weft_name_check(row->name, "name", &err) ||
        (row->ns && weft_name_check(row->ns, "namespace", &err)))
        return weft_cli_fail(&err);
    if (!expires)
        return WEFT_EXIT_OK;
    if (!weft_moment_typed(expires, &row->expires_us))
        return weft_cli_usage(
            cli, "--expires is '%s': it must be like +30d or 2031-01-31T12:00:00Z", expires);
    if (row->expires_us <= weft_wall_us())
        return weft_cli_usage(cli, "--expires is '%s': that is past", expires);
    return WEFT_EXIT_OK;
}

static enum weft_exit create(const struct weft_cli *cli, struct weft_engine *engine,
                             struct weft_token_row *row)
{
    struct weft_err err = {0};
    char secret[WEFT_TOKEN_SECRET + 1], text[WEFT_TOKEN_TEXT];
    weft_token_secret(secret);
    weft_token_hash(secret, row->hash);
    if (weft_engine_token_add(engine, row, &err))
        return weft_cli_fail(&err);
    weft_token_print(row->id, secret, text);
    if (weft_cli_json(cli)) {
        struct weft_json_out out;
        weft_json_out_begin(&out);
        put_token_json(row, text, &out.json);
        weft_json_out_end(&out);
    } else {
        printf("%s\n", text);
        (void)fprintf(stderr,
                      "token %d for %s; it is shown this once and cannot be read again\n"
                      "hint: put it into WEFT_TOKEN, or give it with --token\n",
                      row->id, row->name);
    }
    explicit_bzero(secret, sizeof(secret));
    explicit_bzero(text, sizeof(text));
    return WEFT_EXIT_OK;
}

/* ---- ls, revoke ------------------------------------------------------------------------------ */

static void put_table(const struct weft_cli *cli, const struct weft_token_rows *rows)
{
    static const struct weft_column column[] = {
        {.title = "ID", .align = WEFT_RIGHT},
        {.title = "NAME", .give = 3},
        {.title = "NAMESPACE", .give = 2},
        {.title = "SCOPES"},
        {.title = "CREATED", .align = WEFT_RIGHT, .give = 1},
        {.title = "EXPIRES", .align = WEFT_RIGHT},
    };
    struct weft_table *table = weft_table_new(cli, column, WEFT_LEN(column));
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_token_row *row = &rows->item[i];
        char scopes[WEFT_SCOPES_TEXT];
        weft_scopes_print(row->scopes, scopes);
        weft_table_cell(table, "%d", row->id);
        weft_table_cell(table, "%s", row->name);
        weft_table_cell(table, "%s", row->ns ? row->ns : "(any)");
        weft_table_cell(table, "%s", scopes);
        weft_table_ago(table, row->created_us);
        if (row->expires_us)
            weft_table_ago(table, row->expires_us);
        else
            weft_table_cell(table, "never");
    }
    weft_table_print(table);
}

static enum weft_exit list(const struct weft_cli *cli, struct weft_engine *engine)
{
    struct weft_err err = {0};
    struct weft_token_rows rows = {0};
    struct weft_json_out out;
    if (weft_engine_tokens(engine, cli->arena, &rows, &err))
        return weft_cli_fail(&err);
    if (!weft_cli_json(cli)) {
        put_table(cli, &rows);
        return WEFT_EXIT_OK;
    }
    weft_json_out_begin_items(&out);
    for (size_t i = 0; i < rows.count; i++)
        put_token_json(&rows.item[i], NULL, &out.json);
    weft_json_out_end_items(&out);
    return WEFT_EXIT_OK;
}

static enum weft_exit revoke(const struct weft_cli *cli, struct weft_engine *engine, int32_t id)
{
    struct weft_err err = {0};
    if (weft_engine_token_revoke(engine, id, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli))
        printf("{\"id\":%d,\"revoked\":true}\n", id);
    else
        printf("token %d is revoked; servers refuse it within seconds\n", id);
    return WEFT_EXIT_OK;
}

/* ---- The command ----------------------------------------------------------------------------- */

enum action { CREATE, LIST, REVOKE };

struct wish {
    enum action action;
    struct weft_token_row row; /* create; revoke: its id */
};

/* All that the command line can get wrong, before the store is opened. */
static enum weft_exit read_command(const struct weft_cli *cli, struct wish *wish)
{
    const char *const *arg;
    size_t count = weft_cli_args(cli, &arg);
    int64_t id;
    if (strcmp(arg[0], "revoke") == 0) {
        wish->action = REVOKE;
        if (count != 2 || !weft_number_typed(arg[1], &id) || id < 1 || id > INT32_MAX)
            return weft_cli_usage(cli,
                                  "say which: `weft token revoke ID`, as `weft token ls` "
                                  "shows it");
        wish->row.id = (int32_t)id;
        return WEFT_EXIT_OK;
    }
    if (count > 1)
        return weft_cli_usage(cli, "'%s' takes no argument", arg[0]);
    if (strcmp(arg[0], "create") == 0)
        return read_wish(cli, &wish->row);
    wish->action = LIST;
    return strcmp(arg[0], "ls") == 0
               ? WEFT_EXIT_OK
               : weft_cli_usage(cli, "'%s' is neither create, ls nor revoke", arg[0]);
}

static enum weft_exit run_token(struct weft_cli *cli)
{
    struct weft_err err = {0};
    struct wish wish = {.action = CREATE};
    struct weft_engine *engine;
    enum weft_exit code = read_command(cli, &wish);
    if (code != WEFT_EXIT_OK)
        return code;
    const struct weft_engine_config config = {.url = weft_settings_store(cli, cli->arena)};
    if (!config.url)
        return WEFT_EXIT_USAGE;
    if (weft_engine_open(&config, &engine, &err))
        return weft_cli_fail(&err);
    switch (wish.action) {
    case CREATE:
        code = create(cli, engine, &wish.row);
        break;
    case LIST:
        code = list(cli, engine);
        break;
    case REVOKE:
        code = revoke(cli, engine, wish.row.id);
        break;
    }
    weft_engine_close(engine);
    return code;
}

const struct weft_command weft_command_token = {
    .name = "token",
    .args = "create|ls|revoke [ID]",
    .args_min = 1,
    .args_max = 2,
    .no_store = true,
    .summary = "make, list and revoke the tokens of a server",
    .about =
        "Works on the store itself: the one of --store, or the one that `weft serve` would "
        "open here. A token is printed once, on standard output; the store holds only a hash "
        "of it. Servers need tokens as soon as they listen on anything but loopback.\n\n"
        "The scopes are read, submit, work and admin; admin means all of them. With "
        "--namespace the token is good for that namespace only.",
    .example =
        "weft token create --name billing --scopes submit,read --expires +90d\n"
        "weft token ls\nweft token revoke 3",
    .option =
        (const struct weft_option[]){
            {.name = "store", .value = "URL", .about = "the store: sqlite:PATH or postgres://..."},
            {.name = "name", .value = "NAME", .about = "create: whose it is"},
            {.name = "scopes",
             .value = "LIST",
             .about = "create: what it may do, separated by commas",
             .complete = "read submit work admin read,submit"},
            {.name = "namespace",
             .letter = 'n',
             .value = "NAME",
             .about = "create: where it is good; default: everywhere"},
            {.name = "expires",
             .value = "MOMENT",
             .about = "create: until when, like +90d; default: for ever"},
            {.name = NULL},
        },
    .run = run_token,
};
