/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_STORED_H
#define WEFT_CORE_STORED_H

/*
 * Numbers that C and the statements must agree on. The build reads this file: a statement says
 * @WEFT_NAME_LANE. What is stored in databases is never renumbered; states are in states.def.
 */

/* Of weft.name. */
enum weft_name_sort {
    WEFT_NAME_NAMESPACE = 1,
    WEFT_NAME_LANE = 2,
    WEFT_NAME_TENANT = 3,
    WEFT_NAME_CAPSET = 4,
    WEFT_NAME_WORKER = 5,
};

/* `what` of weft.unused and weft.retired: interned rows that may be removed (names/unused.h). */
enum weft_interned { WEFT_INTERNED_NAME = 0, WEFT_INTERNED_QUEUE = 1 };

/* Whether a join has fired: weft.node.fired, and the reason of a cancel group. */
enum weft_fired {
    WEFT_FIRED_NOT = 0,
    WEFT_FIRED_SATISFIED = 1,
    WEFT_FIRED_IMPOSSIBLE = 2,
};

/* What becomes of an upstream in a cancel group, beside a reason to cancel it (enum weft_fired). */
enum weft_sibling_fate {
    WEFT_FATE_SPARED = 0,  /* a join that has not fired waits for it */
    WEFT_FATE_UNASKED = 3, /* no group asks for it */
};

/* States of a flow that no reader sees, beside enum weft_flow_state. */
enum weft_flow_hidden {
    WEFT_FLOW_STAGED = -1,   /* not whole yet */
    WEFT_FLOW_REMOVING = -2, /* being removed */
};

/* What a row of the poll is about. */
enum weft_poll_row {
    WEFT_POLL_QUEUE = 0,
    WEFT_POLL_DUE = 1,
    WEFT_POLL_STATE = 2,
    WEFT_POLL_LANE = 3,
    WEFT_POLL_HINTS = 4,
    WEFT_POLL_FLOWS = 5,
    WEFT_POLL_UNTOLD = 6,
    WEFT_POLL_SCHEMA = 7,
    WEFT_POLL_RETIRED = 8,
    WEFT_POLL_WAITING = 9,
    WEFT_POLL_GATES = 10,
    WEFT_POLL_BUDGETS = 11,
    WEFT_POLL_ENDPOINTS = 12,
    WEFT_POLL_ERASURE = 13,
};

/* Bits of live.has and outcome.has: tables beside them that may have rows, see tables.def. */
enum weft_has {
#define SIDE(table, TABLE, bit) WEFT_HAS_##TABLE = (bit),
#include "core/tables.def"
};

/* All that is written about an execution that waits: set at once when it is suspended. */
enum { WEFT_HAS_WAITING = 60 };

/* A bit of live.has beside these: the end of a lease records its start, for the window of a gate.
 */
enum { WEFT_HAS_START = 64 };

/* The part of the span of a window that is added to it, and the longest window with that:
 * core/limit.h. */
enum { WEFT_WINDOW_SLACK = 100, WEFT_WINDOW_LONGEST_S = 2678400 };

/* What a signal adds to the bytes of signals that come with a claim, beside its payload. */
enum { WEFT_SIGNAL_BYTES = 64 };

/* Waitpoints of a suspended node that a reader of its flow sees by name. */
enum { WEFT_FLOW_WAITPOINTS = 4 };

enum {
    WEFT_PARTITION_LAST = 255,   /* partitions of ids are 0 to this */
    WEFT_INBOX_JSON_MAX = 262144 /* bytes of a JSON field of a row of the inbox; larger: refused */
};

#endif
