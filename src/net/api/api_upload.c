/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Uploads of files. The body is taken piece by piece: taken apart, its lines checked, and stored in
 * chunks, so an upload takes a few MiB of memory whatever its size. A line with a mistake does not
 * fail the upload: the batch that uses the file fails with it. Nobody sees the file before all of
 * it is stored.
 */

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "core/batch_line.h"
#include "core/multipart.h"
#include "engine/batch/files.h"
#include "engine/engine.h"
#include "net/api/files.h"
#include "net/api/handlers.h"
#include "net/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    VALUE_MAX = 256, /* bytes of a field */
    PENDING_MAX = WEFT_BATCH_LINE_MAX + 2 * WEFT_FILE_CHUNK + WEFT_PIECE_MAX,
    FORM_MAX = 64 << 10, /* what a form adds to the size of its file */
};

enum field { FIELD_OTHER, FIELD_FILE, FIELD_PURPOSE, FIELD_ANCHOR, FIELD_SECONDS };

struct upload {
    struct weft_server *server;
    const char *ns; /* in the arena of the request */
    struct weft_multipart form;
    struct weft_batch_check check;
    bool open; /* there is a row of the file */
    struct weft_id file;
    struct weft_buf pending; /* bytes that are not stored yet */
    uint64_t at, line;       /* where they begin */
    enum field field;        /* the one that is being read */
    struct weft_buf value;
    char purpose[VALUE_MAX];
    int64_t expires_s;
};

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

static enum weft_rc store(struct upload *upload, size_t size, struct weft_err *err)
{
    struct weft_buf *pending = &upload->pending;
    const struct weft_file_chunk chunk = {.file = upload->file,
                                          .at = upload->at,
                                          .line = upload->line,
                                          .data = pending->data,
                                          .size = size};
    enum weft_rc rc = weft_engine_file_put(upload->server->engine, &chunk, err);
    if (rc)
        return rc;
    upload->at += size;
    upload->line += count_lines(pending->data, size);
    pending->size -= size;
    memmove(pending->data, pending->data + size, pending->size);
    return WEFT_OK;
}

/* Stores what fills chunks. A chunk is cut in the middle of a line only if that is too long. */
static enum weft_rc store_chunks(struct upload *upload, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    while (!rc && upload->pending.size >= WEFT_FILE_CHUNK) {
        const char *data = upload->pending.data;
        const char *cut = memrchr(data, '\n', WEFT_FILE_CHUNK);
        if (!cut)
            cut = memchr(data + WEFT_FILE_CHUNK, '\n', upload->pending.size - WEFT_FILE_CHUNK);
        if (!cut && upload->pending.size <= WEFT_BATCH_LINE_MAX)
            return WEFT_OK;
        rc = store(upload, cut ? (size_t)(cut - data) + 1 : WEFT_FILE_CHUNK, err);
    }
    return rc;
}

/* ---- The form -------------------------------------------------------------------------------- */

static enum field field_of(const char *name)
{
    static const struct {
        const char *name;
        enum field field;
    } known[] = {
        {"file", FIELD_FILE},
        {"purpose", FIELD_PURPOSE},
        {"expires_after[anchor]", FIELD_ANCHOR},
        {"expires_after[seconds]", FIELD_SECONDS},
    };
    for (size_t i = 0; i < WEFT_LEN(known); i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].field;
    return FIELD_OTHER;
}

static enum weft_rc begin_field(void *context, const char *name, const char *filename,
                                struct weft_err *err)
{
    struct upload *upload = context;
    upload->field = field_of(name);
    weft_buf_clear(&upload->value);
    if (upload->field != FIELD_FILE)
        return WEFT_OK;
    if (upload->open)
        return weft_invalid(err, "file", "the form has more than one file");
    if (!filename || !*filename || strlen(filename) > WEFT_FILE_NAME_MAX ||
        !weft_text_printable(filename, strlen(filename)))
        filename = "upload.jsonl";
    enum weft_rc rc =
        weft_engine_file_begin(upload->server->engine, upload->ns, filename, &upload->file, err);
    upload->open = !rc;
    return rc;
}

static enum weft_rc too_large(const struct upload *upload, struct weft_err *err)
{
    return weft_hint(
        err,
        weft_fail_field(err, WEFT_TOO_LARGE, "file", "the file is larger than %llu bytes",
                        (unsigned long long)upload->server->config.file_bytes),
        "split it into several files, or let the server take larger ones with --file-bytes");
}

static enum weft_rc take_data(void *context, const char *data, size_t size, struct weft_err *err)
{
    struct upload *upload = context;
    if (upload->field == FIELD_FILE) {
        if (upload->check.bytes + size > upload->server->config.file_bytes)
            return too_large(upload, err);
        weft_batch_check_add(&upload->check, data, size);
        weft_buf_add(&upload->pending, data, size);
        return store_chunks(upload, err);
    }
    if (upload->field == FIELD_OTHER)
        return WEFT_OK;
    weft_buf_add(&upload->value, data, size);
    return upload->value.full
               ? weft_fail_field(err, WEFT_TOO_LARGE, "body",
                                 "a field of the form is longer than %d bytes", VALUE_MAX - 1)
               : WEFT_OK;
}

static enum weft_rc read_seconds(struct upload *upload, struct weft_err *err)
{
    char *end;
    errno = 0;
    long long seconds = strtoll(upload->value.data, &end, 10);
    if (errno || *end || end == upload->value.data || seconds < WEFT_FILE_EXPIRES_MIN_S ||
        seconds > WEFT_FILE_EXPIRES_MAX_S)
        return weft_invalid(err, "expires_after.seconds",
                            "expires_after.seconds must be a whole number from %d to %d",
                            WEFT_FILE_EXPIRES_MIN_S, WEFT_FILE_EXPIRES_MAX_S);
    upload->expires_s = seconds;
    return WEFT_OK;
}

static enum weft_rc end_field(void *context, struct weft_err *err)
{
    struct upload *upload = context;
    const char *value = upload->value.data;
    switch (upload->field) {
    case FIELD_PURPOSE:
        memcpy(upload->purpose, value, upload->value.size + 1);
        return WEFT_OK;
    case FIELD_ANCHOR:
        return strcmp(value, "created_at") == 0
                   ? WEFT_OK
                   : weft_invalid(err, "expires_after.anchor",
                                  "expires_after.anchor must be created_at");
    case FIELD_SECONDS:
        return read_seconds(upload, err);
    case FIELD_FILE:
    case FIELD_OTHER:
        break;
    }
    return WEFT_OK;
}

/* ---- The request ----------------------------------------------------------------------------- */

static enum weft_rc begin_upload(struct weft_request *request, struct weft_err *err)
{
    static const struct weft_multipart_ops ops = {begin_field, take_data, end_field};
    struct weft_server *server = request->server;
    struct upload *upload = weft_alloc(1, sizeof(*upload));
    request->state = upload; /* weft_upload_forget() frees it */
    upload->server = server;
    upload->ns = request->ns;
    upload->expires_s = WEFT_FILE_EXPIRES_MAX_S;
    weft_batch_check_init(&upload->check, server->config.file_requests);
    weft_buf_init(&upload->pending, PENDING_MAX);
    weft_buf_init(&upload->value, VALUE_MAX - 1);
    const char *length = weft_request_header(request, "Content-Length");
    if (length && strtoull(length, NULL, 10) > server->config.file_bytes + FORM_MAX)
        return too_large(upload, err);
    return weft_multipart_init(&upload->form, weft_request_header(request, "Content-Type"), &ops,
                               upload, err);
}

/* What was stored of a file that will not be whole is hidden at once. */
static enum weft_rc give_up(struct upload *upload, enum weft_rc rc)
{
    if (rc && upload->open)
        weft_engine_file_give_up(upload->server->engine, &upload->file);
    return rc;
}

enum weft_rc weft_upload_take(struct weft_request *request, struct weft_err *err)
{
    enum weft_rc rc = request->state ? WEFT_OK : begin_upload(request, err);
    struct upload *upload = request->state;
    if (!rc)
        rc = weft_multipart_read(&upload->form, request->body.data, request->body.size, err);
    return give_up(upload, rc);
}

enum weft_rc weft_upload_read(struct weft_request *request, struct weft_err *err)
{
    struct upload *upload = request->state;
    if (!upload)
        return weft_invalid(err, "file", "the request has no body: a form with a file is wanted");
    enum weft_rc rc = weft_multipart_end(&upload->form, err);
    if (!rc && !upload->open)
        rc = weft_invalid(err, "file", "the form has no field named file");
    if (!rc && strcmp(upload->purpose, "batch") != 0)
        rc = weft_invalid(err, "purpose", "purpose must be batch");
    return give_up(upload, rc);
}

enum weft_rc weft_upload_run(struct weft_request *request, struct weft_err *err)
{
    struct upload *upload = request->state;
    struct weft_engine *engine = request->server->engine;
    enum weft_rc rc = WEFT_OK;
    weft_batch_check_end(&upload->check);
    if (upload->pending.size > 0)
        rc = store(upload, upload->pending.size, err);
    struct weft_file file = {.id = upload->file,
                             .purpose = upload->purpose,
                             .requests = upload->check.requests,
                             .flaws = upload->check.flaws.text.data,
                             .flaw_count = upload->check.flaws.count,
                             .expires_us = weft_clock_now(weft_engine_clock(engine)) +
                                           upload->expires_s * WEFT_SECOND};
    if (!rc)
        rc = weft_engine_file_seal(engine, &file, err);
    if (rc)
        return give_up(upload, rc);
    rc = weft_engine_file(engine, request->ns, &upload->file, request->arena, &file, err);
    if (!rc)
        weft_file_reply(request, &file);
    return rc;
}

void weft_upload_forget(struct weft_request *request)
{
    struct upload *upload = request->state;
    if (!upload)
        return;
    weft_multipart_done(&upload->form);
    weft_batch_check_done(&upload->check);
    weft_buf_done(&upload->pending);
    weft_buf_done(&upload->value);
    free(upload);
    request->state = NULL;
}
