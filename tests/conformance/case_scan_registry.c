/* SPDX-License-Identifier: Apache-2.0 */

/* The pass worker_expiry: which workers leave the list and when, and replicas that died long ago.
 */

#include "conformance.h"

#include "base/arena.h"
#include "base/limits.h"
#include "engine/admin/workers.h"
#include "engine/scan/pass.h"
#include "weft/weft.h"

#define TTL_MS (WEFT_WORKER_TTL_US / WEFT_MS)
#define DAY_MS ((int64_t)24 * 3600 * 1000)

static struct weft_pass_report expire(struct fixture *f, const struct weft_pass_config *config)
{
    struct weft_pass_report report = {0};
    enum weft_rc rc = weft_engine_pass(f->b, WEFT_SCANNER_WORKER_EXPIRY, config, &report, &f->err);
    ok(rc == WEFT_OK, "worker_expiry%s%s", rc ? ": " : "", rc ? f->err.text : "");
    is_int(report.next_due_us, WEFT_NEVER, "the pass has no due time");
    return report;
}

static void hear(struct fixture *f, const char *ns, const char *name)
{
    const struct weft_worker_seen seen = {.ns = ns, .name = name, .seen_us = f->now_us};
    enum weft_rc rc = weft_engine_workers_put(f->a, &seen, 1, &f->err);
    ok(rc == WEFT_OK, "%s was heard of%s%s", name, rc ? ": " : "", rc ? f->err.text : "");
}

static size_t listed(struct fixture *f, const char *ns)
{
    struct weft_workers list = {0};
    is_int(weft_engine_workers(f->a, ns, f->arena, &list, &f->err), WEFT_OK, "list the workers");
    return list.count;
}

CASE(worker_expiry_of_nothing)
{
    struct weft_pass_report report = expire(f, NULL);
    ok(report.handled == 0 && report.failed == 0 && !report.more,
       "a pass without workers handles nothing");
    is_int(report.counter_count, 4, "all counters are there");
    hear(f, "default", "w");
    report = expire(f, NULL);
    ok(report.handled == 0 && listed(f, "default") == 1, "a young worker stays listed");
}

CASE(worker_expiry_at_the_time_to_live)
{
    hear(f, "default", "first");
    forward_ms(f, 1);
    hear(f, "default", "second");
    forward_ms(f, TTL_MS - 2);
    is_int(expire(f, NULL).handled, 0, "a millisecond before its time");
    forward_ms(f, 1);
    struct weft_pass_report report = expire(f, NULL);
    ok(report.handled == 1 && counter_of(&report, "processed") == 1, "exactly then the first goes");
    is_int(listed(f, "default"), 1, "the second has a millisecond left");
    hear(f, "default", "second");
    forward_ms(f, TTL_MS - 1);
    is_int(expire(f, NULL).handled, 0, "a worker that was seen again is kept from then on");
    forward_ms(f, 1);
    is_int(expire(f, NULL).handled, 1,
           "the worker is removed when the time since it was last seen is over");
    hear(f, "default", "first");
    is_int(listed(f, "default"), 1, "one that left may come back");
}

CASE(worker_expiry_keeps_workers_with_leases)
{
    struct weft_id id = submit_job(f);
    struct weft_claimed lease = claim_one(f, f->a);
    hear(f, "default", "worker-a");
    hear(f, "default", "idle");
    /* It only renews, for twice its time to live. */
    for (int i = 0; i < 4; i++) {
        forward_ms(f, TTL_MS / 2);
        is_int(renew(f, f->a, &lease).err.rc, WEFT_OK, "a heartbeat");
    }
    struct weft_pass_report report = expire(f, NULL);
    ok(counter_of(&report, "processed") == 1 && counter_of(&report, "holding_leases") == 1,
       "the idle one goes, the other is counted");
    is_int(listed(f, "default"), 1, "the worker with a lease stays listed");
    forward_ms(f, 3600000);
    report = expire(f, NULL);
    ok(report.handled == 0 && listed(f, "default") == 1,
       "a worker whose lease ran out stays while it may renew");
    is_int(renew(f, f->a, &lease).err.rc, WEFT_OK, "the lease that ran out can be renewed");
    forward_ms(f, 3600000);
    is_int(run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY).handled, 1, "the lease is lost");
    is_int(expire(f, NULL).handled, 1, "a worker whose lease was lost is removed");
    is_int(listed(f, "default"), 0, "no worker is listed");
    is_int(state_of(f, &id), WEFT_STATE_READY, "the execution goes on");
}

CASE(worker_expiry_of_a_namespace)
{
    hear(f, "default", "w");
    hear(f, "theirs", "w");
    forward_ms(f, TTL_MS);
    is_int(expire(f, &(struct weft_pass_config){.ns = "nowhere"}).handled, 0, "one without any");
    struct weft_pass_report report = expire(f, &(struct weft_pass_config){.ns = "theirs"});
    is_int(report.handled, 1, "only one is of that namespace");
    ok(listed(f, "default") == 1 && listed(f, "theirs") == 0,
       "only the worker of that namespace is removed");
    struct weft_pass_report none;
    is_int(weft_engine_pass(f->a, WEFT_SCANNER_WORKER_EXPIRY,
                            &(struct weft_pass_config){.ns = "a b"}, &none, &f->err),
           WEFT_INVALID_VALUE, "a name that is none");
}

CASE(worker_expiry_in_batches)
{
    enum { HOLDERS = 3, IDLE = 5 };
    for (int i = 0; i < HOLDERS; i++) {
        const char *name = weft_arena_printf(f->arena, "a-holder-%d", i);
        (void)submit_job(f);
        is_int(
            claim_with(f, f->a, &(struct weft_claim){.worker = name, .lease_ms = 86400000}).count,
            1, "%s holds a lease", name);
        hear(f, "default", name);
    }
    for (int i = 0; i < IDLE; i++)
        hear(f, "default", weft_arena_printf(f->arena, "b-idle-%d", i));
    forward_ms(f, TTL_MS);
    const struct weft_pass_config two = {.batch = 2};
    for (int i = 0; i < 2; i++) {
        struct weft_pass_report report = expire(f, &two);
        ok(report.handled == 2 && report.more, "two, and there is more");
        is_int(counter_of(&report, "holding_leases"), HOLDERS, "holders are not in their way");
        is_int(counter_of(&report, "skipped_locked"), 0, "no worker was locked");
    }
    struct weft_pass_report report = expire(f, &two);
    ok(report.handled == 1 && !report.more, "the last one");
    ok(expire(f, &two).handled == 0 && listed(f, "default") == HOLDERS, "the holders stay");
    is_int(weft_engine_pass(f->a, WEFT_SCANNER_WORKER_EXPIRY,
                            &(struct weft_pass_config){.batch = WEFT_BATCH_MAX + 1}, &report,
                            &f->err),
           WEFT_INVALID_VALUE, "a batch larger than a transaction");
}

static void add_replica(struct fixture *f, const char *byte)
{
    bool pg = is_pg(f);
    run_sql(f, weft_arena_printf(
                   f->arena,
                   "INSERT INTO %sreplica VALUES (%s000000000070008000000000000000%s', 'host', 1, "
                   "'1', 'http://x', 1, 1, %lld, '{}', '[]')",
                   pg ? "weft." : "", pg ? "'" : "X'", byte, (long long)f->now_us));
}

CASE(worker_expiry_of_replicas)
{
    add_replica(f, "01");
    add_replica(f, "02");
    add_replica(f, "03");
    forward_ms(f, 1);
    add_replica(f, "04");
    forward_ms(f, DAY_MS - 2);
    is_int(expire(f, NULL).handled, 0, "a dead replica is shown for a day");
    forward_ms(f, 1);
    struct weft_pass_report report = expire(f, &(struct weft_pass_config){.batch = 2});
    ok(report.handled == 2 && report.more && counter_of(&report, "replicas") == 2 &&
           counter_of(&report, "processed") == 0,
       "the dead replicas are removed and there is more");
    report = expire(f, &(struct weft_pass_config){.batch = 2, .ns = "nowhere"});
    ok(counter_of(&report, "replicas") == 1 && !report.more, "whatever the namespace");
    forward_ms(f, 1);
    is_int(expire(f, NULL).handled, 1, "the last in its time");
}
