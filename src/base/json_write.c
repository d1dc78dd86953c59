/* SPDX-License-Identifier: Apache-2.0 */

/* The writer. Every value passes before_value(), the one place that writes commas. */

#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/str.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void weft_json_writer_init(struct weft_json_writer *writer, struct weft_buf *buf)
{
    *writer = (struct weft_json_writer){.buf = buf};
}

static uint64_t level_bit(const struct weft_json_writer *writer)
{
    assert(writer->depth > 0);
    return (uint64_t)1 << (writer->depth - 1);
}

static void put_comma(struct weft_json_writer *writer)
{
    uint64_t bit = level_bit(writer);
    if (writer->has_member & bit)
        weft_buf_add_char(writer->buf, ',');
    writer->has_member |= bit;
}

static void before_value(struct weft_json_writer *writer)
{
    if (writer->after_key) {
        writer->after_key = false;
        return;
    }
    if (writer->depth == 0)
        return;
    assert(!(writer->is_object & level_bit(writer)));
    put_comma(writer);
}

void weft_json_begin(struct weft_json_writer *writer, bool object)
{
    before_value(writer);
    assert(writer->depth < WEFT_JSON_DEPTH_MAX);
    writer->depth++;
    uint64_t bit = level_bit(writer);
    writer->has_member &= ~bit;
    writer->is_object = object ? writer->is_object | bit : writer->is_object & ~bit;
    weft_buf_add_char(writer->buf, object ? '{' : '[');
}

void weft_json_end(struct weft_json_writer *writer, bool object)
{
    assert(!writer->after_key);
    assert(((writer->is_object & level_bit(writer)) != 0) == object);
    writer->depth--;
    weft_buf_add_char(writer->buf, object ? '}' : ']');
}

static size_t put_escape(unsigned code, char ret_out[WEFT_JSON_ESCAPE_MAX])
{
    static const char hex[] = "0123456789abcdef";
    ret_out[0] = '\\';
    ret_out[1] = 'u';
    for (int i = 0; i < 4; i++)
        ret_out[2 + i] = hex[code >> (12 - 4 * i) & 0x0f];
    return WEFT_JSON_ESCAPE_MAX;
}

size_t weft_json_escape(const char *text, size_t size, char ret_out[WEFT_JSON_ESCAPE_MAX],
                        size_t *ret_size)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    unsigned char first = (unsigned char)text[0];
    size_t taken = weft_utf8_size(text, size);
    if (taken == 0) {
        *ret_size = put_escape(0xfffd, ret_out);
        return 1;
    }
    const char *found = first ? strchr(plain, first) : NULL;
    if (found) {
        ret_out[0] = '\\';
        ret_out[1] = letter[found - plain];
        *ret_size = 2;
    } else if (first < 0x20 || first == 0x7f) {
        *ret_size = put_escape(first, ret_out);
    } else if (first == 0xc2 && (unsigned char)text[1] < 0xa0) {
        *ret_size = put_escape((unsigned char)text[1], ret_out); /* U+0080..U+009F */
    } else {
        memcpy(ret_out, text, taken);
        *ret_size = taken;
    }
    return taken;
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void put_string(struct weft_buf *buf, const char *text)
{
    const char *end = text + strlen(text);
    weft_buf_add_char(buf, '"');
    while (text < end) {
        const char *run = text;
        while (text < end && is_plain((unsigned char)*text))
            text++;
        weft_buf_add(buf, run, (size_t)(text - run));
        if (text == end)
            break;
        char out[WEFT_JSON_ESCAPE_MAX];
        size_t size;
        text += weft_json_escape(text, (size_t)(end - text), out, &size);
        weft_buf_add(buf, out, size);
    }
    weft_buf_add_char(buf, '"');
}

void weft_json_key(struct weft_json_writer *writer, const char *key)
{
    assert(!writer->after_key);
    assert(writer->is_object & level_bit(writer));
    put_comma(writer);
    put_string(writer->buf, key);
    weft_buf_add_char(writer->buf, ':');
    writer->after_key = true;
}

void weft_json_put_text(struct weft_json_writer *writer, const char *text)
{
    if (!text) {
        weft_json_put_null(writer);
        return;
    }
    before_value(writer);
    put_string(writer->buf, text);
}

void weft_json_put_i64(struct weft_json_writer *writer, int64_t number)
{
    char text[WEFT_NUMBER_TEXT];
    before_value(writer);
    weft_buf_add(writer->buf, text, weft_i64_print(number, text));
}

void weft_json_put_double(struct weft_json_writer *writer, double number)
{
    if (!isfinite(number)) {
        weft_json_put_null(writer);
        return;
    }
    before_value(writer);
    char text[32];
    locale_t before = uselocale(weft_c_locale());
    for (int digits = 15; digits <= 17;
         digits++) { /* 15 always round-trip from text, 17 from a double */
        (void)snprintf(text, sizeof(text), "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    (void)uselocale(before);
    weft_buf_add_text(writer->buf, text);
}

void weft_json_put_bool(struct weft_json_writer *writer, bool value)
{
    before_value(writer);
    weft_buf_add_text(writer->buf, value ? "true" : "false");
}

void weft_json_put_null(struct weft_json_writer *writer)
{
    before_value(writer);
    weft_buf_add_text(writer->buf, "null");
}

void weft_json_put_raw(struct weft_json_writer *writer, const char *text, size_t size)
{
    before_value(writer);
    weft_buf_add(writer->buf, text, size);
}

void weft_json_add_raw(struct weft_json_writer *writer, const char *key, const char *json)
{
    weft_json_key(writer, key);
    weft_json_put_raw(writer, json, strlen(json));
}
