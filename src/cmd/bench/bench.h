/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_BENCH_BENCH_H
#define WEFT_CMD_BENCH_BENCH_H

/*
 * weft bench: the load, the HTTP underneath it, and what comes out.
 *
 * A lifecycle is the submission, the claim and the completion of one execution. The load comes from
 * one thread that waits on all its connections at once, because client and server mostly share a
 * machine and whatever the client uses, the server lacks. It touches executions of its own kind
 * alone, and leaves none behind.
 */

#include "base/buf.h"
#include "base/err.h"
#include "cmd/bench/hist.h"
#include "cmd/cli/cli.h"

#include <sys/socket.h>

#define WEFT_BENCH_KIND "weft.bench"

/* The three calls of a lifecycle. */
enum weft_bench_call {
    WEFT_BENCH_SUBMIT,
    WEFT_BENCH_CLAIM,
    WEFT_BENCH_COMPLETE,
    WEFT_BENCH_CALLS,
};
const char *weft_bench_call_name(enum weft_bench_call call);

enum weft_bench_mode { WEFT_BENCH_BULK, WEFT_BENCH_SINGLE, WEFT_BENCH_LATENCY, WEFT_BENCH_FLOW };

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

/* Errors by their code; those that find no place are counted under "other". */
struct weft_bench_errors {
    struct {
        char code[WEFT_BENCH_CODE_MAX];
        uint64_t count;
    } item[WEFT_BENCH_CODES_MAX];
    size_t codes;
    uint64_t total;
};
void weft_bench_count_error(struct weft_bench_errors *errors, const char *code, size_t size);

struct weft_bench_result {
    double per_s;                            /* lifecycles, tries, or flows */
    bool measuring;                          /* neither warm-up nor drain */
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

/* ---- bench_http.c: HTTP/1.1 as a client, no more than it takes ------------------------------- */

struct weft_bench_answer {
    int status;
    char *body; /* borrowed from the connection until the next call on it */
    size_t body_size;
    size_t total;           /* bytes that the answer took */
    bool closes;            /* the server closes the connection after it */
    int64_t retry_after_ms; /* -1: not said */
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
    int fd;          /* -1: not open */
    const char *out; /* borrowed: what is being sent */
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
 * Reads what there is. WEFT_OK with *ret_parsed MORE or WHOLE; anything else means that the
 * connection is of no use any more.
 */
WEFT_MUST_CHECK enum weft_rc weft_bench_receive(struct weft_bench_conn *conn,
                                                struct weft_bench_answer *ret_answer,
                                                enum weft_bench_parsed *ret_parsed,
                                                struct weft_err *err);
/* Waits for the answer to what was sent. */
WEFT_MUST_CHECK enum weft_rc weft_bench_await(struct weft_bench_conn *conn, int64_t timeout_ms,
                                              struct weft_bench_answer *ret_answer,
                                              struct weft_err *err);

/* ---- bench_body.c: what is said -------------------------------------------------------------- */

/* A JSON document of about that size. */
void weft_bench_document(struct weft_buf *out, size_t size);
/* The body of a submission of plan->batch executions. */
void weft_bench_submission(const struct weft_bench_plan *plan, struct weft_buf *out);
/* The body of a claim. */
void weft_bench_claim_body(const struct weft_bench_plan *plan, uint32_t max, int64_t wait_ms,
                           struct weft_buf *out);

/* What an answer said of its items. */
struct weft_bench_items {
    size_t good, bad;
};
/* Counts the items of an answer, or the one thing it is about; errors of items are counted. */
WEFT_MUST_CHECK enum weft_rc weft_bench_read_items(const struct weft_bench_answer *answer,
                                                   struct weft_bench_errors *errors,
                                                   struct weft_bench_items *ret_items,
                                                   struct weft_err *err);
/* Turns the answer of a claim into the body of its completion; *ret_claimed 0: there is none. */
WEFT_MUST_CHECK enum weft_rc weft_bench_read_claim(const struct weft_bench_answer *answer,
                                                   struct weft_buf *out, size_t *ret_claimed,
                                                   struct weft_err *err);
/* Counts an answer that is an error as a whole, by its code. */
void weft_bench_read_refusal(const struct weft_bench_answer *answer,
                             struct weft_bench_errors *errors);

/* ---- bench_sweep.c: one call after the other ------------------------------------------------- */

struct weft_bench_ask {
    const struct weft_bench_target *target;
    const char *path;
    struct weft_buf *body;
    struct weft_buf *request; /* scratch; holds what is sent */
};
/* A call and its answer; anything but a 2xx is a failure that tells the code. */
WEFT_MUST_CHECK enum weft_rc weft_bench_ask(struct weft_bench_conn *conn,
                                            const struct weft_bench_ask *ask,
                                            struct weft_bench_answer *ret_answer,
                                            struct weft_err *err);
/* Claims and completes what an earlier run left in the lane; gives the number of those. */
WEFT_MUST_CHECK enum weft_rc weft_bench_sweep(const struct weft_bench_plan *plan,
                                              const struct weft_bench_target *target,
                                              uint64_t *ret_swept, struct weft_err *err);

/* ---- bench_flow.c: the chains of the mode flow ----------------------------------------------- */

struct weft_bench_member {
    uint32_t chain; /* its number: 0 .. plan->flows - 1 */
    uint32_t node;  /* its place: 0 .. plan->nodes - 1 */
};

struct weft_bench_chains; /* opaque */
struct weft_bench_chains *weft_bench_chains_new(const struct weft_bench_plan *plan,
                                                const struct weft_bench_target *target);
void weft_bench_chains_free(struct weft_bench_chains *chains); /* NULL is fine */
bool weft_bench_chain_idle(const struct weft_bench_chains *chains);
/* Takes a chain that is idle, and there must be one. */
uint32_t weft_bench_chain_begin(struct weft_bench_chains *chains);
const struct weft_buf *weft_bench_chain_request(const struct weft_bench_chains *chains,
                                                uint32_t number);
/* Nothing of it is under way any more, or nothing ever was. */
void weft_bench_chain_end(struct weft_bench_chains *chains, uint32_t number);
/* Reads which members a claim gave; ret_member has room for as many as were asked for. */
WEFT_MUST_CHECK enum weft_rc
weft_bench_chains_claimed(struct weft_bench_chains *chains, const struct weft_bench_answer *answer,
                          weft_usec now_us, struct weft_bench_member *ret_member,
                          struct weft_bench_result *result, struct weft_err *err);
/* Their completion is being sent; has been answered. The second gives how many chains ended. */
void weft_bench_chains_completing(struct weft_bench_chains *chains,
                                  const struct weft_bench_member *member, size_t count);
size_t weft_bench_chains_completed(struct weft_bench_chains *chains,
                                   const struct weft_bench_member *member, size_t count,
                                   weft_usec now_us);

/* ---- bench_load.c, bench_latency.c, bench_local.c -------------------------------------------- */

WEFT_MUST_CHECK enum weft_rc weft_bench_load(const struct weft_bench_plan *plan,
                                             struct weft_bench_result *ret_result,
                                             struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_bench_latency(const struct weft_bench_plan *plan,
                                                struct weft_bench_result *ret_result,
                                                struct weft_err *err);
/* Lifecycles per second through weft.h, in this process. */
WEFT_MUST_CHECK enum weft_rc weft_bench_local(const struct weft_bench_plan *plan, double *ret_per_s,
                                              struct weft_err *err);

/* ---- bench_report.c -------------------------------------------------------------------------- */

/* True when every execution that was submitted was completed. */
bool weft_bench_adds_up(const struct weft_bench_result *result);
void weft_bench_print(const struct weft_cli *cli, const struct weft_bench_plan *plan,
                      const struct weft_bench_result *result);
void weft_bench_print_json(const struct weft_bench_plan *plan,
                           const struct weft_bench_result *result);

#endif
