/* SPDX-License-Identifier: Apache-2.0 */

/* Random numbers from a seed, and the log of the last operations. */

#include "model.h"

size_t below(struct world *w, size_t bound)
{
    return dice_below(&w->random, bound);
}

bool chance(struct world *w, unsigned percent)
{
    return dice_chance(&w->random, percent);
}

void note(struct world *w, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    diary_add(&w->diary, w->step, fmt, args);
    va_end(args);
}

struct subject *pick_subject(struct world *w, enum weft_state state)
{
    struct subject *fits[SUBJECTS_MAX];
    size_t count = 0;
    if (w->subjects == 0 || chance(w, 3))
        return NULL;
    for (size_t i = 0; i < w->subjects; i++)
        if (w->subject[i]->live.state == state)
            fits[count++] = w->subject[i];
    if (count > 0 && chance(w, 75))
        return fits[below(w, count)];
    return w->subject[below(w, w->subjects)];
}

struct weft_id id_in(const struct subject *x, size_t store)
{
    if (x)
        return x->id[store];
    struct weft_id absent;
    memset(&absent, 0xee, sizeof(absent));
    return absent;
}
