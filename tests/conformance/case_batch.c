/* SPDX-License-Identifier: Apache-2.0 */

/* Batches: their members are written in parts by any process, and their counts are exact. */

#include "conformance.h"

#include "base/arena.h"
#include "base/buf.h"
#include "engine/batch/batch.h"
#include "engine/batch/files.h"
#include "engine/batch/models.h"
#include "engine/flow/flow.h"
#include "engine/tx/tx.h"
#include "weft/weft.h"

#include <stdio.h>
#include <string.h>

enum { LINES = 2500 };

static void put_model(struct fixture *f, const char *name)
{
    const struct weft_model model = {.name = name, .endpoint = "openai", .lane = "gpt"};
    is_int(weft_engine_model_put(f->a, "default", &model, &f->err), WEFT_OK, "model %s is put",
           name);
}

/* A file of so many lines, in chunks of a hundred. */
static struct weft_id put_file(struct fixture *f, int lines)
{
    struct weft_id id;
    struct weft_file_chunk chunk = {0};
    struct weft_buf text;
    bool good = !weft_engine_file_begin(f->a, "default", "in", &id, &f->err);
    weft_buf_init(&text, SIZE_MAX);
    for (int i = 0; i < lines && good; i++) {
        weft_buf_printf(&text,
                        "{\"custom_id\":\"r %d\",\"method\":\"POST\",\"url\":\"/v1/x\",\"body\":{"
                        "\"model\":\"m\",\"n\":%d}}\n",
                        i, i);
        if (i % 100 != 99 && i + 1 < lines)
            continue;
        chunk = (struct weft_file_chunk){
            .file = id, .at = chunk.at, .data = text.data, .size = text.size};
        good = !weft_engine_file_put(f->a, &chunk, &f->err);
        chunk.at += text.size;
        weft_buf_clear(&text);
    }
    const struct weft_file file = {
        .id = id, .purpose = "batch", .requests = (uint64_t)lines, .flaws = ""};
    ok(good && !weft_engine_file_seal(f->a, &file, &f->err), "a file of %d lines", lines);
    weft_buf_done(&text);
    return id;
}

static struct weft_id create(struct fixture *f, struct weft_id file, const char *window,
                             const char *key)
{
    struct weft_id id = {0};
    const struct weft_batch_new args = {
        .ns = "default", .file = file, .endpoint = "/v1/x", .window = window, .key = key};
    is_int(weft_engine_batch_create(f->a, &args, &id, &f->err), WEFT_OK, "a batch: %s",
           f->err.text);
    return id;
}

static struct weft_batch look(struct fixture *f, const struct weft_id *id)
{
    struct weft_batch batch = {0};
    is_int(weft_engine_batch(f->b, "default", id, f->arena, &batch, &f->err), WEFT_OK, "look");
    return batch;
}

/* Steps by both processes in turn, until there is nothing to do. Returns how many there were. */
static int step(struct fixture *f, const struct weft_id *id)
{
    int steps = 0;
    bool more = true;
    while (more && steps < 100) {
        struct weft_engine *engine = steps++ % 2 ? f->b : f->a;
        is_int(weft_engine_batch_step(engine, id, &more, &f->err), WEFT_OK, "a step: %s",
               f->err.text);
    }
    return steps;
}

static struct weft_id running(struct fixture *f, int lines, const char *window)
{
    put_model(f, "m");
    struct weft_id id = create(f, put_file(f, lines), window, NULL);
    (void)step(f, &id);
    (void)run_pass(f, f->a, WEFT_SCANNER_DEPENDENCY);
    return id;
}

/* As the executor does: only who names the kind is given calls that weft makes itself. */
static struct weft_claim_result claim_calls(struct fixture *f, uint32_t most)
{
    const struct weft_claim ask = {.worker = "w",
                                   .lanes = (const char *[]){"gpt"},
                                   .lane_count = 1,
                                   .kinds = (const char *[]){"http"},
                                   .kind_count = 1,
                                   .max = most};
    return claim_with(f, f->b, &ask);
}

/* Claims up to so many calls and ends them; every tenth fails. Returns how many there were. */
static size_t work(struct fixture *f, uint32_t most)
{
    struct weft_claim_result got = claim_calls(f, most);
    for (size_t i = 0; i < got.count; i++) {
        const struct weft_claimed *item = &got.item[i];
        if (strcmp(item->node + strlen(item->node) - 1, "7") == 0)
            (void)fail_as(f, f->b, item,
                          &(struct weft_failure){.error_class = "http_400", .permanent = true});
        else
            (void)complete(f, f->b, item, "{\"status\":200,\"headers\":{},\"body\":{}}");
    }
    return got.count;
}

static void finish(struct fixture *f, const struct weft_id *id)
{
    (void)run_pass(f, f->a, WEFT_SCANNER_DEPENDENCY);
    (void)step(f, id);
}

/* All lines of one file, each in its place; returns how many. */
static size_t read_lines(struct fixture *f, const struct weft_id *id, bool good, bool *seen,
                         int total)
{
    struct weft_batch_page page = {.good = good, .members = 70};
    size_t lines = 0;
    int last = -1;
    do {
        is_int(weft_engine_batch_answers(f->a, id, &page, f->arena, &f->err), WEFT_OK, "a page");
        for (size_t i = 0; i < page.count; i++, lines++) {
            int number = -1;
            (void)sscanf(page.item[i].custom_id, "r %d", &number); /* NOLINT(cert-err34-c) */
            bool right = number > last && number < total && !seen[number];
            if (!right)
                ok(right, "line %s comes once, in the order of the file", page.item[i].custom_id);
            if (right)
                seen[number] = true;
            last = number;
        }
    } while (page.looked == page.members);
    return lines;
}

/* Every line is in exactly one of the two files, and the counts are those of the files. */
static void expect_files(struct fixture *f, const struct weft_id *id, int total)
{
    bool *seen = weft_new_array(f->arena, bool, total);
    struct weft_batch batch = look(f, id);
    size_t good = read_lines(f, id, true, seen, total), bad = read_lines(f, id, false, seen, total);
    is_int(good, batch.succeeded, "the output has a line for each that succeeded");
    is_int(bad, batch.failed + batch.expired + batch.cancelled, "the errors for each other");
    is_int(good + bad, total, "every line of the file has one");
}

/* The first batch keeps binaries out that would remove a flow which is written so slowly. */
CASE(batch_raises_the_oldest_binary)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    put_model(f, "m");
    (void)create(f, put_file(f, 1), "24h", NULL);
    weft_call_schema_read(&call, f->arena);
    is_int(weft_tx_once(f->b, WEFT_TX_READ, &call, f->arena, &rows, &f->err), WEFT_OK, "read");
    ok(rows.count == 1 && weft_out_schema_read(&rows)->oldest_binary >= 37, "37 at least");
}

CASE(batch_is_written_in_parts)
{
    put_model(f, "m");
    struct weft_id id = create(f, put_file(f, LINES), "24h", NULL);
    is_int(look(f, &id).status, WEFT_BATCH_STATUS_VALIDATING, "it is validating");
    bool more = false;
    is_int(weft_engine_batch_step(f->a, &id, &more, &f->err), WEFT_OK, "the first part");
    ok(more && look(f, &id).requests == 1000, "a thousand members are written");
    is_int(count_rows(f, &(struct weft_filter){.lane = "gpt", .state = WEFT_STATE_READY}), 0,
           "none may begin");
    forward_ms(f, 3600000);
    (void)run_pass(f, f->a, WEFT_SCANNER_CANCEL_BACKLOG);
    struct weft_pass_report pass = run_pass(f, f->b, WEFT_SCANNER_BATCH_PROGRESS);
    ok(pass.handled == 1 && pass.more, "another process goes on after an hour");
    (void)step(f, &id);
    struct weft_batch batch = look(f, &id);
    is_int(batch.status, WEFT_BATCH_STATUS_IN_PROGRESS, "it is in progress");
    is_int(batch.requests, LINES, "each line is a member, once");
    (void)run_pass(f, f->a, WEFT_SCANNER_DEPENDENCY);
    is_int(work(f, 10), 10, "they run");
}

CASE(batch_counts_are_those_of_its_files)
{
    struct weft_id id = running(f, 300, "24h");
    is_int(work(f, 100), 100, "a hundred calls");
    bool seen[300] = {0};
    is_int(read_lines(f, &id, true, seen, 300), 90, "the output is read while it runs");
    while (work(f, 1000) > 0)
        ;
    is_int(look(f, &id).failed, 30, "thirty failed");
    finish(f, &id);
    struct weft_batch batch = look(f, &id);
    is_int(batch.status, WEFT_BATCH_STATUS_COMPLETED, "it is completed");
    is_int(batch.succeeded, 270, "the others succeeded");
    expect_files(f, &id, 300);
    is_int(step(f, &id), 1, "a step changes nothing");
    is_int(weft_engine_batch_cancel(f->a, "default", &id, &f->err), WEFT_NOT_LIVE,
           "it cannot be cancelled");
}

CASE(batch_that_is_cancelled_keeps_calls_in_flight)
{
    struct weft_id id = running(f, 200, "24h");
    struct weft_claim_result held = claim_calls(f, 1);
    if (!is_int(held.count, 1, "a call is in flight"))
        return;
    is_int(weft_engine_batch_cancel(f->a, "default", &id, &f->err), WEFT_OK, "it is cancelled");
    is_int(look(f, &id).status, WEFT_BATCH_STATUS_CANCELLING, "it is cancelling");
    (void)run_pass(f, f->b, WEFT_SCANNER_CANCEL_BACKLOG);
    is_int(complete(f, f->a, held.item, "{\"status\":200,\"body\":1}").err.rc, WEFT_OK,
           "the call in flight finishes");
    finish(f, &id);
    struct weft_batch batch = look(f, &id);
    is_int(batch.status, WEFT_BATCH_STATUS_CANCELLED, "it is cancelled");
    ok(batch.succeeded == 1 && batch.cancelled == 199 && batch.failed == 0, "and counts");
    expect_files(f, &id, 200);
    is_int(weft_engine_batch_cancel(f->a, "default", &id, &f->err), WEFT_OK, "again: the same");
}

CASE(batch_cancelled_while_it_is_written)
{
    put_model(f, "m");
    struct weft_id id = create(f, put_file(f, LINES), "24h", NULL);
    bool more;
    is_int(weft_engine_batch_step(f->a, &id, &more, &f->err), WEFT_OK, "a part");
    is_int(weft_engine_batch_cancel(f->a, "default", &id, &f->err), WEFT_OK, "it is cancelled");
    (void)step(f, &id);
    (void)run_pass(f, f->b, WEFT_SCANNER_BATCH_PROGRESS);
    for (int i = 0; i < 10; i++) {
        (void)run_pass(f, f->b, WEFT_SCANNER_CANCEL_BACKLOG);
        (void)run_pass(f, f->a, WEFT_SCANNER_DEPENDENCY);
    }
    finish(f, &id);
    is_int(look(f, &id).status, WEFT_BATCH_STATUS_CANCELLED, "it is cancelled");
    expect_files(f, &id, LINES);
}

CASE(batch_expires_with_its_window)
{
    struct weft_id id = running(f, 150, "30s");
    is_int(work(f, 50), 50, "some are done");
    forward_ms(f, 30000);
    (void)run_pass(f, f->a, WEFT_SCANNER_EXECUTION_DEADLINE);
    finish(f, &id);
    struct weft_batch batch = look(f, &id);
    is_int(batch.status, WEFT_BATCH_STATUS_EXPIRED, "it is expired");
    is_int(batch.expired, 100, "the others expired");
    expect_files(f, &id, 150);
}

CASE(batch_of_a_bad_file_fails)
{
    struct weft_id file = put_file(f, 150);
    struct weft_id id = create(f, file, "24h", NULL);
    (void)step(f, &id);
    struct weft_batch batch = look(f, &id);
    is_int(batch.status, WEFT_BATCH_STATUS_FAILED, "a model that is not there fails the batch");
    ok(strstr(batch.flaws, "\"model_not_found\"") && strstr(batch.flaws, "\"line\":100}") &&
           !strstr(batch.flaws, "\"line\":101}"),
       "with the first hundred lines");
    put_model(f, "*");
    is_int(weft_engine_file_remove(f->a, "default", &file, &f->err), WEFT_OK, "file deleted");
    const struct weft_batch_new args = {
        .ns = "default", .file = file, .endpoint = "/v1/x", .window = "24h"};
    expect_err(weft_engine_batch_create(f->a, &args, &id, &f->err) ? &f->err : NULL, WEFT_NOT_FOUND,
               "input_file_id", "a batch of a file that is not there");
    id = create(f, put_file(f, 0), "24h", NULL);
    (void)step(f, &id);
    ok(strstr(look(f, &id).flaws, "\"empty_file\""), "an empty file fails the batch");
    id = create(f, put_file(f, 3), "24h", NULL);
    (void)step(f, &id);
    is_int(look(f, &id).status, WEFT_BATCH_STATUS_IN_PROGRESS, "the default model takes the rest");
}

CASE(batch_key_gives_one_batch)
{
    struct weft_id file = put_file(f, 3), id = create(f, file, "24h", "k");
    struct weft_id again = create(f, file, "24h", "k");
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
