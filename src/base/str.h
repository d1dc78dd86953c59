/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_STR_H
#define WEFT_BASE_STR_H

/* Checks of text from outside, numbers as text, and URLs without their secrets. Pure functions. */

#include "base/base.h"

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
/* A stable hash from 0 to buckets - 1; NULL hashes like the empty text. */
uint32_t weft_text_bucket(const char *text, uint32_t buckets);
/* A URL as it may be shown: passwords in it are replaced. In the arena, or the URL itself. */
struct weft_arena;
const char *weft_url_masked(const char *url, struct weft_arena *arena);

#endif
