/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The calendar by arithmetic. Internally years begin in March, so that the leap day is the last day
 * of a year and 400 years are always 146,097 days.
 */

#include "base/moment.h"

#include "base/limits.h"

enum {
    DAY_S = 86400,
    ERA_DAYS = 146097,           /* 400 years */
    MARCH_0000_TO_1970 = 719468, /* days */
};

#define LAST_US (WEFT_MOMENT_MAX_US + WEFT_SECOND - 1)

struct date {
    int32_t year, month, day;
};

static struct date date_of(int64_t days)
{
    int64_t day = days + MARCH_0000_TO_1970;
    int32_t era = (int32_t)(day / ERA_DAYS);
    int32_t of_era = (int32_t)(day % ERA_DAYS);
    int32_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / (ERA_DAYS - 1)) / 365;
    int32_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int32_t march = (5 * of_year + 2) / 153; /* months since March: 153 days are 5 of them */
    struct date date = {
        .year = year + era * 400,
        .month = march < 10 ? march + 3 : march - 9,
        .day = of_year - (153 * march + 2) / 5 + 1,
    };
    date.year += date.month <= 2;
    return date;
}

static int64_t days_of(const struct date *date)
{
    int32_t year = date->year - (date->month <= 2);
    int32_t era = year / 400, of_era = year % 400;
    int32_t march = date->month > 2 ? date->month - 3 : date->month + 9;
    int32_t of_year = (153 * march + 2) / 5 + date->day - 1;
    return (int64_t)era * ERA_DAYS + (int64_t)of_era * 365 + of_era / 4 - of_era / 100 + of_year -
           MARCH_0000_TO_1970;
}

static int32_t days_in(const struct date *date)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = date->year % 4 == 0 && (date->year % 100 != 0 || date->year % 400 == 0);
    return days[date->month - 1] + (leap && date->month == 2);
}

static char *put(char *to, int32_t number, int digits)
{
    for (int i = digits - 1; i >= 0; i--, number /= 10)
        to[i] = (char)('0' + number % 10);
    return to + digits;
}

void weft_moment_print(weft_usec moment_us, char ret_text[WEFT_MOMENT_TEXT])
{
    if (moment_us < 0)
        moment_us = 0;
    if (moment_us > LAST_US)
        moment_us = LAST_US;
    struct date date = date_of(moment_us / WEFT_SECOND / DAY_S);
    int32_t second = (int32_t)(moment_us / WEFT_SECOND % DAY_S);
    char *to = put(ret_text, date.year, 4);
    *to++ = '-';
    to = put(to, date.month, 2);
    *to++ = '-';
    to = put(to, date.day, 2);
    *to++ = 'T';
    to = put(to, second / 3600, 2);
    *to++ = ':';
    to = put(to, second / 60 % 60, 2);
    *to++ = ':';
    to = put(to, second % 60, 2);
    *to++ = '.';
    to = put(to, (int32_t)(moment_us / WEFT_MS % 1000), 3);
    *to++ = 'Z';
    *to = '\0';
}

/* ---- Reading --------------------------------------------------------------------------------- */

struct cursor {
    const char *at, *end;
};

static bool take_number(struct cursor *in, int digits, int32_t *ret_number)
{
    int32_t number = 0;
    if (in->end - in->at < digits)
        return false;
    for (int i = 0; i < digits; i++, in->at++) {
        if (*in->at < '0' || *in->at > '9')
            return false;
        number = number * 10 + (*in->at - '0');
    }
    *ret_number = number;
    return true;
}

/* One character, in either case where it is a letter. */
static bool take(struct cursor *in, char c)
{
    if (in->at == in->end || (*in->at != c && !(c >= 'A' && c <= 'Z' && *in->at == (c | 0x20))))
        return false;
    in->at++;
    return true;
}

static bool take_date(struct cursor *in, struct date *ret_date)
{
    struct date date;
    if (!take_number(in, 4, &date.year) || !take(in, '-') || !take_number(in, 2, &date.month) ||
        !take(in, '-') || !take_number(in, 2, &date.day))
        return false;
    *ret_date = date;
    return date.year >= 1970 && date.month >= 1 && date.month <= 12 && date.day >= 1 &&
           date.day <= days_in(&date);
}

static bool take_time(struct cursor *in, weft_usec *ret_us)
{
    int32_t hour, minute, second;
    if (!take_number(in, 2, &hour) || !take(in, ':') || !take_number(in, 2, &minute) ||
        !take(in, ':') || !take_number(in, 2, &second) || hour > 23 || minute > 59 || second > 59)
        return false;
    weft_usec us = (weft_usec)(hour * 3600 + minute * 60 + second) * WEFT_SECOND;
    if (take(in, '.')) {
        int digits = 0;
        int32_t digit;
        for (weft_usec unit = WEFT_SECOND / 10; take_number(in, 1, &digit); unit /= 10, digits++)
            us += digit * unit;
        if (digits < 1 || digits > 9)
            return false;
    }
    *ret_us = us;
    return true;
}

static bool take_offset(struct cursor *in, weft_usec *ret_us)
{
    *ret_us = 0;
    if (take(in, 'Z'))
        return true;
    bool minus = take(in, '-');
    int32_t hour, minute;
    if ((!minus && !take(in, '+')) || !take_number(in, 2, &hour) || !take(in, ':') ||
        !take_number(in, 2, &minute) || hour > 23 || minute > 59)
        return false;
    weft_usec us = (weft_usec)(hour * 3600 + minute * 60) * WEFT_SECOND;
    *ret_us = minus ? -us : us;
    return true;
}

bool weft_moment_parse(const char *text, size_t size, weft_usec *ret_moment_us)
{
    struct cursor in = {.at = text, .end = text + size};
    struct date date;
    weft_usec time_us, offset_us;
    if (!take_date(&in, &date) || !take(&in, 'T') || !take_time(&in, &time_us) ||
        !take_offset(&in, &offset_us) || in.at != in.end)
        return false;
    weft_usec moment_us = days_of(&date) * DAY_S * WEFT_SECOND + time_us - offset_us;
    if (moment_us < 0 || moment_us > LAST_US)
        return false;
    *ret_moment_us = moment_us;
    return true;
}
