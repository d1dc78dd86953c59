/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_SCAN_PURGE_H
#define WEFT_ENGINE_SCAN_PURGE_H

/*
 * What the scanner `purge` removes: tombstones, which are things that no reader sees any more, each
 * with its members. A kind of them is a row of the table in purge.c.
 */

#include "engine/scan/scan.h"
#include "engine/tx/tx.h"

struct weft_tombstones {
    const struct weft_id *id;
    size_t count;
};

/* What one transaction removed. */
struct weft_purged {
    size_t members, edges, chunks, tombstones;
    bool full; /* it took as much as it may: there may be more */
};

struct weft_purge_kind {
    /* Makes things that were deleted and are over tombstones; a batch of them at most. */
    enum weft_rc (*mark)(const struct weft_pass *pass, size_t *ret_count, struct weft_err *err);
    /* The first tombstones, a batch at most. */
    enum weft_rc (*look)(const struct weft_pass *pass, struct weft_tombstones *ret_tombs,
                         struct weft_err *err);
    /*
     * Removes at most so many members of these that no other transaction holds, and then the ones
     * of them that have none left. Locks members and skips locked ones; no tombstone is locked
     * before its last member is gone.
     */
    enum weft_rc (*remove)(struct weft_tx *tx, const struct weft_tombstones *tombs, uint32_t most,
                           struct weft_purged *ret_purged, struct weft_err *err);
    /* How many members these have, a batch at most. */
    enum weft_rc (*left)(const struct weft_pass *pass, const struct weft_tombstones *tombs,
                         size_t *ret_count, struct weft_err *err);
};

extern const struct weft_purge_kind weft_purge_flows, weft_purge_files, weft_purge_batches;

#endif
