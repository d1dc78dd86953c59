/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft token: makes, lists, rotates and revokes the bearer tokens of servers.
 *
 * It asks a server, as every command does, and works on a store only when that is named. The first
 * admin token of a server that asks for tokens can be made on its store alone. A secret is printed
 * once, alone on stdout; the store keeps its hash.
 */

#include "cmd/cli/cli.h"
#include "cmd/cli/output.h"
#include "cmd/cli/text.h"

#include "base/arena.h"
#include "base/base.h"
#include "base/limits.h"

#include <inttypes.h>
#include <string.h>

/* ---- What was typed -------------------------------------------------------------------------- */

struct request {
    enum weft_exit (*run)(const struct weft_cli *cli, struct weft *weft,
                          const struct request *request);
    int32_t id;                  /* rotate, revoke */
    struct weft_token_spec spec; /* create; of its expiry also rotate */
};

/* "read,submit" as a list. */
static void read_scopes(const struct weft_cli *cli, const char *text, struct weft_token_spec *spec)
{
    size_t most = 1;
    for (const char *c = text; *c; c++)
        most += *c == ',';
    const char **word = weft_new_array(cli->arena, const char *, most);
    for (const char *at = text;; at++) {
        size_t size = strcspn(at, ",");
        word[spec->scope_count++] = weft_arena_printf(cli->arena, "%.*s", (int)size, at);
        at += size;
        if (!*at)
            break;
    }
    spec->scopes = word;
}

/* A span from now, "90d" or "+90d", or a moment. */
static enum weft_exit read_expiry(const struct weft_cli *cli, struct weft_token_spec *spec)
{
    const char *text = weft_cli_get(cli, "expires");
    if (!text)
        return WEFT_EXIT_OK;
    if (weft_duration_typed(text[0] == '+' ? text + 1 : text, &spec->expires_ms)) {
        if (spec->expires_ms > 0 && spec->expires_ms <= WEFT_DELAY_MAX_MS)
            return WEFT_EXIT_OK;
        return weft_cli_usage(cli, "--expires is '%s': that is %s", text,
                              spec->expires_ms > 0 ? "too far away" : "now");
    }
    if (!weft_moment_typed(text, &spec->expires_us))
        return weft_cli_usage(cli, "--expires is '%s': it must be like 90d or 2031-01-31T12:00:00Z",
                              text);
    if (spec->expires_us <= weft_wall_us())
        return weft_cli_usage(cli, "--expires is '%s': that is past", text);
    return WEFT_EXIT_OK;
}

static enum weft_exit read_spec(const struct weft_cli *cli, struct weft_token_spec *spec)
{
    const char *scopes = weft_cli_get(cli, "scopes");
    spec->name = weft_cli_get(cli, "name");
    spec->ns = weft_cli_get(cli, "namespace");
    if (!spec->name)
        return weft_cli_usage(cli, "give the token a --name that tells whose it is");
    if (!scopes)
        return weft_cli_usage(cli, "say with --scopes what it may do: read,submit,work or admin");
    read_scopes(cli, scopes, spec);
    return read_expiry(cli, spec);
}

/* ---- What is done ---------------------------------------------------------------------------- */

static void put_secret(const struct weft_cli *cli, const struct weft_token *token, const char *note)
{
    if (weft_cli_json(cli)) {
        weft_json_out_item(&weft_wire_token_made, token);
        return;
    }
    printf("%s\n", token->token);
    (void)fflush(stdout);
    (void)fprintf(stderr, "token %d for ", token->id);
    weft_put_clean(stderr, token->name);
    (void)fprintf(stderr,
                  "%s; it is shown this once and cannot be read again\n"
                  "hint: put it into WEFT_TOKEN, or give it with --token\n",
                  note);
}

static enum weft_exit create(const struct weft_cli *cli, struct weft *weft,
                             const struct request *request)
{
    struct weft_err err = {0};
    struct weft_tokens made = {0};
    if (weft_token_create(weft, &request->spec, &made, &err))
        return weft_cli_fail(&err);
    put_secret(cli, made.item, "");
    weft_tokens_free(&made);
    return WEFT_EXIT_OK;
}

static enum weft_exit rotate(const struct weft_cli *cli, struct weft *weft,
                             const struct request *request)
{
    struct weft_err err = {0};
    struct weft_tokens made = {0};
    struct weft_token_rotation rotation = {.id = request->id,
                                           .expires_ms = request->spec.expires_ms,
                                           .expires_us = request->spec.expires_us};
    if (weft_cli_has(cli, "grace")) {
        rotation.grace_ms = weft_cli_ms(cli, "grace", 0, WEFT_DELAY_MAX_MS, 0);
        rotation.grace_ms = rotation.grace_ms ? rotation.grace_ms : -1;
    }
    if (weft_token_rotate(weft, &rotation, &made, &err))
        return weft_cli_fail(&err);
    const char *note = ", a new secret; the old one is refused";
    if (made.item->old_expires_us) {
        char ago[WEFT_AGO_TEXT];
        weft_ago(made.item->old_expires_us, weft_wall_us(), ago);
        note = weft_arena_printf(cli->arena, ", a new secret; the old one ends %s", ago);
    }
    put_secret(cli, made.item, note);
    weft_tokens_free(&made);
    return WEFT_EXIT_OK;
}

static void put_ago(struct weft_table *table, weft_usec moment_us)
{
    if (moment_us)
        weft_table_ago(table, moment_us);
    else
        weft_table_cell(table, "never");
}

static void put_table(const struct weft_cli *cli, const struct weft_tokens *tokens)
{
    static const struct weft_column column[] = {
        {.title = "ID", .align = WEFT_RIGHT},
        {.title = "NAME", .give = 3},
        {.title = "NAMESPACE", .give = 2},
        {.title = "SCOPES"},
        {.title = "CREATED", .align = WEFT_RIGHT, .give = 1},
        {.title = "USED", .align = WEFT_RIGHT},
        {.title = "EXPIRES", .align = WEFT_RIGHT},
    };
    struct weft_table *table = weft_table_new(cli, column, WEFT_LEN(column));
    for (size_t i = 0; i < tokens->count; i++) {
        const struct weft_token *token = &tokens->item[i];
        weft_table_cell(table, "%d", token->id);
        weft_table_cell(table, "%s", token->name);
        weft_table_cell(table, "%s", token->ns ? token->ns : "(any)");
        weft_table_cell(table, "%s",
                        weft_joined(cli->arena, token->scopes, token->scope_count, ","));
        weft_table_ago(table, token->created_us);
        put_ago(table, token->last_used_us);
        put_ago(table, token->expires_us);
    }
    weft_table_print(table);
}

static enum weft_exit list(const struct weft_cli *cli, struct weft *weft,
                           const struct request *request)
{
    (void)request;
    struct weft_err err = {0};
    struct weft_tokens tokens = {0};
    if (weft_tokens(weft, &tokens, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli))
        weft_json_out_items(&weft_wire_token, tokens.item, sizeof(*tokens.item), tokens.count);
    else
        put_table(cli, &tokens);
    weft_tokens_free(&tokens);
    return WEFT_EXIT_OK;
}

static enum weft_exit revoke(const struct weft_cli *cli, struct weft *weft,
                             const struct request *request)
{
    struct weft_err err = {0};
    if (weft_token_revoke(weft, request->id, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli))
        printf("{\"id\":%d,\"revoked\":true}\n", request->id);
    else
        printf("token %d is revoked; servers refuse it within a second\n", request->id);
    return WEFT_EXIT_OK;
}

/* ---- The command ----------------------------------------------------------------------------- */

/* Checks the whole command line before anything is opened. */
static enum weft_exit read_command(const struct weft_cli *cli, struct request *request)
{
    const char *const *arg;
    size_t count = weft_cli_args(cli, &arg);
    bool rotates = strcmp(arg[0], "rotate") == 0;
    int64_t id;
    if (rotates || strcmp(arg[0], "revoke") == 0) {
        request->run = rotates ? rotate : revoke;
        if (count != 2 || !weft_number_typed(arg[1], &id) || id < 1 || id > INT32_MAX)
            return weft_cli_usage(cli, "say which: `weft token %s ID`, as `weft token ls` shows it",
                                  arg[0]);
        request->id = (int32_t)id;
        return rotates ? read_expiry(cli, &request->spec) : WEFT_EXIT_OK;
    }
    if (count > 1)
        return weft_cli_usage(cli, "'%s' takes no argument", arg[0]);
    if (strcmp(arg[0], "create") == 0)
        return read_spec(cli, &request->spec);
    request->run = list;
    if (strcmp(arg[0], "ls") == 0 || strcmp(arg[0], "list") == 0)
        return WEFT_EXIT_OK;
    return weft_cli_usage(cli, "'%s' is neither create, ls, rotate nor revoke", arg[0]);
}

static enum weft_exit run_token(struct weft_cli *cli)
{
    struct request request = {.run = create};
    struct weft *weft;
    enum weft_exit code = read_command(cli, &request);
    if (code != WEFT_EXIT_OK || !weft_cli_open(cli, &weft, &code))
        return code;
    return request.run(cli, weft, &request);
}

const struct weft_command weft_command_token = {
    .name = "token",
    .args = "create|ls|rotate|revoke [ID]",
    .args_min = 1,
    .args_max = 2,
    .summary = "make, list, rotate and revoke the tokens of a server",
    .about =
        "Asks the server, with a token that has the scope admin where it wants tokens; with "
        "--store it works on the store itself. The first admin token of a server that listens on "
        "anything but loopback can only be made in that way. A token is printed once, on "
        "standard output; the store holds only a hash of it.\n\n"
        "The scopes are read, submit, work and admin; admin means all of them. With --namespace "
        "the token is good for that namespace only, and as an admin token it manages only tokens "
        "of that namespace. No token hands out more than it has itself.\n\n"
        "Rotating gives a token another secret. The old one is refused at once, or after --grace; "
        "the token that the command itself uses has a grace of a minute where none is given.",
    .example =
        "weft token create --store sqlite:weft.db --name me --scopes admin\n"
        "weft token create --name billing --scopes submit,read --expires 90d\n"
        "weft token ls\nweft token rotate 3 --grace 1h\nweft token revoke 3",
    .option =
        (const struct weft_option[]){
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
             .value = "TIME",
             .about =
                 "create, rotate: how long, like 90d, or until when; default: for ever, as before"},
            {.name = "grace",
             .value = "TIME",
             .about = "rotate: how long the old secret stays good"},
            {.name = NULL},
        },
    .run = run_token,
};
