/* SPDX-License-Identifier: Apache-2.0 */

/* The lines of batches, one by one and as files that are split in every way. */

#include "core/batch_line.h"

#include "tap.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOOD "{\"custom_id\":\"a\",\"method\":\"POST\",\"url\":\"/v1/x\""
#define LINE(id)                                                                                   \
    "{\"custom_id\":\"" id "\",\"method\":\"POST\",\"url\":\"/v1/x\",\"body\":{\"model\":\"m\"}}"
#define POST_TO "{\"custom_id\":\"a\",\"method\":\"POST\",\"url\":"

/* code NULL: the line is good. */
static const struct {
    const char *what, *line, *code, *param;
} row[] = {
    {"a line", LINE("a"), NULL, NULL},
    {"white space around it", " \t" LINE("a") " \r", NULL, NULL},
    {"other fields",
     "{\"x\":[1],\"custom_id\":\"a "
     "b/\xc3\xa9\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\","
     "\"body\":{\"messages\":[],\"model\":\"m/1\"}}",
     NULL, NULL},
    {"no JSON", "{\"custom_id\":", "invalid_json_line", NULL},
    {"two values", "{} {}", "invalid_json_line", NULL},
    {"bytes that are not UTF-8", "{\"custom_id\":\"\xff\"}", "invalid_json_line", NULL},
    {"a byte order mark", "\xef\xbb\xbf" LINE("a"), "invalid_json_line", NULL},
    {"an array", "[]", "invalid_json_line", NULL},
    {"no custom_id", "{\"method\":\"POST\"}", "missing_required_parameter", "custom_id"},
    {"custom_id null", "{\"custom_id\":null}", "invalid_value", "custom_id"},
    {"custom_id empty", "{\"custom_id\":\"\"}", "invalid_value", "custom_id"},
    {"custom_id a number", "{\"custom_id\":1}", "invalid_value", "custom_id"},
    {"custom_id with a NUL", "{\"custom_id\":\"a\\u0000\"}", "invalid_value", "custom_id"},
    {"custom_id with a line end", "{\"custom_id\":\"a\\n\"}", "invalid_value", "custom_id"},
    {"no method", "{\"custom_id\":\"a\"}", "missing_required_parameter", "method"},
    {"another method", "{\"custom_id\":\"a\",\"method\":\"GET\"}", "invalid_method", "method"},
    {"no url", "{\"custom_id\":\"a\",\"method\":\"POST\"}", "missing_required_parameter", "url"},
    {"a whole url", POST_TO "\"https://x/v1/x\"}", "invalid_url", "url"},
    {"a url that climbs", POST_TO "\"/v1/../x\"}", "invalid_url", "url"},
    {"a url with a query", POST_TO "\"/v1/x?a=1\"}", "invalid_url", "url"},
    {"no body", GOOD "}", "missing_required_parameter", "body"},
    {"a body that is no object", GOOD ",\"body\":\"{}\"}", "invalid_value", "body"},
    {"no model", GOOD ",\"body\":{}}", "missing_required_parameter", "body.model"},
    {"a model that is no text", GOOD ",\"body\":{\"model\":{}}}", "invalid_value", "body.model"},
};

static void test_lines(void)
{
    struct weft_arena *arena = weft_arena_new();
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_batch_line line;
        struct weft_batch_flaw flaw = {0};
        bool good = weft_batch_line_read(row[i].line, strlen(row[i].line), arena, &line, &flaw);
        is_str(good ? NULL : flaw.code, row[i].code, "%s", row[i].what);
        is_str(flaw.param, row[i].param, "%s: the field to blame", row[i].what);
    }
    struct weft_batch_line line;
    struct weft_batch_flaw flaw;
    ok(weft_batch_line_read(row[2].line, strlen(row[2].line), arena, &line, &flaw), "read");
    is_str(line.custom_id, "a b/\xc3\xa9", "custom_id");
    is_str(line.url, "/v1/chat/completions", "url");
    is_str(line.model, "m/1", "model");
    ok(line.body.size == strlen("{\"messages\":[],\"model\":\"m/1\"}"), "the body is a slice");
    weft_arena_free(arena);
}

/* What a check found, as "lines requests flaws: CODE@LINE ...". */
static void check_file(const char *text, size_t size, size_t step, uint64_t most,
                       struct weft_buf *said)
{
    struct weft_batch_check check;
    weft_batch_check_init(&check, most);
    for (size_t at = 0; at < size; at += step)
        weft_batch_check_add(&check, text + at, size - at < step ? size - at : step);
    weft_batch_check_end(&check);
    weft_buf_printf(said, "%d %d %d:", (int)check.lines, (int)check.requests,
                    (int)check.flaws.count);
    struct weft_buf list;
    struct weft_json value;
    weft_buf_init(&list, SIZE_MAX);
    weft_buf_printf(&list, "[%s]", check.flaws.text.data);
    ok(!weft_json_check(list.data, list.size, &value, NULL), "the flaws are JSON");
    struct weft_json_iter flaw, member;
    weft_json_iter_init(&flaw, &value);
    while (weft_json_next(&flaw)) {
        weft_json_iter_init(&member, &flaw.value);
        while (weft_json_next(&member))
            if (weft_json_is(&member.key, "code"))
                weft_buf_printf(said, " %.*s", (int)member.value.size - 2, member.value.text + 1);
            else if (weft_json_is(&member.key, "line"))
                weft_buf_printf(said, "@%.*s", (int)member.value.size, member.value.text);
    }
    weft_buf_done(&list);
    weft_batch_check_done(&check);
}

static void test_files(void)
{
    static const struct {
        const char *what, *text, *said;
    } file[] = {
        {"nothing", "", "0 0 0:"},
        {"one line", LINE("a") "\n", "1 1 0:"},
        {"without its line end", LINE("a") "\n" LINE("b"), "2 2 0:"},
        {"blank lines", "\n" LINE("a") "\r\n \t\n\n" LINE("b") "\n", "5 2 0:"},
        {"true line numbers", "\n\n{\n" LINE("a") "\n" LINE("a") "\n[]",
         "6 4 3: invalid_json_line@3 duplicate_custom_id@5 invalid_json_line@6"},
        {"too many", LINE("a") "\n" LINE("b") "\n" LINE("c") "\n" LINE("d") "\n" LINE("e"),
         "5 5 1: too_many_tasks@5"},
    };
    for (size_t i = 0; i < WEFT_LEN(file); i++)
        for (size_t step = 1; step < 100; step += step < 10 ? 1 : 30) {
            struct weft_buf said;
            weft_buf_init(&said, 1 << 16);
            check_file(file[i].text, strlen(file[i].text), step, 4, &said);
            is_str(said.data, file[i].said, "%s, %zu bytes at a time", file[i].what, step);
            weft_buf_done(&said);
        }
}

/* A line of this size, and one behind it. */
static void test_long_line(size_t size, const char *wanted)
{
    const char *rest = "\n" LINE("z") "\n";
    char *text = malloc(size + strlen(rest) + 1);
    memset(text, ' ', size);
    memcpy(text, LINE("a"), strlen(LINE("a")));
    memcpy(text + size, rest, strlen(rest) + 1);
    for (size_t step = 1000; step < 5000000; step *= 70) {
        struct weft_buf said;
        weft_buf_init(&said, 1 << 16);
        check_file(text, size + strlen(rest), step, 10, &said);
        is_str(said.data, wanted, "a line of %zu bytes, %zu at a time", size, step);
        weft_buf_done(&said);
    }
    free(text);
}

static void test_many(void)
{
    struct weft_buf text, said;
    weft_buf_init(&text, SIZE_MAX);
    weft_buf_init(&said, 1 << 16);
    for (int i = 0; i < 50000; i++)
        weft_buf_printf(&text,
                        "{\"custom_id\":\"%d\",\"method\":\"POST\",\"url\":\"/v1/x\",\"body\":{"
                        "\"model\":\"m\"}}\n",
                        i);
    check_file(text.data, text.size, 65536, 50000, &said);
    is_str(said.data, "50000 50000 0:", "50,000 custom ids are all different");
    weft_buf_clear(&text);
    weft_buf_clear(&said);
    for (int i = 0; i < 300; i++)
        weft_buf_add_text(&text, "[]\n");
    check_file(text.data, text.size, 65536, 50000, &said);
    ok(strncmp(said.data, "300 300 300: ", 13) == 0, "flaws are counted: %.13s", said.data);
    size_t listed = 0;
    for (const char *at = said.data; (at = strchr(at, '@')); at++)
        listed++;
    is_int(listed, WEFT_BATCH_ERRORS_MAX, "the first hundred are listed");
    weft_buf_done(&text);
    weft_buf_done(&said);
}

int main(void)
{
    test_lines();
    test_files();
    test_long_line(WEFT_BATCH_LINE_MAX, "2 2 0:");
    test_long_line(WEFT_BATCH_LINE_MAX + 1, "2 2 1: line_too_long@1");
    test_long_line(3 * (size_t)WEFT_BATCH_LINE_MAX, "2 2 1: line_too_long@1");
    test_many();
    return tap_done();
}
