/* SPDX-License-Identifier: Apache-2.0 */

/* Files, and where the lines of batches go. */

#include "base/arena.h"
#include "base/err.h"
#include "client/client.h"
#include "core/spec.h"
#include "engine/batch/file_view.h"
#include "engine/batch/models.h"

#include <string.h>

/* ---- Files ----------------------------------------------------------------------------------- */

/* One file as a page of its own. */
static enum weft_rc one_file(struct weft *weft, const struct weft_op_call *what,
                             weft_check_fn *check, struct weft_file_infos *ret_files,
                             struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_op_call call = *what;
    struct weft_file_info *file = weft_new(arena, struct weft_file_info);
    call.count = 1;
    call.out = ret_files ? file : NULL;
    call.arena = arena;
    enum weft_rc rc = weft_do(&(struct weft_via){.weft = weft}, &call, check, &arena, err);
    if (!rc && ret_files) /* without it there was no room for the answer */
        *ret_files = (struct weft_file_infos){.item = file, .count = 1, .arena = arena};
    return rc;
}

static enum weft_rc check_upload(const struct weft_op_call *call, struct weft_err *err)
{
    const struct weft_upload *upload = call->in;
    const struct weft_range fd = {.field = "fd", .value = upload->fd, .max = INT32_MAX};
    const struct weft_range expires = {.field = "expires_ms",
                                       .value = upload->expires_ms,
                                       .min = WEFT_FILE_EXPIRES_MIN_S * INT64_C(1000),
                                       .max = WEFT_FILE_EXPIRES_MAX_S * INT64_C(1000)};
    enum weft_rc rc = upload->read ? WEFT_OK : weft_check_range(&fd, err);
    return rc || upload->expires_ms == 0 ? rc : weft_check_range(&expires, err);
}

enum weft_rc weft_file_put(struct weft *weft, const struct weft_upload *upload,
                           struct weft_file_infos *ret_files, struct weft_err *err)
{
    const struct weft_op_call call = {.op = WEFT_OP_FILE_PUT, .in = upload};
    return one_file(weft, &call, check_upload, ret_files, err);
}

enum weft_rc weft_files(struct weft *weft, const struct weft_id *id, uint32_t limit,
                        const char *after, struct weft_file_infos *ret_files, struct weft_err *err)
{
    const char *ns = weft_ns_of(weft, NULL);
    if (id) {
        const struct weft_file_asking asking = {.ns = ns, .id = *id};
        return one_file(weft, &(struct weft_op_call){.op = WEFT_OP_FILE, .in = &asking}, NULL,
                        ret_files, err);
    }
    const struct weft_file_listing listing = {.ns = ns, .limit = limit, .after = after};
    const struct weft_op_call call = {
        .op = WEFT_OP_FILES, .in = &listing, .count = 1, .out = ret_files};
    return weft_ask(weft, &call, WEFT_ARENA_OF(ret_files), err);
}

WEFT_FREES(weft_file_infos)

enum weft_rc weft_file_remove(struct weft *weft, const struct weft_id *id, struct weft_err *err)
{
    struct weft_file_info before;
    struct weft_file_asking asking = {.ns = weft_ns_of(weft, NULL)};
    const struct weft_op_call call = {
        .op = WEFT_OP_FILE_REMOVE, .in = id ? &asking : NULL, .count = 1, .out = &before};
    if (id)
        asking.id = *id;
    return weft_do(&(struct weft_via){.weft = weft}, &call, NULL, NULL, err);
}

static enum weft_rc check_content(const struct weft_op_call *call, struct weft_err *err)
{
    const struct weft_content_asking *asking = call->in;
    const struct weft_sink *sink = asking->sink;
    const struct weft_range fd = {.field = "fd", .value = sink ? sink->fd : 0, .max = INT32_MAX};
    if ((unsigned)asking->of.which > WEFT_CONTENT_ERRORS)
        return weft_invalid(err, "which", "there is no such content");
    if (!sink)
        return weft_missing("sink", err);
    return sink->write ? WEFT_OK : weft_check_range(&fd, err);
}

enum weft_rc weft_content(struct weft *weft, enum weft_content which, const struct weft_id *id,
                          const struct weft_sink *sink, uint64_t *ret_bytes, struct weft_err *err)
{
    uint64_t bytes = 0;
    struct weft_content_asking asking = {.of = {.ns = weft_ns_of(weft, NULL), .which = which},
                                         .sink = sink};
    const struct weft_op_call call = {
        .op = WEFT_OP_FILE_CONTENT, .in = id ? &asking : NULL, .count = 1, .out = &bytes};
    if (id)
        asking.of.id = *id;
    enum weft_rc rc = weft_do(&(struct weft_via){.weft = weft}, &call, check_content, NULL, err);
    if (ret_bytes)
        *ret_bytes = bytes;
    return rc;
}

/* ---- Models ---------------------------------------------------------------------------------- */

static enum weft_rc check_name(const char *name, struct weft_err *err)
{
    return name && strcmp(name, "*") == 0 ? WEFT_OK : weft_name_check(name, "model", err);
}

static enum weft_rc check_model_name(const struct weft_op_call *call, struct weft_err *err)
{
    return check_name(call->in, err);
}

static enum weft_rc check_model(const struct weft_op_call *call, struct weft_err *err)
{
    const struct weft_model *model = call->in;
    if (!model->name)
        return weft_missing("name", err);
    if (!model->endpoint)
        return weft_missing("endpoint", err);
    return check_name(model->name, err);
}

enum weft_rc weft_model_put(struct weft *weft, const struct weft_model *model, struct weft_err *err)
{
    char no_answer;
    const struct weft_op_call call = {
        .op = WEFT_OP_MODEL_PUT, .in = model, .count = 1, .out = &no_answer};
    return weft_do(&(struct weft_via){.weft = weft}, &call, check_model, NULL, err);
}

enum weft_rc weft_model_remove(struct weft *weft, const char *name, struct weft_err *err)
{
    struct weft_model before;
    const struct weft_op_call call = {.op = WEFT_OP_MODEL_REMOVE, .in = name, .out = &before};
    return weft_do(&(struct weft_via){.weft = weft}, &call, check_model_name, NULL, err);
}

/* One model as a page of its own. */
static enum weft_rc read_model(struct weft *weft, const char *name, struct weft_models *ret_models,
                               struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_model *model = weft_new(arena, struct weft_model);
    const struct weft_op_call call = {
        .op = WEFT_OP_MODEL, .in = name, .out = model, .arena = arena};
    enum weft_rc rc =
        weft_do(&(struct weft_via){.weft = weft}, &call, check_model_name, &arena, err);
    if (!rc)
        *ret_models = (struct weft_models){.item = model, .count = 1, .arena = arena};
    return rc;
}

enum weft_rc weft_models(struct weft *weft, const char *name, uint32_t limit, const char *after,
                         struct weft_models *ret_models, struct weft_err *err)
{
    if (name && ret_models)
        return read_model(weft, name, ret_models, err);
    const struct weft_models_asking asking = {
        .ns = weft_ns_of(weft, NULL), .limit = limit, .after = after};
    const struct weft_op_call call = {
        .op = WEFT_OP_MODELS, .in = &asking, .count = 1, .out = ret_models};
    return weft_ask(weft, &call, WEFT_ARENA_OF(ret_models), err);
}

WEFT_FREES(weft_models)
