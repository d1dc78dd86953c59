/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_CURSOR_H
#define WEFT_CORE_CURSOR_H

/*
 * Cursors: where the next page of a list begins, as a text that means nothing to a caller.
 *
 * A cursor holds the place and a check over the list, its namespace and its filter. One that was
 * given for another list is refused, so no caller learns anything by carrying cursors from one
 * namespace to another, or goes on in a list that has left rows out. The check is no secret: the
 * place in a cursor is always one of the caller's own rows, and a place that was made up shows
 * nothing but rows of the caller's own namespace.
 */

#include "base/arena.h"
#include "base/base.h"

enum {
    WEFT_CURSOR_PLACE_MAX = 128, /* bytes of a place: an id, a number or a name */
    WEFT_CURSOR_TEXT_MAX = 192,  /* of a cursor, with the NUL */
};

/* The list that a cursor belongs to. Texts may be NULL. */
struct weft_cursor_list {
    const char *name;
    const char *ns;
    const char *filter; /* what else the caller chose, in one text: weft_cursor_filter() */
};

/* One text of many, from which each can be told: NULL and "" are different. */
const char *weft_cursor_filter(const char *const *text, size_t count, struct weft_arena *arena);

const char *weft_cursor_write(const struct weft_cursor_list *list, const void *place, size_t size,
                              struct weft_arena *arena);
/* ret_place has room for WEFT_CURSOR_PLACE_MAX bytes and a NUL, which is put behind it. */
WEFT_MUST_CHECK enum weft_rc weft_cursor_read(const struct weft_cursor_list *list, const char *text,
                                              void *ret_place, size_t *ret_size,
                                              struct weft_err *err);
/* The same for a place that is an id. *id stays as it is when after is NULL. */
WEFT_MUST_CHECK enum weft_rc weft_cursor_read_id(const struct weft_cursor_list *list,
                                                 const char *after, struct weft_id *id,
                                                 struct weft_err *err);
const char *weft_cursor_write_id(const struct weft_cursor_list *list, const struct weft_id *id,
                                 struct weft_arena *arena);
/* What a cursor that does not belong to a list is answered with. */
enum weft_rc weft_cursor_refuse(struct weft_err *err);

#endif
