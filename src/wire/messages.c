/* SPDX-License-Identifier: Apache-2.0 */

/* All operations and messages as data: their tables, the names of fields, the JSON Schemas. */

#include "base/buf.h"
#include "core/budget.h"
#include "core/http_policy.h"
#include "wire/ops.h"
#include "wire/type.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

const char *const weft_group_names[WEFT_GROUP_COUNT] = {
    [WEFT_GROUP_NONE] = "read",   [WEFT_GROUP_LIST] = "list",   [WEFT_GROUP_PARSE] = "parse",
    [WEFT_GROUP_HEAVY] = "heavy", [WEFT_GROUP_ADMIN] = "admin",
#define FOLDED(op, label, ...) [WEFT_GROUP_##op] = label,
#define ALONE(op, ...)
#include "wire/ops.def"
};

const struct weft_op_info weft_ops[WEFT_OP_COUNT] = {
#define OP(op, group_, id_, method_, path_, scope_, repeat_, in_, takes_, out_, gives_, call_)     \
    [WEFT_OP_##op] = {.id = #id_,                                                                  \
                      .method = #method_,                                                          \
                      .path = (path_),                                                             \
                      .scope = WEFT_SCOPE_##scope_,                                                \
                      .group = WEFT_GROUP_##group_,                                                \
                      .repeat = WEFT_REPEAT_##repeat_,                                             \
                      .takes = (takes_),                                                           \
                      .gives = (gives_)},
#include "wire/ops.def"
};

/* ---- Names of fields ------------------------------------------------------------------------- */

const struct weft_wire_type *const weft_wire_messages[] = {
#define MESSAGE(name) &weft_wire_##name,
#include "wire/messages.def"
};
const size_t weft_wire_message_count = WEFT_LEN(weft_wire_messages);

/* Each name with a NUL behind it; kept as long as the process runs. */
static struct weft_buf names;

/* The fields of an object, and where the walk is. */
struct walk {
    const struct weft_wire_field *field;
    size_t count, i;
};

/* The fields inside a field; none unless it is an object. */
static struct walk inside(const struct weft_wire_field *field)
{
    if (field->kind == WEFT_WIRE_POLICY)
        return (struct walk){weft_wire_policy, weft_wire_policy_count, 0};
    return (struct walk){field->inner, field->inner ? field->inners : 0, 0};
}

static void add_names(const struct weft_wire_type *type)
{
    enum { DEPTH_MAX = 4 };
    struct walk level[DEPTH_MAX] = {{type->field, type->count, 0}};
    size_t depth = 0;
    while (level[0].i < level[0].count) {
        if (level[depth].i == level[depth].count) { /* the object has no more: go on behind it */
            level[--depth].i++;
            continue;
        }
        for (size_t d = 0; d <= depth; d++)
            weft_buf_printf(&names, "%s%s", d ? "." : "", level[d].field[level[d].i].name);
        weft_buf_add_char(&names, '\0');
        level[depth + 1] = inside(&level[depth].field[level[depth].i]);
        if (depth + 2 < DEPTH_MAX && level[depth + 1].count > 0)
            depth++;
        else
            level[depth].i++;
    }
}

static void collect_names(void)
{
    weft_buf_init(&names, SIZE_MAX);
    for (size_t i = 0; i < weft_wire_message_count; i++)
        add_names(weft_wire_messages[i]);
}

const char *weft_wire_field_name(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, collect_names);
    for (size_t at = 0; at < names.size; at += strlen(names.data + at) + 1)
        if (strcmp(names.data + at, name) == 0)
            return names.data + at;
    return NULL;
}

/* ---- Schemas --------------------------------------------------------------------------------- */

enum { NESTED_MAX = 4 };

const char *weft_wire_name(const struct weft_wire_type *type)
{
    return type->name;
}

size_t weft_wire_size(const struct weft_wire_type *type)
{
    return type->size;
}

enum { SOLID, NULLS };
static const struct {
    const char *type; /* of JSON Schema */
    bool null;        /* an answer may have null */
} kinds[] = {
#define KIND(kind, holds, type, null) [WEFT_WIRE_##kind] = {#type, (null) == NULLS},
#include "wire/kinds.def"
};

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
    weft_json_add_array(out, "enum");
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
    if (min != INT64_MIN)
        weft_json_add_i64(out, "minimum", min);
    if (max != INT64_MAX)
        weft_json_add_i64(out, "maximum", max);
}

/* "items" of an array or "additionalProperties" of an object. */
static void put_each(const struct weft_wire_field *field, struct weft_json_writer *out)
{
    weft_json_add_object(out, field->kind == WEFT_WIRE_TEXTS ? "items" : "additionalProperties");
    bool bound = field->kind == WEFT_WIRE_WEIGHTS || field->kind == WEFT_WIRE_COUNTERS;
    bool amount = field->kind == WEFT_WIRE_AMOUNTS;
    weft_json_add_text(out, "type", bound || amount ? "integer" : "string");
    if (bound)
        put_bounds(field, out);
    if (amount) { /* `max` of the row is how many */
        weft_json_add_i64(out, "minimum", 0);
        weft_json_add_i64(out, "maximum", WEFT_AMOUNT_MOST);
    }
    if (field->kind == WEFT_WIRE_IDS)
        weft_json_add_text(out, "format", "uuid");
    weft_json_end_object(out);
}

/* Messages in a message: the document has a schema for each. */
static void put_messages(const struct weft_wire_field *field, struct weft_json_writer *out)
{
    static const char schemas[] = "#/components/schemas/";
    bool list = field->kind == WEFT_WIRE_LIST;
    char ref[128];
    (void)snprintf(ref, sizeof(ref), "%s%s", schemas, field->of->name);
    if (list && field->max)
        weft_json_add_i64(out, "maxItems", field->max);
    weft_json_add_object(out, list ? "items" : "additionalProperties");
    weft_json_add_text(out, "$ref", ref);
    weft_json_end_object(out);
}

/* [first,last] */
static void put_range(const struct weft_wire_field *field, struct weft_json_writer *out)
{
    weft_json_add_i64(out, "minItems", 2);
    weft_json_add_i64(out, "maxItems", 2);
    weft_json_add_object(out, "items");
    weft_json_add_text(out, "type", "integer");
    put_bounds(field, out);
    weft_json_end_object(out);
}

/* A number, or a class of numbers. */
static void put_statuses(struct weft_json_writer *out)
{
    static const char *const classes[] = {"3xx", "4xx", "5xx"};
    weft_json_add_object(out, "items");
    weft_json_add_array(out, "oneOf");
    weft_json_begin_object(out);
    weft_json_add_text(out, "type", "integer");
    weft_json_add_i64(out, "minimum", WEFT_RETRY_STATUS_MIN);
    weft_json_add_i64(out, "maximum", WEFT_RETRY_STATUS_MAX);
    weft_json_end_object(out);
    weft_json_begin_object(out);
    weft_json_add_text(out, "type", "string");
    put_enum(out, classes, WEFT_LEN(classes), false);
    weft_json_end_object(out);
    weft_json_end_array(out);
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

/* What the schema of a kind says besides its type; nothing: a form that has no more to say. */
static void put_form(const struct weft_wire_field *field, bool nullable,
                     struct weft_json_writer *out)
{
    static const char *const pair[WEFT_WIRE_KIND_COUNT][2] = {
        [WEFT_WIRE_ID] = {"format", "uuid"},
        [WEFT_WIRE_MOMENT] = {"format", "date-time"},
        [WEFT_WIRE_DUE] = {"format", "date-time"},
        [WEFT_WIRE_TAG] = {"pattern", "^[^:]+:"},
        [WEFT_WIRE_BASE64] = {"contentEncoding", "base64"},
        [WEFT_WIRE_REF] = {"format", "uri-reference"},
    };
    if (pair[field->kind][0])
        weft_json_add_text(out, pair[field->kind][0], pair[field->kind][1]);
    switch ((enum weft_wire_kind)field->kind) {
    case WEFT_WIRE_I32:
    case WEFT_WIRE_U32:
    case WEFT_WIRE_I64:
    case WEFT_WIRE_U64:
    case WEFT_WIRE_AT_ONCE:
    case WEFT_WIRE_MS:
    case WEFT_WIRE_DOUBLE:
        put_bounds(field, out);
        break;
    case WEFT_WIRE_STATE:
    case WEFT_WIRE_BACKOFF:
    case WEFT_WIRE_ALIVE:
    case WEFT_WIRE_WORD:
        put_words(field, nullable, out);
        break;
    case WEFT_WIRE_RANGE:
        put_range(field, out);
        break;
    case WEFT_WIRE_STATUSES:
        put_statuses(out);
        break;
    case WEFT_WIRE_TEXTS:
    case WEFT_WIRE_TAGS:
    case WEFT_WIRE_WEIGHTS:
    case WEFT_WIRE_COUNTERS:
    case WEFT_WIRE_AMOUNTS:
    case WEFT_WIRE_IDS:
        put_each(field, out);
        break;
    case WEFT_WIRE_LIST:
    case WEFT_WIRE_MAP:
        put_messages(field, out);
        break;
    default:
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
    return field->kind == WEFT_WIRE_WORD ? !field->word[0] : kinds[field->kind].null;
}

/* Begins the schema of an object whose members are rows. */
static void open_object(struct drawing *drawing, const struct weft_wire_field *field, size_t count)
{
    assert(drawing->depth < NESTED_MAX);
    drawing->level[drawing->depth++] =
        (struct level){.field = field, .end = field + count, .at = field};
    weft_json_add_object(drawing->out, "properties");
}

static bool is_required(const struct drawing *drawing, const struct weft_wire_field *field)
{
    bool either = field->kind == WEFT_WIRE_JSON || field->kind == WEFT_WIRE_BASE64 ||
                  field->kind == WEFT_WIRE_REF || field->flags & WEFT_WIRE_WITH;
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
        if (!any)
            weft_json_add_array(out, "required");
        any = true;
        weft_json_put_text(out, field->name);
    }
    if (any)
        weft_json_end_array(out);
    if (!drawing->answer)
        weft_json_add_bool(out, "additionalProperties", false);
    weft_json_end_object(out);
}

static void put_field(struct drawing *drawing, const struct weft_wire_field *field)
{
    struct weft_json_writer *out = drawing->out;
    bool nullable = is_nullable(drawing, field);
    weft_json_add_object(out, field->name);
    weft_json_add_text(out, "description", field->about);
    if (field->kind != WEFT_WIRE_JSON && field->kind != WEFT_WIRE_ANY) /* which are anything */
        put_type(out, kinds[field->kind].type, nullable);
    if (field->kind == WEFT_WIRE_OBJECT || field->kind == WEFT_WIRE_POLICY) {
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
    weft_json_add_text(out, "description", type->about);
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
