/* SPDX-License-Identifier: Apache-2.0 */

/* Flows: when nodes become ready, which are skipped, and how a flow ends. */

#include "direct.h"
#include "flows.h"

#include "base/arena.h"
#include "engine/flow/cascade.h"
#include "engine/flow/flow.h"
#include "weft/weft.h"

CASE(flow_diamond)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:a; d:b,c");
    submit_drawn(f, &flow);
    is_str(states(f, &flow), "rbbb", "only the root may begin");
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "srrb", "both nodes after the root are ready");
    end_node(f, &flow, "c", true);
    is_str(states(f, &flow), "srsb", "one of two is not all");
    end_node(f, &flow, "b", true);
    is_str(states(f, &flow), "sssr", "the join is ready when both have succeeded");
    end_node(f, &flow, "d", true);
    is_str(states(f, &flow), "ssss", "all nodes have succeeded");
}

CASE(flow_failure_skips)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:b; d:c; x");
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", false);
    is_str(states(f, &flow), "fkkkr", "all that comes after a failure is skipped");
}

CASE(flow_any_and_quorum)
{
    struct drawn flow;
    draw(&flow, "a; b; c; d:a,b,c; q:a,b,c");
    node_of(&flow, "d")->join = WEFT_JOIN_ANY;
    node_of(&flow, "d")->on_satisfied = WEFT_ON_SATISFIED_LET_RUN;
    node_of(&flow, "q")->join = WEFT_JOIN_QUORUM;
    node_of(&flow, "q")->k = 2;
    node_of(&flow, "q")->on_satisfied = WEFT_ON_SATISFIED_LET_RUN;
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", false);
    is_str(states(f, &flow), "frrbb", "a failure decides neither join");
    end_node(f, &flow, "b", true);
    is_str(states(f, &flow), "fsrrb", "one success fires the join any");
    end_node(f, &flow, "d", true);
    end_node(f, &flow, "c", true);
    is_str(states(f, &flow), "fsssr", "two successes fire the quorum; ended nodes stay");
}

CASE(flow_long_skip)
{
    enum { LONG = 300 };
    struct weft_node *node = weft_new_array(f->arena, struct weft_node, LONG);
    const char **name = weft_new_array(f->arena, const char *, LONG);
    struct weft_flow_submitted answer = {.node = weft_new_array(f->arena, struct weft_id, LONG)};
    for (size_t i = 0; i < LONG; i++) {
        name[i] = weft_arena_printf(f->arena, "n%zu", i);
        node[i] = (struct weft_node){.name = name[i], .spec = {.kind = "n"}};
        node[i].after = i > 0 ? &name[i - 1] : NULL;
        node[i].after_count = i > 0;
    }
    const struct weft_flow_spec spec = {.nodes = node, .node_count = LONG};
    is_int(engine_flow_submit(f->a, "default", &spec, 1, &answer, &f->err), WEFT_OK, "submit");
    struct weft_claimed lease = claim_one(f, f->a);
    (void)fail_as(f, f->a, &lease, &(struct weft_failure){.permanent = true});
    struct weft_cascaded done = {0};
    is_int(weft_cascade(f->b, &answer.id, 1, UINT64_MAX, &done, &f->err), WEFT_OK, "cascade");
    is_int(done.hops, 1, "the cascade has no hop left to do");
    is_int(state_of(f, &answer.node[LONG - 1]), WEFT_STATE_SKIPPED, "the last is skipped");
}

CASE(flow_siblings_are_cancelled)
{
    struct drawn flow;
    draw(&flow, "a; b; c; d:a,b,c; e:c");
    node_of(&flow, "d")->join = WEFT_JOIN_ANY;
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "scrrb", "b is cancelled; c feeds e, which has not fired");
    struct weft_execution b = describe(f, &flow.id[1]);
    is_str(b.reason, "sibling_quorum_satisfied", "the reason is stored");
    end_node(f, &flow, "c", true);
    is_str(states(f, &flow), "scsrr", "c goes on and e begins");
}

CASE(flow_siblings_of_the_impossible)
{
    struct drawn flow;
    draw(&flow, "a; b; c; d:a,b,c; e:d");
    node_of(&flow, "d")->join = WEFT_JOIN_QUORUM;
    node_of(&flow, "d")->k = 3;
    submit_drawn(f, &flow);
    end_node(f, &flow, "b", false);
    is_str(states(f, &flow), "cfckk", "a and c are cancelled as not needed, d and e are skipped");
    struct weft_execution a = describe(f, &flow.id[0]);
    is_str(a.reason, "sibling_quorum_impossible", "the reason is stored");
}
