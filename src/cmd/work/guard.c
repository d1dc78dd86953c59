/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A message is the number of a group, negative when it has ended. It is shorter than PIPE_BUF, so
 * that messages of many threads and commands never mix.
 *
 * A number that the guard still has when `weft work` is gone could belong to another group by then
 * only if its whole group had ended and the kernel had gone through all process ids within the
 * moment between the two: a number is in use as long as one process of the group is there.
 */

#include "cmd/work/guard.h"

#include "cmd/work/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct groups {
    pid_t id[WEFT_GUARD_GROUPS];
    size_t count;
};

static void note_group(struct groups *groups, pid_t message)
{
    pid_t id = abs(message);
    size_t at = 0;
    while (at < groups->count && groups->id[at] != id)
        at++;
    if (message > 0 && at == groups->count && at < WEFT_GUARD_GROUPS)
        groups->id[groups->count++] = id;
    else if (message < 0 && at < groups->count)
        groups->id[at] = groups->id[--groups->count];
}

/* True while more may come. */
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
 * The guard itself. It keeps nothing open that others wait for the end of, and hears no signals
 * that are for `weft work`: those of a terminal, and those to its process group.
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
    if (!weft_pipe(ends))
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
    (void)weft_reap(guard->pid, NULL);
}

/* A guard that is gone, killed by an administrator perhaps, is done without. */
static void send_message(const struct weft_guard *guard, pid_t message)
{
    ssize_t put;
    do
        put = write(guard->fd, &message, sizeof(message));
    while (put < 0 && errno == EINTR);
}

void weft_guard_add(const struct weft_guard *guard, pid_t group)
{
    if (guard)
        send_message(guard, group);
}

void weft_guard_remove(const struct weft_guard *guard, pid_t group)
{
    if (guard)
        send_message(guard, -group);
}
