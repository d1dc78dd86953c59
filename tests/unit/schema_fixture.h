/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_UNIT_SCHEMA_FIXTURE_H
#define WEFT_TESTS_UNIT_SCHEMA_FIXTURE_H

/*
 * Holds a value against a JSON Schema of the OpenAPI document: $ref, type, enum, required,
 * properties, additionalProperties, items, allOf, oneOf; the other words are passed over. An
 * answer with a field that its schema does not have is wrong too: documents must not fall behind.
 */

#include "base/json.h"
#include "wire/wire.h"

#include <stdio.h>
#include <string.h>

enum schema_stage { SCHEMA_BEGIN, SCHEMA_ALL_OF, SCHEMA_ONE_OF, SCHEMA_INSIDE };

/* A schema and a value that are being compared. */
struct schema_frame {
    struct weft_json schema, value;
    enum schema_stage stage;
    struct weft_json_iter each;
    bool walks;  /* each is set */
    int fitted;  /* of oneOf */
    bool closed; /* unknown members are wrong: no part of an allOf */
};

struct schema_walk {
    struct weft_json document;
    struct schema_frame frame[32];
    int depth;
    bool result;   /* of the frame that ended last */
    bool returned; /* it ended just now */
    char why[200]; /* the first thing that did not fit */
};

static inline bool schema_word(const struct weft_json *schema, const char *name,
                               struct weft_json *ret_value)
{
    return schema->kind == WEFT_JSON_OBJECT && weft_wire_member(schema, name, ret_value);
}

static inline bool schema_is_kind(const struct weft_json *word, const struct weft_json *value)
{
    int64_t number;
    switch (value->kind) {
    case WEFT_JSON_NULL:
        return weft_json_is(word, "null");
    case WEFT_JSON_BOOL:
        return weft_json_is(word, "boolean");
    case WEFT_JSON_NUMBER:
        return weft_json_is(word, "number") ||
               (weft_json_is(word, "integer") && weft_json_i64(value, &number));
    case WEFT_JSON_STRING:
        return weft_json_is(word, "string");
    case WEFT_JSON_ARRAY:
        return weft_json_is(word, "array");
    case WEFT_JSON_OBJECT:
        return weft_json_is(word, "object");
    }
    return false;
}

static inline bool schema_type_fits(const struct weft_json *type, const struct weft_json *value)
{
    if (type->kind == WEFT_JSON_STRING)
        return schema_is_kind(type, value);
    struct weft_json_iter each;
    weft_json_iter_init(&each, type);
    while (weft_json_next(&each))
        if (schema_is_kind(&each.value, value))
            return true;
    return false;
}

static inline bool schema_enum_fits(const struct weft_json *words, const struct weft_json *value)
{
    struct weft_json_iter each;
    weft_json_iter_init(&each, words);
    while (weft_json_next(&each))
        if (each.value.size == value->size &&
            memcmp(each.value.text, value->text, value->size) == 0)
            return true;
    return false;
}

/* The key of a member as text; names are plain here. */
static inline void schema_key(const struct weft_json *key, char ret_name[64])
{
    (void)snprintf(ret_name, 64, "%.*s", (int)(key->size > 2 ? key->size - 2 : 0), key->text + 1);
}

static inline bool schema_has_required(const struct weft_json *names, const struct weft_json *value)
{
    struct weft_json_iter each;
    struct weft_json member;
    weft_json_iter_init(&each, names);
    while (weft_json_next(&each)) {
        char name[64];
        schema_key(&each.value, name);
        if (!weft_wire_member(value, name, &member))
            return false;
    }
    return true;
}

/* The schema that "#/components/A/B" names. */
static inline bool schema_follow(const struct schema_walk *walk, const struct weft_json *ref,
                                 struct weft_json *ret_schema)
{
    char path[128], folder[64], name[64];
    struct weft_json components, shelf;
    (void)snprintf(path, sizeof(path), "%.*s", (int)ref->size, ref->text);
    return sscanf(path, "\"#/components/%63[^/]/%63[^\"]\"", folder, name) == 2 &&
           weft_wire_member(&walk->document, "components", &components) &&
           weft_wire_member(&components, folder, &shelf) &&
           weft_wire_member(&shelf, name, ret_schema);
}

static inline void schema_say(struct schema_walk *walk, const struct weft_json *value,
                              const char *what)
{
    if (!walk->why[0])
        (void)snprintf(walk->why, sizeof(walk->why), "%s: %.*s", what,
                       (int)(value->size < 120 ? value->size : 120), value->text);
}

static inline void schema_pop(struct schema_walk *walk, bool result)
{
    walk->depth--;
    walk->result = result;
    walk->returned = true;
}

static inline void schema_push(struct schema_walk *walk, const struct weft_json *schema,
                               const struct weft_json *value, bool closed)
{
    if (walk->depth == 32) {
        schema_say(walk, value, "too deep");
        walk->result = false;
        walk->returned = true;
        return;
    }
    walk->frame[walk->depth++] =
        (struct schema_frame){.schema = *schema, .value = *value, .closed = closed};
}

/* The words about the value itself. */
static inline bool schema_plain(struct schema_walk *walk, struct schema_frame *frame)
{
    struct weft_json word;
    for (int hops = 0; hops < 8 && schema_word(&frame->schema, "$ref", &word); hops++)
        if (!schema_follow(walk, &word, &frame->schema))
            return false;
    if (schema_word(&frame->schema, "type", &word) && !schema_type_fits(&word, &frame->value)) {
        schema_say(walk, &frame->value, "of another type");
        return false;
    }
    if (schema_word(&frame->schema, "enum", &word) && !schema_enum_fits(&word, &frame->value)) {
        schema_say(walk, &frame->value, "not in the enum");
        return false;
    }
    if (frame->value.kind == WEFT_JSON_OBJECT && schema_word(&frame->schema, "required", &word) &&
        !schema_has_required(&word, &frame->value)) {
        schema_say(walk, &frame->value, "a required member is missing");
        return false;
    }
    return true;
}

/* The next alternative of allOf or oneOf; false at the end. */
static inline bool schema_next_of(struct schema_walk *walk, struct schema_frame *frame,
                                  const char *word, bool closed)
{
    struct weft_json list;
    if (!frame->walks) {
        if (!schema_word(&frame->schema, word, &list))
            return false;
        weft_json_iter_init(&frame->each, &list);
        frame->walks = true;
    }
    if (!weft_json_next(&frame->each))
        return false;
    const struct weft_json schema = frame->each.value, value = frame->value;
    schema_push(walk, &schema, &value, closed);
    return true;
}

/* The schema of the member or element at hand; false when there is none. */
static inline bool schema_of_child(const struct schema_frame *frame, struct weft_json *ret_schema)
{
    struct weft_json properties;
    if (frame->value.kind == WEFT_JSON_ARRAY)
        return schema_word(&frame->schema, "items", ret_schema);
    char name[64];
    schema_key(&frame->each.key, name);
    if (schema_word(&frame->schema, "properties", &properties) &&
        weft_wire_member(&properties, name, ret_schema))
        return true;
    return schema_word(&frame->schema, "additionalProperties", ret_schema);
}

/* Steps into the next member or element that has a schema; false when something is wrong. */
static inline bool schema_next_inside(struct schema_walk *walk, struct schema_frame *frame)
{
    struct weft_json schema, properties;
    bool whole = frame->value.kind == WEFT_JSON_ARRAY || frame->value.kind == WEFT_JSON_OBJECT;
    if (whole && !frame->walks)
        weft_json_iter_init(&frame->each, &frame->value);
    frame->walks = true;
    while (whole && weft_json_next(&frame->each)) {
        if (schema_of_child(frame, &schema)) {
            const struct weft_json value = frame->each.value;
            schema_push(walk, &schema, &value, true);
            return true;
        }
        if (frame->closed && frame->value.kind == WEFT_JSON_OBJECT &&
            schema_word(&frame->schema, "properties", &properties)) {
            schema_say(walk, &frame->each.key, "not in the schema");
            return false;
        }
    }
    schema_pop(walk, true);
    return true;
}

static inline void schema_enter(struct schema_frame *frame, enum schema_stage stage)
{
    frame->stage = stage;
    frame->walks = false;
}

static inline void schema_step(struct schema_walk *walk)
{
    struct schema_frame *frame = &walk->frame[walk->depth - 1];
    bool returned = walk->returned, failed = returned && !walk->result;
    struct weft_json word;
    walk->returned = false;
    switch (frame->stage) {
    case SCHEMA_BEGIN:
        if (schema_plain(walk, frame))
            schema_enter(frame, SCHEMA_ALL_OF);
        else
            schema_pop(walk, false);
        break;
    case SCHEMA_ALL_OF:
        if (failed)
            schema_pop(walk, false);
        else if (!schema_next_of(walk, frame, "allOf", false))
            schema_enter(frame, SCHEMA_ONE_OF);
        break;
    case SCHEMA_ONE_OF:
        frame->fitted += returned && walk->result;
        if (schema_next_of(walk, frame, "oneOf", frame->closed))
            break;
        if (schema_word(&frame->schema, "oneOf", &word) && frame->fitted != 1) {
            schema_pop(walk, false);
            break;
        }
        if (frame->fitted == 1)
            walk->why[0] = '\0'; /* what was wrong with the others does not matter */
        schema_enter(frame, SCHEMA_INSIDE);
        break;
    case SCHEMA_INSIDE:
        if (failed || !schema_next_inside(walk, frame))
            schema_pop(walk, false);
        break;
    }
}

/* True when value fits; otherwise ret_why tells the first thing that does not. */
static inline bool schema_fits(const struct weft_json *document, const struct weft_json *schema,
                               const struct weft_json *value, char ret_why[200])
{
    struct schema_walk walk = {.document = *document};
    schema_push(&walk, schema, value, true);
    while (walk.depth > 0)
        schema_step(&walk);
    (void)snprintf(ret_why, 200, "%s", walk.result ? "" : walk.why);
    return walk.result;
}

#endif
