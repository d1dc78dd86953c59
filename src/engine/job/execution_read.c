/* SPDX-License-Identifier: Apache-2.0 */

/* Reads: describe, attempts, result and payload bytes. Nothing here locks. Lists are in list.c. */

#include "engine/job/execution_read.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "core/capset.h"
#include "core/cursor.h"
#include "core/policy.h"
#include "core/spec.h"
#include "engine/job/detail.h"
#include "engine/job/list.h"
#include "engine/limit/admit.h"
#include "engine/names/names.h"
#include "engine/tx/tx.h"

#include <stdlib.h>
#include <string.h>

/* ---- Executions ------------------------------------------------------------------------------ */

/* The columns of describe; list has the same and two more. */
struct weft_execution weft_read_execution(struct weft_engine *engine, const struct weft_rows *rows,
                                          size_t i, struct weft_arena *arena)
{
    const struct weft_execution_out *row = weft_out_execution(rows, i);
    const struct weft_queue *queue = weft_find_queue(engine, row->queue);
    enum weft_state state = row->state;
    weft_usec due_us = row->due.value;
    bool has_progress = row->percent.set;
    struct weft_execution out = {
        .id = row->id.value,
        .ns = queue->ns_name,
        .lane = queue->lane_name,
        .kind = queue->kind,
        .state = state,
        .priority = row->priority,
        .attempt = row->attempt,
        .epoch = row->epoch,
        .lost = row->lost,
        .tenant = *queue->tenant_name ? queue->tenant_name : NULL,
        .key = row->key,
        .worker = weft_find_name(engine, row->worker.value),
        .reason = row->reason,
        .by = row->by,
        .error_class = row->error_class,
        .error_message = row->error_message,
        .percent = has_progress ? row->percent.value : -1,
        .note = row->note,
        .created_us = row->created,
        .started_us = row->started.value,
        .claimed_us = row->claimed.value,
        .finished_us = row->finished.value,
        .run_at_us = state == WEFT_STATE_DELAYED ? due_us : 0,
        .deadline_us = row->deadline.value,
        .lease_expires_us = state == WEFT_STATE_RUNNING ? due_us : 0,
        .flow = row->flow.value,
        .node = row->node,
        .result_size = row->result_size.value,
        .suspended_us = row->suspended.value,
        .timeout_us = state == WEFT_STATE_SUSPENDED ? due_us : 0,
        .escalated = row->escalated.set,
        .gate = row->gate ? weft_gate_name(row->gate) : NULL,
    };
    const struct weft_policy_entry *policy = weft_find_policy(engine, row->policy);
    const struct weft_retry_view retry =
        weft_retry_look(&policy->rules, &(struct weft_retry_facts){
                                            .state = state,
                                            .ended = row->ended.value,
                                            .attempt = out.attempt,
                                            .forgiven = row->forgiven,
                                            .due_us = due_us,
                                            .error_class = out.error_class,
                                        });
    out.attempts_used = retry.used;
    out.attempts_left = retry.left;
    out.next_attempt_us = retry.next_us;
    out.not_retried = retry.not_retried;
    out.policy = &policy->shown;
    out.tags = weft_tags_parse(row->tags, arena, &out.tag_count);
    out.capabilities = weft_capset_split(queue->capset_text, arena, &out.capability_count);
    out.budgets = queue->budget; /* as long as the engine lives */
    out.budget_count = queue->budgets;
    return out;
}

/* Makes the queues, workers and policies of the rows known, so that weft_read_execution() cannot
 * miss. In the transaction tx; NULL: in one of its own. */
static enum weft_rc know_names(struct weft_engine *engine, struct weft_tx *tx,
                               const struct weft_rows *rows, struct weft_arena *arena,
                               struct weft_err *err)
{
    struct weft_id_list queue = {.id = weft_new_array(arena, int32_t, rows->count + 1), .tx = tx};
    struct weft_id_list worker = {.id = weft_new_array(arena, int32_t, rows->count + 1), .tx = tx};
    struct weft_id_list policy = {.id = weft_new_array(arena, int32_t, rows->count + 1), .tx = tx};
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_execution_out *row = weft_out_execution(rows, i);
        if (!row->id.set)
            continue;
        queue.id[queue.count++] = row->queue;
        worker.id[worker.count++] = row->worker.value;
        policy.id[policy.count++] = row->policy;
    }
    enum weft_rc rc = weft_load_queues(engine, &queue, err);
    if (!rc)
        rc = weft_load_names(engine, &worker, err);
    return rc ? rc : weft_load_policies(engine, &policy, err);
}

enum weft_rc weft_read_chunk(struct weft_engine *engine, const struct weft_call *call,
                             struct weft_arena *arena, struct weft_rows *ret_rows,
                             struct weft_err *err)
{
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, call, arena, ret_rows, err);
    return rc ? rc : know_names(engine, NULL, ret_rows, arena, err);
}

enum weft_rc weft_read_details(struct weft_engine *engine, struct weft_execution *item,
                               size_t count, struct weft_arena *arena, struct weft_err *err)
{
    struct weft_detail_of *of = weft_new_array(arena, struct weft_detail_of, count + 1);
    size_t failed = 0;
    for (size_t i = 0; i < count; i++)
        if (item[i].state == WEFT_STATE_FAILED && item[i].error_class)
            of[failed++] =
                (struct weft_detail_of){item[i].id, item[i].epoch, &item[i].error_detail};
    return failed ? weft_details_read(engine, of, failed, arena, err) : WEFT_OK;
}

static int by_row_id(const void *left, const void *right)
{
    const struct weft_describe_out *a = left, *b = right;
    return weft_id_cmp(&a->execution.id.value, &b->execution.id.value);
}

enum weft_rc weft_engine_describe(struct weft_engine *engine, const char *ns,
                                  const struct weft_id *id, size_t count, struct weft_arena *arena,
                                  struct weft_execution *ret_item, struct weft_err *err)
{
    int32_t space;
    enum weft_rc rc = weft_find_namespace(engine, ns, &space, err);
    for (size_t at = 0; at < count && !rc; at += WEFT_BATCH_MAX) {
        size_t part = count - at < WEFT_BATCH_MAX ? count - at : WEFT_BATCH_MAX;
        struct weft_call call;
        struct weft_rows rows;
        struct weft_describe_in *in = weft_call_describe(&call, arena, part);
        for (size_t i = 0; i < part; i++)
            in->row[i].id = id[at + i];
        rc = weft_read_chunk(engine, &call, arena, &rows, err);
        if (rc)
            break;
        /* Rows are sorted by their id, so that each item finds its own. */
        struct weft_describe_out *row = weft_out_describe(&rows);
        qsort(row, rows.count, sizeof(*row), by_row_id);
        for (size_t i = at; i < at + part; i++) {
            const struct weft_describe_out key = {.execution.id.value = id[i]};
            const struct weft_describe_out *found =
                bsearch(&key, row, rows.count, sizeof(*row), by_row_id);
            ret_item[i] = (struct weft_execution){.id = id[i], .percent = -1};
            if (found && weft_find_queue(engine, found->execution.queue)->ns == space)
                ret_item[i] = weft_read_execution(engine, &rows, (size_t)(found - row), arena);
        }
    }
    return rc ? rc : weft_read_details(engine, ret_item, count, arena, err);
}

enum weft_rc weft_describe_in(struct weft_tx *tx, const struct weft_id *id, size_t count,
                              struct weft_arena *arena, struct weft_rows *ret_rows,
                              struct weft_err *err)
{
    struct weft_arena *own = tx->arena;
    struct weft_call call;
    struct weft_describe_in *in = weft_call_describe(&call, own, count);
    for (size_t i = 0; i < count; i++)
        in->row[i].id = id[i];
    tx->arena = arena; /* the rows are to outlive the transaction */
    enum weft_rc rc = weft_tx_run(tx, &call, 1, ret_rows, err);
    tx->arena = own;
    return rc ? rc : know_names(tx->engine, tx, ret_rows, own, err);
}

enum weft_rc weft_engine_ended(struct weft_engine *engine, const struct weft_id *id, size_t count,
                               struct weft_arena *arena, struct weft_id **ret_id, size_t *ret_count,
                               struct weft_err *err)
{
    struct weft_id *ended = weft_new_array(arena, struct weft_id, count + 1);
    size_t over = 0;
    for (size_t at = 0; at < count; at += WEFT_BATCH_MAX) {
        size_t part = count - at < WEFT_BATCH_MAX ? count - at : WEFT_BATCH_MAX;
        struct weft_call call;
        struct weft_rows rows = {0};
        struct weft_ended_in *in = weft_call_ended(&call, arena, part);
        for (size_t i = 0; i < part; i++)
            in->row[i].id = id[at + i];
        enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
        if (rc)
            return rc;
        for (size_t i = 0; i < rows.count; i++)
            ended[over++] = weft_out_ended(&rows)[i].id;
    }
    *ret_id = ended;
    *ret_count = over;
    return WEFT_OK;
}

/* ---- One execution --------------------------------------------------------------------------- */

/* Where a page of attempts begins: behind the lease of this epoch, or the replay of this number. */
struct attempts_place {
    int32_t epoch, replay;
};

static bool read_place(const char *text, struct attempts_place *ret_place)
{
    char *rest = NULL;
    long epoch = strtol(text, &rest, 10), replay = 0;
    bool good = rest > text && *rest == '.';
    if (good) {
        text = rest + 1;
        replay = strtol(text, &rest, 10);
        good = rest > text && *rest == '\0';
    }
    *ret_place = (struct attempts_place){(int32_t)epoch, (int32_t)replay};
    return good && epoch == ret_place->epoch && replay == ret_place->replay;
}

static struct weft_attempt read_attempt(struct weft_engine *engine,
                                        const struct weft_attempts_out *row)
{
    return (struct weft_attempt){
        .epoch = row->epoch,
        .attempt = row->attempt,
        .worker = weft_find_name(engine, row->worker.value),
        .ended = weft_ended_name(row->ended),
        .error_class = row->error_class,
        .error_message = row->error_message,
        .started_us = row->claimed.value,
        .ended_us = row->ended_at,
        .run_at_us = row->run_at.value,
    };
}

/* A walk over the attempts of an execution. */
struct attempts_walk {
    const char *ns;
    struct weft_id id;
    uint32_t limit;              /* of a page */
    struct attempts_place place; /* the last attempt that was read */
    bool more;                   /* behind place */
};

/* Reads the next page, and moves on. An execution of another namespace has no attempts here. */
static enum weft_rc read_attempts(struct weft_engine *engine, struct attempts_walk *walk,
                                  struct weft_arena *arena, struct weft_attempts_page *ret_page,
                                  struct weft_err *err)
{
    struct weft_execution execution;
    enum weft_rc rc = weft_engine_describe(engine, walk->ns, &walk->id, 1, arena, &execution, err);
    if (!rc && execution.state == WEFT_STATE_NONE)
        rc = weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no such execution");
    if (rc)
        return rc;
    struct weft_call call;
    struct weft_rows rows;
    *weft_call_attempts(&call, arena) =
        (struct weft_attempts_in){.id = walk->id,
                                  .epoch = walk->place.epoch,
                                  .replay = walk->place.replay,
                                  .limit = walk->limit + INT64_C(1)};
    rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    size_t count = rows.count < walk->limit ? rows.count : walk->limit;
    struct weft_id_list workers = {.id = weft_new_array(arena, int32_t, count + 1)};
    const struct weft_attempts_out *row = weft_out_attempts(&rows);
    for (size_t i = 0; i < count; i++)
        workers.id[workers.count++] = row[i].worker.value;
    rc = weft_load_names(engine, &workers, err);
    if (rc)
        return rc;
    struct weft_attempt *item = weft_new_array(arena, struct weft_attempt, count + 1);
    struct weft_detail_of *of = weft_new_array(arena, struct weft_detail_of, count + 1);
    size_t failed = 0;
    for (size_t i = 0; i < count; i++) {
        item[i] = read_attempt(engine, &row[i]);
        walk->place = (struct attempts_place){row[i].epoch, row[i].replay};
        if (row[i].ended == WEFT_ENDED_FAILED && row[i].error_class)
            of[failed++] = (struct weft_detail_of){walk->id, row[i].epoch, &item[i].error_detail};
    }
    *ret_page = (struct weft_attempts_page){.item = item, .count = count};
    walk->more = rows.count > count;
    return failed ? weft_details_read(engine, of, failed, arena, err) : WEFT_OK;
}

enum weft_rc weft_engine_attempts_page(struct weft_engine *engine,
                                       const struct weft_attempts_asking *asking,
                                       struct weft_arena *arena,
                                       struct weft_attempts_page *ret_page, struct weft_err *err)
{
    char text[WEFT_ID_TEXT], after[WEFT_CURSOR_PLACE_MAX + 1];
    size_t size = 0;
    struct attempts_walk walk = {.ns = asking->ns,
                                 .id = asking->id,
                                 .limit = asking->limit ? asking->limit : WEFT_PAGE_DEFAULT,
                                 .place = {-1, -1}};
    weft_id_print(&asking->id, text);
    const struct weft_cursor_list cursors = {.name = "attempts", .ns = asking->ns, .filter = text};
    enum weft_rc rc = weft_page_limit(asking->limit, err);
    if (!rc && asking->after) {
        rc = weft_cursor_read(&cursors, asking->after, after, &size, err);
        if (!rc && !read_place(after, &walk.place))
            rc = weft_cursor_refuse(err);
    }
    if (!rc)
        rc = read_attempts(engine, &walk, arena, ret_page, err);
    if (rc || !walk.more)
        return rc;
    const char *last = weft_arena_printf(arena, "%d.%d", walk.place.epoch, walk.place.replay);
    ret_page->next = weft_cursor_write(&cursors, last, strlen(last), arena);
    return WEFT_OK;
}

enum weft_rc weft_engine_attempts(struct weft_engine *engine, const char *ns,
                                  const struct weft_id *id, struct weft_arena *arena,
                                  struct weft_attempts *ret_attempts, struct weft_err *err)
{
    struct attempts_walk all = {.ns = ns, .id = *id, .limit = INT32_MAX - 1, .place = {-1, -1}};
    struct weft_attempts_page page;
    enum weft_rc rc = read_attempts(engine, &all, arena, &page, err);
    if (!rc)
        *ret_attempts = (struct weft_attempts){.item = page.item, .count = page.count};
    return rc;
}

enum weft_rc weft_engine_bytes(struct weft_engine *engine, const struct weft_bytes_of *of,
                               struct weft_arena *arena, struct weft_bytes *ret_bytes,
                               struct weft_err *err)
{
    bool result = of->kind == WEFT_BYTES_RESULT;
    int32_t ns;
    enum weft_rc rc = weft_find_namespace(engine, of->ns, &ns, err);
    if (rc)
        return rc;
    struct weft_call call;
    struct weft_rows rows = {0};
    if (result)
        weft_call_result(&call, arena)->id = of->id;
    else
        weft_call_payload(&call, arena)->id = of->id;
    rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    struct weft_result_out found = {0};
    if (rows.count > 0 && result) {
        found = *weft_out_result(&rows);
    } else if (rows.count > 0) {
        const struct weft_payload_out *row = weft_out_payload(&rows);
        found = (struct weft_result_out){
            .namespace = row->namespace, .content_type = row->content_type, .result = row->payload};
    }
    if (found.namespace != ns || !found.result.data ||
        (result && found.state != WEFT_STATE_SUCCEEDED))
        return weft_fail_field(err, WEFT_NOT_FOUND, "id", "%s",
                               result ? "there is no result (yet) under this id"
                                      : "there is no payload under this id");
    *ret_bytes = (struct weft_bytes){.data = found.result.data,
                                     .size = found.result.size,
                                     .content_type = found.content_type ? found.content_type
                                                                        : "application/json"};
    return WEFT_OK;
}
