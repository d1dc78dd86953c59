/* SPDX-License-Identifier: Apache-2.0 */

/* Erasures: asking for one, their receipts, verifying. */

#include "engine/erase/erase.h"
#include "net/api/api.h"
#include "net/api/handlers.h"
#include "net/server.h"

enum weft_rc weft_erase_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_erasure erasure;
    enum weft_rc rc = weft_engine_erase(request->server->engine, request->ns, request->state,
                                        request->token, request->arena, &erasure, err);
    if (!rc)
        weft_reply_wire(request, 202, request->route->op->gives, &erasure);
    return rc;
}

enum weft_rc weft_erasure_run_route(struct weft_request *request, struct weft_err *err)
{
    struct weft_erasure erasure;
    struct weft_engine *engine = request->server->engine;
    bool verify = request->route->op == &weft_ops[WEFT_OP_ERASURE_VERIFY];
    enum weft_rc rc =
        verify ? weft_engine_erasure_verify(engine, request->state, request->arena, &erasure, err)
               : weft_engine_erasure(engine, request->state, request->arena, &erasure, err);
    return weft_api_reply(request, rc, &erasure);
}

enum weft_rc weft_erasures_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_erasures erasures;
    enum weft_rc rc = weft_engine_erasures(request->server->engine, request->state, request->arena,
                                           &erasures, err);
    return rc ? rc
              : weft_api_reply_page(request,
                                    &WEFT_API_PAGE(erasures.item, erasures.count, erasures.next));
}
