/* SPDX-License-Identifier: Apache-2.0 */

/* The executions of the API: submitting, reading, listing, steering. */

#include "api_fixture.h"

#include "base/arena.h"
#include "base/buf.h"
#include "engine/job/claim.h"
#include "weft/weft.h"

/* Submits one of the kind "k" and puts its id in ret_id. */
static void submit(struct api_fixture *f, const char *spec, char ret_id[64])
{
    is_int(ask_for(f, "POST", "/v1/executions", spec), 201, "submit %s", spec);
    member(f, "id", ret_id);
}

static int ask_about(struct api_fixture *f, const char *method, const char *id, const char *what,
                     const char *body)
{
    char target[200];
    (void)snprintf(target, sizeof(target), "/v1/executions/%s%s", id, what);
    return ask_for(f, method, target, body);
}

/* Claims one and says under which epoch. */
static int32_t claim(struct api_fixture *f, char ret_id[64])
{
    struct weft_arena *arena = weft_arena_new();
    const struct weft_claim wanted = {.worker = "w"};
    struct weft_claim_result result;
    struct weft_err err;
    int32_t epoch = 0;
    if (!weft_engine_claim(f->server.engine, f->ns, &wanted, 1, arena, &result, &err) &&
        result.count == 1) {
        weft_id_print(&result.item[0].id, ret_id);
        epoch = result.item[0].epoch;
    }
    weft_arena_free(arena);
    return epoch;
}

static void test_submit(struct api_fixture *f)
{
    char id[64], again[64], target[100];
    submit(f, "{\"kind\":\"k\",\"payload\":{\"a\": 1},\"key\":\"one\"}", id);
    ok(has(f, "\"state\":\"ready\"") && has(f, "\"duplicate\":false"),
       "the submit answer has state and duplicate");
    (void)snprintf(target, sizeof(target), "/v1/executions/%s", id);
    is_str(f->location, target, "the answer has a Location");
    is_int(ask_for(f, "POST", "/v1/executions",
                   "{\"kind\":\"k\",\"payload\":{\"a\": 1},\"key\":\"one\"}"),
           200, "the same key again");
    member(f, "id", again);
    ok(has(f, "\"duplicate\":true") && strcmp(id, again) == 0,
       "the same key gives the same execution");
    is_int(ask_for(f, "POST", "/v1/executions",
                   "{\"kind\":\"k\",\"payload\":{\"a\":2},\"key\":\"one\"}"),
           409, "another payload under the same key is refused");
    ok(has(f, "\"code\":\"conflict\"") && has(f, "\"field\":\"key\""),
       "another payload under the key is a conflict");
    is_int(ask_for(f, "POST", "/v1/executions", "{\"kind\":"), 400, "half an object");
    ok(has(f, "invalid_json"), "half an object is invalid_json");
    is_int(ask_for(f, "POST", "/v1/executions", NULL), 400,
           "a submission without a body is refused");
    is_int(ask_for(f, "POST", "/v1/executions", "[]"), 400, "an array as body is refused");
    is_int(ask_for(f, "POST", "/v1/executions", "{\"kind\":\"k\",\"pirority\":1}"), 400,
           "an unknown field is refused");
    ok(has(f, "\"code\":\"unknown_field\"") && has(f, "\"field\":\"pirority\""),
       "the error names the misspelled field");
    is_int(ask_for(f, "POST", "/v1/executions", "{}"), 400, "a spec without a kind is refused");
    is_int(ask_for(f, "POST", "/v1/executions?x=1", "{\"kind\":\"k\"}"), 400,
           "an unknown parameter is refused");
    ok(has(f, "\"code\":\"unknown_field\"") && has(f, "\"field\":\"x\""),
       "the error names the unknown parameter");
    is_int(ask_about(f, "GET", id, "/payload", NULL), 200, "the payload can be read");
    is_str(f->text.data, "{\"a\": 1}", "comes back byte for byte");
    is_str(f->type, "application/json", "the payload has its content type");
    is_int(ask_about(f, "POST", id, "/cancel", "{}"), 200,
           "the execution can be cancelled in the end");
}

static void test_submit_many(struct api_fixture *f)
{
    is_int(ask_for(f, "POST", "/v1/executions",
                   " { \"items\" : [{\"kind\":\"k\",\"lane\":\"bulk\"},{\"kynd\":\"k\"},7,"
                   "{\"kind\":\"k\",\"lane\":\"bulk\",\"priority\":99999},"
                   "{\"kind\":\"k\",\"lane\":\"bulk\"}]}"),
           200, "five at once");
    is_int(count_of(f, "\"duplicate\":false"), 2, "the good ones are in");
    is_int(count_of(f, "\"error\":"), 3, "the others are answered each");
    ok(has(f, "{\"items\":[{\"id\":\"") && has(f, "\"field\":\"kynd\""), "in their order");
    is_int(ask_for(f, "POST", "/v1/executions", "{\"\\u0069tems\":[{\"kind\":\"k\"}]}"), 200,
           "items in another spelling");
    is_int(count_of(f, "\"duplicate\":false"), 1, "items in another spelling are items");
    is_int(ask_for(f, "POST", "/v1/executions", "{\"items\":[]}"), 200,
           "an empty list of items is accepted");
    is_str(f->text.data, "{\"items\":[]}", "gets no answers");
    is_int(ask_for(f, "POST", "/v1/executions", "{\"items\":{}}"), 400, "items must be an array");
    is_int(ask_for(f, "POST", "/v1/executions", "{\"items\":[],\"kind\":\"k\"}"), 400,
           "items beside other fields are refused");
    is_int(ask_for(f, "POST", "/v1/executions/cancel", "{\"filter\":{\"kind\":\"k\"}}"), 200,
           "away with them");
    ok(has(f, "\"matched\":3") && has(f, "\"changed\":3") && has(f, "\"more\":false"),
       "a sweep counts");
}

static void test_get(struct api_fixture *f)
{
    char id[64];
    submit(f, "{\"kind\":\"k\",\"tags\":{\"a\":\"b\"},\"delay_ms\":60000,\"tenant\":\"t\"}", id);
    is_int(ask_about(f, "GET", id, "", NULL), 200, "an execution can be read");
    static const char *const fields[] = {
        "id",       "namespace",  "lane",       "kind",        "state",           "priority",
        "tenant",   "tags",       "attempt",    "epoch",       "worker",          "capabilities",
        "progress", "created_at", "started_at", "finished_at", "run_at",          "deadline_at",
        "reason",   "error",      "flow_id",    "node",        "lease_expires_at"};
    for (size_t i = 0; i < WEFT_LEN(fields); i++) {
        char key[40];
        (void)snprintf(key, sizeof(key), "\"%s\":", fields[i]);
        ok(has(f, key), "the execution has the field %s", fields[i]);
    }
    ok(has(f, "\"state\":\"delayed\"") && has(f, "\"tags\":{\"a\":\"b\"}"),
       "the fields have their values");
    f->waited = 0;
    is_int(ask_about(f, "GET", id, "?wait_ms=0", NULL), 200, "without a wait");
    is_int(f->waited, 0, "wait_ms=0 does not wait");
    f->naps = 3;
    is_int(ask_about(f, "GET", id, "?wait_ms=60000", NULL), 200, "a wait of a minute is accepted");
    is_int(f->waited, 4, "a wait ends when the server allows no more sleep");
    is_int(ask_about(f, "GET", id, "?wait_ms=60001", NULL), 400, "a minute is the most");
    is_int(ask_about(f, "GET", id, "?wait_ms=", NULL), 400, "a wait is a number");
    is_int(ask_about(f, "GET", "018f0000-0000-7000-8000-000000000000", "", NULL), 404,
           "an unknown id is not found");
    ok(has(f, "\"code\":\"not_found\""), "the answer has the code not_found");
    is_int(ask_about(f, "GET", "018f", "", NULL), 400, "a malformed id is refused");
    f->ns = "other";
    is_int(ask_about(f, "GET", id, "", NULL), 404, "another namespace does not see it");
    is_int(ask_about(f, "POST", id, "/cancel", NULL), 404, "another namespace cannot cancel it");
    f->ns = "default";
    is_int(ask_about(f, "POST", id, "/cancel", NULL), 200, "cancel without a body");
    f->waited = 0;
    is_int(ask_about(f, "GET", id, "?wait_ms=60000", NULL), 200, "one that is over");
    is_int(f->waited, 0, "a wait for an ended execution does not sleep");
}

static void test_bytes(struct api_fixture *f)
{
    char id[64], claimed[64], body[300];
    submit(f, "{\"kind\":\"k\",\"payload_base64\":\"AAEC\",\"content_type\":\"x/y\"}", id);
    is_int(ask_about(f, "GET", id, "/payload", NULL), 200, "the bytes can be read");
    is_str(f->type, "x/y", "the bytes have their content type");
    is_int(f->text.size, 3, "all bytes come back");
    is_int(ask_about(f, "GET", id, "/result", NULL), 404, "no result before success");
    int32_t epoch = claim(f, claimed);
    is_str(claimed, id, "the submitted execution is claimed");
    (void)snprintf(body, sizeof(body),
                   "{\"items\":[{\"id\":\"%s\",\"epoch\":%d,\"result\":[1, 2]}]}", id, epoch);
    f->ended = 0;
    is_int(ask_for(f, "POST", "/v1/leases/complete", body), 200, "the lease can be completed");
    ok(has(f, "\"state\":\"succeeded\"") && has(f, id), "the completed execution has succeeded");
    is_int(f->ended, 1, "the waiters are woken by the completion");
    is_int(ask_about(f, "GET", id, "/result", NULL), 200, "the result can be read");
    is_str(f->text.data, "[1, 2]", "the result is as it was given");
    is_int(ask_about(f, "GET", id, "/attempts", NULL), 200, "the attempts can be read");
    ok(has(f, "\"ended\":\"completed\"") && has(f, "\"next\":null"), "how its lease ended");
    is_int(ask_about(f, "POST", id, "/cancel", NULL), 409,
           "an ended execution cannot be cancelled");
    ok(has(f, "\"code\":\"not_live\""), "the error code is not_live");
    is_int(ask_about(f, "POST", id, "/priority", "{\"priority\":1}"), 409,
           "the priority of an ended execution cannot be changed");
    is_int(ask_about(f, "POST", id, "/deadline", "{\"deadline_at\":null}"), 409,
           "the deadline of an ended execution cannot be changed");
    is_int(ask_about(f, "POST", id, "/revoke", NULL), 409, "an ended execution cannot be revoked");
    is_int(ask_about(f, "POST", id, "/replay", NULL), 200, "an ended execution can be replayed");
    ok(has(f, "\"state\":\"ready\"") && has(f, "\"capabilities\":"), "the answer is the execution");
    is_int(ask_about(f, "POST", id, "/replay", "{}"), 409, "a second replay is refused");
    is_int(ask_about(f, "POST", id, "/cancel", NULL), 200,
           "the execution can be cancelled in the end");
}

static void test_steer(struct api_fixture *f)
{
    char id[64], claimed[64];
    submit(f, "{\"kind\":\"k\"}", id);
    is_int(ask_about(f, "POST", id, "/priority", "{\"priority\":7}"), 200,
           "the priority can be changed");
    ok(has(f, "\"priority\":7"), "the answer has priority 7");
    is_int(ask_about(f, "POST", id, "/priority", "{}"), 400, "priority must be given");
    is_int(ask_about(f, "POST", id, "/priority", "{\"priority\":99999}"), 400,
           "a priority out of range is refused");
    is_int(ask_about(f, "POST", id, "/deadline", "{\"deadline_at\":\"2999-01-01T00:00:00Z\"}"), 200,
           "the deadline can be set");
    ok(has(f, "\"deadline_at\":\"2999-01-01T00:00:00.000Z\""), "the answer has the deadline");
    is_int(ask_about(f, "POST", id, "/deadline", "{\"deadline_at\":null}"), 200,
           "the deadline can be removed");
    ok(has(f, "\"deadline_at\":null"), "the answer has no deadline");
    is_int(ask_about(f, "POST", id, "/revoke", NULL), 409, "there is no lease to revoke");
    ok(claim(f, claimed) > 0, "the execution is claimed");
    is_int(ask_about(f, "POST", id, "/revoke", NULL), 200, "a lease can be revoked");
    ok(has(f, "\"state\":\"ready\"") && has(f, "\"attempt\":1"),
       "the revoked execution is ready in the same attempt");
    is_int(ask_about(f, "GET", id, "/attempts", NULL), 200,
           "the attempts of the revoked execution can be read");
    ok(has(f, "\"ended\":\"revoked\"") && has(f, "\"worker\":\"w\""), "tell of it");
    is_int(ask_about(f, "POST", id, "/replay", "{\"x\":1}"), 400, "a replay takes no fields");
    ok(has(f, "\"field\":\"x\""), "the error names the field");
    f->ended = 0;
    is_int(ask_about(f, "POST", id, "/cancel", "{\"reason\":\"enough\"}"), 200,
           "the execution can be cancelled");
    ok(has(f, "\"state\":\"cancelled\"") && has(f, "\"reason\":\"enough\""),
       "the cancelled execution has its reason");
    is_int(f->ended, 1, "the waiters are woken by the cancel");
    is_int(ask_about(f, "POST", id, "/cancel", "{\"reason\":\"more\"}"), 200, "cancel it again");
    ok(has(f, "\"reason\":\"enough\""), "changes nothing");
}

/* A claim that waited gets the execution as soon as the call has committed. */
static void claim_at_once(struct api_fixture *f)
{
    const struct weft_claim wanted = {.worker = "next", .max = 1};
    struct weft_arena *arena = weft_arena_new();
    struct weft_claim_result result = {0};
    struct weft_err err = {0};
    is_int(weft_engine_claim(f->server.engine, "default", &wanted, 1, arena, &result, &err),
           WEFT_OK, "the next worker claims");
    is_int((long)result.count, 1, "the claim gets the execution that the call made ready");
    weft_arena_free(arena);
}

static void test_steer_answers(struct api_fixture *f)
{
    char id[64], claimed[64];
    submit(f, "{\"kind\":\"k\"}", id);
    is_int(claim(f, claimed), 1, "the execution is claimed");
    f->committed = claim_at_once;
    is_int(ask_about(f, "POST", id, "/revoke", NULL), 200, "revoked, and claimed at once");
    ok(has(f, "\"state\":\"ready\"") && has(f, "\"epoch\":1,") && !has(f, "\"next\""),
       "the answer is the state that the revoke made, not the next lease");
    f->committed = NULL;
    is_int(ask_about(f, "GET", id, "", NULL), 200, "the execution can be read");
    ok(has(f, "\"state\":\"running\"") && has(f, "\"epoch\":2,"), "shows the next lease");
    is_int(ask_about(f, "POST", id, "/cancel", NULL), 200, "the execution can be cancelled");
    f->committed = claim_at_once;
    is_int(ask_about(f, "POST", id, "/replay", NULL), 200, "replayed, and claimed at once");
    ok(has(f, "\"state\":\"ready\"") && has(f, "\"epoch\":2,"),
       "the answer has the state that the replay made");
    f->committed = NULL;
    is_int(ask_about(f, "POST", id, "/cancel", NULL), 200,
           "the execution can be cancelled in the end");
}

/* Six leases that ended, in pages of four. */
static void test_attempts(struct api_fixture *f)
{
    char id[64], claimed[64];
    submit(f, "{\"kind\":\"k\"}", id);
    for (int i = 0; i < 6; i++) {
        ok(claim(f, claimed) == i + 1, "claim %d", i);
        is_int(ask_about(f, "POST", id, "/revoke", NULL), 200, "the lease can be revoked");
    }
    is_int(ask_about(f, "GET", id, "/attempts?limit=4", NULL), 200, "the first page");
    is_int(count_of(f, "\"ended\":"), 4, "the first page has four attempts");
    ok(has(f, "{\"items\":[{\"epoch\":1,"), "from the oldest on");
    char second[300];
    (void)snprintf(second, sizeof(second), "/attempts?limit=4&%s", next_page(f));
    is_int(ask_about(f, "GET", id, second, NULL), 200, "the second page can be read");
    is_int(count_of(f, "\"ended\":"), 2, "the second page has two attempts");
    ok(has(f, "{\"items\":[{\"epoch\":5,") && has(f, "\"next\":null"),
       "the second page ends with the last attempt");
    is_int(ask_about(f, "GET", id, "/attempts?after=x", NULL), 400, "a bad cursor");
    is_int(ask_about(f, "GET", id, "/attempts?after=-1", NULL), 400,
           "a negative cursor is refused");
    is_int(ask_about(f, "GET", id, "/attempts?after=99999999999999999999", NULL), 400,
           "a cursor above 64 bits is refused");
    is_int(ask_about(f, "POST", id, "/cancel", NULL), 200,
           "the execution can be cancelled in the end");
}

static void test_steer_many(struct api_fixture *f)
{
    char a[64], b[64], body[400];
    submit(f, "{\"kind\":\"k\",\"lane\":\"many\"}", a);
    submit(f, "{\"kind\":\"k\",\"lane\":\"many\"}", b);
    (void)snprintf(body, sizeof(body),
                   "{\"ids\":[\"%s\",\"nonsense\",7,\"018f0000-0000-7000-8000-000000000000\",\"%s\""
                   "],\"reason\":\"r\"}",
                   a, b);
    is_int(ask_for(f, "POST", "/v1/executions/cancel", body), 200, "cancel many");
    is_int(count_of(f, "\"state\":\"cancelled\""), 2, "two are cancelled");
    is_int(count_of(f, "\"error\":"), 3, "three are refused");
    ok(has(f, "{\"id\":\"nonsense\",\"error\":{\"code\":\"invalid_value\""), "nonsense by name");
    ok(has(f, "{\"id\":null,\"error\":"), "an id that is no text is answered with null");
    ok(has(f, "\"code\":\"not_found\""), "an id that does not exist is not found");
    is_int(ask_about(f, "GET", b, "", NULL), 200, "the other execution can be read");
    ok(has(f, "\"reason\":\"r\""), "the reason is stored");
    (void)snprintf(body, sizeof(body), "{\"ids\":[\"%s\"]}", a);
    is_int(ask_for(f, "POST", "/v1/executions/replay", body), 200, "replay by id");
    ok(has(f, "\"state\":\"ready\""), "one is ready");
    is_int(ask_for(f, "POST", "/v1/executions/replay", "{\"filter\":{\"lane\":\"many\"}}"), 200,
           "replay by filter");
    ok(has(f, "\"changed\":1"), "the cancel by filter changes the other");

    is_int(ask_for(f, "POST", "/v1/executions/cancel", "{\"filter\":{}}"), 400, "no filter at all");
    ok(has(f, "\"field\":\"filter\""), "the error names the filter");
    is_int(ask_for(f, "POST", "/v1/executions/cancel", "{}"), 400,
           "a cancel without ids and filter is refused");
    is_int(
        ask_for(f, "POST", "/v1/executions/cancel", "{\"ids\":[],\"filter\":{\"lane\":\"many\"}}"),
        400, "a cancel with ids and filter is refused");
    is_int(ask_for(f, "POST", "/v1/executions/cancel", "{\"ids\":null,\"filter\":null}"), 400,
           "null is absent");
    is_int(ask_for(f, "POST", "/v1/executions/cancel", "{\"ids\":{}}"), 400, "ids are an array");
    is_int(ask_for(f, "POST", "/v1/executions/cancel", "{\"ids\":[],\"ids\":[]}"), 400,
           "ids that are given twice are refused");
    is_int(ask_for(f, "POST", "/v1/executions/cancel", "{\"filter\":{\"lame\":\"x\"}}"), 400,
           "a filter with a typo");
    ok(has(f, "lame"), "the error names the misspelled filter field");
    is_int(ask_for(f, "POST", "/v1/executions/cancel", "{\"ids\":[],\"why\":1}"), 400,
           "an unknown field beside ids is refused");
    is_int(ask_for(f, "POST", "/v1/executions/replay", "{\"ids\":[],\"reason\":\"r\"}"), 400,
           "a replay has no reason");
    is_int(ask_for(f, "POST", "/v1/executions/cancel", "{\"ids\":[]}"), 200,
           "an empty list of ids is accepted");
    is_str(f->text.data, "{\"items\":[]}", "an empty list of ids gets no answers");
    is_int(ask_for(f, "POST", "/v1/executions/cancel", "{\"filter\":{\"lane\":\"many\"}}"), 200,
           "away with them");
}

static void submit_many(struct api_fixture *f, size_t count, const char *spec)
{
    struct weft_buf body;
    weft_buf_init(&body, 1 << 20);
    weft_buf_add_text(&body, "{\"items\":[");
    for (size_t i = 0; i < count; i++) {
        weft_buf_add_text(&body, i ? "," : "");
        weft_buf_add_text(&body, spec);
    }
    weft_buf_add_text(&body, "]}");
    is_int(ask_for(f, "POST", "/v1/executions", body.data), 200, "%zu of %s", count, spec);
    weft_buf_done(&body);
}

static void test_list(struct api_fixture *f)
{
    submit_many(f, 7, "{\"kind\":\"l\",\"lane\":\"list\",\"tags\":{\"a\":\"b:c\"}}");
    submit_many(f, 2, "{\"kind\":\"m\",\"lane\":\"list\",\"key\":\"k&=\",\"tenant\":\"t\"}");
    is_int(ask_for(f, "GET", "/v1/executions?lane=list", NULL), 200, "a list by lane can be read");
    is_int(count_of(f, "\"lane\":\"list\""), 8, "a list by lane has all eight");
    ok(has(f, "\"next\":null"), "in one page");
    is_int(ask_for(f, "GET", "/v1/executions?lane=list&kind=m", NULL), 200, "list by kind");
    is_int(count_of(f, "\"lane\":\"list\""), 1, "one execution has the kind");
    is_int(ask_for(f, "GET", "/v1/executions?tag=a:b%3Ac", NULL), 200, "list by tag");
    is_int(count_of(f, "\"lane\":\"list\""), 7, "seven executions have the tag");
    is_int(ask_for(f, "GET", "/v1/executions?key=k%26%3D", NULL), 200, "list by key");
    is_int(count_of(f, "\"lane\":\"list\""), 1, "one execution has the key");
    is_int(ask_for(f, "GET", "/v1/executions?tenant=t&state=ready", NULL), 200,
           "list by tenant and state");
    is_int(count_of(f, "\"lane\":\"list\""), 1, "one execution has the tenant and the state");

    char target[200] = "/v1/executions?lane=list&limit=3", next[64];
    size_t seen = 0, pages = 0;
    do {
        is_int(ask_for(f, "GET", target, NULL), 200, "a page of the list can be read");
        seen += count_of(f, "\"lane\":\"list\"");
        member(f, "next", next);
        (void)snprintf(target, sizeof(target), "/v1/executions?lane=list&limit=3&after=%s", next);
    } while (*next && ++pages < 20);
    is_int(seen, 8, "all pages together have all of them");

    static const struct {
        const char *query, *field;
    } bad[] = {
        {"after=nonsense", "after"}, {"after=", "after"},    {"limit=0", "limit"},
        {"limit=1001", "limit"},     {"limit=ten", "limit"}, {"state=sleeping", "state"},
        {"state=", "state"},         {"tag=x", "tag"},       {"tag=:x", "tag"},
        {"lane=", "lane"},           {"lane=a%20b", "lane"}, {"flow=x", "flow"},
        {"lane=a&lane=b", "lane"},   {"tag=a%20b:c", "tag"}, {"key=", "key"},
    };
    for (size_t i = 0; i < WEFT_LEN(bad); i++) {
        char field[40];
        (void)snprintf(target, sizeof(target), "/v1/executions?%s", bad[i].query);
        (void)snprintf(field, sizeof(field), "\"field\":\"%s\"", bad[i].field);
        is_int(ask_for(f, "GET", target, NULL), 400, "%s is refused", bad[i].query);
        ok(has(f, field), "the error names the field %s", bad[i].field);
    }
}

/* Lines: everything, whatever its number, in parts. */
static void test_lines(struct api_fixture *f)
{
    submit_many(f, 900, "{\"kind\":\"n\",\"lane\":\"lines\"}");
    submit_many(f, 300, "{\"kind\":\"n\",\"lane\":\"lines\"}");
    f->accept = "text/html, application/x-ndjson;q=0.9";
    is_int(ask_for(f, "GET", "/v1/executions?lane=lines", NULL), 200,
           "a list as lines can be read");
    is_str(f->type, "application/x-ndjson", "lines have the type application/x-ndjson");
    is_int(count_of(f, "\"lane\":\"lines\""), 1200, "all 1,200 of them");
    is_int(count_of(f, "\n"), 1200, "one a line");
    ok(f->parts > 2, "sent in %zu parts", f->parts);
    is_int(ask_for(f, "GET", "/v1/executions?lane=nothing", NULL), 200,
           "a list without rows can be read as lines");
    is_int(f->text.size, 0, "no lines give an empty body");
    is_int(ask_for(f, "GET", "/v1/executions?lane=lines&limit=5", NULL), 400,
           "lines with a limit are refused");
    is_int(ask_for(f, "GET", "/v1/executions?after=nonsense", NULL), 400, "a bad cursor is found");
    is_str(f->type, "application/json", "before anything was sent");
    f->accept = NULL;
}

int main(void)
{
    struct api_fixture f;
    fixture_init(&f);
    test_submit(&f);
    test_submit_many(&f);
    test_get(&f);
    test_bytes(&f);
    test_steer(&f);
    test_steer_answers(&f);
    test_attempts(&f);
    test_steer_many(&f);
    test_list(&f);
    test_lines(&f);
    fixture_done(&f);
    return tap_done();
}
