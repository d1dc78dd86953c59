/* SPDX-License-Identifier: Apache-2.0 */

/* Reading messages: the values of the fields, the refusals, and the field that an error names. */

#include "base/limits.h"
#include "base/moment.h"
#include "unit/wire_fixture.h"

#define ID "\"018f0000-0000-7000-8000-000000000001\""
#define EXECUTION                                                                                  \
    "\"id\":" ID ",\"namespace\":\"n\",\"lane\":\"l\",\"kind\":\"k\",\"state\":\"ready\""
#define LEASE "\"id\":" ID ",\"epoch\":1"

static void test_spec(void)
{
    struct weft_spec spec;
    struct weft_err err;
    ok(read_text(&weft_wire_spec, "{\"kind\":\"mail\"}", &spec, &err) == WEFT_OK, "the least spec");
    is_str(spec.kind, "mail", "the least spec has its kind");
    ok(!spec.ns && !spec.lane && !spec.payload && !spec.content_type && !spec.tenant && !spec.key &&
           !spec.tags && !spec.capabilities && !spec.policy,
       "the spec has no other texts");
    ok(spec.run_at_us == 0 && spec.delay_ms == 0 && spec.deadline_us == 0, "the spec has no time");

    ok(read_text(&weft_wire_spec,
                 "{\"kind\":\"k\",\"lane\":null,\"payload_base64\":null,\"content_type\":null,"
                 "\"priority\":null,\"delay_ms\":null,\"run_at\":null,\"deadline_at\":null,"
                 "\"capabilities\":null,\"tenant\":null,\"tags\":null,\"key\":null,"
                 "\"policy\":null}",
                 &spec, &err) == WEFT_OK,
       "null is absent %s", err.text);
    ok(!spec.lane && !spec.payload && !spec.content_type && !spec.policy,
       "fields that are null are absent");

    ok(read_text(&weft_wire_spec, "{\"kind\":\"k\",\"payload\": null ,\"payload_base64\":null}",
                 &spec, &err) == WEFT_OK,
       "null is a value for payload");
    ok(spec.payload_size == 4 && memcmp(spec.payload, "null", 4) == 0,
       "the payload is JSON's null");

    ok(read_text(&weft_wire_spec, "{\"payload\":\t{ \"\\u0000\" : 1.0e1 }\n,\"k\\u0069nd\":\"k\"}",
                 &spec, &err) == WEFT_OK,
       "names may be written with escapes");
    is_str(spec.kind, "k", "an escaped name is found");
    ok(spec.payload_size == 20 && memcmp(spec.payload, "{ \"\\u0000\" : 1.0e1 }", 20) == 0,
       "a payload is kept byte for byte");
    ok(!spec.content_type, "the content type is left open");

    ok(read_text(&weft_wire_spec, "{\"kind\":\"k\",\"payload_base64\":\"\\/\\/8=\"}", &spec,
                 &err) == WEFT_OK,
       "base64 with escaped slashes");
    ok(spec.payload_size == 2 && memcmp(spec.payload, "\xff\xff", 2) == 0,
       "base64 with escaped slashes is decoded");
    is_str(spec.content_type, "application/octet-stream", "the type of base64 bytes is not JSON");
    ok(read_text(&weft_wire_spec,
                 "{\"content_type\":\"a/b\",\"kind\":\"k\",\"payload_base64\":\"\"}", &spec,
                 &err) == WEFT_OK &&
           spec.payload && spec.payload_size == 0,
       "an empty payload is a payload");
    is_str(spec.content_type, "a/b", "an empty payload has the type that was given");
    ok(read_text(&weft_wire_spec,
                 "{\"kind\":\"k\",\"capabilities\":[],\"tags\":{},\"policy\":{\"max_attempts\":2,"
                 "\"backoff\":{\"initial_ms\":0,\"jitter\":false}}}",
                 &spec, &err) == WEFT_OK &&
           spec.capability_count == 0 && spec.tag_count == 0,
       "empty lists");
    ok(spec.policy && spec.policy->max_attempts == 2 && spec.policy->initial_ms == -1 &&
           spec.policy->no_jitter,
       "a policy in its C form");
}

static void test_moments(void)
{
    struct weft_spec spec;
    struct weft_steer steer;
    struct weft_err err;
    ok(read_text(&weft_wire_spec, "{\"kind\":\"k\",\"run_at\":\"1970-01-01T00:00:00Z\"}", &spec,
                 &err) == WEFT_OK &&
           spec.run_at_us == 1,
       "the first moment of all is in the past, not absent");
    ok(read_text(&weft_wire_spec, "{\"kind\":\"k\",\"deadline_at\":\"1970-01-01T00:00:00Z\"}",
                 &spec, &err) == WEFT_OK &&
           spec.deadline_us == 1,
       "a deadline at the epoch becomes one microsecond");
    ok(read_text(&weft_wire_deadline, "{\"deadline_at\":\"1970-01-01T02:00:00\\u002b02:00\"}",
                 &steer, &err) == WEFT_OK &&
           steer.deadline_us == 1,
       "a deadline at the epoch that is set later becomes one microsecond too");
    ok(read_text(&weft_wire_deadline, "{\"deadline_at\":null}", &steer, &err) == WEFT_OK &&
           steer.deadline_us == 0,
       "null takes it away");
    ok(read_text(&weft_wire_deadline, "{\"deadline_at\":\"2026-01-02T03:04:05.123456Z\"}", &steer,
                 &err) == WEFT_OK &&
           steer.deadline_us == (weft_usec)1767323045123456,
       "microseconds are kept");
}

static void test_leases(void)
{
    struct weft_failure failure;
    struct weft_renew renew;
    struct weft_put_back back;
    struct weft_claim claim;
    struct weft_err err;
    ok(read_text(&weft_wire_failure, "{" LEASE "}", &failure, &err) == WEFT_OK &&
           !failure.permanent && failure.retry_after_ms == 0,
       "a failure may be tried again, by the backoff");
    ok(failure.epoch == 1 && failure.id.byte[0] == 0x01 && failure.id.byte[15] == 0x01,
       "the failure has its lease");
    ok(read_text(&weft_wire_failure, "{" LEASE ",\"retryable\":true,\"retry_after_ms\":0}",
                 &failure, &err) == WEFT_OK &&
           !failure.permanent && failure.retry_after_ms == -1,
       "0 is at once");
    ok(read_text(&weft_wire_failure, "{" LEASE ",\"retryable\":false,\"retry_after_ms\":1e3}",
                 &failure, &err) == WEFT_OK &&
           failure.permanent && failure.retry_after_ms == 1000,
       "a failure that is not retryable has its wait");
    ok(read_text(&weft_wire_renew, "{" LEASE "}", &renew, &err) == WEFT_OK && !renew.has_progress &&
           renew.lease_ms == 0,
       "a renewal says nothing of progress");
    ok(read_text(&weft_wire_renew, "{" LEASE ",\"progress\":null}", &renew, &err) == WEFT_OK &&
           !renew.has_progress,
       "a renewal with progress null has no progress");
    ok(read_text(&weft_wire_renew, "{" LEASE ",\"progress\":{}}", &renew, &err) == WEFT_OK &&
           renew.has_progress && renew.percent == 0 && !renew.note,
       "an empty one is one");
    ok(read_text(&weft_wire_renew, "{" LEASE ",\"progress\":{\"note\":\"n\",\"percent\":7}}",
                 &renew, &err) == WEFT_OK &&
           renew.has_progress && renew.percent == 7 && strcmp(renew.note, "n") == 0,
       "percent and note");
    ok(read_text(&weft_wire_release, "{" LEASE "}", &back, &err) == WEFT_OK &&
           back.delay_ms == 1000,
       "a release has the default delay");
    ok(read_text(&weft_wire_release, "{" LEASE ",\"delay_ms\":0}", &back, &err) == WEFT_OK &&
           back.delay_ms == 0,
       "a release with a delay of 0 has it");
    ok(read_text(&weft_wire_claim, "{\"worker\":\"w\"}", &claim, &err) == WEFT_OK &&
           claim.max == 0 && claim.lease_ms == 0 && claim.wait_ms == 0 && claim.lane_count == 0,
       "the least claim leaves the rest to the engine");
}

static void test_others(void)
{
    struct weft_filter filter;
    struct weft_lane lane;
    struct weft_execution execution;
    struct weft_err err;
    ok(read_text(&weft_wire_filter, "{\"tag\":\"k:v:w\",\"state\":\"\\u0072eady\"}", &filter,
                 &err) == WEFT_OK &&
           filter.tag && filter.state == WEFT_STATE_READY,
       "a filter is read");
    is_str(filter.tag->key, "k", "the key of its tag");
    is_str(filter.tag->value, "v:w", "the value of the tag");
    ok(read_text(&weft_wire_filter, "{\"tag\":\"k:\"}", &filter, &err) == WEFT_OK &&
           strcmp(filter.tag->value, "") == 0,
       "a value may be empty");
    ok(read_text(&weft_wire_lane, "{\"paused\":true,\"weights\":{\"a\":2}}", &lane, &err) ==
               WEFT_OK &&
           !lane.name && lane.paused && lane.weight_count == 1 && lane.weights[0].weight == 2,
       "a lane without its name");
    ok(read_text(&weft_wire_execution, "{" EXECUTION "}", &execution, &err) == WEFT_OK &&
           execution.percent == -1,
       "an execution without progress");
}

struct refusal {
    const struct weft_wire_type *type;
    const char *text;
    enum weft_rc rc;
    const char *field, *story;
};

#define INVALID WEFT_INVALID_VALUE
#define UNKNOWN WEFT_UNKNOWN_FIELD
static const struct refusal refusal[] = {
    {&weft_wire_spec, "[]", INVALID, NULL, "Spec must be an object"},
    {&weft_wire_spec, "{}", INVALID, "kind", "kind is missing"},
    {&weft_wire_spec, "{\"kind\":null}", INVALID, "kind", "kind is missing"},
    {&weft_wire_spec, "{\"kind\":1}", INVALID, "kind", "kind must be a string"},
    {&weft_wire_spec, "{\"kind\":\"a\\u0000\"}", INVALID, "kind",
     "kind must be a string without U+0000"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"kind\":\"k\"}", INVALID, "kind", "kind is given twice"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"k\\u0069nd\":null}", INVALID, "kind",
     "kind is given twice"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"priorty\":1}", UNKNOWN, "priorty",
     "there is no field 'priorty', did you mean 'priority'?"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"dleay_ms\":1}", UNKNOWN, "dleay_ms",
     "there is no field 'dleay_ms', did you mean 'delay_ms'?"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"Lane\":1}", UNKNOWN, "Lane",
     "there is no field 'Lane', did you mean 'lane'?"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"ns\":\"x\"}", UNKNOWN, "ns", "there is no field 'ns'"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"\":1}", UNKNOWN, "", "there is no field ''"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"a\\u0000\":1}", UNKNOWN, "a\\u0000",
     "there is no field 'a\\u0000'"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"flow_id\":null}", UNKNOWN, "flow_id",
     "there is no field 'flow_id'"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"payload\":1,\"payload_base64\":\"\"}", INVALID,
     "payload_base64", "give payload or payload_base64, not both"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"payload\":null,\"payload_base64\":\"\"}", INVALID,
     "payload_base64", "give payload or payload_base64, not both"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"payload_base64\":\"a\"}", INVALID, "payload_base64",
     "payload_base64 must be base64 with padding and without line breaks"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"payload_base64\":{}}", INVALID, "payload_base64",
     "payload_base64 must be a string of base64"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"delay_ms\":0,\"run_at\":\"2026-01-02T03:04:05Z\"}",
     INVALID, "run_at", "give delay_ms or run_at, not both"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"run_at\":1}", INVALID, "run_at",
     "run_at must be a moment between 1970 and 9999 like \"2026-01-02T03:04:05.678Z\""},
    {&weft_wire_spec, "{\"kind\":\"k\",\"deadline_at\":\"1969-12-31T23:59:59Z\"}", INVALID,
     "deadline_at",
     "deadline_at must be a moment between 1970 and 9999 like \"2026-01-02T03:04:05.678Z\""},
    {&weft_wire_spec, "{\"kind\":\"k\",\"priority\":1.5}", INVALID, "priority",
     "priority must be a whole number"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"priority\":\"1\"}", INVALID, "priority",
     "priority must be a whole number"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"priority\":4294967296}", INVALID, "priority",
     "priority is 4294967296, allowed are -32768 to 32767"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"delay_ms\":1e30}", INVALID, "delay_ms",
     "delay_ms must be a whole number"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"capabilities\":\"gpu\"}", INVALID, "capabilities",
     "capabilities must be a list of strings"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"capabilities\":[\"a\",1]}", INVALID, "capabilities",
     "capabilities must be a list of strings without U+0000"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"tags\":[]}", INVALID, "tags",
     "tags must be an object of strings"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"tags\":{\"a\":1}}", INVALID, "tags",
     "tags must be an object of strings without U+0000"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"tags\":{\"a\":null}}", INVALID, "tags",
     "tags must be an object of strings without U+0000"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"policy\":[]}", INVALID, "policy",
     "policy must be an object"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"policy\":{\"tries\":1}}", UNKNOWN, "policy.tries",
     "there is no field 'tries' in policy"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"policy\":{\"lease_ms\":1000,\"lease_ms\":null}}", INVALID,
     "policy.lease_ms", "policy.lease_ms is given twice"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"policy\":{\"backoff\":{\"max\":1}}}", UNKNOWN,
     "policy.backoff.max", "there is no field 'max' in policy.backoff"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"policy\":{\"backoff\":{\"jiter\":true}}}", UNKNOWN,
     "policy.backoff.jiter", "there is no field 'jiter' in policy.backoff, did you mean 'jitter'?"},
    {&weft_wire_spec, "{\"kind\":\"k\",\"policy\":{\"backoff\":[]}}", INVALID, "policy.backoff",
     "backoff must be an object"},
    {&weft_wire_replica, "{\"id\":" ID ",\"state\":\"ill\"}", INVALID, "state",
     "state must be one of alive dead"},
    {&weft_wire_replica, "{\"settings\":\"x\"}", INVALID, "settings", "settings must be an object"},
    {&weft_wire_scanner, "{\"partitions\":[1]}", INVALID, "partitions",
     "partitions must be the first and the last of a range"},
    {&weft_wire_scanner, "{\"partitions\":[9,8]}", INVALID, "partitions",
     "partitions must be the first and the last of a range"},
    {&weft_wire_scanner, "{\"partitions\":[0,256]}", INVALID, "partitions",
     "partitions must be the first and the last of a range"},
    {&weft_wire_scanner, "{\"partitions\":[0,1,2]}", INVALID, "partitions",
     "partitions must be a list of two whole numbers"},
    {&weft_wire_scanner, "{\"lag_ms\":-1}", INVALID, "lag_ms",
     "lag_ms must be a whole number of milliseconds"},
    {&weft_wire_scanner, "{\"counters\":{\"a\":-1}}", INVALID, "counters",
     "counters must be an object of whole numbers from 0 on"},
    {&weft_wire_scanner, "{\"counters\":[]}", INVALID, "counters",
     "counters must be an object of whole numbers"},
    {&weft_wire_flow_spec, "{}", INVALID, "nodes", "nodes is missing"},
    {&weft_wire_flow_spec, "{\"nodes\":{}}", INVALID, "nodes", "nodes must be a list of objects"},
    {&weft_wire_flow_spec, "{\"nodes\":[3]}", INVALID, "nodes[0]",
     "nodes[0]: Node must be an object"},
    {&weft_wire_flow_spec, "{\"nodes\":[{\"kind\":\"k\"}]}", INVALID, "nodes[0].name",
     "nodes[0]: name is missing"},
    {&weft_wire_flow_spec, "{\"nodes\":[{\"name\":\"a\",\"kind\":\"k\"},{\"name\":\"b\"}]}",
     INVALID, "nodes[1].kind", "nodes[1] ('b'): kind is missing"},
    {&weft_wire_flow_spec, "{\"nodes\":[{\"after\":\"b\",\"name\":\"a\",\"kind\":\"k\"}]}", INVALID,
     "nodes[0].after", "nodes[0] ('a'): after must be a list of strings"},
    {&weft_wire_flow_spec, "{\"nodes\":[{\"name\":\"a\",\"kind\":\"k\",\"key\":\"x\"}]}", UNKNOWN,
     "nodes[0].key", "nodes[0] ('a'): there is no field 'key'"},
    {&weft_wire_flow_spec,
     "{\"nodes\":[{\"name\":\"a\",\"kind\":\"k\",\"join\":{\"policy\":\"most\"}}]}", INVALID,
     "nodes[0].join.policy", "nodes[0] ('a'): join.policy must be one of all any quorum"},
    {&weft_wire_flow_spec, "{\"nodes\":[{\"name\":\"a\",\"kind\":\"k\",\"policy\":{\"tries\":1}}]}",
     UNKNOWN, "nodes[0].policy.tries", "nodes[0] ('a'): there is no field 'tries' in policy"},
    {&weft_wire_flow_growth, "{\"nodes\":[]}", INVALID, "revision", "revision is missing"},
    {&weft_wire_flow_growth, "{\"revision\":0,\"nodes\":[]}", INVALID, "revision",
     "revision is 0, allowed are 1 to 2147483647"},
    {&weft_wire_flow_cancel, "{\"policy\":\"none\"}", INVALID, "policy",
     "policy must be one of all pending flow_only"},
    {&weft_wire_flow_submitted, "{\"id\":" ID ",\"state\":\"open\",\"nodes\":{\"a\":1}}", INVALID,
     "nodes", "nodes must be an object of ids (UUIDs)"},
    {&weft_wire_claimed,
     "{" LEASE ",\"lane\":\"l\",\"kind\":\"k\",\"upstream\":{\"a\":{\"id\":" ID "}}}", INVALID,
     "upstream.a.state", "upstream.a: state is missing"},
    {&weft_wire_claim, "{}", INVALID, "worker", "worker is missing"},
    {&weft_wire_claim, "{\"worker\":\"w\",\"max\":0}", INVALID, "max",
     "max is 0, allowed are 1 to 1000"},
    {&weft_wire_claim, "{\"worker\":\"w\",\"max\":-1}", INVALID, "max",
     "max is -1, allowed are 1 to 1000"},
    {&weft_wire_claim, "{\"worker\":\"w\",\"max\":4294967297}", INVALID, "max",
     "max is 4294967297, allowed are 1 to 1000"},
    {&weft_wire_claim, "{\"worker\":\"w\",\"lease_ms\":0}", INVALID, "lease_ms",
     "lease_ms is 0, allowed are 1000 to 86400000"},
    {&weft_wire_renew, "{\"epoch\":1}", INVALID, "id", "id is missing"},
    {&weft_wire_renew, "{\"id\":" ID "}", INVALID, "epoch", "epoch is missing"},
    {&weft_wire_renew, "{\"id\":\"x\",\"epoch\":1}", INVALID, "id", "id must be an id (a UUID)"},
    {&weft_wire_renew, "{\"id\":5,\"epoch\":1}", INVALID, "id", "id must be an id (a UUID)"},
    {&weft_wire_renew, "{\"id\":" ID ",\"epoch\":2147483648}", INVALID, "epoch",
     "epoch is 2147483648, allowed are 0 to 2147483647"},
    {&weft_wire_renew, "{" LEASE ",\"lease_ms\":0}", INVALID, "lease_ms",
     "lease_ms is 0, allowed are 1000 to 86400000"},
    {&weft_wire_renew, "{" LEASE ",\"progress\":5}", INVALID, "progress",
     "progress must be an object"},
    {&weft_wire_renew, "{" LEASE ",\"progress\":{\"percent\":\"5\"}}", INVALID, "progress.percent",
     "progress.percent must be a whole number"},
    {&weft_wire_renew, "{" LEASE ",\"progress\":{\"note\":\"\",\"note\":\"\"}}", INVALID,
     "progress.note", "progress.note is given twice"},
    {&weft_wire_renew, "{" LEASE ",\"progress\":{\"percnt\":5}}", UNKNOWN, "progress.percnt",
     "there is no field 'percnt' in progress, did you mean 'percent'?"},
    {&weft_wire_complete, "{" LEASE ",\"result\":1,\"result_base64\":\"\"}", INVALID,
     "result_base64", "give result or result_base64, not both"},
    {&weft_wire_failure, "{" LEASE ",\"retry_after_ms\":-1}", INVALID, "retry_after_ms",
     "retry_after_ms is -1, allowed are 0 to 316224000000"},
    {&weft_wire_failure, "{" LEASE ",\"retryable\":1}", INVALID, "retryable",
     "retryable must be true or false"},
    {&weft_wire_failure, "{" LEASE ",\"error_class\":\"x\"}", UNKNOWN, "error_class",
     "there is no field 'error_class'"},
    {&weft_wire_delay, "{" LEASE "}", INVALID, "delay_ms", "delay_ms is missing"},
    {&weft_wire_priority, "{}", INVALID, "priority", "priority is missing"},
    {&weft_wire_cancel, "{\"ids\":[]}", UNKNOWN, "ids", "there is no field 'ids'"},
    {&weft_wire_filter, "{\"state\":\"done\"}", INVALID, "state",
     "state must be one of ready delayed blocked running suspended held succeeded failed "
     "cancelled expired skipped"},
    {&weft_wire_filter, "{\"tag\":\"k\"}", INVALID, "tag", "tag must be KEY:VALUE"},
    {&weft_wire_filter, "{\"tag\":\":v\"}", INVALID, "tag", "tag must be KEY:VALUE"},
    {&weft_wire_filter, "{\"flow\":\"x\"}", INVALID, "flow", "flow must be an id (a UUID)"},
    {&weft_wire_filter, "{\"flow\":\"00000000-0000-0000-0000-000000000000\"}", INVALID, "flow",
     "flow must be an id (a UUID)"},
    {&weft_wire_filter, "{\"flow_id\":\"x\"}", UNKNOWN, "flow_id", "there is no field 'flow_id'"},
    {&weft_wire_lane, "{\"weights\":{\"a\":\"2\"}}", INVALID, "weights",
     "weights must be an object of whole numbers from 1 to 1000"},
    {&weft_wire_lane, "{\"pause\":true}", UNKNOWN, "pause",
     "there is no field 'pause', did you mean 'paused'?"},
    {&weft_wire_budget, "{\"budget\":\"b\"}", INVALID, "dimensions", "dimensions is missing"},
    {&weft_wire_budget, "{\"dimensions\":[]}", INVALID, "dimensions",
     "dimensions must be an object of objects"},
    {&weft_wire_budget, "{\"dimensions\":{\"t\":{\"hard\":0}}}", INVALID, "dimensions.t.hard",
     "dimensions.t: hard is 0, allowed are 1 to 1000000000000000"},
    {&weft_wire_budget, "{\"dimensions\":{\"t\":{\"sfot\":1}}}", UNKNOWN, "dimensions.t.sfot",
     "dimensions.t: there is no field 'sfot', did you mean 'soft'?"},
    {&weft_wire_budget, "{\"dimensions\":{},\"reset\":{\"every_months\":1201}}", INVALID,
     "reset.every_months", "reset.every_months is 1201, allowed are 1 to 1200"},
    {&weft_wire_usage, "{\"id\":" ID ",\"epoch\":1,\"totals\":{\"t\":\"1\"}}", INVALID, "totals",
     "totals must be an object of whole numbers"},
    {&weft_wire_sweep, "{\"matched\":-1}", INVALID, "matched",
     "matched is -1, allowed are 0 to 9223372036854775807"},
};

static void test_refusals(void)
{
    for (size_t i = 0; i < WEFT_LEN(refusal); i++) {
        max_align_t item[64];
        struct weft_err err;
        is_int(read_text(refusal[i].type, refusal[i].text, item, &err), refusal[i].rc,
               "refused: %s", refusal[i].text);
        is_str(err.text, refusal[i].story, "refused: %s: why", refusal[i].text);
        is_str(err.field, refusal[i].field, "refused: %s: who is to blame", refusal[i].text);
        struct weft_json value = json_of(refusal[i].text);
        ok(weft_wire_read(refusal[i].type, &value, arena, item, NULL) == refusal[i].rc,
           "refused without a place for the error: %s", refusal[i].text);
    }
}

/* What a hostile body may make us keep, and say. */
static void test_bounds(void)
{
    struct weft_buf text;
    struct weft_spec spec;
    struct weft_err err;
    weft_buf_init(&text, 1 << 20);
    weft_buf_add_text(&text, "{\"kind\":\"k\",\"capabilities\":[\"\"");
    for (int i = 0; i < 1000; i++)
        weft_buf_add_text(&text, ",\"\"");
    weft_buf_add_text(&text, "]}");
    is_int(read_text(&weft_wire_spec, text.data, &spec, &err), WEFT_TOO_LARGE, "a long list");
    is_str(err.field, "capabilities", "the error names the list");

    weft_buf_clear(&text);
    weft_buf_add_text(&text, "{\"");
    for (int i = 0; i < 1000; i++)
        weft_buf_add_text(&text, "\xc3\xa4");
    weft_buf_add_text(&text, "\":1}");
    is_int(read_text(&weft_wire_spec, text.data, &spec, &err), WEFT_UNKNOWN_FIELD, "a long name");
    is_int(strlen(err.field), WEFT_NAME_MAX, "a long field name is cut in the error");
    weft_buf_done(&text);
}

static void test_lenient(void)
{
    struct weft_json value =
        json_of("{\"lane\":\"l\",\"new\":{\"a\":1},\"ready\":3,\"newer\":[null]}");
    struct weft_lane_count count;
    struct weft_err err = {0};
    ok(weft_wire_read_answer(&weft_wire_lane_count, &value, arena, &count, &err) == WEFT_OK &&
           count.count[WEFT_STATE_READY] == 3,
       "a newer server may say more %s", err.text);
    struct weft_execution execution;
    value = json_of("{" EXECUTION ",\"flow_id\":" ID
                    ",\"node\":\"a\","
                    "\"progress\":{\"percent\":1,\"eta\":2}}");
    ok(weft_wire_read_answer(&weft_wire_execution, &value, arena, &execution, &err) == WEFT_OK &&
           execution.percent == 1,
       "inside objects as well %s", err.text);
    value = json_of("{" EXECUTION
                    ",\"policy\":{\"max_attempts\":7,\"new\":{\"a\":1},"
                    "\"backoff\":{\"curve\":\"steep\",\"initial_ms\":0}}}");
    ok(weft_wire_read_answer(&weft_wire_execution, &value, arena, &execution, &err) == WEFT_OK &&
           execution.policy && execution.policy->max_attempts == 7 &&
           execution.policy->initial_ms == -1,
       "unknown fields in the policy of an answer are ignored %s", err.text);
    value = json_of("{\"id\":7}");
    ok(weft_wire_read_answer(&weft_wire_execution, &value, arena, &execution, &err) == INVALID,
       "an id of another type is refused in an answer");

    struct weft_json member;
    value = json_of("{\"a\":1,\"\\u0062\":[2]}");
    ok(weft_wire_member(&value, "b", &member) && member.kind == WEFT_JSON_ARRAY,
       "a member is found by its escaped name");
    ok(!weft_wire_member(&value, "c", &member), "one that is not there");
    ok(!weft_wire_member(&member, "a", &member), "a list has no members");
}

static void test_errors(void)
{
    struct weft_err got, err;
    struct weft_wire_detail detail = {.fence = WEFT_FENCE_UNKNOWN};
    struct weft_json value = json_of(
        "{\"code\":\"fenced\",\"message\":\"gone\",\"hint\":\"h\","
        "\"field\":\"f\",\"reason\":\"timed_out\"}");
    ok(weft_wire_read_error(&value, arena, &got, &detail, &err) == WEFT_OK, "an error is read");
    ok(got.rc == WEFT_FENCED && detail.fence == WEFT_FENCE_TIMED_OUT, "code and reason");
    is_str(got.text, "gone", "the error has its message");
    is_str(got.hint, "h", "the error has its hint");
    is_str(got.field, "f", "the error has its field");

    value = json_of("{\"code\":\"budget_exceeded\",\"left\":{\"tokens\":5,\"new\":\"x\",\"b\":0}}");
    ok(weft_wire_read_error(&value, arena, &got, &detail, &err) == WEFT_OK &&
           got.rc == WEFT_BUDGET_EXCEEDED && detail.fence == WEFT_FENCE_NONE,
       "an error about a budget is read");
    ok(detail.left_count == 2 && strcmp(detail.left[0].dimension, "tokens") == 0 &&
           detail.left[0].amount == 5 && strcmp(detail.left[1].dimension, "b") == 0,
       "the error has what is left; what is no amount is passed over");
    value = json_of("{\"code\":\"budget_exceeded\",\"left\":[1]}");
    ok(weft_wire_read_error(&value, arena, &got, &detail, &err) == WEFT_OK &&
           detail.left_count == 0,
       "a list of what is left is passed over");

    for (int rc = WEFT_OK + 1; rc < WEFT_RC_COUNT; rc++) {
        value = json_of(weft_arena_printf(arena, "{\"code\":\"%s\",\"hint\":null,\"field\":null}",
                                          weft_rc_wire((enum weft_rc)rc)));
        ok(weft_wire_read_error(&value, arena, &got, NULL, &err) == WEFT_OK && (int)got.rc == rc &&
               !got.hint && !got.field && strcmp(got.text, weft_rc_text(got.rc)) == 0,
           "code %s", weft_rc_wire((enum weft_rc)rc));
    }
    static const char *const strange[] = {"{\"code\":\"ok\"}", "{\"code\":\"newer\"}"};
    for (size_t i = 0; i < WEFT_LEN(strange); i++) {
        value = json_of(strange[i]);
        ok(weft_wire_read_error(&value, arena, &got, &detail, &err) == WEFT_OK &&
               got.rc == WEFT_INTERNAL && detail.fence == WEFT_FENCE_NONE,
           "%s is an internal one", strange[i]);
    }
    value = json_of("[]");
    ok(weft_wire_read_error(&value, arena, &got, &detail, &err) == INVALID, "a list is none");
    value = json_of("{\"code\":5}");
    ok(weft_wire_read_error(&value, arena, &got, &detail, &err) == INVALID,
       "an error with a number for its code is refused");
}

int main(void)
{
    arena = weft_arena_new();
    test_spec();
    test_moments();
    test_leases();
    test_others();
    test_refusals();
    test_bounds();
    test_lenient();
    test_errors();
    weft_arena_free(arena);
    return tap_done();
}
