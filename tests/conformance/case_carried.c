/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Kinds that weft carries out itself: which payloads are refused, which claims see the work, and
 * how the claims of a server choose by target.
 */

#include "conformance.h"

#include "base/arena.h"
#include "engine/engine_state.h"
#include "engine/flow/flow.h"
#include "engine/job/joint.h"
#include "flows.h"

static struct weft_spec http_spec(const char *payload)
{
    return (struct weft_spec){
        .kind = "http", .payload = payload, .payload_size = payload ? strlen(payload) : 0};
}

static struct weft_id submit_call(struct fixture *f, const char *payload)
{
    struct weft_spec spec = http_spec(payload);
    return submit_ok(f, &spec);
}

static const char call_one[] = "{\"endpoint\":\"one\",\"path\":\"/x\"}";
static const char call_two[] = "{\"endpoint\":\"two\"}";
static const char call_url[] = "{\"url\":\"https://example.com/x\"}";

CASE(carried_payload_is_read_at_submission)
{
    static const struct {
        const char *payload, *field;
        enum weft_rc rc;
    } row[] = {
        {NULL, "payload", WEFT_INVALID_JSON},
        {"[]", "payload", WEFT_INVALID_VALUE},
        {"{\"endpoint\":\"a\",\"more\":1}", "payload", WEFT_UNKNOWN_FIELD},
        {"{\"endpoint\":\"a b\"}", "payload.endpoint", WEFT_INVALID_VALUE},
        {"{\"endpoint\":\"a\",\"path\":\"/../b\"}", "payload.path", WEFT_INVALID_VALUE},
        {"{\"url\":\"ftp://a\"}", "payload.url", WEFT_INVALID_VALUE},
        {"{\"endpoint\":\"a\",\"headers\":{\"Host\":\"b\"}}", "payload.headers",
         WEFT_INVALID_VALUE},
        {"{\"endpoint\":\"a\",\"body\":{\"x\":1},\"from\":{\"/body/x\":\"n#\"}}", "payload.from",
         WEFT_INVALID_VALUE},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_spec spec = http_spec(row[i].payload);
        struct weft_submitted answer = submit(f, f->a, &spec);
        expect_err(&answer.err, row[i].rc, row[i].field, row[i].payload ? row[i].payload : "none");
    }
    struct weft_spec spec = http_spec(call_one);
    spec.content_type = "text/plain";
    struct weft_submitted answer = submit(f, f->a, &spec);
    expect_err(&answer.err, WEFT_INVALID_VALUE, "content_type", "a payload that is not JSON");
    spec.content_type = "application/json";
    is_int(submit(f, f->a, &spec).err.rc, WEFT_OK, "JSON may be called by its name");
    spec = (struct weft_spec){.kind = "mail", .payload = "[]", .payload_size = 2};
    is_int(submit(f, f->a, &spec).err.rc, WEFT_OK, "payloads of other kinds are not read");
}

CASE(carried_from_names_an_upstream)
{
    static const char payload[] =
        "{\"endpoint\":\"a\",\"body\":{\"x\":1},"
        "\"from\":{\"/body/x\":\"draft#/body\"}}";
    static const char *const after[] = {"draft"}, *const other[] = {"other"};
    struct weft_node node[] = {
        {.name = "draft", .spec = http_spec(call_one)},
        {.name = "other", .spec = {.kind = "job"}},
        {.name = "check", .spec = http_spec(payload), .after = after, .after_count = 1},
    };
    struct weft_flow_spec spec = {.nodes = node, .node_count = WEFT_LEN(node)};
    struct weft_flow_result answer = {0};
    is_int(weft_engine_flow_submit(f->a, "default", &spec, 1, f->arena, &answer, &f->err), WEFT_OK,
           "submitted");
    is_int(answer.rc, WEFT_OK, "a result of an upstream may be taken");
    node[2].after = other;
    answer = (struct weft_flow_result){0};
    is_int(weft_engine_flow_submit(f->a, "default", &spec, 1, f->arena, &answer, &f->err), WEFT_OK,
           "called");
    expect_err(answer.err, WEFT_INVALID_VALUE, "payload.from", "the node does not come after it");
    is_int(answer.blamed, 3, "the node is blamed");
}

CASE(carried_is_hidden_from_claims_without_kinds)
{
    struct weft_id called = submit_call(f, call_one), plain = submit_job(f);
    is_int(claim(f, f->a, 10).count, 1, "a claim without kinds gets the plain one alone");
    is_int(state_of(f, &plain), WEFT_STATE_RUNNING, "which runs");
    is_int(state_of(f, &called), WEFT_STATE_READY, "the call stays ready");
    (void)submit_call(f, call_two);
    (void)submit_call(f, call_url);
    static const char *const kinds[] = {"http"};
    const struct weft_claim args = {.worker = "w", .kinds = kinds, .kind_count = 1, .max = 10};
    struct weft_claim_result got = claim_with(f, f->b, &args);
    is_int(got.count, 3, "a claim that names the kind gets it, whatever the endpoint");
    for (size_t i = 0; i < got.count; i++)
        is_int(complete(f, f->b, &got.item[i], "{}").err.rc, WEFT_OK, "completed by a worker");
}

/* A claim of a server, by target. */
static struct weft_claim_result claim_target(struct fixture *f, struct weft_engine *engine,
                                             const char *const *target, size_t count)
{
    static const char *const kinds[] = {"http"};
    struct weft_claim args[4];
    struct weft_claim_result result = {0};
    for (size_t i = 0; i < count; i++)
        args[i] =
            (struct weft_claim){.worker = "http-a", .kinds = kinds, .kind_count = 1, .max = 5};
    struct weft_joint_call call = {.op = WEFT_OP_CLAIM,
                                   .ns = "default",
                                   .item = args,
                                   .count = count,
                                   .target = target,
                                   .answer = &result,
                                   .arena = weft_arena_new()};
    is_int(weft_engine_alone(engine, &call, &f->err), WEFT_OK, "claimed by target");
    for (size_t i = 0; i < result.count; i++)
        result.item[i].payload = weft_arena_strdup(f->arena, result.item[i].payload);
    result.item = weft_arena_dup(f->arena, result.item, result.count * sizeof(*result.item));
    weft_arena_free(call.arena);
    return result;
}

CASE(carried_claims_choose_by_target)
{
    for (int i = 0; i < 3; i++) {
        (void)submit_call(f, call_one);
        (void)submit_call(f, call_two);
    }
    struct weft_id url = submit_call(f, call_url);
    const char *const unknown[] = {"three", ""};
    is_int(claim_target(f, f->a, unknown, 2).count, 0, "nothing for another target, and for none");
    const char *const two[] = {"two", "*"};
    struct weft_claim_result got = claim_target(f, f->a, two, 2);
    is_int(got.count, 4, "one claim by target two, one by calls with URLs of their own");
    for (size_t i = 0; i < got.count; i++)
        is_str(got.item[i].payload, got.item[i].claim ? call_url : call_two, "each gets its own");
    is_int(state_of(f, &url), WEFT_STATE_RUNNING, "the call with a URL of its own was taken");
    const char *const one[] = {"one"};
    is_int(claim_target(f, f->b, one, 1).count, 3, "another process chooses alike");
}

CASE(carried_queues_are_listed)
{
    const struct weft_queue *queue[8];
    size_t place = 0, total;
    (void)submit_job(f);
    is_int(weft_ready_carried(f->a, &place, queue, 8, &total), 0, "other kinds are not listed");
    (void)submit_call(f, call_one);
    (void)submit_call(f, call_two);
    is_int(weft_ready_carried(f->a, &place, queue, 8, &total), 2, "both queues are listed");
    const char *first = NULL;
    for (int i = 0; i < 4; i++) {
        is_int(weft_ready_carried(f->a, &place, queue, 1, &total), 1, "one at a time");
        ok(!first || strcmp(first, queue[0]->target) != 0, "by turns");
        first = queue[0]->target;
    }
    const struct weft_woken woken = {.queue = queue[0]->id, .count = 1};
    ok(weft_ready_wakes_carried(f->a, &woken, 1), "a wake for such a queue is kept apart");
    ok(!weft_ready_wakes_carried(f->b, &woken, 1), "where none was met, no wake is one");
    const char *const both[] = {"one", "two"};
    is_int(claim_target(f, f->a, both, 2).count, 2, "both are taken");
    is_int(claim_target(f, f->a, both, 2).count, 0, "there is no more");
    is_int(weft_ready_carried(f->a, &place, queue, 8, &total), 0, "empty queues leave the list");
}

CASE(carried_row_of_the_inbox_is_read)
{
    if (!only_on_pg(f, "SQLite has no weft_submit()"))
        return;
    run_sql(f, "SELECT weft.weft_submit('http', '{\"endpoint\":\"one\"}')");
    run_sql(f, "SELECT weft.weft_submit('http', '{\"endpoint\":\"one two\"}')");
    (void)run_pass(f, f->a, WEFT_SCANNER_INTAKE);
    const char *const one[] = {"one"};
    is_int(claim_target(f, f->a, one, 1).count, 1, "the good one is claimed by its target");
    is_int(count_rows(f, &(struct weft_filter){.kind = "invalid"}), 1, "the bad one is recorded");
}
