/* SPDX-License-Identifier: Apache-2.0 */

/* The grammar: which texts are JSON, and walking over them. */

#include "base/arena.h"
#include "base/json.h"
#include "base/limits.h"
#include "tap.h"

#include <assert.h>
#include <stdlib.h>

struct row {
    const char *name;
    const char *text;
    size_t size;
};

/* Sizes are the compiler's, so rows may hold NUL bytes. */
#define T(text) text, sizeof(text) - 1

/* clang-format off */
static const struct row good[] = {
    {"null", T("null")},
    {"true", T("true")},
    {"false", T("false")},
    {"zero", T("0")},
    {"minus zero", T("-0")},
    {"one digit", T("7")},
    {"many digits", T("12345678901234567890123456789012345678901234567890")},
    {"fraction", T("0.5")},
    {"fraction of zeros", T("1.000")},
    {"exponent", T("1e5")},
    {"capital exponent", T("1E5")},
    {"plus in exponent", T("1e+5")},
    {"minus in exponent", T("1e-5")},
    {"zero exponent", T("0e0")},
    {"leading zeros in exponent", T("1e0005")},
    {"fraction and exponent", T("123.456e78")},
    {"negative with everything", T("-1.5E-10")},
    {"beyond double", T("1e400")},
    {"far beyond double", T("-1e99999")},
    {"below double", T("1e-99999")},
    {"empty string", T("\"\"")},
    {"string", T("\"abc\"")},
    {"seven bytes in a string", T("\"1234567\"")},
    {"eight bytes in a string", T("\"12345678\"")},
    {"nine bytes in a string", T("\"123456789\"")},
    {"slash", T("\"a/b\"")},
    {"every short escape", T("\"\\\" \\\\ \\/ \\b \\f \\n \\r \\t\"")},
    {"escaped letter", T("\"\\u0041\"")},
    {"escape in capitals", T("\"\\u00E9\\u00AB\"")},
    {"escaped NUL", T("\"\\u0000\"")},
    {"escaped control", T("\"\\u001f\"")},
    {"surrogate pair", T("\"\\ud83d\\ude00\"")},
    {"surrogate pair in capitals", T("\"\\uD83D\\uDE00\"")},
    {"first surrogate pair", T("\"\\ud800\\udc00\"")},
    {"last surrogate pair", T("\"\\udbff\\udfff\"")},
    {"two surrogate pairs", T("\"\\ud83d\\ude00\\ud83d\\ude01\"")},
    {"below the surrogates", T("\"\\ud7ff\"")},
    {"above the surrogates", T("\"\\ue000\"")},
    {"escaped noncharacter", T("\"\\uffff\"")},
    {"escaped noncharacter pair", T("\"\\udbff\\udffe\"")},
    {"escaped backslash, then u", T("\"\\\\u0000\"")},
    {"escaped backslash at the end", T("\"\\\\\"")},
    {"two bytes", T("\"\xc3\xa9\"")},
    {"first of two bytes", T("\"\xc2\x80\"")},
    {"last of two bytes", T("\"\xdf\xbf\"")},
    {"three bytes", T("\"\xe2\x82\xac\"")},
    {"first of three bytes", T("\"\xe0\xa0\x80\"")},
    {"U+D7FF raw", T("\"\xed\x9f\xbf\"")},
    {"U+E000 raw", T("\"\xee\x80\x80\"")},
    {"U+FFFF raw", T("\"\xef\xbf\xbf\"")},
    {"four bytes", T("\"\xf0\x9f\x98\x80\"")},
    {"first of four bytes", T("\"\xf0\x90\x80\x80\"")},
    {"U+10FFFF raw", T("\"\xf4\x8f\xbf\xbf\"")},
    {"BOM inside a string", T("\"\xef\xbb\xbf\"")},
    {"U+2028 raw", T("\"\xe2\x80\xa8\"")},
    {"DEL raw", T("\"\x7f\"")},
    {"C1 raw", T("\"\xc2\x9f\"")},
    {"empty array", T("[]")},
    {"empty object", T("{}")},
    {"empty array with space", T("[ \t\n\r]")},
    {"empty object with space", T("{ \t\n\r}")},
    {"array of one", T("[1]")},
    {"array of all kinds", T("[null,true,false,1,\"a\",[],{}]")},
    {"array of arrays", T("[[],[[]]]")},
    {"object of one", T("{\"a\":1}")},
    {"object of all kinds", T("{\"a\":null,\"b\":true,\"c\":0,\"d\":\"\",\"e\":[],\"f\":{}}")},
    {"empty key", T("{\"\":0}")},
    {"escaped key", T("{\"\\u0061\":0}")},
    {"NUL in a key", T("{\"a\\u0000b\":0}")},
    {"same key twice", T("{\"a\":1,\"a\":2}")},
    {"space everywhere", T(" \t\r\n[ 1 , { \"a\" : 2 } ] \t\r\n")},
    {"space before a number", T("  1")},
    {"space after a number", T("1  ")},
    {"newline at the end", T("true\n")},
    {"word as a string", T("\"null\"")},
    {"comment in a string", T("\"/* */ //\"")},
    {"brackets in a string", T("[\"]\",\"}\",\"[\",\"{\"]")},
};

static const struct row bad[] = {
    {"nothing", T("")},
    {"space alone", T(" ")},
    {"newline alone", T("\n")},
    {"NUL alone", T("\0")},
    {"NUL after a value", T("1\0")},
    {"NUL before a value", T("\0001")},
    {"NUL in a string", T("\"a\0b\"")},
    {"NUL in an array", T("[1,\0]")},
    {"NUL instead of a closing quote", T("\"a\0")},
    {"BOM", T("\xef\xbb\xbf{}")},
    {"BOM alone", T("\xef\xbb\xbf")},
    {"half a BOM", T("\xef\xbb{}")},
    {"UTF-16", T("\xff\xfe[\0]\0")},
    {"UTF-16 the other way", T("\0[\0]")},
    {"form feed as space", T("[\f]")},
    {"vertical tab as space", T("\v1")},
    {"no-break space", T("\xc2\xa0[]")},
    {"word joiner", T("[\xe2\x81\xa0]")},
    {"capital word", T("True")},
    {"all capitals", T("NULL")},
    {"word cut short", T("nul")},
    {"word cut to a letter", T("t")},
    {"word with more", T("nullx")},
    {"word with a digit", T("true1")},
    {"two words", T("true false")},
    {"NaN", T("NaN")},
    {"nan", T("nan")},
    {"Infinity", T("Infinity")},
    {"minus Infinity", T("-Infinity")},
    {"undefined", T("undefined")},
    {"bare word", T("abc")},
    {"single quotes", T("'a'")},
    {"back quotes", T("`a`")},
    {"minus alone", T("-")},
    {"minus, then a letter", T("-a")},
    {"two minuses", T("--1")},
    {"minus and space", T("- 1")},
    {"plus", T("+1")},
    {"point alone", T(".")},
    {"no digit before the point", T(".5")},
    {"no digit after the point", T("1.")},
    {"minus and point", T("-.5")},
    {"point and exponent", T("1.e5")},
    {"two points", T("1.2.3")},
    {"exponent without digits", T("1e")},
    {"capital exponent without digits", T("1E")},
    {"exponent with a plus alone", T("1e+")},
    {"exponent with a minus alone", T("1e-")},
    {"exponent with two signs", T("1e+-1")},
    {"exponent with a point", T("1e1.5")},
    {"two exponents", T("1e1e1")},
    {"exponent alone", T("e1")},
    {"leading zero", T("01")},
    {"two zeros", T("00")},
    {"negative leading zero", T("-012")},
    {"leading zero with fraction", T("00.5")},
    {"leading zero in an array", T("[01]")},
    {"hex number", T("0x10")},
    {"octal number", T("0o7")},
    {"underscore in a number", T("1_000")},
    {"comma in a number", T("1,000")},
    {"space in a number", T("1 000")},
    {"letter after a number", T("1a")},
    {"suffix on a number", T("1n")},
    {"wide digit", T("\xef\xbc\x91")},
    {"string without an end", T("\"abc")},
    {"quote alone", T("\"")},
    {"string without a begin", T("abc\"")},
    {"string ended by its escape", T("\"\\\"")},
    {"backslash at the end of the text", T("\"\\")},
    {"two strings", T("\"a\"\"b\"")},
    {"newline in a string", T("\"a\nb\"")},
    {"tab in a string", T("\"\t\"")},
    {"return in a string", T("\"\r\"")},
    {"U+001F in a string", T("\"\x1f\"")},
    {"U+0001 after eight bytes", T("\"12345678\x01\"")},
    {"control in a key", T("{\"\n\":1}")},
    {"escape \\a", T("\"\\a\"")},
    {"escape \\0", T("\"\\0\"")},
    {"escape \\x", T("\"\\x41\"")},
    {"escape \\'", T("\"\\'\"")},
    {"escaped newline", T("\"\\\n\"")},
    {"escaped NUL byte", T("\"\\\0\"")},
    {"escaped non-ASCII", T("\"\\\xc3\xa9\"")},
    {"capital U", T("\"\\U0041\"")},
    {"u without digits", T("\"\\u\"")},
    {"u with one digit", T("\"\\u0\"")},
    {"u with three digits", T("\"\\u004\"")},
    {"u with a bad digit", T("\"\\u004g\"")},
    {"u with a sign", T("\"\\u+041\"")},
    {"u cut by the end", T("\"\\u00")},
    {"first half of a pair", T("\"\\ud800\"")},
    {"first half and a letter", T("\"\\ud800a\"")},
    {"first half and another escape", T("\"\\ud800\\n\"")},
    {"first half and a plain escape", T("\"\\ud800\\u0041\"")},
    {"first half twice", T("\"\\ud800\\ud800\"")},
    {"first half and one below the second", T("\"\\ud800\\udbff\"")},
    {"first half and one above the second", T("\"\\ud800\\ue000\"")},
    {"first half cut", T("\"\\ud800\\udc0")},
    {"first half and a bad digit", T("\"\\ud800\\udc0x\"")},
    {"second half", T("\"\\udc00\"")},
    {"second half at the end", T("\"\\udfff\"")},
    {"halves in the wrong order", T("\"\\udc00\\ud800\"")},
    {"half after a pair", T("\"\\ud83d\\ude00\\ud83d\"")},
    {"overlong slash, two bytes", T("\"\xc0\xaf\"")},
    {"overlong slash, three bytes", T("\"\xe0\x80\xaf\"")},
    {"overlong slash, four bytes", T("\"\xf0\x80\x80\xaf\"")},
    {"overlong NUL", T("\"\xc0\x80\"")},
    {"overlong U+007F", T("\"\xc1\xbf\"")},
    {"overlong U+07FF", T("\"\xe0\x9f\xbf\"")},
    {"overlong U+FFFF", T("\"\xf0\x8f\xbf\xbf\"")},
    {"raw surrogate", T("\"\xed\xa0\x80\"")},
    {"raw surrogate pair", T("\"\xed\xa0\xbd\xed\xb8\x80\"")},
    {"raw last surrogate", T("\"\xed\xbf\xbf\"")},
    {"beyond U+10FFFF", T("\"\xf4\x90\x80\x80\"")},
    {"lead F5", T("\"\xf5\x80\x80\x80\"")},
    {"five bytes", T("\"\xf8\x88\x80\x80\x80\"")},
    {"six bytes", T("\"\xfc\x84\x80\x80\x80\x80\"")},
    {"FE", T("\"\xfe\"")},
    {"FF", T("\"\xff\"")},
    {"tail alone", T("\"\x80\"")},
    {"tail after a character", T("\"\xc3\xa9\xa9\"")},
    {"two bytes cut", T("\"\xc3\"")},
    {"three bytes cut to one", T("\"\xe2\"")},
    {"three bytes cut to two", T("\"\xe2\x82\"")},
    {"four bytes cut to three", T("\"\xf0\x9f\x98\"")},
    {"character cut by the end", T("\"\xf0\x9f\x98")},
    {"latin-1", T("\"\xe9\"")},
    {"bad byte outside a string", T("[\xe5]")},
    {"bad byte after a number", T("1\xe5")},
    {"bad byte in a key", T("{\"\xb9\":0}")},
    {"array without an end", T("[")},
    {"array of one without an end", T("[1")},
    {"array ended after a comma", T("[1,")},
    {"array without a begin", T("]")},
    {"comma at the end of an array", T("[1,]")},
    {"comma at the begin of an array", T("[,1]")},
    {"comma alone in an array", T("[,]")},
    {"two commas", T("[1,,2]")},
    {"missing comma", T("[1 2]")},
    {"missing comma between strings", T("[\"a\" \"b\"]")},
    {"missing comma between arrays", T("[[][]]")},
    {"colon in an array", T("[\"a\":1]")},
    {"semicolon", T("[1;2]")},
    {"array closed by a brace", T("[1}")},
    {"array closed twice", T("[1]]")},
    {"round brackets", T("(1)")},
    {"object without an end", T("{")},
    {"object without a begin", T("}")},
    {"object ended after a key", T("{\"a\"")},
    {"object ended after a colon", T("{\"a\":")},
    {"object ended after a value", T("{\"a\":1")},
    {"object ended after a comma", T("{\"a\":1,")},
    {"object closed by a bracket", T("{\"a\":1]")},
    {"object closed twice", T("{}}")},
    {"comma at the end of an object", T("{\"a\":1,}")},
    {"comma at the begin of an object", T("{,\"a\":1}")},
    {"comma alone in an object", T("{,}")},
    {"missing comma in an object", T("{\"a\":1 \"b\":2}")},
    {"comma for a colon", T("{\"a\",1}")},
    {"two colons", T("{\"a\"::1}")},
    {"missing colon", T("{\"a\" 1}")},
    {"missing value", T("{\"a\":}")},
    {"missing key", T("{:1}")},
    {"key alone", T("{\"a\"}")},
    {"bare key", T("{a:1}")},
    {"number as a key", T("{1:1}")},
    {"null as a key", T("{null:1}")},
    {"array as a key", T("{[]:1}")},
    {"value after a value", T("{\"a\":1:2}")},
    {"crossed brackets", T("[{]}")},
    {"two values", T("1 2")},
    {"two arrays", T("[][]")},
    {"array and comma", T("[],")},
    {"object and a letter", T("{}x")},
    {"object and a hash", T("{}#")},
    {"block comment", T("[1/* one */]")},
    {"line comment", T("1 // one")},
    {"comment first", T("/* */1")},
    {"hash comment", T("# one\n1")},
    {"comma alone", T(",")},
    {"colon alone", T(":")},
    {"backslash alone", T("\\")},
    {"escaped space", T("\\u0020[]")},
    {"asterisk", T("*")},
    {"angle bracket", T("<null>")},
};
/* clang-format on */

/* Checks a copy of exactly that size, so that a sanitizer sees a read past the end. */
static enum weft_rc check_copy(const char *text, size_t size, struct weft_err *err)
{
    char *copy = malloc(size ? size : 1);
    memcpy(copy, text, size);
    struct weft_json value;
    enum weft_rc rc = weft_json_check(copy, size, &value, err);
    free(copy);
    return rc;
}

static void test_grammar(void)
{
    for (size_t i = 0; i < WEFT_LEN(good); i++) {
        struct weft_err err = {0};
        if (!ok(!check_copy(good[i].text, good[i].size, &err), "good: %s", good[i].name))
            printf("# %s\n", err.text);
    }
    for (size_t i = 0; i < WEFT_LEN(bad); i++) {
        struct weft_err err = {0};
        enum weft_rc rc = check_copy(bad[i].text, bad[i].size, &err);
        ok(rc == WEFT_INVALID_JSON && err.rc == rc && strncmp(err.text, "byte ", 5) == 0, "bad: %s",
           bad[i].name);
    }
    ok(weft_json_check("[1,]", 4, &(struct weft_json){0}, NULL) == WEFT_INVALID_JSON,
       "the story may be left out");
}

static void test_offsets(void)
{
    static const struct {
        const char *text, *want;
    } row[] = {
        {"", "byte 0: a value is missing"},
        {"[1,]", "byte 3: a value is missing"},
        {"  tru", "byte 2: no such word"},
        {"{\"a\" 1}", "byte 5: a colon is missing"},
        {"{1:1}", "byte 1: a key is missing"},
        {"[1 2]", "byte 3: a comma or a closing bracket is missing"},
        {"1 x", "byte 2: something follows the value"},
        {"\"abc", "byte 4: the string has no end"},
        {"\"a\\qb\"", "byte 2: no such escape"},
        {"\"\\ud800\"", "byte 1: half of a surrogate pair"},
        {"\"a\xff\"", "byte 2: a string that is not UTF-8"},
        {"\"a\n\"", "byte 2: a control character in a string"},
        {"[012]", "byte 2: a number with a leading zero"},
        {"1.", "byte 2: a digit is missing"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_err err = {0};
        struct weft_json value;
        ok(weft_json_check(row[i].text, strlen(row[i].text), &value, &err) == WEFT_INVALID_JSON,
           "refused: %s", row[i].want);
        is_str(err.text, row[i].want, "where and why: %s", row[i].want);
    }
}

static void test_depth(void)
{
    enum { DEEP = 100000 };
    char *text = malloc(DEEP);
    struct weft_err err = {0};

    memset(text, '[', WEFT_JSON_DEPTH_MAX);
    memset(text + WEFT_JSON_DEPTH_MAX, ']', WEFT_JSON_DEPTH_MAX);
    is_int(check_copy(text, (size_t)2 * WEFT_JSON_DEPTH_MAX, &err), WEFT_OK,
           "the deepest nesting is accepted");

    memset(text, '[', WEFT_JSON_DEPTH_MAX + 1);
    memset(text + WEFT_JSON_DEPTH_MAX + 1, ']', WEFT_JSON_DEPTH_MAX + 1);
    is_int(check_copy(text, (size_t)2 * WEFT_JSON_DEPTH_MAX + 2, &err), WEFT_INVALID_JSON,
           "one level more is refused");
    is_str(err.text, "byte 64: nested too deeply", "the error says that it is nested too deeply");
    struct weft_json value;
    is_int(weft_json_check_inside("[[1]]", 5, WEFT_JSON_DEPTH_MAX - 2, &value, &err), WEFT_OK,
           "inside another text there is less room");
    is_int(weft_json_check_inside("[[1]]", 5, WEFT_JSON_DEPTH_MAX - 1, &value, &err),
           WEFT_INVALID_JSON, "inside another text one level more is too deep");

    memset(text, '[', DEEP);
    is_int(check_copy(text, DEEP, &err), WEFT_INVALID_JSON, "100000 arrays");
    for (size_t i = 0; i < DEEP; i++)
        text[i] = "{\"\":["[i % 5];
    is_int(check_copy(text, DEEP, &err), WEFT_INVALID_JSON, "20000 objects of arrays");
    is_str(err.text, "byte 160: nested too deeply",
           "the error gives the byte of the first level too many");
    free(text);
}

static const char document[] =
    "{\"name\": \"\\u00e9t\xc3\xa9 \\ud83d\\ude00\", \"list\": [1, -2.5e3, "
    "true, null, [], {\"x\": {}}], \"\": \"a\\\\\"}";

/* What is cut anywhere is not JSON, and what has one byte changed is never read past its end. */
static void test_damage(void)
{
    const size_t size = sizeof(document) - 1;
    size_t accepted = 0;
    for (size_t i = 0; i < size; i++)
        accepted += check_copy(document, i, NULL) == WEFT_OK;
    is_int(accepted, 0, "no prefix of a document is accepted");
    is_int(check_copy(document, size, NULL), WEFT_OK, "the whole is");

    char *copy = malloc(size);
    size_t tried = 0;
    accepted = 0;
    for (size_t at = 0; at < size; at++) {
        for (int c = 0; c < 256; c++) {
            memcpy(copy, document, size);
            copy[at] = (char)c;
            tried++;
            struct weft_json value;
            if (weft_json_check(copy, size, &value, NULL) != WEFT_OK)
                continue;
            accepted++;
            struct weft_json_iter iter;
            weft_json_iter_init(&iter, &value);
            while (weft_json_next(&iter))
                ;
        }
    }
    free(copy);
    ok(accepted > size && accepted < tried, "%zu of %zu changed documents are accepted", accepted,
       tried);
}

/* Every byte at every place of a string: the fast way through a string is as strict as the slow. */
static void test_every_byte(void)
{
    size_t wrong = 0;
    for (size_t at = 1; at < 21; at++) {
        for (int c = 0; c < 256; c++) {
            char text[] = "\"abcdefghijklmnopqrst\"";
            text[at] = (char)c;
            bool want = c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
            if (c == '\\') /* then it depends on the letter that follows */
                want = text[at + 1] && strchr("\"bfnrt", text[at + 1]) && at < 20;
            wrong += (check_copy(text, sizeof(text) - 1, NULL) == WEFT_OK) != want;
        }
    }
    is_int(wrong, 0, "every byte at every place of a string");
}

static void test_slices(void)
{
    static const struct {
        const char *text, *want;
        enum weft_json_kind kind;
    } row[] = {
        {" null ", "null", WEFT_JSON_NULL},    {"\ttrue\n", "true", WEFT_JSON_BOOL},
        {"false", "false", WEFT_JSON_BOOL},    {" -1.5 ", "-1.5", WEFT_JSON_NUMBER},
        {"0", "0", WEFT_JSON_NUMBER},          {" \"a b\" ", "\"a b\"", WEFT_JSON_STRING},
        {" [ 1 ] ", "[ 1 ]", WEFT_JSON_ARRAY}, {" { } ", "{ }", WEFT_JSON_OBJECT},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_json value = {0};
        ok(!weft_json_check(row[i].text, strlen(row[i].text), &value, NULL) &&
               value.kind == row[i].kind && value.size == strlen(row[i].want) &&
               memcmp(value.text, row[i].want, value.size) == 0,
           "the value alone: %s", row[i].want);
    }
}

/* Walks one level and gives it back as "key=value|key=value|", without a single space added. */
static const char *walk(struct weft_arena *arena, const char *text)
{
    struct weft_json value;
    if (weft_json_check(text, strlen(text), &value, NULL))
        return "not JSON";
    const char *told = "";
    struct weft_json_iter iter;
    weft_json_iter_init(&iter, &value);
    while (weft_json_next(&iter))
        told = weft_arena_printf(arena, "%s%.*s=%.*s|", told, (int)iter.key.size,
                                 iter.key.size ? iter.key.text : "", (int)iter.value.size,
                                 iter.value.text);
    return weft_json_next(&iter) ? "did not stay at the end" : told;
}

static void test_walk(void)
{
    static const struct {
        const char *text, *want;
    } row[] = {
        {"[]", ""},
        {" [ ] ", ""},
        {"{}", ""},
        {"[1]", "=1|"},
        {" [ 1 , \"a,]\" , [ 2 , [ ] ] ,{\"k\":\"}\"} ] ",
         "=1|=\"a,]\"|=[ 2 , [ ] ]|={\"k\":\"}\"}|"},
        {"[null,true,false,-0.5e+7]", "=null|=true|=false|=-0.5e+7|"},
        {"{\"a\":1}", "\"a\"=1|"},
        {"{ \"a\" : 1 , \"b\" : { \"c\" : [ ] } }", "\"a\"=1|\"b\"={ \"c\" : [ ] }|"},
        {"{\"\\\"\":\"\\\\\",\"\":\"\\\"\"}", "\"\\\"\"=\"\\\\\"|\"\"=\"\\\"\"|"},
        {"{\"a\":1,\"a\":2}", "\"a\"=1|\"a\"=2|"},
        {"[\"\xc3\xa9\xc3\xa9\",\"[{\"]", "=\"\xc3\xa9\xc3\xa9\"|=\"[{\"|"},
    };
    struct weft_arena *arena = weft_arena_new();
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        is_str(walk(arena, row[i].text), row[i].want, "walk %s", row[i].text);
    weft_arena_free(arena);
}

int main(void)
{
    static_assert(WEFT_LEN(good) + WEFT_LEN(bad) >= 120, "the table is meant to be long");
    test_grammar();
    test_offsets();
    test_depth();
    test_damage();
    test_every_byte();
    test_slices();
    test_walk();
    return tap_done();
}
