/* SPDX-License-Identifier: Apache-2.0 */

/* Gates: their settings and what is in them. */

#include "core/spec.h"
#include "engine/limit/gates.h"
#include "net/api/api.h"
#include "net/api/handlers.h"
#include "net/server.h"
#include "weft/limits.h"

#include <assert.h>
#include <stddef.h>

enum weft_rc weft_gate_read(struct weft_request *request, struct weft_err *err)
{
    request->state = (void *)(uintptr_t)weft_request_path(request, "gate");
    return weft_name_check(request->state, "gate", err);
}

static_assert(offsetof(struct weft_gate, name) == 0, "the path gives the name");

enum weft_rc weft_gate_put_read(struct weft_request *request, struct weft_err *err)
{
    request->state = weft_new(request->arena, struct weft_gate);
    return weft_api_read_named(request, "gate", request->state, err);
}

enum weft_rc weft_gate_put_run(struct weft_request *request, struct weft_err *err)
{
    const struct weft_gate *put = request->state;
    struct weft_gate gate;
    struct weft_engine *engine = request->server->engine;
    enum weft_rc rc = weft_engine_gate_put(engine, request->ns, put, err);
    if (!rc)
        rc = weft_engine_gate(engine, request->ns, put->name, request->arena, &gate, err);
    return weft_api_reply(request, rc, &gate);
}

enum weft_rc weft_gates_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_gate_asking *asking = weft_new(request->arena, struct weft_gate_asking);
    struct weft_paging paging = {0};
    enum weft_rc rc = weft_api_paging(request, &paging, err);
    *asking = (struct weft_gate_asking){.ns = request->ns,
                                        .prefix = weft_request_query(request, "prefix"),
                                        .limit = paging.limit,
                                        .after = paging.after};
    request->state = asking;
    return rc;
}
