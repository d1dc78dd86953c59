/* SPDX-License-Identifier: Apache-2.0 */

/* Created once and never freed: another thread may be using it. */

#include "base/locale.h"

#include "base/arena.h"

#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void make(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c_locale == (locale_t)0)
        weft_oom(0);
}

locale_t weft_c_locale(void)
{
    (void)pthread_once(&once, make);
    return c_locale;
}
