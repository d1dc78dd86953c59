/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_BATCH_BATCH_LINES_H
#define WEFT_ENGINE_BATCH_BATCH_LINES_H

/* The lines of the files of output and of errors, as OpenAI has them. */

#include "base/buf.h"
#include "engine/batch/batch.h"

/* Adds a line; good: of the output, else of the errors. */
void weft_batch_line_add(struct weft_buf *buf, const struct weft_batch_answer *answer, bool good);

#endif
