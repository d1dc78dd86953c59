/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is to be written about a call that is over: a result, a failure, or that its lease is given
 * back. The rules are in core/http_policy.h.
 */

#include "net/executor/executor_state.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "net/metrics.h"

#include <stdio.h>
#include <string.h>

enum { DETAIL_BODY = 48 << 10, DETAIL_MAX = 64 << 10 }; /* room for escapes */

void weft_outgoing_refuse(struct weft_outgoing *out, const char *error_class, const char *message)
{
    out->outcome = WEFT_OUTGOING_FAIL;
    out->permanent = true;
    (void)snprintf(out->error_class, sizeof(out->error_class), "%s", error_class);
    (void)snprintf(out->message, sizeof(out->message), "%s", message);
}

void weft_outgoing_release(struct weft_outgoing *out, int64_t delay_ms)
{
    out->outcome = WEFT_OUTGOING_RELEASE;
    out->delay_ms = delay_ms;
}

/*
 * Ends the fold; *ended learns what the stream came to, or that our side stopped the call in the
 * middle of its answer. False: there is nothing folded.
 */
static bool end_fold(struct weft_outgoing *out, struct weft_http_ended *ended,
                     struct weft_folded *folded)
{
    struct weft_err *story = &out->story;
    if (out->no_memory || (!story->rc && (!out->fold || ended->failure != WEFT_HTTP_ANSWERED)))
        return false;
    enum weft_rc rc = story->rc ? story->rc : weft_sse_fold_end(out->fold, folded, story);
    if (rc == WEFT_TOO_LARGE)
        ended->failure = WEFT_HTTP_OVERSIZED;
    else if (rc == WEFT_UNAVAILABLE)
        ended->failure = WEFT_HTTP_BROKEN;
    else if (rc)
        ended->failure = WEFT_HTTP_PROTOCOL;
    else if (folded->kind == WEFT_FOLDED_ERROR)
        ended->status = folded->status;
    return rc == WEFT_OK;
}

/* It was still under way when the time that the execution had left was over. */
static bool is_cut(const struct weft_outgoing *out)
{
    return out->cut_ms > 0 && out->end.failure == WEFT_HTTP_TIMEOUT &&
           out->end.phases.total_us >= out->cut_ms * WEFT_MS;
}

static void fail(struct weft_outgoing *out, const struct weft_http_ended *ended,
                 const struct weft_http_decision *made)
{
    const char *text = out->story.rc ? out->story.text : out->end.text;
    out->outcome = WEFT_OUTGOING_FAIL;
    out->permanent = made->verdict == WEFT_HTTP_FAIL;
    (void)snprintf(out->error_class, sizeof(out->error_class), "%s",
                   out->no_memory ? "http_memory" : made->error_class);
    if (out->no_memory)
        (void)snprintf(out->message, sizeof(out->message),
                       "this server has no memory left for the answer");
    else if (ended->failure == WEFT_HTTP_ANSWERED)
        (void)snprintf(out->message, sizeof(out->message), "the server answered %d%s%s",
                       ended->status, made->why ? ": " : "", made->why ? made->why : "");
    else
        (void)snprintf(
            out->message, sizeof(out->message), "%s%s%s", text ? text : "the call failed",
            is_cut(out) ? ": no more was left until the " : "", is_cut(out) ? out->cut_by : "");
}

/* A wait that the server asks for beats the backoff, as far as the endpoint lets it. */
static void read_retry_after(struct weft_outgoing *out)
{
    weft_usec now_us = weft_clock_now(weft_engine_clock(out->executor->engine));
    if (out->permanent || !out->retry_after)
        return;
    weft_usec wait_us = weft_http_retry_after(out->retry_after, strlen(out->retry_after), now_us);
    int64_t most_ms = out->endpoint ? out->endpoint->setting->retry_after_max_ms : INT64_MAX;
    if (wait_us < 0)
        return;
    int64_t ms = (wait_us + WEFT_MS - 1) / WEFT_MS;
    out->retry_after_ms = ms == 0 ? -1 : ms < most_ms ? ms : most_ms;
}

static void write_detail(struct weft_outgoing *out, const struct weft_folded *folded)
{
    if (out->status == 0)
        return;
    weft_buf_init(&out->result, DETAIL_MAX);
    /* Escapes may make a text six times as long. */
    for (size_t most = DETAIL_BODY;
         !weft_answer_write_cut(out, folded, most, &out->result) && most > 64; most /= 2)
        weft_buf_clear(&out->result);
}

static void succeed(struct weft_outgoing *out, const struct weft_folded *folded)
{
    weft_buf_init(&out->result, WEFT_CALL_RESULT_MAX);
    if (weft_answer_write(out, folded, &out->result)) {
        out->outcome = WEFT_OUTGOING_COMPLETE;
        return;
    }
    weft_buf_done(&out->result);
    out->result = (struct weft_buf){0};
    weft_outgoing_refuse(out, "http_too_large",
                         "the answer does not fit a result, which has 12 MiB at most");
}

/* The answer is in the result or in the detail: what came of it need not be kept for the store. */
static void drop_answer(struct weft_outgoing *out)
{
    weft_sse_fold_free(out->fold);
    out->fold = NULL;
    weft_buf_done(&out->body);
    out->body = (struct weft_buf){0};
    atomic_fetch_sub(&out->executor->bytes, out->counted);
    out->counted = out->result.size;
    atomic_fetch_add(&out->executor->bytes, out->counted);
}

static enum weft_breaker_end learn(struct weft_outgoing *out)
{
    const struct weft_crowd_end *end = &out->end;
    const struct weft_known_endpoint *endpoint = out->endpoint;
    struct weft_http_ended ended = {
        .failure = out->no_memory ? WEFT_HTTP_BROKEN : end->failure,
        .status = out->status,
        .method = out->call.method,
        .sent = end->sent,
        .idempotent = endpoint && endpoint->setting->idempotent,
    };
    struct weft_folded folded = {0};
    bool folds = end_fold(out, &ended, &folded);
    struct weft_http_decision made =
        weft_http_decide(endpoint ? &endpoint->retry : &out->executor->retry, &ended);
    if (made.verdict == WEFT_HTTP_SUCCEED) {
        succeed(out, folds ? &folded : NULL);
    } else {
        fail(out, &ended, &made);
        read_retry_after(out);
        write_detail(out, folds ? &folded : NULL);
    }
    drop_answer(out);
    /* Neither says anything about the endpoint. */
    return out->no_memory || is_cut(out) ? WEFT_BREAKER_VOID : made.health;
}

/* The status of a call that succeeded or failed because of it; otherwise its error class. */
static const char *code_of(struct weft_outgoing *out)
{
    static const char prefix[] = "http_";
    const char *code = out->error_class;
    if (out->outcome == WEFT_OUTGOING_COMPLETE)
        return weft_arena_printf(out->arena, "%d", out->status);
    if (strncmp(code, prefix, strlen(prefix)) == 0 && code[5] >= '0' && code[5] <= '9')
        code += strlen(prefix);
    return code;
}

static void count(struct weft_outgoing *out)
{
    struct weft_metrics *metrics = out->executor->metrics;
    const struct weft_crowd_phases *phases = &out->end.phases;
    bool answered = out->end.failure == WEFT_HTTP_ANSWERED && out->status >= 100;
    weft_figures_count(out->executor, out->target, code_of(out));
    if (answered && out->status < 600)
        out->target->answers[out->status / 100 - 1]++;
    else
        out->target->failed++;
    if (!metrics)
        return;
    const int64_t at[WEFT_CALL_PHASES] = {
        [WEFT_CALL_RESOLVED] = phases->resolved_us, [WEFT_CALL_CONNECTED] = phases->connected_us,
        [WEFT_CALL_SECURED] = phases->secured_us,   [WEFT_CALL_ANSWERED] = phases->first_byte_us,
        [WEFT_CALL_ENDED] = phases->total_us,
    };
    for (size_t i = 0; i < WEFT_CALL_PHASES; i++)
        if (at[i] > 0)
            weft_metric_observe(metrics, WEFT_METRIC_CALL_SECONDS, i, (uint64_t)at[i]);
}

void weft_outgoing_judge(struct weft_outgoing *out)
{
    struct weft_executor *executor = out->executor;
    struct weft_target *target = out->target;
    /*
     * A call that was over before its abort reached it has its answer; so has one that data()
     * stopped, because what came is too much or makes no sense.
     */
    bool answered = (!out->end.aborted || out->no_memory || out->story.rc) && !out->gone;
    uint64_t random;
    weft_random(&random, sizeof(random));
    enum weft_breaker_end health = answered ? learn(out) : WEFT_BREAKER_VOID;
    if (!answered)
        weft_outgoing_release(out, 0);
    weft_usec now_us = weft_boot_us();
    pthread_mutex_lock(&executor->lock);
    if (answered)
        count(out);
    if (out->begun)
        weft_breaker_end(&target->breaker, out->ticket, health, now_us, random);
    weft_figures_ended(executor, target);
    target->used_us = now_us;
    pthread_mutex_unlock(&executor->lock);
    if (executor->metrics && !answered)
        weft_metric_add(executor->metrics, WEFT_METRIC_CALL_ABORTED, 0, 1);
    if (executor->metrics && answered && out->outcome == WEFT_OUTGOING_FAIL && !out->permanent)
        weft_metric_add(executor->metrics, WEFT_METRIC_CALL_RETRIED, 0, 1);
}
