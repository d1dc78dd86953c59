/* SPDX-License-Identifier: Apache-2.0 */

/* The engine's connections: opened when they are needed, closed when they are not. */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "store_fixture.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/tx/tx.h"
#include "store/store.h"

enum { CONNECTIONS = 5, DEEP = 4, KEPT = 2 };

static size_t count_open(const struct weft_engine *engine)
{
    size_t open = 0;
    for (size_t i = 0; i < engine->pool.count; i++)
        open += engine->pool.slot[i].conn != NULL;
    return open;
}

/* Transactions that are open at the same time, each on a connection of its own: one may write. */
static enum weft_rc enter(struct weft_tx *tx, void *context, struct weft_err *err)
{
    size_t *left = context;
    if (*left == 0)
        return WEFT_OK;
    --*left;
    struct weft_tx inner = {.engine = tx->engine, .arena = tx->arena};
    return weft_tx_do(&inner, WEFT_TX_READ, enter, left, err);
}

static enum weft_rc use(struct fixture *f, struct weft_engine *engine, size_t connections)
{
    size_t left = connections - 1;
    struct weft_tx tx = {.engine = engine, .arena = f->arena};
    return weft_tx_do(&tx, WEFT_TX_WRITE, enter, &left, &f->err);
}

static void test_unused(struct fixture *f)
{
    const char *name = f->driver->name;
    const struct weft_engine_config config = {.url = f->url, .connections = CONNECTIONS};
    struct weft_engine *engine = NULL;
    if (!ok(weft_engine_open(&config, &engine, &f->err) == WEFT_OK, "%s: an engine", name))
        return;
    ok(use(f, engine, DEEP) == WEFT_OK, "%s: %d at once", name, DEEP);
    size_t most = count_open(engine);
    ok(most >= DEEP, "%s: %zu connections are open", name, most);
    weft_usec burst_us = weft_boot_us();
    weft_engine_slim(engine, 0, 0);
    is_int(count_open(engine), most, "%s: connections stay open for the next burst", name);
    while (weft_boot_us() == burst_us)
        ; /* the clock goes on */
    ok(use(f, engine, KEPT + 1) == WEFT_OK, "%s: a later call uses fewer connections", name);
    weft_engine_slim(engine, 0, burst_us + 1);
    size_t left = count_open(engine);
    ok(left < most && left > KEPT, "%s: unused connections are closed: %zu are left", name, left);
    weft_engine_slim(engine, 0, INT64_MAX);
    is_int(count_open(engine), KEPT, "%s: the connections of a quiet server stay open", name);
    ok(use(f, engine, DEEP) == WEFT_OK, "%s: the next burst opens connections again", name);
    weft_engine_close(engine);
}

/* Lets so much time pass, as far as the pool can tell. */
static void pass(struct weft_engine *engine, weft_usec us)
{
    engine->pool.answered_us -= us;
}

static enum weft_rc be_slow(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct fixture *f = context;
    size_t none = 0;
    struct weft_tx inner = {.engine = tx->engine, .arena = f->arena};
    pass(tx->engine, WEFT_SECOND);
    enum weft_rc rc = weft_tx_do(&inner, WEFT_TX_READ, enter, &none, err);
    pass(tx->engine, WEFT_SECOND);
    return rc;
}

static enum weft_rc refuse(struct weft_tx *tx, void *context, struct weft_err *err)
{
    (void)tx;
    (void)context;
    return weft_fail(err, WEFT_UNAVAILABLE, "gone");
}

static void test_gap(struct fixture *f)
{
    const char *name = f->driver->name;
    const struct weft_engine_config config = {.url = f->url, .connections = CONNECTIONS};
    struct weft_engine *engine = NULL;
    if (!ok(weft_engine_open(&config, &engine, &f->err) == WEFT_OK, "%s: an engine", name))
        return;
    struct weft_tx tx = {.engine = engine, .arena = f->arena};
    ok(use(f, engine, 1) == WEFT_OK, "%s: the store answers", name);
    (void)weft_engine_gap(engine);
    pass(engine, 3600 * WEFT_SECOND);
    ok(use(f, engine, 2) == WEFT_OK, "%s: the store answers after an hour", name);
    ok(weft_engine_gap(engine) >= 3600 * WEFT_SECOND, "%s: the gap is seen, though more came",
       name);
    ok(weft_engine_gap(engine) < 1800 * WEFT_SECOND, "%s: once", name);
    ok(weft_tx_do(&tx, WEFT_TX_WRITE, be_slow, f, &f->err) == WEFT_OK, "%s: a slow one", name);
    weft_usec gap_us = weft_engine_gap(engine);
    ok(gap_us >= WEFT_SECOND && gap_us < 1800 * WEFT_SECOND, "%s: no more than between others",
       name);
    pass(engine, 3600 * WEFT_SECOND);
    ok(weft_tx_do(&tx, WEFT_TX_READ, refuse, NULL, &f->err) != WEFT_OK, "%s: one fails", name);
    ok(weft_engine_gap(engine) >= 3600 * WEFT_SECOND, "%s: a failed call ends no gap", name);
    weft_engine_close(engine);
}

/* A driver that counts the connections on which all statements are prepared. */
static const struct weft_driver *real;
static int prepared;

static enum weft_rc count_prepare(struct weft_conn *conn, struct weft_err *err)
{
    prepared++;
    return real->prepare(conn, err);
}

static void test_statements(struct fixture *f)
{
    const char *name = f->driver->name;
    struct weft_driver counting = *f->driver;
    real = f->driver;
    counting.prepare = count_prepare;
    struct weft_engine_config config = {
        .url = f->url, .driver = &counting, .connections = CONNECTIONS};
    for (int known = 0; known < 2; known++) {
        struct weft_engine *engine = NULL;
        config.statements_fit = known;
        prepared = 0;
        if (!ok(weft_engine_open(&config, &engine, &f->err) == WEFT_OK, "%s: an engine", name))
            return;
        is_int(prepared, known ? 0 : 1, "%s: the statements are looked at when the engine opens%s",
               name, known ? ", unless they are known" : "");
        ok(use(f, engine, DEEP) == WEFT_OK, "%s: %d connections at once", name, DEEP);
        is_int(prepared, known ? 0 : 1, "%s: not on each connection", name);
        weft_engine_close(engine);
    }
}

/* A thread that waits for the only writer, and what it does with it. */
struct waiter {
    struct weft_engine *engine;
    struct weft_arena *arena;
    pthread_t thread;
    atomic_bool wrote;
    bool done_before; /* whether it had written when the one who came later did */
};

static enum weft_rc note_write(struct weft_tx *tx, void *context, struct weft_err *err)
{
    (void)tx;
    (void)err;
    struct waiter *waiter = context;
    atomic_store(&waiter->wrote, true);
    return WEFT_OK;
}

static void *write_once(void *context)
{
    struct waiter *waiter = context;
    struct weft_err err;
    struct weft_tx tx = {.engine = waiter->engine, .arena = waiter->arena};
    bool wrote = weft_tx_do(&tx, WEFT_TX_WRITE, note_write, waiter, &err) == WEFT_OK;
    return wrote ? waiter : NULL;
}

/* Keeps the writer until the other thread is in line, and has waited for a second. */
static enum weft_rc keep_writer(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct waiter *waiter = context;
    struct weft_pool *pool = &tx->engine->pool;
    if (pthread_create(&waiter->thread, NULL, write_once, waiter) != 0)
        return weft_fail(err, WEFT_BUSY, "no thread");
    for (bool waits = false; !waits; sched_yield()) {
        pthread_mutex_lock(&pool->lock);
        waits = pool->first != NULL;
        if (waits)
            pool->first->since_us -= WEFT_SECOND;
        pthread_mutex_unlock(&pool->lock);
    }
    return WEFT_OK;
}

static enum weft_rc come_later(struct weft_tx *tx, void *context, struct weft_err *err)
{
    (void)tx;
    (void)err;
    struct waiter *waiter = context;
    waiter->done_before = atomic_load(&waiter->wrote);
    return WEFT_OK;
}

static void test_turns(struct fixture *f)
{
    enum { ROUNDS = 100 };
    const char *name = f->driver->name;
    const struct weft_engine_config config = {.url = f->url, .connections = 1};
    struct weft_engine *engine = NULL;
    if (!ok(weft_engine_open(&config, &engine, &f->err) == WEFT_OK, "%s: an engine", name))
        return;
    int in_turn = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct weft_tx tx = {.engine = engine, .arena = f->arena};
        struct waiter waiter = {.engine = engine, .arena = weft_arena_new()};
        if (!weft_tx_do(&tx, WEFT_TX_WRITE, keep_writer, &waiter, &f->err)) {
            enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, come_later, &waiter, &f->err);
            void *wrote = NULL;
            pthread_join(waiter.thread, &wrote);
            in_turn += !rc && wrote && waiter.done_before;
        }
        weft_arena_free(waiter.arena);
    }
    is_int(in_turn, ROUNDS, "%s: a thread that has waited long for the writer is not passed", name);
    weft_engine_close(engine);
}

/* A store that is behind with its log until a small transaction has passed, or for good. */
static struct {
    struct weft_engine *engine;
    struct weft_arena *arena;
    bool behind, for_good, passed, large_ran;
    int passes;
} log_state;

static bool is_behind(struct weft_conn *conn)
{
    return conn && log_state.behind;
}

static enum weft_rc note_large(struct weft_tx *tx, void *context, struct weft_err *err)
{
    (void)tx;
    (void)context;
    (void)err;
    log_state.large_ran = true;
    return WEFT_OK;
}

static enum weft_rc note_small(struct weft_tx *tx, void *context, struct weft_err *err)
{
    (void)tx;
    (void)context;
    (void)err;
    log_state.passed = !log_state.large_ran;
    log_state.behind = log_state.for_good;
    log_state.passes++;
    return WEFT_OK;
}

static void let_small_pass(void *context)
{
    (void)context;
    struct weft_err err;
    struct weft_tx tx = {.engine = log_state.engine, .arena = log_state.arena, .bytes = 100};
    if (weft_tx_do(&tx, WEFT_TX_WRITE, note_small, NULL, &err) != WEFT_OK)
        log_state.passed = false;
}

static void test_hold_back(struct fixture *f)
{
    struct weft_driver slow = *f->driver;
    slow.behind = is_behind;
    const struct weft_engine_config config = {.url = f->url, .driver = &slow, .connections = 1};
    memset(&log_state, 0, sizeof(log_state));
    log_state.arena = f->arena;
    struct weft_engine *engine = NULL;
    if (!ok(weft_engine_open(&config, &engine, &f->err) == WEFT_OK, "an engine"))
        return;
    log_state.engine = engine;
    weft_engine_on_side_work(engine, let_small_pass, NULL);
    struct weft_tx large = {.engine = engine, .arena = f->arena, .bytes = WEFT_TX_MUCH};
    ok(weft_tx_do(&large, WEFT_TX_WRITE, note_large, NULL, &f->err) == WEFT_OK &&
           log_state.passes == 0,
       "a large transaction on a store that is not behind begins at once");
    log_state.behind = true;
    log_state.large_ran = false;
    ok(weft_tx_do(&large, WEFT_TX_WRITE, note_large, NULL, &f->err) == WEFT_OK && log_state.passed,
       "on a store that is behind a small transaction passes a large one");
    is_int(log_state.passes, 1, "a large transaction begins when the store is not behind any more");
    log_state.behind = log_state.for_good = true;
    ok(weft_tx_do(&large, WEFT_TX_READ, note_large, NULL, &f->err) == WEFT_OK &&
           log_state.passes == 1,
       "a transaction that reads is not held back");
    log_state.large_ran = false;
    ok(weft_tx_do(&large, WEFT_TX_WRITE, note_large, NULL, &f->err) == WEFT_OK &&
           log_state.passes > 10 && log_state.large_ran,
       "a large transaction begins in the end although the store stays behind");
    weft_engine_close(engine);
}

int main(void)
{
    struct fixture f;
    fixture_init(&f, &weft_driver_sqlite);
    test_unused(&f);
    test_gap(&f);
    test_statements(&f);
    test_turns(&f);
    test_hold_back(&f);
    fixture_done(&f);
    if (!fixture_has_pg()) {
        tap_skip("WEFT_TEST_PG is not set");
        return tap_done();
    }
    fixture_init(&f, &weft_driver_pg);
    test_unused(&f);
    test_gap(&f);
    test_statements(&f);
    test_turns(&f);
    fixture_done(&f);
    return tap_done();
}
