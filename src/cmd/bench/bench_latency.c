/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From the submission on one server to the start on a worker that waits at another, or at the same:
 * a claim is sent and left waiting, an execution is submitted, and the time is taken until the
 * claim is answered with it. One at a time, on a connection each.
 */

#include "base/clock.h"
#include "base/id.h"
#include "cmd/bench/bench.h"
#include "cmd/cli/output.h"

#include <poll.h>

enum {
    WAIT_MS = 20000,
    ANSWER_MS = WAIT_MS + 5000,
    /* The client cannot know when the claim that it sent has begun to wait at the server. */
    SETTLE_MIN_US = 3000,
    SETTLE_SPREAD_US = 4000, /* against beats with periodic work of the server */
    BODY_MAX = 64 << 20,
};

struct pair {
    struct weft_bench_target from, to;
    struct weft_bench_conn submitter, worker;
    struct weft_buf submit, claim; /* whole requests */
    struct weft_buf body;          /* of the completion */
    struct weft_bench_result *result;
};

/* Lets the claim arrive. *ret_early: it has been answered already, with an older execution. */
static enum weft_rc settle(struct pair *pair, bool *ret_early, struct weft_err *err)
{
    uint32_t random;
    weft_random(&random, sizeof(random));
    struct pollfd fd = {.fd = pair->worker.fd, .events = POLLIN};
    const struct timespec time = {.tv_nsec =
                                      (SETTLE_MIN_US + (long)(random % SETTLE_SPREAD_US)) * 1000};
    *ret_early = ppoll(&fd, 1, &time, NULL) > 0;
    return weft_bench_flush(&pair->worker, err);
}

static enum weft_rc complete(struct pair *pair, const struct weft_bench_answer *answer,
                             size_t *ret_claimed, struct weft_err *err)
{
    enum weft_rc rc = weft_bench_read_claim(answer, &pair->body, ret_claimed, err);
    if (rc || *ret_claimed == 0)
        return rc;
    struct weft_bench_answer done;
    size_t good;
    weft_usec begun_us = weft_boot_us();
    rc = weft_bench_call(&pair->worker, "/v1/leases/complete", &pair->body, &done, err);
    if (!rc)
        rc = weft_bench_read_items(&done, &pair->result->errors, &good, err);
    if (rc)
        return rc;
    weft_hist_add(&pair->result->call[WEFT_BENCH_COMPLETE], weft_boot_us() - begun_us);
    pair->result->completed += good;
    return WEFT_OK;
}

/* The two answers of a try: the submission's and the claim's, which may come first. */
struct answers {
    struct weft_bench_answer said[2];
    weft_usec took_us[2];
};

static enum weft_rc await_both(struct pair *pair, weft_usec begun_us, struct answers *ret_answers,
                               struct weft_err *err)
{
    struct weft_bench_conn *conn[] = {&pair->submitter, &pair->worker};
    enum weft_bench_parsed parsed[2] = {WEFT_BENCH_MORE, WEFT_BENCH_MORE};
    while (parsed[0] == WEFT_BENCH_MORE || parsed[1] == WEFT_BENCH_MORE) {
        struct pollfd fd[2];
        for (size_t i = 0; i < 2; i++)
            fd[i] = (struct pollfd){.fd = parsed[i] == WEFT_BENCH_MORE ? conn[i]->fd : -1,
                                    .events = POLLIN};
        (void)poll(fd, 2, 1000);
        weft_usec took_us = weft_boot_us() - begun_us;
        if (took_us > ANSWER_MS * WEFT_MS)
            return weft_fail(err, WEFT_UNAVAILABLE, "the server does not answer");
        for (size_t i = 0; i < 2; i++) {
            if (!fd[i].revents)
                continue;
            enum weft_rc rc = weft_bench_receive(conn[i], &ret_answers->said[i], &parsed[i], err);
            if (rc)
                return rc;
            ret_answers->took_us[i] = took_us;
        }
    }
    return WEFT_OK;
}

static enum weft_rc take_both(struct pair *pair, const struct answers *answers,
                              struct weft_err *err)
{
    struct weft_bench_result *result = pair->result;
    for (size_t i = 0; i < 2; i++) {
        if (answers->said[i].status <= 299)
            continue;
        weft_bench_read_refusal(&answers->said[i], &result->errors);
        return weft_fail(err, WEFT_UNAVAILABLE, "the server refuses: %s",
                         result->errors.item[0].code);
    }
    size_t good;
    enum weft_rc rc = weft_bench_read_items(&answers->said[0], &result->errors, &good, err);
    if (rc)
        return rc;
    result->submitted += good;
    weft_hist_add(&result->call[WEFT_BENCH_SUBMIT], answers->took_us[0]);
    weft_hist_add(&result->call[WEFT_BENCH_CLAIM], answers->took_us[1]);
    return WEFT_OK;
}

static enum weft_rc try_once(struct pair *pair, struct weft_err *err)
{
    struct weft_bench_answer answer;
    struct answers both = {0};
    size_t claimed = 0;
    bool early = false;
    enum weft_rc rc = weft_bench_send(&pair->worker, pair->claim.data, pair->claim.size, err);
    if (!rc)
        rc = settle(pair, &early, err);
    if (!rc && early) {
        rc = weft_bench_await(&pair->worker, ANSWER_MS, &answer, err);
        return rc ? rc : complete(pair, &answer, &claimed, err);
    }
    weft_usec begun_us = weft_boot_us();
    if (!rc)
        rc = weft_bench_send(&pair->submitter, pair->submit.data, pair->submit.size, err);
    if (!rc)
        rc = await_both(pair, begun_us, &both, err);
    if (!rc)
        rc = take_both(pair, &both, err);
    if (!rc)
        rc = complete(pair, &both.said[1], &claimed, err);
    if (!rc && claimed == 0)
        weft_bench_count_error(&pair->result->errors, "not_woken", 9);
    pair->result->lifecycles += claimed;
    return rc;
}

static enum weft_rc open_pair(const struct weft_bench_plan *plan, struct pair *pair,
                              struct weft_err *err)
{
    struct weft_bench_plan one = *plan;
    one.batch = 1;
    enum weft_rc rc = weft_bench_resolve(plan->server, &pair->from, err);
    if (!rc)
        rc = weft_bench_resolve(plan->to_server, &pair->to, err);
    if (!rc)
        rc = weft_bench_sweep(plan, &pair->to, err);
    if (!rc)
        rc = weft_bench_connect(&pair->submitter, &pair->from, err);
    if (!rc)
        rc = weft_bench_connect(&pair->worker, &pair->to, err);
    if (rc)
        return rc;
    weft_bench_submission(&one, &pair->body);
    weft_bench_request(&pair->from, "/v1/executions", &pair->body, &pair->submit);
    weft_bench_claim_body(&one, 1, WAIT_MS, &pair->body);
    weft_bench_request(&pair->to, "/v1/claims", &pair->body, &pair->claim);
    return WEFT_OK;
}

enum weft_rc weft_bench_latency(const struct weft_bench_plan *plan,
                                struct weft_bench_result *ret_result, struct weft_err *err)
{
    struct pair pair = {.from = {.token = plan->token, .ns = plan->ns},
                        .to = {.token = plan->token, .ns = plan->ns},
                        .submitter.fd = -1,
                        .worker.fd = -1,
                        .result = ret_result};
    weft_buf_init(&pair.submit, BODY_MAX);
    weft_buf_init(&pair.claim, BODY_MAX);
    weft_buf_init(&pair.body, BODY_MAX);
    enum weft_rc rc = open_pair(plan, &pair, err);
    struct weft_bar *bar = weft_bar_new("tries", plan->tries);
    weft_usec begun_us = weft_boot_us();
    for (uint32_t i = 0; i < plan->tries && !rc; i++) {
        rc = try_once(&pair, err);
        weft_bar_set(bar, i + 1);
        if (!rc && weft_cli_interrupted())
            rc = weft_fail(err, WEFT_BUSY, "interrupted");
    }
    weft_bar_free(bar);
    ret_result->seconds = (double)(weft_boot_us() - begun_us) / 1e6;
    ret_result->all = ret_result->call[WEFT_BENCH_CLAIM];
    if (ret_result->seconds > 0)
        ret_result->per_s = (double)ret_result->lifecycles / ret_result->seconds;
    weft_bench_close(&pair.submitter);
    weft_bench_close(&pair.worker);
    weft_buf_done(&pair.submit);
    weft_buf_done(&pair.claim);
    weft_buf_done(&pair.body);
    return rc;
}
