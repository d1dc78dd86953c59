/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_ADMIN_LIMIT_ARGS_H
#define WEFT_CMD_ADMIN_LIMIT_ARGS_H

/* Windows and rates as options of commands and as cells of tables. */

#include "cmd/cli/output.h"
#include "weft/limits.h"

/* The options that weft_limit_args_read() reads. */
#define WEFT_LIMIT_OPTIONS                                                                         \
    {"window", 0, "N/TIME", "at most N starts in any span of TIME; 0: no limit", NULL},            \
        {"rate", 0, "N/TIME", "N starts in each TIME on average; 0: no limit", NULL},              \
    {                                                                                              \
        "burst", 0, "N", "with a rate: up to N at once; 0: as many as the rate", NULL              \
    }

/* Replaces what the command line names. */
void weft_limit_args_read(const struct weft_cli *cli, struct weft_window *window,
                          struct weft_rate *rate);

/* As they would be typed: 100/1m, and "-" for none. */
const char *weft_window_text(struct weft_arena *arena, const struct weft_window *window);
const char *weft_rate_text(struct weft_arena *arena, const struct weft_rate *rate);

#endif
