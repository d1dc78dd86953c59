/* SPDX-License-Identifier: Apache-2.0 */

/*
 * POST /v1/leases/watch: the leases of a worker that others ended, as soon as there is one. A
 * watch enters the list of waiting requests before it looks, and looks again only when it is woken,
 * so a waiting watch costs no query.
 */

#include "net/api/api_watch.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "engine/job/leases.h"
#include "net/api/api.h"
#include "net/http/loop.h"
#include "net/request.h"
#include "net/server.h"
#include "net/wait/waits.h"
#include "weft/weft.h"
#include "wire/wire.h"

struct watch_state {
    struct weft_watch watch;
    weft_usec until_us; /* boot time; 0: does not wait */
    int32_t worker;     /* its number; 0: not known yet */
};

enum weft_rc weft_watch_read(struct weft_request *request, struct weft_err *err)
{
    struct watch_state *state = weft_new(request->arena, struct watch_state);
    enum weft_rc rc = weft_api_read_message(request, &state->watch, err);
    if (rc)
        return rc;
    state->watch.ns = request->ns;
    if (state->watch.wait_ms > 0)
        state->until_us = weft_boot_us() + state->watch.wait_ms * WEFT_MS;
    request->state = state;
    return WEFT_OK;
}

static void reply(struct weft_request *request, const struct weft_watched *watched)
{
    struct weft_json_writer out;
    weft_reply_items(request, &out);
    for (size_t i = 0; i < watched->count; i++)
        weft_wire_write(&weft_wire_ended_lease, &watched->item[i], &out);
    weft_json_end_array(&out);
    weft_json_end_object(&out);
}

enum weft_rc weft_watch_run(struct weft_request *request, struct weft_err *err)
{
    struct watch_state *state = request->state;
    struct weft_engine *engine = request->server->engine;
    struct weft_watched watched = {0};
    bool again = state->worker != 0; /* it has slept */
    enum weft_rc rc =
        again ? WEFT_OK : weft_engine_worker_number(engine, &state->watch, &state->worker, err);
    if (rc)
        return rc;
    bool waits =
        state->until_us > 0 && weft_wait_for_leases(request, state->worker, state->until_us);
    /* When its time is up or the server stops it does not look: the next watch finds what came
     * meanwhile. Nor when the client hung up: an ended lease is reported once, to the next watch.
     */
    bool looks = (waits || !again) && !(again && weft_loop_gone(request));
    if (looks)
        rc = weft_engine_watch(engine, &state->watch, request->arena, &watched, err);
    if (!rc && (watched.count > 0 || !waits || !looks))
        reply(request, &watched);
    return rc;
}
