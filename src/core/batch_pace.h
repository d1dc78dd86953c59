/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_BATCH_PACE_H
#define WEFT_CORE_BATCH_PACE_H

/*
 * How the lines of a batch keep up with its window. Pure.
 *
 * Lines wait in the order of submission with everything else in their lane, so a batch behind a
 * large one would wait for all of that. Therefore each batch is looked at from time to time, the
 * more often the less time is left, and if its lines do not end fast enough for the window, as many
 * of those that wait as should begin until the next look are put before the others. So a batch gets
 * a share that grows with what it has left and with how little time that has, and never more: the
 * rest of the lane is for the others, and for what has a higher priority.
 *
 * Late in the window lines that still wait may be moved to another model, which is named for that.
 */

#include "base/base.h"

enum {
    WEFT_BATCH_PIECE_MAX = 10000, /* lines that one look puts before others */
    WEFT_BATCH_RAISED = 1,        /* their priority; lines have 0 */
};

struct weft_batch_pace {
    uint64_t waiting;   /* lines that have not begun */
    uint64_t raised;    /* of these, those that stand before others already */
    uint64_t ended;     /* lines that have ended since the last look */
    weft_usec since_us; /* how long ago that was; 0: there was none */
    weft_usec left_us;  /* of the window */
    weft_usec next_us;  /* until the next look */
};

/* How many lines more are to be put before others. */
uint32_t weft_batch_pace_raise(const struct weft_batch_pace *pace);

/* Whether lines that wait are to be moved to the other model. */
bool weft_batch_escalates(weft_usec window_us, weft_usec left_us);

/* After what time a batch is to be looked at again. */
weft_usec weft_batch_look_in(weft_usec window_us, weft_usec left_us);

#endif
