/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_WORK_WORK_H
#define WEFT_CMD_WORK_WORK_H

/*
 * weft work: a command per execution. cmd_work.c runs the worker and handles signals, task.c runs
 * the command for one execution and says how it ended; drain.c knows when nothing is left to do.
 */

#include "base/base.h"
#include "base/limits.h"
#include "cmd/cli/cli.h"
#include "cmd/work/child.h"
#include "core/budget.h"

#include <pthread.h>
#include <stdatomic.h>

/* What the exit code of a command means, beside 0 and "any other". */
enum {
    WEFT_WORK_EXIT_GIVE_UP = 65, /* EX_DATAERR: another attempt would fail, too */
    WEFT_WORK_EXIT_LATER = 75,   /* EX_TEMPFAIL: not now, and this was no attempt */
    WEFT_WORK_EXIT_SUSPEND = 79, /* the first beyond sysexits: as WEFT_SUSPEND_FILE says */
};

/* How urgently to end: the number of signals that came. */
enum weft_work_stop {
    WEFT_WORK_GOES_ON,
    WEFT_WORK_STOPS,   /* commands may end by themselves, for the grace */
    WEFT_WORK_HURRIES, /* they get SIGTERM */
    WEFT_WORK_QUITS,   /* they are killed */
};

struct weft_work {
    struct weft *weft;       /* set before the worker starts */
    const char *path;        /* of the command */
    const char *const *argv; /* ends with NULL */
    int64_t kill_after_ms;
    int64_t later_ms; /* how long "not now" is */
    uint64_t max;     /* executions to run; 0: no limit */
    bool json, color;
    const struct weft_guard *guard; /* kills the commands if this process is killed; or NULL */

    /* Shared with the handlers. */
    atomic_ullong begun, ended;
    atomic_int stop;          /* enum weft_work_stop */
    _Atomic int64_t term_us;  /* when the grace is over, CLOCK_BOOTTIME; WEFT_NEVER */
    atomic_bool warned;       /* of progress that cannot be read */
    atomic_bool usage_warned; /* of usage that cannot be read */
    pthread_mutex_t lock;     /* of stdout and stderr, so that lines stay whole */
};

/* The handler of every kind; the context is the struct weft_work. */
enum weft_verdict weft_work_task(struct weft_job *job, void *context);

/* A line that a command wrote to WEFT_PROGRESS_FD: "PERCENT [NOTE]", 0 to 100, perhaps with a
 * fraction, which is cut, and a percent sign. False: it is no such line. */
struct weft_work_progress {
    int32_t percent;
    char note[WEFT_REASON_MAX + 1];
};
WEFT_MUST_CHECK bool weft_work_progress_read(const char *text, size_t size,
                                             struct weft_work_progress *ret_progress);

/* ---- What commands spend (usage.c) ----------------------------------------------------------- */

/* A line that a command wrote to WEFT_USAGE_FILE: "NAME NUMBER". False: it is no such line. */
struct weft_work_spent {
    char dimension[WEFT_DIMENSION_NAME_MAX + 1];
    int64_t total;
};
WEFT_MUST_CHECK bool weft_work_usage_read(const char *text, size_t size,
                                          struct weft_work_spent *ret_spent);

/* The reports of one command. path NULL: it makes none. `say` gets lines for stderr, from any
 * thread. It ends with weft_work_usage_end(). */
struct weft_work_usage;
struct weft_work_usage *weft_work_usage_new(struct weft_work *work, struct weft_job *job,
                                            const char *path, weft_line_fn *say, void *context);
/* Called some times a second while the command runs; does not block. */
void weft_work_usage_look(struct weft_work_usage *usage);
/* The command has ended: reports what is in the file now, unless the lease is gone. Blocks until it
 * is answered, or the worker stops. */
void weft_work_usage_end(struct weft_work_usage *usage);

/* ---- --drain (drain.c) ----------------------------------------------------------------------- */

struct weft_drain {
    struct weft_work *work;
    struct weft_arena *arena; /* of the command line */
    struct weft *weft;
    struct weft_worker *worker;
    const struct weft_worker_options *options;
    const char *const *kind;
    size_t kinds;     /* 0: all */
    const char *left; /* what is left, in words; NULL: nothing */

    /* Of drain.c. */
    weft_usec look_us;    /* when to look again */
    weft_usec drained_us; /* since when nothing is left but blocked ones; 0: it is not so */
    weft_usec waiting_us; /* since when it has waited with nothing to do; 0: it does not */
    bool announced;       /* what it waits for */
};

/*
 * Called repeatedly; it looks when it is time to. True when it is over: with WEFT_OK in err->rc
 * when nothing is left that this worker can serve, else with the error that forbids to look.
 */
bool weft_drain_is_over(struct weft_drain *drain, struct weft_err *err);

/* ---- The directory of a command (work_dir.c) ------------------------------------------------- */

/*
 * What a command reads and writes beside its standard input and output. The directory is in $TMPDIR
 * or /tmp and for its owner alone.
 *
 * The process that made a directory holds a lock on it (flock) until it is removed. A directory
 * that is not locked was left behind by a process that was killed.
 */
struct weft_work_dir {
    const char *path;     /* in the arena, as the others; NULL: it could not be made */
    int fd;               /* holds the lock; closed on exec */
    const char *upstream; /* folder; NULL: the execution comes after nothing */
    const char *signals;  /* folder; NULL: the execution was not suspended */
    const char *suspend;  /* file, which is not there; NULL: without path */
    const char *usage;    /* the same */
};

/*
 * Makes the directory with its files. What did not come along with the claim is read through the
 * handle. One that cannot be made is a failure only if there is something to put into it. It ends
 * with weft_work_dir_remove().
 */
WEFT_MUST_CHECK enum weft_rc
weft_work_dir_make(struct weft *weft, const struct weft_claimed *claimed, struct weft_arena *arena,
                   struct weft_work_dir *ret_dir, struct weft_err *err);
/* Removes it with all that is in it. */
void weft_work_dir_remove(const struct weft_work_dir *dir);
/*
 * Removes what processes of this user left behind in $TMPDIR or /tmp. Directories of living ones,
 * of other users and symbolic links stay.
 */
void weft_work_dir_clean(void);
/* A new file. JSON gets a newline at its end. */
WEFT_MUST_CHECK enum weft_rc weft_work_file_write(const char *path, const struct weft_bytes *bytes,
                                                  struct weft_err *err);

/* ---- Results of upstreams (upstream.c) ------------------------------------------------------- */

/* A file for each upstream that succeeded, with the bytes of its result, called like the node. */
WEFT_MUST_CHECK enum weft_rc weft_upstream_write(struct weft *weft,
                                                 const struct weft_claimed *claimed,
                                                 const char *path, struct weft_arena *arena,
                                                 struct weft_err *err);

/* ---- Waiting (suspend.c) --------------------------------------------------------------------- */

/*
 * The signals of an execution that goes on: 1, 2, ... with their payloads in the order of their
 * arrival, and signals.json with all else.
 */
WEFT_MUST_CHECK enum weft_rc weft_work_signals_write(struct weft *weft,
                                                     const struct weft_claimed *claimed,
                                                     const char *path, struct weft_arena *arena,
                                                     struct weft_err *err);
/*
 * Reads the request that a command wrote. path NULL: there is no file. The name of a waitpoint that
 * is pending stands for that one.
 */
WEFT_MUST_CHECK enum weft_rc weft_work_suspend_read(struct weft *weft,
                                                    const struct weft_claimed *claimed,
                                                    const char *path, struct weft_arena *arena,
                                                    struct weft_suspend *ret_suspend,
                                                    struct weft_err *err);

#endif
