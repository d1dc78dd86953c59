/* SPDX-License-Identifier: Apache-2.0 */

/* The OpenAPI document: valid, complete, and every reference leads somewhere. */

#include "api_fixture.h"

#include "net/api/handlers.h"

#include "wire/wire.h"

/* The value at "a/b/c" below a value; names with slashes are given one by one. */
static bool at(const struct weft_json *from, const char *const *name, size_t count,
               struct weft_json *ret_value)
{
    struct weft_json here = *from;
    for (size_t i = 0; i < count; i++) {
        struct weft_json next;
        if (here.kind != WEFT_JSON_OBJECT || !weft_wire_member(&here, name[i], &next))
            return false;
        here = next;
    }
    *ret_value = here;
    return true;
}

static void lower(const char *method, char ret_word[16])
{
    size_t i = 0;
    for (; method[i] && i < 15; i++)
        ret_word[i] = (char)(method[i] | 0x20);
    ret_word[i] = '\0';
}

/* What a new route is most easily added without: both are rows of a table. */
static void check_words(const struct weft_json *operation, const struct weft_route *route)
{
    ok(route->about && strlen(route->about) > 20,
       "%s has a description (.about in its row of routes.c)", route->op->id);
    struct weft_json tags;
    ok(weft_wire_member(operation, "tags", &tags) && tags.size > 2,
       "%s has a tag (a row of TAGS in openapi.c for the word behind /v1/)", route->op->id);
}

static bool answers_with(const struct weft_json *operation, const char *status)
{
    const char *path[] = {"responses", status, "$ref"};
    struct weft_json value;
    return at(operation, path, 3, &value);
}

static void check_errors(const struct weft_json *operation, const struct weft_route *route)
{
    const char *done[] = {"responses", "200", "content"};
    struct weft_json value;
    ok(at(operation, done, 3, &value) && answers_with(operation, "default"), "%s: its answers",
       route->op->id);
    ok(answers_with(operation, "400"), "%s can be 400", route->op->id);
    bool by_token = route->fails & (UINT32_C(1) << WEFT_UNAUTHORIZED); /* of a waitpoint */
    ok(answers_with(operation, "401") == (route->op->scope != WEFT_SCOPE_NONE || by_token) &&
           answers_with(operation, "403") == (route->op->scope != WEFT_SCOPE_NONE),
       "%s: 401 and 403 where a token is asked for", route->op->id);
    ok(answers_with(operation, "415") == (route->body_max > 0), "%s: 415 where a body is taken",
       route->op->id);
    ok(strstr(route->op->path, "{id}") == NULL || answers_with(operation, "404"),
       "%s: 404 for an id that is not there (.fails in its row)", route->op->id);
}

static void check_route(const struct weft_json *document, const struct weft_route *route)
{
    char method[16];
    lower(route->op->method, method);
    const char *path[] = {"paths", route->op->path, method};
    struct weft_json operation, value;
    bool found = at(document, path, 3, &operation);
    ok(found, "%s %s is there", route->op->method, route->op->path);
    if (!found)
        return;
    ok(weft_wire_member(&operation, "operationId", &value) && weft_json_is(&value, route->op->id),
       "%s: its name", route->op->id);
    ok(weft_wire_member(&operation, "summary", &value) && value.size > 10, "%s: its summary",
       route->op->id);
    check_words(&operation, route);
    check_errors(&operation, route);
    ok(weft_wire_member(&operation, "requestBody", &value) == (route->body_max > 0),
       "%s: a body where one is taken", route->op->id);
    const char *required[] = {"requestBody", "required"};
    ok(route->body_max == 0 ||
           (at(&operation, required, 2, &value) && value.kind == WEFT_JSON_BOOL &&
            weft_json_bool(&value) == !route->may_be_empty),
       "%s: whether the body is required", route->op->id);
    ok(weft_wire_member(&operation, "x-weft-scope", &value) ==
           (route->op->scope != WEFT_SCOPE_NONE),
       "%s: the scope it needs", route->op->id);
    size_t wanted = 0, params = 0;
    for (const char *brace = strchr(route->op->path, '{'); brace; brace = strchr(brace + 1, '{'))
        wanted++;
    while (wanted < WEFT_PARAMS_MAX && route->query[params].name)
        params++;
    wanted += params + (route->op->scope != WEFT_SCOPE_NONE) + 1;
    struct weft_json_iter each;
    size_t given = 0;
    if (weft_wire_member(&operation, "parameters", &value)) {
        weft_json_iter_init(&each, &value);
        while (weft_json_next(&each))
            given++;
    }
    is_int(given, wanted, "%s: its parameters", route->op->id);
}

/* Follows every "$ref":"#/components/X/Y" in the text. */
static void check_refs(const struct weft_json *document, const char *text)
{
    static const char key[] = "\"$ref\":\"#/components/";
    size_t refs = 0, broken = 0;
    for (const char *found = text; (found = strstr(found, "\"$ref\"")); found++) {
        char folder[64] = "", name[64] = "";
        const char *path[] = {"components", folder, name};
        struct weft_json value;
        refs++;
        if (strncmp(found, key, sizeof(key) - 1) != 0 ||
            sscanf(found + sizeof(key) - 1, "%63[^/\"]/%63[^/\"]", folder, name) != 2 ||
            !at(document, path, 3, &value)) {
            broken++;
            printf("# broken: %.80s\n", found);
        }
    }
    ok(refs > 30, "there are %zu references", refs);
    is_int(broken, 0, "every reference has its target");
}

static void test_words(const struct weft_json *document)
{
    const char *path[] = {"components", "schemas", "Error", "properties", "code", "enum"};
    struct weft_json codes;
    struct weft_json_iter each;
    ok(at(document, path, 6, &codes), "the codes of errors");
    weft_json_iter_init(&each, &codes);
    int rc = WEFT_OK + 1, wrong = 0;
    for (; weft_json_next(&each); rc++)
        wrong += rc >= WEFT_RC_COUNT || !weft_json_is(&each.value, weft_rc_wire((enum weft_rc)rc));
    is_int(wrong, 0, "the error codes are the codes of the table");
    is_int(rc, WEFT_RC_COUNT, "all error codes are listed");
}

/* The checker of answers itself: it must be able to say no. */
static void test_checker(void)
{
    static const char text[] =
        "{\"components\":{\"schemas\":{\"A\":{\"type\":\"object\",\"required\":["
        "\"a\"],\"properties\":{\"a\":{\"type\":[\"integer\",\"null\"]}}},"
        "\"B\":{\"type\":\"object\",\"required\":[\"b\"],\"properties\":{"
        "\"b\":{\"enum\":[\"x\",\"y\"]}}}}}}";
    static const char a[] = "{\"$ref\":\"#/components/schemas/A\"}";
    static const char either[] =
        "{\"type\":\"array\",\"items\":{\"oneOf\":[{\"$ref\":"
        "\"#/components/schemas/A\"},{\"allOf\":[{\"$ref\":"
        "\"#/components/schemas/A\"},{\"$ref\":\"#/components/schemas/B\"}"
        "]}]}}";
    static const struct {
        const char *schema, *value;
        bool fits;
    } rows[] = {
        {a, "{\"a\":1}", true},
        {a, "{\"a\":null}", true},
        {a, "{\"a\":\"1\"}", false},
        {a, "{\"a\":1.5}", false},
        {a, "{}", false},
        {a, "[]", false},
        {a, "{\"a\":1,\"b\":2}", false},
        {"{\"$ref\":\"#/components/schemas/C\"}", "{}", false},
        {either, "[]", true},
        {either, "[{\"a\":1},{\"a\":2,\"b\":\"x\"}]", true},
        {either, "[{\"a\":1},{\"a\":2,\"b\":\"z\"}]", false},
        {either, "[{\"a\":1},{\"b\":\"x\"}]", false},
        {either, "[3]", false},
        {"{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}", "{\"t\":\"v\"}",
         true},
        {"{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}", "{\"t\":1}",
         false},
    };
    for (size_t i = 0; i < WEFT_LEN(rows); i++) {
        struct weft_json document, schema, value;
        char why[200];
        bool read = !weft_json_check(text, strlen(text), &document, NULL) &&
                    !weft_json_check(rows[i].schema, strlen(rows[i].schema), &schema, NULL) &&
                    !weft_json_check(rows[i].value, strlen(rows[i].value), &value, NULL);
        ok(read && schema_fits(&document, &schema, &value, why) == rows[i].fits, "%s %s a schema",
           rows[i].value, rows[i].fits ? "fits" : "does not fit");
    }
}

/* Names of operations become names of functions in generated clients. */
static void test_names(void)
{
    size_t twice = 0;
    for (size_t i = 0; i < weft_routes.count; i++)
        for (size_t k = 0; k < i; k++)
            twice += strcmp(weft_routes.route[i].op->id, weft_routes.route[k].op->id) == 0;
    is_int(twice, 0, "no two operations have the same name");
}

/* Every operation of wire/ops.def has one route. */
static void test_operations(void)
{
    for (size_t op = 0; op < WEFT_OP_COUNT; op++) {
        size_t routes = 0;
        for (size_t i = 0; i < weft_routes.count; i++)
            routes += weft_routes.route[i].op == &weft_ops[op];
        is_int(routes, 1, "%s has one route", weft_ops[op].id);
    }
}

/* What a route needs to be carried out. */
static void test_table(void)
{
    for (size_t i = 0; i < weft_routes.count; i++) {
        const struct weft_route *route = &weft_routes.route[i];
        bool grouped = !weft_group_alone(route->op->group),
             claims = route->op->group == WEFT_GROUP_CLAIM;
        /* Large flows are, and what waits for the lock of one. */
        bool alone = route->op->group == WEFT_GROUP_FLOW_SUBMIT || route->locks_flow;
        ok(route->read &&
               (grouped ? !route->run == !alone && (claims || route->write) : !route->write),
           "%s has its functions", route->op->id);
        bool bare =
            strcmp(route->op->method, "GET") == 0 || strcmp(route->op->method, "DELETE") == 0;
        ok(bare == (route->body_max == 0), "%s: bodies of its kind", route->op->id);
        struct weft_route_match match;
        char target[200];
        (void)snprintf(target, sizeof(target), "%s", route->op->path);
        for (char *brace = target; (brace = strpbrk(brace, "{}"));)
            *brace = 'x';
        ok(weft_route_find(&weft_routes, route->op->method, target, &match) == route, "%s is found",
           route->op->id);
    }
}

int main(void)
{
    struct weft_api *api = weft_api_new();
    const struct weft_buf *text = weft_api_document(api);
    struct weft_json document;
    struct weft_err err = {0};
    ok(!weft_json_check(text->data, text->size, &document, &err), "the document is JSON (%s)",
       err.text);
    ok(weft_api_document(api) == text, "the document is made once");
    for (size_t i = 0; i < weft_routes.count; i++)
        check_route(&document, &weft_routes.route[i]);
    check_refs(&document, text->data);
    test_words(&document);
    test_checker();
    test_names();
    test_operations();
    test_table();
    weft_api_free(api);
    return tap_done();
}
