/* SPDX-License-Identifier: Apache-2.0 */

/* Budgets: their settings, what is used of them, and their ledgers. */

#include "core/spec.h"
#include "engine/limit/budgets.h"
#include "net/api/api.h"
#include "net/api/handlers.h"
#include "net/server.h"
#include "weft/limits.h"

#include <assert.h>
#include <stddef.h>

static enum weft_rc read_name(struct weft_request *request, const char **ret_name,
                              struct weft_err *err)
{
    *ret_name = weft_request_path(request, "budget");
    return weft_name_check(*ret_name, "budget", err);
}

enum weft_rc weft_budget_read(struct weft_request *request, struct weft_err *err)
{
    const char *name;
    enum weft_rc rc = read_name(request, &name, err);
    request->state = (void *)(uintptr_t)name;
    return rc || !request->route->may_be_empty ? rc : weft_api_read_nothing(request, err);
}

static_assert(offsetof(struct weft_budget, name) == 0, "the path gives the name");

enum weft_rc weft_budget_put_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_budget *budget = weft_new(request->arena, struct weft_budget);
    request->state = budget;
    enum weft_rc rc = weft_api_read_named(request, "budget", budget, err);
    if (budget->anchor_us == 1) /* 1970-01-01: see read_moment() of the wire */
        budget->anchor_us = 0;
    return rc;
}

enum weft_rc weft_budget_put_run(struct weft_request *request, struct weft_err *err)
{
    const struct weft_budget *put = request->state;
    struct weft_budget budget;
    struct weft_engine *engine = request->server->engine;
    enum weft_rc rc = weft_engine_budget_put(engine, request->ns, put, err);
    if (!rc)
        rc = weft_engine_budget(engine, request->ns, put->name, request->arena, &budget, err);
    return weft_api_reply(request, rc, &budget);
}

enum weft_rc weft_ledger_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_ledger_asking *asking = weft_new(request->arena, struct weft_ledger_asking);
    struct weft_paging paging = {0};
    enum weft_rc rc = read_name(request, &asking->name, err);
    if (!rc)
        rc = weft_api_paging(request, &paging, err);
    asking->ns = request->ns;
    asking->limit = paging.limit;
    asking->after = paging.after;
    request->state = asking;
    return rc;
}
