/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_CURSOR_H
#define WEFT_CORE_CURSOR_H

/*
 * Cursors: where the next page of a list begins, as an opaque text.
 *
 * A cursor holds the place and a checksum over the list, its namespace and its filter. A cursor of
 * another list is refused, so a caller cannot use it in another namespace, or continue in a list
 * with another filter. The checksum is no secret: a place is always one of the caller's own rows,
 * and a forged place shows only rows of the caller's own namespace.
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
    const char *filter; /* the caller's other choices: weft_cursor_filter() */
};

/* Joins texts without ambiguity: NULL and "" differ. In the arena. */
const char *weft_cursor_filter(const char *const *text, size_t count, struct weft_arena *arena);

const char *weft_cursor_write(const struct weft_cursor_list *list, const void *place, size_t size,
                              struct weft_arena *arena);
/* ret_place has room for WEFT_CURSOR_PLACE_MAX bytes and a terminating NUL. */
WEFT_MUST_CHECK enum weft_rc weft_cursor_read(const struct weft_cursor_list *list, const char *text,
                                              void *ret_place, size_t *ret_size,
                                              struct weft_err *err);
/* The same for a place that is an id. *id stays as it is when after is NULL. */
WEFT_MUST_CHECK enum weft_rc weft_cursor_read_id(const struct weft_cursor_list *list,
                                                 const char *after, struct weft_id *id,
                                                 struct weft_err *err);
const char *weft_cursor_write_id(const struct weft_cursor_list *list, const struct weft_id *id,
                                 struct weft_arena *arena);
/* The failure of a cursor that does not belong to a list. */
enum weft_rc weft_cursor_refuse(struct weft_err *err);

#endif
