/* SPDX-License-Identifier: Apache-2.0 */

/* Moments: every day there is, the accepted texts, and the refused ones. */

#include "base/limits.h"
#include "base/moment.h"
#include "tap.h"

#define S(seconds) ((weft_usec)(seconds)*WEFT_SECOND)

struct form {
    const char *text;
    weft_usec want_us;
};

static void test_forms(void)
{
    static const struct form row[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01T00:00:00.000001Z", 1},
        {"1970-01-01T02:00:00+02:00", 0},
        {"1970-01-01T00:00:00-00:30", S(1800)},
        {"1970-01-01T00:00:00-00:00", 0},
        {"1970-01-01T00:00:00-23:59", S(86340)},
        {"2000-02-29T12:00:00Z", S(951825600)},
        {"2024-02-29t23:59:59z", S(1709251199)},
        {"2026-01-02T03:04:05.678Z", S(1767323045) + 678000},
        {"2026-01-02T03:04:05.6Z", S(1767323045) + 600000},
        {"2026-01-02T03:04:05.123456789Z", S(1767323045) + 123456},
        {"2026-01-02T03:04:05.999999999Z", S(1767323045) + 999999},
        {"2038-01-19T03:14:08Z", S(2147483648)},
        {"9999-12-31T23:59:59Z", WEFT_MOMENT_MAX_US},
        {"9999-12-31T23:59:59.999999Z", WEFT_MOMENT_MAX_US + 999999},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        weft_usec moment_us = -1;
        ok(weft_moment_parse(row[i].text, strlen(row[i].text), &moment_us), "%s is a moment",
           row[i].text);
        is_int(moment_us, row[i].want_us, "%s: the right one", row[i].text);
    }
}

static void test_refused(void)
{
    static const char *const row[] = {
        "",
        "2026",
        "2026-01-02",
        "2026-01-02T03:04:05",
        "2026-01-02T03:04Z",
        "2026-01-02 03:04:05Z",
        "2026-1-02T03:04:05Z",
        "+2026-01-02T03:04:05Z",
        "2026-00-02T03:04:05Z",
        "2026-13-02T03:04:05Z",
        "2026-01-00T03:04:05Z",
        "2026-01-32T03:04:05Z",
        "2026-04-31T03:04:05Z",
        "2026-02-29T03:04:05Z",
        "2024-02-30T03:04:05Z",
        "2100-02-29T03:04:05Z",
        "2026-01-02T24:00:00Z",
        "2026-01-02T03:60:05Z",
        "2026-01-02T23:59:60Z", /* no second of ours */
        "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05.1234567890Z",
        "2026-01-02T03:04:05,5Z",
        "2026-01-02T03:04:05.5",
        "2026-01-02T03:04:05+2:00",
        "2026-01-02T03:04:05+0200",
        "2026-01-02T03:04:05+02:60",
        "2026-01-02T03:04:05+24:00",
        "2026-01-02T03:04:05+02",
        "2026-01-02T03:04:05Z ",
        " 2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05ZZ",
        "2026-01-02T03:04:0aZ",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00+00:01",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-00:01",
        "10000-01-01T00:00:00Z",
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        weft_usec moment_us = -7;
        ok(!weft_moment_parse(row[i], strlen(row[i]), &moment_us) && moment_us == -7,
           "'%s' is none", row[i]);
    }
    weft_usec moment_us;
    static const char whole[] = "2026-01-02T03:04:05Z";
    bool cut = false;
    for (size_t size = 0; size < sizeof(whole) - 1; size++)
        cut = cut || weft_moment_parse(whole, size, &moment_us);
    ok(!cut, "no prefix of a moment is a moment");
}

static void test_print(void)
{
    static const struct form row[] = {
        {"1970-01-01T00:00:00.000Z", -1},
        {"1970-01-01T00:00:00.000Z", 999},
        {"1970-01-01T00:00:00.001Z", 1000},
        {"2026-01-02T03:04:05.678Z", S(1767323045) + 678999},
        {"9999-12-31T23:59:59.999Z", WEFT_NEVER},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        char text[WEFT_MOMENT_TEXT];
        weft_moment_print(row[i].want_us, text);
        is_str(text, row[i].text, "printed: %lld", (long long)row[i].want_us);
    }
}

/* Noon of every day from 1970 to 9999: printed, read back, and one day after the other. */
static void test_days(void)
{
    size_t wrong = 0;
    char before[WEFT_MOMENT_TEXT] = "";
    for (weft_usec at_us = S(43200); at_us < WEFT_MOMENT_MAX_US; at_us += S(86400)) {
        char text[WEFT_MOMENT_TEXT];
        weft_usec back_us;
        weft_moment_print(at_us, text);
        bool same = weft_moment_parse(text, strlen(text), &back_us) && back_us == at_us;
        wrong += !same || strcmp(before, text) >= 0;
        memcpy(before, text, sizeof(before));
    }
    is_int(wrong, 0, "every day is itself");
    is_str(before, "9999-12-31T12:00:00.000Z", "up to the last");
}

int main(void)
{
    test_forms();
    test_refused();
    test_print();
    test_days();
    return tap_done();
}
