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

#include "base/arena.h"
#include "base/limits.h"
#include "engine/scan/pass.h"
#include "engine/scan/scan.h"
#include "engine/tx/tx.h"
#include "store/store.h"
#include "weft/admin.h"

#define REPLICA_KEPT_US ((weft_usec)24 * 3600 * WEFT_SECOND)

enum { PROCESSED, REPLICAS, HOLDING, SKIPPED_LOCKED, COUNTERS };

struct expiry {
    const struct weft_pass_config *config;
    int32_t ns; /* see weft_pass_namespace() */
    struct weft_rows workers, replicas;
};

static enum weft_rc expire(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct expiry *expiry = context;
    struct weft_call call[2];
    struct weft_rows rows[2];
    *weft_call_worker_expire(&call[0], tx->arena) =
        (struct weft_worker_expire_in){.before = tx->now_us - WEFT_WORKER_TTL_US,
                                       .namespace = weft_unless_zero(expiry->ns),
                                       .batch = expiry->config->batch};
    *weft_call_replica_expire(&call[1], tx->arena) = (struct weft_replica_expire_in){
        .before = tx->now_us - REPLICA_KEPT_US, .batch = expiry->config->batch};
    enum weft_rc rc = weft_tx_run(tx, call, 2, rows, err);
    expiry->workers = rows[0];
    expiry->replicas = rows[1];
    return rc;
}

static struct weft_pass_report report_of(const struct expiry *expiry)
{
    uint64_t batch = expiry->config->batch;
    const struct weft_worker_expire_out *row = weft_out_worker_expire(&expiry->workers);
    uint64_t removed = row->removed;
    uint64_t free = row->free;
    uint64_t found = row->found;
    uint64_t replicas = weft_out_replica_expire(&expiry->replicas)->removed;
    uint64_t wanted = free < batch ? free : batch;
    struct weft_pass_report report = {
        .handled = removed + replicas,
        .more = removed == batch || replicas == batch,
        .next_due_us = WEFT_NEVER,
    };
    const uint64_t count[COUNTERS] = {
        [PROCESSED] = removed,
        [REPLICAS] = replicas,
        [HOLDING] = found - free,
        /* In the hands of another replica, which just heard of it or removes it. */
        [SKIPPED_LOCKED] = wanted > removed ? wanted - removed : 0,
    };
    weft_pass_count(&report, WEFT_SCANNER_WORKER_EXPIRY, count);
    return report;
}

enum weft_rc weft_worker_expiry_run(struct weft_engine *engine,
                                    const struct weft_pass_config *config,
                                    struct weft_pass_report *ret_report, struct weft_err *err)
{
    struct expiry expiry = {.config = config};
    enum weft_rc rc = weft_pass_namespace(engine, config, &expiry.ns, err);
    if (rc)
        return rc;
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    rc = weft_tx_do(&tx, WEFT_TX_WRITE, expire, &expiry, err);
    if (!rc)
        *ret_report = report_of(&expiry);
    weft_arena_free(tx.arena);
    return rc;
}
