/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_BASE64_H
#define WEFT_BASE_BASE64_H

/*
 * Bytes as text (RFC 4648). The decoder is strict: padding must be there, nothing else may be, and
 * the bits that pad the last character must be zero, so that equal bytes have one text only.
 */

#include "base/base.h"

/* The characters that `size` bytes take with padding, without the NUL. */
#define WEFT_BASE64_SIZE(size) (((size) + 2) / 3 * 4)

/* Writes WEFT_BASE64_SIZE(size) characters and a NUL; returns their number. */
size_t weft_base64_encode(const void *data, size_t size, char *ret_text);
/* ret_data needs size / 4 * 3 bytes. False, with ret_data overwritten, if it is not base64. */
WEFT_MUST_CHECK bool weft_base64_decode(const char *text, size_t size, void *ret_data,
                                        size_t *ret_size);
/*
 * The alphabet of URLs and file names, without padding; for tokens. Room for
 * WEFT_BASE64_SIZE(size) + 1 always suffices. Returns the number of characters.
 */
size_t weft_base64url(const void *data, size_t size, char *ret_text);

#endif
