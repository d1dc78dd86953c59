/* SPDX-License-Identifier: Apache-2.0 */

/* Steering: cancel, replay, priority, deadline, and the filter that picks many. */

#include "wire/rows.h"

#define OF struct weft_steer

static const struct weft_wire_field cancel[] = {
    ROW("reason", TEXT, reason, "Kept with the execution"),
};
REQUEST(cancel, "Cancel", "Ends an execution.");

static const struct weft_wire_field replay[] = {
    ROW("force", BOOL, force,
        "Of a member of a flow: also if its upstreams, as they ended, do not allow it"),
};
REQUEST(replay, "Replay", "Lets an execution that is over live again.");

static const struct weft_wire_field priority[] = {
    ROW("priority", I32, priority, "Higher ones are claimed first", REQUIRED, .min = INT16_MIN,
        .max = INT16_MAX),
};
REQUEST(priority, "Priority", "Gives an execution another priority.");

static const struct weft_wire_field deadline[] = {
    ROW("deadline_at", MOMENT, deadline_us,
        "When it must be over; null: it has no deadline any more", ALWAYS),
};
REQUEST(deadline, "Deadline", "Gives an execution another deadline.");
#undef OF

#define OF struct weft_filter

static const struct weft_wire_field filter[] = {
    ROW("lane", TEXT, lane, "Its lane"),
    ROW("kind", TEXT, kind, "Its kind"),
    ROW("state", STATE, state, "Its state"),
    ROW("tag", TAG, tag, "One of its tags, as KEY:VALUE"),
    ROW("tenant", TEXT, tenant, "Its tenant"),
    ROW("key", TEXT, key, "Its idempotency key"),
    ROW("flow", ID, flow, "The flow that it is a member of", OR_NULL),
    ROW("error_class", TEXT, error_class, "The class of the error it ended with"),
    ROW("worker", TEXT, worker, "The worker that holds its lease, or held the last one"),
    ROW("created_since", MOMENT, created_since_us, "Created then or later"),
    ROW("created_until", MOMENT, created_until_us, "Created before"),
    ROW("finished_since", MOMENT, finished_since_us, "Ended then or later"),
    ROW("finished_until", MOMENT, finished_until_us, "Ended before"),
};
REQUEST(filter, "Filter", "Picks executions: everything given must fit.");
#undef OF

#define OF struct weft_wire_sweep

static const struct weft_wire_field sweep[] = {
    ROW("matched", U64, matched, "Executions that fit"),
    ROW("changed", U64, changed, "Executions that were changed"),
    ROW("more", BOOL, more, "The bound of one call was reached: call again"),
    ROW("next", TEXT, next, "Where the next call goes on, as its after; null: there is no more"),
};
ANSWER(sweep, "Sweep", "What a call with a filter did.");
#undef OF
