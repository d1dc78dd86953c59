/* SPDX-License-Identifier: Apache-2.0 */

/* Gates: their settings and what is in them. */

#include "core/spec.h"
#include "engine/limit/gates.h"
#include "net/api/api.h"
#include "net/api/handlers.h"
#include "net/server.h"

#include <string.h>

enum weft_rc weft_gate_read(struct weft_request *request, struct weft_err *err)
{
    request->state = (void *)(uintptr_t)weft_request_path(request, "gate");
    return weft_name_check(request->state, "gate", err);
}

enum weft_rc weft_gate_put_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_gate *gate = weft_new(request->arena, struct weft_gate);
    enum weft_rc rc = weft_gate_read(request, err);
    const char *name = request->state;
    if (!rc)
        rc = weft_api_read_message(request, gate, err);
    if (rc)
        return rc;
    /* The answer of GET may be sent back as it is. */
    if (gate->name && strcmp(gate->name, name) != 0)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "gate",
                               "the path names another gate than the body");
    gate->name = name;
    request->state = gate;
    return WEFT_OK;
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

enum weft_rc weft_gates_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_gates gates;
    enum weft_rc rc =
        weft_engine_gates(request->server->engine, request->state, request->arena, &gates, err);
    return rc ? rc
              : weft_api_reply_page(request, &WEFT_API_PAGE(gates.item, gates.count, gates.next));
}
