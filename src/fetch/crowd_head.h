/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_FETCH_CROWD_HEAD_H
#define WEFT_FETCH_CROWD_HEAD_H

/*
 * The head of an answer, line by line, as libcurl hands it over. Refused is what servers should not
 * say and readers take in different ways: NUL bytes, lines without a name, two lengths. The limits
 * hold for all heads of one answer together, so a server cannot send interim ones for ever.
 */

#include "base/buf.h"
#include "fetch/crowd.h"

enum { WEFT_HEAD_LINES_MAX = 100, WEFT_HEAD_BYTES_MAX = 65536 };

enum weft_head_step {
    WEFT_HEAD_MORE, /* go on */
    WEFT_HEAD_END,  /* that was the empty line */
    WEFT_HEAD_BAD,  /* see `wrong` */
};

struct weft_head {
    struct weft_buf text;               /* "name\0value\0" of each line */
    uint32_t name[WEFT_HEAD_LINES_MAX]; /* where they begin in it */
    uint32_t value[WEFT_HEAD_LINES_MAX];
    size_t count;
    size_t lines, bytes; /* of all heads */
    bool ended;          /* lines that follow are trailers: counted and dropped */
    const char *wrong;   /* static */
};

void weft_head_init(struct weft_head *head);
void weft_head_done(struct weft_head *head);
void weft_head_clear(struct weft_head *head); /* before a request */
/* Takes one line, with its line break. */
enum weft_head_step weft_head_line(struct weft_head *head, const char *line, size_t size);
/* Drops an interim head; the limits go on counting. */
void weft_head_again(struct weft_head *head);
/* The lines in room for WEFT_HEAD_LINES_MAX of them, borrowed from the head; their number. */
size_t weft_head_list(const struct weft_head *head, struct weft_crowd_header *ret_header);
/* The value of the first line with this name; NULL: there is none. */
const char *weft_head_find(const struct weft_head *head, const char *name);

#endif
