/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_THREAD_H
#define WEFT_BASE_THREAD_H

/* Threads, waiting for them, and whether this process is a forked child. */

#include "base/base.h"

#include <pthread.h>

/*
 * Starts a thread with all signals blocked: the program handles them elsewhere. The name has at
 * most 15 characters. Returns 0, or the error of pthread_create().
 */
int weft_thread_quiet(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *context);
/* The same for a thread that its program cannot do without: aborts when it cannot be started. */
void weft_thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *),
                       void *context);

/* Waits for a signal, at most until a moment of boot time; WEFT_NEVER: without a limit. */
void weft_cond_until(pthread_cond_t *cond, pthread_mutex_t *lock, weft_usec until_us);

/*
 * How many fork() calls lie between the first call of this function and this process. Connections,
 * file locks and threads opened before fork() belong to the parent alone: their owner stores this
 * number when it opens them and compares later. No system call. Thread-safe.
 */
uint64_t weft_forks(void);

#endif
