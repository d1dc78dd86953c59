/* SPDX-License-Identifier: Apache-2.0 */

/* Server-sent events, from streams that are split in every way. */

#include "core/sse.h"

#include "tap.h"

#include <stdlib.h>

/* Bytes with a NUL among them. */
#define BYTES(text) (text), sizeof(text) - 1

/* clang-format off */
/* Events as "name=data;", with the LFs of data as |; what the end adds follows a >. */
static const struct {
    const char *what, *stream;
    size_t size;
    const char *events;
} row[] = {
    {"nothing", BYTES(""), ">"},
    {"one event", BYTES("data: a\n\n"), "=a;>"},
    {"without the space", BYTES("data:a\n\n"), "=a;>"},
    {"one space is dropped", BYTES("data:  a \n\n"), "= a ;>"},
    {"a tab is kept", BYTES("data:\ta\n\n"), "=\ta;>"},
    {"two events", BYTES("data: a\n\ndata: b\n\n"), "=a;=b;>"},
    {"carriage returns", BYTES("data: a\r\rdata: b\r\r"), "=a;=b;>"},
    {"both", BYTES("data: a\r\n\r\ndata: b\r\n\r\n"), "=a;=b;>"},
    {"mixed", BYTES("data: a\n\r\ndata: b\r\ndata: c\r\n\r"), "=a;=b|c;>"},
    {"LF CR is two ends", BYTES("data: a\n\rdata: b\n\n"), "=a;=b;>"},
    {"CR LF LF", BYTES("data: a\r\n\ndata: b\r\n\n"), "=a;=b;>"},
    {"several lines of data", BYTES("data: a\ndata\ndata:\ndata: b\n\n"), "=a|||b;>"},
    {"an empty event", BYTES("data\n\ndata:\n\ndata: \n\n"), "=;=;=;>"},
    {"two empty lines", BYTES("data\ndata\n\n"), "=|;>"},
    {"a name", BYTES("event: x\ndata: a\n\ndata: b\n\n"), "x=a;=b;>"},
    {"the last name counts", BYTES("event: x\nevent:y\ndata: a\n\n"), "y=a;>"},
    {"a name behind the data", BYTES("data: a\nevent: z\n\n"), "z=a;>"},
    {"an empty name", BYTES("event: x\nevent\ndata: a\n\n"), "=a;>"},
    {"a name without data", BYTES("event: x\n\ndata: a\n\n"), "=a;>"},
    {"comments", BYTES(": hi\n\n:\n:data: x\ndata: a\n: b\n\n"), "=a;>"},
    {"ignored fields", BYTES("id: 1\nretry: 5\nfoo: x\nbar\ndata: a\nid\n\n"), "=a;>"},
    {"fields in capitals", BYTES("Data: x\nDATA: y\n\n"), ">"},
    {"a field with a space", BYTES("data : x\n data: y\n\n"), ">"},
    {"colons in the data", BYTES("data: a: b\ndata::\n\n"), "=a: b|:;>"},
    {"a byte order mark", BYTES("\xef\xbb\xbf" "data: a\n\n"), "=a;>"},
    {"only one", BYTES("\xef\xbb\xbf\xef\xbb\xbf" "data: a\n\ndata: b\n\n"), "=b;>"},
    {"only at the beginning", BYTES("\n\xef\xbb\xbf" "data: a\n\n"), ">"},
    {"a mark alone", BYTES("\xef\xbb\xbf\n\ndata: a\n\n"), "=a;>"},
    {"half a mark", BYTES("\xef\xbb" "data: a\n\n"), ">"},
    {"UTF-8", BYTES("data: \xf0\x9f\x98\x80\xc3\xa9\n\n"), "=\xf0\x9f\x98\x80\xc3\xa9;>"},
    {"other bytes", BYTES("data: \xff\xfe\n\n"), "=\xff\xfe;>"},
    {"a NUL", BYTES("data: a\0b\n\n"), "=a@b;>"},
    {"empty lines", BYTES("\n\n\r\r\n\ndata: a\n\n\n\n"), "=a;>"},
    {"no empty line at the end", BYTES("data: a\n\ndata: b\n"), "=a;>=b;"},
    {"no line end at the end", BYTES("event: x\ndata: a\ndata: b"), ">x=a|b;"},
    {"CR at the end", BYTES("data: a\r"), ">=a;"},
    {"half a field", BYTES("data: a\n\ndat"), "=a;>"},
    {"a name at the end", BYTES("data: a\n\nevent: x\n"), "=a;>"},
};
/* clang-format on */

struct shown {
    char text[256];
    size_t size;
};

static void show(struct shown *shown, const struct weft_sse_event *event)
{
    shown->size += (size_t)snprintf(shown->text + shown->size, sizeof(shown->text) - shown->size,
                                    "%s=", event->name);
    for (size_t i = 0; i < event->size; i++) {
        char *c = &shown->text[shown->size++];
        *c = event->data[i];
        if (*c == '\n')
            *c = '|';
        if (*c == '\0')
            *c = '@';
    }
    shown->text[shown->size++] = ';';
    shown->text[shown->size] = '\0';
}

/* A piece of the stream, in memory of exactly its size. */
static void feed(struct weft_sse *sse, const char *bytes, size_t size, struct shown *shown)
{
    char *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    const char *at = copy;
    struct weft_sse_event event;
    bool found = true;
    while (found && !weft_sse_read(sse, &at, copy + size, &event, &found, NULL))
        if (found)
            show(shown, &event);
    if (at != copy + size)
        show(shown, &(struct weft_sse_event){.name = "bytes are left", .data = ""});
    free(copy);
}

/* All events of a stream in pieces: two that meet at `cut`, and these in steps. */
static struct shown run(const char *stream, size_t size, size_t cut, size_t step)
{
    struct weft_sse sse;
    struct shown shown = {.text = ""};
    struct weft_sse_event event;
    bool found = false;
    weft_sse_init(&sse, 64);
    for (size_t at = 0; at < size;) {
        size_t end = at < cut ? cut : size, piece = end - at < step ? end - at : step;
        feed(&sse, stream + at, piece, &shown);
        at += piece;
    }
    shown.text[shown.size++] = '>';
    if (!weft_sse_end(&sse, &event, &found, NULL) && found)
        show(&shown, &event);
    weft_sse_done(&sse);
    return shown;
}

static void test_streams(void)
{
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct shown whole = run(row[i].stream, row[i].size, 0, row[i].size);
        is_str(whole.text, row[i].events, "%s", row[i].what);
        size_t different = 0;
        for (size_t cut = 0; cut <= row[i].size; cut++)
            for (size_t step = 1; step <= row[i].size; step++) {
                struct shown parts = run(row[i].stream, row[i].size, cut, step);
                different += strcmp(parts.text, whole.text) != 0;
            }
        is_int(different, 0, "%s: in pieces it is the same", row[i].what);
    }
}

static void test_sizes(void)
{
    static const struct {
        const char *what, *repeat; /* `times` of it */
        size_t times;
        bool good;
    } large[] = {
        {"data of the greatest size", "x", 100, true},
        {"larger data", "x", 101, false},
        {"many lines of the greatest size", "xxxx\ndata:", 20, true},
        {"one more", "xxxx\ndata:", 21, false},
        {"a line without an end", "x", 1000, false},
        {"a long comment", "x\n:", 1000, true},
        {"a name of the greatest size",
         "\nevent:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
         3, true},
        {"a longer name",
         "\nevent:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
         1, false},
    };
    for (size_t i = 0; i < WEFT_LEN(large); i++) {
        struct weft_sse sse;
        struct weft_sse_event event;
        struct weft_err err = {0};
        bool found = false;
        weft_sse_init(&sse, 100);
        const char *at = "data:";
        enum weft_rc rc = weft_sse_read(&sse, &at, at + 5, &event, &found, &err);
        for (size_t j = 0; j < large[i].times && !rc; j++) {
            at = large[i].repeat;
            rc = weft_sse_read(&sse, &at, at + strlen(at), &event, &found, &err);
        }
        at = "\n\n";
        if (!rc)
            rc = weft_sse_read(&sse, &at, at + 2, &event, &found, &err);
        is_int(rc, large[i].good ? WEFT_OK : WEFT_TOO_LARGE, "%s", large[i].what);
        weft_sse_done(&sse);
    }
}

int main(void)
{
    test_streams();
    test_sizes();
    return tap_done();
}
