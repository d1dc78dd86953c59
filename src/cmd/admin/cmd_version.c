/* SPDX-License-Identifier: Apache-2.0 */

/* weft version */

#include "cmd/cli/cli.h"

#include "store/migrate.h"

#include <string.h>

static enum weft_exit run_version(struct weft_cli *cli)
{
    if (weft_cli_json(cli))
        printf("{\"version\":\"%s\",\"schema\":%zu}\n", weft_version(), weft_migration_count);
    else
        printf("weft %s\n", weft_version());
    return WEFT_EXIT_OK;
}

const struct weft_command weft_command_version = {
    .name = "version",
    .args = "",
    .no_store = true,
    .summary = "print the version",
    .about = "With --json also the number of the newest schema that this binary knows.",
    .example = "weft version --json",
    .run = run_version,
};
