/* SPDX-License-Identifier: Apache-2.0 */

/* The scanner unused_names: which rows it retires and removes, and when. See engine/names/unused.h.
 */

#include "conformance.h"

#include "base/arena.h"
#include "core/spec.h"
#include "core/stored.h"
#include "engine/admin/lanes.h"
#include "engine/admin/replicas.h"
#include "engine/admin/workers.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/job/claim.h"
#include "engine/job/execution_read.h"
#include "engine/job/leases.h"
#include "engine/job/list.h"
#include "engine/names/names.h"
#include "engine/names/unused.h"
#include "engine/ready/poll.h"
#include "engine/scan/pass.h"
#include "engine/tx/tx.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/admin.h"
#include "weft/weft.h"

#include <stdlib.h>

#define DAY_MS  ((int64_t)24 * 3600 * 1000)
#define HOUR_MS ((int64_t)3600 * 1000)

enum { AFTER_DAYS = 30, ROOM = 500 };
enum { GONE = -1, KEPT = 0, RETIRED = 1 };
enum { SCANNED, NOTED, TO_RETIRED, REMOVED, WANTED_AGAIN };

static void begin(struct fixture *f)
{
    f->a->unused.after_us = f->b->unused.after_us = AFTER_DAYS * DAY_MS * WEFT_MS;
}

static struct weft_pass_report pass(struct fixture *f, struct weft_engine *engine, uint32_t batch)
{
    const struct weft_pass_config config = {.batch = batch};
    struct weft_pass_report report = {0};
    enum weft_rc rc =
        weft_engine_pass(engine, WEFT_SCANNER_UNUSED_NAMES, &config, &report, &f->err);
    if (rc)
        ok(false, "pass: %s", f->err.text);
    return report;
}

/* Passes until a walk is over; the counters of all of them. */
static struct weft_pass_report walk_in(struct fixture *f, struct weft_engine *engine,
                                       uint32_t batch, int *ret_passes)
{
    struct weft_pass_report all = pass(f, engine, batch);
    int passes = 1;
    for (; engine->unused.walk && passes < 100000; passes++) {
        struct weft_pass_report one = pass(f, engine, batch);
        for (size_t i = 0; i < all.counter_count; i++)
            all.counter[i].value += one.counter[i].value;
    }
    if (ret_passes)
        *ret_passes = passes;
    return all;
}

static struct weft_pass_report walk(struct fixture *f)
{
    struct weft_pass_report all = walk_in(f, f->a, 0, NULL);
    struct weft_poll told;
    is_int(weft_engine_poll(f->a, f->arena, &told, &f->err), WEFT_OK, "poll");
    return all;
}

static uint64_t counted(const struct weft_pass_report *report, int counter)
{
    return report->counter[counter].value;
}

static int32_t queue_in(struct fixture *f, struct weft_engine *engine, const char *tenant)
{
    const struct weft_resolved spec = {
        .ns = "default", .lane = "default", .kind = "job", .tenant = tenant, .needs = ""};
    const struct weft_queue *queue = NULL;
    enum weft_rc rc = weft_intern_queues(engine, &spec, NULL, 1, &queue, NULL, &f->err);
    if (rc)
        ok(false, "the queue of %s: %s", tenant, f->err.text);
    return queue ? queue->id : 0;
}

static int32_t name_in(struct fixture *f, struct weft_engine *engine, enum weft_name_sort sort,
                       const char *text)
{
    struct weft_name_want space = {.sort = WEFT_NAME_NAMESPACE, .text = "default"};
    enum weft_rc rc = weft_intern_names(engine, true, &space, 1, &f->err);
    struct weft_name_want want = {.sort = sort, .ns = space.id, .text = text};
    if (!rc)
        rc = weft_intern_names(engine, true, &want, 1, &f->err);
    if (rc)
        ok(false, "the name %s: %s", text, f->err.text);
    return want.id;
}

static int state_in_store(struct fixture *f, enum weft_interned what, int32_t id)
{
    struct weft_call call;
    struct weft_rows rows;
    bool queue = what == WEFT_INTERNED_QUEUE;
    weft_call_init(&call, f->arena, queue ? WEFT_STMT_QUEUE_LOAD : WEFT_STMT_NAME_LOAD, 1);
    weft_in_name_load(&call)->row[0].id = id;
    is_int(weft_tx_once(f->a, WEFT_TX_READ, &call, f->arena, &rows, &f->err), WEFT_OK, "look");
    if (rows.count == 0)
        return GONE;
    return queue ? weft_out_queue_load(&rows)->retired : weft_out_name_load(&rows)->retired;
}

static int queue_state(struct fixture *f, int32_t id)
{
    return state_in_store(f, WEFT_INTERNED_QUEUE, id);
}

static int name_state(struct fixture *f, int32_t id)
{
    return state_in_store(f, WEFT_INTERNED_NAME, id);
}

/* Walks until what was unused all the time is retired: two walks, and the time between them. */
static void walk_to_retired(struct fixture *f)
{
    (void)walk(f);
    forward_ms(f, AFTER_DAYS * DAY_MS);
    (void)walk(f);
}

CASE(unused_names_after_their_time)
{
    begin(f);
    int32_t queue = queue_in(f, f->a, "acme");
    int32_t tenant = name_in(f, f->a, WEFT_NAME_TENANT, "acme");
    (void)queue_in(f, f->a, "last"); /* SQLite keeps the last one */
    struct weft_pass_report report = walk(f);
    ok(counted(&report, NOTED) >= 1, "the first walk notes the queue");
    is_int(queue_state(f, queue), KEPT, "the first walk keeps the queue");
    report = walk(f);
    is_int(counted(&report, SCANNED), 0, "the next walk begins an hour later");
    forward_ms(f, AFTER_DAYS * DAY_MS - 1);
    report = walk(f);
    is_int(counted(&report, TO_RETIRED), 0, "a millisecond before its time it stays");
    forward_ms(f, HOUR_MS);
    report = walk(f);
    ok(counted(&report, TO_RETIRED) >= 1, "the walk at its time retires the queue");
    is_int(queue_state(f, queue), RETIRED, "a retired queue is not removed by the same walk");
    is_int(name_state(f, tenant), KEPT, "the tenant of the queue is in use");
    forward_ms(f, HOUR_MS - 1);
    run_sql_of(f, "UPDATE weft.unused_walk SET next = 0", "UPDATE unused_walk SET next = 0");
    report = walk(f);
    ok(counted(&report, SCANNED) > 0 && queue_state(f, queue) == RETIRED,
       "a walk within the hour after that does not remove it");
    forward_ms(f, HOUR_MS);
    report = walk(f);
    ok(counted(&report, REMOVED) >= 1, "after it the queue is removed");
    is_int(queue_state(f, queue), GONE, "from the store");
    forward_ms(f, HOUR_MS);
    (void)walk(f);
    is_int(name_state(f, tenant), KEPT, "the tenant is unused from now on");
    forward_ms(f, AFTER_DAYS * DAY_MS);
    (void)walk(f);
    is_int(name_state(f, tenant), RETIRED, "the tenant is retired when its own time has passed");
    forward_ms(f, HOUR_MS);
    (void)walk(f);
    is_int(name_state(f, tenant), GONE, "the tenant is removed an hour later");
    ok(queue_in(f, f->a, "acme") > queue, "a submission adds the queue under a new id");
    ok(name_in(f, f->a, WEFT_NAME_TENANT, "acme") > tenant,
       "a submission adds the tenant under a new id");
}

CASE(unused_names_never)
{
    int32_t queue = queue_in(f, f->a, "acme");
    (void)queue_in(f, f->a, "last");
    for (int i = 0; i < 4; i++) {
        struct weft_pass_report report = walk(f);
        is_int(counted(&report, SCANNED), 0, "without the setting nothing is looked at");
        forward_ms(f, AFTER_DAYS * DAY_MS);
    }
    is_int(queue_state(f, queue), KEPT, "without the setting the queue is kept");
}

/* Claims one of the tenant as this worker. */
static struct weft_claimed claim_as(struct fixture *f, const char *worker)
{
    static const char *const lanes[] = {"default"};
    const struct weft_claim args = {.worker = worker, .lanes = lanes, .lane_count = 1, .max = 1};
    struct weft_claim_result result = claim_with(f, f->a, &args);
    is_int((int64_t)result.count, 1, "%s claims one", worker);
    return result.count ? result.item[0] : (struct weft_claimed){0};
}

/* One of each kind of row that refers to a queue or a worker. */
CASE(unused_names_that_are_used)
{
    begin(f);
    static const char *const workers[] = {"ended", "tried", "drains", "runs", "listed"};
    int32_t worker[WEFT_LEN(workers)], queue[5];
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .tenant = "of-ended"});
    struct weft_claimed lease = claim_as(f, "ended");
    (void)complete(f, f->a, &lease, "1");
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .tenant = "of-tried"});
    lease = claim_as(f, "tried");
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &lease, 0);
    lease = claim_as(f, "runs");
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .tenant = "of-drains"});
    lease = claim_as(f, "drains");
    (void)steer_id(f, WEFT_STEER_CANCEL, &lease.id);
    const struct weft_worker_seen seen = {.ns = "default", .name = "listed", .seen_us = f->now_us};
    is_int(weft_engine_workers_put(f->a, &seen, 1, &f->err), WEFT_OK, "a worker is listed");
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .tenant = "of-ready"});
    static const char *const tenants[] = {"of-ended", "of-tried", "of-drains", "of-ready"};
    for (size_t i = 0; i < WEFT_LEN(workers); i++)
        worker[i] = name_in(f, f->a, WEFT_NAME_WORKER, workers[i]);
    for (size_t i = 0; i < WEFT_LEN(tenants); i++)
        queue[i] = queue_in(f, f->a, tenants[i]);
    int32_t unused = name_in(f, f->a, WEFT_NAME_WORKER, "never came");
    (void)name_in(f, f->a, WEFT_NAME_WORKER, "last");
    walk_to_retired(f);
    is_int(name_state(f, unused), RETIRED, "a worker that no row refers to is retired");
    forward_ms(f, HOUR_MS);
    (void)walk(f);
    is_int(name_state(f, unused), GONE, "the unused worker is removed");
    for (size_t i = 0; i < WEFT_LEN(workers); i++)
        is_int(name_state(f, worker[i]), KEPT, "worker %s stays", workers[i]);
    for (size_t i = 0; i < WEFT_LEN(tenants); i++)
        is_int(queue_state(f, queue[i]), KEPT, "queue of tenant %s stays", tenants[i]);
    is_str(describe(f, &lease.id).tenant, "of-drains",
           "the execution of a kept tenant can be read");
    /* The executions that are over go, and one leaves its draining row. */
    (void)run_pass(f, f->a, WEFT_SCANNER_RETENTION);
    forward_ms(f, HOUR_MS);
    walk_to_retired(f);
    is_int(queue_state(f, queue[2]), KEPT, "a draining row alone keeps its queue");
    is_int(name_state(f, worker[2]), KEPT, "a draining row alone keeps its worker");
    is_int(queue_state(f, queue[0]), RETIRED,
           "a queue that only a removed execution used is retired");
    is_int(name_state(f, worker[0]), RETIRED,
           "a worker that only a removed execution used is retired");
}

/* ---- Operations beside it -------------------------------------------------------------------- */

CASE(unused_names_wanted_between_retired_and_removed)
{
    begin(f);
    int32_t queue = queue_in(f, f->a, "acme");
    (void)queue_in(f, f->a, "last");
    walk_to_retired(f);
    is_int(queue_state(f, queue), RETIRED, "the queue is retired");
    is_int(queue_in(f, f->a, "acme"), queue, "a submission wants it");
    is_int(queue_state(f, queue), KEPT, "the submission takes the queue back from retirement");
    forward_ms(f, HOUR_MS);
    (void)walk(f);
    is_int(queue_state(f, queue), KEPT,
           "the queue that was not noted counts as unused from now on");
    forward_ms(f, HOUR_MS);
    (void)walk(f);
    is_int(queue_state(f, queue), KEPT, "the queue is kept for the whole time");
}

/* A process that has not polled yet writes the id from its cache: the walk meets that row. */
CASE(unused_names_written_from_a_cache)
{
    begin(f);
    int32_t queue = queue_in(f, f->b, "acme");
    (void)queue_in(f, f->a, "last");
    walk_to_retired(f);
    is_int(queue_state(f, queue), RETIRED, "the queue is retired");
    struct weft_submitted answer =
        submit(f, f->b, &(struct weft_spec){.kind = "job", .tenant = "acme"});
    is_int(queue_state(f, queue), RETIRED, "a process that has it in its cache asks for nothing");
    forward_ms(f, HOUR_MS);
    struct weft_pass_report report = walk(f);
    ok(counted(&report, WANTED_AGAIN) >= 1, "the walk meets the execution");
    is_int(queue_state(f, queue), KEPT, "the walk that met the execution takes the queue back");
    is_str(describe(f, &answer.id).tenant, "acme", "the execution can be read");
}

/* The note is taken while the walk is under way, behind the place where the walk is. */
CASE(unused_names_wanted_during_the_last_walk)
{
    begin(f);
    int32_t queue = queue_in(f, f->a, "acme");
    (void)queue_in(f, f->a, "last");
    (void)submit_ok(f, &(struct weft_spec){.kind = "other"});
    walk_to_retired(f);
    is_int(queue_state(f, queue), RETIRED, "the queue is retired");
    forward_ms(f, HOUR_MS);
    for (int i = 0; i < 3; i++)
        (void)pass(f, f->a, 1);
    ok(f->a->unused.walk != NULL, "the walk that would remove it is under way");
    struct weft_id id = submit_ok(f, &(struct weft_spec){.kind = "job", .tenant = "acme"});
    (void)walk(f);
    is_int(queue_state(f, queue), KEPT, "the queue of a submission beside it stays");
    is_str(describe(f, &id).tenant, "acme", "the execution submitted during the walk can be read");
}

/* What runs in between, at a place inside the other one. */
struct between {
    struct fixture *f;
    enum weft_stmt stmt; /* when it has run for the first time */
    void (*act)(struct between *between);
    int acted;
    int32_t queue;
};

static void act_between(void *context, enum weft_fault_point point, enum weft_stmt stmt)
{
    struct between *between = context;
    if (point != WEFT_FAULT_AFTER_RUN || stmt != between->stmt || between->acted)
        return;
    between->acted = 1;
    between->act(between);
}

static struct weft_engine *open_between(struct between *between, struct weft_fault *fault)
{
    *fault = (struct weft_fault){.hook = act_between, .context = between};
    struct weft_engine *engine = open_faulty(between->f, fault);
    engine->unused.after_us = between->f->a->unused.after_us;
    return engine;
}

static void want_queue(struct between *between)
{
    struct weft_poll told;
    is_int(weft_engine_poll(between->f->b, between->f->arena, &told, &between->f->err), WEFT_OK,
           "the process of the operation polls");
    between->queue = queue_in(between->f, between->f->b, "acme");
}

static void remove_queue(struct between *between)
{
    (void)walk(between->f);
}

/* The walk has read that the queue is retired; an operation takes that back before it removes. */
CASE(unused_names_wanted_before_they_are_removed)
{
    begin(f);
    int32_t queue = queue_in(f, f->a, "acme");
    (void)queue_in(f, f->a, "last");
    walk_to_retired(f);
    forward_ms(f, HOUR_MS);
    struct weft_fault fault;
    struct between between = {.f = f, .stmt = WEFT_STMT_UNUSED_QUEUES, .act = want_queue};
    struct weft_engine *walker = open_between(&between, &fault);
    (void)walk_in(f, walker, 0, NULL);
    is_int(between.acted, 1, "an operation came between");
    is_int(between.queue, queue, "the operation got the existing queue");
    is_int(queue_state(f, queue), KEPT, "the walk leaves the queue that was wanted");
    weft_engine_close(walker);
}

/* An operation has read that the queue is retired; it is removed before the operation goes on. */
CASE(unused_names_removed_before_they_are_wanted)
{
    begin(f);
    int32_t queue = queue_in(f, f->a, "acme");
    (void)queue_in(f, f->a, "last");
    walk_to_retired(f);
    forward_ms(f, HOUR_MS);
    struct weft_fault fault;
    struct between between = {.f = f, .stmt = WEFT_STMT_QUEUE_FIND, .act = remove_queue};
    struct weft_engine *submitter = open_between(&between, &fault);
    int32_t anew = queue_in(f, submitter, "acme");
    is_int(between.acted, 1, "the walk came between");
    is_int(queue_state(f, queue), GONE, "the walk removed the queue");
    ok(anew > queue && queue_state(f, anew) == KEPT, "the operation has a new one");
    weft_engine_close(submitter);
}

/* Another process removed the row and a third one added it: a reader finds the new one. */
CASE(unused_names_read_after_they_came_back)
{
    begin(f);
    int32_t tenant = name_in(f, f->b, WEFT_NAME_TENANT, "acme");
    (void)name_in(f, f->a, WEFT_NAME_TENANT, "last");
    walk_to_retired(f);
    struct weft_poll told;
    is_int(weft_engine_poll(f->b, f->arena, &told, &f->err), WEFT_OK, "the reader polls");
    forward_ms(f, HOUR_MS);
    (void)walk(f);
    is_int(name_state(f, tenant), GONE, "the tenant is removed");
    struct weft_id id = submit_ok(f, &(struct weft_spec){.kind = "job", .tenant = "acme"});
    struct weft_engine *a = f->a;
    f->a = f->b;
    const struct weft_listing listing = {.filter = {.tenant = "acme"}};
    struct weft_read_page page = list_page(f, &listing);
    ok(page.count == 1 && same_id(&page.item[0].id, &id), "a list by tenant has the new work");
    f->a = a;
}

/* ---- The walk -------------------------------------------------------------------------------- */

CASE(unused_names_in_small_passes)
{
    begin(f);
    enum { JOBS = 20 };
    int32_t used[JOBS], unused[JOBS];
    for (int i = 0; i < JOBS; i++) {
        const char *tenant = weft_arena_printf(f->arena, "used-%d", i);
        (void)submit_ok(f, &(struct weft_spec){.kind = "job", .tenant = tenant});
        used[i] = queue_in(f, f->a, tenant);
        unused[i] = queue_in(f, f->a, weft_arena_printf(f->arena, "unused-%d", i));
    }
    (void)queue_in(f, f->a, "last");
    int passes = 0;
    for (int i = 0; i < 3; i++) {
        (void)walk_in(f, f->a, 3, &passes);
        ok(passes > JOBS, "a walk takes %d passes of 3 rows", passes);
        forward_ms(f, i == 0 ? AFTER_DAYS * DAY_MS : HOUR_MS);
    }
    int kept = 0, gone = 0;
    for (int i = 0; i < JOBS; i++) {
        kept += queue_state(f, used[i]) == KEPT;
        gone += queue_state(f, unused[i]) == GONE;
    }
    is_int(kept, JOBS, "all queues in use are left");
    is_int(gone, JOBS, "all unused queues are gone");
}

CASE(unused_names_keep_the_largest_id)
{
    begin(f);
    int32_t first = queue_in(f, f->a, "first"), last = queue_in(f, f->a, "last");
    walk_to_retired(f);
    forward_ms(f, HOUR_MS);
    (void)walk(f);
    is_int(queue_state(f, first), GONE, "the first queue is removed");
    ok(queue_in(f, f->b, "another") > last, "a new queue has an id that none had before");
}

/* A process that ends takes its walk with it; another one starts over when it is silent. */
CASE(unused_names_after_a_restart)
{
    begin(f);
    int32_t queue = queue_in(f, f->a, "acme");
    for (int i = 0; i < 5; i++)
        (void)queue_in(f, f->a, weft_arena_printf(f->arena, "more-%d", i));
    (void)pass(f, f->a, 2);
    ok(f->a->unused.walk != NULL, "a walk is under way");
    struct weft_pass_report report = pass(f, f->b, 0);
    is_int(counted(&report, SCANNED), 0, "another process leaves it alone");
    forward_ms(f, HOUR_MS);
    report = pass(f, f->b, 0);
    ok(counted(&report, SCANNED) > 0 && !f->b->unused.walk, "after an hour of silence it walks");
    report = pass(f, f->a, 0);
    ok(counted(&report, SCANNED) == 0 && !f->a->unused.walk, "the first one gives its walk up");
    forward_ms(f, AFTER_DAYS * DAY_MS);
    (void)walk_in(f, f->b, 0, NULL);
    is_int(queue_state(f, queue), RETIRED,
           "a queue that the second process noted is retired in time");
}

static void put_replica(struct fixture *f, const char *version)
{
    const struct weft_replica_row row = {.id = {{1}},
                                         .host = "elsewhere",
                                         .pid = 1,
                                         .version = version,
                                         .url = "",
                                         .started_us = f->now_us,
                                         .settings = "{}",
                                         .scanners = "[]"};
    is_int(weft_engine_replica_put(f->b, &row, &f->err), WEFT_OK, "a replica of %s", version);
}

static int64_t oldest_binary(struct fixture *f)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_schema_read(&call, f->arena);
    is_int(weft_tx_once(f->a, WEFT_TX_READ, &call, f->arena, &rows, &f->err), WEFT_OK, "look");
    return weft_out_schema_read(&rows)->oldest_binary;
}

CASE(unused_names_beside_an_older_binary)
{
    begin(f);
    int32_t queue = queue_in(f, f->a, "acme");
    (void)queue_in(f, f->a, "last");
    int64_t before = oldest_binary(f);
    (void)walk(f);
    forward_ms(f, AFTER_DAYS * DAY_MS);
    put_replica(f, "0.1.0");
    (void)walk(f);
    is_int(queue_state(f, queue), KEPT, "nothing is retired while a server of 0.1.0 is alive");
    is_int(oldest_binary(f), before, "the old binary may go on");
    forward_ms(f, HOUR_MS);
    (void)walk(f);
    is_int(queue_state(f, queue), RETIRED, "the queue is retired when that server is gone");
    ok(oldest_binary(f) > before, "no older binary may come any more: %" PRId64 " after %" PRId64,
       oldest_binary(f), before);
}

/* ---- Many ------------------------------------------------------------------------------------ */

static int64_t rows_of(struct fixture *f, const char *what)
{
    bool pg = is_pg(f);
    run_sql(f, weft_arena_printf(f->arena,
                                 pg ? "UPDATE weft.lane SET max_running ="
                                      " (SELECT count(*) FROM weft.%s)"
                                    : "UPDATE lane SET max_running = (SELECT count(*) FROM %s)",
                                 what));
    struct weft_lane lane;
    is_int(weft_engine_lane(f->a, "default", "count", f->arena, &lane, &f->err), WEFT_OK, "count");
    return lane.max_running;
}

static void submit_tenants(struct fixture *f, int tenants)
{
    struct weft_spec *spec = weft_new_array(f->arena, struct weft_spec, tenants);
    for (int i = 0; i < tenants; i++)
        spec[i] = (struct weft_spec){.kind = "job",
                                     .tenant = weft_arena_printf(f->arena, "tenant-%d", i)};
    struct weft_submitted *answer = submit_many(f, f->a, spec, (size_t)tenants);
    int accepted = 0, ended = 0;
    for (int i = 0; i < tenants; i++) {
        accepted += answer[i].err.rc == WEFT_OK;
        ended += steer_id(f, WEFT_STEER_CANCEL, &answer[i].id).err.rc == WEFT_OK;
    }
    is_int(accepted, tenants, "%d tenants come", tenants);
    is_int(ended, tenants, "the work of all tenants ends");
}

/* With WEFT_SOAK=1: 20,000. */
CASE(unused_names_of_many_tenants)
{
    begin(f);
    const int tenants = getenv("WEFT_SOAK") ? 20000 : 1300;
    const int cycles = 2 * (tenants / ROOM + 4);
    put_lane(f, f->a, &(struct weft_lane){.name = "count"});
    int64_t names = rows_of(f, "name"), queues = rows_of(f, "queue");
    submit_tenants(f, tenants);
    ok(rows_of(f, "name") >= names + tenants && rows_of(f, "queue") >= queues + tenants,
       "each has rows of its own");
    forward_ms(f, 400 * DAY_MS);
    for (bool more = true; more;)
        more = run_pass(f, f->a, WEFT_SCANNER_RETENTION).more;
    is_int(rows_of(f, "execution"), 0, "retention removes the executions");
    uint64_t most = 0;
    bool in_bounds = true;
    for (int i = 0; i < cycles; i++) {
        struct weft_pass_report report = walk(f);
        most = counted(&report, TO_RETIRED) > most ? counted(&report, TO_RETIRED) : most;
        in_bounds = in_bounds && rows_of(f, "retired") <= 2L * ROOM;
        forward_ms(f, i == 0 || i == cycles / 2 ? AFTER_DAYS * DAY_MS : HOUR_MS);
    }
    ok(in_bounds && most == ROOM, "at most %d queues are retired at a time", ROOM);
    ok(rows_of(f, "queue") <= queues + 1, "the queues are gone: %" PRId64, rows_of(f, "queue"));
    ok(rows_of(f, "name") <= names + 3, "the tenants are gone: %" PRId64 " names",
       rows_of(f, "name"));
    is_int(rows_of(f, "retired"), 0, "no note is left");
    ok(rows_of(f, "unused") <= 2, "no note of unused names is left");
}
