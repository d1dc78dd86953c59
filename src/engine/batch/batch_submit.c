/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/batch/batch_submit.h"

#include "base/arena.h"
#include "core/batch_line.h"
#include "engine/batch/batch.h"
#include "engine/batch/content.h"

#include <string.h>

static bool is_pair(const struct weft_json *key, const struct weft_json *value,
                    struct weft_arena *arena)
{
    const char *name, *text;
    return value->kind == WEFT_JSON_STRING && !weft_json_string(key, arena, &name, NULL) &&
           strlen(name) <= WEFT_BATCH_METADATA_KEY_MAX &&
           !weft_json_string(value, arena, &text, NULL) &&
           strlen(text) <= WEFT_BATCH_METADATA_VALUE_MAX;
}

enum weft_rc weft_batch_metadata_check(const struct weft_json *metadata, struct weft_err *err)
{
    struct weft_json_iter pair;
    size_t pairs = 0;
    if (metadata->kind != WEFT_JSON_OBJECT)
        return weft_invalid(err, "metadata", "metadata must be an object");
    struct weft_arena *arena = weft_arena_new();
    bool good = true;
    weft_json_iter_init(&pair, metadata);
    for (; good && weft_json_next(&pair); pairs++)
        good = is_pair(&pair.key, &pair.value, arena);
    weft_arena_free(arena);
    if (!good)
        return weft_invalid(err, "metadata",
                            "metadata has texts of up to %d bytes under names of up to %d",
                            WEFT_BATCH_METADATA_VALUE_MAX, WEFT_BATCH_METADATA_KEY_MAX);
    if (pairs > WEFT_BATCH_METADATA_MAX)
        return weft_invalid(err, "metadata", "metadata has more than %d pairs",
                            WEFT_BATCH_METADATA_MAX);
    return WEFT_OK;
}

enum weft_rc weft_batch_endpoint_check(const char *endpoint, struct weft_err *err)
{
    if (strncmp(endpoint, "/v1/", 4) != 0 || strlen(endpoint) > WEFT_BATCH_URL_MAX)
        return weft_invalid(err, "endpoint", "endpoint must be a path like /v1/chat/completions");
    return WEFT_OK;
}

static enum weft_rc check(const struct weft_batch_spec *spec, struct weft_file_asking *ret_file,
                          struct weft_err *err)
{
    struct weft_json metadata;
    if (!spec->input_file)
        return weft_invalid(err, "input_file_id", "input_file_id is missing");
    if (!spec->endpoint)
        return weft_invalid(err, "endpoint", "endpoint is missing");
    if (!weft_file_id_parse(spec->input_file, ret_file) || ret_file->which != WEFT_CONTENT_FILE)
        return weft_fail_field(err, WEFT_NOT_FOUND, "input_file_id", "there is no such file");
    enum weft_rc rc = weft_batch_endpoint_check(spec->endpoint, err);
    if (!rc && spec->metadata &&
        weft_json_check(spec->metadata, strlen(spec->metadata), &metadata, NULL))
        rc = weft_invalid(err, "metadata", "metadata is not JSON");
    else if (!rc && spec->metadata)
        rc = weft_batch_metadata_check(&metadata, err);
    return rc;
}

enum weft_rc weft_engine_batch_submit(struct weft_engine *engine, const char *ns,
                                      const struct weft_batch_spec *spec, struct weft_arena *arena,
                                      struct weft_batch_info *ret_info, struct weft_err *err)
{
    struct weft_file_asking file;
    struct weft_batch_asking asking = {.ns = ns};
    enum weft_rc rc = check(spec, &file, err);
    if (rc)
        return rc;
    const struct weft_batch_new args = {.ns = ns,
                                        .file = file.id,
                                        .endpoint = spec->endpoint,
                                        .window = spec->window ? spec->window : "24h",
                                        .metadata = spec->metadata,
                                        .key = spec->key};
    rc = weft_engine_batch_create(engine, &args, &asking.id, err);
    if (rc && err && err->field && strcmp(err->field, "Idempotency-Key") == 0)
        err->field = "key"; /* here it is no header */
    return rc ? rc : weft_engine_batch_info(engine, &asking, arena, ret_info, err);
}

enum weft_rc weft_engine_batch_stop(struct weft_engine *engine,
                                    const struct weft_batch_asking *asking,
                                    struct weft_arena *arena, struct weft_batch_info *ret_info,
                                    struct weft_err *err)
{
    enum weft_rc rc = weft_engine_batch_cancel(engine, asking->ns, &asking->id, err);
    return rc ? rc : weft_engine_batch_info(engine, asking, arena, ret_info, err);
}
