/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_BATCH_BATCH_FILES_H
#define WEFT_CMD_BATCH_BATCH_FILES_H

/* Files on their way to weft and from it, for the commands about files and batches. */

#include "cmd/cli/output.h"
#include "engine/batch/content.h"

/* What is uploaded. */
struct weft_input {
    const char *path;     /* "-": standard input */
    const char *model;    /* put into the body of every line; NULL: lines stay as they are */
    int64_t expires_ms;   /* 0: the default */
    const char *filename; /* NULL: the last part of the path */
    char url[512];        /* after the upload: that of the first line; "": it has none */
};
/* Uploads it, with a bar. A file that cannot be opened ends the process. */
WEFT_MUST_CHECK enum weft_rc weft_input_upload(const struct weft_cli *cli, struct weft *weft,
                                               struct weft_input *input,
                                               struct weft_file_infos *ret_files,
                                               struct weft_err *err);
/* Prints the first mistakes of a file on stderr. */
void weft_file_put_errors(const struct weft_cli *cli, const struct weft_file_info *file);
/* Writes bytes to standard output, or with --output to a file that is there when it is whole. */
enum weft_exit weft_output_content(const struct weft_cli *cli, struct weft *weft,
                                   const struct weft_file_asking *of);
/* "file-...", "file-output-...", "file-errors-..." or an id; anything else ends the process. */
struct weft_file_asking weft_file_arg(const struct weft_cli *cli, const char *text);

/* clang-format off */
#define WEFT_OUTPUT_OPTION(about)                                                                  \
    {"output", 'o', "FILE", about "; default: standard output", NULL}
/* clang-format on */

#endif
