/* SPDX-License-Identifier: Apache-2.0 */

/* Endpoints of outgoing HTTP calls: their settings, and what this server knows of its calls. */

#include "core/spec.h"
#include "engine/call.h"
#include "engine/http/settings.h"
#include "net/api/api.h"
#include "net/api/handlers.h"
#include "net/server.h"

#include <string.h>

static enum weft_rc read_name(struct weft_request *request, const char **ret_name,
                              struct weft_err *err)
{
    *ret_name = weft_request_path(request, "endpoint");
    return weft_name_check(*ret_name, "endpoint", err);
}

enum weft_rc weft_endpoint_read(struct weft_request *request, struct weft_err *err)
{
    const char *name;
    enum weft_rc rc = read_name(request, &name, err);
    request->state = (void *)(uintptr_t)name;
    return rc;
}

/* A tenant's administrator must not reach the networks behind the server. */
static enum weft_rc check_private(const struct weft_request *request,
                                  const struct weft_endpoint *endpoint, struct weft_err *err)
{
    if (!endpoint->private_addresses || !request->ns_fixed)
        return WEFT_OK;
    return weft_hint(err,
                     weft_fail_field(err, WEFT_FORBIDDEN, "private",
                                     "this token is bound to a namespace; a private endpoint "
                                     "reaches the networks behind the server"),
                     "use an admin token that was created without --namespace");
}

enum weft_rc weft_endpoint_put_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_endpoint *endpoint = weft_new(request->arena, struct weft_endpoint);
    const char *name;
    enum weft_rc rc = read_name(request, &name, err);
    if (!rc)
        rc = weft_api_read_message(request, endpoint, err);
    if (!rc)
        rc = check_private(request, endpoint, err);
    if (rc)
        return rc;
    /* The answer of GET may be sent back as it is. */
    if (endpoint->name && strcmp(endpoint->name, name) != 0)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "endpoint",
                               "the path names another endpoint than the body");
    endpoint->name = name;
    request->state = endpoint;
    return WEFT_OK;
}

/* Adds what this server knows of its calls. */
static void look_at_health(const struct weft_request *request, struct weft_endpoint *endpoint)
{
    const struct weft_server *server = request->server;
    if (server->endpoint_health)
        server->endpoint_health(server->endpoint_health_context, request->ns, endpoint->name,
                                &endpoint->health);
    endpoint->health.known = true;
}

static enum weft_rc reply(struct weft_request *request, enum weft_rc rc,
                          struct weft_endpoint *endpoint)
{
    if (!rc)
        look_at_health(request, endpoint);
    return weft_api_reply(request, rc, endpoint);
}

enum weft_rc weft_endpoint_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_endpoint endpoint = {0};
    const struct weft_op_call call = {.op = (enum weft_op)(request->route->op - weft_ops),
                                      .ns = request->ns,
                                      .in = request->state,
                                      .count = 1,
                                      .out = &endpoint,
                                      .arena = request->arena};
    return reply(request, weft_engine_call(request->server->engine, &call, err), &endpoint);
}

enum weft_rc weft_endpoint_put_run(struct weft_request *request, struct weft_err *err)
{
    const struct weft_endpoint *put = request->state;
    struct weft_endpoint endpoint = {0};
    struct weft_engine *engine = request->server->engine;
    enum weft_rc rc = weft_engine_endpoint_put(engine, request->ns, put, err);
    if (!rc)
        rc = weft_engine_endpoint(engine, request->ns, put->name, request->arena, &endpoint, err);
    return reply(request, rc, &endpoint);
}

enum weft_rc weft_endpoints_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_endpoints endpoints = {0};
    enum weft_rc rc = weft_engine_endpoints(request->server->engine, request->state, request->arena,
                                            &endpoints, err);
    if (rc)
        return rc;
    struct weft_endpoint *item =
        weft_arena_dup(request->arena, endpoints.item, endpoints.count * sizeof(*item));
    for (size_t i = 0; i < endpoints.count; i++)
        look_at_health(request, &item[i]);
    return weft_api_reply_page(request, &WEFT_API_PAGE(item, endpoints.count, endpoints.next));
}
