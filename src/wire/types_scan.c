/* SPDX-License-Identifier: Apache-2.0 */

/* Servers that share a store, and the scanners they run. */

#include "wire/rows.h"

enum { PARTITION_LAST = 255 }; /* see base/id.h */

/* ---- Replicas -------------------------------------------------------------------------------- */

#define OF struct weft_replica

static const struct weft_wire_field replica[] = {
    ROW("id", ID, id, "A new one at each start", REQUIRED),
    ROW("host", TEXT, host, "The machine it runs on", REQUIRED),
    ROW("pid", I64, pid, "Its process there", .max = INT32_MAX),
    ROW("version", TEXT, version, "The version of weft that it runs", REQUIRED),
    ROW("url", TEXT, url, "Where it listens", REQUIRED),
    ROW("state", ALIVE, alive, "dead when its heartbeat is late", REQUIRED),
    ROW("started_at", MOMENT, started_us, "When it started"),
    ROW("seen_at", MOMENT, seen_us, "Its last heartbeat"),
    ROW("settings", RAW, settings, "Those that may differ between replicas", REQUIRED),
};
ANSWER(replica, "Replica", "A server that shares the store.");
#undef OF

/* ---- Scanners -------------------------------------------------------------------------------- */

#define OF struct weft_scanner_status

static const struct weft_wire_field scanner[] = {
    ROW("name", TEXT, name, "The scanner", REQUIRED),
    ROW("replica", ID, replica, "Which one runs it", REQUIRED),
    ROW("host", TEXT, host, "The machine of the replica"),
    ROW("enabled", BOOL, enabled, "It runs by itself"),
    ROW("interval_ms", I64, interval_ms, "The longest time between two passes; 0: it is off",
        .max = INT64_MAX),
    ROW("batch", U32, batch, "Rows of one transaction"),
    ROW("namespace", TEXT, ns, "It is limited to it"),
    ROW("partitions", RANGE, partition_first, "It is limited to them: the first and the last",
        COUNT(partition_last), .max = PARTITION_LAST),
    ROW("passes", U64, passes, "Since the replica started"),
    ROW("failures", U64, failures, "Of those: that failed"),
    ROW("last_pass_at", MOMENT, last_pass_us, "When the last pass that did not fail ended"),
    ROW("duration_ms", MS, duration_us, "How long the last pass took"),
    ROW("next_at", MOMENT, next_us, "When it runs next"),
    ROW("lag_ms", MS, lag_us, "Age of the oldest row that is due; 0: none is"),
    ROW("last_error", TEXT, last_error, "null: the last pass went well"),
    ROW("counters", COUNTERS, counters, "What all passes since the start did together",
        COUNT(counter_count)),
};
ANSWER(scanner, "Scanner", "A scanner on a replica: how it is set, and what it last did.");
#undef OF

/* ---- One pass -------------------------------------------------------------------------------- */

#define OF struct weft_wire_pass

static const struct weft_wire_field pass[] = {
    ROW("name", TEXT, name, "The scanner", REQUIRED),
    ROW("handled", U64, handled, "Rows it changed"),
    ROW("failed", U64, failed, "Of those: executions it ended"),
    ROW("counters", COUNTERS, counters, "What it did, by name", COUNT(counter_count)),
    ROW("more", BOOL, more, "There may be more to do at once"),
    ROW("next_due_at", DUE, next_due_us, "When it has something to do again, where that is known",
        .normally = INT64_MAX),
    ROW("duration_ms", MS, duration_us, "How long it took"),
};
ANSWER(pass, "Pass", "What one pass of a scanner did.");
#undef OF
