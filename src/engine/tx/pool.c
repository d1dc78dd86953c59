/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The pool of connections.
 *
 * Whether this binary may still use the store: a newer binary that migrates the schema records in
 * it how old a binary may be. At the open weft_migrate() checks that; while the engine runs,
 * another process may migrate at any time. A server reads the schema with each poll. An engine
 * without a poll (a worker with its own store, a library) reads it before a transaction when the
 * last look is LOOK_US old. An engine that is too old begins no transaction any more: an operation,
 * a scanner or a claim that goes on would break the rules of the new schema. It stays so, because a
 * binary does not become newer. A transaction that began before that look is carried out.
 */

#include "engine/tx/pool.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "engine/engine_state.h"
#include "store/migrate.h"

#include <stdlib.h>

enum {
    CONNECTIONS_DEFAULT = 4,
    /*
     * Slots whose connections stay open however little they are used: a quiet server needs two, of
     * a store with one writer that one and a reader. Of several that are open the first is taken,
     * so these are the ones in use.
     */
    SLOTS_KEPT = 2,
    ACQUIRE_WAIT_S = 30,
    PASSED_MAX_US = 20000,
    CLOCK_SAMPLES_MIN = 3,
    CLOCK_SAMPLES_MAX = 10,
    CLOCK_ROUND_TRIP_US = 300, /* good enough to stop asking */
};

#define LOOK_US      (10 * WEFT_SECOND)
#define CONTENDED_US WEFT_SECOND /* so long after a thread waited, transactions are short */

/* ---- Slots ----------------------------------------------------------------------------------- */

void weft_pool_init(struct weft_engine *engine, uint32_t connections, bool in_turn)
{
    struct weft_pool *pool = &engine->pool;
    size_t wanted = connections ? connections : CONNECTIONS_DEFAULT;
    bool single_writer = engine->driver->writers_max < wanted;
    pool->writers = single_writer ? engine->driver->writers_max : wanted;
    pool->count = single_writer ? pool->writers + wanted : wanted;
    pool->slot = weft_alloc(pool->count, sizeof(*pool->slot));
    pthread_mutex_init(&pool->lock, NULL);
    pool->last = &pool->first;
    pool->passed_max_us = in_turn ? 0 : PASSED_MAX_US;
    pool->answered_us = weft_boot_us();
    atomic_init(&pool->history, 1);
}

void weft_pool_done(struct weft_engine *engine)
{
    struct weft_pool *pool = &engine->pool;
    for (size_t i = 0; i < pool->count; i++)
        weft_conn_close(pool->slot[i].conn);
    free(pool->slot);
    pthread_mutex_destroy(&pool->lock);
}

/* A free slot for this mode: readers leave the writers alone where they have slots of their own. */
static struct weft_slot *free_slot(struct weft_pool *pool, bool reads)
{
    struct weft_slot *found = NULL;
    for (size_t i = 0; i < pool->count; i++) {
        struct weft_slot *slot = &pool->slot[i];
        if (slot->busy || (!reads && i >= pool->writers) ||
            (reads && pool->count > pool->writers && i < pool->writers))
            continue;
        if (slot->conn)
            return slot; /* an open one is better */
        if (!found)
            found = slot;
    }
    return found;
}

/*
 * Whether a thread may take a slot that is free. A thread that comes may pass waiting threads: to
 * hand the only writer to a sleeping thread each time costs more than a short transaction. But no
 * thread is passed once it has waited passed_max_us: else one that writes one transaction after the
 * other, as a large flow does, would take the writer again and again before another has woken up. A
 * server, whose threads write for different namespaces, lets none be passed; it writes in groups,
 * so that there are few to hand the writer to. Where reads have slots of their own they do not wait
 * behind writes.
 */
static bool may_take(const struct weft_pool *pool, const struct weft_pool_turn *turn)
{
    const struct weft_pool_turn *first = pool->first;
    while (first != turn && pool->count > pool->writers && first->reads != turn->reads)
        first = first->next;
    return first == turn || weft_boot_us() - first->since_us < pool->passed_max_us;
}

/* Under the lock, as the next one. */
static void line_up(struct weft_pool *pool, struct weft_pool_turn *turn)
{
    turn->since_us = weft_boot_us();
    *pool->last = turn;
    pool->last = &turn->next;
}

static void step_out(struct weft_pool *pool, struct weft_pool_turn *turn)
{
    struct weft_pool_turn **place = &pool->first;
    while (*place != turn)
        place = &(*place)->next;
    *place = turn->next;
    if (!turn->next)
        pool->last = place;
}

/*
 * Wakes the first thread that a free slot is for. It is called, under the lock, after each change
 * of slots and of the line, so a slot is never free while the first thread in line for it sleeps: a
 * thread that was woken for a slot and found it taken is still the first, and is woken again.
 */
static void wake_first(struct weft_pool *pool)
{
    for (struct weft_pool_turn *turn = pool->first; turn; turn = turn->next)
        if (free_slot(pool, turn->reads)) {
            pthread_cond_signal(&turn->woken);
            return;
        }
}

struct weft_slot *weft_pool_take(struct weft_engine *engine, enum weft_tx_mode mode,
                                 struct weft_err *err)
{
    struct weft_pool *pool = &engine->pool;
    struct weft_pool_turn turn = {.reads = weft_tx_reads(mode), .woken = PTHREAD_COND_INITIALIZER};
    pthread_mutex_lock(&pool->lock);
    line_up(pool, &turn);
    struct weft_slot *slot = may_take(pool, &turn) ? free_slot(pool, turn.reads) : NULL;
    if (!slot) {
        pool->waits++;
        if (!turn.reads)
            pool->waited_us = weft_boot_us();
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += ACQUIRE_WAIT_S;
        int waited = 0;
        while (!slot && waited == 0) {
            waited = pthread_cond_clockwait(&turn.woken, &pool->lock, CLOCK_MONOTONIC, &until);
            slot = may_take(pool, &turn) ? free_slot(pool, turn.reads) : NULL;
        }
    }
    step_out(pool, &turn);
    if (slot)
        slot->busy = true;
    else
        weft_fail(err, WEFT_BUSY, "no database connection became free in %d s", ACQUIRE_WAIT_S);
    wake_first(pool); /* there may be a slot for the next one too */
    pthread_mutex_unlock(&pool->lock);
    pthread_cond_destroy(&turn.woken);
    return slot;
}

bool weft_engine_answers(struct weft_engine *engine, weft_usec within_us)
{
    struct weft_pool *pool = &engine->pool;
    pthread_mutex_lock(&pool->lock);
    bool answers =
        pool->answered_us > pool->lost_us && weft_boot_us() - pool->answered_us < within_us;
    pthread_mutex_unlock(&pool->lock);
    return answers;
}

void weft_pool_release(struct weft_engine *engine, struct weft_slot *slot,
                       const struct weft_err *failure)
{
    struct weft_pool *pool = &engine->pool;
    if (slot->conn && slot->conn->broken) {
        weft_conn_close(slot->conn);
        slot->conn = NULL;
    }
    pthread_mutex_lock(&pool->lock);
    slot->busy = false;
    slot->used_us = weft_boot_us();
    if (!failure) {
        weft_usec gap_us = slot->used_us - pool->answered_us;
        pool->gap_us = gap_us > pool->gap_us ? gap_us : pool->gap_us;
        pool->answered_us = slot->used_us;
    } else if (failure->cause == WEFT_CAUSE_LOST || failure->cause == WEFT_CAUSE_LOST_IN_COMMIT) {
        /*
         * The store cannot be reached, or broke off. The end of a single connection counts too, for
         * the moment until the next transaction: it is tried again at once.
         */
        pool->lost_us = slot->used_us;
    }
    wake_first(pool);
    pthread_mutex_unlock(&pool->lock);
}

weft_usec weft_engine_gap(struct weft_engine *engine)
{
    struct weft_pool *pool = &engine->pool;
    pthread_mutex_lock(&pool->lock);
    weft_usec gap_us = weft_boot_us() - pool->answered_us;
    gap_us = gap_us > pool->gap_us ? gap_us : pool->gap_us;
    pool->gap_us = 0;
    pthread_mutex_unlock(&pool->lock);
    return gap_us;
}

/* Takes a connection that need not stay open; NULL when there is none. */
static struct weft_slot *take_spare(struct weft_pool *pool, weft_usec large_us, weft_usec unused_us)
{
    struct weft_slot *found = NULL;
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < pool->count && !found; i++) {
        struct weft_slot *slot = &pool->slot[i];
        if (slot->busy || !slot->conn)
            continue;
        bool large = slot->conn->buffers_large_since_us != 0 &&
                     slot->conn->buffers_large_since_us < large_us;
        if (large || (i >= SLOTS_KEPT && slot->used_us < unused_us))
            found = slot;
    }
    if (found)
        found->busy = true;
    pthread_mutex_unlock(&pool->lock);
    return found;
}

void weft_engine_slim(struct weft_engine *engine, weft_usec large_us, weft_usec unused_us)
{
    static const struct weft_err closed = {0};
    struct weft_slot *slot;
    while ((slot = take_spare(&engine->pool, large_us, unused_us)) != NULL) {
        weft_conn_close(slot->conn);
        slot->conn = NULL;
        weft_pool_release(engine, slot, &closed);
    }
}

bool weft_engine_is_contended(struct weft_engine *engine)
{
    struct weft_pool *pool = &engine->pool;
    if (pool->writers > 1)
        return false;
    pthread_mutex_lock(&pool->lock);
    bool lately = pool->waited_us > 0 && weft_boot_us() - pool->waited_us < CONTENDED_US;
    pthread_mutex_unlock(&pool->lock);
    return lately;
}

uint64_t weft_pool_waits(struct weft_engine *engine)
{
    pthread_mutex_lock(&engine->pool.lock);
    uint64_t waits = engine->pool.waits;
    pthread_mutex_unlock(&engine->pool.lock);
    return waits;
}

uint64_t weft_engine_transactions(const struct weft_engine *engine, enum weft_tx_mode mode)
{
    return atomic_load_explicit(&engine->pool.begun[mode], memory_order_relaxed);
}

uint64_t weft_engine_history(struct weft_engine *engine)
{
    return atomic_load(&engine->pool.history);
}

/* A server that was promoted away from came back, and would take writes that are lost later. */
static enum weft_rc refuse_old(const struct weft_lineage *seen, uint32_t timeline,
                               struct weft_err *err)
{
    enum weft_rc rc = weft_fail(err, WEFT_UNAVAILABLE,
                                "the database server is on timeline %u, and another one was on "
                                "timeline %u before",
                                seen->timeline, timeline);
    rc = weft_cause(err, rc, WEFT_CAUSE_LOST);
    return weft_hint(err, rc,
                     "stop the old primary, or make it a standby; after a restore restart weft");
}

/*
 * The caches are emptied before the new lineage is recorded: a thread that meets it in between
 * empties them once more, and none goes on with an old name because another one is about to empty
 * them.
 */
enum weft_rc weft_pool_note_lineage(struct weft_engine *engine, const struct weft_lineage *seen,
                                    struct weft_err *err)
{
    struct weft_pool *pool = &engine->pool;
    if (seen->timeline == 0)
        return WEFT_OK;
    pthread_mutex_lock(&pool->lock);
    struct weft_lineage known = pool->lineage;
    pthread_mutex_unlock(&pool->lock);
    bool alike = known.system == seen->system || known.system == 0 || seen->system == 0;
    if (alike && seen->timeline < known.timeline)
        return refuse_old(seen, known.timeline, err);
    bool anew = known.timeline != 0 && (!alike || seen->timeline != known.timeline);
    if (anew) {
        weft_warn("the database was failed over or restored",
                  F_I64("timeline", (int64_t)seen->timeline),
                  F_I64("before", (int64_t)known.timeline));
        weft_names_suspect(&engine->names);
        weft_ready_suspect(&engine->ready);
    }
    pthread_mutex_lock(&pool->lock);
    pool->lineage = *seen;
    atomic_fetch_add(&pool->history, anew);
    pthread_mutex_unlock(&pool->lock);
    return WEFT_OK;
}

enum weft_rc weft_pool_open(struct weft_engine *engine, struct weft_slot *slot,
                            struct weft_err *err)
{
    if (slot->conn && slot->history == weft_engine_history(engine))
        return WEFT_OK;
    weft_conn_close(slot->conn);
    slot->conn = NULL;
    struct weft_conn *conn = NULL;
    enum weft_rc rc = engine->driver->open(engine->url, &conn, err);
    if (rc)
        return rc;
    rc = weft_pool_note_lineage(engine, &conn->lineage, err);
    slot->history = weft_engine_history(engine);
    /*
     * The first connection prepares every statement, so that one that does not fit the schema is
     * found at the start. The other connections prepare a statement at its first use: to prepare
     * all takes longer than the connection itself, and after an outage every connection is new.
     */
    if (!rc && !atomic_load(&engine->statements_fit)) {
        rc = engine->driver->prepare(conn, err);
        if (!rc)
            atomic_store(&engine->statements_fit, true);
    }
    if (rc)
        weft_conn_close(conn);
    else
        slot->conn = conn;
    return rc;
}

/* ---- Before a transaction -------------------------------------------------------------------- */

void weft_version_seen(struct weft_engine *engine, int64_t version, int64_t oldest_binary)
{
    atomic_store(&engine->schema_seen_us, weft_boot_us());
    if (oldest_binary <= (int64_t)weft_migration_count)
        return;
    if (atomic_exchange(&engine->oldest_binary, (int_fast64_t)oldest_binary) == 0)
        weft_error(
            "this binary is too old for the store, which was migrated: it stops serving; "
            "install a newer weft",
            F_I64("known", (int64_t)weft_migration_count), F_I64("applied", version),
            F_I64("oldest", oldest_binary));
}

enum weft_rc weft_engine_version(struct weft_engine *engine, struct weft_err *err)
{
    int_fast64_t oldest_binary = atomic_load(&engine->oldest_binary);
    return oldest_binary == 0 ? WEFT_OK : weft_too_old(weft_migration_count, oldest_binary, err);
}

/* Reads the schema when the last look is old. No transaction is open. */
static enum weft_rc look_at_version(struct weft_engine *engine, struct weft_conn *conn,
                                    struct weft_err *err)
{
    if (weft_boot_us() - (weft_usec)atomic_load(&engine->schema_seen_us) < LOOK_US)
        return WEFT_OK;
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_schema_read(&call, arena);
    enum weft_rc rc = conn->driver->begin(conn, WEFT_TX_BARE, err);
    if (!rc)
        rc = conn->driver->run(conn, &call, 1, arena, &rows, err);
    if (!rc)
        rc = conn->driver->commit(conn, err);
    const struct weft_schema_read_out *row = weft_out_schema_read(&rows);
    if (rc)
        conn->driver->rollback(conn);
    else if (rows.count > 0)
        weft_version_seen(engine, row->version, row->oldest_binary);
    weft_arena_free(arena);
    return rc ? rc : weft_engine_version(engine, err);
}

/* Measures the offset to the store's clock when the last measurement is too old. */
static enum weft_rc keep_time(struct weft_engine *engine, struct weft_conn *conn,
                              struct weft_err *err)
{
    if (!weft_clock_stale(engine->clock))
        return WEFT_OK;
    struct weft_clock_sample sample[CLOCK_SAMPLES_MAX];
    size_t count = 0;
    bool close = false;
    while (count < CLOCK_SAMPLES_MIN || (count < CLOCK_SAMPLES_MAX && !close)) {
        struct weft_clock_sample *next = &sample[count++];
        next->sent_us = weft_boot_us();
        enum weft_rc rc = engine->driver->time(conn, &next->store_us, err);
        if (rc)
            return rc;
        next->received_us = weft_boot_us();
        close |= next->received_us - next->sent_us < CLOCK_ROUND_TRIP_US;
    }
    weft_usec moved = weft_clock_measure(engine->clock, sample, count);
    if (moved > WEFT_SECOND || moved < -WEFT_SECOND)
        weft_warn("the store's clock jumped", F_I64("moved_us", moved));
    return WEFT_OK;
}

enum weft_rc weft_pool_prepare(struct weft_engine *engine, struct weft_slot *slot,
                               struct weft_err *err)
{
    enum weft_rc rc = weft_engine_version(engine, err);
    if (!rc)
        rc = weft_pool_open(engine, slot, err);
    if (!rc)
        rc = look_at_version(engine, slot->conn, err);
    return rc ? rc : keep_time(engine, slot->conn, err);
}

enum weft_rc weft_pool_forget(struct weft_engine *engine, struct weft_err *err)
{
    struct weft_slot *slot = weft_pool_take(engine, WEFT_TX_WRITE, err);
    if (!slot)
        return WEFT_BUSY;
    enum weft_rc rc = weft_pool_prepare(engine, slot, err);
    if (!rc && engine->driver->forget)
        rc = engine->driver->forget(slot->conn, err);
    weft_pool_release(engine, slot, rc ? err : NULL);
    return rc;
}
