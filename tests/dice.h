/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_DICE_H
#define WEFT_TESTS_DICE_H

/* Random numbers from a seed, and the log of what was done with them; shared by the models. */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DIARY_LINES = 300, DIARY_WIDTH = 400 };

/* The last operations of a run, each with its step. */
struct diary {
    char line[DIARY_LINES][DIARY_WIDTH];
    size_t count; /* also of lines that are gone */
};

size_t dice_below(uint64_t *random, size_t bound); /* 0 .. bound - 1 */
bool dice_chance(uint64_t *random, unsigned percent);
/* One of `count` rows, each as often as its share says; they are `stride` bytes apart. */
size_t dice_share(uint64_t *random, const unsigned *share, size_t stride, size_t count);

__attribute__((format(printf, 3, 0))) void diary_add(struct diary *diary, size_t step,
                                                     const char *fmt, va_list args);
/* Says what is not as it must be in a step of a seed. */
__attribute__((format(printf, 3, 0))) void print_wrong(uint64_t seed, size_t step, const char *fmt,
                                                       va_list args);
/* Prints the last `most` lines as comments of TAP. */
void diary_print(const struct diary *diary, size_t most);

#endif
