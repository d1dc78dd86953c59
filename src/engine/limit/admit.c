/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The row of a gate is the lock of its admissions. Under it, in later statements, the executions of
 * the gate are counted by an index, core/limit.h says how many more may begin, and the first held
 * ones become ready. No number of executions is stored, so none can drift.
 *
 * Why no gate is overfull: only an admission adds to what is ready or running, and it holds the
 * lock. Claims, ends and cancels of other transactions move executions on or take them away. What
 * they do after the count only makes room.
 *
 * Why no gate stands still: each of these says after its commit that the gate may admit. That
 * admission waits for the lock, and its count, which begins after it has the lock, sees the commit.
 *
 * Lock order: gates by name, then held executions, which are skipped when they are locked. A
 * transaction that holds an execution never waits for a gate, so no circle can form. A gate that
 * is held for longer than the short lock timeout of keyed transactions (its holder hangs) is
 * found by halving the batch and left to the scanner.
 */

#include "engine/limit/admit.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"
#include "core/limit.h"
#include "engine/engine_state.h"
#include "engine/limit/gates.h"

#include <stdlib.h>
#include <string.h>

enum {
    GATES_MAX = 250,  /* of one transaction */
    ADMIT_MAX = 1000, /* executions of one gate in one transaction */
};

/* ---- Keys ------------------------------------------------------------------------------------ */

const char *weft_gate_key(int32_t ns, const char *name, struct weft_arena *arena)
{
    return name ? weft_arena_printf(arena, "%d/%s", ns, name) : NULL;
}

int32_t weft_gate_ns(const char *key)
{
    return (int32_t)strtol(key, NULL, 10);
}

const char *weft_gate_name(const char *key)
{
    const char *slash = strchr(key, '/');
    return slash ? slash + 1 : key;
}

/* ---- One transaction ------------------------------------------------------------------------- */

/* A gate in its transaction. */
struct gate {
    const struct weft_gate_look_out *row;
    struct weft_limits limits;
    struct weft_limit_now now;
    int64_t take;
    int64_t taken;
};

struct admitting {
    const char *const *name; /* sorted, each once */
    size_t count;
    /* Of the last try: */
    struct gate *gate;
    size_t gates;
    struct weft_rows admitted;
    weft_usec next_us;
    bool more; /* a gate has more to admit than fits one transaction */
};

static enum weft_rc lock_and_look(struct weft_tx *tx, const struct admitting *all,
                                  struct weft_rows *ret_locked, struct weft_rows *ret_look,
                                  struct weft_err *err)
{
    enum { LOCK, LOOK, CALLS };
    struct weft_call call[CALLS];
    struct weft_rows rows[CALLS] = {0};
    struct weft_gate_lock_in *lock = weft_call_gate_lock(&call[LOCK], tx->arena, all->count);
    struct weft_gate_look_in *look = weft_call_gate_look(&call[LOOK], tx->arena, all->count);
    look->now = tx->now_us;
    for (size_t i = 0; i < all->count; i++) {
        const char *own = weft_gate_name(all->name[i]);
        lock->row[i].name = all->name[i];
        look->row[i].name = all->name[i];
        look->row[i].namespace = weft_gate_ns(all->name[i]);
        look->row[i].own = own;
        look->row[i].class = weft_gate_class(own, tx->arena);
    }
    enum weft_rc rc = weft_tx_run(tx, call, CALLS, rows, err);
    *ret_locked = rows[LOCK];
    *ret_look = rows[LOOK];
    return rc;
}

/* Makes the rows of gates that are new. A process that makes the same ones is waited for. */
static enum weft_rc add_gates(struct weft_tx *tx, const struct admitting *all, struct weft_err *err)
{
    struct weft_call call;
    struct weft_gate_add_in *in = weft_call_gate_add(&call, tx->arena, all->count);
    for (size_t i = 0; i < all->count; i++)
        in->row[i].name = all->name[i];
    return weft_tx_run(tx, &call, 1, NULL, err);
}

void weft_gate_facts(const struct weft_gate_look_out *row, weft_usec now_us,
                     struct weft_limits *ret_limits, struct weft_limit_now *ret_now)
{
    *ret_limits =
        (struct weft_limits){.max_running = row->max_running,
                             .window = {row->window_limit, row->window_us / WEFT_MS},
                             .rate = {row->rate_limit, row->rate_us / WEFT_MS, row->rate_burst}};
    *ret_now = (struct weft_limit_now){.now_us = now_us,
                                       .ready = row->ready,
                                       .running = row->running,
                                       .started = row->started,
                                       .oldest_us = row->oldest.value,
                                       .full_ns = row->full_ns.value};
}

static void read_gate(struct gate *gate, const struct weft_gate_look_out *row, weft_usec now_us)
{
    *gate = (struct gate){.row = row};
    weft_gate_facts(row, now_us, &gate->limits, &gate->now);
    int64_t room = row->held ? weft_limit_room(&gate->limits, &gate->now).room : 0;
    gate->take = room < ADMIT_MAX ? room : ADMIT_MAX;
}

/* The held executions that become ready. */
static enum weft_rc take_held(struct weft_tx *tx, struct admitting *all, struct weft_err *err)
{
    struct weft_call call;
    size_t rows = 0;
    struct weft_gate_admit_in *in = weft_call_gate_admit(&call, tx->arena, all->gates + 1);
    for (size_t i = 0; i < all->gates; i++) {
        if (all->gate[i].take == 0)
            continue;
        in->row[rows].name = all->gate[i].row->name;
        in->row[rows].most = all->gate[i].take;
        in->row[rows++].counted = all->gate[i].limits.window.limit > 0;
    }
    call.rows = rows;
    all->admitted = (struct weft_rows){0};
    enum weft_rc rc = rows ? weft_tx_run(tx, &call, 1, &all->admitted, err) : WEFT_OK;
    for (size_t i = 0; i < all->admitted.count && !rc; i++) {
        size_t g = 0;
        while (strcmp(all->gate[g].row->name, weft_out_gate_admit(&all->admitted)[i].name) != 0)
            g++;
        all->gate[g].taken++;
    }
    return rc;
}

/* What the gate remembers after its admission; false: what it has in its row already. */
static bool put_memory(struct admitting *all, struct gate *gate, struct weft_gate_keep_item *item)
{
    const struct weft_gate_look_out *row = gate->row;
    struct weft_limit_now now = gate->now;
    bool rate = gate->limits.rate.limit > 0;
    now.ready += gate->taken;
    if (rate && gate->taken > 0)
        now.full_ns = weft_rate_take(&gate->limits.rate, now.full_ns, now.now_us, gate->taken);
    bool waits = row->held && gate->taken == gate->take; /* others may be held still */
    struct weft_limit_room room = weft_limit_room(&gate->limits, &now);
    weft_usec next_us = waits && room.room == 0 ? room.next_us : WEFT_NEVER;
    all->more |= waits && room.room > 0 && gate->take > 0;
    if (next_us < all->next_us)
        all->next_us = next_us;
    *item = (struct weft_gate_keep_item){
        .name = row->name,
        .full_ns = rate ? weft_unless_zero(now.full_ns) : (struct weft_opt_i64){0},
        .next = {.value = next_us, .set = next_us != WEFT_NEVER},
        .until = now.now_us - weft_window_span(&gate->limits.window)};
    return item->next.set || row->next.set || item->full_ns.value != row->full_ns.value ||
           gate->limits.window.limit > 0;
}

static enum weft_rc admit_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct admitting *all = context;
    struct weft_rows locked, look;
    all->next_us = WEFT_NEVER;
    all->more = false;
    enum weft_rc rc = lock_and_look(tx, all, &locked, &look, err);
    if (!rc && locked.count < all->count) { /* the lock waits, so the others have no row yet */
        rc = add_gates(tx, all, err);
        if (!rc)
            rc = lock_and_look(tx, all, &locked, &look, err);
    }
    if (rc)
        return rc;
    all->gate = weft_new_array(tx->arena, struct gate, look.count + 1);
    all->gates = look.count;
    for (size_t i = 0; i < look.count; i++)
        read_gate(&all->gate[i], &weft_out_gate_look(&look)[i], tx->now_us);
    rc = take_held(tx, all, err);
    if (rc)
        return rc;
    struct weft_call keep;
    size_t rows = 0;
    struct weft_gate_keep_in *in = weft_call_gate_keep(&keep, tx->arena, all->gates + 1);
    for (size_t i = 0; i < all->gates; i++)
        rows += put_memory(all, &all->gate[i], &in->row[rows]);
    keep.rows = rows;
    return rows ? weft_tx_last(tx, &keep, 1, NULL, err) : WEFT_OK;
}

static enum weft_rc admit_once(struct weft_engine *engine, struct admitting *all,
                               struct weft_admitted *result, struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_HOT, admit_body, all, err);
    if (!rc) {
        struct weft_commit_effects news = weft_news_new(tx.arena, tx.now_us);
        for (size_t i = 0; i < all->admitted.count; i++)
            weft_news_of(&news, weft_out_gate_admit(&all->admitted)[i].queue)->ready++;
        weft_news_due(&news, all->next_us == WEFT_NEVER ? 0 : all->next_us);
        weft_news_tell(engine, &news);
        result->admitted += all->admitted.count;
        if (all->next_us < result->next_us)
            result->next_us = all->next_us;
    }
    weft_arena_free(tx.arena);
    return rc;
}

/* ---- The call -------------------------------------------------------------------------------- */

static enum weft_rc admit_part(struct weft_engine *engine, const char *const *name, size_t count,
                               struct weft_admitted *result, struct weft_err *err)
{
    struct admitting all = {.name = name, .count = count, .more = true};
    enum weft_rc rc = WEFT_OK;
    while (all.more && !rc)
        rc = admit_once(engine, &all, result, err);
    return rc;
}

/* A part whose lock was waited for in vain is cut in halves, down to the gate that is held. */
static enum weft_rc admit_parts(struct weft_engine *engine, const char *const *name, size_t count,
                                struct weft_admitted *result, struct weft_err *err)
{
    struct part {
        size_t from, count;
    } todo[32] = {{0, count}}; /* halving GATES_MAX makes eight levels, two entries each */
    size_t parts = 1;
    while (parts > 0) {
        struct part part = todo[--parts];
        enum weft_rc rc = admit_part(engine, name + part.from, part.count, result, err);
        if (rc && err->cause != WEFT_CAUSE_LOCK_TIMEOUT)
            return rc;
        if (rc && part.count == 1)
            result->locked++;
        if (!rc || part.count == 1)
            continue;
        size_t half = part.count / 2;
        todo[parts++] = (struct part){part.from, half};
        todo[parts++] = (struct part){part.from + half, part.count - half};
    }
    return WEFT_OK;
}

enum weft_rc weft_engine_admit(struct weft_engine *engine, const char *const *gate, size_t count,
                               struct weft_admitted *ret_admitted, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_admitted result = {.next_us = WEFT_NEVER};
    const char **name = weft_new_array(arena, const char *, count + 1);
    size_t kept = 0;
    enum weft_rc rc = WEFT_OK;
    if (count > 0)
        memcpy((void *)name, (const void *)gate, count * sizeof(*name));
    qsort((void *)name, count, sizeof(*name), weft_text_order);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || strcmp(name[kept - 1], name[i]) != 0)
            name[kept++] = name[i];
    for (size_t from = 0; from < kept && !rc; from += GATES_MAX) {
        size_t part = kept - from < GATES_MAX ? kept - from : GATES_MAX;
        rc = admit_parts(engine, name + from, part, &result, err);
    }
    weft_arena_free(arena);
    if (ret_admitted)
        *ret_admitted = result;
    return rc;
}
