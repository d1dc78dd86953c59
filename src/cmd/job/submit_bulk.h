/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_JOB_SUBMIT_BULK_H
#define WEFT_CMD_JOB_SUBMIT_BULK_H

/* Submitting many: in chunks, with a bar, each answered with a line. */

#include "cmd/cli/cli.h"

struct weft_sending {
    const struct weft_cli *cli;
    struct weft *weft;
    struct weft_bar *bar;
    const char *file; /* where the specs stand, or NULL */
    uint64_t done;
    uint64_t accepted, duplicates, refused;
    enum weft_exit worst; /* of the items that were refused so far */
};

/*
 * Submits up to WEFT_BATCH_MAX specs and prints their answers. line: the line of each in the file,
 * or NULL. Anything but WEFT_EXIT_OK: the chunk as a whole failed, which has been printed, or a
 * signal came.
 */
WEFT_MUST_CHECK enum weft_exit weft_send_chunk(struct weft_sending *sending,
                                               const struct weft_spec *spec, const uint64_t *line,
                                               size_t count);

/* A file of specs, or - for standard input. Specs without a lane get this one. */
enum weft_exit weft_submit_bulk(const struct weft_cli *cli, struct weft *weft, const char *path,
                                const char *lane);

#endif
