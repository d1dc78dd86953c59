/* SPDX-License-Identifier: Apache-2.0 */

/* Reading a message: the walk over its members, names of fields, rules for all members together. */

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "wire/type.h"

#include <assert.h>
#include <string.h>

/* ---- Names ----------------------------------------------------------------------------------- */

enum {
    CLOSE = 2,         /* edits that are taken for a slip */
    COMPARED_MAX = 32, /* bytes of a name; longer ones are like none of ours */
    SHOWN_MAX = 64,    /* bytes of a foreign name in a message */
};

/* The index of the field of that name, SIZE_MAX for none. */
static size_t find_field(const struct weft_wire_field *field, size_t count,
                         const struct weft_json *key, size_t from)
{
    const char *name = key->text + 1;
    size_t size = key->size - 2; /* without the quotes */
    for (size_t k = 0, i = from; k < count; k++, i++) {
        if (i >= count)
            i = 0;
        if (field[i].name_size == size && field[i].name[0] == name[0] &&
            memcmp(field[i].name, name, size) == 0)
            return i;
    }
    if (!memchr(name, '\\', size))
        return SIZE_MAX;
    for (size_t i = 0; i < count; i++)
        if (weft_json_is(key, field[i].name))
            return i;
    return SIZE_MAX;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits that lead from one name to the other; two neighbours that changed places are one. */
static size_t distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t row[3][COMPARED_MAX + 1]; /* of the table: this one and the two before it */
    for (size_t k = 0; k <= b_size; k++)
        row[0][k] = k;
    for (size_t i = 1; i <= a_size; i++) {
        size_t *now = row[i % 3], *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];
        now[0] = i;
        for (size_t k = 1; k <= b_size; k++) {
            now[k] =
                least(least(before[k], now[k - 1]) + 1, before[k - 1] + (a[i - 1] != b[k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                now[k] = least(now[k], earlier[k - 2] + 1);
        }
    }
    return row[a_size % 3][b_size];
}

/* The field that was probably meant, or NULL. */
static const char *closest(const struct weft_wire_reader *reader, const char *name, size_t size)
{
    if (size > COMPARED_MAX)
        return NULL;
    const char *found = NULL;
    size_t best = least(CLOSE, size / 2) + 1;
    for (size_t i = 0; i < reader->count; i++) {
        const struct weft_wire_field *field = &reader->field[i];
        if (field->name_size > COMPARED_MAX)
            continue;
        size_t edits = distance(name, size, field->name, field->name_size);
        if (edits < best) {
            best = edits;
            found = field->name;
        }
    }
    return found;
}

const char *weft_wire_path(const struct weft_wire_reader *reader,
                           const struct weft_wire_field *field)
{
    return reader->inside ? weft_arena_printf(reader->arena, "%s.%s", reader->inside, field->name)
                          : field->name;
}

static enum weft_rc fail_unknown(const struct weft_wire_reader *reader, const struct weft_json *key)
{
    const char *name;
    if (weft_json_string(key, reader->arena, &name, NULL)) { /* U+0000: then as it is written */
        char *raw = weft_arena_dup(reader->arena, key->text + 1, key->size - 1);
        raw[key->size - 2] = '\0';
        name = raw;
    }
    size_t size = strlen(name), shown = weft_utf8_cut(name, size, SHOWN_MAX);
    const char *meant = closest(reader, name, size);
    if (reader->inside || size > WEFT_NAME_MAX)
        name = weft_arena_printf(reader->arena, "%s%s%.*s", reader->inside ? reader->inside : "",
                                 reader->inside ? "." : "",
                                 (int)weft_utf8_cut(name, size, WEFT_NAME_MAX), name);
    const char *at = reader->inside ? name + strlen(reader->inside) + 1 : name;
    if (meant)
        return weft_fail_field(reader->err, WEFT_UNKNOWN_FIELD, name,
                               "there is no field '%.*s'%s%s, did you mean '%s'?", (int)shown, at,
                               reader->inside ? " in " : "", reader->inside ? reader->inside : "",
                               meant);
    return weft_fail_field(reader->err, WEFT_UNKNOWN_FIELD, name, "there is no field '%.*s'%s%s",
                           (int)shown, at, reader->inside ? " in " : "",
                           reader->inside ? reader->inside : "");
}

enum weft_rc weft_wire_must_be(const struct weft_wire_reader *reader,
                               const struct weft_wire_field *field, const char *what)
{
    const char *path = weft_wire_path(reader, field);
    return weft_invalid(reader->err, path, "%s must be %s", path, what);
}

enum weft_rc weft_wire_meet(struct weft_wire_reader *reader, const struct weft_json *key,
                            size_t from, size_t *ret_index)
{
    size_t i = find_field(reader->field, reader->count, key, from);
    *ret_index = i;
    if (i == SIZE_MAX)
        return reader->lenient ? WEFT_OK : fail_unknown(reader, key);
    const uint64_t bit = (uint64_t)1 << i;
    if (reader->met & bit) {
        const char *path = weft_wire_path(reader, &reader->field[i]);
        return weft_invalid(reader->err, path, "%s is given twice", path);
    }
    reader->met |= bit;
    return WEFT_OK;
}

/* ---- Members --------------------------------------------------------------------------------- */

static bool is_there(const struct weft_wire_field *field, const struct weft_json *value)
{
    return value->kind != WEFT_JSON_NULL || field->kind == WEFT_WIRE_JSON;
}

/* The rows of an object in an object hold plain values only, so this is as deep as it gets. */
static enum weft_rc read_inner(const struct weft_wire_reader *outer,
                               const struct weft_wire_field *field, const struct weft_json *value)
{
    if (value->kind != WEFT_JSON_OBJECT)
        return weft_wire_must_be(outer, field, "an object");
    struct weft_wire_reader reader = *outer;
    reader.field = field->inner;
    reader.count = field->inners;
    reader.inside = field->name;
    reader.met = reader.given = 0;
    struct weft_json_iter member;
    weft_json_iter_init(&member, value);
    enum weft_rc rc = WEFT_OK;
    while (!rc && weft_json_next(&member)) {
        size_t i;
        rc = weft_wire_meet(&reader, &member.key, 0, &i);
        if (!rc && i != SIZE_MAX && is_there(&reader.field[i], &member.value))
            rc = weft_wire_read_value(&reader, &reader.field[i], &member.value);
    }
    if (!rc && field->flags & WEFT_WIRE_BY_FLAG)
        *(bool *)((char *)reader.item + field->count) = true;
    return rc;
}

/* The value of an absent field. */
static enum weft_rc leave_out(const struct weft_wire_reader *reader,
                              const struct weft_wire_field *field)
{
    char *item = reader->item;
    if (field->flags & WEFT_WIRE_REQUIRED)
        return weft_invalid(reader->err, field->name, "%s is missing", field->name);
    if (field->normally)
        *(int64_t *)(void *)(item + field->at) = field->normally;
    if (field->flags & WEFT_WIRE_BY_SIGN)
        *(int32_t *)(void *)(item + field->count) = -1;
    if (field->kind == WEFT_WIRE_RANGE)
        *(uint32_t *)(void *)(item + field->count) = (uint32_t)field->max;
    return WEFT_OK;
}

/* Checks that need every member to have been read. */
static enum weft_rc finish(const struct weft_wire_reader *reader)
{
    for (size_t i = 0; i < reader->count; i++) {
        const struct weft_wire_field *field = &reader->field[i];
        bool given = reader->given >> i & 1;
        enum weft_rc rc = given ? WEFT_OK : leave_out(reader, field);
        if (rc)
            return rc;
        if (!given || !field->rival)
            continue;
        for (size_t k = 0; k < reader->count; k++)
            if (reader->given >> k & 1 && strcmp(reader->field[k].name, field->rival) == 0)
                return weft_invalid(reader->err, field->name, "give %s or %s, not both",
                                    field->rival, field->name);
        const char **content_type = (const char **)((char *)reader->item + field->type);
        if (field->kind == WEFT_WIRE_BASE64 && !*content_type)
            *content_type = "application/octet-stream";
    }
    return WEFT_OK;
}

/* Reads a member now; lists and maps are left for later. */
static enum weft_rc read_member(struct weft_wire_reader *reader,
                                const struct weft_wire_field *field, const struct weft_json *value)
{
    if (field->kind == WEFT_WIRE_LIST || field->kind == WEFT_WIRE_MAP) {
        assert(reader->lists < WEFT_WIRE_LISTS); /* a field is met once */
        reader->list[reader->lists] = field;
        reader->list_value[reader->lists++] = *value;
        return WEFT_OK;
    }
    return field->kind == WEFT_WIRE_OBJECT ? read_inner(reader, field, value)
                                           : weft_wire_read_value(reader, field, value);
}

static enum weft_rc read_members(struct weft_wire_reader *reader, const struct weft_json *value)
{
    struct weft_json_iter member;
    weft_json_iter_init(&member, value);
    size_t next = 0; /* most writers keep to one order */
    while (weft_json_next(&member)) {
        size_t i;
        enum weft_rc rc = weft_wire_meet(reader, &member.key, next, &i);
        if (rc)
            return rc;
        if (i == SIZE_MAX)
            continue;
        next = i + 1;
        const struct weft_wire_field *field = &reader->field[i];
        if (!is_there(field, &member.value))
            continue;
        reader->given |= (uint64_t)1 << i;
        rc = read_member(reader, field, &member.value);
        if (rc)
            return rc;
    }
    return finish(reader);
}

static enum weft_rc read_object(const struct weft_wire_type *type, const struct weft_json *value,
                                struct weft_wire_reader *reader)
{
    assert(type->count <= 64);
    memset(reader->item, 0, type->size);
    if (value->kind != WEFT_JSON_OBJECT)
        return weft_fail(reader->err, WEFT_INVALID_VALUE, "%s must be an object", type->name);
    reader->field = type->field;
    reader->count = type->count;
    return read_members(reader, value);
}

/* ---- Messages in a message ------------------------------------------------------------------- */

/* "nodes[3]" or "upstream.NAME" */
static const char *place_of(const struct weft_wire_field *field, const struct weft_json_iter *each,
                            size_t i, struct weft_arena *arena)
{
    const char *name;
    if (field->kind == WEFT_WIRE_LIST || weft_json_string(&each->key, arena, &name, NULL))
        return weft_arena_printf(arena, "%s[%zu]", field->name, i);
    return weft_arena_printf(arena, "%s.%s", field->name, name);
}

/* Says which element it was: by its place and, where it has one, by its name. */
static enum weft_rc blame(const struct weft_wire_reader *reader,
                          const struct weft_wire_field *field, const struct weft_json_iter *each,
                          size_t i, enum weft_rc rc)
{
    if (!reader->err)
        return rc;
    const struct weft_err story = *reader->err;
    const char *place = place_of(field, each, i, reader->arena), *name = NULL;
    struct weft_json value;
    if (!weft_wire_member(&each->value, "name", &value) ||
        weft_json_string(&value, reader->arena, &name, NULL))
        name = NULL;
    (void)weft_fail_field(
        reader->err, rc,
        story.field ? weft_arena_printf(reader->arena, "%s.%s", place, story.field) : place,
        name ? "%s ('%.40s'): %s" : "%s%.0s: %s", place, name ? name : "", story.text);
    return rc;
}

/* The elements of a list of a message; they have no lists themselves. */
static enum weft_rc read_list(const struct weft_wire_reader *outer, size_t which)
{
    const struct weft_wire_field *field = outer->list[which];
    const struct weft_json *value = &outer->list_value[which];
    bool map = field->kind == WEFT_WIRE_MAP;
    size_t count, i = 0;
    if (value->kind != (map ? WEFT_JSON_OBJECT : WEFT_JSON_ARRAY))
        return weft_wire_must_be(outer, field, map ? "an object of objects" : "a list of objects");
    enum weft_rc rc = weft_wire_count(outer, field, value, &count);
    if (rc)
        return rc;
    char *item = weft_arena_alloc(outer->arena, count + 1, field->of->size);
    struct weft_json_iter each;
    weft_json_iter_init(&each, value);
    for (; weft_json_next(&each); i++) {
        struct weft_wire_reader reader = {.arena = outer->arena,
                                          .item = item + i * field->of->size,
                                          .lenient = outer->lenient,
                                          .err = outer->err};
        rc = read_object(field->of, &each.value, &reader);
        if (!rc && map)
            rc = weft_json_string(&each.key, outer->arena, (const char **)reader.item, outer->err);
        if (rc)
            return blame(outer, field, &each, i, rc);
    }
    *(const void **)((char *)outer->item + field->at) = count ? item : NULL;
    *(size_t *)(void *)((char *)outer->item + field->count) = count;
    return WEFT_OK;
}

static enum weft_rc read_whole(const struct weft_wire_type *type, const struct weft_json *value,
                               struct weft_wire_reader *reader)
{
    enum weft_rc rc = read_object(type, value, reader);
    for (size_t i = 0; i < reader->lists && !rc; i++)
        rc = read_list(reader, i);
    return rc;
}

enum weft_rc weft_wire_read(const struct weft_wire_type *type, const struct weft_json *value,
                            struct weft_arena *arena, void *ret_struct, struct weft_err *err)
{
    struct weft_wire_reader reader = {.arena = arena, .item = ret_struct, .err = err};
    return read_whole(type, value, &reader);
}

enum weft_rc weft_wire_read_answer(const struct weft_wire_type *type, const struct weft_json *value,
                                   struct weft_arena *arena, void *ret_struct, struct weft_err *err)
{
    struct weft_wire_reader reader = {
        .arena = arena, .item = ret_struct, .lenient = true, .err = err};
    return read_whole(type, value, &reader);
}

void *weft_wire_read_list(const struct weft_wire_type *type, const char *text,
                          struct weft_arena *arena, size_t *ret_count)
{
    struct weft_json list, value;
    struct weft_json_iter each;
    size_t count = 0;
    *ret_count = 0;
    /* The readers hand out slices of the text they are given. */
    text = weft_arena_strdup(arena, text ? text : "");
    if (weft_json_check(text, strlen(text), &list, NULL) || list.kind != WEFT_JSON_ARRAY)
        return NULL;
    for (weft_json_iter_init(&each, &list); weft_json_next(&each);)
        count++;
    char *item = weft_arena_alloc(arena, count + 1, type->size);
    for (weft_json_iter_init(&each, &list); weft_json_next(&each);) {
        value = each.value;
        if (!weft_wire_read_answer(type, &value, arena, item + *ret_count * type->size, NULL))
            ++*ret_count;
    }
    return item;
}

bool weft_wire_member(const struct weft_json *object, const char *name, struct weft_json *ret_value)
{
    if (object->kind != WEFT_JSON_OBJECT)
        return false;
    struct weft_json_iter member;
    weft_json_iter_init(&member, object);
    while (weft_json_next(&member)) {
        if (weft_json_is(&member.key, name)) {
            *ret_value = member.value;
            return true;
        }
    }
    return false;
}
