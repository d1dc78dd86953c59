/* SPDX-License-Identifier: Apache-2.0 */

#include "base/err.h"

#include <string.h>

#define HINT(name, text) const char weft_hint_##name[] = text;
#include "base/hints.def"

const char *weft_hint_find(const char *text)
{
    static const char *const hints[] = {
#define HINT(name, text) weft_hint_##name,
#include "base/hints.def"
    };
    for (size_t i = 0; i < WEFT_LEN(hints); i++)
        if (strcmp(hints[i], text) == 0)
            return hints[i];
    return NULL;
}
