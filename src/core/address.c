/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tables follow IANA's registries of special-purpose addresses. Of IPv6 only 2000::/3 has been
 * given out: what is outside of it is refused, with a word where there is one.
 */

#include "core/address.h"

#include "base/str.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

struct range {
    const char *what;
    uint8_t bits; /* how many of `first` an address shares */
    uint8_t first[16];
};

/* clang-format off */
/* The first range that holds an address names it. */
static const struct range v4[] = {
    {"unspecified",   32, {0, 0, 0, 0}},
    {"this network",   8, {0}},
    {"private",        8, {10}},
    {"carrier NAT",   10, {100, 64}},
    {"loopback",       8, {127}},
    {"link-local",    16, {169, 254}},
    {"private",       12, {172, 16}},
    {"reserved",      24, {192, 0, 0}},
    {"documentation", 24, {192, 0, 2}},
    {"6to4",          24, {192, 88, 99}},
    {"private",       16, {192, 168}},
    {"benchmark",     15, {198, 18}},
    {"documentation", 24, {198, 51, 100}},
    {"documentation", 24, {203, 0, 113}},
    {"multicast",      4, {224}},
    {"broadcast",     32, {255, 255, 255, 255}},
    {"reserved",       4, {240}},
    /* Public in form: inside Azure it is the host, which hands out credentials. */
    {"metadata",      32, {168, 63, 129, 16}},
};

static const struct range v6[] = {
    {"unspecified",  128, {0}},
    {"loopback",     128, {[15] = 1}},
    {"IPv4-mapped",   96, {[10] = 0xff, [11] = 0xff}},
    {"IPv4-translated", 96, {[8] = 0xff, [9] = 0xff}},
    {"IPv4-compatible", 96, {0}},
    {"NAT64",         96, {0x00, 0x64, 0xff, 0x9b}},
    {"NAT64",         48, {0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}},
    {"discard",       64, {0x01}},
    {"private",        7, {0xfc}},
    {"link-local",    10, {0xfe, 0x80}},
    {"site-local",    10, {0xfe, 0xc0}},
    {"multicast",      8, {0xff}},
    {"Teredo",        32, {0x20, 0x01, 0x00, 0x00}},
    {"benchmark",     48, {0x20, 0x01, 0x00, 0x02}},
    {"ORCHID",        28, {0x20, 0x01, 0x00, 0x10}},
    {"ORCHID",        28, {0x20, 0x01, 0x00, 0x20}},
    {"reserved",      23, {0x20, 0x01}},
    {"documentation", 32, {0x20, 0x01, 0x0d, 0xb8}},
    {"6to4",          16, {0x20, 0x02}},
    {"documentation", 20, {0x3f, 0xff}},
};
/* clang-format on */

static const struct range v6_given_out = {"public", 3, {0x20}};

static bool holds(const struct range *range, const uint8_t *byte)
{
    size_t whole = range->bits / 8, rest = range->bits % 8;
    if (memcmp(range->first, byte, whole) != 0)
        return false;
    return rest == 0 || (range->first[whole] ^ byte[whole]) >> (8 - rest) == 0;
}

static const char *find(const struct range *range, size_t count, const uint8_t *byte)
{
    for (size_t i = 0; i < count; i++)
        if (holds(&range[i], byte))
            return range[i].what;
    return NULL;
}

const char *weft_address_refused(const struct weft_address *address)
{
    if (address->size == 4)
        return find(v4, WEFT_LEN(v4), address->byte);
    if (address->size != 16)
        return "no IP address";
    const char *what = find(v6, WEFT_LEN(v6), address->byte);
    if (!what && !holds(&v6_given_out, address->byte))
        return "reserved";
    return what;
}

void weft_address_print(const struct weft_address *address, char ret_text[WEFT_ADDRESS_TEXT])
{
    assert(address->size == 4 || address->size == 16);
    const char *text = inet_ntop(address->size == 4 ? AF_INET : AF_INET6, address->byte, ret_text,
                                 WEFT_ADDRESS_TEXT);
    assert(text == ret_text);
}

/* ---- Hosts ----------------------------------------------------------------------------------- */

static bool is_hex(const char *text, size_t size)
{
    return size >= 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
}

/* True for digits and for 0x with hex digits or without any, be it a number or not (09). */
static bool looks_numeric(const char *text, size_t size)
{
    bool hex = is_hex(text, size);
    for (size_t i = hex ? 2 : 0; i < size; i++) {
        int digit = weft_hex_digit(text[i]);
        if (digit < 0 || (digit > 9 && !hex))
            return false;
    }
    return size > 0;
}

/* One part of an IPv4 address; false: no number, or one beyond 32 bits. */
static bool read_part(const char *text, size_t size, uint64_t *ret_number)
{
    int base = 10;
    size_t at = 0;
    if (is_hex(text, size)) {
        base = 16;
        at = 2;
    } else if (size > 1 && text[0] == '0') {
        base = 8;
        at = 1;
    }
    uint64_t number = 0;
    if (at == size)
        return false;
    for (; at < size; at++) {
        int digit = weft_hex_digit(text[at]);
        if (digit < 0 || digit >= base)
            return false;
        number = number * (uint64_t)base + (uint64_t)digit;
        if (number > UINT32_MAX)
            return false;
    }
    *ret_number = number;
    return true;
}

/* All parts; the last one fills the bytes that the others left. */
static bool read_v4(const char *text, size_t size, uint32_t *ret_number)
{
    uint64_t before = 0, part = 0;
    const char *end = text + size;
    for (unsigned shift = 32;; shift -= 8) {
        const char *dot = memchr(text, '.', (size_t)(end - text));
        if (!read_part(text, (size_t)((dot ? dot : end) - text), &part))
            return false;
        if (!dot) {
            *ret_number = (uint32_t)(before | part);
            return part >> shift == 0;
        }
        if (part > 255 || shift == 8)
            return false;
        before |= part << (shift - 8);
        text = dot + 1;
    }
}

enum weft_host weft_host_read(const char *text, size_t size, struct weft_address *ret_address)
{
    if (size > 0 && text[size - 1] == '.')
        size--;
    const char *dot = memrchr(text, '.', size), *last = dot ? dot + 1 : text;
    if (!looks_numeric(last, (size_t)(text + size - last)))
        return WEFT_HOST_NAME;
    uint32_t number;
    if (!read_v4(text, size, &number))
        return WEFT_HOST_BAD;
    *ret_address = (struct weft_address){.size = 4};
    number = htonl(number);
    memcpy(ret_address->byte, &number, sizeof(number));
    return WEFT_HOST_ADDRESS;
}

bool weft_address_v6(const char *text, size_t size, struct weft_address *ret_address)
{
    char copy[WEFT_ADDRESS_TEXT];
    struct weft_address address = {.size = 16};
    if (size >= sizeof(copy) || memchr(text, '\0', size))
        return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    if (inet_pton(AF_INET6, copy, address.byte) != 1)
        return false;
    *ret_address = address;
    return true;
}
