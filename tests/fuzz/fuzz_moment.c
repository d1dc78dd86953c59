/* SPDX-License-Identifier: Apache-2.0 */

/* Moments: an accepted text prints as the same moment, to the millisecond. */

#include "fuzz/fuzz.h"

#include "base/limits.h"
#include "base/moment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_usec moment_us, again_us;
    char text[WEFT_MOMENT_TEXT];
    if (!weft_moment_parse((const char *)data, size, &moment_us))
        return 0;
    must(moment_us >= 0 && moment_us < WEFT_MOMENT_MAX_US + WEFT_SECOND);
    weft_moment_print(moment_us, text);
    must(strlen(text) == WEFT_MOMENT_TEXT - 1);
    must(weft_moment_parse(text, strlen(text), &again_us));
    must(again_us == moment_us - moment_us % 1000);
    return 0;
}
