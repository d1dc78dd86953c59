/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_LOG_H
#define WEFT_BASE_LOG_H

/*
 * One event per line, logfmt or JSON. The message is a fixed phrase you can grep for; everything
 * that varies is a field. Only engine, net and cmd log; base, core, store and client return errors.
 *
 * Silent until weft_log_init(): a library does not write to its host's stderr unasked. A line is
 * one write(2) of at most WEFT_LOG_LINE_MAX bytes, so lines of several processes do not mix. A
 * longer line is cut between characters and ends with cut=true. Control characters in values are
 * escaped: a value can neither begin a new line nor control a terminal. Thread-safe.
 */

#include "base/base.h"

enum weft_level {
    WEFT_SILENT,
    WEFT_ERROR, /* an operator must act */
    WEFT_WARN,  /* something went wrong and was coped with */
    WEFT_INFO,  /* a change of state */
    WEFT_DEBUG,
    WEFT_LEVEL_COUNT
};

enum weft_log_format { WEFT_LOGFMT, WEFT_LOG_JSON };

enum { WEFT_LOG_LINE_MAX = 4096 };

enum weft_field_kind {
    WEFT_F_NONE,
    WEFT_F_STR,
    WEFT_F_I64,
    WEFT_F_U64,
    WEFT_F_BOOL,
    WEFT_F_ID,
};

struct weft_field {
    const char *key; /* static, [a-z_]+; NULL ends the list */
    enum weft_field_kind kind;
    union {
        const char *str; /* borrowed; NULL is written as null */
        int64_t i64;
        uint64_t u64;
        bool boolean;
        const struct weft_id *id; /* borrowed */
    } u;
};

#define F_STR(k, v)  ((struct weft_field){.key = (k), .kind = WEFT_F_STR, .u.str = (v)})
#define F_I64(k, v)  ((struct weft_field){.key = (k), .kind = WEFT_F_I64, .u.i64 = (v)})
#define F_U64(k, v)  ((struct weft_field){.key = (k), .kind = WEFT_F_U64, .u.u64 = (v)})
#define F_BOOL(k, v) ((struct weft_field){.key = (k), .kind = WEFT_F_BOOL, .u.boolean = (v)})
#define F_ID(k, v)   ((struct weft_field){.key = (k), .kind = WEFT_F_ID, .u.id = (v)})
#define F_END        ((struct weft_field){.key = NULL})

/* weft_info("lane drained", F_STR("lane", lane), F_U64("count", count)); fields may be missing. */
#define weft_error(...) WEFT_LOG(WEFT_ERROR, __VA_ARGS__, F_END)
#define weft_warn(...)  WEFT_LOG(WEFT_WARN, __VA_ARGS__, F_END)
#define weft_info(...)  WEFT_LOG(WEFT_INFO, __VA_ARGS__, F_END)
#define weft_debug(...) WEFT_LOG(WEFT_DEBUG, __VA_ARGS__, F_END)

#define WEFT_LOG(level, message, ...)                                                              \
    weft_log(level, message, (const struct weft_field[]){__VA_ARGS__})

/* Lines of this and more severe levels go to fd, which is borrowed. May be called again. */
void weft_log_init(enum weft_level level, enum weft_log_format format, int fd);
void weft_log(enum weft_level level, const char *message, const struct weft_field field[]);

/*
 * From here on the lines of this thread are buffered until weft_log_flush(): for a thread that logs
 * a line per request and knows when it is idle. Warnings and errors are written at once.
 */
void weft_log_collect(void);
void weft_log_flush(void);
void weft_log_collect_end(void); /* flushes */

/* "silent", "error", "warn", "info" or "debug"; false for a word that is no level. */
WEFT_MUST_CHECK bool weft_level_parse(const char *word, enum weft_level *ret_level);

#endif
