/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_CONFORMANCE_FLOWS_H
#define WEFT_TESTS_CONFORMANCE_FLOWS_H

/* Small flows, drawn as text, and large ones. */

#include "conformance.h"
#include "drawn.h"

#include "weft/weft.h"

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

/* A flow of many nodes. */
struct many {
    struct weft_node *node;
    const char **name;
    size_t count;
    struct weft_flow_submitted answer;
};
/* Nodes named n0, n1, ..., of the kind "sibling", that come after nothing. */
void many_new(struct fixture *f, struct many *many, size_t count);
/* Lets a node come after `count` others from `first` on. */
void many_after(struct many *many, size_t node, size_t first, size_t count);
/* Submits it through engine a; it must be accepted. */
void many_submit(struct fixture *f, struct many *many);
/* How many members are in a state. */
uint64_t many_in(struct fixture *f, const struct many *many, enum weft_state state);

#endif
