/* SPDX-License-Identifier: Apache-2.0 */

/* What people type: numbers, durations, sizes, moments. Nothing is guessed: a text is one of
 * these or it is not. */

#include "cmd/cli.h"

#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct unit {
    const char *word;
    int64_t factor;
};

static const struct unit times[] = {
    {"", 1000},     {"ms", 1},       {"s", 1000},           {"m", 60000},
    {"h", 3600000}, {"d", 86400000}, {"w", 7 * 86400000LL},
};

static const struct unit sizes[] = {
    {"", 1},          {"B", 1},         {"k", 1 << 10},     {"K", 1 << 10},
    {"KiB", 1 << 10}, {"M", 1 << 20},   {"MiB", 1 << 20},   {"G", 1 << 30},
    {"GiB", 1 << 30}, {"T", 1LL << 40}, {"TiB", 1LL << 40},
};

bool weft_number_typed(const char *text, int64_t *ret_number)
{
    char *end;
    const char *digits = text[0] == '-' ? text + 1 : text;
    if (digits[0] < '0' || digits[0] > '9')
        return false;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || *end != '\0')
        return false;
    *ret_number = number;
    return true;
}

/* A whole number and one of the units. */
static bool scaled(const char *text, const struct unit *unit, size_t units, int64_t *ret_number)
{
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno)
        return false;
    if (*end == ' ')
        end++;
    for (size_t i = 0; i < units; i++)
        if (strcmp(end, unit[i].word) == 0)
            return !__builtin_mul_overflow(number, unit[i].factor, ret_number);
    return false;
}

bool weft_duration_typed(const char *text, int64_t *ret_ms)
{
    return scaled(text, times, WEFT_LEN(times), ret_ms);
}

bool weft_size_typed(const char *text, int64_t *ret_bytes)
{
    return scaled(text, sizes, WEFT_LEN(sizes), ret_bytes);
}

/* ---- Moments --------------------------------------------------------------------------------- */

static bool digits(const char **at, size_t count, int *ret_number)
{
    int number = 0;
    for (size_t i = 0; i < count; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        number = number * 10 + (**at - '0');
    }
    *ret_number = number;
    return true;
}

static bool character(const char **at, const char *any_of)
{
    if (**at == '\0' || !strchr(any_of, **at))
        return false;
    (*at)++;
    return true;
}

static bool read_date(const char **at, struct tm *tm)
{
    return digits(at, 4, &tm->tm_year) && character(at, "-") && digits(at, 2, &tm->tm_mon) &&
           character(at, "-") && digits(at, 2, &tm->tm_mday) && tm->tm_mon >= 1 &&
           tm->tm_mon <= 12 && tm->tm_mday >= 1 && tm->tm_mday <= 31;
}

static bool read_time(const char **at, struct tm *tm)
{
    return digits(at, 2, &tm->tm_hour) && character(at, ":") && digits(at, 2, &tm->tm_min) &&
           character(at, ":") && digits(at, 2, &tm->tm_sec) && tm->tm_hour < 24 &&
           tm->tm_min < 60 && tm->tm_sec < 61;
}

/* ".5": at least one digit; those below microseconds are dropped. */
static bool read_fraction(const char **at, weft_usec *ret_us)
{
    weft_usec us = 0, unit = WEFT_SECOND / 10;
    if (!character(at, "."))
        return true;
    if (**at < '0' || **at > '9')
        return false;
    for (; **at >= '0' && **at <= '9'; (*at)++, unit /= 10)
        us += (**at - '0') * unit;
    *ret_us = us;
    return true;
}

/* Z or +02:00; in seconds east of Greenwich. */
static bool read_zone(const char **at, int *ret_east_s)
{
    int hours, minutes, sign = **at == '-' ? -1 : 1;
    if (character(at, "Zz")) {
        *ret_east_s = 0;
        return true;
    }
    if (!character(at, "+-") || !digits(at, 2, &hours) || !character(at, ":") ||
        !digits(at, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *ret_east_s = sign * (hours * 3600 + minutes * 60);
    return true;
}

static bool read_rfc3339(const char *text, weft_usec *ret_moment_us)
{
    struct tm tm = {0};
    weft_usec fraction_us = 0;
    int east_s;
    const char *at = text;
    if (!read_date(&at, &tm) || !character(&at, "Tt ") || !read_time(&at, &tm) ||
        !read_fraction(&at, &fraction_us) || !read_zone(&at, &east_s) || *at != '\0')
        return false;
    int day = tm.tm_mday, month = tm.tm_mon - 1;
    tm.tm_year -= 1900;
    tm.tm_mon = month;
    time_t seconds = timegm(&tm);
    if (tm.tm_mday != day || tm.tm_mon != month) /* the 30th of February */
        return false;
    *ret_moment_us = ((weft_usec)seconds - east_s) * WEFT_SECOND + fraction_us;
    return true;
}

weft_usec weft_wall_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (weft_usec)now.tv_sec * WEFT_SECOND + now.tv_nsec / 1000;
}

bool weft_moment_typed(const char *text, weft_usec *ret_moment_us)
{
    int64_t ms;
    if (text[0] != '+')
        return read_rfc3339(text, ret_moment_us);
    if (!weft_duration_typed(text + 1, &ms) || ms > INT64_MAX / 4 / WEFT_MS)
        return false;
    *ret_moment_us = weft_wall_us() + ms * WEFT_MS;
    return true;
}
