/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_UNIT_API_FIXTURE_H
#define WEFT_TESTS_UNIT_API_FIXTURE_H

/*
 * The handlers of the API over a scratch SQLite store, without HTTP, threads and waiting: the steps
 * that the loop and the groups take with a request are taken here one after the other. The
 * functions below stand in for functions of the other parts of net. Every answer is held against
 * the OpenAPI document.
 */

#include "schema_fixture.h"
#include "tap.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "engine/batch/batch.h"
#include "engine/engine.h"
#include "engine/flow/flow.h"
#include "engine/job/control.h"
#include "engine/job/leases.h"
#include "engine/job/submit.h"
#include "engine/scan/pass.h"
#include "net/api/api.h"
#include "net/api/api_control.h"
#include "net/api/api_counts.h"
#include "net/auth.h"
#include "net/group/claims.h"
#include "net/group/commit_work.h"
#include "net/group/group.h"
#include "net/http/link.h"
#include "net/http/loop.h"
#include "net/metrics.h"
#include "net/request.h"
#include "net/route.h"
#include "net/server.h"
#include "net/trial.h"
#include "net/upkeep/roster.h"
#include "net/upkeep/scanner_schedule.h"
#include "net/upkeep/supervisor.h"
#include "net/upkeep/upkeep.h"
#include "net/wait/waits.h"
#include "weft/admin.h"
#include "weft/weft.h"
#include "wire/ops.h"
#include "wire/wire.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

struct api_fixture {
    struct weft_server server;
    const char *accept; /* the header of the next requests, or NULL */
    const char *ns;
    char file[256];
    struct weft_buf text;   /* the last answer */
    char type[128];         /* its content type */
    char location[128];     /* its header, or empty */
    size_t parts;           /* in which it was sent */
    unsigned waited, naps;  /* how often a request asked to wait; how often it may */
    _Atomic size_t awaited; /* 1: requests wait for ends */
    unsigned ended;         /* executions that the engine reported as ended */
    char forgotten[64];     /* the last worker that was forgotten */
    /* Called when a steering call has committed and is not answered yet; or NULL. */
    void (*committed)(struct api_fixture *f);
    const char *uncovered; /* scanners that no replica runs, or NULL */
};

static struct api_fixture *fixture; /* the stand-ins have no other way to it */

void weft_roster_forget(struct weft_roster *roster, const char *ns, const char *worker)
{
    (void)roster;
    (void)ns;
    (void)snprintf(fixture->forgotten, sizeof(fixture->forgotten), "%s", worker);
}

void weft_server_tokens_changed(struct weft_server *server)
{
    (void)server;
}

void weft_auth_show_uses(struct weft_auth *auth, struct weft_token *token, size_t count)
{
    (void)auth;
    (void)token;
    (void)count;
}

const char *weft_request_header(const struct weft_request *request, const char *name)
{
    (void)request;
    return strcmp(name, "Accept") == 0 ? fixture->accept : NULL;
}

bool weft_wait_for_end(struct weft_request *request, const struct weft_id *id, weft_usec until_us,
                       enum weft_wait_looks looks)
{
    (void)request;
    (void)id;
    (void)until_us;
    (void)looks;
    fixture->waited++;
    return fixture->waited <= fixture->naps;
}

/* No request waits. */
void weft_wait_ended(void *context, const struct weft_id *id, size_t count)
{
    (void)context;
    (void)id;
    (void)count;
}

bool weft_wait_for_leases(struct weft_request *request, int32_t worker, weft_usec until_us)
{
    (void)request;
    (void)worker;
    (void)until_us;
    fixture->waited++;
    return fixture->waited <= fixture->naps;
}

bool weft_loop_gone(const struct weft_request *request)
{
    (void)request;
    return false;
}

/* There are no engine threads: at once. */
void weft_groups_do(struct weft_groups *groups, void (*fn)(struct weft_server *, void *),
                    void *context)
{
    (void)groups;
    fn(&fixture->server, context);
}

void weft_add_drain(struct weft_server *server, const struct weft_id *flow)
{
    struct weft_flow_drain drain = {.flow = *flow, .more = true};
    struct weft_err err;
    (void)server;
    while (drain.more && !weft_engine_flow_drain(fixture->server.engine, &drain, &err))
        ;
}

void weft_add_batch(struct weft_server *server, const struct weft_id *batch)
{
    bool more = true;
    struct weft_err err;
    (void)server;
    while (more && !weft_engine_batch_step(fixture->server.engine, batch, &more, &err))
        ;
}

static void count_ended(void *context, const struct weft_id *id, size_t count)
{
    struct api_fixture *f = context;
    (void)id;
    f->ended += (unsigned)count;
}

/* Scanners that have not run yet, and passes that run in place. */
struct weft_scanner_status *weft_supervisor_status(struct weft_server *server,
                                                   struct weft_arena *arena)
{
    struct weft_scanner_setting setting[WEFT_SCANNER_COUNT];
    struct weft_scanner_schedule *schedule = weft_new(arena, struct weft_scanner_schedule);
    const struct weft_now now = {weft_boot_us(), weft_clock_now(weft_engine_clock(server->engine))};
    weft_scanner_defaults(setting);
    weft_schedule_init(schedule, setting, 1, &now);
    struct weft_scanner_status *status =
        weft_new_array(arena, struct weft_scanner_status, WEFT_SCANNER_COUNT);
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        status[i] = weft_schedule_status(schedule, (enum weft_scanner)i, &now, arena);
    return status;
}

enum weft_rc weft_supervisor_run(struct weft_server *server, enum weft_scanner scanner,
                                 struct weft_pass_report *ret_report, struct weft_err *err)
{
    return weft_engine_pass(server->engine, scanner, NULL, ret_report, err);
}

const char *weft_upkeep_uncovered(struct weft_server *server, struct weft_arena *arena)
{
    (void)server;
    (void)arena;
    return fixture->uncovered;
}

/* Calls of the server itself are tested by tests/http/endpoint_test.py. */
enum weft_rc weft_trial_begin(struct weft_trials *trials, const char *ns,
                              const struct weft_endpoint_trying *trying, struct weft_id *ret_id,
                              struct weft_err *err)
{
    (void)trials, (void)ns, (void)trying, (void)ret_id;
    return weft_fail(err, WEFT_UNAVAILABLE, "no calls are made here");
}

bool weft_trial_take(struct weft_trials *trials, const struct weft_id *id, struct weft_arena *arena,
                     struct weft_endpoint_trial *ret_trial)
{
    (void)trials, (void)id, (void)arena, (void)ret_trial;
    return false;
}

/* Claims belong to the server's own half: tests claim from the engine. */
enum weft_rc weft_claims_read(struct weft_request *request, struct weft_err *err)
{
    (void)request;
    (void)err;
    abort();
}

static inline void fixture_init(struct api_fixture *f)
{
    static int number;
    *f = (struct api_fixture){.ns = "default", .awaited = 1};
    const char *folder = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): one thread */
    (void)snprintf(f->file, sizeof(f->file), "%s/weft-api-%d-%d.db", folder ? folder : "/tmp",
                   (int)getpid(), ++number);
    char url[300];
    (void)snprintf(url, sizeof(url), "sqlite:%s", f->file);
    const struct weft_engine_config config = {.url = url};
    struct weft_err err = {0};
    if (weft_engine_open(&config, &f->server.engine, &err)) {
        printf("Bail out! cannot open the store: %s\n", err.text);
        exit(1); /* NOLINT(concurrency-mt-unsafe) */
    }
    weft_engine_on_ended(f->server.engine, count_ended, f, &f->awaited);
    f->server.open = true;
    f->server.api = weft_api_new();
    f->server.metrics = weft_metrics_new(&weft_routes);
    weft_buf_init(&f->text, 1 << 26);
    fixture = f;
}

static inline void fixture_done(struct api_fixture *f)
{
    weft_engine_close(f->server.engine);
    weft_api_free(f->server.api);
    weft_metrics_free(f->server.metrics);
    weft_buf_done(&f->text);
    static const char *const suffix[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < WEFT_LEN(suffix); i++) {
        char name[300];
        (void)snprintf(name, sizeof(name), "%s%s", f->file, suffix[i]);
        (void)unlink(name);
    }
}

/* ---- What group.c does, for one request ------------------------------------------------------ */

static inline enum weft_rc fixture_steer(struct api_fixture *f, struct weft_request *request,
                                         enum weft_steer_kind kind, struct weft_err *err)
{
    struct weft_steer_answer *answer = weft_new_array(request->arena, struct weft_steer_answer, 1);
    const struct weft_steering steering = {
        .kind = kind, .ns = request->ns, .item = request->items.item, .count = 1};
    answer->arena = request->arena;
    request->items.answer = answer;
    enum weft_rc rc = weft_steer_call(f->server.engine, &steering, answer, err);
    if (f->committed)
        f->committed(f);
    return rc;
}

static inline enum weft_rc fixture_submit(struct api_fixture *f, struct weft_request *request,
                                          struct weft_err *err)
{
    const struct weft_items *items = &request->items;
    struct weft_submit_result *answer =
        weft_new_array(request->arena, struct weft_submit_result, items->count + 1);
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < items->count && !rc; i++)
        if (!items->err[i])
            rc = weft_engine_submit(f->server.engine, request->ns,
                                    (const struct weft_spec *)items->item + i, 1, request->arena,
                                    &answer[i], err);
    request->items.answer = answer;
    return rc;
}

static inline enum weft_rc fixture_lease_call(struct weft_engine *engine, enum weft_group group,
                                              const void *item, struct weft_arena *arena,
                                              struct weft_lease_result *ret, struct weft_err *err)
{
    if (group == WEFT_GROUP_RENEW)
        return weft_engine_renew(engine, item, 1, arena, ret, err);
    if (group == WEFT_GROUP_COMPLETE)
        return weft_engine_complete(engine, item, 1, arena, ret, err);
    if (group == WEFT_GROUP_FAIL)
        return weft_engine_fail(engine, item, 1, arena, ret, err);
    return weft_engine_put_back(
        engine, group == WEFT_GROUP_DELAY ? WEFT_PUT_BACK_DELAY : WEFT_PUT_BACK_RELEASE, item, 1,
        arena, ret, err);
}

static inline enum weft_rc fixture_leases(struct api_fixture *f, struct weft_request *request,
                                          size_t size, struct weft_err *err)
{
    const struct weft_items *items = &request->items;
    struct weft_lease_result *answer =
        weft_new_array(request->arena, struct weft_lease_result, items->count + 1);
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < items->count && !rc; i++)
        if (!items->err[i])
            rc = fixture_lease_call(f->server.engine, request->route->op->group,
                                    (const char *)items->item + i * size, request->arena,
                                    &answer[i], err);
    request->items.answer = answer;
    return rc;
}

static inline enum weft_rc fixture_group(struct api_fixture *f, struct weft_request *request,
                                         struct weft_err *err)
{
    switch (request->route->op->group) {
    case WEFT_GROUP_SUBMIT:
        return fixture_submit(f, request, err);
    case WEFT_GROUP_RENEW:
        return fixture_leases(f, request, sizeof(struct weft_renew), err);
    case WEFT_GROUP_COMPLETE:
        return fixture_leases(f, request, sizeof(struct weft_complete), err);
    case WEFT_GROUP_FAIL:
        return fixture_leases(f, request, sizeof(struct weft_failure), err);
    case WEFT_GROUP_DELAY:
    case WEFT_GROUP_RELEASE:
        return fixture_leases(f, request, sizeof(struct weft_put_back), err);
    case WEFT_GROUP_CANCEL:
        return fixture_steer(f, request, WEFT_STEER_CANCEL, err);
    case WEFT_GROUP_REPLAY:
        return fixture_steer(f, request, WEFT_STEER_REPLAY, err);
    case WEFT_GROUP_REPRIORITIZE:
        return fixture_steer(f, request, WEFT_STEER_REPRIORITIZE, err);
    case WEFT_GROUP_SET_DEADLINE:
        return fixture_steer(f, request, WEFT_STEER_SET_DEADLINE, err);
    case WEFT_GROUP_REVOKE:
        return fixture_steer(f, request, WEFT_STEER_REVOKE, err);
    case WEFT_GROUP_RESUME:
        return fixture_steer(f, request, WEFT_STEER_RESUME, err);
    case WEFT_GROUP_NONE:
    case WEFT_GROUP_LIST:
    case WEFT_GROUP_PARSE:
    case WEFT_GROUP_HEAVY:
    case WEFT_GROUP_ADMIN:
    case WEFT_GROUP_CLAIM:
    case WEFT_GROUP_FLOW_SUBMIT:
    case WEFT_GROUP_USAGE:   /* tests/http/cases/budgets.http */
    case WEFT_GROUP_SUSPEND: /* tests/http/cases/waiting.http */
    case WEFT_GROUP_WAITPOINT:
    case WEFT_GROUP_SIGNAL:
    case WEFT_GROUP_SIGNALS:
    case WEFT_GROUP_COUNT:
        break;
    }
    abort();
}

/* ---- Asking ---------------------------------------------------------------------------------- */

/* From the route to the answer; a failure is still to be written. */
static inline enum weft_rc fixture_carry_out(struct api_fixture *f, struct weft_link *link,
                                             struct weft_err *err)
{
    struct weft_request *request = &link->request;
    enum weft_rc rc =
        weft_query_parse(weft_query_of(link->target), request->arena, &request->query, err);
    if (!rc)
        rc = weft_query_check(&request->query, request->route, err);
    if (!rc)
        rc = request->route->read(request, err);
    if (rc || request->reply.status)
        return rc;
    if (!weft_group_alone(request->route->op->group)) {
        rc = fixture_group(f, request, err);
        if (!rc)
            request->route->write(request);
        return rc;
    }
    for (int turns = 0; turns < 100 && !rc && !request->reply.status; turns++)
        rc = request->route->run(request, err);
    return rc;
}

static inline const char *reply_header(const struct weft_request *request, const char *name)
{
    for (size_t i = 0; i < request->reply.headers; i++)
        if (strcmp(request->reply.header[i].name, name) == 0)
            return request->reply.header[i].value;
    return NULL;
}

static inline void fixture_take(struct api_fixture *f, struct weft_request *request)
{
    weft_buf_clear(&f->text);
    weft_buf_add(&f->text, request->reply.body.data, request->reply.body.size);
    const char *type = reply_header(request, "Content-Type");
    const char *location = reply_header(request, "Location");
    (void)snprintf(f->type, sizeof(f->type), "%s", type ? type : "application/json");
    (void)snprintf(f->location, sizeof(f->location), "%s", location ? location : "");
    bool last = !request->reply.stream;
    for (f->parts = 1; !last && f->parts < 1000; f->parts++) {
        struct weft_err err = {0};
        weft_buf_clear(&request->reply.body);
        if (request->reply.stream(request, &request->reply.body, &last, &err))
            break;
        weft_buf_add(&f->text, request->reply.body.data, request->reply.body.size);
    }
}

/* The schema that the document gives for the answer; false when it gives none. */
static inline bool find_schema(const struct weft_json *document, const struct weft_route *route,
                               int status, struct weft_json *ret_schema)
{
    char method[8] = "", code[8];
    for (size_t i = 0; route->op->method[i] && i < sizeof(method) - 1; i++)
        method[i] = (char)(route->op->method[i] | 0x20);
    (void)snprintf(code, sizeof(code), "%d", status);
    const char *made[] = {"paths",   route->op->path,    method,  "responses", code,
                          "content", "application/json", "schema"};
    const char *error[] = {"components", "responses",        "Error",
                           "content",    "application/json", "schema"};
    const char **path = status < 300 ? made : error;
    size_t count = status < 300 ? WEFT_LEN(made) : WEFT_LEN(error);
    struct weft_json here = *document;
    for (size_t i = 0; i < count; i++) {
        struct weft_json next;
        if (!weft_wire_member(&here, path[i], &next))
            return false;
        here = next;
    }
    *ret_schema = here;
    return true;
}

/* Says so when an answer is not what the document promises. */
static inline void check_answer(const struct api_fixture *f, const struct weft_route *route,
                                int status)
{
    struct weft_json document, answer, schema;
    char why[200] = "";
    const struct weft_buf *text = weft_api_document(f->server.api);
    if (strcmp(f->type, "application/json") != 0 ||
        (route->shape == WEFT_SHAPE_BYTES && status == 200))
        return;
    bool fits = !weft_json_check(text->data, text->size, &document, NULL) &&
                !weft_json_check(f->text.data, f->text.size, &answer, NULL) &&
                find_schema(&document, route, status, &schema) &&
                schema_fits(&document, &schema, &answer, why);
    if (!fits)
        ok(false, "%s %d is as documented (%s)", route->op->id, status, why);
}

/* The status; the answer is in f->text. body NULL: none. */
static inline int ask_for(struct api_fixture *f, const char *method, const char *target,
                          const char *body)
{
    struct weft_link link = {.target = target, .method = method};
    struct weft_request *request = &link.request;
    struct weft_err err = {0};
    *request = (struct weft_request){
        .server = &f->server, .arena = weft_arena_new(), .ns = f->ns, .link = &link};
    weft_buf_init(&request->body, 1 << 26);
    weft_buf_add_text(&request->body, body ? body : "");
    request->route = weft_route_find(&weft_routes, method, target, &request->match);
    int status = 404;
    if (request->route) {
        if (fixture_carry_out(f, &link, &err))
            weft_reply_error(request, &err);
        fixture_take(f, request);
        status = request->reply.status;
        check_answer(f, request->route, status);
    }
    weft_buf_done(&request->body);
    weft_buf_done(&request->reply.body);
    weft_arena_free(request->arena);
    return status;
}

static inline bool has(const struct api_fixture *f, const char *text)
{
    bool found = strstr(f->text.data, text) != NULL;
    if (!found)
        printf("# no %s in %.2000s\n", text, f->text.data);
    return found;
}

static inline size_t count_of(const struct api_fixture *f, const char *text)
{
    size_t count = 0;
    for (const char *at = f->text.data; (at = strstr(at, text)); at += strlen(text))
        count++;
    return count;
}

/* The text of the first member of that name, cut out of the last answer. */
static inline void member(const struct api_fixture *f, const char *name, char ret_text[64])
{
    char key[64];
    (void)snprintf(key, sizeof(key), "\"%s\":\"", name);
    const char *at = strstr(f->text.data, key);
    (void)snprintf(ret_text, 64, "%.*s", at ? (int)strcspn(at + strlen(key), "\"") : 0,
                   at ? at + strlen(key) : "");
}

/* The query of the next page: "after=" and the cursor that the last answer gave; "" for none. */
static inline const char *next_page(const struct api_fixture *f)
{
    static char query[256];
    const char *next = strstr(f->text.data, "\"next\":\"");
    query[0] = '\0';
    if (next)
        (void)snprintf(query, sizeof(query), "after=%.*s", (int)strcspn(next + 8, "\""), next + 8);
    return query;
}

#endif
