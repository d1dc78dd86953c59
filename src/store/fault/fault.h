/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_STORE_FAULT_FAULT_H
#define WEFT_STORE_FAULT_FAULT_H

/*
 * A driver around a driver that injects faults, for tests. Every begin, run (one per call inside
 * it), commit and time of every connection opened through it is counted; the fault strikes at the
 * Nth. Hooks let a test act at a named point ("before statement X runs") to force interleavings,
 * and a test may watch all calls and their results.
 */

#include "store/store.h"

enum weft_fault_kind {
    WEFT_FAULT_NONE,
    WEFT_FAULT_FAIL,       /* the call fails as contention: nothing is done, the connection lives */
    WEFT_FAULT_LOSE,       /* the connection breaks before the call reaches the store */
    WEFT_FAULT_LOSE_REPLY, /* the call is carried out, the connection breaks before the answer */
    WEFT_FAULT_FULL,       /* the call fails with WEFT_STORAGE_FULL */
    WEFT_FAULT_CRASH,      /* the process ends at once, as with SIGKILL, before the call */
    WEFT_FAULT_CRASH_AFTER, /* the call is carried out, then the process ends at once */
};

enum weft_fault_point {
    WEFT_FAULT_BEFORE_RUN,
    WEFT_FAULT_AFTER_RUN,
    WEFT_FAULT_BEFORE_COMMIT,
    WEFT_FAULT_AFTER_COMMIT,
};

struct weft_fault {
    const struct weft_driver *inner;
    enum weft_fault_kind kind;
    uint64_t strike_at; /* the Nth call from now, counted from 1; 0: never */
    uint64_t calls;     /* counted so far, over all connections */
    bool struck;
    /* Called at each point; stmt is WEFT_STMT_COUNT for commits. May be NULL. */
    void (*hook)(void *context, enum weft_fault_point point, enum weft_stmt stmt);
    /* Called with each call that was carried out, and its rows. May be NULL. */
    void (*watch)(void *context, const struct weft_call *call, const struct weft_rows *rows);
    void *context;
};

/*
 * The driver to use in place of fault->inner. A process has one plan at a time (a driver is a table
 * without state): the caller owns it and keeps it alive until every connection is closed. One
 * thread may change its fields between calls.
 */
const struct weft_driver *weft_fault_install(struct weft_fault *fault);

#endif
