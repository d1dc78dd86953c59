/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Failures: one line on stderr that says what happened, one with a hint, and an exit code for
 * scripts.
 */

#include "cmd/cli/text.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const struct weft_cli *weft_cli_current;

enum weft_exit weft_exit_of(enum weft_rc rc)
{
    static const enum weft_exit code[WEFT_RC_COUNT] = {
        [WEFT_INVALID_JSON] = WEFT_EXIT_USAGE,
        [WEFT_UNKNOWN_FIELD] = WEFT_EXIT_USAGE,
        [WEFT_INVALID_VALUE] = WEFT_EXIT_USAGE,
        [WEFT_TOO_LARGE] = WEFT_EXIT_USAGE,
        [WEFT_METHOD_NOT_ALLOWED] = WEFT_EXIT_USAGE,
        [WEFT_UNSUPPORTED_MEDIA_TYPE] = WEFT_EXIT_USAGE,
        [WEFT_NOT_FOUND] = WEFT_EXIT_NOT_FOUND,
        [WEFT_UNAUTHORIZED] = WEFT_EXIT_DENIED,
        [WEFT_FORBIDDEN] = WEFT_EXIT_DENIED,
        [WEFT_CONFLICT] = WEFT_EXIT_CONFLICT,
        [WEFT_LIMIT_EXCEEDED] = WEFT_EXIT_CONFLICT,
        [WEFT_FENCED] = WEFT_EXIT_CONFLICT,
        [WEFT_NOT_LIVE] = WEFT_EXIT_CONFLICT,
        [WEFT_BUDGET_EXCEEDED] = WEFT_EXIT_CONFLICT,
        [WEFT_BUSY] = WEFT_EXIT_UNAVAILABLE,
        [WEFT_RATE_LIMITED] = WEFT_EXIT_UNAVAILABLE,
        [WEFT_UNAVAILABLE] = WEFT_EXIT_UNAVAILABLE,
    };
    return !rc || (rc < WEFT_RC_COUNT && code[rc]) ? code[rc] : WEFT_EXIT_FAILED;
}

const char *weft_env(const char *name)
{
    const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe): no thread sets variables */
    return value && value[0] != '\0' ? value : NULL;
}

void weft_quit(enum weft_exit code)
{
    if (weft_cli_current)
        weft_close(weft_cli_current->weft);
    exit((int)code); /* NOLINT(concurrency-mt-unsafe): called from the main thread alone */
}

static bool on_a_server(void)
{
    return weft_cli_current && weft_cli_current->command && !weft_cli_current->command->no_store &&
           weft_is_server(weft_cli_target(weft_cli_current));
}

static const char *hint_of(const struct weft_err *err)
{
    if (err->hint)
        return err->hint;
    switch (err->rc) {
    case WEFT_UNAVAILABLE:
        return on_a_server() ? "start one with `weft serve`, or name a store with --store" : NULL;
    case WEFT_UNAUTHORIZED:
        return "give a token with --token or WEFT_TOKEN; the first one is made on the server's "
               "store: `weft token create --store URL --name ME --scopes admin`";
    case WEFT_FORBIDDEN:
        return on_a_server() ? "use a token whose scopes allow it" : NULL;
    case WEFT_SCHEMA:
        return "`weft migrate --check` tells what the store holds";
    default:
        return NULL;
    }
}

/* The text of the client for a server that does not answer is "URL: why". */
static bool is_unreached(const struct weft_err *err)
{
    if (err->rc != WEFT_UNAVAILABLE || !on_a_server())
        return false;
    const char *target = weft_cli_target(weft_cli_current);
    size_t size = strlen(target);
    while (size > 0 && target[size - 1] == '/')
        size--;
    return strncmp(err->text, target, size) == 0;
}

void weft_cli_say(const char *fmt, ...)
{
    char *text;
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        weft_oom(0);
    va_end(args);
    (void)fflush(stdout);
    weft_put_clean(stderr, text);
    (void)fputc('\n', stderr);
    free(text);
}

enum weft_exit weft_cli_fail(const struct weft_err *err)
{
    const char *hint = hint_of(err);
    weft_cli_say("weft: %s%s", is_unreached(err) ? "cannot reach " : "",
                 err->text[0] ? err->text : weft_rc_text(err->rc));
    if (hint)
        weft_cli_say("hint: %s", hint);
    return weft_exit_of(err->rc);
}

void weft_cli_usage(const struct weft_cli *cli, const char *fmt, ...)
{
    const char *name = cli && cli->command ? cli->command->name : "", *space = *name ? " " : "";
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    weft_cli_say("weft%s%s: %s", space, name, text);
    weft_cli_say("hint: see `weft help%s%s`", space, name);
    weft_quit(WEFT_EXIT_USAGE);
}

/* ---- Signals --------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void note_signal(int number)
{
    (void)number;
    interrupted = 1;
}

void weft_cli_catch(void)
{
    /* Only the first is caught: a second one ends the process at once. */
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

bool weft_cli_interrupted(void)
{
    return interrupted != 0;
}
