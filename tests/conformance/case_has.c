/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The bits `has` of an execution: clear while no row was written beside it, set by whatever writes
 * one, kept from the living row to the outcome and back. That no row is without its bit is one of
 * the invariants checked after every case.
 */

#include "conformance.h"
#include "direct.h"

#include "base/arena.h"
#include "core/stored.h"
#include "engine/job/leases.h"
#include "weft/weft.h"

static void expect_has(struct fixture *f, const char *table, int has)
{
    const char *in = strcmp(f->store, "pg") == 0 ? "weft." : "";
    run_sql(f, weft_arena_printf(f->arena,
                                 "CREATE TABLE %sexpected (number int CHECK (number = 1));"
                                 "INSERT INTO %sexpected SELECT count(*) FROM %s%s WHERE has = %d;"
                                 "DROP TABLE %sexpected",
                                 in, in, in, table, has, in));
}

static void report_progress(struct fixture *f, const struct weft_claimed *lease)
{
    const struct weft_renew item = {
        .id = lease->id, .epoch = lease->epoch, .has_progress = true, .percent = 50};
    struct weft_lease_answer answer = {0};
    is_int(engine_renew(f->a, &item, 1, &answer, &f->err), WEFT_OK, "renewed");
}

CASE(has_no_bit_without_rows_beside)
{
    (void)submit_job(f);
    expect_has(f, "live", 0);
    struct weft_claimed lease = claim_one(f, f->a);
    (void)renew(f, f->a, &lease);
    expect_has(f, "live", 0);
    (void)complete(f, f->a, &lease, "1");
    expect_has(f, "outcome", 0);
}

CASE(has_bit_of_progress)
{
    (void)submit_job(f);
    struct weft_claimed lease = claim_one(f, f->a);
    report_progress(f, &lease);
    expect_has(f, "live", WEFT_HAS_PROGRESS);
    report_progress(f, &lease);
    (void)complete(f, f->a, &lease, "1");
    expect_has(f, "outcome", WEFT_HAS_PROGRESS);
    is_int(steer_id(f, WEFT_STEER_REPLAY, &lease.id).err.rc, WEFT_OK, "replayed");
    expect_has(f, "live", WEFT_HAS_PROGRESS | WEFT_HAS_ATTEMPT);
}

CASE(has_bit_of_attempts)
{
    (void)submit_job(f);
    struct weft_claimed lease = claim_one(f, f->a);
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &lease, 0);
    expect_has(f, "live", WEFT_HAS_ATTEMPT);
    lease = claim_one(f, f->a);
    (void)complete(f, f->a, &lease, "1");
    expect_has(f, "outcome", WEFT_HAS_ATTEMPT);
}

/* What an older binary does, whose statements do not know the column. */
CASE(has_bits_of_rows_that_older_binaries_write)
{
    const char *in = strcmp(f->store, "pg") == 0 ? "weft." : "";
    (void)submit_job(f);
    struct weft_claimed lease = claim_one(f, f->a);
    run_sql(f, weft_arena_printf(f->arena,
                                 "INSERT INTO %sprogress (id, epoch, percent, at) "
                                 "SELECT id, 1, 10, 1 FROM %sexecution",
                                 in, in));
    expect_has(f, "live", WEFT_HAS_PROGRESS);
    (void)complete(f, f->a, &lease, "1");
    run_sql(f,
            weft_arena_printf(f->arena,
                              "INSERT INTO %sattempt (id, epoch, replay, attempt, ended, held, "
                              "answer, ended_at) SELECT id, 0, 1, 1, 1, %s, 7, 1 FROM %sexecution",
                              in, *in ? "false" : "0", in));
    expect_has(f, "outcome", WEFT_HAS_PROGRESS | WEFT_HAS_ATTEMPT);
}
