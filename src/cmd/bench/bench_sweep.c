/* SPDX-License-Identifier: Apache-2.0 */

/* One call after the other: what is done before the clock runs. */

#include "cmd/bench/bench_sweep.h"
#include "cmd/bench/bench_body.h"

#include "base/json.h"
#include "base/limits.h"

enum { CALL_MS = 30000, FLOW_WAIT_MS = 300 };

static enum weft_rc refused(const struct weft_bench_answer *answer, const char *path,
                            struct weft_err *err)
{
    struct weft_bench_errors errors = {0};
    weft_bench_read_refusal(answer, &errors);
    enum weft_rc rc = WEFT_INVALID_VALUE;
    if (answer->status == 401 || answer->status == 403)
        rc = answer->status == 401 ? WEFT_UNAUTHORIZED : WEFT_FORBIDDEN;
    else if (answer->status == 429 || answer->status >= 500)
        rc = WEFT_UNAVAILABLE;
    return weft_fail(err, rc, "the server refuses %s: %d %s", path, answer->status,
                     errors.item[0].code);
}

enum weft_rc weft_bench_ask(struct weft_bench_conn *conn, const struct weft_bench_ask *ask,
                            struct weft_bench_answer *ret_answer, struct weft_err *err)
{
    weft_bench_request(ask->target, ask->path, ask->body, ask->request);
    enum weft_rc rc = weft_bench_send(conn, ask->request->data, ask->request->size, err);
    if (!rc)
        rc = weft_bench_await(conn, CALL_MS, ret_answer, err);
    if (!rc && (ret_answer->status < 200 || ret_answer->status > 299))
        rc = refused(ret_answer, ask->path, err);
    return rc;
}

static enum weft_rc sweep_once(const struct weft_bench_plan *plan, struct weft_bench_conn *conn,
                               const struct weft_bench_ask *ask, size_t *ret_claimed,
                               struct weft_err *err)
{
    struct weft_bench_ask next = *ask;
    struct weft_bench_answer answer;
    /* The nodes of a flow come one after the other. */
    int64_t wait_ms = plan->mode == WEFT_BENCH_FLOW ? FLOW_WAIT_MS : 0;
    weft_bench_claim_body(plan, WEFT_BATCH_MAX, wait_ms, ask->body);
    next.path = "/v1/claims";
    enum weft_rc rc = weft_bench_ask(conn, &next, &answer, err);
    if (!rc)
        rc = weft_bench_read_claim(&answer, ask->body, ret_claimed, err);
    next.path = "/v1/leases/complete";
    if (!rc && *ret_claimed > 0)
        rc = weft_bench_ask(conn, &next, &answer, err);
    return rc;
}

enum weft_rc weft_bench_sweep(const struct weft_bench_plan *plan,
                              const struct weft_bench_target *target, struct weft_err *err)
{
    struct weft_bench_conn conn = {.fd = -1};
    struct weft_buf body, request;
    weft_buf_init(&body, 1 << 20);
    weft_buf_init(&request, 1 << 20);
    const struct weft_bench_ask ask = {.target = target, .body = &body, .request = &request};
    enum weft_rc rc = weft_bench_connect(&conn, target, err);
    for (size_t claimed = 1; !rc && claimed > 0;) {
        claimed = 0;
        rc = sweep_once(plan, &conn, &ask, &claimed, err);
    }
    weft_buf_done(&body);
    weft_buf_done(&request);
    weft_bench_close(&conn);
    return rc;
}
