/* SPDX-License-Identifier: Apache-2.0 */

/*
 * NDJSON: items as lines of JSON, in bodies and in answers. Blank lines are skipped. A line that is
 * refused is an item that is refused, which names its line; the others go on.
 */

#include "net/lines.h"

#include "base/err.h"
#include "base/limits.h"
#include "net/http/http_head.h"
#include "wire/wire.h"

#include <string.h>
#include <strings.h>

const char *const weft_lines_types[] = {WEFT_LINES_TYPE, "application/ndjson", "application/jsonl",
                                        NULL};

bool weft_lines_type(const char *type)
{
    size_t size = type ? strcspn(type, "; \t") : 0;
    for (const char *const *known = weft_lines_types; *known; known++)
        if (size == strlen(*known) && strncasecmp(type, *known, size) == 0)
            return true;
    return false;
}

bool weft_request_wants_lines(const struct weft_request *request)
{
    const char *accept = weft_request_header(request, "Accept");
    return accept && strstr(accept, WEFT_LINES_TYPE);
}

struct line {
    const char *text; /* without the white space around it */
    size_t size;
    uint32_t number; /* from 1 */
};

/* The next line that is not blank; false at the end. Begins with a zeroed line and at = 0. */
static bool next_line(const struct weft_buf *body, size_t *at, struct line *line)
{
    static const char space[] = " \t\r";
    while (*at < body->size) {
        const char *text = body->data + *at;
        const char *end = memchr(text, '\n', body->size - *at);
        size_t size = end ? (size_t)(end - text) : body->size - *at;
        *at += size + 1;
        line->number++;
        while (size > 0 && *text && strchr(space, *text)) {
            text++;
            size--;
        }
        while (size > 0 && text[size - 1] && strchr(space, text[size - 1]))
            size--;
        if (size == 0)
            continue;
        line->text = text;
        line->size = size;
        return true;
    }
    return false;
}

static enum weft_rc read_line(struct weft_request *request, const struct weft_wire_type *type,
                              const struct line *line, void *ret_item, struct weft_err *err)
{
    struct weft_json value;
    enum weft_rc rc = weft_json_check(line->text, line->size, &value, err);
    if (!rc && value.kind != WEFT_JSON_OBJECT)
        rc = weft_fail(err, WEFT_INVALID_VALUE, "a line must be a JSON object");
    return rc ? rc : weft_wire_read(type, &value, request->arena, ret_item, err);
}

enum weft_rc weft_request_lines(struct weft_request *request, const struct weft_wire_type *type,
                                size_t item_size, struct weft_err *err)
{
    struct weft_items *items = &request->items;
    struct line line = {0};
    size_t at = 0, count = 0;
    while (next_line(&request->body, &at, &line))
        count++;
    if (count == 0)
        return weft_fail(err, WEFT_INVALID_JSON,
                         "the request has no body; it takes a JSON object on each line");
    if (count > WEFT_BATCH_MAX) {
        enum weft_rc rc =
            weft_fail(err, WEFT_TOO_LARGE, "%zu items in one request, at most %d are allowed",
                      count, WEFT_BATCH_MAX);
        err->hint = "send the lines in several requests";
        return rc;
    }
    weft_request_items_room(request, item_size, count);
    items->bulk = true;
    items->line = weft_new_array(request->arena, uint32_t, count);
    line = (struct line){0};
    at = 0;
    for (size_t i = 0; next_line(&request->body, &at, &line); i++) {
        struct weft_err why = {0};
        items->line[i] = line.number;
        if (read_line(request, type, &line, (char *)items->item + i * item_size, &why)) {
            struct weft_err *named = weft_err_new(request->arena, why.rc, why.field, "line %u: %s",
                                                  line.number, why.text);
            named->hint = why.hint;
            items->err[i] = named;
        }
        items->bytes += line.size;
    }
    return WEFT_OK;
}
