/* SPDX-License-Identifier: Apache-2.0 */

#include "core/json_fill.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/str.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_MAX = 100 }; /* bytes of a pointer in an error */

static int shown(const char *text, size_t size)
{
    return (int)weft_utf8_cut(text, size, SHOWN_MAX);
}

/* ---- Pointers -------------------------------------------------------------------------------- */

enum weft_rc weft_json_pointer_check(const char *pointer, struct weft_err *err)
{
    size_t size = strlen(pointer);
    if (size > WEFT_JSON_POINTER_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "from",
                               "a JSON pointer has at most %d bytes, this one %zu",
                               WEFT_JSON_POINTER_MAX, size);
    bool good = size == 0 || pointer[0] == '/';
    for (const char *c = pointer; *c && good; c++)
        good = *c != '~' || c[1] == '0' || c[1] == '1';
    if (!good)
        return weft_invalid(err, "from",
                            "%.*s is not a JSON pointer: it begins with /, and ~ is written ~0, / "
                            "within a key ~1",
                            shown(pointer, size), pointer);
    return WEFT_OK;
}

/* Decodes the token that `at`, a slash, begins; returns what follows it. */
static const char *take_token(const char *at, char *ret_token)
{
    for (at++; *at && *at != '/'; at++) {
        *ret_token = *at;
        if (*at == '~')
            *ret_token = *++at == '0' ? '~' : '/';
        ret_token++;
    }
    *ret_token = '\0';
    return at;
}

/* False for none and for "-", for signs and for leading zeros. */
static bool read_index(const char *token, size_t *ret_index)
{
    enum { DIGITS_MAX = 15 }; /* so that it cannot overflow */
    size_t size = strspn(token, "0123456789"), index = 0;
    if (size == 0 || token[size] || size > DIGITS_MAX || (token[0] == '0' && size > 1))
        return false;
    for (; *token; token++)
        index = index * 10 + (size_t)(*token - '0');
    *ret_index = index;
    return true;
}

/* One step down. Returns NULL or why there is none. */
static const char *step(const struct weft_json *value, const char *token,
                        struct weft_json *ret_value)
{
    struct weft_json_iter item;
    size_t index = 0, found = 0;
    if (value->kind == WEFT_JSON_ARRAY && !read_index(token, &index))
        return "is no index of that array";
    if (value->kind != WEFT_JSON_ARRAY && value->kind != WEFT_JSON_OBJECT)
        return "lies below a value that is neither an object nor an array";
    weft_json_iter_init(&item, value);
    for (size_t i = 0; weft_json_next(&item); i++) {
        if (value->kind == WEFT_JSON_ARRAY ? i != index : !weft_json_is(&item.key, token))
            continue;
        *ret_value = item.value;
        found++;
        if (value->kind == WEFT_JSON_ARRAY)
            break;
    }
    return found == 1 ? NULL : found ? "is there more than once" : "does not exist";
}

enum weft_rc weft_json_pointer_find(const struct weft_json *document, const char *pointer,
                                    const char *name, struct weft_json *ret_value,
                                    struct weft_err *err)
{
    struct weft_json value = *document;
    char token[WEFT_JSON_POINTER_MAX + 1];
    assert(strlen(pointer) < sizeof(token));
    for (const char *at = pointer; *at;) {
        at = take_token(at, token);
        const char *why = step(&value, token, &value);
        if (why)
            return weft_invalid(err, "from", "%.*s in %s %s",
                                shown(pointer, (size_t)(at - pointer)), pointer, name, why);
    }
    *ret_value = value;
    return WEFT_OK;
}

/* ---- Filling --------------------------------------------------------------------------------- */

struct part {
    struct weft_json place, value;
    const struct weft_json_fill *fill;
};

/* By place; of two that begin at the same byte the one that holds the other comes first. */
static int by_place(const void *a, const void *b)
{
    const struct weft_json *one = &((const struct part *)a)->place;
    const struct weft_json *other = &((const struct part *)b)->place;
    if (one->text != other->text)
        return one->text < other->text ? -1 : 1;
    return (one->size < other->size) - (one->size > other->size);
}

/* Finds places and values, in the order of the places, which must lie apart. */
static enum weft_rc find_parts(const struct weft_json *body, const struct weft_json_fill *fill,
                               size_t count, struct part *part, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        part[i].fill = &fill[i];
        rc = weft_json_pointer_find(body, fill[i].target, "the body", &part[i].place, err);
        if (!rc)
            rc = weft_json_pointer_find(&fill[i].document, fill[i].pointer, fill[i].name,
                                        &part[i].value, err);
    }
    if (rc)
        return rc;
    qsort(part, count, sizeof(*part), by_place);
    for (size_t i = 1; i < count; i++) {
        const struct weft_json *before = &part[i - 1].place;
        const char *outer = part[i - 1].fill->target, *inner = part[i].fill->target;
        if (part[i].place.text < before->text + before->size)
            return weft_invalid(err, "from", "'%.*s' of the body would be filled twice, by '%.*s'",
                                shown(inner, strlen(inner)), inner, shown(outer, strlen(outer)),
                                outer);
    }
    return WEFT_OK;
}

enum weft_rc weft_json_fill(const struct weft_json *body, const struct weft_json_fill *fill,
                            size_t count, struct weft_buf *buf, struct weft_err *err)
{
    struct part part[WEFT_HTTP_FILLS_MAX];
    assert(buf->size == 0 && !buf->full);
    if (count > WEFT_HTTP_FILLS_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "from", "from has at most %d members, not %zu",
                               WEFT_HTTP_FILLS_MAX, count);
    enum weft_rc rc = find_parts(body, fill, count, part, err);
    if (rc)
        return rc;

    const char *at = body->text;
    for (size_t i = 0; i < count; i++) {
        const struct weft_json *place = &part[i].place, *value = &part[i].value;
        weft_buf_add(buf, at, (size_t)(place->text - at));
        weft_buf_add(buf, value->text, value->size);
        at = place->text + place->size;
    }
    weft_buf_add(buf, at, (size_t)(body->text + body->size - at));
    if (buf->full)
        return weft_fail_field(err, WEFT_TOO_LARGE, "from",
                               "the body has more than %zu bytes with what from puts into it",
                               buf->max);
    struct weft_json filled;
    if (weft_json_check(buf->data, buf->size, &filled, NULL))
        return weft_invalid(err, "from",
                            "the body is nested more than %d deep with what from puts "
                            "into it",
                            WEFT_JSON_DEPTH_MAX);
    return WEFT_OK;
}
