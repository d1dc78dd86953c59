/* SPDX-License-Identifier: Apache-2.0 */

#include "fetch/crowd_unpack.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <strings.h>
#include <zlib.h>

enum {
    CHUNK = 16 << 10,
    GZIP_BITS = 15 + 16, /* the largest window there is, and a gzip header */
    ZLIB_BITS = 15,
    RAW_BITS = -15,
};

struct weft_unpack {
    z_stream stream;
    int bits; /* 0: the first byte decides */
    bool begun, whole, broken;
};

bool weft_unpack_new(const char *coding, struct weft_unpack **ret_unpack)
{
    static const struct {
        const char *name;
        int bits;
    } known[] = {{"gzip", GZIP_BITS}, {"x-gzip", GZIP_BITS}, {"deflate", 0}};
    *ret_unpack = NULL;
    if (!coding || !*coding || strcasecmp(coding, "identity") == 0)
        return true;
    for (size_t i = 0; i < WEFT_LEN(known); i++) {
        if (strcasecmp(coding, known[i].name) != 0)
            continue;
        *ret_unpack = weft_alloc(1, sizeof(**ret_unpack));
        (*ret_unpack)->bits = known[i].bits;
        return true;
    }
    return false;
}

void weft_unpack_free(struct weft_unpack *unpack)
{
    if (unpack && unpack->begun)
        (void)inflateEnd(&unpack->stream);
    free(unpack);
}

/* "deflate" has a zlib header (RFC 9110, 8.4.1.2), but some servers leave it out. */
static void begin(struct weft_unpack *unpack, const unsigned char *bytes)
{
    int bits = unpack->bits ? unpack->bits : (*bytes & 0x0f) == Z_DEFLATED ? ZLIB_BITS : RAW_BITS;
    if (inflateInit2(&unpack->stream, bits) != Z_OK)
        weft_oom(CHUNK);
    unpack->begun = true;
}

/* Members of gzip may follow each other. */
static bool next_member(struct weft_unpack *unpack)
{
    unpack->whole = true;
    if (unpack->stream.avail_in == 0)
        return true;
    unpack->whole = false;
    return unpack->bits == GZIP_BITS && inflateReset(&unpack->stream) == Z_OK;
}

bool weft_unpack_add(struct weft_unpack *unpack, const void *bytes, size_t size,
                     weft_unpacked_fn *take, void *context)
{
    unsigned char chunk[CHUNK];
    z_stream *stream = &unpack->stream;
    if (size == 0)
        return true;
    if (!unpack->begun)
        begin(unpack, bytes);
    else if (unpack->whole && inflateReset(stream) != Z_OK)
        return false;
    stream->next_in = (z_const Bytef *)bytes;
    stream->avail_in = (uInt)size;
    unpack->whole = false;
    do {
        stream->next_out = chunk;
        stream->avail_out = CHUNK;
        int status = inflate(stream, Z_NO_FLUSH);
        if (status == Z_MEM_ERROR)
            weft_oom(CHUNK);
        bool good = status == Z_OK || status == Z_BUF_ERROR || status == Z_STREAM_END;
        if (status == Z_STREAM_END)
            good = next_member(unpack);
        size_t made = CHUNK - stream->avail_out;
        if (made > 0 && !take(context, chunk, made))
            return false;
        unpack->broken = !good;
    } while (!unpack->broken && (stream->avail_in > 0 || stream->avail_out == 0));
    return !unpack->broken;
}

bool weft_unpack_broken(const struct weft_unpack *unpack)
{
    return unpack && unpack->broken;
}

bool weft_unpack_whole(const struct weft_unpack *unpack)
{
    return !unpack || !unpack->begun || unpack->whole;
}
