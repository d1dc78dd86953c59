/* SPDX-License-Identifier: Apache-2.0 */

/* The JSON Schema of a message, from its rows. */

#include "wire/type.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { NESTED_MAX = 4 };

const char *weft_wire_name(const struct weft_wire_type *type)
{
    return type->name;
}

size_t weft_wire_size(const struct weft_wire_type *type)
{
    return type->size;
}

static void put_pair(struct weft_json_writer *out, const char *key, const char *text)
{
    weft_json_key(out, key);
    weft_json_put_text(out, text);
}

/* "type":"string", or "type":["string","null"] */
static void put_type(struct weft_json_writer *out, const char *word, bool nullable)
{
    weft_json_key(out, "type");
    if (!nullable) {
        weft_json_put_text(out, word);
        return;
    }
    weft_json_begin_array(out);
    weft_json_put_text(out, word);
    weft_json_put_text(out, "null");
    weft_json_end_array(out);
}

static void put_enum(struct weft_json_writer *out, const char *const *word, size_t count,
                     bool nullable)
{
    put_type(out, "string", nullable);
    weft_json_key(out, "enum");
    weft_json_begin_array(out);
    for (size_t i = 0; i < count; i++)
        if (word[i]) /* not every number need have a word */
            weft_json_put_text(out, word[i]);
    if (nullable)
        weft_json_put_null(out);
    weft_json_end_array(out);
}

static void put_bounds(const struct weft_wire_field *field, struct weft_json_writer *out)
{
    int64_t min, max;
    weft_wire_bounds(field, &min, &max);
    if (min != INT64_MIN) {
        weft_json_key(out, "minimum");
        weft_json_put_i64(out, min);
    }
    if (max != INT64_MAX) {
        weft_json_key(out, "maximum");
        weft_json_put_i64(out, max);
    }
}

static void put_string(const struct weft_wire_field *field, bool nullable,
                       struct weft_json_writer *out)
{
    put_type(out, "string", nullable);
    if (field->kind == WEFT_WIRE_ID)
        put_pair(out, "format", "uuid");
    else if (field->kind == WEFT_WIRE_MOMENT || field->kind == WEFT_WIRE_DUE)
        put_pair(out, "format", "date-time");
    else if (field->kind == WEFT_WIRE_TAG)
        put_pair(out, "pattern", "^[^:]+:");
    else if (field->kind == WEFT_WIRE_BASE64)
        put_pair(out, "contentEncoding", "base64");
    else if (field->kind == WEFT_WIRE_REF)
        put_pair(out, "format", "uri-reference");
}

/* "items" of an array or "additionalProperties" of an object. */
static void put_each(const struct weft_wire_field *field, struct weft_json_writer *out)
{
    weft_json_key(out, field->kind == WEFT_WIRE_TEXTS ? "items" : "additionalProperties");
    weft_json_begin_object(out);
    bool number = field->kind == WEFT_WIRE_WEIGHTS || field->kind == WEFT_WIRE_COUNTERS;
    put_pair(out, "type", number ? "integer" : "string");
    if (number)
        put_bounds(field, out);
    if (field->kind == WEFT_WIRE_IDS)
        put_pair(out, "format", "uuid");
    weft_json_end_object(out);
}

/* Messages in a message: the document has a schema for each. */
static void put_messages(const struct weft_wire_field *field, struct weft_json_writer *out)
{
    static const char schemas[] = "#/components/schemas/";
    bool list = field->kind == WEFT_WIRE_LIST;
    char ref[128];
    (void)snprintf(ref, sizeof(ref), "%s%s", schemas, field->of->name);
    if (list && field->max) {
        weft_json_key(out, "maxItems");
        weft_json_put_i64(out, field->max);
    }
    weft_json_key(out, list ? "items" : "additionalProperties");
    weft_json_begin_object(out);
    put_pair(out, "$ref", ref);
    weft_json_end_object(out);
}

/* [first,last] */
static void put_range(const struct weft_wire_field *field, bool nullable,
                      struct weft_json_writer *out)
{
    put_type(out, "array", nullable);
    weft_json_key(out, "minItems");
    weft_json_put_i64(out, 2);
    weft_json_key(out, "maxItems");
    weft_json_put_i64(out, 2);
    weft_json_key(out, "items");
    weft_json_begin_object(out);
    put_pair(out, "type", "integer");
    put_bounds(field, out);
    weft_json_end_object(out);
}

static void put_words(const struct weft_wire_field *field, bool nullable,
                      struct weft_json_writer *out)
{
    const enum weft_wire_kind kind = (enum weft_wire_kind)field->kind;
    /* The first word may stand for none. */
    const size_t first = kind == WEFT_WIRE_WORD && !field->word[0];
    static const char *const state[] = {
#define X(name, number, word, living) word,
#include "weft/states.def"
#undef X
    };
    static const char *const backoff[] = {"exponential", "fixed"};
    static const char *const alive[] = {"alive", "dead"};
    if (kind == WEFT_WIRE_WORD)
        put_enum(out, field->word + first, field->inners - first, nullable);
    else if (kind == WEFT_WIRE_STATE)
        put_enum(out, state, WEFT_LEN(state), nullable);
    else if (kind == WEFT_WIRE_BACKOFF)
        put_enum(out, backoff, WEFT_LEN(backoff), nullable);
    else
        put_enum(out, alive, WEFT_LEN(alive), nullable);
}

/* The schema of a value that is no object with rows. */
static void put_form(const struct weft_wire_field *field, bool nullable,
                     struct weft_json_writer *out)
{
    switch ((enum weft_wire_kind)field->kind) {
    case WEFT_WIRE_ID:
    case WEFT_WIRE_TEXT:
    case WEFT_WIRE_CONTENT_TYPE:
    case WEFT_WIRE_TAG:
    case WEFT_WIRE_MOMENT:
    case WEFT_WIRE_DUE:
    case WEFT_WIRE_BASE64:
    case WEFT_WIRE_REF:
        put_string(field, nullable, out);
        break;
    case WEFT_WIRE_I32:
    case WEFT_WIRE_U32:
    case WEFT_WIRE_I64:
    case WEFT_WIRE_U64:
    case WEFT_WIRE_AT_ONCE:
    case WEFT_WIRE_MS:
    case WEFT_WIRE_DOUBLE:
        put_type(out, field->kind == WEFT_WIRE_DOUBLE ? "number" : "integer", nullable);
        put_bounds(field, out);
        break;
    case WEFT_WIRE_BOOL:
    case WEFT_WIRE_UNLESS:
        put_type(out, "boolean", nullable);
        break;
    case WEFT_WIRE_STATE:
    case WEFT_WIRE_BACKOFF:
    case WEFT_WIRE_ALIVE:
    case WEFT_WIRE_WORD:
        put_words(field, nullable, out);
        break;
    case WEFT_WIRE_RANGE:
        put_range(field, nullable, out);
        break;
    case WEFT_WIRE_TEXTS:
        put_type(out, "array", nullable);
        put_each(field, out);
        break;
    case WEFT_WIRE_TAGS:
    case WEFT_WIRE_WEIGHTS:
    case WEFT_WIRE_COUNTERS:
    case WEFT_WIRE_IDS:
        put_type(out, "object", nullable);
        put_each(field, out);
        break;
    case WEFT_WIRE_LIST:
    case WEFT_WIRE_MAP:
        put_type(out, field->kind == WEFT_WIRE_LIST ? "array" : "object", nullable);
        put_messages(field, out);
        break;
    case WEFT_WIRE_RAW:
        put_type(out, "object", nullable);
        break;
    case WEFT_WIRE_JSON: /* anything */
    case WEFT_WIRE_OBJECT:
    case WEFT_WIRE_POLICY:
        break;
    }
}

/* ---- The walk -------------------------------------------------------------------------------- */

struct level {
    const struct weft_wire_field *field, *end, *at;
};

struct drawing {
    struct weft_json_writer *out;
    struct level level[NESTED_MAX];
    size_t depth;
    bool answer; /* and nothing else */
};

/* In requests null is the same as absent; answers have null where there is nothing to say. */
static bool is_nullable(const struct drawing *drawing, const struct weft_wire_field *field)
{
    if (field->flags & WEFT_WIRE_REQUIRED)
        return false;
    if (!drawing->answer || field->flags & WEFT_WIRE_OR_NULL)
        return true;
    switch ((enum weft_wire_kind)field->kind) {
    case WEFT_WIRE_TEXT:
    case WEFT_WIRE_CONTENT_TYPE:
    case WEFT_WIRE_MOMENT:
    case WEFT_WIRE_STATE:
    case WEFT_WIRE_TAG:
    case WEFT_WIRE_OBJECT:
    case WEFT_WIRE_POLICY:
    case WEFT_WIRE_DUE:
    case WEFT_WIRE_RANGE:
        return true;
    case WEFT_WIRE_WORD:
        return !field->word[0];
    case WEFT_WIRE_ID:
    case WEFT_WIRE_I32:
    case WEFT_WIRE_U32:
    case WEFT_WIRE_I64:
    case WEFT_WIRE_U64:
    case WEFT_WIRE_AT_ONCE:
    case WEFT_WIRE_DOUBLE:
    case WEFT_WIRE_BOOL:
    case WEFT_WIRE_UNLESS:
    case WEFT_WIRE_BACKOFF:
    case WEFT_WIRE_TEXTS:
    case WEFT_WIRE_TAGS:
    case WEFT_WIRE_WEIGHTS:
    case WEFT_WIRE_JSON:
    case WEFT_WIRE_BASE64:
    case WEFT_WIRE_ALIVE:
    case WEFT_WIRE_MS:
    case WEFT_WIRE_COUNTERS:
    case WEFT_WIRE_RAW:
    case WEFT_WIRE_IDS:
    case WEFT_WIRE_LIST:
    case WEFT_WIRE_MAP:
    case WEFT_WIRE_REF:
        break;
    }
    return false;
}

/* Begins the schema of an object whose members are rows. */
static void open_object(struct drawing *drawing, const struct weft_wire_field *field, size_t count)
{
    assert(drawing->depth < NESTED_MAX);
    drawing->level[drawing->depth++] =
        (struct level){.field = field, .end = field + count, .at = field};
    weft_json_key(drawing->out, "properties");
    weft_json_begin_object(drawing->out);
}

static bool is_required(const struct drawing *drawing, const struct weft_wire_field *field)
{
    bool either = field->kind == WEFT_WIRE_JSON || field->kind == WEFT_WIRE_BASE64 ||
                  field->kind == WEFT_WIRE_REF;
    return field->flags & WEFT_WIRE_REQUIRED || (drawing->answer && !either);
}

/* Ends it: required members, members that exclude each other, and that there are no others. */
static void close_object(struct drawing *drawing)
{
    struct weft_json_writer *out = drawing->out;
    const struct level *level = &drawing->level[--drawing->depth];
    weft_json_end_object(out); /* the properties */
    bool any = false;
    for (const struct weft_wire_field *field = level->field; field < level->end; field++) {
        if (!is_required(drawing, field))
            continue;
        if (!any) {
            weft_json_key(out, "required");
            weft_json_begin_array(out);
        }
        any = true;
        weft_json_put_text(out, field->name);
    }
    if (any)
        weft_json_end_array(out);
    if (!drawing->answer) {
        weft_json_key(out, "additionalProperties");
        weft_json_put_bool(out, false);
    }
    weft_json_end_object(out);
}

static void put_field(struct drawing *drawing, const struct weft_wire_field *field)
{
    struct weft_json_writer *out = drawing->out;
    bool nullable = is_nullable(drawing, field);
    weft_json_key(out, field->name);
    weft_json_begin_object(out);
    put_pair(out, "description", field->about);
    if (field->kind == WEFT_WIRE_OBJECT || field->kind == WEFT_WIRE_POLICY) {
        put_type(out, "object", nullable);
        if (field->kind == WEFT_WIRE_OBJECT)
            open_object(drawing, field->inner, field->inners);
        else
            open_object(drawing, weft_wire_policy, weft_wire_policy_count);
        return;
    }
    put_form(field, nullable, out);
    weft_json_end_object(out);
}

void weft_wire_schema(const struct weft_wire_type *type, struct weft_json_writer *out)
{
    struct drawing drawing = {.out = out, .answer = type->answer && !type->request};
    weft_json_begin_object(out);
    put_pair(out, "description", type->about);
    put_type(out, "object", false);
    open_object(&drawing, type->field, type->count);
    while (drawing.depth > 0) {
        struct level *level = &drawing.level[drawing.depth - 1];
        if (level->at < level->end)
            put_field(&drawing, level->at++);
        else
            close_object(&drawing);
    }
}
