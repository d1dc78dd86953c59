/* SPDX-License-Identifier: Apache-2.0 */

/* The passes, as the model has them. */

#include "model.h"

/* When a pass is due to look at a subject; WEFT_NEVER: not as it is. */
static weft_usec due_for(const struct world *w, const struct subject *x, enum weft_scanner pass)
{
    const struct weft_live *live = &x->live;
    bool running = live->state == WEFT_STATE_RUNNING;
    weft_usec moment_us = 0;
    switch (pass) {
    case WEFT_SCANNER_LEASE_EXPIRY:
        moment_us = running ? live->due_us : 0;
        break;
    case WEFT_SCANNER_ATTEMPT_TIMEOUT:
        moment_us = running ? live->attempt_deadline_us : 0;
        break;
    case WEFT_SCANNER_DELAYED_PROMOTER:
        moment_us = live->state == WEFT_STATE_DELAYED ? live->due_us : 0;
        break;
    case WEFT_SCANNER_EXECUTION_DEADLINE:
        moment_us = weft_state_living(live->state) ? live->deadline_us : 0;
        break;
    case WEFT_SCANNER_RETENTION:
        moment_us = weft_state_living(live->state) ? 0 : model_kept_until(w, x);
        break;
    case WEFT_SCANNER_INTAKE:
    case WEFT_SCANNER_WORKER_EXPIRY:
    case WEFT_SCANNER_INVARIANT_CHECK:
    case WEFT_SCANNER_DEPENDENCY:
    case WEFT_SCANNER_EDGE_CANCEL_DISPATCHER:
    case WEFT_SCANNER_EDGE_CANCEL_RECONCILER:
    case WEFT_SCANNER_CANCEL_BACKLOG:
    case WEFT_SCANNER_UNUSED_NAMES:
    case WEFT_SCANNER_SUSPENSION_TIMEOUT:
    case WEFT_SCANNER_WAITPOINT_EXPIRY:
    case WEFT_SCANNER_UNBLOCK:
    case WEFT_SCANNER_BUDGET_RESET:
    case WEFT_SCANNER_PURGE:
    case WEFT_SCANNER_FILE_EXPIRY:
    case WEFT_SCANNER_BATCH_PROGRESS:
    case WEFT_SCANNER_ERASURE:
    case WEFT_SCANNER_COUNT:
        break;
    }
    return moment_us ? moment_us : WEFT_NEVER;
}

static void lose(struct world *w, struct subject *x)
{
    struct weft_event event = weft_lost_decide(&x->spec.rules, &x->live, 0);
    struct story story = {.by = "lease_expiry"};
    if (event.kind == WEFT_EVENT_FAIL) {
        story.error_class = "lost_too_often";
        story.error_message = "its lease ran out too often: the workers that took it died";
    }
    (void)model_step(w, x, &event, &story);
}

static void time_out(struct world *w, struct subject *x)
{
    const struct weft_fault_report report = {
        .how = WEFT_ENDED_TIMED_OUT, .error_class = "attempt_timeout", .now_us = w->now_us};
    const struct story story = {.by = "attempt_timeout",
                                .error_class = "attempt_timeout",
                                .error_message = "the attempt took longer than its policy allows"};
    struct weft_event event = weft_retry_decide(&x->spec.rules, &x->live, &report);
    (void)model_step(w, x, &event, &story);
}

static void handle(struct world *w, struct subject *x, enum weft_scanner pass)
{
    static const struct story expired = {.by = "execution_deadline",
                                         .reason = "its deadline passed"};
    switch (pass) {
    case WEFT_SCANNER_LEASE_EXPIRY:
        if (weft_attempt_overdue(&x->live, w->now_us))
            time_out(w, x);
        else
            lose(w, x);
        break;
    case WEFT_SCANNER_ATTEMPT_TIMEOUT:
        time_out(w, x);
        break;
    case WEFT_SCANNER_DELAYED_PROMOTER:
        (void)model_step(w, x, &(struct weft_event){.kind = WEFT_EVENT_PROMOTE}, NULL);
        break;
    case WEFT_SCANNER_EXECUTION_DEADLINE:
        (void)model_step(w, x, &(struct weft_event){.kind = WEFT_EVENT_EXPIRE}, &expired);
        break;
    case WEFT_SCANNER_RETENTION: /* see forget() */
    case WEFT_SCANNER_INTAKE:
    case WEFT_SCANNER_WORKER_EXPIRY:
    case WEFT_SCANNER_INVARIANT_CHECK:
    case WEFT_SCANNER_DEPENDENCY:
    case WEFT_SCANNER_EDGE_CANCEL_DISPATCHER:
    case WEFT_SCANNER_EDGE_CANCEL_RECONCILER:
    case WEFT_SCANNER_CANCEL_BACKLOG:
    case WEFT_SCANNER_UNUSED_NAMES:
    case WEFT_SCANNER_SUSPENSION_TIMEOUT:
    case WEFT_SCANNER_WAITPOINT_EXPIRY:
    case WEFT_SCANNER_UNBLOCK:
    case WEFT_SCANNER_BUDGET_RESET:
    case WEFT_SCANNER_PURGE:
    case WEFT_SCANNER_FILE_EXPIRY:
    case WEFT_SCANNER_BATCH_PROGRESS:
    case WEFT_SCANNER_ERASURE:
    case WEFT_SCANNER_COUNT:
        break;
    }
}

/* What is due for retention is as if it had never been. */
static struct weft_pass_report forget(struct world *w)
{
    struct weft_pass_report report = {.next_due_us = WEFT_NEVER};
    size_t kept = 0;
    for (size_t i = 0; i < w->subjects; i++) {
        weft_usec due_us = due_for(w, w->subject[i], WEFT_SCANNER_RETENTION);
        if (due_us > w->now_us)
            w->subject[kept++] = w->subject[i];
        if (due_us > w->now_us && due_us < report.next_due_us)
            report.next_due_us = due_us;
    }
    report.handled = w->subjects - kept;
    w->subjects = kept;
    if (report.next_due_us < w->now_us + WEFT_SECOND) /* it is in no hurry */
        report.next_due_us = w->now_us + WEFT_SECOND;
    return report;
}

/* Leases that others ended are forgotten when they would have run out; when the next one is. */
static weft_usec end_drains(struct world *w)
{
    weft_usec next_us = WEFT_NEVER;
    size_t kept = 0;
    for (size_t i = 0; i < w->drains; i++) {
        if (w->drain[i].until_us <= w->now_us)
            continue;
        next_us = w->drain[i].until_us < next_us ? w->drain[i].until_us : next_us;
        w->drain[kept++] = w->drain[i];
    }
    w->drains = kept;
    return next_us;
}

struct weft_pass_report model_pass(struct world *w, enum weft_scanner pass)
{
    struct weft_pass_report report = {.next_due_us = WEFT_NEVER};
    if (pass == WEFT_SCANNER_RETENTION)
        return forget(w);
    if (pass == WEFT_SCANNER_LEASE_EXPIRY)
        report.next_due_us = end_drains(w);
    for (size_t i = 0; i < w->subjects; i++) {
        struct subject *x = w->subject[i];
        if (due_for(w, x, pass) > w->now_us)
            continue;
        handle(w, x, pass);
        report.handled++;
        report.failed += !weft_state_living(x->live.state);
    }
    for (size_t i = 0; i < w->subjects; i++)
        if (due_for(w, w->subject[i], pass) < report.next_due_us)
            report.next_due_us = due_for(w, w->subject[i], pass);
    return report;
}
