/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base64.h"

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

/* 0..63, or 64 for a character that is not in the alphabet. */
static uint32_t value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a' + 26);
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0' + 52);
    return c == '+' ? 62 : c == '/' ? 63 : 64;
}

/* Four characters, the last `padding` of them padding. */
static bool decode_group(const char *text, size_t padding, uint8_t *to)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; i++) {
        uint32_t value = i < 4 - padding ? value_of(text[i]) : 0;
        if (value > 63)
            return false;
        bits = bits << 6 | value;
    }
    if ((padding == 1 && (bits & 0xff)) || (padding == 2 && (bits & 0xffff)))
        return false;
    for (size_t i = 0; i < 3 - padding; i++)
        to[i] = (uint8_t)(bits >> (16 - 8 * i));
    return true;
}

bool weft_base64_decode(const char *text, size_t size, void *ret_data, size_t *ret_size)
{
    if (size % 4 != 0)
        return false;
    uint8_t *to = ret_data;
    for (size_t at = 0; at < size; at += 4) {
        size_t padding = 0;
        if (at + 4 == size && text[at + 3] == '=')
            padding = text[at + 2] == '=' ? 2 : 1;
        if (!decode_group(text + at, padding, to))
            return false;
        to += 3 - padding;
    }
    *ret_size = (size_t)(to - (uint8_t *)ret_data);
    return true;
}
