/* SPDX-License-Identifier: Apache-2.0 */

/* Flows as readers see them: described, in pages, in lists; and executions as members of them. */

#include "conformance.h"
#include "direct.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/flow/flow.h"
#include "engine/job/control.h"
#include "engine/job/execution_read.h"
#include "engine/job/list.h"
#include "weft/weft.h"

static const char *const a[] = {"a"}, *const b_c[] = {"b", "c"};
static const struct weft_node diamond[] = {
    {.name = "a", .spec = {.kind = "a"}},
    {.name = "b", .spec = {.kind = "b"}, .after = a, .after_count = 1},
    {.name = "c", .spec = {.kind = "c"}, .after = a, .after_count = 1},
    {.name = "d", .spec = {.kind = "d"}, .after = b_c, .after_count = 2},
};

/* Submits a flow into the namespace of the spec, else "default". */
static struct weft_id submit_flow(struct fixture *f, const struct weft_flow_spec *spec)
{
    struct weft_flow_submitted answer = {0};
    is_int(engine_flow_submit(f->a, "default", spec, 1, &answer, &f->err), WEFT_OK, "submit");
    is_int(answer.err.rc, WEFT_OK, "the flow is accepted");
    return answer.id;
}

static struct weft_id submit_diamond(struct fixture *f, const char *name)
{
    return submit_flow(f, &(struct weft_flow_spec){
                              .name = name, .nodes = diamond, .node_count = WEFT_LEN(diamond)});
}

static struct weft_flow_page read_page(struct fixture *f, const struct weft_id *flow,
                                       uint32_t limit, const char *after)
{
    const struct weft_flow_asking asking = {
        .ns = "default", .flow = *flow, .limit = limit, .after = after, .counts = !after};
    struct weft_flow_page page = {0};
    is_int(weft_engine_flow(f->b, &asking, f->arena, &page, &f->err), WEFT_OK, "read the flow%s%s",
           f->err.rc ? ": " : "", f->err.rc ? f->err.text : "");
    return page;
}

static void end_kind(struct fixture *f, const char *kind, bool good)
{
    struct weft_claimed lease = take_kind(f, kind);
    const struct weft_failure how = {.error_class = "oops", .message = "no", .permanent = true};
    enum weft_rc rc =
        good ? complete(f, f->a, &lease, "1").err.rc : fail_as(f, f->a, &lease, &how).err.rc;
    is_int(rc, WEFT_OK, "%s ends", kind);
}

static void expect_counts(const struct weft_flow *flow, uint64_t blocked, uint64_t ready,
                          uint64_t running, uint64_t succeeded)
{
    is_int(flow->count[WEFT_STATE_BLOCKED], blocked, "the flow counts its blocked members");
    is_int(flow->count[WEFT_STATE_READY], ready, "the flow counts its ready members");
    is_int(flow->count[WEFT_STATE_RUNNING], running, "the flow counts its running members");
    is_int(flow->count[WEFT_STATE_SUCCEEDED], succeeded, "the flow counts its succeeded members");
}

/* ---- One flow -------------------------------------------------------------------------------- */

CASE(flow_described_at_first)
{
    struct weft_id id = submit_diamond(f, "nightly");
    struct weft_flow_page page = read_page(f, &id, 1000, NULL);
    ok(same_id(&page.flow.id, &id), "the page has the id of the flow");
    is_str(page.flow.name, "nightly", "the flow has its name");
    is_int(page.flow.state, WEFT_FLOW_OPEN, "the flow is open");
    is_int(page.flow.revision, 1, "the flow has revision 1");
    is_int(page.flow.created_us, f->now_us, "the flow was created now");
    is_int(page.flow.finished_us, 0, "the flow is not finished");
    is_int(page.flow.cancel, WEFT_FLOW_CANCEL_NONE, "the flow is not cancelled");
    is_int(page.flow.node_count, 4, "the flow has four nodes");
    expect_counts(&page.flow, 3, 1, 0, 0);
    is_int(page.count, 4, "all on one page");
    ok(!page.next, "the page is the last");
    for (size_t i = 0; i < page.count; i++) {
        const struct weft_flow_node *node = &page.node[i];
        is_str(node->name, diamond[i].name, "in the order of submission");
        is_int(node->state, i ? WEFT_STATE_BLOCKED : WEFT_STATE_READY, "the node has its state");
        is_int(node->fired, i == 0, "only the root may begin");
        is_int(node->after_count, diamond[i].after_count, "the node has its number of upstreams");
        for (size_t k = 0; k < node->after_count; k++)
            is_str(node->after[k], diamond[i].after[k], "the node names its upstreams");
        ok(node->started_us == 0 && node->finished_us == 0 && !node->worker,
           "the node has no times and no worker");
        is_str(describe(f, &node->id).node, node->name, "the id is that of its execution");
    }
}

CASE(flow_described_on_its_way)
{
    struct weft_id id = submit_diamond(f, NULL);
    weft_usec first_us = f->now_us;
    struct weft_claimed lease = take_kind(f, "a");
    struct weft_flow_page page = read_page(f, &id, 1000, NULL);
    ok(!page.flow.name, "the flow without a name has none");
    expect_counts(&page.flow, 3, 0, 1, 0);
    is_str(page.node[0].worker, "worker-a", "the running node names its worker");
    is_int(page.node[0].started_us, first_us, "the running node has its start");
    is_int(page.node[0].attempt, 1, "the running node is in its first attempt");
    forward_ms(f, 1000);
    is_int(complete(f, f->a, &lease, "1").err.rc, WEFT_OK, "a ends");
    page = read_page(f, &id, 1000, NULL);
    expect_counts(&page.flow, 1, 2, 0, 1);
    is_int(page.node[0].finished_us, first_us + 1000 * WEFT_MS, "when it ended");
    ok(page.node[1].fired && page.node[2].fired && !page.node[3].fired, "b and c may begin");
    forward_ms(f, 1000);
    end_kind(f, "c", true);
    end_kind(f, "b", true);
    end_kind(f, "d", true);
    page = read_page(f, &id, 1000, NULL);
    expect_counts(&page.flow, 0, 0, 0, 4);
    is_int(page.flow.state, WEFT_FLOW_SUCCEEDED, "the flow succeeded");
    is_int(page.flow.finished_us, f->now_us, "the flow finished now");
}

CASE(flow_described_in_failure)
{
    struct weft_id id = submit_diamond(f, NULL);
    end_kind(f, "a", true);
    end_kind(f, "b", false);
    end_kind(f, "c", true);
    struct weft_flow_page page = read_page(f, &id, 1000, NULL);
    is_int(page.flow.state, WEFT_FLOW_FAILED, "the flow failed");
    is_int(page.flow.count[WEFT_STATE_SKIPPED], 1, "one was skipped");
    is_str(page.node[1].error_class, "oops", "the error is shown");
    is_str(page.node[1].error_message, "no", "the failed node has its message");
    is_str(page.node[3].reason, "upstream_failed", "the skipped node has its reason");
    is_int(page.node[3].fired, true, "the join of the skipped node is decided");
}

CASE(flow_described_when_cancelled)
{
    struct weft_id id = submit_diamond(f, NULL);
    const struct weft_flow_cancelling args = {
        .ns = "default", .flow = id, .how = WEFT_FLOW_CANCEL_ALL, .reason = "enough"};
    enum weft_flow_state state;
    struct weft_flow_drain drain = {.flow = id, .more = true};
    is_int(weft_engine_flow_cancel(f->a, &args, &state, NULL, &f->err), WEFT_OK, "cancel");
    struct weft_flow_page page = read_page(f, &id, 0, NULL);
    is_int(page.flow.cancel, WEFT_FLOW_CANCEL_ALL, "marked at once");
    is_str(page.flow.reason, "enough", "the flow has the reason of the cancel");
    for (int i = 0; i < 10 && drain.more; i++)
        is_int(weft_engine_flow_drain(f->a, &drain, &f->err), WEFT_OK, "drain");
    page = read_page(f, &id, 1000, NULL);
    is_int(page.flow.state, WEFT_FLOW_CANCELLED, "the drained flow is cancelled");
    is_int(page.flow.count[WEFT_STATE_CANCELLED], 4, "all members are cancelled");
}

CASE(flow_joins_described)
{
    static const char *const abc[] = {"a", "b", "c"};
    static const struct weft_node node[] = {
        {.name = "a", .spec = {.kind = "n"}},
        {.name = "b", .spec = {.kind = "n"}},
        {.name = "c", .spec = {.kind = "n"}},
        {.name = "all", .spec = {.kind = "n"}, .after = abc, .after_count = 3},
        {.name = "any",
         .spec = {.kind = "n"},
         .after = abc,
         .after_count = 3,
         .join = WEFT_JOIN_ANY},
        {.name = "two",
         .spec = {.kind = "n"},
         .after = abc,
         .after_count = 3,
         .join = WEFT_JOIN_QUORUM,
         .k = 2,
         .on_satisfied = WEFT_ON_SATISFIED_LET_RUN},
    };
    struct weft_id id =
        submit_flow(f, &(struct weft_flow_spec){.nodes = node, .node_count = WEFT_LEN(node)});
    struct weft_flow_page page = read_page(f, &id, 1000, NULL);
    const struct weft_flow_node *all = &page.node[3], *any = &page.node[4], *two = &page.node[5];
    ok(all->join == WEFT_JOIN_ALL && all->on_satisfied == WEFT_ON_SATISFIED_LET_RUN,
       "all lets the rest run by default");
    ok(any->join == WEFT_JOIN_ANY && any->on_satisfied == WEFT_ON_SATISFIED_CANCEL_REMAINING,
       "any cancels the rest by default");
    ok(two->join == WEFT_JOIN_QUORUM && two->on_satisfied == WEFT_ON_SATISFIED_LET_RUN,
       "a quorum lets the rest run if asked to");
    is_int(two->k, 2, "the quorum is two");
    is_str(two->after[2], "c", "upstreams are in the order of submission");
}

/* ---- Pages ----------------------------------------------------------------------------------- */

/* `roots` nodes that come after nothing, and `sinks` that come after all roots. */
static struct weft_id submit_fan(struct fixture *f, size_t roots, size_t sinks)
{
    struct weft_node *node = weft_new_array(f->arena, struct weft_node, roots + sinks);
    const char **name = weft_new_array(f->arena, const char *, roots + sinks);
    for (size_t i = 0; i < roots + sinks; i++) {
        name[i] = weft_arena_printf(f->arena, "n%zu", i);
        node[i] = (struct weft_node){.name = name[i], .spec = {.kind = "n"}, .after = name};
        node[i].after_count = i < roots ? 0 : roots;
    }
    return submit_flow(f, &(struct weft_flow_spec){.nodes = node, .node_count = roots + sinks});
}

CASE(flow_pages)
{
    static const size_t expected[] = {1000, 1000, 501};
    struct weft_id id = submit_fan(f, 2500, 1);
    (void)submit_fan(f, 3, 3); /* another one that must not be seen */
    const char *after = NULL;
    size_t seen = 0;
    for (size_t i = 0; i < WEFT_LEN(expected); i++) {
        struct weft_flow_page page = read_page(f, &id, 1000, after);
        is_int(page.count, expected[i], "the page has as many nodes as fit");
        is_int(page.flow.count[WEFT_STATE_READY], i ? 0 : 2500, "counted where that was asked");
        is_int(page.flow.node_count, 2501, "the size is known anyway");
        bool right = true;
        for (size_t k = 0; k < page.count; k++, seen++)
            right &= strcmp(page.node[k].name, weft_arena_printf(f->arena, "n%zu", seen)) == 0;
        ok(right, "all are there, in order");
        is_int(page.next == NULL, i == 2, "only the last page has no cursor");
        is_int(page.node[page.count - 1].after_count, i == 2 ? 2500 : 0,
               "the last node of the last page is a join");
        after = page.next;
    }
    ok(read_page(f, &id, 0, NULL).count == 0, "a page of none");
    struct weft_flow_page whole = read_page(f, &id, 1000, NULL);
    is_int(whole.flow.count[WEFT_STATE_BLOCKED], 1, "counted over all pages");
}

CASE(flow_pages_of_many_edges)
{
    struct weft_id id = submit_fan(f, 150, 150); /* 22,500 edges */
    struct weft_flow_page page = read_page(f, &id, 1000, NULL);
    ok(page.count > 150 && page.count < 300 && page.next, "the page is short: %zu", page.count);
    size_t first = page.count;
    page = read_page(f, &id, 1000, page.next);
    is_int(page.count, 300 - first, "the rest is on the next");
    ok(!page.next, "the second page is the last");
    is_int(page.node[page.count - 1].after_count, 150, "the last node has all its upstreams");
}

/* Adds three nodes, number `from` and the next two. */
static void grow_by_three(struct fixture *f, const struct weft_id *id, int32_t revision,
                          size_t from)
{
    struct weft_node node[3];
    for (size_t i = 0; i < WEFT_LEN(node); i++)
        node[i] = (struct weft_node){.name = weft_arena_printf(f->arena, "n%zu", from + i),
                                     .spec = {.kind = "n"}};
    const struct weft_flow_growth growth = {.ns = "default",
                                            .flow = *id,
                                            .revision = revision,
                                            .nodes = node,
                                            .node_count = WEFT_LEN(node)};
    struct weft_flow_submitted answer = {0};
    is_int(engine_flow_grow(f->b, &growth, &answer, &f->err), WEFT_OK, "grow");
}

/* Within one millisecond, and while a clock goes back. */
CASE(flow_pages_of_a_flow_that_grew)
{
    enum { TIMES = 12, PAGE = 5 };
    struct weft_id id = submit_fan(f, 3, 0);
    for (int32_t i = 1; i <= TIMES; i++) {
        grow_by_three(f, &id, i, 3 * (size_t)i);
        if (i > TIMES / 2)
            forward_ms(f, -10);
    }
    struct weft_flow_page page = {0};
    size_t seen = 0;
    bool right = true;
    do {
        page = read_page(f, &id, PAGE, page.next);
        for (size_t k = 0; k < page.count; k++, seen++)
            right &= strcmp(page.node[k].name, weft_arena_printf(f->arena, "n%zu", seen)) == 0;
    } while (page.next && seen < 1000);
    is_int(seen, 3 * (TIMES + 1), "each is on a page");
    ok(right, "in the order in which they came");
}

CASE(flow_read_refuses)
{
    struct weft_id id = submit_diamond(f, NULL), unknown = submit_job(f);
    const struct weft_flow_asking asking[] = {
        {.ns = "default", .flow = id, .limit = 1001},
        {.ns = "default", .flow = id, .limit = 10, .after = "nonsense"},
        {.ns = "default", .flow = unknown},
        {.ns = "elsewhere", .flow = id},
    };
    static const char *const field[] = {"limit", "after", "id", "id"};
    static const enum weft_rc rc[] = {WEFT_INVALID_VALUE, WEFT_INVALID_VALUE, WEFT_NOT_FOUND,
                                      WEFT_NOT_FOUND};
    (void)submit_ok(f, &(struct weft_spec){.ns = "elsewhere", .kind = "job"});
    for (size_t i = 0; i < WEFT_LEN(asking); i++) {
        struct weft_flow_page page;
        is_int(weft_engine_flow(f->a, &asking[i], f->arena, &page, &f->err), rc[i],
               "a bad flow request is refused");
        expect_err(&f->err, rc[i], field[i], "the error names the field");
    }
}

static void expect_unseen(struct fixture *f, const struct weft_id *id, const char *name)
{
    const struct weft_flow_asking asking = {.ns = "default", .flow = *id, .limit = 1};
    struct weft_flow_page page;
    struct weft_flows flows = {0};
    is_int(weft_engine_flow(f->a, &asking, f->arena, &page, &f->err), WEFT_NOT_FOUND,
           "%s: the flow is not found", name);
    is_int(weft_engine_flows(f->a, &(struct weft_flow_listing){.ns = "default"}, f->arena, &flows,
                             &f->err),
           WEFT_OK, "list");
    is_int(flows.count, 0, "%s: the flow is not listed", name);
    ok(!flows.next, "the empty list has no next page");
}

CASE(flow_unseen)
{
    bool pg = is_pg(f);
    struct weft_id id = submit_diamond(f, NULL);
    run_sql(f, pg ? "UPDATE weft.flow SET state = -1" : "UPDATE flow SET state = -1");
    expect_unseen(f, &id, "half-written");
    run_sql(f, pg ? "UPDATE weft.flow SET state = 0" : "UPDATE flow SET state = 0");
    const struct weft_flow_cancelling args = {
        .ns = "default", .flow = id, .how = WEFT_FLOW_CANCEL_ALL, .remove = true};
    enum weft_flow_state state;
    is_int(weft_engine_flow_cancel(f->a, &args, &state, NULL, &f->err), WEFT_OK, "delete");
    expect_unseen(f, &id, "deleted");
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static struct weft_flows list_flows(struct fixture *f, const struct weft_flow_listing *listing)
{
    struct weft_flow_listing args = *listing;
    struct weft_flows flows = {0};
    if (!args.ns)
        args.ns = "default";
    is_int(weft_engine_flows(f->b, &args, f->arena, &flows, &f->err), WEFT_OK, "list");
    return flows;
}

CASE(flow_lists)
{
    enum { COUNT = 7 };
    struct weft_id id[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        forward_ms(f, 1);
        id[i] = submit_diamond(f, i % 2 ? "odd" : "even");
    }
    (void)submit_flow(f, &(struct weft_flow_spec){.ns = "red", .nodes = diamond, .node_count = 4});
    struct weft_flows all = list_flows(f, &(struct weft_flow_listing){0});
    is_int(all.count, COUNT, "all of the namespace");
    ok(!all.next, "on one page");
    for (size_t i = 0; i < all.count; i++)
        ok(same_id(&all.item[i].id, &id[COUNT - 1 - i]), "newest first");
    is_int(all.item[0].node_count, 4, "listed flows have their sizes");
    is_str(all.item[0].name, "even", "listed flows have their names");
    is_int(list_flows(f, &(struct weft_flow_listing){.ns = "red"}).count, 1,
           "a list of another namespace has its flow");
    is_int(list_flows(f, &(struct weft_flow_listing){.ns = "blue"}).count, 0, "an unknown one");
    is_int(list_flows(f, &(struct weft_flow_listing){.name = "odd"}).count, 3,
           "a list by name gives the flows of that name");

    struct weft_flow_listing pages = {.name = "even", .limit = 1};
    for (size_t i = 0; i < 4; i++) {
        struct weft_flows page = list_flows(f, &pages);
        is_int(page.count, 1, "one at a time");
        ok(same_id(&page.item[0].id, &id[COUNT - 1 - 2 * i]), "the pages are in order");
        pages.after = page.next;
    }
    ok(!pages.after, "the pages come to an end");
}

CASE(flow_lists_by_state)
{
    struct weft_id ended = submit_diamond(f, NULL);
    end_kind(f, "a", false);
    forward_ms(f, 1);
    struct weft_id open = submit_diamond(f, NULL);
    struct weft_flows flows =
        list_flows(f, &(struct weft_flow_listing){.by_state = true, .state = WEFT_FLOW_OPEN});
    ok(flows.count == 1 && same_id(&flows.item[0].id, &open), "the open one");
    flows = list_flows(f, &(struct weft_flow_listing){.by_state = true, .state = WEFT_FLOW_FAILED});
    ok(flows.count == 1 && same_id(&flows.item[0].id, &ended), "the failed one");
    flows =
        list_flows(f, &(struct weft_flow_listing){.by_state = true, .state = WEFT_FLOW_SUCCEEDED});
    ok(flows.count == 0 && !flows.next, "no flow has succeeded");
    const struct weft_flow_listing bad[] = {
        {.ns = "default", .limit = 1001},
        {.ns = "default", .after = "x"},
        {.ns = "default", .name = "no spaces"},
        {.ns = "default", .by_state = true, .state = WEFT_FLOW_STATE_COUNT},
    };
    static const char *const field[] = {"limit", "after", "name", "state"};
    for (size_t i = 0; i < WEFT_LEN(bad); i++) {
        is_int(weft_engine_flows(f->a, &bad[i], f->arena, &flows, &f->err), WEFT_INVALID_VALUE,
               "a bad list of flows is refused");
        expect_err(&f->err, WEFT_INVALID_VALUE, field[i], "the error names the field");
    }
}

CASE(flow_lists_are_bounded)
{
    /* More than one statement looks at: a filter that fits the oldest alone needs several. */
    bool pg = is_pg(f);
    struct weft_id id = submit_diamond(f, "rare");
    forward_ms(f, 1000);
    (void)submit_diamond(f, "often");
    run_sql(f, pg ? "INSERT INTO weft.flow (id, namespace, name, state, revision, nodes, "
                    "created, cancel, backlog) SELECT ('ffffffff-ffff-7000-8000-' || "
                    "lpad(to_hex(i), 12, '0'))::uuid, namespace, name, 0, 1, 0, 0, 0, false "
                    "FROM weft.flow, generate_series(1, 10500) i WHERE name = 'often'"
                  : "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < "
                    "10500) INSERT INTO flow (id, namespace, name, state, revision, nodes, "
                    "created, cancel, backlog) SELECT CAST(printf('~%015d', i) AS BLOB), "
                    "namespace, name, 0, 1, 0, 0, 0, 0 FROM flow, s WHERE name = 'often'");
    struct weft_flow_listing listing = {.name = "rare"};
    weft_usec began_us = weft_boot_us();
    struct weft_flows page = list_flows(f, &listing);
    bool slow = weft_boot_us() - began_us >= WEFT_LOOK_US;
    ok(page.count == 1 || (slow && page.next && page.looked_to_us),
       "a page is empty only after 100 ms, and says how far it looked");
    if (page.count == 0) {
        listing.after = page.next;
        page = list_flows(f, &listing);
    }
    ok(page.count == 1 && same_id(&page.item[0].id, &id) && !page.next, "the list finds the flow");
    run_sql(f, pg ? "DELETE FROM weft.flow WHERE nodes = 0" : "DELETE FROM flow WHERE nodes = 0");
}

/* ---- Executions ------------------------------------------------------------------------------ */

CASE(flow_of_executions)
{
    static const struct weft_id none;
    struct weft_id id = submit_diamond(f, NULL), plain = submit_job(f);
    struct weft_execution alone = describe(f, &plain);
    ok(same_id(&alone.flow, &none) && !alone.node, "a plain execution has no flow");
    struct weft_flow_page page = read_page(f, &id, 1000, NULL);
    struct weft_execution member = describe(f, &page.node[2].id);
    ok(same_id(&member.flow, &id), "a member tells its flow");
    is_str(member.node, "c", "a described member has its node name");
    struct weft_read_page list = list_page(f, &(struct weft_listing){.filter = {.kind = "d"}});
    ok(list.count == 1 && same_id(&list.item[0].flow, &id), "lists do too");
    is_str(list.item[0].node, "d", "listed executions have their node name");
}

CASE(flow_filter)
{
    struct weft_id one = submit_diamond(f, NULL), other = submit_diamond(f, NULL);
    (void)submit_job(f);
    end_kind(f, "a", true); /* in the first flow, which is the oldest */
    struct weft_filter filter = {.flow = one};
    is_int(count_rows(f, &filter), 4, "the members of a flow");
    is_int(count_rows(f, &(struct weft_filter){.flow = other}), 4,
           "the members of another flow are counted by its id");
    filter.state = WEFT_STATE_READY;
    is_int(count_rows(f, &filter), 2, "a filter by flow and ready counts two");
    filter.state = WEFT_STATE_SUCCEEDED;
    is_int(count_rows(f, &filter), 1, "a filter by flow and succeeded counts one");
    filter.kind = "b";
    is_int(count_rows(f, &filter), 0, "all fields must fit");
    is_int(count_rows(f, &(struct weft_filter){.flow = one, .ns = "red"}), 0,
           "a flow is not seen from another namespace");
    struct weft_id unknown = submit_job(f);
    is_int(count_rows(f, &(struct weft_filter){.flow = unknown}), 0, "no such flow");

    struct weft_listing listing = {.filter = {.flow = one}, .limit = 3};
    struct weft_read_page page = list_page(f, &listing);
    is_int(page.count, 3, "the first page has three executions");
    is_str(page.item[0].node, "d", "newest first");
    listing.after = page.next;
    page = list_page(f, &listing);
    is_int(page.count, 1, "the second page has the rest");
    is_str(page.item[0].node, "a", "the oldest last");
    ok(!page.next, "the second page is the last");
}

CASE(flow_filter_with_key)
{
    struct weft_id flow = submit_diamond(f, NULL);
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .key = "k"});
    is_int(count_rows(f, &(struct weft_filter){.key = "k"}), 1, "found by its key");
    is_int(count_rows(f, &(struct weft_filter){.key = "k", .flow = flow}), 0,
           "a key outside the flow does not fit the flow");
}

CASE(flow_filter_steers)
{
    struct weft_id one = submit_diamond(f, NULL), other = submit_diamond(f, NULL);
    end_kind(f, "a", false); /* in the first flow: its other members are skipped */
    struct weft_sweep sweep = {0};
    struct weft_steer_all args = {.kind = WEFT_STEER_CANCEL,
                                  .filter = {.ns = "default", .flow = one}};
    is_int(weft_engine_steer_all(f->a, &args, &sweep, &f->err), WEFT_OK, "cancel the ended flow");
    is_int(sweep.matched, 0, "the cancel finds no living member");
    args.filter.flow = other;
    is_int(weft_engine_steer_all(f->a, &args, &sweep, &f->err), WEFT_OK, "cancel the other flow");
    is_int(sweep.changed, 4, "the cancel takes all its members");
    is_int(read_page(f, &other, 0, NULL).flow.count[WEFT_STATE_CANCELLED], 4,
           "no other execution is cancelled");
    args = (struct weft_steer_all){
        .kind = WEFT_STEER_REPLAY,
        .filter = {.ns = "default", .flow = one, .state = WEFT_STATE_FAILED}};
    is_int(weft_engine_steer_all(f->a, &args, &sweep, &f->err), WEFT_OK,
           "replay the failed member");
    is_int(sweep.changed, 1, "the replay takes the failed member");
    is_int(read_page(f, &one, 0, NULL).flow.count[WEFT_STATE_READY], 1,
           "the replayed member is ready again");
}
