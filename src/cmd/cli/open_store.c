/* SPDX-License-Identifier: Apache-2.0 */

/* What a command works on: the server or store, the files it reads. */

#include "base/buf.h"
#include "cmd/cli/cli.h"

#include <errno.h>
#include <string.h>

const char *weft_cli_target(const struct weft_cli *cli)
{
    const char *server = weft_cli_get(cli, "server"), *store = weft_cli_get(cli, "store");
    if (server || store)
        return server ? server : store;
    server = weft_env("WEFT_SERVER");
    if (server)
        return server;
    store = weft_env("WEFT_STORE");
    return store ? store : WEFT_LOCAL_SERVER;
}

const char *weft_cli_or_env(const struct weft_cli *cli, const char *option, const char *variable)
{
    const char *value = weft_cli_get(cli, option);
    return value ? value : weft_env(variable);
}

const char *weft_cli_namespace(const struct weft_cli *cli)
{
    return weft_cli_or_env(cli, "namespace", "WEFT_NAMESPACE");
}

bool weft_is_server(const char *url)
{
    return strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
}

/* Errors do not repeat the URL: it may hold a password. `from` is an option or a variable. */
static void check_server(const struct weft_cli *cli, const char *from, const char *url)
{
    if (weft_is_server(url))
        return;
    if (strncmp(url, "sqlite:", 7) == 0 || strncmp(url, "postgres", 8) == 0)
        weft_cli_usage(cli, "%s names a store, and a server is asked for: use %s", from,
                       *from == '-' ? "--store" : "WEFT_STORE");
    weft_cli_usage(cli, "%s must begin with http:// or https://, as in " WEFT_LOCAL_SERVER, from);
}

static void check_store(const struct weft_cli *cli, const char *from, const char *url)
{
    if (url && weft_is_server(url))
        weft_cli_usage(cli, "%s names a server, and a store is asked for: use %s", from,
                       *from == '-' ? "--server" : "WEFT_SERVER");
}

static void check_target(const struct weft_cli *cli)
{
    const char *server = weft_cli_get(cli, "server"), *store = weft_cli_get(cli, "store");
    const char *env = weft_env("WEFT_SERVER");
    if (server && store)
        weft_cli_usage(cli, "--server and --store exclude each other");
    if (server)
        check_server(cli, "--server", server);
    else if (store)
        check_store(cli, "--store", store);
    else if (env)
        check_server(cli, "WEFT_SERVER", env);
    else
        check_store(cli, "WEFT_STORE", weft_env("WEFT_STORE"));
}

/*
 * Only commands that bring work or serve it create a store (`weft serve` and `weft migrate` open
 * theirs themselves). All others are about what is there: for them a store that does not exist is
 * a mistyped path.
 */
static bool may_create_store(const struct weft_cli *cli)
{
    const char *command = cli->command->name;
    return weft_is_word(command, "submit work") ||
           (strcmp(command, "flow") == 0 && cli->arg_count > 0 && strcmp(cli->arg[0], "run") == 0);
}

struct weft *weft_cli_open(struct weft_cli *cli)
{
    struct weft_err err = {0};
    check_target(cli);
    const struct weft_options options = {.ns = weft_cli_namespace(cli),
                                         .token = weft_cli_or_env(cli, "token", "WEFT_TOKEN"),
                                         .ca_file = weft_cli_or_env(cli, "ca-file", "WEFT_CA_FILE"),
                                         .must_exist = !may_create_store(cli),
                                         .signing_key_file = weft_env("WEFT_SIGNING_KEY_FILE")};
    if (!cli->weft && weft_open(weft_cli_target(cli), &options, &cli->weft, &err))
        weft_quit(weft_cli_fail(&err));
    return cli->weft;
}

char *weft_cli_read_file(const struct weft_cli *cli, const char *path, size_t max, size_t *ret_size,
                         const char **ret_why)
{
    bool input = strcmp(path, "-") == 0;
    char part[16384], *data = NULL;
    struct weft_buf buf;
    size_t size;
    weft_buf_init(&buf, max);
    FILE *file = input ? stdin : fopen(path, "re");
    while (file && !buf.full && (size = fread(part, 1, sizeof(part), file)) > 0)
        weft_buf_add(&buf, part, size);
    if (!file || ferror(file))
        *ret_why = strerrordesc_np(errno);
    else if (buf.full)
        *ret_why = weft_arena_printf(cli->arena, "it is larger than %zu bytes", max);
    else
        data = weft_arena_dup(cli->arena, buf.data, buf.size + 1);
    *ret_size = buf.size;
    weft_buf_done(&buf);
    if (file && !input)
        (void)fclose(file);
    return data;
}
