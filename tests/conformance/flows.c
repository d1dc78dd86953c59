/* SPDX-License-Identifier: Apache-2.0 */

/* Small flows, drawn as text, and large ones. */

#include "flows.h"
#include "direct.h"

#include "base/arena.h"
#include "engine/flow/cascade.h"
#include "engine/flow/flow.h"
#include "engine/job/claim.h"
#include "engine/tx/commit_effects.h"
#include "engine/tx/tx.h"
#include "store/store.h"
#include "weft/weft.h"

struct weft_node *node_of(struct drawn *flow, const char *name)
{
    for (size_t i = 0; i < flow->count; i++)
        if (strcmp(flow->node[i].name, name) == 0)
            return &flow->node[i];
    return NULL;
}

const struct weft_id *id_of(const struct drawn *flow, const char *name)
{
    size_t i = 0;
    while (i < flow->count && strcmp(flow->node[i].name, name) != 0)
        i++;
    return &flow->id[i];
}

void submit_drawn(struct fixture *f, struct drawn *flow)
{
    const struct weft_flow_spec spec = {.nodes = flow->node, .node_count = flow->count};
    flow->answer.node = flow->id;
    is_int(engine_flow_submit(f->a, "default", &spec, 1, &flow->answer, &f->err), WEFT_OK,
           "submit the flow");
    is_int(flow->answer.err.rc, WEFT_OK, "the flow is accepted%s%s",
           flow->answer.err.rc ? ": " : "", flow->answer.err.rc ? flow->answer.err.text : "");
}

void cascade(struct fixture *f, struct weft_engine *engine, const struct drawn *flow)
{
    struct weft_cascaded done = {0};
    is_int(weft_cascade(engine, &flow->answer.id, 1, UINT64_MAX, &done, &f->err), WEFT_OK,
           "cascade");
}

static void leave(void *context, const struct weft_id *flow, size_t count)
{
    (void)context;
    (void)flow;
    (void)count;
}

void leave_completions(struct weft_engine *engine)
{
    weft_engine_on_flows(engine, leave, NULL);
}

const char *states(struct fixture *f, const struct drawn *flow)
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

int flow_state(struct fixture *f, const struct drawn *flow)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_flow_read(&call, f->arena)->id = flow->answer.id;
    is_int(weft_tx_once(f->b, WEFT_TX_READ, &call, f->arena, &rows, &f->err), WEFT_OK, "read it");
    return rows.count ? weft_out_flow_read(&rows)->flow_head.state : -1;
}

struct weft_claimed claim_node(struct fixture *f, const char *name)
{
    const char *const kind[] = {name};
    const struct weft_claim args = {
        .worker = "worker-a", .kinds = kind, .kind_count = 1, .max = 1, .lease_ms = 60000};
    struct weft_claim_result got = claim_with(f, f->a, &args);
    is_int(got.count, 1, "%s can be claimed", name);
    return got.count ? got.item[0] : (struct weft_claimed){0};
}

void end_node(struct fixture *f, const struct drawn *flow, const char *name, bool good)
{
    struct weft_claimed lease = claim_node(f, name);
    if (good)
        is_int(complete(f, f->a, &lease, "1").err.rc, WEFT_OK, "%s succeeds", name);
    else
        is_int(fail_as(f, f->a, &lease, &(struct weft_failure){.permanent = true}).err.rc, WEFT_OK,
               "%s fails", name);
    cascade(f, f->b, flow);
}

/* ---- Many ------------------------------------------------------------------------------------ */

void many_new(struct fixture *f, struct many *many, size_t count)
{
    *many = (struct many){.count = count};
    many->node = weft_new_array(f->arena, struct weft_node, count);
    many->name = weft_new_array(f->arena, const char *, count);
    many->answer.node = weft_new_array(f->arena, struct weft_id, count);
    for (size_t i = 0; i < count; i++) {
        many->name[i] = weft_arena_printf(f->arena, "n%zu", i);
        many->node[i] = (struct weft_node){.name = many->name[i], .spec = {.kind = "sibling"}};
    }
}

void many_after(struct many *many, size_t node, size_t first, size_t count)
{
    many->node[node].after = many->name + first;
    many->node[node].after_count = count;
}

void many_submit(struct fixture *f, struct many *many)
{
    const struct weft_flow_spec spec = {.nodes = many->node, .node_count = many->count};
    is_int(engine_flow_submit(f->a, "default", &spec, 1, &many->answer, &f->err), WEFT_OK,
           "submit the flow");
    is_int(many->answer.err.rc, WEFT_OK, "the flow is accepted");
}

uint64_t many_in(struct fixture *f, const struct many *many, enum weft_state state)
{
    struct weft_flow_page page = {0};
    const struct weft_flow_asking asking = {
        .ns = "default", .flow = many->answer.id, .counts = true};
    is_int(weft_engine_flow(f->b, &asking, f->arena, &page, &f->err), WEFT_OK, "read the flow");
    return page.flow.count[state];
}
