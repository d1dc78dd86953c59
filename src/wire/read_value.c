/* SPDX-License-Identifier: Apache-2.0 */

/* Reading one value: a function for each form, found by its kind. */

#include "base/arena.h"
#include "base/id.h"
#include "base/moment.h"
#include "base/str.h"
#include "core/policy.h"
#include "wire/type.h"

#include <assert.h>
#include <string.h>

/* No list may hold more where its row does not say; the engine knows the limit of each. */
enum { LIST_MAX = 1000 };

static void *place(const struct weft_wire_reader *reader, size_t offset)
{
    return (char *)reader->item + offset;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

void weft_wire_bounds(const struct weft_wire_field *field, int64_t *ret_min, int64_t *ret_max)
{
    *ret_min = field->min;
    *ret_max = field->max;
    if (field->min != 0 || field->max != 0)
        return;
    *ret_max = INT64_MAX;
    if (field->kind == WEFT_WIRE_I32 || field->kind == WEFT_WIRE_WEIGHTS) {
        *ret_min = INT32_MIN;
        *ret_max = INT32_MAX;
    } else if (field->kind == WEFT_WIRE_U32) {
        *ret_max = UINT32_MAX;
    } else if (field->kind == WEFT_WIRE_I64) {
        *ret_min = INT64_MIN;
    }
}

/* Refuses numbers that the C type cannot hold. */
static bool overflows(enum weft_wire_kind kind, int64_t number)
{
    if (kind == WEFT_WIRE_I32)
        return number < INT32_MIN || number > INT32_MAX;
    if (kind == WEFT_WIRE_U32)
        return number < 0 || number > UINT32_MAX;
    return kind == WEFT_WIRE_U64 && number < 0;
}

static enum weft_rc read_number(const struct weft_wire_reader *reader,
                                const struct weft_wire_field *field, const struct weft_json *value)
{
    int64_t number, min, max;
    if (!weft_json_i64(value, &number))
        return weft_wire_must_be(reader, field, "a whole number");
    weft_wire_bounds(field, &min, &max);
    if (overflows(field->kind, number) ||
        (field->flags & WEFT_WIRE_CHECKED && (number < min || number > max))) {
        const char *path = weft_wire_path(reader, field);
        return weft_invalid(reader->err, path, "%s is %lld, allowed are %lld to %lld", path,
                            (long long)number, (long long)min, (long long)max);
    }
    if (field->kind == WEFT_WIRE_AT_ONCE && number == 0)
        number = -1;
    if (field->kind == WEFT_WIRE_I32 || field->kind == WEFT_WIRE_U32)
        *(uint32_t *)place(reader, field->at) = (uint32_t)number;
    else
        *(int64_t *)place(reader, field->at) = number;
    return WEFT_OK;
}

/* A span that does not fit is cut: it is thousands of years. */
static enum weft_rc read_span(const struct weft_wire_reader *reader,
                              const struct weft_wire_field *field, const struct weft_json *value)
{
    int64_t ms;
    if (!weft_json_i64(value, &ms) || ms < 0)
        return weft_wire_must_be(reader, field, "a whole number of milliseconds");
    *(weft_usec *)place(reader, field->at) = ms < INT64_MAX / WEFT_MS ? ms * WEFT_MS : INT64_MAX;
    return WEFT_OK;
}

static enum weft_rc read_range(const struct weft_wire_reader *reader,
                               const struct weft_wire_field *field, const struct weft_json *value)
{
    int64_t end[2] = {0};
    size_t count = 0;
    if (value->kind == WEFT_JSON_ARRAY) {
        struct weft_json_iter each;
        weft_json_iter_init(&each, value);
        for (; weft_json_next(&each); count++)
            if (count >= 2 || !weft_json_i64(&each.value, &end[count]))
                return weft_wire_must_be(reader, field, "a list of two whole numbers");
    }
    if (count != 2 || end[0] < 0 || end[1] < end[0] || end[1] > field->max)
        return weft_wire_must_be(reader, field, "the first and the last of a range");
    *(uint32_t *)place(reader, field->at) = (uint32_t)end[0];
    *(uint32_t *)place(reader, field->count) = (uint32_t)end[1];
    return WEFT_OK;
}

static enum weft_rc read_bool(const struct weft_wire_reader *reader,
                              const struct weft_wire_field *field, const struct weft_json *value)
{
    if (value->kind != WEFT_JSON_BOOL)
        return weft_wire_must_be(reader, field, "true or false");
    *(bool *)place(reader, field->at) = weft_json_bool(value) != (field->kind == WEFT_WIRE_UNLESS);
    return WEFT_OK;
}

/* ---- Words ----------------------------------------------------------------------------------- */

static enum weft_rc text_of(const struct weft_wire_reader *reader,
                            const struct weft_wire_field *field, const struct weft_json *value,
                            const char **ret_text)
{
    if (value->kind != WEFT_JSON_STRING)
        return weft_wire_must_be(reader, field, "a string");
    if (weft_json_string(value, reader->arena, ret_text, NULL))
        return weft_wire_must_be(reader, field, "a string without U+0000");
    return WEFT_OK;
}

static enum weft_rc read_text(const struct weft_wire_reader *reader,
                              const struct weft_wire_field *field, const struct weft_json *value)
{
    return text_of(reader, field, value, place(reader, field->at));
}

/*
 * The text of a string that needs no copy unless it has escapes, as some writers make of + and /.
 * False when it is no string.
 */
static bool slice_of(const struct weft_wire_reader *reader, const struct weft_json *value,
                     const char **ret_text, size_t *ret_size)
{
    if (value->kind != WEFT_JSON_STRING)
        return false;
    *ret_text = value->text + 1;
    *ret_size = value->size - 2;
    if (!memchr(*ret_text, '\\', *ret_size))
        return true;
    if (weft_json_string(value, reader->arena, ret_text, NULL))
        return false;
    *ret_size = strlen(*ret_text);
    return true;
}

static enum weft_rc read_id(const struct weft_wire_reader *reader,
                            const struct weft_wire_field *field, const struct weft_json *value)
{
    const char *text;
    size_t size;
    struct weft_id *id = place(reader, field->at);
    /* Where zeros stand for none, they would say nothing: a filter would pick all. */
    if (!slice_of(reader, value, &text, &size) || !weft_id_parse(text, size, id) ||
        ((field->flags & WEFT_WIRE_OR_NULL) && weft_id_is_zero(id)))
        return weft_wire_must_be(reader, field, "an id (a UUID)");
    return WEFT_OK;
}

static enum weft_rc read_moment(const struct weft_wire_reader *reader,
                                const struct weft_wire_field *field, const struct weft_json *value)
{
    weft_usec moment_us;
    const char *text;
    size_t size;
    if (!slice_of(reader, value, &text, &size) || !weft_moment_parse(text, size, &moment_us))
        return weft_wire_must_be(
            reader, field, "a moment between 1970 and 9999 like \"2026-01-02T03:04:05.678Z\"");
    /* 0 would mean that none was given. */
    *(weft_usec *)place(reader, field->at) = moment_us ? moment_us : 1;
    return WEFT_OK;
}

static enum weft_rc read_state(const struct weft_wire_reader *reader,
                               const struct weft_wire_field *field, const struct weft_json *value)
{
    for (int state = 1; state < WEFT_STATE_COUNT; state++) {
        if (weft_json_is(value, weft_state_name((enum weft_state)state))) {
            *(enum weft_state *)place(reader, field->at) = (enum weft_state)state;
            return WEFT_OK;
        }
    }
    return weft_wire_must_be(reader, field, "one of"
#define X(name, number, word, living) " " word
#include "weft/states.def"
#undef X
    );
}

static enum weft_rc read_tag(const struct weft_wire_reader *reader,
                             const struct weft_wire_field *field, const struct weft_json *value)
{
    const char *text;
    if (weft_json_string(value, reader->arena, &text, NULL))
        return weft_wire_must_be(reader, field, "a string KEY:VALUE without U+0000");
    const char *colon = strchr(text, ':');
    if (!colon || colon == text)
        return weft_wire_must_be(reader, field, "KEY:VALUE");
    struct weft_tag *tag = weft_new(reader->arena, struct weft_tag);
    char *key = weft_arena_dup(reader->arena, text, (size_t)(colon - text) + 1);
    key[colon - text] = '\0';
    *tag = (struct weft_tag){.key = key, .value = colon + 1};
    *(const struct weft_tag **)place(reader, field->at) = tag;
    return WEFT_OK;
}

static enum weft_rc read_alive(const struct weft_wire_reader *reader,
                               const struct weft_wire_field *field, const struct weft_json *value)
{
    bool alive = weft_json_is(value, "alive");
    if (!alive && !weft_json_is(value, "dead"))
        return weft_wire_must_be(reader, field, "one of alive dead");
    *(bool *)place(reader, field->at) = alive;
    return WEFT_OK;
}

int weft_wire_word(const char *const *word, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (word[i] && strcmp(word[i], text) == 0)
            return (int)i;
    return -1;
}

static enum weft_rc read_word(const struct weft_wire_reader *reader,
                              const struct weft_wire_field *field, const struct weft_json *value)
{
    const char *all = "";
    for (size_t i = 0; i < field->inners; i++)
        if (field->word[i] && weft_json_is(value, field->word[i])) {
            *(uint32_t *)place(reader, field->at) = (uint32_t)i;
            return WEFT_OK;
        }
    for (size_t i = 0; i < field->inners; i++)
        if (field->word[i])
            all = weft_arena_printf(reader->arena, "%s %s", all, field->word[i]);
    return weft_wire_must_be(reader, field, weft_arena_printf(reader->arena, "one of%s", all));
}

/* That the result is elsewhere; where that is follows from the id. */
static enum weft_rc read_ref(const struct weft_wire_reader *reader,
                             const struct weft_wire_field *field, const struct weft_json *value)
{
    if (value->kind != WEFT_JSON_STRING)
        return weft_wire_must_be(reader, field, "a string");
    *(bool *)place(reader, field->at) = true;
    return WEFT_OK;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

enum weft_rc weft_wire_count(const struct weft_wire_reader *reader,
                             const struct weft_wire_field *field, const struct weft_json *value,
                             size_t *ret_count)
{
    struct weft_json_iter each;
    weft_json_iter_init(&each, value);
    /* For weights and counters, min and max are the bounds of their numbers. */
    bool numbers = field->kind == WEFT_WIRE_WEIGHTS || field->kind == WEFT_WIRE_COUNTERS;
    size_t count = 0, max = field->max && !numbers ? (size_t)field->max : LIST_MAX;
    while (weft_json_next(&each)) {
        if (++count > max)
            return weft_fail_field(reader->err, WEFT_TOO_LARGE, weft_wire_path(reader, field),
                                   "%s has more than %zu entries", field->name, max);
    }
    *ret_count = count;
    return WEFT_OK;
}

/* Reading the value of an entry: a text, or the struct of its kind, whose name was read. */
static bool read_text_entry(const struct weft_wire_reader *reader, const struct weft_json *value,
                            void *ret_text)
{
    return weft_json_string(value, reader->arena, ret_text, NULL) == WEFT_OK;
}

static bool read_tag_entry(const struct weft_wire_reader *reader, const struct weft_json *value,
                           void *ret_tag)
{
    return read_text_entry(reader, value, &((struct weft_tag *)ret_tag)->value);
}

static bool read_weight_entry(const struct weft_wire_reader *reader, const struct weft_json *value,
                              void *ret_weight)
{
    (void)reader;
    int64_t number;
    if (!weft_json_i64(value, &number) || overflows(WEFT_WIRE_I32, number))
        return false;
    ((struct weft_weight *)ret_weight)->weight = (int32_t)number;
    return true;
}

static bool read_counter_entry(const struct weft_wire_reader *reader, const struct weft_json *value,
                               void *ret_counter)
{
    (void)reader;
    int64_t number;
    if (!weft_json_i64(value, &number) || number < 0)
        return false;
    ((struct weft_counter *)ret_counter)->value = (uint64_t)number;
    return true;
}

static bool read_amount_entry(const struct weft_wire_reader *reader, const struct weft_json *value,
                              void *ret_amount)
{
    (void)reader;
    return weft_json_i64(value, &((struct weft_amount *)ret_amount)->amount);
}

static bool read_id_entry(const struct weft_wire_reader *reader, const struct weft_json *value,
                          void *ret_named)
{
    const char *text;
    size_t size;
    return slice_of(reader, value, &text, &size) &&
           weft_id_parse(text, size, &((struct weft_wire_named_id *)ret_named)->id);
}

/* A list of texts, or an object whose entries begin with their names. */
static enum weft_rc read_entries(const struct weft_wire_reader *reader,
                                 const struct weft_wire_field *field, const struct weft_json *value)
{
    static const struct entry_kind {
        const char *all, *each; /* what the value must be, and what it must be with its entries */
        size_t size;
        bool (*read)(const struct weft_wire_reader *, const struct weft_json *, void *);
    } kinds[] = {
        [WEFT_WIRE_TEXTS] = {"a list of strings", "a list of strings without U+0000",
                             sizeof(const char *), read_text_entry},
        [WEFT_WIRE_TAGS] = {"an object of strings", "an object of strings without U+0000",
                            sizeof(struct weft_tag), read_tag_entry},
        [WEFT_WIRE_WEIGHTS] = {"an object of whole numbers",
                               "an object of whole numbers from 1 to 1000",
                               sizeof(struct weft_weight), read_weight_entry},
        [WEFT_WIRE_COUNTERS] = {"an object of whole numbers",
                                "an object of whole numbers from 0 on", sizeof(struct weft_counter),
                                read_counter_entry},
        [WEFT_WIRE_AMOUNTS] = {"an object of whole numbers", "an object of whole numbers",
                               sizeof(struct weft_amount), read_amount_entry},
        [WEFT_WIRE_IDS] = {"an object of ids", "an object of ids (UUIDs)",
                           sizeof(struct weft_wire_named_id), read_id_entry},
    };
    const struct entry_kind *kind = &kinds[field->kind];
    assert(kind->read); /* other kinds have functions of their own */
    bool named = field->kind != WEFT_WIRE_TEXTS;
    size_t count = 0;
    if (value->kind != (named ? WEFT_JSON_OBJECT : WEFT_JSON_ARRAY))
        return weft_wire_must_be(reader, field, kind->all);
    enum weft_rc rc = weft_wire_count(reader, field, value, &count);
    if (rc)
        return rc;
    char *entry = weft_arena_alloc(reader->arena, count, kind->size);
    *(const void **)place(reader, field->at) = count ? entry : NULL;
    *(size_t *)place(reader, field->count) = count;
    struct weft_json_iter each;
    weft_json_iter_init(&each, value);
    for (; weft_json_next(&each); entry += kind->size)
        if ((named && !read_text_entry(reader, &each.key, entry)) ||
            !kind->read(reader, &each.value, entry))
            return weft_wire_must_be(reader, field, kind->each);
    return WEFT_OK;
}

/* ---- Bytes and policies ---------------------------------------------------------------------- */

static enum weft_rc read_json(const struct weft_wire_reader *reader,
                              const struct weft_wire_field *field, const struct weft_json *value)
{
    *(const void **)place(reader, field->at) = value->text;
    *(size_t *)place(reader, field->count) = value->size;
    return WEFT_OK;
}

static enum weft_rc read_any(const struct weft_wire_reader *reader,
                             const struct weft_wire_field *field, const struct weft_json *value)
{
    *(const char **)place(reader, field->at) =
        weft_arena_printf(reader->arena, "%.*s", (int)value->size, value->text);
    return WEFT_OK;
}

static enum weft_rc read_raw(const struct weft_wire_reader *reader,
                             const struct weft_wire_field *field, const struct weft_json *value)
{
    if (value->kind != WEFT_JSON_OBJECT)
        return weft_wire_must_be(reader, field, "an object");
    return read_any(reader, field, value);
}

/* What stands in the list is checked with the rest of its message. */
static enum weft_rc read_statuses(const struct weft_wire_reader *reader,
                                  const struct weft_wire_field *field,
                                  const struct weft_json *value)
{
    if (value->kind != WEFT_JSON_ARRAY)
        return weft_wire_must_be(reader, field, "a list of statuses, like [429,\"5xx\"]");
    return read_any(reader, field, value);
}

static enum weft_rc read_base64(const struct weft_wire_reader *reader,
                                const struct weft_wire_field *field, const struct weft_json *value)
{
    const char *text;
    size_t size, made;
    if (!slice_of(reader, value, &text, &size))
        return weft_wire_must_be(reader, field, "a string of base64");
    /* One byte more: bytes that are there but empty are not NULL. */
    void *data = weft_arena_alloc(reader->arena, size / 4 * 3 + 1, 1);
    if (!weft_base64_decode(text, size, data, &made))
        return weft_wire_must_be(reader, field, "base64 with padding and without line breaks");
    *(const void **)place(reader, field->at) = data;
    *(size_t *)place(reader, field->count) = made;
    return WEFT_OK;
}

/* Whether every name in an object is in its table, and there once. */
static enum weft_rc check_names(const struct weft_wire_reader *outer, const char *inside,
                                const struct weft_wire_field *field, size_t count,
                                const struct weft_json *object)
{
    struct weft_wire_reader reader = *outer;
    reader.inside = inside;
    reader.field = field;
    reader.count = count;
    reader.met = 0;
    struct weft_json_iter member;
    weft_json_iter_init(&member, object);
    enum weft_rc rc = WEFT_OK;
    size_t i;
    while (!rc && weft_json_next(&member))
        rc = weft_wire_meet(&reader, &member.key, 0, &i);
    return rc;
}

/* weft_policy_parse() checks the values; unknown names are refused here, as in every object. */
static enum weft_rc read_policy(const struct weft_wire_reader *reader,
                                const struct weft_wire_field *field, const struct weft_json *value)
{
    enum weft_rc rc = WEFT_OK;
    struct weft_policy *policy = weft_new(reader->arena, struct weft_policy);
    *(const struct weft_policy **)place(reader, field->at) = policy;
    if (reader->lenient)
        return weft_policy_parse_answer(value, reader->arena, policy, reader->err);
    if (value->kind == WEFT_JSON_OBJECT)
        rc = check_names(reader, field->name, weft_wire_policy, weft_wire_policy_count, value);
    for (size_t i = 0; !rc && i < weft_wire_policy_count; i++) {
        const struct weft_wire_field *inner = &weft_wire_policy[i];
        struct weft_json object;
        if (inner->kind == WEFT_WIRE_OBJECT && weft_wire_member(value, inner->name, &object) &&
            object.kind == WEFT_JSON_OBJECT)
            rc = check_names(reader,
                             weft_arena_printf(reader->arena, "%s.%s", field->name, inner->name),
                             inner->inner, inner->inners, &object);
    }
    if (rc)
        return rc;
    return weft_policy_parse(value, reader->arena, policy, reader->err);
}

enum weft_rc weft_wire_read_value(const struct weft_wire_reader *reader,
                                  const struct weft_wire_field *field,
                                  const struct weft_json *value)
{
    typedef enum weft_rc (*read_fn)(const struct weft_wire_reader *, const struct weft_wire_field *,
                                    const struct weft_json *);
    /* Policies are read by weft_policy_parse(), so their own forms are not here. */
    static const read_fn read[] = {
        [WEFT_WIRE_ID] = read_id,           [WEFT_WIRE_TEXT] = read_text,
        [WEFT_WIRE_I32] = read_number,      [WEFT_WIRE_U32] = read_number,
        [WEFT_WIRE_I64] = read_number,      [WEFT_WIRE_U64] = read_number,
        [WEFT_WIRE_AT_ONCE] = read_number,  [WEFT_WIRE_BOOL] = read_bool,
        [WEFT_WIRE_UNLESS] = read_bool,     [WEFT_WIRE_MOMENT] = read_moment,
        [WEFT_WIRE_STATE] = read_state,     [WEFT_WIRE_TEXTS] = read_entries,
        [WEFT_WIRE_TAGS] = read_entries,    [WEFT_WIRE_WEIGHTS] = read_entries,
        [WEFT_WIRE_TAG] = read_tag,         [WEFT_WIRE_JSON] = read_json,
        [WEFT_WIRE_BASE64] = read_base64,   [WEFT_WIRE_CONTENT_TYPE] = read_text,
        [WEFT_WIRE_POLICY] = read_policy,   [WEFT_WIRE_ALIVE] = read_alive,
        [WEFT_WIRE_MS] = read_span,         [WEFT_WIRE_DUE] = read_moment,
        [WEFT_WIRE_RANGE] = read_range,     [WEFT_WIRE_COUNTERS] = read_entries,
        [WEFT_WIRE_RAW] = read_raw,         [WEFT_WIRE_WORD] = read_word,
        [WEFT_WIRE_IDS] = read_entries,     [WEFT_WIRE_REF] = read_ref,
        [WEFT_WIRE_AMOUNTS] = read_entries, [WEFT_WIRE_STATUSES] = read_statuses,
        [WEFT_WIRE_ANY] = read_any,
    };
    return read[field->kind] ? read[field->kind](reader, field, value) : WEFT_OK;
}
