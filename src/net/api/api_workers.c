/* SPDX-License-Identifier: Apache-2.0 */

/* Workers: the list, and the goodbye of one. */

#include "net/api/api_workers.h"

#include "base/json.h"
#include "core/spec.h"
#include "engine/admin/workers.h"
#include "net/api/api.h"
#include "net/request.h"
#include "net/server.h"
#include "net/upkeep/roster.h"
#include "weft/admin.h"
#include "wire/wire.h"

#include <assert.h>
#include <stddef.h>

static_assert(offsetof(struct weft_worker_info, name) == 0, "lists find the name there");

enum weft_rc weft_workers_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_paging paging;
    return weft_api_paging(request, &paging, err);
}

enum weft_rc weft_workers_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_workers workers;
    enum weft_rc rc =
        weft_engine_workers(request->server->engine, request->ns, request->arena, &workers, err);
    if (rc)
        return rc;
    const struct weft_api_page list = {.type = &weft_wire_worker,
                                       .item = workers.item,
                                       .stride = sizeof(*workers.item),
                                       .count = workers.count};
    return weft_api_reply_list(request, "workers", &list, err);
}

enum weft_rc weft_goodbye_read(struct weft_request *request, struct weft_err *err)
{
    enum weft_rc rc = weft_name_check(weft_request_path(request, "worker"), "worker", err);
    return rc ? rc : weft_api_read_nothing(request, err);
}

enum weft_rc weft_goodbye_run(struct weft_request *request, struct weft_err *err)
{
    const char *worker = weft_request_path(request, "worker");
    uint64_t released = 0;
    /* First, or upkeep would write the worker again after it left the list. */
    weft_roster_forget(request->server->roster, request->ns, worker);
    enum weft_rc rc =
        weft_engine_goodbye(request->server->engine, request->ns, worker, &released, err);
    if (rc)
        return rc;
    struct weft_json_writer out;
    weft_reply_json(request, 200, &out);
    weft_json_begin_object(&out);
    weft_json_add_i64(&out, "released", (int64_t)released);
    weft_json_end_object(&out);
    return WEFT_OK;
}
