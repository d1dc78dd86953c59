/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A payment whose webhook is faster than the worker.
 *
 *     webhook [URL]      sqlite:webhook.db when no URL is given; http://127.0.0.1:7717 is a server
 *
 * The handler makes a waitpoint, gives its token to the provider as the address to call back, and
 * suspends. The provider has called back by then: the signal was kept, the suspend is satisfied at
 * once, and the handler is called again under the same lease.
 */

#include <weft/weft.h>

#include <stdio.h>
#include <string.h>

/* The provider: it calls back before the request has returned. A real one would
 * POST /v1/signals/TOKEN?name=paid&key=... to a server. */
static enum weft_rc order_payment(struct weft *weft, const char *token, struct weft_err *err)
{
    const struct weft_signal signal = {.token = token,
                                       .name = "paid",
                                       .key = "payment-4711", /* a repeat is harmless */
                                       .payload = "{\"cents\":1999}",
                                       .payload_size = strlen("{\"cents\":1999}")};
    struct weft_signalled answer;
    enum weft_rc rc = weft_signal(weft, &signal, 1, &answer, err);
    if (!rc && answer.err.rc) {
        *err = answer.err;
        rc = err->rc;
    }
    if (rc)
        return rc;
    printf("the webhook comes before the suspend: %s\n", weft_signal_effect_name(answer.effect));
    return WEFT_OK;
}

static enum weft_verdict pay(struct weft_job *job, void *context)
{
    struct weft *weft = context;
    struct weft_waitpoint waitpoint;
    struct weft_err err;
    size_t count;
    const struct weft_signal_info *signal = weft_job_signals(job, &count);
    if (count > 0) {
        printf("lease %d goes on with the signal \"%s\"\n", weft_job_claimed(job)->epoch,
               signal[0].name);
        weft_job_result(job, signal[0].payload, signal[0].payload_size, signal[0].content_type);
        return WEFT_DONE;
    }
    printf("lease %d orders the payment\n", weft_job_claimed(job)->epoch);
    if (weft_job_waitpoint(job, "payment", 0, &waitpoint, &err) ||
        order_payment(weft, waitpoint.token, &err)) {
        weft_job_error(job, "payment", err.text);
        return WEFT_RETRY;
    }
    const struct weft_suspend_at at = {.id = waitpoint.id};
    weft_job_suspend(job, &(struct weft_suspend){.waitpoint = &at,
                                                 .waitpoint_count = 1,
                                                 .timeout_ms = 3600000, /* then it has failed */
                                                 .reason = "waiting for the payment"});
    return WEFT_SUSPEND;
}

/* Submits a payment and waits for its end. */
static enum weft_rc run(struct weft *weft, struct weft_err *err)
{
    const struct weft_spec spec = {.kind = "pay"};
    struct weft_submitted answer;
    struct weft_page page;
    struct weft_bytes bytes;
    enum weft_rc rc = weft_submit(weft, &spec, 1, &answer, err);
    if (!rc)
        rc = weft_wait(weft, &answer.id, 60000, &page, err);
    if (rc)
        return rc;
    printf("the payment has %s\n", weft_state_name(page.item[0].state));
    weft_page_free(&page);
    rc = weft_result(weft, &answer.id, &bytes, err);
    if (rc)
        return rc;
    printf("the result is %.*s\n", (int)bytes.size, (const char *)bytes.data);
    weft_bytes_free(&bytes);
    return WEFT_OK;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "sqlite:webhook.db";
    struct weft *weft = NULL;
    struct weft_worker *worker = NULL;
    struct weft_err err = {0};
    enum weft_rc rc = weft_open(url, NULL, &weft, &err);
    if (!rc)
        rc = weft_worker_new(weft, NULL, &worker, &err);
    if (!rc)
        rc = weft_worker_on(worker, "pay", pay, weft, &err);
    if (!rc)
        rc = weft_worker_start(worker, &err);
    if (!rc)
        rc = run(weft, &err);
    weft_worker_free(worker);
    weft_close(weft);
    if (rc)
        (void)fprintf(stderr, "webhook: %s\n", err.text);
    return rc ? 1 : 0;
}
