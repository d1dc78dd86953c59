/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/batch/file_writer.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/batch_line.h"
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* A line that is as long as it may be, behind a chunk that is not full, and what came last. */
    PENDING_MAX = WEFT_BATCH_LINE_MAX + 2 * WEFT_FILE_CHUNK + WEFT_FILE_PIECE_MAX,
};

const struct weft_file_limits weft_file_limits_most = {.bytes = UINT64_C(1) << 30,
                                                       .requests = 100000};

struct weft_file_writer {
    struct weft_engine *engine;
    struct weft_file_limits limits;
    struct weft_batch_check check;
    bool begun, open; /* open: there is a row of the file, which has no end yet */
    struct weft_id file;
    struct weft_buf pending; /* bytes that are not stored yet */
    uint64_t at, line;       /* where they begin */
};

struct weft_file_writer *weft_file_writer_new(struct weft_engine *engine,
                                              const struct weft_file_limits *limits)
{
    struct weft_file_writer *writer = weft_alloc(1, sizeof(*writer));
    writer->engine = engine;
    writer->limits = *limits;
    weft_batch_check_init(&writer->check, limits->requests);
    weft_buf_init(&writer->pending, PENDING_MAX);
    return writer;
}

void weft_file_writer_free(struct weft_file_writer *writer)
{
    if (!writer)
        return;
    weft_batch_check_done(&writer->check);
    weft_buf_done(&writer->pending);
    free(writer);
}

void weft_file_writer_give_up(struct weft_file_writer *writer)
{
    if (writer->open)
        weft_engine_file_give_up(writer->engine, &writer->file);
    writer->open = false;
}

bool weft_file_writer_begun(const struct weft_file_writer *writer)
{
    return writer->begun;
}

uint64_t weft_file_writer_bytes(const struct weft_file_writer *writer)
{
    return writer->check.bytes;
}

enum weft_rc weft_file_writer_begin(struct weft_file_writer *writer, const char *ns,
                                    const char *filename, struct weft_err *err)
{
    if (!filename || !*filename || strlen(filename) > WEFT_FILE_NAME_MAX ||
        !weft_text_printable(filename, strlen(filename)))
        filename = "upload.jsonl";
    enum weft_rc rc = weft_engine_file_begin(writer->engine, ns, filename, &writer->file, err);
    writer->begun = writer->open = !rc;
    return rc;
}

/* ---- Storing --------------------------------------------------------------------------------- */

static uint64_t count_lines(const char *data, size_t size)
{
    uint64_t lines = 0;
    const char *at = data, *end = data + size;
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at)))) {
        lines++;
        at++;
    }
    return lines;
}

static enum weft_rc store(struct weft_file_writer *writer, size_t size, struct weft_err *err)
{
    struct weft_buf *pending = &writer->pending;
    const struct weft_file_chunk chunk = {.file = writer->file,
                                          .at = writer->at,
                                          .line = writer->line,
                                          .data = pending->data,
                                          .size = size};
    enum weft_rc rc = weft_engine_file_put(writer->engine, &chunk, err);
    if (rc)
        return rc;
    writer->at += size;
    writer->line += count_lines(pending->data, size);
    pending->size -= size;
    memmove(pending->data, pending->data + size, pending->size);
    return WEFT_OK;
}

/* Stores what fills chunks. A chunk is cut in the middle of a line only if that is too long. */
static enum weft_rc store_chunks(struct weft_file_writer *writer, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    while (!rc && writer->pending.size >= WEFT_FILE_CHUNK) {
        const char *data = writer->pending.data;
        const char *cut = memrchr(data, '\n', WEFT_FILE_CHUNK);
        if (!cut)
            cut = memchr(data + WEFT_FILE_CHUNK, '\n', writer->pending.size - WEFT_FILE_CHUNK);
        if (!cut && writer->pending.size <= WEFT_BATCH_LINE_MAX)
            return WEFT_OK;
        rc = store(writer, cut ? (size_t)(cut - data) + 1 : WEFT_FILE_CHUNK, err);
    }
    return rc;
}

enum weft_rc weft_file_too_large(uint64_t bytes_max, struct weft_err *err)
{
    return weft_hint(
        err,
        weft_fail_field(err, WEFT_TOO_LARGE, "file", "the file is larger than %llu bytes",
                        (unsigned long long)bytes_max),
        "split it into several files, or let the server take larger ones with --file-bytes");
}

enum weft_rc weft_file_writer_add(struct weft_file_writer *writer, const char *data, size_t size,
                                  struct weft_err *err)
{
    if (writer->check.bytes + size > writer->limits.bytes)
        return weft_file_too_large(writer->limits.bytes, err);
    weft_batch_check_add(&writer->check, data, size);
    weft_buf_add(&writer->pending, data, size);
    return store_chunks(writer, err);
}

enum weft_rc weft_file_writer_end(struct weft_file_writer *writer,
                                  const struct weft_file_ending *ending, struct weft_id *ret_id,
                                  struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    weft_batch_check_end(&writer->check);
    if (writer->pending.size > 0)
        rc = store(writer, writer->pending.size, err);
    const struct weft_file file = {.id = writer->file,
                                   .purpose = ending->purpose,
                                   .requests = writer->check.requests,
                                   .flaws = writer->check.flaws.text.data,
                                   .flaw_count = writer->check.flaws.count,
                                   .expires_us = weft_clock_now(weft_engine_clock(writer->engine)) +
                                                 ending->expires_s * WEFT_SECOND};
    if (!rc)
        rc = weft_engine_file_seal(writer->engine, &file, err);
    writer->open = rc != WEFT_OK;
    *ret_id = writer->file;
    return rc;
}
