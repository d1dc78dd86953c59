/* SPDX-License-Identifier: Apache-2.0 */

/* Interned rows that are retired, wanted again, and removed: see engine/names/unused.h. */

#include "conformance.h"

#include "base/id.h"
#include "core/spec.h"
#include "core/stored.h"
#include "engine/engine_state.h"
#include "engine/names/names.h"
#include "engine/names/unused.h"
#include "engine/ready/poll.h"
#include "engine/tx/tx.h"
#include "store/store.h"
#include "weft/weft.h"

enum { GONE = -1, KEPT = 0, RETIRED = 1 };

static void poll(struct fixture *f, struct weft_engine *engine)
{
    struct weft_poll told;
    is_int(weft_engine_poll(engine, f->arena, &told, &f->err), WEFT_OK, "poll");
}

/* The queue of a tenant, as a submission through this engine would find or add it. */
static int32_t queue_of(struct fixture *f, struct weft_engine *engine, const char *tenant)
{
    const struct weft_resolved spec = {
        .ns = "default", .lane = "default", .kind = "job", .tenant = tenant, .needs = ""};
    const struct weft_queue *queue = NULL;
    is_int(weft_intern_queues(engine, &spec, NULL, 1, &queue, NULL, &f->err), WEFT_OK,
           "the queue of %s", tenant);
    return queue ? queue->id : 0;
}

static int32_t name_of(struct fixture *f, struct weft_engine *engine, bool add, const char *tenant)
{
    struct weft_name_want space = {.sort = WEFT_NAME_NAMESPACE, .text = "default"};
    is_int(weft_intern_names(engine, true, &space, 1, &f->err), WEFT_OK, "the namespace");
    struct weft_name_want want = {.sort = WEFT_NAME_TENANT, .ns = space.id, .text = tenant};
    is_int(weft_intern_names(engine, add, &want, 1, &f->err), WEFT_OK, "the name %s", tenant);
    return want.id;
}

/* What the store says of a row. */
static int row_state(struct fixture *f, enum weft_interned what, int32_t id)
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

/* As a scanner will do it: all queues and tenants. */
static void retire_all(struct fixture *f)
{
    run_sql_of(f,
               "INSERT INTO weft.retired SELECT 1, id, 1 FROM weft.queue;"
               "INSERT INTO weft.retired SELECT 0, id, 1 FROM weft.name WHERE sort = 3",
               "INSERT INTO retired SELECT 1, id, 1 FROM queue;"
               "INSERT INTO retired SELECT 0, id, 1 FROM name WHERE sort = 3");
}

/* The same an hour later; the rows with the largest numbers stay. */
static void remove_retired(struct fixture *f)
{
    run_sql_of(f,
               "DELETE FROM weft.queue WHERE id IN (SELECT id FROM weft.retired WHERE what = 1)"
               " AND id < (SELECT max(id) FROM weft.queue);"
               "DELETE FROM weft.name WHERE id IN (SELECT id FROM weft.retired WHERE what = 0)"
               " AND id < (SELECT max(id) FROM weft.name);"
               "DELETE FROM weft.retired",
               "DELETE FROM queue WHERE id IN (SELECT id FROM retired WHERE what = 1)"
               " AND id < (SELECT max(id) FROM queue);"
               "DELETE FROM name WHERE id IN (SELECT id FROM retired WHERE what = 0)"
               " AND id < (SELECT max(id) FROM name);"
               "DELETE FROM retired");
}

CASE(unused_row_is_wanted_again)
{
    int32_t queue = queue_of(f, f->a, "acme"), name = name_of(f, f->a, true, "acme");
    retire_all(f);
    is_int(row_state(f, WEFT_INTERNED_QUEUE, queue), RETIRED, "the queue is retired");
    is_int(row_state(f, WEFT_INTERNED_NAME, name), RETIRED, "the name is retired");
    is_int(queue_of(f, f->a, "acme"), queue,
           "a process that has not polled goes on with the cached id");
    is_int(row_state(f, WEFT_INTERNED_QUEUE, queue), RETIRED,
           "the cached id leaves the queue retired");
    poll(f, f->a);
    is_int(name_of(f, f->a, false, "acme"), name, "a reader finds the name");
    is_int(row_state(f, WEFT_INTERNED_NAME, name), RETIRED, "a reader leaves the name retired");
    is_int(queue_of(f, f->a, "acme"), queue, "a submission finds the same queue");
    is_int(row_state(f, WEFT_INTERNED_QUEUE, queue), KEPT,
           "the submission takes the queue back from retirement");
    is_int(row_state(f, WEFT_INTERNED_NAME, name), KEPT, "the name is not retired any more");
    poll(f, f->a);
    is_int(queue_of(f, f->a, "acme"), queue, "after a poll the queue is still the same");
}

CASE(unused_row_is_removed_and_added_again)
{
    int32_t queue = queue_of(f, f->a, "acme"), name = name_of(f, f->a, true, "acme");
    is_int(queue_of(f, f->b, "acme"), queue, "another process has it too");
    (void)queue_of(f, f->a, "last");
    retire_all(f);
    poll(f, f->a);
    poll(f, f->b);
    remove_retired(f);
    is_int(row_state(f, WEFT_INTERNED_QUEUE, queue), GONE, "the queue is gone");
    is_int(row_state(f, WEFT_INTERNED_NAME, name), GONE, "the name is gone");
    int32_t anew = queue_of(f, f->a, "acme"), named = name_of(f, f->a, true, "acme");
    ok(anew > queue && named > name, "both are added under new ids");
    is_int(queue_of(f, f->b, "acme"), anew, "the other process finds the new queue");
    is_int(name_of(f, f->b, true, "acme"), named, "the other process finds the new name");
    ok(weft_find_queue(f->a, queue) != NULL, "an operation that had the old one can read it");
    const struct weft_spec spec = {.kind = "job", .tenant = "acme"};
    struct weft_id id = submit_ok(f, &spec);
    is_str(describe(f, &id).tenant, "acme", "work of the tenant is submitted and read");
    struct weft_claimed claimed = claim_one(f, f->b);
    ok(weft_id_cmp(&claimed.id, &id) == 0, "the work of the tenant is claimed");
}

/* A process that does not poll, or cannot, forgets in time. */
CASE(unused_row_and_a_process_with_an_old_cache)
{
    int32_t queue = queue_of(f, f->b, "acme"), name = name_of(f, f->b, true, "acme");
    (void)queue_of(f, f->a, "last");
    retire_all(f);
    remove_retired(f);
    is_int(queue_of(f, f->b, "acme"), queue,
           "a process that heard nothing uses the cached id for a while");
    f->b->names.retired_seen_us -= WEFT_RETIRED_SEEN_US + WEFT_SECOND;
    int32_t named = name_of(f, f->b, true, "acme");
    ok(named > name, "after it the name is looked up again");
    ok(queue_of(f, f->b, "acme") > queue, "after it the queue is looked up again");
    is_int(name_of(f, f->a, true, "acme"), named, "the other process has the same new name");
}
