/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_FETCH_CROWD_DUE_H
#define WEFT_FETCH_CROWD_DUE_H

/*
 * The deadlines of calls: a heap with the earliest first. A deadline that moves away, as it does
 * with every byte of an answer, may stay where it is: its owner looks again when it comes up.
 */

#include "base/base.h"

struct weft_due {
    weft_usec at_us;
    size_t place; /* in the heap, from 1; 0: not in it */
};

struct weft_dues {
    struct weft_due **heap; /* owned, from 1; what it points to belongs to the callers */
    size_t count, room;
};

void weft_dues_done(struct weft_dues *dues);
/* Puts it in, or moves it. */
void weft_dues_set(struct weft_dues *dues, struct weft_due *due, weft_usec at_us);
void weft_dues_remove(struct weft_dues *dues, struct weft_due *due); /* one that is not in: fine */
/* The earliest, which stays; NULL: there is none. */
struct weft_due *weft_dues_first(const struct weft_dues *dues);

#endif
