/* SPDX-License-Identifier: Apache-2.0 */

#include "cmd/work/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FD_MIN = 10, /* above all that a command is given */
    NOT_STARTED = 127,
};

enum { IN, OUT, ERR, PROGRESS, STATUS, PIPES };

void weft_close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

pid_t weft_reap(pid_t pid, int *ret_status)
{
    pid_t got;
    do
        got = waitpid(pid, ret_status, 0);
    while (got < 0 && errno == EINTR);
    return got;
}

static void close_pipes(int pipes[PIPES][2])
{
    for (size_t i = 0; i < PIPES; i++) {
        weft_close_fd(&pipes[i][0]);
        weft_close_fd(&pipes[i][1]);
    }
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

bool weft_pipe(int ret_ends[2])
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    for (size_t i = 0; i < 2; i++)
        ends[i] = lift(ends[i]);
    int failed = errno;
    if (ends[0] < 0 || ends[1] < 0) {
        weft_close_fd(&ends[0]);
        weft_close_fd(&ends[1]);
        errno = failed;
        return false;
    }
    ret_ends[0] = ends[0];
    ret_ends[1] = ends[1];
    return true;
}

static bool open_pipes(bool progress, int pipes[PIPES][2])
{
    for (size_t i = 0; i < PIPES; i++)
        pipes[i][0] = pipes[i][1] = -1;
    for (size_t i = 0; i < PIPES; i++)
        if ((i != PROGRESS || progress) && !weft_pipe(pipes[i]))
            return false;
    return fcntl(pipes[IN][1], F_SETFL, O_NONBLOCK) == 0 &&
           fcntl(pipes[OUT][0], F_SETFL, O_NONBLOCK) == 0 &&
           fcntl(pipes[ERR][0], F_SETFL, O_NONBLOCK) == 0 &&
           (!progress || fcntl(pipes[PROGRESS][0], F_SETFL, O_NONBLOCK) == 0);
}

/* ---- In the new process ---------------------------------------------------------------------- */

static bool put_files(int pipes[PIPES][2])
{
    return dup2(pipes[IN][0], STDIN_FILENO) >= 0 && dup2(pipes[OUT][1], STDOUT_FILENO) >= 0 &&
           dup2(pipes[ERR][1], STDERR_FILENO) >= 0 &&
           (pipes[PROGRESS][1] < 0 || dup2(pipes[PROGRESS][1], WEFT_PROGRESS_FD) >= 0);
}

/* Handlers first: no signal may meet those of `weft work` here. */
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
static _Noreturn void be_command(const struct weft_spawn *spawn, int pipes[PIPES][2], pid_t parent)
{
    bool ready = setpgid(0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
    weft_guard_add(spawn->guard, getpid());
    if (getppid() != parent)
        _exit(NOT_STARTED);
    if (ready && put_files(pipes)) {
        put_signals();
        (void)execve(spawn->path, (char *const *)spawn->argv, (char *const *)spawn->envp);
    }
    int failed = errno;
    ssize_t put = write(pipes[STATUS][1], &failed, sizeof(failed));
    _exit(put == (ssize_t)sizeof(failed) ? NOT_STARTED : NOT_STARTED - 1);
}

/* ---- In ours --------------------------------------------------------------------------------- */

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

int weft_spawn(const struct weft_spawn *spawn, struct weft_spawned *ret_spawned)
{
    int pipes[PIPES][2];
    int failed = 0;
    pid_t pid = -1, parent = getpid();
    if (open_pipes(spawn->progress, pipes))
        pid = fork();
    if (pid == 0)
        be_command(spawn, pipes, parent);
    if (pid < 0)
        failed = errno;
    weft_close_fd(&pipes[STATUS][1]); /* the command's ends: else no end of file would ever come */
    weft_close_fd(&pipes[IN][0]);
    weft_close_fd(&pipes[OUT][1]);
    weft_close_fd(&pipes[ERR][1]);
    weft_close_fd(&pipes[PROGRESS][1]);
    if (!failed) {
        failed = read_status(pipes[STATUS][0]);
        if (failed) {
            weft_guard_remove(spawn->guard, pid);
            (void)weft_reap(pid, NULL);
        }
    }
    if (!failed) {
        *ret_spawned = (struct weft_spawned){.pid = pid,
                                             .in = pipes[IN][1],
                                             .out = pipes[OUT][0],
                                             .err = pipes[ERR][0],
                                             .progress = pipes[PROGRESS][0]};
        pipes[IN][1] = pipes[OUT][0] = pipes[ERR][0] = pipes[PROGRESS][0] = -1;
    }
    close_pipes(pipes);
    return failed;
}
