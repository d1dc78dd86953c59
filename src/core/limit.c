/* SPDX-License-Identifier: Apache-2.0 */

#include "core/limit.h"

#include "base/clock.h"
#include "base/err.h"

/* A full window makes room again by one start at a time. To look for each of them would cost a
 * transaction each, so room is gathered for this part of the span: at most 1 % fewer starts. */
#define WINDOW_GRAINS 100
#define NS_PER_US     1000
#define BURSTS_MAX    1000 /* times the limit: the bucket is full again within 83 years */

static enum weft_rc check_number(int64_t number, int64_t least, int64_t most, const char *field,
                                 struct weft_err *err)
{
    if (number >= least && number <= most)
        return WEFT_OK;
    return weft_invalid(err, field, "%s is %lld, allowed are %lld to %lld", field,
                        (long long)number, (long long)least, (long long)most);
}

enum weft_rc weft_limits_check(const struct weft_limits *limits, struct weft_err *err)
{
    enum weft_rc rc = check_number(limits->max_running, 0, WEFT_LIMIT_MOST, "max_running", err);
    const struct weft_window *window = &limits->window;
    const struct weft_rate *rate = &limits->rate;
    bool windows = window->limit != 0 || window->per_ms != 0;
    bool rates = rate->limit != 0 || rate->per_ms != 0 || rate->burst != 0;
    if (!rc && windows)
        rc = check_number(window->limit, 1, WEFT_LIMIT_MOST, "window.limit", err);
    if (!rc && windows)
        rc = check_number(window->per_ms, 1, WEFT_LIMIT_PER_MAX, "window.per_ms", err);
    if (!rc && rates)
        rc = check_number(rate->limit, 1, WEFT_LIMIT_MOST, "rate.limit", err);
    if (!rc && rates)
        rc = check_number(rate->per_ms, 1, WEFT_LIMIT_PER_MAX, "rate.per_ms", err);
    int64_t burst_max =
        rate->limit < WEFT_LIMIT_MOST / BURSTS_MAX ? rate->limit * BURSTS_MAX : WEFT_LIMIT_MOST;
    if (!rc && rates)
        rc = check_number(rate->burst, 0, burst_max, "rate.burst", err);
    return rc;
}

bool weft_limits_set(const struct weft_limits *limits)
{
    return limits->max_running || limits->window.limit || limits->rate.limit;
}

static void lower(struct weft_limit_room *room, int64_t to, enum weft_limit_kind by)
{
    if (to < 0)
        to = 0;
    if (room->by != WEFT_LIMIT_NONE && room->room <= to)
        return;
    room->room = to;
    room->by = by;
}

weft_usec weft_window_span(const struct weft_window *window)
{
    weft_usec span_us = window->limit ? window->per_ms * WEFT_MS : 0;
    return span_us + span_us / WEFT_WINDOW_SLACK;
}

/* ---- Buckets --------------------------------------------------------------------------------- */

/* How long one token takes, rounded up: never more tokens than the rate. */
static int64_t token_ns(const struct weft_rate *rate)
{
    int64_t per_ns = rate->per_ms * WEFT_MS * NS_PER_US;
    return (per_ns + rate->limit - 1) / rate->limit;
}

static int64_t burst_of(const struct weft_rate *rate)
{
    return rate->burst ? rate->burst : rate->limit;
}

/* Tokens that are missing in the bucket now, a part of one counted as one. */
static int64_t missing(const struct weft_rate *rate, int64_t full_ns, weft_usec now_us)
{
    int64_t left_ns = full_ns - now_us * NS_PER_US, step_ns = token_ns(rate);
    return left_ns <= 0 ? 0 : (left_ns + step_ns - 1) / step_ns;
}

int64_t weft_rate_take(const struct weft_rate *rate, int64_t full_ns, weft_usec now_us,
                       int64_t count)
{
    int64_t now_ns = now_us * NS_PER_US;
    return (full_ns > now_ns ? full_ns : now_ns) + count * token_ns(rate);
}

/* When the next token is there, if there is none now. */
static weft_usec next_token(const struct weft_rate *rate, int64_t full_ns)
{
    int64_t at_ns = full_ns - (burst_of(rate) - 1) * token_ns(rate);
    return (at_ns + NS_PER_US - 1) / NS_PER_US;
}

/* ---- Room ------------------------------------------------------------------------------------ */

static void look_at_window(struct weft_limit_room *room, const struct weft_window *window,
                           const struct weft_limit_now *now)
{
    lower(room, window->limit - now->started - now->ready, WEFT_LIMIT_WINDOW);
    if (room->by != WEFT_LIMIT_WINDOW || room->room > 0)
        return;
    weft_usec grain_us = window->per_ms * WEFT_MS / WINDOW_GRAINS;
    /* Where none has started the first may do so now: no claim says that it has. */
    weft_usec oldest_us = now->started > 0 ? now->oldest_us : now->now_us;
    weft_usec frees_us = oldest_us + weft_window_span(window);
    weft_usec gathered_us = now->now_us + grain_us;
    room->next_us = frees_us > gathered_us ? frees_us : gathered_us;
}

static void look_at_rate(struct weft_limit_room *room, const struct weft_rate *rate,
                         const struct weft_limit_now *now)
{
    int64_t burst = burst_of(rate), left = burst - missing(rate, now->full_ns, now->now_us);
    int64_t unstarted = burst - now->ready; /* only a start makes room here */
    lower(room, left < unstarted ? left : unstarted, WEFT_LIMIT_RATE);
    if (room->by == WEFT_LIMIT_RATE && left <= 0)
        room->next_us = next_token(rate, now->full_ns);
}

struct weft_limit_room weft_limit_room(const struct weft_limits *limits,
                                       const struct weft_limit_now *now)
{
    struct weft_limit_room room = {.room = INT64_MAX, .next_us = WEFT_NEVER};
    if (limits->max_running)
        lower(&room, limits->max_running - now->ready - now->running, WEFT_LIMIT_RUNNING);
    if (limits->window.limit)
        look_at_window(&room, &limits->window, now);
    if (limits->rate.limit)
        look_at_rate(&room, &limits->rate, now);
    return room;
}
