/* SPDX-License-Identifier: Apache-2.0 */

/* Names of fields: finding one, and telling about one that does not exist. */

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "wire/type.h"

#include <string.h>

enum {
    CLOSE = 2,         /* edits that are taken for a slip */
    COMPARED_MAX = 32, /* bytes of a name; longer ones are like none of ours */
    SHOWN_MAX = 64,    /* bytes of a foreign name in a message */
};

size_t weft_wire_find(const struct weft_wire_field *field, size_t count,
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

enum weft_rc weft_wire_unknown(const struct weft_wire_reader *reader, const struct weft_json *key)
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
    return weft_fail_field(reader->err, WEFT_INVALID_VALUE, path, "%s must be %s", path, what);
}

enum weft_rc weft_wire_twice(const struct weft_wire_reader *reader,
                             const struct weft_wire_field *field)
{
    const char *path = weft_wire_path(reader, field);
    return weft_fail_field(reader->err, WEFT_INVALID_VALUE, path, "%s is given twice", path);
}
