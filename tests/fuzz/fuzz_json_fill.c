/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bodies filled from another document. The input is lines: the body, the document, and for each
 * part its target and its pointer. A filled body holds at each target what the pointer leads to.
 */

#include "fuzz/fuzz.h"

#include "base/buf.h"
#include "base/limits.h"
#include "core/json_fill.h"

enum { LINES_MAX = 2 + 2 * 8 };

/* Splits a text at its line ends, in place. */
static size_t split(char *text, char *line[LINES_MAX])
{
    size_t count = 0;
    while (text && count < LINES_MAX)
        line[count++] = strsep(&text, "\n");
    return count;
}

static int check(const char *text, struct weft_json *ret_value)
{
    return weft_json_check(text, strlen(text), ret_value, NULL) == WEFT_OK;
}

/* Each part is in its place, and nothing else has changed its size. */
static void look(const struct weft_json *body, const struct weft_json_fill *fill, size_t count,
                 const struct weft_buf *buf)
{
    struct weft_json filled, before, value, after;
    size_t size = body->size;
    must(weft_json_check(buf->data, buf->size, &filled, NULL) == WEFT_OK);
    for (size_t i = 0; i < count; i++) {
        must(!weft_json_pointer_find(body, fill[i].target, "", &before, NULL));
        must(!weft_json_pointer_find(&fill[i].document, fill[i].pointer, "", &value, NULL));
        must(!weft_json_pointer_find(&filled, fill[i].target, "", &after, NULL));
        must(after.size == value.size && memcmp(after.text, value.text, value.size) == 0);
        size += value.size - before.size;
    }
    must(buf->size == size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *line[LINES_MAX];
    size_t lines = split(text, line), count = 0;
    struct weft_json body, document;
    struct weft_json_fill fill[LINES_MAX / 2];
    struct weft_err err = {0};
    if (lines >= 4 && check(line[0], &body) && check(line[1], &document)) {
        for (size_t i = 2; i + 1 < lines; i += 2)
            if (!weft_json_pointer_check(line[i], &err) &&
                !weft_json_pointer_check(line[i + 1], &err))
                fill[count++] = (struct weft_json_fill){.target = line[i],
                                                        .pointer = line[i + 1],
                                                        .document = document,
                                                        .name = "the document"};
        struct weft_buf buf;
        weft_buf_init(&buf, 1 << 12);
        enum weft_rc rc = weft_json_fill(&body, fill, count, &buf, &err);
        must(!rc || rc == WEFT_INVALID_VALUE || rc == WEFT_TOO_LARGE);
        if (!rc)
            look(&body, fill, count, &buf);
        weft_buf_done(&buf);
    }
    free(text);
    return 0;
}
