/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What must be, from first principles. A join is judged by what could still happen to it: it is
 * satisfied when it would be even if all its open upstreams failed, and impossible when it would
 * not be satisfied even if they all succeeded; every way they could end is tried.
 */

#include "flowmodel.h"

bool lives(enum weft_state state)
{
    return state == WEFT_STATE_READY || state == WEFT_STATE_DELAYED ||
           state == WEFT_STATE_BLOCKED || state == WEFT_STATE_RUNNING;
}

void set_ended(struct flow *flow, struct member *member, enum weft_state state, const char *reason)
{
    member->state = state;
    member->reason = reason;
    member->due_us = 0;
    flow->dirty = true;
}

/* Whether the node may begin, given which of its upstreams have succeeded. */
static bool begins(const struct member *member, uint32_t good)
{
    switch (member->join) {
    case WEFT_JOIN_ALL:
        return good == member->after;
    case WEFT_JOIN_ANY:
        return good != 0 || member->after == 0;
    case WEFT_JOIN_QUORUM:
        return (uint32_t)__builtin_popcount(good) >= member->k;
    }
    return false;
}

int verdict(const struct flow *flow, const struct member *member)
{
    uint32_t good = 0, open = 0;
    for (size_t up = 0; up < flow->count; up++) {
        uint32_t bit = member->after & (1u << up);
        if (flow->member[up].state == WEFT_STATE_SUCCEEDED)
            good |= bit;
        else if (lives(flow->member[up].state))
            open |= bit;
    }
    bool always = true, ever = false;
    for (uint32_t way = open;; way = (way - 1) & open) { /* each subset of the open ones */
        bool now = begins(member, good | way);
        always &= now;
        ever |= now;
        if (way == 0)
            break;
    }
    return always ? SATISFIED : ever ? OPEN_JOIN : IMPOSSIBLE;
}

static bool all_ended(const struct flow *flow, const struct member *member)
{
    for (size_t up = 0; up < flow->count; up++)
        if ((member->after >> up & 1) && lives(flow->member[up].state))
            return false;
    return true;
}

/*
 * A blocked member whose join has been decided. In a cancelled flow none begins or is skipped, but
 * what was replayed since.
 */
static void decide(const struct world *w, struct flow *flow, struct member *member)
{
    if (flow->cancel != WEFT_FLOW_CANCEL_NONE && !member->again) {
        set_ended(flow, member, WEFT_STATE_CANCELLED,
                  flow->replay_pending ? EITHER_REASON : "flow");
        return;
    }
    if (member->fired == IMPOSSIBLE) {
        set_ended(flow, member, WEFT_STATE_SKIPPED, "upstream_failed");
        return;
    }
    member->state = member->delay_ms ? WEFT_STATE_DELAYED : WEFT_STATE_READY;
    member->due_us = member->delay_ms ? w->now_us + member->delay_ms * WEFT_MS : 0;
}

/* Upstreams have lower numbers, so one walk goes through a whole chain. */
static bool judge_joins(const struct world *w, struct flow *flow, bool back)
{
    bool changed = false;
    for (size_t i = 0; i < flow->count; i++) {
        struct member *member = &flow->member[i];
        int now = verdict(flow, member);
        if (back && member->fired == IMPOSSIBLE &&
            now != IMPOSSIBLE) { /* an upstream was replayed */
            member->fired = OPEN_JOIN;
            if (member->state == WEFT_STATE_SKIPPED) {
                member->state = WEFT_STATE_BLOCKED;
                member->attempts = 0;
                member->deadline_us = 0;
                member->replayed = true;
            }
            changed = true;
        }
        if (member->fired != OPEN_JOIN || now == OPEN_JOIN)
            continue;
        member->fired = now;
        member->wants = member->cancels && !all_ended(flow, member);
        member->wish = now;
        member->maybe = false;
        changed = true;
        if (member->state == WEFT_STATE_BLOCKED)
            decide(w, flow, member);
    }
    return changed;
}

/*
 * Which join asks for a member to be cancelled; NULL: none does, or an open join of a member that
 * lives still waits for it. With `ever`: which may have asked, when joins that fired for a moment
 * count too.
 */
static const struct member *unwanted(const struct flow *flow, size_t which, const int *ever)
{
    const struct member *asks = NULL;
    for (size_t i = which + 1; i < flow->count; i++) {
        const struct member *down = &flow->member[i];
        bool fired =
            down->fired != OPEN_JOIN || !lives(down->state) || (ever && ever[i] != OPEN_JOIN);
        if (!(down->after >> which & 1))
            continue;
        if (!fired)
            return NULL;
        bool wishes = ever ? down->cancels : down->wants;
        if (wishes && (!asks || asks->maybe))
            asks = down;
    }
    return asks;
}

/* Where several ask for it with different reasons, any of them will do. */
static const char *sibling_reason(const struct flow *flow, size_t which)
{
    unsigned wishes = 0;
    for (size_t i = which + 1; i < flow->count; i++)
        if ((flow->member[i].after >> which & 1) && flow->member[i].wants)
            wishes |= 1u << flow->member[i].wish;
    if (flow->replay_pending && flow->cancel)
        return EITHER_REASON; /* it may have been about to begin */
    if (flow->replay_pending || flow->cancel || wishes == (1u << SATISFIED | 1u << IMPOSSIBLE))
        return "sibling";
    return wishes == 1u << SATISFIED ? "sibling_quorum_satisfied" : "sibling_quorum_impossible";
}

/* A cancel that leaves what runs alone promises that its result stands. */
static bool stays(const struct flow *flow, const struct member *member)
{
    return member->state == WEFT_STATE_RUNNING &&
           (flow->cancel == WEFT_FLOW_CANCEL_PENDING || flow->cancel == WEFT_FLOW_CANCEL_ONLY);
}

/* In a cancelled flow the drain may come first, and wishes that were walked are gone. */
static bool cancel_siblings(struct flow *flow, const enum weft_state *got)
{
    bool changed = false;
    for (size_t i = 0; i < flow->count; i++) {
        struct member *member = &flow->member[i];
        const struct member *asks = unwanted(flow, i, NULL);
        bool skipped = member->state == WEFT_STATE_BLOCKED && got[i] == WEFT_STATE_SKIPPED;
        bool may = (flow->replay_pending && (member->replayed || member->unsure)) ||
                   (asks && asks->maybe) || flow->cancel != WEFT_FLOW_CANCEL_NONE;
        bool must = asks && lives(member->state) && !skipped && !stays(flow, member) &&
                    (!may || got[i] == WEFT_STATE_CANCELLED);
        if (must)
            set_ended(flow, member, WEFT_STATE_CANCELLED, sibling_reason(flow, i));
        changed |= must;
    }
    return changed;
}

/* Joins before the cascade, and joins that have fired since, if only for a moment. */
struct fired {
    int before[NODES_MAX], ever[NODES_MAX];
    bool idle[NODES_MAX]; /* the member was blocked before the cascade, or may have been in it */
};

/*
 * Members that this cascade cancelled because their flow is cancelled, and that were unwanted as
 * siblings too: the store may have come to them either way.
 */
static void allow_reasons(struct flow *flow, const struct fired *fired)
{
    for (size_t i = 0; i < flow->count; i++) {
        struct member *member = &flow->member[i];
        if (fired->idle[i] && member->state == WEFT_STATE_CANCELLED &&
            flow->cancel != WEFT_FLOW_CANCEL_NONE && unwanted(flow, i, fired->ever))
            member->reason = EITHER_REASON;
    }
}

/* Members that the store has cancelled where nothing forced it to: right where it was allowed. */
static bool allow_siblings(struct flow *flow, const enum weft_state *got, const struct fired *fired)
{
    uint32_t returned = 0; /* members that came back by a replay above them */
    for (size_t i = 0; i < flow->count; i++) {
        struct member *member = &flow->member[i];
        bool may = (flow->replay_pending && lives(member->state) && !stays(flow, member)) ||
                   (member->state == WEFT_STATE_SKIPPED &&
                    (fired->before[i] == OPEN_JOIN || (member->after & returned)));
        returned |=
            (uint32_t)(flow->replay_pending && (member->replayed || (member->after & returned)))
            << i;
        /* It was back, or its join was decided, for a moment, and its flow is cancelled. */
        bool back = member->state == WEFT_STATE_SKIPPED && (member->after & returned);
        bool decided = member->state == WEFT_STATE_BLOCKED && fired->ever[i] != OPEN_JOIN;
        bool with_flow = flow->cancel && (back || decided) && got[i] == WEFT_STATE_CANCELLED;
        const struct member *asks =
            may && got[i] == WEFT_STATE_CANCELLED ? unwanted(flow, i, fired->ever) : NULL;
        if (!asks && !with_flow)
            continue;
        set_ended(flow, member, WEFT_STATE_CANCELLED, flow->cancel ? EITHER_REASON : "sibling");
        return true;
    }
    return false;
}

/*
 * Members of a cancelled flow that were skipped and are so still, where the model has them back and
 * cancelled: an upstream was decided for a moment, and so they never came back.
 */
static void allow_skipped(struct flow *flow, const enum weft_state *got, const struct flow *before)
{
    for (size_t i = 0; i < flow->count && flow->replay_pending && flow->cancel; i++) {
        struct member *member = &flow->member[i];
        if (before->member[i].state == WEFT_STATE_SKIPPED && got[i] == WEFT_STATE_SKIPPED &&
            member->state == WEFT_STATE_CANCELLED && member->fired == IMPOSSIBLE)
            *member = before->member[i];
    }
}

static void end_flow(struct flow *flow)
{
    bool good = true;
    for (size_t i = 0; i < flow->count; i++) {
        bool sink = true;
        if (lives(flow->member[i].state))
            return;
        for (size_t down = i + 1; down < flow->count; down++)
            sink &= !(flow->member[down].after >> i & 1);
        good &= !sink || flow->member[i].state == WEFT_STATE_SUCCEEDED;
    }
    flow->backlog = false;
    flow->state = flow->cancel ? WEFT_FLOW_CANCELLED
                  : good       ? WEFT_FLOW_SUCCEEDED
                               : WEFT_FLOW_FAILED;
}

/*
 * The joins that have fired, or that may have fired for a moment: a replay propagates node by
 * node, so a join may have been impossible by upstreams that came back only after it was judged.
 */
static void find_fired(const struct world *w, const struct flow *flow, const enum weft_state *got,
                       struct fired *ret_fired)
{
    struct flow first = *flow;
    while (judge_joins(w, &first, false) || cancel_siblings(&first, got))
        continue;
    for (size_t i = 0; i < flow->count; i++) {
        ret_fired->before[i] = flow->member[i].fired;
        ret_fired->ever[i] = first.member[i].fired;
        ret_fired->idle[i] = flow->member[i].state == WEFT_STATE_BLOCKED ||
                             flow->member[i].state == WEFT_STATE_SKIPPED;
    }
}

/*
 * A wish whose upstreams have all ended is gone. Where a replay was under way, it is not
 * determined which members had ended when a join fired and live again.
 */
static void end_wishes(struct flow *flow, const int *before)
{
    for (size_t i = 0; i < flow->count; i++) {
        struct member *member = &flow->member[i];
        bool fired =
            member->cancels && (member->fired == IMPOSSIBLE ||
                                (member->fired != before[i] && member->fired != OPEN_JOIN));
        if (flow->replay_pending && (member->wants || fired))
            member->wants = member->maybe = true;
        else if (all_ended(flow, member))
            member->wants = member->maybe = false;
    }
    flow->replay_pending = false;
}

void settle(const struct world *w, struct flow *flow, const enum weft_state *got)
{
    struct fired fired = {{0}, {0}, {0}};
    bool dirty = flow->dirty;
    const struct flow before = *flow;
    find_fired(w, flow, got, &fired);
    for (size_t i = 0; i < flow->count; i++)
        flow->member[i].unsure |= fired.ever[i] == IMPOSSIBLE && fired.before[i] != IMPOSSIBLE;
    do {
        while (judge_joins(w, flow, true) || cancel_siblings(flow, got))
            continue;
    } while (allow_siblings(flow, got, &fired));
    allow_reasons(flow, &fired);
    allow_skipped(flow, got, &before);
    if (dirty && flow->state == WEFT_FLOW_OPEN)
        end_flow(flow);
    end_wishes(flow, fired.before);
    flow->dirty = false;
}
