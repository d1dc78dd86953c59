/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How the command speaks of failures: one line on stderr that says what happened, one that says
 * what to do, and an exit code that a script can tell apart.
 */

#include "cmd/cli/line.h"

#include "base/base.h"
#include "base/str.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const struct weft_cli *weft_cli_current;

const struct weft_exit_word weft_exit_words[] = {
    {WEFT_EXIT_OK, "It was done."},
    {WEFT_EXIT_FAILED,
     "It was refused or went wrong, wholly or for some of the items; with --wait: "
     "the execution did not succeed."},
    {WEFT_EXIT_USAGE, "The command line, a setting or a value is wrong. Nothing was done."},
    {WEFT_EXIT_NOT_FOUND, "There is no such execution, lane, worker, token or store."},
    {WEFT_EXIT_UNAVAILABLE,
     "The server or the store cannot be reached, is too busy, or a wait was "
     "over before the end came. Trying again later may help."},
    {WEFT_EXIT_DENIED, "The token is missing, unknown or does not allow this."},
    {WEFT_EXIT_CONFLICT,
     "It conflicts with what is there: another payload under the same key, a "
     "lease that is gone, a state that does not allow it."},
    {WEFT_EXIT_LEFT,
     "`weft work --drain` has ended, and executions are left that this worker cannot serve."},
    {WEFT_EXIT_INTERRUPTED, "Interrupted by SIGINT or SIGTERM before it was done."},
    {.about = NULL},
};

const struct weft_env_word weft_env_words[] = {
    {"WEFT_SERVER", "The server to talk to, unless --server or --store is given."},
    {"WEFT_STORE",
     "The store to open directly, unless --server, --store or WEFT_SERVER is given; "
     "for `weft serve`, its store."},
    {"WEFT_TOKEN", "The bearer token, unless --token is given."},
    {"WEFT_CA_FILE", "Certificates to trust, unless --ca-file is given."},
    {"WEFT_NAMESPACE", "The namespace, unless --namespace is given."},
    {"WEFT_CONFIG", "The settings file of `weft serve`, unless --config is given."},
    {"NO_COLOR", "When set, no colours are used unless --color always is given."},
    {"COLUMNS", "How wide tables may be; otherwise the terminal is asked."},
    {.name = NULL},
};

enum weft_exit weft_exit_of(enum weft_rc rc)
{
    switch (rc) {
    case WEFT_OK:
        return WEFT_EXIT_OK;
    case WEFT_INVALID_JSON:
    case WEFT_UNKNOWN_FIELD:
    case WEFT_INVALID_VALUE:
    case WEFT_TOO_LARGE:
    case WEFT_METHOD_NOT_ALLOWED:
    case WEFT_UNSUPPORTED_MEDIA_TYPE:
        return WEFT_EXIT_USAGE;
    case WEFT_NOT_FOUND:
        return WEFT_EXIT_NOT_FOUND;
    case WEFT_UNAUTHORIZED:
    case WEFT_FORBIDDEN:
        return WEFT_EXIT_DENIED;
    case WEFT_CONFLICT:
    case WEFT_LIMIT_EXCEEDED:
    case WEFT_FENCED:
    case WEFT_NOT_LIVE:
        return WEFT_EXIT_CONFLICT;
    case WEFT_BUSY:
    case WEFT_RATE_LIMITED:
    case WEFT_UNAVAILABLE:
        return WEFT_EXIT_UNAVAILABLE;
    case WEFT_STORAGE_FULL:
    case WEFT_CORRUPT:
    case WEFT_SCHEMA:
    case WEFT_INTERNAL:
    case WEFT_MISUSE:
    case WEFT_RC_COUNT:
        break;
    }
    return WEFT_EXIT_FAILED;
}

const char *weft_env(const char *name)
{
    const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe): nobody sets variables */
    return value && value[0] != '\0' ? value : NULL;
}

void weft_quit(enum weft_exit code)
{
    exit((int)code); /* NOLINT(concurrency-mt-unsafe): called from the main thread alone */
}

void weft_put_clean(FILE *to, const char *text)
{
    size_t size = strlen(text), at = 0;
    while (at < size) {
        size_t step = weft_utf8_size(text + at, size - at);
        if (step > 0 && weft_text_printable(text + at, step))
            (void)fwrite(text + at, 1, step, to);
        else
            (void)fputc(text[at] == '\n' || text[at] == '\t' ? ' ' : '?', to);
        at += step > 0 ? step : 1;
    }
}

static bool is_remote(const char *target)
{
    return strncmp(target, "http://", 7) == 0 || strncmp(target, "https://", 8) == 0;
}

static bool on_a_server(void)
{
    return weft_cli_current && weft_cli_current->command && !weft_cli_current->command->no_store &&
           is_remote(weft_cli_target(weft_cli_current));
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

/* The client tells of a server that does not answer as "URL: why". */
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

enum weft_exit weft_cli_fail(const struct weft_err *err)
{
    const char *hint = hint_of(err);
    (void)fflush(stdout);
    (void)fprintf(stderr, "weft: %s", is_unreached(err) ? "cannot reach " : "");
    weft_put_clean(stderr, err->text[0] ? err->text : weft_rc_text(err->rc));
    (void)fputc('\n', stderr);
    if (hint) {
        (void)fputs("hint: ", stderr);
        weft_put_clean(stderr, hint);
        (void)fputc('\n', stderr);
    }
    return weft_exit_of(err->rc);
}

enum weft_exit weft_cli_usage(const struct weft_cli *cli, const char *fmt, ...)
{
    const char *name = cli && cli->command ? cli->command->name : NULL;
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    (void)fflush(stdout);
    (void)fprintf(stderr, "weft%s%s: ", name ? " " : "", name ? name : "");
    weft_put_clean(stderr, text);
    (void)fprintf(stderr, "\nhint: see `weft help%s%s`\n", name ? " " : "", name ? name : "");
    return WEFT_EXIT_USAGE;
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
    /* Only the first is noted: whoever cannot wait for an orderly end sends another. */
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

bool weft_cli_interrupted(void)
{
    return interrupted != 0;
}
