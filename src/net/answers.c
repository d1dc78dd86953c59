/* SPDX-License-Identifier: Apache-2.0 */

#include "net/answers.h"

#include "base/str.h"

static size_t bucket_of(const char *ns)
{
    return weft_text_bucket(ns, WEFT_ANSWERS_BUCKETS);
}

void weft_answers_take(struct weft_answers *answers, const char *ns, size_t size)
{
    atomic_fetch_add(&answers->all, size);
    atomic_fetch_add(&answers->of[bucket_of(ns)], size);
}

bool weft_answers_give(struct weft_answers *answers, const char *ns, size_t size)
{
    uint64_t all = atomic_fetch_sub(&answers->all, size);
    uint64_t own = atomic_fetch_sub(&answers->of[bucket_of(ns)], size);
    return (all >= answers->most && all - size < answers->most) ||
           (own >= answers->most / 2 && own - size < answers->most / 2);
}

bool weft_answers_has_room(const void *context, const char *ns)
{
    const struct weft_answers *answers = context;
    return atomic_load(&answers->all) < answers->most &&
           atomic_load(&answers->of[bucket_of(ns)]) < answers->most / 2;
}

bool weft_answers_refuse(const struct weft_answers *answers, size_t size)
{
    return atomic_load(&answers->all) + size > 2 * answers->most;
}

uint64_t weft_answers_excess(const struct weft_answers *answers)
{
    uint64_t all = atomic_load(&answers->all);
    return all >= answers->most / 2 ? all - answers->most / 4 : 0;
}
