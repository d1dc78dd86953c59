/* SPDX-License-Identifier: Apache-2.0 */

/* Gates, and why an execution does not run. */

#include "core/limit.h"
#include "weft/admin.h"
#include "weft/limits.h"
#include "wire/rows.h"

#define OF struct weft_gate

static const struct weft_wire_field gate_window[] = {
    ROW("limit", I64, limits.window.limit, "At most so many starts", .min = 1,
        .max = WEFT_LIMIT_MOST),
    ROW("per_ms", I64, limits.window.per_ms, "in any span of this length", .min = 1,
        .max = WEFT_LIMIT_PER_MAX),
};
static const struct weft_wire_field gate_rate[] = {
    ROW("limit", I64, limits.rate.limit, "So many starts on average", .min = 1,
        .max = WEFT_LIMIT_MOST),
    ROW("per_ms", I64, limits.rate.per_ms, "in each span of this length", .min = 1,
        .max = WEFT_LIMIT_PER_MAX),
    ROW("burst", I64, limits.rate.burst, "and up to so many at once. Default: as limit",
        .max = WEFT_LIMIT_MOST),
};
static const struct weft_wire_field gate[] = {
    ROW("gate", TEXT, name, "The class or gate; in a request the path says it"),
    ROW("max_running", I64, limits.max_running,
        "How many may be ready or running at a time; 0: no limit", .max = WEFT_LIMIT_MOST),
    OBJECT("window", gate_window, "How many may start in any span of time; null: no limit"),
    OBJECT("rate", gate_rate, "How often they may start, with bursts; null: no limit"),
    ROW("running", U64, running, "Running now; ignored in requests, as the next three"),
    ROW("ready", U64, ready, "Admitted, and waiting for a worker"),
    ROW("held", U64, held, "Waiting for their admission"),
    ROW("next_at", MOMENT, next_us, "When time alone admits the next; null: it does not"),
};
MESSAGE_TYPE(gate, "Gate", "The limits of a gate, or of each gate of a class.", .answer = true,
             .request = true);
#undef OF

#define OF struct weft_why

static const struct weft_wire_field why[] = {
    ROW("id", ID, id, "The execution", REQUIRED),
    ROW("state", STATE, state, "Its state", REQUIRED),
    ROW("why", TEXT, why,
        "lane_paused, lane_full, gate, budget, rate, no_executor, no_endpoint, no_secret, "
        "breaker, endpoint_full, delayed, blocked, no_worker, suspended, "
        "running, ready or ended",
        REQUIRED),
    ROW("text", TEXT, text, "One sentence that says what would make it run", REQUIRED),
    ROW("detail", RAW, detail, "The same as data"),
};
ANSWER(why, "Why", "Why an execution does not run, or what it does.");
#undef OF
