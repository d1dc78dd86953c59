/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_CONFORMANCE_BATCHES_H
#define WEFT_TESTS_CONFORMANCE_BATCHES_H

/* Batches for cases: files of lines "r 0", "r 1" and so on, all of the model m in lane gpt. */

#include "conformance.h"

#include "engine/batch/batch.h"

void batches_model(struct fixture *f, const char *name);
struct weft_id batches_file(struct fixture *f, int lines);
/* Every other line names another model. */
struct weft_id batches_file_of(struct fixture *f, int lines, const char *other);
struct weft_id batches_create(struct fixture *f, struct weft_id file, const char *window,
                              const char *key);
struct weft_batch batches_look(struct fixture *f, const struct weft_id *id);
/* Steps by both processes in turn, until there is nothing to do. Returns how many there were. */
int batches_step(struct fixture *f, const struct weft_id *id);
/* A batch whose lines may begin. */
struct weft_id batches_running(struct fixture *f, int lines, const char *window);
/* Claims up to so many calls and ends them; every tenth fails. Returns how many there were. */
size_t batches_work(struct fixture *f, uint32_t most);
/* One that runs. */
struct weft_claimed batches_take(struct fixture *f);
void batches_finish(struct fixture *f, const struct weft_id *id);
/* All lines of one file, each in its place; returns how many. */
size_t batches_lines(struct fixture *f, const struct weft_id *id, bool good, bool *seen, int total);
/* Every line is in exactly one of the two files, and the counts are those of the files. */
void batches_expect_files(struct fixture *f, const struct weft_id *id, int total);

#endif
