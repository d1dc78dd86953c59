/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft work: the worker helper of weft.h with a command as its handler. Some times a second the
 * main thread checks for signals, failures of the store, and the end of the work.
 */

#include "base/clock.h"
#include "cmd/work/work.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TICK_MS = 50,
    COMPLAIN_TICKS = 4, /* between two looks whether the store failed */
    COMPLAIN_S = 10,    /* between two complaints about the store */
    SETTLE_MS = 5000,   /* what the last words may take after the commands have ended */
    CONCURRENCY_MAX = 1000,
};

/* ---- Signals --------------------------------------------------------------------------------- */

static struct weft_work *signalled; /* what the signal handler changes */
static int64_t grace_us;

/* Calls nothing but what a signal handler may call; the atomics are free of locks. */
static void take_signal(int number)
{
    static const char *const text[] = {
        [WEFT_WORK_STOPS] = "weft: stopping when the commands have ended; again: sooner\n",
        [WEFT_WORK_HURRIES] = "weft: stopping the commands at once; again: kill them\n",
        [WEFT_WORK_QUITS] = "weft: killing the commands\n",
    };
    (void)number;
    int before = errno;
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    int stop = atomic_fetch_add(&signalled->stop, 1) + 1;
    if (stop == WEFT_WORK_STOPS)
        atomic_store(&signalled->term_us,
                     (int64_t)now.tv_sec * WEFT_SECOND + now.tv_nsec / 1000 + grace_us);
    if (stop <= WEFT_WORK_QUITS && write(STDERR_FILENO, text[stop], strlen(text[stop])) < 0)
        errno = EIO; /* there is nowhere to report it */
    errno = before;
}

/* Signals come to the main thread alone: the threads of the worker are started with them blocked.
 */
static void catch_signals(struct weft_work *work, sigset_t *ret_before)
{
    signalled = work;
    struct sigaction action = {.sa_handler = take_signal};
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGCHLD, SIG_DFL);
    sigset_t block;
    sigemptyset(&block);
    sigaddset(&block, SIGINT);
    sigaddset(&block, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &block, ret_before);
}

struct watch {
    struct weft_work *work;
    struct weft *weft;
    struct weft_worker *worker;
    struct weft_worker_options options;
    uint64_t errors; /* of the store, printed so far */
    weft_usec complained_us;

    bool drains; /* --drain */
    struct weft_drain drain;
};

static void complain(struct watch *watch)
{
    struct weft_worker_stats stats;
    weft_worker_stats(watch->worker, &stats);
    weft_usec now_us = weft_boot_us();
    if (stats.store_errors == watch->errors ||
        (watch->complained_us && now_us - watch->complained_us < COMPLAIN_S * WEFT_SECOND))
        return;
    watch->errors = stats.store_errors;
    watch->complained_us = now_us;
    pthread_mutex_lock(&watch->work->lock);
    (void)weft_cli_fail(&stats.last_error);
    pthread_mutex_unlock(&watch->work->lock);
}

/* ---- The worker ------------------------------------------------------------------------------ */

/* Returns when the worker should end; err is set by a failure that is final. */
static void run_until_end(struct watch *watch, struct weft_err *err)
{
    struct weft_work *work = watch->work;
    for (unsigned tick = 0; atomic_load(&work->stop) == WEFT_WORK_GOES_ON; tick++) {
        if (work->max && atomic_load(&work->ended) >= work->max)
            return;
        if (tick % COMPLAIN_TICKS == 0)
            complain(watch);
        if (watch->drains && weft_drain_is_over(&watch->drain, err))
            return;
        *err = (struct weft_err){0};  /* complain() reports it; the next tick tries again */
        (void)poll(NULL, 0, TICK_MS); /* a signal ends it early */
    }
}

static enum weft_rc start_worker(struct watch *watch, struct weft_err *err)
{
    enum weft_rc rc = weft_worker_new(watch->weft, &watch->options, &watch->worker, err);
    for (size_t i = 0; i < watch->drain.kinds && !rc; i++)
        rc = weft_worker_on(watch->worker, watch->drain.kind[i], weft_work_task, watch->work, err);
    if (!rc && watch->drain.kinds == 0)
        rc = weft_worker_on(watch->worker, NULL, weft_work_task, watch->work, err);
    if (!rc)
        rc = weft_worker_start(watch->worker, err);
    return rc;
}

static enum weft_exit work_on(struct weft_cli *cli, struct watch *watch)
{
    struct weft_err err = {0};
    sigset_t before;
    catch_signals(watch->work, &before);
    watch->weft = weft_cli_open(cli);
    weft_work_dir_clean();
    watch->work->weft = watch->weft;
    enum weft_rc rc = start_worker(watch, &err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!rc) {
        watch->drain.weft = watch->weft;
        watch->drain.worker = watch->worker;
        run_until_end(watch, &err);
        rc = err.rc;
        (void)weft_worker_stop(watch->worker);
    }
    weft_worker_free(watch->worker);
    if (watch->drain.left)
        weft_cli_say("weft: %s", watch->drain.left);
    return rc ? weft_cli_fail(&err) : watch->drain.left ? WEFT_EXIT_LEFT : WEFT_EXIT_OK;
}

/* The guard is started before anything that starts threads. */
static enum weft_exit work_guarded(struct weft_cli *cli, struct watch *watch)
{
    struct weft_guard guard;
    struct weft_err err = {0};
    int failed = weft_guard_start(&guard);
    if (failed) {
        (void)weft_fail(&err, WEFT_UNAVAILABLE, "cannot start a process: %s",
                        strerrordesc_np(failed));
        return weft_cli_fail(&err);
    }
    watch->work->guard = &guard;
    enum weft_exit code = work_on(cli, watch);
    weft_guard_stop(&guard);
    return code;
}

static enum weft_exit run_work(struct weft_cli *cli)
{
    static const char *const only_default[] = {"default"};
    struct weft_work work = {.term_us = WEFT_NEVER, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct watch watch = {.work = &work, .drains = weft_cli_has(cli, "drain")};
    watch.drain =
        (struct weft_drain){.work = &work, .arena = cli->arena, .options = &watch.options};
    struct weft_worker_options *options = &watch.options;
    options->name = weft_cli_get(cli, "name");
    options->lane_count = weft_cli_all(cli, "lane", &options->lanes);
    watch.drain.kinds = weft_cli_all(cli, "kind", &watch.drain.kind);
    if (options->lane_count == 0) {
        options->lanes = only_default;
        options->lane_count = 1;
    }
    options->capability_count = weft_cli_all(cli, "capability", &options->capabilities);
    options->threads = (uint32_t)weft_cli_i64(cli, "concurrency", 1, CONCURRENCY_MAX, 1);
    options->lease_ms = weft_cli_ms(cli, "lease", 1000, 86400000, 0);
    work.kill_after_ms = weft_cli_ms(cli, "kill-after", 0, 3600000, 10000);
    work.later_ms = weft_cli_ms(cli, "retry-later-after", 0, 365 * (int64_t)86400000, 5000);
    work.max = (uint64_t)weft_cli_i64(cli, "max", 1, INT64_MAX, 0);
    int64_t grace_ms = weft_cli_ms(cli, "grace", 0, 3600000, 10000);
    grace_us = grace_ms * WEFT_MS;
    options->stop_grace_ms = grace_ms + work.kill_after_ms + SETTLE_MS;
    work.json = weft_cli_json(cli);
    work.color = weft_cli_color(cli);

    struct weft_err err = {0};
    work.argv = cli->arg;
    if (weft_child_find(cli->arg[0], cli->arena, &work.path, &err))
        return weft_cli_fail(&err);
    return work_guarded(cli, &watch);
}

static const struct weft_option options_table[] = {
    {"lane", 'l', "NAME", "take work from this lane (default); may be repeated", NULL},
    {"kind", 'k', "NAME", "only of this kind; may be repeated", NULL},
    {"capability", 0, "NAME", "what this worker can do; may be repeated", NULL},
    {"concurrency", 'c', "N", "commands at once (1)", NULL},
    {"lease", 0, "TIME", "how long a claim lasts without a heartbeat (the policy's)", NULL},
    {"kill-after", 0, "TIME", "from SIGTERM to SIGKILL of a command (10s)", NULL},
    {"grace", 0, "TIME", "how long commands may go on after a signal to weft work (10s)", NULL},
    {"retry-later-after", 0, "TIME", "how long \"later\" is, for exit code 75 (5s)", NULL},
    {"drain", 0, NULL, "end when nothing is left that this worker can serve", NULL},
    {"max", 0, "N", "end after that many executions", NULL},
    {"name", 0, "NAME", "the name of this worker (HOST-PID-RANDOM)", NULL},
    {.name = NULL},
};

const struct weft_command weft_command_work = {
    .name = "work",
    .args = "[--] CMD [ARG...]",
    .rest = true,
    .summary = "run a command for each execution",
    .about =
        "Claims executions and runs CMD for each of them. The command gets the payload on standard "
        "input; what it writes to standard output, up to 1 MiB, becomes the result: "
        "application/json if it is JSON, else text/plain if it is UTF-8, else "
        "application/octet-stream. Standard error is passed on, line by line with the end of the "
        "id before it, and its last 4 KiB are the message of a failure.\n\n"
        "Exit code 0 completes the execution. 75 (EX_TEMPFAIL) means not now: it comes back after "
        "--retry-later-after without having spent an attempt. 65 (EX_DATAERR) fails it for good. "
        "79 suspends it, see below. Any other code N fails it with the class exit_N, and a signal "
        "with signal_NAME; its "
        "policy decides whether it is tried again. More output than 1 MiB fails it for good with "
        "the class output_too_large.\n\n"
        "The environment has WEFT_ID, WEFT_EPOCH, WEFT_ATTEMPT, WEFT_LANE, WEFT_KIND, where they "
        "exist WEFT_TENANT, WEFT_DEADLINE_AT, WEFT_CONTENT_TYPE, WEFT_FLOW and WEFT_NODE, and "
        "WEFT_TAG_KEY for each tag, its key in capitals with underscores for what is no letter or "
        "digit. WEFT_PROGRESS_FD is the number of a file descriptor, 3, for progress: a line "
        "written to it, PERCENT or PERCENT NOTE, is what `weft show` tells of the execution from "
        "then on. Lines are reported at once, at most one a second; of more the last one "
        "counts.\n\n"
        "WEFT_USAGE_FILE is the name of a file, which is not there yet, for what the command "
        "spends: lines NAME NUMBER with the total of a dimension of its budgets (see weft budget) "
        "since the command began, like tokens 1500. The last line of a name counts. The file is "
        "looked at once a second and when the command has ended, and reported when it has changed. "
        "When a budget refuses a report, standard error says once what is left, and the command "
        "goes on; a budget with --on-hard cancel cancels it.\n\n"
        "For a node of a flow that comes after others WEFT_UPSTREAM is a directory with a file for "
        "each of them that succeeded: it is called like the node, with %2F for a slash and %2E for "
        "a dot at the beginning, and holds the result, with a newline behind it if it is JSON. It "
        "is removed when the command has ended, and what a killed worker left is removed when the "
        "next one starts.\n\n"
        "A command suspends its execution, until signals have come or a timeout passes, by writing "
        "the request as JSON to the file WEFT_SUSPEND_FILE and ending with 79: the body of POST "
        "/v1/leases/suspend without id and epoch, like "
        "{\"waitpoints\":[{\"name\":\"approval\"}],\"timeout_ms\":86400000}. A bad request "
        "fails the attempt with the class bad_suspend. `weft waitpoints --new approval` prints the "
        "token of a waitpoint before that. When it goes on, the command runs from its beginning: "
        "WEFT_RESUMED is signals, timeout or operator, and WEFT_SIGNALS is a directory with the "
        "payloads of the signals as files 1, 2, ... in the order of their arrival, and all else "
        "about them in signals.json. If signals that came early are enough, it goes on at "
        "once.\n\n"
        "The lease is renewed while the command runs. When the execution is cancelled, timed out "
        "or lost, the command's process group gets SIGTERM, and SIGKILL after --kill-after. "
        "Whatever the command leaves running when it ends is killed, and the command with all of "
        "its process group if `weft work` itself is killed.\n\n"
        "SIGINT or SIGTERM: nothing more is claimed and commands may end by themselves for "
        "--grace, then they get SIGTERM; what was stopped so is ready again at once. A second "
        "signal shortens the grace, a third kills the commands.\n\n"
        "With --drain it ends when nothing is ready, delayed or running any more in its lanes and "
        "of its kinds, elsewhere either, with exit code 0. Executions that it cannot serve are not "
        "waited for: in a paused lane, in need of a capability that it does not have, behind "
        "nodes of flows that it does not run, or suspended. If only such are left, it says so and "
        "ends with 7. "
        "Over a server that asks for tokens it needs one with the scope read, too.\n\n"
        "A line on standard output tells how each command ended: done, fail, quit (failed for "
        "good), later, suspended, back (stopped with us), or lost (the lease was gone).",
    .example =
        "weft work --lane images --concurrency 4 -- convert - -resize 200x200 png:-\n"
        "weft work --drain -- sh -c 'wc -c'\n"
        "weft work --kind chat -- sh -c 'ask; echo \"tokens $(count)\" >$WEFT_USAGE_FILE'\n"
        "weft work -- sh -c 'first; echo \"50 half way\" >&$WEFT_PROGRESS_FD; second'",
    .option = options_table,
    .run = run_work,
};
