/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Uploads of files, as a form with other fields or as the body itself. Either is taken piece by
 * piece as it arrives and written to the file (engine/batch/file_writer.h).
 */

#include "base/alloc.h"
#include "base/err.h"
#include "core/multipart.h"
#include "engine/batch/file_view.h"
#include "engine/batch/file_writer.h"
#include "net/api/api.h"
#include "net/api/files.h"
#include "net/api/handlers.h"
#include "net/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_MAX = 256 }; /* bytes of a field */
_Static_assert((int)WEFT_PIECE_MAX <= (int)WEFT_FILE_PIECE_MAX, "a piece is added as it comes");

enum field { FIELD_OTHER, FIELD_FILE, FIELD_PURPOSE, FIELD_ANCHOR, FIELD_SECONDS };

struct upload {
    struct weft_server *server;
    const char *ns; /* in the arena of the request */
    struct weft_file_writer *writer;
    struct weft_multipart form; /* zeros: the body is the file */
    enum field field;           /* the one that is being read */
    struct weft_buf value;
    char purpose[VALUE_MAX];
    int64_t expires_s;
};

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
    if (weft_file_writer_begun(upload->writer))
        return weft_invalid(err, "file", "the form has more than one file");
    return weft_file_writer_begin(upload->writer, upload->ns, filename, err);
}

static enum weft_rc take_data(void *context, const char *data, size_t size, struct weft_err *err)
{
    struct upload *upload = context;
    if (upload->field == FIELD_FILE)
        return weft_file_writer_add(upload->writer, data, size, err);
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

static void begin_upload(struct weft_request *request)
{
    const struct weft_server_config *config = &request->server->config;
    const struct weft_file_limits limits = {.bytes = config->file_bytes,
                                            .requests = config->file_requests};
    struct upload *upload = weft_alloc(1, sizeof(*upload));
    request->state = upload; /* weft_upload_forget() frees it */
    upload->server = request->server;
    upload->ns = request->ns;
    upload->expires_s = WEFT_FILE_EXPIRES_MAX_S;
    upload->writer = weft_file_writer_new(request->server->engine, &limits);
    weft_buf_init(&upload->value, VALUE_MAX - 1);
}

/* What was stored of a file that will not be whole is hidden at once. */
static enum weft_rc give_up(struct upload *upload, enum weft_rc rc)
{
    if (rc)
        weft_file_writer_give_up(upload->writer);
    return rc;
}

/* ---- As a form ------------------------------------------------------------------------------- */

static enum weft_rc begin_form(struct weft_request *request, struct weft_err *err)
{
    static const struct weft_multipart_ops ops = {begin_field, take_data, end_field};
    begin_upload(request);
    struct upload *upload = request->state;
    return weft_multipart_init(&upload->form, weft_request_header(request, "Content-Type"), &ops,
                               upload, err);
}

enum weft_rc weft_upload_take(struct weft_request *request, struct weft_err *err)
{
    enum weft_rc rc = request->state ? WEFT_OK : begin_form(request, err);
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
    if (!rc && !weft_file_writer_begun(upload->writer))
        rc = weft_invalid(err, "file", "the form has no field named file");
    if (!rc && strcmp(upload->purpose, "batch") != 0)
        rc = weft_invalid(err, "purpose", "purpose must be batch");
    return give_up(upload, rc);
}

static enum weft_rc end_upload(struct weft_request *request, struct weft_id *ret_id,
                               struct weft_err *err)
{
    struct upload *upload = request->state;
    struct weft_metrics *metrics = request->server->metrics;
    const struct weft_file_ending ending = {.purpose = upload->purpose,
                                            .expires_s = upload->expires_s};
    enum weft_rc rc = weft_file_writer_end(upload->writer, &ending, ret_id, err);
    if (!rc) {
        weft_metric_add(metrics, WEFT_METRIC_FILES_UPLOADED, 0, 1);
        weft_metric_add(metrics, WEFT_METRIC_FILE_BYTES, 0, weft_file_writer_bytes(upload->writer));
    }
    return give_up(upload, rc);
}

enum weft_rc weft_upload_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_id id;
    struct weft_file file;
    enum weft_rc rc = end_upload(request, &id, err);
    if (!rc)
        rc =
            weft_engine_file(request->server->engine, request->ns, &id, request->arena, &file, err);
    if (!rc)
        weft_file_reply(request, &file);
    return rc;
}

/* ---- As the body ----------------------------------------------------------------------------- */

static enum weft_rc begin_body(struct weft_request *request, struct weft_err *err)
{
    begin_upload(request);
    struct upload *upload = request->state;
    return weft_file_writer_begin(upload->writer, request->ns,
                                  weft_request_query(request, "filename"), err);
}

enum weft_rc weft_file_put_take(struct weft_request *request, struct weft_err *err)
{
    enum weft_rc rc = request->state ? WEFT_OK : begin_body(request, err);
    struct upload *upload = request->state;
    if (!rc)
        rc = weft_file_writer_add(upload->writer, request->body.data, request->body.size, err);
    return give_up(upload, rc);
}

enum weft_rc weft_file_put_read(struct weft_request *request, struct weft_err *err)
{
    static const struct weft_request_number expires = {
        .name = "expires_ms",
        .min = WEFT_FILE_EXPIRES_MIN_S * INT64_C(1000),
        .max = WEFT_FILE_EXPIRES_MAX_S * INT64_C(1000),
        .normally = WEFT_FILE_EXPIRES_MAX_S * INT64_C(1000)};
    struct upload *upload = request->state;
    int64_t expires_ms = 0;
    if (!upload)
        return weft_invalid(err, "file", "the request has no body: the file is empty");
    memcpy(upload->purpose, "batch", sizeof("batch"));
    enum weft_rc rc = weft_request_query_i64(request, &expires, &expires_ms, err);
    upload->expires_s = expires_ms / 1000;
    return give_up(upload, rc);
}

enum weft_rc weft_file_put_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_file_asking asking = {.ns = request->ns};
    struct weft_file_info info;
    enum weft_rc rc = end_upload(request, &asking.id, err);
    if (!rc)
        rc = weft_engine_file_info(request->server->engine, &asking, request->arena, &info, err);
    if (!rc)
        weft_api_reply_made(request, &info.id, false, &info);
    return rc;
}

void weft_upload_forget(struct weft_request *request)
{
    struct upload *upload = request->state;
    if (!upload)
        return;
    weft_multipart_done(&upload->form);
    weft_file_writer_free(upload->writer);
    weft_buf_done(&upload->value);
    free(upload);
    request->state = NULL;
}
