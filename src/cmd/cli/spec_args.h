/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_CLI_SPEC_ARGS_H
#define WEFT_CMD_CLI_SPEC_ARGS_H

/* A spec from the options and the argument of `weft submit`. */

#include "cmd/cli/cli.h"

extern const struct weft_option weft_submit_options[];

/*
 * Fills *ret_spec; all of it lives as long as the cli. Without a kind it is for specs that come
 * from elsewhere and is not complete. False: the story was told, *ret_exit is the exit code.
 */
WEFT_MUST_CHECK bool weft_spec_typed(const struct weft_cli *cli, struct weft_spec *ret_spec,
                                     enum weft_exit *ret_exit);
/* Standard input is a pipe or a file. Not so: a terminal, /dev/null, a socket. */
bool weft_input_piped(void);
extern const char weft_payload_piped[]; /* as an argument: standard input, if there is any */
/* The payload: the argument itself, @FILE, or - for standard input. NULL: there is none. */
WEFT_MUST_CHECK bool weft_payload_typed(const struct weft_cli *cli, const char *argument,
                                        struct weft_spec *spec, enum weft_exit *ret_exit);

#endif
