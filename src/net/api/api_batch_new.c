/* SPDX-License-Identifier: Apache-2.0 */

/* Batches in weft's own words: created. */

#include "engine/batch/batch_submit.h"
#include "net/api/api.h"
#include "net/api/handlers.h"
#include "net/group/commit_work.h"
#include "net/server.h"
#include "wire/wire.h"

enum weft_rc weft_own_batch_create_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_batch_info info;
    enum weft_rc rc = weft_engine_batch_submit(request->server->engine, request->ns, request->state,
                                               request->arena, &info, err);
    if (rc)
        return rc;
    weft_add_batch(request->server, &info.id);
    return weft_api_reply(request, WEFT_OK, &info);
}
