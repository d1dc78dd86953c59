/* SPDX-License-Identifier: Apache-2.0 */

/* Forms, from bodies that are split in every way. */

#include "core/multipart.h"

#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TYPE       "multipart/form-data; boundary=XX"
#define HEAD(name) "Content-Disposition: form-data; name=\"" name "\"\r\n\r\n"
#define FILE_HEAD                                                                                  \
    "content-disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\".jsonl\"\r\n"            \
    "Content-Type: text/plain\r\n\r\n"

/* Parts as "name(filename)=data;"; "!" stands for a refusal. */
static const struct {
    const char *what, *body, *parts;
} row[] = {
    {"one field", "--XX\r\n" HEAD("a") "1\r\n--XX--\r\n", "a=1;"},
    {"two fields", "--XX\r\n" HEAD("a") "1\r\n--XX\r\n" HEAD("b") "2\r\n--XX--", "a=1;b=2;"},
    {"a file", "--XX\r\n" FILE_HEAD "{}\n{}\r\n--XX--\r\n", "file(a \"b\".jsonl)={}\n{};"},
    {"an empty field", "--XX\r\n" HEAD("a") "\r\n--XX--", "a=;"},
    {"text around it", "hi\r\n--XX\r\n" HEAD("a") "1\r\n--XX--\r\nbye\r\n--XX\r\n", "a=1;"},
    {"white space behind a boundary", "--XX \t\r\n" HEAD("a") "1\r\n--XX--", "a=1;"},
    {"line ends in data", "--XX\r\n" HEAD("a") "\r\n\r\n\r\r\n--XX--", "a=\r\n\r\n\r;"},
    {"almost a boundary", "--XX\r\n" HEAD("a") "\r\n--X\r\n-\r\n--Y\r\n--XX--",
     "a=\r\n--X\r\n-\r\n--Y;"},
    {"a boundary without its CR", "--XX\r\n" HEAD("a") "\n--XX--\r\n--XX--", "a=\n--XX--;"},
    {"a name without quotes", "--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--XX--",
     "a=1;"},
    {"other parameters",
     "--XX\r\nContent-Disposition: form-data; x=\"y;z\"; name=a; "
     "filename*=UTF-8''q\r\n\r\n1\r\n--XX--",
     "a=1;"},
    {"brackets", "--XX\r\n" HEAD("expires_after[anchor]") "x\r\n--XX--",
     "expires_after[anchor]=x;"},
    {"no last boundary", "--XX\r\n" HEAD("a") "1\r\n--XX\r\n", "a=1;!"},
    {"cut in the data", "--XX\r\n" HEAD("a") "1", "a=1!"},
    {"nothing", "", "!"},
    {"no boundary", "a=1&b=2", "!"},
    {"no headers", "--XX\r\n\r\n1\r\n--XX--", "!"},
    {"no name", "--XX\r\nContent-Disposition: form-data\r\n\r\n1\r\n--XX--", "!"},
    {"no form-data", "--XX\r\nContent-Disposition: file; name=\"a\"\r\n\r\n1\r\n--XX--", "!"},
    {"a quote that does not end",
     "--XX\r\nContent-Disposition: form-data; name=\"a\r\n\r\n1\r\n--XX--", "!"},
    {"text behind a boundary", "--XX\r\n" HEAD("a") "1\r\n--XXY\r\n", "a=1;!"},
};

static enum weft_rc on_begin(void *context, const char *name, const char *filename,
                             struct weft_err *err)
{
    (void)err;
    weft_buf_printf(context, filename ? "%s(%s)=" : "%s=", name, filename);
    return WEFT_OK;
}

static enum weft_rc on_data(void *context, const char *data, size_t size, struct weft_err *err)
{
    (void)err;
    weft_buf_add(context, data, size);
    return WEFT_OK;
}

static enum weft_rc on_end(void *context, struct weft_err *err)
{
    (void)err;
    weft_buf_add_char(context, ';');
    return WEFT_OK;
}

static void read_body(const char *body, size_t step, struct weft_buf *parts)
{
    static const struct weft_multipart_ops ops = {on_begin, on_data, on_end};
    struct weft_multipart form;
    enum weft_rc rc = weft_multipart_init(&form, TYPE, &ops, parts, NULL);
    size_t size = strlen(body);
    for (size_t at = 0; at < size && !rc; at += step)
        rc = weft_multipart_read(&form, body + at, size - at < step ? size - at : step, NULL);
    if (!rc)
        rc = weft_multipart_end(&form, NULL);
    if (rc)
        weft_buf_add_char(parts, '!');
    weft_multipart_done(&form);
}

static void test_bodies(void)
{
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        for (size_t step = 1; step < 200; step += step < 20 ? 1 : 60) {
            struct weft_buf parts;
            weft_buf_init(&parts, 1 << 20);
            read_body(row[i].body, step, &parts);
            is_str(parts.data, row[i].parts, "%s, %zu bytes at a time", row[i].what, step);
            weft_buf_done(&parts);
        }
}

static void test_types(void)
{
    static const struct {
        const char *type;
        bool good;
    } types[] = {
        {TYPE, true},
        {"Multipart/Form-Data; charset=utf-8; Boundary=\"a b\"", true},
        {"multipart/form-data;boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW", true},
        {NULL, false},
        {"", false},
        {"application/json", false},
        {"multipart/form-data", false},
        {"multipart/form-data; boundary=", false},
        {"multipart/form-data; boundary=\"\"", false},
        {"multipart/form-datax; boundary=a", false},
        {"multipart/form-data; "
         "boundary=0123456789012345678901234567890123456789012345678901234567890"
         "1234567890",
         false},
    };
    for (size_t i = 0; i < WEFT_LEN(types); i++) {
        static const struct weft_multipart_ops ops = {on_begin, on_data, on_end};
        struct weft_multipart form = {0};
        enum weft_rc rc = weft_multipart_init(&form, types[i].type, &ops, NULL, NULL);
        is_int(rc, types[i].good ? WEFT_OK : WEFT_UNSUPPORTED_MEDIA_TYPE, "%s",
               types[i].type ? types[i].type : "no type");
        weft_multipart_done(&form);
    }
}

/* The headers of a part that never end. */
static void test_long_head(void)
{
    struct weft_buf body, parts;
    weft_buf_init(&body, 1 << 20);
    weft_buf_init(&parts, 1 << 20);
    weft_buf_add_text(&body, "--XX\r\n");
    for (int i = 0; i < 1000; i++)
        weft_buf_printf(&body, "X-%d: 0123456789\r\n", i);
    read_body(body.data, 4096, &parts);
    is_str(parts.data, "!", "too many headers are refused");
    weft_buf_done(&body);
    weft_buf_done(&parts);
}

int main(void)
{
    test_bodies();
    test_types();
    test_long_head();
    return tap_done();
}
