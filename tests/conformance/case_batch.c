/* SPDX-License-Identifier: Apache-2.0 */

/* Batches: their members are written in parts by any process, and their counts are exact. */

#include "batches.h"
#include "conformance.h"

#include "base/arena.h"
#include "engine/batch/batch.h"
#include "engine/batch/files.h"
#include "engine/flow/flow.h"
#include "engine/tx/tx.h"
#include "weft/weft.h"

#include <string.h>

enum { LINES = 2500 };

/* The first batch keeps binaries out that would remove a flow which is written so slowly. */
CASE(batch_raises_the_oldest_binary)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    batches_model(f, "m");
    (void)batches_create(f, batches_file(f, 1), "24h", NULL);
    weft_call_schema_read(&call, f->arena);
    is_int(weft_tx_once(f->b, WEFT_TX_READ, &call, f->arena, &rows, &f->err), WEFT_OK, "read");
    ok(rows.count == 1 && weft_out_schema_read(&rows)->oldest_binary >= 37, "37 at least");
}

CASE(batch_is_written_in_parts)
{
    batches_model(f, "m");
    struct weft_id id = batches_create(f, batches_file(f, LINES), "24h", NULL);
    is_int(batches_look(f, &id).status, WEFT_BATCH_STATUS_VALIDATING, "it is validating");
    bool more = false;
    is_int(weft_engine_batch_step(f->a, &id, &more, &f->err), WEFT_OK, "the first part");
    ok(more && batches_look(f, &id).requests == 1000, "a thousand members are written");
    is_int(count_rows(f, &(struct weft_filter){.lane = "gpt", .state = WEFT_STATE_READY}), 0,
           "none may begin");
    forward_ms(f, 3600000);
    (void)run_pass(f, f->a, WEFT_SCANNER_CANCEL_BACKLOG);
    struct weft_pass_report pass = run_pass(f, f->b, WEFT_SCANNER_BATCH_PROGRESS);
    ok(pass.handled == 1 && pass.more, "another process goes on after an hour");
    (void)batches_step(f, &id);
    struct weft_batch batch = batches_look(f, &id);
    is_int(batch.status, WEFT_BATCH_STATUS_IN_PROGRESS, "it is in progress");
    is_int(batch.requests, LINES, "each line is a member, once");
    (void)run_pass(f, f->a, WEFT_SCANNER_DEPENDENCY);
    is_int(batches_work(f, 10), 10, "they run");
}

CASE(batch_counts_are_those_of_its_files)
{
    struct weft_id id = batches_running(f, 300, "24h");
    is_int(batches_work(f, 100), 100, "a hundred calls");
    bool seen[300] = {0};
    is_int(batches_lines(f, &id, true, seen, 300), 90, "the output is read while it runs");
    while (batches_work(f, 1000) > 0)
        ;
    is_int(batches_look(f, &id).failed, 30, "thirty failed");
    batches_finish(f, &id);
    struct weft_batch batch = batches_look(f, &id);
    is_int(batch.status, WEFT_BATCH_STATUS_COMPLETED, "it is completed");
    is_int(batch.succeeded, 270, "the others succeeded");
    batches_expect_files(f, &id, 300);
    is_int(batches_step(f, &id), 1, "a step changes nothing");
    is_int(weft_engine_batch_cancel(f->a, "default", &id, &f->err), WEFT_NOT_LIVE,
           "it cannot be cancelled");
}

CASE(batch_that_is_cancelled_keeps_calls_in_flight)
{
    struct weft_id id = batches_running(f, 200, "24h");
    struct weft_claimed held = batches_take(f);
    is_int(weft_engine_batch_cancel(f->a, "default", &id, &f->err), WEFT_OK, "it is cancelled");
    is_int(batches_look(f, &id).status, WEFT_BATCH_STATUS_CANCELLING, "it is cancelling");
    (void)run_pass(f, f->b, WEFT_SCANNER_CANCEL_BACKLOG);
    is_int(complete(f, f->a, &held, "{\"status\":200,\"body\":1}").err.rc, WEFT_OK,
           "the call in flight finishes");
    batches_finish(f, &id);
    struct weft_batch batch = batches_look(f, &id);
    is_int(batch.status, WEFT_BATCH_STATUS_CANCELLED, "it is cancelled");
    ok(batch.succeeded == 1 && batch.cancelled == 199 && batch.failed == 0, "and counts");
    batches_expect_files(f, &id, 200);
    is_int(weft_engine_batch_cancel(f->a, "default", &id, &f->err), WEFT_OK, "again: the same");
}

CASE(batch_cancelled_while_it_is_written)
{
    batches_model(f, "m");
    struct weft_id id = batches_create(f, batches_file(f, LINES), "24h", NULL);
    bool more;
    is_int(weft_engine_batch_step(f->a, &id, &more, &f->err), WEFT_OK, "a part");
    is_int(weft_engine_batch_cancel(f->a, "default", &id, &f->err), WEFT_OK, "it is cancelled");
    (void)batches_step(f, &id);
    (void)run_pass(f, f->b, WEFT_SCANNER_BATCH_PROGRESS);
    for (int i = 0; i < 10; i++) {
        (void)run_pass(f, f->b, WEFT_SCANNER_CANCEL_BACKLOG);
        (void)run_pass(f, f->a, WEFT_SCANNER_DEPENDENCY);
    }
    batches_finish(f, &id);
    is_int(batches_look(f, &id).status, WEFT_BATCH_STATUS_CANCELLED, "it is cancelled");
    batches_expect_files(f, &id, LINES);
}

CASE(batch_expires_with_its_window)
{
    struct weft_id id = batches_running(f, 150, "30s");
    is_int(batches_work(f, 50), 50, "some are done");
    forward_ms(f, 30000);
    (void)run_pass(f, f->a, WEFT_SCANNER_EXECUTION_DEADLINE);
    batches_finish(f, &id);
    struct weft_batch batch = batches_look(f, &id);
    is_int(batch.status, WEFT_BATCH_STATUS_EXPIRED, "it is expired");
    is_int(batch.expired, 100, "the others expired");
    batches_expect_files(f, &id, 150);
}

CASE(batch_of_a_bad_file_fails)
{
    struct weft_id file = batches_file(f, 150);
    struct weft_id id = batches_create(f, file, "24h", NULL);
    (void)batches_step(f, &id);
    struct weft_batch batch = batches_look(f, &id);
    is_int(batch.status, WEFT_BATCH_STATUS_FAILED, "a model that is not there fails the batch");
    ok(strstr(batch.flaws, "\"model_not_found\"") && strstr(batch.flaws, "\"line\":100}") &&
           !strstr(batch.flaws, "\"line\":101}"),
       "with the first hundred lines");
    batches_model(f, "*");
    is_int(weft_engine_file_remove(f->a, "default", &file, &f->err), WEFT_OK, "file deleted");
    const struct weft_batch_new args = {
        .ns = "default", .file = file, .endpoint = "/v1/x", .window = "24h"};
    expect_err(weft_engine_batch_create(f->a, &args, &id, &f->err) ? &f->err : NULL, WEFT_NOT_FOUND,
               "input_file_id", "a batch of a file that is not there");
    id = batches_create(f, batches_file(f, 0), "24h", NULL);
    (void)batches_step(f, &id);
    ok(strstr(batches_look(f, &id).flaws, "\"empty_file\""), "an empty file fails the batch");
    id = batches_create(f, batches_file(f, 3), "24h", NULL);
    (void)batches_step(f, &id);
    is_int(batches_look(f, &id).status, WEFT_BATCH_STATUS_IN_PROGRESS,
           "the default model takes the rest");
}

CASE(batch_key_gives_one_batch)
{
    struct weft_id file = batches_file(f, 3), id = batches_create(f, file, "24h", "k");
    struct weft_id again = batches_create(f, file, "24h", "k");
    ok(same_id(&id, &again), "the same key gives the same batch");
    struct weft_batch_new args = {
        .ns = "default", .file = file, .endpoint = "/v1/x", .window = "1h", .key = "k"};
    is_int(weft_engine_batch_create(f->b, &args, &again, &f->err), WEFT_CONFLICT,
           "another batch under the key is refused");
    static const char *const bad[] = {"", "24", "h", "0h", "-1h", "31d", "1 h", "24hh"};
    for (size_t i = 0; i < WEFT_LEN(bad); i++) {
        args.window = bad[i];
        is_int(weft_engine_batch_create(f->b, &args, &again, &f->err), WEFT_INVALID_VALUE,
               "'%s' is no window", bad[i]);
    }
    struct weft_batch_list list;
    const struct weft_batches_asking asking = {.ns = "default", .limit = 1};
    is_int(weft_engine_batches(f->a, &asking, f->arena, &list, &f->err), WEFT_OK, "list");
    ok(list.count == 1 && !list.more && same_id(&list.item[0].id, &id), "there is one batch");
}
