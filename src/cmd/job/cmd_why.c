/* SPDX-License-Identifier: Apache-2.0 */

/* weft why: one sentence that says why an execution does not run. */

#include "cmd/cli/filter_args.h"
#include "cmd/cli/output.h"

static enum weft_exit run_why(struct weft_cli *cli)
{
    struct weft_err err = {0};
    struct weft_why why = {0};
    const struct weft_id *id;
    struct weft *weft = weft_open_ids(cli, 1, &id);
    if (weft_why(weft, id, &why, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli))
        weft_json_out_item(&weft_wire_why, &why);
    else
        printf("%s: %s\n", why.why, why.text);
    weft_why_free(&why);
    return WEFT_EXIT_OK;
}

const struct weft_command weft_command_why = {
    .name = "why",
    .args = "ID",
    .summary = "say why an execution does not run",
    .about =
        "Prints one word and one sentence that says what would make it run: its lane is paused or "
        "full, its gate is full or opens later, a budget has nothing left for it, its time has not "
        "come, nodes that it comes after have not ended, it waits for a signal, or no worker was "
        "seen that serves its lane with its capabilities. With --json the same as data.",
    .example = "weft why 01932c07\nweft why 01932c07 --json",
    .run = run_why,
};
