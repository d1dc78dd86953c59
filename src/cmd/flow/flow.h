/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_FLOW_FLOW_H
#define WEFT_CMD_FLOW_FLOW_H

/* Flows from files (flow_file.c), and flows drawn (flow_draw.c). */

#include "cmd/cli/cli.h"

/*
 * Reads a flow from a file, "-" is standard input: JSON, in which // and block comments may stand.
 * All of it lives as long as the cli. Whatever needs no store is checked here, so that the error
 * names the line. A file that is wrong ends the process.
 */
struct weft_flow_file {
    struct weft_flow_spec spec;
    bool grows; /* its nodes may come after nodes that are not in it */
};
void weft_flow_file_read(const struct weft_cli *cli, const char *path, struct weft_flow_file *file);

/* The flow and its nodes as a tree in the terminal; all: no node is left out of it. */
void weft_flow_draw(const struct weft_cli *cli, const struct weft_flow_page *page, bool all);
/* The graph for Graphviz. */
void weft_flow_dot(const struct weft_flow_page *page);
const char *weft_flow_color(enum weft_flow_state state); /* an SGR number */

#endif
