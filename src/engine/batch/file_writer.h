/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_BATCH_FILE_WRITER_H
#define WEFT_ENGINE_BATCH_FILE_WRITER_H

/*
 * A file from bytes as they come: its lines are checked and it is stored in chunks, so it takes a
 * few MiB of memory whatever its size. A line with a mistake does not fail it: the batch that uses
 * the file fails with it. No reader sees the file before all of it is stored.
 */

#include "engine/batch/files.h"

struct weft_file_writer; /* opaque */

enum { WEFT_FILE_PIECE_MAX = 256 << 10 }; /* bytes that are added at once */

struct weft_file_limits {
    uint64_t bytes, requests;
};
/* The largest ones that a server can be set to. */
extern const struct weft_file_limits weft_file_limits_most;

struct weft_file_writer *weft_file_writer_new(struct weft_engine *engine,
                                              const struct weft_file_limits *limits);
/* Does not ask the store: the scanner removes a file that has no end. NULL is fine. */
void weft_file_writer_free(struct weft_file_writer *writer);
/* What was stored of a file that will not be whole is removed at once. */
void weft_file_writer_give_up(struct weft_file_writer *writer);
/* filename: a bad one is replaced. Called once. */
WEFT_MUST_CHECK enum weft_rc weft_file_writer_begin(struct weft_file_writer *writer, const char *ns,
                                                    const char *filename, struct weft_err *err);
bool weft_file_writer_begun(const struct weft_file_writer *writer);
uint64_t weft_file_writer_bytes(const struct weft_file_writer *writer); /* so far */
/* WEFT_TOO_LARGE: the file has more bytes than it may. */
WEFT_MUST_CHECK enum weft_rc weft_file_writer_add(struct weft_file_writer *writer, const char *data,
                                                  size_t size, struct weft_err *err);
/* How a file ends. */
struct weft_file_ending {
    const char *purpose;
    int64_t expires_s; /* from now on */
};
/* From here on the file is there. */
WEFT_MUST_CHECK enum weft_rc weft_file_writer_end(struct weft_file_writer *writer,
                                                  const struct weft_file_ending *ending,
                                                  struct weft_id *ret_id, struct weft_err *err);
enum weft_rc weft_file_too_large(uint64_t bytes_max, struct weft_err *err);

#endif
