/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_BASE_H
#define WEFT_BASE_BASE_H

/* Attributes, array length and units of time, for every other header; most take an arena. */

#include "weft/base.h"

struct weft_arena; /* base/arena.h */

#define WEFT_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define WEFT_LEN(array)   (sizeof(array) / sizeof((array)[0]))
#define WEFT_NEVER        INT64_MAX
#define WEFT_MS           ((weft_usec)1000)
#define WEFT_SECOND       ((weft_usec)1000000)

#endif
