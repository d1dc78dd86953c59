/* SPDX-License-Identifier: Apache-2.0 */

/* base64: bytes come back as they were, and equal bytes have one text only. */

#include "fuzz/fuzz.h"

#include "base/str.h"

static void decode(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size / 4 * 3 + 1);
    char *text = malloc(size + 1);
    size_t count;
    must(bytes && text);
    if (weft_base64_decode((const char *)data, size, bytes, &count)) {
        must(weft_base64_encode(bytes, count, text) == size);
        must(memcmp(text, data, size) == 0);
    }
    free(text);
    free(bytes);
}

static void encode(const uint8_t *data, size_t size)
{
    char *text = malloc(WEFT_BASE64_SIZE(size) + 1);
    must(text);
    size_t written = weft_base64_encode(data, size, text), count;
    uint8_t *bytes = malloc(written / 4 * 3 + 1);
    must(bytes && written == WEFT_BASE64_SIZE(size) && strlen(text) == written);
    must(weft_base64_decode(text, written, bytes, &count));
    must(count == size && (size == 0 || memcmp(bytes, data, size) == 0));
    free(bytes);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decode(data, size);
    encode(data, size);
    return 0;
}
