/* SPDX-License-Identifier: Apache-2.0 */

#include "core/breaker.h"

#include "core/pace.h"

#include <string.h>

const struct weft_breaker_rules weft_breaker_default = {
    .in_row = 5,
    .percent = 50,
    .calls_min = 20,
    .window_us = 10 * WEFT_SECOND,
    .open_us = WEFT_SECOND,
    .open_max_us = 60 * WEFT_SECOND,
};

void weft_breaker_reset(struct weft_breaker *breaker, const struct weft_breaker_rules *rules)
{
    *breaker = (struct weft_breaker){.rules = *rules, .ticket = breaker->ticket + 1};
}

enum weft_breaker_state weft_breaker_look(const struct weft_breaker *breaker, weft_usec now_us)
{
    if (breaker->state == WEFT_BREAKER_OPEN && now_us >= breaker->until_us)
        return WEFT_BREAKER_HALF_OPEN;
    return breaker->state;
}

size_t weft_breaker_room(const struct weft_breaker *breaker, weft_usec now_us)
{
    switch (weft_breaker_look(breaker, now_us)) {
    case WEFT_BREAKER_CLOSED:
        return SIZE_MAX;
    case WEFT_BREAKER_OPEN:
        return 0;
    case WEFT_BREAKER_HALF_OPEN:
        break;
    }
    return breaker->probing ? 0 : 1;
}

weft_usec weft_breaker_next(const struct weft_breaker *breaker)
{
    if (breaker->probing)
        return WEFT_NEVER;
    return breaker->state == WEFT_BREAKER_OPEN ? breaker->until_us : 0;
}

bool weft_breaker_begin(struct weft_breaker *breaker, weft_usec now_us, uint32_t *ret_ticket)
{
    if (weft_breaker_room(breaker, now_us) == 0)
        return false;
    if (breaker->state != WEFT_BREAKER_CLOSED) {
        breaker->state = WEFT_BREAKER_HALF_OPEN;
        breaker->probing = true;
        breaker->ticket++;
    }
    *ret_ticket = breaker->ticket;
    return true;
}

/* ---- Changes of state ------------------------------------------------------------------------ */

/* Begins to count anew; calls that have begun do not count from here on. */
static void forget(struct weft_breaker *breaker)
{
    memset(breaker->good, 0, sizeof(breaker->good));
    memset(breaker->bad, 0, sizeof(breaker->bad));
    breaker->in_row = 0;
    breaker->probing = false;
    breaker->ticket++;
}

static void open_up(struct weft_breaker *breaker, weft_usec now_us, uint64_t random)
{
    const struct weft_breaker_rules *rules = &breaker->rules;
    if (breaker->state == WEFT_BREAKER_CLOSED && now_us - breaker->closed_us > rules->window_us)
        breaker->opens = 0;
    breaker->opens++;
    breaker->state = WEFT_BREAKER_OPEN;
    breaker->until_us =
        now_us + weft_pace_backoff(rules->open_us, rules->open_max_us, breaker->opens, random);
    forget(breaker);
}

static void close_up(struct weft_breaker *breaker, weft_usec now_us)
{
    breaker->state = WEFT_BREAKER_CLOSED;
    breaker->closed_us = now_us;
    forget(breaker);
}

/* ---- Counting -------------------------------------------------------------------------------- */

/* Empties the slices that time has passed by; returns the place of the newest. */
static size_t turn(struct weft_breaker *breaker, weft_usec now_us)
{
    weft_usec length_us = breaker->rules.window_us / WEFT_BREAKER_SLICES;
    int64_t slice = length_us > 0 ? now_us / length_us : now_us;
    if (slice - breaker->slice > WEFT_BREAKER_SLICES)
        breaker->slice = slice - WEFT_BREAKER_SLICES;
    while (breaker->slice < slice) {
        size_t place = (size_t)(++breaker->slice % WEFT_BREAKER_SLICES);
        breaker->good[place] = breaker->bad[place] = 0;
    }
    return (size_t)(breaker->slice % WEFT_BREAKER_SLICES);
}

static bool too_many(const struct weft_breaker *breaker)
{
    const struct weft_breaker_rules *rules = &breaker->rules;
    uint64_t good = 0, bad = 0;
    for (size_t i = 0; i < WEFT_BREAKER_SLICES; i++) {
        good += breaker->good[i];
        bad += breaker->bad[i];
    }
    return (rules->in_row > 0 && breaker->in_row >= rules->in_row) ||
           (rules->percent > 0 && good + bad >= rules->calls_min &&
            bad * 100 >= rules->percent * (good + bad));
}

void weft_breaker_end(struct weft_breaker *breaker, uint32_t ticket, enum weft_breaker_end end,
                      weft_usec now_us, uint64_t random)
{
    if (ticket != breaker->ticket)
        return;
    if (breaker->state == WEFT_BREAKER_HALF_OPEN) {
        if (end == WEFT_BREAKER_GOOD)
            close_up(breaker, now_us);
        else if (end == WEFT_BREAKER_BAD)
            open_up(breaker, now_us, random);
        else
            forget(breaker); /* the next call is the probe */
        return;
    }
    if (end == WEFT_BREAKER_VOID)
        return;
    size_t place = turn(breaker, now_us);
    bool bad = end == WEFT_BREAKER_BAD;
    breaker->good[place] += !bad;
    breaker->bad[place] += bad;
    breaker->in_row = bad ? breaker->in_row + 1 : 0;
    if (bad && too_many(breaker))
        open_up(breaker, now_us, random);
}
