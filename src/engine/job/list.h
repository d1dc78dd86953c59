/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_JOB_LIST_H
#define WEFT_ENGINE_JOB_LIST_H

/* Lists of executions, newest first. */

#include "weft/weft.h"

struct weft_engine;
struct weft_id_short;
struct weft_read_page;

/* Where a list walks. */
enum weft_list_source {
    WEFT_LIST_BY_STATE, /* wherever the state of the filter is found */
    WEFT_LIST_LIVING,
    WEFT_LIST_ENDED,
};

/* How long a list looks before it gives an empty page with a next one. */
#define WEFT_LOOK_US (100 * WEFT_MS)

struct weft_listing {
    struct weft_filter filter; /* ns is required here */
    enum weft_list_source source;
    uint32_t limit;
    const char *after;
    weft_usec look_us; /* how long to look while nothing fits; 0: WEFT_LOOK_US */
};

/* How far a list has looked, and how long it may go on while nothing fits. */
struct weft_list_scan {
    uint64_t looked;    /* rows */
    weft_usec began_us; /* CLOCK_BOOTTIME */
    weft_usec allowed_us;
};

/* Behind every id: where a list begins that has the newest first. */
#define WEFT_ID_LAST                                                                               \
    ((struct weft_id){{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,     \
                       0xff, 0xff, 0xff, 0xff}})

WEFT_MUST_CHECK enum weft_rc
weft_engine_list(struct weft_engine *engine, const struct weft_listing *listing,
                 struct weft_arena *arena, struct weft_read_page *ret_page, struct weft_err *err);

/* Whether a list that has found `count` of the `limit` it wants should look at more rows. */
bool weft_list_goes_on(const struct weft_list_scan *look, size_t count, size_t limit);

/* How many rows to look at next: more and more, up to the bound of a statement. */
uint32_t weft_list_next_rows(const struct weft_list_scan *look, uint32_t first);

/* A short form of an id, and the first id that does not begin so. */
WEFT_MUST_CHECK enum weft_rc weft_short_read(const char *text, struct weft_id_short *ret_short,
                                             struct weft_err *err);
struct weft_id weft_id_above(const struct weft_id_short *wanted);
WEFT_MUST_CHECK enum weft_rc weft_page_limit(uint32_t limit, struct weft_err *err);

#endif
