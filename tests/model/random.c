/* SPDX-License-Identifier: Apache-2.0 */

/* Random numbers from a seed, and the log of the last operations. */

#include "model.h"

#include "support.h"

size_t below(struct world *w, size_t bound)
{
    return (size_t)(splitmix64(&w->random) % bound);
}

bool chance(struct world *w, unsigned percent)
{
    return below(w, 100) < percent;
}

void note(struct world *w, const char *fmt, ...)
{
    char *line = w->log[w->logged++ % LOG_LINES];
    int used = snprintf(line, LOG_WIDTH, "%zu: ", w->step);
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(line + used, LOG_WIDTH - (size_t)used, fmt, args);
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
    struct weft_id nobody;
    memset(&nobody, 0xee, sizeof(nobody));
    return nobody;
}
