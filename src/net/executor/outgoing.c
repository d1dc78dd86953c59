/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One outgoing call: from the execution that was claimed to the request, and what comes of it while
 * it is under way. The crowd calls head(), data() and ended() on a thread of its own; until the
 * last of them the answer is its, and the thread of the executor touches only what stands under the
 * lock.
 */

#include "net/executor/executor_state.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "core/endpoint.h"
#include "core/json_fill.h"
#include "engine/job/execution_read.h"
#include "weft/weft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OWN_HEADERS = 8, /* that weft adds, at most */
    CONNECT_MS = 5000,
    FIRST_BYTE_MS = 60000,
    IDLE_MS = 30000,
    TOTAL_MS = 600000,
    LATER_MS = 1000, /* when there may be memory again */
};

/* ---- The request ----------------------------------------------------------------------------- */

static enum weft_rc refuse(struct weft_outgoing *out, const char *error_class,
                           const struct weft_err *err)
{
    weft_outgoing_refuse(out, error_class, err->text);
    return err->rc;
}

/* The result of an upstream, which may be too large to have come along. */
static enum weft_rc read_upstream(struct weft_outgoing *out, const struct weft_upstream *upstream,
                                  struct weft_arena *arena, struct weft_json *ret_json,
                                  struct weft_err *err)
{
    struct weft_bytes bytes = {.data = upstream->result, .size = upstream->result_size};
    const struct weft_bytes_of of = {
        .kind = WEFT_BYTES_RESULT, .ns = out->target->ns, .id = upstream->id};
    enum weft_rc rc = WEFT_OK;
    if (upstream->too_large)
        rc = weft_engine_bytes(out->executor->engine, &of, arena, &bytes, err);
    if (!rc && !bytes.data)
        rc = weft_invalid(err, "from", "'%s' has no result: it is %s", upstream->node,
                          weft_state_name(upstream->state));
    if (!rc && upstream->content_type && strcmp(upstream->content_type, "application/json") != 0)
        rc = weft_invalid(err, "from", "the result of '%s' is not JSON", upstream->node);
    return rc ? rc : weft_json_check(bytes.data, bytes.size, ret_json, err);
}

static enum weft_rc find_part(struct weft_outgoing *out, const struct weft_claimed *item,
                              const struct weft_http_from *from, struct weft_arena *arena,
                              struct weft_json_fill *fill, struct weft_err *err)
{
    const struct weft_upstream *upstream = item->upstream, *end = upstream + item->upstream_count;
    while (upstream < end && strcmp(upstream->node, from->node) != 0)
        upstream++;
    if (upstream == end)
        return weft_invalid(err, "from", "it does not come after '%s'", from->node);
    *fill =
        (struct weft_json_fill){.target = from->target,
                                .pointer = from->pointer,
                                .name = weft_arena_printf(arena, "the result of %s", from->node)};
    return read_upstream(out, upstream, arena, &fill->document, err);
}

/*
 * Puts parts of upstreams' results into the body. The results are in memory until that is done, the
 * body until the call has ended.
 */
static enum weft_rc fill_body(struct weft_outgoing *out, const struct weft_claimed *item,
                              struct weft_err *err)
{
    struct weft_http_call *call = &out->call;
    if (call->from_count == 0)
        return WEFT_OK;
    struct weft_arena *arena = weft_arena_new();
    struct weft_json_fill *fill = weft_new_array(arena, struct weft_json_fill, call->from_count);
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < call->from_count && !rc; i++)
        rc = find_part(out, item, &call->from[i], arena, &fill[i], err);
    weft_buf_init(&out->filled, WEFT_CALL_RESULT_MAX);
    if (!rc)
        rc = weft_json_fill(&call->json, fill, call->from_count, &out->filled, err);
    weft_arena_free(arena);
    call->body = out->filled.data;
    call->body_size = out->filled.size;
    return rc;
}

static void add_header(struct weft_outgoing *out, const char *name, const char *value)
{
    out->header[out->headers++] = (struct weft_crowd_header){.name = name, .value = value};
}

/* Adds a header unless the call has it. */
static void add_default(struct weft_outgoing *out, const char *name, const char *value)
{
    if (!weft_http_call_header(&out->call, name))
        add_header(out, name, value);
}

/* Which execution this is, and which try of it: all servers behind the endpoint may know. */
static void add_names(struct weft_outgoing *out)
{
    char id[WEFT_ID_TEXT], plain[WEFT_ID_TEXT], key[WEFT_IDEMPOTENCY_KEY_TEXT];
    size_t size = 0;
    weft_id_print(&out->id, id);
    for (const char *c = id; *c; c++)
        if (*c != '-')
            plain[size++] = *c;
    plain[size] = '\0';
    add_header(out, "x-weft-execution", weft_arena_strdup(out->arena, id));
    add_header(out, "x-weft-epoch", weft_arena_printf(out->arena, "%d", out->epoch));
    add_default(out, "traceparent",
                weft_arena_printf(out->arena, "00-%s-%016x-01", plain, (unsigned)out->epoch));
    const char *name = out->endpoint ? out->endpoint->setting->idempotency_header : NULL;
    if (!name)
        return;
    weft_idempotency_key(&out->id, key);
    add_header(out, name, weft_arena_strdup(out->arena, key));
}

/* The headers that the endpoint sets itself, which a payload may not give. */
static enum weft_rc add_endpoint_headers(struct weft_outgoing *out, struct weft_err *err)
{
    const struct weft_known_endpoint *endpoint = out->endpoint;
    if (!endpoint)
        return WEFT_OK;
    const struct weft_endpoint *setting = endpoint->setting;
    struct weft_http_header *own =
        weft_new_array(out->arena, struct weft_http_header, setting->header_count + 2);
    size_t count = 0;
    for (; count < setting->header_count; count++)
        own[count] =
            (struct weft_http_header){setting->headers[count].key, setting->headers[count].value};
    for (size_t i = 0; i < count; i++)
        add_header(out, own[i].name, own[i].value);
    if (endpoint->auth.name) {
        own[count++] = (struct weft_http_header){endpoint->auth.name, ""};
        add_header(out, endpoint->auth.name, weft_secret_text(out->auth->header));
    }
    if (setting->idempotency_header)
        own[count++] = (struct weft_http_header){setting->idempotency_header, ""};
    return weft_http_call_yields(&out->call, own, count, err);
}

static enum weft_rc write_headers(struct weft_outgoing *out, struct weft_err *err)
{
    const struct weft_http_call *call = &out->call;
    size_t own = out->endpoint ? out->endpoint->setting->header_count : 0;
    out->header = weft_new_array(out->arena, struct weft_crowd_header,
                                 own + call->header_count + OWN_HEADERS);
    enum weft_rc rc = add_endpoint_headers(out, err);
    for (size_t i = 0; i < call->header_count; i++)
        add_header(out, call->header[i].name, call->header[i].value);
    if (call->body)
        add_default(out, "content-type",
                    call->json.text ? "application/json" : "application/octet-stream");
    add_default(out, "user-agent", weft_arena_printf(out->arena, "weft/%s", weft_version()));
    add_names(out);
    return rc;
}

static enum weft_rc find_url(struct weft_outgoing *out, struct weft_err *err)
{
    struct weft_http_url url;
    out->url = out->call.url.text;
    if (!out->endpoint)
        return WEFT_OK;
    enum weft_rc rc =
        weft_http_url_join(&out->endpoint->url, out->call.path, out->arena, &url, err);
    out->url = rc ? NULL : url.text;
    return rc;
}

enum weft_rc weft_outgoing_read(struct weft_outgoing *out, const struct weft_claimed *item)
{
    struct weft_json json;
    struct weft_err err = {0};
    const char *payload =
        weft_arena_dup(out->arena, item->payload ? item->payload : "", item->payload_size);
    enum weft_rc rc = weft_json_check(payload, item->payload_size, &json, &err);
    if (!rc)
        rc = weft_http_call_read(&json, out->arena, &out->call, &err);
    return rc ? refuse(out, "http_payload", &err) : WEFT_OK;
}

enum weft_rc weft_outgoing_write(struct weft_outgoing *out, const struct weft_claimed *item)
{
    struct weft_err err = {0};
    enum weft_rc rc = find_url(out, &err);
    if (!rc)
        rc = write_headers(out, &err);
    if (rc)
        return refuse(out, "http_payload", &err);
    rc = fill_body(out, item, &err);
    /* Without the store a result could not be fetched: that says nothing about the pointer. */
    if (rc && weft_rc_retryable(rc))
        weft_outgoing_release(out, 0);
    else if (rc)
        return refuse(out, "http_from", &err);
    if (rc || out->filled.size == 0)
        return rc;
    /* A body may be large, and be held as long as the call lasts: others come first. */
    out->filled_counted = out->filled.size;
    size_t before = atomic_fetch_add(&out->executor->bytes, out->filled_counted);
    if (before + out->filled_counted <= WEFT_EXECUTOR_BYTES)
        return WEFT_OK;
    weft_outgoing_release(out, LATER_MS);
    return WEFT_BUSY;
}

/* ---- The answer; on threads of the crowd ----------------------------------------------------- */

static const char *keep(struct weft_outgoing *out, const char *value)
{
    return weft_arena_strdup(out->arena, value);
}

static bool is_stream(const char *content_type)
{
    static const char wanted[] = "text/event-stream";
    return content_type && strncasecmp(content_type, wanted, strlen(wanted)) == 0;
}

static void on_head(void *context, int status, const struct weft_crowd_header *header, size_t count)
{
    struct weft_outgoing *out = context;
    out->status = status;
    for (size_t i = 0; i < count; i++) {
        if (weft_http_header_is(header[i].name, "content-type"))
            out->content_type = keep(out, header[i].value);
        else if (weft_http_header_is(header[i].name, "x-request-id"))
            out->request_id = keep(out, header[i].value);
        else if (weft_http_header_is(header[i].name, "retry-after"))
            out->retry_after = keep(out, header[i].value);
    }
    if (out->call.stream && status >= 200 && status < 300 && is_stream(out->content_type))
        out->fold = weft_sse_fold_new(out->response_max);
}

/* Counts bytes that are kept in memory; false: there are too many of them in all. */
static bool count_bytes(struct weft_outgoing *out, size_t size)
{
    /* A fold keeps no more than its result, however long the stream is. */
    size_t most = out->response_max > out->counted ? out->response_max - out->counted : 0;
    if (out->fold && size > most)
        size = most;
    out->counted += size;
    return atomic_fetch_add(&out->executor->bytes, size) + size <= WEFT_EXECUTOR_BYTES;
}

static bool on_data(void *context, const void *bytes, size_t size, bool *ret_enough)
{
    struct weft_outgoing *out = context;
    out->no_memory = !count_bytes(out, size);
    if (out->no_memory)
        return false;
    if (!out->fold) {
        weft_buf_add(&out->body, bytes, size);
        /* One that asked for a stream and got none: the crowd allows as much as for streams. */
        if (out->body.full)
            (void)weft_fail(&out->story, WEFT_TOO_LARGE, "the answer is larger than %zu bytes",
                            out->response_max);
        return !out->body.full;
    }
    if (weft_sse_fold_add(out->fold, bytes, size, &out->story))
        return false;
    *ret_enough = weft_sse_fold_over(out->fold);
    return !*ret_enough;
}

static void on_ended(void *context, const struct weft_crowd_end *end)
{
    struct weft_outgoing *out = context;
    struct weft_executor *executor = out->executor;
    out->end = *end;
    out->end.text = end->text ? keep(out, end->text) : NULL;
    pthread_mutex_lock(&executor->lock);
    out->transfer = NULL;
    TAILQ_INSERT_TAIL(&executor->ended, out, ended);
    if (executor->ends++ == 0)
        pthread_cond_signal(&executor->news);
    pthread_mutex_unlock(&executor->lock);
}

/* ---- Beginning ------------------------------------------------------------------------------- */

/*
 * The call ends before the engine ends the attempt, at its timeout or at the deadline of the
 * execution, and with enough time left to write why: a failure says what became of the request, and
 * is not made again where it must not be. The total timeout bounds all others.
 */
static void cut(struct weft_outgoing *out, const struct weft_claimed *item,
                struct weft_crowd_call *call)
{
    enum { SPARE_PART = 20, SPARE_MIN_MS = 20, SPARE_MAX_MS = 1000 };
    bool attempt = item->attempt_deadline_us &&
                   (!item->deadline_us || item->attempt_deadline_us < item->deadline_us);
    weft_usec end_us = attempt ? item->attempt_deadline_us : item->deadline_us;
    weft_usec now_us = weft_clock_now(weft_engine_clock(out->executor->engine));
    if (!end_us)
        return;
    int64_t left_ms = (end_us - now_us) / WEFT_MS, spare_ms = left_ms / SPARE_PART;
    spare_ms = spare_ms < SPARE_MIN_MS   ? SPARE_MIN_MS
               : spare_ms > SPARE_MAX_MS ? SPARE_MAX_MS
                                         : spare_ms;
    left_ms = left_ms > 2 * spare_ms ? left_ms - spare_ms : left_ms / 2;
    if (left_ms >= call->total_ms)
        return;
    out->cut_ms = call->total_ms = left_ms > 0 ? left_ms : 1;
    out->cut_by = attempt ? "timeout of the attempt" : "deadline";
}

static void set_limits(struct weft_outgoing *out, struct weft_crowd_call *call)
{
    const struct weft_endpoint *setting = out->endpoint ? out->endpoint->setting : NULL;
    call->private_addresses = setting && setting->private_addresses;
    call->redirects = setting && setting->redirects;
    call->connect_ms = setting ? setting->connect_ms : CONNECT_MS;
    call->first_byte_ms = setting ? setting->first_byte_ms : FIRST_BYTE_MS;
    call->idle_ms = setting ? setting->idle_ms : IDLE_MS;
    call->total_ms = setting ? setting->total_ms : TOTAL_MS;
    out->response_max = setting ? (size_t)setting->response_max : WEFT_ENDPOINT_RESPONSE_MAX;
    call->response_max = out->response_max * (out->call.stream ? WEFT_ENDPOINT_STREAM_TIMES : 1);
}

void weft_outgoing_begin(struct weft_outgoing *out, const struct weft_claimed *item)
{
    static const struct weft_crowd_ops ops = {on_head, on_data, on_ended};
    struct weft_executor *executor = out->executor;
    struct weft_crowd_call call = {
        .method = out->call.method,
        .url = out->url,
        .header = out->header,
        .header_count = out->headers,
        .body = out->call.body,
        .body_size = out->call.body_size,
        .once = true, /* a second try is another attempt, with a lease of its own */
        .ops = &ops,
        .context = out,
    };
    set_limits(out, &call);
    cut(out, item, &call);
    weft_buf_init(&out->body, out->response_max);
    /* Under the lock, so that the end finds the transfer in its place. */
    pthread_mutex_lock(&executor->lock);
    out->transfer = executor->ops.call(executor->crowd, &call);
    pthread_mutex_unlock(&executor->lock);
}

void weft_outgoing_abort(struct weft_outgoing *out)
{
    struct weft_executor *executor = out->executor;
    pthread_mutex_lock(&executor->lock);
    out->aborted = true;
    if (out->transfer)
        executor->ops.abort(executor->crowd, out->transfer);
    pthread_mutex_unlock(&executor->lock);
}

struct weft_outgoing *weft_outgoing_new(struct weft_executor *executor, struct weft_target *target,
                                        const struct weft_claimed *item)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_outgoing *out = weft_new(arena, struct weft_outgoing);
    *out = (struct weft_outgoing){.executor = executor,
                                  .arena = arena,
                                  .target = target,
                                  .id = item->id,
                                  .epoch = item->epoch,
                                  .lease_us = weft_boot_us()};
    return out;
}

void weft_outgoing_free(struct weft_outgoing *out)
{
    atomic_fetch_sub(&out->executor->bytes, out->counted + out->filled_counted);
    out->executor->ops.release(out->endpoint);
    weft_target_let_go(out->auth);
    weft_sse_fold_free(out->fold);
    weft_buf_done(&out->filled);
    weft_buf_done(&out->body);
    weft_buf_done(&out->result);
    weft_arena_free(out->arena);
}
