/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_CLI_AMOUNT_ARGS_H
#define WEFT_CMD_CLI_AMOUNT_ARGS_H

/* Amounts of dimensions as options: --cost tokens=1M,usd=500, as often as wanted. */

#include "cmd/cli/cli.h"

/* All of them in the order given; they live as long as the cli. What is wrong with them ends the
 * process. */
size_t weft_amounts_given(const struct weft_cli *cli, const char *option,
                          const struct weft_amount **ret_amount);

#endif
