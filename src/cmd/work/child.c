/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A poll loop over the pipes and a pidfd. Our ends of the pipes do not block, so a command that
 * fills stdout before it reads stdin is served. The end of the command comes from the pidfd and not
 * from its pipes, which a grandchild may hold open for ever.
 *
 * The leader of the group is reaped last, so that the number of the group stays ours as long as
 * signals are sent to it.
 */

#include "cmd/work/child.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TICK_MS = 50,
    READ_SIZE = 65536,
    DRAIN_READS = 64, /* of what is left in a pipe: more than any pipe holds */
    LINE_MAX_SIZE = 4096,
};

/* Lines that are read in pieces. */
struct lines {
    char text[LINE_MAX_SIZE];
    size_t size;
    bool skip; /* the rest of this line */
};

struct run {
    const struct weft_child *child;
    struct weft_child_end *end;
    pid_t pid;
    int pidfd;
    int in, out, err, progress; /* our ends; -1: closed */
    size_t written;
    char *chunk; /* owned; READ_SIZE bytes, of which chunk_size were read last */
    size_t chunk_size;
    struct lines line, progress_line;
    char tail[2 * WEFT_CHILD_TAIL]; /* the last half of it counts when it is full */
    size_t tail_size;
    weft_usec kill_us; /* when SIGKILL is due; WEFT_NEVER: it was not asked to stop */
    bool killed;
};

/* ---- Finding --------------------------------------------------------------------------------- */

static bool is_runnable(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

enum weft_rc weft_child_find(const char *name, struct weft_arena *arena, const char **ret_path,
                             struct weft_err *err)
{
    if (strchr(name, '/')) {
        if (!is_runnable(name))
            return weft_fail(err, WEFT_NOT_FOUND, "'%s' is no file that can be run", name);
        *ret_path = weft_arena_strdup(arena, name);
        return WEFT_OK;
    }
    const char *at = getenv("PATH"); /* NOLINT(concurrency-mt-unsafe): no thread sets variables */
    if (!at)
        at = "/usr/local/bin:/usr/bin:/bin";
    while (*name) {
        size_t size = strcspn(at, ":");
        const char *path =
            weft_arena_printf(arena, "%.*s/%s", size ? (int)size : 1, size ? at : ".", name);
        if (is_runnable(path)) {
            *ret_path = path;
            return WEFT_OK;
        }
        if (!at[size])
            break;
        at += size + 1;
    }
    return weft_fail(err, WEFT_NOT_FOUND, "there is no command '%s' in $PATH", name);
}

/* ---- stderr ---------------------------------------------------------------------------------- */

/* Hands over a line, or the part of it that fits; NULL: nowhere. */
static void flush_line(const struct run *run, struct lines *lines, weft_line_fn *take)
{
    if (take && !lines->skip)
        take(run->child->context, lines->text, lines->size);
    lines->size = 0;
}

/* cut: only the first part of a line that is too long is handed over. */
static void take_lines(const struct run *run, struct lines *lines, weft_line_fn *take, bool cut)
{
    const char *end = run->chunk + run->chunk_size;
    for (const char *at = run->chunk; at < end; at++) {
        bool ends = *at == '\n';
        if (!ends)
            lines->text[lines->size++] = *at;
        if (ends || lines->size == sizeof(lines->text)) {
            flush_line(run, lines, take);
            lines->skip = cut && !ends;
        }
    }
}

/* Keeps twice of what is wanted, so that most of it need not be moved and line ends can go. */
static void remember(struct run *run, const char *text, size_t size)
{
    const size_t room = sizeof(run->tail);
    if (size > room) {
        text += size - room;
        size = room;
    }
    if (run->tail_size + size > room) {
        size_t keep = room - size < WEFT_CHILD_TAIL ? room - size : WEFT_CHILD_TAIL;
        memmove(run->tail, run->tail + run->tail_size - keep, keep);
        run->tail_size = keep;
    }
    memcpy(run->tail + run->tail_size, text, size);
    run->tail_size += size;
}

/* The last bytes as text: not beginning inside a character, without newlines at the end. */
static void give_tail(struct run *run)
{
    const char *text = run->tail;
    size_t size = run->tail_size;
    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r'))
        size--;
    if (size > WEFT_CHILD_TAIL) {
        text += size - WEFT_CHILD_TAIL;
        size = WEFT_CHILD_TAIL;
        for (int i = 0; i < 3 && ((unsigned char)*text & 0xc0) == 0x80; i++, size--)
            text++;
    }
    memcpy(run->end->tail, text, size);
    run->end->tail[size] = '\0';
    for (size_t i = 0; i < size; i++)
        if (run->end->tail[i] == '\0')
            run->end->tail[i] = '?'; /* it is to be read as a C string */
}

/* ---- The pipes ------------------------------------------------------------------------------- */

static void feed(struct run *run)
{
    const char *input = run->child->input;
    size_t left = run->child->input_size - run->written;
    ssize_t put = left > 0 ? write(run->in, input + run->written, left) : 0;
    if (put > 0)
        run->written += (size_t)put;
    bool again = put < 0 && (errno == EAGAIN || errno == EINTR);
    if ((put < 0 && !again) || run->written == run->child->input_size)
        weft_close_fd(&run->in); /* all is written, or the command reads no more */
}

/* True when there may be more at once. */
static bool read_some(struct run *run, int *fd)
{
    ssize_t got = read(*fd, run->chunk, READ_SIZE);
    if (got < 0)
        return errno == EINTR;
    if (got == 0) {
        weft_close_fd(fd);
        return false;
    }
    run->chunk_size = (size_t)got;
    if (fd == &run->err) {
        take_lines(run, &run->line, run->child->line, false);
        remember(run, run->chunk, (size_t)got);
    } else if (fd == &run->progress) {
        take_lines(run, &run->progress_line, run->child->progress, true);
    } else {
        weft_buf_add(&run->end->output, run->chunk, (size_t)got);
    }
    return true;
}

static void drain(struct run *run, int *fd)
{
    for (int i = 0; i < DRAIN_READS && *fd >= 0; i++)
        if (!read_some(run, fd))
            return;
}

/* ---- Stopping -------------------------------------------------------------------------------- */

static void kill_group(struct run *run)
{
    if (!run->killed)
        (void)kill(-run->pid, SIGKILL);
    run->killed = true;
}

static void follow_wish(struct run *run)
{
    const struct weft_child *child = run->child;
    enum weft_child_wish wish = child->wish ? child->wish(child->context) : WEFT_CHILD_GO_ON;
    run->end->stopped |= wish != WEFT_CHILD_GO_ON;
    if (run->end->output.full) {
        run->end->too_large = true;
        if (wish == WEFT_CHILD_GO_ON)
            wish = WEFT_CHILD_STOP;
    }
    if (wish == WEFT_CHILD_GO_ON && run->kill_us == WEFT_NEVER)
        return;
    if (run->kill_us == WEFT_NEVER) {
        (void)kill(-run->pid, SIGTERM);
        run->kill_us = weft_boot_us() + child->kill_after_ms * WEFT_MS;
    }
    if (wish == WEFT_CHILD_KILL || weft_boot_us() >= run->kill_us)
        kill_group(run);
}

/* ---- Running --------------------------------------------------------------------------------- */

static void serve(struct run *run)
{
    for (;;) {
        struct pollfd fd[] = {
            {.fd = run->pidfd, .events = POLLIN},    {.fd = run->in, .events = POLLOUT},
            {.fd = run->out, .events = POLLIN},      {.fd = run->err, .events = POLLIN},
            {.fd = run->progress, .events = POLLIN},
        };
        if (poll(fd, WEFT_LEN(fd), TICK_MS) < 0 && errno != EINTR)
            return;
        if (fd[1].revents)
            feed(run);
        if (fd[2].revents)
            (void)read_some(run, &run->out);
        if (fd[3].revents)
            (void)read_some(run, &run->err);
        if (fd[4].revents)
            (void)read_some(run, &run->progress);
        if (fd[0].revents)
            return;
        follow_wish(run);
    }
}

static void reap(struct run *run)
{
    kill_group(run); /* processes that the command left behind */
    drain(run, &run->out);
    drain(run, &run->err);
    run->end->too_large |= run->end->output.full;
    if (run->line.size > 0)
        flush_line(run, &run->line, run->child->line);
    give_tail(run);
    int status = 0;
    weft_guard_remove(run->child->guard, run->pid); /* while the number is still this group's */
    pid_t got = weft_reap(run->pid, &status);
    run->end->exit_code = got == run->pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    run->end->signal = got == run->pid && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

enum weft_rc weft_child_run(const struct weft_child *child, struct weft_child_end *ret_end,
                            struct weft_err *err)
{
    const struct weft_spawn spawn = {.path = child->path,
                                     .argv = child->argv,
                                     .envp = child->envp,
                                     .progress = child->progress != NULL,
                                     .guard = child->guard};
    struct weft_spawned spawned;
    int failed = weft_spawn(&spawn, &spawned);
    if (failed)
        return weft_fail(err, WEFT_UNAVAILABLE, "cannot start '%s': %s", child->path,
                         strerrordesc_np(failed));
    *ret_end = (struct weft_child_end){.exit_code = -1};
    weft_buf_init(&ret_end->output, child->output_max);
    struct run run = {.child = child,
                      .end = ret_end,
                      .pid = spawned.pid,
                      .in = spawned.in,
                      .out = spawned.out,
                      .err = spawned.err,
                      .progress = spawned.progress,
                      .kill_us = WEFT_NEVER};
    run.chunk = weft_realloc(NULL, READ_SIZE, 1);
    run.pidfd = pidfd_open(run.pid, 0);
    if (run.pidfd >= 0)
        serve(&run);
    reap(&run); /* without a pidfd the command cannot be watched, and is killed */
    free(run.chunk);
    weft_close_fd(&run.in);
    weft_close_fd(&run.out);
    weft_close_fd(&run.err);
    weft_close_fd(&run.progress);
    weft_close_fd(&run.pidfd);
    return WEFT_OK;
}

void weft_child_end_done(struct weft_child_end *end)
{
    weft_buf_done(&end->output);
    *end = (struct weft_child_end){0};
}
