/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_WIRE_OPS_H
#define WEFT_WIRE_OPS_H

/* The operations of weft as data: the rows of wire/ops.def, which says what the columns mean. */

#include "core/token.h"

struct weft_wire_type;

enum weft_op {
#define OP(op, ...) WEFT_OP_##op,
#include "wire/ops.def"
    WEFT_OP_COUNT
};

/* Kinds of requests to a server, each with a queue and slots of its own (net/group/plan.c). */
enum weft_group {
    /* Requests that run alone: */
    WEFT_GROUP_NONE,  /* quick reads, and requests that are small and rare */
    WEFT_GROUP_LIST,  /* lists, and the next parts of streams */
    WEFT_GROUP_PARSE, /* of no operation: bodies to be parsed; the request then goes on to its kind
                       */
    WEFT_GROUP_HEAVY, /* large flows, their growth; cancel and replay of many */
    WEFT_GROUP_ADMIN,
/* Operations that are folded into one call of the engine, a group each: */
#define FOLDED(op, ...) WEFT_GROUP_##op,
#define ALONE(op, ...)
#include "wire/ops.def"
    WEFT_GROUP_COUNT
};

static inline bool weft_group_alone(enum weft_group group)
{
    return group <= WEFT_GROUP_ADMIN;
}

/* The labels of groups in metrics. */
extern const char *const weft_group_names[WEFT_GROUP_COUNT];

/* What a client may do when the answer to a request was lost. */
enum weft_repeat {
    WEFT_REPEAT_SAFE,  /* send it again */
    WEFT_REPEAT_ONCE,  /* not send it again */
    WEFT_REPEAT_KEYED, /* send it again if every item has a key */
};

struct weft_op_info {
    const char *id; /* operationId */
    const char *method;
    const char *path; /* "/v1/executions/{id}/cancel" */
    enum weft_scope scope;
    enum weft_group group;
    enum weft_repeat repeat;
    const struct weft_wire_type *takes; /* the body of a request, or an item of it; NULL: none */
    const struct weft_wire_type *gives; /* the body of a response, or an item of it */
};

extern const struct weft_op_info weft_ops[WEFT_OP_COUNT];

#endif
