/* SPDX-License-Identifier: Apache-2.0 */

/* gzip by zlib and zstd by libzstd, a chunk at a time. */

#include "net/http/decode.h"

#include "base/alloc.h"
#include "base/err.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>

enum {
    CHUNK = 32 << 10,
    GZIP_BITS = 15 + 16, /* the largest window there is, and a gzip header */
    WINDOW_LOG_MAX = 23, /* 8 MiB, which RFC 9659 allows a sender to rely on */
};

enum weft_coding weft_coding_parse(const char *text)
{
    static const struct {
        const char *name;
        enum weft_coding coding;
    } known[] = {
        {"", WEFT_CODING_NONE},       {"identity", WEFT_CODING_NONE}, {"gzip", WEFT_CODING_GZIP},
        {"x-gzip", WEFT_CODING_GZIP}, {"zstd", WEFT_CODING_ZSTD},
    };
    for (size_t i = 0; i < WEFT_LEN(known); i++)
        if (strcasecmp(text ? text : "", known[i].name) == 0)
            return known[i].coding;
    return WEFT_CODING_UNKNOWN;
}

/* ---- What both need -------------------------------------------------------------------------- */

enum weft_rc weft_decode_no_room(struct weft_err *err)
{
    return weft_hint(err, weft_fail(err, WEFT_BUSY, "no room for the body of the request"),
                     "too many large requests at once: try again later");
}

static enum weft_rc keep(const struct weft_decode *decode, const void *chunk, size_t size,
                         struct weft_buf *out, struct weft_err *err)
{
    if (size > out->max - out->size)
        return weft_fail_field(err, WEFT_TOO_LARGE, "body",
                               "the body unpacks to more than %zu bytes", out->max);
    if (size > 0 && decode->room && !decode->room(decode->context, size))
        return weft_decode_no_room(err);
    weft_buf_add(out, chunk, size);
    return WEFT_OK;
}

static enum weft_rc broken(const char *name, const char *why, struct weft_err *err)
{
    return weft_hint(
        err, weft_invalid(err, "Content-Encoding", "the body is not whole %s: %s", name, why),
        "compress the body again, or send it without Content-Encoding");
}

/* ---- gzip ------------------------------------------------------------------------------------ */

/* Members may follow each other; bytes behind a member that are no member are refused. */
static enum weft_rc run_gzip(const struct weft_decode *decode, z_stream *stream, uint8_t *chunk,
                             struct weft_buf *out, struct weft_err *err)
{
    for (;;) {
        stream->next_out = chunk;
        stream->avail_out = CHUNK;
        int status = inflate(stream, Z_NO_FLUSH);
        enum weft_rc rc = keep(decode, chunk, CHUNK - stream->avail_out, out, err);
        if (rc)
            return rc;
        if (status == Z_STREAM_END && stream->avail_in == 0)
            return WEFT_OK;
        if (status == Z_STREAM_END)
            status = inflateReset(stream);
        if (status == Z_MEM_ERROR)
            weft_oom(CHUNK);
        if (status == Z_BUF_ERROR) /* no progress: it wants more */
            return broken("gzip", "it ends too early", err);
        if (status != Z_OK)
            return broken("gzip", stream->msg ? stream->msg : "it cannot be read", err);
    }
}

static enum weft_rc decode_gzip(const struct weft_decode *decode, uint8_t *chunk,
                                struct weft_buf *out, struct weft_err *err)
{
    assert(decode->size <= UINT_MAX);
    z_stream stream = {.next_in = (z_const Bytef *)decode->data, .avail_in = (uInt)decode->size};
    if (inflateInit2(&stream, GZIP_BITS) != Z_OK)
        weft_oom(CHUNK);
    enum weft_rc rc = run_gzip(decode, &stream, chunk, out, err);
    (void)inflateEnd(&stream);
    return rc;
}

/* ---- zstd ------------------------------------------------------------------------------------ */

static enum weft_rc run_zstd(const struct weft_decode *decode, ZSTD_DStream *stream, uint8_t *chunk,
                             struct weft_buf *out, struct weft_err *err)
{
    ZSTD_inBuffer in = {.src = decode->data, .size = decode->size};
    for (;;) {
        ZSTD_outBuffer made = {.dst = chunk, .size = CHUNK};
        size_t wants = ZSTD_decompressStream(stream, &made, &in); /* 0: a frame has ended */
        if (ZSTD_isError(wants))
            return broken("zstd", ZSTD_getErrorName(wants), err);
        enum weft_rc rc = keep(decode, chunk, made.pos, out, err);
        if (rc)
            return rc;
        if (in.pos == in.size && wants == 0)
            return WEFT_OK;
        if (in.pos == in.size && made.pos < made.size) /* nothing is left to come out */
            return broken("zstd", "it ends too early", err);
    }
}

static enum weft_rc decode_zstd(const struct weft_decode *decode, uint8_t *chunk,
                                struct weft_buf *out, struct weft_err *err)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    if (!stream ||
        ZSTD_isError(ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
        weft_oom(CHUNK);
    enum weft_rc rc = run_zstd(decode, stream, chunk, out, err);
    (void)ZSTD_freeDStream(stream);
    return rc;
}

enum weft_rc weft_decode(const struct weft_decode *decode, struct weft_buf *out,
                         struct weft_err *err)
{
    assert(decode->coding == WEFT_CODING_GZIP || decode->coding == WEFT_CODING_ZSTD);
    uint8_t *chunk = weft_alloc(1, CHUNK);
    enum weft_rc rc = decode->coding == WEFT_CODING_GZIP ? decode_gzip(decode, chunk, out, err)
                                                         : decode_zstd(decode, chunk, out, err);
    free(chunk);
    return rc;
}
