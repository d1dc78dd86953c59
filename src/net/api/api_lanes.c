/* SPDX-License-Identifier: Apache-2.0 */

/* Lanes: their settings, and which lanes are in use. */

#include "net/api/api_lanes.h"

#include "base/arena.h"
#include "base/err.h"
#include "core/spec.h"
#include "engine/admin/lanes.h"
#include "net/api/api.h"
#include "net/api/api_counts.h"
#include "net/request.h"
#include "net/server.h"
#include "weft/admin.h"
#include "wire/wire.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

static_assert(offsetof(struct weft_lane, name) == 0, "lists find the name there");

enum weft_rc weft_lanes_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_paging paging;
    return weft_api_paging(request, &paging, err);
}

enum weft_rc weft_lanes_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_lanes lanes;
    struct weft_texts used;
    struct weft_engine *engine = request->server->engine;
    enum weft_rc rc = weft_counts_cache_lanes(weft_api_counts(request->server->api), engine,
                                              request->ns, request->arena, &used, err);
    if (!rc)
        rc = weft_engine_lanes_of(engine, request->ns, used.item, used.count, request->arena,
                                  &lanes, err);
    if (rc)
        return rc;
    const struct weft_api_page list = {.type = &weft_wire_lane,
                                       .item = lanes.item,
                                       .stride = sizeof(*lanes.item),
                                       .count = lanes.count};
    return weft_api_reply_list(request, "lanes", &list, err);
}

enum weft_rc weft_lane_read(struct weft_request *request, struct weft_err *err)
{
    return weft_name_check(weft_request_path(request, "lane"), "lane", err);
}

enum weft_rc weft_lane_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_lane lane;
    enum weft_rc rc =
        weft_engine_lane(request->server->engine, request->ns, weft_request_path(request, "lane"),
                         request->arena, &lane, err);
    if (!rc)
        weft_reply_wire(request, 200, &weft_wire_lane, &lane);
    return rc;
}

enum weft_rc weft_lane_remove_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_lane lane;
    enum weft_rc rc =
        weft_engine_lane_remove(request->server->engine, request->ns,
                                weft_request_path(request, "lane"), request->arena, &lane, err);
    if (!rc)
        weft_reply_wire(request, 200, &weft_wire_lane, &lane);
    return rc;
}

enum weft_rc weft_lane_put_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_lane *lane = weft_new(request->arena, struct weft_lane);
    enum weft_rc rc = weft_lane_read(request, err);
    if (!rc)
        rc = weft_api_read_message(request, lane, err);
    if (rc)
        return rc;
    const char *name = weft_request_path(request, "lane");
    /* What GET gave may be sent back as it is. */
    if (lane->name && strcmp(lane->name, name) != 0)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "lane",
                               "the path names another lane than the body");
    lane->name = name;
    request->state = lane;
    return WEFT_OK;
}

enum weft_rc weft_lane_put_run(struct weft_request *request, struct weft_err *err)
{
    enum weft_rc rc =
        weft_engine_lane_put(request->server->engine, request->ns, request->state, err);
    if (!rc)
        weft_reply_wire(request, 200, &weft_wire_lane, request->state);
    return rc;
}
