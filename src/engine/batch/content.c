/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/batch/content.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "core/batch_id.h"
#include "engine/batch/batch_lines.h"
#include "engine/batch/file_writer.h"
#include "wire/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Names ----------------------------------------------------------------------------------- */

static const char *const prefix[] = {[WEFT_CONTENT_FILE] = WEFT_FILE_PREFIX,
                                     [WEFT_CONTENT_OUTPUT] = WEFT_OUTPUT_PREFIX,
                                     [WEFT_CONTENT_ERRORS] = WEFT_ERRORS_PREFIX};

bool weft_file_id_parse(const char *text, struct weft_file_asking *ret_asking)
{
    ret_asking->which = WEFT_CONTENT_FILE;
    if (weft_id_parse(text, strlen(text), &ret_asking->id))
        return true;
    for (size_t i = 0; i < WEFT_LEN(prefix); i++) {
        ret_asking->which = (enum weft_content)i;
        if (weft_batch_id_parse(prefix[i], text, &ret_asking->id))
            return true;
    }
    return false;
}

const char *weft_file_id_text(enum weft_content which, const struct weft_id *id,
                              struct weft_arena *arena)
{
    char text[WEFT_BATCH_ID_TEXT];
    weft_batch_id_print(prefix[which], id, text);
    return weft_arena_strdup(arena, text);
}

/* ---- Walks ----------------------------------------------------------------------------------- */

/* Files of a batch have no rows: what they hold is read from its members. */
static enum weft_rc begin_lines(struct weft_engine *engine, struct weft_content_walk *walk,
                                struct weft_arena *arena, struct weft_file *ret_file,
                                struct weft_err *err)
{
    struct weft_batch batch;
    bool output = walk->of.which == WEFT_CONTENT_OUTPUT;
    enum weft_rc rc = weft_engine_batch(engine, walk->of.ns, &walk->of.id, arena, &batch, err);
    if (rc)
        return rc;
    if (batch.phase == WEFT_BATCH_WRITING || batch.phase == WEFT_BATCH_FAILED)
        return weft_fail_field(err, WEFT_NOT_FOUND, "id", "the batch is %s: it has no such file",
                               weft_wire_batch_statuses[batch.status]);
    *ret_file = (struct weft_file){
        .id = batch.id,
        .filename = output ? "batch_output.jsonl" : "batch_errors.jsonl",
        .purpose = "batch_output",
        .requests = output ? batch.succeeded : batch.failed + batch.expired + batch.cancelled,
        .created_us = batch.opened_us};
    walk->end = UINT64_MAX;
    walk->page.good = output;
    walk->growing = batch.phase != WEFT_BATCH_ENDED;
    return WEFT_OK;
}

enum weft_rc weft_content_begin(struct weft_engine *engine, const struct weft_file_asking *asking,
                                struct weft_arena *arena, struct weft_content_walk *ret_walk,
                                struct weft_file *ret_file, struct weft_err *err)
{
    *ret_walk = (struct weft_content_walk){.of = *asking};
    if (asking->which != WEFT_CONTENT_FILE)
        return begin_lines(engine, ret_walk, arena, ret_file, err);
    enum weft_rc rc = weft_engine_file(engine, asking->ns, &asking->id, arena, ret_file, err);
    if (!rc)
        ret_walk->end = ret_file->bytes;
    return rc;
}

static enum weft_rc next_chunk(struct weft_engine *engine, struct weft_content_walk *walk,
                               struct weft_buf *out, bool *ret_last, struct weft_err *err)
{
    struct weft_file_chunk chunk;
    *ret_last = walk->at >= walk->end;
    if (*ret_last)
        return WEFT_OK;
    struct weft_arena *arena = weft_arena_new();
    enum weft_rc rc = weft_engine_file_read(engine, &walk->of.id, walk->at, arena, &chunk, err);
    if (!rc) {
        uint64_t skip = walk->at - chunk.at, left = walk->end - walk->at;
        uint64_t size = chunk.size - skip < left ? chunk.size - skip : left;
        weft_buf_add(out, (const char *)chunk.data + skip, size);
        walk->at += size;
        *ret_last = walk->at == walk->end;
    }
    weft_arena_free(arena);
    return rc;
}

/* Adds a page of lines as far as they are wanted. `line` is room for one. */
static void add_lines(struct weft_content_walk *walk, struct weft_buf *line, struct weft_buf *out)
{
    for (size_t i = 0; i < walk->page.count; i++) {
        weft_buf_clear(line);
        weft_batch_line_add(line, &walk->page.item[i], walk->page.good);
        uint64_t begin = walk->passed, end = begin + line->size;
        uint64_t first = begin < walk->at ? walk->at : begin;
        uint64_t last = end < walk->end ? end : walk->end;
        if (out && first < last) {
            weft_buf_add(out, line->data + (first - begin), last - first);
            walk->at = last;
        }
        walk->passed = end;
    }
}

/*
 * The next page of lines. How many members are looked at depends on how large the lines before
 * were, so that a page stays around a MiB whatever their results are; a single one may be larger.
 */
static enum weft_rc next_page(struct weft_engine *engine, struct weft_content_walk *walk,
                              struct weft_buf *out, bool *ret_last, struct weft_err *err)
{
    enum { FEWEST = 16, MOST = 1000, SMALL = 512 << 10, LARGE = 2 << 20 };
    struct weft_batch_page *page = &walk->page;
    struct weft_arena *arena = weft_arena_new();
    struct weft_buf line;
    uint64_t before = walk->passed;
    if (page->members == 0)
        page->members = FEWEST;
    page->bytes = LARGE;
    weft_buf_init(&line, SIZE_MAX);
    enum weft_rc rc = weft_engine_batch_answers(engine, &walk->of.id, page, arena, err);
    if (!rc)
        add_lines(walk, &line, out);
    *ret_last = !rc && (page->last || walk->at >= walk->end);
    if (walk->passed - before < SMALL && page->members < MOST)
        page->members = page->members * 4 < MOST ? page->members * 4 : MOST;
    else if (walk->passed - before > LARGE && page->members > FEWEST)
        page->members /= 4;
    weft_buf_done(&line);
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_content_measure(struct weft_engine *engine, struct weft_content_walk *walk,
                                  uint64_t *ret_size, bool *ret_last, struct weft_err *err)
{
    enum weft_rc rc = next_page(engine, walk, NULL, ret_last, err);
    *ret_size = walk->passed;
    return rc;
}

static enum weft_rc next_lines(struct weft_engine *engine, struct weft_content_walk *walk,
                               struct weft_buf *out, bool *ret_last, struct weft_err *err)
{
    enum weft_rc rc;
    do
        rc = next_page(engine, walk, out, ret_last, err);
    while (!rc && !*ret_last && out->size == 0);
    return rc;
}

enum weft_rc weft_content_next(struct weft_engine *engine, struct weft_content_walk *walk,
                               struct weft_buf *out, bool *ret_last, struct weft_err *err)
{
    return walk->of.which == WEFT_CONTENT_FILE ? next_chunk(engine, walk, out, ret_last, err)
                                               : next_lines(engine, walk, out, ret_last, err);
}

/* ---- To and from the caller ------------------------------------------------------------------ */

static enum weft_rc cannot(const char *what, bool has_function, int error, struct weft_err *err)
{
    char text[128];
    return weft_fail_field(err, WEFT_UNAVAILABLE, "file", "the file cannot be %s: %s", what,
                           has_function ? "the function of the caller failed"
                                        : strerror_r(error, text, sizeof(text)));
}

enum weft_rc weft_upload_next(const struct weft_upload *upload, void *ret_data, size_t most,
                              size_t *ret_size, uint64_t *done, struct weft_err *err)
{
    *ret_size = 0;
    if (upload->read) {
        if (!upload->read(upload->context, ret_data, most, ret_size))
            return cannot("read", true, 0, err);
    } else {
        ssize_t size;
        do
            size = read(upload->fd, ret_data, most);
        while (size < 0 && errno == EINTR);
        if (size < 0)
            return cannot("read", false, errno, err);
        *ret_size = (size_t)size;
    }
    *done += *ret_size;
    if (upload->progress)
        upload->progress(upload->context, *done);
    return WEFT_OK;
}

enum weft_rc weft_sink_put(const struct weft_sink *sink, const void *data, size_t size,
                           struct weft_err *err)
{
    if (sink->write)
        return sink->write(sink->context, data, size) ? WEFT_OK : cannot("written", true, 0, err);
    const char *at = data;
    while (size > 0) {
        ssize_t taken = write(sink->fd, at, size);
        if (taken < 0 && errno != EINTR)
            return cannot("written", false, errno, err);
        if (taken > 0) {
            at += taken;
            size -= (size_t)taken;
        }
    }
    return WEFT_OK;
}

enum weft_rc weft_engine_content(struct weft_engine *engine,
                                 const struct weft_content_asking *asking, uint64_t *ret_bytes,
                                 struct weft_err *err)
{
    struct weft_content_walk walk;
    struct weft_file file;
    struct weft_buf part;
    struct weft_arena *arena = weft_arena_new();
    bool last = false;
    weft_buf_init(&part, SIZE_MAX);
    *ret_bytes = 0;
    enum weft_rc rc = weft_content_begin(engine, &asking->of, arena, &walk, &file, err);
    while (!rc && !last) {
        weft_buf_clear(&part);
        rc = weft_content_next(engine, &walk, &part, &last, err);
        if (!rc)
            rc = weft_sink_put(asking->sink, part.data, part.size, err);
        if (!rc)
            *ret_bytes += part.size;
    }
    weft_buf_done(&part);
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_engine_upload(struct weft_engine *engine, const char *ns,
                                const struct weft_upload *upload, struct weft_id *ret_id,
                                struct weft_err *err)
{
    struct weft_file_writer *writer = weft_file_writer_new(engine, &weft_file_limits_most);
    const struct weft_file_ending ending = {
        .purpose = "batch",
        .expires_s = upload->expires_ms ? upload->expires_ms / 1000 : WEFT_FILE_EXPIRES_MAX_S};
    char *piece = weft_alloc(1, WEFT_FILE_PIECE_MAX);
    size_t size = 1;
    uint64_t done = 0;
    enum weft_rc rc = weft_file_writer_begin(writer, ns, upload->filename, err);
    while (!rc && size > 0) {
        rc = weft_upload_next(upload, piece, WEFT_FILE_PIECE_MAX, &size, &done, err);
        if (!rc && size > 0)
            rc = weft_file_writer_add(writer, piece, size, err);
    }
    if (!rc && done == 0)
        rc = weft_invalid(err, "file", "the file is empty: it needs a request on each line");
    if (!rc)
        rc = weft_file_writer_end(writer, &ending, ret_id, err);
    if (rc)
        weft_file_writer_give_up(writer);
    weft_file_writer_free(writer);
    free(piece);
    return rc;
}
