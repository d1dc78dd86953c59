/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_STR_H
#define WEFT_BASE_STR_H

/* Checks of text from outside, numbers and bytes as text, URLs without secrets. Pure functions. */

#include "base/base.h"

#include <locale.h>

/* The size of the well-formed UTF-8 character that text begins with (1..4), or 0 for none. */
size_t weft_utf8_size(const char *text, size_t size);
/* True for well-formed UTF-8 without U+0000. */
bool weft_utf8_valid(const char *text, size_t size);
/* True for valid UTF-8 that holds no control characters (C0, DEL, C1). */
bool weft_text_printable(const char *text, size_t size);
/*
 * The length of the prefix of ASCII letters, digits and marks. Unlike strspn() it builds no table
 * first, which would take longer than most texts.
 */
size_t weft_word_size(const char *text, const char *marks);
/* True for [A-Za-z0-9_.:/-]{1,128}: the names of lanes, kinds, workers, tenants, namespaces. */
bool weft_name_valid(const char *text);
/* The value of a hex digit of either case, -1 for any other character. */
int weft_hex_digit(char c);
/* Print a number in decimal, far faster than printf(); return the size without the NUL. */
enum { WEFT_NUMBER_TEXT = 21 };
size_t weft_u64_print(uint64_t number, char ret_text[WEFT_NUMBER_TEXT]);
size_t weft_i64_print(int64_t number, char ret_text[WEFT_NUMBER_TEXT]);
/* Cuts a text to at most max bytes without splitting a character; returns the new size. */
size_t weft_utf8_cut(const char *text, size_t size, size_t max);
/* For qsort() and bsearch() of texts, and of int32_t or structs that begin with one. */
int weft_text_order(const void *a, const void *b);
int weft_i32_order(const void *a, const void *b);
/* A stable hash from 0 to buckets - 1; NULL hashes like the empty text. */
uint32_t weft_text_bucket(const char *text, uint32_t buckets);
/* The "C" locale, for numbers: the program that embeds weft may have chosen a decimal comma. */
locale_t weft_c_locale(void);
/* A URL as it may be shown: passwords in it are replaced. In the arena, or the URL itself. */
const char *weft_url_masked(const char *url, struct weft_arena *arena);

/*
 * Base64: bytes as text (RFC 4648). The decoder is strict: padding must be there, nothing else may
 * be, and the bits that pad the last character must be zero, so that equal bytes have one text
 * only.
 */
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
/* ret_data needs (size + 3) / 4 * 3 bytes; otherwise as weft_base64_decode(). */
WEFT_MUST_CHECK bool weft_base64url_decode(const char *text, size_t size, void *ret_data,
                                           size_t *ret_size);

#endif
