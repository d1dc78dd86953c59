/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_JOB_CMD_CONTROL_H
#define WEFT_CMD_JOB_CMD_CONTROL_H

/* What weft cancel, replay, priority, revoke and deadline share. */

#include "cmd/cli/cli.h"

struct weft_verb {
    enum weft_steer_kind kind;
    const char *doing;    /* "cancel" */
    const char *done;     /* "cancelled" */
    const char *not_done; /* by filter, what became of those that were not changed */
    bool living;          /* it is for living executions; otherwise for ended ones */
    bool takes_value;     /* the last argument is the new priority or deadline */
};

/* Everything that fits the filter of the command line, to the end (sweep.c). */
enum weft_exit weft_steer_filter(struct weft_cli *cli, const struct weft_verb *verb);

#endif
