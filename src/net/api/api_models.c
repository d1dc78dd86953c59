/* SPDX-License-Identifier: Apache-2.0 */

/* Models: which endpoint and lane the lines of batches use. */

#include "base/arena.h"
#include "engine/batch/models.h"
#include "net/api/api.h"
#include "net/api/handlers.h"
#include "net/openai.h"
#include "net/server.h"

#include <string.h>

enum weft_rc weft_model_read(struct weft_request *request, struct weft_err *err)
{
    (void)err;
    request->state = (void *)(uintptr_t)weft_request_path(request, "model");
    return WEFT_OK;
}

enum weft_rc weft_model_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_model model;
    enum weft_rc rc = weft_engine_model(request->server->engine, request->ns, request->state,
                                        request->arena, &model, err);
    return weft_api_reply(request, rc, &model);
}

enum weft_rc weft_model_remove_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_model model;
    enum weft_rc rc = weft_engine_model_remove(request->server->engine, request->ns, request->state,
                                               request->arena, &model, err);
    return weft_api_reply(request, rc, &model);
}

enum weft_rc weft_model_put_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_model *model = weft_new(request->arena, struct weft_model);
    const char *name = weft_request_path(request, "model");
    enum weft_rc rc = weft_api_read_message(request, model, err);
    if (rc)
        return rc;
    /* The answer of GET may be sent back as it is. */
    if (model->name && strcmp(model->name, name) != 0)
        return weft_invalid(err, "model", "the path names another model than the body");
    model->name = name;
    request->state = model;
    return WEFT_OK;
}

enum weft_rc weft_model_put_run(struct weft_request *request, struct weft_err *err)
{
    const struct weft_model *put = request->state;
    struct weft_engine *engine = request->server->engine;
    struct weft_model model;
    enum weft_rc rc = weft_engine_model_put(engine, request->ns, put, err);
    if (!rc)
        rc = weft_engine_model(engine, request->ns, put->name, request->arena, &model, err);
    return weft_api_reply(request, rc, &model);
}

enum weft_rc weft_models_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_models_asking *asking = weft_new(request->arena, struct weft_models_asking);
    struct weft_paging paging = {0};
    enum weft_rc rc = weft_api_paging(request, &paging, err);
    *asking = (struct weft_models_asking){
        .ns = request->ns, .limit = paging.limit, .after = paging.after};
    request->state = asking;
    return rc;
}

enum weft_rc weft_models_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_models models;
    enum weft_rc rc =
        weft_engine_models(request->server->engine, request->state, request->arena, &models, err);
    return rc ? rc
              : weft_api_reply_page(request,
                                    &WEFT_API_PAGE(models.item, models.count, models.next));
}

enum weft_rc weft_openai_read(struct weft_request *request, struct weft_err *err)
{
    (void)request;
    (void)err;
    return WEFT_OK;
}

/* All of them, which OpenAI's clients expect; `*` is no model that a client could name. */
enum weft_rc weft_openai_models_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_json_writer out;
    struct weft_models_asking asking = {.ns = request->ns, .limit = 1000};
    weft_reply_json(request, 200, &out);
    weft_json_begin_object(&out);
    weft_json_add_text(&out, "object", "list");
    weft_json_add_array(&out, "data");
    do {
        struct weft_models models;
        enum weft_rc rc =
            weft_engine_models(request->server->engine, &asking, request->arena, &models, err);
        if (rc)
            return rc;
        for (size_t i = 0; i < models.count; i++) {
            if (strcmp(models.item[i].name, "*") == 0)
                continue;
            weft_json_begin_object(&out);
            weft_json_add_text(&out, "id", models.item[i].name);
            weft_json_add_text(&out, "object", "model");
            weft_json_add_i64(&out, "created", 0);
            weft_json_add_text(&out, "owned_by", models.item[i].endpoint);
            weft_json_end_object(&out);
        }
        asking.after = models.next;
    } while (asking.after);
    weft_json_end_array(&out);
    weft_json_end_object(&out);
    return WEFT_OK;
}
