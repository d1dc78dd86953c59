/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_KEY_FILE_H
#define WEFT_CORE_KEY_FILE_H

/*
 * The file of signing keys (setting signing_key_file): a key on each line, its number and its
 * secret in hexadecimal digits. The first line signs, all of them verify. The line `store` stands
 * for the keys of the store. Empty lines and # comments are skipped.
 *
 *     # number   secret
 *     2026111801 7f0c...
 *     2026080100 e3b1...
 *     store
 *
 * Numbers begin at a thousand millions, which the numbers of the store never reach: a token names
 * its key, and no two keys of a store and its files have one number by accident. Pure.
 */

#include "base/err.h"
#include "core/signal_token.h"

enum {
    WEFT_FILE_KEY_FIRST = 1000000000, /* the smallest number of a key of a file */
    WEFT_FILE_KEYS_MAX = 64,
    WEFT_KEY_FILE_BYTES = 64 << 10,
};

struct weft_file_key {
    int32_t id;
    uint8_t secret[WEFT_SIGNING_SECRET]; /* of a longer one its SHA-256 */
};

/* Holds secrets: the owner clears it before its memory is used for something else. */
struct weft_key_file {
    struct weft_file_key key[WEFT_FILE_KEYS_MAX]; /* in the order of the file */
    size_t count;
    bool store;       /* keys of the store verify as well */
    bool store_signs; /* and they sign: the line stands first */
};

/*
 * Reads the text of a file. WEFT_INVALID_VALUE names `path` and the line, never a secret; then
 * *ret_file is cleared.
 */
WEFT_MUST_CHECK enum weft_rc weft_key_file_parse(const char *path, const char *text, size_t size,
                                                 struct weft_key_file *ret_file,
                                                 struct weft_err *err);

#endif
