/* SPDX-License-Identifier: Apache-2.0 */

/* What people type: numbers, durations, sizes, moments. Nothing is guessed: a text is one of
 * these or it is not. */

#include "cmd/cli/typed.h"

#include "base/base.h"
#include "base/moment.h"
#include "cmd/cli/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
    for (size_t i = 0; i < units; i++) {
        if (strcmp(end, unit[i].word) != 0)
            continue;
        if (number > INT64_MAX / unit[i].factor)
            return false;
        *ret_number = number * unit[i].factor;
        return true;
    }
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

/* A duration; one without a unit only behind a +, because a number alone may be meant as a year. */
static bool is_distance(const char *text, int64_t *ret_ms)
{
    int64_t number;
    return (text[0] == '+' || !weft_number_typed(text, &number)) &&
           weft_duration_typed(text + (text[0] == '+'), ret_ms) &&
           *ret_ms <= INT64_MAX / 4 / WEFT_MS;
}

bool weft_moment_typed(const char *text, weft_usec *ret_moment_us)
{
    int64_t ms;
    if (weft_moment_parse(text, strlen(text), ret_moment_us))
        return true;
    if (!is_distance(text, &ms))
        return false;
    *ret_moment_us = weft_wall_us() + ms * WEFT_MS;
    return true;
}

bool weft_past_typed(const char *text, weft_usec *ret_moment_us)
{
    int64_t ms;
    if (weft_moment_parse(text, strlen(text), ret_moment_us))
        return true;
    weft_usec now_us = weft_wall_us();
    if (text[0] == '+' || !is_distance(text, &ms) || ms > now_us / WEFT_MS)
        return false;
    *ret_moment_us = now_us - ms * WEFT_MS;
    return true;
}
