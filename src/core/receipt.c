/* SPDX-License-Identifier: Apache-2.0 */

#include "core/receipt.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void print(const uint8_t *hash, char ret_hash[WEFT_RECEIPT_HASH])
{
    for (size_t i = 0; i < WEFT_RECEIPT_HASH / 2; i++)
        (void)snprintf(ret_hash + 2 * i, 3, "%02x", hash[i]);
}

void weft_receipt_hash(const void *secret, const char *text, char ret_hash[WEFT_RECEIPT_HASH])
{
    uint8_t hash[EVP_MAX_MD_SIZE] = {0};
    unsigned size = 0;
    (void)HMAC(EVP_sha256(), secret, WEFT_RECEIPT_SECRET, (const unsigned char *)text, strlen(text),
               hash, &size);
    print(hash, ret_hash);
}

void weft_receipt_digest(const char *text, char ret_hash[WEFT_RECEIPT_HASH])
{
    uint8_t hash[EVP_MAX_MD_SIZE] = {0};
    unsigned size = 0;
    (void)EVP_Digest(text, strlen(text), hash, &size, EVP_sha256(), NULL);
    print(hash, ret_hash);
}
