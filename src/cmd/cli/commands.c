/* SPDX-License-Identifier: Apache-2.0 */

/* The list of subcommands. */

#include "cmd/cli/cli.h"

#define X(name) extern const struct weft_command weft_command_##name;
#include "cmd/cli/commands.def"
#undef X

const struct weft_command *const weft_commands[] = {
#define X(name) &weft_command_##name,
#include "cmd/cli/commands.def"
#undef X
    NULL,
};
