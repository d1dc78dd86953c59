/* SPDX-License-Identifier: Apache-2.0 */

#include "cmd/cli/amount_args.h"

#include "cmd/cli/text.h"
#include "core/budget.h"

#include <string.h>

static struct weft_amount read_one(const struct weft_cli *cli, const char *option, const char *text)
{
    struct weft_amount amount = {0};
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !weft_amount_typed(equals + 1, &amount.amount))
        weft_cli_usage(cli, "--%s is '%s': it must be DIMENSION=N, for example tokens=500k", option,
                       text);
    amount.dimension = weft_arena_printf(cli->arena, "%.*s", (int)(equals - text), text);
    return amount;
}

size_t weft_amounts_given(const struct weft_cli *cli, const char *option,
                          const struct weft_amount **ret_amount)
{
    const char *const *text;
    size_t given = weft_cli_all(cli, option, &text), room = given, count = 0;
    struct weft_err err = {0};
    for (size_t i = 0; i < given; i++)
        for (const char *comma = text[i]; (comma = strchr(comma, ',')); comma++)
            room++;
    struct weft_amount *amount = weft_new_array(cli->arena, struct weft_amount, room + 1);
    for (size_t i = 0; i < given; i++)
        for (const char *at = text[i], *next; at; at = next) {
            size_t size = strcspn(at, ",");
            next = at[size] ? at + size + 1 : NULL;
            amount[count++] =
                read_one(cli, option, weft_arena_printf(cli->arena, "%.*s", (int)size, at));
        }
    if (weft_amounts_check(amount, count, option, &err))
        weft_cli_usage(cli, "--%s: %s", option, err.text);
    *ret_amount = amount;
    return count;
}
