/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Forms and the lines of files. The first two bytes say how the rest is split: in pieces it gives
 * the same parts, and the same flaws, as in one.
 */

#include "fuzz/fuzz.h"

#include "core/batch_line.h"
#include "core/multipart.h"

enum { MOST = 1 << 20 };

static enum weft_rc on_begin(void *context, const char *name, const char *filename,
                             struct weft_err *err)
{
    (void)err;
    weft_buf_printf(context, "[%s|%s|", name, filename ? filename : "");
    return WEFT_OK;
}

static enum weft_rc on_data(void *context, const char *data, size_t size, struct weft_err *err)
{
    (void)err;
    must(size > 0);
    weft_buf_add(context, data, size);
    return WEFT_OK;
}

static enum weft_rc on_end(void *context, struct weft_err *err)
{
    (void)err;
    weft_buf_add_char(context, ']');
    return WEFT_OK;
}

/* Reads in pieces of their exact size: the first one of `first` bytes, the others of `step`. */
static void read_form(const uint8_t *data, size_t size, size_t first, size_t step,
                      struct weft_buf *parts)
{
    static const struct weft_multipart_ops ops = {on_begin, on_data, on_end};
    struct weft_multipart form;
    enum weft_rc rc =
        weft_multipart_init(&form, "multipart/form-data; boundary=X", &ops, parts, NULL);
    must(!rc);
    for (size_t at = 0, part = first; at < size && !rc; at += part, part = step) {
        part = part < size - at ? part : size - at;
        char *piece = malloc(part ? part : 1);
        must(piece);
        memcpy(piece, data + at, part);
        rc = weft_multipart_read(&form, piece, part, NULL);
        free(piece);
    }
    if (!rc)
        rc = weft_multipart_end(&form, NULL);
    must(!rc || rc == WEFT_INVALID_VALUE);
    weft_buf_printf(parts, "%d", rc);
    weft_multipart_done(&form);
}

static void check_lines(const uint8_t *data, size_t size, size_t first, size_t step,
                        struct weft_buf *said)
{
    struct weft_batch_check check;
    weft_batch_check_init(&check, 5);
    for (size_t at = 0, part = first; at < size; at += part, part = step) {
        part = part < size - at ? part : size - at;
        char *piece = malloc(part ? part : 1);
        must(piece);
        memcpy(piece, data + at, part);
        weft_batch_check_add(&check, piece, part);
        free(piece);
    }
    weft_batch_check_end(&check);
    must(check.requests <= check.lines && check.bytes == size);
    weft_buf_printf(said, "%d %d %d %s", (int)check.lines, (int)check.requests,
                    (int)check.flaws.count, check.flaws.text.data);
    weft_batch_check_done(&check);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct weft_buf one, other;
    weft_buf_init(&one, MOST);
    weft_buf_init(&other, MOST);
    size_t first = data[0], step = 1u + data[1] % 64;
    read_form(data + 2, size - 2, size, size, &one);
    read_form(data + 2, size - 2, first, step, &other);
    check_lines(data + 2, size - 2, size, size, &one);
    check_lines(data + 2, size - 2, first, step, &other);
    must(one.size == other.size && memcmp(one.data, other.data, one.size) == 0);
    weft_buf_done(&one);
    weft_buf_done(&other);
    return 0;
}
