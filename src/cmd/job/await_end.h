/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_JOB_AWAIT_END_H
#define WEFT_CMD_JOB_AWAIT_END_H

/* Waiting for the end of an execution, as --wait[=TIME] asks for it. */

#include "cmd/cli/cli.h"

#define WEFT_WAIT_OPTION                                                                           \
    {                                                                                              \
        .name = "wait", .letter = 'w', .value = "[TIME]",                                          \
        .about = "wait until it has ended, at most so long; default: a day"                        \
    }

/*
 * Reads the execution into *ret_page, which the caller frees; with --wait, when it has ended or the
 * time is up. After a failure the page is empty. With --wait the exit code is WEFT_EXIT_FAILED for
 * one that did not succeed and WEFT_EXIT_UNAVAILABLE for one that has not ended. Every failure has
 * been printed.
 */
enum weft_exit weft_cli_wait(const struct weft_cli *cli, struct weft *weft,
                             const struct weft_id *id, struct weft_page *ret_page);

#endif
