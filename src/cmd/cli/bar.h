/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_CLI_BAR_H
#define WEFT_CMD_CLI_BAR_H

/* Progress on stderr. */

#include "base/base.h"

/* A bar on stderr, only when that is a terminal; total 0: unknown, counts only. */
struct weft_bar;
struct weft_bar *weft_bar_new(const char *what, uint64_t total);
void weft_bar_set(struct weft_bar *bar, uint64_t done);
void weft_bar_free(struct weft_bar *bar); /* wipes the line */

#endif
