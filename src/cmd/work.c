/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft work: the worker helper of weft.h with a command as its handler. The main thread looks
 * around some times a second: whether signals came, whether the store answers, whether all is done.
 */

#include "cmd/work.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "cmd/child.h"
#include "cmd/line.h"
#include "cmd/upstream.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TICK_MS = 50,
    IDLE_TICKS = 4,    /* between two looks at what is left */
    COMPLAIN_S = 10,   /* between two complaints about the store */
    SETTLE_MS = 5000,  /* what the last words may take after the commands have ended */
    CASCADE_MS = 1500, /* what comes after an ended one is ready by then, whoever sees to it */
    CONCURRENCY_MAX = 1000,
};

/* ---- Signals --------------------------------------------------------------------------------- */

static struct weft_work *signalled; /* whom signals are for */
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
        errno = EIO; /* nobody to tell */
    errno = before;
}

/* Signals come to the main thread alone: the threads of the worker are started with them blocked.
 */
static void mind_signals(struct weft_work *work, sigset_t *ret_before)
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

/* ---- Is anything left? ----------------------------------------------------------------------- */

struct watch {
    struct weft_work *work;
    struct weft *weft;
    struct weft_worker *worker;
    const char *const *lane, *const *kind;
    size_t lanes, kinds;
    bool drain;
    weft_usec drained_us; /* since when; 0: it is not */
    uint64_t errors;      /* of the store, told so far */
    weft_usec complained_us;
};

static enum weft_rc find_one(struct watch *watch, const struct weft_filter *filter, bool *ret_found,
                             struct weft_err *err)
{
    struct weft_page page = {0};
    char after[512] = "";
    bool found = false, more = true;
    enum weft_rc rc = WEFT_OK;
    while (!rc && more && !found) {
        rc = weft_list(watch->weft, filter, 1, *after ? after : NULL, &page, err);
        if (rc)
            break;
        found = page.count > 0;
        more = page.next && strlen(page.next) < sizeof(after);
        if (more)
            (void)snprintf(after, sizeof(after), "%s", page.next);
        weft_page_free(&page);
    }
    if (!rc)
        *ret_found = found;
    return rc;
}

static enum weft_rc find_in_lane(struct watch *watch, const char *lane, enum weft_state state,
                                 bool *ret_found, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    *ret_found = false;
    for (size_t i = 0; i < (watch->kinds ? watch->kinds : 1) && !rc && !*ret_found; i++) {
        const struct weft_filter filter = {
            .lane = lane, .kind = watch->kinds ? watch->kind[i] : NULL, .state = state};
        rc = find_one(watch, &filter, ret_found, err);
    }
    return rc;
}

static uint64_t held(const struct weft_worker_stats *stats)
{
    return stats->claimed - stats->completed - stats->failed - stats->put_back - stats->fenced;
}

/*
 * In this order, because an execution that goes on from running to delayed to ready meanwhile is
 * then seen in one of them.
 */
static enum weft_rc find_any(struct watch *watch, bool *ret_found, struct weft_err *err)
{
    static const enum weft_state state[] = {WEFT_STATE_RUNNING, WEFT_STATE_DELAYED,
                                            WEFT_STATE_READY};
    enum weft_rc rc = WEFT_OK;
    *ret_found = false;
    for (size_t i = 0; i < watch->lanes; i++)
        for (size_t k = 0; k < WEFT_LEN(state) && !rc && !*ret_found; k++)
            rc = find_in_lane(watch, watch->lane[i], state[k], ret_found, err);
    return rc;
}

/*
 * Looks twice. What is claimed while we look goes from ready to running behind our back, and it may
 * be our own worker's although that has not heard of it yet; the second look sees it running, or
 * the worker has counted it by then.
 */
static bool is_drained(struct watch *watch)
{
    struct weft_worker_stats before, after;
    struct weft_err err;
    bool found = false;
    weft_worker_stats(watch->worker, &before);
    if (held(&before) > 0)
        return false;
    for (int look = 0; look < 2; look++)
        if (find_any(watch, &found, &err) || found)
            return false;
    weft_worker_stats(watch->worker, &after);
    return after.claimed == before.claimed;
}

/*
 * Members of flows that wait for others: what they wait for may have ended just now, and then they
 * are ready soon. Looked for first, so that one that becomes ready meanwhile is seen either way. If
 * they still wait after a while, then for something that we do not do.
 */
static bool is_done(struct watch *watch)
{
    struct weft_err err;
    bool waiting = false;
    for (size_t i = 0; i < watch->lanes && !waiting; i++)
        if (find_in_lane(watch, watch->lane[i], WEFT_STATE_BLOCKED, &waiting, &err))
            waiting = true;
    if (!is_drained(watch)) {
        watch->drained_us = 0;
        return false;
    }
    weft_usec now_us = weft_boot_us();
    if (watch->drained_us == 0)
        watch->drained_us = now_us;
    return !waiting || now_us - watch->drained_us >= CASCADE_MS * WEFT_MS;
}

/* ---- The main thread ------------------------------------------------------------------------- */

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

static void mind(struct watch *watch)
{
    struct weft_work *work = watch->work;
    for (unsigned tick = 0; atomic_load(&work->stop) == WEFT_WORK_GOES_ON; tick++) {
        if (work->max && atomic_load(&work->ended) >= work->max)
            return;
        if (tick % IDLE_TICKS == 0) {
            complain(watch);
            if (watch->drain && is_done(watch))
                return;
        }
        (void)poll(NULL, 0, TICK_MS); /* a signal ends it early */
    }
}

static enum weft_rc start_worker(struct watch *watch, const struct weft_worker_options *options,
                                 struct weft_err *err)
{
    enum weft_rc rc = weft_worker_new(watch->weft, options, &watch->worker, err);
    for (size_t i = 0; i < watch->kinds && !rc; i++)
        rc = weft_worker_on(watch->worker, watch->kind[i], weft_work_task, watch->work, err);
    if (!rc && watch->kinds == 0)
        rc = weft_worker_on(watch->worker, NULL, weft_work_task, watch->work, err);
    if (!rc)
        rc = weft_worker_start(watch->worker, err);
    return rc;
}

static enum weft_exit work_on(struct weft_cli *cli, struct watch *watch,
                              const struct weft_worker_options *options)
{
    struct weft_err err = {0};
    enum weft_exit code;
    sigset_t before;
    mind_signals(watch->work, &before);
    if (!weft_cli_open(cli, &watch->weft, &code))
        return code;
    weft_upstream_clean();
    watch->work->weft = watch->weft;
    enum weft_rc rc = start_worker(watch, options, &err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!rc) {
        mind(watch);
        (void)weft_worker_stop(watch->worker);
    }
    weft_worker_free(watch->worker);
    weft_close(watch->weft);
    return rc ? weft_cli_fail(&err) : WEFT_EXIT_OK;
}

/* The guard is started before anything that starts threads. */
static enum weft_exit work_guarded(struct weft_cli *cli, struct watch *watch,
                                   const struct weft_worker_options *options)
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
    enum weft_exit code = work_on(cli, watch, options);
    weft_guard_stop(&guard);
    return code;
}

static enum weft_exit run_work(struct weft_cli *cli)
{
    static const char *const only_default[] = {"default"};
    struct weft_work work = {.term_us = WEFT_NEVER, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct watch watch = {.work = &work, .drain = weft_cli_has(cli, "drain")};
    struct weft_worker_options options = {.name = weft_cli_get(cli, "name")};
    watch.lanes = weft_cli_all(cli, "lane", &watch.lane);
    watch.kinds = weft_cli_all(cli, "kind", &watch.kind);
    if (watch.lanes == 0) {
        watch.lane = only_default;
        watch.lanes = 1;
    }
    options.lanes = watch.lane;
    options.lane_count = watch.lanes;
    options.capability_count = weft_cli_all(cli, "capability", &options.capabilities);
    options.threads = (uint32_t)weft_cli_i64(cli, "concurrency", 1, CONCURRENCY_MAX, 1);
    options.lease_ms = weft_cli_ms(cli, "lease", 1000, 86400000, 0);
    work.kill_after_ms = weft_cli_ms(cli, "kill-after", 0, 3600000, 10000);
    work.later_ms = weft_cli_ms(cli, "retry-later-after", 0, 365 * (int64_t)86400000, 5000);
    work.max = (uint64_t)weft_cli_i64(cli, "max", 1, INT64_MAX, 0);
    int64_t grace_ms = weft_cli_ms(cli, "grace", 0, 3600000, 10000);
    grace_us = grace_ms * WEFT_MS;
    options.stop_grace_ms = grace_ms + work.kill_after_ms + SETTLE_MS;
    work.json = weft_cli_json(cli);
    work.color = weft_cli_color(cli);

    const char *const *args;
    size_t count = weft_cli_args(cli, &args);
    struct weft_arena *arena = weft_arena_new();
    const char **argv = weft_new_array(arena, const char *, count + 1);
    memcpy(argv, args, count * sizeof(*argv));
    work.argv = argv;
    struct weft_err err = {0};
    enum weft_exit code;
    if (weft_child_find(args[0], arena, &work.path, &err))
        code = weft_cli_fail(&err);
    else
        code = work_guarded(cli, &watch, &options);
    weft_arena_free(arena);
    return code;
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
    {"drain", 0, NULL, "end when nothing is ready, delayed or running any more", NULL},
    {"max", 0, "N", "end after that many executions", NULL},
    {"name", 0, "NAME", "the name of this worker (HOST-PID-RANDOM)", NULL},
    {.name = NULL},
};

const struct weft_command weft_command_work = {
    .name = "work",
    .args = "[--] CMD [ARG...]",
    .args_min = 1,
    .args_max = UINT32_MAX,
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
        "Any other code N fails it with the class exit_N, and a signal with signal_NAME; its "
        "policy "
        "decides whether it is tried again. More output than 1 MiB fails it for good with the "
        "class output_too_large.\n\n"
        "The environment has WEFT_ID, WEFT_EPOCH, WEFT_ATTEMPT, WEFT_LANE, WEFT_KIND, where they "
        "exist WEFT_TENANT, WEFT_DEADLINE_AT, WEFT_CONTENT_TYPE, WEFT_FLOW and WEFT_NODE, and "
        "WEFT_TAG_KEY for each tag, "
        "its key in capitals with underscores for what is no letter or digit. WEFT_PROGRESS_FD is "
        "the number of a file descriptor, 3, for progress: a line written to it, PERCENT or "
        "PERCENT NOTE, is what `weft show` tells of the execution from then on. Lines are "
        "reported at once, at most one a second; of more the last one counts.\n\n"
        "For a node of a flow "
        "that comes after others WEFT_UPSTREAM is a directory with a file for each of them that "
        "succeeded: it is called like the node, with %2F for a slash and %2E for a dot at the "
        "beginning, and holds the result, with a newline behind it if it is JSON. It is removed "
        "when the command has ended, and what a killed worker left is removed when the next one "
        "starts.\n\n"
        "The lease is renewed while the command runs. When the execution is cancelled, timed out "
        "or "
        "lost, the command's process group gets SIGTERM, and SIGKILL after --kill-after. Whatever "
        "the command leaves running when it ends is killed, and the command with all of its process "
        "group if `weft work` itself is killed.\n\n"
        "SIGINT or SIGTERM: nothing more is claimed and commands may end by themselves for "
        "--grace, "
        "then they get SIGTERM; what was stopped so is ready again at once. A second signal "
        "shortens "
        "the grace, a third kills the commands.\n\n"
        "A line on standard output tells how each command ended: done, fail, quit (failed for "
        "good), later, back (stopped with us), or lost (the lease was gone).",
    .example =
        "weft work --lane images --concurrency 4 -- convert - -resize 200x200 png:-\n"
        "weft work --drain -- sh -c 'wc -c'\n"
        "weft work -- sh -c 'first; echo \"50 half way\" >&$WEFT_PROGRESS_FD; second'",
    .option = options_table,
    .run = run_work,
};
