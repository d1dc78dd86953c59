/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_WIRE_TYPE_H
#define WEFT_WIRE_TYPE_H

/*
 * A message as a table: a row for each field. Private to src/wire.
 *
 * A row says how the field is called, where its value lies in the struct and in which form. Nested
 * objects (progress, error, backoff) are rows of their own over the same struct.
 */

#include "wire/wire.h"

enum weft_wire_kind {
#define KIND(kind, ...) WEFT_WIRE_##kind,
#include "wire/kinds.def"
    WEFT_WIRE_KIND_COUNT
};

enum weft_wire_flag {
    WEFT_WIRE_REQUIRED = 1, /* must be there, and is never null */
    WEFT_WIRE_ALWAYS = 2,   /* written in requests even when it is not set */
    WEFT_WIRE_CHECKED = 4,  /* min and max are checked here: the struct cannot tell */
    WEFT_WIRE_BY_FLAG = 8,  /* OBJECT: there is one when the bool at `count` is true */
    WEFT_WIRE_BY_SIGN = 16, /* OBJECT: there is one when the int32_t at `count` is not negative */
    WEFT_WIRE_OR_NULL = 32, /* ID, numbers: zeros are null in answers */
    WEFT_WIRE_WITH = 64,    /* written only when the bool at `type` is true */
};

struct weft_wire_field {
    const char *name;
    uint8_t name_size;
    uint8_t kind;   /* enum weft_wire_kind */
    uint8_t flags;  /* enum weft_wire_flag */
    uint8_t inners; /* rows of inner */
    uint16_t at;    /* offset of the value */
    uint16_t count; /* offset of its count, size or presence */
    uint16_t type;  /* JSON, BASE64: offset of the content type; WITH: of its bool */
    const struct weft_wire_field *inner;
    const char *rival;       /* a field that may not be there together with this one */
    int64_t min, max;        /* numbers: the bounds, for the schema; both 0: all of the C type.
                                TEXTS, IDS, LIST, MAP: max entries; 0: LIST_MAX of read_value.c */
    int64_t normally;        /* I64: the value when it is absent */
    const char *about;       /* for the schema */
    const char *const *word; /* WORD: `inners` of them */
    const struct weft_wire_type *of; /* LIST, MAP; it has none of these itself */
};

struct weft_wire_type {
    const char *name; /* of the schema */
    const char *about;
    const struct weft_wire_field *field;
    size_t count; /* of fields; at most 64 */
    size_t size;  /* of the struct */
    bool answer;  /* every field is written */
    bool request; /* but it is a request as well, and may lack fields */
};

extern const struct weft_wire_field weft_wire_policy[];
extern const size_t weft_wire_policy_count;

/* ---- Reading --------------------------------------------------------------------------------- */

enum { WEFT_WIRE_LISTS = 2 }; /* LISTs and MAPs that a type has, at most */

/* One object being read. */
struct weft_wire_reader {
    const struct weft_wire_field *field;
    size_t count;
    const char *inside; /* the name of the object it is in, or NULL */
    struct weft_arena *arena;
    void *item;
    uint64_t met;   /* a bit for each field whose name was there */
    uint64_t given; /* the same, but for null */
    bool lenient;   /* names that are not known are passed over */
    /* LISTs and MAPs that were there, to be read last. */
    const struct weft_wire_field *list[WEFT_WIRE_LISTS];
    struct weft_json list_value[WEFT_WIRE_LISTS];
    size_t lists;
    struct weft_err *err;
};

/*
 * Notes that the key of a member was there. *ret_index: of its field; SIZE_MAX: there is none, and
 * the reader is lenient. `from` is where to look first. WEFT_UNKNOWN_FIELD names the key and, where
 * one is close, the field that was meant; WEFT_INVALID_VALUE: the key was there before.
 */
WEFT_MUST_CHECK enum weft_rc weft_wire_meet(struct weft_wire_reader *reader,
                                            const struct weft_json *key, size_t from,
                                            size_t *ret_index);
/* Fails with WEFT_INVALID_VALUE: "NAME must be WHAT". */
enum weft_rc weft_wire_must_be(const struct weft_wire_reader *reader,
                               const struct weft_wire_field *field, const char *what);
/* "progress.percent": how a field is called in an answer; static or in the arena. */
const char *weft_wire_path(const struct weft_wire_reader *reader,
                           const struct weft_wire_field *field);
/* How many elements or members a value has; WEFT_TOO_LARGE: more than the field may. */
WEFT_MUST_CHECK enum weft_rc weft_wire_count(const struct weft_wire_reader *reader,
                                             const struct weft_wire_field *field,
                                             const struct weft_json *value, size_t *ret_count);
/* Reads any value but OBJECT, LIST and MAP; it is not null unless it is JSON. */
WEFT_MUST_CHECK enum weft_rc weft_wire_read_value(const struct weft_wire_reader *reader,
                                                  const struct weft_wire_field *field,
                                                  const struct weft_json *value);

/* ---- Schemas --------------------------------------------------------------------------------- */

/* The numbers a field can hold: its bounds, or the range of its C type. */
void weft_wire_bounds(const struct weft_wire_field *field, int64_t *ret_min, int64_t *ret_max);

#endif
