/* SPDX-License-Identifier: Apache-2.0 */

/* Flows: what begins when, what is skipped, and how they end. */

#include "conformance.h"
#include "engine/flow.h"

enum { NODES_MAX = 16 };

/* A flow drawn as text, "a; b:a; c:a,b", with what became of it. */
struct drawn {
    char text[512];
    struct weft_node node[NODES_MAX];
    const char *after[NODES_MAX][NODES_MAX];
    size_t count;
    struct weft_id id[NODES_MAX];
    struct weft_flow_submitted answer;
};

static void draw(struct drawn *flow, const char *text)
{
    *flow = (struct drawn){0};
    (void)snprintf(flow->text, sizeof(flow->text), "%s", text);
    char *rest = flow->text, *part;
    while ((part = strsep(&rest, ";")) != NULL) {
        struct weft_node *node = &flow->node[flow->count];
        char *after = part + strspn(part, " "), *name;
        node->name = strsep(&after, ":");
        node->spec.kind = node->name;
        node->after = flow->after[flow->count];
        while (after && (name = strsep(&after, ",")) != NULL)
            flow->after[flow->count][node->after_count++] = name;
        flow->count++;
    }
}

static struct weft_node *node_of(struct drawn *flow, const char *name)
{
    for (size_t i = 0; i < flow->count; i++)
        if (strcmp(flow->node[i].name, name) == 0)
            return &flow->node[i];
    return NULL;
}

static void submit_drawn(struct fixture *f, struct drawn *flow)
{
    const struct weft_flow_spec spec = {.nodes = flow->node, .node_count = flow->count};
    flow->answer.node = flow->id;
    is_int(weft_engine_flow_submit(f->a, "default", &spec, 1, &flow->answer, &f->err), WEFT_OK,
           "submit the flow");
    is_int(flow->answer.err.rc, WEFT_OK, "it is accepted%s%s", flow->answer.err.rc ? ": " : "",
           flow->answer.err.rc ? flow->answer.err.text : "");
}

static void cascade(struct fixture *f, struct weft_engine *engine, const struct drawn *flow)
{
    struct weft_cascaded done = {0};
    is_int(weft_cascade(engine, &flow->answer.id, 1, &done, &f->err), WEFT_OK, "cascade");
}

/* The states of all nodes as letters: r d b R(unning) s f c e k(skipped). */
static const char *states(struct fixture *f, const struct drawn *flow)
{
    static const char letter[] = {
        [WEFT_STATE_READY] = 'r',     [WEFT_STATE_DELAYED] = 'd',   [WEFT_STATE_BLOCKED] = 'b',
        [WEFT_STATE_RUNNING] = 'R',   [WEFT_STATE_SUCCEEDED] = 's', [WEFT_STATE_FAILED] = 'f',
        [WEFT_STATE_CANCELLED] = 'c', [WEFT_STATE_EXPIRED] = 'e',   [WEFT_STATE_SKIPPED] = 'k',
    };
    char *text = weft_new_array(f->arena, char, flow->count + 1);
    for (size_t i = 0; i < flow->count; i++)
        text[i] = letter[state_of(f, &flow->id[i])];
    return text;
}

/* Claims the node of that name, which must be ready, and ends it. */
static void end_node(struct fixture *f, const struct drawn *flow, const char *name, bool good)
{
    const char *const kind[] = {name};
    const struct weft_claim args = {
        .worker = "worker-a", .kinds = kind, .kind_count = 1, .max = 1, .lease_ms = 60000};
    struct weft_claim_result got = claim_with(f, f->a, &args);
    is_int(got.count, 1, "%s can be claimed", name);
    if (got.count == 0)
        return;
    if (good)
        is_int(complete(f, f->a, &got.item[0], "1").err.rc, WEFT_OK, "%s succeeds", name);
    else
        is_int(fail_as(f, f->a, &got.item[0], &(struct weft_failure){.permanent = true}).err.rc,
               WEFT_OK, "%s fails", name);
    cascade(f, f->b, flow);
}

CASE(flow_diamond)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:a; d:b,c");
    submit_drawn(f, &flow);
    is_str(states(f, &flow), "rbbb", "only the root may begin");
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "srrb", "then both that come after it");
    end_node(f, &flow, "c", true);
    is_str(states(f, &flow), "srsb", "one of two is not all");
    end_node(f, &flow, "b", true);
    is_str(states(f, &flow), "sssr", "both are");
    end_node(f, &flow, "d", true);
    is_str(states(f, &flow), "ssss", "the end");
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
    is_str(states(f, &flow), "frrbb", "a failure decides neither");
    end_node(f, &flow, "b", true);
    is_str(states(f, &flow), "fsrrb", "one is any");
    end_node(f, &flow, "d", true);
    end_node(f, &flow, "c", true);
    is_str(states(f, &flow), "fsssr", "two are a quorum; what has ended stays");
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
    is_int(weft_engine_flow_submit(f->a, "default", &spec, 1, &answer, &f->err), WEFT_OK, "submit");
    struct weft_claimed lease = claim_one(f, f->a);
    (void)fail_as(f, f->a, &lease, &(struct weft_failure){.permanent = true});
    struct weft_cascaded done = {0};
    is_int(weft_cascade(f->b, &answer.id, 1, &done, &f->err), WEFT_OK, "cascade");
    is_int(done.hops, 1, "nothing was left to do: the engine cascades by itself");
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
    is_str(states(f, &flow), "cfckk", "nobody needs a and c, d and e are skipped");
    struct weft_execution a = describe(f, &flow.id[0]);
    is_str(a.reason, "sibling_quorum_impossible", "the reason is stored");
}
