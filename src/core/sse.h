/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_SSE_H
#define WEFT_CORE_SSE_H

/*
 * Server-sent events (text/event-stream, WHATWG HTML 9.2.6) from bytes as they come: whichever way
 * the bytes are split, the events are the same. Pure.
 *
 * Lines end in LF, CR or CRLF; a byte order mark at the beginning is skipped; comments, `id`,
 * `retry` and unknown fields are ignored; `data` lines of an event are joined by LF; an event
 * without data is none. Data are bytes: UTF-8 is not checked here.
 */

#include "base/buf.h"
#include "base/err.h"

/* Both texts are the reader's, until it is called again. */
struct weft_sse_event {
    const char *name; /* "": none */
    const char *data; /* NUL-terminated; may hold NULs */
    size_t size;
};

struct weft_sse {
    struct weft_buf line;       /* the line that has not ended */
    struct weft_buf name, data; /* of the event that has not ended */
    bool has_data;
    bool given;    /* the event was given to the caller: the next one begins */
    bool after_cr; /* a LF that comes now belongs to the CR */
    bool begun;    /* the first line has ended */
};

/* event_max: bytes of the data of one event; a line may be a little longer. */
void weft_sse_init(struct weft_sse *sse, size_t event_max);
void weft_sse_done(struct weft_sse *sse); /* a zeroed one is fine */

/*
 * Reads on from *at and moves it. *ret_found true: an event was found, and there may be more before
 * `end`; false: all bytes are read. WEFT_TOO_LARGE: an event or a line is too long; nothing can be
 * read after that.
 */
WEFT_MUST_CHECK enum weft_rc weft_sse_read(struct weft_sse *sse, const char **at, const char *end,
                                           struct weft_sse_event *ret_event, bool *ret_found,
                                           struct weft_err *err);
/*
 * After the last byte: an event whose empty line at the end is missing. The standard drops it,
 * because the stream may have been cut; call this only where the transport says that it was not.
 */
WEFT_MUST_CHECK enum weft_rc weft_sse_end(struct weft_sse *sse, struct weft_sse_event *ret_event,
                                          bool *ret_found, struct weft_err *err);

#endif
