/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft token: makes, lists, rotates and revokes the bearer tokens of servers.
 *
 * It asks a server, as every command does, and works on a store only when that is named. The first
 * admin token of a server that asks for tokens can be made on its store alone. A secret is printed
 * once, alone on stdout; the store keeps its hash.
 */

#include "base/limits.h"
#include "cmd/cli/output.h"

#include <string.h>

/* A span from now, "90d" or "+90d", or a moment. */
static void read_expiry(const struct weft_cli *cli, struct weft_token_spec *spec)
{
    const char *text = weft_cli_get(cli, "expires");
    if (!text)
        return;
    if (weft_duration_typed(text[0] == '+' ? text + 1 : text, &spec->expires_ms)) {
        if (spec->expires_ms <= 0 || spec->expires_ms > WEFT_DELAY_MAX_MS)
            weft_cli_usage(cli, "--expires is '%s': that is %s", text,
                           spec->expires_ms > 0 ? "too far away" : "now");
        return;
    }
    if (!weft_moment_typed(text, &spec->expires_us))
        weft_cli_usage(cli, "--expires is '%s': it must be like 90d or 2031-01-31T12:00:00Z", text);
    if (spec->expires_us <= weft_wall_us())
        weft_cli_usage(cli, "--expires is '%s': that is past", text);
}

static int32_t read_id(const struct weft_cli *cli)
{
    int64_t id;
    if (cli->arg_count != 2 || !weft_number_typed(cli->arg[1], &id) || id < 1 || id > INT32_MAX)
        weft_cli_usage(cli, "say which: `weft token %s ID`, as `weft token ls` shows it",
                       cli->arg[0]);
    return (int32_t)id;
}

static void put_secret(const struct weft_cli *cli, const struct weft_token *token, const char *note)
{
    if (weft_cli_json(cli)) {
        weft_json_out_item(&weft_wire_token_made, token);
        return;
    }
    printf("%s\n", token->token);
    weft_cli_say("token %d for %s%s; it is shown this once and cannot be read again", token->id,
                 token->name, note);
    weft_cli_say("hint: put it into WEFT_TOKEN, or give it with --token");
}

static enum weft_exit create(struct weft_cli *cli)
{
    struct weft_err err = {0};
    struct weft_tokens made = {0};
    struct weft_token_spec spec = {.name = weft_cli_get(cli, "name"),
                                   .ns = weft_cli_get(cli, "namespace")};
    const char *scopes = weft_cli_get(cli, "scopes");
    if (!spec.name)
        weft_cli_usage(cli, "give the token a --name that tells whose it is");
    if (!scopes)
        weft_cli_usage(cli, "say with --scopes what it may do: read,submit,work or admin");
    const char **word = weft_new_array(cli->arena, const char *, strlen(scopes) + 1);
    for (char *rest = weft_arena_strdup(cli->arena, scopes); rest;)
        word[spec.scope_count++] = strsep(&rest, ",");
    spec.scopes = word;
    read_expiry(cli, &spec);
    if (weft_token_create(weft_cli_open(cli), &spec, &made, &err))
        return weft_cli_fail(&err);
    put_secret(cli, made.item, "");
    weft_tokens_free(&made);
    return WEFT_EXIT_OK;
}

static enum weft_exit rotate(struct weft_cli *cli)
{
    struct weft_err err = {0};
    struct weft_tokens made = {0};
    struct weft_token_spec spec = {0}; /* its expiry */
    struct weft_token_rotation rotation = {.id = read_id(cli)};
    read_expiry(cli, &spec);
    rotation.expires_ms = spec.expires_ms;
    rotation.expires_us = spec.expires_us;
    if (weft_cli_has(cli, "grace")) {
        rotation.grace_ms = weft_cli_ms(cli, "grace", 0, WEFT_DELAY_MAX_MS, 0);
        rotation.grace_ms = rotation.grace_ms ? rotation.grace_ms : -1;
    }
    if (weft_token_rotate(weft_cli_open(cli), &rotation, &made, &err))
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

static void put_rights(struct weft_table *table, const void *item)
{
    const struct weft_token *token = item;
    weft_table_cell(table, "%s", token->ns ? token->ns : "(any)");
    weft_table_cell(table, "%s",
                    weft_joined(weft_table_arena(table), token->scopes, token->scope_count, ","));
}

#define AT(member) offsetof(struct weft_token, member)
static const struct weft_column columns[] = {
    {"ID", WEFT_RIGHT, 0, weft_cell_i32, AT(id)},
    {"NAME", WEFT_LEFT, 3, weft_cell_text, AT(name)},
    {"NAMESPACE", WEFT_LEFT, 2, put_rights, 0},
    {"SCOPES", WEFT_LEFT, 0, NULL, 0},
    {"CREATED", WEFT_RIGHT, 1, weft_cell_ago, AT(created_us)},
    {"USED", WEFT_RIGHT, 0, weft_cell_ever, AT(last_used_us)},
    {"EXPIRES", WEFT_RIGHT, 0, weft_cell_ever, AT(expires_us)},
};

static enum weft_exit list(struct weft_cli *cli)
{
    struct weft_err err = {0};
    struct weft_tokens tokens = {0};
    if (weft_tokens(weft_cli_open(cli), &tokens, &err))
        return weft_cli_fail(&err);
    weft_cli_put_list(cli, WEFT_LIST(columns, weft_wire_token, tokens));
    weft_tokens_free(&tokens);
    return WEFT_EXIT_OK;
}

static enum weft_exit revoke(struct weft_cli *cli)
{
    struct weft_err err = {0};
    int32_t id = read_id(cli);
    if (weft_token_revoke(weft_cli_open(cli), id, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli))
        printf("{\"id\":%d,\"revoked\":true}\n", id);
    else
        printf("token %d is revoked; servers refuse it within a second\n", id);
    return WEFT_EXIT_OK;
}

/* Each verb checks its arguments before it opens the handle. */
static enum weft_exit run_token(struct weft_cli *cli)
{
    const char *verb = cli->arg[0];
    if (strcmp(verb, "rotate") == 0)
        return rotate(cli);
    if (strcmp(verb, "revoke") == 0)
        return revoke(cli);
    if (cli->arg_count > 1)
        weft_cli_usage(cli, "'%s' takes no argument", verb);
    if (!weft_is_word(verb, "create ls list"))
        weft_cli_usage(cli, "'%s' is neither create, ls, rotate nor revoke", verb);
    return strcmp(verb, "create") == 0 ? create(cli) : list(cli);
}

const struct weft_command weft_command_token = {
    .name = "token",
    .args = "create|ls|rotate|revoke [ID]",
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
            {"name", 0, "NAME", "create: whose it is", NULL},
            {"scopes", 0, "LIST", "create: what it may do, separated by commas",
             "read submit work admin read,submit"},
            {"namespace", 'n', "NAME", "create: where it is good; default: everywhere", NULL},
            {"expires", 0, "TIME",
             "create, rotate: how long, like 90d, or until when; default: for ever, as before",
             NULL},
            {"grace", 0, "TIME", "rotate: how long the old secret stays good", NULL},
            {.name = NULL},
        },
    .run = run_token,
};
