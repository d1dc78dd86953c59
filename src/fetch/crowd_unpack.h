/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_FETCH_CROWD_UNPACK_H
#define WEFT_FETCH_CROWD_UNPACK_H

/*
 * Bodies that come compressed, unpacked as they come. libcurl could do that too, but takes a body
 * that is cut off for a whole one.
 */

#include "base/base.h"

struct weft_unpack; /* opaque */

#define WEFT_UNPACK_CODINGS "gzip, deflate" /* for Accept-Encoding */

/*
 * For a Content-Encoding; NULL is none. False: it is not one of those above. *ret_unpack is NULL
 * when there is nothing to unpack.
 */
WEFT_MUST_CHECK bool weft_unpack_new(const char *coding, struct weft_unpack **ret_unpack);
void weft_unpack_free(struct weft_unpack *unpack); /* NULL is fine */

/* Takes what was unpacked; false: stop. */
typedef bool weft_unpacked_fn(void *context, const void *bytes, size_t size);
/* False: it was told to stop, or the bytes are not what was announced: see weft_unpack_broken(). */
WEFT_MUST_CHECK bool weft_unpack_add(struct weft_unpack *unpack, const void *bytes, size_t size,
                                     weft_unpacked_fn *take, void *context);
bool weft_unpack_broken(const struct weft_unpack *unpack);
/* True when nothing is missing; also for NULL. */
bool weft_unpack_whole(const struct weft_unpack *unpack);

#endif
