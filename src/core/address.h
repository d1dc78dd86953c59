/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_ADDRESS_H
#define WEFT_CORE_ADDRESS_H

/*
 * Which addresses an outgoing HTTP call may reach, and how hosts in URLs name addresses. Pure: no
 * socket, no look-up of names.
 *
 * A call may reach public unicast addresses only, unless its endpoint is private. The caller judges
 * the bytes that it is about to connect to, not the name that led there: a name may resolve to
 * another address at its next look-up. An address that carries an IPv4 address inside (mapped,
 * compatible, NAT64, 6to4, Teredo) is refused whatever it carries: where it leads depends on the
 * network of the machine.
 */

#include "base/base.h"

struct weft_address {
    uint8_t size; /* of the bytes, in network order: 4 IPv4, 16 IPv6, 0 none */
    uint8_t byte[16];
};

/* NULL: a public address. Else what it is, as a static word for people: "loopback", "private". */
const char *weft_address_refused(const struct weft_address *address);

enum { WEFT_ADDRESS_TEXT = 46 }; /* the longest IPv6 address and the NUL */
void weft_address_print(const struct weft_address *address, char ret_text[WEFT_ADDRESS_TEXT]);

enum weft_host {
    WEFT_HOST_NAME,    /* a name to look up, of valid form or not */
    WEFT_HOST_ADDRESS, /* an IPv4 address */
    WEFT_HOST_BAD,     /* ends in a number, as addresses do, and is none */
};

/*
 * Reads the host of a URL as inet_aton() and libcurl would: one to four numbers, decimal, octal
 * (017) or hex (0x0f), of which the last fills the bytes that are left; one dot may follow.
 * ret_address is written for WEFT_HOST_ADDRESS only.
 */
enum weft_host weft_host_read(const char *text, size_t size, struct weft_address *ret_address);
/* An IPv6 address without brackets and without a zone (%eth0). */
WEFT_MUST_CHECK bool weft_address_v6(const char *text, size_t size,
                                     struct weft_address *ret_address);

#endif
