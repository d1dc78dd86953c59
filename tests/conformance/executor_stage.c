/* SPDX-License-Identifier: Apache-2.0 */

#include "executor_stage.h"

#include "base/arena.h"
#include "base/err.h"
#include "engine/engine_state.h"

#include <stdlib.h>

struct stage stage;

/* ---- A crowd that does what the test says
 * --------------------------------------------------------- */

static enum weft_rc crowd_start(const struct weft_crowd_config *config,
                                struct weft_crowd **ret_crowd, struct weft_err *err)
{
    (void)config, (void)err;
    *ret_crowd = (struct weft_crowd *)&stage;
    return WEFT_OK;
}

void stage_end(struct weft_transfer *transfer, const struct weft_crowd_end *end)
{
    if (transfer->ended)
        return;
    transfer->ended = true;
    stage.open--;
    transfer->call.ops->ended(transfer->call.context, end);
}

static void crowd_stop(struct weft_crowd *crowd)
{
    (void)crowd;
    for (size_t i = 0; i < stage.calls; i++)
        stage_end(&stage.transfer[i], &(struct weft_crowd_end){.aborted = true});
}

static struct weft_transfer *crowd_call(struct weft_crowd *crowd,
                                        const struct weft_crowd_call *call)
{
    (void)crowd;
    struct weft_transfer *transfer = &stage.transfer[stage.calls++];
    *transfer = (struct weft_transfer){.call = *call,
                                       .url = weft_arena_strdup(stage.arena, call->url),
                                       .method = weft_arena_strdup(stage.arena, call->method)};
    stage.open++;
    return transfer;
}

/* The lock of the executor is held here: the end comes later, as from a thread of a crowd. */
static void crowd_abort(struct weft_crowd *crowd, struct weft_transfer *transfer)
{
    (void)crowd;
    transfer->aborted = true;
}

static void crowd_trust(struct weft_crowd *crowd, const char *pem)
{
    (void)crowd, (void)pem;
}

static const struct weft_known_endpoint *endpoint_of(struct weft_engine *engine, const char *ns,
                                                     const char *name)
{
    (void)engine, (void)ns;
    for (size_t i = 0; i < ENDPOINTS_MAX; i++)
        if (stage.known[i].there && strcmp(stage.known[i].setting.name, name) == 0)
            return &stage.known[i].endpoint;
    return NULL;
}

static void release(const struct weft_known_endpoint *endpoint)
{
    (void)endpoint;
}

static const struct weft_executor_ops ops = {
    .start = crowd_start,
    .stop = crowd_stop,
    .call = crowd_call,
    .abort = crowd_abort,
    .trust = crowd_trust,
    .endpoint = endpoint_of,
    .release = release,
};

/* ---- The stage ------------------------------------------------------------------------------- */

struct weft_endpoint *stage_endpoint(size_t at, const char *name)
{
    struct known *known = &stage.known[at];
    *known = (struct known){.there = true,
                            .setting = {.name = name,
                                        .url = "http://127.0.0.1:1/v1",
                                        .max_in_flight = 64,
                                        .connect_ms = 1000,
                                        .first_byte_ms = 2000,
                                        .idle_ms = 3000,
                                        .total_ms = 4000,
                                        .retry_after_max_ms = 3600000,
                                        .response_max = 1 << 20}};
    known->endpoint.setting = &known->setting;
    known->endpoint.version = at + 1;
    is_int(weft_http_base_read(known->setting.url, "url", stage.arena, &known->endpoint.url, NULL),
           WEFT_OK, "the endpoint %s is made", name);
    is_int(weft_http_retry_read(NULL, &known->endpoint.retry, NULL), WEFT_OK, "with usual retries");
    return &known->setting;
}

static void on_news(void *context, const struct weft_news *news)
{
    struct weft_engine *engine = context;
    if (stage.executor && weft_ready_wakes_carried(engine, news->woken, news->count))
        weft_executor_wake(stage.executor, news->woken, news->count);
}

static void on_leases(void *context, const int32_t *worker, size_t count)
{
    (void)context;
    if (stage.executor)
        weft_executor_leases(stage.executor, worker, count);
}

void stage_begin_with(struct fixture *f, struct weft_engine *engine, uint32_t in_flight)
{
    stage = (struct stage){.f = f, .arena = weft_arena_new()};
    weft_engine_on_news(engine, on_news, engine);
    weft_engine_on_leases(engine, on_leases, NULL);
    const struct weft_executor_config config = {
        .engine = engine, .worker = "http-x", .in_flight = in_flight, .ops = &ops};
    is_int(weft_executor_new(&config, &stage.executor, &f->err), WEFT_OK, "the executor is made");
    (void)stage_endpoint(0, "one");
}

void stage_begin(struct fixture *f)
{
    stage_begin_with(f, f->a, 0);
}

void stage_finish(struct weft_engine *engine)
{
    weft_engine_on_news(engine, NULL, NULL);
    weft_engine_on_leases(engine, NULL, NULL);
    weft_executor_free(stage.executor);
    stage.executor = NULL;
    weft_arena_free(stage.arena);
}

void stage_turns(int count)
{
    while (count-- > 0)
        (void)weft_executor_turn(stage.executor);
}

struct weft_spec stage_spec(const char *payload)
{
    return (struct weft_spec){.kind = "http", .payload = payload, .payload_size = strlen(payload)};
}

struct weft_id stage_call(struct fixture *f, const char *endpoint)
{
    struct weft_spec spec =
        stage_spec(weft_arena_printf(f->arena, "{\"endpoint\":\"%s\",\"path\":\"/x\"}", endpoint));
    return submit_ok(f, &spec);
}

void stage_answer(struct weft_transfer *transfer, int status, const char *type, const char *body)
{
    const struct weft_crowd_header header[] = {{"Content-Type", type}, {"X-Request-Id", "r1"}};
    bool enough = false;
    transfer->call.ops->head(transfer->call.context, status, header, WEFT_LEN(header));
    bool more = transfer->call.ops->data(transfer->call.context, body, strlen(body), &enough);
    ok(more || enough, "the body is taken");
    stage_end(transfer, &(struct weft_crowd_end){.status = status, .sent = true});
}

void stage_answer_all(int status, const char *body)
{
    for (size_t i = 0; i < stage.calls; i++)
        if (!stage.transfer[i].ended)
            stage_answer(&stage.transfer[i], status, "application/json", body);
}

size_t stage_break(struct fixture *f)
{
    struct weft_endpoint_health health = {0};
    size_t bad = 0;
    for (; bad < 50 && health.breaker != WEFT_ENDPOINT_OPEN; bad++) {
        (void)stage_call(f, "one");
        stage_turns(2);
        stage_answer_all(500, "{}");
        stage_turns(1);
        weft_executor_health(stage.executor, "default", "one", &health);
    }
    return bad;
}

struct weft_endpoint_health stage_health(const char *endpoint)
{
    struct weft_endpoint_health health = {0};
    weft_executor_health(stage.executor, "default", endpoint, &health);
    return health;
}
