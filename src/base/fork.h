/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_FORK_H
#define WEFT_BASE_FORK_H

/*
 * Detects that this process is a forked child. Connections, file locks and threads opened before
 * fork() belong to the parent alone: their owner stores weft_forks() when it opens them and
 * compares later. No system call. Thread-safe.
 */

#include <stdint.h>

/* How many fork() calls lie between the first call of this function and this process. */
uint64_t weft_forks(void);

#endif
