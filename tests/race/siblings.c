/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Siblings of a join that are too many for one transaction. One replica is stopped on its walk
 * along them, when it has spared a sibling for the sake of another join; then that join fires, and
 * whoever let it fire stands still as well, before it could dispatch anything. The first goes on
 * behind the sibling, and must not leave it alone.
 */

#include "flows.h"

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

/* `join` wants one of all siblings and the winner, `second` one of the first sibling and the other.
 */
static struct wide *submit_wide(struct race *race)
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
    wide->node[JOIN].join = wide->node[SECOND].join = WEFT_JOIN_ANY;
    wide->node[SECOND].on_satisfied = WEFT_ON_SATISFIED_LET_RUN;
    const struct weft_flow_spec spec = {.nodes = wide->node, .node_count = NODES};
    wide->answer.node = wide->id;
    if (weft_engine_flow_submit(race->a, "default", &spec, 1, &wide->answer, &err) ||
        wide->answer.err.rc)
        bail_out("submit: %s %s", err.text, wide->answer.err.text);
    return wide;
}

RACE(flow_join_fires_during_a_walk_along_siblings)
{
    if (!only_on_pg())
        return;
    struct wide *wide = submit_wide(race);
    struct stopped walks, fires;
    struct doer win = {.engine = race->a, .lease = take(race, "winner")};
    struct doer other = {.engine = race->b, .lease = take(race, "other")};
    stop_at(&walks, WEFT_FAULT_AFTER_COMMIT, WEFT_STMT_GROUP_MEMBERS, do_complete, &win);
    is_int(state_at(race->b, &wide->id[0]), WEFT_STATE_READY, "the first is spared");
    is_int(state_at(race->b, &wide->id[1]), WEFT_STATE_CANCELLED, "the next is not");
    is_int(state_at(race->b, &wide->id[SIBLINGS - 1]), WEFT_STATE_READY, "the last is far away");
    stop_at(&fires, WEFT_FAULT_AFTER_COMMIT, WEFT_STMT_CASCADE_LOOK, do_complete, &other);
    is_int(state_at(race->b, &wide->id[SECOND]), WEFT_STATE_READY, "nobody needs the first now");
    go_on(&walks, &win);
    is_int(state_at(race->b, &wide->id[SIBLINGS - 1]), WEFT_STATE_CANCELLED, "the last goes");
    is_int(state_at(race->b, &wide->id[0]), WEFT_STATE_CANCELLED, "and the first, after all");
    go_on(&fires, &other);
    nothing_left(race);
    struct doer reconcile = {.engine = race->b};
    do_reconcile(&reconcile);
    is_int(reconcile.rc, WEFT_OK, "the reconciler comes by");
    is_int(raw_int(&race->place, race->raw, "SELECT count(*) FROM weft.cancel_group"), 0,
           "no group waits for anything");
    free(wide);
}
