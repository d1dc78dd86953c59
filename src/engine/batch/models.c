/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/batch/models.h"

#include "base/arena.h"
#include "core/cursor.h"
#include "core/spec.h"
#include "engine/admin/lanes.h"
#include "engine/engine_state.h"
#include "engine/job/list.h"

#include <string.h>

static bool is_default(const char *name)
{
    return strcmp(name, "*") == 0;
}

static enum weft_rc check_name(const char *name, struct weft_err *err)
{
    return is_default(name) ? WEFT_OK : weft_name_check(name, "model", err);
}

static enum weft_rc no_model(const char *name, struct weft_err *err)
{
    return weft_fail_field(err, WEFT_NOT_FOUND, "model", "there is no model '%s'", name);
}

static enum weft_rc read_one(struct weft_engine *engine, int32_t ns, const char *name,
                             struct weft_arena *arena, struct weft_model *ret_model,
                             bool *ret_found, struct weft_err *err);

/* ---- Putting --------------------------------------------------------------------------------- */

/* Other settings of the lane stay as they are. */
static enum weft_rc put_limit(struct weft_engine *engine, const char *ns,
                              const struct weft_model *model, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_lane lane = {0};
    struct weft_err none = {0};
    enum weft_rc rc = weft_engine_lane(engine, ns, model->lane, arena, &lane, &none);
    if (rc == WEFT_NOT_FOUND)
        rc = WEFT_OK;
    else if (rc)
        *err = none;
    bool same = lane.max_running == model->max_running;
    lane.name = model->lane;
    lane.max_running = model->max_running;
    if (!rc && !same)
        rc = weft_engine_lane_put(engine, ns, &lane, err);
    weft_arena_free(arena);
    return rc;
}

/* Lines are moved once: the other model names no further one. */
static enum weft_rc check_escalation(struct weft_engine *engine, int32_t ns,
                                     const struct weft_model *model, struct weft_arena *arena,
                                     struct weft_err *err)
{
    struct weft_model other = {0};
    bool found = false;
    if (!model->escalate_to)
        return WEFT_OK;
    if (strcmp(model->escalate_to, model->name) == 0 || is_default(model->escalate_to))
        return weft_invalid(err, "escalate_to", "escalate_to must name another model");
    enum weft_rc rc = read_one(engine, ns, model->escalate_to, arena, &other, &found, err);
    if (!rc && !found)
        rc = weft_hint(
            err, weft_invalid(err, "escalate_to", "there is no model '%s'", model->escalate_to),
            "put that model first");
    if (!rc && other.escalate_to)
        rc = weft_invalid(err, "escalate_to",
                          "the model '%s' escalates to '%s': lines are moved only once",
                          model->escalate_to, other.escalate_to);
    return rc;
}

enum weft_rc weft_engine_model_put(struct weft_engine *engine, const char *ns,
                                   const struct weft_model *model, struct weft_err *err)
{
    struct weft_name_want space = {.sort = WEFT_NAME_NAMESPACE, .text = ns};
    struct weft_model resolved = *model;
    if (!resolved.lane)
        resolved.lane = is_default(model->name) ? "models" : model->name;
    enum weft_rc rc = check_name(model->name, err);
    if (!rc && !model->endpoint)
        rc = weft_invalid(err, "endpoint", "endpoint is missing: it names where calls go");
    if (!rc)
        rc = weft_name_check(model->endpoint, "endpoint", err);
    if (!rc)
        rc = weft_name_check(resolved.lane, "lane", err);
    if (!rc && model->max_running < 0)
        rc = weft_invalid(err, "max_running", "max_running must not be negative");
    if (!rc)
        rc = weft_intern_names(engine, true, &space, 1, err);
    if (rc)
        return rc;
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    rc = check_escalation(engine, space.id, &resolved, arena, err);
    if (rc) {
        weft_arena_free(arena);
        return rc;
    }
    *weft_call_model_put(&call, arena) =
        (struct weft_model_put_in){.namespace = space.id,
                                   .name = resolved.name,
                                   .endpoint = resolved.endpoint,
                                   .lane = resolved.lane,
                                   .escalate_to = resolved.escalate_to};
    rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, err);
    weft_arena_free(arena);
    return rc ? rc : put_limit(engine, ns, &resolved, err);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static enum weft_rc read_limits(struct weft_engine *engine, const char *ns,
                                struct weft_model *model, size_t count, struct weft_arena *arena,
                                struct weft_err *err)
{
    for (size_t i = 0; i < count; i++) {
        struct weft_lane lane = {0};
        enum weft_rc rc = weft_engine_lane(engine, ns, model[i].lane, arena, &lane, err);
        if (rc && rc != WEFT_NOT_FOUND)
            return rc;
        model[i].max_running = rc ? 0 : lane.max_running;
    }
    return WEFT_OK;
}

static enum weft_rc read_rows(struct weft_engine *engine, const struct weft_models_read_in *in,
                              struct weft_arena *arena, struct weft_rows *ret_rows,
                              struct weft_err *err)
{
    struct weft_call call;
    *weft_call_models_read(&call, arena) = *in;
    return weft_tx_once(engine, WEFT_TX_READ, &call, arena, ret_rows, err);
}

static struct weft_model model_of(const struct weft_models_read_out *row)
{
    return (struct weft_model){.name = row->name,
                               .endpoint = row->endpoint,
                               .lane = row->lane,
                               .escalate_to = row->escalate_to};
}

/* The model of this very name; *ret_found false: there is none. */
static enum weft_rc read_one(struct weft_engine *engine, int32_t ns, const char *name,
                             struct weft_arena *arena, struct weft_model *ret_model,
                             bool *ret_found, struct weft_err *err)
{
    struct weft_rows rows = {0};
    const struct weft_models_read_in in = {.namespace = ns, .first = name, .after = "", .most = 1};
    enum weft_rc rc = read_rows(engine, &in, arena, &rows, err);
    *ret_found = !rc && rows.count > 0 && strcmp(weft_out_models_read(&rows)->name, name) == 0;
    if (*ret_found)
        *ret_model = model_of(weft_out_models_read(&rows));
    return rc;
}

enum weft_rc weft_engine_model(struct weft_engine *engine, const char *ns, const char *name,
                               struct weft_arena *arena, struct weft_model *ret_model,
                               struct weft_err *err)
{
    int32_t space = 0;
    bool found = false;
    enum weft_rc rc = check_name(name, err);
    if (!rc)
        rc = weft_find_namespace(engine, ns, &space, err);
    if (!rc)
        rc = read_one(engine, space, name, arena, ret_model, &found, err);
    if (!rc && !found)
        rc = no_model(name, err);
    return rc ? rc : read_limits(engine, ns, ret_model, 1, arena, err);
}

enum weft_rc weft_model_find(struct weft_engine *engine, int32_t ns, const char *name,
                             struct weft_arena *arena, const struct weft_model **ret_model,
                             struct weft_err *err)
{
    struct weft_model *model = weft_new(arena, struct weft_model);
    bool found = false;
    enum weft_rc rc = read_one(engine, ns, name, arena, model, &found, err);
    if (!rc && !found)
        rc = read_one(engine, ns, "*", arena, model, &found, err);
    *ret_model = found ? model : NULL;
    return rc;
}

enum weft_rc weft_engine_models(struct weft_engine *engine, const struct weft_models_asking *asking,
                                struct weft_arena *arena, struct weft_models *ret_models,
                                struct weft_err *err)
{
    const struct weft_cursor_list list = {.name = "models", .ns = asking->ns};
    char after[WEFT_CURSOR_PLACE_MAX + 1] = "";
    size_t limit = asking->limit ? asking->limit : WEFT_PAGE_DEFAULT, size;
    int32_t space = 0;
    struct weft_rows rows = {0};
    enum weft_rc rc = weft_page_limit(asking->limit, err);
    if (!rc && asking->after)
        rc = weft_cursor_read(&list, asking->after, after, &size, err);
    if (!rc)
        rc = weft_find_namespace(engine, asking->ns, &space, err);
    const struct weft_models_read_in in = {
        .namespace = space, .first = "", .after = after, .most = (int64_t)limit + 1};
    if (!rc)
        rc = read_rows(engine, &in, arena, &rows, err);
    if (rc)
        return rc;
    size_t count = rows.count < limit ? rows.count : limit;
    struct weft_model *item = weft_new_array(arena, struct weft_model, count + 1);
    for (size_t i = 0; i < count; i++)
        item[i] = model_of(&weft_out_models_read(&rows)[i]);
    *ret_models = (struct weft_models){.item = item, .count = count};
    if (rows.count > limit)
        ret_models->next =
            weft_cursor_write(&list, item[count - 1].name, strlen(item[count - 1].name), arena);
    return read_limits(engine, asking->ns, item, count, arena, err);
}

enum weft_rc weft_engine_model_remove(struct weft_engine *engine, const char *ns, const char *name,
                                      struct weft_arena *arena, struct weft_model *ret_model,
                                      struct weft_err *err)
{
    int32_t space = 0;
    struct weft_call call;
    struct weft_rows rows = {0};
    enum weft_rc rc = check_name(name, err);
    if (!rc)
        rc = weft_find_namespace(engine, ns, &space, err);
    *weft_call_model_remove(&call, arena) =
        (struct weft_model_remove_in){.namespace = space, .name = name};
    if (!rc)
        rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, &rows, err);
    if (!rc && rows.count == 0)
        rc = no_model(name, err);
    if (rc)
        return rc;
    const struct weft_model_remove_out *row = weft_out_model_remove(&rows);
    *ret_model = (struct weft_model){.name = row->name,
                                     .endpoint = row->endpoint,
                                     .lane = row->lane,
                                     .escalate_to = row->escalate_to};
    return read_limits(engine, ns, ret_model, 1, arena, err);
}
