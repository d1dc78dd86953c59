/* SPDX-License-Identifier: Apache-2.0 */

/* Decodes checked values: strings and numbers. */

#include "base/arena.h"
#include "base/json.h"
#include "base/locale.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of a code point; the text was checked, so it is a valid one. */
static size_t encode(uint32_t point, char ret_out[4])
{
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    if (point < 0x80) {
        ret_out[0] = (char)point;
        return 1;
    }
    size_t size = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--) {
        ret_out[i] = (char)(0x80 | (point & 0x3f));
        point >>= 6;
    }
    ret_out[0] = (char)(lead[size] | point);
    return size;
}

static uint32_t code_unit(const char *at)
{
    uint32_t unit = 0;
    for (int i = 2; i < 6; i++) {
        uint32_t c = (unsigned char)at[i];
        unit = unit << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return unit;
}

/* Decodes the escape at `at`; returns the bytes it takes in the text. */
static size_t unescape(const char *at, char ret_out[4], size_t *ret_size)
{
    static const char letter[] = "bfnrt", meaning[] = "\b\f\n\r\t";
    if (at[1] != 'u') {
        const char *found = strchr(letter, at[1]);
        ret_out[0] = at[1];
        if (found)
            ret_out[0] = meaning[found - letter];
        *ret_size = 1;
        return 2;
    }
    uint32_t point = code_unit(at);
    if (point < 0xd800 || point > 0xdbff) {
        *ret_size = encode(point, ret_out);
        return 6;
    }
    point = 0x10000 + ((point - 0xd800) << 10) + (code_unit(at + 6) - 0xdc00);
    *ret_size = encode(point, ret_out);
    return 12;
}

enum weft_rc weft_json_string(const struct weft_json *value, struct weft_arena *arena,
                              const char **ret_text, struct weft_err *err)
{
    if (value->kind != WEFT_JSON_STRING)
        return weft_fail(err, WEFT_INVALID_VALUE, "not a string");
    const size_t size = value->size - 2; /* without the quotes */
    char *text = weft_arena_dup(arena, value->text + 1, size + 1);
    text[size] = '\0';

    /* Decoded in place: an escape is never shorter than what it stands for. */
    char *from = text, *to = text, *end = text + size, *slash;
    while ((slash = memchr(from, '\\', (size_t)(end - from)))) {
        memmove(to, from, (size_t)(slash - from));
        to += slash - from;
        char out[4];
        size_t made;
        from = slash + unescape(slash, out, &made);
        if (out[0] == '\0')
            return weft_fail(err, WEFT_INVALID_VALUE, "the string contains U+0000");
        memcpy(to, out, made);
        to += made;
    }
    if (to != from)
        memmove(to, from, (size_t)(end - from) + 1);
    *ret_text = text;
    return WEFT_OK;
}

bool weft_json_is(const struct weft_json *value, const char *word)
{
    if (value->kind != WEFT_JSON_STRING)
        return false;
    const char *at = value->text + 1, *end = value->text + value->size - 1;
    size_t left = strlen(word);
    while (at < end) {
        char out[4];
        size_t made = 1, taken = 1;
        out[0] = *at;
        if (*at == '\\')
            taken = unescape(at, out, &made);
        if (made > left || memcmp(word, out, made) != 0)
            return false;
        word += made;
        left -= made;
        at += taken;
    }
    return left == 0;
}

bool weft_json_bool(const struct weft_json *value)
{
    return value->kind == WEFT_JSON_BOOL && value->text[0] == 't';
}

/* The exponent after e, clamped well inside int64: a number beyond that does not fit anyway. */
static int64_t read_exponent(const char *at, const char *end)
{
    const int64_t far = INT64_MAX / 64;
    bool minus = *at == '-';
    if (*at == '-' || *at == '+')
        at++;
    int64_t exponent = 0;
    for (; at < end; at++)
        exponent = exponent < far ? exponent * 10 + (*at - '0') : far;
    return minus ? -exponent : exponent;
}

/* number * 10^power, false when that does not fit. */
static bool scale_up(uint64_t *number, int64_t power)
{
    if (power > 19)
        return false;
    for (; power > 0; power--)
        if (__builtin_mul_overflow(*number, 10, number))
            return false;
    return true;
}

/* A number as digits * 10^power, digits without trailing zeros; false when digits overflow. */
static bool read_digits(const struct weft_json *value, uint64_t *ret_digits, int64_t *ret_power)
{
    const char *at = value->text, *end = at + value->size;
    uint64_t digits = 0;
    int64_t zeros = 0, power = 0; /* zeros: seen since the last other digit */
    bool fraction = false;
    for (at += *at == '-'; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            fraction = true;
            continue;
        }
        power -= fraction;
        if (*at == '0') {
            zeros += digits != 0;
            continue;
        }
        if (!scale_up(&digits, zeros + (digits != 0)) ||
            __builtin_add_overflow(digits, (uint64_t)(*at - '0'), &digits))
            return false;
        zeros = 0;
    }
    if (at < end)
        power += read_exponent(at + 1, end);
    *ret_digits = digits;
    *ret_power = power + zeros;
    return true;
}

/*
 * Digits that overflow cannot become an integer that fits: they do not end in a zero, so a negative
 * power would leave a fraction, and any other makes them larger still.
 */
bool weft_json_i64(const struct weft_json *value, int64_t *ret_number)
{
    uint64_t digits;
    int64_t power;
    if (value->kind != WEFT_JSON_NUMBER || !read_digits(value, &digits, &power))
        return false;
    if (digits == 0) {
        *ret_number = 0;
        return true;
    }
    if (power < 0 || !scale_up(&digits, power))
        return false;
    bool minus = value->text[0] == '-';
    if (digits > (uint64_t)INT64_MAX + minus)
        return false;
    *ret_number = minus ? (int64_t)-digits : (int64_t)digits;
    return true;
}

bool weft_json_double(const struct weft_json *value, double *ret_number)
{
    if (value->kind != WEFT_JSON_NUMBER)
        return false;
    /* strtod needs a NUL behind the number. */
    char copy[64];
    char *text = value->size < sizeof(copy) ? copy : weft_alloc(value->size + 1, 1);
    memcpy(text, value->text, value->size);
    text[value->size] = '\0';
    double number = strtod_l(text, NULL, weft_c_locale());
    if (text != copy)
        free(text);
    if (!isfinite(number))
        return false;
    *ret_number = number;
    return true;
}
