/* SPDX-License-Identifier: Apache-2.0 */

/* Why an execution does not run: every state and every reason. */

#include "conformance.h"

#include "base/arena.h"
#include "base/id.h"
#include "base/json.h"
#include "engine/admin/replicas.h"
#include "engine/admin/workers.h"
#include "engine/flow/flow.h"
#include "engine/http/settings.h"
#include "engine/limit/budgets.h"
#include "engine/limit/gates.h"
#include "engine/limit/why.h"
#include "engine/wait/wait.h"
#include "weft/weft.h"

#include <string.h>

/* Asks through engine b; the word, and a text that the sentence must have. */
static void expect_why(struct fixture *f, const struct weft_id *id, const char *word,
                       const char *has)
{
    struct weft_why why = {0};
    struct weft_err err = {0};
    const struct weft_wait_asking asking = {.id = *id, .ns = "default"};
    is_int(weft_engine_why(f->b, &asking, f->arena, &why, &err), WEFT_OK, "%s: answered %s", word,
           err.text);
    is_str(why.why ? why.why : "", word, "%s: the word", word);
    ok(why.text && strstr(why.text, has), "%s: '%s' has '%s'", word, why.text ? why.text : "", has);
    struct weft_json value;
    ok(why.detail && !weft_json_check(why.detail, strlen(why.detail), &value, NULL) &&
           value.kind == WEFT_JSON_OBJECT,
       "%s: the detail is an object", word);
}

static void see_worker(struct fixture *f, const char *const *capability, size_t count)
{
    static const char *const lanes[] = {"default"};
    const struct weft_worker_seen seen = {.name = "w",
                                          .ns = "default",
                                          .lanes = lanes,
                                          .lane_count = 1,
                                          .capabilities = capability,
                                          .capability_count = count,
                                          .seen_us = f->now_us};
    struct weft_err err = {0};
    is_int(weft_engine_workers_put(f->a, &seen, 1, &err), WEFT_OK, "a worker is seen: %s",
           err.text);
}

CASE(why_ready)
{
    static const char *const gpu[] = {"gpu"};
    struct weft_id id = submit_ok(
        f, &(struct weft_spec){.kind = "job", .capabilities = gpu, .capability_count = 1});
    expect_why(f, &id, "no_worker", "has its capabilities");
    see_worker(f, NULL, 0);
    expect_why(f, &id, "no_worker", "lane 'default'");
    see_worker(f, gpu, 1);
    expect_why(f, &id, "ready", "1 worker serves lane 'default'");
    put_lane(f, f->a, &(struct weft_lane){.name = "default", .paused = true});
    expect_why(f, &id, "lane_paused", "weft lanes default --resume");
    put_lane(f, f->a, &(struct weft_lane){.name = "default", .max_running = 1});
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .priority = 9});
    (void)claim_one(f, f->a);
    expect_why(f, &id, "lane_full", "runs 1 of 1 at once");
}

CASE(why_a_call_does_not_begin)
{
    static const char payload[] = "{\"endpoint\":\"models\"}";
    struct weft_replica_row row = {.host = "h",
                                   .version = "1",
                                   .url = "http://h",
                                   .started_us = f->now_us,
                                   .up_since_us = f->now_us,
                                   .settings = "{\"carries\":[]}",
                                   .scanners = "[]"};
    struct weft_id id =
        submit_ok(f, &(struct weft_spec){
                         .kind = "http", .payload = payload, .payload_size = sizeof(payload) - 1});
    expect_why(f, &id, "no_executor", "--executor=on");
    weft_id_new(&row.id, f->now_us, -1);
    is_int(weft_engine_replica_put(f->a, &row, &f->err), WEFT_OK, "a server that makes no calls");
    expect_why(f, &id, "no_executor", "no living server");
    row.settings = "{\"carries\":[\"http\"]}";
    is_int(weft_engine_replica_put(f->a, &row, &f->err), WEFT_OK, "a server that makes calls");
    expect_why(f, &id, "no_endpoint", "there is no endpoint 'models'");
    const struct weft_endpoint endpoint = {.name = "models", .url = "https://example.com"};
    is_int(weft_engine_endpoint_put(f->a, "default", &endpoint, &f->err), WEFT_OK, "its endpoint");
    expect_why(f, &id, "ready", "1 server may take it");
}

CASE(why_of_states)
{
    struct weft_id later = submit_ok(f, &(struct weft_spec){.kind = "job", .delay_ms = 60000});
    expect_why(f, &later, "delayed", "delayed until ");
    struct weft_claimed lease = start(f, NULL);
    expect_why(f, &lease.id, "running", "worker 'worker-a' runs it");
    (void)fail(f, f->a, &lease, "busy");
    expect_why(f, &lease.id, "delayed", "this is its retry");
    (void)steer_id(f, WEFT_STEER_CANCEL, &lease.id);
    expect_why(f, &lease.id, "ended", "ended as cancelled");
    struct weft_why why;
    struct weft_err err = {0};
    const struct weft_wait_asking other = {.id = later, .ns = "other"};
    is_int(weft_engine_why(f->b, &other, f->arena, &why, &err), WEFT_NOT_FOUND,
           "an execution of another namespace is not there");
}

CASE(why_held)
{
    struct weft_err err = {0};
    const struct weft_gate one = {.name = "g", .limits = {.max_running = 1}};
    const struct weft_gate api = {.name = "api", .limits = {.window = {1, 60000}}};
    const struct weft_gate slow = {.name = "slow", .limits = {.rate = {1, 60000, 1}}};
    is_int(weft_engine_gate_put(f->a, "default", &one, &err) ||
               weft_engine_gate_put(f->a, "default", &api, &err) ||
               weft_engine_gate_put(f->a, "default", &slow, &err),
           WEFT_OK, "three classes have limits");
    struct weft_id *id = submit_copies(f, &(struct weft_spec){.kind = "job", .gate = "g:1"}, 4);
    expect_why(f, &id[1], "gate", "1 at a time, 0 run and 1 wait for a worker: it is the next");
    expect_why(f, &id[3], "gate", "2 are ahead of it");
    id = submit_copies(f, &(struct weft_spec){.kind = "job", .gate = "api:x"}, 2);
    expect_why(f, &id[1], "rate", "gate 'api:x' lets 1 start in 60000 ms, the next at ");
    id = submit_copies(f, &(struct weft_spec){.kind = "job", .gate = "slow:x"}, 2);
    expect_why(f, &id[1], "rate", "gate 'slow:x' lets 1 start each 60000 ms, the next at ");
}

CASE(why_blocked)
{
    static const char *const after[] = {"a"};
    const struct weft_node node[] = {
        {.name = "a", .spec = {.kind = "job"}},
        {.name = "b", .spec = {.kind = "job"}, .after = after, .after_count = 1},
    };
    const struct weft_flow_spec spec = {.nodes = node, .node_count = WEFT_LEN(node)};
    struct weft_id id[2];
    struct weft_flow_result answer = {.node = id};
    struct weft_err err = {0};
    is_int(weft_engine_flow_submit(f->a, "default", &spec, 1, f->arena, &answer, &err), WEFT_OK,
           "a flow is submitted: %s", err.text);
    expect_why(f, &id[1], "blocked", "a (ready)");
}

CASE(why_suspended)
{
    struct weft_claimed lease = start(f, NULL);
    const struct weft_suspend_at at = {.name = "approval"};
    const struct weft_suspend item = {.id = lease.id,
                                      .epoch = lease.epoch,
                                      .waitpoint = &at,
                                      .waitpoint_count = 1,
                                      .timeout_ms = 60000};
    struct weft_suspend_result answer = {0};
    struct weft_err err = {0};
    is_int(weft_engine_suspend(f->a, &item, 1, f->arena, &answer, &err), WEFT_OK, "suspended");
    expect_why(f, &lease.id, "suspended", "waits for signals at approval; it times out at ");
}

static void put_budget(struct fixture *f, const struct weft_budget *budget)
{
    struct weft_err err = {0};
    is_int(weft_engine_budget_put(f->b, "default", budget, &err), WEFT_OK, "budget %s is put: %s",
           budget->name, err.text);
}

CASE(why_budget)
{
    static const char *const named[] = {"team"};
    struct weft_budget_dimension tokens = {.name = "tokens", .hard = 100, .estimate = 30};
    struct weft_budget budget = {.name = "team", .dimension = &tokens, .dimension_count = 1};
    const struct weft_amount much = {.dimension = "tokens", .amount = 500};
    const struct weft_spec spec = {.kind = "job", .budgets = named, .budget_count = 1};
    struct weft_spec costly = spec;
    costly.cost = &much;
    costly.cost_count = 1;
    see_worker(f, NULL, 0);
    struct weft_id first = submit_ok(f, &spec);
    expect_why(f, &first, "ready", "may take it");
    put_budget(f, &budget);
    expect_why(f, &first, "ready", "may take it");
    for (int i = 0; i < 3; i++)
        (void)submit_ok(f, &spec);
    is_int(claim(f, f->b, 10).count, 3, "the budget has room for three");
    struct weft_id last = submit_ok(f, &spec), large = submit_ok(f, &costly);
    expect_why(f, &last, "budget",
               "budget 'team' has 10 of 100 tokens left beside 90 reserved by what runs, and it "
               "costs 30");
    expect_why(f, &last, "budget", "reset by an operator");
    expect_why(f, &large, "budget", "it costs 500 tokens and budget 'team' allows 100 in all");
    budget.every_ms = 3600000;
    put_budget(f, &budget);
    expect_why(f, &last, "budget", "the budget is reset at ");
    tokens.hard = 1000;
    put_budget(f, &budget);
    expect_why(f, &last, "ready", "may take it");
}

CASE(why_names_holders_of_a_lane)
{
    put_lane(f, f->a, &(struct weft_lane){.name = "default", .max_running = 1});
    (void)submit_job(f);
    struct weft_id waits = submit_job(f);
    struct weft_claimed lease = claim_one(f, f->a);
    struct weft_why why = {0};
    struct weft_err err = {0};
    char id[WEFT_ID_TEXT];
    const struct weft_wait_asking asking = {.id = waits, .ns = "default"};
    is_int(weft_engine_why(f->b, &asking, f->arena, &why, &err), WEFT_OK, "answered: %s", err.text);
    weft_id_print(&lease.id, id);
    ok(why.detail && strstr(why.detail, id), "the detail names the execution that runs: %s",
       why.detail ? why.detail : "");
}
