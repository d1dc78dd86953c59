/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which servers carry calls out is in their rows; whether an endpoint exists, in the store. The
 * breaker and the calls under way are each server's own: the answer says what this one knows.
 */

#include "engine/limit/why_carried.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/moment.h"
#include "core/carried.h"
#include "engine/admin/replicas.h"
#include "engine/engine_state.h"
#include "engine/http/endpoints.h"
#include "engine/job/execution_read.h"

#include <inttypes.h>
#include <string.h>

void weft_engine_on_carrier(struct weft_engine *engine, weft_carrier_fn *fn, void *context)
{
    engine->on_carrier = fn;
    engine->carrier_context = context;
}

static bool carries(const struct weft_replica_row *row, const char *kind, struct weft_arena *arena)
{
    size_t count;
    const char *const *kinds = weft_replica_carries(row, arena, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(kinds[i], kind) == 0)
            return true;
    return false;
}

static enum weft_rc count_carriers(struct weft_why_carried *all, const char *kind,
                                   struct weft_err *err)
{
    struct weft_replica_rows rows = {0};
    enum weft_rc rc = weft_engine_replicas(all->engine, all->arena, &rows, err);
    weft_usec now_us = weft_clock_now(all->engine->clock);
    for (size_t i = 0; i < rows.count && !rc; i++)
        all->carriers += weft_replica_shown(&rows.item[i], now_us).alive &&
                         carries(&rows.item[i], kind, all->arena);
    return rc;
}

static enum weft_rc read_target(struct weft_why_carried *all,
                                const struct weft_execution *execution, struct weft_err *err)
{
    const struct weft_bytes_of of = {
        .kind = WEFT_BYTES_PAYLOAD, .ns = execution->ns, .id = execution->id};
    struct weft_bytes bytes = {0};
    struct weft_carried carried;
    enum weft_rc rc = weft_engine_bytes(all->engine, &of, all->arena, &bytes, err);
    if (!rc && weft_carried_read(bytes.content_type, bytes.data, bytes.size, all->arena, &carried,
                                 NULL) == WEFT_OK)
        all->target = carried.target;
    return rc;
}

/* The endpoint may have been made in this moment: then it is read once more. */
static enum weft_rc find_endpoint(struct weft_why_carried *all, const char *ns,
                                  struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    const struct weft_known_endpoint *known = weft_endpoint_get(all->engine, ns, all->target);
    if (!known) {
        rc = weft_endpoints_read(all->engine, err);
        known = rc ? NULL : weft_endpoint_get(all->engine, ns, all->target);
    }
    all->max_in_flight = known ? known->setting->max_in_flight : 0;
    weft_endpoint_release(known);
    return rc;
}

enum weft_rc weft_why_carried(struct weft_why_carried *all, const struct weft_execution *execution,
                              struct weft_why_facts *facts, struct weft_err *err)
{
    struct weft_engine *engine = all->engine;
    enum weft_rc rc = count_carriers(all, execution->kind, err);
    if (!rc)
        rc = read_target(all, execution, err);
    bool own_url = all->target && strcmp(all->target, WEFT_OWN_URL) == 0;
    if (!rc && all->target && !own_url)
        rc = find_endpoint(all, execution->ns, err);
    if (rc)
        return rc;
    if (engine->on_carrier && all->target)
        engine->on_carrier(engine->carrier_context, execution->ns, all->target, &all->state);
    facts->carried = WEFT_REASON_READY;
    if (all->carriers == 0 || execution->capability_count > 0)
        facts->carried = WEFT_REASON_NO_EXECUTOR;
    else if (own_url ? engine->on_carrier && !all->state.urls : all->max_in_flight == 0)
        facts->carried = WEFT_REASON_NO_ENDPOINT;
    else if (all->state.no_secret)
        facts->carried = WEFT_REASON_NO_SECRET;
    else if (all->state.open)
        facts->carried = WEFT_REASON_BREAKER;
    else if (!own_url && all->state.in_flight >= (uint64_t)all->max_in_flight)
        facts->carried = WEFT_REASON_ENDPOINT_FULL;
    return WEFT_OK;
}

static const char *say_no_endpoint(const struct weft_why_carried *all)
{
    if (!all->target)
        return "its payload is no HTTP call: it fails when a server takes it";
    if (strcmp(all->target, WEFT_OWN_URL) == 0)
        return "it calls a URL of its own, which this server does not: it runs when a server is "
               "started with --http-urls=public";
    return weft_arena_printf(all->arena,
                             "there is no endpoint '%s': it runs when that is made (weft endpoint "
                             "put %s)",
                             all->target, all->target);
}

const char *weft_why_carried_say(const struct weft_why_carried *all, enum weft_reason reason,
                                 struct weft_json_writer *detail)
{
    char until[WEFT_MOMENT_TEXT];
    if (all->target)
        weft_json_add_text(detail, "endpoint", all->target);
    if (reason == WEFT_REASON_NO_EXECUTOR && all->carriers > 0)
        return "it needs capabilities, which servers do not have: a worker that names its kind may "
               "take it";
    if (reason == WEFT_REASON_NO_EXECUTOR)
        return "no living server carries out such executions: it runs when one is started with "
               "--executor=on, or a worker names its kind";
    if (reason == WEFT_REASON_NO_ENDPOINT)
        return say_no_endpoint(all);
    if (reason == WEFT_REASON_NO_SECRET)
        return weft_arena_printf(all->arena,
                                 "this server lacks the secret of endpoint '%s': it runs when the "
                                 "secret is there and read (SIGHUP), or on another server",
                                 all->target);
    weft_json_add_i64(detail, "in_flight", (int64_t)all->state.in_flight);
    if (reason == WEFT_REASON_ENDPOINT_FULL)
        return weft_arena_printf(all->arena,
                                 "endpoint '%s' takes %" PRId64
                                 " calls at a time of this server, which makes as many: it runs "
                                 "when one of them ends, or on another server",
                                 all->target, all->max_in_flight);
    if (reason != WEFT_REASON_BREAKER)
        return weft_arena_printf(all->arena,
                                 "it is ready: %zu server%s may take it; others of higher priority "
                                 "or age may be ahead",
                                 all->carriers, all->carriers == 1 ? "" : "s");
    if (all->state.open_until_us == 0)
        return weft_arena_printf(all->arena,
                                 "the breaker of endpoint '%s' is open at this server, and a call "
                                 "is under way that may close it",
                                 all->target);
    weft_moment_print(all->state.open_until_us, until);
    weft_json_add_text(detail, "open_until", until);
    return weft_arena_printf(all->arena,
                             "calls to endpoint '%s' failed, and its breaker is open at this "
                             "server: the next call begins at %s",
                             all->target, until);
}
