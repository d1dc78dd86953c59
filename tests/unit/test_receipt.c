/* SPDX-License-Identifier: Apache-2.0 */

/* Hashes of receipts, by vectors that others published. */

#include "tap.h"

#include "core/receipt.h"

#include <stdint.h>
#include <string.h>

int main(void)
{
    char hash[WEFT_RECEIPT_HASH];
    uint8_t secret[WEFT_RECEIPT_SECRET] = {0};
    weft_receipt_digest("abc", hash);
    is_str(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "SHA-256");
    /* RFC 4231, case 2: the key is filled up with zeros, as HMAC does itself. */
    memcpy(secret, "Jefe", 4);
    weft_receipt_hash(secret, "what do ya want for nothing?", hash);
    is_str(hash, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
           "HMAC-SHA-256");
    secret[31] = 1;
    char other[WEFT_RECEIPT_HASH];
    weft_receipt_hash(secret, "what do ya want for nothing?", other);
    ok(strcmp(hash, other) != 0, "another secret gives another hash");
    return tap_done();
}
