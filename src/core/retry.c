/* SPDX-License-Identifier: Apache-2.0 */

/* Backoff and the choice between another attempt and the end. */

#include "core/retry.h"

#include <string.h>

#define JITTER 0.2 /* how far a random wait may be from the computed one, as a share of it */

weft_usec weft_retry_backoff(const struct weft_rules *rules, int32_t n, uint64_t random)
{
    double wait = (double)rules->initial_us;
    if (rules->backoff == WEFT_BACKOFF_EXPONENTIAL)
        for (int32_t i = 1; i < n && wait < (double)rules->max_us; i++)
            wait *= rules->factor;
    if (wait > (double)rules->max_us)
        wait = (double)rules->max_us;
    if (rules->jitter) {
        double least = wait * (1 - JITTER), most = wait * (1 + JITTER);
        /*
         * Drawn from what is left of the range below the ceiling, not cut afterwards: cutting would
         * give half of all executions at the ceiling the same wait.
         */
        if (most > (double)rules->max_us)
            most = (double)rules->max_us;
        double share = (double)(random >> 11) / (double)(1ull << 53); /* 53 bits fit a double */
        wait = least + (most - least) * share;
    }
    return (weft_usec)wait;
}

static bool in_no_retry(const struct weft_rules *rules, const char *error_class)
{
    for (size_t i = 0; error_class && i < rules->no_retry_count; i++)
        if (strcmp(rules->no_retry[i], error_class) == 0)
            return true;
    return false;
}

static bool is_final(const struct weft_rules *rules, const struct weft_live *live,
                     const struct weft_fault_report *report)
{
    return report->permanent || live->attempt - live->forgiven >= rules->max_attempts ||
           in_no_retry(rules, report->error_class);
}

struct weft_event weft_retry_decide(const struct weft_rules *rules, const struct weft_live *live,
                                    const struct weft_fault_report *report)
{
    struct weft_event event = {
        .kind = WEFT_EVENT_FAIL, .how = report->how, .now_us = report->now_us};
    if (is_final(rules, live, report))
        return event;

    weft_usec wait_us;
    if (report->retry_after_ms > 0)
        wait_us = report->retry_after_ms * WEFT_MS;
    else if (report->retry_after_ms < 0)
        wait_us = 0;
    else
        wait_us = weft_retry_backoff(rules, live->attempt - live->forgiven, report->random);
    event.kind = wait_us > 0 ? WEFT_EVENT_RETRY : WEFT_EVENT_RETRY_NOW;
    event.due_us = wait_us > 0 ? report->now_us + wait_us : 0;
    return event;
}

/*
 * is_final() read backwards. Whether the worker said "permanent" is not stored, but is the only
 * cause left when the others do not apply. A class in no_retry is named before the attempts are,
 * because more attempts would not have helped.
 */
static enum weft_not_retried not_retried(const struct weft_rules *rules,
                                         const struct weft_retry_facts *facts, int32_t used)
{
    if (facts->state != WEFT_STATE_FAILED)
        return WEFT_NOT_RETRIED_NONE;
    if (facts->ended == WEFT_ENDED_LOST)
        return WEFT_NOT_RETRIED_LOST;
    if (facts->ended == WEFT_ENDED_REFUSED)
        return WEFT_NOT_RETRIED_INVALID;
    if (in_no_retry(rules, facts->error_class))
        return WEFT_NOT_RETRIED_CLASS;
    return used >= rules->max_attempts ? WEFT_NOT_RETRIED_ATTEMPTS : WEFT_NOT_RETRIED_PERMANENT;
}

struct weft_retry_view weft_retry_look(const struct weft_rules *rules,
                                       const struct weft_retry_facts *facts)
{
    bool living = weft_state_living(facts->state);
    bool counts = living
                      ? facts->state == WEFT_STATE_RUNNING
                      : facts->ended == WEFT_ENDED_COMPLETED || facts->ended == WEFT_ENDED_FAILED ||
                            facts->ended == WEFT_ENDED_TIMED_OUT;
    int32_t used = facts->attempt - facts->forgiven - (counts ? 0 : 1);
    if (used < 0)
        used = 0;
    bool waits = facts->state == WEFT_STATE_DELAYED && used > 0;
    return (struct weft_retry_view){
        .used = used,
        .left = living && used < rules->max_attempts ? rules->max_attempts - used : 0,
        .next_us = waits ? facts->due_us : 0,
        .not_retried = not_retried(rules, facts, used),
    };
}

bool weft_attempt_overdue(const struct weft_live *live, weft_usec now_us)
{
    return live->attempt_deadline_us != 0 && live->attempt_deadline_us <= now_us;
}

struct weft_event weft_lost_decide(const struct weft_rules *rules, const struct weft_live *live,
                                   weft_usec forgive_us)
{
    if (live->due_us < forgive_us)
        return (struct weft_event){.kind = WEFT_EVENT_LOSE, .uncounted = true};
    if (live->lost + 1 > rules->max_lost)
        return (struct weft_event){.kind = WEFT_EVENT_FAIL, .how = WEFT_ENDED_LOST};
    return (struct weft_event){.kind = WEFT_EVENT_LOSE};
}
