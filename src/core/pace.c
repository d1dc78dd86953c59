/* SPDX-License-Identifier: Apache-2.0 */

#include "core/pace.h"

enum { DOUBLINGS_MAX = 16, REST_FACTOR = 10 };
#define REST_MAX_US (10 * WEFT_SECOND)
#define QUICK_US    (100 * WEFT_MS)

static weft_usec earlier(weft_usec a, weft_usec b)
{
    return a < b ? a : b;
}

static weft_usec later(weft_usec a, weft_usec b)
{
    return a > b ? a : b;
}

static bool has_run(const struct weft_pace *pace)
{
    return pace->ended_us > 0;
}

void weft_pace_init(struct weft_pace *pace, weft_usec interval_us, weft_usec now_us)
{
    *pace = (struct weft_pace){
        .interval_us = interval_us, .look_us = now_us, .due_us = WEFT_NEVER, .vain_us = INT64_MIN};
}

void weft_pace_change(struct weft_pace *pace, weft_usec interval_us, weft_usec now_us)
{
    bool at_once = pace->interval_us == 0 || pace->failures > 0 || !has_run(pace);
    if (pace->interval_us == interval_us)
        return;
    pace->interval_us = interval_us;
    pace->look_us = at_once ? now_us : pace->ended_us + interval_us;
}

void weft_pace_expect(struct weft_pace *pace, weft_usec due_us)
{
    if (due_us > pace->vain_us)
        pace->due_us = earlier(pace->due_us, due_us);
}

bool weft_pace_looked(struct weft_pace *pace, weft_usec due_us, weft_usec period_us,
                      weft_usec now_us)
{
    weft_pace_expect(pace, due_us);
    /*
     * The poll replaces neither the first run nor a run after failures. Half a period is added so
     * that a poll that comes a little late does not cause a needless run.
     */
    bool look =
        due_us > now_us && pace->interval_us >= period_us && has_run(pace) && pace->failures == 0;
    if (look)
        pace->look_us = later(pace->look_us, now_us + pace->interval_us + period_us / 2);
    return look;
}

weft_usec weft_pace_next(const struct weft_pace *pace)
{
    if (pace->interval_us == 0 || pace->running)
        return WEFT_NEVER;
    weft_usec next_us = pace->failures ? pace->look_us : earlier(pace->look_us, pace->due_us);
    /* A due time may be long ago, but a scanner has waited at most since its last run. */
    return later(next_us, later(pace->ended_us, pace->hold_us));
}

size_t weft_pace_pick(const struct weft_pace *pace, const bool *barred, size_t count,
                      weft_usec now_us)
{
    size_t best = count;
    for (size_t i = 0; i < count; i++)
        if (!barred[i] && weft_pace_next(&pace[i]) <= now_us &&
            (best == count || weft_pace_next(&pace[i]) < weft_pace_next(&pace[best])))
            best = i;
    return best;
}

weft_usec weft_pace_rest(weft_usec took_us)
{
    return took_us > QUICK_US ? earlier(REST_FACTOR * took_us, REST_MAX_US) : 0;
}

void weft_pace_begin(struct weft_pace *pace, weft_usec now_us)
{
    pace->running = true;
    pace->began_us = now_us;
    pace->due_us = WEFT_NEVER; /* this run serves it; due times announced from now on are kept */
}

void weft_pace_end(struct weft_pace *pace, const struct weft_pace_run *run, weft_usec now_us)
{
    pace->running = false;
    pace->failures = 0;
    pace->more = run->more;
    pace->ended_us = now_us;
    pace->look_us = run->more ? now_us : now_us + pace->interval_us;
    if (!run->handled && !run->more) {
        pace->vain_us = pace->began_us;
        pace->look_us = later(pace->look_us, now_us + weft_pace_rest(now_us - pace->began_us));
    }
    if (pace->due_us <= pace->vain_us) /* announced while it ran */
        pace->due_us = WEFT_NEVER;
    weft_pace_expect(pace, run->due_us);
}

void weft_pace_fail(struct weft_pace *pace, weft_usec now_us, uint64_t random)
{
    pace->running = false;
    pace->failures++;
    pace->ended_us = now_us;
    pace->look_us = now_us + weft_pace_backoff(pace->interval_us,
                                               later(pace->interval_us, WEFT_PACE_SLOWEST_US),
                                               pace->failures, random);
}

weft_usec weft_pace_backoff(weft_usec first_us, weft_usec most_us, uint32_t failures,
                            uint64_t random)
{
    uint32_t doublings = failures > 0 ? failures - 1 : 0;
    weft_usec wait_us = first_us << (doublings < DOUBLINGS_MAX ? doublings : DOUBLINGS_MAX);
    wait_us = earlier(wait_us, most_us);
    return wait_us - wait_us / 2 + (weft_usec)(random % (uint64_t)(wait_us / 2 + 1));
}
