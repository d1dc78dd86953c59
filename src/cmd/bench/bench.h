/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_BENCH_BENCH_H
#define WEFT_CMD_BENCH_BENCH_H

/*
 * weft bench: what to measure, the figures, and the three ways to measure.
 *
 * A lifecycle is the submission, the claim and the completion of one execution. The load on a
 * server comes from one thread that waits on all its connections at once: client and server mostly
 * share a machine, and every cycle of the client is one less for the server. It touches executions
 * of its own kind alone, and leaves none behind.
 */

#include "base/buf.h"
#include "base/err.h"
#include "cmd/cli/cli.h"

#include <sys/socket.h>

/* ---- Histograms (hist.c) --------------------------------------------------------------------- */

/*
 * A histogram of durations in fixed memory: buckets are exact below 128 µs and then 64 to each
 * doubling, so that any percentile has an error below 1.6 %, from microseconds to a day.
 * The smallest and the largest value are kept exactly. Merging two is adding their buckets.
 */
enum {
    WEFT_HIST_STEPS = 64, /* buckets of one doubling */
    WEFT_HIST_BITS = 6,   /* 1 << WEFT_HIST_BITS == WEFT_HIST_STEPS */
    WEFT_HIST_DOUBLINGS = 31,
    WEFT_HIST_BUCKETS = WEFT_HIST_STEPS * (WEFT_HIST_DOUBLINGS + 1),
};

struct weft_hist {
    uint64_t bucket[WEFT_HIST_BUCKETS];
    uint64_t count;
    weft_usec min_us, max_us; /* of nothing: 0 */
    double sum_us;
};

void weft_hist_add(struct weft_hist *hist, weft_usec value_us); /* less than 0 counts as 0 */
void weft_hist_merge(struct weft_hist *hist, const struct weft_hist *other);
/*
 * The value that a share (0..1) of all values does not exceed: 0.5 is the median, 1 the largest.
 * Rounded up to the end of its bucket, never beyond the largest value. 0 for an empty one.
 */
weft_usec weft_hist_at(const struct weft_hist *hist, double share);
double weft_hist_ms(const struct weft_hist *hist, double share); /* the same in milliseconds */
weft_usec weft_hist_mean(const struct weft_hist *hist);

/* ---- The measurement ------------------------------------------------------------------------- */

#define WEFT_BENCH_KIND "weft.bench"

/* The three calls of a lifecycle, and two more of one that is suspended in between. */
enum weft_bench_call {
    WEFT_BENCH_SUBMIT,
    WEFT_BENCH_CLAIM,
    WEFT_BENCH_COMPLETE,
    WEFT_BENCH_SUSPEND,
    WEFT_BENCH_SIGNAL,
    WEFT_BENCH_CALLS,
};

enum weft_bench_mode {
    WEFT_BENCH_BULK,
    WEFT_BENCH_SINGLE,
    WEFT_BENCH_LATENCY,
    WEFT_BENCH_FLOW,
    WEFT_BENCH_WAITING,
    WEFT_BENCH_MODES,
};

struct weft_bench_plan {
    enum weft_bench_mode mode;
    const char *server, *to_server;
    const char *store; /* to measure in this process as well; or NULL */
    const char *token, *ns;
    const char *lane;
    uint32_t connections;
    uint32_t embedded_connections;
    uint32_t batch;
    uint32_t tries; /* of the mode latency */
    uint32_t nodes; /* of a flow, in the mode flow */
    uint32_t flows; /* under way at once, in the mode flow */
    int64_t run_ms, warmup_ms;
    size_t payload_size;
};

enum { WEFT_BENCH_CODES_MAX = 16, WEFT_BENCH_CODE_MAX = 40 };

/* Errors by their code; further codes are counted together under "other". */
struct weft_bench_errors {
    struct {
        char code[WEFT_BENCH_CODE_MAX];
        uint64_t count;
    } item[WEFT_BENCH_CODES_MAX];
    size_t codes;
    uint64_t total;
};

struct weft_bench_result {
    double per_s;                            /* lifecycles, tries, or flows */
    double seconds;                          /* of the measurement */
    double client_cpu;                       /* cores that the client itself used */
    struct weft_hist call[WEFT_BENCH_CALLS]; /* of requests */
    struct weft_hist all;                    /* of requests; mode latency: from submit to start */
    uint64_t lifecycles;                     /* within the measurement */
    uint64_t flows;                          /* of the mode flow, within the measurement */
    struct weft_hist hop;                    /* from a completion to the start of the next node */
    /* From the first request to the last, warm-up and drain included. */
    uint64_t submitted, completed;
    uint64_t doubtful; /* submitted or not: the answer was lost */
    struct weft_bench_errors errors;
    double embedded_per_s; /* when the plan has a store */
};

/* Through one server, on many connections (bench_load.c). */
WEFT_MUST_CHECK enum weft_rc weft_bench_load(const struct weft_bench_plan *plan,
                                             struct weft_bench_result *ret_result,
                                             struct weft_err *err);
/* From one server to another, one execution at a time (bench_latency.c). */
WEFT_MUST_CHECK enum weft_rc weft_bench_latency(const struct weft_bench_plan *plan,
                                                struct weft_bench_result *ret_result,
                                                struct weft_err *err);
/* Measures by the plan: one of the above, and with a store the same lifecycles in this process. */
WEFT_MUST_CHECK enum weft_rc weft_bench_measure(const struct weft_bench_plan *plan,
                                                struct weft_bench_result *ret_result,
                                                struct weft_err *err);
/* True when every execution that was submitted was completed. */
bool weft_bench_adds_up(const struct weft_bench_result *result);

/* ---- Connections (bench_conn.c) -------------------------------------------------------------- */

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

struct weft_bench_target {
    char host[256]; /* as the Host header names it */
    char prefix[128];
    const char *token, *ns;
    struct sockaddr_storage address;
    socklen_t address_size;
};
/* http://HOST[:PORT][/PREFIX]. */
WEFT_MUST_CHECK enum weft_rc weft_bench_resolve(const char *url, struct weft_bench_target *target,
                                                struct weft_err *err);
/* Writes a whole POST into out, which is cleared first. */
void weft_bench_request(const struct weft_bench_target *target, const char *path,
                        const struct weft_buf *body, struct weft_buf *out);

struct weft_bench_conn {
    const struct weft_bench_target *target; /* borrowed */
    struct weft_buf request;                /* of weft_bench_call() */
    int fd;                                 /* -1: not open */
    const char *out;                        /* borrowed: what is being sent */
    size_t out_size, out_sent;
    char *in; /* owned */
    size_t in_size, in_room;
    size_t in_used; /* bytes of the answer that was given last */
    bool ended;
};

/* Opens it, or opens it again. Waits for at most five seconds. */
WEFT_MUST_CHECK enum weft_rc weft_bench_connect(struct weft_bench_conn *conn,
                                                const struct weft_bench_target *target,
                                                struct weft_err *err);
void weft_bench_close(struct weft_bench_conn *conn);
/* Begins to send a request, which must stay as it is until it is answered. */
WEFT_MUST_CHECK enum weft_rc weft_bench_send(struct weft_bench_conn *conn, const char *data,
                                             size_t size, struct weft_err *err);
/* Sends more of it. conn->out_sent == conn->out_size: all is sent. */
WEFT_MUST_CHECK enum weft_rc weft_bench_flush(struct weft_bench_conn *conn, struct weft_err *err);
/*
 * Reads what there is. WEFT_OK with *ret_parsed MORE or WHOLE; after anything else the connection
 * must be closed.
 */
WEFT_MUST_CHECK enum weft_rc weft_bench_receive(struct weft_bench_conn *conn,
                                                struct weft_bench_answer *ret_answer,
                                                enum weft_bench_parsed *ret_parsed,
                                                struct weft_err *err);
/* Waits for the answer to what was sent. */
WEFT_MUST_CHECK enum weft_rc weft_bench_await(struct weft_bench_conn *conn, int64_t timeout_ms,
                                              struct weft_bench_answer *ret_answer,
                                              struct weft_err *err);

/* ---- Bodies and calls (bench_body.c) --------------------------------------------------------- */

/* A JSON document of about that size, other letters for another seed. */
void weft_bench_document(struct weft_buf *out, size_t size, unsigned seed);
void weft_bench_count_error(struct weft_bench_errors *errors, const char *code, size_t size);
/* The body of a submission of plan->batch executions. */
void weft_bench_submission(const struct weft_bench_plan *plan, struct weft_buf *out);
/* The body of a claim. */
void weft_bench_claim_body(const struct weft_bench_plan *plan, uint32_t max, int64_t wait_ms,
                           struct weft_buf *out);

/* Counts the items of an answer without an error, 1 for an answer without items; the errors of the
 * others are counted. */
WEFT_MUST_CHECK enum weft_rc weft_bench_read_items(const struct weft_bench_answer *answer,
                                                   struct weft_bench_errors *errors,
                                                   size_t *ret_good, struct weft_err *err);
/* Turns the answer of a claim into the body of its completion; *ret_claimed 0: there is none. */
WEFT_MUST_CHECK enum weft_rc weft_bench_read_claim(const struct weft_bench_answer *answer,
                                                   struct weft_buf *out, size_t *ret_claimed,
                                                   struct weft_err *err);
/* The body of the suspension of what a claim gave; false: it gave nothing, or a resumed one. */
bool weft_bench_read_fresh(const struct weft_bench_answer *answer, struct weft_buf *out);
/* Turns the answer of a suspension into the body of the signal that resumes it. */
WEFT_MUST_CHECK enum weft_rc weft_bench_read_suspended(const struct weft_bench_answer *answer,
                                                       struct weft_buf *out, struct weft_err *err);
/* Counts an answer that is an error, by its code. */
void weft_bench_read_refusal(const struct weft_bench_answer *answer,
                             struct weft_bench_errors *errors);

/* A call and its answer; anything but a 2xx is a failure with its code. */
WEFT_MUST_CHECK enum weft_rc weft_bench_call(struct weft_bench_conn *conn, const char *path,
                                             const struct weft_buf *body,
                                             struct weft_bench_answer *ret_answer,
                                             struct weft_err *err);
/* Claims and completes all that earlier runs left in the lane. */
WEFT_MUST_CHECK enum weft_rc weft_bench_sweep(const struct weft_bench_plan *plan,
                                              const struct weft_bench_target *target,
                                              struct weft_err *err);

#endif
