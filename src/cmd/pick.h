/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_PICK_H
#define WEFT_CMD_PICK_H

/* Which executions a command is about: ids, or a filter from options. */

#include "cmd/cli.h"

#define WEFT_STATE_WORDS                                                                           \
    "ready delayed blocked running suspended held succeeded failed cancelled expired skipped"

/* The rows of a table of options that weft_pick_filter() reads. */
#define WEFT_FILTER_OPTIONS                                                                        \
    {.name = "lane", .letter = 'l', .value = "NAME", .about = "only those of this lane"},          \
        {.name = "kind", .letter = 'k', .value = "NAME", .about = "only those of this kind"},      \
        {.name = "state",                                                                          \
         .letter = 's',                                                                            \
         .value = "STATE",                                                                         \
         .about = "only those in this state",                                                      \
         .complete = WEFT_STATE_WORDS},                                                            \
        {.name = "tenant", .value = "NAME", .about = "only those of this tenant"},                 \
        {.name = "key", .value = "KEY", .about = "only the one with this idempotency key"},        \
        {.name = "flow", .value = "ID", .about = "only members of this flow"},                     \
    {                                                                                              \
        .name = "tag", .value = "KEY=VALUE", .about = "only those with this tag"                   \
    }

/* False: the story was told, and *ret_exit is the exit code. The filter borrows from the cli. */
WEFT_MUST_CHECK bool weft_pick_filter(const struct weft_cli *cli, struct weft_filter *ret_filter,
                                      enum weft_exit *ret_exit);
/* True when the command line names any part of a filter. */
bool weft_pick_is_filter(const struct weft_cli *cli);

/* The arguments as ids; they live as long as the cli. */
WEFT_MUST_CHECK bool weft_pick_ids(const struct weft_cli *cli, const struct weft_id **ret_ids,
                                   size_t *ret_count, enum weft_exit *ret_exit);

/* "key=value", taken apart; false: there is no = in it. */
WEFT_MUST_CHECK bool weft_pick_tag(const struct weft_cli *cli, const char *text,
                                   struct weft_tag *ret_tag);

#endif
