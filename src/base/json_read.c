/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The reader. weft_json_check() is one pass over the bytes with a bit per open level instead of a
 * stack; the other functions walk text that is known to be valid and therefore check nothing.
 */

#include "base/json.h"

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"

#include <assert.h>
#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum want { /* what the grammar allows next */
            WANT_VALUE,
            WANT_FIRST_VALUE, /* or the end of the array */
            WANT_KEY,
            WANT_FIRST_KEY, /* or the end of the object */
            WANT_NEXT,      /* a comma or the end of the open array or object */
            WANT_NOTHING,
};

struct reader {
    const char *at;
    const char *end;
    const char *why;    /* static; the reason for a refusal */
    uint64_t is_object; /* a bit per open level */
    unsigned depth, depth_max;
    enum want want;
};

static_assert(WEFT_JSON_DEPTH_MAX <= 64, "a level is a bit of is_object");

static bool refuse(struct reader *r, const char *why)
{
    r->why = why;
    return false;
}

/* NUL means the end: JSON allows a NUL byte nowhere. */
static char peek(const struct reader *r)
{
    if (r->at == r->end)
        return '\0';
    return *r->at;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && is_space(*at))
        at++;
    return at;
}

/*
 * Skips the bytes of a string that need no check: ASCII without control characters, quotes and
 * backslashes. Eight at a time; in `found` the lowest marked byte is exact, higher ones may not be,
 * because a subtraction borrows upwards.
 */
static const char *skip_plain(const char *at, const char *end)
{
    const uint64_t one = 0x0101010101010101, high = one * 0x80;
    for (; end - at >= 8; at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof(word));
        word = le64toh(word);
        uint64_t quote = word ^ (one * '"'), slash = word ^ (one * '\\');
        uint64_t found = ((word - one * 0x20) | (quote - one) | (slash - one) | word) & high;
        if (found)
            return at + __builtin_ctzll(found) / 8;
    }
    while (at < end && (unsigned char)*at >= 0x20 && (unsigned char)*at < 0x80 && *at != '"' &&
           *at != '\\')
        at++;
    return at;
}

/* The code unit of \uXXXX, or -1. */
static int code_unit(const char *at, const char *end)
{
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    int unit = 0;
    for (int i = 2; i < 6; i++) {
        int digit = weft_hex_digit(at[i]);
        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

static bool check_escape(struct reader *r)
{
    if (r->end - r->at >= 2 && r->at[1] && strchr("\"\\/bfnrt", r->at[1])) {
        r->at += 2;
        return true;
    }
    int unit = code_unit(r->at, r->end);
    if (unit < 0)
        return refuse(r, "no such escape");
    if (unit >= 0xdc00 && unit <= 0xdfff)
        return refuse(r, "half of a surrogate pair");
    if (unit >= 0xd800 && unit <= 0xdbff) {
        int second = code_unit(r->at + 6, r->end);
        if (second < 0xdc00 || second > 0xdfff)
            return refuse(r, "half of a surrogate pair");
        r->at += 6;
    }
    r->at += 6;
    return true;
}

/* A run of characters that are not ASCII. */
static bool check_wide(struct reader *r)
{
    while (r->at < r->end && (unsigned char)*r->at >= 0x80) {
        size_t size = weft_utf8_size(r->at, (size_t)(r->end - r->at));
        if (size == 0)
            return refuse(r, "a string that is not UTF-8");
        r->at += size;
    }
    return true;
}

static bool check_string(struct reader *r)
{
    r->at++;
    for (;;) {
        r->at = skip_plain(r->at, r->end);
        if (r->at == r->end)
            return refuse(r, "the string has no end");
        if (*r->at == '"')
            break;
        if ((unsigned char)*r->at < 0x20)
            return refuse(r, "a control character in a string");
        if (*r->at == '\\' ? !check_escape(r) : !check_wide(r))
            return false;
    }
    r->at++;
    return true;
}

static bool check_digits(struct reader *r)
{
    if (!is_digit(peek(r)))
        return refuse(r, "a digit is missing");
    while (is_digit(peek(r)))
        r->at++;
    return true;
}

static bool check_number(struct reader *r)
{
    if (*r->at == '-')
        r->at++;
    if (peek(r) == '0') {
        r->at++;
        if (is_digit(peek(r)))
            return refuse(r, "a number with a leading zero");
    } else if (!check_digits(r)) {
        return false;
    }
    if (peek(r) == '.') {
        r->at++;
        if (!check_digits(r))
            return false;
    }
    if (peek(r) == 'e' || peek(r) == 'E') {
        r->at++;
        if (peek(r) == '+' || peek(r) == '-')
            r->at++;
        return check_digits(r);
    }
    return true;
}

static bool check_word(struct reader *r, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(r->end - r->at) < size || memcmp(r->at, word, size) != 0)
        return refuse(r, "no such word");
    r->at += size;
    return true;
}

static bool open_level(struct reader *r, bool object)
{
    if (r->depth == r->depth_max)
        return refuse(r, "nested too deeply");
    r->is_object = r->is_object << 1 | object;
    r->depth++;
    r->want = object ? WANT_FIRST_KEY : WANT_FIRST_VALUE;
    r->at++;
    return true;
}

static bool close_level(struct reader *r)
{
    r->is_object >>= 1;
    r->depth--;
    r->want = r->depth ? WANT_NEXT : WANT_NOTHING;
    r->at++;
    return true;
}

static bool check_value(struct reader *r)
{
    r->want = r->depth ? WANT_NEXT : WANT_NOTHING;
    char c = peek(r);
    switch (c) {
    case '"':
        return check_string(r);
    case '{':
    case '[':
        return open_level(r, c == '{');
    case 't':
        return check_word(r, "true");
    case 'f':
        return check_word(r, "false");
    case 'n':
        return check_word(r, "null");
    default:
        if (c == '-' || is_digit(c))
            return check_number(r);
        return refuse(r, "a value is missing");
    }
}

static bool check_key(struct reader *r)
{
    if (peek(r) != '"')
        return refuse(r, "a key is missing");
    if (!check_string(r))
        return false;
    r->at = skip_space(r->at, r->end);
    if (peek(r) != ':')
        return refuse(r, "a colon is missing");
    r->at++;
    r->want = WANT_VALUE;
    return true;
}

static bool check_next(struct reader *r)
{
    bool object = r->is_object & 1;
    if (peek(r) == (object ? '}' : ']'))
        return close_level(r);
    if (peek(r) != ',')
        return refuse(r, "a comma or a closing bracket is missing");
    r->at++;
    r->want = object ? WANT_KEY : WANT_VALUE;
    return true;
}

static bool check_step(struct reader *r)
{
    switch (r->want) {
    case WANT_FIRST_VALUE:
        return peek(r) == ']' ? close_level(r) : check_value(r);
    case WANT_VALUE:
        return check_value(r);
    case WANT_FIRST_KEY:
        return peek(r) == '}' ? close_level(r) : check_key(r);
    case WANT_KEY:
        return check_key(r);
    case WANT_NEXT:
        return check_next(r);
    case WANT_NOTHING:
        break;
    }
    return refuse(r, "something follows the value");
}

static enum weft_json_kind kind_of(char first)
{
    return first == '{'                   ? WEFT_JSON_OBJECT
           : first == '['                 ? WEFT_JSON_ARRAY
           : first == '"'                 ? WEFT_JSON_STRING
           : first == 't' || first == 'f' ? WEFT_JSON_BOOL
           : first == 'n'                 ? WEFT_JSON_NULL
                                          : WEFT_JSON_NUMBER;
}

enum weft_rc weft_json_check_inside(const char *text, size_t size, unsigned levels,
                                    struct weft_json *ret_value, struct weft_err *err)
{
    assert(levels <= WEFT_JSON_DEPTH_MAX);
    if (size == 0)
        return weft_fail(err, WEFT_INVALID_JSON, "byte 0: a value is missing");
    const char *end = text + size, *begin = skip_space(text, end);
    struct reader r = {
        .at = begin, .end = end, .want = WANT_VALUE, .depth_max = WEFT_JSON_DEPTH_MAX - levels};
    const char *last = begin;
    bool good = true;
    while (good && (r.want != WANT_NOTHING || r.at < end)) {
        good = check_step(&r);
        if (good && r.want == WANT_NOTHING)
            last = r.at;
        if (good)
            r.at = skip_space(r.at, end);
    }
    if (!good)
        return weft_fail(err, WEFT_INVALID_JSON, "byte %zu: %s", (size_t)(r.at - text), r.why);
    *ret_value =
        (struct weft_json){.text = begin, .size = (size_t)(last - begin), .kind = kind_of(*begin)};
    return WEFT_OK;
}

/* From here on the text has been checked. */

static const char *after_string(const char *at, const char *end)
{
    for (at++; *(at = skip_plain(at, end)) != '"';)
        at += *at == '\\' ? 2 : 1;
    return at + 1;
}

static const char *after_level(const char *at, const char *end)
{
    size_t depth = 0;
    do {
        switch (*at) {
        case '"':
            at = after_string(at, end);
            continue;
        case '{':
        case '[':
            depth++;
            break;
        case '}':
        case ']':
            depth--;
            break;
        default:
            break;
        }
        at++;
    } while (depth > 0);
    return at;
}

static const char *after_value(const char *at, const char *end)
{
    if (*at == '"')
        return after_string(at, end);
    if (*at == '{' || *at == '[')
        return after_level(at, end);
    while (at < end && !is_space(*at) && *at != ',')
        at++;
    return at;
}

static struct weft_json slice(const char *at, const char *end)
{
    return (struct weft_json){
        .text = at, .size = (size_t)(after_value(at, end) - at), .kind = kind_of(*at)};
}

void weft_json_iter_init(struct weft_json_iter *iter, const struct weft_json *value)
{
    assert(value->kind == WEFT_JSON_OBJECT || value->kind == WEFT_JSON_ARRAY);
    *iter = (struct weft_json_iter){.at = value->text + 1, .end = value->text + value->size - 1};
}

bool weft_json_next(struct weft_json_iter *iter)
{
    const char *end = iter->end, *at = skip_space(iter->at, end);
    if (at < end && *at == ',')
        at = skip_space(at + 1, end);
    iter->at = at;
    if (at == end)
        return false;
    if (*end == '}') {
        iter->key = slice(at, end);
        at = skip_space(at + iter->key.size, end);
        at = skip_space(at + 1, end); /* the colon */
    }
    iter->value = slice(at, end);
    iter->at = at + iter->value.size;
    return true;
}

/* ---- Decoding -------------------------------------------------------------------------------- */

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
    uint32_t point = (uint32_t)code_unit(at, at + 6);
    if (point < 0xd800 || point > 0xdbff) {
        *ret_size = encode(point, ret_out);
        return 6;
    }
    uint32_t second = (uint32_t)code_unit(at + 6, at + 12);
    *ret_size = encode(0x10000 + ((point - 0xd800) << 10) + (second - 0xdc00), ret_out);
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
