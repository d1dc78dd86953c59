/* SPDX-License-Identifier: Apache-2.0 */

/* Time: the clock, the passes, and the way of every execution to its end. */

#include "waitmodel.h"

#include "base/arena.h"
#include "base/clock.h"
#include "core/state.h"
#include "engine/engine.h"
#include "engine/ready/poll.h"
#include "engine/scan/pass.h"
#include "weft/admin.h"

/* ---- Passes ---------------------------------------------------------------------------------- */

static void time_out(struct world *w, struct execution *x)
{
    fail_attempt(
        w, x,
        &(struct change){.ended = WEFT_ENDED_TIMED_OUT,
                         .by = "attempt_timeout",
                         .error_class = "attempt_timeout",
                         .error_message = "the attempt took longer than its policy allows"},
        false);
}

static void lose(struct world *w, struct execution *x)
{
    if (x->attempt_deadline_us && x->attempt_deadline_us <= w->now_us) {
        time_out(w, x);
    } else if (x->lost >= LOST_MAX) {
        change_state(
            w, x,
            &(struct change){.to = WEFT_STATE_FAILED,
                             .ended = WEFT_ENDED_LOST,
                             .by = "lease_expiry",
                             .error_class = "lost_too_often",
                             .error_message =
                                 "its lease ran out too often: the workers that took it died"});
    } else {
        change_state(w, x, &(struct change){.to = WEFT_STATE_READY, .ended = WEFT_ENDED_LOST});
        x->lost++;
    }
}

static void end_suspension(struct world *w, struct execution *x)
{
    struct change change = {.by = "suspension_timeout", .reason = "suspension_timeout"};
    switch (x->suspension.on_timeout) {
    case WEFT_ON_TIMEOUT_RESUME:
        resume(w, x, WEFT_RESUMED_BY_TIMEOUT, x->suspension.resume_delay_ms);
        return;
    case WEFT_ON_TIMEOUT_ESCALATE:
        x->suspension.escalated = x->touched = true;
        x->due_us = 0;
        return;
    case WEFT_ON_TIMEOUT_CANCEL:
        change.to = WEFT_STATE_CANCELLED;
        change.ended = WEFT_ENDED_CANCELLED;
        break;
    case WEFT_ON_TIMEOUT_EXPIRE:
        change.to = WEFT_STATE_EXPIRED;
        change.ended = WEFT_ENDED_EXPIRED;
        break;
    case WEFT_ON_TIMEOUT_FAIL:
        change.to = WEFT_STATE_FAILED;
        change.ended = WEFT_ENDED_SUSPENSION_TIMEOUT;
        change.reason = NULL;
        change.error_class = "suspension_timeout";
        change.error_message = "what it waited for did not come in time";
        break;
    }
    change_state(w, x, &change);
}

/* When a pass has to look at an execution; 0: not as it is. */
static weft_usec due_for(const struct execution *x, enum weft_scanner scanner)
{
    bool running = x->state == WEFT_STATE_RUNNING;
    if (scanner == WEFT_SCANNER_LEASE_EXPIRY)
        return running ? x->due_us : 0;
    if (scanner == WEFT_SCANNER_ATTEMPT_TIMEOUT)
        return running ? x->attempt_deadline_us : 0;
    if (scanner == WEFT_SCANNER_DELAYED_PROMOTER)
        return x->state == WEFT_STATE_DELAYED ? x->due_us : 0;
    if (scanner == WEFT_SCANNER_EXECUTION_DEADLINE)
        return lives(x->state) ? x->deadline_us : 0;
    return x->state == WEFT_STATE_SUSPENDED ? x->due_us : 0;
}

static void handle(struct world *w, struct execution *x, enum weft_scanner scanner)
{
    if (scanner == WEFT_SCANNER_LEASE_EXPIRY)
        lose(w, x);
    else if (scanner == WEFT_SCANNER_ATTEMPT_TIMEOUT)
        time_out(w, x);
    else if (scanner == WEFT_SCANNER_DELAYED_PROMOTER)
        change_state(w, x, &(struct change){.to = WEFT_STATE_READY});
    else if (scanner == WEFT_SCANNER_EXECUTION_DEADLINE)
        change_state(w, x,
                     &(struct change){.to = WEFT_STATE_EXPIRED,
                                      .ended = WEFT_ENDED_EXPIRED,
                                      .by = "execution_deadline",
                                      .reason = "its deadline passed"});
    else
        end_suspension(w, x);
}

/* Pending waitpoints that have expired, also of executions that are over; each once. */
static uint64_t expire_points(struct world *w, struct execution *x)
{
    uint64_t count = 0;
    for (size_t i = 0; i < x->points; i++) {
        struct point *point = &x->point[i];
        bool expired = point->taken == 0 && !point->counted && point->expires_us &&
                       point->expires_us <= w->now_us;
        point->counted |= expired;
        x->touched |= expired;
        count += expired;
    }
    return count;
}

static void pass(struct world *w, enum weft_scanner scanner)
{
    struct weft_pass_report report = {0};
    struct weft_err err = {0};
    size_t engine = any_engine(w);
    uint64_t want = 0;
    must_be(w, weft_engine_pass(w->engine[engine], scanner, NULL, &report, &err), WEFT_OK,
            weft_scanner_name(scanner));
    for (size_t i = 0; i < w->executions; i++) {
        struct execution *x = &w->execution[i];
        weft_usec due_us = due_for(x, scanner);
        if (scanner == WEFT_SCANNER_WAITPOINT_EXPIRY) {
            want += expire_points(w, x);
        } else if (due_us && due_us <= w->now_us) {
            handle(w, x, scanner);
            want++;
        }
    }
    note(w, "engine %zu: %s handles %llu", engine, weft_scanner_name(scanner),
         (unsigned long long)report.handled);
    if (report.handled != want)
        wrong(w, "%s handles %llu, must handle %llu", weft_scanner_name(scanner),
              (unsigned long long)report.handled, (unsigned long long)want);
}

static const enum weft_scanner scanners[] = {
    WEFT_SCANNER_SUSPENSION_TIMEOUT, WEFT_SCANNER_WAITPOINT_EXPIRY,   WEFT_SCANNER_LEASE_EXPIRY,
    WEFT_SCANNER_DELAYED_PROMOTER,   WEFT_SCANNER_EXECUTION_DEADLINE, WEFT_SCANNER_ATTEMPT_TIMEOUT};

static void pass_all(struct world *w)
{
    for (size_t i = 0; i < WEFT_LEN(scanners) && !w->failed; i++) {
        pass(w, scanners[i]);
        end_step(w);
    }
}

/* Any of them, but mostly one that has something to do. */
void op_pass(struct world *w)
{
    enum weft_scanner scanner = scanners[below(w, WEFT_LEN(scanners))];
    size_t from = below(w, WEFT_LEN(scanners));
    for (size_t i = 0; i < w->executions * WEFT_LEN(scanners) && chance(w, 98); i++) {
        enum weft_scanner other = scanners[(from + i) % WEFT_LEN(scanners)];
        weft_usec due_us = due_for(&w->execution[i / WEFT_LEN(scanners)], other);
        if (other != WEFT_SCANNER_WAITPOINT_EXPIRY && due_us && due_us <= w->now_us)
            scanner = other;
    }
    pass(w, scanner);
}

/* ---- The clock ------------------------------------------------------------------------------- */

static void set_clock(struct world *w, weft_usec now_us)
{
    w->now_us = now_us;
    for (size_t i = 0; i < ENGINES; i++)
        weft_clock_set(weft_engine_clock(w->engine[i]), now_us);
}

static void look_ahead(const struct world *w, weft_usec moment_us, weft_usec *next_us)
{
    if (moment_us > w->now_us && moment_us < *next_us)
        *next_us = moment_us;
}

/* The next moment at which something is due; WEFT_NEVER: none. */
static weft_usec next_moment(const struct world *w)
{
    weft_usec next_us = WEFT_NEVER;
    for (size_t i = 0; i < w->executions; i++) {
        const struct execution *x = &w->execution[i];
        for (size_t s = 0; s < WEFT_LEN(scanners); s++)
            if (scanners[s] != WEFT_SCANNER_WAITPOINT_EXPIRY)
                look_ahead(w, due_for(x, scanners[s]), &next_us);
        for (size_t p = 0; p < x->points; p++)
            if (x->point[p].taken == 0)
                look_ahead(w, x->point[p].expires_us, &next_us);
    }
    for (size_t i = 0; i < w->keys.count; i++)
        look_ahead(w, w->keys.key[i].retires_us, &next_us);
    return next_us;
}

void op_clock(struct world *w)
{
    weft_usec next_us = next_moment(w),
              to_us = w->now_us + (weft_usec)(1 + below(w, 8000)) * WEFT_MS;
    if (next_us != WEFT_NEVER && chance(w, 60))
        to_us = next_us - chance(w, 15); /* at that moment, or a microsecond before */
    set_clock(w, to_us);
    note(w, "time goes on to %lld ms", (long long)((w->now_us - START_US) / WEFT_MS));
}

/* ---- To the end ------------------------------------------------------------------------------ */

static bool all_over(const struct world *w)
{
    for (size_t i = 0; i < w->executions; i++)
        if (lives(w->execution[i].state))
            return false;
    return true;
}

/* Nothing is left that a scanner would look for. */
static void check_left(struct world *w)
{
    struct weft_poll poll = {0};
    struct weft_err err = {0};
    must_be(w, weft_engine_poll(w->engine[any_engine(w)], w->arena, &poll, &err), WEFT_OK, "poll");
    for (size_t i = 0; i < WEFT_LEN(scanners) && !w->failed; i++)
        if (poll.due_us[scanners[i]] != WEFT_NEVER && poll.due_us[scanners[i]] != WEFT_UNTOLD)
            wrong(w, "%s still has something to do", weft_scanner_name(scanners[i]));
}

void run_out(struct world *w)
{
    enum { ROUNDS = 1000 };
    static void (*const op[])(struct world *) = {op_claim,    op_claim,  op_complete,
                                                 op_complete, op_resume, op_signal};
    for (size_t round = 0; round < ROUNDS && !w->failed && !all_over(w); round++) {
        w->step++;
        op[below(w, WEFT_LEN(op))](w);
        end_step(w);
        if (w->failed || round % 8 < 7)
            continue;
        op_clock(w);
        pass_all(w);
    }
    if (!w->failed && !all_over(w))
        wrong(w, "an execution does not come to its end");
    set_clock(w, w->now_us + 60 * WEFT_SECOND);
    pass_all(w);
    if (!w->failed)
        compare(w, true);
    if (!w->failed)
        check_left(w);
}
