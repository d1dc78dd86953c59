/* SPDX-License-Identifier: Apache-2.0 */

/* Servers that share a store, and the scanners they run. */

#include "wire/type.h"

#define NAMED(name, kind) WEFT_WIRE_NAMED(name, kind)

enum { PARTITION_LAST = 255 }; /* see base/id.h */

/* ---- Replicas -------------------------------------------------------------------------------- */

#define AT(field) .at = offsetof(struct weft_replica, field)

static const struct weft_wire_field replica[] = {
    {NAMED("id", ID), AT(id), .flags = WEFT_WIRE_REQUIRED, .about = "A new one at each start"},
    {NAMED("host", TEXT), AT(host), .flags = WEFT_WIRE_REQUIRED, .about = "The machine it runs on"},
    {NAMED("pid", I64), AT(pid), .max = INT32_MAX, .about = "Its process there"},
    {NAMED("version", TEXT), AT(version), .flags = WEFT_WIRE_REQUIRED,
     .about = "The version of weft that it runs"},
    {NAMED("url", TEXT), AT(url), .flags = WEFT_WIRE_REQUIRED, .about = "Where it listens"},
    {NAMED("state", ALIVE), AT(alive), .flags = WEFT_WIRE_REQUIRED,
     .about = "dead when its heartbeat is late"},
    {NAMED("started_at", MOMENT), AT(started_us), .about = "When it started"},
    {NAMED("seen_at", MOMENT), AT(seen_us), .about = "Its last heartbeat"},
    {NAMED("settings", RAW), AT(settings), .flags = WEFT_WIRE_REQUIRED,
     .about = "Those that may differ between replicas"},
};
const struct weft_wire_type weft_wire_replica = {
    WEFT_WIRE_FIELDS(struct weft_replica, replica), .name = "Replica",
    .about = "A server that shares the store.", .answer = true};
#undef AT

/* ---- Scanners -------------------------------------------------------------------------------- */

#define AT(field)    .at = offsetof(struct weft_scanner_status, field)
#define COUNT(field) .count = offsetof(struct weft_scanner_status, field)

static const struct weft_wire_field scanner[] = {
    {NAMED("name", TEXT), AT(name), .flags = WEFT_WIRE_REQUIRED, .about = "The scanner"},
    {NAMED("replica", ID), AT(replica), .flags = WEFT_WIRE_REQUIRED, .about = "Which one runs it"},
    {NAMED("host", TEXT), AT(host), .about = "The machine of the replica"},
    {NAMED("enabled", BOOL), AT(enabled), .about = "It runs by itself"},
    {NAMED("interval_ms", I64), AT(interval_ms), .max = INT64_MAX,
     .about = "The longest time between two passes; 0: it is off"},
    {NAMED("batch", U32), AT(batch), .about = "Rows of one transaction"},
    {NAMED("namespace", TEXT), AT(ns), .about = "It is limited to it"},
    {NAMED("partitions", RANGE), AT(partition_first), COUNT(partition_last), .max = PARTITION_LAST,
     .about = "It is limited to them: the first and the last"},
    {NAMED("passes", U64), AT(passes), .about = "Since the replica started"},
    {NAMED("failures", U64), AT(failures), .about = "Of those: that failed"},
    {NAMED("last_pass_at", MOMENT), AT(last_pass_us),
     .about = "When the last pass that did not fail ended"},
    {NAMED("duration_ms", MS), AT(duration_us), .about = "How long the last pass took"},
    {NAMED("next_at", MOMENT), AT(next_us), .about = "When it runs next"},
    {NAMED("lag_ms", MS), AT(lag_us), .about = "Age of the oldest row that is due; 0: none is"},
    {NAMED("last_error", TEXT), AT(last_error), .about = "null: the last pass went well"},
    {NAMED("counters", COUNTERS), AT(counters), COUNT(counter_count),
     .about = "What all passes since the start did together"},
};
const struct weft_wire_type weft_wire_scanner = {
    WEFT_WIRE_FIELDS(struct weft_scanner_status, scanner), .name = "Scanner",
    .about = "A scanner on a replica: how it is set, and what it last did.", .answer = true};
#undef AT
#undef COUNT

/* ---- One pass -------------------------------------------------------------------------------- */

#define AT(field) .at = offsetof(struct weft_wire_pass, field)

static const struct weft_wire_field pass[] = {
    {NAMED("name", TEXT), AT(name), .flags = WEFT_WIRE_REQUIRED, .about = "The scanner"},
    {NAMED("handled", U64), AT(handled), .about = "Rows it changed"},
    {NAMED("failed", U64), AT(failed), .about = "Of those: executions it ended"},
    {NAMED("counters", COUNTERS), AT(counters),
     .count = offsetof(struct weft_wire_pass, counter_count), .about = "What it did, by name"},
    {NAMED("more", BOOL), AT(more), .about = "There may be more to do at once"},
    {NAMED("next_due_at", DUE), AT(next_due_us), .normally = INT64_MAX,
     .about = "When it has something to do again, where that is known"},
    {NAMED("duration_ms", MS), AT(duration_us), .about = "How long it took"},
};
const struct weft_wire_type weft_wire_pass = {
    WEFT_WIRE_FIELDS(struct weft_wire_pass, pass), .name = "Pass",
    .about = "What one pass of a scanner did.", .answer = true};
#undef AT
