/* SPDX-License-Identifier: Apache-2.0 */

#include "batches.h"

#include "base/arena.h"
#include "base/buf.h"
#include "engine/batch/files.h"
#include "engine/batch/models.h"

#include <stdio.h>
#include <string.h>

void batches_model(struct fixture *f, const char *name)
{
    const struct weft_model model = {.name = name, .endpoint = "openai", .lane = "gpt"};
    is_int(weft_engine_model_put(f->a, "default", &model, &f->err), WEFT_OK, "model %s is put",
           name);
}

/* A file of so many lines, in chunks of a hundred. */
struct weft_id batches_file_of(struct fixture *f, int lines, const char *other)
{
    struct weft_id id;
    struct weft_file_chunk chunk = {0};
    struct weft_buf text;
    bool good = !weft_engine_file_begin(f->a, "default", "in", &id, &f->err);
    weft_buf_init(&text, SIZE_MAX);
    for (int i = 0; i < lines && good; i++) {
        weft_buf_printf(&text,
                        "{\"custom_id\":\"r %d\",\"method\":\"POST\",\"url\":\"/v1/x\",\"body\":{"
                        "\"model\":\"%s\",\"n\":%d}}\n",
                        i, i % 2 ? other : "m", i);
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

struct weft_id batches_file(struct fixture *f, int lines)
{
    return batches_file_of(f, lines, "m");
}

struct weft_id batches_create(struct fixture *f, struct weft_id file, const char *window,
                              const char *key)
{
    struct weft_id id = {0};
    const struct weft_batch_new args = {
        .ns = "default", .file = file, .endpoint = "/v1/x", .window = window, .key = key};
    is_int(weft_engine_batch_create(f->a, &args, &id, &f->err), WEFT_OK, "a batch: %s",
           f->err.text);
    return id;
}

struct weft_batch batches_look(struct fixture *f, const struct weft_id *id)
{
    struct weft_batch batch = {0};
    is_int(weft_engine_batch(f->b, "default", id, f->arena, &batch, &f->err), WEFT_OK, "look");
    return batch;
}

/* Steps by both processes in turn, until there is nothing to do. Returns how many there were. */
int batches_step(struct fixture *f, const struct weft_id *id)
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

struct weft_id batches_running(struct fixture *f, int lines, const char *window)
{
    batches_model(f, "m");
    struct weft_id id = batches_create(f, batches_file(f, lines), window, NULL);
    (void)batches_step(f, &id);
    (void)run_pass(f, f->a, WEFT_SCANNER_DEPENDENCY);
    return id;
}

/* Claims up to so many calls and ends them; every tenth fails. Returns how many there were. */
size_t batches_work(struct fixture *f, uint32_t most)
{
    const struct weft_claim ask = {.worker = "w",
                                   .lanes = (const char *[]){"gpt"},
                                   .lane_count = 1,
                                   .kinds = (const char *[]){"http"},
                                   .kind_count = 1,
                                   .max = most};
    struct weft_claim_result got = claim_with(f, f->b, &ask);
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

struct weft_claimed batches_take(struct fixture *f)
{
    const struct weft_claim ask = {.worker = "w",
                                   .lanes = (const char *[]){"gpt"},
                                   .lane_count = 1,
                                   .kinds = (const char *[]){"http"},
                                   .kind_count = 1,
                                   .max = 1};
    struct weft_claim_result got = claim_with(f, f->b, &ask);
    is_int(got.count, 1, "a line is claimed");
    return got.count ? got.item[0] : (struct weft_claimed){.epoch = 1};
}

void batches_finish(struct fixture *f, const struct weft_id *id)
{
    (void)run_pass(f, f->a, WEFT_SCANNER_DEPENDENCY);
    (void)batches_step(f, id);
}

/* All lines of one file, each in its place; returns how many. */
size_t batches_lines(struct fixture *f, const struct weft_id *id, bool good, bool *seen, int total)
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
void batches_expect_files(struct fixture *f, const struct weft_id *id, int total)
{
    bool *seen = weft_new_array(f->arena, bool, total);
    struct weft_batch batch = batches_look(f, id);
    size_t good = batches_lines(f, id, true, seen, total),
           bad = batches_lines(f, id, false, seen, total);
    is_int(good, batch.succeeded, "the output has a line for each that succeeded");
    is_int(bad, batch.failed + batch.expired + batch.cancelled, "the errors for each other");
    is_int(good + bad, total, "every line of the file has one");
}
