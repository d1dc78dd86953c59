/* SPDX-License-Identifier: Apache-2.0 */

#include "base/thread.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

int weft_thread_quiet(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *context)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(ret_thread, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        (void)pthread_setname_np(*ret_thread, name);
    return failed;
}

void weft_thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *context)
{
    int failed = weft_thread_quiet(ret_thread, name, run, context);
    if (failed) {
        weft_error("cannot start a thread", F_STR("thread", name), F_I64("errno", failed));
        abort();
    }
}

void weft_cond_until(pthread_cond_t *cond, pthread_mutex_t *lock, weft_usec until_us)
{
    if (until_us == WEFT_NEVER) {
        pthread_cond_wait(cond, lock);
        return;
    }
    /* Conditions cannot wait by boot time: the time left is added to the monotonic clock. */
    weft_usec left_us = until_us - weft_boot_us();
    if (left_us <= 0)
        return;
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    weft_usec at_us = at.tv_sec * WEFT_SECOND + at.tv_nsec / 1000 + left_us;
    at = (struct timespec){.tv_sec = at_us / WEFT_SECOND, .tv_nsec = at_us % WEFT_SECOND * 1000};
    (void)pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &at);
}

static _Atomic uint64_t forks;

static void in_child(void)
{
    atomic_fetch_add(&forks, 1);
}

static void watch_forks(void)
{
    if (pthread_atfork(NULL, NULL, in_child))
        weft_oom(0); /* ENOMEM is its only failure */
}

uint64_t weft_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
    return atomic_load_explicit(&forks, memory_order_relaxed);
}
