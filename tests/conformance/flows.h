/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_CONFORMANCE_FLOWS_H
#define WEFT_TESTS_CONFORMANCE_FLOWS_H

/* Small flows, drawn as text. */

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

void draw(struct drawn *flow, const char *text);
struct weft_node *node_of(struct drawn *flow, const char *name);
/* The id of a node; the flow was submitted. */
const struct weft_id *id_of(const struct drawn *flow, const char *name);
/* Submits it through engine a; it must be accepted. */
void submit_drawn(struct fixture *f, struct drawn *flow);
void cascade(struct fixture *f, struct weft_engine *engine, const struct drawn *flow);
/* From here on an engine leaves completions where they are, as one that dies after its commit. */
void leave_completions(struct weft_engine *engine);
/* The states of all nodes as letters: r d b R(unning) s f c e k(skipped). */
const char *states(struct fixture *f, const struct drawn *flow);
/* The state of the flow, -1: it cannot be seen. */
int flow_state(struct fixture *f, const struct drawn *flow);
/* Claims the node of that name, which must be ready. */
struct weft_claimed claim_node(struct fixture *f, const char *name);
/* Claims the node of that name, which must be ready, ends it, and cascades through engine b. */
void end_node(struct fixture *f, const struct drawn *flow, const char *name, bool good);

#endif
