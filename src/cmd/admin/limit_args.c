/* SPDX-License-Identifier: Apache-2.0 */

#include "cmd/admin/limit_args.h"

#include "cmd/cli/text.h"

#include <inttypes.h>
#include <string.h>

/* N/TIME; 0 takes the limit away. */
static void read_per(const struct weft_cli *cli, const char *option, int64_t *limit,
                     int64_t *per_ms)
{
    const char *text = weft_cli_get(cli, option);
    if (!text)
        return;
    const char *slash = strchr(text, '/');
    const char *number =
        slash ? weft_arena_printf(cli->arena, "%.*s", (int)(slash - text), text) : text;
    *per_ms = 0;
    if (!weft_number_typed(number, limit) || (*limit != 0) != (slash != NULL) ||
        (slash && !weft_duration_typed(slash + 1, per_ms)))
        weft_cli_usage(cli, "--%s is '%s': it must be N/TIME, for example 100/1m, or 0", option,
                       text);
}

void weft_limit_args_read(const struct weft_cli *cli, struct weft_window *window,
                          struct weft_rate *rate)
{
    read_per(cli, "window", &window->limit, &window->per_ms);
    read_per(cli, "rate", &rate->limit, &rate->per_ms);
    if (weft_cli_has(cli, "rate"))
        rate->burst = 0;
    rate->burst = weft_cli_i64(cli, "burst", 0, 1000000000, rate->burst);
}

static const char *per_text(struct weft_arena *arena, int64_t limit, int64_t per_ms)
{
    if (limit == 0)
        return "-";
    return weft_arena_printf(arena, "%" PRId64 "/%s", limit, weft_duration_text(arena, per_ms));
}

const char *weft_window_text(struct weft_arena *arena, const struct weft_window *window)
{
    return per_text(arena, window->limit, window->per_ms);
}

const char *weft_rate_text(struct weft_arena *arena, const struct weft_rate *rate)
{
    const char *text = per_text(arena, rate->limit, rate->per_ms);
    return rate->burst ? weft_arena_printf(arena, "%s burst %" PRId64, text, rate->burst) : text;
}
