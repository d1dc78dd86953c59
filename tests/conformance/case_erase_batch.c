/* SPDX-License-Identifier: Apache-2.0 */

/* Erasure of batches and files: whose they are, what goes with them, what stays. */

#include "erasing.h"

#include "base/arena.h"
#include "base/buf.h"
#include "engine/batch/batch.h"
#include "engine/batch/files.h"
#include "engine/batch/models.h"
#include "weft/weft.h"

#include <string.h>

static void put_model(struct fixture *f)
{
    const struct weft_model model = {.name = "m", .endpoint = "openai", .lane = "gpt"};
    is_int(weft_engine_model_put(f->a, "default", &model, &f->err), WEFT_OK, "a model");
}

/* A file of so many lines about a person, one chunk each. */
static struct weft_id put_file(struct fixture *f, const char *who, int lines)
{
    struct weft_id id;
    struct weft_file_chunk chunk = {0};
    struct weft_buf text;
    bool good = !weft_engine_file_begin(f->a, "default", who, &id, &f->err);
    weft_buf_init(&text, SIZE_MAX);
    for (int i = 0; i < lines && good; i++) {
        weft_buf_printf(&text,
                        "{\"custom_id\":\"%s %d\",\"method\":\"POST\",\"url\":\"/v1/x\",\"body\":{"
                        "\"model\":\"m\",\"who\":\"%s\"}}\n",
                        who, i, who);
        chunk = (struct weft_file_chunk){
            .file = id, .at = chunk.at, .line = (uint64_t)i, .data = text.data, .size = text.size};
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

static struct weft_id create(struct fixture *f, struct weft_id file, const char *metadata)
{
    struct weft_id id = {0};
    const struct weft_batch_new args = {
        .ns = "default", .file = file, .endpoint = "/v1/x", .window = "24h", .metadata = metadata};
    is_int(weft_engine_batch_create(f->a, &args, &id, &f->err), WEFT_OK, "a batch of it");
    return id;
}

static void write_lines(struct fixture *f, const struct weft_id *id)
{
    bool more = true;
    while (more)
        if (weft_engine_batch_step(f->a, id, &more, &f->err))
            ok(more = false, "a step");
    (void)run_pass(f, f->a, WEFT_SCANNER_DEPENDENCY);
}

/* Claims calls and ends them; returns how many there were. */
static size_t work(struct fixture *f, uint32_t most)
{
    const struct weft_claim claim = {.worker = "w",
                                     .lanes = (const char *[]){"gpt"},
                                     .lane_count = 1,
                                     .kinds = (const char *[]){"http"},
                                     .kind_count = 1,
                                     .max = most};
    struct weft_claim_result got = claim_with(f, f->b, &claim);
    for (size_t i = 0; i < got.count; i++)
        (void)complete(f, f->b, &got.item[i], "{\"status\":200,\"body\":\"answer\"}");
    (void)run_pass(f, f->a, WEFT_SCANNER_DEPENDENCY);
    return got.count;
}

static enum weft_rc look_for_batch(struct fixture *f, const struct weft_id *id)
{
    struct weft_batch batch = {0};
    return weft_engine_batch(f->b, "default", id, f->arena, &batch, &f->err);
}

static enum weft_rc look_for_file(struct fixture *f, const struct weft_id *id)
{
    struct weft_file file = {0};
    struct weft_file_chunk chunk;
    enum weft_rc rc = weft_engine_file(f->b, "default", id, f->arena, &file, &f->err);
    bool bytes = !weft_engine_file_read(f->b, id, 0, f->arena, &chunk, &f->err);
    ok(bytes == (rc == WEFT_OK), "its bytes are there as it is");
    return rc;
}

CASE(erase_takes_batches_with_their_files)
{
    enum { LINES = 150 }; /* more chunks than one transaction removes */
    put_model(f);
    struct weft_id mine = put_file(f, CANARY, LINES), theirs = put_file(f, "other", 3);
    struct weft_id batch = create(f, mine, "{\"user\":\"42\",\"note\":\"x\"}");
    struct weft_id other = create(f, theirs, "{\"user\":\"421\"}");
    write_lines(f, &batch);
    write_lines(f, &other);
    is_int(work(f, 50), 50, "some lines are done, the others wait");
    struct weft_erasure order =
        erase_ask(f, &(struct weft_erasure_spec){.tag = "user:42", .reason = "asked"});
    struct weft_erasure receipt = erase_to_the_end(f, &order.id);
    is_int(look_for_batch(f, &batch), WEFT_NOT_FOUND, "the batch is gone");
    is_int(look_for_file(f, &mine), WEFT_NOT_FOUND, "so is its file");
    is_int(erase_counted(&receipt, "batch"), 1, "the receipt counts the batch");
    is_int(erase_counted(&receipt, "flows"), 1, "its flow");
    is_int(erase_counted(&receipt, "file"), 1, "its file");
    is_int(erase_counted(&receipt, "file_chunk"), LINES, "each chunk of it");
    is_int(erase_counted(&receipt, "shared_file"), 0, "and no file that stays");
    is_int(look_for_batch(f, &other), WEFT_OK, "the batch of another is there");
    is_int(look_for_file(f, &theirs), WEFT_OK, "with its file");
    while (work(f, 100) > 0)
        ;
    struct weft_batch done = {0};
    bool more;
    is_int(weft_engine_batch_step(f->a, &other, &more, &f->err), WEFT_OK, "a step");
    is_int(weft_engine_batch(f->b, "default", &other, f->arena, &done, &f->err), WEFT_OK, "look");
    is_int(done.succeeded, 3, "and comes to its end");
    is_int((int64_t)erase_verify(f, &order.id).remains, 0, "nothing remains");
    run_sql_of(f,
               "UPDATE weft.batch SET metadata = '{\"a\":\"b\",\"user\":\"42\"}', created = 0 "
               "WHERE deleted IS NULL",
               "UPDATE batch SET metadata = '{\"a\":\"b\",\"user\":\"42\"}', created = 0 "
               "WHERE deleted IS NULL");
    is_int((int64_t)erase_verify(f, &order.id).remains, 1, "a batch that is put back is found");
}

CASE(erase_of_a_tenant_takes_batches_that_name_it)
{
    put_model(f);
    struct weft_id batch = create(f, put_file(f, CANARY, 2), "{\"tenant\":\"" CANARY "\"}");
    struct weft_id other = create(f, put_file(f, "x", 2), "{\"customer\":\"" CANARY "\"}");
    struct weft_erasure order =
        erase_ask(f, &(struct weft_erasure_spec){.tenant = CANARY, .reason = "asked"});
    forward_ms(f, 1);
    struct weft_id later = create(f, put_file(f, CANARY, 2), "{\"tenant\":\"" CANARY "\"}");
    struct weft_erasure receipt = erase_to_the_end(f, &order.id);
    is_int(look_for_batch(f, &batch), WEFT_NOT_FOUND, "a batch whose metadata names it is gone");
    is_int(look_for_batch(f, &other), WEFT_OK, "one with another pair is there");
    is_int(look_for_batch(f, &later), WEFT_OK, "so is one that came after the request");
    is_int(erase_counted(&receipt, "batch"), 1, "one is counted");
    is_int((int64_t)erase_verify(f, &order.id).remains, 0, "nothing remains");
    run_sql_of(f, "UPDATE weft.batch SET created = 0", "UPDATE batch SET created = 0");
    is_int((int64_t)erase_verify(f, &order.id).remains, 1, "a batch that is put back is found");
}

/* The other one needs the file to write its lines. */
CASE(erase_leaves_a_file_that_others_read)
{
    put_model(f);
    struct weft_id file = put_file(f, "both", 4);
    struct weft_id batch = create(f, file, "{\"user\":\"42\"}"), second;
    struct weft_id other = create(f, file, NULL);
    second = create(f, file, "{\"user\":\"42\"}");
    struct weft_erasure order =
        erase_ask(f, &(struct weft_erasure_spec){.tag = "user:42", .reason = "asked"});
    struct weft_erasure receipt = erase_to_the_end(f, &order.id);
    is_int(look_for_batch(f, &batch), WEFT_NOT_FOUND, "the batch is gone");
    is_int(look_for_batch(f, &second), WEFT_NOT_FOUND, "so is the other one of the subject");
    is_int(look_for_file(f, &file), WEFT_OK, "their file stays");
    is_int(erase_counted(&receipt, "file"), 0, "no file is counted as removed");
    is_int(erase_counted(&receipt, "shared_file"), 2, "and that it stays is, for each of them");
    ok(strstr(receipt.unreached, "files that batches of others read") != NULL,
       "the receipt says that such files stay");
    write_lines(f, &other);
    is_int(work(f, 100), 4, "the other batch runs");
}

/* Its flow is staged: no reader sees it, and no cancel reaches it. */
CASE(erase_takes_a_batch_that_is_being_written)
{
    put_model(f);
    struct weft_id file = put_file(f, CANARY, 1500);
    struct weft_id batch = create(f, file, "{\"user\":\"42\"}");
    bool more;
    is_int(weft_engine_batch_step(f->a, &batch, &more, &f->err), WEFT_OK, "a part is written");
    struct weft_erasure order =
        erase_ask(f, &(struct weft_erasure_spec){.tag = "user:42", .reason = "asked"});
    struct weft_erasure receipt = erase_to_the_end(f, &order.id);
    is_int(weft_engine_batch_step(f->a, &batch, &more, &f->err), WEFT_OK, "a step finds nothing");
    ok(!more, "and has nothing to do");
    is_int(erase_counted(&receipt, "flows"), 1, "its flow is counted");
    is_int(erase_counted(&receipt, "file_chunk"), 1500, "with the chunks of its file");
    is_int(count_rows(f, &(struct weft_filter){.lane = "gpt"}), 0, "no member is left");
}

/* A replica that dies between two transactions leaves the rest to another one. */
CASE(erase_of_a_file_goes_on_where_it_stopped)
{
    enum { LINES = 400 };
    put_model(f);
    struct weft_id file = put_file(f, CANARY, LINES);
    struct weft_id batch = create(f, file, "{\"user\":\"42\"}");
    write_lines(f, &batch);
    struct weft_erasure order =
        erase_ask(f, &(struct weft_erasure_spec){.tag = "user:42", .reason = "asked"});
    const struct weft_pass_config brief = {.most_us = 1}; /* one step each */
    struct weft_pass_report report = {.more = true};
    for (int i = 0; i < 200 && erase_read(f, &order.id).state == WEFT_ERASURE_RUNNING; i++) {
        struct weft_engine *engine = open_engine(f);
        is_int(weft_engine_pass(engine, WEFT_SCANNER_ERASURE, &brief, &report, &f->err), WEFT_OK,
               "a step");
        weft_engine_close(engine);
        (void)run_pass(f, f->a, WEFT_SCANNER_CANCEL_BACKLOG);
        (void)run_pass(f, f->a, WEFT_SCANNER_PURGE);
        forward_ms(f, 1000);
    }
    struct weft_erasure receipt = erase_read(f, &order.id);
    is_int(receipt.state, WEFT_ERASURE_DONE, "it is done");
    is_int(erase_counted(&receipt, "file_chunk"), LINES, "each chunk was removed once");
    is_int(erase_counted(&receipt, "file"), 1, "so was the file");
    is_int(erase_counted(&receipt, "batch"), 1, "and the batch");
    is_int(look_for_file(f, &file), WEFT_NOT_FOUND, "nothing of it is there");
}
