/* SPDX-License-Identifier: Apache-2.0 */

/* The calls of weft.h about waiting, and the calls of admin.h about signing keys. */

#include "base/arena.h"
#include "base/err.h"
#include "client/client.h"
#include "core/result.h"
#include "engine/call.h"
#include "engine/wait/wait.h"
#include "weft/admin.h"
#include "weft/weft.h"

#include <string.h>

static void give_err(const struct weft_err *err, struct weft_err *ret_err)
{
    if (err)
        *ret_err = *err;
}

enum weft_rc weft_suspend(struct weft *weft, const struct weft_suspend *item, size_t count,
                          struct weft_suspensions *ret_answer, struct weft_err *err)
{
    for (size_t i = 0; item && i < count && count <= WEFT_CALL_MAX; i++) {
        enum weft_rc rc =
            weft_check_array(item[i].waitpoint, item[i].waitpoint_count, "waitpoints", i, err);
        if (rc)
            return rc;
    }
    size_t room = count <= WEFT_CALL_MAX ? count + 1 : 1;
    struct weft_arena *arena = weft_arena_new();
    struct weft_suspend_result *result = weft_new_array(arena, struct weft_suspend_result, room);
    const struct weft_op_call call = {
        .op = WEFT_OP_SUSPEND, .in = item, .count = count, .out = result, .arena = arena};
    enum weft_rc rc = weft_do_kept(weft, &call, ret_answer, err);
    if (rc)
        return rc;
    struct weft_suspended *answer = weft_new_array(arena, struct weft_suspended, room);
    for (size_t i = 0; i < count; i++) {
        answer[i] = (struct weft_suspended){.fence = result[i].fence,
                                            .state = result[i].state,
                                            .satisfied = result[i].satisfied,
                                            .waitpoint = result[i].waitpoint,
                                            .waitpoint_count = result[i].waitpoint_count,
                                            .signal = result[i].signal,
                                            .signal_count = result[i].signal_count,
                                            .more_signals = result[i].more_signals};
        give_err(result[i].err, &answer[i].err);
    }
    *ret_answer = (struct weft_suspensions){.item = answer, .count = count, .arena = arena};
    return WEFT_OK;
}

WEFT_FREES(weft_suspensions)

enum weft_rc weft_waitpoint_make(struct weft *weft, const struct weft_waitpoint_new *item,
                                 size_t count, struct weft_waitpoints_made *ret_answer,
                                 struct weft_err *err)
{
    size_t room = count <= WEFT_CALL_MAX ? count + 1 : 1;
    struct weft_arena *arena = weft_arena_new();
    struct weft_waitpoint_result *result =
        weft_new_array(arena, struct weft_waitpoint_result, room);
    const struct weft_op_call call = {
        .op = WEFT_OP_WAITPOINT, .in = item, .count = count, .out = result, .arena = arena};
    enum weft_rc rc = weft_do_kept(weft, &call, ret_answer, err);
    if (rc)
        return rc;
    struct weft_waitpoint_made *answer = weft_new_array(arena, struct weft_waitpoint_made, room);
    for (size_t i = 0; i < count; i++) {
        answer[i] = (struct weft_waitpoint_made){.fence = result[i].fence,
                                                 .waitpoint = result[i].waitpoint};
        give_err(result[i].err, &answer[i].err);
    }
    *ret_answer = (struct weft_waitpoints_made){.item = answer, .count = count, .arena = arena};
    return WEFT_OK;
}

WEFT_FREES(weft_waitpoints_made)

/* ---- Signals --------------------------------------------------------------------------------- */

static enum weft_rc check_signals(const struct weft_op_call *call, struct weft_err *err)
{
    const struct weft_signal *item = call->in;
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < call->count && !rc; i++) {
        rc = weft_check_array(item[i].payload, item[i].payload_size, "payload", i, err);
        if (!rc && !item[i].token)
            rc = weft_missing("token", err);
    }
    return rc;
}

static void give_signalled(const void *results, size_t count, void *ret_answer)
{
    const struct weft_signal_result *from = results;
    struct weft_signalled *to = ret_answer;
    for (size_t i = 0; i < count; i++) {
        to[i] = (struct weft_signalled){
            .effect = from[i].effect, .first = from[i].first, .waitpoint = from[i].waitpoint};
        give_err(from[i].err, &to[i].err);
    }
}

enum weft_rc weft_signal(struct weft *weft, const struct weft_signal *item, size_t count,
                         struct weft_signalled *ret_answer, struct weft_err *err)
{
    static const struct weft_answer_kind kind = {sizeof(struct weft_signal_result), give_signalled};
    const struct weft_op_call call = {
        .op = WEFT_OP_SIGNALS, .in = item, .count = count, .out = ret_answer};
    return weft_do_items(weft, &call, check_signals, &kind, err);
}

const char *weft_signal_effect_name(enum weft_signal_effect effect)
{
    static const char *const name[] = {"none",     "resumed",   "recorded",
                                       "buffered", "duplicate", "ignored"};
    return (unsigned)effect < WEFT_LEN(name) ? name[effect] : "unknown";
}

/* ---- Pages ----------------------------------------------------------------------------------- */

/* id NULL is refused as a missing argument. */
static enum weft_rc ask(struct weft *weft, struct weft_op_call call, const struct weft_id *id,
                        struct weft_wait_asking *asking, struct weft_arena **ret_arena,
                        struct weft_err *err)
{
    asking->ns = weft_ns_of(weft, NULL);
    if (id)
        asking->id = *id;
    call.in = id ? asking : NULL;
    call.count = 1;
    return weft_ask(weft, &call, ret_arena, err);
}

enum weft_rc weft_waitpoints(struct weft *weft, const struct weft_id *id, uint32_t limit,
                             const char *after, struct weft_waitpoints *ret_page,
                             struct weft_err *err)
{
    struct weft_wait_asking asking = {.limit = limit, .after = after};
    const struct weft_op_call call = {.op = WEFT_OP_WAITPOINT_LIST, .out = ret_page};
    return ask(weft, call, id, &asking, WEFT_ARENA_OF(ret_page), err);
}

WEFT_FREES(weft_waitpoints)

enum weft_rc weft_signals(struct weft *weft, const struct weft_id *id, uint32_t limit,
                          const char *after, struct weft_signals *ret_page, struct weft_err *err)
{
    struct weft_wait_asking asking = {.limit = limit, .after = after};
    const struct weft_op_call call = {.op = WEFT_OP_SIGNAL_LIST, .out = ret_page};
    return ask(weft, call, id, &asking, WEFT_ARENA_OF(ret_page), err);
}

WEFT_FREES(weft_signals)

enum weft_rc weft_waiting(struct weft *weft, const struct weft_id *id,
                          struct weft_waiting *ret_waiting, struct weft_err *err)
{
    struct weft_wait_asking asking = {0};
    const struct weft_op_call call = {.op = WEFT_OP_WAITING, .out = ret_waiting};
    return ask(weft, call, id, &asking, WEFT_ARENA_OF(ret_waiting), err);
}

WEFT_FREES(weft_waiting)

enum weft_rc weft_why(struct weft *weft, const struct weft_id *id, struct weft_why *ret_why,
                      struct weft_err *err)
{
    struct weft_wait_asking asking = {0};
    const struct weft_op_call call = {.op = WEFT_OP_WHY, .out = ret_why};
    return ask(weft, call, id, &asking, WEFT_ARENA_OF(ret_why), err);
}

WEFT_FREES(weft_why)

/* ---- Operators ------------------------------------------------------------------------------- */

enum weft_rc weft_waitpoint_token(struct weft *weft, const struct weft_id *waitpoint,
                                  struct weft_bytes *ret_token, struct weft_err *err)
{
    struct weft_waitpoint found = {0};
    struct weft_arena *arena;
    struct weft_wait_asking asking = {0};
    const struct weft_op_call call = {.op = WEFT_OP_WAITPOINT_TOKEN,
                                      .out = ret_token ? &found : NULL};
    enum weft_rc rc = ask(weft, call, waitpoint, &asking, &arena, err);
    if (!rc && ret_token)
        *ret_token = (struct weft_bytes){.data = found.token,
                                         .size = found.token ? strlen(found.token) : 0,
                                         .content_type = "text/plain",
                                         .arena = arena};
    return rc;
}

enum weft_rc weft_signing_keys(struct weft *weft, struct weft_signing_keys *ret_keys,
                               struct weft_err *err)
{
    const struct weft_op_call call = {.op = WEFT_OP_KEYS, .out = ret_keys};
    return weft_ask(weft, &call, WEFT_ARENA_OF(ret_keys), err);
}

enum weft_rc weft_signing_key_rotate(struct weft *weft, const struct weft_key_rotation *rotation,
                                     struct weft_signing_keys *ret_keys, struct weft_err *err)
{
    const struct weft_op_call call = {
        .op = WEFT_OP_KEY_ROTATE, .in = rotation, .count = 1, .out = ret_keys};
    return weft_ask(weft, &call, WEFT_ARENA_OF(ret_keys), err);
}

WEFT_FREES(weft_signing_keys)
