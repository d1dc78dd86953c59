/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_WORK_CHILD_H
#define WEFT_CMD_WORK_CHILD_H

/*
 * One command, run to its end: bytes in on stdin, bytes out from stdout, lines out from stderr.
 *
 * The command runs in a process group of its own, with the signals as a shell would give them. It
 * may read its input or not, write any amount and ignore SIGTERM: the call always ends. Processes
 * of its group that still run when the command itself has ended are killed, so that nothing runs on
 * after the execution is settled; with a guard also when this process is killed. Safe to call from
 * many threads at once; SIGPIPE must be ignored and SIGCHLD must not be.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <sys/types.h>

/* ---- The guard ------------------------------------------------------------------------------- */

/*
 * The guard: a small process beside `weft work` that kills the commands when `weft work` dies
 * without having stopped them, by SIGKILL or a crash.
 *
 * It knows the process groups of the commands that run and reads a pipe whose other end only
 * `weft work` holds: the end of that pipe is the end of `weft work`, and then each group gets
 * SIGKILL. PR_SET_PDEATHSIG would not do alone: it kills the command itself and none of the
 * processes that the command has started, and exec() of a set-user-id program clears it.
 */

struct weft_guard {
    pid_t pid;
    int fd; /* our end of the pipe, closed on exec */
};

/* Before any thread is started, because it forks. 0 or an errno. */
WEFT_MUST_CHECK int weft_guard_start(struct weft_guard *ret_guard);
/* Ends the guard, which kills the groups that it still knows. */
void weft_guard_stop(struct weft_guard *guard);

/* ---- The command ----------------------------------------------------------------------------- */

enum { WEFT_PROGRESS_FD = 3 };   /* of the command; a digit, because dash knows no larger ones */
enum { WEFT_CHILD_TAIL = 4096 }; /* bytes of stderr that are remembered, the last ones */

enum weft_child_wish {
    WEFT_CHILD_GO_ON,
    WEFT_CHILD_STOP, /* SIGTERM, and SIGKILL when kill_after_ms have passed */
    WEFT_CHILD_KILL, /* SIGKILL */
};

/* A line without its end. */
typedef void weft_line_fn(void *context, const char *text, size_t size);

struct weft_child {
    const char *path;        /* of the file, see weft_child_find() */
    const char *const *argv; /* ends with NULL */
    const char *const *envp; /* ends with NULL */
    const void *input;
    size_t input_size;
    size_t output_max; /* more makes the command stop */
    int64_t kill_after_ms;
    enum weft_child_wish (*wish)(void *context); /* asked some 20 times a second; or NULL */
    weft_line_fn *line;     /* of stderr; each part of a very long one; or NULL */
    weft_line_fn *progress; /* to WEFT_PROGRESS_FD, cut if very long; NULL: there is no such fd */
    void *context;
    const struct weft_guard *guard; /* or NULL */
};

struct weft_child_end {
    int exit_code;  /* -1: it did not exit by itself */
    int signal;     /* that ended it; 0: none */
    bool stopped;   /* because of a wish */
    bool too_large; /* stopped because of its output */
    struct weft_buf output;
    char tail[WEFT_CHILD_TAIL + 1]; /* of stderr: text that begins and ends with a whole character
                                       where it is UTF-8, without the newlines at the end */
};

/*
 * Finds the file of a command as a shell does: a name with a slash is a path, others are looked for
 * in $PATH. WEFT_NOT_FOUND when there is none that may be run.
 */
WEFT_MUST_CHECK enum weft_rc weft_child_find(const char *name, struct weft_arena *arena,
                                             const char **ret_path, struct weft_err *err);

/*
 * WEFT_UNAVAILABLE when the command could not be started. Otherwise *ret_end is filled and ends
 * with weft_child_end_done().
 */
WEFT_MUST_CHECK enum weft_rc weft_child_run(const struct weft_child *child,
                                            struct weft_child_end *ret_end, struct weft_err *err);
void weft_child_end_done(struct weft_child_end *end); /* a zeroed one is fine */

#endif
