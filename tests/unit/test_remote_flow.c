/* SPDX-License-Identifier: Apache-2.0 */

/* The calls of weft.h about flows over a server: what each asks, and how its answer is read. */

#include "remote_fixture.h"

static const char *const after_a[] = {"a"};
static const struct weft_node two[] = {
    {.name = "a", .spec = {.kind = "k", .payload = "{}", .payload_size = 2}},
    {.name = "b",
     .spec = {.kind = "k"},
     .after = after_a,
     .after_count = 1,
     .join = WEFT_JOIN_QUORUM,
     .k = 1,
     .on_satisfied = WEFT_ON_SATISFIED_LET_RUN},
};
#define NODES                                                                                      \
    "[{\"name\":\"a\",\"kind\":\"k\",\"payload\":{}},{\"name\":\"b\",\"kind\":\"k\","              \
    "\"after\":[\"a\"],\"join\":{\"policy\":\"quorum\",\"k\":1,\"on_satisfied\":\"let_run\"}}]"
#define SUBMITTED(second)                                                                          \
    "{\"id\":\"" ID_TEXT "\",\"state\":\"open\",\"nodes\":{\"a\":\"" ID_TEXT "\",\"" second        \
    "\":\"" ID2_TEXT "\"},\"revision\":1,\"duplicate\":true}"

static void test_submit(void)
{
    const struct take take[] = {
        {.body = SUBMITTED("b")},
        {.status = 400,
         .body = "{\"error\":{\"code\":\"invalid_value\",\"message\":\"node 'b': no\","
                 "\"hint\":null,\"field\":\"nodes[1].join.k\"}}"},
        {.body = SUBMITTED("c")},
    };
    begin(take, WEFT_LEN(take));
    struct weft_id node[2];
    struct weft_flow_submitted answer = {.node = node};
    struct weft_flow_spec spec = {.name = "n", .key = "y", .nodes = two, .node_count = 2};
    is_int(weft_flow_submit(weft, &spec, 1, &answer, &err), WEFT_OK, "submitted %s", err.text);
    asked_for(0, "POST", "/v1/flows", "{\"name\":\"n\",\"key\":\"y\",\"nodes\":" NODES "}");
    ok(answer.err.rc == WEFT_OK && answer.duplicate && answer.revision == 1 &&
           answer.state == WEFT_FLOW_OPEN && memcmp(&answer.id, &id, sizeof(id)) == 0,
       "the answer has id, revision and state");
    ok(answer.node == node && memcmp(&node[0], &id, sizeof(id)) == 0 &&
           memcmp(&node[1], &id2, sizeof(id2)) == 0,
       "the nodes have their ids in order");
    is_int(weft_flow_submit(weft, &spec, 1, &answer, &err), WEFT_OK, "one that is refused");
    is_int(answer.err.rc, WEFT_INVALID_VALUE, "the refused flow has its error");
    is_str(answer.err.field, "join.k", "the error has the field of the node");
    is_str(answer.err.text, "node 'b': no", "the error names the node");
    is_int((long)answer.blamed, 2, "the error has the number of the node");
    is_int(weft_flow_submit(weft, &spec, 1, &answer, &err), WEFT_UNAVAILABLE,
           "an answer about other nodes is none");

    struct weft_node bad = {.name = "a", .spec = {.kind = "k", .key = "x"}};
    spec = (struct weft_flow_spec){.nodes = &bad, .node_count = 1};
    is_int(weft_flow_submit(weft, &spec, 1, &answer, &err), WEFT_OK, "a node with a key");
    is_str(answer.err.field, "key", "a node with a key is refused: the wire has none");
    is_int((long)answer.blamed, 1, "the first node is blamed");
    bad = (struct weft_node){.name = "a", .spec = {.kind = "k"}, .join = (enum weft_join)9};
    is_int(weft_flow_submit(weft, &spec, 1, &answer, &err), WEFT_INVALID_VALUE, "no such join");
    bad = (struct weft_node){.name = "a", .spec = {.kind = "k"}, .after_count = 1};
    is_int(weft_flow_submit(weft, &spec, 1, &answer, &err), WEFT_INVALID_VALUE,
           "nodes with upstreams and no array are refused");
    is_str(err.field, "after", "upstreams without an array are refused");
    is_int(weft_flow_submit(NULL, &spec, 1, &answer, &err), WEFT_INVALID_VALUE,
           "a flow without a handle is refused");
    end();
}

static void test_change(void)
{
    const struct take take[] = {
        {.body = "{\"revision\":4,\"nodes\":{\"a\":\"" ID_TEXT "\",\"b\":\"" ID2_TEXT "\"}}"},
        {.status = 409,
         .body = "{\"error\":{\"code\":\"conflict\",\"message\":\"m\",\"hint\":"
                 "\"read the flow again and decide anew\",\"field\":\"revision\"}}"},
        {.status = 400,
         .body = "{\"error\":{\"code\":\"invalid_value\",\"message\":\"m\",\"field\":"
                 "\"nodes[1].after\"}}"},
        {.status = 202, .body = "{\"state\":\"open\",\"cancelled\":1000}"},
        {.status = 202, .body = "{\"state\":\"open\",\"cancelled\":1000}"},
        {.body = "{\"state\":\"open\",\"cancelled\":2}"},
        {.body = "{\"state\":\"cancelled\",\"cancelled\":2}"},
    };
    begin(take, WEFT_LEN(take));
    struct weft_flow_submitted answer = {0};
    const struct weft_flow_growth growth = {
        .flow = id, .revision = 3, .nodes = two, .node_count = 2};
    is_int(weft_flow_grow(weft, &growth, &answer, &err), WEFT_OK, "grown %s", err.text);
    asked_for(0, "POST", "/v1/flows/" ID_TEXT "/nodes", "{\"revision\":3,\"nodes\":" NODES "}");
    is_int(answer.revision, 4, "the grown flow has revision 4");
    is_int(weft_flow_grow(weft, &growth, &answer, &err), WEFT_CONFLICT,
           "a stale revision is a conflict");
    is_str(err.field, "revision", "the error names the revision");
    ok(err.hint != NULL, "the error has a hint");
    is_int((long)answer.blamed, 0, "no node is blamed");
    is_int(weft_flow_grow(weft, &growth, &answer, &err), WEFT_INVALID_VALUE,
           "a bad growth is refused");
    is_str(err.field, "after", "the error names the field after");
    is_int((long)answer.blamed, 2, "the second node is blamed");

    struct weft_flow_cancelled told;
    struct weft_flow_cancelling cancel = {.flow = id, .reason = "r"};
    is_int(weft_flow_cancel(weft, &cancel, 50, &told, &err), WEFT_OK, "cancelled");
    asked_for(3, "POST", "/v1/flows/" ID_TEXT "/cancel?wait_ms=50",
              "{\"policy\":\"all\",\"reason\":\"r\"}");
    ok(!told.done && told.cancelled == 1000, "the first cancel is not done");
    cancel.how = WEFT_FLOW_CANCEL_PENDING;
    is_int(weft_flow_cancel(weft, &cancel, 0, &told, &err), WEFT_OK, "all but the running");
    ok(!told.done && told.state == WEFT_FLOW_OPEN, "the second cancel is not done");
    is_int(weft_flow_cancel(weft, &cancel, 0, &told, &err), WEFT_OK, "the cancel is repeated");
    ok(told.done && told.state == WEFT_FLOW_OPEN, "leaves it open");
    is_int(weft_flow_delete(weft, &id, &err), WEFT_OK, "deleted");
    asked_for(6, "DELETE", "/v1/flows/" ID_TEXT, "");
    is_int(weft_flow_cancel(weft, &cancel, 60001, &told, &err), WEFT_INVALID_VALUE,
           "a wait above the limit is refused");
    is_str(err.field, "wait_ms", "the error names wait_ms");
    end();
}

static void test_link(void)
{
    const struct take take[] = {
        {.body = "{\"revision\":4}"},
        {.status = 409,
         .body =
             "{\"error\":{\"code\":\"conflict\",\"message\":\"node 'b' is not blocked any more\","
             "\"field\":\"edges\"}}"},
        {.body = "{\"revision\":\"four\"}"},
    };
    begin(take, WEFT_LEN(take));
    const struct weft_flow_edge edge[] = {{"a", "b"}, {"c", "b"}};
    struct weft_flow_edging edging = {.flow = id, .revision = 3, .edges = edge, .edge_count = 2};
    int32_t revision = 0;
    is_int(weft_flow_link(weft, &edging, &revision, &err), WEFT_OK, "linked %s", err.text);
    asked_for(0, "POST", "/v1/flows/" ID_TEXT "/edges",
              "{\"revision\":3,\"edges\":[{\"from\":\"a\",\"to\":\"b\"},"
              "{\"from\":\"c\",\"to\":\"b\"}]}");
    is_int(revision, 4, "the revision of the flow with the edges");
    is_int(weft_flow_link(weft, &edging, &revision, &err), WEFT_CONFLICT, "a node that has begun");
    is_str(err.field, "edges", "the field comes from the server");
    is_int(weft_flow_link(weft, &edging, &revision, &err), WEFT_UNAVAILABLE,
           "an answer without a revision is none");

    const struct weft_flow_edge half[] = {{"a", NULL}};
    edging = (struct weft_flow_edging){.flow = id, .revision = 3, .edges = half, .edge_count = 1};
    is_int(weft_flow_link(weft, &edging, &revision, &err), WEFT_INVALID_VALUE, "an edge to NULL");
    is_str(err.field, "to", "an edge to NULL is refused without a request");
    edging.edges = NULL;
    is_int(weft_flow_link(weft, &edging, &revision, &err), WEFT_INVALID_VALUE,
           "edges without an array are refused");
    is_str(err.field, "edges", "edges without an array are refused");
    edging =
        (struct weft_flow_edging){.flow = id, .revision = 3, .edges = edge, .edge_count = 1001};
    is_int(weft_flow_link(weft, &edging, &revision, &err), WEFT_TOO_LARGE, "1,001 edges");
    is_int(weft_flow_link(weft, &edging, NULL, &err), WEFT_INVALID_VALUE,
           "no place for the answer");
    end();
}

#define FLOW(state)                                                                                \
    "\"id\":\"" ID_TEXT "\",\"name\":\"n\",\"state\":\"" state                                     \
    "\",\"revision\":2,"                                                                           \
    "\"node_count\":2,\"cancel\":\"all\""
#define NODE(name, after)                                                                          \
    "{\"name\":\"" name "\",\"id\":\"" ID2_TEXT "\",\"state\":\"skipped\",\"after\":[" after       \
    "],\"join\":{\"policy\":\"any\",\"k\":null,\"on_satisfied\":\"let_run\"},\"fired\":true}"

static void test_read(void)
{
    const struct take take[] = {
        {.body = "{" FLOW("failed") ",\"counts\":{\"skipped\":2},\"nodes\":[" NODE(
             "b", "\"a\"") "],\"next\":\"c\"}"},
        {.body = "{\"items\":[" NODE("c", "") "],\"next\":null}"},
        {.body = "{\"items\":[{" FLOW("open") "}],\"next\":\"d\"}"},
        {.status = 404,
         .body = "{\"error\":{\"code\":\"not_found\",\"message\":\"m\",\"field\":\"id\"}}"},
    };
    begin(take, WEFT_LEN(take));
    struct weft_flow_page page = {0};
    struct weft_flows flows = {0};
    is_int(weft_flow_get(weft, &id, 700, &page, &err), WEFT_OK, "read %s", err.text);
    is_str(stage.asked[0].method, "GET", "the flow is read by GET");
    static const char waiting[] = "/v1/flows/" ID_TEXT "?wait_ms=";
    ok(strncmp(stage.asked[0].path, waiting, sizeof(waiting) - 1) == 0, "the request has a wait");
    ok(page.flow.state == WEFT_FLOW_FAILED && page.flow.count[WEFT_STATE_SKIPPED] == 2 &&
           page.flow.cancel == WEFT_FLOW_CANCEL_ALL && page.flow.node_count == 2,
       "the flow has its fields");
    ok(page.count == 1 && page.node->state == WEFT_STATE_SKIPPED && page.node->after_count == 1 &&
           page.node->join == WEFT_JOIN_ANY && page.node->fired &&
           page.node->on_satisfied == WEFT_ON_SATISFIED_LET_RUN,
       "the node has its join");
    is_str(page.next, "c", "the page has a cursor");
    weft_flow_page_free(&page);
    is_int(weft_flow_nodes(weft, &id, 7, "c", &page, &err), WEFT_OK, "more");
    asked_for(1, "GET", "/v1/flows/" ID_TEXT "/nodes?limit=7&after=c", "");
    ok(page.count == 1 && !page.next, "the second page has one node and is the last");
    weft_flow_page_free(&page);
    const struct weft_flow_listing listing = {
        .by_state = true, .state = WEFT_FLOW_OPEN, .name = "a/b", .after = "x"};
    is_int(weft_flow_list(weft, &listing, &flows, &err), WEFT_OK, "a list");
    asked_for(2, "GET", "/v1/flows?state=open&name=a%2Fb&limit=50&after=x", "");
    ok(flows.count == 1 && flows.item->revision == 2, "the list has one flow");
    is_str(flows.next, "d", "the list has a cursor");
    weft_flows_free(&flows);
    is_int(weft_flow_get(weft, &id, 0, &page, &err), WEFT_NOT_FOUND,
           "an unknown flow is not found");
    is_int(weft_flow_get(weft, NULL, 0, &page, &err), WEFT_INVALID_VALUE,
           "a flow without an id is refused");
    is_int(weft_flow_nodes(weft, &id, 1001, NULL, &page, &err), WEFT_INVALID_VALUE,
           "a limit above 1,000 is refused");
    weft_flow_page_free(NULL);
    weft_flows_free(NULL);
    end();
}

int main(void)
{
    ok(weft_id_parse(ID_TEXT, 36, &id) && weft_id_parse(ID2_TEXT, 36, &id2), "ids");
    test_submit();
    test_change();
    test_link();
    test_read();
    return tap_done();
}
