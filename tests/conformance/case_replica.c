/* SPDX-License-Identifier: Apache-2.0 */

/* The rows of replicas. */

#include "base/id.h"
#include "conformance.h"

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
    is_int(list(f).count, 0, "none at first");
    struct weft_replica_row one = new_row(f, "one");
    weft_usec began_us = f->now_us;
    beat(f, &one);
    forward_ms(f, 1000);
    struct weft_replica_row two = new_row(f, "two");
    beat(f, &two);
    struct weft_replica_rows rows = list(f);
    is_int(rows.count, 2, "both are listed, to another process");
    ok(weft_id_cmp(&rows.item[0].id, &two.id) == 0, "the newest first");
    const struct weft_replica_row *row = &rows.item[1];
    ok(strcmp(row->host, "one") == 0 && row->pid == 4711 && strcmp(row->version, "1.2.3") == 0 &&
           strcmp(row->url, one.url) == 0 && row->started_us == began_us &&
           row->up_since_us == began_us && row->seen_us == began_us,
       "as it was written, and when");
    one.up_since_us = f->now_us;
    one.scanners = "[{\"name\":\"intake\"}]";
    beat(f, &one);
    rows = list(f);
    is_int(rows.count, 2, "a second heartbeat adds nothing");
    row = &rows.item[1];
    ok(row->seen_us == f->now_us && row->up_since_us == f->now_us && row->started_us == began_us,
       "it was seen again, up since later, and started when it did");
    is_str(row->scanners, one.scanners, "what its scanners did is replaced");
    is_int(weft_engine_replica_remove(f->b, &one.id, &f->err), WEFT_OK, "it leaves");
    is_int(weft_engine_replica_remove(f->b, &one.id, &f->err), WEFT_OK, "twice does no harm");
    rows = list(f);
    ok(rows.count == 1 && strcmp(rows.item[0].host, "two") == 0, "the other stays");
}
