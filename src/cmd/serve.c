/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft serve: settings, the server, and signals.
 *
 * The main thread does nothing but wait for signals, which every thread has blocked. The first
 * SIGTERM or SIGINT begins an orderly stop; from then on they have their usual effect, so a second
 * one ends the process at once.
 */

#include "cmd/line.h"
#include "cmd/settings.h"

#include "base/arena.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void block_signals(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    sigaddset(ret_set, SIGTERM);
    sigaddset(ret_set, SIGINT);
    sigaddset(ret_set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, ret_set, NULL);
    (void)signal(SIGPIPE, SIG_IGN); /* a client that went away is an error of a write */
}

/* The word as a shell reads it back: in single quotes when it has special characters. */
static const char *shell_word(struct weft_arena *arena, const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,";
    if (*word && word[strspn(word, plain)] == '\0')
        return word;
    const char *quoted = "'";
    for (size_t part = strcspn(word, "'"); word[part]; part = strcspn(word, "'")) {
        quoted = weft_arena_printf(arena, "%s%.*s'\\''", quoted, (int)part, word);
        word += part + 1;
    }
    return weft_arena_printf(arena, "%s%s'", quoted, word);
}

static void say_hello(const struct weft_cli *cli, const char *url,
                      const struct weft_serve_settings *settings)
{
    static const char usual[] = "http://127.0.0.1:7717";
    const char *weft = shell_word(cli->arena, cli->program);
    const char *server = strcmp(url, usual) == 0 ? ""
                                                 : weft_arena_printf(cli->arena, " --server %s",
                                                                     shell_word(cli->arena, url));
    printf(
        "weft %s listens at %s, its store is %s\n\n"
        "Try in another terminal:\n"
        "  %s submit%s --kind greet '{\"name\":\"Ada\"}'\n"
        "  %s ls%s\n"
        "  %s work%s -- cat\n\n"
        "Ctrl-C stops it.\n",
        weft_version(), url, weft_url_masked(settings->server.store, cli->arena), weft, server,
        weft, server, weft, server);
    (void)fflush(stdout);
}

static void start_log(const struct weft_serve_settings *settings)
{
    enum weft_level level;
    if (!weft_level_parse(settings->log_level, &level))
        level = WEFT_INFO;
    weft_log_init(level, strcmp(settings->log_format, "json") == 0 ? WEFT_LOG_JSON : WEFT_LOGFMT,
                  STDERR_FILENO);
}

/* Reads the settings anew; those that are wrong change nothing. */
static void reload(const struct weft_cli *cli, struct weft_server *server)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_serve_settings settings;
    struct weft_setting_value *value =
        weft_new_array(arena, struct weft_setting_value, weft_setting_count);
    if (weft_settings_read(cli, arena, value, &settings))
        weft_server_reload(server, &settings.server);
    else
        weft_error("the settings are wrong: everything stays as it was");
    weft_arena_free(arena);
}

/* Returns when it is time to stop. */
static void wait_for_the_end(const struct weft_cli *cli, struct weft_server *server,
                             const sigset_t *set)
{
    for (;;) {
        int number = sigwaitinfo(set, NULL);
        if (number == SIGHUP)
            reload(cli, server);
        if (number != SIGTERM && number != SIGINT)
            continue;
        weft_info("stopping", F_STR("signal", number == SIGTERM ? "SIGTERM" : "SIGINT"));
        return;
    }
}

static enum weft_exit serve(const struct weft_cli *cli, const struct weft_serve_settings *settings)
{
    struct weft_err err = {0};
    struct weft_server *server;
    sigset_t set;
    block_signals(&set);
    weft_heap_limit(); /* before there are threads */
    start_log(settings);
    if (weft_server_start(&settings->server, &server, &err))
        return weft_cli_fail(&err);
    weft_info("serving", F_STR("version", weft_version()), F_STR("url", weft_server_url(server)),
              F_STR("store", weft_url_masked(settings->server.store, cli->arena)));
    if (isatty(STDOUT_FILENO) || weft_cli_has(cli, "hello"))
        say_hello(cli, weft_server_url(server), settings);
    wait_for_the_end(cli, server, &set);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    (void)weft_server_stop(server); /* says itself what is left */
    weft_server_free(server);
    weft_info("stopped");
    return WEFT_EXIT_OK;
}

static enum weft_exit run_serve(struct weft_cli *cli)
{
    struct weft_serve_settings settings;
    struct weft_setting_value *value =
        weft_new_array(cli->arena, struct weft_setting_value, weft_setting_count);
    if (!weft_settings_read(cli, cli->arena, value, &settings))
        return WEFT_EXIT_USAGE;
    return serve(cli, &settings);
}

const struct weft_command weft_command_serve = {
    .name = "serve",
    .args = "",
    .no_store = true,
    .summary = "run the server",
    .about =
        "Opens the store, brings its schema up to date, and serves the HTTP API until SIGTERM or "
        "SIGINT; then it finishes what is in flight, within --grace, and exits with 0. A second "
        "signal ends it at once. SIGHUP reads the tokens and the settings of the scanners anew.\n\n"
        "Without settings it serves the file weft.db in the current folder at "
        "http://127.0.0.1:7717. Any number of servers may share one PostgreSQL. Tokens are "
        "required as soon as it listens on anything but loopback; see weft-token(1).\n\n"
        "Scanners put right what time or a crash left behind. Every server runs all of them; "
        "--scanners names those that run here, and with none it only serves the API. --scan says "
        "how: rules with spaces between them, NAME:key=value,key=value, where NAME may be * and a "
        "later rule beats an earlier one. The keys: interval (the longest time between two looks; "
        "0 is off), batch (rows of one transaction), namespace and partitions=A-B (work outside "
        "is left to others).\n\n"
        "Each setting can be given as a flag, as a variable of the environment, or in a file; "
        "weft-config(1) shows what holds and why.",
    .example =
        "weft serve\n"
        "weft serve --store postgres://weft@db/weft --listen 0.0.0.0:7717 \\\n"
        "    --tls-cert cert.pem --tls-key key.pem\n"
        "weft serve --scanners lease_expiry,delayed_promoter \\\n"
        "    --scan '*:partitions=0-127 lease_expiry:interval=500ms,batch=200'",
    .option = weft_serve_options,
    .run = run_serve,
};
