/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_HEAP_H
#define WEFT_BASE_HEAP_H

/*
 * Memory that was freed goes back to the system.
 *
 * malloc keeps what is freed for whoever asks next, in an arena per thread, and gives back only
 * what lies at the end of one: after a burst a process stays as large as it ever was. One that runs
 * for months calls weft_heap_trim() now and then.
 */

#include "base/base.h"

/*
 * For a program that runs for long, at its start: large blocks go back as soon as they are freed,
 * and the free end of an arena stays small, which trimming cannot reach in those of threads.
 * Changes malloc of the whole process, so a library does not call it.
 */
void weft_heap_limit(void);
/*
 * Gives free pages back when there are many more of them than after the last time. `idle` is what
 * the last call returned, 0 at first: bytes that are in memory and that nobody uses. Takes some
 * microseconds when there is nothing to do, and a few milliseconds for hundreds of megabytes.
 */
size_t weft_heap_trim(size_t idle);
/*
 * For a thread that has had nothing to do for a while: gives the free end of its arena back, which
 * only that thread can. Costs some microseconds, and the thread its warm memory.
 */
void weft_heap_rest(void);

#endif
