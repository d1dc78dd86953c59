/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_SCAN_TURNS_H
#define WEFT_ENGINE_SCAN_TURNS_H

/* Turns between namespaces in passes over due rows. */

#include "base/base.h"
#include "store/store.h"
#include "weft/admin.h"

struct weft_engine;
struct weft_scan;

/* Whether the passes of a scanner take turns between namespaces now: scan/turns.c. */
struct weft_scan_turns {
    bool on;               /* the last pass left due rows, or did not look at all lanes */
    bool left;             /* a lane of this round may have more than was taken of it */
    int32_t after;         /* the lane that the next look begins behind; 0: a new round */
    uint32_t short_passes; /* how many more take a part of a batch only */
    uint32_t plain_passes; /* how many more go by time alone: the last look saw one namespace */
};

/* The statements of turns.sql for a scanner. */
struct weft_turns_stmts {
    enum weft_stmt lanes, take;
};

/* The position of the next pass of a scanner over all namespaces: turns.c. */
struct weft_scan_turns weft_turns_read(struct weft_engine *engine, enum weft_scanner scanner);
void weft_turns_write(struct weft_engine *engine, enum weft_scanner scanner,
                      const struct weft_scan_turns *turns);

/* The same for a pass that takes turns between namespaces: turns.c. */
WEFT_MUST_CHECK enum weft_rc weft_scan_in_turns(struct weft_scan *scan, struct weft_rows *ret_rows,
                                                struct weft_err *err);

#endif
