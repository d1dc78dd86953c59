/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_CONFORMANCE_EXECUTOR_STAGE_H
#define WEFT_TESTS_CONFORMANCE_EXECUTOR_STAGE_H

/*
 * An executor over a crowd and endpoints that the case plays. Real servers are called in
 * tests/http/executor.py.
 */

#include "conformance.h"

#include "net/executor/executor.h"

enum { CALLS_MAX = 3000, ENDPOINTS_MAX = 4 };

struct weft_transfer {
    struct weft_crowd_call call;
    const char *url, *method; /* copies, in stage.arena */
    bool ended, aborted;
};

struct known {
    struct weft_known_endpoint endpoint;
    struct weft_endpoint setting;
    bool there;
};

struct stage {
    struct fixture *f;
    struct weft_executor *executor;
    struct weft_transfer transfer[CALLS_MAX];
    size_t calls, open;
    struct known known[ENDPOINTS_MAX];
    struct weft_arena *arena;
    uint64_t statements; /* counted where the engine has a fault driver */
};
extern struct stage stage;

/* An executor with the endpoint "one", over engine a or another one. */
void stage_begin(struct fixture *f);
void stage_begin_with(struct fixture *f, struct weft_engine *engine, uint32_t in_flight);
void stage_finish(struct weft_engine *engine);
struct weft_endpoint *stage_endpoint(size_t at, const char *name);
void stage_turns(int count); /* cycles */

struct weft_spec stage_spec(const char *payload);
/* Submits a GET of /x at an endpoint. */
struct weft_id stage_call(struct fixture *f, const char *endpoint);

/* A whole answer; to one call or to all that are under way. */
void stage_answer(struct weft_transfer *transfer, int status, const char *type, const char *body);
void stage_answer_all(int status, const char *body);
void stage_end(struct weft_transfer *transfer, const struct weft_crowd_end *end);

/* Calls the endpoint "one", which fails, until its breaker opens; returns how often. */
size_t stage_break(struct fixture *f);
struct weft_endpoint_health stage_health(const char *endpoint);

#endif
