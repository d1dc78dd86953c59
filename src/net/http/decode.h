/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_HTTP_DECODE_H
#define WEFT_NET_HTTP_DECODE_H

/*
 * Bodies that came compressed (Content-Encoding). Pure but for the memory it takes: zlib and zstd
 * are known to decode.c alone.
 */

#include "base/buf.h"
#include "weft/weft.h"

enum weft_coding {
    WEFT_CODING_NONE, /* as it is */
    WEFT_CODING_GZIP,
    WEFT_CODING_ZSTD,
    WEFT_CODING_UNKNOWN,
};

#define WEFT_CODINGS "gzip, zstd" /* for Accept-Encoding */

/* From the value of a Content-Encoding header; NULL is none. Several at once are UNKNOWN. */
enum weft_coding weft_coding_parse(const char *text);

/* WEFT_BUSY: bodies fill their memory. */
enum weft_rc weft_decode_no_room(struct weft_err *err);

struct weft_decode {
    enum weft_coding coding; /* GZIP or ZSTD */
    const void *data;        /* borrowed */
    size_t size;
    /* Asked before so many more bytes are kept; false ends it with WEFT_BUSY. NULL: always. */
    bool (*room)(void *context, size_t size);
    void *context;
};

/*
 * Appends what the data unpacks to. It stops at the ceiling of `out` (WEFT_TOO_LARGE), so that a
 * small body cannot take much memory or time: beside `out` it needs 32 KiB, and for zstd a window
 * of at most 8 MiB. Data that is broken, cut off or followed by something else is
 * WEFT_INVALID_VALUE. After a failure `out` holds a part.
 */
WEFT_MUST_CHECK enum weft_rc weft_decode(const struct weft_decode *decode, struct weft_buf *out,
                                         struct weft_err *err);

#endif
