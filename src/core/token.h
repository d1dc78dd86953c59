/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_TOKEN_H
#define WEFT_CORE_TOKEN_H

/*
 * Bearer tokens: weft_ID_SECRET, where ID is a decimal number that finds the row and SECRET is 256
 * random bits in base64url. The store holds the SHA-256 of the secret, which needs no salt and no
 * slow hash: 256 bits cannot be guessed. Pure, but for weft_token_secret(), which reads random
 * bytes.
 */

#include "base/base.h"

/* The scopes of a token are independent; ADMIN includes the others. */
enum weft_scope {
    WEFT_SCOPE_NONE = 0, /* of a route: no scope is needed */
    WEFT_SCOPE_READ = 1,
    WEFT_SCOPE_SUBMIT = 2,
    WEFT_SCOPE_WORK = 4,
    WEFT_SCOPE_ADMIN = 8,
};

enum { WEFT_TOKEN_SECRET = 43, WEFT_TOKEN_TEXT = 64, WEFT_TOKEN_HASH = 32 };

/* A new secret: 43 characters and the NUL. */
void weft_token_secret(char ret_secret[WEFT_TOKEN_SECRET + 1]);
void weft_token_print(int32_t id, const char *secret, char ret_text[WEFT_TOKEN_TEXT]);
/* Splits a token and hashes its secret; false if the text is not a token. */
WEFT_MUST_CHECK bool weft_token_parse(const char *text, int32_t *ret_id,
                                      uint8_t ret_hash[WEFT_TOKEN_HASH]);
void weft_token_hash(const char *secret, uint8_t ret_hash[WEFT_TOKEN_HASH]);
/* In constant time. */
bool weft_token_same(const uint8_t a[WEFT_TOKEN_HASH], const uint8_t b[WEFT_TOKEN_HASH]);

bool weft_scope_allows(uint32_t scopes, enum weft_scope needed);

/* What a token may do, and where. */
struct weft_rights {
    uint32_t scopes; /* enum weft_scope, or-ed */
    const char *ns;  /* the only namespace; NULL: all of them */
};
/*
 * Whether `own` includes `other`: then a holder of `own` may create and manage tokens with `other`.
 * Rights bound to a namespace include no rights outside it.
 */
bool weft_rights_include(const struct weft_rights *own, const struct weft_rights *other);
enum { WEFT_SCOPES_TEXT = 32, WEFT_SCOPES_MAX = 4 };
void weft_scopes_print(uint32_t scopes, char ret_text[WEFT_SCOPES_TEXT]); /* "read,submit" */
/* The scopes of a list of words. WEFT_INVALID_VALUE: no word at all, or a word that is no scope. */
WEFT_MUST_CHECK enum weft_rc weft_scopes_read(const char *const *word, size_t count,
                                              uint32_t *ret_scopes, struct weft_err *err);
/* Returns how many; the words are static. */
size_t weft_scopes_list(uint32_t scopes, const char *ret_word[WEFT_SCOPES_MAX]);

#endif
