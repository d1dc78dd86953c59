/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Signals, and what operators see of waiting. POST /v1/signals/{token} takes any body as the
 * payload; POST /v1/signals takes one signal or {"items"}. A token is checked on the loop thread,
 * without a look at the store, before its request goes to an engine thread: a request with a bad
 * one costs no more than that.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "core/result.h"
#include "engine/wait/keys.h"
#include "engine/wait/wait.h"
#include "net/api/api.h"
#include "net/api/handlers.h"
#include "net/metrics.h"
#include "net/server.h"
#include "weft/admin.h"
#include "wire/wire.h"

#include <string.h>

/* ---- Sending --------------------------------------------------------------------------------- */

/* Whether a token may be good, as far as the keys in memory say. */
static enum weft_rc check_token(const struct weft_request *request, const char *token,
                                struct weft_err *err)
{
    struct weft_signal_token parts;
    enum weft_rc rc = weft_keys_verify(request->server->engine, token, 0, &parts, err);
    if (rc == WEFT_UNAUTHORIZED)
        weft_metric_add(request->server->metrics, WEFT_METRIC_SIGNAL_TOKENS, 0, 1);
    return rc == WEFT_BUSY ? WEFT_OK : rc; /* an engine thread reads the keys and checks again */
}

/* The body as it came; JSON unless the request says something else. */
enum weft_rc weft_signal_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_signal *signal = weft_new(request->arena, struct weft_signal);
    const char *type = weft_request_header(request, "Content-Type");
    *signal = (struct weft_signal){.token = weft_request_path(request, "token"),
                                   .name = weft_request_query(request, "name"),
                                   .source = weft_request_query(request, "source"),
                                   .key = weft_request_query(request, "key"),
                                   .content_type = type && *type ? type : NULL};
    if (request->body.size > 0) {
        signal->payload = request->body.data;
        signal->payload_size = request->body.size;
        struct weft_json value;
        bool json = !signal->content_type || strncmp(type, "application/json", 16) == 0;
        if (!signal->content_type &&
            weft_json_check(request->body.data, request->body.size, &value, NULL))
            signal->content_type = "application/octet-stream";
        else if (json)
            signal->content_type = NULL;
    }
    request->items = (struct weft_items){.item = signal,
                                         .err = weft_new(request->arena, const struct weft_err *),
                                         .count = 1,
                                         .bytes = signal->payload_size};
    return check_token(request, signal->token, err);
}

enum weft_rc weft_signals_read(struct weft_request *request, struct weft_err *err)
{
    enum weft_rc rc =
        weft_request_one_or_items(request, &weft_wire_signal, sizeof(struct weft_signal), err);
    const struct weft_signal *signal = request->items.item;
    request->items.bytes = 0;
    for (size_t i = 0; i < request->items.count && !rc; i++)
        if (!request->items.err[i])
            request->items.bytes += signal[i].payload_size;
    return !rc && !request->items.bulk ? check_token(request, signal->token, err) : rc;
}

static void count_signal(const struct weft_request *request,
                         const struct weft_signal_result *answer)
{
    struct weft_metrics *metrics = request->server->metrics;
    if (!answer->rc)
        weft_metric_add(metrics, WEFT_METRIC_SIGNALS, answer->effect - 1, 1);
    else if (answer->rc == WEFT_UNAUTHORIZED)
        weft_metric_add(metrics, WEFT_METRIC_SIGNAL_TOKENS, 0, 1);
}

void weft_signal_write(struct weft_request *request)
{
    const struct weft_items *items = &request->items;
    const struct weft_signal_result *answer = items->answer;
    struct weft_json_writer out;
    for (size_t i = 0; i < items->count; i++)
        if (!items->err[i])
            count_signal(request, &answer[i]);
    if (!items->bulk) {
        const struct weft_err *failed = items->err[0] ? items->err[0] : answer->err;
        if (failed)
            weft_reply_error(request, failed);
        else
            weft_reply_wire(request, 200, &weft_wire_signalled, answer);
        return;
    }
    weft_reply_items(request, &out);
    for (size_t i = 0; i < items->count; i++) {
        const struct weft_err *failed = items->err[i] ? items->err[i] : answer[i].err;
        if (!failed) {
            weft_wire_write(&weft_wire_signalled, &answer[i], &out);
            continue;
        }
        weft_json_begin_object(&out);
        weft_api_put_error(failed, NULL, &out);
        weft_json_end_object(&out);
    }
    weft_json_end_array(&out);
    weft_json_end_object(&out);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Keys are of the whole store: not for tokens that are bound to a namespace. */
enum weft_rc weft_keys_read(struct weft_request *request, struct weft_err *err)
{
    enum weft_rc rc = weft_api_check_unbound(request, err);
    return rc ? rc : weft_api_read(request, err);
}
