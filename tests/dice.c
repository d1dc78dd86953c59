/* SPDX-License-Identifier: Apache-2.0 */

/* See dice.h. */

#include "dice.h"
#include "support.h"

size_t dice_below(uint64_t *random, size_t bound)
{
    return bound ? (size_t)(splitmix64(random) % bound) : 0;
}

bool dice_chance(uint64_t *random, unsigned percent)
{
    return dice_below(random, 100) < percent;
}

static unsigned share_at(const unsigned *share, size_t stride, size_t i)
{
    return *(const unsigned *)(const void *)((const char *)share + i * stride);
}

size_t dice_share(uint64_t *random, const unsigned *share, size_t stride, size_t count)
{
    unsigned all = 0;
    for (size_t i = 0; i < count; i++)
        all += share_at(share, stride, i);
    size_t at = dice_below(random, all), which = 0;
    while (at >= share_at(share, stride, which))
        at -= share_at(share, stride, which++);
    return which;
}

void diary_add(struct diary *diary, size_t step, const char *fmt, va_list args)
{
    char *line = diary->line[diary->count++ % DIARY_LINES];
    int used = snprintf(line, DIARY_WIDTH, "%zu: ", step);
    (void)vsnprintf(line + used, DIARY_WIDTH - (size_t)used, fmt, args);
}

void print_wrong(uint64_t seed, size_t step, const char *fmt, va_list args)
{
    printf("# seed %" PRIu64 ", step %zu: ", seed, step);
    vprintf(fmt, args);
    printf("\n");
}

void diary_print(const struct diary *diary, size_t most)
{
    size_t count = diary->count < DIARY_LINES ? diary->count : DIARY_LINES;
    count = count < most ? count : most;
    for (size_t i = 0; i < count; i++)
        printf("#   %s\n", diary->line[(diary->count - count + i) % DIARY_LINES]);
}
