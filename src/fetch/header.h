/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_FETCH_HEADER_H
#define WEFT_FETCH_HEADER_H

/* The header lines of an answer; private to this folder. */

#include "fetch/fetch.h"

/* Reads one line, as received. */
void weft_fetch_read_header(struct weft_fetch_answer *answer, const char *line, size_t size);

#endif
