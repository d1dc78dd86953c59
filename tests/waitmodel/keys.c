/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The signing keys. An engine knows the keys that it read last: it reads them again after a poll
 * that saw others, when it rotates them itself, and when it meets a token of a key that it does not
 * know. Until then a key that another engine has retired is good to it.
 */

#include "waitmodel.h"

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/ready/poll.h"
#include "engine/wait/keys.h"
#include "engine/wait/wait.h"

static void read_keys(struct world *w, size_t engine)
{
    w->known[engine] = w->keys;
    w->read[engine] = true;
    w->stale[engine] = false;
}

static const struct key *find_key(const struct keys *keys, int32_t id)
{
    for (size_t i = 0; i < keys->count; i++)
        if (keys->key[i].id == id)
            return &keys->key[i];
    return NULL;
}

static bool is_good(const struct world *w, const struct key *key)
{
    return key && (key->retires_us == 0 || w->now_us < key->retires_us);
}

int32_t key_current(struct world *w, size_t engine)
{
    if (!w->read[engine] || w->stale[engine])
        read_keys(w, engine);
    return w->known[engine].key[w->known[engine].count - 1].id;
}

int32_t key_to_sign(struct world *w, size_t engine, int32_t key)
{
    return is_good(w, find_key(&w->known[engine], key)) ? key : key_current(w, engine);
}

bool key_verifies(struct world *w, size_t engine, int32_t key)
{
    if (!find_key(&w->known[engine], key) || !w->read[engine] || w->stale[engine])
        read_keys(w, engine);
    return is_good(w, find_key(&w->known[engine], key));
}

void check_token(struct world *w, struct point *point, int32_t key, const char *text)
{
    struct weft_signal_token parsed;
    uint8_t mac[WEFT_SIGNAL_MAC];
    if (!text || !weft_signal_token_parse(text, &parsed, mac)) {
        wrong(w, "the token of a waitpoint is none in form");
        return;
    }
    if (parsed.key != key || parsed.epoch != point->made ||
        memcmp(&parsed.waitpoint, &point->id, sizeof(point->id)) != 0)
        wrong(w, "a token has key %d and epoch %d, must have %d and %d", parsed.key, parsed.epoch,
              key, point->made);
    for (size_t i = 0; i < WEFT_LEN(point->token); i++)
        if (point->token[i].key == key) {
            if (strcmp(point->token[i].text, text) != 0)
                wrong(w, "a waitpoint has another token under the same key");
            return;
        }
    point->token[1] = point->token[0];
    point->token[0].key = key;
    (void)snprintf(point->token[0].text, sizeof(point->token[0].text), "%s", text);
}

/* ---- Rotation -------------------------------------------------------------------------------- */

static void rotate(struct world *w, size_t engine, int64_t grace_ms)
{
    struct weft_signing_keys got = {0};
    struct weft_err err = {0};
    const struct weft_key_rotation rotation = {.grace_ms = grace_ms};
    weft_usec retires_us = w->now_us + grace_ms * WEFT_MS;
    size_t kept = 0, good = 0;
    must_be(w, weft_engine_key_rotate(w->engine[engine], &rotation, w->arena, &got, &err), WEFT_OK,
            "rotate");
    if (w->failed || got.count == 0) {
        wrong(w, "a rotation gives no key");
        return;
    }
    for (size_t i = 0; i < w->keys.count; i++) {
        struct key key = w->keys.key[i];
        if (key.retires_us == 0 || key.retires_us > retires_us)
            key.retires_us = retires_us;
        if (key.retires_us >= w->now_us - WEFT_SECOND)
            w->keys.key[kept++] = key;
        good += is_good(w, &key);
    }
    w->keys.key[kept].id = got.item[got.count - 1].key_id;
    w->keys.key[kept++].retires_us = 0;
    w->keys.count = kept;
    w->rotations++;
    read_keys(w, engine);
    if (got.count != good + 1 || !got.item[good].current)
        wrong(w, "after a rotation there are %zu keys, must be %zu", got.count, good + 1);
}

static void poll_engine(struct world *w, size_t engine)
{
    struct weft_poll poll = {0};
    struct weft_err err = {0};
    must_be(w, weft_engine_poll(w->engine[engine], w->arena, &poll, &err), WEFT_OK, "poll");
    w->stale[engine] |= w->polled[engine] != w->rotations; /* also by rotations of its own */
    w->polled[engine] = w->rotations;
}

void key_begin(struct world *w)
{
    memset(&w->keys, 0, sizeof(w->keys));
    rotate(w, 0, 0);
    /* Keys of other seeds are none of this one. */
    w->keys.key[0] = w->keys.key[w->keys.count - 1];
    w->keys.count = 1;
    read_keys(w, 0);
    for (size_t i = 0; i < ENGINES; i++)
        poll_engine(w, i);
}

void op_rotate(struct world *w)
{
    static const int64_t grace_ms[] = {0, 5000, 20000};
    size_t engine = any_engine(w);
    int64_t grace = grace_ms[below(w, WEFT_LEN(grace_ms))];
    if (w->keys.count + 2 > KEYS_MAX)
        return;
    note(w, "engine %zu: rotate the keys, %lld ms of grace", engine, (long long)grace);
    rotate(w, engine, grace);
}

void op_poll(struct world *w)
{
    size_t engine = any_engine(w);
    note(w, "engine %zu polls", engine);
    poll_engine(w, engine);
}

/* An operator asks for the token of a waitpoint. */
void op_token(struct world *w)
{
    struct execution *x = pick(w, WEFT_STATE_SUSPENDED);
    size_t engine = any_engine(w);
    struct weft_waitpoint got = {0};
    struct weft_err err = {0};
    if (x->points == 0)
        return;
    struct point *point = &x->point[below(w, x->points)];
    const struct weft_wait_asking asking = {.id = point->id, .ns = "default"};
    enum weft_rc rc = weft_engine_waitpoint_token(w->engine[engine], &asking, w->arena, &got, &err);
    bool closed = state_of_point(w, x, point) == WEFT_WAITPOINT_CLOSED;
    note(w, "engine %zu: token of #%zu.%zu: %s", engine, number_of(w, x),
         (size_t)(point - x->point), weft_rc_wire(rc));
    must_be(w, rc, closed ? WEFT_NOT_LIVE : WEFT_OK, "the token of a waitpoint");
    if (!rc && !closed)
        check_token(w, point, key_to_sign(w, engine, point->key), got.token);
}
