/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_RECEIPT_H
#define WEFT_CORE_RECEIPT_H

/* Hashes of the receipts of erasures, in hexadecimal digits. */

enum { WEFT_RECEIPT_SECRET = 32, WEFT_RECEIPT_HASH = 65 };

/* HMAC-SHA-256 of a text under a secret. */
void weft_receipt_hash(const void *secret, const char *text, char ret_hash[WEFT_RECEIPT_HASH]);
/* SHA-256 of a text. */
void weft_receipt_digest(const char *text, char ret_hash[WEFT_RECEIPT_HASH]);

#endif
