/* SPDX-License-Identifier: Apache-2.0 */

#include "core/signal_token.h"

#include "base/str.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

static const char prefix[] = "signal_";

/* The bytes of a token: key, waitpoint, execution, epoch, signature. Numbers are big-endian. */
enum {
    KEY = 0,
    WAITPOINT = KEY + 4,
    EXECUTION = WAITPOINT + 16,
    EPOCH = EXECUTION + 16,
    MAC = EPOCH + 4,
    BYTES = MAC + WEFT_SIGNAL_MAC,
    LETTERS = BYTES / 3 * 4, /* no padding, no bits that mean nothing */
};
static_assert(BYTES % 3 == 0, "every character of a token counts");
static_assert(sizeof(prefix) + LETTERS == WEFT_SIGNAL_TOKEN_TEXT, "room for a token");

static void put_number(uint8_t *at, int32_t number)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)((uint32_t)number >> (24 - 8 * i));
}

static int32_t get_number(const uint8_t *at)
{
    return (int32_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]);
}

/* Signs the bytes before the signature. The first part keeps other uses of the key apart. */
static void sign(const uint8_t bytes[BYTES], const uint8_t secret[WEFT_SIGNING_SECRET],
                 uint8_t ret_mac[WEFT_SIGNAL_MAC])
{
    static const char use[] = "weft signal 1";
    uint8_t message[sizeof(use) + MAC];
    memcpy(message, use, sizeof(use));
    memcpy(message + sizeof(use), bytes, MAC);
    unsigned size = 0;
    const uint8_t *done =
        HMAC(EVP_sha256(), secret, WEFT_SIGNING_SECRET, message, sizeof(message), ret_mac, &size);
    assert(done && size == WEFT_SIGNAL_MAC);
    (void)done;
}

static void put_bytes(const struct weft_signal_token *token, uint8_t ret_bytes[BYTES])
{
    put_number(ret_bytes + KEY, token->key);
    memcpy(ret_bytes + WAITPOINT, token->waitpoint.byte, sizeof(token->waitpoint.byte));
    memcpy(ret_bytes + EXECUTION, token->execution.byte, sizeof(token->execution.byte));
    put_number(ret_bytes + EPOCH, token->epoch);
}

void weft_signal_token_print(const struct weft_signal_token *token,
                             const uint8_t secret[WEFT_SIGNING_SECRET],
                             char ret_text[WEFT_SIGNAL_TOKEN_TEXT])
{
    uint8_t bytes[BYTES];
    put_bytes(token, bytes);
    sign(bytes, secret, bytes + MAC);
    memcpy(ret_text, prefix, sizeof(prefix) - 1);
    size_t size = weft_base64url(bytes, sizeof(bytes), ret_text + sizeof(prefix) - 1);
    assert(size == LETTERS);
    (void)size;
}

bool weft_signal_token_parse(const char *text, struct weft_signal_token *ret_token,
                             uint8_t ret_mac[WEFT_SIGNAL_MAC])
{
    uint8_t bytes[BYTES];
    size_t size;
    if (!text || strncmp(text, prefix, sizeof(prefix) - 1) != 0)
        return false;
    const char *letters = text + sizeof(prefix) - 1;
    if (strnlen(letters, LETTERS + 1) != LETTERS ||
        !weft_base64url_decode(letters, LETTERS, bytes, &size))
        return false;
    struct weft_signal_token token = {.key = get_number(bytes + KEY),
                                      .epoch = get_number(bytes + EPOCH)};
    memcpy(token.waitpoint.byte, bytes + WAITPOINT, sizeof(token.waitpoint.byte));
    memcpy(token.execution.byte, bytes + EXECUTION, sizeof(token.execution.byte));
    memcpy(ret_mac, bytes + MAC, WEFT_SIGNAL_MAC);
    *ret_token = token;
    return true;
}

bool weft_signal_token_verify(const struct weft_signal_token *token,
                              const uint8_t mac[WEFT_SIGNAL_MAC],
                              const uint8_t secret[WEFT_SIGNING_SECRET])
{
    uint8_t bytes[BYTES];
    put_bytes(token, bytes);
    sign(bytes, secret, bytes + MAC);
    return CRYPTO_memcmp(bytes + MAC, mac, WEFT_SIGNAL_MAC) == 0;
}
