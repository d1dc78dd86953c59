/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_HEAP_H
#define WEFT_BASE_HEAP_H

/*
 * Returning freed memory to the system. (The memory itself: base/alloc.h.)
 *
 * malloc keeps freed memory in an arena per thread and returns only the free end of an arena: after
 * a burst a process stays as large as it ever was. A long-running process calls weft_heap_trim()
 * now and then.
 */

#include "base/base.h"

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
