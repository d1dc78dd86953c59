/* SPDX-License-Identifier: Apache-2.0 */

/* Today there is one such kind: `http`. */

#include "core/carried.h"

#include "base/arena.h"
#include "core/http_call.h"

#include <string.h>

bool weft_kind_is_carried(const char *kind)
{
    return strcmp(kind, "http") == 0;
}

/* Members of a payload, as they are blamed in a spec. */
static const char *member_of_payload(const char *field)
{
    /* clang-format off */
    static const char *const row[][2] = {
        {"endpoint", "payload.endpoint"}, {"url", "payload.url"}, {"path", "payload.path"},
        {"method", "payload.method"}, {"headers", "payload.headers"}, {"body", "payload.body"},
        {"body_base64", "payload.body_base64"}, {"stream", "payload.stream"},
        {"from", "payload.from"},
    };
    /* clang-format on */
    for (size_t i = 0; field && i < WEFT_LEN(row); i++)
        if (strcmp(row[i][0], field) == 0)
            return row[i][1];
    return "payload";
}

enum weft_rc weft_carried_read(const char *content_type, const void *payload, size_t size,
                               struct weft_arena *arena, struct weft_carried *ret_carried,
                               struct weft_err *err)
{
    struct weft_json json;
    struct weft_http_call call;
    struct weft_err story = {0};
    if (content_type && strcmp(content_type, "application/json") != 0)
        return weft_invalid(err, "content_type", "the payload of kind 'http' is JSON, not '%.100s'",
                            content_type);
    enum weft_rc rc = weft_json_check(payload ? payload : "", size, &json, &story);
    if (!rc)
        rc = weft_http_call_read(&json, arena, &call, &story);
    if (rc)
        return weft_fail_field(err, rc, member_of_payload(story.field), "%s", story.text);
    *ret_carried = (struct weft_carried){.target = call.endpoint ? call.endpoint : WEFT_OWN_URL,
                                         .from = call.from,
                                         .from_count = call.from_count};
    return WEFT_OK;
}
