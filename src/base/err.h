/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_ERR_H
#define WEFT_BASE_ERR_H

/*
 * Errors: the table of include/weft/errors.def, and functions that record a failure. `err` belongs
 * to the caller and may be NULL. Fields, hints and causes are static.
 */

#include "base/base.h"

struct weft_arena;

/* Records the failure in *err and returns rc: `return weft_fail(err, ...)`. */
enum weft_rc weft_fail(struct weft_err *err, enum weft_rc rc, const char *fmt, ...)
    WEFT_PRINTF(3, 4);

/* The same, naming the input field that is to blame. */
enum weft_rc weft_fail_field(struct weft_err *err, enum weft_rc rc, const char *field,
                             const char *fmt, ...) WEFT_PRINTF(4, 5);

/* Adds to a recorded failure and returns rc: `return weft_hint(err, weft_fail(err, ...), "...")`.
 */
enum weft_rc weft_hint(struct weft_err *err, enum weft_rc rc, const char *hint);
enum weft_rc weft_cause(struct weft_err *err, enum weft_rc rc, enum weft_cause cause);

/* The same as weft_fail_field(), with the error in the arena. */
struct weft_err *weft_err_new(struct weft_arena *arena, enum weft_rc rc, const char *field,
                              const char *fmt, ...) WEFT_PRINTF(4, 5);
/* A copy of an error, in the arena. */
struct weft_err *weft_err_dup(struct weft_arena *arena, const struct weft_err *err);

int weft_rc_http(enum weft_rc rc);
bool weft_rc_retryable(enum weft_rc rc);

/* ---- Hints: weft_hint_other_key and the others of base/hints.def ----------------------------- */

#define HINT(name, text) extern const char weft_hint_##name[];
#include "base/hints.def"
/* The hint with this text as a static one; NULL: it is none of them. */
const char *weft_hint_find(const char *text);

#endif
