/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_JOB_EXECUTION_READ_H
#define WEFT_ENGINE_JOB_EXECUTION_READ_H

/* Reading executions by id: description, attempts, payload, result. */

#include "store/store.h"
#include "weft/weft.h"

struct weft_engine;
struct weft_tx;

struct weft_read_page {
    struct weft_execution *item; /* in the arena */
    size_t count;
    const char *next;       /* in the arena, or NULL */
    weft_usec looked_to_us; /* of a short page with a next one; otherwise 0 */
};

/* A page of the attempts of an execution, oldest first. */
struct weft_attempts_asking {
    const char *ns;
    struct weft_id id;
    uint32_t limit;    /* 1..1000, 0: 50 */
    const char *after; /* cursor of the last page, NULL: the first */
};

struct weft_attempts_page {
    struct weft_attempt *item; /* in the arena */
    size_t count;
    const char *next; /* in the arena, or NULL */
};
enum weft_bytes_kind { WEFT_BYTES_RESULT, WEFT_BYTES_PAYLOAD };

/* Whose bytes. */
struct weft_bytes_of {
    enum weft_bytes_kind kind;
    const char *ns;
    struct weft_id id;
};
WEFT_MUST_CHECK enum weft_rc weft_engine_describe(struct weft_engine *engine, const char *ns,
                                                  const struct weft_id *id, size_t count,
                                                  struct weft_arena *arena,
                                                  struct weft_execution *ret_item,
                                                  struct weft_err *err);

/* Adds the details of their errors, as of a page: see detail.h. */
WEFT_MUST_CHECK enum weft_rc weft_read_details(struct weft_engine *engine,
                                               struct weft_execution *item, size_t count,
                                               struct weft_arena *arena, struct weft_err *err);

/*
 * Which of these executions and flows, in any namespace, are over or not there: a hint for requests
 * that wait for their end. In the arena.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_ended(struct weft_engine *engine, const struct weft_id *id,
                                               size_t count, struct weft_arena *arena,
                                               struct weft_id **ret_id, size_t *ret_count,
                                               struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_attempts_page(struct weft_engine *engine,
                                                       const struct weft_attempts_asking *asking,
                                                       struct weft_arena *arena,
                                                       struct weft_attempts_page *ret_page,
                                                       struct weft_err *err);

/* All of them. */
WEFT_MUST_CHECK enum weft_rc weft_engine_attempts(struct weft_engine *engine, const char *ns,
                                                  const struct weft_id *id,
                                                  struct weft_arena *arena,
                                                  struct weft_attempts *ret_attempts,
                                                  struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_bytes(struct weft_engine *engine,
                                               const struct weft_bytes_of *of,
                                               struct weft_arena *arena,
                                               struct weft_bytes *ret_bytes, struct weft_err *err);

/* Row i of a statement that has the columns of describe; its names are known (execution_read.c). */
struct weft_execution weft_read_execution(struct weft_engine *engine, const struct weft_rows *rows,
                                          size_t i, struct weft_arena *arena);

/* Describes executions inside a transaction, whose writes it sees; the rows are in the arena, and
 * weft_read_execution() reads them. */
WEFT_MUST_CHECK enum weft_rc weft_describe_in(struct weft_tx *tx, const struct weft_id *id,
                                              size_t count, struct weft_arena *arena,
                                              struct weft_rows *ret_rows, struct weft_err *err);

/* Runs such a statement and makes the names of its rows known. */
WEFT_MUST_CHECK enum weft_rc weft_read_chunk(struct weft_engine *engine,
                                             const struct weft_call *call, struct weft_arena *arena,
                                             struct weft_rows *ret_rows, struct weft_err *err);

#endif
