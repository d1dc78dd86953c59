/* SPDX-License-Identifier: Apache-2.0 */

/* The parts of a crowd that need no server: heads, unpacking, deadlines. */

#include "tap.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "fetch/crowd_due.h"
#include "fetch/crowd_head.h"
#include "fetch/crowd_unpack.h"

#include <stdlib.h>
#include <zlib.h>

/* ---- Heads ----------------------------------------------------------------------------------- */

/* Feeds lines until one is not MORE. */
static enum weft_head_step feed(struct weft_head *head, const char *text)
{
    enum weft_head_step step = WEFT_HEAD_MORE;
    weft_head_clear(head);
    for (const char *line = text; *line && step == WEFT_HEAD_MORE;) {
        const char *end = strchr(line, '\n') + 1;
        step = weft_head_line(head, line, (size_t)(end - line));
        line = end;
    }
    return step;
}

static void test_head(void)
{
    static const struct {
        const char *text;
        enum weft_head_step step;
    } row[] = {
        {"HTTP/1.1 200 OK\r\nA: b\r\n\r\n", WEFT_HEAD_END},
        {"HTTP/1.1 200 OK\nA:b\n\n", WEFT_HEAD_END},
        {"HTTP/1.1 200 OK\r\nA: b\r\n", WEFT_HEAD_MORE},
        {"HTTP/1.1 200 OK\r\nno colon\r\n", WEFT_HEAD_BAD},
        {"HTTP/1.1 200 OK\r\n: no name\r\n", WEFT_HEAD_BAD},
        {"HTTP/1.1 200 OK\r\nA : b\r\n", WEFT_HEAD_BAD},
        {"HTTP/1.1 200 OK\r\n folded: b\r\n", WEFT_HEAD_BAD},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\ncontent-length: 5\r\n\r\n", WEFT_HEAD_END},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\ncontent-length: 05\r\n", WEFT_HEAD_BAD},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n", WEFT_HEAD_BAD},
        {"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n", WEFT_HEAD_BAD},
        {"HTTP/1.1 200 OK\r\nContent-Length:\r\n", WEFT_HEAD_BAD},
    };
    struct weft_head head;
    weft_head_init(&head);
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        is_int(feed(&head, row[i].text), row[i].step, "head %zu: %s", i,
               head.wrong ? head.wrong : "");
    struct weft_crowd_header header[WEFT_HEAD_LINES_MAX];
    (void)feed(&head, "HTTP/1.1 200 OK\r\nOne: \t a b \r\n  c\r\n\td\r\nEmpty:\r\n\r\n");
    is_int(weft_head_list(&head, header), 2, "two lines");
    is_str(header[0].value, "a b c d", "a folded line");
    is_str(weft_head_find(&head, "eMPTY"), "", "an empty one, found by any case");
    ok(!weft_head_find(&head, "Two"), "one that is not there");
    is_int(weft_head_line(&head, "Trailer: x\r\n", 12), WEFT_HEAD_MORE, "a trailer");
    ok(!weft_head_find(&head, "Trailer"), "is dropped");
    ok(weft_head_line(&head, "A: \0b\r\n", 7) == WEFT_HEAD_BAD, "a NUL byte");

    weft_head_clear(&head);
    size_t lines = 0;
    while (weft_head_line(&head, "HTTP/1.1 103 Hint\r\n", 19) == WEFT_HEAD_MORE &&
           weft_head_line(&head, "Link: x\r\n", 9) == WEFT_HEAD_MORE &&
           weft_head_line(&head, "\r\n", 2) == WEFT_HEAD_END) {
        weft_head_again(&head);
        lines++;
    }
    is_int(lines, WEFT_HEAD_LINES_MAX, "interim heads are counted together");
    weft_head_done(&head);
}

/* ---- Unpacking ------------------------------------------------------------------------------- */

static bool take(void *context, const void *bytes, size_t size)
{
    struct weft_buf *out = context;
    weft_buf_add(out, bytes, size);
    return !out->full;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): zlib writes through it */
static size_t pack(int bits, const char *text, size_t size, unsigned char *ret_packed, size_t max)
{
    z_stream stream = {.next_in = (z_const Bytef *)text,
                       .avail_in = (uInt)size,
                       .next_out = ret_packed,
                       .avail_out = (uInt)max};
    if (deflateInit2(&stream, 6, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY) != Z_OK ||
        deflate(&stream, Z_FINISH) != Z_STREAM_END)
        abort();
    (void)deflateEnd(&stream);
    return max - stream.avail_out;
}

/* Unpacks in pieces of so many bytes; returns whether that went well. */
static bool unpack_all(const char *coding, const unsigned char *packed, size_t size, size_t piece,
                       struct weft_buf *out, bool *ret_whole)
{
    struct weft_unpack *unpack = NULL;
    bool well = weft_unpack_new(coding, &unpack);
    weft_buf_clear(out);
    for (size_t at = 0; at < size && well; at += piece)
        well =
            weft_unpack_add(unpack, packed + at, piece < size - at ? piece : size - at, take, out);
    *ret_whole = weft_unpack_whole(unpack);
    weft_unpack_free(unpack);
    return well;
}

static void test_unpack(void)
{
    enum { SIZE = 100000, ROOM = 2 * SIZE };
    static const struct {
        const char *coding;
        int bits;
    } row[] = {{"gzip", 31}, {"X-GZIP", 31}, {"deflate", 15}, {"deflate", -15}};
    static const size_t piece[] = {1, 7, 1000, SIZE};
    char *text = weft_alloc(SIZE, 1);
    unsigned char *packed = weft_alloc(ROOM, 1);
    struct weft_buf out;
    bool whole;
    weft_buf_init(&out, ROOM);
    for (size_t i = 0; i < SIZE; i++)
        text[i] = (char)(i * i % 251);
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        size_t size = pack(row[i].bits, text, SIZE, packed, ROOM);
        for (size_t j = 0; j < WEFT_LEN(piece); j++) {
            bool well = unpack_all(row[i].coding, packed, size, piece[j], &out, &whole);
            ok(well && whole && out.size == SIZE && memcmp(out.data, text, SIZE) == 0,
               "%s in pieces of %zu", row[i].coding, piece[j]);
            well = unpack_all(row[i].coding, packed, size - 3, piece[j], &out, &whole);
            ok(well && !whole, "%s without its end is not whole", row[i].coding);
        }
    }
    size_t size = pack(31, text, 10, packed, SIZE);
    size += pack(31, text + 10, 10, packed + size, SIZE);
    for (size_t j = 0; j < WEFT_LEN(piece); j++) {
        bool well = unpack_all("gzip", packed, size, piece[j], &out, &whole);
        ok(well && whole && out.size == 20 && memcmp(out.data, text, 20) == 0, "two members");
        packed[size] = 'x';
        ok(!unpack_all("gzip", packed, size + 1, piece[j], &out, &whole) || !whole,
           "something behind it");
    }
    ok(!unpack_all("gzip", (const unsigned char *)"no gzip at all", 14, 14, &out, &whole),
       "what is no gzip");
    weft_buf_done(&out);
    weft_buf_init(&out, 50);
    size = pack(31, text, SIZE, packed, ROOM);
    ok(!unpack_all("gzip", packed, size, SIZE, &out, &whole), "stopped by the one who takes it");

    struct weft_unpack *unpack = NULL;
    ok(weft_unpack_new(NULL, &unpack) && !unpack, "no coding");
    ok(weft_unpack_new("identity", &unpack) && !unpack, "identity");
    ok(!weft_unpack_new("br", &unpack) && !unpack, "one that was not asked for");
    ok(!weft_unpack_new("gzip, gzip", &unpack) && !unpack, "two");
    weft_buf_done(&out);
    free(packed);
    free(text);
}

/* ---- Deadlines ------------------------------------------------------------------------------- */

static void test_dues(void)
{
    enum { DUES = 1000 };
    static struct weft_due due[DUES];
    struct weft_dues dues = {0};
    uint32_t dice = 1;
    for (int turn = 0; turn < 5 * DUES; turn++) {
        dice = dice * 1664525 + 1013904223;
        struct weft_due *any = &due[(dice >> 8) % DUES];
        if (dice >> 30 == 0)
            weft_dues_remove(&dues, any);
        else
            weft_dues_set(&dues, any, dice >> 12);
    }
    size_t left = 0, counted = 0;
    bool ordered = true;
    for (size_t i = 0; i < DUES; i++)
        left += due[i].place != 0;
    weft_usec before_us = 0;
    for (struct weft_due *first; (first = weft_dues_first(&dues)); counted++) {
        ordered &= first->at_us >= before_us;
        before_us = first->at_us;
        weft_dues_remove(&dues, first);
    }
    ok(ordered && counted == left, "%zu deadlines come in order", left);
    weft_dues_done(&dues);
}

int main(void)
{
    test_head();
    test_unpack();
    test_dues();
    return tap_done();
}
