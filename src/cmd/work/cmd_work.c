/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft work: the worker helper of weft.h with a command as its handler. Some times a second the
 * main thread checks for signals, failures of the store, and the end of the work.
 *
 * With --drain it goes on while an execution of its lanes and kinds is ready, delayed or running,
 * here or elsewhere, that it could serve: running ones may fail and come back. It ends when all
 * that is left are executions that it cannot serve: in a paused lane, in need of a capability that
 * it does not have, or blocked by nodes of flows that it does not run.
 */

#include "base/clock.h"
#include "base/moment.h"
#include "cmd/cli/filter_args.h"
#include "cmd/work/work.h"

#include <errno.h>
#include <inttypes.h>
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
    LOOK_MS = 200,   /* --drain: between two looks at what is left */
    LOOK_SHARE = 10, /* they take at most a tenth of the time */
    LOOK_MAX_MS = 10000,
    CASCADE_MS = 1500, /* a blocked node is ready so soon after its last upstream has ended */
    SILENT_MS = 2000,  /* before it says what it waits for */
    REASONS = 16,      /* that are counted separately */
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
    struct weft_arena *arena; /* of the command line */
    struct weft *weft;
    struct weft_worker *worker;
    struct weft_worker_options options;
    const char *const *kind;
    size_t kinds;    /* 0: all */
    uint64_t errors; /* of the store, printed so far */
    weft_usec complained_us;

    bool drains;          /* --drain */
    weft_usec look_us;    /* when to look again */
    weft_usec drained_us; /* since when nothing is left but blocked ones; 0: it is not so */
    weft_usec waiting_us; /* since when it has waited with nothing to do; 0: it does not */
    bool announced;       /* what it waits for */
    const char *left;     /* what is left, in words; NULL: nothing */
};

/* Prints a line on stderr between the lines of the commands. */
static void say(struct weft_work *work, const char *text)
{
    pthread_mutex_lock(&work->lock);
    (void)fprintf(stderr, "%s\n", text);
    pthread_mutex_unlock(&work->lock);
}

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

/* ---- --drain --------------------------------------------------------------------------------- */

/* Why this worker cannot serve some executions. */
struct reason {
    const char *text, *plural; /* static, or in the arena of the look */
    uint64_t count;
};

struct look {
    struct watch *watch;
    struct weft_arena *arena;
    bool *paused; /* by lane */
    struct reason reason[REASONS];
    size_t reasons;
    uint64_t blocked; /* 0 or 1 while it only matters whether there are any */
    bool counting;    /* all blocked ones */
    bool servable;    /* one was found that this worker could serve, and the look ended there */
    bool waits;       /* that one is delayed or runs elsewhere, as `what` says */
    const char *what;
};

/* ---- What cannot be served here -------------------------------------------------------------- */

/* Reasons beyond these are counted together in the last place. */
static void count_reason(struct look *look, const char *text, const char *plural)
{
    size_t at = 0;
    while (at < look->reasons && strcmp(look->reason[at].text, text) != 0)
        at++;
    if (at == REASONS) {
        at = REASONS - 1;
        look->reason[at].text = look->reason[at].plural = "for other reasons";
    } else if (at == look->reasons) {
        look->reasons++;
        look->reason[at] = (struct reason){.text = weft_arena_strdup(look->arena, text),
                                           .plural = weft_arena_strdup(look->arena, plural)};
    }
    look->reason[at].count++;
}

/* The capabilities that are asked for and not offered here, joined by commas; NULL: none. */
static const char *missing(const struct look *look, const struct weft_execution *item,
                           bool *ret_many)
{
    const char *text = NULL;
    *ret_many = false;
    for (size_t i = 0; i < item->capability_count; i++) {
        size_t at = 0;
        while (at < look->watch->options.capability_count &&
               strcmp(look->watch->options.capabilities[at], item->capabilities[i]) != 0)
            at++;
        if (at < look->watch->options.capability_count)
            continue;
        *ret_many = text != NULL;
        text = text ? weft_arena_printf(look->arena, "%s, %s", text, item->capabilities[i])
                    : item->capabilities[i];
    }
    return text;
}

/* False when this worker could serve the execution; otherwise counts the reason. */
static bool is_beyond(struct look *look, size_t lane, const struct weft_execution *item)
{
    char text[512], plural[512];
    bool many;
    if (look->paused[lane]) {
        (void)snprintf(text, sizeof(text), "in the paused lane %s (weft lanes %s --resume)",
                       item->lane, item->lane);
        count_reason(look, text, text);
        return true;
    }
    const char *lacks = missing(look, item, &many);
    if (!lacks)
        return false;
    const char *word = many ? "the capabilities" : "the capability";
    (void)snprintf(text, sizeof(text), "needs %s %s", word, lacks);
    (void)snprintf(plural, sizeof(plural), "need %s %s", word, lacks);
    count_reason(look, text, plural);
    return true;
}

static void note_servable(struct look *look, const struct weft_execution *item)
{
    char id[WEFT_ID_TEXT], moment[WEFT_MOMENT_TEXT];
    look->servable = true;
    weft_id_print(&item->id, id);
    if (item->state == WEFT_STATE_DELAYED) {
        weft_moment_print(item->run_at_us, moment);
        look->what = weft_arena_printf(look->arena, "%s, which is delayed until %s", id, moment);
    } else if (item->state == WEFT_STATE_RUNNING) {
        look->what = weft_arena_printf(look->arena, "%s, which worker %s runs", id,
                                       item->worker ? item->worker : "(unknown)");
    }
    look->waits = look->what != NULL;
}

/* ---- Looking --------------------------------------------------------------------------------- */

/* Evaluates one page; true when the next page must be read, too. */
static bool take_page(struct look *look, size_t lane, enum weft_state state,
                      const struct weft_page *page)
{
    if (state == WEFT_STATE_BLOCKED) {
        look->blocked += page->count;
        return page->next && (look->counting || look->blocked == 0);
    }
    for (size_t i = 0; i < page->count && !look->servable; i++)
        if (!is_beyond(look, lane, &page->item[i]))
            note_servable(look, &page->item[i]);
    return page->next && !look->servable;
}

static enum weft_rc read_pages(struct look *look, size_t lane, const struct weft_filter *filter,
                               struct weft_err *err)
{
    struct weft_pages pages = {.more = true};
    enum weft_rc rc = WEFT_OK;
    uint32_t limit = filter->state == WEFT_STATE_BLOCKED && !look->counting ? 1 : WEFT_PAGE_MAX;
    for (bool more = true; more && !rc;) {
        rc = weft_next_page(look->watch->weft, filter, limit, &pages, err);
        more = !rc && take_page(look, lane, filter->state, &pages.page);
    }
    weft_page_free(&pages.page);
    return rc;
}

static enum weft_rc read_state(struct look *look, size_t lane, enum weft_state state,
                               struct weft_err *err)
{
    const struct watch *watch = look->watch;
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < (watch->kinds ? watch->kinds : 1) && !rc && !look->servable; i++) {
        const struct weft_filter filter = {.lane = watch->options.lanes[lane],
                                           .kind = watch->kinds ? watch->kind[i] : NULL,
                                           .state = state};
        rc = read_pages(look, lane, &filter, err);
    }
    return rc;
}

/* Counts all blocked executions. This is done last, because a flow may have very many of them. */
static enum weft_rc count_blocked(struct look *look, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    look->counting = true;
    look->blocked = 0;
    for (size_t i = 0; i < look->watch->options.lane_count && !rc; i++)
        rc = read_state(look, i, WEFT_STATE_BLOCKED, err);
    return rc;
}

static enum weft_rc read_paused(struct look *look, struct weft_err *err)
{
    const struct watch *watch = look->watch;
    struct weft_lanes lanes = {0};
    look->paused = weft_new_array(look->arena, bool, watch->options.lane_count + 1);
    enum weft_rc rc = weft_lanes(watch->weft, &lanes, err);
    for (size_t i = 0; i < lanes.count && !rc; i++)
        for (size_t k = 0; k < watch->options.lane_count; k++)
            if (strcmp(lanes.item[i].name, watch->options.lanes[k]) == 0)
                look->paused[k] = lanes.item[i].paused;
    weft_lanes_free(&lanes);
    return rc;
}

/*
 * The states in this order, because an execution that goes on from running to delayed to ready
 * meanwhile is then seen in one of them. Blocked ones come first: one that becomes ready meanwhile
 * is seen either way.
 */
static enum weft_rc look_at_all(struct look *look, struct weft_err *err)
{
    static const enum weft_state state[] = {WEFT_STATE_BLOCKED, WEFT_STATE_RUNNING,
                                            WEFT_STATE_DELAYED, WEFT_STATE_READY};
    enum weft_rc rc = read_paused(look, err);
    for (size_t k = 0; k < WEFT_LEN(state); k++)
        for (size_t i = 0; i < look->watch->options.lane_count && !rc && !look->servable; i++)
            rc = read_state(look, i, state[k], err);
    return rc;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

static uint64_t held(const struct weft_worker_stats *stats)
{
    return stats->claimed - stats->completed - stats->failed - stats->put_back - stats->fenced;
}

/* What is left, in words; NULL: nothing. */
static const char *describe(const struct look *look)
{
    uint64_t total = look->blocked;
    const char *text = "";
    for (size_t i = 0; i < look->reasons; i++) {
        const struct reason *reason = &look->reason[i];
        total += reason->count;
        text = weft_arena_printf(look->arena, "%s%s%" PRIu64 " %s", text, i ? ", " : "",
                                 reason->count, reason->count == 1 ? reason->text : reason->plural);
    }
    if (look->blocked > 0)
        text = weft_arena_printf(
            look->arena, "%s%s%" PRIu64 " wait%s for nodes of flows that it does not run", text,
            *text ? ", " : "", look->blocked, look->blocked == 1 ? "s" : "");
    if (total == 0)
        return NULL;
    return weft_arena_printf(look->arena,
                             "%" PRIu64 " execution%s left that this worker cannot serve: %s",
                             total, total == 1 ? " is" : "s are", text);
}

/* Prints once, after a while without work, which execution --drain waits for. */
static void say_waiting(struct watch *watch, const struct look *look)
{
    weft_usec now_us = weft_boot_us();
    if (!look->waits)
        watch->waiting_us = 0;
    else if (watch->waiting_us == 0)
        watch->waiting_us = now_us;
    if (watch->announced || !watch->waiting_us || now_us - watch->waiting_us < SILENT_MS * WEFT_MS)
        return;
    watch->announced = true;
    say(watch->work, weft_arena_printf(look->arena, "weft: waiting for %s", look->what));
}

/*
 * Looks twice. What is claimed while we look goes from ready to running behind our back, and it may
 * be our own worker's although that has not heard of it yet; the second look sees it running, or
 * the worker has counted it by then. True when nothing is left that could be served.
 */
static bool is_drained(struct watch *watch, struct look *ret_look, struct weft_err *err)
{
    struct weft_worker_stats before, after;
    weft_worker_stats(watch->worker, &before);
    if (held(&before) > 0) {
        watch->waiting_us = 0;
        return false;
    }
    for (int i = 0; i < 2; i++) {
        *ret_look = (struct look){.watch = watch, .arena = ret_look->arena};
        if (look_at_all(ret_look, err))
            return false;
        if (ret_look->servable) {
            say_waiting(watch, ret_look);
            return false;
        }
    }
    weft_worker_stats(watch->worker, &after);
    return after.claimed == before.claimed;
}

/* Sets the time of the next look: the longer this look took, the later. */
static void pace(struct watch *watch, weft_usec began_us)
{
    weft_usec now_us = weft_boot_us(), rest_us = LOOK_SHARE * (now_us - began_us);
    if (rest_us < LOOK_MS * WEFT_MS)
        rest_us = LOOK_MS * WEFT_MS;
    if (rest_us > LOOK_MAX_MS * WEFT_MS)
        rest_us = LOOK_MAX_MS * WEFT_MS;
    watch->look_us = now_us + rest_us;
}

/*
 * What a blocked node waits for may have ended just now; if it still waits after a while, then for
 * something that this worker does not do.
 */
static bool blocked_long(struct watch *watch, struct look *look, struct weft_err *err)
{
    return weft_boot_us() - watch->drained_us >= CASCADE_MS * WEFT_MS &&
           count_blocked(look, err) == WEFT_OK && look->blocked > 0;
}

/*
 * Called repeatedly; it looks when it is time to. True when it is over: with WEFT_OK in err->rc
 * when nothing is left that this worker can serve, else with the error that forbids to look.
 */
static bool is_over(struct watch *watch, struct weft_err *err)
{
    weft_usec began_us = weft_boot_us();
    if (began_us < watch->look_us)
        return false;
    struct look look = {.arena = weft_arena_new()};
    *err = (struct weft_err){0};
    bool drained = is_drained(watch, &look, err);
    if (!drained)
        watch->drained_us = 0;
    else if (watch->drained_us == 0)
        watch->drained_us = began_us;
    bool over = drained && (look.blocked == 0 || blocked_long(watch, &look, err));
    const char *left = over ? describe(&look) : NULL;
    watch->left = left ? weft_arena_strdup(watch->arena, left) : NULL;
    weft_arena_free(look.arena);
    pace(watch, began_us);
    /* Another try would meet these errors again. */
    return over || err->rc == WEFT_UNAUTHORIZED || err->rc == WEFT_FORBIDDEN;
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
        if (watch->drains && is_over(watch, err))
            return;
        *err = (struct weft_err){0};  /* complain() reports it; the next tick tries again */
        (void)poll(NULL, 0, TICK_MS); /* a signal ends it early */
    }
}

static enum weft_rc start_worker(struct watch *watch, struct weft_err *err)
{
    enum weft_rc rc = weft_worker_new(watch->weft, &watch->options, &watch->worker, err);
    for (size_t i = 0; i < watch->kinds && !rc; i++)
        rc = weft_worker_on(watch->worker, watch->kind[i], weft_work_task, watch->work, err);
    if (!rc && watch->kinds == 0)
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
    weft_upstream_clean();
    watch->work->weft = watch->weft;
    enum weft_rc rc = start_worker(watch, &err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!rc) {
        run_until_end(watch, &err);
        rc = err.rc;
        (void)weft_worker_stop(watch->worker);
    }
    weft_worker_free(watch->worker);
    if (watch->left)
        weft_cli_say("weft: %s", watch->left);
    return rc ? weft_cli_fail(&err) : watch->left ? WEFT_EXIT_LEFT : WEFT_EXIT_OK;
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
    struct watch watch = {.work = &work, .arena = cli->arena, .drains = weft_cli_has(cli, "drain")};
    struct weft_worker_options *options = &watch.options;
    options->name = weft_cli_get(cli, "name");
    options->lane_count = weft_cli_all(cli, "lane", &options->lanes);
    watch.kinds = weft_cli_all(cli, "kind", &watch.kind);
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
        "Any other code N fails it with the class exit_N, and a signal with signal_NAME; its "
        "policy decides whether it is tried again. More output than 1 MiB fails it for good with "
        "the class output_too_large.\n\n"
        "The environment has WEFT_ID, WEFT_EPOCH, WEFT_ATTEMPT, WEFT_LANE, WEFT_KIND, where they "
        "exist WEFT_TENANT, WEFT_DEADLINE_AT, WEFT_CONTENT_TYPE, WEFT_FLOW and WEFT_NODE, and "
        "WEFT_TAG_KEY for each tag, its key in capitals with underscores for what is no letter or "
        "digit. WEFT_PROGRESS_FD is the number of a file descriptor, 3, for progress: a line "
        "written to it, PERCENT or PERCENT NOTE, is what `weft show` tells of the execution from "
        "then on. Lines are reported at once, at most one a second; of more the last one "
        "counts.\n\n"
        "For a node of a flow that comes after others WEFT_UPSTREAM is a directory with a file for "
        "each of them that succeeded: it is called like the node, with %2F for a slash and %2E for "
        "a dot at the beginning, and holds the result, with a newline behind it if it is JSON. It "
        "is removed when the command has ended, and what a killed worker left is removed when the "
        "next one starts.\n\n"
        "The lease is renewed while the command runs. When the execution is cancelled, timed out "
        "or lost, the command's process group gets SIGTERM, and SIGKILL after --kill-after. "
        "Whatever the command leaves running when it ends is killed, and the command with all of "
        "its process group if `weft work` itself is killed.\n\n"
        "SIGINT or SIGTERM: nothing more is claimed and commands may end by themselves for "
        "--grace, then they get SIGTERM; what was stopped so is ready again at once. A second "
        "signal shortens the grace, a third kills the commands.\n\n"
        "With --drain it ends when nothing is ready, delayed or running any more in its lanes and "
        "of its kinds, elsewhere either, with exit code 0. Executions that it cannot serve are not "
        "waited for: in a paused lane, in need of a capability that it does not have, or behind "
        "nodes of flows that it does not run. If only such are left, it says so and ends with 7. "
        "Over a server that asks for tokens it needs one with the scope read, too.\n\n"
        "A line on standard output tells how each command ended: done, fail, quit (failed for "
        "good), later, back (stopped with us), or lost (the lease was gone).",
    .example =
        "weft work --lane images --concurrency 4 -- convert - -resize 200x200 png:-\n"
        "weft work --drain -- sh -c 'wc -c'\n"
        "weft work -- sh -c 'first; echo \"50 half way\" >&$WEFT_PROGRESS_FD; second'",
    .option = options_table,
    .run = run_work,
};
