/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Removes workers not seen for their time to live from the list, and the rows of replicas that died
 * a day ago.
 *
 * Servers record the time of a worker's last claim. A worker with long jobs claims nothing for
 * hours, and its heartbeats name leases, not the worker; but while it renews, it holds leases. So a
 * worker that holds a lease stays, also if that lease has run out and lease_expiry has not taken it
 * yet: it may still be renewed. A dead worker loses its leases to lease_expiry first and is removed
 * from the list by the next pass.
 *
 * No rule depends on these rows. If a row is removed just when the worker claims again, the server
 * that received the claim writes it again.
 */

#include "engine/engine_state.h"
#include "engine/scan/scan.h"

#define REPLICA_KEPT_US ((weft_usec)24 * 3600 * WEFT_SECOND)

/* The order of the table in pass.c. */
enum { PROCESSED, REPLICAS, HOLDING, SKIPPED_LOCKED };

static enum weft_rc expire(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct weft_pass *pass = context;
    uint64_t batch = pass->config->batch;
    struct weft_call call[2];
    struct weft_rows rows[2];
    *weft_call_worker_expire(&call[0], tx->arena) =
        (struct weft_worker_expire_in){.before = tx->now_us - WEFT_WORKER_TTL_US,
                                       .namespace = weft_unless_zero(pass->ns),
                                       .batch = (int64_t)batch};
    *weft_call_replica_expire(&call[1], tx->arena) = (struct weft_replica_expire_in){
        .before = tx->now_us - REPLICA_KEPT_US, .batch = (int64_t)batch};
    enum weft_rc rc = weft_tx_run(tx, call, 2, rows, err);
    if (rc)
        return rc;
    const struct weft_worker_expire_out *row = weft_out_worker_expire(&rows[0]);
    uint64_t removed = row->removed, free = row->free, wanted = free < batch ? free : batch;
    uint64_t replicas = weft_out_replica_expire(&rows[1])->removed;
    pass->count[PROCESSED] = removed;
    pass->count[REPLICAS] = replicas;
    pass->count[HOLDING] = row->found - free;
    /* In the hands of another replica, which just heard of it or removes it. */
    pass->count[SKIPPED_LOCKED] = wanted > removed ? wanted - removed : 0;
    pass->report.handled = removed + replicas;
    pass->report.more = removed == batch || replicas == batch;
    return WEFT_OK;
}

enum weft_rc weft_worker_expiry_run(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_tx tx = {.engine = pass->engine, .arena = pass->arena};
    return weft_tx_do(&tx, WEFT_TX_WRITE, expire, pass, err);
}
