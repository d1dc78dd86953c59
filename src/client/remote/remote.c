/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which function carries out an operation through a server. An operation of wire/ops.def needs a
 * function of its own only where it differs from the two general forms.
 */

#include "client/remote/remote.h"

#include <string.h>

/* One request: the argument is the body, or begins with the id that the path names. */
static enum weft_rc send_message(const struct weft_via *via, const struct weft_op_call *call,
                                 struct weft_err *err)
{
    struct weft_remote_request request = {.op = call->op};
    if (strchr(weft_ops[call->op].path, '{'))
        request.place = weft_remote_id(call->arena, call->in);
    return weft_remote_one(via, &request, call->in, call->arena, call->out, err);
}

static weft_remote_fn *const calls[WEFT_OP_COUNT] = {
    [WEFT_OP_CLAIM] = weft_remote_claim,
    [WEFT_OP_WATCH] = weft_remote_watch,
    [WEFT_OP_CANCEL] = weft_remote_steer,
    [WEFT_OP_REPLAY] = weft_remote_steer,
    [WEFT_OP_REPRIORITIZE] = weft_remote_steer,
    [WEFT_OP_SET_DEADLINE] = weft_remote_steer,
    [WEFT_OP_REVOKE] = weft_remote_steer,
    [WEFT_OP_CANCEL_MANY] = weft_remote_steer_many,
    [WEFT_OP_REPLAY_MANY] = weft_remote_steer_many,
    [WEFT_OP_FLOW_SUBMIT] = weft_remote_flow_submit,
    [WEFT_OP_FLOW_GROW] = weft_remote_flow_grow,
    [WEFT_OP_FLOW_LINK] = weft_remote_flow_link,
    [WEFT_OP_FLOW_CANCEL] = weft_remote_flow_cancel,
    [WEFT_OP_FLOW_DELETE] = weft_remote_flow_cancel,
    [WEFT_OP_FLOW] = weft_remote_flow,
    [WEFT_OP_FLOW_NODES] = weft_remote_flow_nodes,
    [WEFT_OP_FLOWS] = weft_remote_flows,
    [WEFT_OP_DESCRIBE] = weft_remote_describe,
    [WEFT_OP_LIST] = weft_remote_list,
    [WEFT_OP_RESULT] = weft_remote_bytes,
    [WEFT_OP_PAYLOAD] = weft_remote_bytes,
    [WEFT_OP_COUNTS] = weft_remote_counts,
    [WEFT_OP_ATTEMPTS] = weft_remote_whole_list,
    [WEFT_OP_LANES] = weft_remote_whole_list,
    [WEFT_OP_WORKERS] = weft_remote_whole_list,
    [WEFT_OP_TOKENS] = weft_remote_whole_list,
    [WEFT_OP_REPLICAS] = weft_remote_whole_list,
    [WEFT_OP_SCANNERS] = weft_remote_whole_list,
    [WEFT_OP_LANE_PUT] = weft_remote_lane_put,
    [WEFT_OP_LANE_REMOVE] = weft_remote_lane_remove,
    [WEFT_OP_GOODBYE] = weft_remote_goodbye,
    [WEFT_OP_TOKEN_ROTATE] = weft_remote_token_rotate,
    [WEFT_OP_TOKEN_REVOKE] = weft_remote_token_revoke,
    [WEFT_OP_RUN_SCANNER] = weft_remote_run_scanner,
};

static enum weft_rc call_server(const struct weft_via *via, const struct weft_op_call *call,
                                struct weft_err *err)
{
    bool items = !weft_group_alone(weft_ops[call->op].group);
    weft_remote_fn *usual = items ? weft_remote_bulk : send_message;
    return (calls[call->op] ? calls[call->op] : usual)(via, call, err);
}

static void close_remote(struct weft *weft)
{
    weft_remote_close(weft->remote);
}

const struct weft_backend weft_backend_remote = {.call = call_server, .close = close_remote};
