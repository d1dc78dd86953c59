/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_BATCH_BATCH_FOLLOW_H
#define WEFT_CMD_BATCH_BATCH_FOLLOW_H

/* How far a batch is: shown once, or until it has ended. Every failure has been printed. */

#include "cmd/cli/output.h"

const char *weft_batch_color(const struct weft_batch_info *batch); /* of its status, or NULL */
enum weft_exit weft_batch_show(const struct weft_cli *cli, struct weft *weft,
                               const struct weft_id *id);
/*
 * Shows how far it is, until it has ended or the command is interrupted: a bar on a terminal, lines
 * on stderr otherwise. Then tells what came of it, which is the exit code.
 */
enum weft_exit weft_batch_follow(const struct weft_cli *cli, struct weft *weft,
                                 const struct weft_id *id);
/* A batch was created: prints its id, and why it failed if it does so at once; with --watch follows
 * it. */
enum weft_exit weft_batch_begun(const struct weft_cli *cli, struct weft *weft,
                                const struct weft_id *id);

#endif
