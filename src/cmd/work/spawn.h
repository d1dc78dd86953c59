/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_WORK_SPAWN_H
#define WEFT_CMD_WORK_SPAWN_H

/*
 * Starting a command: the leader of a process group of its own, with pipes for its standard files,
 * and with the signals as a shell would give them.
 *
 * It is killed when the thread that started it ends (PR_SET_PDEATHSIG), so that thread must stay
 * until the command has ended: weft_child_run() does. posix_spawn() cannot ask for that, hence
 * fork(), between which and exec() only calls are made that are safe there.
 */

#include "cmd/work/guard.h"

enum { WEFT_PROGRESS_FD = 3 }; /* of the command; a digit, because dash knows no larger ones */

struct weft_spawn {
    const char *path;
    const char *const *argv;        /* ends with NULL */
    const char *const *envp;        /* ends with NULL */
    bool progress;                  /* it has WEFT_PROGRESS_FD */
    const struct weft_guard *guard; /* or NULL */
};

/* A command that runs; our ends of the pipes do not block and are the caller's to close. */
struct weft_spawned {
    pid_t pid; /* and process group */
    int in, out, err;
    int progress; /* -1: there is none */
};

void weft_close_fd(int *fd); /* -1 is fine, and what it is set to */
/* waitpid() that a signal does not end. */
pid_t weft_reap(pid_t pid, int *ret_status);

/* 0 or an errno: then nothing runs. */
WEFT_MUST_CHECK int weft_spawn(const struct weft_spawn *spawn, struct weft_spawned *ret_spawned);

/*
 * A pipe that is closed on exec, both ends above the descriptors that a command is given, so that
 * none of them is overwritten when those are put in place. False: see errno.
 */
WEFT_MUST_CHECK bool weft_pipe(int ret_ends[2]);

#endif
