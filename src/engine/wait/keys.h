/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_WAIT_KEYS_H
#define WEFT_ENGINE_WAIT_KEYS_H

/*
 * Signing keys of signal tokens (core/signal_token.h): rows of the store, kept in memory.
 *
 * The newest key signs; older ones verify until they retire. The first one is made by the first
 * waitpoint. A process reads the keys when it first needs them, when the poll says that the set has
 * changed, and when a call meets a token of a key that it does not know: once for a call, however
 * many tokens it has, once for calls that come together, and at most 50 times a second. So a token
 * of another replica's new key is good at once, and tokens that are made up cost the store little.
 *
 * With a file of keys (core/key_file.h) its first key signs, and rows of the store verify only if
 * the file says so; then no row is ever made.
 */

#include "core/key_file.h"
#include "core/signal_token.h"
#include "weft/admin.h"
#include "weft/weft.h"

#include <pthread.h>

struct weft_engine;

struct weft_signing_key {
    int32_t id;
    uint8_t secret[WEFT_SIGNING_SECRET];
    weft_usec created_us;
    weft_usec retires_us; /* 0: it is the newest */
};

/* The keys in memory; a part of struct weft_engine. */
struct weft_keys {
    pthread_mutex_t lock;         /* over all below */
    struct weft_signing_key *key; /* by number */
    size_t count;
    weft_usec read_us; /* boot time at which the last look that succeeded began; 0: none */
    bool stale;        /* the poll has seen another set */
    int64_t seen[2];   /* what the poll says of the set */
    /* Looks for keys that are not known: see read_since(). */
    pthread_cond_t looked; /* one is over */
    bool looking;          /* a call looks, others wait for it */
    weft_usec looked_us;   /* boot time at which the last one began */
    enum weft_rc failed;   /* how it went */
    struct weft_err failure;
    struct weft_key_file *file; /* owned; NULL: the keys of the store alone */
    bool used;                  /* with a file: the store knows that waiting is used */
};

void weft_keys_init(struct weft_keys *keys);
void weft_keys_done(struct weft_keys *keys);
/*
 * Reads the file of keys, from now on in place of what was read before; path NULL: the keys of the
 * store alone. After a failure (WEFT_INVALID_VALUE) the keys stay as they were.
 */
WEFT_MUST_CHECK enum weft_rc weft_keys_load(struct weft_keys *keys, const char *path,
                                            struct weft_err *err);
/* The file as it is. Refused: one that others than its owner may read or write. */
WEFT_MUST_CHECK enum weft_rc weft_key_file_read(const char *path, struct weft_key_file *ret_file,
                                                struct weft_err *err);
void weft_key_file_free(struct weft_key_file *file); /* of weft_alloc(); clears it; NULL is fine */
/* Two numbers of the poll that change with the set. */
void weft_keys_seen(struct weft_keys *keys, int64_t last, int64_t retires);

/* The key that signs now; makes the first one. */
WEFT_MUST_CHECK enum weft_rc weft_keys_current(struct weft_engine *engine,
                                               struct weft_signing_key *ret_key,
                                               struct weft_err *err);

/*
 * Checks a token. WEFT_UNAUTHORIZED, with one text for all causes: it is none in form, was signed
 * by no key that is good now, or was changed. since_us is when the call began, in boot time: the
 * store is asked for a key that is not known, unless it was asked since. With 0 it is not asked,
 * and the answer is WEFT_BUSY: check again where that may wait.
 */
WEFT_MUST_CHECK enum weft_rc weft_keys_verify(struct weft_engine *engine, const char *text,
                                              weft_usec since_us,
                                              struct weft_signal_token *ret_token,
                                              struct weft_err *err);

/* The failure of a token that is not good, the same for all causes. */
enum weft_rc weft_keys_refuse(struct weft_err *err);

/* The text of a waitpoint's token under its first key, or the newest if that has retired. */
WEFT_MUST_CHECK enum weft_rc weft_keys_sign(struct weft_engine *engine,
                                            struct weft_signal_token *token,
                                            char ret_text[WEFT_SIGNAL_TOKEN_TEXT],
                                            struct weft_err *err);

/* weft_keys_load() of an engine. */
WEFT_MUST_CHECK enum weft_rc weft_engine_keys_load(struct weft_engine *engine, const char *path,
                                                   struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_keys(struct weft_engine *engine, struct weft_arena *arena,
                                              struct weft_signing_keys *ret_keys,
                                              struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_key_rotate(struct weft_engine *engine,
                                                    const struct weft_key_rotation *in,
                                                    struct weft_arena *arena,
                                                    struct weft_signing_keys *ret_keys,
                                                    struct weft_err *err);

#endif
