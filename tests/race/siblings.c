/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Siblings of a join that are too many for one transaction. One replica is stopped on its walk
 * along them, when it has spared a sibling that another join needs; then that join fires, and the
 * replica that completed it is stopped before it dispatches anything. The first replica goes on
 * behind the sibling and must still cancel it. Also a join that is decided twice during one walk.
 */

#include "direct.h"
#include "flows.h"

#include "engine/flow/cascade.h"
#include "engine/flow/cascade_read.h"
#include "engine/flow/flow.h"
#include "engine/job/control.h"
#include "store/fault/fault.h"
#include "weft/weft.h"

#include <stdlib.h>

enum {
    SIBLINGS = WEFT_FLOW_CHUNK + 300,
    WINNER = SIBLINGS, /* places in the flow, behind the siblings, as all below */
    OTHER,
    JOIN,
    SECOND,
    NODES,
};

struct wide {
    char name[NODES][8];
    const char *after[SIBLINGS + 1], *both[2];
    struct weft_node node[NODES];
    struct weft_id id[NODES];
    struct weft_flow_submitted answer;
};

/* `join` wants k of all siblings and the winner, `second` one of the first sibling and the other.
 */
static struct wide *submit_wide(struct race *race, uint32_t k)
{
    struct wide *wide = calloc(1, sizeof(*wide));
    struct weft_err err = {0};
    if (!wide)
        bail_out("no memory");
    static const char *const kind[] = {[WINNER - SIBLINGS] = "winner",
                                       [OTHER - SIBLINGS] = "other",
                                       [JOIN - SIBLINGS] = "join",
                                       [SECOND - SIBLINGS] = "second"};
    for (size_t i = 0; i < NODES; i++) {
        if (i < SIBLINGS)
            (void)snprintf(wide->name[i], sizeof(wide->name[i]), "s%zu", i);
        else
            (void)snprintf(wide->name[i], sizeof(wide->name[i]), "%s", kind[i - SIBLINGS]);
        wide->node[i].name = wide->name[i];
        wide->node[i].spec.kind = i < SIBLINGS ? "sibling" : kind[i - SIBLINGS];
        if (i <= SIBLINGS)
            wide->after[i] = wide->name[i];
    }
    wide->both[0] = wide->name[0];
    wide->both[1] = wide->name[OTHER];
    wide->node[JOIN].after = wide->after;
    wide->node[JOIN].after_count = SIBLINGS + 1;
    wide->node[SECOND].after = wide->both;
    wide->node[SECOND].after_count = 2;
    wide->node[JOIN].join = WEFT_JOIN_QUORUM;
    wide->node[JOIN].k = k;
    wide->node[SECOND].join = WEFT_JOIN_ANY;
    wide->node[SECOND].on_satisfied = WEFT_ON_SATISFIED_LET_RUN;
    const struct weft_flow_spec spec = {.nodes = wide->node, .node_count = NODES};
    wide->answer.node = wide->id;
    if (engine_flow_submit(race->a, "default", &spec, 1, &wide->answer, &err) ||
        wide->answer.err.rc)
        bail_out("submit: %s %s", err.text, wide->answer.err.text);
    return wide;
}

RACE(flow_join_fires_during_a_walk_along_siblings)
{
    if (!only_on_pg())
        return;
    struct wide *wide = submit_wide(race, 1);
    struct stopped walks, fires;
    struct doer win = {.engine = race->a, .lease = take(race, "winner")};
    struct doer other = {.engine = race->b, .lease = take(race, "other")};
    stop_at(&walks, WEFT_FAULT_AFTER_COMMIT, WEFT_STMT_GROUP_MEMBERS, do_complete, &win);
    is_int(state_at(race->b, &wide->id[0]), WEFT_STATE_READY, "the first is spared");
    is_int(state_at(race->b, &wide->id[1]), WEFT_STATE_CANCELLED, "the next is not");
    is_int(state_at(race->b, &wide->id[SIBLINGS - 1]), WEFT_STATE_READY, "the last is far away");
    stop_at(&fires, WEFT_FAULT_AFTER_COMMIT, WEFT_STMT_CASCADE_LOOK, do_complete, &other);
    is_int(state_at(race->b, &wide->id[SECOND]), WEFT_STATE_READY,
           "the second join has fired and its node is ready");
    go_on(&walks, &win);
    is_int(state_at(race->b, &wide->id[SIBLINGS - 1]), WEFT_STATE_CANCELLED, "the last goes");
    is_int(state_at(race->b, &wide->id[0]), WEFT_STATE_CANCELLED,
           "the first sibling is cancelled when the walk goes on");
    go_on(&fires, &other);
    nothing_left(race);
    is_int(raw_int(&race->place, race->raw, "SELECT count(*) FROM weft.cancel_group"), 0,
           "no cancel group is left");
    free(wide);
}

static size_t living(struct race *race)
{
    return (size_t)raw_int(&race->place, race->raw,
                           "SELECT count(*) FROM weft.node n JOIN weft.live l ON l.id = n.id "
                           "WHERE n.name LIKE 's%%' AND n.name <> 'second'");
}

/* Replays the siblings and the winner; the cascade runs in this thread. */
static void replay_all(struct race *race, const struct wide *wide)
{
    enum { HALF = (SIBLINGS + 1) / 2 };
    struct weft_steer item[HALF + 1];
    struct weft_steered answer[HALF + 1];
    struct weft_err err = {0};
    for (size_t at = 0, count; at <= WINNER; at += count) {
        count = WINNER + 1 - at < HALF ? WINNER + 1 - at : HALF;
        for (size_t i = 0; i < count; i++)
            item[i] = (struct weft_steer){.id = wide->id[at + i]};
        const struct weft_steering steering = {
            .kind = WEFT_STEER_REPLAY, .ns = "default", .item = item, .count = count};
        is_int(engine_steer(race->b, &steering, answer, &err), WEFT_OK, "replay");
        is_int(answer[0].err.rc, WEFT_OK, "the first");
        is_int(answer[count - 1].err.rc, WEFT_OK, "the last execution is replayed");
    }
}

/*
 * One replica stands still on its walk; another ends the walk and the group with it. Then all is
 * replayed, and the join is decided again: its group is a new one, though it looks like the first.
 */
RACE(flow_group_comes_again_during_a_walk_along_siblings)
{
    if (!only_on_pg())
        return;
    struct wide *wide = submit_wide(race, SIBLINGS + 1);
    struct stopped walks, fires;
    struct weft_cascaded done = {0};
    struct weft_err err = {0};
    struct doer other = {.engine = race->b, .lease = take(race, "other")};
    do_complete(&other);
    struct doer lose = {.engine = race->a, .lease = take(race, "winner")};
    stop_at(&walks, WEFT_FAULT_AFTER_COMMIT, WEFT_STMT_GROUP_MEMBERS, do_fail, &lose);
    is_int(living(race), SIBLINGS - WEFT_FLOW_CHUNK, "a chunk is cancelled");
    is_int(weft_cascade(race->b, &wide->answer.id, 1, UINT64_MAX, &done, &err), WEFT_OK,
           "another engine runs the cascade");
    is_int(living(race), 0, "the other engine cancels the rest");
    is_int(raw_int(&race->place, race->raw, "SELECT count(*) FROM weft.cancel_group"), 0,
           "the group is gone");
    replay_all(race, wide);
    is_int(living(race), SIBLINGS, "all siblings are back");
    is_int(state_at(race->b, &wide->id[JOIN]), WEFT_STATE_BLOCKED, "the join is blocked again");
    race_forward(race, 1);
    struct doer again = {.engine = race->b, .lease = take(race, "winner")};
    stop_at(&fires, WEFT_FAULT_AFTER_COMMIT, WEFT_STMT_GROUP_ADD, do_fail, &again);
    go_on(&walks, &lose);
    is_int(living(race), 0, "the walk that goes on begins with the first sibling");
    go_on(&fires, &again);
    nothing_left(race);
    free(wide);
}
