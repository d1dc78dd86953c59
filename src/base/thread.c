/* SPDX-License-Identifier: Apache-2.0 */

#include "base/thread.h"

#include <signal.h>
#include <stddef.h>

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
