/* SPDX-License-Identifier: Apache-2.0 */

/* A bar on stderr, drawn at most ten times a second, and only where a person looks at it. */

#include "cmd/cli/bar.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/clock.h"
#include "cmd/cli/line.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { BAR_CELLS = 30 };

struct weft_bar {
    const char *what; /* borrowed */
    uint64_t total, done;
    weft_usec begun_us, drawn_us;
    bool shown;
};

struct weft_bar *weft_bar_new(const char *what, uint64_t total)
{
    const char *terminal = weft_env("TERM");
    struct weft_bar *bar = weft_alloc(1, sizeof(*bar));
    bar->what = what;
    bar->total = total;
    bar->begun_us = weft_boot_us();
    bar->shown = isatty(STDERR_FILENO) && terminal;
    return bar;
}

static void draw(const struct weft_bar *bar, weft_usec now_us)
{
    weft_usec spent_us = now_us - bar->begun_us;
    uint64_t per_s = spent_us > 0 ? bar->done * (uint64_t)WEFT_SECOND / (uint64_t)spent_us : 0;
    if (bar->total == 0) {
        (void)fprintf(stderr, "\r\033[K%s %" PRIu64 ", %" PRIu64 "/s", bar->what, bar->done, per_s);
        return;
    }
    uint64_t done = bar->done < bar->total ? bar->done : bar->total;
    int full = (int)(done * BAR_CELLS / bar->total);
    (void)fprintf(stderr, "\r\033[K%s [", bar->what);
    for (int i = 0; i < BAR_CELLS; i++)
        (void)fputc(i < full ? '#' : '.', stderr);
    (void)fprintf(stderr, "] %" PRIu64 "/%" PRIu64 ", %" PRIu64 "/s", done, bar->total, per_s);
}

void weft_bar_set(struct weft_bar *bar, uint64_t done)
{
    bar->done = done;
    if (!bar->shown)
        return;
    weft_usec now_us = weft_boot_us();
    if (bar->drawn_us && now_us - bar->drawn_us < WEFT_SECOND / 10 && done != bar->total)
        return;
    bar->drawn_us = now_us;
    draw(bar, now_us);
    (void)fflush(stderr);
}

void weft_bar_free(struct weft_bar *bar)
{
    if (bar && bar->shown)
        (void)fputs("\r\033[K", stderr);
    free(bar);
}
