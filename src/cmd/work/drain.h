/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_WORK_DRAIN_H
#define WEFT_CMD_WORK_DRAIN_H

/*
 * weft work --drain: whether anything is left for this worker to do.
 *
 * It goes on while an execution of its lanes and kinds is ready, delayed or running, here or
 * elsewhere, that it could serve: running ones may fail and come back. It ends when all that is
 * left are executions that it cannot serve: in a paused lane, in need of a capability that it does
 * not have, or blocked by nodes of flows that it does not run.
 */

#include "base/base.h"
#include "cmd/cli/cli.h"

struct weft_drain {
    struct weft *weft;
    struct weft_worker *worker;
    const char *const *lane, *const *kind, *const *capability;
    size_t lanes, kinds, capabilities;            /* kinds 0: all */
    void (*say)(void *context, const char *text); /* a line for people, without its end */
    void *context;

    /* drain.c's; zero at the beginning. */
    weft_usec look_us;        /* when to look again */
    weft_usec drained_us;     /* since when nothing is left but blocked ones; 0: it is */
    weft_usec waiting_us;     /* since when it has waited with nothing to do; 0: it does not */
    bool announced;           /* what it waits for */
    struct weft_arena *arena; /* of `left` */
    const char *left;         /* what is left, in words; NULL: nothing */
};

/*
 * Called repeatedly; it looks when it is time to. True when it is over: with WEFT_OK in err->rc
 * when nothing is left that this worker can serve, else with the error that forbids to look.
 */
WEFT_MUST_CHECK bool weft_drain_over(struct weft_drain *drain, struct weft_err *err);
/* Says what is left, and frees it. WEFT_EXIT_LEFT when something is. */
enum weft_exit weft_drain_end(struct weft_drain *drain);

#endif
