/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_JOB_SHOW_H
#define WEFT_CMD_JOB_SHOW_H

/* The parts of `weft show`. */

#include "cmd/cli/output.h"
#include "weft/admin.h"

/* "label         text": one line, without control characters. */
WEFT_PRINTF(2, 3)
void weft_show_field(const char *label, const char *fmt, ...);
void weft_show_text(const char *label, const char *text);      /* NULL: no line */
void weft_show_moment(const char *label, weft_usec moment_us); /* 0: no line */

/* Lines about what an execution waits for, what the reader can do about it, and how it went on. */
void weft_show_waiting(const struct weft_id *id, const struct weft_waiting *waiting);
/* A cell with the state of a waitpoint; `field` is the enum. */
void weft_cell_waitpoint_state(struct weft_table *table, const void *field);
/* A table of the waitpoints of its suspension, behind an empty line; none: nothing. */
void weft_show_waitpoints(const struct weft_cli *cli, const struct weft_waiting *waiting);

/*
 * A condition in one sentence: "2 of 3 waitpoints, signal `approved`". A condition that this binary
 * does not know is given back as it is. In the arena.
 */
const char *weft_condition_words(const struct weft_waiting *waiting, struct weft_arena *arena);

#endif
