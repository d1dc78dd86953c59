/* SPDX-License-Identifier: Apache-2.0 */

#include "core/batch_payload.h"

#include "base/arena.h"
#include "base/json.h"
#include "core/batch_line.h"

#include <stdio.h>
#include <string.h>

enum { EXTRA = 1024 }; /* bytes that a payload has besides the body */

const char *weft_batch_payload(const char *endpoint, const struct weft_batch_line *line,
                               struct weft_arena *arena, size_t *ret_size)
{
    size_t room = line->body.size + EXTRA;
    char *text = weft_arena_alloc(arena, 1, room);
    int head = snprintf(
        text, room, "{\"endpoint\":\"%s\",\"path\":\"%s\",\"method\":\"POST\",\"body\":", endpoint,
        line->url + strlen("/v1"));
    memcpy(text + head, line->body.text, line->body.size);
    text[(size_t)head + line->body.size] = '}';
    *ret_size = (size_t)head + line->body.size + 1;
    return text;
}

/* The last member of that name counts, as it does where a line is read. */
static bool find_member(const struct weft_json *object, const char *name,
                        struct weft_json *ret_value)
{
    struct weft_json_iter iter;
    bool found = false;
    if (object->kind != WEFT_JSON_OBJECT)
        return false;
    weft_json_iter_init(&iter, object);
    while (weft_json_next(&iter))
        if (weft_json_is(&iter.key, name)) {
            *ret_value = iter.value;
            found = true;
        }
    return found;
}

/* A value of a text, and what stands in its place. */
struct splice {
    struct weft_json value;
    const char *with;
};

static char *add(char *at, const char *from, size_t size)
{
    memcpy(at, from, size);
    return at + size;
}

static char *add_name(char *at, const char *name)
{
    *at++ = '"';
    at = add(at, name, strlen(name));
    *at++ = '"';
    return at;
}

const char *weft_batch_payload_move(const void *payload, size_t size, const char *endpoint,
                                    const char *model, struct weft_arena *arena, size_t *ret_size)
{
    struct weft_json whole, body, old_endpoint = {0}, old_model = {0};
    if (size == 0 || weft_json_check(payload, size, &whole, NULL) ||
        !find_member(&whole, "endpoint", &old_endpoint) || !find_member(&whole, "body", &body) ||
        !find_member(&body, "model", &old_model))
        return NULL;
    struct splice first = {old_endpoint, endpoint}, second = {old_model, model};
    if (first.value.text > second.value.text) {
        struct splice other = first;
        first = second;
        second = other;
    }
    const char *text = payload, *end = text + size;
    const char *behind_first = first.value.text + first.value.size;
    const char *behind_second = second.value.text + second.value.size;
    char *moved = weft_arena_alloc(arena, 1, size + strlen(endpoint) + strlen(model) + 4);
    char *at = add(moved, text, (size_t)(first.value.text - text));
    at = add_name(at, first.with);
    at = add(at, behind_first, (size_t)(second.value.text - behind_first));
    at = add_name(at, second.with);
    at = add(at, behind_second, (size_t)(end - behind_second));
    *ret_size = (size_t)(at - moved);
    return moved;
}
