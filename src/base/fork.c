/* SPDX-License-Identifier: Apache-2.0 */

#include "base/fork.h"

#include "base/arena.h"

#include <pthread.h>
#include <stdatomic.h>

static _Atomic uint64_t forks;
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
    atomic_fetch_add(&forks, 1);
}

static void watch_forks(void)
{
    int failed = pthread_atfork(NULL, NULL, in_child);
    if (failed)
        weft_oom(0); /* ENOMEM is its only failure */
}

uint64_t weft_forks(void)
{
    (void)pthread_once(&watch_once, watch_forks);
    return atomic_load_explicit(&forks, memory_order_relaxed);
}
