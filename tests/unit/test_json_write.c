/* SPDX-License-Identifier: Apache-2.0 */

/* The writer: commas, escapes, numbers, and that the reader agrees with all of it. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/json.h"
#include "tap.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

static void write_sample(struct weft_json_writer *w)
{
    weft_json_begin_object(w);
    weft_json_key(w, "empty");
    weft_json_begin_array(w);
    weft_json_end_array(w);
    weft_json_key(w, "list");
    weft_json_begin_array(w);
    weft_json_put_i64(w, 1);
    weft_json_put_i64(w, INT64_MIN);
    weft_json_begin_object(w);
    weft_json_end_object(w);
    weft_json_put_null(w);
    weft_json_begin_object(w);
    weft_json_key(w, "a");
    weft_json_put_bool(w, true);
    weft_json_key(w, "b");
    weft_json_put_bool(w, false);
    weft_json_end_object(w);
    weft_json_begin_array(w);
    weft_json_put_i64(w, 7);
    weft_json_end_array(w);
    weft_json_put_double(w, 0.5);
    weft_json_end_array(w);
    weft_json_key(w, "text");
    weft_json_put_text(w, "x");
    weft_json_key(w, "none");
    weft_json_put_text(w, NULL);
    weft_json_key(w, "raw");
    weft_json_put_raw(w, "[ 1 ]", 5);
    weft_json_end_object(w);
}

static void test_structure(void)
{
    struct weft_buf buf;
    weft_buf_init(&buf, 4096);
    struct weft_json_writer w;
    weft_json_writer_init(&w, &buf);
    write_sample(&w);
    is_str(
        buf.data,
        "{\"empty\":[],\"list\":[1,-9223372036854775808,{},null,{\"a\":true,\"b\":false},[7],0.5],"
        "\"text\":\"x\",\"none\":null,\"raw\":[ 1 ]}",
        "commas and colons put themselves");
    weft_buf_done(&buf);
}

/* Whatever the ceiling, the buffer holds a beginning of the whole text and says it is full. */
static void test_ceiling(void)
{
    struct weft_buf whole;
    weft_buf_init(&whole, 4096);
    struct weft_json_writer w;
    weft_json_writer_init(&w, &whole);
    write_sample(&w);
    size_t wrong = 0;
    for (size_t max = 0; max < whole.size; max++) {
        struct weft_buf buf;
        weft_buf_init(&buf, max);
        weft_json_writer_init(&w, &buf);
        write_sample(&w);
        wrong += !buf.full || buf.size > max || memcmp(buf.data, whole.data, buf.size) != 0;
        weft_buf_done(&buf);
    }
    is_int(wrong, 0, "a ceiling cuts and never garbles");
    weft_buf_done(&whole);
}

static void test_depth(void)
{
    struct weft_buf buf;
    weft_buf_init(&buf, 4096);
    struct weft_json_writer w;
    weft_json_writer_init(&w, &buf);
    for (int i = 0; i < 32; i++) {
        weft_json_begin_array(&w);
        weft_json_put_i64(&w, i);
        weft_json_begin_object(&w);
        weft_json_key(&w, "k");
    }
    weft_json_put_null(&w);
    for (int i = 0; i < 32; i++) {
        weft_json_end_object(&w);
        weft_json_put_i64(&w, i);
        weft_json_end_array(&w);
    }
    struct weft_json value;
    is_int(weft_json_check(buf.data, buf.size, &value, NULL), WEFT_OK, "64 levels deep");
    weft_buf_done(&buf);
}

static void test_text(void)
{
    static const struct {
        const char *text, *want;
    } row[] = {
        {"", "\"\""},
        {"plain", "\"plain\""},
        {"\"\\/", "\"\\\"\\\\/\""},
        {"\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\""},
        {"\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\""},
        {"\xc2\x80\xc2\x9f\xc2\xa0", "\"\\u0080\\u009f\xc2\xa0\""},
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
         "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""},
        {"a\xffz", "\"a\\ufffdz\""},
        {"\xe2\x82", "\"\\ufffd\\ufffd\""},
        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_buf buf;
        weft_buf_init(&buf, 100);
        struct weft_json_writer w;
        weft_json_writer_init(&w, &buf);
        weft_json_put_text(&w, row[i].text);
        is_str(buf.data, row[i].want, "text %s", row[i].want);
        weft_buf_done(&buf);
    }
}

/* Bytes of every sort survive the way through the writer and back, as far as they are UTF-8. */
static void test_round_trip(void)
{
    struct weft_arena *arena = weft_arena_new();
    char text[0x80];
    for (int c = 1; c < 0x80; c++)
        text[c - 1] = (char)c;
    text[0x7f] = '\0';
    struct weft_buf buf;
    weft_buf_init(&buf, 4096);
    struct weft_json_writer w;
    weft_json_writer_init(&w, &buf);
    weft_json_put_text(&w, text);
    struct weft_json value;
    const char *back = NULL;
    is_int(weft_json_check(buf.data, buf.size, &value, NULL), WEFT_OK, "all of ASCII is valid");
    is_int(weft_json_string(&value, arena, &back, NULL), WEFT_OK, "all of ASCII decodes");
    is_str(back, text, "the decoded text is the original");

    size_t refused = 0;
    for (int i = 0; i < 2000; i++) {
        unsigned char noise[24];
        weft_random(noise, sizeof(noise));
        noise[sizeof(noise) - 1] = '\0';
        weft_buf_clear(&buf);
        weft_json_writer_init(&w, &buf);
        weft_json_put_text(&w, (const char *)noise);
        refused += weft_json_check(buf.data, buf.size, &value, NULL) != WEFT_OK;
    }
    is_int(refused, 0, "noise becomes valid JSON");
    weft_buf_done(&buf);
    weft_arena_free(arena);
}

static void put_double(struct weft_buf *buf, double number)
{
    struct weft_json_writer w;
    weft_buf_clear(buf);
    weft_json_writer_init(&w, buf);
    weft_json_put_double(&w, number);
}

static void test_doubles(void)
{
    static const struct {
        double number;
        const char *want;
    } row[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {0.1, "0.1"},
        {-2.5, "-2.5"},
        {1.0 / 3, "0.3333333333333333"},
        {1e22, "1e+22"},
        {1e-7, "1e-07"},
        {0.1 + 0.2, "0.30000000000000004"},
        {NAN, "null"},
        {INFINITY, "null"},
        {-INFINITY, "null"},
        {1e300, "1e+300"},
        {5e-324, "4.94065645841247e-324"},
    };
    struct weft_buf buf;
    weft_buf_init(&buf, 100);
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        put_double(&buf, row[i].number);
        is_str(buf.data, row[i].want, "double %s", row[i].want);
    }
    size_t wrong = 0;
    for (int i = 0; i < 2000; i++) {
        double number, back;
        weft_random(&number, sizeof(number));
        if (!isfinite(number))
            continue;
        put_double(&buf, number);
        struct weft_json value;
        wrong += weft_json_check(buf.data, buf.size, &value, NULL) ||
                 !weft_json_double(&value, &back) || back != number;
    }
    is_int(wrong, 0, "doubles of random bits read back");
    weft_buf_done(&buf);
}

/* A host program may use a decimal comma; JSON does not. */
static void test_locale(void)
{
    locale_t comma = newlocale(LC_NUMERIC_MASK, "de_DE.UTF-8", (locale_t)0);
    if (comma == (locale_t)0) {
        tap_skip("no locale with a decimal comma is installed");
        return;
    }
    locale_t before = uselocale(comma);
    struct weft_buf buf;
    weft_buf_init(&buf, 100);
    put_double(&buf, 0.5);
    is_str(buf.data, "0.5", "a point is written where the locale has a comma");
    struct weft_json value;
    double number = 0;
    ok(!weft_json_check("2.5", 3, &value, NULL) && weft_json_double(&value, &number) &&
           number == 2.5,
       "a decimal point is read in that locale");
    weft_buf_done(&buf);
    (void)uselocale(before);
    freelocale(comma);
}

int main(void)
{
    test_structure();
    test_ceiling();
    test_depth();
    test_text();
    test_round_trip();
    test_doubles();
    test_locale();
    return tap_done();
}
