/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_BENCH_BENCH_HTTP_H
#define WEFT_CMD_BENCH_BENCH_HTTP_H

/* Answers of HTTP/1.1: the parser of the benchmark. */

#include "base/err.h"

struct weft_bench_answer {
    int status;
    char *body; /* borrowed from the connection until the next call on it */
    size_t body_size;
    size_t total;           /* bytes that the answer took */
    bool closes;            /* the server closes the connection after it */
    int64_t retry_after_ms; /* -1: no Retry-After */
};

enum weft_bench_parsed {
    WEFT_BENCH_MORE,  /* the answer is not complete yet */
    WEFT_BENCH_WHOLE, /* *ret_answer is filled */
    WEFT_BENCH_BAD,   /* this is no answer; *err says why */
};

/*
 * Looks for one answer at the beginning of data. `ended`: nothing more will come. A chunked body is
 * put together in place once it is complete; interim answers (1xx) are passed over.
 */
enum weft_bench_parsed weft_bench_parse(char *data, size_t size, bool ended,
                                        struct weft_bench_answer *ret_answer, struct weft_err *err);

#endif
