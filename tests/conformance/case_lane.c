/* SPDX-License-Identifier: Apache-2.0 */

/* Lanes: paused ones give nothing, limits hold over all processes and from the moment they are set.
 */

#include "conformance.h"

#include "base/arena.h"
#include "engine/admin/lanes.h"
#include "engine/job/claim.h"
#include "engine/job/leases.h"
#include "engine/ready/poll.h"
#include "store/store.h"
#include "weft/weft.h"

static void limit(struct fixture *f, struct weft_engine *engine, int32_t max_running)
{
    put_lane(f, engine, &(struct weft_lane){.name = "default", .max_running = max_running});
}

static size_t running(struct fixture *f)
{
    return count_rows(f, &(struct weft_filter){.state = WEFT_STATE_RUNNING});
}

/* ---- Settings -------------------------------------------------------------------------------- */

CASE(lane_settings_are_replaced)
{
    static const struct weft_weight weight[] = {{"acme", 2}, {"b:c/d", 1000}};
    put_lane(f, f->a, &(struct weft_lane){.name = "z", .max_running = INT32_MAX});
    put_lane(
        f, f->a,
        &(struct weft_lane){.name = "a", .paused = true, .weights = weight, .weight_count = 2});
    struct weft_lanes lanes = {0};
    struct weft_err err;
    is_int(weft_engine_lanes(f->b, "default", f->arena, &lanes, &err), WEFT_OK, "lanes are listed");
    is_int(lanes.count, 2, "both lanes are listed");
    is_str(lanes.item[0].name, "a", "lanes are listed by name");
    ok(lanes.item[0].paused && lanes.item[0].max_running == 0,
       "the lane has the settings that were put");
    is_int(lanes.item[0].weight_count, 2, "the lane has its weights");
    is_str(lanes.item[0].weights[1].tenant, "b:c/d", "tenants");
    is_int(lanes.item[0].weights[1].weight, 1000, "the weight of the second tenant is listed");
    ok(!lanes.item[1].paused && lanes.item[1].max_running == INT32_MAX,
       "the second lane has no limit");
    put_lane(f, f->b, &(struct weft_lane){.name = "a", .max_running = 3});
    is_int(weft_engine_lanes(f->a, "default", f->arena, &lanes, &err), WEFT_OK, "listed again");
    ok(lanes.count == 2 && !lanes.item[0].paused && lanes.item[0].max_running == 3 &&
           lanes.item[0].weight_count == 0,
       "a put replaces everything");
    is_int(weft_engine_lanes(f->a, "other", f->arena, &lanes, &err), WEFT_OK, "another namespace");
    is_int(lanes.count, 0, "another namespace has no lanes");
}

CASE(lane_settings_refused)
{
    static const struct weft_weight none[] = {{"acme", 0}}, many[] = {{"acme", 1001}};
    static const struct weft_weight nameless[] = {{"", 1}}, twice[] = {{"a", 1}, {"a", 2}};
    static const struct {
        const char *name;
        struct weft_lane lane;
        const char *field;
    } row[] = {
        {"no name", {.name = NULL}, "lane"},
        {"empty name", {.name = ""}, "lane"},
        {"bad name", {.name = "a b"}, "lane"},
        {"negative limit", {.name = "x", .max_running = -1}, "max_running"},
        {"weight 0", {.name = "x", .weights = none, .weight_count = 1}, "weights"},
        {"weight 1,001", {.name = "x", .weights = many, .weight_count = 1}, "weights"},
        {"no tenant", {.name = "x", .weights = nameless, .weight_count = 1}, "weights"},
        {"a tenant twice", {.name = "x", .weights = twice, .weight_count = 2}, "weights"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_err err = {0};
        enum weft_rc rc = weft_engine_lane_put(f->a, "default", &row[i].lane, &err);
        is_int(rc, WEFT_INVALID_VALUE, "%s: refused", row[i].name);
        if (rc)
            expect_err(&err, WEFT_INVALID_VALUE, row[i].field, row[i].name);
    }
    struct weft_lanes lanes = {0};
    is_int(weft_engine_lanes(f->b, "default", f->arena, &lanes, &f->err), WEFT_OK, "lanes");
    is_int(lanes.count, 0, "nothing was put");
}

/* ---- Pause ----------------------------------------------------------------------------------- */

CASE(lane_pause)
{
    struct weft_id id = submit_job(f);
    is_int(claim(f, f->a, 0).count, 1, "both processes have seen the lane");
    (void)submit_job(f);
    put_lane(f, f->b, &(struct weft_lane){.name = "default", .paused = true});
    is_int(claim(f, f->b, 10).count, 0, "a paused lane gives nothing here");
    is_int(claim(f, f->a, 10).count, 0,
           "a claim of the other process on a paused lane gives nothing");
    (void)submit_job(f);
    is_int(claim(f, f->a, 10).count, 0, "work submitted during the pause is not claimed");
    is_int(count_rows(f, &(struct weft_filter){.state = WEFT_STATE_READY}), 2,
           "work of the paused lane stays ready");
    struct weft_claimed lease = {.id = id, .epoch = 1};
    is_int(complete(f, f->a, &lease, NULL).err.rc, WEFT_OK,
           "running work may finish during the pause");
    put_lane(f, f->b, &(struct weft_lane){.name = "default"});
    is_int(claim(f, f->a, 10).count, 2, "both are claimed when the pause is over");
}

CASE(lane_pause_concerns_one_lane)
{
    static const char *const both[] = {"default", "fast"};
    (void)submit_job(f);
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .lane = "fast"});
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .ns = "other"});
    put_lane(f, f->b, &(struct weft_lane){.name = "default", .paused = true});
    const struct weft_claim args = {.worker = "w", .max = 9, .lanes = both, .lane_count = 2};
    struct weft_claim_result got = claim_with(f, f->a, &args);
    ok(got.count == 1 && strcmp(got.item[0].lane, "fast") == 0, "another lane is not concerned");
    is_int(claim_with(f, f->a, &(struct weft_claim){.worker = "w", .ns = "other"}).count, 1,
           "a lane of the same name in another namespace is not paused");
}

/* ---- Limits ---------------------------------------------------------------------------------- */

CASE(lane_limit_over_processes)
{
    limit(f, f->a, 3);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 10);
    is_int(claim(f, f->a, 2).count, 2, "two of three");
    is_int(claim(f, f->b, 5).count, 1, "one more for the other process");
    is_int(claim(f, f->a, 5).count, 0, "a claim on a full lane gives nothing");
    is_int(claim(f, f->b, 1).count, 0, "the other process gets nothing from the full lane");
    is_int(running(f), 3, "three run");
}

enum freed_by { COMPLETE, FAIL, CANCEL, DELAY, RELEASE, REVOKE, EXPIRY, FREED_BY_COUNT };

/* Ends a lease from outside, and its worker lets go; case_draining.c is about that. */
static void take_away(struct fixture *f, enum weft_steer_kind kind,
                      const struct weft_claimed *lease)
{
    (void)steer(f, kind, &(struct weft_steer){.id = lease->id});
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, lease, 0);
}

static void free_slot(struct fixture *f, enum freed_by how, const struct weft_claimed *lease)
{
    if (how == COMPLETE)
        (void)complete(f, f->b, lease, "1");
    else if (how == FAIL)
        (void)fail(f, f->b, lease, "net");
    else if (how == CANCEL)
        take_away(f, WEFT_STEER_CANCEL, lease);
    else if (how == DELAY)
        (void)put_back(f, WEFT_PUT_BACK_DELAY, lease, 60000);
    else if (how == RELEASE)
        (void)put_back(f, WEFT_PUT_BACK_RELEASE, lease, 0);
    else if (how == REVOKE)
        take_away(f, WEFT_STEER_REVOKE, lease);
    else
        (void)run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY);
}

CASE(lane_limit_slots_are_freed)
{
    static const char *const name[] = {"complete", "fail",   "cancel", "delay",
                                       "release",  "revoke", "expiry"};
    limit(f, f->a, 1);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, FREED_BY_COUNT + 2);
    struct weft_claimed lease = claim_one(f, f->a);
    for (enum freed_by how = 0; how < FREED_BY_COUNT; how++) {
        is_int(claim(f, f->b, 10).count, 0, "%s: full before", name[how]);
        if (how == EXPIRY)
            forward_ms(f, 30001);
        free_slot(f, how, &lease);
        struct weft_claim_result got = claim(f, how % 2 ? f->a : f->b, 10);
        is_int(got.count, 1, "%s: one slot after", name[how]);
        if (got.count == 1)
            lease = got.item[0];
    }
}

CASE(lane_limit_moves)
{
    struct weft_claimed lease[12];
    size_t leases = 0;
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 20);
    static const struct {
        int32_t max_running;
        size_t finish, got;
        const char *name;
    } step[] = {
        {2, 0, 2, "a limit of two"},
        {5, 0, 3, "raised to five"},
        {1, 0, 0, "lowered to one while five run"},
        {1, 3, 0, "two still run"},
        {1, 1, 0, "one still runs"},
        {1, 1, 1, "none runs"},
        {0, 0, 10, "no limit"},
        {4, 0, 0, "a limit again, below the running number"},
    };
    for (size_t i = 0; i < WEFT_LEN(step); i++) {
        limit(f, i % 2 ? f->a : f->b, step[i].max_running);
        for (size_t k = 0; k < step[i].finish; k++)
            (void)complete(f, f->a, &lease[--leases], NULL);
        struct weft_claim_result got = claim(f, f->a, 10);
        is_int(got.count, step[i].got, "%s", step[i].name);
        for (size_t k = 0; k < got.count && leases < WEFT_LEN(lease); k++)
            lease[leases++] = got.item[k];
    }
}

/* Process a has the lane in its list without a limit; b sets one. It holds for the next claim. */
CASE(lane_limit_of_the_other_process)
{
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 10);
    is_int(claim(f, f->a, 1).count, 1, "no limit yet");
    limit(f, f->b, 3);
    is_int(claim(f, f->a, 10).count, 2, "the limit holds at once, and counts work that ran before");
    limit(f, f->b, 5);
    ok(claim(f, f->a, 10).count <= 2, "a raised limit is never exceeded");
    limit(f, f->b, 4);
    ok(claim(f, f->a, 10).count == 0 || running(f) <= 4, "a lowered limit is not exceeded");
}

CASE(lane_limit_beside_a_free_lane)
{
    static const char *const both[] = {"default", "fast"};
    limit(f, f->a, 2);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 10);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job", .lane = "fast"}, 6);
    const struct weft_claim args = {.worker = "w", .max = 20, .lanes = both, .lane_count = 2};
    struct weft_claim_result got = claim_with(f, f->a, &args);
    size_t limited = 0;
    for (size_t i = 0; i < got.count; i++)
        limited += strcmp(got.item[i].lane, "default") == 0;
    is_int(limited, 2, "the limit of one lane");
    is_int(got.count, 8, "the other lane is not limited");
    is_int(claim_with(f, f->b, &args).count, 0, "nothing is left to claim");
}

/* Many queues and several claims of one call all count against the same limit. */
CASE(lane_limit_over_queues_and_claims)
{
    limit(f, f->a, 5);
    struct weft_spec spec[40];
    for (size_t i = 0; i < WEFT_LEN(spec); i++)
        spec[i] = (struct weft_spec){.kind = i % 2 ? "odd" : "even",
                                     .tenant = weft_arena_printf(f->arena, "t%zu", i % 7)};
    (void)submit_many(f, f->a, spec, WEFT_LEN(spec));
    const struct weft_claim args[] = {{.worker = "w0", .max = 4}, {.worker = "w1", .max = 4}};
    struct weft_claim_result got = claim_several(f, f->b, args, 2);
    is_int(got.count, 5, "two claims share the room under the limit");
    is_int(running(f), 5, "as many run as the limit allows");
    is_int(claim_several(f, f->a, args, 2).count, 0,
           "the other process gets none from the full lane");
}

CASE(lane_limit_is_counted_by_namespace)
{
    limit(f, f->a, 1);
    struct weft_spec other = {.kind = "job", .ns = "other"};
    (void)submit_copies(f, &other, 3);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 3);
    const struct weft_claim args = {.worker = "w", .ns = "other", .max = 5};
    is_int(claim_with(f, f->a, &args).count, 3, "a lane of that name elsewhere has no limit");
    is_int(claim(f, f->a, 5).count, 1, "here it has");
}

static struct weft_lanes lanes_of(struct fixture *f, struct weft_engine *engine, const char *ns)
{
    struct weft_lanes lanes = {0};
    is_int(weft_engine_lanes(engine, ns, f->arena, &lanes, &f->err), WEFT_OK, "the lanes of %s",
           ns);
    return lanes;
}

static enum weft_rc remove_lane(struct fixture *f, const char *name, struct weft_lane *ret_lane)
{
    return weft_engine_lane_remove(f->b, "default", name, f->arena, ret_lane, &f->err);
}

static enum weft_rc get_lane(struct fixture *f, const char *name)
{
    struct weft_lane lane;
    return weft_engine_lane(f->b, "default", name, f->arena, &lane, &f->err);
}

/* A lane is listed from its first execution on, whether anything was set for it or not. */
CASE(lane_list_names_all)
{
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .lane = "plain"});
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .lane = "else", .ns = "other"});
    limit(f, f->a, 2);
    struct weft_lanes lanes = lanes_of(f, f->b, "default");
    is_int(lanes.count, 2, "the lanes of the namespace are listed");
    ok(lanes.count == 2 && strcmp(lanes.item[0].name, "default") == 0 &&
           lanes.item[0].max_running == 2,
       "one with its settings");
    ok(lanes.count == 2 && strcmp(lanes.item[1].name, "plain") == 0 && !lanes.item[1].paused &&
           lanes.item[1].max_running == 0,
       "one without any");
}

/* Which lanes are in use: by settings, by work in any living state, by what ended in an hour. */
CASE(lane_in_use)
{
    is_int(get_lane(f, "nope"), WEFT_NOT_FOUND, "a lane that was never used is not found");
    ok(f->err.hint != NULL, "the error has a hint");
    is_int(get_lane(f, "two words"), WEFT_INVALID_VALUE, "a malformed lane name is invalid");
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .lane = "later", .delay_ms = 1000});
    is_int(get_lane(f, "later"), WEFT_OK, "delayed work uses its lane");
    struct weft_id id = submit_ok(f, &(struct weft_spec){.kind = "job", .lane = "typo"});
    is_int(get_lane(f, "typo"), WEFT_OK, "ready work uses its lane");
    (void)steer(f, WEFT_STEER_CANCEL, &(struct weft_steer){.id = id});
    is_int(get_lane(f, "typo"), WEFT_NOT_FOUND, "a cancelled execution uses none");
    is_int(lanes_of(f, f->a, "default").count, 1, "a lane without work is not listed");

    (void)submit_job(f);
    struct weft_claimed lease = claim_one(f, f->a);
    is_int(get_lane(f, "default"), WEFT_OK, "running work uses its lane");
    (void)complete(f, f->a, &lease, NULL);
    struct weft_lane lane;
    is_int(weft_engine_lane(f->a, "default", "default", f->arena, &lane, &f->err), WEFT_OK,
           "work that ended a moment ago still uses its lane");
    forward_ms(f, 2LL * 3600 * 1000);
    is_int(weft_engine_lane(f->a, "default", "default", f->arena, &lane, &f->err), WEFT_NOT_FOUND,
           "work that ended hours ago does not use its lane");
}

CASE(lane_remove)
{
    static const struct weft_weight weight[] = {{"acme", 3}};
    const struct weft_lane set = {.name = "default",
                                  .paused = true,
                                  .max_running = 4,
                                  .retention_ms = 5000,
                                  .weights = weight,
                                  .weight_count = 1};
    struct weft_lane was = {0};
    is_int(remove_lane(f, "default", &was), WEFT_NOT_FOUND, "a lane that was never named");
    put_lane(f, f->a, &set);
    (void)submit_job(f);
    is_int(claim(f, f->a, 1).count, 0, "a claim on the paused lane gives nothing");
    is_int(remove_lane(f, "default", &was), WEFT_OK, "the settings of the lane are removed");
    ok(was.paused && was.max_running == 4 && was.retention_ms == 5000 && was.weight_count == 1 &&
           was.weights[0].weight == 3 && strcmp(was.name, "default") == 0,
       "the answer has the removed settings");
    is_int(remove_lane(f, "default", &was), WEFT_NOT_FOUND, "a second removal is not found");
    struct weft_lanes lanes = lanes_of(f, f->a, "default");
    ok(lanes.count == 1 && !lanes.item[0].paused && lanes.item[0].max_running == 0 &&
           lanes.item[0].retention_ms == 0 && lanes.item[0].weight_count == 0,
       "a lane with work is listed with the defaults");
    is_int(claim(f, f->b, 1).count, 1, "work of the lane can be claimed");
    put_lane(f, f->a, &(struct weft_lane){.name = "idle"});
    is_int(get_lane(f, "idle"), WEFT_OK, "a lane with settings and no work");
    is_int(remove_lane(f, "idle", &was), WEFT_OK, "a lane without work is removed");
    is_int(get_lane(f, "idle"), WEFT_NOT_FOUND, "a removed lane is not found");
}

/* A replica that still believes in the limit of a lane whose settings are gone. */
CASE(lane_remove_is_seen_by_others)
{
    struct weft_lane was;
    limit(f, f->a, 1);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 3);
    is_int(claim(f, f->a, 3).count, 1, "the limit holds");
    is_int(remove_lane(f, "default", &was), WEFT_OK, "another process removes it");
    struct weft_poll poll = {0};
    is_int(weft_engine_poll(f->a, f->arena, &poll, &f->err), WEFT_OK, "the poll tells of it");
    is_int(claim(f, f->a, 3).count, 2, "after which all can be claimed");
}

/* Another claim holds the lane: this one serves other lanes and is contended. */
CASE(lane_contended)
{
    if (strcmp(f->store, "pg") != 0) {
        tap_skip("SQLite has one writer: a lane is never locked by another claim");
        return;
    }
    static const char *const both[] = {"default", "fast"};
    limit(f, f->a, 2);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 3);
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .lane = "fast"});
    struct weft_conn *conn = NULL;
    enum weft_rc rc = weft_driver_pg.open(f->url, &conn, &f->err);
    if (!rc)
        rc = weft_driver_pg.begin(conn, WEFT_TX_WRITE, &f->err);
    if (!rc)
        rc = weft_driver_pg.script(conn, "SELECT * FROM weft.lane FOR UPDATE", &f->err);
    is_int(rc, WEFT_OK, "another transaction holds the lane");
    const struct weft_claim args = {.worker = "w", .max = 9, .lanes = both, .lane_count = 2};
    struct weft_claim_result got = claim_with(f, f->a, &args);
    ok(got.count == 1 && strcmp(got.item[0].lane, "fast") == 0, "only the other lane is served");
    ok(got.contended, "a claim that met a locked lane is contended");
    weft_driver_pg.rollback(conn); /* after a mere close the lock may outlive the call */
    weft_conn_close(conn);
    got = claim_with(f, f->a, &args);
    is_int(got.count, 2, "the lane is served when its lock is gone");
    ok(!got.contended, "without contention");
}
