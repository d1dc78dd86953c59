/* SPDX-License-Identifier: Apache-2.0 */

/* The table of failures, and the functions that fill a struct weft_err. */

#include "base/err.h"

#include "base/arena.h"
#include "base/str.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct row {
    const char *wire;
    const char *text;
    int http;
    bool retry;
};

static const struct row table[WEFT_RC_COUNT] = {
#define X(name, number, wire_, http_, retry_, text_)                                               \
    [number] = {.wire = (wire_), .text = (text_), .http = (http_), .retry = (retry_)},
#include "weft/errors.def"
#undef X
};

static const struct row *row_of(enum weft_rc rc)
{
    assert((unsigned)rc < WEFT_RC_COUNT);
    return &table[rc];
}

WEFT_PRINTF(4, 0)
static void record(struct weft_err *err, enum weft_rc rc, const char *field, const char *fmt,
                   va_list args)
{
    /* Longer than err->text, so that weft_utf8_cut() sees the whole character at the cut. */
    char text[sizeof(err->text) + 4];
    int length = vsnprintf(text, sizeof(text), fmt, args);
    assert(rc != WEFT_OK && length >= 0);
    size_t size = (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1;
    size = weft_utf8_cut(text, size, sizeof(err->text) - 1);
    *err = (struct weft_err){.rc = rc, .field = field};
    memcpy(err->text, text, size);
}

enum weft_rc weft_fail_field(struct weft_err *err, enum weft_rc rc, const char *field,
                             const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (err)
        record(err, rc, field, fmt, args);
    va_end(args);
    return rc;
}

enum weft_rc weft_hint(struct weft_err *err, enum weft_rc rc, const char *hint)
{
    if (err)
        err->hint = hint;
    return rc;
}

enum weft_rc weft_cause(struct weft_err *err, enum weft_rc rc, enum weft_cause cause)
{
    if (err)
        err->cause = cause;
    return rc;
}

struct weft_err *weft_err_new(struct weft_arena *arena, enum weft_rc rc, const char *field,
                              const char *fmt, ...)
{
    struct weft_err *err = weft_new(arena, struct weft_err);
    va_list args;
    va_start(args, fmt);
    record(err, rc, field, fmt, args);
    va_end(args);
    return err;
}

struct weft_err *weft_err_dup(struct weft_arena *arena, const struct weft_err *err)
{
    return weft_arena_dup(arena, err, sizeof(*err));
}

WEFT_EXPORT const char *weft_rc_wire(enum weft_rc rc)
{
    return row_of(rc)->wire;
}

WEFT_EXPORT const char *weft_rc_text(enum weft_rc rc)
{
    return row_of(rc)->text;
}

int weft_rc_http(enum weft_rc rc)
{
    return row_of(rc)->http;
}

bool weft_rc_retryable(enum weft_rc rc)
{
    return row_of(rc)->retry;
}

#define X(name, text) const char weft_hint_##name[] = text;
WEFT_HINTS(X)
#undef X

const char *weft_hint_find(const char *text)
{
#define X(name, text) weft_hint_##name,
    static const char *const hints[] = {WEFT_HINTS(X)};
#undef X
    for (size_t i = 0; i < WEFT_LEN(hints); i++)
        if (strcmp(hints[i], text) == 0)
            return hints[i];
    return NULL;
}
