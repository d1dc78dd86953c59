/* SPDX-License-Identifier: Apache-2.0 */

#include "base/buf.h"
#include "tap.h"

static void test_appending(void)
{
    struct weft_buf buf;
    weft_buf_init(&buf, 1000);
    is_str(buf.data, "", "empty, but a text, at first");
    weft_buf_add(&buf, "ab\0cd", 5);
    weft_buf_add(&buf, NULL, 0);
    weft_buf_add_text(&buf, "");
    weft_buf_add_text(&buf, "ef");
    weft_buf_add_char(&buf, 'g');
    weft_buf_printf(&buf, "%d%s", 42, "!");
    ok(buf.size == 11 && memcmp(buf.data, "ab\0cdefg42!", 12) == 0, "bytes add up, NUL at the end");
    ok(!buf.full, "the buffer is not full");
    weft_buf_clear(&buf);
    ok(buf.size == 0 && buf.data[0] == '\0', "a cleared buffer is empty");
    weft_buf_done(&buf);
    ok(!buf.data, "an ended buffer has no memory");
    weft_buf_done(&buf);
    weft_buf_done(&(struct weft_buf){0});
}

static void test_growth(void)
{
    struct weft_buf buf;
    weft_buf_init(&buf, 1 << 20);
    for (int i = 0; i < 100000; i++)
        weft_buf_add_char(&buf, (char)('a' + i % 26));
    size_t wrong = 0;
    for (int i = 0; i < 100000; i++)
        wrong += buf.data[i] != 'a' + i % 26;
    ok(buf.size == 100000 && wrong == 0 && !buf.full, "100000 characters, one by one");
    weft_buf_printf(&buf, "%*d", 300000, 7);
    ok(buf.size == 400000 && buf.data[399999] == '7' && buf.data[400000] == '\0',
       "a long formatted text");
    ok(buf.capacity <= (1 << 20) + 1, "never more memory than the ceiling needs");
    weft_buf_done(&buf);
}

static void test_ceiling(void)
{
    static const struct {
        const char *name;
        size_t max;
        const char *first, *second, *want;
        bool full;
    } row[] = {
        {"just fits", 6, "abc", "def", "abcdef", false},
        {"one too many", 5, "abc", "def", "abc", true},
        {"first too long", 2, "abc", "d", "", true},
        {"ceiling of zero", 0, "a", "", "", true},
        {"nothing into nothing", 0, "", "", "", false},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_buf buf, formatted;
        weft_buf_init(&buf, row[i].max);
        weft_buf_init(&formatted, row[i].max);
        weft_buf_add_text(&buf, row[i].first);
        weft_buf_add_text(&buf, row[i].second);
        weft_buf_printf(&formatted, "%s", row[i].first);
        weft_buf_printf(&formatted, "%s", row[i].second);
        is_str(buf.data, row[i].want, "%s", row[i].name);
        is_str(formatted.data, row[i].want, "%s, formatted", row[i].name);
        ok(buf.full == row[i].full && formatted.full == row[i].full, "%s: full or not",
           row[i].name);
        weft_buf_done(&buf);
        weft_buf_done(&formatted);
    }
}

static void test_full_sticks(void)
{
    struct weft_buf buf;
    weft_buf_init(&buf, 4);
    weft_buf_add_text(&buf, "abc");
    weft_buf_add_text(&buf, "too long");
    weft_buf_add_char(&buf, 'd');
    weft_buf_printf(&buf, "e");
    is_str(buf.data, "abc", "a full buffer takes nothing more, even if it would fit");
    ok(buf.full, "full sticks");
    weft_buf_clear(&buf);
    weft_buf_add_text(&buf, "abcd");
    is_str(buf.data, "abcd", "clearing makes it usable again");
    ok(!buf.full, "a cleared buffer is not full");
    weft_buf_done(&buf);
}

int main(void)
{
    test_appending();
    test_growth();
    test_ceiling();
    test_full_sticks();
    return tap_done();
}
