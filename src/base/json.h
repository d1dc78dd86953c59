/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_JSON_H
#define WEFT_BASE_JSON_H

/*
 * JSON: a strict pull reader over one text, and a writer that cannot emit a stray comma.
 *
 * The reader validates RFC 8259 fully, UTF-8 and surrogate pairs included, to a depth of
 * WEFT_JSON_DEPTH_MAX, without recursion, and hands out raw slices of the input: payloads are
 * validated, stored and returned byte for byte. A text is first checked as a whole by
 * weft_json_check(); readers run over checked text only, so walking it cannot fail on syntax.
 */

#include "base/err.h"

struct weft_buf;

enum weft_json_kind {
    WEFT_JSON_NULL,
    WEFT_JSON_BOOL,
    WEFT_JSON_NUMBER,
    WEFT_JSON_STRING,
    WEFT_JSON_ARRAY,
    WEFT_JSON_OBJECT,
};

/* A value: the slice of the text that holds it, without the white space around it. */
struct weft_json {
    const char *text; /* borrowed from the checked text */
    size_t size;
    enum weft_json_kind kind;
};

/*
 * Validates one whole text and gives its value. WEFT_INVALID_JSON names the byte and the reason.
 * The second form is for a text to be embedded in another one, `levels` deep: both stay within the
 * depth.
 */
#define weft_json_check(text, size, ret_value, err)                                                \
    weft_json_check_inside(text, size, 0, ret_value, err)
WEFT_MUST_CHECK enum weft_rc weft_json_check_inside(const char *text, size_t size, unsigned levels,
                                                    struct weft_json *ret_value,
                                                    struct weft_err *err);

/* Walks the members of an object or the elements of an array. */
struct weft_json_iter {
    const char *at;
    const char *end;
    struct weft_json key;   /* the string of the current member, quotes included (objects only) */
    struct weft_json value; /* the current member or element */
};
void weft_json_iter_init(struct weft_json_iter *iter, const struct weft_json *value);
bool weft_json_next(struct weft_json_iter *iter);

/*
 * The decoded string, NUL-terminated, in the arena. WEFT_INVALID_VALUE when it contains U+0000 or
 * when the value is no string.
 */
WEFT_MUST_CHECK enum weft_rc weft_json_string(const struct weft_json *value,
                                              struct weft_arena *arena, const char **ret_text,
                                              struct weft_err *err);
/* True when value is a string that decodes to exactly `word`. */
bool weft_json_is(const struct weft_json *value, const char *word);
bool weft_json_bool(const struct weft_json *value); /* value is a BOOL */
/* An integer without loss ("1", "1.0", "1e3"); false when it is none or does not fit int64. */
WEFT_MUST_CHECK bool weft_json_i64(const struct weft_json *value, int64_t *ret_number);
/* A finite double; false for what is not a number or overflows. */
WEFT_MUST_CHECK bool weft_json_double(const struct weft_json *value, double *ret_number);

/*
 * The writer: begin/end pairs and values; commas and colons are added. A value without a key in an
 * object, or an end that does not match its begin, is a programming error and asserts.
 * Text that is not UTF-8 is written with U+FFFD in place of each bad byte.
 */
struct weft_json_writer {
    struct weft_buf *buf; /* borrowed; its ceiling is the writer's */
    uint64_t has_member;  /* a bit per open level: a value was written there */
    uint64_t is_object;   /* a bit per open level: it is an object, so values need keys */
    uint32_t depth;
    bool after_key;
};
void weft_json_writer_init(struct weft_json_writer *writer, struct weft_buf *buf);
void weft_json_begin(struct weft_json_writer *writer, bool object); /* else an array */
void weft_json_end(struct weft_json_writer *writer, bool object);
#define weft_json_begin_object(writer) weft_json_begin(writer, true)
#define weft_json_end_object(writer)   weft_json_end(writer, true)
#define weft_json_begin_array(writer)  weft_json_begin(writer, false)
#define weft_json_end_array(writer)    weft_json_end(writer, false)
void weft_json_key(struct weft_json_writer *writer, const char *key);
void weft_json_put_text(struct weft_json_writer *writer, const char *text); /* NULL: null */
void weft_json_put_i64(struct weft_json_writer *writer, int64_t number);
/* The shortest text that reads back as the same number; null for NaN and infinities. */
void weft_json_put_double(struct weft_json_writer *writer, double number);
void weft_json_put_bool(struct weft_json_writer *writer, bool value);
void weft_json_put_null(struct weft_json_writer *writer);
/* A key and its value; of an object and an array the beginning. */
#define weft_json_add_text(writer, key, text)                                                      \
    (weft_json_key(writer, key), weft_json_put_text(writer, text))
#define weft_json_add_i64(writer, key, number)                                                     \
    (weft_json_key(writer, key), weft_json_put_i64(writer, number))
#define weft_json_add_bool(writer, key, value)                                                     \
    (weft_json_key(writer, key), weft_json_put_bool(writer, value))
#define weft_json_add_object(writer, key)                                                          \
    (weft_json_key(writer, key), weft_json_begin(writer, true))
#define weft_json_add_array(writer, key)                                                           \
    (weft_json_key(writer, key), weft_json_begin(writer, false))
/* The value is checked JSON text, which is written as it is. */
void weft_json_add_raw(struct weft_json_writer *writer, const char *key, const char *json);
/* One value that is valid JSON already. */
void weft_json_put_raw(struct weft_json_writer *writer, const char *text, size_t size);

enum { WEFT_JSON_ESCAPE_MAX = 6 };

/*
 * Writes the first character of text (size > 0) as it may appear between quotes: itself, or an
 * escape for quotes, backslashes, control characters and bytes that are not UTF-8. Returns how many
 * bytes of text were consumed.
 */
size_t weft_json_escape(const char *text, size_t size, char ret_out[WEFT_JSON_ESCAPE_MAX],
                        size_t *ret_size);

#endif
