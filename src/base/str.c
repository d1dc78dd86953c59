/* SPDX-License-Identifier: Apache-2.0 */

#include "base/str.h"

#include "base/arena.h"
#include "base/limits.h"

#include <pthread.h>
#include <string.h>

static bool is_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/*
 * RFC 3629, table of well-formed sequences: the second byte is narrower after E0 (overlong), ED
 * (surrogates), F0 (overlong) and F4 (beyond U+10FFFF).
 */
size_t weft_utf8_size(const char *text, size_t size)
{
    const unsigned char *at = (const unsigned char *)text;
    if (size == 0)
        return 0;
    unsigned char lead = at[0];
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2 || lead > 0xf4 || size < 2)
        return 0;
    if (lead < 0xe0)
        return is_tail(at[1]) ? 2 : 0;
    if (lead < 0xf0) {
        unsigned char low = lead == 0xe0 ? 0xa0 : 0x80, high = lead == 0xed ? 0x9f : 0xbf;
        return size >= 3 && at[1] >= low && at[1] <= high && is_tail(at[2]) ? 3 : 0;
    }
    unsigned char low = lead == 0xf0 ? 0x90 : 0x80, high = lead == 0xf4 ? 0x8f : 0xbf;
    return size >= 4 && at[1] >= low && at[1] <= high && is_tail(at[2]) && is_tail(at[3]) ? 4 : 0;
}

/* True when one of the eight bytes is NUL or not ASCII. */
static bool needs_check(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    const uint64_t high = 0x8080808080808080, one = 0x0101010101010101;
    return ((word | (word - one)) & high) != 0;
}

bool weft_utf8_valid(const char *text, size_t size)
{
    size_t at = 0;
    while (at < size) {
        if (size - at >= 8 && !needs_check(text + at)) {
            at += 8;
            continue;
        }
        size_t step = weft_utf8_size(text + at, size - at);
        if (step == 0 || text[at] == '\0')
            return false;
        at += step;
    }
    return true;
}

static bool is_control(const char *text, size_t size)
{
    unsigned char c = (unsigned char)text[0];
    if (size == 1)
        return c < 0x20 || c == 0x7f;
    return c == 0xc2 && (unsigned char)text[1] < 0xa0; /* U+0080..U+009F */
}

bool weft_text_printable(const char *text, size_t size)
{
    size_t at = 0;
    while (at < size) {
        size_t step = weft_utf8_size(text + at, size - at);
        if (step == 0 || is_control(text + at, step))
            return false;
        at += step;
    }
    return true;
}

/* An ASCII letter or digit. A bit per byte value: called for every byte of HTTP heads and logs. */
static bool is_alnum(char c)
{
    static const uint64_t set[4] = {UINT64_C(0x03ff) << '0', UINT64_C(0x3ffffff) << ('A' - 64) |
                                                                 UINT64_C(0x3ffffff) << ('a' - 64)};
    return set[(unsigned char)c >> 6] >> ((unsigned char)c & 63) & 1;
}

size_t weft_word_size(const char *text, const char *marks)
{
    size_t size = 0;
    for (;; size++) {
        while (is_alnum(text[size]))
            size++;
        if (text[size] == '\0' || !strchr(marks, text[size]))
            return size;
    }
}

bool weft_name_valid(const char *text)
{
    size_t size = weft_word_size(text, "_.:/-");
    return size >= 1 && size <= WEFT_NAME_MAX && text[size] == '\0';
}

static size_t print_digits(uint64_t number, char *ret_text)
{
    size_t size = 1;
    for (uint64_t left = number; left >= 10; left /= 10)
        size++;
    ret_text[size] = '\0';
    for (size_t at = size; at-- > 0; number /= 10)
        ret_text[at] = (char)('0' + number % 10);
    return size;
}

size_t weft_u64_print(uint64_t number, char ret_text[WEFT_NUMBER_TEXT])
{
    return print_digits(number, ret_text);
}

size_t weft_i64_print(int64_t number, char ret_text[WEFT_NUMBER_TEXT])
{
    if (number >= 0)
        return print_digits((uint64_t)number, ret_text);
    ret_text[0] = '-';
    return 1 + print_digits(-(uint64_t)number, ret_text + 1);
}

size_t weft_utf8_cut(const char *text, size_t size, size_t max)
{
    if (size <= max)
        return size;
    /* The byte after the cut must not be a tail. Four tails in a row are not UTF-8: cut anywhere.
     */
    for (size_t back = 0; back < 4 && back <= max; back++)
        if (!is_tail((unsigned char)text[max - back]))
            return max - back;
    return max;
}

int weft_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static locale_t c_locale; /* made once and never freed: another thread may be using it */

static void make_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c_locale == (locale_t)0)
        weft_oom(0);
}

locale_t weft_c_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, make_locale);
    return c_locale;
}

/* ---- Passwords in URLs ----------------------------------------------------------------------- */

/*
 * The end of the user part if it holds a password, or NULL. A password that was not encoded may
 * hold any character, so the last @ counts: hide too much rather than too little.
 */
static const char *userinfo_end(const char *begin)
{
    const char *at = strrchr(begin, '@');
    return at && memchr(begin, ':', (size_t)(at - begin)) ? at : NULL;
}

/* True for a key whose value is a secret: password, sslpassword; letters of it may be encoded. */
static bool names_secret(const char *key, size_t size)
{
    static const char word[] = "password";
    char last[sizeof(word)] = "";
    size_t length = 0;
    for (size_t i = 0; i < size; i++) {
        char c = key[i];
        if (c == '%' && i + 2 < size && weft_hex_digit(key[i + 1]) >= 0 &&
            weft_hex_digit(key[i + 2]) >= 0) {
            c = (char)(weft_hex_digit(key[i + 1]) * 16 + weft_hex_digit(key[i + 2]));
            i += 2;
        }
        if (c == ' ' || c == '\t')
            continue;
        if (length == sizeof(word) - 1)
            memmove(last, last + 1, --length);
        last[length++] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    return length == sizeof(word) - 1 && memcmp(last, word, length) == 0;
}

/* The end of a value: quoted as in libpq's keywords, or up to a separator. */
static const char *value_end(const char *value, const char *separators)
{
    bool quoted = *value == '\'';
    const char *end = value + quoted;
    while (*end && (quoted ? *end != '\'' : !strchr(separators, *end)))
        end += end[0] == '\\' && end[1] ? 2 : 1;
    return end + (quoted && *end);
}

/*
 * Hides the values of secrets among key=value pairs: the query of a URL, separated by &, or libpq's
 * keywords, separated by white space, which is also allowed around =.
 */
static const char *mask_pairs(const char *text, bool is_url, struct weft_arena *arena)
{
    const char *separators = is_url ? "&" : " \t\r\n";
    const char *shown = "", *from = text;
    const char *at = is_url ? strchr(text, '?') : text;
    at = at && is_url ? at + 1 : at;
    while (at && *at) {
        size_t size = strcspn(at, is_url ? "&=" : "=");
        const char *value = at + size;
        if (*value != '=') { /* a word without a value */
            at = *value ? value + 1 : value;
            continue;
        }
        value += 1 + (is_url ? 0 : strspn(value + 1, separators));
        const char *end = value_end(value, separators);
        if (names_secret(at, size)) {
            shown = weft_arena_printf(arena, "%s%.*s***", shown, (int)(value - from), from);
            from = end;
        }
        at = *end ? end + 1 : end;
    }
    return *shown ? weft_arena_printf(arena, "%s%s", shown, from) : text;
}

const char *weft_url_masked(const char *url, struct weft_arena *arena)
{
    const char *begin = strstr(url, "://");
    const char *at = begin ? userinfo_end(begin + 3) : NULL;
    bool is_url = begin || strchr(url, '?') || strncmp(url, "sqlite:", 7) == 0;
    if (at) {
        int shown = (int)(strchr(begin + 3, ':') - url);
        url = weft_arena_printf(arena, "%.*s:***%s", shown, url, at);
    } else if (begin && strncmp(url, "http", 4) == 0 && strchr(begin + 3, '@')) {
        /* A user without a password is a token, as some servers have it. */
        url = weft_arena_printf(arena, "%.*s***%s", (int)(begin + 3 - url), url,
                                strrchr(begin + 3, '@'));
    }
    return mask_pairs(url, is_url, arena);
}

int weft_text_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int weft_i32_order(const void *a, const void *b)
{
    int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    return (left > right) - (left < right);
}

uint32_t weft_text_bucket(const char *text, uint32_t buckets)
{
    uint32_t hash = 2166136261U; /* FNV-1a */
    for (; text && *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619U;
    return (hash ^ hash >> 16) % buckets;
}

/* ---- Base64 ---------------------------------------------------------------------------------- */

static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char for_urls[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Without padding, without the NUL. */
static char *encode(const uint8_t *from, size_t size, const char *alphabet, char *to)
{
    for (; size >= 3; size -= 3, from += 3) {
        uint32_t bits = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
        *to++ = alphabet[bits >> 18];
        *to++ = alphabet[bits >> 12 & 0x3f];
        *to++ = alphabet[bits >> 6 & 0x3f];
        *to++ = alphabet[bits & 0x3f];
    }
    if (size > 0) {
        uint32_t bits = (uint32_t)from[0] << 16 | (size == 2 ? (uint32_t)from[1] << 8 : 0);
        *to++ = alphabet[bits >> 18];
        *to++ = alphabet[bits >> 12 & 0x3f];
        if (size == 2)
            *to++ = alphabet[bits >> 6 & 0x3f];
    }
    return to;
}

size_t weft_base64_encode(const void *data, size_t size, char *ret_text)
{
    char *to = encode(data, size, standard, ret_text);
    while ((to - ret_text) % 4 != 0)
        *to++ = '=';
    *to = '\0';
    return (size_t)(to - ret_text);
}

size_t weft_base64url(const void *data, size_t size, char *ret_text)
{
    char *to = encode(data, size, for_urls, ret_text);
    *to = '\0';
    return (size_t)(to - ret_text);
}

/* 0..63, or 64 for a character that is not in the alphabet, which ends in the two marks. */
static uint32_t value_of(char c, const char marks[2])
{
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a' + 26);
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0' + 52);
    return c == marks[0] ? 62 : c == marks[1] ? 63 : 64;
}

/* The `count` characters of a group, 4 or at the end of a text 2 or 3, as count - 1 bytes. */
static bool decode_group(const char *text, size_t count, const char marks[2], uint8_t *to)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; i++) {
        uint32_t value = i < count ? value_of(text[i], marks) : 0;
        if (value > 63)
            return false;
        bits = bits << 6 | value;
    }
    if (count < 2 || (count == 3 && (bits & 0xff)) || (count == 2 && (bits & 0xffff)))
        return false;
    for (size_t i = 0; i < count - 1; i++)
        to[i] = (uint8_t)(bits >> (16 - 8 * i));
    return true;
}

/* Without padding. */
static bool decode(const char *text, size_t size, const char marks[2], void *ret_data,
                   size_t *ret_size)
{
    uint8_t *to = ret_data;
    for (size_t at = 0; at < size; at += 4) {
        size_t count = size - at < 4 ? size - at : 4;
        if (!decode_group(text + at, count, marks, to))
            return false;
        to += count - 1;
    }
    *ret_size = (size_t)(to - (uint8_t *)ret_data);
    return true;
}

bool weft_base64url_decode(const char *text, size_t size, void *ret_data, size_t *ret_size)
{
    return decode(text, size, "-_", ret_data, ret_size);
}

bool weft_base64_decode(const char *text, size_t size, void *ret_data, size_t *ret_size)
{
    if (size % 4 != 0)
        return false;
    if (size > 0 && text[size - 1] == '=')
        size -= text[size - 2] == '=' ? 2 : 1;
    return decode(text, size, "+/", ret_data, ret_size);
}
