/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_TAP_H
#define WEFT_TESTS_TAP_H

/* The whole test framework: numbered lines that tools/run_tests, meson and prove understand. */

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Weak, so that the files of one program count together. */
__attribute__((weak)) int tap_count, tap_failed;

/* One point; the others end here. */
__attribute__((format(printf, 4, 0))) static inline bool
tap_point(bool pass, const char *file, int line, const char *fmt, va_list args)
{
    printf("%sok %d - ", pass ? "" : "not ", ++tap_count);
    vprintf(fmt, args);
    printf("\n");
    if (!pass) {
        tap_failed++;
        printf("# failed at %s:%d\n", file, line);
    }
    (void)fflush(stdout); /* a crash must not swallow what was proven before it */
    return pass;
}

__attribute__((format(printf, 4, 5))) static inline bool tap_ok(bool pass, const char *file,
                                                                int line, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    tap_point(pass, file, line, fmt, args);
    va_end(args);
    return pass;
}

struct tap_int {
    int64_t got, want;
};

__attribute__((format(printf, 4, 5))) static inline bool
tap_is_int(struct tap_int pair, const char *file, int line, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    bool pass = tap_point(pair.got == pair.want, file, line, fmt, args);
    va_end(args);
    if (!pass)
        printf("# got %" PRId64 ", wanted %" PRId64 "\n", pair.got, pair.want);
    return pass;
}

struct tap_str {
    const char *got, *want;
};

/* Not inlined, or gcc takes every text of a test for a possible NULL. Two NULLs are equal. */
__attribute__((noinline, unused, format(printf, 4, 5))) static bool
tap_is_str(struct tap_str pair, const char *file, int line, const char *fmt, ...)
{
    const char *got = pair.got ? pair.got : "(null)", *want = pair.want ? pair.want : "(null)";
    va_list args;
    va_start(args, fmt);
    bool pass = tap_point(!pair.got == !pair.want && strcmp(got, want) == 0, file, line, fmt, args);
    va_end(args);
    if (!pass)
        printf("# got '%s', wanted '%s'\n", got, want);
    return pass;
}

/* ok(truth, "name"), is_int(got, wanted, "name"), is_str(got, wanted, "name"); names are formats.
 */
#define ok(pass, ...) tap_ok(pass, __FILE__, __LINE__, __VA_ARGS__)
#define is_int(got, want, ...)                                                                     \
    tap_is_int((struct tap_int){(int64_t)(got), (int64_t)(want)}, __FILE__, __LINE__, __VA_ARGS__)
#define is_str(got, want, ...)                                                                     \
    tap_is_str((struct tap_str){(got), (want)}, __FILE__, __LINE__, __VA_ARGS__)

/* One point that could not be tried here, and why. */
static inline void tap_skip(const char *why)
{
    printf("ok %d # SKIP %s\n", ++tap_count, why);
}

static inline int tap_done(void)
{
    printf("1..%d\n", tap_count);
    return tap_failed != 0 || tap_count == 0;
}

#endif
