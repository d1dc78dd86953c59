/* SPDX-License-Identifier: Apache-2.0 */

/* Batches as OpenAI's clients know them: created, looked at, listed, cancelled. */

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "engine/batch/batch.h"
#include "engine/batch/batch_submit.h"
#include "net/api/files.h"
#include "net/api/handlers.h"
#include "net/group/commit_work.h"
#include "net/openai.h"
#include "net/server.h"
#include "wire/wire.h"

#include <stdio.h>
#include <string.h>

/* ---- As JSON --------------------------------------------------------------------------------- */

static void add_file(struct weft_json_writer *out, const char *key, const char *prefix,
                     const struct weft_batch *batch, bool there)
{
    if (there)
        weft_openai_add_id(out, key, prefix, &batch->id);
    else
        weft_json_add_text(out, key, NULL);
}

/* Files of a batch that has ended are named if they have lines; of one that runs, always. */
static void add_files(struct weft_json_writer *out, const struct weft_batch *batch)
{
    bool runs = batch->phase == WEFT_BATCH_RUNNING, ended = batch->phase == WEFT_BATCH_ENDED;
    weft_openai_add_id(out, "input_file_id", WEFT_FILE_PREFIX, &batch->file);
    add_file(out, "output_file_id", WEFT_OUTPUT_PREFIX, batch,
             runs || (ended && batch->succeeded > 0));
    add_file(out, "error_file_id", WEFT_ERRORS_PREFIX, batch,
             runs || (ended && batch->failed + batch->expired + batch->cancelled > 0));
}

static void add_flaws(struct weft_json_writer *out, const struct weft_batch *batch)
{
    weft_json_key(out, "errors");
    if (batch->phase != WEFT_BATCH_FAILED) {
        weft_json_put_null(out);
        return;
    }
    weft_json_begin_object(out);
    weft_json_add_text(out, "object", "list");
    weft_json_key(out, "data");
    struct weft_buf list;
    weft_buf_init(&list, SIZE_MAX);
    weft_buf_printf(&list, "[%s]", batch->flaws);
    weft_json_put_raw(out, list.data, list.size);
    weft_buf_done(&list);
    weft_json_end_object(out);
}

static void add_moments(struct weft_json_writer *out, const struct weft_batch *batch)
{
    enum weft_batch_status status = batch->status;
    weft_usec finished_us = batch->finished_us ? batch->finished_us : batch->flow_finished_us;
    weft_openai_add_moment(out, "created_at", batch->created_us);
    weft_openai_add_moment(out, "in_progress_at", batch->opened_us);
    weft_openai_add_moment(out, "expires_at", batch->expires_us);
    weft_openai_add_moment(out, "finalizing_at",
                           status == WEFT_BATCH_STATUS_FAILED ? 0 : finished_us);
#define AT(key, status_)                                                                           \
    weft_openai_add_moment(out, key, status == WEFT_BATCH_STATUS_##status_ ? batch->finished_us : 0)
    AT("completed_at", COMPLETED);
    AT("failed_at", FAILED);
    AT("expired_at", EXPIRED);
    AT("cancelled_at", CANCELLED);
#undef AT
    weft_openai_add_moment(out, "cancelling_at", batch->cancelling_us);
}

static void write_batch(struct weft_json_writer *out, const struct weft_batch *batch)
{
    weft_json_begin_object(out);
    weft_openai_add_id(out, "id", WEFT_BATCH_PREFIX, &batch->id);
    weft_json_add_text(out, "object", "batch");
    weft_json_add_text(out, "endpoint", batch->endpoint);
    weft_json_add_text(out, "completion_window", batch->window);
    weft_json_add_text(out, "status", weft_wire_batch_statuses[batch->status]);
    add_flaws(out, batch);
    add_files(out, batch);
    add_moments(out, batch);
    weft_json_add_object(out, "request_counts");
    weft_json_add_i64(out, "total", (int64_t)batch->requests);
    weft_json_add_i64(out, "completed", (int64_t)batch->succeeded);
    weft_json_add_i64(out, "failed", (int64_t)batch->failed);
    weft_json_end_object(out);
    if (batch->metadata)
        weft_json_add_raw(out, "metadata", batch->metadata);
    else
        weft_json_add_text(out, "metadata", NULL);
    weft_json_end_object(out);
}

/* Answers with the batch as it is now. */
static enum weft_rc reply_batch(struct weft_request *request, const struct weft_id *id,
                                struct weft_err *err)
{
    struct weft_batch batch;
    struct weft_json_writer out;
    enum weft_rc rc =
        weft_engine_batch(request->server->engine, request->ns, id, request->arena, &batch, err);
    if (rc)
        return rc;
    if (batch.status == WEFT_BATCH_STATUS_FINALIZING) /* its end is at hand */
        weft_add_batch(request->server, id);
    weft_reply_json(request, 200, &out);
    write_batch(&out, &batch);
    return WEFT_OK;
}

/* ---- Creating -------------------------------------------------------------------------------- */

static enum weft_rc read_text(const struct weft_request *request, const struct weft_json *object,
                              const char *name, const char **ret_text, struct weft_err *err)
{
    struct weft_json value;
    if (!weft_wire_member(object, name, &value) ||
        weft_json_string(&value, request->arena, ret_text, NULL) || !**ret_text)
        return weft_invalid(err, name, "%s is missing or no text", name);
    return WEFT_OK;
}

/* null and absent are the same. */
static enum weft_rc read_metadata(const struct weft_request *request,
                                  const struct weft_json *object, const char **ret_text,
                                  struct weft_err *err)
{
    struct weft_json value;
    if (!weft_wire_member(object, "metadata", &value) || value.kind == WEFT_JSON_NULL)
        return WEFT_OK;
    enum weft_rc rc = weft_batch_metadata_check(&value, err);
    if (rc)
        return rc;
    *ret_text = weft_arena_printf(request->arena, "%.*s", (int)value.size, value.text);
    return WEFT_OK;
}

enum weft_rc weft_batch_create_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_batch_new *args = weft_new(request->arena, struct weft_batch_new);
    struct weft_json object;
    const char *file = "";
    const char *key = weft_request_header(request, "Idempotency-Key");
    request->state = args;
    args->ns = request->ns;
    args->key = weft_arena_strdup(request->arena, key);
    enum weft_rc rc = weft_request_object(request, false, &object, err);
    if (!rc)
        rc = read_text(request, &object, "input_file_id", &file, err);
    if (!rc)
        rc = read_text(request, &object, "endpoint", &args->endpoint, err);
    if (!rc)
        rc = read_text(request, &object, "completion_window", &args->window, err);
    if (!rc)
        rc = read_metadata(request, &object, &args->metadata, err);
    if (!rc)
        rc = weft_batch_endpoint_check(args->endpoint, err);
    if (!rc && !weft_openai_id_parse(WEFT_FILE_PREFIX, file, &args->file))
        rc = weft_fail_field(err, WEFT_NOT_FOUND, "input_file_id", "there is no such file");
    return rc;
}

enum weft_rc weft_batch_create_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_id id;
    enum weft_rc rc = weft_engine_batch_create(request->server->engine, request->state, &id, err);
    if (rc)
        return rc;
    weft_add_batch(request->server, &id);
    return reply_batch(request, &id, err);
}

/* ---- One batch ------------------------------------------------------------------------------- */

enum weft_rc weft_batch_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_id *id = weft_new(request->arena, struct weft_id);
    request->state = id;
    if (weft_openai_id_parse(WEFT_BATCH_PREFIX, weft_request_path(request, "batch"), id))
        return WEFT_OK;
    return weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no such batch");
}

enum weft_rc weft_batch_run(struct weft_request *request, struct weft_err *err)
{
    return reply_batch(request, request->state, err);
}

enum weft_rc weft_batch_cancel_run(struct weft_request *request, struct weft_err *err)
{
    const struct weft_id *id = request->state;
    enum weft_rc rc = weft_engine_batch_cancel(request->server->engine, request->ns, id, err);
    if (rc)
        return rc;
    weft_add_drain(request->server, id);
    return reply_batch(request, id, err);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

enum weft_rc weft_batches_read(struct weft_request *request, struct weft_err *err)
{
    static const struct weft_request_number number = {
        .name = "limit", .min = 1, .max = 100, .normally = 20};
    struct weft_batches_asking *asking = weft_new(request->arena, struct weft_batches_asking);
    const char *after = weft_request_query(request, "after");
    int64_t limit = 0;
    enum weft_rc rc = weft_request_query_i64(request, &number, &limit, err);
    *asking = (struct weft_batches_asking){
        .ns = request->ns, .limit = (uint32_t)limit, .has_after = after != NULL};
    if (!rc && after && !weft_openai_id_parse(WEFT_BATCH_PREFIX, after, &asking->after))
        rc = weft_invalid(err, "after", "after must be the id of a batch");
    request->state = asking;
    return rc;
}

enum weft_rc weft_batches_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_batch_list list;
    struct weft_json_writer out;
    char first[WEFT_OPENAI_ID_TEXT], last[WEFT_OPENAI_ID_TEXT];
    enum weft_rc rc =
        weft_engine_batches(request->server->engine, request->state, request->arena, &list, err);
    if (rc)
        return rc;
    weft_openai_begin_list(request, &out);
    for (size_t i = 0; i < list.count; i++)
        write_batch(&out, &list.item[i]);
    if (list.count > 0) {
        weft_openai_id_print(WEFT_BATCH_PREFIX, &list.item[0].id, first);
        weft_openai_id_print(WEFT_BATCH_PREFIX, &list.item[list.count - 1].id, last);
    }
    weft_openai_end_list(&out, list.count ? first : NULL, list.count ? last : NULL, list.more);
    return WEFT_OK;
}
