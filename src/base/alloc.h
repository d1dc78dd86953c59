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

/*
 * Returning freed memory to the system. malloc keeps freed memory in an arena per thread and
 * returns only the free end of an arena: after a burst a process stays as large as it ever was. A
 * long-running process calls weft_heap_trim() now and then.
 */

/*
 * Called once at the start of a long-running program: large blocks are returned as soon as they are
 * freed, and the free end of each arena stays small, which weft_heap_trim() cannot reach in
 * threads' arenas. Changes malloc for the whole process, so a library does not call it.
 */
void weft_heap_limit(void);
/*
 * Returns free pages when their number has grown much since the last call. `idle` is what the last
 * call returned, 0 at first: resident bytes that are not in use. Takes microseconds when there is
 * nothing to do, and a few milliseconds for hundreds of megabytes.
 */
size_t weft_heap_trim(size_t idle);
/*
 * Called by a thread that has been idle: returns the free end of that thread's own arena, which no
 * other thread can do. Costs some microseconds, and page faults when the thread works again.
 */
void weft_heap_rest(void);

#endif
