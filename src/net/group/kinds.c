/* SPDX-License-Identifier: Apache-2.0 */

#include "net/group/kinds.h"

#include "engine/ops.h"
#include "net/api/api_control.h"
#include "net/route.h"

#include <assert.h>

static enum weft_rc call_submit(struct weft_engine *engine, const void *item, size_t count,
                                void *ret_answer, struct weft_err *err)
{
    return weft_engine_submit(engine, "default", item, count, ret_answer, err);
}

static enum weft_rc call_flow(struct weft_engine *engine, const void *item, size_t count,
                              void *ret_answer, struct weft_err *err)
{
    return weft_engine_flow_submit(engine, "default", item, count, ret_answer, err);
}

static enum weft_rc call_renew(struct weft_engine *engine, const void *item, size_t count,
                               void *ret_answer, struct weft_err *err)
{
    return weft_engine_renew(engine, item, count, ret_answer, err);
}

static enum weft_rc call_complete(struct weft_engine *engine, const void *item, size_t count,
                                  void *ret_answer, struct weft_err *err)
{
    return weft_engine_complete(engine, item, count, ret_answer, err);
}

static enum weft_rc call_fail(struct weft_engine *engine, const void *item, size_t count,
                              void *ret_answer, struct weft_err *err)
{
    return weft_engine_fail(engine, item, count, ret_answer, err);
}

static enum weft_rc call_delay(struct weft_engine *engine, const void *item, size_t count,
                               void *ret_answer, struct weft_err *err)
{
    return weft_engine_put_back(engine, WEFT_PUT_BACK_DELAY, item, count, ret_answer, err);
}

static enum weft_rc call_release(struct weft_engine *engine, const void *item, size_t count,
                                 void *ret_answer, struct weft_err *err)
{
    return weft_engine_put_back(engine, WEFT_PUT_BACK_RELEASE, item, count, ret_answer, err);
}

static enum weft_rc steer(struct weft_engine *engine, enum weft_steer_kind kind, const void *item,
                          size_t count, void *ret_answer, struct weft_err *err)
{
    const struct weft_steering steering = {
        .kind = kind, .ns = "default", .item = item, .count = count};
    return weft_steer_call(engine, &steering, ret_answer, err);
}

#define STEER(name, kind)                                                                          \
    static enum weft_rc call_##name(struct weft_engine *engine, const void *item, size_t count,    \
                                    void *ret_answer, struct weft_err *err)                        \
    {                                                                                              \
        return steer(engine, kind, item, count, ret_answer, err);                                  \
    }
STEER(cancel, WEFT_STEER_CANCEL)
STEER(replay, WEFT_STEER_REPLAY)
STEER(reprioritize, WEFT_STEER_REPRIORITIZE)
STEER(set_deadline, WEFT_STEER_SET_DEADLINE)
STEER(revoke, WEFT_STEER_REVOKE)

#define LEASES(word, type) #word, call_##word, sizeof(struct type), sizeof(struct weft_lease_answer)

#define STEERS(word) #word, call_##word, sizeof(struct weft_steer), sizeof(struct weft_steer_told)

/* clang-format off */
const struct weft_kind weft_kinds[WEFT_GROUP_COUNT] = {
    [WEFT_GROUP_NONE]         = {.name = "read"},
    [WEFT_GROUP_LIST]         = {.name = "list"},
    [WEFT_GROUP_PARSE]        = {.name = "parse"},
    [WEFT_GROUP_HEAVY]        = {.name = "heavy"},
    [WEFT_GROUP_ADMIN]        = {.name = "admin"},
    [WEFT_GROUP_SUBMIT]       = {"submit", call_submit, sizeof(struct weft_spec),
                                 sizeof(struct weft_submitted), WEFT_ITEM_SPEC, 1, true, true},
    [WEFT_GROUP_CLAIM]        = {.name = "claim", .calls = 1, .writes = true, .joins = true},
    [WEFT_GROUP_RENEW]        = {LEASES(renew, weft_renew), WEFT_ITEM_LEASE, 1, true, false},
    [WEFT_GROUP_COMPLETE]     = {LEASES(complete, weft_complete), WEFT_ITEM_LEASE, 1, true, true},
    [WEFT_GROUP_FAIL]         = {LEASES(fail, weft_failure), WEFT_ITEM_LEASE, 1, true, false},
    [WEFT_GROUP_DELAY]        = {LEASES(delay, weft_put_back), WEFT_ITEM_LEASE, 1, true, false},
    [WEFT_GROUP_RELEASE]      = {LEASES(release, weft_put_back), WEFT_ITEM_LEASE, 1, true, false},
    [WEFT_GROUP_CANCEL]       = {STEERS(cancel), WEFT_ITEM_STEER, 1, true, false},
    [WEFT_GROUP_REPLAY]       = {STEERS(replay), WEFT_ITEM_STEER, 1, true, false},
    [WEFT_GROUP_REPRIORITIZE] = {STEERS(reprioritize), WEFT_ITEM_STEER, 1, true, false},
    [WEFT_GROUP_SET_DEADLINE] = {STEERS(set_deadline), WEFT_ITEM_STEER, 1, true, false},
    [WEFT_GROUP_REVOKE]       = {STEERS(revoke), WEFT_ITEM_STEER, 1, true, false},
    [WEFT_GROUP_FLOW]         = {"flow", call_flow,
                                 sizeof(struct weft_flow_spec), sizeof(struct weft_flow_submitted),
                                 WEFT_ITEM_FLOW, 1, true, false},
};
/* clang-format on */

/* Every lease item begins with the id: the namespace check reads it there. */
static_assert(offsetof(struct weft_renew, id) == 0, "id first");
static_assert(offsetof(struct weft_complete, id) == 0, "id first");
static_assert(offsetof(struct weft_failure, id) == 0, "id first");
static_assert(offsetof(struct weft_put_back, id) == 0, "id first");
