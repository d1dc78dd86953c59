/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft serve: settings, the server, and signals.
 *
 * The main thread does nothing but wait for signals, which every thread has blocked. The first
 * SIGTERM or SIGINT begins an orderly stop; from then on they have their usual effect, so a second
 * one ends the process at once.
 *
 * The store is opened by a thread of its own, because libpq may try for many seconds to reach a
 * host that does not answer, and a signal must end the process all the same.
 */

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "cmd/serve/settings.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
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

/* Reads the settings again; wrong ones change nothing. */
static void reload(const struct weft_cli *cli, struct weft_server *server)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_serve_settings settings;
    if (weft_settings_read(cli, arena, NULL, &settings))
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

/* ---- Opening the store ----------------------------------------------------------------------- */

#define PAUSE_FIRST_US (100 * WEFT_MS)
#define PAUSE_LAST_US  WEFT_SECOND
#define SLOW_US        (2 * WEFT_SECOND) /* a longer try is logged */
#define LAST_TRY_US    (500 * WEFT_MS)   /* what a try under way gets when a signal comes */

/* Opening the store: the try that is under way. */
struct attempt {
    struct weft_server *server;
    pthread_t thread;
    int done; /* an eventfd */
    enum weft_rc rc;
    struct weft_err err;
    bool logged; /* that the server waits */
};

static void *run_attempt(void *context)
{
    struct attempt *attempt = context;
    attempt->rc = weft_server_open(attempt->server, &attempt->err);
    uint64_t one = 1;
    ssize_t written = write(attempt->done, &one, sizeof(one));
    (void)written; /* an eventfd takes it */
    return NULL;
}

enum event { EVENT_NONE, EVENT_DONE, EVENT_STOP };

/* Waits for the end of the attempt (its eventfd; -1: none), for a signal, or for the time. */
static enum event wait_for(int done, int signals, weft_usec until_us)
{
    for (;;) {
        struct pollfd fd[2] = {{.fd = done, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
        weft_usec left_us = until_us - weft_boot_us();
        int wait_ms = until_us == WEFT_NEVER ? -1 : left_us > 0 ? (int)(left_us / WEFT_MS) + 1 : 0;
        int ready = poll(fd, 2, wait_ms);
        if (fd[0].revents)
            return EVENT_DONE;
        struct signalfd_siginfo info;
        if (fd[1].revents && read(signals, &info, sizeof(info)) == sizeof(info) &&
            info.ssi_signo != SIGHUP) /* the settings were read just now */
            return EVENT_STOP;
        if (ready == 0)
            return EVENT_NONE;
    }
}

/*
 * A signal came while the store was being opened. A try that is nearly done may end; one that hangs
 * cannot be stopped, and no request was accepted yet: the process ends without it.
 */
static void give_up(struct attempt *attempt)
{
    weft_info("stopped while waiting for the store");
    if (wait_for(attempt->done, -1, weft_boot_us() + LAST_TRY_US) != EVENT_DONE) {
        (void)fflush(NULL);
        _exit(WEFT_EXIT_OK);
    }
    (void)pthread_join(attempt->thread, NULL);
}

/* Logs once that the server waits, and for what. */
static void log_waiting(const struct weft_serve_settings *settings, struct attempt *attempt,
                        const char *why)
{
    if (!attempt->logged)
        weft_warn("waiting for the store", F_STR("error", why),
                  F_I64("at_most_s", settings->store_wait_s),
                  F_STR("url", weft_server_url(attempt->server)));
    attempt->logged = true;
}

/* One try, on a thread of its own. EVENT_DONE: attempt->rc is its result. */
static enum event try_once(const struct weft_serve_settings *settings, struct attempt *attempt,
                           int signals)
{
    attempt->err = (struct weft_err){0};
    int failed = weft_thread_quiet(&attempt->thread, "weft-open", run_attempt, attempt);
    if (failed) {
        attempt->rc =
            weft_fail(&attempt->err, WEFT_INTERNAL, "cannot start a thread (errno %d)", failed);
        return EVENT_DONE;
    }
    enum event event = wait_for(attempt->done, signals, weft_boot_us() + SLOW_US);
    if (event == EVENT_NONE) {
        log_waiting(settings, attempt, "it does not answer yet, or is being migrated");
        event = wait_for(attempt->done, signals, WEFT_NEVER);
    }
    if (event == EVENT_STOP) {
        give_up(attempt);
        return event;
    }
    uint64_t ignored;
    ssize_t got = read(attempt->done, &ignored, sizeof(ignored));
    (void)got; /* it was readable */
    (void)pthread_join(attempt->thread, NULL);
    return event;
}

/* Tries until the store is open, for as long as it may be away. */
static enum event open_store(const struct weft_serve_settings *settings, struct attempt *attempt,
                             int signals)
{
    weft_usec began_us = weft_boot_us(), pause_us = PAUSE_FIRST_US;
    weft_usec until_us = began_us + settings->store_wait_s * WEFT_SECOND;
    for (;;) {
        if (try_once(settings, attempt, signals) == EVENT_STOP)
            return EVENT_STOP;
        if (attempt->logged && !attempt->rc)
            weft_info("the store is there",
                      F_I64("after_ms", (weft_boot_us() - began_us) / WEFT_MS));
        /* The store may come up later; a wrong password or schema will stay wrong. */
        bool away = attempt->rc == WEFT_UNAVAILABLE && attempt->err.cause == WEFT_CAUSE_LOST;
        if (!away || weft_boot_us() >= until_us)
            return EVENT_DONE;
        log_waiting(settings, attempt, attempt->err.text);
        weft_usec next_us = weft_boot_us() + pause_us;
        if (wait_for(-1, signals, next_us < until_us ? next_us : until_us) == EVENT_STOP) {
            weft_info("stopped while waiting for the store");
            return EVENT_STOP;
        }
        pause_us = pause_us * 2 < PAUSE_LAST_US ? pause_us * 2 : PAUSE_LAST_US;
    }
}

/* Listens, and opens the store. NULL: *ret_exit says how the process ends. */
static struct weft_server *start(const struct weft_serve_settings *settings, const sigset_t *set,
                                 enum weft_exit *ret_exit)
{
    struct attempt attempt = {.done = eventfd(0, EFD_CLOEXEC)};
    int signals = signalfd(-1, set, SFD_CLOEXEC);
    enum event event = EVENT_DONE;
    *ret_exit = WEFT_EXIT_OK;
    if (attempt.done < 0 || signals < 0)
        attempt.rc =
            weft_fail(&attempt.err, WEFT_INTERNAL, "cannot make an eventfd (errno %d)", errno);
    if (!attempt.rc)
        attempt.rc = weft_server_listen(&settings->server, &attempt.server, &attempt.err);
    if (!attempt.rc)
        event = open_store(settings, &attempt, signals);
    (void)close(attempt.done);
    (void)close(signals);
    if (event == EVENT_DONE && !attempt.rc)
        return attempt.server;
    weft_server_free(attempt.server);
    if (event == EVENT_DONE)
        *ret_exit = weft_cli_fail(&attempt.err);
    return NULL;
}

static enum weft_exit run_serve(struct weft_cli *cli)
{
    struct weft_serve_settings settings;
    enum weft_exit code;
    sigset_t set;
    if (!weft_settings_read(cli, cli->arena, NULL, &settings))
        return WEFT_EXIT_USAGE;
    block_signals(&set);
    weft_heap_limit(); /* before there are threads */
    start_log(&settings);
    settings.server.environment = environ;
    struct weft_server *server = start(&settings, &set, &code);
    if (!server)
        return code;
    weft_info("serving", F_STR("version", weft_version()), F_STR("url", weft_server_url(server)),
              F_STR("store", weft_url_masked(settings.server.store, cli->arena)));
    if (isatty(STDOUT_FILENO) || weft_cli_has(cli, "hello"))
        say_hello(cli, weft_server_url(server), &settings);
    wait_for_the_end(cli, server, &set);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    (void)weft_server_stop(server); /* says itself what is left */
    weft_server_free(server);
    weft_info("stopped");
    return WEFT_EXIT_OK;
}

const struct weft_command weft_command_serve = {
    .name = "serve",
    .args = "",
    .no_store = true,
    .summary = "run the server",
    .about =
        "Opens the store, brings its schema up to date, and serves the HTTP API until SIGTERM or "
        "SIGINT; then it finishes what is in flight, within --grace, and exits with 0. A second "
        "signal ends it at once. SIGHUP reads the tokens, the certificate with its key, the "
        "signing keys, the secrets and the settings of the scanners anew.\n\n"
        "Without settings it serves the file weft.db in the current folder at "
        "http://127.0.0.1:7717. Any number of servers may share one PostgreSQL. Tokens are "
        "required as soon as it listens on anything but loopback; see weft-token(1).\n\n"
        "A PostgreSQL that cannot be reached, or is starting up, is waited for, at most for "
        "--store-wait; meanwhile /healthz answers 200 and everything else 503. A wrong password, "
        "database or schema ends the server at once.\n\n"
        "Scanners put right what time or a crash left behind. Every server runs all of them; "
        "--scanners names the scanners of this server; with none it only serves the API. --scan "
        "says how: rules with spaces between them, NAME:key=value,key=value, where NAME may be * "
        "and a later rule beats an earlier one. The keys: interval (the longest time between two "
        "looks; 0 is off), batch (rows of one transaction), namespace and partitions=A-B (work "
        "outside is left to others).\n\n"
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
