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

/* The form of a value in the struct and on the wire. */
enum weft_wire_kind {
    WEFT_WIRE_ID,           /* struct weft_id */
    WEFT_WIRE_TEXT,         /* const char *; NULL: null */
    WEFT_WIRE_CONTENT_TYPE, /* the same, for the bytes beside it; its row comes after theirs */
    WEFT_WIRE_I32,
    WEFT_WIRE_U32,
    WEFT_WIRE_I64,
    WEFT_WIRE_U64,
    WEFT_WIRE_AT_ONCE, /* int64_t; 0: not given; -1: 0 on the wire */
    WEFT_WIRE_DOUBLE,  /* 0: not given */
    WEFT_WIRE_BOOL,
    WEFT_WIRE_UNLESS,   /* bool, the other way round on the wire, where true is the default */
    WEFT_WIRE_MOMENT,   /* weft_usec; 0: null */
    WEFT_WIRE_STATE,    /* enum weft_state; NONE: null */
    WEFT_WIRE_BACKOFF,  /* enum weft_backoff */
    WEFT_WIRE_TEXTS,    /* const char *const *, size_t: an array */
    WEFT_WIRE_TAGS,     /* const struct weft_tag *, size_t: an object */
    WEFT_WIRE_WEIGHTS,  /* const struct weft_weight *, size_t: an object */
    WEFT_WIRE_TAG,      /* const struct weft_tag *: "key:value" */
    WEFT_WIRE_JSON,     /* const void *, size_t: bytes that are JSON; its rival is the next */
    WEFT_WIRE_BASE64,   /* the same bytes when they are not */
    WEFT_WIRE_OBJECT,   /* the rows of `inner` over the same struct */
    WEFT_WIRE_POLICY,   /* const struct weft_policy * */
    WEFT_WIRE_ALIVE,    /* bool: "alive" or "dead" */
    WEFT_WIRE_MS,       /* weft_usec, a span: milliseconds on the wire */
    WEFT_WIRE_DUE,      /* weft_usec; INT64_MAX: null, and `normally` says so too */
    WEFT_WIRE_RANGE,    /* two uint32_t, at `at` and `count`: [first,last]; 0 and max: null */
    WEFT_WIRE_COUNTERS, /* const struct weft_counter *, size_t: an object of whole numbers */
    WEFT_WIRE_RAW,      /* const char *: the text of a JSON object; NULL: {} */
    WEFT_WIRE_WORD,     /* an enum from 0 on: `word` has a word for each, NULL: null */
    WEFT_WIRE_IDS,      /* const struct weft_wire_named_id *, size_t: an object of ids */
    WEFT_WIRE_LIST,     /* an array of structs, size_t: an array of messages of type `of` */
    WEFT_WIRE_MAP,      /* the same: an object; the first member of a struct is its name in it */
    WEFT_WIRE_REF,      /* bool, and the id at `count`: where its result is; true: there */
};

enum weft_wire_flag {
    WEFT_WIRE_REQUIRED = 1, /* must be there, and is never null */
    WEFT_WIRE_ALWAYS = 2,   /* written in requests even when it is not set */
    WEFT_WIRE_CHECKED = 4,  /* min and max are checked here: the struct cannot tell */
    WEFT_WIRE_BY_FLAG = 8,  /* OBJECT: there is one when the bool at `count` is true */
    WEFT_WIRE_BY_SIGN = 16, /* OBJECT: there is one when the int32_t at `count` is not negative */
    WEFT_WIRE_OR_NULL = 32, /* ID, numbers: zeros are null in answers */
};

struct weft_wire_field {
    const char *name;
    uint8_t name_size;
    uint8_t kind;   /* enum weft_wire_kind */
    uint8_t flags;  /* enum weft_wire_flag */
    uint8_t inners; /* rows of inner */
    uint16_t at;    /* offset of the value */
    uint16_t count; /* offset of its count, size or presence */
    uint16_t type;  /* JSON, BASE64: offset of the content type */
    const struct weft_wire_field *inner;
    const char *rival;       /* a field that may not be there together with this one */
    int64_t min, max;        /* numbers: the bounds, for the schema; both 0: those of the C type.
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

/* One object being read. */
struct weft_wire_reader {
    const struct weft_wire_field *field;
    size_t count;
    const char *inside; /* the name of the object it is in, or NULL */
    struct weft_arena *arena;
    void *item;
    uint64_t met;                       /* a bit for each field whose name was there */
    uint64_t given;                     /* the same, but for null */
    bool lenient;                       /* names that are not known are passed over */
    const struct weft_wire_field *list; /* a LIST or MAP that was there, to be read last; */
    struct weft_json list_value;        /* a type has at most one */
    struct weft_err *err;
};

/* The index of the field of that name, SIZE_MAX for none. `from` is where to look first. */
size_t weft_wire_find(const struct weft_wire_field *field, size_t count,
                      const struct weft_json *key, size_t from);
/* Fails with WEFT_UNKNOWN_FIELD, naming the key and, where one is close, the field that was meant.
 */
enum weft_rc weft_wire_unknown(const struct weft_wire_reader *reader, const struct weft_json *key);
/* Fails with WEFT_INVALID_VALUE: a field is there twice. */
enum weft_rc weft_wire_twice(const struct weft_wire_reader *reader,
                             const struct weft_wire_field *field);
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

/* ---- Writing --------------------------------------------------------------------------------- */

/* Reading through the offsets of a row. */
#define WEFT_WIRE_VALUE(c_type, item, offset) (*(const c_type *)(const void *)((item) + (offset)))

/* Whether a request mentions it; any form but OBJECT. */
WEFT_MUST_CHECK bool weft_wire_is_set(const struct weft_wire_field *field, const char *item);
/* Any form but objects, lists of messages and bytes; encoded: the bytes beside it are in base64. */
void weft_wire_put_value(struct weft_json_writer *out, const struct weft_wire_field *field,
                         const char *item, bool encoded);
/* JSON, and there are some: the member of the row, or the one of its rival, which is the next row.
 * True: they were encoded. */
WEFT_MUST_CHECK bool weft_wire_put_bytes(struct weft_json_writer *out,
                                         const struct weft_wire_field *field, const char *item);

/* ---- Schemas --------------------------------------------------------------------------------- */

/* The numbers a field can hold: its bounds, or those of its C type. */
void weft_wire_bounds(const struct weft_wire_field *field, int64_t *ret_min, int64_t *ret_max);

#endif
