/* SPDX-License-Identifier: Apache-2.0 */

/* Compressed bodies: whole ones come out as they were, all others are refused within bounds. */

#include "net/http/decode.h"

#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum { LIMIT = 100000, PACKED_MAX = 1 << 20 };

struct packed {
    uint8_t data[PACKED_MAX];
    size_t size;
};
static struct packed packed;
static char plain[16 << 20];
static size_t room_left, kept;

static bool room(void *context, size_t size)
{
    (void)context;
    if (size > room_left)
        return false;
    room_left -= size;
    kept += size;
    return true;
}

/* Appends a member or a frame. */
static void pack(enum weft_coding coding, const void *data, size_t size)
{
    uint8_t *to = packed.data + packed.size;
    size_t max = PACKED_MAX - packed.size;
    if (coding == WEFT_CODING_ZSTD) {
        packed.size += ZSTD_compress(to, max, data, size, 3);
        return;
    }
    z_stream stream = {.next_in = (z_const Bytef *)data,
                       .avail_in = (uInt)size,
                       .next_out = to,
                       .avail_out = (uInt)max};
    (void)deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    (void)deflate(&stream, Z_FINISH);
    packed.size += stream.total_out;
    (void)deflateEnd(&stream);
}

static enum weft_rc unpack(enum weft_coding coding, size_t size, struct weft_buf *out,
                           struct weft_err *err)
{
    /* In memory of its own size, so that a sanitizer sees a read behind it. */
    void *data = malloc(size ? size : 1);
    memcpy(data, packed.data, size);
    const struct weft_decode decode = {.coding = coding, .data = data, .size = size, .room = room};
    *err = (struct weft_err){0};
    weft_buf_clear(out);
    kept = 0;
    enum weft_rc rc = weft_decode(&decode, out, err);
    if (kept != out->size)
        ok(false, "the size that is asked for (%zu) is the size that is kept (%zu)", kept,
           out->size);
    free(data);
    return rc;
}

static void test_whole(enum weft_coding coding, const char *name, struct weft_buf *out)
{
    static const size_t sizes[] = {0, 1, 100, 32768, 32769, 65536, LIMIT};
    struct weft_err err;
    for (size_t i = 0; i < WEFT_LEN(sizes); i++) {
        packed.size = 0;
        pack(coding, plain, sizes[i]);
        ok(!unpack(coding, packed.size, out, &err) && out->size == sizes[i] &&
               memcmp(out->data, plain, sizes[i]) == 0,
           "%s: %zu bytes come back", name, sizes[i]);
    }
    packed.size = 0;
    pack(coding, plain, 1000);
    pack(coding, plain, 0);
    pack(coding, plain + 1000, 500);
    ok(!unpack(coding, packed.size, out, &err) && out->size == 1500 &&
           memcmp(out->data, plain, 1500) == 0,
       "%s: parts that follow each other are one", name);
}

static void test_broken(enum weft_coding coding, const char *name, struct weft_buf *out)
{
    struct weft_err err;
    packed.size = 0;
    pack(coding, plain, 3000);
    size_t whole = packed.size, accepted = 0;
    for (size_t size = 0; size < whole; size++)
        accepted += unpack(coding, size, out, &err) != WEFT_INVALID_VALUE || !err.hint;
    is_int(accepted, 0, "%s: cut off anywhere it is refused, with a hint", name);
    is_str(err.field, "Content-Encoding", "%s: and the header is blamed", name);
    memcpy(packed.data + whole, "garbage", 7);
    is_int(unpack(coding, whole + 7, out, &err), WEFT_INVALID_VALUE,
           "%s: something behind the end is refused", name);
    memcpy(packed.data, "{\"kind\":\"k\"}", 12);
    is_int(unpack(coding, 12, out, &err), WEFT_INVALID_VALUE, "%s: plain JSON is refused", name);
}

static void test_bounds(enum weft_coding coding, const char *name, struct weft_buf *out)
{
    struct weft_err err;
    packed.size = 0;
    pack(coding, plain, LIMIT + 1);
    is_int(unpack(coding, packed.size, out, &err), WEFT_TOO_LARGE, "%s: a byte too many", name);
    memset(plain, ' ', sizeof(plain));
    packed.size = 0;
    pack(coding, plain, sizeof(plain));
    ok(packed.size < 20000, "%s: 16 MiB in %zu bytes", name, packed.size);
    is_int(unpack(coding, packed.size, out, &err), WEFT_TOO_LARGE, "%s: a bomb", name);
    ok(out->size <= LIMIT && out->capacity <= LIMIT + 1, "%s: takes no more than is allowed", name);
    packed.size = 0;
    pack(coding, plain, 90000);
    room_left = 50000;
    is_int(unpack(coding, packed.size, out, &err), WEFT_BUSY, "%s: where there is no room", name);
    ok(err.hint != NULL, "%s: there is a hint", name);
    room_left = SIZE_MAX;
}

/* A frame whose window would take 2 GiB. */
static void test_window(struct weft_buf *out)
{
    static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00};
    struct weft_err err;
    memcpy(packed.data, frame, sizeof(frame));
    is_int(unpack(WEFT_CODING_ZSTD, sizeof(frame), out, &err), WEFT_INVALID_VALUE,
           "zstd: a window that is too large is refused (%s)", err.text);
}

static void test_names(void)
{
    static const struct {
        const char *text;
        enum weft_coding coding;
    } row[] = {
        {NULL, WEFT_CODING_NONE},         {"", WEFT_CODING_NONE},
        {"identity", WEFT_CODING_NONE},   {"gzip", WEFT_CODING_GZIP},
        {"GZIP", WEFT_CODING_GZIP},       {"x-gzip", WEFT_CODING_GZIP},
        {"zstd", WEFT_CODING_ZSTD},       {"br", WEFT_CODING_UNKNOWN},
        {"deflate", WEFT_CODING_UNKNOWN}, {"gzip, gzip", WEFT_CODING_UNKNOWN},
        {"gzip,", WEFT_CODING_UNKNOWN},   {"gzi", WEFT_CODING_UNKNOWN},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        is_int(weft_coding_parse(row[i].text), row[i].coding, "Content-Encoding: %s",
               row[i].text ? row[i].text : "(none)");
}

int main(void)
{
    static const struct {
        enum weft_coding coding;
        const char *name;
    } coding[] = {{WEFT_CODING_GZIP, "gzip"}, {WEFT_CODING_ZSTD, "zstd"}};
    struct weft_buf out;
    weft_buf_init(&out, LIMIT);
    room_left = SIZE_MAX;
    for (size_t i = 0; i < WEFT_LEN(coding); i++) {
        uint32_t seed = 1;
        for (size_t k = 0; k < sizeof(plain); k++) /* text that packs a little */
            plain[k] = (char)('a' + ((seed = seed * 1664525 + 1013904223) >> 24) % 20);
        test_whole(coding[i].coding, coding[i].name, &out);
        test_broken(coding[i].coding, coding[i].name, &out);
        test_bounds(coding[i].coding, coding[i].name, &out);
    }
    test_window(&out);
    test_names();
    weft_buf_done(&out);
    return tap_done();
}
