/* SPDX-License-Identifier: Apache-2.0 */

/* When the periods of budgets begin and end. */

#include "core/budget.h"

#include "base/clock.h"
#include "base/moment.h"
#include "tap.h"

#include <string.h>

static weft_usec at(const char *text)
{
    weft_usec moment_us = 0;
    if (!weft_moment_parse(text, strlen(text), &moment_us))
        ok(false, "%s is a moment", text);
    return moment_us;
}

enum { SECOND_MS = 1000, HOUR_MS = 3600000, DAY_MS = 86400000 };

/* A period: the moment, when the period that it lies in began, and when it ends. */
static const struct {
    const char *name;
    int64_t every_ms;
    int32_t months;
    const char *anchor, *now, *began, *next;
} periods[] = {
    {"days since 1970", DAY_MS, 0, "1970-01-01T00:00:00Z", "2026-07-30T15:16:17.5Z",
     "2026-07-30T00:00:00.000Z", "2026-07-31T00:00:00.000Z"},
    {"days from six in the morning", DAY_MS, 0, "2020-05-05T06:00:00Z", "2026-07-30T05:59:59.999Z",
     "2026-07-29T06:00:00.000Z", "2026-07-30T06:00:00.000Z"},
    {"a moment on the boundary is in the new period", DAY_MS, 0, "2020-05-05T06:00:00Z",
     "2026-07-30T06:00:00Z", "2026-07-30T06:00:00.000Z", "2026-07-31T06:00:00.000Z"},
    {"a microsecond before it is in the old one", DAY_MS, 0, "2020-05-05T06:00:00Z",
     "2026-07-30T05:59:59.999999Z", "2026-07-29T06:00:00.000Z", "2026-07-30T06:00:00.000Z"},
    {"an anchor in the future counts backwards", HOUR_MS, 0, "2030-01-01T00:30:00Z",
     "2026-07-30T15:16:17Z", "2026-07-30T14:30:00.000Z", "2026-07-30T15:30:00.000Z"},
    {"on a boundary before the anchor", HOUR_MS, 0, "2030-01-01T00:30:00Z", "2026-07-30T15:30:00Z",
     "2026-07-30T15:30:00.000Z", "2026-07-30T16:30:00.000Z"},
    {"at the anchor", INT64_C(7) * HOUR_MS, 0, "2026-07-30T15:30:00Z", "2026-07-30T15:30:00Z",
     "2026-07-30T15:30:00.000Z", "2026-07-30T22:30:00.000Z"},
    {"a microsecond before the anchor", INT64_C(7) * HOUR_MS, 0, "2026-07-30T15:30:00Z",
     "2026-07-30T15:29:59.999999Z", "2026-07-30T08:30:00.000Z", "2026-07-30T15:30:00.000Z"},
    {"seconds", SECOND_MS, 0, "2026-01-01T00:00:00.25Z", "2026-07-30T15:16:17.1Z",
     "2026-07-30T15:16:16.250Z", "2026-07-30T15:16:17.250Z"},
    {"months from the first", 0, 1, "1970-01-01T00:00:00Z", "2026-07-30T15:16:17Z",
     "2026-07-01T00:00:00.000Z", "2026-08-01T00:00:00.000Z"},
    {"months, on the boundary", 0, 1, "1970-01-01T00:00:00Z", "2026-08-01T00:00:00Z",
     "2026-08-01T00:00:00.000Z", "2026-09-01T00:00:00.000Z"},
    {"months, a microsecond before", 0, 1, "1970-01-01T00:00:00Z", "2026-07-31T23:59:59.999999Z",
     "2026-07-01T00:00:00.000Z", "2026-08-01T00:00:00.000Z"},
    {"months, across the end of a year", 0, 1, "2000-06-15T12:00:00Z", "2026-12-20T00:00:00Z",
     "2026-12-15T12:00:00.000Z", "2027-01-15T12:00:00.000Z"},
    {"months, in January before the day", 0, 1, "2000-06-15T12:00:00Z", "2027-01-15T11:59:59Z",
     "2026-12-15T12:00:00.000Z", "2027-01-15T12:00:00.000Z"},
    {"the 31st is the last day of February", 0, 1, "2026-01-31T08:00:00Z", "2026-02-10T00:00:00Z",
     "2026-01-31T08:00:00.000Z", "2026-02-28T08:00:00.000Z"},
    {"and of a February with a leap day", 0, 1, "2026-01-31T08:00:00Z", "2028-02-28T09:00:00Z",
     "2028-01-31T08:00:00.000Z", "2028-02-29T08:00:00.000Z"},
    {"and the 31st again in March", 0, 1, "2026-01-31T08:00:00Z", "2026-02-28T08:00:00Z",
     "2026-02-28T08:00:00.000Z", "2026-03-31T08:00:00.000Z"},
    {"and the 30th in April", 0, 1, "2026-01-31T08:00:00Z", "2026-04-30T07:59:59Z",
     "2026-03-31T08:00:00.000Z", "2026-04-30T08:00:00.000Z"},
    {"a year from a leap day", 0, 12, "2024-02-29T00:00:00Z", "2026-07-30T00:00:00Z",
     "2026-02-28T00:00:00.000Z", "2027-02-28T00:00:00.000Z"},
    {"a year from a leap day into the next one", 0, 12, "2024-02-29T00:00:00Z",
     "2027-03-01T00:00:00Z", "2027-02-28T00:00:00.000Z", "2028-02-29T00:00:00.000Z"},
    {"no leap day in 2100", 0, 12, "2096-02-29T00:00:00Z", "2100-02-28T12:00:00Z",
     "2100-02-28T00:00:00.000Z", "2101-02-28T00:00:00.000Z"},
    {"a leap day in 2000", 0, 12, "1996-02-29T00:00:00Z", "2000-02-28T12:00:00Z",
     "1999-02-28T00:00:00.000Z", "2000-02-29T00:00:00.000Z"},
    {"quarters", 0, 3, "2026-01-31T00:00:00Z", "2026-05-10T00:00:00Z", "2026-04-30T00:00:00.000Z",
     "2026-07-31T00:00:00.000Z"},
    {"quarters before an anchor in the future", 0, 3, "2030-01-31T00:00:00Z",
     "2026-05-10T00:00:00Z", "2026-04-30T00:00:00.000Z", "2026-07-31T00:00:00.000Z"},
    {"months, at an anchor in the future", 0, 5, "2030-08-31T00:00:00Z", "2030-08-31T00:00:00Z",
     "2030-08-31T00:00:00.000Z", "2031-01-31T00:00:00.000Z"},
    {"months, a microsecond before the anchor", 0, 5, "2030-08-31T00:00:00Z",
     "2030-08-30T23:59:59.999999Z", "2030-03-31T00:00:00.000Z", "2030-08-31T00:00:00.000Z"},
    {"the longest period", 0, WEFT_BUDGET_MONTHS_MAX, "1990-12-31T00:00:00Z",
     "2026-05-10T00:00:00Z", "1990-12-31T00:00:00.000Z", "2090-12-31T00:00:00.000Z"},
    {"the longest period before the last anchor", 0, WEFT_BUDGET_MONTHS_MAX, "9999-12-31T23:59:59Z",
     "2026-05-10T00:00:00Z", "1999-12-31T23:59:59.000Z", "2099-12-31T23:59:59.000Z"},
};

static struct weft_budget budget_of(int64_t every_ms, int32_t months, weft_usec anchor_us)
{
    return (struct weft_budget){
        .every_ms = every_ms, .every_months = months, .anchor_us = anchor_us};
}

static void test_periods(void)
{
    char text[WEFT_MOMENT_TEXT];
    for (size_t i = 0; i < WEFT_LEN(periods); i++) {
        struct weft_budget budget =
            budget_of(periods[i].every_ms, periods[i].months, at(periods[i].anchor));
        weft_usec now_us = at(periods[i].now);
        weft_moment_print(weft_budget_period_began(&budget, now_us), text);
        is_str(text, periods[i].began, "%s: the period began", periods[i].name);
        weft_moment_print(weft_budget_next_reset(&budget, now_us), text);
        is_str(text, periods[i].next, "%s: the period ends", periods[i].name);
    }
    struct weft_budget never = {.anchor_us = at("2026-01-01T00:00:00Z")};
    is_int(weft_budget_next_reset(&never, 5), 0, "a period without a length has no end");
    is_int(weft_budget_period_began(&never, 5), 5, "and begins whenever it is asked for");
}

static uint32_t roll(uint64_t *random, uint32_t sides)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33) % sides;
}

/* A period has its beginning and not its end, and the next one begins there. */
static void test_periods_at_random(void)
{
    enum { TRIES = 20000 };
    uint64_t random = 11;
    const char *wrong = NULL;
    for (int i = 0; i < TRIES && !wrong; i++) {
        bool by_months = roll(&random, 2);
        weft_usec anchor_us =
            (weft_usec)roll(&random, 1u << 31) * WEFT_SECOND * 2 + roll(&random, 1000000);
        weft_usec now_us =
            (weft_usec)roll(&random, 1u << 31) * WEFT_SECOND * 2 + roll(&random, 1000000);
        struct weft_budget budget =
            budget_of(by_months ? 0 : 1000 + (int64_t)roll(&random, 1u << 30),
                      by_months ? 1 + (int32_t)roll(&random, 1200) : 0, anchor_us);
        weft_usec began_us = weft_budget_period_began(&budget, now_us);
        weft_usec next_us = weft_budget_next_reset(&budget, now_us);
        if (began_us > now_us || next_us <= now_us)
            wrong = "a moment does not lie in its period";
        else if (weft_budget_period_began(&budget, next_us) != next_us)
            wrong = "the next period does not begin at the end of the one before";
        else if (weft_budget_next_reset(&budget, next_us - 1) != next_us ||
                 weft_budget_period_began(&budget, next_us - 1) != began_us)
            wrong = "the last microsecond is in another period";
        else if (weft_budget_period_began(&budget, anchor_us) != anchor_us)
            wrong = "no period begins at the anchor";
    }
    ok(!wrong, "%d random periods: %s", TRIES, wrong ? wrong : "they cover time without a gap");
}

int main(void)
{
    test_periods();
    test_periods_at_random();
    return tap_done();
}
