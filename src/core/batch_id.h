/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_BATCH_ID_H
#define WEFT_CORE_BATCH_ID_H

/* Ids of files and batches as OpenAI's clients know them: a prefix and 32 digits. */

#include "base/base.h"

#define WEFT_FILE_PREFIX   "file-"
#define WEFT_BATCH_PREFIX  "batch_"
#define WEFT_OUTPUT_PREFIX "file-output-" /* and the digits of the batch */
#define WEFT_ERRORS_PREFIX "file-errors-"

enum { WEFT_BATCH_ID_TEXT = 64 };

void weft_batch_id_print(const char *prefix, const struct weft_id *id,
                         char ret_text[WEFT_BATCH_ID_TEXT]);
WEFT_MUST_CHECK bool weft_batch_id_parse(const char *prefix, const char *text,
                                         struct weft_id *ret_id);

#endif
