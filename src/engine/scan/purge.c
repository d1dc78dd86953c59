/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The scanner `purge`: removes what is deleted for good, members first.
 *
 * It is the one place that removes such things. Others only make tombstones: a delete, by way of
 * the cancel of what still lives; retention and file_expiry, when its time has come; and
 * cancel_backlog, of flows whose submission was interrupted. A tombstone has no living member that
 * a reader could see, and nothing brings it back; what has none is never touched here.
 *
 * A pass is one batch, so a server that stops waits for no more than that. The schedule puts a
 * pause between two batches, and runs the scanner for as long as there is more; after that the poll
 * says when there is something again. Every replica does this. They share one large tombstone by
 * its members: each locks the first ones that no other has locked, so that every row is removed by
 * one of them, and the tombstone itself goes with the one that finds it empty. A batch is several
 * transactions.
 *
 * If a batch fails, its tombstones are tried one by one: a bad one does not stop the others.
 */

#include "engine/scan/purge.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/engine_state.h"

#define PASS_US (250 * WEFT_MS)

/*
 * Nothing here is urgent, and calls go on beside it: transactions are short, and after each one the
 * process rests for three times as long, so that of several replicas about one works at a time. It
 * is the processors that calls would wait for: without waiting for the disk, they took as long.
 */
enum { ROWS_AT_ONCE = 200, REST = 3 };
#define REST_MAX_US (20 * WEFT_MS)

/* The order of the table in pass.c. */
enum { PROCESSED, MEMBERS, EDGES, CHUNKS, TOMBSTONES, SKIPPED_LOCKED, ERRORS };

/* What is drained, in this order. */
static const struct weft_purge_kind *const kinds[] = {&weft_purge_flows, &weft_purge_files,
                                                      &weft_purge_batches};

struct batch {
    struct weft_pass *pass;
    const struct weft_purge_kind *kind;
    struct weft_tombstones tombs; /* the first ones of this kind */
    size_t left;                  /* rows that the pass may still remove */
    bool full;                    /* the last transaction took as much as it may */
    bool removed;                 /* anything at all, of this kind */
};

static bool late(const struct weft_pass *pass)
{
    weft_usec most_us = pass->config->most_us ? pass->config->most_us : PASS_US;
    return weft_boot_us() - pass->began_us > most_us;
}

/* ---- One transaction ------------------------------------------------------------------------- */

struct step {
    const struct weft_purge_kind *kind;
    const struct weft_tombstones *tombs;
    uint32_t most;
    struct weft_purged purged; /* by the last try */
};

static enum weft_rc step_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct step *step = context;
    step->purged = (struct weft_purged){0};
    return step->kind->remove(tx, step->tombs, step->most, &step->purged, err);
}

static void note(struct batch *batch, const struct weft_purged *purged)
{
    uint64_t *count = batch->pass->count;
    size_t rows = purged->members > purged->edges ? purged->members : purged->edges;
    rows += purged->chunks;
    count[PROCESSED] += purged->members + purged->chunks + purged->tombstones;
    count[MEMBERS] += purged->members;
    count[EDGES] += purged->edges;
    count[CHUNKS] += purged->chunks;
    count[TOMBSTONES] += purged->tombstones;
    batch->left -= rows < batch->left ? rows : batch->left;
    batch->full = purged->full;
    batch->removed |= rows + purged->tombstones > 0;
}

static enum weft_rc step(struct batch *batch, const struct weft_tombstones *tombs,
                         struct weft_err *err)
{
    uint32_t share = batch->pass->config->batch;
    share = share < ROWS_AT_ONCE ? share : ROWS_AT_ONCE;
    struct weft_tx tx = {.engine = batch->pass->engine, .arena = weft_arena_new()};
    struct step step = {.kind = batch->kind,
                        .tombs = tombs,
                        .most = batch->left < share ? (uint32_t)batch->left : share};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, step_body, &step, err);
    weft_arena_free(tx.arena);
    if (!rc)
        note(batch, &step.purged);
    return rc;
}

/* ---- One kind -------------------------------------------------------------------------------- */

/* The first tombstones; if they are few, after those were marked that are due to be. */
static enum weft_rc look(struct batch *batch, struct weft_err *err)
{
    size_t marked = 0;
    enum weft_rc rc = batch->kind->look(batch->pass, &batch->tombs, err);
    if (rc || batch->tombs.count >= batch->pass->config->batch)
        return rc;
    rc = batch->kind->mark(batch->pass, &marked, err);
    return rc || marked == 0 ? rc : batch->kind->look(batch->pass, &batch->tombs, err);
}

/* After a failure of all together. Fails if every one does. */
static enum weft_rc one_by_one(struct batch *batch, struct weft_err *err)
{
    size_t failed = 0, tried = 0;
    enum weft_rc last = WEFT_OK;
    bool full = false;
    for (; tried < batch->tombs.count && batch->left > 0 && !late(batch->pass); tried++) {
        struct weft_err story = {0};
        const struct weft_tombstones one = {.id = &batch->tombs.id[tried], .count = 1};
        enum weft_rc rc = step(batch, &one, &story);
        full |= !rc && batch->full;
        failed += rc != WEFT_OK;
        if (!rc)
            continue;
        last = rc;
        if (err)
            *err = story;
    }
    batch->full = full || tried < batch->tombs.count;
    batch->pass->count[ERRORS] += failed;
    batch->pass->report.failed += failed;
    return failed == tried ? last : WEFT_OK;
}

/* All of the tombstones together, until nothing is left of them or of the batch. */
static enum weft_rc together(struct batch *batch, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    do {
        weft_usec began_us = weft_boot_us();
        rc = step(batch, &batch->tombs, err);
        weft_usec rest_us = REST * (weft_boot_us() - began_us);
        if (!rc && batch->full)
            weft_pass_rest(rest_us < REST_MAX_US ? rest_us : REST_MAX_US);
    } while (!rc && batch->full && batch->left > 0 && !late(batch->pass));
    return rc;
}

/* Everything was looked at: the members that are still there are locked by other transactions. */
static enum weft_rc count_left(struct batch *batch, struct weft_err *err)
{
    size_t left = 0;
    enum weft_rc rc = batch->kind->left(batch->pass, &batch->tombs, &left, err);
    batch->pass->count[SKIPPED_LOCKED] += left;
    return rc;
}

static enum weft_rc drain(struct batch *batch, struct weft_err *err)
{
    enum weft_rc rc = look(batch, err);
    if (rc || batch->tombs.count == 0)
        return rc;
    rc = together(batch, err);
    if (rc && rc != WEFT_UNAVAILABLE && batch->tombs.count > 1)
        rc = one_by_one(batch, err);
    if (rc)
        return rc;
    bool others = batch->tombs.count >= batch->pass->config->batch && batch->removed;
    batch->pass->report.more |= batch->full || others;
    return batch->full ? WEFT_OK : count_left(batch, err);
}

enum weft_rc weft_purge_run(struct weft_pass *pass, struct weft_err *err)
{
    struct batch batch = {.pass = pass, .left = pass->config->batch};
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < WEFT_LEN(kinds) && !rc; i++) {
        if (batch.left == 0) { /* the next kinds have their turn when this one is through */
            pass->report.more = true;
            break;
        }
        batch.kind = kinds[i];
        batch.full = batch.removed = false;
        rc = drain(&batch, err);
    }
    pass->report.handled = pass->count[PROCESSED] + pass->count[EDGES];
    return rc;
}
