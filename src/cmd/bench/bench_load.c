/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The load: every connection repeats submit, claim, complete, on one epoll.
 *
 *     warm-up     as below, but nothing is measured
 *     measured    submit -> claim -> complete what was claimed -> ...
 *     drain       nothing new; claim and complete until as much is completed as was submitted
 *
 * In balance a claim finds a whole batch, because each connection submits one before it claims.
 * Claims that overlap may get less, and what they leave would pile up: so a connection claims
 * instead of submitting while a batch per connection is ready. After a lost answer to a claim its
 * leases run out; after a lost answer to a submission its executions are in doubt, and counted so.
 *
 * In the mode waiting a connection suspends an execution that it claims for the first time, sends
 * the signal that resumes it, and claims again; one that was resumed is completed.
 *
 * With flows a connection submits when a chain is idle, and else claims. A flow is a chain, in
 * which each node comes after the one before it. Every chain that is under way has a number; the
 * connection that completes its last node submits it again. The payload of a node holds the number
 * of its chain and its place. A hop is the time from the answer to the completion of a node to the
 * answer of the claim that got the next one: the cascade, and the claim after it. A claim may be
 * answered before the completion that made it possible: that is a hop of 0. A node that begins
 * before its upstream was completed is an error of the server.
 */

#include "base/clock.h"
#include "cmd/bench/bench.h"
#include "cmd/cli/output.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    WAIT_MS = 1000,
    DRAIN_WAIT_MS = 200,
    DRAIN_MAX_MS = 30000, /* longer than a lease */
    TICK_MS = 100,
    PAUSE_MS = 50,       /* after an error that says nothing of how long to wait */
    UNREACHED_MAX = 100, /* connections refused in a row */
    BODY_MAX = 256 << 20,
};

enum phase { WARM_UP, MEASURED, DRAIN };

/* A node of a chain. */
struct member {
    uint32_t chain; /* its number: 0 .. plan->flows - 1 */
    uint32_t node;  /* its place: 0 .. plan->nodes - 1 */
};

struct chain {
    struct weft_buf request; /* its submission */
    bool busy;
    uint32_t sent;          /* nodes whose completion has been sent */
    weft_usec completed_us; /* when the last completion was answered; 0: it is not */
};

struct line {
    struct weft_bench_conn conn;
    enum weft_bench_call call; /* what is in flight, or waits to be sent */
    bool in_flight, idle;
    bool found_none;           /* the last claim was empty */
    weft_usec sent_us;         /* of what is in flight */
    weft_usec resume_us;       /* when to send; 0: nothing waits */
    struct weft_buf body, out; /* of the completion; sent again after a failure */
    size_t claimed;            /* items of the completion */
    enum weft_bench_call next; /* what is sent for these: it is in `out` */
    uint32_t chain;            /* mode flow: what is submitted */
    struct member *member;     /* mode flow: the nodes that were claimed */
};

struct load {
    const struct weft_bench_plan *plan;
    struct weft_bench_target target;
    struct weft_bench_result *result;
    struct weft_arena *arena; /* of the lines */
    struct line *line;        /* array of plan->connections */
    struct chain *chain;      /* mode flow: array of plan->flows, else NULL */
    uint32_t *idle;           /* mode flow: a stack of numbers of chains */
    uint32_t idle_count;
    uint32_t per_submit; /* executions */
    int epoll;
    struct weft_buf submit, claim, claim_drain; /* whole requests */
    enum phase phase;
    int64_t backlog; /* submitted and not claimed, as far as we know */
    uint32_t unreached;
    uint32_t waiting; /* lines with a resume_us */
    weft_usec now_us;
};

/* ---- Chains ---------------------------------------------------------------------------------- */

static void add_node(const struct weft_bench_plan *plan, uint32_t chain, uint32_t node,
                     struct weft_buf *out)
{
    weft_buf_printf(out, "%s{\"name\":\"n%u\",\"lane\":\"%s\",\"kind\":\"" WEFT_BENCH_KIND "\"",
                    node > 0 ? "," : "", node, plan->lane);
    weft_buf_printf(out, ",\"payload\":{\"chain\":%u,\"node\":%u,\"data\":", chain, node);
    weft_bench_document(out, plan->payload_size, 0);
    weft_buf_add_text(out, "}");
    if (node > 0)
        weft_buf_printf(out, ",\"after\":[\"n%u\"]", node - 1);
    weft_buf_add_char(out, '}');
}

static void make_chains(struct load *load, struct weft_buf *body)
{
    const struct weft_bench_plan *plan = load->plan;
    load->chain = weft_new_array(load->arena, struct chain, plan->flows);
    load->idle = weft_new_array(load->arena, uint32_t, plan->flows);
    for (uint32_t i = 0; i < plan->flows; i++) {
        weft_buf_clear(body);
        weft_buf_add_text(body, "{\"name\":\"" WEFT_BENCH_KIND "\",\"nodes\":[");
        for (uint32_t node = 0; node < plan->nodes; node++)
            add_node(plan, i, node, body);
        weft_buf_add_text(body, "]}");
        weft_buf_init(&load->chain[i].request, BODY_MAX);
        weft_bench_request(&load->target, "/v1/flows", body, &load->chain[i].request);
        load->idle[load->idle_count++] = i;
    }
}

/* Takes a chain that is idle. */
static uint32_t begin_chain(struct load *load)
{
    uint32_t number = load->idle[--load->idle_count];
    struct chain *chain = &load->chain[number];
    chain->busy = true;
    chain->sent = 0;
    chain->completed_us = 0;
    return number;
}

static bool find_number(const struct weft_json *object, const char *name, uint32_t below,
                        uint32_t *ret_number)
{
    struct weft_json value;
    int64_t number;
    if (!weft_wire_member(object, name, &value) || !weft_json_i64(&value, &number) || number < 0 ||
        number >= below)
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

static void note_start(struct load *load, const struct member *member)
{
    struct chain *chain = &load->chain[member->chain];
    struct weft_bench_result *result = load->result;
    /* A submission that was repeated, because its answer was lost, gives two chains of a number. */
    if (member->node > chain->sent && result->doubtful == 0)
        weft_bench_count_error(&result->errors, "too_early", 9);
    else if (member->node > 0 && member->node == chain->sent && load->phase == MEASURED)
        weft_hist_add(&result->hop, chain->completed_us ? load->now_us - chain->completed_us : 0);
}

/* Reads which nodes a claim gave: as many as were asked for, at most. */
static enum weft_rc take_members(struct load *load, struct line *line,
                                 const struct weft_bench_answer *answer, struct weft_err *err)
{
    struct weft_json value, items, payload;
    struct weft_json_iter iter;
    enum weft_rc rc = weft_json_check(answer->body, answer->body_size, &value, err);
    if (rc || !weft_wire_member(&value, "items", &items))
        return rc;
    weft_json_iter_init(&iter, &items);
    for (size_t i = 0; weft_json_next(&iter); i++) {
        struct member *member = &line->member[i];
        if (!weft_wire_member(&iter.value, "payload", &payload) ||
            !find_number(&payload, "chain", load->plan->flows, &member->chain) ||
            !find_number(&payload, "node", load->plan->nodes, &member->node))
            return weft_fail(err, WEFT_INVALID_VALUE, "a claimed item is no node of a chain");
        note_start(load, member);
    }
    return WEFT_OK;
}

/* The completion of these nodes is being sent. */
static void note_completing(struct load *load, const struct line *line)
{
    for (size_t i = 0; i < line->claimed; i++) {
        struct chain *chain = &load->chain[line->member[i].chain];
        if (chain->sent == line->member[i].node) {
            chain->sent++;
            chain->completed_us = 0;
        }
    }
}

/* Their completion has been answered: how many chains have ended. */
static size_t note_completed(struct load *load, const struct line *line)
{
    size_t ended = 0;
    for (size_t i = 0; i < line->claimed; i++) {
        const struct member *member = &line->member[i];
        struct chain *chain = &load->chain[member->chain];
        if (chain->sent == member->node + 1)
            chain->completed_us = load->now_us;
        if (member->node + 1 < load->plan->nodes)
            continue;
        if (chain->busy)
            load->idle[load->idle_count++] = member->chain;
        chain->busy = false;
        ended++;
    }
    return ended;
}

/* ---- Sending --------------------------------------------------------------------------------- */

static void watch(struct load *load, struct line *line, int how)
{
    bool unsent = line->conn.out_sent < line->conn.out_size;
    struct epoll_event event = {.events = unsent ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = line};
    (void)epoll_ctl(load->epoll, how, line->conn.fd, &event);
}

static void pause_line(struct load *load, struct line *line, int64_t for_ms)
{
    line->in_flight = false;
    if (line->resume_us == 0)
        load->waiting++;
    line->resume_us = load->now_us + for_ms * WEFT_MS;
}

/* The connection broke. Its request is sent again; executions of a submission are in doubt. */
static void on_broken(struct load *load, struct line *line)
{
    weft_bench_count_error(&load->result->errors, "connection", 10);
    if (line->in_flight && line->call == WEFT_BENCH_SUBMIT)
        load->result->doubtful += load->per_submit;
    if (line->conn.fd >= 0)
        (void)epoll_ctl(load->epoll, EPOLL_CTL_DEL, line->conn.fd, NULL);
    weft_bench_close(&line->conn);
    pause_line(load, line, PAUSE_MS);
}

static bool ensure_connected(struct load *load, struct line *line)
{
    struct weft_err err;
    if (line->conn.fd >= 0)
        return true;
    if (weft_bench_connect(&line->conn, &load->target, &err)) {
        load->unreached++;
        weft_bench_count_error(&load->result->errors, "unreachable", 11);
        pause_line(load, line, PAUSE_MS);
        return false;
    }
    load->unreached = 0;
    watch(load, line, EPOLL_CTL_ADD);
    return true;
}

static void send_call(struct load *load, struct line *line)
{
    if (!ensure_connected(load, line))
        return;
    const struct weft_buf *request = &line->out;
    if (line->call == WEFT_BENCH_SUBMIT && load->chain)
        request = &load->chain[line->chain].request;
    else if (line->call == WEFT_BENCH_SUBMIT)
        request = &load->submit;
    else if (line->call == WEFT_BENCH_CLAIM)
        request = load->phase == DRAIN ? &load->claim_drain : &load->claim;
    if (line->call == WEFT_BENCH_COMPLETE && load->chain)
        note_completing(load, line);
    struct weft_err err;
    line->in_flight = true;
    line->sent_us = weft_boot_us();
    if (weft_bench_send(&line->conn, request->data, request->size, &err))
        on_broken(load, line);
    else if (line->conn.out_sent < line->conn.out_size)
        watch(load, line, EPOLL_CTL_MOD);
}

/* Chooses the next call of a connection. False: the connection has nothing left to do. */
static bool choose(struct load *load, struct line *line)
{
    const struct weft_bench_plan *plan = load->plan;
    if (line->claimed > 0) {
        line->call = line->next;
        return true;
    }
    if (load->phase == DRAIN) {
        line->call = WEFT_BENCH_CLAIM;
        return load->backlog > 0 || (load->result->doubtful > 0 && !line->found_none);
    }
    if (load->chain) {
        line->call = load->idle_count > 0 ? WEFT_BENCH_SUBMIT : WEFT_BENCH_CLAIM;
        if (line->call == WEFT_BENCH_SUBMIT)
            line->chain = begin_chain(load);
        return true;
    }
    bool submitted = line->call == WEFT_BENCH_SUBMIT;
    bool piled_up = load->backlog >= (int64_t)plan->batch * plan->connections;
    line->call = submitted || piled_up ? WEFT_BENCH_CLAIM : WEFT_BENCH_SUBMIT;
    return true;
}

static void send_next(struct load *load, struct line *line)
{
    line->idle = !choose(load, line);
    if (!line->idle)
        send_call(load, line);
}

/* ---- Answers --------------------------------------------------------------------------------- */

static enum weft_rc take_submit(struct load *load, struct line *line,
                                const struct weft_bench_answer *answer, struct weft_err *err)
{
    (void)line;
    size_t good;
    enum weft_rc rc = weft_bench_read_items(answer, &load->result->errors, &good, err);
    if (rc)
        return rc;
    size_t submitted = load->chain ? load->plan->nodes : good;
    load->result->submitted += submitted;
    load->backlog += (int64_t)submitted;
    return WEFT_OK;
}

static enum weft_rc take_claim(struct load *load, struct line *line,
                               const struct weft_bench_answer *answer, struct weft_err *err)
{
    enum weft_rc rc = weft_bench_read_claim(answer, &line->body, &line->claimed, err);
    if (rc)
        return rc;
    load->backlog -= (int64_t)line->claimed;
    line->found_none = line->claimed == 0;
    if (load->chain)
        rc = take_members(load, line, answer, err);
    line->next = WEFT_BENCH_COMPLETE;
    if (load->plan->mode == WEFT_BENCH_WAITING && weft_bench_read_fresh(answer, &line->body))
        line->next = WEFT_BENCH_SUSPEND;
    if (line->claimed > 0)
        weft_bench_request(&load->target,
                           line->next == WEFT_BENCH_SUSPEND ? "/v1/leases/suspend"
                                                            : "/v1/leases/complete",
                           &line->body, &line->out);
    return rc;
}

static enum weft_rc take_suspend(struct load *load, struct line *line,
                                 const struct weft_bench_answer *answer, struct weft_err *err)
{
    enum weft_rc rc = weft_bench_read_suspended(answer, &line->body, err);
    if (rc)
        return rc;
    line->next = WEFT_BENCH_SIGNAL;
    weft_bench_request(&load->target, "/v1/signals", &line->body, &line->out);
    return WEFT_OK;
}

static enum weft_rc take_signal(struct load *load, struct line *line,
                                const struct weft_bench_answer *answer, struct weft_err *err)
{
    size_t good;
    line->claimed = 0;
    enum weft_rc rc = weft_bench_read_items(answer, &load->result->errors, &good, err);
    if (!rc)
        load->backlog += (int64_t)good; /* it is ready again */
    return rc;
}

static enum weft_rc take_complete(struct load *load, struct line *line,
                                  const struct weft_bench_answer *answer, struct weft_err *err)
{
    size_t good;
    size_t flows = load->chain ? note_completed(load, line) : 0;
    line->claimed = 0;
    enum weft_rc rc = weft_bench_read_items(answer, &load->result->errors, &good, err);
    if (rc)
        return rc;
    load->result->completed += good;
    if (load->phase == MEASURED) {
        load->result->lifecycles += good;
        load->result->flows += flows;
    }
    return WEFT_OK;
}

static enum weft_rc (*const take_answer[WEFT_BENCH_CALLS])(struct load *load, struct line *line,
                                                           const struct weft_bench_answer *answer,
                                                           struct weft_err *err) = {
    [WEFT_BENCH_SUBMIT] = take_submit,     [WEFT_BENCH_CLAIM] = take_claim,
    [WEFT_BENCH_COMPLETE] = take_complete, [WEFT_BENCH_SUSPEND] = take_suspend,
    [WEFT_BENCH_SIGNAL] = take_signal,
};

static void on_answer(struct load *load, struct line *line, const struct weft_bench_answer *answer)
{
    struct weft_bench_result *result = load->result;
    line->in_flight = false;
    bool closes = answer->closes, good = answer->status >= 200 && answer->status < 300;
    bool later = answer->status == 429 || answer->status == 503;
    int64_t pause_ms = answer->retry_after_ms > 0 ? answer->retry_after_ms : PAUSE_MS;
    if (good && load->phase == MEASURED) {
        weft_hist_add(&result->call[line->call], load->now_us - line->sent_us);
        weft_hist_add(&result->all, load->now_us - line->sent_us);
    }
    struct weft_err err;
    if (!good) {
        weft_bench_read_refusal(answer, &result->errors);
        if (!later && line->call >= WEFT_BENCH_COMPLETE)
            line->claimed = 0; /* it will not be taken the next time either */
    } else if (take_answer[line->call](load, line, answer, &err)) {
        weft_bench_count_error(&result->errors, "bad_answer", 10);
        good = false;
    }
    if (closes) {
        (void)epoll_ctl(load->epoll, EPOLL_CTL_DEL, line->conn.fd, NULL);
        weft_bench_close(&line->conn);
    }
    if (good)
        send_next(load, line);
    else
        pause_line(load, line, pause_ms);
}

static void on_event(struct load *load, struct line *line, uint32_t events)
{
    struct weft_bench_answer answer;
    enum weft_bench_parsed parsed = WEFT_BENCH_MORE;
    struct weft_err err;
    enum weft_rc rc = WEFT_OK;
    if (line->conn.fd < 0)
        return; /* closed by what was heard before it in the same turn */
    if (events & EPOLLOUT) {
        rc = weft_bench_flush(&line->conn, &err);
        if (!rc && line->conn.out_sent == line->conn.out_size)
            watch(load, line, EPOLL_CTL_MOD);
    }
    if (!rc && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        rc = weft_bench_receive(&line->conn, &answer, &parsed, &err);
    load->now_us = weft_boot_us();
    if (rc || (parsed == WEFT_BENCH_WHOLE && !line->in_flight))
        on_broken(load, line);
    else if (parsed == WEFT_BENCH_WHOLE)
        on_answer(load, line, &answer);
}

/* ---- The loop -------------------------------------------------------------------------------- */

static void resume(struct load *load)
{
    for (uint32_t i = 0; i < load->plan->connections; i++) {
        struct line *line = &load->line[i];
        if (line->resume_us == 0 || load->now_us < line->resume_us)
            continue;
        line->resume_us = 0;
        load->waiting--;
        if (load->phase == DRAIN && line->call == WEFT_BENCH_SUBMIT)
            send_next(load, line); /* nothing new is submitted any more */
        else
            send_call(load, line);
    }
}

static void poll_once(struct load *load)
{
    struct epoll_event event[64];
    int count = epoll_wait(load->epoll, event, WEFT_LEN(event), load->waiting ? 5 : TICK_MS);
    for (int i = 0; i < count; i++)
        on_event(load, event[i].data.ptr, event[i].events);
    load->now_us = weft_boot_us();
    if (load->waiting > 0)
        resume(load);
}

static bool all_idle(const struct load *load)
{
    for (uint32_t i = 0; i < load->plan->connections; i++)
        if (!load->line[i].idle)
            return false;
    return true;
}

static double used_cpu_s(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Serves the connections until a moment; false: the server is gone, or a signal came. */
static bool poll_until(struct load *load, weft_usec until_us, struct weft_bar *bar)
{
    while (load->now_us < until_us) {
        poll_once(load);
        weft_bar_set(bar, load->result->completed);
        if (load->unreached > UNREACHED_MAX || weft_cli_interrupted())
            return false;
    }
    return true;
}

static enum weft_rc run_phases(struct load *load, struct weft_bar *bar, struct weft_err *err)
{
    struct weft_bench_result *result = load->result;
    load->now_us = weft_boot_us();
    for (uint32_t i = 0; i < load->plan->connections; i++) {
        load->line[i].call = WEFT_BENCH_CALLS; /* none yet */
        send_next(load, &load->line[i]);
    }
    bool goes = poll_until(load, load->now_us + load->plan->warmup_ms * WEFT_MS, bar);
    weft_usec begun_us = load->now_us;
    double cpu_s = used_cpu_s();
    load->phase = MEASURED;
    goes = goes && poll_until(load, begun_us + load->plan->run_ms * WEFT_MS, bar);
    result->seconds = (double)(load->now_us - begun_us) / 1e6;
    if (result->seconds > 0) {
        result->per_s =
            (double)(load->chain ? result->flows : result->lifecycles) / result->seconds;
        result->client_cpu = (used_cpu_s() - cpu_s) / result->seconds;
    }
    load->phase = DRAIN;
    weft_usec until_us = load->now_us + DRAIN_MAX_MS * WEFT_MS;
    while (load->unreached <= UNREACHED_MAX && load->now_us < until_us && !all_idle(load))
        poll_once(load);
    if (load->unreached > UNREACHED_MAX)
        return weft_fail(err, WEFT_UNAVAILABLE, "the server at %s is gone", load->target.host);
    if (!goes)
        return weft_fail(err, WEFT_BUSY, "interrupted");
    return WEFT_OK;
}

/* ---- Start and end --------------------------------------------------------------------------- */

static void prepare(struct load *load)
{
    const struct weft_bench_plan *plan = load->plan;
    struct weft_buf body;
    weft_buf_init(&body, BODY_MAX);
    weft_buf_init(&load->submit, BODY_MAX);
    weft_buf_init(&load->claim, BODY_MAX);
    weft_buf_init(&load->claim_drain, BODY_MAX);
    weft_bench_submission(plan, &body);
    weft_bench_request(&load->target, "/v1/executions", &body, &load->submit);
    weft_bench_claim_body(plan, plan->batch, WAIT_MS, &body);
    weft_bench_request(&load->target, "/v1/claims", &body, &load->claim);
    weft_bench_claim_body(plan, plan->batch, DRAIN_WAIT_MS, &body);
    weft_bench_request(&load->target, "/v1/claims", &body, &load->claim_drain);
    load->arena = weft_arena_new();
    load->line = weft_new_array(load->arena, struct line, plan->connections);
    for (uint32_t i = 0; i < plan->connections; i++) {
        load->line[i].conn.fd = -1;
        weft_buf_init(&load->line[i].body, BODY_MAX);
        weft_buf_init(&load->line[i].out, BODY_MAX);
        load->line[i].member = weft_new_array(load->arena, struct member, plan->batch);
    }
    load->per_submit = plan->mode == WEFT_BENCH_FLOW ? plan->nodes : plan->batch;
    if (plan->mode == WEFT_BENCH_FLOW)
        make_chains(load, &body);
    weft_buf_done(&body);
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
}

static void finish(struct load *load)
{
    for (uint32_t i = 0; i < load->plan->connections; i++) {
        weft_bench_close(&load->line[i].conn);
        weft_buf_done(&load->line[i].body);
        weft_buf_done(&load->line[i].out);
    }
    for (uint32_t i = 0; load->chain && i < load->plan->flows; i++)
        weft_buf_done(&load->chain[i].request);
    weft_arena_free(load->arena);
    if (load->epoll >= 0)
        (void)close(load->epoll);
    weft_buf_done(&load->submit);
    weft_buf_done(&load->claim);
    weft_buf_done(&load->claim_drain);
}

enum weft_rc weft_bench_load(const struct weft_bench_plan *plan,
                             struct weft_bench_result *ret_result, struct weft_err *err)
{
    struct load load = {.plan = plan, .result = ret_result, .epoll = -1};
    load.target = (struct weft_bench_target){.token = plan->token, .ns = plan->ns};
    enum weft_rc rc = weft_bench_resolve(plan->server, &load.target, err);
    if (!rc)
        rc = weft_bench_sweep(plan, &load.target, err);
    if (rc)
        return rc;
    prepare(&load);
    struct weft_bar *bar = weft_bar_new("lifecycles", 0);
    if (load.epoll < 0)
        rc = weft_fail(err, WEFT_UNAVAILABLE, "no epoll: %s", strerrordesc_np(errno));
    else
        rc = run_phases(&load, bar, err);
    weft_bar_free(bar);
    finish(&load);
    return rc;
}
