/* SPDX-License-Identifier: Apache-2.0 */

/* Ids, moments, spans and foreign text as people see them; numbers, durations, sizes and moments as
 * people type them. Nothing is guessed: a text is one of these or it is not. */

#include "cmd/cli/text.h"

#include "base/arena.h"
#include "base/id.h"
#include "base/moment.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* ---- The terminal ---------------------------------------------------------------------------- */

size_t weft_width(void)
{
    const char *columns = weft_env("COLUMNS");
    int64_t width;
    if (columns && weft_number_typed(columns, &width) && width >= 20 && width <= 10000)
        return (size_t)width;
    struct winsize size;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 0;
}

bool weft_cli_color(const struct weft_cli *cli)
{
    const char *when = weft_cli_get(cli, "color");
    if (when && strcmp(when, "auto") != 0)
        return strcmp(when, "always") == 0;
    const char *terminal = weft_env("TERM");
    return isatty(STDOUT_FILENO) && !weft_env("NO_COLOR") &&
           !(terminal && strcmp(terminal, "dumb") == 0);
}

const char *weft_state_color(enum weft_state state)
{
    static const char *const color[WEFT_STATE_COUNT] = {
        [WEFT_STATE_READY] = "36",     [WEFT_STATE_RUNNING] = "34",   [WEFT_STATE_DELAYED] = "33",
        [WEFT_STATE_BLOCKED] = "33",   [WEFT_STATE_SUSPENDED] = "33", [WEFT_STATE_HELD] = "33",
        [WEFT_STATE_SUCCEEDED] = "32", [WEFT_STATE_FAILED] = "31",    [WEFT_STATE_EXPIRED] = "31",
        [WEFT_STATE_CANCELLED] = "90", [WEFT_STATE_SKIPPED] = "90",
    };
    return color[state];
}

void weft_put_painted(const char *color, const char *text)
{
    if (color)
        printf("\033[%sm%s\033[0m", color, text);
    else
        (void)fputs(text, stdout);
}

/* ---- Moments --------------------------------------------------------------------------------- */

struct unit_step {
    weft_usec below_us, unit_us;
    const char *unit;
};

static const struct unit_step *step_of(const struct unit_step *step, weft_usec span_us)
{
    while (span_us >= step->below_us && step->below_us < INT64_MAX)
        step++;
    return step;
}

void weft_ago(weft_usec moment_us, weft_usec now_us, char ret_text[WEFT_AGO_TEXT])
{
    static const struct unit_step steps[] = {
        {60 * WEFT_SECOND, WEFT_SECOND, "s"},
        {3600 * WEFT_SECOND, 60 * WEFT_SECOND, "m"},
        {86400 * WEFT_SECOND, 3600 * WEFT_SECOND, "h"},
        {INT64_MAX, 86400 * WEFT_SECOND, "d"},
    };
    bool future = moment_us > now_us;
    weft_usec distance = future ? moment_us - now_us : now_us - moment_us;
    const struct unit_step *step = step_of(steps, distance);
    if (moment_us == 0 || distance < WEFT_SECOND)
        (void)snprintf(ret_text, WEFT_AGO_TEXT, "%s", moment_us == 0 ? "-" : "now");
    else
        (void)snprintf(ret_text, WEFT_AGO_TEXT, "%s%" PRId64 " %s%s", future ? "in " : "",
                       distance / step->unit_us, step->unit, future ? "" : " ago");
}

void weft_span(weft_usec span_us, char ret_text[WEFT_AGO_TEXT])
{
    static const struct unit_step steps[] = {
        {WEFT_SECOND, WEFT_MS, "ms"},
        {100 * WEFT_SECOND, WEFT_SECOND, "s"},
        {6000 * WEFT_SECOND, 60 * WEFT_SECOND, "m"},
        {172800 * WEFT_SECOND, 3600 * WEFT_SECOND, "h"},
        {INT64_MAX, 86400 * WEFT_SECOND, "d"},
    };
    const struct unit_step *step = step_of(steps, span_us);
    int64_t tenths = span_us / (step->unit_us / 10);
    if (span_us >= WEFT_SECOND && tenths < 100 && tenths % 10)
        (void)snprintf(ret_text, WEFT_AGO_TEXT, "%" PRId64 ".%" PRId64 " %s", tenths / 10,
                       tenths % 10, step->unit);
    else
        (void)snprintf(ret_text, WEFT_AGO_TEXT, "%" PRId64 " %s", tenths / 10, step->unit);
}

const char *weft_joined(struct weft_arena *arena, const char *const *word, size_t count,
                        const char *separator)
{
    const char *text = "";
    for (size_t i = 0; i < count; i++)
        text = weft_arena_printf(arena, "%s%s%s", text, i ? separator : "", word[i]);
    return text;
}

void weft_last_line(const char *text, char *ret_text, size_t size)
{
    size_t end = strlen(text), start;
    while (end > 0 && strchr(" \t\r\n", text[end - 1]))
        end--;
    for (start = end; start > 0 && text[start - 1] != '\n'; start--)
        ;
    (void)snprintf(ret_text, size, "%.*s", (int)(end - start), text + start);
}

void weft_put_bytes(const void *data, size_t size)
{
    const char *text = data;
    if (size == 0)
        return;
    (void)fwrite(text, 1, size, stdout);
    if (text[size - 1] != '\n' && isatty(STDOUT_FILENO))
        putchar('\n');
}

void weft_put_clean(FILE *to, const char *text)
{
    size_t size = strlen(text), at = 0;
    while (at < size) {
        size_t step = weft_utf8_size(text + at, size - at);
        if (step > 0 && weft_text_printable(text + at, step))
            (void)fwrite(text + at, 1, step, to);
        else
            (void)fputc(text[at] == '\n' || text[at] == '\t' ? ' ' : '?', to);
        at += step > 0 ? step : 1;
    }
}

weft_usec weft_wall_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (weft_usec)now.tv_sec * WEFT_SECOND + now.tv_nsec / 1000;
}

/* ---- What people type ------------------------------------------------------------------------ */

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

static const struct unit amounts[] = {
    {"", 1}, {"k", 1000}, {"K", 1000}, {"M", 1000000}, {"G", 1000000000}, {"T", 1000000000000},
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

const char *weft_duration_text(struct weft_arena *arena, int64_t ms)
{
    static const struct {
        int64_t ms;
        const char *unit;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
    size_t unit = 0;
    while (ms % units[unit].ms != 0)
        unit++;
    return weft_arena_printf(arena, "%" PRId64 "%s", ms / units[unit].ms, units[unit].unit);
}

bool weft_size_typed(const char *text, int64_t *ret_bytes)
{
    return scaled(text, sizes, WEFT_LEN(sizes), ret_bytes);
}

bool weft_amount_typed(const char *text, int64_t *ret_amount)
{
    return scaled(text, amounts, WEFT_LEN(amounts), ret_amount);
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
