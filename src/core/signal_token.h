/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_SIGNAL_TOKEN_H
#define WEFT_CORE_SIGNAL_TOKEN_H

/*
 * Signal tokens: the right to send signals to one waitpoint.
 *
 * A token is "signal_" and 96 characters of base64url: the number of the signing key, the
 * waitpoint, its execution and the epoch under which the waitpoint was made, and the HMAC-SHA256 of
 * these under the secret of the key. It names all that its signature covers, so it is verified
 * without a look at the store. It is not stored: the same waitpoint and key give the same token.
 * Pure.
 */

#include "base/base.h"

enum {
    WEFT_SIGNING_SECRET = 32, /* bytes */
    WEFT_SIGNAL_MAC = 32,
    WEFT_SIGNAL_TOKEN_TEXT = 104, /* with the NUL */
};

struct weft_signal_token {
    int32_t key; /* number of the signing key, from 1 */
    struct weft_id waitpoint, execution;
    int32_t epoch;
};

void weft_signal_token_print(const struct weft_signal_token *token,
                             const uint8_t secret[WEFT_SIGNING_SECRET],
                             char ret_text[WEFT_SIGNAL_TOKEN_TEXT]);

/* What a text claims to be; false if it is no token in form. Nothing is proven yet. */
WEFT_MUST_CHECK bool weft_signal_token_parse(const char *text, struct weft_signal_token *ret_token,
                                             uint8_t ret_mac[WEFT_SIGNAL_MAC]);
/* Whether the signature is that of the key; in constant time. */
WEFT_MUST_CHECK bool weft_signal_token_verify(const struct weft_signal_token *token,
                                              const uint8_t mac[WEFT_SIGNAL_MAC],
                                              const uint8_t secret[WEFT_SIGNING_SECRET]);

#endif
