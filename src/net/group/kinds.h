/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_GROUP_KINDS_H
#define WEFT_NET_GROUP_KINDS_H

/* The kinds of requests that group.c folds together, from the rows FOLDED of wire/ops.def. */

#include "base/base.h"
#include "net/route.h"

struct weft_engine;
struct weft_request;
struct weft_server;

/* Where an item keeps fields that the server must fill in or check. */
enum weft_item_kind {
    WEFT_ITEM_NONE,
    WEFT_ITEM_SPEC,
    WEFT_ITEM_LEASE,
    WEFT_ITEM_STEER,
    WEFT_ITEM_FLOW
};

struct weft_kind {
    enum weft_op op; /* of what is folded */
    size_t item_size, answer_size;
    enum weft_item_kind item;
    uint32_t calls; /* that may run at once; of what runs alone: see plan.c */
    bool writes;
    bool joins; /* can share a transaction with others of these: see weft_engine_together() */
};

/* All zero for groups that run alone. */
extern const struct weft_kind weft_kinds[WEFT_GROUP_COUNT];

/* The call of the engine for items of a kind, which name their namespace; not for claims. Errors of
 * items are in the arena. */
WEFT_MUST_CHECK enum weft_rc weft_kind_call(struct weft_engine *engine,
                                            const struct weft_kind *kind, const void *item,
                                            size_t count, struct weft_arena *arena,
                                            void *ret_answer, struct weft_err *err);

/* ---- group_run.c ----------------------------------------------------------------------------- */

enum { WEFT_GROUP_PARTS_MAX = 3 }; /* as many as there are kinds that join */

/* Requests of one kind that were taken together. */
struct weft_group_part {
    enum weft_group group;
    struct weft_request **request;
    size_t count;
    size_t items;
};

/* Runs lots of different kinds, all of which join if there are several, and answers them. */
void weft_group_run(struct weft_server *server, const struct weft_group_part *lot, size_t count);

#endif
