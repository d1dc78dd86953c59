/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_FETCH_HEAD_H
#define WEFT_FETCH_HEAD_H

/* The head of an answer; private to this folder. */

#include "fetch/fetch.h"

/* Takes one line of it in, as it came. */
void weft_fetch_head(struct weft_fetch_answer *answer, const char *line, size_t size);

#endif
