/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_BUF_H
#define WEFT_BASE_BUF_H

/*
 * A growing byte buffer with a ceiling. Appending past the ceiling appends nothing and sets `full`
 * until the next clear: a writer appends freely and checks once at the end. The buffer owns its
 * memory, which comes from malloc; data is always NUL-terminated (the NUL is not counted).
 */

#include "base/base.h"

struct weft_buf {
    char *data; /* owned; never NULL after init */
    size_t size;
    size_t capacity;
    size_t max;
    bool full;
};

void weft_buf_init(struct weft_buf *buf, size_t max);
void weft_buf_done(struct weft_buf *buf); /* a zeroed buffer is fine */
void weft_buf_clear(struct weft_buf *buf);
void weft_buf_fit(struct weft_buf *buf); /* frees unused capacity */
void weft_buf_add(struct weft_buf *buf, const void *data, size_t size);
void weft_buf_add_text(struct weft_buf *buf, const char *text);
void weft_buf_add_char(struct weft_buf *buf, char c);
void weft_buf_printf(struct weft_buf *buf, const char *fmt, ...) WEFT_PRINTF(2, 3);

#endif
