/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_KINDS_H
#define WEFT_NET_KINDS_H

/* The kinds of requests that group.c folds together: what their items are and who takes them. */

#include "net/inside.h"

typedef enum weft_rc weft_group_call(struct weft_engine *engine, const void *item, size_t count,
                                     void *ret_answer, struct weft_err *err);

/* Where an item keeps what the server must fill in or check. */
enum weft_item_kind { WEFT_ITEM_NONE, WEFT_ITEM_SPEC, WEFT_ITEM_LEASE, WEFT_ITEM_STEER };

struct weft_kind {
    const char *name;
    weft_group_call *call; /* NULL: claims, and what runs alone */
    size_t item_size, answer_size;
    enum weft_item_kind item;
    uint32_t calls; /* that may run at once; alone: see group.c */
    bool writes;
};

extern const struct weft_kind weft_kinds[WEFT_GROUP_COUNT];

#endif
