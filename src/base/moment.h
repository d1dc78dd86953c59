/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_MOMENT_H
#define WEFT_BASE_MOMENT_H

/*
 * Moments as people and programs write them: RFC 3339, printed in UTC with milliseconds.
 *
 * Only the years 1970 to 9999. There are no leap seconds, so a second of 60 is refused. The
 * machine's time zone is not used.
 */

#include "base/base.h"

enum { WEFT_MOMENT_TEXT = 25 }; /* "2026-01-02T03:04:05.678Z" and the NUL */

/* Truncated to milliseconds; clamped to the years above. */
void weft_moment_print(weft_usec moment_us, char ret_text[WEFT_MOMENT_TEXT]);
/*
 * Reads a date, T, a time with 0 to 9 digits of a fraction (finer than a microsecond is cut) and Z
 * or an offset, all of it. Letters may be small. False for anything else.
 */
WEFT_MUST_CHECK bool weft_moment_parse(const char *text, size_t size, weft_usec *ret_moment_us);

#endif
