/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_SSE_FOLD_H
#define WEFT_CORE_SSE_FOLD_H

/*
 * The body of a streamed answer, folded while it comes into what a call without streaming would
 * have given:
 *
 * - chat completions in chunks: the `chat.completion` object (chat_chunks.h);
 * - OpenAI's Responses: the object that the event response.completed or response.incomplete brings;
 * - any other stream: its bytes as they came;
 * - an error within any stream: an event named `error`, or whose data are an object with `error` or
 *   with the type `error`, or response.failed. The status was sent before it: without this look a
 *   failed call would be taken for a success.
 *
 * Pure. Memory is bounded by the result and by one event.
 */

#include "base/err.h"

struct weft_sse_fold; /* opaque */

enum weft_folded_kind { WEFT_FOLDED_JSON, WEFT_FOLDED_TEXT, WEFT_FOLDED_ERROR };

/* Belongs to the fold. */
struct weft_folded {
    enum weft_folded_kind kind;
    const char *data; /* an object; the bytes of the stream; the data of the event with the error */
    size_t size;
    int status; /* of an error: what it would have been answered with, 500 if it does not say */
};

/* size_max: bytes of the result, and of one event. */
struct weft_sse_fold *weft_sse_fold_new(size_t size_max);
void weft_sse_fold_free(struct weft_sse_fold *fold); /* NULL is fine */

/*
 * The next bytes of the stream. WEFT_TOO_LARGE: over the limit. WEFT_INVALID_JSON,
 * WEFT_INVALID_VALUE: an event cannot be part of the stream that it is in. After these the fold can
 * only be freed.
 */
WEFT_MUST_CHECK enum weft_rc weft_sse_fold_add(struct weft_sse_fold *fold, const void *bytes,
                                               size_t size, struct weft_err *err);
/* True when the result is known: bytes that still come are ignored. */
bool weft_sse_fold_over(const struct weft_sse_fold *fold);
/*
 * After the last byte, where the transport says that it was the last one; once. Errors as above,
 * and WEFT_UNAVAILABLE: a completion or a response is not whole, the server stopped before its end.
 */
WEFT_MUST_CHECK enum weft_rc
weft_sse_fold_end(struct weft_sse_fold *fold, struct weft_folded *ret_folded, struct weft_err *err);

#endif
