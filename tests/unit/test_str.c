/* SPDX-License-Identifier: Apache-2.0 */

#include "base/limits.h"
#include "base/str.h"
#include "tap.h"

#include <stdlib.h>

#define T(text) text, sizeof(text) - 1

static const struct {
    const char *name, *text;
    size_t size;
    bool utf8, printable;
} texts[] = {
    {"nothing", T(""), true, true},
    {"ASCII", T("Hello, world"), true, true},
    {"exactly eight bytes", T("12345678"), true, true},
    {"two to four bytes", T("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), true, true},
    {"wide after ASCII", T("12345678\xc3\xa9"), true, true},
    {"NUL", T("\0"), false, false},
    {"NUL after eight", T("12345678\0"), false, false},
    {"NUL among eight", T("1234\0xyz"), false, false},
    {"newline", T("a\nb"), true, false},
    {"tab", T("a\tb"), true, false},
    {"U+001F", T("\x1f"), true, false},
    {"space", T(" "), true, true},
    {"tilde", T("~"), true, true},
    {"DEL", T("\x7f"), true, false},
    {"U+0080", T("\xc2\x80"), true, false},
    {"U+009F", T("\xc2\x9f"), true, false},
    {"U+00A0", T("\xc2\xa0"), true, true},
    {"last of two bytes", T("\xdf\xbf"), true, true},
    {"first of three bytes", T("\xe0\xa0\x80"), true, true},
    {"before the surrogates", T("\xed\x9f\xbf"), true, true},
    {"after the surrogates", T("\xee\x80\x80"), true, true},
    {"first of four bytes", T("\xf0\x90\x80\x80"), true, true},
    {"last of four bytes", T("\xf4\x8f\xbf\xbf"), true, true},
    {"tail alone", T("\x80"), false, false},
    {"overlong two", T("\xc0\x80"), false, false},
    {"overlong two, high", T("\xc1\xbf"), false, false},
    {"overlong three", T("\xe0\x9f\xbf"), false, false},
    {"overlong four", T("\xf0\x8f\xbf\xbf"), false, false},
    {"surrogate", T("\xed\xa0\x80"), false, false},
    {"beyond the last", T("\xf4\x90\x80\x80"), false, false},
    {"lead F5", T("\xf5\x80\x80\x80"), false, false},
    {"FF", T("\xff"), false, false},
    {"two cut", T("a\xc3"), false, false},
    {"three cut", T("a\xe2\x82"), false, false},
    {"four cut", T("a\xf0\x9f\x98"), false, false},
    {"ASCII for a tail", T("\xc3z"), false, false},
    {"ASCII for a second tail", T("\xe2\x82z"), false, false},
    {"ASCII for a third tail", T("\xf0\x9f\x98z"), false, false},
    {"bad byte after eight", T("12345678\xff"), false, false},
};

static void test_texts(void)
{
    for (size_t i = 0; i < WEFT_LEN(texts); i++) {
        /* A copy of exactly that size: a sanitizer sees a read past the end. */
        char *copy = malloc(texts[i].size + !texts[i].size);
        memcpy(copy, texts[i].text, texts[i].size);
        ok(weft_utf8_valid(copy, texts[i].size) == texts[i].utf8, "UTF-8: %s", texts[i].name);
        ok(weft_text_printable(copy, texts[i].size) == texts[i].printable, "printable: %s",
           texts[i].name);
        free(copy);
    }
}

static void test_size(void)
{
    static const struct {
        const char *name, *text;
        size_t size, want;
    } row[] = {
        {"nothing", T(""), 0},
        {"NUL", T("\0"), 1},
        {"one", T("ab"), 1},
        {"two", T("\xc3\xa9z"), 2},
        {"three", T("\xe2\x82\xacz"), 3},
        {"four", T("\xf0\x9f\x98\x80z"), 4},
        {"cut", T("\xf0\x9f\x98"), 0},
        {"tail", T("\x80"), 0},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        is_int(weft_utf8_size(row[i].text, row[i].size), row[i].want, "size: %s", row[i].name);
}

static void test_names(void)
{
    static const struct {
        const char *text;
        bool want;
    } row[] = {
        {"a", true},
        {"A", true},
        {"0", true},
        {"mail", true},
        {"a.b:c/d-e_F9", true},
        {"-", true},
        {"", false},
        {" ", false},
        {"a b", false},
        {"a\n", false},
        {"a,b", false},
        {"a@b", false},
        {"caf\xc3\xa9", false},
        {"a\\b", false},
        {"a[", false},
        {"`", false},
        {"{", false},
        {"a;", false},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        ok(weft_name_valid(row[i].text) == row[i].want, "name '%s'", row[i].text);

    char name[WEFT_NAME_MAX + 2];
    memset(name, 'x', sizeof(name));
    name[WEFT_NAME_MAX] = '\0';
    ok(weft_name_valid(name), "a name of 128 bytes");
    name[WEFT_NAME_MAX] = 'x';
    name[WEFT_NAME_MAX + 1] = '\0';
    ok(!weft_name_valid(name), "a name of 129 bytes");

    is_int(weft_word_size("", "-"), 0, "an empty text has no word");
    is_int(weft_word_size("aZ09", ""), 4, "a word to the end");
    is_int(weft_word_size("a-b+c d", "-+"), 5, "a word with marks ends at the first other byte");
    is_int(weft_word_size("-a", ""), 0, "a mark that is not among them");
    is_int(weft_word_size("a\xc3\xa9", "-"), 1, "letters of ASCII only");
}

static void test_numbers(void)
{
    static const int64_t row[] = {0,  1,   9,         10,        99,        100,
                                  -1, -10, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        char want[32], got[WEFT_NUMBER_TEXT];
        int size = snprintf(want, sizeof(want), "%" PRId64, row[i]);
        is_int(weft_i64_print(row[i], got), size, "the size of %s", want);
        is_str(got, want, "the number %s", want);
    }
    char most[WEFT_NUMBER_TEXT];
    is_int(weft_u64_print(UINT64_MAX, most), 20, "the size of the largest");
    is_str(most, "18446744073709551615", "the largest number is printed");
}

static void test_cut(void)
{
    static const struct {
        const char *name, *text;
        size_t size, max, want;
    } row[] = {
        {"short enough", T("abc"), 5, 3},
        {"just fits", T("abc"), 3, 3},
        {"ASCII", T("abcdef"), 4, 4},
        {"to nothing", T("abc"), 0, 0},
        {"nothing", T(""), 0, 0},
        {"after a character", T("a\xc3\xa9z"), 3, 3},
        {"inside two bytes", T("a\xc3\xa9z"), 2, 1},
        {"inside three bytes, first", T("a\xe2\x82\xac"), 2, 1},
        {"inside three bytes, second", T("a\xe2\x82\xac"), 3, 1},
        {"inside four bytes, first", T("a\xf0\x9f\x98\x80"), 2, 1},
        {"inside four bytes, last", T("a\xf0\x9f\x98\x80"), 4, 1},
        {"a character that does not fit at all", T("\xf0\x9f\x98\x80"), 3, 0},
        {"tails that belong to nothing", T("\x80\x80\x80\x80\x80\x80\x80"), 6, 6},
        {"two tails that belong to nothing", T("\x80\x80\x80"), 1, 1},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        is_int(weft_utf8_cut(row[i].text, row[i].size, row[i].max), row[i].want, "cut: %s",
               row[i].name);
}

int main(void)
{
    test_texts();
    test_size();
    test_names();
    test_numbers();
    test_cut();
    return tap_done();
}
