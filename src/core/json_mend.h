/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_JSON_MEND_H
#define WEFT_CORE_JSON_MEND_H

/*
 * JSON strings that were cut in the middle of a character. Servers that stream a text as many
 * strings may cut between the two halves of a surrogate pair (\ud83d and \ude00), or between the
 * bytes of one character. Each such string alone is not valid JSON, all of them together are.
 *
 * So a text is masked, byte for byte in its place, and read. The insides of strings are then taken
 * from the same place of the original, put together, and mended. Pure.
 */

#include "base/buf.h"

/*
 * Makes halves of surrogate pairs in strings \ufffd and bytes that are not UTF-8 question marks;
 * all else stays what and where it is. A text that was no JSON for another reason still is none.
 */
void weft_json_mask(char *text, size_t size);

/* Adds the inside of a string, with U+FFFD in the place of what still is half a character. */
#define WEFT_MEND_SIZE(size) ((size)*6) /* what it can become at most */
void weft_json_mend(const char *inside, size_t size, struct weft_buf *buf);

#endif
