/* SPDX-License-Identifier: Apache-2.0 */

/* Retries of batches and of single lines, deletes, and what readers see of a batch meanwhile. */

#include "batches.h"
#include "conformance.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/batch/batch_view.h"
#include "engine/tx/tx.h"
#include "weft/weft.h"

#include <string.h>

static struct weft_batch_asking asking_of(const struct weft_id *id)
{
    return (struct weft_batch_asking){.ns = "default", .id = *id};
}

static struct weft_batch_info info_of(struct fixture *f, const struct weft_id *id)
{
    struct weft_batch_info info = {0};
    const struct weft_batch_asking asking = asking_of(id);
    is_int(weft_engine_batch_info(f->b, &asking, f->arena, &info, &f->err), WEFT_OK, "info: %s",
           f->err.text);
    return info;
}

static struct weft_batch_retried retry(struct fixture *f, const struct weft_id *id)
{
    struct weft_batch_retried retried = {0};
    const struct weft_batch_asking asking = asking_of(id);
    is_int(weft_engine_batch_retry(f->a, &asking, f->arena, &retried, &f->err), WEFT_OK,
           "retry: %s", f->err.text);
    return retried;
}

static size_t lines_of(struct fixture *f, const struct weft_id *id, bool good, int total)
{
    bool *seen = weft_new_array(f->arena, bool, (size_t)total);
    return batches_lines(f, id, good, seen, total);
}

/* Claims all and completes it. */
static size_t succeed_all(struct fixture *f)
{
    const struct weft_claim ask = {.worker = "w",
                                   .lanes = (const char *[]){"gpt"},
                                   .lane_count = 1,
                                   .kinds = (const char *[]){"http"},
                                   .kind_count = 1,
                                   .max = 1000};
    size_t done = 0;
    for (;;) {
        struct weft_claim_result got = claim_with(f, f->b, &ask);
        for (size_t i = 0; i < got.count; i++)
            (void)complete(f, f->b, &got.item[i], "{\"status\":200,\"headers\":{},\"body\":{}}");
        done += got.count;
        if (got.count == 0)
            return done;
    }
}

static void cancel(struct fixture *f, const struct weft_id *id)
{
    is_int(weft_engine_batch_cancel(f->a, "default", id, &f->err), WEFT_OK, "cancel");
    for (int i = 0; i < 5; i++) {
        (void)run_pass(f, f->b, WEFT_SCANNER_CANCEL_BACKLOG);
        (void)run_pass(f, f->a, WEFT_SCANNER_DEPENDENCY);
    }
    batches_finish(f, id);
}

CASE(batch_retry_runs_bad_lines_again)
{
    struct weft_id id = batches_running(f, 300, "30s");
    is_int(batches_work(f, 100), 100, "a hundred calls, of which ten fail");
    forward_ms(f, 30000);
    (void)run_pass(f, f->a, WEFT_SCANNER_EXECUTION_DEADLINE);
    batches_finish(f, &id);
    struct weft_batch_info before = info_of(f, &id);
    is_int(before.status, WEFT_BATCH_STATUS_EXPIRED, "it is expired");
    is_int(lines_of(f, &id, false, 300), 210, "210 lines are in the errors");
    forward_ms(f, 5000);
    struct weft_batch_retried retried = retry(f, &id);
    ok(retried.retried == 210 && !retried.more, "all of them run again");
    is_int(retried.expires_us, f->now_us + 30 * WEFT_SECOND, "the window starts again");
    struct weft_batch_info now = info_of(f, &id);
    is_int(now.status, WEFT_BATCH_STATUS_IN_PROGRESS, "it is in progress");
    ok(now.succeeded == 90 && now.failed + now.expired == 0, "the counts are those of its lines");
    ok(now.finished_us == 0 && now.retried_us == f->now_us, "it has not finished");
    is_int(lines_of(f, &id, false, 300), 0, "they have left the errors");
    is_int(lines_of(f, &id, true, 300), 90, "the output stays");
    is_int(succeed_all(f), 210, "they are claimed again");
    forward_ms(f, 1000);
    batches_finish(f, &id);
    now = info_of(f, &id);
    is_int(now.status, WEFT_BATCH_STATUS_COMPLETED, "it is completed");
    is_int(now.succeeded, 300, "all lines have succeeded");
    ok(now.finished_us > before.finished_us && !now.error_file, "it finished later, no errors");
    batches_expect_files(f, &id, 300);
    is_int(retry(f, &id).retried, 0, "there is nothing left to retry");
    is_int(info_of(f, &id).status, WEFT_BATCH_STATUS_COMPLETED, "and it is as it was");
}

CASE(batch_retry_has_a_window_of_its_own)
{
    struct weft_id id = batches_running(f, 20, "30s");
    forward_ms(f, 30000);
    (void)run_pass(f, f->a, WEFT_SCANNER_EXECUTION_DEADLINE);
    batches_finish(f, &id);
    is_int(retry(f, &id).retried, 20, "twenty lines");
    forward_ms(f, 29000);
    (void)run_pass(f, f->a, WEFT_SCANNER_EXECUTION_DEADLINE);
    is_int(info_of(f, &id).expired, 0, "none expires before the new window ends");
    forward_ms(f, 1000);
    (void)run_pass(f, f->a, WEFT_SCANNER_EXECUTION_DEADLINE);
    batches_finish(f, &id);
    is_int(batches_look(f, &id).status, WEFT_BATCH_STATUS_EXPIRED, "then they do");
    batches_expect_files(f, &id, 20);
}

CASE(batch_retry_of_a_cancelled_batch)
{
    struct weft_id id = batches_running(f, 50, "24h");
    is_int(batches_work(f, 20), 20, "twenty calls");
    cancel(f, &id);
    is_int(batches_look(f, &id).status, WEFT_BATCH_STATUS_CANCELLED, "it is cancelled");
    is_int(retry(f, &id).retried, 32, "thirty that did not begin, two that failed");
    struct weft_batch_info info = info_of(f, &id);
    ok(info.status == WEFT_BATCH_STATUS_IN_PROGRESS && info.cancelling_us == 0,
       "nothing is left of the cancel");
    is_int(batches_work(f, 10), 10, "ten calls");
    cancel(f, &id);
    is_int(batches_look(f, &id).status, WEFT_BATCH_STATUS_CANCELLED, "it is cancelled again");
    batches_expect_files(f, &id, 50);
    (void)retry(f, &id);
    (void)succeed_all(f);
    batches_finish(f, &id);
    is_int(batches_look(f, &id).status, WEFT_BATCH_STATUS_COMPLETED, "at last it is completed");
    batches_expect_files(f, &id, 50);
}

CASE(batch_retry_of_one_that_runs)
{
    struct weft_id id = batches_running(f, 100, "24h");
    is_int(batches_work(f, 40), 40, "forty calls, of which four fail");
    weft_usec expires_us = batches_look(f, &id).expires_us;
    forward_ms(f, 1000);
    struct weft_batch_retried retried = retry(f, &id);
    ok(retried.retried == 4 && retried.expires_us == expires_us, "four, in the same window");
    is_int(succeed_all(f), 64, "with the others");
    batches_finish(f, &id);
    is_int(batches_look(f, &id).succeeded, 100, "all have succeeded");
    batches_expect_files(f, &id, 100);
}

/* The process that was asked died as soon as the mark was stored. */
CASE(batch_retry_goes_on_after_a_crash)
{
    enum { MANY = 2300 };
    struct weft_id id = batches_running(f, MANY, "24h");
    cancel(f, &id);
    is_int(batches_look(f, &id).cancelled, MANY, "all of it is cancelled");
    forward_ms(f, 1000);
    run_sql_of(f,
               "UPDATE weft.batch SET phase = 1, frozen = NULL, finished = NULL, wanted = NULL, "
               "retry = 9000000000000000",
               "UPDATE batch SET phase = 1, frozen = NULL, finished = NULL, wanted = NULL, "
               "retry = 9000000000000000");
    is_int(batches_look(f, &id).status, WEFT_BATCH_STATUS_IN_PROGRESS, "it is in progress");
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_BATCH_PROGRESS);
    ok(report.more, "there is more to bring back");
    is_int(count_rows(f, &(struct weft_filter){.lane = "gpt", .state = WEFT_STATE_READY}), 1000,
           "a thousand lines are back");
    while (batches_work(f, 1000) > 0)
        ;
    (void)run_pass(f, f->a, WEFT_SCANNER_DEPENDENCY);
    is_int(batches_look(f, &id).status, WEFT_BATCH_STATUS_IN_PROGRESS,
           "although these have ended, it has not");
    (void)batches_step(f, &id);
    while (batches_work(f, 1000) > 0)
        ;
    batches_finish(f, &id);
    struct weft_batch batch = batches_look(f, &id);
    is_int(batch.status, WEFT_BATCH_STATUS_COMPLETED, "it is completed");
    is_int(batch.succeeded + batch.failed, MANY, "every line ran again");
    batches_expect_files(f, &id, MANY);
}

CASE(batch_retry_refused)
{
    struct weft_batch_retried retried;
    batches_model(f, "m");
    struct weft_id id = batches_create(f, batches_file(f, 3), "24h", NULL);
    struct weft_batch_asking asking = asking_of(&id);
    is_int(weft_engine_batch_retry(f->a, &asking, f->arena, &retried, &f->err), WEFT_NOT_LIVE,
           "one that is validating");
    ok(strstr(f->err.text, "validating") && f->err.hint, "the error says what to do");
    (void)batches_step(f, &id);
    (void)run_pass(f, f->a, WEFT_SCANNER_DEPENDENCY);
    struct weft_claimed held = batches_take(f);
    is_int(weft_engine_batch_cancel(f->a, "default", &id, &f->err), WEFT_OK, "cancel");
    is_int(weft_engine_batch_retry(f->a, &asking, f->arena, &retried, &f->err), WEFT_NOT_LIVE,
           "one that is being cancelled");
    (void)complete(f, f->a, &held, "1");
    id = batches_create(f, batches_file(f, 0), "24h", NULL);
    (void)batches_step(f, &id);
    asking = asking_of(&id);
    is_int(weft_engine_batch_retry(f->a, &asking, f->arena, &retried, &f->err), WEFT_NOT_LIVE,
           "one whose file cannot be used");
    asking.id.byte[15] ^= 1;
    is_int(weft_engine_batch_retry(f->a, &asking, f->arena, &retried, &f->err), WEFT_NOT_FOUND,
           "one that is not there");
}

/* A replay of one line, as `weft replay` does it, makes the counts ones that are not final. */
CASE(batch_counts_after_the_replay_of_a_line)
{
    struct weft_id id = batches_running(f, 30, "24h");
    while (batches_work(f, 1000) > 0)
        ;
    batches_finish(f, &id);
    is_int(batches_look(f, &id).failed, 3, "three lines failed");
    struct weft_batch_page page = {.members = 100};
    is_int(weft_engine_batch_answers(f->a, &id, &page, f->arena, &f->err), WEFT_OK, "the errors");
    is_int(page.count, 3, "three lines");
    const struct weft_steer again = {.id = page.item[0].id};
    ok(steer(f, WEFT_STEER_REPLAY, &again).changed, "one is replayed");
    struct weft_batch batch = batches_look(f, &id);
    is_int(batch.status, WEFT_BATCH_STATUS_IN_PROGRESS, "the batch is in progress");
    ok(batch.failed == 2 && batch.finished_us == 0, "and counts what is now");
    is_int(succeed_all(f), 1, "the line runs");
    batches_finish(f, &id);
    batch = batches_look(f, &id);
    ok(batch.status == WEFT_BATCH_STATUS_COMPLETED && batch.succeeded == 28 && batch.failed == 2,
       "the final counts are new ones");
    batches_expect_files(f, &id, 30);
}

CASE(batch_detail_by_model)
{
    batches_model(f, "m");
    batches_model(f, "*");
    struct weft_id id = batches_create(f, batches_file_of(f, 100, "other"), "24h", NULL);
    (void)batches_step(f, &id);
    (void)run_pass(f, f->a, WEFT_SCANNER_DEPENDENCY);
    is_int(batches_work(f, 40), 40, "forty calls");
    forward_ms(f, 61000);
    is_int(batches_work(f, 20), 20, "twenty calls a minute later");
    forward_ms(f, 1000);
    (void)batches_take(f);
    struct weft_batch_info info = info_of(f, &id);
    is_int(info.model_count, 2, "two models");
    ok(strcmp(info.model[0].model, "m") == 0 && strcmp(info.model[1].model, "other") == 0,
       "in the order of the file");
    ok(info.model[0].total == 50 && info.model[1].total == 50, "with their lines");
    is_int(info.model[0].succeeded + info.model[1].succeeded, info.succeeded, "and their counts");
    is_int(info.model[1].failed, 6, "lines that end with 7 are of the other model");
    is_int(info.model[0].running, 1, "one call is under way");
    is_int(info.ended_last_minute, 20, "twenty lines ended in the last minute");
    is_int(info.estimated_end_us, f->now_us + 120 * WEFT_SECOND, "forty more take two minutes");
    struct weft_batch_infos infos;
    struct weft_batch_listing listing = {.ns = "default", .by_status = true};
    listing.status = WEFT_BATCH_STATUS_IN_PROGRESS;
    is_int(weft_engine_batch_infos(f->a, &listing, f->arena, &infos, &f->err), WEFT_OK, "list");
    ok(infos.count == 1 && !infos.item[0].detailed && same_id(&infos.item[0].id, &id),
       "it is listed by its status");
    listing.status = WEFT_BATCH_STATUS_COMPLETED;
    is_int(weft_engine_batch_infos(f->a, &listing, f->arena, &infos, &f->err), WEFT_OK, "list");
    is_int(infos.count, 0, "and not by another");
}

static void delete_batch(struct fixture *f, const struct weft_id *id, enum weft_batch_status status)
{
    struct weft_batch batch;
    struct weft_batch_removed removed;
    const struct weft_batch_asking asking = asking_of(id);
    is_int(weft_engine_batch_delete(f->a, &asking, f->arena, &removed, &f->err), WEFT_OK, "delete");
    is_int(removed.status, status, "with the status that it had");
    is_int(weft_engine_batch(f->b, "default", id, f->arena, &batch, &f->err), WEFT_NOT_FOUND,
           "it is seen no more");
    is_int(weft_engine_batch_delete(f->b, &asking, f->arena, &removed, &f->err), WEFT_NOT_FOUND,
           "again: there is none");
}

/* Runs the scanners that end and remove what was deleted. */
static void remove_all(struct fixture *f)
{
    for (int i = 0; i < 8; i++) {
        (void)run_pass(f, f->b, WEFT_SCANNER_CANCEL_BACKLOG);
        (void)run_pass(f, f->a, WEFT_SCANNER_DEPENDENCY);
        (void)run_pass(f, f->b, WEFT_SCANNER_PURGE);
    }
}

static int64_t batch_rows(struct fixture *f, const struct weft_id *id)
{
    struct weft_call call;
    struct weft_rows rows = {0}, models = {0};
    *weft_call_batches_removing(&call, f->arena) =
        (struct weft_batches_removing_in){.scope = {.batch = 100, .last = 255}};
    is_int(weft_tx_once(f->b, WEFT_TX_READ, &call, f->arena, &rows, &f->err), WEFT_OK, "read");
    weft_call_batch_models_read(&call, f->arena)->batch = *id;
    is_int(weft_tx_once(f->b, WEFT_TX_READ, &call, f->arena, &models, &f->err), WEFT_OK, "read");
    return (int64_t)(rows.count + models.count);
}

CASE(batch_deleted_while_it_runs)
{
    struct weft_id other = batches_running(f, 3, "24h");
    is_int(batches_work(f, 10), 3, "another batch is done");
    struct weft_id id = batches_running(f, 1500, "24h");
    struct weft_claimed held = batches_take(f);
    delete_batch(f, &id, WEFT_BATCH_STATUS_IN_PROGRESS);
    for (int i = 0; i < 5; i++) {
        (void)run_pass(f, f->b, WEFT_SCANNER_CANCEL_BACKLOG);
        (void)run_pass(f, f->a, WEFT_SCANNER_DEPENDENCY);
    }
    is_int(batches_work(f, 10), 0, "no line begins any more");
    expect_fenced(f, &held, WEFT_FENCE_CANCELLED);
    ok(batch_rows(f, &id) > 0, "its rows are there");
    remove_all(f);
    is_int(batch_rows(f, &id), 0, "they are purged");
    is_int(count_rows(f, &(struct weft_filter){.lane = "gpt"}), 3, "with all lines but the others");
    batches_finish(f, &other);
    batches_expect_files(f, &other, 3);
}

CASE(batch_deleted_while_it_is_written)
{
    bool more = false;
    batches_model(f, "m");
    struct weft_id id = batches_create(f, batches_file(f, 1500), "24h", NULL);
    is_int(weft_engine_batch_step(f->a, &id, &more, &f->err), WEFT_OK, "a part");
    delete_batch(f, &id, WEFT_BATCH_STATUS_VALIDATING);
    is_int(batches_step(f, &id), 1, "no other part is written");
    forward_ms(f, 601000);
    remove_all(f);
    is_int(batch_rows(f, &id), 0, "what was written is purged");
    is_int(count_rows(f, &(struct weft_filter){.lane = "gpt"}), 0, "with its lines");
}

/* The process died between the two halves of a delete. */
CASE(batch_deleted_by_halves)
{
    struct weft_id id = batches_running(f, 30, "24h");
    run_sql_of(f, "UPDATE weft.batch SET deleted = 1", "UPDATE batch SET deleted = 1");
    (void)run_pass(f, f->b, WEFT_SCANNER_BATCH_PROGRESS);
    is_int(batches_work(f, 10), 0, "its lines are cancelled");
    remove_all(f);
    is_int(batch_rows(f, &id), 0, "and purged");
}

CASE(batch_goes_with_its_flow)
{
    struct weft_batch batch;
    struct weft_id id = batches_running(f, 5, "24h");
    struct weft_id failed = batches_create(f, batches_file(f, 0), "24h", NULL);
    while (batches_work(f, 1000) > 0)
        ;
    batches_finish(f, &id);
    (void)batches_step(f, &failed);
    forward_ms(f, (int64_t)8 * 86400 * 1000);
    (void)run_pass(f, f->a, WEFT_SCANNER_RETENTION);
    remove_all(f);
    is_int(weft_engine_batch(f->a, "default", &id, f->arena, &batch, &f->err), WEFT_NOT_FOUND,
           "the batch was kept as long as its lines");
    is_int(batches_look(f, &failed).status, WEFT_BATCH_STATUS_FAILED, "one that failed stays");
    forward_ms(f, (int64_t)23 * 86400 * 1000);
    remove_all(f);
    is_int(weft_engine_batch(f->a, "default", &failed, f->arena, &batch, &f->err), WEFT_NOT_FOUND,
           "for thirty days");
    is_int(batch_rows(f, &failed), 0, "nothing is left");
}
