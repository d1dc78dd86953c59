/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/wait/keys.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "engine/engine_state.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OLDEST_BINARY = 25 }; /* the first that knows suspensions as they are: 0025 */

/*
 * Between two looks at the store for keys that are not known, so that a flood of tokens costs the
 * store some 50 small reads a second and no more. A call that comes earlier waits for the next look
 * and is not refused: its token may be good, signed a moment ago under a key that another replica
 * has just made. Refused without a look it would be lost, since a 401 is not tried again; refused
 * with another error it would tell an attacker which keys there are. So a flood costs
 * time, and only calls whose token names an unknown key pay it: at most this and the look, which
 * all waiting calls share. It is short because such a call keeps a thread.
 */
#define LOOK_US (20 * WEFT_MS)

void weft_keys_init(struct weft_keys *keys)
{
    *keys = (struct weft_keys){0};
    pthread_mutex_init(&keys->lock, NULL);
    pthread_cond_init(&keys->looked, NULL);
}

/* Secrets do not stay in memory that is used for something else. */
static void forget(struct weft_signing_key *key, size_t count)
{
    if (key)
        explicit_bzero(key, count * sizeof(*key));
    free(key);
}

void weft_keys_done(struct weft_keys *keys)
{
    forget(keys->key, keys->count);
    weft_key_file_free(keys->file);
    pthread_mutex_destroy(&keys->lock);
    pthread_cond_destroy(&keys->looked);
}

void weft_keys_seen(struct weft_keys *keys, int64_t last, int64_t retires)
{
    pthread_mutex_lock(&keys->lock);
    keys->stale |= keys->seen[0] != last || keys->seen[1] != retires;
    keys->seen[0] = last;
    keys->seen[1] = retires;
    pthread_mutex_unlock(&keys->lock);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void keep(struct weft_keys *keys, const struct weft_rows *rows, weft_usec began_us)
{
    struct weft_signing_key *key = weft_alloc(rows->count + 1, sizeof(*key));
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_keys_read_out *row = &weft_out_keys_read(rows)[i];
        key[i] = (struct weft_signing_key){
            .id = row->id, .created_us = row->created, .retires_us = row->retires.value};
        memcpy(key[i].secret, row->secret.data,
               row->secret.size < sizeof(key[i].secret) ? row->secret.size : sizeof(key[i].secret));
    }
    size_t count = rows->count;
    pthread_mutex_lock(&keys->lock);
    if (began_us >= keys->read_us) { /* a look that began later may have been faster */
        struct weft_signing_key *old = keys->key;
        keys->key = key;
        keys->read_us = began_us;
        key = old;
        count = keys->count;
        keys->count = rows->count;
    }
    pthread_mutex_unlock(&keys->lock);
    forget(key, count);
}

static enum weft_rc read_keys(struct weft_engine *engine, struct weft_err *err)
{
    struct weft_keys *keys = &engine->keys;
    pthread_mutex_lock(&keys->lock);
    keys->stale = false; /* a change from here on is seen by a later poll */
    pthread_mutex_unlock(&keys->lock);
    weft_usec began_us = weft_boot_us();
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_init(&call, arena, WEFT_STMT_KEYS_READ, 0);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (!rc) {
        keep(keys, &rows, began_us);
    } else {
        pthread_mutex_lock(&keys->lock);
        keys->stale = true;
        pthread_mutex_unlock(&keys->lock);
    }
    weft_arena_free(arena);
    return rc;
}

/* What the store's keys are good for, beside a file; under keys.lock. */
static bool store_signs(const struct weft_keys *keys)
{
    return !keys->file || keys->file->store_signs;
}

static bool store_verifies(const struct weft_keys *keys)
{
    return !keys->file || keys->file->store;
}

/* A key of the file, 0: its first. False: there is none. */
static bool find_in_file(const struct weft_key_file *file, int32_t id,
                         struct weft_signing_key *ret_key)
{
    for (size_t i = 0; i < file->count; i++)
        if (id == 0 || file->key[i].id == id) {
            *ret_key = (struct weft_signing_key){.id = file->key[i].id};
            memcpy(ret_key->secret, file->key[i].secret, sizeof(ret_key->secret));
            return true;
        }
    return false;
}

/* A key by its number, 0: the one that signs. False: it is not in memory. */
static bool find(struct weft_keys *keys, int32_t id, struct weft_signing_key *ret_key)
{
    bool found = false;
    pthread_mutex_lock(&keys->lock);
    if (id >= WEFT_FILE_KEY_FIRST || (id == 0 && !store_signs(keys)))
        found = keys->file && find_in_file(keys->file, id, ret_key);
    else
        for (size_t i = 0; store_verifies(keys) && i < keys->count; i++)
            if (keys->key[i].id == id || (id == 0 && i == keys->count - 1)) {
                *ret_key = keys->key[i];
                found = true;
            }
    pthread_mutex_unlock(&keys->lock);
    return found;
}

/*
 * Whether a key that is not in memory may be in the store. Numbers are given in their order, under
 * key_lock, and the newest key is never removed: one below it that is not there will not come.
 */
static bool may_exist(struct weft_keys *keys, int32_t id)
{
    pthread_mutex_lock(&keys->lock);
    bool may = id > (keys->count > 0 ? keys->key[keys->count - 1].id : 0);
    pthread_mutex_unlock(&keys->lock);
    return may;
}

static bool signs_by_store(struct weft_keys *keys)
{
    pthread_mutex_lock(&keys->lock);
    bool signs = store_signs(keys);
    pthread_mutex_unlock(&keys->lock);
    return signs;
}

/* Whether the store may have a key of this number that is good for a token. */
static bool is_stored(struct weft_keys *keys, int32_t id)
{
    pthread_mutex_lock(&keys->lock);
    bool stored = id < WEFT_FILE_KEY_FIRST && store_verifies(keys);
    pthread_mutex_unlock(&keys->lock);
    return stored;
}

/* Whether the keys were read from the store a moment ago, as far as this process can know. */
static bool is_fresh(struct weft_keys *keys)
{
    pthread_mutex_lock(&keys->lock);
    bool fresh = keys->read_us != 0 && !keys->stale;
    pthread_mutex_unlock(&keys->lock);
    return fresh;
}

static bool is_good(struct weft_engine *engine, const struct weft_signing_key *key)
{
    return key->retires_us == 0 || weft_clock_now(engine->clock) < key->retires_us;
}

/* ---- Making ---------------------------------------------------------------------------------- */

struct making {
    bool another; /* a new one though there are keys */
    weft_usec grace_us;
};

/*
 * Makes a key. Others that make one wait at key_lock; the keys are read after it, so that of two
 * processes that make the first key only one does.
 */
static enum weft_rc make_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    const struct making *making = context;
    struct weft_call lock, read, add, retire[2];
    struct weft_rows rows = {0};
    weft_call_init(&lock, tx->arena, WEFT_STMT_KEY_LOCK, 0);
    weft_call_init(&read, tx->arena, WEFT_STMT_KEYS_READ, 0);
    enum weft_rc rc = weft_tx_run(tx, &lock, 1, &rows, err);
    if (!rc)
        rc = weft_tx_run(tx, &read, 1, &rows, err);
    if (rc || (rows.count > 0 && !making->another))
        return rc;
    uint8_t secret[WEFT_SIGNING_SECRET];
    weft_random(secret, sizeof(secret));
    *weft_call_key_add(&add, tx->arena) = (struct weft_key_add_in){
        .secret = {secret, sizeof(secret)}, .created = tx->now_us, .oldest = OLDEST_BINARY};
    rc = weft_tx_run(tx, &add, 1, &rows, err);
    if (!rc) {
        *weft_call_key_retire(&retire[0], tx->arena) = (struct weft_key_retire_in){
            .id = weft_out_key_add(&rows)->id, .retires = tx->now_us + making->grace_us};
        *weft_call_keys_remove(&retire[1], tx->arena) =
            (struct weft_keys_remove_in){.now = tx->now_us - WEFT_SECOND};
        rc = weft_tx_run(tx, retire, 2, NULL, err);
    }
    explicit_bzero(secret, sizeof(secret));
    return rc;
}

static enum weft_rc make_key(struct weft_engine *engine, struct making *making,
                             struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, make_body, making, err);
    weft_arena_free(tx.arena);
    return rc ? rc : read_keys(engine, err);
}

static enum weft_rc use_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    (void)context;
    struct weft_call call;
    weft_call_waiting_used(&call, tx->arena)->oldest = OLDEST_BINARY;
    return weft_tx_run(tx, &call, 1, NULL, err);
}

/*
 * With a file no key is made, and the store must know all the same that waiting is used: binaries
 * that do not know it may not use the store any more.
 */
static enum weft_rc note_use(struct weft_engine *engine, struct weft_err *err)
{
    struct weft_keys *keys = &engine->keys;
    pthread_mutex_lock(&keys->lock);
    bool noted = keys->used;
    pthread_mutex_unlock(&keys->lock);
    if (noted)
        return WEFT_OK;
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, use_body, NULL, err);
    weft_arena_free(tx.arena);
    pthread_mutex_lock(&keys->lock);
    keys->used |= !rc;
    pthread_mutex_unlock(&keys->lock);
    return rc;
}

/* ---- Use ------------------------------------------------------------------------------------- */

enum weft_rc weft_keys_current(struct weft_engine *engine, struct weft_signing_key *ret_key,
                               struct weft_err *err)
{
    struct weft_keys *keys = &engine->keys;
    struct making first = {0};
    enum weft_rc rc = !signs_by_store(keys) || is_fresh(keys) ? WEFT_OK : read_keys(engine, err);
    if (rc)
        return rc;
    if (!find(keys, 0, ret_key)) {
        rc = make_key(engine, &first, err);
        if (!rc && !find(keys, 0, ret_key))
            rc = weft_fail(err, WEFT_INTERNAL, "the first signing key is not there");
    }
    if (!rc && ret_key->id >= WEFT_FILE_KEY_FIRST)
        rc = note_use(engine, err);
    return rc;
}

enum weft_rc weft_keys_refuse(struct weft_err *err)
{
    return weft_hint(err, weft_fail(err, WEFT_UNAUTHORIZED, "the signal token is not good"),
                     "send it exactly as the worker got it; its key may have retired");
}

/* Waits for the turn and reads the keys, for all that wait; under the lock, except meanwhile. */
static enum weft_rc look(struct weft_engine *engine, struct weft_err *err)
{
    struct weft_keys *keys = &engine->keys;
    keys->looking = true;
    weft_usec early_us = keys->looked_us + LOOK_US - weft_boot_us();
    pthread_mutex_unlock(&keys->lock);
    const struct timespec pause = {.tv_nsec = (long)(early_us * 1000)};
    if (early_us > 0)
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    weft_usec began_us = weft_boot_us();
    struct weft_err story = {0};
    enum weft_rc rc = read_keys(engine, &story);
    pthread_mutex_lock(&keys->lock);
    keys->looking = false;
    keys->looked_us = began_us;
    keys->failure = story;
    keys->failed = rc;
    pthread_cond_broadcast(&keys->looked);
    if (rc && err)
        *err = story;
    return rc;
}

/*
 * Reads the keys unless that was begun after since_us. A token is made after the commit of its key,
 * and a call begins after its tokens were made: one look that begins after the call knows them all.
 * Calls that come together share a look, also one that fails, and looks keep their distance: see
 * LOOK_US.
 */
static enum weft_rc read_since(struct weft_engine *engine, weft_usec since_us, struct weft_err *err)
{
    struct weft_keys *keys = &engine->keys;
    enum weft_rc rc = WEFT_OK;
    pthread_mutex_lock(&keys->lock);
    while (keys->looking && keys->read_us < since_us && keys->looked_us < since_us)
        pthread_cond_wait(&keys->looked, &keys->lock);
    if (keys->read_us < since_us && keys->looked_us >= since_us) {
        rc = keys->failed;
        if (rc && err)
            *err = keys->failure;
    } else if (keys->read_us < since_us) {
        rc = look(engine, err);
    }
    pthread_mutex_unlock(&keys->lock);
    return rc;
}

enum weft_rc weft_keys_verify(struct weft_engine *engine, const char *text, weft_usec since_us,
                              struct weft_signal_token *ret_token, struct weft_err *err)
{
    struct weft_keys *keys = &engine->keys;
    struct weft_signal_token token;
    uint8_t mac[WEFT_SIGNAL_MAC];
    struct weft_signing_key key = {0};
    if (!weft_signal_token_parse(text, &token, mac))
        return weft_keys_refuse(err);
    bool found = find(keys, token.key, &key), stored = is_stored(keys, token.key);
    bool look = stored && !found && may_exist(keys, token.key);
    if (look && since_us == 0)
        return weft_fail(err, WEFT_BUSY, "the signing keys must be read first");
    if (stored && since_us > 0 && (look || !is_fresh(keys))) {
        enum weft_rc rc = read_since(engine, since_us, err);
        if (rc)
            return rc;
        found = find(keys, token.key, &key);
    }
    /* An unknown key takes as long as a known one: the signature is computed under zeros. */
    bool signed_by = weft_signal_token_verify(&token, mac, key.secret);
    bool good = found && signed_by && is_good(engine, &key);
    explicit_bzero(&key, sizeof(key));
    if (!good)
        return weft_keys_refuse(err);
    *ret_token = token;
    return WEFT_OK;
}

enum weft_rc weft_keys_sign(struct weft_engine *engine, struct weft_signal_token *token,
                            char ret_text[WEFT_SIGNAL_TOKEN_TEXT], struct weft_err *err)
{
    struct weft_signing_key key = {0};
    enum weft_rc rc = WEFT_OK;
    if (!find(&engine->keys, token->key, &key) || !is_good(engine, &key))
        rc = weft_keys_current(engine, &key, err);
    if (rc)
        return rc;
    token->key = key.id;
    weft_signal_token_print(token, key.secret, ret_text);
    explicit_bzero(&key, sizeof(key));
    return WEFT_OK;
}

/* ---- Operators ------------------------------------------------------------------------------- */

static struct weft_signing_keys list_keys(struct weft_engine *engine, struct weft_arena *arena)
{
    struct weft_keys *keys = &engine->keys;
    pthread_mutex_lock(&keys->lock);
    size_t in_file = keys->file ? keys->file->count : 0, count = 0;
    struct weft_signing_key_info *item =
        weft_new_array(arena, struct weft_signing_key_info, in_file + keys->count + 1);
    for (size_t i = 0; i < in_file; i++)
        item[count++] = (struct weft_signing_key_info){.key_id = keys->file->key[i].id,
                                                       .current = i == 0 && !store_signs(keys)};
    for (size_t i = 0; store_verifies(keys) && i < keys->count; i++)
        if (is_good(engine, &keys->key[i]))
            item[count++] = (struct weft_signing_key_info){.key_id = keys->key[i].id,
                                                           .created_us = keys->key[i].created_us,
                                                           .retires_us = keys->key[i].retires_us,
                                                           .current = i + 1 == keys->count &&
                                                                      store_signs(keys)};
    pthread_mutex_unlock(&keys->lock);
    return (struct weft_signing_keys){.item = item, .count = count};
}

enum weft_rc weft_engine_keys_load(struct weft_engine *engine, const char *path,
                                   struct weft_err *err)
{
    return weft_keys_load(&engine->keys, path, err);
}

enum weft_rc weft_engine_keys(struct weft_engine *engine, struct weft_arena *arena,
                              struct weft_signing_keys *ret_keys, struct weft_err *err)
{
    enum weft_rc rc = read_keys(engine, err);
    if (!rc)
        *ret_keys = list_keys(engine, arena);
    return rc;
}

enum weft_rc weft_engine_key_rotate(struct weft_engine *engine, const struct weft_key_rotation *in,
                                    struct weft_arena *arena, struct weft_signing_keys *ret_keys,
                                    struct weft_err *err)
{
    if (in->grace_ms < 0 || in->grace_ms > WEFT_DELAY_MAX_MS)
        return weft_invalid(err, "grace_ms", "grace_ms must be 0 to %lld",
                            (long long)WEFT_DELAY_MAX_MS);
    if (!signs_by_store(&engine->keys))
        return weft_hint(err, weft_fail(err, WEFT_CONFLICT, "the signing keys come from a file"),
                         "add a key to signing_key_file of each server and send SIGHUP");
    struct making making = {.another = true, .grace_us = in->grace_ms * WEFT_MS};
    enum weft_rc rc = make_key(engine, &making, err);
    if (!rc)
        *ret_keys = list_keys(engine, arena);
    return rc;
}
