/* SPDX-License-Identifier: Apache-2.0 */

/* Tokens and scopes: an accepted text is written again as it was. */

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "core/token.h"

static void take_token(const char *text)
{
    int32_t id;
    uint8_t hash[WEFT_TOKEN_HASH], again[WEFT_TOKEN_HASH];
    if (!weft_token_parse(text, &id, hash))
        return;
    char printed[WEFT_TOKEN_TEXT];
    size_t size = strlen(text);
    must(id > 0 && size > WEFT_TOKEN_SECRET);
    const char *secret = text + size - WEFT_TOKEN_SECRET;
    weft_token_print(id, secret, printed);
    must(strcmp(printed, text) == 0);
    weft_token_hash(secret, again);
    must(weft_token_same(hash, again));
}

/* The words between the commas of a text, which is cut up. */
static enum weft_rc read_scopes(char *text, uint32_t *ret_scopes, struct weft_err *err)
{
    const char *word[64];
    size_t count = 0;
    while (text && count < WEFT_LEN(word))
        word[count++] = strsep(&text, ",");
    return weft_scopes_read(word, count, ret_scopes, err);
}

static void take_scopes(char *text)
{
    struct weft_err err = {0};
    uint32_t scopes, again;
    char printed[WEFT_SCOPES_TEXT];
    if (read_scopes(text, &scopes, &err))
        return;
    weft_scopes_print(scopes, printed);
    must(read_scopes(printed, &again, &err) == WEFT_OK);
    must(again == scopes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    take_token(text);
    take_scopes(text);
    free(text);
    return 0;
}
