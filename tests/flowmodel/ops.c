/* SPDX-License-Identifier: Apache-2.0 */

/* One random step, on the store and on the expected state. */

#include "direct.h"
#include "flowmodel.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/engine.h"
#include "engine/flow/cascade.h"
#include "engine/flow/flow.h"
#include "engine/job/claim.h"
#include "engine/job/control.h"
#include "engine/job/leases.h"
#include "engine/ready/poll.h"
#include "engine/scan/pass.h"
#include "store/fault/fault.h"
#include "weft/admin.h"
#include "weft/weft.h"

struct weft_engine *any_engine(struct world *w)
{
    return w->engine[w->apart ? below(w, ENGINES) : w->seed % ENGINES];
}

static struct flow *any_flow(struct world *w)
{
    return &w->flow[below(w, w->flows)];
}

/* A member in that state, or any. */
static struct member *pick(struct world *w, struct flow *flow, enum weft_state state)
{
    size_t from = below(w, flow->count);
    for (size_t i = 0; i < flow->count; i++) {
        struct member *member = &flow->member[(from + i) % flow->count];
        if (member->state == state && chance(w, 90))
            return member;
    }
    return &flow->member[from];
}

static void must_be(struct world *w, enum weft_rc rc, enum weft_rc want, const char *what,
                    const struct weft_err *err)
{
    if (rc != want)
        wrong(w, "%s: %s %s, must be %s", what, weft_rc_wire(rc), rc ? err->text : "",
              weft_rc_wire(want));
}

/* ---- Cascades -------------------------------------------------------------------------------- */

/* The cascade of the flow has run dry: works out the expected state. */
static void settle_now(struct world *w, struct flow *flow)
{
    enum weft_state got[NODES_MAX] = {0};
    look(w, flow, got);
    if (!w->failed)
        settle(w, flow, got);
}

static void after_step(struct world *w, struct flow *flow)
{
    if (w->eager && flow->dirty && !w->failed)
        settle_now(w, flow);
}

/* The store fails at one of its next calls: it is full, or gone, or gone with its answer. */
static void strike(struct world *w, size_t calls)
{
    static const enum weft_fault_kind kinds[] = {WEFT_FAULT_FULL, WEFT_FAULT_FULL, WEFT_FAULT_LOSE,
                                                 WEFT_FAULT_LOSE_REPLY};
    w->fault.kind = kinds[below(w, WEFT_LEN(kinds))];
    w->fault.struck = false;
    w->fault.strike_at = 1 + below(w, calls);
}

static bool struck(struct world *w)
{
    w->fault.strike_at = 0;
    w->strikes += w->fault.struck;
    return w->fault.struck;
}

/* Breaks a cascade off at some call to the store; another one must find what is left. */
static void break_off(struct world *w, const struct weft_id *id, size_t count)
{
    struct weft_err err = {0};
    strike(w, 40);
    (void)!weft_engine_cascade(any_engine(w), id, count, &err);
    note(w, "a cascade is broken off%s", struck(w) ? "" : " too late");
}

void cascade_whole(struct world *w, const struct weft_id *id, size_t count)
{
    struct weft_err err = {0};
    must_be(w, weft_engine_cascade(any_engine(w), id, count, &err), WEFT_OK, "cascade", &err);
}

void op_cascade(struct world *w)
{
    struct flow *first = any_flow(w);
    struct weft_id id[FLOWS_MAX] = {first->id};
    size_t count = 1;
    if (w->flows > 1 && chance(w, 50))
        id[count++] = w->flow[first == &w->flow[0]].id;
    if (chance(w, 25))
        break_off(w, id, count);
    cascade_whole(w, id, count);
    note(w, "cascade of %s %zu", count > 1 ? "both from" : "flow", (size_t)(first - w->flow));
    for (size_t f = 0; f < w->flows && !w->failed; f++)
        if (count > 1 || &w->flow[f] == first)
            settle_now(w, &w->flow[f]);
}

/* ---- Members --------------------------------------------------------------------------------- */

static void claim(struct world *w, struct flow *flow, struct member *member)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_claim_result result = {0};
    struct weft_err err = {0};
    const char *kind = member->kind;
    const struct weft_claim args = {.worker = "worker", .kinds = &kind, .kind_count = 1, .max = 2};
    bool ready = member->state == WEFT_STATE_READY;
    must_be(w, weft_engine_claim(any_engine(w), "default", &args, 1, arena, &result, &err), WEFT_OK,
            "claim", &err);
    note(w, "claim %s of flow %zu: %zu", member->name, (size_t)(flow - w->flow), result.count);
    if (result.count != (size_t)ready)
        wrong(w, "%s is %s, and a claim gets %zu", member->name, weft_state_name(member->state),
              result.count);
    else if (ready) {
        if (memcmp(&result.item[0].id, &member->id, sizeof(member->id)) != 0)
            wrong(w, "a claim gets another member");
        member->state = WEFT_STATE_RUNNING;
        member->epoch = result.item[0].epoch;
    }
    weft_arena_free(arena);
}

void op_claim(struct world *w)
{
    struct flow *flow = any_flow(w);
    claim(w, flow, pick(w, flow, WEFT_STATE_READY));
}

static void succeed(struct world *w, struct flow *flow, struct member *member)
{
    struct weft_lease_answer answer = {0};
    struct weft_err err = {0};
    const struct weft_complete item = {
        .id = member->id, .epoch = member->epoch, .result = "1", .result_size = 1};
    if (!w->eager && chance(w, 5)) { /* done or not: a worker that does not know tries again */
        strike(w, 6);
        (void)!engine_complete(any_engine(w), &item, 1, &answer, &err);
        note(w, "a completion is broken off%s", struck(w) ? "" : " too late");
    }
    must_be(w, engine_complete(any_engine(w), &item, 1, &answer, &err), WEFT_OK, "complete", &err);
    if (member->state == WEFT_STATE_RUNNING) {
        set_ended(flow, member, WEFT_STATE_SUCCEEDED, NULL);
        member->done_epoch = member->epoch;
    }
    note(w, "%s of flow %zu succeeds: %s", member->name, (size_t)(flow - w->flow),
         weft_rc_wire(answer.err.rc));
    if ((member->epoch == member->done_epoch) != (answer.err.rc == WEFT_OK))
        wrong(w, "%s succeeds, and the answer is %s", member->name, weft_rc_wire(answer.err.rc));
}

static void fail(struct world *w, struct flow *flow, struct member *member, bool permanent)
{
    struct weft_lease_answer answer = {0};
    struct weft_err err = {0};
    const struct weft_failure item = {
        .id = member->id, .epoch = member->epoch, .permanent = permanent};
    if (member->state != WEFT_STATE_RUNNING)
        return;
    must_be(w, engine_fail(any_engine(w), &item, 1, &answer, &err), WEFT_OK, "fail", &err);
    must_be(w, answer.err.rc, WEFT_OK, "fail", &answer.err);
    note(w, "%s of flow %zu fails%s", member->name, (size_t)(flow - w->flow),
         permanent ? " for good" : "");
    if (permanent || ++member->attempts >= 2) {
        set_ended(flow, member, WEFT_STATE_FAILED, NULL);
        return;
    }
    member->state = WEFT_STATE_DELAYED;
    member->due_us = w->now_us + WEFT_SECOND;
}

static void end_somehow(struct world *w, struct flow *flow, struct member *member)
{
    size_t how = below(w, 10);
    if (how < 6)
        succeed(w, flow, member);
    else
        fail(w, flow, member, how < 8);
    after_step(w, flow);
}

void op_end(struct world *w)
{
    struct flow *flow = any_flow(w);
    struct member *member = pick(w, flow, WEFT_STATE_RUNNING);
    if (member->epoch > 0)
        end_somehow(w, flow, member);
}

void op_cancel(struct world *w)
{
    struct flow *flow = any_flow(w);
    struct member *member = &flow->member[below(w, flow->count)];
    struct weft_steered answer = steer_one(any_engine(w), WEFT_STEER_CANCEL,
                                           &(struct weft_steer){.id = member->id, .reason = "me"});
    note(w, "cancel %s of flow %zu: %s", member->name, (size_t)(flow - w->flow),
         weft_rc_wire(answer.err.rc));
    bool changes = lives(member->state);
    if (changes != (answer.err.rc == WEFT_OK && answer.changed))
        wrong(w, "%s is %s, and a cancel says %s", member->name, weft_state_name(member->state),
              weft_rc_wire(answer.err.rc));
    if (changes)
        set_ended(flow, member, WEFT_STATE_CANCELLED, "me");
    after_step(w, flow);
}

static void live_again(struct flow *flow, struct member *member, int join)
{
    member->state = join == OPEN_JOIN ? WEFT_STATE_BLOCKED : WEFT_STATE_READY;
    member->fired = join == OPEN_JOIN ? OPEN_JOIN : SATISFIED;
    member->again = join == OPEN_JOIN;
    member->attempts = 0;
    member->deadline_us = member->due_us = 0;
    member->reason = NULL;
    member->replayed = true;
    flow->state = WEFT_FLOW_OPEN;
    flow->dirty = flow->replay_pending = true;
}

/* A replay looks first at ended members; the model must know their effects before. */
static void settle_first(struct world *w, struct flow *flow)
{
    if (!flow->dirty)
        return;
    cascade_whole(w, &flow->id, 1);
    settle_now(w, flow);
}

/* A member that is replayed is ready, waits, or is refused, as its upstreams stand. */
void op_replay(struct world *w)
{
    struct flow *flow = any_flow(w);
    struct member *member = &flow->member[below(w, flow->count)];
    bool force = chance(w, 30);
    settle_first(w, flow);
    if (w->failed)
        return;
    bool ended = !lives(member->state);
    int join = ended ? verdict(flow, member) : OPEN_JOIN;
    struct weft_steered answer = steer_one(any_engine(w), WEFT_STEER_REPLAY,
                                           &(struct weft_steer){.id = member->id, .force = force});
    note(w, "replay %s of flow %zu%s: %s", member->name, (size_t)(flow - w->flow),
         force ? " by force" : "", weft_rc_wire(answer.err.rc));
    enum weft_rc want = !ended                         ? WEFT_NOT_LIVE
                        : join == IMPOSSIBLE && !force ? WEFT_CONFLICT
                                                       : WEFT_OK;
    if (answer.err.rc != want || answer.changed != (want == WEFT_OK))
        wrong(w, "%s is %s, and a replay says %s", member->name, weft_state_name(member->state),
              weft_rc_wire(answer.err.rc));
    if (want == WEFT_OK)
        live_again(flow, member, join);
    after_step(w, flow);
}

/* All that has ended, by filter: the largest set in which no join is impossible. */
void op_replay_all(struct world *w)
{
    struct flow *flow = any_flow(w), with;
    bool in[NODES_MAX] = {false}, changed = true, force = chance(w, 10);
    uint64_t count = 0;
    settle_first(w, flow);
    if (w->failed)
        return;
    with = *flow;
    for (size_t i = 0; i < flow->count; i++) {
        in[i] = !lives(flow->member[i].state);
        if (in[i])
            with.member[i].state = WEFT_STATE_BLOCKED;
    }
    while (changed) {
        changed = false;
        for (size_t i = 0; i < flow->count; i++)
            if (in[i] && !force && verdict(&with, &with.member[i]) == IMPOSSIBLE) {
                in[i] = false;
                with.member[i].state = flow->member[i].state;
                changed = true;
            }
    }
    const struct weft_steer_all args = {
        .kind = WEFT_STEER_REPLAY, .filter = {.ns = "default", .flow = flow->id}, .force = force};
    struct weft_sweep sweep = {0};
    struct weft_err err = {0};
    must_be(w, weft_engine_steer_all(any_engine(w), &args, &sweep, &err), WEFT_OK, "replay", &err);
    for (size_t i = 0; i < flow->count; i++)
        if (in[i]) {
            live_again(flow, &flow->member[i], verdict(&with, &with.member[i]));
            count++;
        }
    note(w, "replay all of flow %zu%s: %llu", (size_t)(flow - w->flow), force ? " by force" : "",
         (unsigned long long)sweep.changed);
    if (sweep.changed != count)
        wrong(w, "a replay by filter changes %llu, must be %llu", (unsigned long long)sweep.changed,
              (unsigned long long)count);
    after_step(w, flow);
}

/* ---- Time ------------------------------------------------------------------------------------ */

static void pass(struct world *w, enum weft_scanner scanner)
{
    struct weft_pass_report report;
    struct weft_err err = {0};
    must_be(w, weft_engine_pass(any_engine(w), scanner, NULL, &report, &err), WEFT_OK,
            weft_scanner_name(scanner), &err);
}

/* What time does to the members of a flow. */
static void age(const struct world *w, struct flow *flow, const enum weft_state *got)
{
    for (size_t i = 0; i < flow->count; i++) {
        struct member *member = &flow->member[i];
        bool late = member->deadline_us && member->deadline_us <= w->now_us;
        if (late && member->unsure && got[i] != WEFT_STATE_EXPIRED)
            late = false;
        if (late && lives(member->state))
            set_ended(flow, member, WEFT_STATE_EXPIRED, NULL);
        else if (member->state == WEFT_STATE_DELAYED && member->due_us <= w->now_us)
            member->state = WEFT_STATE_READY;
    }
}

void op_clock(struct world *w)
{
    w->now_us += (weft_usec)(1 + below(w, 10)) * WEFT_SECOND;
    for (size_t i = 0; i < ENGINES; i++)
        weft_clock_set(weft_engine_clock(w->engine[i]), w->now_us);
    note(w, "time goes on: +%lld s", (long long)((w->now_us - START_US) / WEFT_SECOND));
    pass(w, WEFT_SCANNER_EXECUTION_DEADLINE);
    pass(w, WEFT_SCANNER_DELAYED_PROMOTER);
    for (size_t f = 0; f < w->flows && !w->failed; f++) {
        enum weft_state got[NODES_MAX] = {0};
        look(w, &w->flow[f], got);
        age(w, &w->flow[f], got);
        after_step(w, &w->flow[f]);
    }
}

/* ---- Flows ----------------------------------------------------------------------------------- */

void op_submit(struct world *w)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_flow_spec spec[FLOWS_MAX];
    struct weft_flow_submitted answer[FLOWS_MAX] = {0};
    struct weft_err err = {0};
    w->flows = 1 + chance(w, 25);
    for (size_t f = 0; f < w->flows; f++) {
        draw_flow(w, &w->flow[f]);
        spec[f] = (struct weft_flow_spec){.nodes = nodes_of(&w->flow[f], 0, arena),
                                          .node_count = w->flow[f].count};
        answer[f].node = weft_new_array(arena, struct weft_id, NODES_MAX);
    }
    must_be(w, engine_flow_submit(any_engine(w), "default", spec, w->flows, answer, &err), WEFT_OK,
            "submit", &err);
    for (size_t f = 0; f < w->flows && !w->failed; f++) {
        must_be(w, answer[f].err.rc, WEFT_OK, "submit", &answer[f].err);
        w->flow[f].id = answer[f].id;
        for (size_t i = 0; i < w->flow[f].count; i++)
            w->flow[f].member[i].id = answer[f].node[i];
    }
    note(w, "submit");
    weft_arena_free(arena);
}

/*
 * A call has looked at what had ended before it judged the flow: the model does so too, with the
 * members that were there before the call.
 */
static void settle_before(struct world *w, struct flow *flow, size_t had)
{
    enum weft_state got[NODES_MAX] = {0};
    size_t count = flow->count;
    if (!flow->dirty)
        return;
    look(w, flow, got);
    flow->count = had;
    if (!w->failed)
        settle(w, flow, got);
    flow->count = count;
}

void op_grow(struct world *w)
{
    struct flow *flow = any_flow(w);
    size_t had = flow->count, count = 1 + below(w, 3);
    bool stale = chance(w, 10);
    if (had + count > NODES_MAX)
        return;
    struct weft_arena *arena = weft_arena_new();
    struct weft_flow_submitted answer = {.node = weft_new_array(arena, struct weft_id, count)};
    struct weft_err err = {0};
    draw_members(w, flow, count);
    const struct weft_flow_growth growth = {.ns = "default",
                                            .flow = flow->id,
                                            .revision = flow->revision - stale,
                                            .nodes = nodes_of(flow, had, arena),
                                            .node_count = count};
    enum weft_rc rc = engine_flow_grow(any_engine(w), &growth, &answer, &err);
    note(w, "flow %zu grows by %zu: %s", (size_t)(flow - w->flow), count, weft_rc_wire(rc));
    if (rc)
        flow->count = had;
    settle_before(w, flow, had);
    bool grows = flow->state == WEFT_FLOW_OPEN && flow->cancel == WEFT_FLOW_CANCEL_NONE;
    must_be(w, rc, !grows ? WEFT_NOT_LIVE : stale ? WEFT_CONFLICT : WEFT_OK, "grow", &err);
    if (!rc)
        flow->revision++;
    for (size_t i = had; i < flow->count; i++)
        flow->member[i].id = answer.node[i - had];
    flow->dirty |= rc == WEFT_OK;
    weft_arena_free(arena);
    after_step(w, flow);
}

/* An edge to a member that waits; from a member before it, so that there is no circle. */
void op_edge(struct world *w)
{
    struct flow *flow = any_flow(w);
    bool stale = chance(w, 10);
    if (flow->count < 2)
        return;
    struct member *to = pick(w, flow, WEFT_STATE_BLOCKED);
    if (to == flow->member)
        to++;
    size_t from = below(w, (size_t)(to - flow->member));
    const struct weft_flow_edge edge = {.from = flow->member[from].name, .to = to->name};
    const struct weft_flow_edging edging = {.ns = "default",
                                            .flow = flow->id,
                                            .revision = flow->revision - stale,
                                            .edges = &edge,
                                            .edge_count = 1};
    struct weft_err err = {0};
    int32_t revision = 0;
    enum weft_rc rc = weft_engine_flow_edges(any_engine(w), &edging, &revision, &err);
    note(w, "an edge from %s to %s of flow %zu: %s", edge.from, edge.to, (size_t)(flow - w->flow),
         weft_rc_wire(rc));
    settle_before(w, flow, flow->count);
    bool open = flow->state == WEFT_FLOW_OPEN && flow->cancel == WEFT_FLOW_CANCEL_NONE;
    bool conflict = stale || to->state != WEFT_STATE_BLOCKED || (to->after >> from & 1);
    must_be(w, rc, !open ? WEFT_NOT_LIVE : conflict ? WEFT_CONFLICT : WEFT_OK, "edge", &err);
    if (!rc) {
        to->after |= 1u << from;
        flow->revision++;
        flow->dirty = true;
    }
    after_step(w, flow);
}

void op_cancel_flow(struct world *w)
{
    struct flow *flow = any_flow(w);
    struct weft_err err = {0};
    enum weft_flow_state state;
    const struct weft_flow_cancelling args = {
        .ns = "default",
        .flow = flow->id,
        .how = (enum weft_flow_cancel)(WEFT_FLOW_CANCEL_ALL + below(w, 3)),
        .reason = "flow"};
    enum weft_rc rc = weft_engine_flow_cancel(any_engine(w), &args, &state, NULL, &err);
    settle_before(w, flow, flow->count);
    bool over = flow->state == WEFT_FLOW_SUCCEEDED || flow->state == WEFT_FLOW_FAILED;
    note(w, "cancel flow %zu by %d: %s", (size_t)(flow - w->flow), args.how, weft_rc_wire(rc));
    must_be(w, rc, over ? WEFT_NOT_LIVE : WEFT_OK, "cancel of the flow", &err);
    bool stronger = flow->cancel == WEFT_FLOW_CANCEL_NONE || args.how < flow->cancel;
    if (flow->state == WEFT_FLOW_OPEN) {
        flow->cancel = stronger ? args.how : flow->cancel;
        flow->backlog = flow->cancel != WEFT_FLOW_CANCEL_ONLY;
        for (size_t i = 0; i < flow->count; i++)
            flow->member[i].again = false;
    }
    after_step(w, flow);
}

static void drain(struct world *w, struct flow *flow)
{
    struct weft_err err = {0};
    struct weft_flow_drain chunk = {.flow = flow->id};
    uint64_t want = 0;
    bool broken = !w->eager && chance(w, 10);
    if (broken) {
        strike(w, 8);
        (void)!weft_engine_flow_drain(any_engine(w), &chunk, &err);
        note(w, "a drain is broken off%s", struck(w) ? "" : " too late");
    }
    must_be(w, weft_engine_flow_drain(any_engine(w), &chunk, &err), WEFT_OK, "drain", &err);
    note(w, "drain flow %zu: %llu", (size_t)(flow - w->flow), (unsigned long long)chunk.cancelled);
    bool drains = flow->state == WEFT_FLOW_OPEN && (flow->cancel == WEFT_FLOW_CANCEL_ALL ||
                                                    flow->cancel == WEFT_FLOW_CANCEL_PENDING);
    for (size_t i = 0; i < flow->count && drains; i++) {
        struct member *member = &flow->member[i];
        bool spared =
            flow->cancel == WEFT_FLOW_CANCEL_PENDING && member->state == WEFT_STATE_RUNNING;
        if (!lives(member->state) || spared)
            continue;
        set_ended(flow, member, WEFT_STATE_CANCELLED, "flow");
        want++;
    }
    if ((chunk.cancelled != want && !broken) || chunk.more)
        wrong(w, "a drain cancels %llu, must be %llu", (unsigned long long)chunk.cancelled,
              (unsigned long long)want);
    flow->backlog = false;
    after_step(w, flow);
}

void op_drain(struct world *w)
{
    struct flow *flow = any_flow(w);
    if (flow->backlog || chance(w, 10))
        drain(w, flow);
}

/* ---- To the end ------------------------------------------------------------------------------ */

static bool run_once(struct world *w, struct flow *flow)
{
    bool did = false;
    for (size_t i = 0; i < flow->count && !w->failed; i++) {
        struct member *member = &flow->member[i];
        if (member->state == WEFT_STATE_READY)
            claim(w, flow, member);
        else if (member->state == WEFT_STATE_RUNNING)
            end_somehow(w, flow, member);
        else
            continue;
        did = true;
    }
    if (flow->backlog)
        drain(w, flow);
    return did;
}

void run_out(struct world *w)
{
    enum { ROUNDS = 200 };
    bool over = false;
    for (int round = 0; round < ROUNDS && !over && !w->failed; round++) {
        bool did = false;
        over = true;
        w->step++;
        for (size_t f = 0; f < w->flows && !w->failed; f++) {
            struct flow *flow = &w->flow[f];
            did |= run_once(w, flow);
            cascade_whole(w, &flow->id, 1);
            settle_now(w, flow);
            if (!w->failed)
                compare(w, flow);
            over &= flow->state != WEFT_FLOW_OPEN;
        }
        if (!did && !over && !w->failed)
            op_clock(w);
    }
    if (!over && !w->failed)
        wrong(w, "a flow does not come to its end");
}

void check_left(struct world *w)
{
    static const enum weft_scanner scanner[] = {
        WEFT_SCANNER_DEPENDENCY, WEFT_SCANNER_EDGE_CANCEL_DISPATCHER,
        WEFT_SCANNER_EDGE_CANCEL_RECONCILER, WEFT_SCANNER_CANCEL_BACKLOG};
    struct weft_arena *arena = weft_arena_new();
    struct weft_poll poll = {0};
    struct weft_pass_report report = {.handled = 1};
    struct weft_err err = {0};
    while (report.handled > 0 && !w->failed) {
        must_be(w,
                weft_engine_pass(any_engine(w), WEFT_SCANNER_EDGE_CANCEL_RECONCILER, NULL, &report,
                                 &err),
                WEFT_OK, "reconciler", &err);
        if (counter_of(&report, "no_op") + counter_of(&report, "stale_removed") > 0)
            wrong(w, "a group is left that no pass can drain");
    }
    must_be(w, weft_engine_poll(any_engine(w), arena, &poll, &err), WEFT_OK, "poll", &err);
    for (size_t i = 0; i < WEFT_LEN(scanner) && !w->failed; i++)
        if (poll.due_us[scanner[i]] != WEFT_NEVER)
            wrong(w, "%s still has something to do", weft_scanner_name(scanner[i]));
    weft_arena_free(arena);
}
