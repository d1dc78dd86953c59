/* SPDX-License-Identifier: Apache-2.0 */

#include "net/http/answers.h"

#include "base/limits.h"
#include "base/str.h"

static size_t bucket_of(const char *ns)
{
    return weft_text_bucket(ns, WEFT_ANSWERS_BUCKETS);
}

/* Bytes that one namespace may hold. */
static uint64_t share_of(const struct weft_answers *answers)
{
    return answers->most / 2;
}

static void take(struct weft_answers *answers, size_t bucket, size_t size)
{
    atomic_fetch_add(&answers->all, size);
    atomic_fetch_add(&answers->of[bucket], size);
}

static bool give(struct weft_answers *answers, size_t bucket, size_t size)
{
    uint64_t most = answers->most, share = share_of(answers);
    uint64_t all = atomic_fetch_sub(&answers->all, size);
    uint64_t own = atomic_fetch_sub(&answers->of[bucket], size);
    return (all >= most && all - size < most) || (own >= share && own - size < share);
}

void weft_answers_take(struct weft_answers *answers, const char *ns, size_t size)
{
    take(answers, bucket_of(ns), size);
}

bool weft_answers_give(struct weft_answers *answers, const char *ns, size_t size)
{
    return give(answers, bucket_of(ns), size);
}

bool weft_answers_has_room(const struct weft_answers *answers, const char *ns)
{
    return atomic_load(&answers->all) < answers->most &&
           atomic_load(&answers->of[bucket_of(ns)]) < share_of(answers);
}

enum weft_rc weft_answers_full(const struct weft_answers *answers, const char *ns,
                               struct weft_err *err)
{
    uint64_t own = atomic_load(&answers->of[bucket_of(ns)]), share = share_of(answers);
    if (own >= share)
        (void)weft_fail(err, WEFT_UNAVAILABLE,
                        "no room for the answer: clients of this namespace have not read answers "
                        "of %llu bytes, and it may hold %llu, half of answer_bytes",
                        (unsigned long long)own, (unsigned long long)share);
    else
        (void)weft_fail(err, WEFT_UNAVAILABLE,
                        "no room for the answer: answers that clients have not read fill "
                        "answer_bytes, %llu bytes",
                        (unsigned long long)answers->most);
    err->hint =
        "read answers as they come, ask for smaller pages or fewer items of a claim, or "
        "give the server more with answer_bytes (--answer-bytes, WEFT_ANSWER_BYTES)";
    return WEFT_UNAVAILABLE;
}

size_t weft_answers_call_max(const struct weft_answers *answers)
{
    uint64_t most = answers->most / 16;
    return most < WEFT_BATCH_BYTES ? (size_t)most : (size_t)WEFT_BATCH_BYTES;
}

struct weft_answers_room weft_answers_reserve(struct weft_answers *answers, const char *ns,
                                              size_t size)
{
    struct weft_answers_room room = {bucket_of(ns), size};
    atomic_fetch_add(&answers->reserved, size);
    take(answers, room.bucket, size);
    return room;
}

bool weft_answers_unreserve(struct weft_answers *answers, const struct weft_answers_room *room)
{
    bool opens = give(answers, room->bucket, room->size);
    atomic_fetch_sub(&answers->reserved, room->size);
    return opens;
}

bool weft_answers_refuse(const struct weft_answers *answers, size_t size)
{
    return atomic_load(&answers->all) + size > 2 * answers->most;
}

uint64_t weft_answers_excess(const struct weft_answers *answers)
{
    /* Read in this order, `reserved` is never more than its part of `all`. */
    uint64_t reserved = atomic_load(&answers->reserved), all = atomic_load(&answers->all);
    uint64_t held = all > reserved ? all - reserved : 0;
    return held >= answers->most / 2 ? held - answers->most / 4 : 0;
}
