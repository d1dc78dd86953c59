/* SPDX-License-Identifier: Apache-2.0 */

/* Bearer tokens and scopes. The only randomness comes from the kernel, through base/id.h. */

#include "core/token.h"

#include "base/err.h"
#include "base/id.h"
#include "base/str.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

enum { SECRET_BYTES = 32, ID_DIGITS_MAX = 10 };

static const char prefix[] = "weft_";
static const char base64url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void weft_token_secret(char ret_secret[WEFT_TOKEN_SECRET + 1])
{
    uint8_t bytes[SECRET_BYTES];
    weft_random(bytes, sizeof(bytes));
    size_t size = weft_base64url(bytes, sizeof(bytes), ret_secret);
    assert(size == WEFT_TOKEN_SECRET);
    OPENSSL_cleanse(bytes, sizeof(bytes));
}

void weft_token_print(int32_t id, const char *secret, char ret_text[WEFT_TOKEN_TEXT])
{
    assert(id > 0 && strlen(secret) == WEFT_TOKEN_SECRET);
    (void)snprintf(ret_text, WEFT_TOKEN_TEXT, "%s%d_%s", prefix, id, secret);
}

/* A number as weft_token_print() writes it, followed by an underscore; NULL when it is none. */
static const char *read_id(const char *text, int32_t *ret_id)
{
    int64_t id = 0;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > ID_DIGITS_MAX || text[0] == '0' || text[digits] != '_')
        return NULL;
    for (size_t i = 0; i < digits; i++)
        id = id * 10 + (text[i] - '0');
    if (id > INT32_MAX)
        return NULL;
    *ret_id = (int32_t)id;
    return text + digits + 1;
}

bool weft_token_parse(const char *text, int32_t *ret_id, uint8_t ret_hash[WEFT_TOKEN_HASH])
{
    int32_t id;
    if (!text || strncmp(text, prefix, strlen(prefix)) != 0)
        return false;
    const char *secret = read_id(text + strlen(prefix), &id);
    if (!secret || strspn(secret, base64url) != WEFT_TOKEN_SECRET || secret[WEFT_TOKEN_SECRET])
        return false;
    *ret_id = id;
    weft_token_hash(secret, ret_hash);
    return true;
}

void weft_token_hash(const char *secret, uint8_t ret_hash[WEFT_TOKEN_HASH])
{
    unsigned size = 0;
    int done = EVP_Digest(secret, strlen(secret), ret_hash, &size, EVP_sha256(), NULL);
    assert(done && size == WEFT_TOKEN_HASH);
    (void)done;
}

bool weft_token_same(const uint8_t a[WEFT_TOKEN_HASH], const uint8_t b[WEFT_TOKEN_HASH])
{
    return CRYPTO_memcmp(a, b, WEFT_TOKEN_HASH) == 0;
}

/* ---- Scopes ---------------------------------------------------------------------------------- */

static const struct {
    enum weft_scope scope;
    const char *word;
} scopes_known[] = {
    {WEFT_SCOPE_READ, "read"},
    {WEFT_SCOPE_SUBMIT, "submit"},
    {WEFT_SCOPE_WORK, "work"},
    {WEFT_SCOPE_ADMIN, "admin"},
};

bool weft_scope_allows(uint32_t scopes, enum weft_scope needed)
{
    return (scopes & WEFT_SCOPE_ADMIN) != 0 || (scopes & (uint32_t)needed) == (uint32_t)needed;
}

static uint32_t find_scope(const char *word)
{
    for (size_t i = 0; word && i < WEFT_LEN(scopes_known); i++)
        if (strcmp(scopes_known[i].word, word) == 0)
            return scopes_known[i].scope;
    return WEFT_SCOPE_NONE;
}

bool weft_rights_include(const struct weft_rights *own, const struct weft_rights *other)
{
    for (size_t i = 0; i < WEFT_LEN(scopes_known); i++)
        if (other->scopes & scopes_known[i].scope &&
            !weft_scope_allows(own->scopes, scopes_known[i].scope))
            return false;
    return !own->ns || (other->ns && strcmp(own->ns, other->ns) == 0);
}

static enum weft_rc no_scope(const char *word, struct weft_err *err)
{
    enum weft_rc rc = !word || !*word
                          ? weft_invalid(err, "scopes", "a token needs at least one scope")
                          : weft_invalid(err, "scopes", "'%.32s' is not a scope", word);
    return weft_hint(err, rc,
                     "the scopes are read, submit, work and admin; admin means all of them");
}

enum weft_rc weft_scopes_read(const char *const *word, size_t count, uint32_t *ret_scopes,
                              struct weft_err *err)
{
    uint32_t scopes = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t scope = find_scope(word[i]);
        if (scope == WEFT_SCOPE_NONE)
            return no_scope(word[i], err);
        scopes |= scope;
    }
    if (scopes == 0)
        return no_scope(NULL, err);
    *ret_scopes = scopes;
    return WEFT_OK;
}

size_t weft_scopes_list(uint32_t scopes, const char *ret_word[WEFT_SCOPES_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < WEFT_LEN(scopes_known); i++)
        if (scopes & scopes_known[i].scope)
            ret_word[count++] = scopes_known[i].word;
    return count;
}

void weft_scopes_print(uint32_t scopes, char ret_text[WEFT_SCOPES_TEXT])
{
    char *at = ret_text;
    *at = '\0';
    for (size_t i = 0; i < WEFT_LEN(scopes_known); i++) {
        if (!(scopes & scopes_known[i].scope))
            continue;
        if (at != ret_text)
            *at++ = ',';
        at = stpcpy(at, scopes_known[i].word);
    }
}
