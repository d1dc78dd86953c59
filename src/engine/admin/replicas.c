/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Replicas: each writes its row with every heartbeat. One rule depends on these rows: the grace
 * after the start of a server (net/upkeep/supervisor.c).
 */

#include "engine/admin/replicas.h"

#include "base/arena.h"
#include "base/json.h"
#include "engine/engine_state.h"
#include "wire/wire.h"

#include <string.h>

enum { PARTITIONS = 256 };

static enum weft_rc put_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    const struct weft_replica_row *row = *(const struct weft_replica_row *const *)context;
    struct weft_call call;
    struct weft_rows rows;
    struct weft_replica_put_in *in = weft_call_replica_put(&call, tx->arena);
    in->id = row->id;
    in->host = row->host;
    in->pid = row->pid;
    in->version = row->version;
    in->url = row->url;
    in->started = row->started_us;
    in->up_since = row->up_since_us;
    in->seen = tx->now_us;
    in->settings = row->settings;
    in->scanners = row->scanners;
    return weft_tx_run(tx, &call, 1, &rows, err);
}

enum weft_rc weft_engine_replica_put(struct weft_engine *engine, const struct weft_replica_row *row,
                                     struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, put_body, &row, err);
    weft_arena_free(tx.arena);
    return rc;
}

enum weft_rc weft_engine_replica_remove(struct weft_engine *engine, const struct weft_id *id,
                                        struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    weft_call_replica_remove(&call, arena)->id = *id;
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, err);
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_engine_replicas(struct weft_engine *engine, struct weft_arena *arena,
                                  struct weft_replica_rows *ret_rows, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_replicas(&call, arena);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_BARE, &call, arena, &rows, err);
    if (rc)
        return rc;
    struct weft_replica_row *item = weft_new_array(arena, struct weft_replica_row, rows.count + 1);
    const struct weft_replicas_out *row = weft_out_replicas(&rows);
    for (size_t i = 0; i < rows.count; i++)
        item[i] = (struct weft_replica_row){
            .id = row[i].id,
            .host = row[i].host,
            .pid = row[i].pid,
            .version = row[i].version,
            .url = row[i].url,
            .started_us = row[i].started,
            .up_since_us = row[i].up_since,
            .seen_us = row[i].seen,
            .settings = row[i].settings,
            .scanners = row[i].scanners,
        };
    *ret_rows = (struct weft_replica_rows){.item = item, .count = rows.count};
    return WEFT_OK;
}

struct weft_replica weft_replica_shown(const struct weft_replica_row *row, weft_usec now_us)
{
    return (struct weft_replica){
        .id = row->id,
        .host = row->host,
        .pid = row->pid,
        .version = row->version,
        .url = row->url,
        .alive = now_us - row->seen_us <= WEFT_DEAD_US,
        .started_us = row->started_us,
        .seen_us = row->seen_us,
        .settings = row->settings,
    };
}

/* A server of an older version says nothing of it. */
const char *const *weft_replica_carries(const struct weft_replica_row *row,
                                        struct weft_arena *arena, size_t *ret_count)
{
    struct weft_json value, list = {0};
    struct weft_json_iter member, item;
    *ret_count = 0;
    if (!row->settings ||
        weft_json_check(row->settings, strlen(row->settings), &value, NULL) != WEFT_OK ||
        value.kind != WEFT_JSON_OBJECT)
        return NULL;
    weft_json_iter_init(&member, &value);
    while (weft_json_next(&member))
        if (weft_json_is(&member.key, "carries") && member.value.kind == WEFT_JSON_ARRAY)
            list = member.value;
    if (!list.text)
        return NULL;
    const char **kind = weft_new_array(arena, const char *, list.size); /* more than there can be */
    weft_json_iter_init(&item, &list);
    while (weft_json_next(&item))
        if (weft_json_string(&item.value, arena, &kind[*ret_count], NULL) == WEFT_OK)
            ++*ret_count;
    return kind;
}

struct weft_scanners weft_replica_scanners(const struct weft_replica_rows *rows, weft_usec now_us,
                                           struct weft_arena *arena)
{
    struct weft_scanner_status **list =
        weft_new_array(arena, struct weft_scanner_status *, rows->count + 1);
    size_t *count = weft_new_array(arena, size_t, rows->count + 1), all = 0;
    for (size_t i = 0; i < rows->count; i++) {
        if (!weft_replica_shown(&rows->item[i], now_us).alive)
            continue;
        list[i] = weft_wire_read_list(&weft_wire_scanner, rows->item[i].scanners, arena, &count[i]);
        all += count[i];
    }
    struct weft_scanner_status *item = weft_new_array(arena, struct weft_scanner_status, all + 1);
    struct weft_scanners scanners = {.item = item, .count = all};
    for (size_t i = 0; i < rows->count; i++)
        for (size_t k = 0; k < count[i]; k++)
            *item++ = list[i][k];
    return scanners;
}

static bool is_covered(const char *name, const struct weft_scanners *scanners)
{
    bool met[PARTITIONS] = {false};
    size_t left = PARTITIONS;
    for (size_t i = 0; i < scanners->count; i++) {
        const struct weft_scanner_status *one = &scanners->item[i];
        if (!one->enabled || one->ns || strcmp(one->name, name) != 0)
            continue;
        for (size_t p = one->partition_first; p <= one->partition_last && p < PARTITIONS; p++) {
            left -= !met[p];
            met[p] = true;
        }
    }
    return left == 0;
}

const char *weft_scanners_uncovered(const struct weft_scanners *scanners, struct weft_arena *arena)
{
    const char *names = NULL;
    for (int i = 0; i < WEFT_SCANNER_COUNT; i++) {
        const char *name = weft_scanner_name((enum weft_scanner)i);
        if (!is_covered(name, scanners))
            names = names ? weft_arena_printf(arena, "%s, %s", names, name) : name;
    }
    return names;
}
