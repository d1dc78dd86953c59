/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_HTTP_TLS_H
#define WEFT_NET_HTTP_TLS_H

/*
 * The certificate of the server and its key, which may be replaced while it serves: GnuTLS asks for
 * them at each handshake. Open connections keep their certificate.
 */

#include "weft/weft.h"

#include <gnutls/abstract.h>

struct weft_tls; /* opaque */

/* Which protocols and ciphers are spoken, for MHD_OPTION_HTTPS_PRIORITIES. */
extern const char weft_tls_priorities[];

/* Two PEM files: a chain that begins with the server's own certificate, and the key of that. */
struct weft_tls_files {
    const char *cert, *key;
};

/*
 * handshake_us: the longest that a handshake may take; a certificate that was replaced is kept for
 * so long. The caller ends it with _free(), after the last handshake.
 */
struct weft_tls *weft_tls_new(weft_usec handshake_us);
void weft_tls_free(struct weft_tls *tls); /* NULL is fine */
/*
 * Reads the files and uses them from the next handshake on. WEFT_INVALID_VALUE, and everything
 * stays as it was: unreadable, no PEM, or a key of another certificate. An expired certificate is
 * refused where there is one already; the first one is taken, with *ret_expired.
 */
WEFT_MUST_CHECK enum weft_rc weft_tls_load(struct weft_tls *tls, const struct weft_tls_files *files,
                                           bool *ret_expired, struct weft_err *err);
/* Handshakes on the calling thread are made with this one. */
void weft_tls_serve(struct weft_tls *tls);
/* For MHD_OPTION_HTTPS_CERT_CALLBACK. */
gnutls_certificate_retrieve_function2 weft_tls_retrieve;

#endif
