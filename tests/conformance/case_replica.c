/* SPDX-License-Identifier: Apache-2.0 */

/* The rows of replicas. */

#include "conformance.h"

#include "base/arena.h"
#include "base/id.h"
#include "engine/admin/replicas.h"
#include "engine/call.h"

static struct weft_replica_row new_row(const struct fixture *f, const char *host)
{
    struct weft_replica_row row = {
        .host = host,
        .pid = 4711,
        .version = "1.2.3",
        .url = "http://127.0.0.1:7717",
        .started_us = f->now_us,
        .up_since_us = f->now_us,
        .settings = "{}",
        .scanners = "[]",
    };
    weft_id_new(&row.id, f->now_us, -1);
    return row;
}

static void beat(struct fixture *f, const struct weft_replica_row *row)
{
    is_int(weft_engine_replica_put(f->a, row, &f->err), WEFT_OK, "a heartbeat of %s", row->host);
}

static struct weft_replica_rows list(struct fixture *f)
{
    struct weft_replica_rows rows = {0};
    is_int(weft_engine_replicas(f->b, f->arena, &rows, &f->err), WEFT_OK, "list the replicas");
    return rows;
}

CASE(replica_beats_and_leaves)
{
    is_int(list(f).count, 0, "a new store lists no replica");
    struct weft_replica_row one = new_row(f, "one");
    weft_usec began_us = f->now_us;
    beat(f, &one);
    forward_ms(f, 1000);
    struct weft_replica_row two = new_row(f, "two");
    beat(f, &two);
    struct weft_replica_rows rows = list(f);
    is_int(rows.count, 2, "another process lists both replicas");
    ok(weft_id_cmp(&rows.item[0].id, &two.id) == 0, "the newest first");
    const struct weft_replica_row *row = &rows.item[1];
    ok(strcmp(row->host, "one") == 0 && row->pid == 4711 && strcmp(row->version, "1.2.3") == 0 &&
           strcmp(row->url, one.url) == 0 && row->started_us == began_us &&
           row->up_since_us == began_us && row->seen_us == began_us,
       "the row is as it was written");
    one.up_since_us = f->now_us;
    one.scanners = "[{\"name\":\"intake\"}]";
    beat(f, &one);
    rows = list(f);
    is_int(rows.count, 2, "a second heartbeat adds nothing");
    row = &rows.item[1];
    ok(row->seen_us == f->now_us && row->up_since_us == f->now_us && row->started_us == began_us,
       "the beat moves seen and up since, not started");
    is_str(row->scanners, one.scanners, "the beat replaces the scanners");
    is_int(weft_engine_replica_remove(f->b, &one.id, &f->err), WEFT_OK, "the replica is removed");
    is_int(weft_engine_replica_remove(f->b, &one.id, &f->err), WEFT_OK, "twice does no harm");
    rows = list(f);
    ok(rows.count == 1 && strcmp(rows.item[0].host, "two") == 0, "the other stays");
}

/* ---- As they are shown ----------------------------------------------------------------------- */

#define ID_TEXT "018f0000-0000-7000-8000-000000000001"
#define STATUS(name, more)                                                                         \
    "{\"name\":\"" name "\",\"replica\":\"" ID_TEXT "\",\"host\":\"h\"" more "}"

CASE(replica_is_alive_while_it_beats)
{
    struct weft_replica_row row = new_row(f, "one");
    row.settings = "{\"threads\":6}";
    row.scanners = "[" STATUS("intake", ",\"newer\":1") ",7,{}," STATUS("retired", "") "]";
    beat(f, &row);
    struct weft_replica_rows rows = list(f);
    struct weft_replica shown = weft_replica_shown(&rows.item[0], f->now_us + WEFT_DEAD_US);
    ok(shown.alive && shown.pid == 4711 && strcmp(shown.settings, row.settings) == 0,
       "alive as long as it may be silent");
    ok(!weft_replica_shown(&rows.item[0], f->now_us + WEFT_DEAD_US + 1).alive,
       "a replica silent for longer is dead");
    struct weft_scanners scanners = weft_replica_scanners(&rows, f->now_us, f->arena);
    ok(scanners.count == 2 && strcmp(scanners.item[0].name, "intake") == 0 &&
           strcmp(scanners.item[1].name, "retired") == 0,
       "the readable part of the scanners is listed");
    scanners = weft_replica_scanners(&rows, f->now_us + WEFT_DEAD_US + 1, f->arena);
    is_int(scanners.count, 0, "scanners of a dead replica are not listed");
    row.scanners = "not json";
    beat(f, &row);
    rows = list(f);
    is_int(weft_replica_scanners(&rows, f->now_us, f->arena).count, 0,
           "a replica whose scanner list is not JSON adds no scanner");
}

CASE(replica_says_what_it_carries)
{
    static const struct {
        const char *settings;
        size_t count;
    } table[] = {
        {"{\"threads\":6}", 0},          {"{\"carries\":[]}", 0},
        {"{\"carries\":[\"http\"]}", 1}, {"{\"carries\":[\"http\",7,\"more\"]}", 2},
        {"{\"carries\":\"http\"}", 0},   {"[\"carries\"]", 0},
    };
    struct weft_replica_row row = new_row(f, "one");
    for (size_t i = 0; i < WEFT_LEN(table); i++) {
        struct weft_replicas all = {0};
        const struct weft_op_call call = {.op = WEFT_OP_REPLICAS, .out = &all, .arena = f->arena};
        row.settings = table[i].settings;
        beat(f, &row);
        is_int(weft_engine_call(f->b, &call, &f->err), WEFT_OK, "list them");
        is_int(all.item[0].carries_count, table[i].count, "kinds in %s", row.settings);
        if (table[i].count > 0)
            is_str(all.item[0].carries[0], "http", "the first of them");
    }
}

/* A status for every scanner, all of them alike. */
static struct weft_scanner_status *all_alike(struct fixture *f,
                                             const struct weft_scanner_status *like)
{
    struct weft_scanner_status *item =
        weft_new_array(f->arena, struct weft_scanner_status, WEFT_SCANNER_COUNT);
    for (int i = 0; i < WEFT_SCANNER_COUNT; i++) {
        item[i] = *like;
        item[i].name = weft_scanner_name((enum weft_scanner)i);
    }
    return item;
}

CASE(replica_scanners_are_covered)
{
    struct weft_scanner_status *item =
        all_alike(f, &(struct weft_scanner_status){.enabled = true, .partition_last = 255});
    struct weft_scanners all = {.item = item, .count = WEFT_SCANNER_COUNT};
    is_str(weft_scanners_uncovered(&all, f->arena), NULL, "all are covered");
    item[1].enabled = false;
    item[2].ns = "blue";
    is_str(weft_scanners_uncovered(&all, f->arena), "lease_expiry, attempt_timeout",
           "one that is off, and one for a namespace alone, are not");
    item[1].enabled = true;
    item[2].ns = NULL;
    item[1].partition_last = 127;
    is_str(weft_scanners_uncovered(&all, f->arena), "lease_expiry", "half is not all");
    struct weft_scanner_status *more =
        weft_new_array(f->arena, struct weft_scanner_status, WEFT_SCANNER_COUNT + 1);
    memcpy(more, item, WEFT_SCANNER_COUNT * sizeof(*more));
    more[WEFT_SCANNER_COUNT] = item[1];
    more[WEFT_SCANNER_COUNT].partition_first = 127;
    more[WEFT_SCANNER_COUNT].partition_last = 254;
    all = (struct weft_scanners){.item = more, .count = WEFT_SCANNER_COUNT + 1};
    is_str(weft_scanners_uncovered(&all, f->arena), "lease_expiry", "one partition is missing");
    more[WEFT_SCANNER_COUNT].partition_last = 255;
    is_str(weft_scanners_uncovered(&all, f->arena), NULL, "two replicas share it");
}
