/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every route of the API: the server answers by this table and the OpenAPI document is written from
 * it. wire/ops.def says what an operation is (method, path, scope, group, messages); a row in
 * routes_*.def adds its handlers and its documentation. A route of plain words stands before
 * a route with a {name} in the same place.
 */

#include "net/api/routes.h"

#include "engine/erase/erase.h"
#include "engine/flow/flow.h"
#include "engine/http/settings.h"
#include "engine/job/execution_read.h"
#include "engine/limit/budgets.h"
#include "engine/wait/wait.h"
#include "net/api/handlers.h"
#include "net/group/claims.h"
#include "net/request.h"
#include "weft/weft.h"
#include "wire/wire.h"

#include <stddef.h>

#define OP(name) (&weft_ops[WEFT_OP_##name])

/* What a row of an operation that runs alone begins with. */
#define RUNS(op_, read_, run_) .op = OP(op_), .read = (read_), .run = (run_)
#define AT(type, member)       (offsetof(struct type, member) + 1)
#define ARG(type, id_)         .size = sizeof(struct type), .ns = AT(type, ns), .id = AT(type, id_)
#define LIST_ARG(type)                                                                             \
    .size = sizeof(struct type), .ns = AT(type, ns), .limit = AT(type, limit),                     \
    .after = AT(type, after)
#define ARG_PAGE(type, id_) ARG(type, id_), .limit = AT(type, limit), .after = AT(type, after)
/* Rows about leases, which take one item or many. */
#define LEASES_OR(op_, fails_)                                                                     \
    .op = OP(op_), .body_max = BODY_BULK, .read = weft_lease_read, .write = weft_lease_write,      \
    .fails = RC(NOT_FOUND) | RC(FENCED) | (fails_), .shape = WEFT_SHAPE_BULK, .bulk = true
#define LEASES(op_) LEASES_OR(op_, 0)
#define ONE_OR_ITEMS                                                                               \
    "The body is one item, answered as one object or with the error and its status; or "           \
    "`{\"items\":[...]}` with up to 1,000, answered with 200 item by item."
/* Rows that steer one execution. */
#define STEERS(op_)                                                                                \
    .op = OP(op_), .body_max = BODY_TINY, .read = weft_steer_read, .write = weft_steer_write

/* ---- The table ------------------------------------------------------------------------------- */

static const struct weft_route routes[] = {
/* clang-format off */
#include "net/api/routes_execution.def"
#include "net/api/routes_flow.def"
#include "net/api/routes_worker.def"
#include "net/api/routes_admin.def"
#include "net/api/routes_file.def"
#include "net/api/routes_openai.def"
#include "net/api/routes_batch.def"
    /* clang-format on */
};
const struct weft_route_table weft_routes = {.route = routes, .count = WEFT_LEN(routes)};
