/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_CLI_FILTER_ARGS_H
#define WEFT_CMD_CLI_FILTER_ARGS_H

/*
 * The executions that a command is about: ids, or a filter from options. Both are checked before
 * anything is opened; short forms of ids are looked up afterwards.
 */

#include "cmd/cli/cli.h"

#define WEFT_STATE_WORDS                                                                           \
    "ready delayed blocked running suspended held succeeded failed cancelled expired skipped"

/* The rows of a table of options that weft_pick_filter() reads. */
#define WEFT_FILTER_OPTIONS                                                                        \
    {.name = "lane", .letter = 'l', .value = "NAME", .about = "only those of this lane"},          \
        {.name = "kind", .letter = 'k', .value = "NAME", .about = "only those of this kind"},      \
        {.name = "state",                                                                          \
         .letter = 's',                                                                            \
         .value = "STATE",                                                                         \
         .about = "only those in this state: " WEFT_STATE_WORDS,                                   \
         .complete = WEFT_STATE_WORDS},                                                            \
        {.name = "since",                                                                          \
         .value = "TIME",                                                                          \
         .about = "only from then on: 1h for the last hour, or a moment; see below"},              \
        {.name = "until", .value = "TIME", .about = "only before then: 1h ago, or a moment"},      \
        {.name = "error-class",                                                                    \
         .value = "CLASS",                                                                         \
         .about = "only those that ended with an error of this class"},                            \
        {.name = "worker",                                                                         \
         .value = "NAME",                                                                          \
         .about = "only those whose lease this worker holds, or held last"},                       \
        {.name = "tenant", .value = "NAME", .about = "only those of this tenant"},                 \
        {.name = "key", .value = "KEY", .about = "only the one with this idempotency key"},        \
        {.name = "flow", .value = "ID", .about = "only members of this flow"},                     \
    {                                                                                              \
        .name = "tag", .value = "KEY=VALUE", .about = "only those with this tag"                   \
    }

/* What --since and --until are compared with. */
enum weft_pick_time {
    WEFT_PICK_BY_STATE, /* when it ended, if --state is an ended state; else when it was created */
    WEFT_PICK_CREATED,
    WEFT_PICK_ENDED,
};

/*
 * False: the error was printed, and *ret_exit is the exit code. The filter borrows from the cli. A
 * --flow in short form is left to weft_find_filter().
 */
WEFT_MUST_CHECK bool weft_pick_filter(const struct weft_cli *cli, enum weft_pick_time time,
                                      struct weft_filter *ret_filter, enum weft_exit *ret_exit);
/* True when the command line names any part of a filter. */
bool weft_pick_is_filter(const struct weft_cli *cli);

/* Checks that the first `count` arguments are ids or short forms of ids. */
WEFT_MUST_CHECK bool weft_pick_ids(const struct weft_cli *cli, size_t count,
                                   enum weft_exit *ret_exit);

/* "key=value", taken apart; false: there is no = in it. */
WEFT_MUST_CHECK bool weft_pick_tag(const struct weft_cli *cli, const char *text,
                                   struct weft_tag *ret_tag);

/* ---- With an open handle (find_execution.c) -------------------------------------------------- */

/* The first `count` arguments as ids; they live as long as the cli. */
WEFT_MUST_CHECK bool weft_find_ids(const struct weft_cli *cli, struct weft *weft, size_t count,
                                   const struct weft_id **ret_ids, enum weft_exit *ret_exit);
/* One id, whole or in short form. None: WEFT_EXIT_NOT_FOUND; several: they are listed. */
WEFT_MUST_CHECK bool weft_find_flow(const struct weft_cli *cli, struct weft *weft, const char *text,
                                    struct weft_id *ret_id, enum weft_exit *ret_exit);
/* What weft_pick_filter() left open. */
WEFT_MUST_CHECK bool weft_find_filter(const struct weft_cli *cli, struct weft *weft,
                                      struct weft_filter *filter, enum weft_exit *ret_exit);

#endif
