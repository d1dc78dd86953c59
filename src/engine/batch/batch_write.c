/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writing the members of a batch. A part is some lines of the file: they are read, checked and
 * written in one transaction with the position behind them, if the batch still stands where they
 * begin. So parts may be tried by several processes, and each line becomes one member. The flow is
 * staged meanwhile: no reader sees it, and no member begins before all of the file was found good.
 */

#include "engine/batch/batch.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/id.h"
#include "core/batch_line.h"
#include "core/batch_payload.h"
#include "core/spec.h"
#include "engine/batch/files.h"
#include "engine/batch/models.h"
#include "engine/engine_state.h"
#include "engine/flow/draft.h"

#include <stdio.h>
#include <string.h>

enum {
    PART_REQUESTS = 1000,
    PART_BYTES = 4 << 20,
};

/* A part of the file, from `batch` on. */
struct part {
    struct weft_engine *engine;
    const struct weft_batch *batch;
    struct weft_arena *arena;
    uint64_t at, line; /* how far it was read */
    struct weft_node *node;
    const char **named; /* the model that each of these lines names */
    size_t count, bytes;
    bool whole; /* the file ends here */
    struct weft_batch_flaws flaws;
    bool flawed;            /* a line cannot be used: the rest is only checked */
    const char *model_name; /* the one that was looked up last */
    const struct weft_model *model;
};

/* ---- Reading --------------------------------------------------------------------------------- */

static void add_flaw(struct part *part, const char *code, const char *param, const char *message)
{
    struct weft_batch_flaw flaw = {.code = code, .param = param};
    (void)snprintf(flaw.message, sizeof(flaw.message), "%s", message);
    weft_batch_flaws_add(&part->flaws, &flaw, part->line);
    part->flawed = true;
}

static enum weft_rc find_model(struct part *part, const char *name, struct weft_err *err)
{
    if (part->model_name && strcmp(part->model_name, name) == 0)
        return WEFT_OK;
    part->model_name = weft_arena_strdup(part->arena, name);
    return weft_model_find(part->engine, part->batch->ns_id, name, part->arena, &part->model, err);
}

static enum weft_rc take_line(struct part *part, const char *text, size_t size,
                              struct weft_err *err)
{
    struct weft_batch_line line;
    struct weft_batch_flaw flaw;
    part->line++;
    if (weft_batch_line_blank(text, size))
        return WEFT_OK;
    if (!weft_batch_line_read(text, size, part->arena, &line, &flaw)) {
        add_flaw(part, flaw.code, flaw.param, flaw.message);
        return WEFT_OK;
    }
    enum weft_rc rc = find_model(part, line.model, err);
    if (rc)
        return rc;
    if (strcmp(line.url, part->batch->endpoint) != 0)
        add_flaw(part, "mismatched_url", "url", "The url is not the endpoint of the batch.");
    else if (!part->model)
        add_flaw(part, "model_not_found", "body.model",
                 "There is no model of this name, and no default model.");
    if (part->flawed)
        return WEFT_OK;
    part->named[part->count] = part->model_name;
    struct weft_node *node = &part->node[part->count++];
    *node = (struct weft_node){.name = line.custom_id};
    node->spec = (struct weft_spec){
        .kind = "http", .lane = part->model->lane, .deadline_us = part->batch->expires_us};
    node->spec.payload =
        weft_batch_payload(part->model->endpoint, &line, part->arena, &node->spec.payload_size);
    part->bytes += node->spec.payload_size;
    return WEFT_OK;
}

static bool is_full(const struct part *part)
{
    return part->count == PART_REQUESTS || part->bytes >= PART_BYTES;
}

/* Takes lines of the chunk at the position of the part, as far as they fit. */
static enum weft_rc take_chunk(struct part *part, uint64_t size, struct weft_err *err)
{
    struct weft_file_chunk chunk;
    enum weft_rc rc =
        weft_engine_file_read(part->engine, &part->batch->file, part->at, part->arena, &chunk, err);
    if (rc)
        return rc;
    const char *data = chunk.data;
    size_t at = part->at - chunk.at;
    while (!rc && at < chunk.size && !is_full(part)) {
        const char *end = memchr(data + at, '\n', chunk.size - at);
        size_t line = end ? (size_t)(end - data) - at : chunk.size - at;
        rc = take_line(part, data + at, line, err);
        at += line + (end != NULL);
    }
    part->at = chunk.at + at;
    part->whole = part->at >= size;
    return rc;
}

/* ---- Writing --------------------------------------------------------------------------------- */

struct writing {
    const struct part *part;
    struct weft_draft draft;
    bool lost; /* another process was faster, or the batch is not written any more */
};

static enum weft_rc resolve(struct writing *writing, struct weft_err *err)
{
    const struct part *part = writing->part;
    const struct weft_batch *batch = part->batch;
    struct weft_draft *draft = &writing->draft;
    enum weft_rc rc = WEFT_OK;
    *draft = (struct weft_draft){.node = part->node,
                                 .count = part->count,
                                 .ns = batch->ns,
                                 .flow = batch->id,
                                 .hidden = true};
    draft->graph.first = weft_new_array(part->arena, uint32_t, part->count + 1);
    draft->member = weft_new_array(part->arena, struct weft_submission, part->count + 1);
    /* By the time of the batch: a window that has passed meanwhile ends its members like others. */
    for (size_t i = 0; i < part->count && !rc; i++)
        rc = weft_spec_resolve(&part->node[i].spec, batch->ns, batch->created_us, part->arena,
                               &draft->member[i].spec, err);
    if (!rc && part->count > 0)
        rc = weft_draft_place(part->engine, draft, err);
    weft_draft_mint(draft, weft_id_is_zero(&batch->last) ? &batch->id : &batch->last);
    return rc;
}

/*
 * Numbers the models that the lines of a part name, and adds those that are new. Under the lock of
 * the batch: batch_move has updated its row, so no other process adds any.
 */
static enum weft_rc put_models(struct weft_tx *tx, const struct part *part, int16_t *number,
                               struct weft_err *err)
{
    const char *name[WEFT_BATCH_MODELS_MAX];
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_batch_models_read(&call, tx->arena)->batch = part->batch->id;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc)
        return rc;
    size_t known = rows.count < WEFT_BATCH_MODELS_MAX ? rows.count : WEFT_BATCH_MODELS_MAX,
           count = known, at = 0;
    for (size_t i = 0; i < known; i++)
        name[i] = weft_out_batch_models_read(&rows)[i].name;
    for (size_t line = 0; line < part->count; line++) {
        if (at >= count || strcmp(name[at], part->named[line]) != 0) /* else as the line before */
            for (at = 0; at < count && strcmp(name[at], part->named[line]) != 0;)
                at++;
        if (at == count && count < WEFT_BATCH_MODELS_MAX)
            name[count++] = part->named[line];
        number[line] = (int16_t)(at < count ? at + 1 : 0);
    }
    struct weft_batch_model_add_in *in =
        weft_call_batch_model_add(&call, tx->arena, count - known + 1);
    for (size_t i = known; i < count; i++) {
        in->row[i - known].batch = part->batch->id;
        in->row[i - known].number = (int16_t)(i + 1);
        in->row[i - known].name = name[i];
    }
    call.rows = count - known;
    return call.rows ? weft_tx_run(tx, &call, 1, NULL, err) : WEFT_OK;
}

static enum weft_rc put_tail(struct weft_tx *tx, const struct weft_id *id, struct weft_err *err)
{
    struct weft_call call[3];
    struct weft_rows rows[3] = {0};
    *weft_call_batch_open(&call[0], tx->arena) =
        (struct weft_batch_open_in){.now = tx->now_us, .id = *id};
    weft_call_flow_open(&call[1], tx->arena)->flow = *id;
    struct weft_completion_add_in *add = weft_call_completion_add(&call[2], tx->arena, 1);
    add->row[0].flow = *id;
    add->row[0].id = *id;
    add->at = tx->now_us;
    enum weft_rc rc = weft_tx_run(tx, call, 3, rows, err);
    if (!rc && (rows[0].count == 0 || rows[1].count == 0))
        rc = weft_fail(err, WEFT_INTERNAL, "a batch that is being written has no staged flow");
    return rc;
}

static enum weft_rc put_part(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct writing *writing = context;
    const struct part *part = writing->part;
    const struct weft_batch *batch = part->batch;
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_batch_move_in *in = weft_call_batch_move(&call, tx->arena);
    *in = (struct weft_batch_move_in){.id = batch->id,
                                      .from = (int64_t)batch->at,
                                      .at = (int64_t)part->at,
                                      .line = (int64_t)part->line,
                                      .requests = (int64_t)part->count};
    if (part->count > 0)
        in->last =
            (struct weft_opt_id){.set = true, .value = writing->draft.member[part->count - 1].id};
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    writing->lost = !rc && rows.count == 0;
    if (rc || writing->lost)
        return rc;
    int16_t *number = weft_new_array(tx->arena, int16_t, part->count + 1);
    rc = put_models(tx, part, number, err);
    if (rc)
        return rc;
    writing->draft.model = number;
    const struct weft_draft *draft = &writing->draft;
    struct weft_draft_rows list = weft_draft_list(&draft, 1, tx->arena);
    rc = weft_draft_put(tx, &list, tx->now_us, err);
    return rc || !part->whole ? rc : put_tail(tx, &batch->id, err);
}

static enum weft_rc write_part(const struct part *part, struct weft_err *err)
{
    struct writing writing = {.part = part};
    enum weft_rc rc = resolve(&writing, err);
    if (rc)
        return rc;
    struct weft_tx tx = {.engine = part->engine, .arena = weft_arena_new(), .bytes = part->bytes};
    rc = weft_tx_do(&tx, WEFT_TX_WRITE, put_part, &writing, err);
    if (!rc && !writing.lost) {
        struct weft_commit_effects news = weft_news_new(part->arena, tx.now_us);
        weft_draft_news(&writing.draft, &news);
        if (part->whole)
            weft_news_flow(&news, &part->batch->id);
        weft_news_tell(part->engine, &news);
    }
    weft_arena_free(tx.arena);
    return rc;
}

/* ---- Files that cannot be used --------------------------------------------------------------- */

static enum weft_rc fail_batch(struct weft_engine *engine, const struct weft_batch *batch,
                               const char *flaws, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    *weft_call_batch_fail(&call, arena) = (struct weft_batch_fail_in){
        .now = weft_clock_now(engine->clock), .id = batch->id, .flaws = flaws};
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, err);
    weft_arena_free(arena);
    return rc;
}

static enum weft_rc fail_with(struct weft_engine *engine, const struct weft_batch *batch,
                              const char *code, const char *message, struct weft_err *err)
{
    struct part part = {.engine = engine, .batch = batch};
    weft_batch_flaws_init(&part.flaws);
    add_flaw(&part, code, NULL, message);
    enum weft_rc rc = fail_batch(engine, batch, part.flaws.text.data, err);
    weft_batch_flaws_done(&part.flaws);
    return rc;
}

/* A line cannot be used: looks for all of them, from the beginning. */
static enum weft_rc check_all(struct weft_engine *engine, const struct weft_batch *batch,
                              uint64_t size, struct weft_err *err)
{
    struct part part = {.engine = engine, .batch = batch};
    enum weft_rc rc = WEFT_OK;
    weft_batch_flaws_init(&part.flaws);
    while (!rc && part.at < size) {
        struct weft_arena *arena = weft_arena_new();
        part.arena = arena;
        part.model_name = NULL;
        part.node = weft_new_array(arena, struct weft_node, PART_REQUESTS);
        part.named = weft_new_array(arena, const char *, PART_REQUESTS);
        part.count = part.bytes = 0;
        rc = take_chunk(&part, size, err);
        weft_arena_free(arena);
    }
    if (!rc)
        rc = fail_batch(engine, batch, part.flaws.text.data, err);
    weft_batch_flaws_done(&part.flaws);
    return rc;
}

/* ---- A part ---------------------------------------------------------------------------------- */

static enum weft_rc read_and_write(struct weft_engine *engine, const struct weft_batch *batch,
                                   const struct weft_file *file, struct weft_err *err)
{
    struct part part = {.engine = engine,
                        .batch = batch,
                        .arena = weft_arena_new(),
                        .at = batch->at,
                        .line = batch->line};
    enum weft_rc rc = WEFT_OK;
    part.node = weft_new_array(part.arena, struct weft_node, PART_REQUESTS);
    part.named = weft_new_array(part.arena, const char *, PART_REQUESTS);
    weft_batch_flaws_init(&part.flaws);
    while (!rc && !part.whole && !part.flawed && !is_full(&part))
        rc = take_chunk(&part, file->bytes, err);
    if (!rc)
        rc = part.flawed ? check_all(engine, batch, file->bytes, err) : write_part(&part, err);
    weft_batch_flaws_done(&part.flaws);
    weft_arena_free(part.arena);
    return rc;
}

enum weft_rc weft_batch_write(struct weft_engine *engine, const struct weft_batch *batch,
                              struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_file file;
    struct weft_err none = {0};
    enum weft_rc rc = weft_engine_file(engine, batch->ns, &batch->file, arena, &file, &none);
    if (rc == WEFT_NOT_FOUND)
        rc = fail_with(engine, batch, "file_not_found", "The file has been deleted.", err);
    else if (rc && err)
        *err = none;
    else if (!rc && file.flaw_count > 0)
        rc = fail_batch(engine, batch, file.flaws, err);
    else if (!rc && file.requests == 0)
        rc = fail_with(engine, batch, "empty_file", "The file has no requests.", err);
    else if (!rc)
        rc = read_and_write(engine, batch, &file, err);
    weft_arena_free(arena);
    return rc;
}
