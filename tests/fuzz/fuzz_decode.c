/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Compressed bodies: any bytes are unpacked or refused within the limit, with the same end each
 * time, and what was packed comes back.
 */

#include "fuzz/fuzz.h"

#include "net/http/decode.h"

#include <zlib.h>
#include <zstd.h>

enum { LIMIT = 64 << 10 };

static size_t kept;

static bool room(void *context, size_t size)
{
    (void)context;
    kept += size;
    return true;
}

static enum weft_rc decode(enum weft_coding coding, const void *data, size_t size,
                           struct weft_buf *out)
{
    struct weft_err err = {0};
    const struct weft_decode decode = {.coding = coding, .data = data, .size = size, .room = room};
    kept = 0;
    weft_buf_init(out, LIMIT);
    enum weft_rc rc = weft_decode(&decode, out, &err);
    must(out->size <= LIMIT && !out->full && kept == out->size);
    must(rc == WEFT_OK || rc == WEFT_INVALID_VALUE || rc == WEFT_TOO_LARGE);
    must(rc == err.rc);
    return rc;
}

static void any_bytes(enum weft_coding coding, const uint8_t *data, size_t size)
{
    struct weft_buf first, second;
    enum weft_rc rc = decode(coding, data, size, &first);
    must(decode(coding, data, size, &second) == rc);
    must(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    weft_buf_done(&first);
    weft_buf_done(&second);
}

static void there_and_back(const uint8_t *data, size_t size)
{
    if (size > LIMIT)
        return;
    struct weft_buf out;
    size_t max = ZSTD_compressBound(size) + compressBound(size) + 64;
    uint8_t *packed = malloc(max);
    must(packed != NULL);
    size_t count = ZSTD_compress(packed, max, data, size, 1);
    must(!ZSTD_isError(count) && decode(WEFT_CODING_ZSTD, packed, count, &out) == WEFT_OK);
    must(out.size == size && (size == 0 || memcmp(out.data, data, size) == 0));
    weft_buf_done(&out);
    z_stream stream = {.next_in = (z_const Bytef *)data,
                       .avail_in = (uInt)size,
                       .next_out = packed,
                       .avail_out = (uInt)max};
    must(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    must(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    must(decode(WEFT_CODING_GZIP, packed, stream.total_out, &out) == WEFT_OK);
    must(out.size == size && (size == 0 || memcmp(out.data, data, size) == 0));
    weft_buf_done(&out);
    (void)deflateEnd(&stream);
    free(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    any_bytes(WEFT_CODING_GZIP, data, size);
    any_bytes(WEFT_CODING_ZSTD, data, size);
    there_and_back(data, size);
    return 0;
}
