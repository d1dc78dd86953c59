/* SPDX-License-Identifier: Apache-2.0 */

/* Schemas: valid JSON that says of each message what its reader and writer do. */

#include "unit/wire_fixture.h"
#include "wire/type.h"

static const struct weft_wire_type *const request[] = {
    &weft_wire_spec,           &weft_wire_claim,       &weft_wire_renew,
    &weft_wire_complete,       &weft_wire_failure,     &weft_wire_delay,
    &weft_wire_release,        &weft_wire_cancel,      &weft_wire_replay,
    &weft_wire_priority,       &weft_wire_deadline,    &weft_wire_filter,
    &weft_wire_lane,           &weft_wire_node,        &weft_wire_flow_spec,
    &weft_wire_flow_growth,    &weft_wire_flow_cancel, &weft_wire_token_spec,
    &weft_wire_token_rotation, &weft_wire_flow_edging, &weft_wire_gate,
    &weft_wire_budget,         &weft_wire_usage,
};
static const struct weft_wire_type *const answer[] = {
    &weft_wire_submitted,      &weft_wire_execution,  &weft_wire_claimed,
    &weft_wire_renewed,        &weft_wire_finished,   &weft_wire_sweep,
    &weft_wire_attempt,        &weft_wire_lane_count, &weft_wire_worker,
    &weft_wire_replica,        &weft_wire_scanner,    &weft_wire_pass,
    &weft_wire_flow_submitted, &weft_wire_flow_grown, &weft_wire_flow_cancelled,
    &weft_wire_flow_node,      &weft_wire_flow,       &weft_wire_flow_page,
    &weft_wire_upstream,       &weft_wire_token,      &weft_wire_token_made,
    &weft_wire_flow_linked,    &weft_wire_charge,     &weft_wire_budget_now,
    &weft_wire_reported,
};

static struct weft_json schema_of(const struct weft_wire_type *type)
{
    struct weft_buf buf;
    struct weft_json_writer out;
    weft_buf_init(&buf, 1 << 20);
    weft_json_writer_init(&out, &buf);
    weft_wire_schema(type, &out);
    struct weft_json value = json_of(buf.data);
    weft_buf_done(&buf);
    return value;
}

/* What stands at "properties/id/type", or NULL. */
static const char *at(const struct weft_json *schema, const char *path)
{
    struct weft_json value = *schema;
    while (*path) {
        size_t size = strcspn(path, "/");
        const char *name = weft_arena_printf(arena, "%.*s", (int)size, path);
        struct weft_json object = value;
        if (!weft_wire_member(&object, name, &value))
            return NULL;
        path += size + (path[size] == '/');
    }
    return weft_arena_printf(arena, "%.*s", (int)value.size, value.text);
}

static bool has(const char *list, const char *name)
{
    return list && strstr(list, weft_arena_printf(arena, "\"%s\"", name));
}

/* What holds for every message, row by row. */
static void check_rows(const struct weft_wire_type *type, const struct weft_json *schema)
{
    const char *required = at(schema, "required");
    for (size_t i = 0; i < type->count; i++) {
        const struct weft_wire_field *field = &type->field[i];
        const char *path = weft_arena_printf(arena, "properties/%s/description", field->name);
        is_str(at(schema, path), weft_arena_printf(arena, "\"%s\"", field->about),
               "%s.%s is described", type->name, field->name);
        bool bytes = field->kind == WEFT_WIRE_JSON || field->kind == WEFT_WIRE_BASE64 ||
                     field->kind == WEFT_WIRE_REF || field->flags & WEFT_WIRE_WITH;
        bool must = field->flags & WEFT_WIRE_REQUIRED || (type->answer && !type->request && !bytes);
        ok(has(required, field->name) == must, "%s.%s is %srequired", type->name, field->name,
           must ? "" : "not ");
    }
}

static void test_all(void)
{
    for (size_t i = 0; i < WEFT_LEN(request); i++) {
        struct weft_json schema = schema_of(request[i]);
        is_str(at(&schema, "type"), "\"object\"", "%s is an object", weft_wire_name(request[i]));
        is_str(at(&schema, "additionalProperties"), "false", "%s has no other fields",
               weft_wire_name(request[i]));
        check_rows(request[i], &schema);
    }
    for (size_t i = 0; i < WEFT_LEN(answer); i++) {
        struct weft_json schema = schema_of(answer[i]);
        is_str(at(&schema, "type"), "\"object\"", "%s is an object", weft_wire_name(answer[i]));
        ok(!at(&schema, "additionalProperties"), "%s may grow", weft_wire_name(answer[i]));
        check_rows(answer[i], &schema);
    }
}

struct point {
    const struct weft_wire_type *type;
    const char *path, *want;
};

static const struct point point[] = {
    {&weft_wire_spec, "required", "[\"kind\"]"},
    {&weft_wire_spec, "properties/kind/type", "\"string\""},
    {&weft_wire_spec, "properties/lane/type", "[\"string\",\"null\"]"},
    {&weft_wire_spec, "properties/payload/type", NULL},
    {&weft_wire_spec, "properties/payload_base64/contentEncoding", "\"base64\""},
    {&weft_wire_spec, "properties/run_at/format", "\"date-time\""},
    {&weft_wire_spec, "properties/priority/minimum", "-32768"},
    {&weft_wire_spec, "properties/priority/maximum", "32767"},
    {&weft_wire_spec, "properties/delay_ms/minimum", "0"},
    {&weft_wire_spec, "properties/capabilities/items/type", "\"string\""},
    {&weft_wire_spec, "properties/tags/additionalProperties/type", "\"string\""},
    {&weft_wire_spec, "properties/policy/additionalProperties", "false"},
    {&weft_wire_spec, "properties/policy/properties/max_attempts/minimum", "1"},
    {&weft_wire_spec, "properties/policy/properties/backoff/type", "[\"object\",\"null\"]"},
    {&weft_wire_spec, "properties/policy/properties/backoff/properties/kind/enum",
     "[\"exponential\",\"fixed\",null]"},
    {&weft_wire_spec, "properties/policy/properties/backoff/properties/factor/type",
     "[\"number\",\"null\"]"},
    {&weft_wire_spec, "properties/policy/properties/backoff/properties/initial_ms/minimum", "0"},
    {&weft_wire_submitted, "properties/id/format", "\"uuid\""},
    {&weft_wire_submitted, "properties/state/enum",
     "[\"ready\",\"delayed\",\"blocked\",\"running\",\"suspended\",\"held\",\"succeeded\","
     "\"failed\",\"cancelled\",\"expired\",\"skipped\"]"},
    {&weft_wire_execution, "properties/id/type", "\"string\""},
    {&weft_wire_execution, "properties/tenant/type", "[\"string\",\"null\"]"},
    {&weft_wire_execution, "properties/epoch/type", "\"integer\""},
    {&weft_wire_execution, "properties/tags/type", "\"object\""},
    {&weft_wire_execution, "properties/progress/required", "[\"percent\",\"note\"]"},
    {&weft_wire_execution, "properties/flow_id/type", "[\"string\",\"null\"]"},
    {&weft_wire_claim, "properties/max/maximum", "1000"},
    {&weft_wire_claim, "properties/lease_ms/minimum", "1000"},
    {&weft_wire_claimed, "properties/upstream/type", "\"object\""},
    {&weft_wire_claimed, "properties/created_at/format", "\"date-time\""},
    {&weft_wire_renew, "required", "[\"id\",\"epoch\"]"},
    {&weft_wire_renew, "properties/progress/additionalProperties", "false"},
    {&weft_wire_failure, "properties/retryable/type", "[\"boolean\",\"null\"]"},
    {&weft_wire_delay, "required", "[\"id\",\"epoch\",\"delay_ms\"]"},
    {&weft_wire_priority, "required", "[\"priority\"]"},
    {&weft_wire_cancel, "required", NULL},
    {&weft_wire_filter, "properties/tag/pattern", "\"^[^:]+:\""},
    {&weft_wire_lane, "properties/weights/additionalProperties/maximum", "1000"},
    {&weft_wire_spec, "properties/cost/additionalProperties/maximum", "1000000000000000"},
    {&weft_wire_budget, "required", "[\"dimensions\"]"},
    {&weft_wire_budget, "properties/dimensions/additionalProperties/$ref",
     "\"#/components/schemas/BudgetDimension\""},
    {&weft_wire_budget, "properties/match/type", "[\"object\",\"null\"]"},
    {&weft_wire_budget_dimension, "properties/hard/type", "[\"integer\",\"null\"]"},
    {&weft_wire_budget_dimension, "properties/hard/minimum", "1"},
    {&weft_wire_usage, "required", "[\"id\",\"epoch\",\"totals\"]"},
    {&weft_wire_budget_now, "properties/hard/type", "[\"integer\",\"null\"]"},
    {&weft_wire_lane_count, "properties/ready/minimum", "0"},
    {&weft_wire_lane_count, "properties/ready/maximum", NULL},
    {&weft_wire_replica, "properties/state/enum", "[\"alive\",\"dead\"]"},
    {&weft_wire_replica, "properties/settings/type", "\"object\""},
    {&weft_wire_replica, "properties/seen_at/format", "\"date-time\""},
    {&weft_wire_scanner, "properties/partitions/type", "[\"array\",\"null\"]"},
    {&weft_wire_scanner, "properties/partitions/minItems", "2"},
    {&weft_wire_scanner, "properties/partitions/items/maximum", "255"},
    {&weft_wire_scanner, "properties/lag_ms/type", "\"integer\""},
    {&weft_wire_scanner, "properties/lag_ms/minimum", "0"},
    {&weft_wire_scanner, "properties/counters/additionalProperties/minimum", "0"},
    {&weft_wire_claimed, "properties/upstream/additionalProperties/$ref",
     "\"#/components/schemas/Upstream\""},
    {&weft_wire_flow_spec, "required", "[\"nodes\"]"},
    {&weft_wire_flow_spec, "properties/nodes/items/$ref", "\"#/components/schemas/Node\""},
    {&weft_wire_flow_spec, "properties/nodes/maxItems", "100000"},
    {&weft_wire_node, "required", "[\"name\",\"kind\"]"},
    {&weft_wire_node, "properties/join/properties/on_satisfied/enum",
     "[\"cancel_remaining\",\"let_run\",null]"},
    {&weft_wire_flow_node, "properties/join/properties/k/type", "[\"integer\",\"null\"]"},
    {&weft_wire_flow_page, "properties/state/enum",
     "[\"open\",\"succeeded\",\"failed\",\"cancelled\"]"},
    {&weft_wire_flow_submitted, "properties/nodes/additionalProperties/format", "\"uuid\""},
    {&weft_wire_pass, "properties/next_due_at/type", "[\"string\",\"null\"]"},
    {&weft_wire_pass, "properties/next_due_at/format", "\"date-time\""},
};

static void test_points(void)
{
    for (size_t i = 0; i < WEFT_LEN(point); i++) {
        struct weft_json schema = schema_of(point[i].type);
        is_str(at(&schema, point[i].path), point[i].want, "%s: %s", weft_wire_name(point[i].type),
               point[i].path);
    }
}

static void test_field_names(void)
{
    static const char *const known[] = {
        "lane",      "join.k", "progress.percent", "policy.no_retry", "policy.backoff.kind",
        "expires_ms"};
    for (size_t i = 0; i < WEFT_LEN(known); i++)
        is_str(weft_wire_field_name(known[i]), known[i], "%s is a field of a message", known[i]);
    ok(!weft_wire_field_name("backoff.kind"), "a field inside is known by its whole path");
    ok(!weft_wire_field_name("colour"), "colour is no field of any message");
}

int main(void)
{
    arena = weft_arena_new();
    test_all();
    test_points();
    test_field_names();
    weft_arena_free(arena);
    return tap_done();
}
