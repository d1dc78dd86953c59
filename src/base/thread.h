/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_THREAD_H
#define WEFT_BASE_THREAD_H

#include <pthread.h>

/*
 * Starts a thread with all signals blocked: the program handles them elsewhere. The name has at
 * most 15 characters. Returns 0, or the error of pthread_create().
 */
int weft_thread_quiet(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *context);

#endif
