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

#include "base/clock.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FD_MIN = 10, /* above all that a command is given */
    NOT_STARTED = 127,
    GUARD_GROUPS = 1024, /* process groups at once; more are not guarded */
    TICK_MS = 50,
    READ_SIZE = 65536,
    DRAIN_READS = 64, /* of what is left in a pipe: more than any pipe holds */
    LINE_MAX_SIZE = 4096,
};

/* ---- Pipes ----------------------------------------------------------------------------------- */

/* The pipes of a command; the last one says why it was not started. */
enum { IN, OUT, ERR, PROGRESS, STATUS, PIPES };

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* waitpid() that a signal does not end. */
static pid_t reap_pid(pid_t pid, int *ret_status)
{
    pid_t got;
    do
        got = waitpid(pid, ret_status, 0);
    while (got < 0 && errno == EINTR);
    return got;
}

/* The descriptor itself or a higher copy of it, -1 when there is none. */
static int lift(int fd)
{
    if (fd >= FD_MIN)
        return fd;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_MIN);
    int failed = errno;
    (void)close(fd);
    errno = failed;
    return high;
}

/*
 * A pipe that is closed on exec, both ends above the descriptors that a command is given, so that
 * placing a descriptor of the command overwrites neither end. False: see errno.
 */
static bool open_pipe(int ret_ends[2])
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    for (size_t i = 0; i < 2; i++)
        ends[i] = lift(ends[i]);
    int failed = errno;
    if (ends[0] < 0 || ends[1] < 0) {
        close_fd(&ends[0]);
        close_fd(&ends[1]);
        errno = failed;
        return false;
    }
    memcpy(ret_ends, ends, sizeof(ends));
    return true;
}

/* Our end of a pipe; the other one is the command's. */
static int ours(int pipe)
{
    return pipe == IN;
}

/* Our ends do not block, except that of STATUS: start() waits there. */
static bool open_pipes(bool progress, int pipes[PIPES][2])
{
    for (int i = 0; i < PIPES; i++)
        pipes[i][0] = pipes[i][1] = -1;
    for (int i = 0; i < PIPES; i++) {
        if (i == PROGRESS && !progress)
            continue;
        if (!open_pipe(pipes[i]) ||
            (i != STATUS && fcntl(pipes[i][ours(i)], F_SETFL, O_NONBLOCK) != 0))
            return false;
    }
    return true;
}

/* ---- The guard ------------------------------------------------------------------------------- */

/*
 * A message is the number of a group, negative when it has ended. It is shorter than PIPE_BUF, so
 * that messages of many threads and commands never mix.
 *
 * A number that the guard still has when `weft work` is gone could belong to another group by then
 * only if its whole group had ended and the kernel had gone through all process ids within the
 * moment between the two: a number is in use as long as one process of the group is there.
 */

struct groups {
    pid_t id[GUARD_GROUPS];
    size_t count;
};

static void note_group(struct groups *groups, pid_t message)
{
    pid_t id = abs(message);
    size_t at = 0;
    while (at < groups->count && groups->id[at] != id)
        at++;
    if (message > 0 && at == groups->count && at < GUARD_GROUPS)
        groups->id[groups->count++] = id;
    else if (message < 0 && at < groups->count)
        groups->id[at] = groups->id[--groups->count];
}

/* False: `weft work` has closed its end of the pipe. */
static bool read_messages(int fd, struct groups *groups)
{
    pid_t message[64];
    ssize_t got = read(fd, message, sizeof(message));
    if (got < 0)
        return errno == EINTR;
    for (size_t i = 0; i < (size_t)got / sizeof(*message); i++)
        note_group(groups, message[i]);
    return got > 0;
}

/*
 * The guard itself. It keeps no descriptor open whose end another process waits for, and ignores
 * signals that are for `weft work`: from a terminal, or to its process group.
 */
static _Noreturn void be_guard(int fd)
{
    static struct groups groups;
    static const int deaf[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    for (size_t i = 0; i < WEFT_LEN(deaf); i++)
        (void)signal(deaf[i], SIG_IGN);
    (void)setsid();
    (void)prctl(PR_SET_NAME, "weft-guard");
    if (dup2(fd, STDIN_FILENO) < 0)
        _exit(1);
    (void)close_range(STDOUT_FILENO, ~0u, 0);
    while (read_messages(STDIN_FILENO, &groups))
        continue;
    for (size_t i = 0; i < groups.count; i++)
        (void)kill(-groups.id[i], SIGKILL);
    _exit(0);
}

int weft_guard_start(struct weft_guard *ret_guard)
{
    int ends[2];
    if (!open_pipe(ends))
        return errno;
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[1]);
        be_guard(ends[0]);
    }
    int failed = pid < 0 ? errno : 0;
    (void)close(ends[0]);
    if (failed)
        (void)close(ends[1]);
    else
        *ret_guard = (struct weft_guard){.pid = pid, .fd = ends[1]};
    return failed;
}

void weft_guard_stop(struct weft_guard *guard)
{
    (void)close(guard->fd);
    (void)reap_pid(guard->pid, NULL);
}

/*
 * Tells the guard of a group, or with a negative number that the group has ended. The leader of the
 * group adds it between fork() and exec(), where this call is safe: no command ever runs unguarded.
 * It is removed before the leader is reaped, while its number cannot be another group's. A guard
 * that is gone, killed by an administrator perhaps, is done without.
 */
static void tell_guard(const struct weft_guard *guard, pid_t message)
{
    ssize_t put;
    do
        put = guard ? write(guard->fd, &message, sizeof(message)) : 0;
    while (put < 0 && errno == EINTR);
}

/* ---- Starting: in the new process ------------------------------------------------------------ */

static bool put_files(int pipes[PIPES][2])
{
    return dup2(pipes[IN][0], STDIN_FILENO) >= 0 && dup2(pipes[OUT][1], STDOUT_FILENO) >= 0 &&
           dup2(pipes[ERR][1], STDERR_FILENO) >= 0 &&
           (pipes[PROGRESS][1] < 0 || dup2(pipes[PROGRESS][1], WEFT_PROGRESS_FD) >= 0);
}

/* Handlers first: no signal may run a handler of `weft work` in this process. */
static void put_signals(void)
{
    static const int reset[] = {SIGINT, SIGTERM, SIGCHLD, SIGPIPE};
    sigset_t none;
    sigemptyset(&none);
    for (size_t i = 0; i < WEFT_LEN(reset); i++)
        (void)signal(reset[i], SIG_DFL);
    (void)pthread_sigmask(SIG_SETMASK, &none, NULL);
}

/*
 * The parent may have died before the death signal was requested. Then getppid() differs; if it
 * dies after that check, the guard, which knows the group by then, kills it.
 */
static _Noreturn void be_command(const struct weft_child *child, int pipes[PIPES][2], pid_t parent)
{
    bool ready = setpgid(0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
    tell_guard(child->guard, getpid());
    if (getppid() != parent)
        _exit(NOT_STARTED);
    if (ready && put_files(pipes)) {
        put_signals();
        (void)execve(child->path, (char *const *)child->argv, (char *const *)child->envp);
    }
    int failed = errno;
    ssize_t put = write(pipes[STATUS][1], &failed, sizeof(failed));
    _exit(put == (ssize_t)sizeof(failed) ? NOT_STARTED : NOT_STARTED - 1);
}

/* ---- Starting: in ours ----------------------------------------------------------------------- */

/* Waits until the command runs, which closes the pipe, or is known not to: an errno. */
static int read_status(int fd)
{
    int failed = 0;
    ssize_t got;
    do
        got = read(fd, &failed, sizeof(failed));
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof(failed) ? failed : 0;
}

/*
 * The command is killed when the thread that started it ends (PR_SET_PDEATHSIG), so that thread
 * must stay until the command has ended: weft_child_run() does. posix_spawn() cannot ask for that,
 * hence fork(), between which and exec() only calls are made that are safe there. 0 or an errno:
 * then nothing runs.
 */
static int start(const struct weft_child *child, int ret_fd[PIPES], pid_t *ret_pid)
{
    int pipes[PIPES][2];
    int failed = 0;
    pid_t pid = -1, parent = getpid();
    if (open_pipes(child->progress != NULL, pipes))
        pid = fork();
    if (pid == 0)
        be_command(child, pipes, parent);
    if (pid < 0)
        failed = errno;
    for (int i = 0; i < PIPES; i++) /* the command's ends: else no end of file would ever come */
        close_fd(&pipes[i][!ours(i)]);
    if (!failed) {
        failed = read_status(pipes[STATUS][0]);
        if (failed) {
            tell_guard(child->guard, -pid);
            (void)reap_pid(pid, NULL);
        }
    }
    close_fd(&pipes[STATUS][0]);
    for (int i = 0; i < PIPES; i++) {
        if (failed)
            close_fd(&pipes[i][ours(i)]);
        ret_fd[i] = pipes[i][ours(i)];
    }
    *ret_pid = pid;
    return failed;
}

/* ---- The command that runs ------------------------------------------------------------------- */

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
    int fd[PIPES]; /* our ends; -1: closed */
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

/* Gives a line, or the part of it that fits, to `take`; NULL: the line is dropped. */
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

/* Keeps twice as many bytes as are wanted: they move seldom, and line ends can be cut off. */
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
    ssize_t put = left > 0 ? write(run->fd[IN], input + run->written, left) : 0;
    if (put > 0)
        run->written += (size_t)put;
    bool again = put < 0 && (errno == EAGAIN || errno == EINTR);
    if ((put < 0 && !again) || run->written == run->child->input_size)
        close_fd(&run->fd[IN]); /* all is written, or the command reads no more */
}

/* True when another read may give more at once. */
static bool read_some(struct run *run, int pipe)
{
    ssize_t got = read(run->fd[pipe], run->chunk, READ_SIZE);
    if (got < 0)
        return errno == EINTR;
    if (got == 0) {
        close_fd(&run->fd[pipe]);
        return false;
    }
    run->chunk_size = (size_t)got;
    if (pipe == ERR) {
        take_lines(run, &run->line, run->child->line, false);
        remember(run, run->chunk, (size_t)got);
    } else if (pipe == PROGRESS) {
        take_lines(run, &run->progress_line, run->child->progress, true);
    } else {
        weft_buf_add(&run->end->output, run->chunk, (size_t)got);
    }
    return true;
}

static void drain(struct run *run, int pipe)
{
    for (int i = 0; i < DRAIN_READS && run->fd[pipe] >= 0; i++)
        if (!read_some(run, pipe))
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
        struct pollfd fd[STATUS + 1] = {[STATUS] = {.fd = run->pidfd, .events = POLLIN}};
        for (int i = IN; i < STATUS; i++)
            fd[i] = (struct pollfd){.fd = run->fd[i], .events = ours(i) ? POLLOUT : POLLIN};
        if (poll(fd, WEFT_LEN(fd), TICK_MS) < 0 && errno != EINTR)
            return;
        if (fd[IN].revents)
            feed(run);
        for (int i = OUT; i < STATUS; i++)
            if (fd[i].revents)
                (void)read_some(run, i);
        if (fd[STATUS].revents)
            return;
        follow_wish(run);
    }
}

static void reap(struct run *run)
{
    kill_group(run); /* processes that the command left behind */
    drain(run, OUT);
    drain(run, ERR);
    run->end->too_large |= run->end->output.full;
    if (run->line.size > 0)
        flush_line(run, &run->line, run->child->line);
    give_tail(run);
    int status = 0;
    tell_guard(run->child->guard, -run->pid); /* while the number is still this group's */
    pid_t got = reap_pid(run->pid, &status);
    run->end->exit_code = got == run->pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    run->end->signal = got == run->pid && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

enum weft_rc weft_child_run(const struct weft_child *child, struct weft_child_end *ret_end,
                            struct weft_err *err)
{
    struct run run = {.child = child, .end = ret_end, .kill_us = WEFT_NEVER};
    int failed = start(child, run.fd, &run.pid);
    if (failed)
        return weft_fail(err, WEFT_UNAVAILABLE, "cannot start '%s': %s", child->path,
                         strerrordesc_np(failed));
    *ret_end = (struct weft_child_end){.exit_code = -1};
    weft_buf_init(&ret_end->output, child->output_max);
    run.chunk = weft_alloc(READ_SIZE, 1);
    run.pidfd = pidfd_open(run.pid, 0);
    if (run.pidfd >= 0)
        serve(&run);
    reap(&run); /* without a pidfd the command cannot be watched, and is killed */
    free(run.chunk);
    for (int i = 0; i < PIPES; i++)
        close_fd(&run.fd[i]);
    close_fd(&run.pidfd);
    return WEFT_OK;
}

void weft_child_end_done(struct weft_child_end *end)
{
    weft_buf_done(&end->output);
    *end = (struct weft_child_end){0};
}
