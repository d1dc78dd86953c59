/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_MOCK_MOCK_H
#define WEFT_CMD_MOCK_MOCK_H

/*
 * weft mock-llm: a small server in the form of OpenAI's, for trials and benchmarks. One thread. The
 * same request gets the same answer: an echo of the last message.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct mock_settings {
    const char *listen; /* "127.0.0.1:7718" */
    int64_t latency_ms, jitter_ms;
    int64_t stream_delay_ms; /* between the events of a stream */
    int64_t tokens;          /* words of an answer; 0: as many as the echo has */
    double fail_rate;        /* 0 to 1 */
};

/* ---- mock_answer.c: what is said ------------------------------------------------------------- */

struct mock_request {
    const char *method, *path; /* the path without its query */
    const char *body;
    size_t body_size;
    uint64_t number; /* of this request among all: decides who fails */
};

struct mock_answer {
    int status;
    bool stream;           /* the body is events, each ends with an empty line */
    int64_t retry_after_s; /* 0: no such header */
    int64_t wait_ms;       /* before it is given */
};

/* Writes the body to `out`. */
struct mock_answer weft_mock_answer(const struct mock_settings *settings,
                                    const struct mock_request *request, struct weft_arena *arena,
                                    struct weft_buf *out);
/* An error in the form of OpenAI's. */
struct mock_answer weft_mock_refuse(int status, const char *message, struct weft_buf *out);

/* ---- mock_input.c: what is asked ------------------------------------------------------------- */

struct mock_input {
    const char *model; /* in arena */
    const char *text;  /* in arena: the last message */
    size_t words;      /* of all messages */
    size_t dimensions; /* of an embedding */
    size_t count;      /* inputs of embeddings */
    const char **each; /* in arena: these inputs */
    bool stream, stream_usage, base64;
};

/* Reads a body. WEFT_INVALID_JSON and WEFT_INVALID_VALUE. */
WEFT_MUST_CHECK enum weft_rc weft_mock_read(const struct mock_request *request,
                                            struct weft_arena *arena, struct mock_input *ret_input,
                                            struct weft_err *err);
size_t weft_mock_words(const char *text);

/* ---- mock_serve.c: connections --------------------------------------------------------------- */

/* Serves until SIGINT or SIGTERM; says on stdout where it listens. */
WEFT_MUST_CHECK enum weft_rc weft_mock_serve(const struct mock_settings *settings,
                                             struct weft_err *err);

#endif
