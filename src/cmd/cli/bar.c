/* SPDX-License-Identifier: Apache-2.0 */

/* The bar that shows how far a command is, on a terminal alone. */

#include "base/alloc.h"
#include "base/clock.h"
#include "cmd/cli/output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { BAR_CELLS = 30, AMOUNT_TEXT = 32 };

struct weft_bar {
    const char *what; /* borrowed */
    uint64_t total, done, before;
    weft_usec begun_us, drawn_us;
    bool shown, bytes;
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

void weft_bar_bytes(struct weft_bar *bar)
{
    bar->bytes = true;
}

void weft_bar_begin_at(struct weft_bar *bar, uint64_t done)
{
    bar->before = bar->done = done;
}

static const char *amount(const struct weft_bar *bar, double number, char ret_text[AMOUNT_TEXT])
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t i = 0;
    if (!bar->bytes) {
        (void)snprintf(ret_text, AMOUNT_TEXT, "%.0f", number);
        return ret_text;
    }
    while (number >= 1024 && i + 1 < WEFT_LEN(unit)) {
        number /= 1024;
        i++;
    }
    (void)snprintf(ret_text, AMOUNT_TEXT, "%.*f %s", i > 0 && number < 100, number, unit[i]);
    return ret_text;
}

static void draw(const struct weft_bar *bar, weft_usec now_us)
{
    char done_text[AMOUNT_TEXT], total_text[AMOUNT_TEXT], rate_text[AMOUNT_TEXT];
    char left_text[WEFT_AGO_TEXT];
    weft_usec spent_us = now_us - bar->begun_us;
    uint64_t done = bar->total && bar->done > bar->total ? bar->total : bar->done;
    double moved = done > bar->before ? (double)(done - bar->before) : 0;
    double per_s = spent_us > 0 ? moved * (double)WEFT_SECOND / (double)spent_us : 0;
    amount(bar, (double)done, done_text);
    amount(bar, per_s, rate_text);
    (void)fprintf(stderr, "\r\033[K%s ", bar->what);
    if (bar->total == 0) {
        (void)fprintf(stderr, "%s, %s/s", done_text, rate_text);
        return;
    }
    int full = (int)((double)done * BAR_CELLS / (double)bar->total);
    (void)fputc('[', stderr);
    for (int i = 0; i < BAR_CELLS; i++)
        (void)fputc(i < full ? '#' : '.', stderr);
    (void)fprintf(stderr, "] %s/%s, %s/s", done_text, amount(bar, (double)bar->total, total_text),
                  rate_text);
    if (per_s <= 0 || done == bar->total || spent_us < WEFT_SECOND)
        return;
    weft_span((weft_usec)((double)(bar->total - done) / per_s * (double)WEFT_SECOND), left_text);
    (void)fprintf(stderr, ", %s left", left_text);
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
