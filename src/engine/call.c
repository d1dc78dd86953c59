/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/call.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "engine/admin/lanes.h"
#include "engine/admin/replicas.h"
#include "engine/admin/tally.h"
#include "engine/admin/tokens.h"
#include "engine/admin/workers.h"
#include "engine/batch/batch_submit.h"
#include "engine/batch/file_view.h"
#include "engine/batch/models.h"
#include "engine/engine.h"
#include "engine/erase/erase.h"
#include "engine/flow/flow.h"
#include "engine/http/settings.h"
#include "engine/job/claim.h"
#include "engine/job/control.h"
#include "engine/job/execution_read.h"
#include "engine/job/joint.h"
#include "engine/job/leases.h"
#include "engine/job/list.h"
#include "engine/job/submit.h"
#include "engine/limit/budgets.h"
#include "engine/limit/gates.h"
#include "engine/limit/usage.h"
#include "engine/limit/why.h"
#include "engine/scan/pass.h"
#include "engine/wait/keys.h"
#include "engine/wait/wait.h"
#include "weft/admin.h"

static enum weft_rc list_replicas(struct weft_engine *engine, struct weft_arena *arena,
                                  struct weft_replicas *ret_replicas, struct weft_err *err)
{
    struct weft_replica_rows rows;
    enum weft_rc rc = weft_engine_replicas(engine, arena, &rows, err);
    if (rc)
        return rc;
    weft_usec now_us = weft_clock_now(weft_engine_clock(engine));
    struct weft_replica *item = weft_new_array(arena, struct weft_replica, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++) {
        item[i] = weft_replica_shown(&rows.item[i], now_us);
        item[i].carries = weft_replica_carries(&rows.item[i], arena, &item[i].carries_count);
    }
    *ret_replicas = (struct weft_replicas){.item = item, .count = rows.count};
    return WEFT_OK;
}

static enum weft_rc list_scanners(struct weft_engine *engine, struct weft_arena *arena,
                                  struct weft_scanners *ret_scanners, struct weft_err *err)
{
    struct weft_replica_rows rows;
    enum weft_rc rc = weft_engine_replicas(engine, arena, &rows, err);
    if (!rc)
        *ret_scanners =
            weft_replica_scanners(&rows, weft_clock_now(weft_engine_clock(engine)), arena);
    return rc;
}

/* The server makes the call itself: net/trial.h. */
static enum weft_rc no_trial(struct weft_err *err)
{
    return weft_hint(err,
                     weft_fail(err, WEFT_INVALID_VALUE,
                               "a store makes no calls: only a server can test an endpoint"),
                     "name the server, with --server or as the URL of the handle");
}

#define STEERING(kind_)                                                                            \
    &(struct weft_steering)                                                                        \
    {                                                                                              \
        .kind = WEFT_STEER_##kind_, .ns = ns, .item = in, .count = count, .arena = arena           \
    }
#define BYTES_OF(kind_)                                                                            \
    &(struct weft_bytes_of)                                                                        \
    {                                                                                              \
        .kind = WEFT_BYTES_##kind_, .ns = ns, .id = *in                                            \
    }

enum weft_rc weft_engine_call(struct weft_engine *engine, const struct weft_op_call *call,
                              struct weft_err *err)
{
    const char *ns = call->ns;
    size_t count = call->count;
    struct weft_arena *arena = call->arena;
    switch (call->op) {
#define OP(op, group_, id_, method_, path_, scope_, repeat_, in_, takes_, out_, gives_, call_)     \
    case WEFT_OP_##op: {                                                                           \
        const in_ *in = call->in;                                                                  \
        out_ *out = call->out; /* NOLINT(bugprone-macro-parentheses): a type */                    \
        (void)in, (void)out;                                                                       \
        return call_;                                                                              \
    }
#include "wire/ops.def"
    case WEFT_OP_COUNT:
        break;
    }
    return weft_fail(err, WEFT_INTERNAL, "there is no operation %d", (int)call->op);
}
