/* SPDX-License-Identifier: Apache-2.0 */

/* The steps of an erasure, in their order: see erase.h. */

#include "engine/erase/erase.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "core/receipt.h"
#include "core/spec.h"
#include "core/stored.h"
#include "engine/engine_state.h"
#include "engine/scan/scan.h"
#include "engine/tx/pool.h"

#include <inttypes.h>
#include <string.h>

enum { SCOUR_TRIES = 40, WRITER_TRIES = 10, JSON_MAX = 4096 };

const char *const weft_erase_counted[WEFT_ERASE_COUNTS] = {
    [WEFT_ERASE_CANCELLED] = "cancelled",
    [WEFT_ERASE_REMOVED] = "removed",
    [WEFT_ERASE_SCRUBBED] = "scrubbed",
    [WEFT_ERASE_FLOWS] = "flows",
    [WEFT_ERASE_KEYS] = "key",
#define SIDE(table, TABLE, bit) [WEFT_ERASE_##TABLE] = #table,
#include "core/tables.def"
    [WEFT_ERASE_LEDGER] = "ledger",
    [WEFT_ERASE_BATCHES] = "batch",
    [WEFT_ERASE_FILES] = "file",
    [WEFT_ERASE_CHUNKS] = "file_chunk",
    [WEFT_ERASE_SHARED_FILES] = "shared_file",
    [WEFT_ERASE_INBOX] = "inbox",
    [WEFT_ERASE_NOTES] = "inbox_refused",
    [WEFT_ERASE_BUDGETS] = "budget",
    [WEFT_ERASE_LANES] = "lane",
    [WEFT_ERASE_NAMES] = "name",
};

/* ---- The order in hand ----------------------------------------------------------------------- */

const char *weft_erase_counts_text(const struct weft_erase *erase, struct weft_arena *arena)
{
    struct weft_buf buf;
    struct weft_json_writer out;
    weft_buf_init(&buf, JSON_MAX);
    weft_json_writer_init(&out, &buf);
    weft_json_begin_object(&out);
    for (size_t i = 0; i < WEFT_ERASE_COUNTS; i++)
        weft_json_add_i64(&out, weft_erase_counted[i], (int64_t)erase->count[i]);
    weft_json_end_object(&out);
    weft_buf_add_char(&buf, '\0');
    const char *text = weft_arena_strdup(arena, buf.data);
    weft_buf_done(&buf);
    return text;
}

static void read_counts(struct weft_erase *erase)
{
    struct weft_json value;
    struct weft_json_iter member;
    struct weft_err err;
    int64_t number;
    if (weft_json_check(erase->row.counts, strlen(erase->row.counts), &value, &err))
        return; /* a damaged receipt counts anew */
    weft_json_iter_init(&member, &value);
    while (weft_json_next(&member))
        for (size_t i = 0; i < WEFT_ERASE_COUNTS; i++)
            if (weft_json_is(&member.key, weft_erase_counted[i]) &&
                weft_json_i64(&member.value, &number))
                erase->count[i] = (uint64_t)number;
}

/* The id of the tenant; -1: there is no such name. 0 is what executions without a tenant have. */
static enum weft_rc find_tenant(struct weft_erase *erase, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_name_find_in *in = weft_call_name_find(&call, erase->arena, 1);
    in->row[0].sort = WEFT_NAME_TENANT;
    in->row[0].namespace = erase->row.namespace;
    in->row[0].text = erase->row.subject;
    enum weft_rc rc = weft_tx_once(erase->engine, WEFT_TX_READ, &call, erase->arena, &rows, err);
    erase->tenant = rows.count > 0 ? weft_out_name_find(&rows)->id : -1;
    return rc;
}

enum weft_rc weft_erase_begin(struct weft_erase *erase, const struct weft_erasure_read_out *row,
                              struct weft_err *err)
{
    const struct weft_id_list space = {.id = (int32_t[]){row->namespace}, .count = 1};
    erase->row = *row;
    erase->tenant = -1;
    read_counts(erase);
    enum weft_rc rc = weft_load_names(erase->engine, &space, err);
    erase->ns = rc ? NULL : weft_find_name(erase->engine, row->namespace);
    if (rc || !row->subject)
        return rc;
    if (row->sort == WEFT_ERASURE_TENANT)
        return find_tenant(erase, err);
    const char *colon = strchr(row->subject, ':');
    const struct weft_tag tag = {
        .key = weft_arena_printf(erase->arena, "%.*s", (int)(colon - row->subject), row->subject),
        .value = colon + 1};
    return weft_tag_needle(&tag, erase->arena, &erase->tag, err);
}

void weft_erase_note(const struct weft_erase *erase, struct weft_call *ret_call,
                     struct weft_arena *arena)
{
    *weft_call_erasure_note(ret_call, arena) =
        (struct weft_erasure_note_in){.id = erase->row.id,
                                      .phase = erase->row.phase,
                                      .walked = erase->row.walked,
                                      .rounds = erase->row.rounds,
                                      .found = erase->row.found,
                                      .later = erase->row.later,
                                      .counts = weft_erase_counts_text(erase, arena),
                                      .retired = erase->row.retired};
}

enum weft_rc weft_erase_store(struct weft_erase *erase, struct weft_err *err)
{
    struct weft_call call;
    weft_erase_note(erase, &call, erase->arena);
    enum weft_rc rc = weft_tx_once(erase->engine, WEFT_TX_WRITE, &call, erase->arena, NULL, err);
    if (!rc)
        erase->row.counts = weft_erase_counts_text(erase, erase->arena);
    return rc;
}

/* Begins the next walk. */
static void walk_anew(struct weft_erase *erase, enum weft_erasure_phase phase)
{
    erase->row.phase = phase;
    erase->row.rounds++;
    erase->row.walked = (struct weft_id){0};
    erase->row.found = erase->row.later = 0;
}

/* ---- The end --------------------------------------------------------------------------------- */

/* Words for the receipt. */
static const char *left_over(const struct weft_erase *erase, bool name_stays)
{
    return weft_arena_printf(
        erase->arena,
        "%sNot reached: copies outside of this store, that is backups, standbys that lag, "
        "archived logs of the database, logs of workers and applications; names of workers; "
        "names of nodes of flows that others share; files that batches of others read, and files "
        "that no batch reads; ids of leases that were cancelled, until they "
        "would have run out.",
        name_stays ? "The name of the tenant stays, because executions that were submitted after "
                     "the request use it. "
                   : "");
}

/* The order without its subject: from here on it cannot walk any more. */
static enum weft_rc drop_subject(struct weft_erase *erase, bool name_stays, struct weft_err *err)
{
    struct weft_call call;
    erase->row.phase = WEFT_ERASURE_SCOURS;
    erase->row.subject = NULL;
    erase->row.left_over = left_over(erase, name_stays);
    *weft_call_erasure_end(&call, erase->arena) =
        (struct weft_erasure_end_in){.id = erase->row.id,
                                     .phase = WEFT_ERASURE_SCOURS,
                                     .counts = weft_erase_counts_text(erase, erase->arena),
                                     .left_over = erase->row.left_over};
    return weft_tx_once(erase->engine, WEFT_TX_WRITE, &call, erase->arena, NULL, err);
}

/* The digest of what the receipt says, so that a changed one is seen. */
static const char *digest_of(const struct weft_erase *erase, const char *counts, const char *left,
                             weft_usec finished_us)
{
    char id[WEFT_ID_TEXT], hash[WEFT_RECEIPT_HASH];
    weft_id_print(&erase->row.id, id);
    const char *text =
        weft_arena_printf(erase->arena, "%s\n%s\n%s\n%s\n%" PRId64 "\n%" PRId64 "\n%s\n%s\n", id,
                          erase->row.hash, erase->row.reason, erase->row.by ? erase->row.by : "",
                          erase->row.asked, finished_us, counts, left);
    weft_receipt_digest(text, hash);
    return weft_arena_strdup(erase->arena, hash);
}

/*
 * The store lets go of old bytes. SQLite's log is only cut when a frame was written since the last
 * checkpoint and no reader is in the way, so the order is written before each try.
 */
static bool scour(struct weft_erase *erase)
{
    struct weft_err err;
    bool done = false;
    for (int tries = 0; tries < SCOUR_TRIES && !done; tries++) {
        if (weft_erase_store(erase, &err))
            return false;
        done = weft_pool_forget(erase->engine, &err) == WEFT_OK;
        if (!done)
            weft_pass_rest(WEFT_MS << (tries < 3 ? tries : 3));
    }
    return done;
}

static enum weft_rc finish(struct weft_erase *erase, struct weft_err *err)
{
    struct weft_call call;
    bool pg = erase->engine->pool.writers != 1, done = scour(erase);
    const char *store =
        pg ? (done ? "PostgreSQL was told to vacuum its tables; removed rows stay in its files "
                     "until a vacuum has passed over them, and in its log (WAL). "
                   : "PostgreSQL could not be told to vacuum; removed rows stay in its files until "
                     "a vacuum has passed over them, and in its log (WAL). ")
           : (done ? ""
                   : "SQLite's log could not be cut, because a reader was in the way; its "
                     "next checkpoint overwrites it. ");
    const char *left = weft_arena_printf(erase->arena, "%s%s", store, erase->row.left_over);
    const char *counts = weft_erase_counts_text(erase, erase->arena);
    weft_usec now_us = weft_clock_now(erase->engine->clock);
    erase->row.phase = WEFT_ERASURE_OVER;
    *weft_call_erasure_end(&call, erase->arena) =
        (struct weft_erasure_end_in){.id = erase->row.id,
                                     .phase = WEFT_ERASURE_OVER,
                                     .finished = weft_some(now_us),
                                     .counts = counts,
                                     .left_over = left,
                                     .digest = digest_of(erase, counts, left, now_us)};
    return weft_tx_once(erase->engine, WEFT_TX_WRITE, &call, erase->arena, NULL, err);
}

/* ---- One step -------------------------------------------------------------------------------- */

/* A walk has ended. What it found is gone only if the next one finds nothing. */
static enum weft_rc end_walk(struct weft_erase *erase, struct weft_err *err)
{
    bool renamed = false, later = erase->row.later > 0;
    enum weft_rc rc = WEFT_OK;
    if (erase->row.found > 0) {
        erase->wait_us = WEFT_ERASE_WAIT_US;
        walk_anew(erase, WEFT_ERASURE_WALKS);
        return weft_erase_store(erase, err);
    }
    if (erase->tag || erase->tenant < 0)
        return drop_subject(erase, false, err);
    if (later)
        return drop_subject(erase, true, err);
    if (erase->row.phase == WEFT_ERASURE_WALKS) {
        rc = weft_erase_retire_name(erase, err);
        walk_anew(erase, WEFT_ERASURE_RETIRES);
        return rc ? rc : weft_erase_store(erase, err);
    }
    rc = weft_erase_rename(erase, &renamed, err);
    return rc ? rc : drop_subject(erase, !renamed, err);
}

/*
 * Whether a submission may still be under way that the next walk would pass by: its transaction
 * began before the order was stored, so what it submits may be older than the request, and it has
 * not committed yet. Such a transaction holds its lock of the table `execution` until its commit
 * can be seen. A walk that begins when none of these holds that lock sees all that they wrote. In
 * SQLite the order itself waited for the one transaction that may write.
 *
 * A submission that has taken its time but has not written anything when the order is stored counts
 * as one that came later; a verification that finds it says so.
 */
static enum weft_rc look_for_writers(struct weft_erase *erase, bool *ret_open, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *ret_open = false;
    if (erase->engine->pool.writers == 1)
        return WEFT_OK;
    weft_call_erase_writers(&call, erase->arena)->barrier = erase->row.barrier;
    enum weft_rc rc = WEFT_OK;
    for (int tries = 0; tries < WRITER_TRIES && !rc; tries++) { /* mostly it ends in a moment */
        if (tries > 0)
            weft_pass_rest(5 * WEFT_MS);
        rc = weft_tx_once(erase->engine, WEFT_TX_READ, &call, erase->arena, &rows, err);
        *ret_open = !rc && weft_out_erase_writers(&rows)->open;
        if (!*ret_open)
            break;
    }
    return rc;
}

/* Before a walk. The first one begins at once; if it came too early, another one has to follow. */
static enum weft_rc begin_walk(struct weft_erase *erase, struct weft_err *err)
{
    bool open = false, first = erase->row.rounds == 0;
    enum weft_rc rc = look_for_writers(erase, &open, err);
    if (!rc && open && !first) {
        erase->wait_us = WEFT_ERASE_WAIT_US;
        return WEFT_OK;
    }
    erase->row.found += open;
    if (!rc && first)
        rc = weft_erase_settings(erase, err);
    return rc ? rc : weft_erase_inbox(erase, err);
}

enum weft_rc weft_erase_step(struct weft_erase *erase, bool *ret_over, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    bool end = false;
    *ret_over = false;
    erase->wait_us = 0;
    if (erase->row.phase == WEFT_ERASURE_SCOURS) {
        *ret_over = true;
        return finish(erase, err);
    }
    if (erase->row.phase == WEFT_ERASURE_RETIRES) {
        weft_usec ripe_us = erase->row.retired.value + WEFT_ERASE_NAME_US;
        weft_usec now_us = weft_clock_now(erase->engine->clock);
        if (weft_id_is_zero(&erase->row.walked) && now_us < ripe_us) {
            erase->wait_us = ripe_us - now_us;
            return WEFT_OK;
        }
    }
    if (weft_id_is_zero(&erase->row.walked))
        rc = begin_walk(erase, err);
    if (!rc && erase->wait_us == 0)
        rc = weft_erase_walk(erase, &end, err);
    return rc || !end || erase->locked ? rc : end_walk(erase, err);
}
