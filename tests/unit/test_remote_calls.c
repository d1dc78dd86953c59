/* SPDX-License-Identifier: Apache-2.0 */

/* The calls of weft.h over a server: what each asks, and how its answer is read. */

#include "remote_fixture.h"

/* ---- Working --------------------------------------------------------------------------------- */

static void test_claim(void)
{
    begin(
        &(struct take){
            .body = "{\"items\":[{\"id\":\"" ID_TEXT "\",\"epoch\":3,\"attempt\":2,"
                    "\"lane\":\"l\",\"kind\":\"k\",\"payload\":{\"a\": 1},\"content_type\":"
                    "\"application/json\",\"priority\":7,\"tenant\":null,\"tags\":{\"a\":\"b\"},"
                    "\"created_at\":\"2026-01-01T00:00:00.001Z\",\"deadline_at\":null,"
                    "\"lease_expires_at\":\"2026-01-01T00:00:30.000Z\",\"lease_ms\":30000,"
                    "\"flow_id\":null,\"node\":null,\"upstream\":{}}]}"},
        1);
    static const char *const lanes[] = {"l", "m"};
    struct weft_claims claims = {0};
    const struct weft_claim claim[2] = {{.worker = "w",
                                         .lanes = lanes,
                                         .lane_count = 2,
                                         .max = 5,
                                         .lease_ms = 2000,
                                         .wait_ms = 1500},
                                        {.worker = "w", .ns = "red"}};
    is_int(weft_claim(weft, claim, 1, &claims, &err), WEFT_OK, "claimed %s", err.text);
    asked_for(0, "POST", "/v1/claims",
              "{\"worker\":\"w\",\"lanes\":[\"l\",\"m\"],\"max\":5,\"lease_ms\":2000,"
              "\"wait_ms\":1500}");
    const struct weft_claimed *item = claims.item;
    ok(claims.count == 1 && item->epoch == 3 && item->attempt == 2 && item->priority == 7 &&
           item->lease_ms == 30000 && !item->tenant && item->tag_count == 1,
       "the claimed item has its numbers");
    is_str(item->kind, "k", "the claimed item has its kind");
    ok(item->payload_size == 8 && memcmp(item->payload, "{\"a\": 1}", 8) == 0,
       "the claimed item has its payload");
    weft_claims_free(&claims);
    is_int(weft_claim(weft, claim, 2, &claims, &err), WEFT_OK, "two claims in a call");
    ok(claims.count == 2 && claims.item[0].claim == 0 && claims.item[1].claim == 1,
       "the items name their claims");
    ok(!strstr(stage.asked[1].body, "wait_ms"), "without waiting for one of them");
    ok(strstr(stage.asked[2].header, "X-Weft-Namespace: red") != NULL, "in their namespaces");
    weft_claims_free(&claims);
    struct weft_claim bad = {.worker = "w", .wait_ms = 60001};
    is_int(weft_claim(weft, &bad, 1, &claims, &err), WEFT_INVALID_VALUE, "waiting has a bound");
    is_str(err.field, "wait_ms", "the error names wait_ms");
    bad.wait_ms = -1;
    is_int(weft_claim(weft, &bad, 1, &claims, NULL), WEFT_INVALID_VALUE, "on both sides");
    end();
}

static void test_leases(void)
{
    const struct take take[] = {
        {.body = "{\"items\":[{\"id\":\"" ID_TEXT "\",\"lease_expires_at\":"
                 "\"2026-01-01T00:00:30.000Z\"},{\"id\":\"" ID2_TEXT "\",\"error\":{\"code\":"
                 "\"fenced\",\"message\":\"gone\",\"reason\":\"timed_out\"}}]}"},
        {.body = "{\"items\":[{\"id\":\"" ID_TEXT "\",\"state\":\"succeeded\"}]}"},
        {.body = "{\"items\":[{\"id\":\"" ID_TEXT
                 "\",\"state\":\"delayed\",\"run_at\":\"2026-01-01T00:00:00.001Z\"}]}"},
        {.body = "{\"items\":[{\"id\":\"" ID_TEXT "\",\"state\":\"ready\",\"run_at\":null}]}"},
    };
    begin(take, WEFT_LEN(take));
    struct weft_lease_answer answer[2];
    const struct weft_renew renew[2] = {
        {.id = id, .epoch = 1, .has_progress = true, .percent = 50, .note = "half"},
        {.id = id2, .epoch = 2}};
    is_int(weft_renew(weft, renew, 2, answer, &err), WEFT_OK, "renewed");
    ok(answer[0].err.rc == WEFT_OK && answer[0].lease_expires_us == 1767225630000000,
       "one of them");
    ok(answer[1].err.rc == WEFT_FENCED && answer[1].fence == WEFT_FENCE_TIMED_OUT,
       "the other is gone, and why");
    asked_for(0, "POST", "/v1/leases/renew",
              "{\"items\":[{\"id\":\"" ID_TEXT
              "\",\"epoch\":1,\"progress\":{\"percent\":50,"
              "\"note\":\"half\"}},{\"id\":\"" ID2_TEXT "\",\"epoch\":2}]}");
    const struct weft_complete done = {
        .id = id, .epoch = 1, .result = "hi", .result_size = 2, .content_type = "text/plain"};
    ok(weft_complete(weft, &done, 1, answer, &err) == WEFT_OK &&
           answer->state == WEFT_STATE_SUCCEEDED,
       "completed");
    asked_for(1, "POST", "/v1/leases/complete",
              "{\"items\":[{\"id\":\"" ID_TEXT
              "\",\"epoch\":1,\"result_base64\":\"aGk=\",\"content_type\":\"text/plain\"}]}");
    const struct weft_failure failed = {
        .id = id, .epoch = 1, .error_class = "c", .message = "m", .retry_after_ms = -1};
    ok(weft_fail_lease(weft, &failed, 1, answer, &err) == WEFT_OK &&
           answer->state == WEFT_STATE_DELAYED && answer->run_at_us == 1767225600001000,
       "failed");
    asked_for(2, "POST", "/v1/leases/fail",
              "{\"items\":[{\"id\":\"" ID_TEXT
              "\",\"epoch\":1,\"class\":\"c\",\"message\":\"m\",\"retry_after_ms\":0}]}");
    const struct weft_put_back back = {.id = id, .epoch = 1};
    ok(weft_release(weft, &back, 1, answer, &err) == WEFT_OK && answer->state == WEFT_STATE_READY &&
           answer->run_at_us == 0,
       "released");
    asked_for(3, "POST", "/v1/leases/release",
              "{\"items\":[{\"id\":\"" ID_TEXT "\",\"epoch\":1,\"delay_ms\":0}]}");
    ok(weft_delay(weft, &back, 1, answer, &err) == WEFT_OK, "delayed");
    asked_for(4, "POST", "/v1/leases/delay",
              "{\"items\":[{\"id\":\"" ID_TEXT "\",\"epoch\":1,\"delay_ms\":0}]}");
    end();
}

/* ---- Steering -------------------------------------------------------------------------------- */

static void test_steer(void)
{
    const struct take take[] = {
        {.body = "{\"items\":[{\"id\":\"" ID_TEXT "\",\"state\":\"cancelled\",\"changed\":false},"
                 "{\"error\":{\"code\":\"not_live\",\"message\":\"over\"}}]}"},
        {.body = "{\"items\":[{\"id\":\"" ID2_TEXT "\",\"state\":\"cancelled\"}]}"},
        {.body = "{\"id\":\"" ID_TEXT "\",\"state\":\"ready\"}"},
        {.status = 404, .body = ERROR("not_found", "null")},
        {.body = "{\"matched\":5,\"changed\":4,\"more\":true}"},
    };
    begin(take, WEFT_LEN(take));
    struct weft_steered answer[3];
    const struct weft_steer cancel[3] = {
        {.id = id, .reason = "a"}, {.id = id2, .reason = "a"}, {.id = id2, .reason = "b"}};
    is_int(weft_steer(weft, WEFT_STEER_CANCEL, cancel, 3, answer, &err), WEFT_OK, "cancelled");
    ok(answer[0].state == WEFT_STATE_CANCELLED && !answer[0].changed &&
           answer[1].err.rc == WEFT_NOT_LIVE && answer[2].changed,
       "each has its answer");
    asked_for(0, "POST", "/v1/executions/cancel",
              "{\"ids\":[\"" ID_TEXT "\",\"" ID2_TEXT "\"],\"reason\":\"a\"}");
    asked_for(1, "POST", "/v1/executions/cancel", "{\"ids\":[\"" ID2_TEXT "\"],\"reason\":\"b\"}");
    const struct weft_steer priority[2] = {{.id = id, .priority = -3}, {.id = id2}};
    is_int(weft_steer(weft, WEFT_STEER_REPRIORITIZE, priority, 2, answer, &err), WEFT_OK,
           "priorities");
    ok(answer[0].state == WEFT_STATE_READY && answer[1].err.rc == WEFT_NOT_FOUND,
       "each priority has its own answer");
    asked_for(2, "POST", "/v1/executions/" ID_TEXT "/priority", "{\"priority\":-3}");
    struct weft_sweep sweep;
    const struct weft_steer_all all = {
        .kind = WEFT_STEER_REPLAY,
        .filter = {.lane = "l", .state = WEFT_STATE_FAILED, .flow = id2},
        .max = 7};
    ok(weft_steer_all(weft, &all, &sweep, &err) == WEFT_OK && sweep.matched == 5 &&
           sweep.changed == 4 && sweep.more,
       "a sweep");
    asked_for(4, "POST", "/v1/executions/replay",
              "{\"filter\":{\"lane\":\"l\",\"state\":\"failed\",\"flow\":\"" ID2_TEXT
              "\"},\"max\":7}");
    end();
}

static void test_lanes_workers_passes(void)
{
    const struct take take[] = {
        {.body = "{}"},
        {.body = "{\"released\":3}"},
        {.body = "{\"name\":\"lease_expiry\",\"handled\":2,\"failed\":1,\"more\":true,"
                 "\"counters\":{\"ended\":1,\"newer\":9,\"processed\":2,\"processed\":3},"
                 "\"next_due_at\":\"2026-01-01T00:00:00.001Z\",\"duration_ms\":4}"},
        {.body = "{\"more\":true}"},
        {.status = 404, .body = ERROR("not_found", "\"known: a, b\"")},
        {.body = "{\"lane\":\"a/b\"}"},
    };
    begin(take, WEFT_LEN(take));
    const struct weft_weight weight = {"t", 2};
    const struct weft_lane lane = {
        .name = "a/b", .max_running = 5, .weights = &weight, .weight_count = 1};
    is_int(weft_lane_put(weft, &lane, &err), WEFT_OK, "a lane");
    asked_for(0, "PUT", "/v1/lanes/a%2Fb", NULL);
    ok(!strstr(stage.asked[0].body, "a/b") && strstr(stage.asked[0].body, "\"t\":2"),
       "the request has the settings of the lane: %s", stage.asked[0].body);
    uint64_t released = 0;
    ok(weft_goodbye(weft, "w:1", &released, &err) == WEFT_OK && released == 3, "a goodbye");
    asked_for(1, "POST", "/v1/workers/w%3A1/goodbye", "");
    struct weft_pass_report report;
    ok(weft_run_pass(weft, WEFT_SCANNER_LEASE_EXPIRY, 0, &report, &err) == WEFT_OK &&
           report.handled == 2 && report.failed == 1 && report.more &&
           report.next_due_us == 1767225600001000,
       "a pass");
    asked_for(2, "POST", "/v1/scanners/lease_expiry/run", "");
    ok(report.counter_count == 2 && strcmp(report.counter[0].name, "processed") == 0 &&
           report.counter[0].value == 2 && strcmp(report.counter[1].name, "ended") == 0 &&
           report.counter[1].value == 1,
       "the known counters of the pass are read");
    is_int(weft_run_pass(weft, WEFT_SCANNER_INTAKE, 0, &report, &err), WEFT_UNAVAILABLE,
           "an answer that is no report");
    is_int(weft_run_pass(weft, WEFT_SCANNER_INTAKE, 0, &report, &err), WEFT_NOT_FOUND,
           "a scanner that the server does not have");
    is_int(weft_run_pass(weft, WEFT_SCANNER_COUNT, 0, &report, &err), WEFT_INVALID_VALUE,
           "a scanner out of range is refused");
    is_int(weft_lane_remove(weft, "a/b", &err), WEFT_OK, "a lane's settings are removed");
    asked_for(5, "DELETE", "/v1/lanes/a%2Fb", "");
    end();
}

#define TOKEN_BODY(more)                                                                           \
    "{\"id\":7,\"name\":\"t\",\"scopes\":[\"read\",\"work\"],\"namespace\":null,\"created_at\":"   \
    "\"2026-01-01T00:00:00.001Z\",\"expires_at\":null,\"last_used_at\":\"2026-01-01T00:00:00."     \
    "002Z\","                                                                                      \
    "\"rotated_at\":null,\"old_expires_at\":null" more "}"

static void test_tokens(void)
{
    const struct take take[] = {
        {.status = 201, .body = TOKEN_BODY(",\"token\":\"weft_7_x\"")},
        {.body = TOKEN_BODY(",\"token\":\"weft_8_y\"")},
        {.body = "{\"items\":[" TOKEN_BODY("") "],\"next\":\"7\"}"},
        {.body = "{\"items\":[],\"next\":null}"},
        {.body = TOKEN_BODY("")},
        {.status = 403, .body = ERROR("forbidden", "null")},
        {.body = TOKEN_BODY("")},
    };
    begin(take, WEFT_LEN(take));
    static const char *const scopes[] = {"read", "work"};
    const struct weft_token_spec spec = {
        .name = "t", .scopes = scopes, .scope_count = 2, .ns = "red", .expires_ms = 5};
    struct weft_tokens tokens = {0};
    is_int(weft_token_create(weft, &spec, &tokens, &err), WEFT_OK, "a token %s", err.text);
    asked_for(0, "POST", "/v1/tokens",
              "{\"name\":\"t\",\"scopes\":[\"read\",\"work\"],\"namespace\":\"red\","
              "\"expires_ms\":5}");
    ok(tokens.count == 1 && tokens.item->id == 7 && tokens.item->scope_count == 2 &&
           strcmp(tokens.item->token, "weft_7_x") == 0,
       "the token has its secret");
    weft_tokens_free(&tokens);
    const struct weft_token_rotation rotation = {.id = 7, .grace_ms = -1};
    is_int(weft_token_rotate(weft, &rotation, &tokens, &err), WEFT_OK, "a rotation");
    asked_for(1, "POST", "/v1/tokens/7/rotate", "{\"grace_ms\":0}");
    is_str(tokens.item->token, "weft_8_y", "gives another secret");
    weft_tokens_free(&tokens);
    is_int(weft_tokens(weft, &tokens, &err), WEFT_OK, "the list");
    asked_for(2, "GET", "/v1/tokens?limit=1000", NULL);
    asked_for(3, "GET", "/v1/tokens?limit=1000&after=7", NULL);
    ok(tokens.count == 1 && tokens.item->last_used_us == 1767225600002000 && !tokens.item->token,
       "in all its pages");
    weft_tokens_free(&tokens);
    is_int(weft_token_revoke(weft, 7, &err), WEFT_OK, "a revocation");
    asked_for(4, "DELETE", "/v1/tokens/7", "");
    is_int(weft_token_create(weft, &spec, &tokens, &err), WEFT_FORBIDDEN, "one that is refused");
    is_int(weft_token_create(weft, &spec, &tokens, &err), WEFT_UNAVAILABLE,
           "an answer without a secret is none");
    is_str(err.hint, "outcome_unknown", "the hint says that the outcome is unknown");
    end();
}

#define SCANNER(name)                                                                              \
    "{\"name\":\"" name "\",\"replica\":\"" ID_TEXT                                                \
    "\",\"host\":\"h\",\"enabled\":true,"                                                          \
    "\"interval_ms\":1000,\"batch\":10,\"namespace\":null,\"partitions\":[3,9],\"passes\":7,"      \
    "\"failures\":1,\"last_pass_at\":\"2026-01-01T00:00:00.001Z\",\"duration_ms\":2,"              \
    "\"next_at\":null,\"lag_ms\":5,\"last_error\":\"e\",\"counters\":{\"processed\":6},\"new\":1}"

static void test_replicas(void)
{
    const struct take take[] = {
        {.body = "{\"items\":[{\"id\":\"" ID_TEXT "\",\"host\":\"h\",\"pid\":4,\"version\":\"9\","
                 "\"url\":\"http://h:1\",\"state\":\"alive\",\"started_at\":null,\"seen_at\":"
                 "\"2026-01-01T00:00:00.001Z\",\"settings\":{\"a\":1}}],\"next\":\"n\"}"},
        {.body = "{\"items\":[{\"id\":\"" ID2_TEXT "\",\"host\":\"h\",\"pid\":5,\"version\":\"9\","
                 "\"url\":\"http://h:2\",\"state\":\"dead\",\"settings\":{}}],\"next\":null}"},
        {.body = "{\"items\":[" SCANNER("intake") "," SCANNER("later") "],\"next\":null}"},
        {.body = "{\"items\":[{}],\"next\":null}"},
    };
    begin(take, WEFT_LEN(take));
    struct weft_replicas replicas = {0};
    is_int(weft_replicas(weft, &replicas, &err), WEFT_OK, "replicas %s", err.text);
    ok(replicas.count == 2 && replicas.item[0].alive && !replicas.item[1].alive &&
           replicas.item[0].pid == 4 && replicas.item[0].seen_us == 1767225600001000,
       "the replicas of both pages are read");
    is_str(replicas.item[0].settings, "{\"a\":1}", "the replica has its settings as text");
    asked_for(1, "GET", "/v1/replicas?limit=1000&after=n", NULL);
    weft_replicas_free(&replicas);
    ok(!replicas.item && !replicas.arena, "nothing is left");
    struct weft_scanners scanners = {0};
    is_int(weft_scanners(weft, &scanners, &err), WEFT_OK, "scanners %s", err.text);
    const struct weft_scanner_status *one = scanners.item;
    ok(scanners.count == 2 && one->enabled && one->interval_ms == 1000 && one->batch == 10 &&
           !one->ns && one->partition_first == 3 && one->partition_last == 9,
       "how one is set");
    ok(one->passes == 7 && one->failures == 1 && one->duration_us == 2000 && one->lag_us == 5000 &&
           one->next_us == 0 && one->counter_count == 1 && one->counters[0].value == 6,
       "the counters of the scanner are read");
    is_str(scanners.item[1].name, "later", "one that this version does not know is there too");
    asked_for(2, "GET", "/v1/scanners?limit=1000", NULL);
    weft_scanners_free(&scanners);
    is_int(weft_scanners(weft, &scanners, &err), WEFT_UNAVAILABLE, "items that are no scanners");
    weft_replicas_free(NULL);
    weft_scanners_free(NULL);
    end();
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void test_describe(void)
{
    const struct take take[] = {
        {.body = EXECUTION(ID_TEXT, "running")},
        {.status = 404, .body = ERROR("not_found", "null")},
        {.body = EXECUTION(ID_TEXT, "running")},
        {.body = EXECUTION(ID_TEXT, "succeeded")},
        {.status = 404, .body = ERROR("not_found", "null")},
    };
    begin(take, WEFT_LEN(take));
    struct weft_page page = {0};
    const struct weft_id both[] = {id, id2};
    is_int(weft_describe(weft, both, 2, &page, &err), WEFT_OK, "two executions %s", err.text);
    const struct weft_execution *one = page.item;
    ok(page.count == 2 && one->state == WEFT_STATE_RUNNING && one->epoch == 2 &&
           one->percent == 40 && one->capability_count == 1 && one->tag_count == 1,
       "one is there");
    is_str(one->error_class, "c", "the execution has its error");
    is_str(one->ns, "blue", "the execution has its namespace");
    ok(page.item[1].state == WEFT_STATE_NONE && page.item[1].percent == -1 &&
           memcmp(&page.item[1].id, &id2, sizeof(id2)) == 0,
       "the other is not");
    weft_page_free(&page);
    is_int(weft_wait(weft, &id, 60, &page, &err), WEFT_OK, "a wait that is over");
    is_int(page.item[0].state, WEFT_STATE_RUNNING, "before the execution is");
    ok(strstr(stage.asked[2].path, "?wait_ms=") != NULL, "waits at the server");
    weft_page_free(&page);
    is_int(weft_wait(weft, &id, 30000, &page, &err), WEFT_OK, "a wait");
    is_int(page.item[0].state, WEFT_STATE_SUCCEEDED, "the wait gives the ended execution");
    asked_for(3, "GET", "/v1/executions/" ID_TEXT "?wait_ms=20000", NULL);
    weft_page_free(&page);
    is_int(weft_wait(weft, &id2, 10, &page, &err), WEFT_NOT_FOUND,
           "a wait for an unknown id is not found");
    is_int(weft_wait(weft, &id2, -1, &page, &err), WEFT_INVALID_VALUE,
           "a negative wait is refused");
    end();
}

static void test_lists(void)
{
    const struct take take[] = {
        {.body = "{\"items\":[" EXECUTION(ID_TEXT, "ready") "],\"next\":\"c/1\"}"},
        {.body = "{\"items\":[{\"epoch\":1,\"attempt\":1,\"worker\":\"w\",\"ended\":\"lost\"}],"
                 "\"next\":\"2 \"}"},
        {.body = "{\"items\":[{\"epoch\":2,\"attempt\":1,\"worker\":\"w\",\"ended\":\"failed\","
                 "\"error\":{\"class\":\"c\",\"message\":\"m\"}}],\"next\":null}"},
        {.body = "{\"age_ms\":250,\"as_of\":\"2026-01-01T00:00:00.001Z\",\"items\":[{\"lane\":"
                 "\"l\",\"ready\":3,"
                 "\"running\":2,\"succeeded_1h\":9}]}"},
        {.body = "{\"items\":[{\"lane\":\"l\",\"paused\":true,\"max_running\":4,\"weights\":"
                 "{\"t\":2}}],\"next\":null}"},
        {.body = "{\"items\":[{\"worker\":\"w\",\"lanes\":[\"l\"],\"capabilities\":[],\"leases\":5,"
                 "\"seen_at\":\"2026-01-01T00:00:00.001Z\"}],\"next\":null}"},
    };
    begin(take, WEFT_LEN(take));
    struct weft_page page = {0};
    const struct weft_tag tag = {"k", "a b"};
    const struct weft_filter filter = {.ns = "red",
                                       .lane = "l",
                                       .kind = "k",
                                       .tenant = "t",
                                       .key = "a&b",
                                       .state = WEFT_STATE_READY,
                                       .tag = &tag,
                                       .flow = id2};
    is_int(weft_list(weft, &filter, 7, "x=", &page, &err), WEFT_OK, "a page %s", err.text);
    ok(page.count == 1 && page.item[0].state == WEFT_STATE_READY, "the page has one execution");
    is_str(page.next, "c/1", "the page has a cursor");
    asked_for(0, "GET",
              "/v1/executions?lane=l&kind=k&state=ready&tenant=t&key=a%26b&flow=" ID2_TEXT
              "&tag=k%3Aa%20b&limit=7&after=x%3D",
              NULL);
    ok(strstr(stage.asked[0].header, "X-Weft-Namespace: red") != NULL, "in its namespace");
    weft_page_free(&page);
    struct weft_attempts attempts = {0};
    is_int(weft_attempts(weft, &id, &attempts, &err), WEFT_OK, "attempts %s", err.text);
    ok(attempts.count == 2 && attempts.item[0].epoch == 1, "the attempts of all pages are read");
    is_str(attempts.item[1].error_class, "c", "the attempt has its error");
    asked_for(2, "GET", "/v1/executions/" ID_TEXT "/attempts?after=2%20", NULL);
    weft_attempts_free(&attempts);
    struct weft_counts counts = {0};
    is_int(weft_counts(weft, "l", &counts, &err), WEFT_OK, "counts %s", err.text);
    ok(counts.count == 1 && counts.item[0].count[WEFT_STATE_READY] == 3 &&
           counts.item[0].succeeded_1h == 9 && counts.as_of_us == 1767225600001000,
       "the counts have their moment");
    is_int(counts.age_ms, 250, "the counts have their age");
    asked_for(3, "GET", "/v1/counts?lane=l", NULL);
    weft_counts_free(&counts);
    struct weft_lanes lanes = {0};
    is_int(weft_lanes(weft, &lanes, &err), WEFT_OK, "lanes %s", err.text);
    ok(lanes.count == 1 && lanes.item[0].paused && lanes.item[0].max_running == 4 &&
           lanes.item[0].weight_count == 1,
       "the lane has its settings");
    weft_lanes_free(&lanes);
    struct weft_workers workers = {0};
    is_int(weft_workers(weft, &workers, &err), WEFT_OK, "workers %s", err.text);
    ok(workers.count == 1 && workers.item[0].leases == 5 && workers.item[0].lane_count == 1,
       "the worker has its leases");
    weft_workers_free(&workers);
    end();
}

static void test_bytes(void)
{
    const struct take take[] = {
        {.raw = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"},
        {.status = 404, .body = ERROR("not_found", "null")},
    };
    begin(take, WEFT_LEN(take));
    struct weft_bytes bytes = {0};
    is_int(weft_result(weft, &id, &bytes, &err), WEFT_OK, "a result %s", err.text);
    ok(bytes.size == 5 && memcmp(bytes.data, "hello", 5) == 0, "the result has its bytes");
    is_str(bytes.content_type, "text/plain", "the result has its content type");
    asked_for(0, "GET", "/v1/executions/" ID_TEXT "/result", NULL);
    weft_bytes_free(&bytes);
    is_int(weft_payload(weft, &id, &bytes, &err), WEFT_NOT_FOUND, "a missing payload is not found");
    asked_for(1, "GET", "/v1/executions/" ID_TEXT "/payload", NULL);
    end();
}

int main(void)
{
    ok(weft_id_parse(ID_TEXT, 36, &id) && weft_id_parse(ID2_TEXT, 36, &id2), "ids");
    test_claim();
    test_leases();
    test_steer();
    test_lanes_workers_passes();
    test_tokens();
    test_replicas();
    test_describe();
    test_lists();
    test_bytes();
    return tap_done();
}
