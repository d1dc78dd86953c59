/* SPDX-License-Identifier: Apache-2.0 */

#include "core/json_mend.h"

#include "base/str.h"

#include <string.h>

enum unit {
    WHOLE,    /* a character or an escape */
    HALF,     /* \ud83d without the half that belongs to it: 6 bytes */
    BAD_BYTE, /* 1 byte */
};

/* The code unit of \uXXXX, or -1. */
static int code_unit(const char *at, const char *end)
{
    int unit = 0;
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int digit = weft_hex_digit(at[i]);
        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

static bool is_high(int unit)
{
    return unit >= 0xd800 && unit <= 0xdbff;
}

static bool is_low(int unit)
{
    return unit >= 0xdc00 && unit <= 0xdfff;
}

/* What stands at `at` in a string; returns its size. */
static size_t next_unit(const char *at, const char *end, enum unit *ret_unit)
{
    size_t left = (size_t)(end - at);
    *ret_unit = WHOLE;
    if (*at != '\\') {
        size_t size = weft_utf8_size(at, left);
        *ret_unit = size ? WHOLE : BAD_BYTE;
        return size ? size : 1;
    }
    int unit = code_unit(at, end);
    if (is_high(unit) && is_low(code_unit(at + 6, end)))
        return 12;
    if (is_high(unit) || is_low(unit)) {
        *ret_unit = HALF;
        return 6;
    }
    return left < 2 ? 1 : 2;
}

void weft_json_mask(char *text, size_t size)
{
    bool inside = false;
    for (char *at = text, *end = text + size; at < end;) {
        enum unit unit;
        if (*at == '"')
            inside = !inside;
        if (*at == '"' || !inside) {
            at++;
            continue;
        }
        size_t length = next_unit(at, end, &unit);
        if (unit == HALF) /* \ufffd */
            at[2] = at[3] = at[4] = 'f', at[5] = 'd';
        else if (unit == BAD_BYTE)
            *at = '?';
        at += length;
    }
}

void weft_json_mend(const char *inside, size_t size, struct weft_buf *buf)
{
    const char *end = inside + size, *run = inside;
    for (const char *at = inside; at < end;) {
        enum unit unit;
        size_t length = next_unit(at, end, &unit);
        if (unit != WHOLE) {
            weft_buf_add(buf, run, (size_t)(at - run));
            weft_buf_add_text(buf, "\\ufffd");
            run = at + length;
        }
        at += length;
    }
    weft_buf_add(buf, run, (size_t)(end - run));
}
