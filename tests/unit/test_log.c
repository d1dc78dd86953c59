/* SPDX-License-Identifier: Apache-2.0 */

#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "tap.h"

#include <fcntl.h>
#include <unistd.h>

static int in, out; /* the two ends of a pipe; reading it never waits */

/* What was written since the last look. */
static const char *written(void)
{
    static char text[4 * WEFT_LOG_LINE_MAX];
    ssize_t size = read(in, text, sizeof(text) - 1);
    text[size > 0 ? size : 0] = '\0';
    return text;
}

/* The same without the time, which differs every time. */
static const char *written_after_time(void)
{
    const char *line = written(), *at = strstr(line, "level");
    return at ? at : line;
}

static void test_levels(void)
{
    weft_error("before init");
    is_str(written(), "", "silent until it is initialised");

    static const char *const want[] = {
        [WEFT_SILENT] = "",  [WEFT_ERROR] = "e",    [WEFT_WARN] = "ew",
        [WEFT_INFO] = "ewi", [WEFT_DEBUG] = "ewid",
    };
    for (unsigned level = 0; level < WEFT_LEVEL_COUNT; level++) {
        weft_log_init((enum weft_level)level, WEFT_LOGFMT, out);
        weft_error("error");
        weft_warn("warn");
        weft_info("info");
        weft_debug("debug");
        char got[8] = "";
        size_t count = 0;
        for (const char *at = written(); (at = strstr(at, "level=")) && count < 7; at += 6)
            got[count++] = at[6];
        is_str(got, want[level], "levels written at level %u", level);
    }
}

static void test_level_words(void)
{
    static const char *const word[] = {"silent", "error", "warn", "info", "debug"};
    for (unsigned i = 0; i < WEFT_LEVEL_COUNT; i++) {
        enum weft_level back = WEFT_LEVEL_COUNT;
        ok(weft_level_parse(word[i], &back) && back == i, "level %s is read", word[i]);
    }
    enum weft_level level = WEFT_WARN;
    ok(!weft_level_parse("loud", &level) && level == WEFT_WARN, "no such level");
}

static void test_kinds(void)
{
    struct weft_id id;
    ok(weft_id_parse("018bcfe5-687b-7ab1-9def-0123456789ab", 36, &id), "an id");
    const struct {
        struct weft_field field;
        const char *logfmt, *json;
    } row[] = {
        {F_STR("k", "bare"), "k=bare", "\"k\":\"bare\""},
        {F_STR("k", ""), "k=\"\"", "\"k\":\"\""},
        {F_STR("k", NULL), "k=null", "\"k\":null"},
        {F_STR("k", "two words"), "k=\"two words\"", "\"k\":\"two words\""},
        {F_STR("k", "a=b"), "k=\"a=b\"", "\"k\":\"a=b\""},
        {F_STR("k", "\"q\\"), "k=\"\\\"q\\\\\"", "\"k\":\"\\\"q\\\\\""},
        {F_STR("k", "a\nlevel=error"), "k=\"a\\nlevel=error\"", "\"k\":\"a\\nlevel=error\""},
        {F_STR("k", "\r\t\x1b[0m"), "k=\"\\r\\t\\u001b[0m\"", "\"k\":\"\\r\\t\\u001b[0m\""},
        {F_STR("k", "\xc2\x9b\x7f"), "k=\"\\u009b\\u007f\"", "\"k\":\"\\u009b\\u007f\""},
        {F_STR("k", "caf\xc3\xa9"), "k=\"caf\xc3\xa9\"", "\"k\":\"caf\xc3\xa9\""},
        {F_STR("k", "\xff"), "k=\"\\ufffd\"", "\"k\":\"\\ufffd\""},
        {F_I64("k", INT64_MIN), "k=-9223372036854775808", "\"k\":-9223372036854775808"},
        {F_U64("k", UINT64_MAX), "k=18446744073709551615", "\"k\":18446744073709551615"},
        {F_BOOL("k", true), "k=true", "\"k\":true"},
        {F_BOOL("k", false), "k=false", "\"k\":false"},
        {F_ID("k", &id), "k=018bcfe5-687b-7ab1-9def-0123456789ab",
         "\"k\":\"018bcfe5-687b-7ab1-9def-0123456789ab\""},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        char want[200];
        weft_log_init(WEFT_INFO, WEFT_LOGFMT, out);
        weft_info("it went", row[i].field);
        (void)snprintf(want, sizeof(want), "level=info msg=\"it went\" %s\n", row[i].logfmt);
        is_str(written_after_time(), want, "logfmt: %s", row[i].logfmt);

        weft_log_init(WEFT_INFO, WEFT_LOG_JSON, out);
        weft_info("it went", row[i].field);
        (void)snprintf(want, sizeof(want), "level\":\"info\",\"msg\":\"it went\",%s}\n",
                       row[i].json);
        is_str(written_after_time(), want, "JSON: %s", row[i].json);
    }
}

static void test_time(void)
{
    static const char shape[] = "ts=0000-00-00T00:00:00.000000Z level=warn msg=tick n=1\n";
    weft_log_init(WEFT_INFO, WEFT_LOGFMT, out);
    weft_warn("tick", F_I64("n", 1));
    char line[100];
    (void)snprintf(line, sizeof(line), "%s", written());
    for (size_t i = 3; i < 30 && line[i]; i++)
        if (line[i] >= '0' && line[i] <= '9')
            line[i] = '0';
    is_str(line, shape, "a line begins with the time in UTC");
}

struct census {
    size_t too_long, broken, not_json, not_marked, marked;
};

static void look_at(const char *line, struct census *census)
{
    size_t size = strlen(line);
    struct weft_json value;
    bool cut = strstr(line, "\"cut\":true}") != NULL;
    census->too_long += size > WEFT_LOG_LINE_MAX;
    census->broken += size == 0 || strchr(line, '\n') != line + size - 1;
    census->not_json += weft_json_check(line, size, &value, NULL) != WEFT_OK;
    census->not_marked += !cut && !strstr(line, "\"end\":\"x\"");
    census->marked += cut;
}

/* Whatever the length of a value, the line has its bound, its newline, and is still well-formed. */
static void test_long_json(void)
{
    char text[WEFT_LOG_LINE_MAX + 100] = "";
    struct census census = {0};
    weft_log_init(WEFT_INFO, WEFT_LOG_JSON, out);
    for (size_t size = 0; size < WEFT_LOG_LINE_MAX + 50; size += 2) {
        text[size] = (char)0xc3; /* one more character of two bytes */
        text[size + 1] = (char)0xa9;
        weft_info("long", F_STR("text", text), F_U64("n", UINT64_MAX), F_STR("end", "x"));
        look_at(written(), &census);
        weft_info("longer", F_STR("text", text), F_U64("n", UINT64_MAX), F_STR("end", "x"));
        look_at(written(), &census);
    }
    is_int(census.too_long, 0, "no line is longer than its bound");
    is_int(census.broken, 0, "every line ends in its only newline");
    is_int(census.not_json, 0, "every line is JSON, cut or not");
    is_int(census.not_marked, 0, "a cut line is marked as cut");
    ok(census.marked > 50 && census.marked < 1000, "some lines were cut, most were not");
}

static void test_long_logfmt(void)
{
    char bare[2 * WEFT_LOG_LINE_MAX];
    memset(bare, 'a', sizeof(bare));
    bare[sizeof(bare) - 1] = '\0';
    weft_log_init(WEFT_INFO, WEFT_LOGFMT, out);
    weft_info("long", F_STR("text", bare));
    const char *line = written();
    ok(strlen(line) <= WEFT_LOG_LINE_MAX && strstr(line, "a\" cut=true\n"), "logfmt cuts alike");
}

static void test_collect(void)
{
    weft_log_init(WEFT_INFO, WEFT_LOGFMT, out);
    weft_log_collect();
    weft_info("one");
    weft_info("two");
    is_str(written(), "", "lines are collected");
    weft_log_flush();
    const char *lines = written();
    const char *one = strstr(lines, "msg=one"), *two = strstr(lines, "msg=two");
    ok(one && two && one < two, "both lines are written in their order");
    weft_info("three");
    weft_warn("four");
    lines = written();
    const char *three = strstr(lines, "msg=three"), *four = strstr(lines, "msg=four");
    ok(three && four && three < four, "a warning is written at once, behind the lines before it");
    weft_info("five");
    weft_log_collect_end();
    ok(strstr(written(), "msg=five"), "nothing is left at the end");
    weft_info("six");
    ok(strstr(written(), "msg=six"), "after the flush lines are written one by one");
}

int main(void)
{
    int fd[2];
    if (!ok(pipe2(fd, O_NONBLOCK) == 0, "a pipe"))
        return tap_done();
    in = fd[0];
    out = fd[1];
    test_levels();
    test_level_words();
    test_kinds();
    test_time();
    test_long_json();
    test_long_logfmt();
    test_collect();
    weft_log_init(WEFT_INFO, WEFT_LOGFMT, -1);
    weft_info("nowhere to go");
    is_str(written(), "", "a log that cannot be written is ignored");
    return tap_done();
}
