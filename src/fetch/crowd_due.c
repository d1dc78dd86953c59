/* SPDX-License-Identifier: Apache-2.0 */

#include "fetch/crowd_due.h"

#include "base/alloc.h"

#include <stdlib.h>

enum { ROOM_FIRST = 64 };

void weft_dues_done(struct weft_dues *dues)
{
    free(dues->heap);
    *dues = (struct weft_dues){0};
}

static void put_at(struct weft_dues *dues, size_t place, struct weft_due *due)
{
    dues->heap[place] = due;
    due->place = place;
}

/* Moves the others out of its way, up or down from a free place, and puts it there. */
static void settle(struct weft_dues *dues, size_t place, struct weft_due *due)
{
    struct weft_due **heap = dues->heap;
    for (; place > 1 && heap[place / 2]->at_us > due->at_us; place /= 2)
        put_at(dues, place, heap[place / 2]);
    for (size_t child; (child = place * 2) <= dues->count; place = child) {
        if (child < dues->count && heap[child + 1]->at_us < heap[child]->at_us)
            child++;
        if (heap[child]->at_us >= due->at_us)
            break;
        put_at(dues, place, heap[child]);
    }
    put_at(dues, place, due);
}

void weft_dues_set(struct weft_dues *dues, struct weft_due *due, weft_usec at_us)
{
    due->at_us = at_us;
    if (due->place == 0) {
        if (dues->count + 2 > dues->room) {
            dues->room = dues->room ? dues->room * 2 : ROOM_FIRST;
            dues->heap = weft_realloc(dues->heap, dues->room, sizeof(struct weft_due *));
        }
        due->place = ++dues->count;
    }
    settle(dues, due->place, due);
}

void weft_dues_remove(struct weft_dues *dues, struct weft_due *due)
{
    size_t place = due->place;
    if (place == 0)
        return;
    due->place = 0;
    struct weft_due *last = dues->heap[dues->count--];
    if (last != due)
        settle(dues, place, last);
}

struct weft_due *weft_dues_first(const struct weft_dues *dues)
{
    return dues->count ? dues->heap[1] : NULL;
}
