/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_FORK_H
#define WEFT_BASE_FORK_H

/*
 * Telling a process from its forked children. What is opened before fork() (connections, locks of
 * files, threads) belongs to the parent alone; its owner keeps the number that weft_forks() gave it
 * and compares later. Nothing is asked of the kernel.
 */

#include <stdint.h>

/* How many fork() calls lie between the first call of this function and this process. */
uint64_t weft_forks(void);

#endif
