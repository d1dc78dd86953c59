/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_FLOW_FLOW_DRAW_H
#define WEFT_CMD_FLOW_FLOW_DRAW_H

/* Flows drawn. */

#include "cmd/cli/cli.h"

/* The flow and its nodes as a tree in the terminal; all: no node is left out of it. */
void weft_flow_draw(const struct weft_cli *cli, const struct weft_flow_page *page, bool all);
/* The graph for Graphviz. */
void weft_flow_dot(const struct weft_flow_page *page);
const char *weft_flow_color(enum weft_flow_state state); /* an SGR number */

#endif
