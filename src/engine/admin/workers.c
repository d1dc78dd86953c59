/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The list of workers, from the claims that servers received, and the goodbye of a worker. No claim
 * waits for these rows, and no rule depends on them: a worker without a row can work.
 */

#include "engine/admin/workers.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "core/spec.h"
#include "core/state.h"
#include "engine/engine_state.h"
#include "engine/job/change.h"

#include <stdlib.h>
#include <string.h>

enum {
    NAMES_TEXT_MAX = 1 << 18, /* 256 capabilities of 2 KB in all, or 64 lanes; escaped */
    GOODBYE_CHUNKS_MAX = 1000,
};

/* ---- Workers seen ---------------------------------------------------------------------------- */

static const char *names_text(const char *const *name, size_t count, struct weft_arena *arena)
{
    struct weft_buf buf;
    weft_buf_init(&buf, NAMES_TEXT_MAX);
    struct weft_json_writer out;
    weft_json_writer_init(&out, &buf);
    weft_json_begin_array(&out);
    for (size_t i = 0; i < count; i++)
        weft_json_put_text(&out, name[i]);
    weft_json_end_array(&out);
    const char *text = weft_arena_strdup(arena, buf.data);
    weft_buf_done(&buf);
    return text;
}

static const char *const *read_names(const char *text, struct weft_arena *arena, size_t *ret_count)
{
    struct weft_json value;
    *ret_count = 0;
    if (!text || weft_json_check(text, strlen(text), &value, NULL) || value.kind != WEFT_JSON_ARRAY)
        return NULL;
    struct weft_json_iter item;
    size_t room = 0;
    weft_json_iter_init(&item, &value);
    while (weft_json_next(&item))
        room++;
    const char **name = weft_new_array(arena, const char *, room + 1);
    weft_json_iter_init(&item, &value);
    while (weft_json_next(&item))
        if (item.value.kind == WEFT_JSON_STRING &&
            !weft_json_string(&item.value, arena, &name[*ret_count], NULL))
            (*ret_count)++;
    return name;
}

/* The interned namespaces and names; name[i].ns is that of the worker. */
static enum weft_rc intern(struct weft_engine *engine, const struct weft_worker_seen *seen,
                           size_t count, struct weft_name_want *name, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        rc = weft_name_check(seen[i].ns, "namespace", err);
        if (!rc)
            rc = weft_name_check(seen[i].name, "worker", err);
        name[i] = (struct weft_name_want){.sort = WEFT_NAME_NAMESPACE, .text = seen[i].ns};
    }
    if (!rc)
        rc = weft_intern_names(engine, true, name, count, err);
    for (size_t i = 0; i < count && !rc; i++)
        name[i] = (struct weft_name_want){
            .sort = WEFT_NAME_WORKER, .ns = name[i].id, .text = seen[i].name};
    return rc ? rc : weft_intern_names(engine, true, name, count, err);
}

/* One call of at most WEFT_BATCH_MAX; for a worker that occurs twice, the later claim. */
static enum weft_rc put_chunk(struct weft_engine *engine, const struct weft_worker_seen *seen,
                              size_t count, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_name_want *name = weft_new_array(arena, struct weft_name_want, count + 1);
    struct weft_call call;
    enum weft_rc rc = intern(engine, seen, count, name, err);
    if (rc)
        goto out;
    struct weft_worker_put_in *in = weft_call_worker_put(&call, arena, count);
    size_t rows = 0;
    for (size_t i = 0; i < count; i++) {
        bool later = false;
        for (size_t k = 0; k < count && !later; k++)
            later = k != i && name[k].id == name[i].id &&
                    (seen[k].seen_us > seen[i].seen_us ||
                     (k > i && seen[k].seen_us == seen[i].seen_us));
        if (later)
            continue;
        in->row[rows].name = name[i].id;
        in->row[rows].namespace = name[i].ns;
        in->row[rows].lanes = names_text(seen[i].lanes, seen[i].lane_count, arena);
        in->row[rows].capabilities =
            names_text(seen[i].capabilities, seen[i].capability_count, arena);
        in->row[rows++].seen = seen[i].seen_us;
    }
    call.rows = rows;
    rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, err);

out:
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_engine_workers_put(struct weft_engine *engine,
                                     const struct weft_worker_seen *seen, size_t count,
                                     struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    for (size_t at = 0; at < count && !rc; at += WEFT_BATCH_MAX)
        rc = put_chunk(engine, seen + at, count - at < WEFT_BATCH_MAX ? count - at : WEFT_BATCH_MAX,
                       err);
    return rc;
}

/* ---- The list -------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct weft_worker_info *)a)->name,
                  ((const struct weft_worker_info *)b)->name);
}

static uint64_t leases_of(const struct weft_rows *counts, int64_t worker)
{
    const struct weft_counts_by_worker_out *row = weft_out_counts_by_worker(counts);
    for (size_t i = 0; i < counts->count; i++)
        if (row[i].worker == worker)
            return row[i].number;
    return 0;
}

enum weft_rc weft_engine_workers(struct weft_engine *engine, const char *ns,
                                 struct weft_arena *arena, struct weft_workers *ret_workers,
                                 struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0}, counts = {0};
    int32_t space;
    enum weft_rc rc = weft_find_namespace(engine, ns, &space, err);
    if (rc)
        return rc;
    weft_call_workers(&call, arena)->namespace = space;
    rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    weft_call_counts_by_worker(&call, arena);
    if (!rc && rows.count > 0)
        rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &counts, err);
    struct weft_id_list names = {.id = weft_new_array(arena, int32_t, rows.count + 1)};
    const struct weft_workers_out *row = weft_out_workers(&rows);
    for (size_t i = 0; i < rows.count && !rc; i++)
        names.id[names.count++] = row[i].name;
    if (!rc)
        rc = weft_load_names(engine, &names, err);
    if (rc)
        return rc;
    struct weft_worker_info *item = weft_new_array(arena, struct weft_worker_info, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++) {
        item[i].name = weft_find_name(engine, names.id[i]);
        item[i].lanes = read_names(row[i].lanes, arena, &item[i].lane_count);
        item[i].capabilities = read_names(row[i].capabilities, arena, &item[i].capability_count);
        item[i].leases = leases_of(&counts, names.id[i]);
        item[i].seen_us = row[i].seen;
    }
    qsort(item, rows.count, sizeof(*item), by_name);
    *ret_workers = (struct weft_workers){.item = item, .count = rows.count};
    return WEFT_OK;
}

/* ---- Goodbye --------------------------------------------------------------------------------- */

struct goodbye {
    int32_t worker, ns;
    struct weft_changes changes; /* of the last try */
    struct weft_rows let_go;     /* the same: queues of the draining leases */
};

/*
 * Releases up to WEFT_BATCH_MAX leases; if there are none, removes the worker from the list and its
 * draining leases.
 */
static enum weft_rc goodbye_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct goodbye *goodbye = context;
    goodbye->let_go = (struct weft_rows){0};
    struct weft_call call;
    struct weft_rows rows;
    *weft_call_worker_leases(&call, tx->arena) =
        (struct weft_worker_leases_in){.worker = goodbye->worker, .batch = WEFT_BATCH_MAX};
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc)
        return rc;
    goodbye->changes = weft_change_rows(&rows, tx->arena);
    const struct weft_event event = {.kind = WEFT_EVENT_RELEASE, .how = WEFT_ENDED_RELEASED};
    for (size_t i = 0; i < goodbye->changes.count; i++)
        (void)weft_change_step(&goodbye->changes.change[i], &event);
    if (rows.count > 0)
        return weft_change_write(tx, &goodbye->changes, err);
    struct weft_call end[2];
    struct weft_rows gone[2];
    weft_call_worker_leases_drop(&end[0], tx->arena)->worker = goodbye->worker;
    *weft_call_worker_gone(&end[1], tx->arena) = (struct weft_worker_gone_in){
        .name = goodbye->worker, .namespace = goodbye->ns, .now = tx->now_us};
    rc = weft_tx_run(tx, end, 2, gone, err);
    if (!rc)
        goodbye->let_go = gone[0];
    return rc;
}

enum weft_rc weft_engine_goodbye(struct weft_engine *engine, const char *ns, const char *worker,
                                 uint64_t *ret_released, struct weft_err *err)
{
    uint64_t released = 0;
    struct weft_name_want name = {.sort = WEFT_NAME_WORKER, .text = worker};
    enum weft_rc rc = weft_find_in_namespace(engine, ns, "worker", &name, err);
    if (rc)
        return rc;
    bool more = name.id != 0;
    for (int chunk = 0; chunk < GOODBYE_CHUNKS_MAX && more && !rc; chunk++) {
        struct goodbye goodbye = {.worker = name.id, .ns = name.ns};
        struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
        rc = weft_tx_do(&tx, WEFT_TX_WRITE, goodbye_body, &goodbye, err);
        more = !rc && goodbye.changes.count > 0;
        if (!rc) {
            struct weft_commit_effects news = weft_news_new(tx.arena, tx.now_us);
            weft_change_news(&news, &goodbye.changes);
            for (size_t i = 0; i < goodbye.let_go.count; i++) {
                const struct weft_worker_leases_drop_out *row =
                    &weft_out_worker_leases_drop(&goodbye.let_go)[i];
                weft_news_of(&news, row->queue)->freed++;
                if (row->gate)
                    weft_news_gate(&news, row->gate);
            }
            weft_news_tell(engine, &news);
            released += goodbye.changes.count;
        }
        weft_arena_free(tx.arena);
    }
    if (!rc)
        *ret_released = released;
    return rc;
}
