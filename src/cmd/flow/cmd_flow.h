/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_FLOW_CMD_FLOW_H
#define WEFT_CMD_FLOW_CMD_FLOW_H

/* The parts of `weft flow`: flows from files, and flows drawn. */

#include "cmd/cli/line.h"

/* ---- flow_file.c ----------------------------------------------------------------------------- */

/*
 * Reads a flow from a file, "-" is standard input: JSON, in which // and block comments may stand.
 * All of it lives as long as the cli. Everything that can be told without the store is checked
 * here, so that the story can tell the line. False: it has been told.
 */
struct weft_flow_file {
    struct weft_flow_spec spec;
    bool grows; /* its nodes may come after nodes that are not in it */
};
WEFT_MUST_CHECK bool weft_flow_file_read(const struct weft_cli *cli, const char *path,
                                         struct weft_flow_file *file, enum weft_exit *ret_exit);

/* ---- flow_draw.c ----------------------------------------------------------------------------- */

/* The flow and its nodes as a tree in the terminal; all: no node is left out of it. */
void weft_flow_draw(const struct weft_cli *cli, const struct weft_flow_page *page, bool all);
/* The graph for Graphviz. */
void weft_flow_dot(const struct weft_flow_page *page);
const char *weft_flow_color(enum weft_flow_state state); /* an SGR number */

#endif
