/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_CLI_FILTER_ARGS_H
#define WEFT_CMD_CLI_FILTER_ARGS_H

/*
 * The executions that a command is about: ids, or a filter from options. Both are checked before
 * the handle is opened; short forms of ids are looked up afterwards. What is wrong with them ends
 * the process.
 */

#include "cmd/cli/cli.h"

#define WEFT_STATE_WORDS                                                                           \
    "ready delayed blocked running suspended held succeeded failed cancelled expired skipped"

/* The rows of a table of options that weft_open_filter() reads. */
/* clang-format off */
#define WEFT_FILTER_OPTIONS                                                                        \
    {"lane", 'l', "NAME", "only executions of this lane", NULL},                                   \
    {"kind", 'k', "NAME", "only executions of this kind", NULL},                                   \
    {"state", 's', "STATE", "only executions in this state: " WEFT_STATE_WORDS, WEFT_STATE_WORDS}, \
    {"since", 0, "TIME", "only from then on: 1h for the last hour, or a moment; see below", NULL}, \
    {"until", 0, "TIME", "only before then: 1h ago, or a moment", NULL},                           \
    {"error-class", 0, "CLASS", "only executions that ended with an error of this class", NULL},   \
    {"worker", 0, "NAME", "only executions whose lease this worker holds, or held last", NULL},    \
    {"tenant", 0, "NAME", "only executions of this tenant", NULL},                                 \
    {"key", 0, "KEY", "only the one with this idempotency key", NULL},                             \
    {"flow", 0, "ID", "only members of this flow", NULL},                                          \
    {"escalated", 0, NULL, "only suspended ones that were left to an operator", NULL},             \
    {"tag", 0, "KEY=VALUE", "only executions with this tag", NULL}
/* clang-format on */

/* What --since and --until are compared with. */
enum weft_pick_time {
    WEFT_PICK_BY_STATE, /* when it ended, if --state is an ended state; else when it was created */
    WEFT_PICK_CREATED,
    WEFT_PICK_ENDED,
};

/* True when the command line names any part of a filter. */
bool weft_pick_is_filter(const struct weft_cli *cli);
/* "key=value", taken apart. */
struct weft_tag weft_pick_tag(const struct weft_cli *cli, const char *text);

/* Opens the handle. The filter of the options borrows from the cli. */
struct weft *weft_open_filter(struct weft_cli *cli, enum weft_pick_time time,
                              struct weft_filter *ret_filter);
/* Opens the handle. The first `count` arguments are ids; they live as long as the cli. */
struct weft *weft_open_ids(struct weft_cli *cli, size_t count, const struct weft_id **ret_ids);
/*
 * The id of a flow, whole or in short form. None of that form: WEFT_EXIT_NOT_FOUND; several: they
 * are listed, and none is taken.
 */
struct weft_id weft_find_flow(const struct weft_cli *cli, struct weft *weft, const char *text);

/* Executions that fit a filter, page by page: begin with .more = true. */
struct weft_pages {
    bool more;
    char next[512];        /* the cursor, empty at the end */
    struct weft_page page; /* the last one read; the caller frees it at the end */
};
WEFT_MUST_CHECK enum weft_rc weft_next_page(struct weft *weft, const struct weft_filter *filter,
                                            uint32_t limit, struct weft_pages *pages,
                                            struct weft_err *err);

#endif
