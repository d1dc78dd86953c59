/* SPDX-License-Identifier: Apache-2.0 */

/* What values mean: strings, words, integers, doubles. */

#include "base/arena.h"
#include "base/json.h"
#include "tap.h"

/* The value of a text that must be JSON. */
static struct weft_json value_of(const char *text)
{
    struct weft_json value = {0};
    struct weft_err err;
    if (weft_json_check(text, strlen(text), &value, &err))
        ok(false, "'%s' should be JSON: %s", text, err.text);
    return value;
}

static void test_strings(void)
{
    static const struct {
        const char *text, *want;
    } row[] = {
        {"\"\"", ""},
        {"\"abc\"", "abc"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"a\\nb\\nc\"", "a\nb\nc"},
        {"\"\\u0041\\u007f\"", "A\x7f"},
        {"\"\\u0080\\u07ff\"", "\xc2\x80\xdf\xbf"},
        {"\"\\u0800\\uFFFF\"", "\xe0\xa0\x80\xef\xbf\xbf"},
        {"\"\\ud800\\udc00\"", "\xf0\x90\x80\x80"},
        {"\"x\\uD83D\\ude00y\"", "x\xf0\x9f\x98\x80y"},
        {"\"\\udbff\\udfff\"", "\xf4\x8f\xbf\xbf"},
        {"\"\xc3\xa9\\u00e9\xc3\xa9\"", "\xc3\xa9\xc3\xa9\xc3\xa9"},
        {"\"\\\\u0041\"", "\\u0041"},
        {"\"long enough to move: \\t and then some more text\"",
         "long enough to move: \t and then some more text"},
    };
    struct weft_arena *arena = weft_arena_new();
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_json value = value_of(row[i].text);
        const char *text = NULL;
        is_int(weft_json_string(&value, arena, &text, NULL), WEFT_OK, "string %s", row[i].text);
        is_str(text, row[i].want, "decoded %s", row[i].text);
        ok(weft_json_is(&value, row[i].want), "the string equals its decoded text: %s",
           row[i].text);
    }
    weft_arena_free(arena);
}

static void test_refused_strings(void)
{
    static const struct {
        const char *text, *why;
    } row[] = {
        {"\"a\\u0000b\"", "the string contains U+0000"},
        {"\"\\u0000\"", "the string contains U+0000"},
        {"\"\\n\\u0000\"", "the string contains U+0000"},
        {"1", "not a string"},
        {"null", "not a string"},
        {"[\"a\"]", "not a string"},
    };
    struct weft_arena *arena = weft_arena_new();
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_json value = value_of(row[i].text);
        struct weft_err err = {0};
        const char *text = "untouched";
        is_int(weft_json_string(&value, arena, &text, &err), WEFT_INVALID_VALUE, "refused: %s",
               row[i].text);
        is_str(err.text, row[i].why, "the error for %s gives the reason", row[i].text);
        is_str(text, "untouched", "nothing given: %s", row[i].text);
    }
    weft_arena_free(arena);
}

static void test_words(void)
{
    static const struct {
        const char *text, *word;
        bool want;
    } row[] = {
        {"\"lane\"", "lane", true},
        {"\"l\\u0061ne\"", "lane", true},
        {"\"lan\"", "lane", false},
        {"\"lanes\"", "lane", false},
        {"\"Lane\"", "lane", false},
        {"\"\"", "", true},
        {"\"\"", "lane", false},
        {"\"a\"", "", false},
        {"\"lane\\u0000\"", "lane", false},
        {"\"\\u0000\"", "", false},
        {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80", true},
        {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98", false},
        {"\"\\n\"", "n", false},
        {"null", "null", false},
        {"1", "1", false},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_json value = value_of(row[i].text);
        ok(weft_json_is(&value, row[i].word) == row[i].want, "%s is%s '%s'", row[i].text,
           row[i].want ? "" : " not", row[i].word);
    }
}

static void test_bools(void)
{
    static const struct {
        const char *text;
        bool want;
    } row[] = {{"true", true}, {"false", false}, {"null", false}, {"1", false}, {"\"t\"", false}};
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_json value = value_of(row[i].text);
        ok(weft_json_bool(&value) == row[i].want, "bool of %s", row[i].text);
    }
}

static void test_integers(void)
{
    static const struct {
        const char *text;
        int64_t want;
    } row[] = {
        {"0", 0},
        {"-0", 0},
        {"-0.0e5", 0},
        {"7", 7},
        {"-7", -7},
        {"100", 100},
        {"1.0", 1},
        {"1.000000000000000000000000000000000000000", 1},
        {"1e3", 1000},
        {"1E+3", 1000},
        {"1.5e1", 15},
        {"1.25e2", 125},
        {"1000e-3", 1},
        {"10203.0", 10203},
        {"100000000000000000000000e-23", 1},
        {"0.000000000000000000000001e24", 1},
        {"0e99999999999999999999", 0},
        {"0e-99999999999999999999", 0},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
        {"922337203685477580.7e1", INT64_MAX},
        {"-92233720368547758080e-1", INT64_MIN},
        {"9e18", 9000000000000000000},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_json value = value_of(row[i].text);
        int64_t number = 42;
        ok(weft_json_i64(&value, &number), "an integer: %s", row[i].text);
        is_int(number, row[i].want, "the integer has its value: %s", row[i].text);
    }
}

static void test_refused_integers(void)
{
    static const char *const row[] = {
        "0.5",
        "1.5",
        "-1e-1",
        "15e-1",
        "1.25e1",
        "9223372036854775808",
        "-9223372036854775809",
        "9223372036854775807.5",
        "18446744073709551616",
        "18446744073709551615",
        "1e19",
        "1e20",
        "1e400",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "123456789012345678901234567890",
        "123456789012345678901234567891e-20",
        "true",
        "null",
        "\"1\"",
        "[1]",
        "{}",
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_json value = value_of(row[i]);
        int64_t number = 42;
        ok(!weft_json_i64(&value, &number) && number == 42, "no integer: %s", row[i]);
    }
}

static void test_doubles(void)
{
    static const struct {
        const char *text;
        double want;
    } row[] = {
        {"0", 0},
        {"0.5", 0.5},
        {"-2.5e3", -2500},
        {"1e308", 1e308},
        {"1e-400", 0},
        {"0.1000000000000000055511151231257827021181583404541015625000000000000000000000000", 0.1},
        {"123456789", 123456789},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_json value = value_of(row[i].text);
        double number = 42;
        ok(weft_json_double(&value, &number) && number == row[i].want, "double %s", row[i].text);
    }
    static const char *const refused[] = {"1e400", "-1e400", "null", "\"1\"", "[1]", "true"};
    for (size_t i = 0; i < WEFT_LEN(refused); i++) {
        struct weft_json value = value_of(refused[i]);
        double number = 42;
        ok(!weft_json_double(&value, &number) && number == 42, "no double: %s", refused[i]);
    }
}

/* A number ends where its slice ends, whatever bytes come next in the text it was cut from. */
static void test_double_in_context(void)
{
    struct weft_json array = value_of("[1,2.5,3]");
    struct weft_json_iter iter;
    weft_json_iter_init(&iter, &array);
    double sum = 0, number;
    while (weft_json_next(&iter))
        if (weft_json_double(&iter.value, &number))
            sum += number;
    ok(sum == 6.5, "the numbers of an array add up");
}

int main(void)
{
    test_strings();
    test_refused_strings();
    test_words();
    test_bools();
    test_integers();
    test_refused_integers();
    test_doubles();
    test_double_in_context();
    return tap_done();
}
