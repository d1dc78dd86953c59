/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_GROUP_GROUP_RUN_H
#define WEFT_NET_GROUP_GROUP_RUN_H

/* Requests that an engine thread took together, as calls of the engine. */

#include "engine/job/joint.h"
#include "wire/ops.h"

struct weft_request;
struct weft_server;

/* Requests of one kind that were taken together. */
struct weft_group_part {
    enum weft_group group;
    struct weft_request **request;
    size_t count;
    size_t items;
    void *state; /* of the kind, while the part runs */
};

/* Runs parts of different kinds, all of which join if there are several, and answers them. */
void weft_group_run(struct weft_server *server, struct weft_group_part *part, size_t count);

/*
 * A kind of request as a part of a batch: `begin` fills the call, `end` answers the requests when
 * the call has run. Requests that begin has answered are not in the call.
 */
typedef void weft_part_begin_fn(struct weft_server *server, struct weft_group_part *part,
                                struct weft_joint_call *ret_call);
typedef void weft_part_end_fn(struct weft_server *server, struct weft_group_part *part,
                              struct weft_joint_call *call);

#endif
