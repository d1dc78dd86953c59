/* SPDX-License-Identifier: Apache-2.0 */

#include "core/budget.h"

#include "base/clock.h"
#include "base/limits.h"
#include "core/spec.h"

#include <string.h>
#include <time.h>

/* ---- Checks ---------------------------------------------------------------------------------- */

static enum weft_rc check_dimension(const char *name, const char *field, struct weft_err *err)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    size_t size = name ? strlen(name) : 0;
    if (size > 0 && size <= WEFT_DIMENSION_NAME_MAX && strspn(name, allowed) == size)
        return WEFT_OK;
    return weft_invalid(err, field, "a dimension must be 1 to %d of A-Z a-z 0-9 _ . -",
                        WEFT_DIMENSION_NAME_MAX);
}

static enum weft_rc check_amount(int64_t amount, const char *dimension, const char *word,
                                 const char *field, struct weft_err *err)
{
    if (amount >= 0 && amount <= WEFT_AMOUNT_MOST)
        return WEFT_OK;
    return weft_invalid(err, field, "%s of '%s' is %lld, allowed are 0 to %lld", word, dimension,
                        (long long)amount, (long long)WEFT_AMOUNT_MOST);
}

static enum weft_rc check_count(size_t count, const char *field, struct weft_err *err)
{
    if (count <= WEFT_BUDGET_DIMENSIONS_MAX)
        return WEFT_OK;
    return weft_fail_field(err, WEFT_TOO_LARGE, field, "%zu dimensions, at most %d are allowed",
                           count, WEFT_BUDGET_DIMENSIONS_MAX);
}

enum weft_rc weft_amounts_check(const struct weft_amount *amount, size_t count, const char *field,
                                struct weft_err *err)
{
    enum weft_rc rc = check_count(count, field, err);
    for (size_t i = 0; i < count && !rc; i++) {
        rc = check_dimension(amount[i].dimension, field, err);
        if (!rc)
            rc = check_amount(amount[i].amount, amount[i].dimension, "the amount", field, err);
        for (size_t k = 0; k < i && !rc; k++)
            if (strcmp(amount[k].dimension, amount[i].dimension) == 0)
                rc = weft_invalid(err, field, "dimension '%s' is given twice", amount[i].dimension);
    }
    return rc;
}

static enum weft_rc check_limits(const struct weft_budget *budget, struct weft_err *err)
{
    enum weft_rc rc = check_count(budget->dimension_count, "dimensions", err);
    if (!rc && budget->dimension_count == 0)
        rc = weft_invalid(err, "dimensions", "a budget needs a dimension, for example tokens");
    for (size_t i = 0; i < budget->dimension_count && !rc; i++) {
        const struct weft_budget_dimension *own = &budget->dimension[i];
        rc = check_dimension(own->name, "dimensions", err);
        if (!rc)
            rc = check_amount(own->hard, own->name, "hard", "dimensions", err);
        if (!rc)
            rc = check_amount(own->soft, own->name, "soft", "dimensions", err);
        if (!rc)
            rc = check_amount(own->estimate, own->name, "estimate", "dimensions", err);
        if (!rc && own->hard > 0 && own->estimate > own->hard)
            rc = weft_invalid(err, "dimensions",
                              "estimate of '%s' is above hard: nothing could ever be claimed",
                              own->name);
        for (size_t k = 0; k < i && !rc; k++)
            if (strcmp(budget->dimension[k].name, own->name) == 0)
                rc = weft_invalid(err, "dimensions", "dimension '%s' is given twice", own->name);
    }
    return rc;
}

enum weft_rc weft_budget_check(const struct weft_budget *budget, struct weft_err *err)
{
    enum weft_rc rc = weft_name_check(budget->name, "budget", err);
    if (!rc && budget->match_lane)
        rc = weft_name_check(budget->match_lane, "match.lane", err);
    if (!rc && budget->match_kind)
        rc = weft_name_check(budget->match_kind, "match.kind", err);
    if (!rc && budget->match_tenant)
        rc = weft_name_check(budget->match_tenant, "match.tenant", err);
    if (!rc)
        rc = check_limits(budget, err);
    if (rc)
        return rc;
    if (budget->every_ms != 0 && budget->every_months != 0)
        return weft_invalid(err, "reset", "give every_ms or every_months, not both");
    if (budget->every_ms != 0 &&
        (budget->every_ms < WEFT_BUDGET_EVERY_MIN_MS || budget->every_ms > WEFT_DELAY_MAX_MS))
        return weft_invalid(err, "reset.every_ms", "every_ms must be %d to %lld (ten years)",
                            WEFT_BUDGET_EVERY_MIN_MS, (long long)WEFT_DELAY_MAX_MS);
    if (budget->every_months < 0 || budget->every_months > WEFT_BUDGET_MONTHS_MAX)
        return weft_invalid(err, "reset.every_months", "every_months must be 1 to %d",
                            WEFT_BUDGET_MONTHS_MAX);
    if (budget->anchor_us < 0 || budget->anchor_us > WEFT_MOMENT_MAX_US)
        return weft_invalid(err, "reset.anchor_at",
                            "anchor_at must be a moment between 1970 and 9999");
    if (budget->anchor_us != 0 && budget->every_ms == 0 && budget->every_months == 0)
        return weft_invalid(err, "reset", "anchor_at needs every_ms or every_months");
    if ((unsigned)budget->on_hard > WEFT_ON_HARD_CANCEL)
        return weft_invalid(err, "on_hard", "on_hard must be hold or cancel");
    return WEFT_OK;
}

/* ---- Periods --------------------------------------------------------------------------------- */

static int days_of_month(int year, int month) /* month from 0 */
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 1 && leap ? 29 : days[month];
}

static int64_t floor_of(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}

/* The anchor, so many months later. */
static weft_usec add_months(weft_usec anchor_us, int64_t months)
{
    time_t seconds = (time_t)(anchor_us / WEFT_SECOND);
    struct tm day;
    gmtime_r(&seconds, &day);
    int64_t month = (int64_t)day.tm_year * 12 + day.tm_mon + months;
    day.tm_year = (int)floor_of(month, 12); /* counted from 1900: it may be below 0 */
    day.tm_mon = (int)(month - (int64_t)day.tm_year * 12);
    int last = days_of_month(day.tm_year + 1900, day.tm_mon);
    if (day.tm_mday > last)
        day.tm_mday = last;
    return (weft_usec)timegm(&day) * WEFT_SECOND + anchor_us % WEFT_SECOND;
}

/* The number of the period that a moment lies in; the one that begins at the anchor is 0. */
static int64_t period_of(const struct weft_budget *budget, weft_usec now_us)
{
    if (budget->every_ms > 0)
        return floor_of(now_us - budget->anchor_us, budget->every_ms * WEFT_MS);
    time_t now = (time_t)(now_us / WEFT_SECOND), anchor = (time_t)(budget->anchor_us / WEFT_SECOND);
    struct tm to, from;
    gmtime_r(&now, &to);
    gmtime_r(&anchor, &from);
    int64_t months = (int64_t)(to.tm_year - from.tm_year) * 12 + to.tm_mon - from.tm_mon;
    int64_t period = floor_of(months, budget->every_months);
    /* In the month of its beginning the day decides. */
    return add_months(budget->anchor_us, period * budget->every_months) > now_us ? period - 1
                                                                                 : period;
}

static weft_usec begin_of(const struct weft_budget *budget, int64_t period)
{
    return budget->every_ms > 0 ? budget->anchor_us + period * budget->every_ms * WEFT_MS
                                : add_months(budget->anchor_us, period * budget->every_months);
}

weft_usec weft_budget_next_reset(const struct weft_budget *budget, weft_usec now_us)
{
    bool ends = budget->every_ms > 0 || budget->every_months > 0;
    return ends ? begin_of(budget, period_of(budget, now_us) + 1) : 0;
}

weft_usec weft_budget_period_began(const struct weft_budget *budget, weft_usec now_us)
{
    bool ends = budget->every_ms > 0 || budget->every_months > 0;
    return ends ? begin_of(budget, period_of(budget, now_us)) : now_us;
}

/* ---- Sums ------------------------------------------------------------------------------------ */

static int64_t most_of(const struct weft_sums *sums)
{
    return sums->hard > 0 ? sums->hard : WEFT_SUM_MOST;
}

bool weft_sums_fit(const struct weft_sums *sums, int64_t cost)
{
    int64_t most = most_of(sums);
    /* Without a cost it may begin as long as something is left to spend. */
    return sums->used < most && (cost == 0 || sums->used + sums->reserved + cost <= most);
}

int64_t weft_sums_left(const struct weft_sums *sums)
{
    int64_t left = most_of(sums) - sums->used;
    return left > 0 ? left : 0;
}

bool weft_sums_allow(const struct weft_sums *sums, const struct weft_lease_charge *charge,
                     int64_t total)
{
    return total <= charge->total || total - charge->total <= weft_sums_left(sums);
}

void weft_sums_report(struct weft_sums *sums, struct weft_lease_charge *charge, int64_t total)
{
    if (total <= charge->total)
        return;
    int64_t more = total - charge->total;
    int64_t freed = more < charge->reserved ? more : charge->reserved;
    sums->used += more;
    sums->reserved -= freed;
    charge->reserved -= freed;
    charge->total = total;
}

enum weft_budget_state weft_sums_state(const struct weft_sums *sums)
{
    if (sums->hard > 0 && sums->used >= sums->hard)
        return WEFT_BUDGET_HARD;
    return sums->soft > 0 && sums->used >= sums->soft ? WEFT_BUDGET_SOFT : WEFT_BUDGET_OK;
}

const char *weft_budget_state_word(enum weft_budget_state state)
{
    static const char *const word[] = {
        [WEFT_BUDGET_OK] = "ok", [WEFT_BUDGET_SOFT] = "soft", [WEFT_BUDGET_HARD] = "hard"};
    return word[state];
}
