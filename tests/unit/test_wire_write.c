/* SPDX-License-Identifier: Apache-2.0 */

/* Writing messages: every type there and back again, and how bytes travel. */

#include "unit/wire_fixture.h"

#include "core/result.h"

#define ID "\"018f0000-0000-7000-8000-000000000001\""

struct trip {
    const char *name;
    const struct weft_wire_type *type;
    const char *text; /* as it is written */
};

/* Every field of every message; the written text must be read as the same message. */
static const struct trip trip[] = {
    {"least spec", &weft_wire_spec, "{\"kind\":\"mail\"}"},
    {"full spec", &weft_wire_spec,
     "{\"lane\":\"l\",\"kind\":\"k\",\"payload\":{\"a\": [1, 2.50]},"
     "\"content_type\":\"application/json\",\"priority\":-7,\"delay_ms\":5,"
     "\"deadline_at\":\"2030-01-02T03:04:05.678Z\",\"capabilities\":[\"gpu\",\"x\"],"
     "\"tenant\":\"t\",\"tags\":{\"k\":\"v\",\"e\":\"\"},\"key\":\"\\\"quoted\\\"\","
     "\"policy\":{\"max_attempts\":3,\"backoff\":{\"kind\":\"fixed\",\"initial_ms\":0,"
     "\"factor\":1.5,\"max_ms\":9,\"jitter\":false},\"attempt_timeout_ms\":7,"
     "\"lease_ms\":2000,\"no_retry\":[\"a\",\"b\"],\"max_lost\":2,\"retention_ms\":11}}"},
    {"spec with limits", &weft_wire_spec,
     "{\"kind\":\"k\",\"gate\":\"customer:42\",\"budgets\":[\"a\",\"b\"],"
     "\"cost\":{\"tokens\":500,\"usd\":0}}"},
    {"spec with a moment", &weft_wire_spec,
     "{\"kind\":\"k\",\"run_at\":\"2030-01-02T03:04:05.678Z\"}"},
    {"spec with an empty policy", &weft_wire_spec, "{\"kind\":\"k\",\"policy\":{}}"},
    {"spec with a null payload", &weft_wire_spec, "{\"kind\":\"k\",\"payload\":null}"},
    {"spec with bytes", &weft_wire_spec,
     "{\"kind\":\"k\",\"payload_base64\":\"AP8=\",\"content_type\":\"image/png\"}"},
    {"submitted", &weft_wire_submitted, "{\"id\":" ID ",\"state\":\"delayed\",\"duplicate\":true}"},
    {"execution", &weft_wire_execution,
     "{\"id\":" ID ",\"namespace\":\"n\",\"lane\":\"l\",\"kind\":\"k\",\"state\":\"running\","
     "\"priority\":1,\"tenant\":\"t\",\"key\":\"y\",\"tags\":{\"a\":\"b\"},"
     "\"capabilities\":[\"c\"],\"attempt\":2,\"epoch\":3,\"lost\":4,\"worker\":\"w\","
     "\"progress\":{\"percent\":0,\"note\":\"n\"},"
     "\"created_at\":\"2026-01-01T00:00:00.001Z\",\"started_at\":\"2026-01-01T00:00:00.002Z\","
     "\"finished_at\":\"2026-01-01T00:00:00.003Z\",\"run_at\":\"2026-01-01T00:00:00.004Z\","
     "\"deadline_at\":\"2026-01-01T00:00:00.005Z\","
     "\"lease_expires_at\":\"2026-01-01T00:00:00.006Z\",\"reason\":\"r\","
     "\"error\":{\"class\":\"c\",\"message\":\"m\",\"detail\":null},\"flow_id\":null,\"node\":null,"
     "\"attempts_used\":2,\"attempts_left\":23,"
     "\"next_attempt_at\":\"2026-01-01T00:00:00.007Z\","
     "\"not_retried_because\":\"class_in_no_retry\","
     "\"policy\":{\"max_attempts\":25,\"backoff\":{\"kind\":\"exponential\",\"initial_ms\":0,"
     "\"factor\":2,\"max_ms\":9,\"jitter\":true},\"attempt_timeout_ms\":0,"
     "\"lease_ms\":2000,\"no_retry\":[],\"max_lost\":2,\"retention_ms\":null},"
     "\"result_size\":12,\"suspended_at\":null,\"timeout_at\":null,\"escalated\":false,\"gate\":"
     "null,\"budgets\":[]}"},
    {"bare execution", &weft_wire_execution,
     "{\"id\":" ID ",\"namespace\":\"n\",\"lane\":\"l\",\"kind\":\"k\",\"state\":\"ready\","
     "\"priority\":0,\"tenant\":null,\"key\":null,\"tags\":{},\"capabilities\":[],"
     "\"attempt\":0,\"epoch\":0,\"lost\":0,\"worker\":null,\"progress\":null,"
     "\"created_at\":null,\"started_at\":null,\"finished_at\":null,\"run_at\":null,"
     "\"deadline_at\":null,\"lease_expires_at\":null,\"reason\":null,\"error\":null,"
     "\"flow_id\":null,\"node\":null,\"attempts_used\":0,\"attempts_left\":0,"
     "\"next_attempt_at\":null,\"not_retried_because\":null,\"policy\":null,"
     "\"result_size\":0,\"suspended_at\":null,\"timeout_at\":null,\"escalated\":false,\"gate\":"
     "null,\"budgets\":[]}"},
    {"least claim", &weft_wire_claim, "{\"worker\":\"w\"}"},
    {"claim", &weft_wire_claim,
     "{\"worker\":\"w\",\"lanes\":[\"a\",\"b\"],\"kinds\":[\"k\"],\"capabilities\":[\"c\"],"
     "\"max\":1000,\"lease_ms\":1000,\"wait_ms\":60000}"},
    {"claimed", &weft_wire_claimed,
     "{\"id\":" ID ",\"epoch\":1,\"attempt\":2,\"lane\":\"l\",\"kind\":\"k\","
     "\"payload\":[ 1 ],\"content_type\":\"application/json\",\"priority\":-32768,"
     "\"tenant\":\"t\",\"tags\":{\"a\":\"b\"},\"created_at\":\"2026-01-01T00:00:00.001Z\","
     "\"deadline_at\":\"2026-01-01T00:00:00.002Z\","
     "\"attempt_deadline_at\":\"2026-01-01T00:00:00.004Z\","
     "\"lease_expires_at\":\"2026-01-01T00:00:00.003Z\",\"lease_ms\":30000,\"flow_id\":null,"
     "\"node\":null,"
     "\"upstream\":{}}"},
    {"claimed without a payload", &weft_wire_claimed,
     "{\"id\":" ID ",\"epoch\":1,\"attempt\":2,\"lane\":\"l\",\"kind\":\"k\","
     "\"content_type\":\"application/json\",\"priority\":0,\"tenant\":null,\"tags\":{},"
     "\"created_at\":null,\"deadline_at\":null,\"attempt_deadline_at\":null,"
     "\"lease_expires_at\":null,\"lease_ms\":0,\"flow_"
     "id\":null,"
     "\"node\":null,\"upstream\":{}}"},
    {"renew", &weft_wire_renew,
     "{\"id\":" ID ",\"epoch\":1,\"lease_ms\":5000,\"progress\":{\"percent\":0,"
     "\"note\":\"n\"}}"},
    {"least renew", &weft_wire_renew, "{\"id\":" ID ",\"epoch\":1}"},
    {"complete", &weft_wire_complete, "{\"id\":" ID ",\"epoch\":1,\"result\":\"x\"}"},
    {"complete with null", &weft_wire_complete, "{\"id\":" ID ",\"epoch\":1,\"result\":null}"},
    {"complete without a result", &weft_wire_complete, "{\"id\":" ID ",\"epoch\":1}"},
    {"complete with bytes", &weft_wire_complete,
     "{\"id\":" ID ",\"epoch\":1,\"result_base64\":\"eHl6\",\"content_type\":\"text/plain\"}"},
    {"failure", &weft_wire_failure,
     "{\"id\":" ID ",\"epoch\":1,\"class\":\"c\",\"message\":\"m\",\"retryable\":false,"
     "\"retry_after_ms\":7}"},
    {"failure, again at once", &weft_wire_failure,
     "{\"id\":" ID ",\"epoch\":1,\"retry_after_ms\":0}"},
    {"delay", &weft_wire_delay, "{\"id\":" ID ",\"epoch\":1,\"delay_ms\":0}"},
    {"release", &weft_wire_release, "{\"id\":" ID ",\"epoch\":1,\"delay_ms\":9}"},
    {"least release", &weft_wire_release, "{\"id\":" ID ",\"epoch\":1,\"delay_ms\":0}"},
    {"renewed", &weft_wire_renewed, "{\"lease_expires_at\":\"2026-01-01T00:00:00.006Z\"}"},
    {"finished", &weft_wire_finished,
     "{\"state\":\"delayed\",\"run_at\":\"2026-01-01T00:00:00.006Z\"}"},
    {"cancel", &weft_wire_cancel, "{\"reason\":\"r\"}"},
    {"least cancel", &weft_wire_cancel, "{}"},
    {"replay", &weft_wire_replay, "{\"force\":true}"},
    {"least replay", &weft_wire_replay, "{}"},
    {"priority", &weft_wire_priority, "{\"priority\":0}"},
    {"deadline", &weft_wire_deadline, "{\"deadline_at\":\"2026-01-01T00:00:00.006Z\"}"},
    {"no deadline", &weft_wire_deadline, "{\"deadline_at\":null}"},
    {"filter", &weft_wire_filter,
     "{\"lane\":\"l\",\"kind\":\"k\",\"state\":\"held\",\"tag\":\"k:v:w\",\"tenant\":\"t\","
     "\"key\":\"y\"}"},
    {"empty filter", &weft_wire_filter, "{}"},
    {"sweep", &weft_wire_sweep, "{\"matched\":3,\"changed\":2,\"more\":true,\"next\":\"c\"}"},
    {"attempt", &weft_wire_attempt,
     "{\"epoch\":1,\"attempt\":2,\"worker\":\"w\",\"started_at\":\"2026-01-01T00:00:00.001Z\","
     "\"ended_at\":\"2026-01-01T00:00:00.002Z\",\"ended\":\"timed_out\","
     "\"error\":{\"class\":\"c\",\"message\":null,\"detail\":null},\"run_at\":null}"},
    {"lane", &weft_wire_lane,
     "{\"lane\":\"l\",\"paused\":true,\"max_running\":5,\"retention_ms\":60000,"
     "\"weights\":{\"a\":2,\"b\":3},\"window\":{\"limit\":5,\"per_ms\":1000},"
     "\"rate\":{\"limit\":2,\"per_ms\":500,\"burst\":3}}"},
    {"plain lane", &weft_wire_lane,
     "{\"lane\":\"l\",\"paused\":false,\"max_running\":0,\"retention_ms\":0,\"weights\":{},"
     "\"window\":null,\"rate\":null}"},
    {"budget", &weft_wire_budget,
     "{\"budget\":\"team-a\",\"match\":{\"lane\":\"l\",\"kind\":\"k\",\"tenant\":\"t\"},"
     "\"dimensions\":{\"tokens\":{\"hard\":1000,\"soft\":800,\"estimate\":5,\"used\":6,"
     "\"reserved\":7},\"usd\":{\"hard\":null,\"soft\":null,\"estimate\":0,\"used\":0,"
     "\"reserved\":0}},\"reset\":{\"every_ms\":1000,\"every_months\":null,"
     "\"anchor_at\":\"2026-01-01T00:00:00.001Z\"},\"on_hard\":\"cancel\",\"state\":\"soft\","
     "\"next_reset_at\":\"2026-01-01T00:00:00.002Z\","
     "\"began_at\":\"2026-01-01T00:00:00.003Z\",\"breaches\":8}"},
    {"budget of all by month", &weft_wire_budget,
     "{\"budget\":null,\"match\":{\"lane\":null,\"kind\":null,\"tenant\":null},"
     "\"dimensions\":{},\"reset\":{\"every_ms\":null,\"every_months\":1,\"anchor_at\":null},"
     "\"on_hard\":\"hold\",\"state\":\"hard\",\"next_reset_at\":null,\"began_at\":null,"
     "\"breaches\":0}"},
    {"plain budget", &weft_wire_budget,
     "{\"budget\":\"b\",\"match\":null,\"dimensions\":{},\"reset\":null,\"on_hard\":\"hold\","
     "\"state\":\"ok\",\"next_reset_at\":null,\"began_at\":null,\"breaches\":0}"},
    {"charge", &weft_wire_charge,
     "{\"id\":" ID ",\"dimension\":\"tokens\",\"reserved\":5,\"used\":6,\"settled\":true}"},
    {"usage", &weft_wire_usage,
     "{\"id\":" ID ",\"epoch\":1,\"totals\":{\"tokens\":350,\"a.b\":0}}"},
    {"reported", &weft_wire_reported,
     "{\"budgets\":[{\"name\":\"b\",\"dimension\":\"tokens\",\"used\":5,\"hard\":10,"
     "\"state\":\"soft\"},{\"name\":\"b\",\"dimension\":\"usd\",\"used\":0,\"hard\":null,"
     "\"state\":\"ok\"}]}"},
    {"lane count", &weft_wire_lane_count,
     "{\"lane\":\"l\",\"ready\":1,\"delayed\":2,\"blocked\":3,\"running\":4,\"suspended\":5,"
     "\"held\":6,\"succeeded_1h\":7,\"failed_1h\":8,\"draining\":9,"
     "\"escalated\":0}"},
    {"ended lease", &weft_wire_ended_lease,
     "{\"id\":\"00000000-0000-7000-8000-000000000001\",\"epoch\":3,\"reason\":\"revoked\"}"},
    {"worker", &weft_wire_worker,
     "{\"worker\":\"w\",\"lanes\":[\"l\"],\"capabilities\":[],\"leases\":3,"
     "\"last_seen_at\":\"2026-01-01T00:00:00.002Z\"}"},
    {"replica", &weft_wire_replica,
     "{\"id\":" ID ",\"host\":\"h\",\"pid\":7,\"version\":\"1.2.3\",\"url\":\"http://h:1\","
     "\"state\":\"dead\",\"started_at\":\"2026-01-01T00:00:00.001Z\","
     "\"seen_at\":\"2026-01-01T00:00:00.002Z\",\"carries\":[\"http\"],"
     "\"settings\":{\"a\":[1, {}]}}"},
    {"scanner", &weft_wire_scanner,
     "{\"name\":\"n\",\"replica\":" ID ",\"host\":\"h\",\"enabled\":true,\"interval_ms\":1000,"
     "\"batch\":5,\"pause_ms\":100,\"namespace\":\"x\",\"partitions\":[0,127],\"passes\":9,"
     "\"failures\":1,"
     "\"last_pass_at\":\"2026-01-01T00:00:00.001Z\",\"duration_ms\":12,"
     "\"next_at\":\"2026-01-01T00:00:00.002Z\",\"lag_ms\":34,\"last_error\":\"e\","
     "\"counters\":{\"processed\":3,\"ended\":0}}"},
    {"scanner that never ran", &weft_wire_scanner,
     "{\"name\":\"n\",\"replica\":" ID ",\"host\":null,\"enabled\":false,\"interval_ms\":0,"
     "\"batch\":0,\"pause_ms\":0,\"namespace\":null,\"partitions\":null,\"passes\":0,\"failures\":"
     "0,"
     "\"last_pass_at\":null,\"duration_ms\":0,\"next_at\":null,\"lag_ms\":0,"
     "\"last_error\":null,\"counters\":{}}"},
    {"pass", &weft_wire_pass,
     "{\"name\":\"n\",\"handled\":3,\"failed\":1,\"counters\":{\"processed\":3},\"more\":true,"
     "\"next_due_at\":\"2026-01-01T00:00:00.001Z\",\"duration_ms\":2}"},
    {"claimed node", &weft_wire_claimed,
     "{\"id\":" ID ",\"epoch\":1,\"attempt\":2,\"lane\":\"l\",\"kind\":\"k\","
     "\"content_type\":null,\"priority\":0,\"tenant\":null,\"tags\":{},"
     "\"created_at\":null,\"deadline_at\":null,\"attempt_deadline_at\":null,"
     "\"lease_expires_at\":null,\"lease_ms\":0,"
     "\"flow_id\":" ID ",\"node\":\"n\",\"upstream\":{"
     "\"a\":{\"id\":" ID ",\"state\":\"succeeded\",\"result\":{\"x\": 1},"
     "\"content_type\":\"application/json\"},"
     "\"b\":{\"id\":" ID ",\"state\":\"succeeded\",\"result_base64\":\"eHl6\","
     "\"content_type\":\"text/plain\"},"
     "\"c\":{\"id\":" ID ",\"state\":\"failed\",\"content_type\":null},"
     "\"d\":{\"id\":" ID ",\"state\":\"succeeded\",\"content_type\":null,"
     "\"ref\":\"/v1/executions/018f0000-0000-7000-8000-000000000001/result\"}}}"},
    {"flow", &weft_wire_flow_spec,
     "{\"name\":\"n\",\"key\":\"y\",\"nodes\":[{\"name\":\"a\",\"kind\":\"k\",\"payload\":[1]},"
     "{\"name\":\"b\",\"kind\":\"k\",\"payload_base64\":\"AP8=\",\"content_type\":\"image/png\","
     "\"policy\":{\"backoff\":{\"kind\":\"fixed\"}},\"after\":[\"a\"]},"
     "{\"name\":\"c\",\"kind\":\"k\",\"payload\":{},\"after\":[\"a\",\"b\"],"
     "\"join\":{\"policy\":\"quorum\",\"k\":2,\"on_satisfied\":\"let_run\"}}]}"},
    {"flow without nodes", &weft_wire_flow_spec, "{\"nodes\":[]}"},
    {"flow that was submitted", &weft_wire_flow_submitted,
     "{\"id\":" ID ",\"state\":\"open\",\"nodes\":{\"a\":" ID ",\"b\":" ID "},\"revision\":1,"
     "\"duplicate\":true}"},
    {"growth", &weft_wire_flow_growth,
     "{\"revision\":3,\"nodes\":[{\"name\":\"a\",\"kind\":\"k\"}]}"},
    {"grown", &weft_wire_flow_grown, "{\"revision\":4,\"nodes\":{\"a\":" ID "}}"},
    {"edges", &weft_wire_flow_edging, "{\"revision\":3,\"edges\":[{\"from\":\"a\",\"to\":\"b\"}]}"},
    {"linked", &weft_wire_flow_linked, "{\"revision\":4}"},
    {"cancel of a flow", &weft_wire_flow_cancel, "{\"policy\":\"flow_only\",\"reason\":\"r\"}"},
    {"least cancel of a flow", &weft_wire_flow_cancel, "{}"},
    {"cancelled flow", &weft_wire_flow_cancelled, "{\"state\":\"cancelled\",\"cancelled\":7}"},
    {"flow in a list", &weft_wire_flow,
     "{\"id\":" ID ",\"name\":null,\"state\":\"failed\",\"revision\":2,"
     "\"created_at\":\"2026-01-01T00:00:00.001Z\",\"finished_at\":null,\"cancel\":\"pending\","
     "\"reason\":\"r\",\"node_count\":3}"},
    {"flow with nodes", &weft_wire_flow_page,
     "{\"id\":" ID ",\"name\":\"n\",\"state\":\"open\",\"revision\":2,"
     "\"created_at\":\"2026-01-01T00:00:00.001Z\",\"finished_at\":null,\"cancel\":null,"
     "\"reason\":null,\"node_count\":1,\"counts\":{\"ready\":0,\"delayed\":0,\"blocked\":0,"
     "\"running\":1,\"suspended\":0,\"held\":0,\"succeeded\":0,\"failed\":0,\"cancelled\":0,"
     "\"expired\":0,\"skipped\":0},\"nodes\":[{\"name\":\"a\",\"id\":" ID ","
     "\"state\":\"running\",\"attempt\":1,\"worker\":\"w\","
     "\"started_at\":\"2026-01-01T00:00:00.001Z\",\"finished_at\":null,\"reason\":null,"
     "\"error\":null,\"after\":[\"b\"],\"join\":{\"policy\":\"any\",\"k\":null,"
     "\"on_satisfied\":\"cancel_remaining\"},\"fired\":true,"
     "\"timeout_at\":null,\"escalated\":false,\"waitpoints\":[]}],\"next\":\"c\"}"},
    {"pass that knows of nothing", &weft_wire_pass,
     "{\"name\":\"n\",\"handled\":0,\"failed\":0,\"counters\":{},\"more\":false,"
     "\"next_due_at\":null,\"duration_ms\":0}"},
};

static void test_trips(void)
{
    for (size_t i = 0; i < WEFT_LEN(trip); i++) {
        max_align_t item[64];
        struct weft_err err;
        memset(item, 0xa5, sizeof(item));
        ok(read_text(trip[i].type, trip[i].text, item, &err) == WEFT_OK, "%s: is read %s",
           trip[i].name, err.text);
        is_str(write_text(trip[i].type, item), trip[i].text, "%s: and written", trip[i].name);
    }
}

struct bytes {
    const char *name, *data, *content_type, *want;
    size_t size;
};

#define DEEP(n) n n n n n n n n n n n n

/* A payload must come back as the same bytes with the same content type, whatever it is. */
static void test_bytes(void)
{
    static const char deep[] = DEEP("[[[[[") DEEP("]]]]]"),
                      deeper[] = "[" DEEP("[[[[[") DEEP("]]]]]") "]";
    static const struct bytes row[] = {
        {"JSON", "{\"a\": 1}", "application/json", "\"payload\":{\"a\": 1},", 8},
        {"JSON with a charset", "1", "application/json; charset=utf-8", "\"payload\":1,", 1},
        {"JSON by suffix", "1", "application/problem+JSON", "\"payload\":1,", 1},
        {"nothing but a suffix", "1", "+json", "\"payload_base64\":\"MQ==\",", 1},
        {"another type", "1", "text/plain", "\"payload_base64\":\"MQ==\",", 1},
        {"called JSON", "{", "application/json", "\"payload_base64\":\"ew==\",", 1},
        {"nothing, called JSON", "", "application/json", "\"payload_base64\":\"\",", 0},
        {"nothing", "", "text/plain", "\"payload_base64\":\"\",", 0},
        {"a space before", " 1", "application/json", "\"payload_base64\":\"IDE=\",", 2},
        {"a space after", "1\n", "application/json", "\"payload_base64\":\"MQo=\",", 2},
        {"a NUL", "a\0b", "x/y", "\"payload_base64\":\"YQBi\",", 3},
        {"deep", deep, "application/json", "\"payload\":[[", sizeof(deep) - 1},
        {"too deep", deeper, "application/json", "\"payload_base64\":\"W1tb", sizeof(deeper) - 1},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_claimed item = {.lane = "l",
                                    .kind = "k",
                                    .payload = row[i].data,
                                    .payload_size = row[i].size,
                                    .content_type = row[i].content_type},
                            back;
        const char *text = write_text(&weft_wire_claimed, &item);
        ok(strstr(text, row[i].want) != NULL, "%s: written as %s", row[i].name, row[i].want);
        /* As deep as it stands in the answer to a claim. */
        struct weft_json items = json_of(weft_arena_printf(arena, "{\"items\":[%s]}", text)),
                         value = json_of(text);
        ok(items.kind == WEFT_JSON_OBJECT, "%s: an answer holds it", row[i].name);
        struct weft_err err = {0};
        ok(weft_wire_read_answer(&weft_wire_claimed, &value, arena, &back, &err) == WEFT_OK,
           "%s: is read %s", row[i].name, err.text);
        ok(back.payload && back.payload_size == row[i].size &&
               memcmp(back.payload, row[i].data, row[i].size) == 0,
           "%s: the same bytes", row[i].name);
        is_str(back.content_type, row[i].content_type, "%s: the same type", row[i].name);
    }
}

/* NULL means JSON in the struct; on the wire that must not become application/octet-stream. */
static void test_default_type(void)
{
    struct weft_spec spec = {.kind = "k", .payload = "{", .payload_size = 1};
    is_str(write_text(&weft_wire_spec, &spec),
           "{\"kind\":\"k\",\"payload_base64\":\"ew==\",\"content_type\":\"application/json\"}",
           "a payload without a content type is written with the assumed one");
    struct weft_claimed claimed = {.lane = "l", .kind = "k", .payload = "{", .payload_size = 1};
    const char *text = write_text(&weft_wire_claimed, &claimed);
    ok(strstr(text, "\"content_type\":\"application/json\",\"priority\"") != NULL,
       "in answers as well");

    static char large[10000];
    memset(large, 0xff, sizeof(large));
    spec = (struct weft_spec){.kind = "k", .payload = large, .payload_size = sizeof(large)};
    struct weft_spec back;
    struct weft_err err;
    ok(read_text(&weft_wire_spec, write_text(&weft_wire_spec, &spec), &back, &err) == WEFT_OK &&
           back.payload_size == sizeof(large) && memcmp(back.payload, large, sizeof(large)) == 0,
       "bytes that are encoded in pieces are whole again");
}

static void test_members(void)
{
    struct weft_buf buf;
    struct weft_json_writer out;
    weft_buf_init(&buf, 1000);
    weft_json_writer_init(&out, &buf);
    const struct weft_lease_result answer = {.lease_expires_us = 1000};
    const struct weft_id id = {.byte = {0x01, 0x8f}};
    weft_json_begin_object(&out);
    weft_json_key(&out, "id");
    weft_wire_put_id(&out, &id);
    weft_wire_write_members(&weft_wire_renewed, &answer, &out);
    weft_json_key(&out, "none");
    weft_wire_put_moment(&out, 0);
    weft_json_end_object(&out);
    is_str(buf.data,
           "{\"id\":\"018f0000-0000-0000-0000-000000000000\","
           "\"lease_expires_at\":\"1970-01-01T00:00:00.001Z\",\"none\":null}",
           "members stand beside others");
    weft_buf_done(&buf);
}

static void test_error(void)
{
    struct weft_buf buf;
    struct weft_json_writer out;
    weft_buf_init(&buf, 1000);
    weft_json_writer_init(&out, &buf);
    const struct weft_err fenced = {.rc = WEFT_FENCED, .text = "gone"};
    weft_wire_write_error(&fenced, &(struct weft_wire_detail){.fence = WEFT_FENCE_LOST}, &out);
    is_str(buf.data,
           "{\"code\":\"fenced\",\"message\":\"gone\",\"hint\":null,\"field\":null,"
           "\"reason\":\"lost\"}",
           "a fence has its reason");
    weft_buf_clear(&buf);
    weft_json_writer_init(&out, &buf);
    const struct weft_err busy = {.rc = WEFT_BUSY, .hint = "h", .field = "f"};
    weft_wire_write_error(&busy, NULL, &out);
    is_str(buf.data,
           "{\"code\":\"busy\",\"message\":\"another caller is using it, try again\","
           "\"hint\":\"h\",\"field\":\"f\"}",
           "an error without a story tells the general one");
    weft_buf_clear(&buf);
    weft_json_writer_init(&out, &buf);
    const struct weft_err exceeded = {.rc = WEFT_BUDGET_EXCEEDED, .text = "no"};
    const struct weft_amount left[] = {{"tokens", 150}, {"usd", 0}};
    weft_wire_write_error(&exceeded, &(struct weft_wire_detail){.left = left, .left_count = 2},
                          &out);
    is_str(buf.data,
           "{\"code\":\"budget_exceeded\",\"message\":\"no\",\"hint\":null,\"field\":null,"
           "\"left\":{\"tokens\":150,\"usd\":0}}",
           "a report beyond a hard limit has what is left");
    weft_buf_done(&buf);
}

/* What is no number on the wire, or is one in other units. */
static void test_scanners(void)
{
    struct weft_err err;
    struct weft_scanner_status status;
    ok(read_text(&weft_wire_scanner, "{\"name\":\"n\",\"replica\":" ID ",\"lag_ms\":3}", &status,
                 &err) == WEFT_OK &&
           status.lag_us == 3000 && status.partition_first == 0 && status.partition_last == 255,
       "without a range it is all partitions, and milliseconds are microseconds: %s", err.text);
    struct weft_wire_pass pass = {.name = "n", .next_due_us = INT64_MAX, .duration_us = 1999};
    ok(strstr(write_text(&weft_wire_pass, &pass), "\"next_due_at\":null,\"duration_ms\":1}") !=
           NULL,
       "never is null, and less than a millisecond is cut");
    ok(read_text(&weft_wire_pass, write_text(&weft_wire_pass, &pass), &pass, &err) == WEFT_OK &&
           pass.next_due_us == INT64_MAX,
       "null is never: %s", err.text);
    const char *const settings[] = {NULL, "", "[1]", "{\"a\":"};
    for (size_t i = 0; i < WEFT_LEN(settings); i++) {
        struct weft_replica replica = {.settings = settings[i]};
        ok(strstr(write_text(&weft_wire_replica, &replica), "\"settings\":{}") != NULL,
           "settings that are no object are an empty one: %s", settings[i] ? settings[i] : "none");
    }
}

int main(void)
{
    arena = weft_arena_new();
    test_trips();
    test_bytes();
    test_default_type();
    test_members();
    test_error();
    test_scanners();
    weft_arena_free(arena);
    return tap_done();
}
