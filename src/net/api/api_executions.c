/* SPDX-License-Identifier: Apache-2.0 */

/* Reading one execution: as it is, when it is over, its bytes, its attempts. */

#include "net/api/api_executions.h"

#include "base/arena.h"
#include "base/err.h"
#include "core/state.h"
#include "engine/job/execution_read.h"
#include "net/api/api.h"
#include "net/request.h"
#include "net/server.h"
#include "net/wait/waits.h"
#include "weft/weft.h"
#include "wire/wire.h"

/* ---- The execution --------------------------------------------------------------------------- */

struct wanted {
    struct weft_id id;
    weft_usec until_us; /* boot time; 0: do not wait */
};

static enum weft_rc describe(struct weft_request *request, const struct weft_id *id,
                             struct weft_arena *arena, struct weft_execution *ret_execution,
                             struct weft_err *err)
{
    enum weft_rc rc = weft_engine_describe(request->server->engine, request->ns, id, 1, arena,
                                           ret_execution, err);
    if (!rc && ret_execution->state == WEFT_STATE_NONE)
        rc = weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no such execution");
    return rc;
}

static enum weft_rc reply_now(struct weft_request *request, const struct weft_id *id,
                              struct weft_err *err)
{
    struct weft_execution execution;
    enum weft_rc rc = describe(request, id, request->arena, &execution, err);
    if (!rc)
        weft_reply_wire(request, 200, &weft_wire_execution, &execution);
    return rc;
}

enum weft_rc weft_execution_read(struct weft_request *request, struct weft_err *err)
{
    struct wanted *wanted = weft_new(request->arena, struct wanted);
    enum weft_rc rc = weft_request_id(request, &wanted->id, err);
    if (!rc)
        rc = weft_api_wait_until(request, &wanted->until_us, err);
    request->state = wanted;
    return rc;
}

enum weft_rc weft_execution_run(struct weft_request *request, struct weft_err *err)
{
    const struct wanted *wanted = request->state;
    struct weft_execution execution;
    if (wanted->until_us == 0)
        return reply_now(request, &wanted->id, err);
    /* A request that waits looks many times: it keeps nothing of what it read. */
    struct weft_arena *arena = weft_arena_new();
    enum weft_rc rc = describe(request, &wanted->id, arena, &execution, err);
    bool waits = !rc && weft_state_living(execution.state) &&
                 weft_wait_for_end(request, &wanted->id, wanted->until_us, WEFT_WAIT_NOTIFIED);
    if (!rc && !waits)
        weft_reply_wire(request, 200, &weft_wire_execution, &execution);
    weft_arena_free(arena);
    return rc;
}

/* ---- Its bytes ------------------------------------------------------------------------------- */

static enum weft_rc read_bytes_of(struct weft_request *request, enum weft_bytes_kind kind,
                                  struct weft_err *err)
{
    struct weft_bytes_of *of = weft_new(request->arena, struct weft_bytes_of);
    of->kind = kind;
    of->ns = request->ns;
    request->state = of;
    return weft_request_id(request, &of->id, err);
}

enum weft_rc weft_result_read(struct weft_request *request, struct weft_err *err)
{
    return read_bytes_of(request, WEFT_BYTES_RESULT, err);
}

enum weft_rc weft_payload_read(struct weft_request *request, struct weft_err *err)
{
    return read_bytes_of(request, WEFT_BYTES_PAYLOAD, err);
}

enum weft_rc weft_bytes_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_bytes bytes;
    enum weft_rc rc =
        weft_engine_bytes(request->server->engine, request->state, request->arena, &bytes, err);
    if (!rc)
        weft_reply_bytes(request, bytes.data, bytes.size,
                         bytes.content_type ? bytes.content_type : "application/octet-stream");
    return rc;
}

/* ---- Its attempts ---------------------------------------------------------------------------- */

enum weft_rc weft_attempts_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_attempts_asking *asking = weft_new(request->arena, struct weft_attempts_asking);
    struct weft_paging paging = {0};
    request->state = asking;
    enum weft_rc rc = weft_request_id(request, &asking->id, err);
    if (!rc)
        rc = weft_api_paging(request, &paging, err);
    asking->ns = request->ns;
    asking->limit = paging.limit;
    asking->after = paging.after;
    return rc;
}

enum weft_rc weft_attempts_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_attempts_page page;
    enum weft_rc rc = weft_engine_attempts_page(request->server->engine, request->state,
                                                request->arena, &page, err);
    if (rc)
        return rc;
    const struct weft_api_page attempts = {.type = &weft_wire_attempt,
                                           .item = page.item,
                                           .stride = sizeof(*page.item),
                                           .count = page.count,
                                           .next = page.next};
    weft_api_reply_page(request, &attempts);
    return WEFT_OK;
}
