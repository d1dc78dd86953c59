/* SPDX-License-Identifier: Apache-2.0 */

/* Steering: cancel, replay, priority, deadline, and the filter that picks many. */

#include "wire/type.h"

#define NAMED(name, kind) WEFT_WIRE_NAMED(name, kind)

#define AT(field) .at = offsetof(struct weft_steer, field)

static const struct weft_wire_field cancel[] = {
    {NAMED("reason", TEXT), AT(reason), .about = "Kept with the execution"},
};
const struct weft_wire_type weft_wire_cancel = {WEFT_WIRE_FIELDS(struct weft_steer, cancel),
                                                .name = "Cancel", .about = "Ends an execution."};

static const struct weft_wire_field replay[] = {
    {NAMED("force", BOOL), AT(force),
     .about = "Of a member of a flow: also if its upstreams, as they ended, do not allow it"},
};
const struct weft_wire_type weft_wire_replay = {
    WEFT_WIRE_FIELDS(struct weft_steer, replay), .name = "Replay",
    .about = "Lets an execution that is over live again."};

static const struct weft_wire_field priority[] = {
    {NAMED("priority", I32), AT(priority), .flags = WEFT_WIRE_REQUIRED, .min = INT16_MIN,
     .max = INT16_MAX, .about = "Higher ones are claimed first"},
};
const struct weft_wire_type weft_wire_priority = {WEFT_WIRE_FIELDS(struct weft_steer, priority),
                                                  .name = "Priority",
                                                  .about = "Gives an execution another priority."};

static const struct weft_wire_field deadline[] = {
    {NAMED("deadline_at", MOMENT), AT(deadline_us), .flags = WEFT_WIRE_ALWAYS,
     .about = "When it must be over; null: it has no deadline any more"},
};
const struct weft_wire_type weft_wire_deadline = {WEFT_WIRE_FIELDS(struct weft_steer, deadline),
                                                  .name = "Deadline",
                                                  .about = "Gives an execution another deadline."};
#undef AT

#define AT(field) .at = offsetof(struct weft_filter, field)

static const struct weft_wire_field filter[] = {
    {NAMED("lane", TEXT), AT(lane), .about = "Its lane"},
    {NAMED("kind", TEXT), AT(kind), .about = "Its kind"},
    {NAMED("state", STATE), AT(state), .about = "Its state"},
    {NAMED("tag", TAG), AT(tag), .about = "One of its tags, as KEY:VALUE"},
    {NAMED("tenant", TEXT), AT(tenant), .about = "Its tenant"},
    {NAMED("key", TEXT), AT(key), .about = "Its idempotency key"},
    {NAMED("flow", ID), AT(flow), .flags = WEFT_WIRE_OR_NULL,
     .about = "The flow that it is a member of"},
    {NAMED("error_class", TEXT), AT(error_class), .about = "The class of the error it ended with"},
    {NAMED("worker", TEXT), AT(worker),
     .about = "The worker that holds its lease, or held the last one"},
    {NAMED("created_since", MOMENT), AT(created_since_us), .about = "Created then or later"},
    {NAMED("created_until", MOMENT), AT(created_until_us), .about = "Created before"},
    {NAMED("finished_since", MOMENT), AT(finished_since_us), .about = "Ended then or later"},
    {NAMED("finished_until", MOMENT), AT(finished_until_us), .about = "Ended before"},
};
const struct weft_wire_type weft_wire_filter = {
    WEFT_WIRE_FIELDS(struct weft_filter, filter), .name = "Filter",
    .about = "Picks executions: everything given must fit."};
#undef AT

#define AT(field) .at = offsetof(struct weft_wire_sweep, field)

static const struct weft_wire_field sweep[] = {
    {NAMED("matched", U64), AT(matched), .about = "Executions that fit"},
    {NAMED("changed", U64), AT(changed), .about = "Executions that were changed"},
    {NAMED("more", BOOL), AT(more), .about = "The bound of one call was reached: call again"},
    {NAMED("next", TEXT), AT(next),
     .about = "Where the next call goes on, as its after; null: there is no more"},
};
const struct weft_wire_type weft_wire_sweep = {
    WEFT_WIRE_FIELDS(struct weft_wire_sweep, sweep), .name = "Sweep",
    .about = "What a call with a filter did.", .answer = true};
#undef AT
