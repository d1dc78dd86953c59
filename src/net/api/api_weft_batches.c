/* SPDX-License-Identifier: Apache-2.0 */

/* Batches in weft's own words: looked at, listed, retried, cancelled, deleted. */

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "core/batch_id.h"
#include "engine/batch/batch.h"
#include "engine/batch/batch_view.h"
#include "net/api/api.h"
#include "net/api/handlers.h"
#include "net/group/commit_work.h"
#include "net/server.h"
#include "weft/weft.h"
#include "wire/wire.h"

/* ---- One batch ------------------------------------------------------------------------------- */

/* The id of the path in either form. */
enum weft_rc weft_own_batch_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_batch_asking *asking = weft_new(request->arena, struct weft_batch_asking);
    const char *text = weft_request_path(request, "id");
    asking->ns = request->ns;
    request->state = asking;
    if (weft_batch_id_parse(WEFT_BATCH_PREFIX, text, &asking->id))
        return WEFT_OK;
    return weft_request_id(request, &asking->id, err);
}

enum weft_rc weft_own_batch_act_read(struct weft_request *request, struct weft_err *err)
{
    enum weft_rc rc = weft_api_read_nothing(request, err);
    return rc ? rc : weft_own_batch_read(request, err);
}

enum weft_rc weft_own_batch_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_batch_info info;
    enum weft_rc rc =
        weft_engine_batch_info(request->server->engine, request->state, request->arena, &info, err);
    if (!rc && info.status == WEFT_BATCH_STATUS_FINALIZING) /* its end is at hand */
        weft_add_batch(request->server, &info.id);
    return weft_api_reply(request, rc, &info);
}

enum weft_rc weft_own_batch_cancel_run(struct weft_request *request, struct weft_err *err)
{
    const struct weft_batch_asking *asking = request->state;
    enum weft_rc rc =
        weft_engine_batch_cancel(request->server->engine, request->ns, &asking->id, err);
    if (rc)
        return rc;
    weft_add_drain(request->server, &asking->id);
    return weft_own_batch_run(request, err);
}

enum weft_rc weft_own_batch_retry_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_batch_retried retried = {0};
    const struct weft_batch_asking *asking = request->state;
    enum weft_rc rc =
        weft_engine_batch_retry(request->server->engine, asking, request->arena, &retried, err);
    if (rc)
        return rc;
    weft_add_batch(request->server, &asking->id);
    weft_reply_wire(request, retried.more ? 202 : 200, request->route->op->gives, &retried);
    return WEFT_OK;
}

enum weft_rc weft_own_batch_delete_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_batch_removed removed = {0};
    const struct weft_batch_asking *asking = request->state;
    enum weft_rc rc =
        weft_engine_batch_delete(request->server->engine, asking, request->arena, &removed, err);
    if (!rc)
        weft_add_drain(request->server, &asking->id);
    return weft_api_reply(request, rc, &removed);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

enum weft_rc weft_own_batches_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_batch_listing *listing = weft_new(request->arena, struct weft_batch_listing);
    struct weft_paging paging = {0};
    const char *status = weft_request_query(request, "status");
    enum weft_rc rc = weft_api_paging(request, &paging, err);
    *listing = (struct weft_batch_listing){
        .ns = request->ns, .limit = paging.limit, .after = paging.after};
    request->state = listing;
    if (rc || !status)
        return rc;
    int found = weft_wire_word(weft_wire_batch_statuses, WEFT_BATCH_STATUS_CANCELLED + 1, status);
    if (found < 0)
        return weft_invalid(err, "status",
                            "status must be one of validating failed in_progress finalizing "
                            "completed expired cancelling cancelled");
    listing->by_status = true;
    listing->status = (enum weft_batch_status)found;
    return WEFT_OK;
}

enum weft_rc weft_own_batches_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_batch_infos infos;
    enum weft_rc rc = weft_engine_batch_infos(request->server->engine, request->state,
                                              request->arena, &infos, err);
    return rc ? rc
              : weft_api_reply_page(request, &WEFT_API_PAGE(infos.item, infos.count, infos.next));
}
