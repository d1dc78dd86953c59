/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_WORK_GUARD_H
#define WEFT_CMD_WORK_GUARD_H

/*
 * The guard: a small process beside `weft work` that kills the commands when `weft work` dies
 * without having stopped them, by SIGKILL or a crash.
 *
 * It knows the process groups of the commands that run and reads a pipe whose other end only
 * `weft work` holds: the end of that pipe is the end of `weft work`, and then each group gets
 * SIGKILL. PR_SET_PDEATHSIG would not do alone: it kills the command itself and none of the
 * processes that the command has started, and exec() of a set-user-id program clears it.
 */

#include "base/base.h"

#include <sys/types.h>

enum { WEFT_GUARD_GROUPS = 1024 }; /* process groups at once; more are not guarded */

struct weft_guard {
    pid_t pid;
    int fd; /* our end of the pipe, closed on exec */
};

/* Before any thread is started, because it forks. 0 or an errno. */
WEFT_MUST_CHECK int weft_guard_start(struct weft_guard *ret_guard);
/* Ends it. What is still guarded is killed. */
void weft_guard_stop(struct weft_guard *guard);

/*
 * The leader of the group adds it between fork() and exec(), where both calls are safe: no command
 * ever runs unguarded. It is removed before the leader is reaped, while its number cannot be
 * another group's. NULL is fine.
 */
void weft_guard_add(const struct weft_guard *guard, pid_t group);
void weft_guard_remove(const struct weft_guard *guard, pid_t group);

#endif
