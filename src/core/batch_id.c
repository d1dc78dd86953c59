/* SPDX-License-Identifier: Apache-2.0 */

#include "core/batch_id.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

void weft_batch_id_print(const char *prefix, const struct weft_id *id,
                         char ret_text[WEFT_BATCH_ID_TEXT])
{
    int size = snprintf(ret_text, WEFT_BATCH_ID_TEXT, "%s", prefix);
    for (size_t i = 0; i < sizeof(id->byte); i++)
        size += snprintf(ret_text + size, WEFT_BATCH_ID_TEXT - (size_t)size, "%02x", id->byte[i]);
}

bool weft_batch_id_parse(const char *prefix, const char *text, struct weft_id *ret_id)
{
    size_t size = strlen(prefix);
    if (strncmp(text, prefix, size) != 0 || strlen(text + size) != 2 * sizeof(ret_id->byte))
        return false;
    for (size_t i = 0; i < sizeof(ret_id->byte); i++) {
        int high = weft_hex_digit(text[size + 2 * i]), low = weft_hex_digit(text[size + 2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret_id->byte[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}
