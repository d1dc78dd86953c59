/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_ALLOC_H
#define WEFT_BASE_ALLOC_H

/*
 * Heap memory that is never NULL. The caller owns it and ends it with free(). Running out of
 * system memory ends the process through weft_oom(), so no caller tests for NULL; limits on outside
 * input are checked where the input enters.
 */

#include "base/base.h"

void *weft_alloc(size_t count, size_t size); /* zeroed */
/* Grows or shrinks memory of weft_alloc() or malloc(), NULL included; new bytes are not zeroed. */
void *weft_realloc(void *memory, size_t count, size_t size);
char *weft_strdup(const char *text); /* NULL gives NULL */

/* Calls the hook of weft_set_oom() and ends the process. */
__attribute__((noreturn)) void weft_oom(size_t wanted);

#endif
