/* SPDX-License-Identifier: Apache-2.0 */

/* One block of memory that doubles until it meets the ceiling. */

#include "base/buf.h"

#include "base/alloc.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 256 };

void weft_buf_init(struct weft_buf *buf, size_t max)
{
    *buf = (struct weft_buf){.max = max < SIZE_MAX / 4 ? max : SIZE_MAX / 4};
    buf->capacity = buf->max < FIRST_CAPACITY ? buf->max + 1 : FIRST_CAPACITY;
    buf->data = weft_alloc(buf->capacity, 1);
}

void weft_buf_done(struct weft_buf *buf)
{
    free(buf->data);
    *buf = (struct weft_buf){0};
}

void weft_buf_clear(struct weft_buf *buf)
{
    buf->size = 0;
    buf->full = false;
    buf->data[0] = '\0';
}

void weft_buf_fit(struct weft_buf *buf)
{
    char *data = realloc(buf->data, buf->size + 1);
    if (!data)
        return; /* the larger block stays */
    buf->data = data;
    buf->capacity = buf->size + 1;
}

/* Makes room for `more` bytes and the NUL; at the ceiling marks the buffer full. */
static bool reserve(struct weft_buf *buf, size_t more)
{
    assert(buf->data && buf->size < buf->capacity);
    if (buf->full || more > buf->max - buf->size) {
        buf->full = true;
        return false;
    }
    size_t wanted = buf->size + more + 1;
    if (wanted <= buf->capacity)
        return true;

    size_t capacity = buf->capacity * 2;
    if (capacity > buf->max + 1)
        capacity = buf->max + 1;
    if (capacity < wanted)
        capacity = wanted;
    buf->data = weft_realloc(buf->data, capacity, 1);
    buf->capacity = capacity;
    return true;
}

/* The common case of reserve(). The capacity never exceeds the ceiling. */
static inline bool fits(const struct weft_buf *buf, size_t more)
{
    return more < buf->capacity - buf->size && !buf->full;
}

void weft_buf_add(struct weft_buf *buf, const void *data, size_t size)
{
    if (size == 0 || (!fits(buf, size) && !reserve(buf, size)))
        return;
    memcpy(buf->data + buf->size, data, size);
    buf->size += size;
    buf->data[buf->size] = '\0';
}

void weft_buf_add_text(struct weft_buf *buf, const char *text)
{
    weft_buf_add(buf, text, strlen(text));
}

void weft_buf_add_char(struct weft_buf *buf, char c)
{
    if (!fits(buf, 1) && !reserve(buf, 1))
        return;
    buf->data[buf->size++] = c;
    buf->data[buf->size] = '\0';
}

void weft_buf_printf(struct weft_buf *buf, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    va_list again;
    va_copy(again, args);

    /* Most texts fit; the others are formatted a second time. */
    size_t room = buf->capacity - buf->size;
    int length = vsnprintf(buf->data + buf->size, room, fmt, args);
    va_end(args);
    assert(length >= 0);
    size_t size = (size_t)length;
    if (!reserve(buf, size)) {
        buf->data[buf->size] = '\0';
    } else {
        if (size >= room)
            (void)vsnprintf(buf->data + buf->size, size + 1, fmt, again);
        buf->size += size;
    }
    va_end(again);
}
