/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_FLOW_FLOW_FILE_H
#define WEFT_CMD_FLOW_FLOW_FILE_H

/* Flows from files. */

#include "cmd/cli/cli.h"

/*
 * Reads a flow from a file, "-" is standard input: JSON, in which // and block comments may stand.
 * All of it lives as long as the cli. Whatever needs no store is checked here, so that the error
 * names the line. False: the error has been printed.
 */
struct weft_flow_file {
    struct weft_flow_spec spec;
    bool grows; /* its nodes may come after nodes that are not in it */
};
WEFT_MUST_CHECK bool weft_flow_file_read(const struct weft_cli *cli, const char *path,
                                         struct weft_flow_file *file, enum weft_exit *ret_exit);

#endif
