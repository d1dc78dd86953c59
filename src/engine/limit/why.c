/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Why an execution does not run: the question that operators ask most. Its state says where to look
 * (core/why.h decides); then one more statement or two read what it waits for: the settings and
 * leases of its lane, the limits of its gate and its place in the line, its upstreams, its
 * waitpoints, the workers that were seen.
 */

#include "engine/limit/why.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "base/moment.h"
#include "core/capset.h"
#include "core/carried.h"
#include "core/why.h"
#include "engine/admin/lanes.h"
#include "engine/admin/workers.h"
#include "engine/engine_state.h"
#include "engine/job/execution_read.h"
#include "engine/limit/budgets.h"
#include "engine/limit/gates.h"
#include "engine/limit/why_carried.h"
#include "engine/wait/wait.h"

#include <inttypes.h>
#include <string.h>

enum {
    NAMED = 10,           /* upstreams, holders of slots, workers that an answer names */
    LINE_MAX_SEEN = 1000, /* places in the line of a gate that are counted */
    DETAIL_MAX = 1 << 16,
};

/* One answer while it is made. */
struct answer {
    struct weft_engine *engine;
    const struct weft_wait_asking *asking;
    struct weft_arena *arena;
    struct weft_execution execution;
    struct weft_why_facts facts;
    struct weft_buf buf; /* of the detail */
    struct weft_json_writer detail;
    const char *text;
    struct weft_why_carried carried; /* of a kind that weft carries out itself */
    struct weft_lane lane;           /* of a ready one */
    weft_usec opens_us;              /* when time makes room in its lane; WEFT_NEVER */
    struct weft_budget budget;       /* of a ready one: that has no room for it, */
    const struct weft_budget_dimension *dimension; /* in this dimension; NULL: it is closed */
    int64_t cost;                                  /* and what it would reserve there */
};

#define SAY(answer, ...) ((answer)->text = weft_arena_printf((answer)->arena, __VA_ARGS__))

static const char *moment(const struct answer *answer, weft_usec moment_us)
{
    char text[WEFT_MOMENT_TEXT];
    weft_moment_print(moment_us, text);
    return weft_arena_strdup(answer->arena, text);
}

static void add_moment(struct answer *answer, const char *key, weft_usec moment_us)
{
    if (moment_us)
        weft_json_add_text(&answer->detail, key, moment(answer, moment_us));
}

/* ---- Ready: the lane and its workers --------------------------------------------------------- */

/* A worker serves it if it looks at its lane and has its capabilities; kinds are not recorded. */
static bool serves(const struct answer *answer, const struct weft_worker_info *worker)
{
    const struct weft_execution *execution = &answer->execution;
    size_t lane = 0, has = 0;
    while (lane < worker->lane_count && strcmp(worker->lanes[lane], execution->lane) != 0)
        lane++;
    for (size_t i = 0; i < execution->capability_count; i++)
        for (size_t k = 0; k < worker->capability_count; k++)
            if (strcmp(worker->capabilities[k], execution->capabilities[i]) == 0) {
                has++;
                break;
            }
    return lane < worker->lane_count && has == execution->capability_count;
}

/* The settings of the lane, and what it runs if it has limits. */
static enum weft_rc look_at_limits(struct answer *answer, int32_t lane, struct weft_err *err)
{
    struct weft_engine *engine = answer->engine;
    struct weft_arena *arena = answer->arena;
    struct weft_lane *settings = &answer->lane;
    struct weft_call call;
    struct weft_rows rows = {0};
    int64_t full_ns = 0;
    enum weft_rc rc = weft_lane_settings_read(engine, lane, arena, settings, &full_ns, err);
    const struct weft_limits limits = {
        .max_running = settings->max_running, .window = settings->window, .rate = settings->rate};
    answer->facts.lane_paused = settings->paused;
    answer->opens_us = WEFT_NEVER;
    if (rc || !weft_limits_set(&limits))
        return rc;
    weft_usec now_us = weft_clock_now(engine->clock);
    struct weft_lane_running_in *running = weft_call_lane_running(&call, arena, 1);
    running->now = now_us;
    running->row[0].lane = lane;
    running->row[0].span = weft_window_span(&limits.window);
    rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    const struct weft_lane_running_out *row = weft_out_lane_running(&rows);
    const struct weft_limit_now now = {.now_us = now_us,
                                       .running = row->running,
                                       .started = row->started,
                                       .oldest_us = row->oldest.value,
                                       .full_ns = full_ns};
    struct weft_limit_room room = weft_limit_room(&limits, &now);
    answer->facts.lane_max = limits.max_running;
    answer->facts.lane_running = row->running;
    answer->facts.lane_limit = room.room > 0 ? WEFT_LIMIT_NONE : room.by;
    answer->opens_us = room.next_us;
    return WEFT_OK;
}

static enum weft_rc look_at_lane(struct answer *answer, struct weft_err *err)
{
    struct weft_engine *engine = answer->engine;
    struct weft_name_want lane = {.sort = WEFT_NAME_LANE, .text = answer->execution.lane};
    enum weft_rc rc = weft_find_in_namespace(engine, answer->execution.ns, "lane", &lane, err);
    if (rc)
        return rc;
    rc = look_at_limits(answer, lane.id, err);
    struct weft_workers workers = {0};
    if (!rc)
        rc = weft_engine_workers(engine, answer->execution.ns, answer->arena, &workers, err);
    weft_json_add_array(&answer->detail, "workers");
    for (size_t i = 0; i < workers.count && !rc; i++)
        if (serves(answer, &workers.item[i]) && answer->facts.workers++ < NAMED)
            weft_json_put_text(&answer->detail, workers.item[i].name);
    weft_json_end_array(&answer->detail);
    return rc;
}

/* Who holds the places of a full lane. */
static enum weft_rc add_holders(struct answer *answer, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_name_want lane = {.sort = WEFT_NAME_LANE, .text = answer->execution.lane};
    char id[WEFT_ID_TEXT];
    enum weft_rc rc =
        weft_find_in_namespace(answer->engine, answer->execution.ns, "lane", &lane, err);
    if (rc)
        return rc;
    *weft_call_why_holders(&call, answer->arena) =
        (struct weft_why_holders_in){.lane = lane.id, .most = NAMED};
    rc = weft_tx_once(answer->engine, WEFT_TX_READ, &call, answer->arena, &rows, err);
    weft_json_add_array(&answer->detail, "holders");
    for (size_t i = 0; i < rows.count && !rc; i++) {
        const struct weft_why_holders_out *row = &weft_out_why_holders(&rows)[i];
        weft_json_begin_object(&answer->detail);
        weft_id_print(&row->id, id);
        weft_json_add_text(&answer->detail, "id", id);
        weft_json_add_text(&answer->detail, "worker", row->worker);
        weft_json_end_object(&answer->detail);
    }
    weft_json_end_array(&answer->detail);
    return rc;
}

/* ---- Ready: its budgets ---------------------------------------------------------------------- */

/* What it would reserve: its own cost, or else the estimate of the budget. */
static enum weft_rc find_full_dimension(struct answer *answer, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_costs_of(&call, answer->arena, 1)->row[0].id = answer->execution.id;
    enum weft_rc rc = weft_tx_once(answer->engine, WEFT_TX_READ, &call, answer->arena, &rows, err);
    for (size_t d = 0; d < answer->budget.dimension_count && !rc && !answer->dimension; d++) {
        const struct weft_budget_dimension *own = &answer->budget.dimension[d];
        const struct weft_sums sums = {
            .hard = own->hard, .used = own->used, .reserved = own->reserved};
        int64_t cost = own->estimate;
        for (size_t i = 0; i < rows.count; i++)
            if (strcmp(weft_out_costs_of(&rows)[i].dimension, own->name) == 0)
                cost = weft_out_costs_of(&rows)[i].amount;
        if (weft_sums_fit(&sums, cost))
            continue;
        answer->dimension = own;
        answer->cost = cost;
    }
    return rc;
}

/* Finds the first of its budgets that has no room for it. */
static enum weft_rc look_at_budgets(struct answer *answer, struct weft_err *err)
{
    const struct weft_execution *execution = &answer->execution;
    struct weft_budget_ref *ref;
    struct weft_queue queue = {.lane_name = execution->lane,
                               .kind = execution->kind,
                               .tenant_name = execution->tenant ? execution->tenant : "",
                               .budget = execution->budgets,
                               .budgets = execution->budget_count};
    enum weft_rc rc = weft_budget_rules_renew(answer->engine, err);
    if (!rc)
        rc = weft_find_namespace(answer->engine, execution->ns, &queue.ns, err);
    if (rc)
        return rc;
    size_t count = weft_budgets_of(answer->engine, &queue, answer->arena, &ref);
    for (size_t i = 0; i < count && !rc && !answer->facts.budget_full; i++) {
        rc = weft_engine_budget(answer->engine, execution->ns, ref[i].name, answer->arena,
                                &answer->budget, err);
        if (rc == WEFT_NOT_FOUND) { /* a name without a budget limits nothing */
            rc = WEFT_OK;
            continue;
        }
        if (!rc)
            rc = find_full_dimension(answer, err);
        answer->facts.budget_full =
            !rc && (answer->dimension || answer->budget.state == WEFT_BUDGET_HARD);
    }
    return rc;
}

static void say_budget(struct answer *answer)
{
    const struct weft_budget *budget = &answer->budget;
    const struct weft_budget_dimension *own = answer->dimension;
    const char *resets = budget->next_reset_us
                             ? weft_arena_printf(answer->arena, "the budget is reset at %s",
                                                 moment(answer, budget->next_reset_us))
                             : "the budget is reset by an operator";
    weft_json_add_text(&answer->detail, "budget", budget->name);
    weft_json_add_text(&answer->detail, "state", weft_budget_state_word(budget->state));
    add_moment(answer, "next_reset_at", budget->next_reset_us);
    if (own) {
        weft_json_add_text(&answer->detail, "dimension", own->name);
        weft_json_add_i64(&answer->detail, "hard", own->hard);
        weft_json_add_i64(&answer->detail, "used", own->used);
        weft_json_add_i64(&answer->detail, "reserved", own->reserved);
        weft_json_add_i64(&answer->detail, "cost", answer->cost);
    }
    if (!own)
        SAY(answer,
            "budget '%s' is closed, because a report would have passed its hard limit: it runs "
            "when %s or its limits are put again",
            budget->name, resets);
    else if (own->used >= own->hard)
        SAY(answer,
            "budget '%s' has used all of its %" PRId64
            " %s: it runs when %s or the limit is raised",
            budget->name, own->hard, own->name, resets);
    else if (answer->cost > own->hard)
        SAY(answer,
            "it costs %" PRId64 " %s and budget '%s' allows %" PRId64
            " in all: it runs when the limit is raised",
            answer->cost, own->name, budget->name, own->hard);
    else
        SAY(answer,
            "budget '%s' has %" PRId64 " of %" PRId64 " %s left beside %" PRId64
            " reserved by what runs, and it costs %" PRId64
            ": it runs when running executions give back enough, %s, or the limit is raised",
            budget->name, own->hard - own->used - own->reserved, own->hard, own->name,
            own->reserved, answer->cost, resets);
}

static void say_rate_of_lane(struct answer *answer)
{
    bool window = answer->facts.lane_limit == WEFT_LIMIT_WINDOW;
    const struct weft_lane *lane = &answer->lane;
    add_moment(answer, "next_at", answer->opens_us);
    SAY(answer,
        "lane '%s' lets %" PRId64 " start %s %" PRId64
        " ms: the next may start at %s, if no other is ahead of it",
        answer->execution.lane, window ? lane->window.limit : lane->rate.limit,
        window ? "in any" : "each", window ? lane->window.per_ms : lane->rate.per_ms,
        moment(answer, answer->opens_us));
}

static void say_ready(struct answer *answer, enum weft_reason reason)
{
    const struct weft_execution *execution = &answer->execution;
    const struct weft_why_facts *facts = &answer->facts;
    weft_json_add_text(&answer->detail, "lane", execution->lane);
    if (facts->lane_max > 0) {
        weft_json_add_i64(&answer->detail, "max_running", facts->lane_max);
        weft_json_add_i64(&answer->detail, "running", facts->lane_running);
    }
    if (reason == WEFT_REASON_LANE_PAUSED)
        SAY(answer, "lane '%s' is paused: it runs when the lane is opened (weft lanes %s --resume)",
            execution->lane, execution->lane);
    else if (reason == WEFT_REASON_LANE_FULL)
        SAY(answer,
            "lane '%s' runs %" PRId64 " of %" PRId64
            " at once: it runs when one of them "
            "ends and no other is ahead of it",
            execution->lane, facts->lane_running, facts->lane_max);
    else if (reason == WEFT_REASON_BUDGET)
        say_budget(answer);
    else if (reason == WEFT_REASON_RATE)
        say_rate_of_lane(answer);
    else if (facts->carried != WEFT_REASON_ENDED)
        answer->text = weft_why_carried_say(&answer->carried, reason, &answer->detail);
    else if (reason == WEFT_REASON_NO_WORKER)
        SAY(answer,
            "no worker was seen in the last minutes that serves lane '%s'%s: it runs when "
            "one comes",
            execution->lane, execution->capability_count ? " and has its capabilities" : "");
    else
        SAY(answer,
            "it is ready: %zu worker%s serve%s lane '%s' and may take it; others of higher "
            "priority or age may be ahead, and workers may ask for other kinds",
            facts->workers, facts->workers == 1 ? "" : "s", facts->workers == 1 ? "s" : "",
            execution->lane);
}

/* ---- Held ------------------------------------------------------------------------------------ */

static void say_gate(struct answer *answer, const struct weft_gate_look_out *row,
                     const struct weft_limit_room *room, int64_t ahead)
{
    const char *gate = answer->execution.gate;
    weft_json_add_text(&answer->detail, "gate", gate);
    weft_json_add_i64(&answer->detail, "ahead", ahead);
    weft_json_add_i64(&answer->detail, "running", row->running);
    weft_json_add_i64(&answer->detail, "ready", row->ready);
    if (row->max_running)
        weft_json_add_i64(&answer->detail, "max_running", row->max_running);
    add_moment(answer, "next_at", row->next.value);
    const char *line = ahead == 0 ? "it is the next"
                                  : weft_arena_printf(answer->arena, "%s%" PRId64 " %s ahead of it",
                                                      ahead == LINE_MAX_SEEN ? "at least " : "",
                                                      ahead, ahead == 1 ? "is" : "are");
    if (room->by == WEFT_LIMIT_RUNNING)
        SAY(answer,
            "gate '%s' admits %" PRId64 " at a time, %" PRId64 " run and %" PRId64
            " wait for a worker: %s",
            gate, row->max_running, row->running, row->ready, line);
    else if (room->by == WEFT_LIMIT_WINDOW)
        SAY(answer, "gate '%s' lets %" PRId64 " start in %" PRId64 " ms%s%s: %s", gate,
            row->window_limit, row->window_us / WEFT_MS, row->next.set ? ", the next at " : "",
            row->next.set ? moment(answer, row->next.value) : "", line);
    else if (room->by == WEFT_LIMIT_RATE)
        SAY(answer, "gate '%s' lets %" PRId64 " start each %" PRId64 " ms%s%s: %s", gate,
            row->rate_limit, row->rate_us / WEFT_MS, row->next.set ? ", the next at " : "",
            row->next.set ? moment(answer, row->next.value) : "", line);
    else
        SAY(answer, "gate '%s' has room: it is admitted in this moment", gate);
}

static enum weft_rc look_at_gate(struct answer *answer, struct weft_err *err)
{
    struct weft_engine *engine = answer->engine;
    struct weft_arena *arena = answer->arena;
    const char *own = answer->execution.gate;
    int32_t ns = 0;
    struct weft_call look, line;
    struct weft_rows rows[2] = {0};
    enum weft_rc rc = weft_find_namespace(engine, answer->execution.ns, &ns, err);
    weft_usec now_us = weft_clock_now(engine->clock);
    struct weft_gate_look_in *in = weft_call_gate_look(&look, arena, 1);
    in->now = now_us;
    in->row[0].name = weft_gate_key(ns, own, arena);
    in->row[0].namespace = ns;
    in->row[0].own = own;
    in->row[0].class = weft_gate_class(own, arena);
    *weft_call_why_line(&line, arena) =
        (struct weft_why_line_in){.id = answer->execution.id, .most = LINE_MAX_SEEN};
    if (!rc)
        rc = weft_tx_once(engine, WEFT_TX_READ, &look, arena, &rows[0], err);
    if (!rc)
        rc = weft_tx_once(engine, WEFT_TX_READ, &line, arena, &rows[1], err);
    if (rc || rows[0].count == 0)
        return rc;
    const struct weft_gate_look_out *row = weft_out_gate_look(&rows[0]);
    struct weft_limits limits;
    struct weft_limit_now now;
    weft_gate_facts(row, now_us, &limits, &now);
    struct weft_limit_room room = weft_limit_room(&limits, &now);
    if (room.room > 0)
        room.by = WEFT_LIMIT_NONE;
    answer->facts.gate_limit = room.by;
    say_gate(answer, row, &room, rows[1].count ? weft_out_why_line(&rows[1])->ahead : 0);
    return WEFT_OK;
}

/* ---- Blocked, suspended and the others ------------------------------------------------------- */

static enum weft_rc look_at_upstreams(struct answer *answer, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_why_upstreams(&call, answer->arena) =
        (struct weft_why_upstreams_in){.id = answer->execution.id, .most = NAMED + 1};
    enum weft_rc rc = weft_tx_once(answer->engine, WEFT_TX_READ, &call, answer->arena, &rows, err);
    if (rc)
        return rc;
    const char *names = "";
    weft_json_add_array(&answer->detail, "upstreams");
    for (size_t i = 0; i < rows.count && i < NAMED; i++) {
        const struct weft_why_upstreams_out *row = &weft_out_why_upstreams(&rows)[i];
        const char *state = weft_state_name(row->state);
        names =
            weft_arena_printf(answer->arena, "%s%s%s (%s)", names, i ? ", " : "", row->name, state);
        weft_json_begin_object(&answer->detail);
        weft_json_add_text(&answer->detail, "node", row->name);
        weft_json_add_text(&answer->detail, "state", state);
        weft_json_end_object(&answer->detail);
    }
    weft_json_end_array(&answer->detail);
    if (rows.count == 0)
        SAY(answer, "its upstreams have ended: its join is decided in this moment");
    else
        SAY(answer, "it comes after nodes that have not ended: %s%s", names,
            rows.count > NAMED ? " and more" : "");
    return WEFT_OK;
}

static enum weft_rc look_at_suspension(struct answer *answer, struct weft_err *err)
{
    struct weft_waiting waiting = {0};
    enum weft_rc rc =
        weft_engine_waiting(answer->engine, answer->asking, answer->arena, &waiting, err);
    if (rc)
        return rc;
    const char *names = "";
    weft_json_add_array(&answer->detail, "waitpoints");
    for (size_t i = 0; i < waiting.waitpoint_count; i++) {
        names = weft_arena_printf(answer->arena, "%s%s%s", names, i ? ", " : "",
                                  waiting.waitpoint[i].name);
        weft_json_put_text(&answer->detail, waiting.waitpoint[i].name);
    }
    weft_json_end_array(&answer->detail);
    if (waiting.suspended && waiting.condition)
        weft_json_add_raw(&answer->detail, "condition", waiting.condition);
    add_moment(answer, "suspended_at", waiting.suspended_us);
    add_moment(answer, "timeout_at", waiting.timeout_us);
    SAY(answer, "it is suspended since %s and waits for %s%s%s%s",
        moment(answer, waiting.suspended_us),
        waiting.waitpoint_count ? "signals at " : "an operator or its timeout", names,
        waiting.timeout_us ? "; it times out at " : "",
        waiting.timeout_us ? moment(answer, waiting.timeout_us) : "");
    return WEFT_OK;
}

static void say_other(struct answer *answer, enum weft_reason reason)
{
    const struct weft_execution *execution = &answer->execution;
    if (reason == WEFT_REASON_DELAYED) {
        add_moment(answer, "run_at", execution->run_at_us);
        weft_json_add_i64(&answer->detail, "attempt", execution->attempt);
        SAY(answer, "it is delayed until %s%s", moment(answer, execution->run_at_us),
            execution->next_attempt_us ? ": the last attempt failed, and this is its retry" : "");
    } else if (reason == WEFT_REASON_RUNNING) {
        weft_json_add_text(&answer->detail, "worker", execution->worker);
        add_moment(answer, "claimed_at", execution->claimed_us);
        add_moment(answer, "lease_expires_at", execution->lease_expires_us);
        SAY(answer, "worker '%s' runs it since %s; its lease lasts until %s unless it is renewed",
            execution->worker, moment(answer, execution->claimed_us),
            moment(answer, execution->lease_expires_us));
    } else {
        add_moment(answer, "finished_at", execution->finished_us);
        SAY(answer, "it has ended as %s at %s%s", weft_state_name(execution->state),
            moment(answer, execution->finished_us),
            execution->state == WEFT_STATE_SUCCEEDED ? "" : "; a replay would run it again");
    }
}

enum weft_rc weft_engine_why(struct weft_engine *engine, const struct weft_wait_asking *asking,
                             struct weft_arena *arena, struct weft_why *ret_why,
                             struct weft_err *err)
{
    struct answer answer = {.engine = engine, .asking = asking, .arena = arena};
    answer.carried = (struct weft_why_carried){.engine = engine, .arena = arena};
    enum weft_rc rc =
        weft_engine_describe(engine, asking->ns, &asking->id, 1, arena, &answer.execution, err);
    if (!rc && answer.execution.state == WEFT_STATE_NONE)
        rc = weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no such execution");
    if (rc)
        return rc;
    answer.facts.state = answer.execution.state;
    weft_buf_init(&answer.buf, DETAIL_MAX);
    weft_json_writer_init(&answer.detail, &answer.buf);
    weft_json_begin_object(&answer.detail);
    if (answer.facts.state == WEFT_STATE_READY)
        rc = look_at_lane(&answer, err);
    if (!rc && answer.facts.state == WEFT_STATE_READY &&
        weft_kind_is_carried(answer.execution.kind))
        rc = weft_why_carried(&answer.carried, &answer.execution, &answer.facts, err);
    if (!rc && answer.facts.state == WEFT_STATE_READY)
        rc = look_at_budgets(&answer, err);
    else if (answer.facts.state == WEFT_STATE_HELD)
        rc = look_at_gate(&answer, err);
    else if (answer.facts.state == WEFT_STATE_BLOCKED)
        rc = look_at_upstreams(&answer, err);
    else if (answer.facts.state == WEFT_STATE_SUSPENDED)
        rc = look_at_suspension(&answer, err);
    enum weft_reason reason = weft_why_decide(&answer.facts);
    if (!rc && reason == WEFT_REASON_LANE_FULL)
        rc = add_holders(&answer, err);
    if (!rc && answer.facts.state == WEFT_STATE_READY)
        say_ready(&answer, reason);
    else if (!rc && !answer.text)
        say_other(&answer, reason);
    weft_json_end_object(&answer.detail);
    if (!rc)
        *ret_why = (struct weft_why){.id = asking->id,
                                     .state = answer.facts.state,
                                     .why = weft_reason_word(reason),
                                     .text = answer.text,
                                     .detail = weft_arena_strdup(arena, answer.buf.data)};
    weft_buf_done(&answer.buf);
    return rc;
}
