/* SPDX-License-Identifier: Apache-2.0 */

/* All messages, and the names of all their fields. */

#include "base/buf.h"
#include "wire/type.h"

#include <pthread.h>
#include <string.h>

const struct weft_wire_type *const weft_wire_messages[] = {
#define MESSAGE(name) &weft_wire_##name,
#include "wire/messages.def"
};
const size_t weft_wire_message_count = WEFT_LEN(weft_wire_messages);

/* Each name with a NUL behind it; kept as long as the process runs. */
static struct weft_buf names;

/* The fields of an object, and where the walk is. */
struct level {
    const struct weft_wire_field *field;
    size_t count, i;
};

/* The fields inside a field; none unless it is an object. */
static struct level inside(const struct weft_wire_field *field)
{
    if (field->kind == WEFT_WIRE_POLICY)
        return (struct level){weft_wire_policy, weft_wire_policy_count, 0};
    return (struct level){field->inner, field->inner ? field->inners : 0, 0};
}

static void add_names(const struct weft_wire_type *type)
{
    enum { DEPTH_MAX = 4 };
    struct level level[DEPTH_MAX] = {{type->field, type->count, 0}};
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
