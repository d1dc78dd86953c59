/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_ERR_H
#define WEFT_BASE_ERR_H

/*
 * Errors: the table of include/weft/errors.def, and functions that record a failure. `err` belongs
 * to the caller and may be NULL. Fields, hints and causes are static.
 */

#include "base/base.h"

/*
 * Records a failure in *err and returns its code: `return weft_fail(err, rc, "...")`. The other two
 * name the field of the input that is to blame.
 */
#define weft_fail(err, rc, ...)       weft_fail_field(err, rc, NULL, __VA_ARGS__)
#define weft_invalid(err, field, ...) weft_fail_field(err, WEFT_INVALID_VALUE, field, __VA_ARGS__)
enum weft_rc weft_fail_field(struct weft_err *err, enum weft_rc rc, const char *field,
                             const char *fmt, ...) WEFT_PRINTF(4, 5);

/* Add to a recorded failure and return rc: `return weft_hint(err, weft_fail(err, ...), "...")`. */
enum weft_rc weft_hint(struct weft_err *err, enum weft_rc rc, const char *hint);
enum weft_rc weft_cause(struct weft_err *err, enum weft_rc rc, enum weft_cause cause);

/* The same as weft_fail_field(), with the error in the arena. */
struct weft_err *weft_err_new(struct weft_arena *arena, enum weft_rc rc, const char *field,
                              const char *fmt, ...) WEFT_PRINTF(4, 5);
/* A copy of an error, in the arena. */
struct weft_err *weft_err_dup(struct weft_arena *arena, const struct weft_err *err);

int weft_rc_http(enum weft_rc rc);
bool weft_rc_retryable(enum weft_rc rc);

/* Hints that programs may compare: a remote client gives them back as these, weft_hint_<name>. */
/* clang-format off */
#define WEFT_HINTS(X)                                                                              \
    X(outcome_unknown, "outcome_unknown")                                                          \
    X(other_key, "use another key, or submit exactly what was submitted first")                    \
    X(wait_for_transaction, "try again when that transaction has ended")                           \
    X(read_flow_again, "read the flow again and decide anew")
/* clang-format on */
#define X(name, text) extern const char weft_hint_##name[];
WEFT_HINTS(X)
#undef X
/* The hint with this text as a static one; NULL: it is none of them. */
const char *weft_hint_find(const char *text);

#endif
