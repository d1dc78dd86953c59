/* SPDX-License-Identifier: Apache-2.0 */

/* Claims of flow members: the node name, and the states and results of the upstreams. */

#include "conformance.h"
#include "direct.h"

#include "base/arena.h"
#include "base/limits.h"
#include "engine/engine.h"
#include "engine/flow/flow.h"
#include "engine/job/claim.h"
#include "engine/job/joint.h"
#include "engine/job/leases.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

enum { INLINE = 64 << 10 };

/*
 * A flow of roots and one node "end" after all of them. Few roots are a, b, c, each of a kind of
 * its own; of many, all are of the kind "root".
 */
static struct weft_id submit_fan(struct fixture *f, size_t roots, const struct weft_node *end)
{
    struct weft_node *node = weft_new_array(f->arena, struct weft_node, roots + 1);
    const char **name = weft_new_array(f->arena, const char *, roots + 1);
    for (size_t i = 0; i < roots; i++) {
        name[i] = roots <= 26 ? weft_arena_printf(f->arena, "%c", (int)('a' + i))
                              : weft_arena_printf(f->arena, "root%zu", i);
        node[i] =
            (struct weft_node){.name = name[i], .spec = {.kind = roots <= 26 ? name[i] : "root"}};
    }
    node[roots] = *end;
    node[roots].name = node[roots].spec.kind = "end";
    node[roots].after = name;
    node[roots].after_count = roots;
    const struct weft_flow_spec spec = {.nodes = node, .node_count = roots + 1};
    struct weft_flow_submitted answer = {0};
    is_int(engine_flow_submit(f->a, "default", &spec, 1, &answer, &f->err), WEFT_OK, "submit");
    is_int(answer.err.rc, WEFT_OK, "the flow is accepted");
    return answer.id;
}

static void complete_bytes(struct fixture *f, const struct weft_claimed *lease, const void *result,
                           size_t size, const char *type)
{
    const struct weft_complete item = {.id = lease->id,
                                       .epoch = lease->epoch,
                                       .result = result,
                                       .result_size = size,
                                       .content_type = type};
    struct weft_lease_answer answer;
    is_int(engine_complete(f->a, &item, 1, &answer, &f->err), WEFT_OK, "complete");
    is_int(answer.err.rc, WEFT_OK, "the completion is accepted");
}

/* A JSON string of so many bytes. */
static char *large(struct fixture *f, size_t size)
{
    char *text = weft_arena_alloc(f->arena, size, 1);
    memset(text, 'x', size);
    text[0] = text[size - 1] = '"';
    return text;
}

static bool holds(const struct weft_upstream *upstream, const void *result, size_t size)
{
    return upstream->result && upstream->result_size == size && !upstream->too_large &&
           memcmp(upstream->result, result, size) == 0;
}

static const struct weft_upstream *find_upstream(const struct weft_claimed *item, size_t at,
                                                 const char *name)
{
    static const struct weft_upstream none;
    is_str(at < item->upstream_count ? item->upstream[at].node : NULL, name, "upstream %zu", at);
    return at < item->upstream_count ? &item->upstream[at] : &none;
}

CASE(flow_claim_results)
{
    static const uint8_t binary[] = {0, 1, 0xff, 0};
    struct weft_id flow = submit_fan(f, 3, &(struct weft_node){0});
    struct weft_claimed a = take_kind(f, "a"), b = take_kind(f, "b"), c = take_kind(f, "c");
    ok(same_id(&a.flow, &flow), "a member tells its flow");
    is_str(a.node, "a", "a claimed member has its node name");
    ok(a.upstream_count == 0, "a root has no upstreams");
    complete_bytes(f, &c, NULL, 0, NULL);
    complete_bytes(f, &b, binary, sizeof(binary), "application/octet-stream");
    complete_bytes(f, &a, "{\"n\":1}", 7, NULL);
    struct weft_claimed end = take_kind(f, "end");
    is_str(end.node, "end", "the end node has its name");
    is_int(end.upstream_count, 3, "the end node has three upstreams");
    const struct weft_upstream *first = find_upstream(&end, 0, "a");
    ok(same_id(&first->id, &a.id), "an upstream has its id");
    is_int(first->state, WEFT_STATE_SUCCEEDED, "an upstream has its state");
    ok(holds(first, "{\"n\":1}", 7), "the JSON result");
    const struct weft_upstream *second = find_upstream(&end, 1, "b");
    ok(holds(second, binary, sizeof(binary)), "the binary result");
    is_str(second->content_type, "application/octet-stream", "the result has its content type");
    const struct weft_upstream *third = find_upstream(&end, 2, "c");
    ok(!third->result && !third->too_large, "an upstream without a result has none");
    is_int(third->state, WEFT_STATE_SUCCEEDED, "though it succeeded");
}

CASE(flow_claim_any)
{
    (void)submit_fan(
        f, 3,
        &(struct weft_node){.join = WEFT_JOIN_ANY, .on_satisfied = WEFT_ON_SATISFIED_LET_RUN});
    struct weft_claimed a = take_kind(f, "a"), b = take_kind(f, "b");
    (void)fail_as(f, f->a, &a, &(struct weft_failure){.permanent = true});
    complete_bytes(f, &b, "2", 1, NULL);
    struct weft_claimed end = take_kind(f, "end");
    is_int(end.upstream_count, 3, "the claim lists all upstreams");
    const struct weft_upstream *failed = find_upstream(&end, 0, "a");
    ok(failed->state == WEFT_STATE_FAILED && !failed->result && !failed->too_large,
       "a failed upstream has its state and no result");
    ok(holds(find_upstream(&end, 1, "b"), "2", 1), "b gave the result");
    const struct weft_upstream *open = find_upstream(&end, 2, "c");
    ok(open->state == WEFT_STATE_READY && !open->result, "one has not begun");

    /* Another try sees what became of them since, also of the one that was replayed. */
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &end, 0);
    is_int(steer_id(f, WEFT_STEER_REPLAY, &a.id).err.rc, WEFT_OK, "replay");
    a = take_kind(f, "a");
    end = take_kind(f, "end");
    is_int(find_upstream(&end, 0, "a")->state, WEFT_STATE_RUNNING, "the replayed upstream runs");
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &end, 0);
    complete_bytes(f, &a, "\"again\"", 7, NULL);
    end = take_kind(f, "end");
    ok(holds(find_upstream(&end, 0, "a"), "\"again\"", 7),
       "a claim after the second end has the new result");
    is_int(end.attempt, 1, "no attempt was spent");
}

CASE(flow_claim_too_large)
{
    (void)submit_fan(f, 2, &(struct weft_node){0});
    struct weft_claimed a = take_kind(f, "a"), b = take_kind(f, "b");
    const char *fits = large(f, INLINE), *not = large(f, INLINE + 1);
    complete_bytes(f, &a, fits, INLINE, NULL);
    complete_bytes(f, &b, not, INLINE + 1, NULL);
    struct weft_claimed end = take_kind(f, "end");
    ok(holds(find_upstream(&end, 0, "a"), fits, INLINE), "64 KiB come along");
    const struct weft_upstream *second = find_upstream(&end, 1, "b");
    ok(second->too_large && !second->result && second->result_size == 0, "a byte more does not");
    const char *read = result_text(f, &second->id);
    ok(read && strncmp(read, not, INLINE + 1) == 0,
       "the result that was left out is read by its id");
}

/* Together the results, and the payloads, stay within the bytes of one call. */
CASE(flow_claim_too_much)
{
    enum { ROOTS = 150, SIZE = 60000, PAYLOAD = 1 << 20 };
    struct weft_node end = {.spec = {.payload = large(f, PAYLOAD), .payload_size = PAYLOAD}};
    (void)submit_fan(f, ROOTS, &end);
    const char *result = large(f, SIZE);
    struct weft_claim_result roots = claim(f, f->a, ROOTS);
    is_int(roots.count, ROOTS, "all roots at once");
    bool named = true;
    for (size_t i = 0; i < roots.count; i++) {
        const char *name = weft_arena_printf(f->arena, "root%zu", i);
        named &= strcmp(roots.item[i].node, name) == 0 && roots.item[i].upstream_count == 0;
        complete_bytes(f, &roots.item[i], result, SIZE, NULL);
    }
    ok(named, "each has its own name");
    struct weft_claimed last = take_kind(f, "end");
    is_int(last.upstream_count, ROOTS, "the claim lists all upstreams");
    size_t inside = 0, outside = 0;
    bool ordered = true;
    for (size_t i = 0; i < last.upstream_count; i++) {
        inside += holds(&last.upstream[i], result, SIZE);
        outside += last.upstream[i].too_large;
        ordered &= last.upstream[i].too_large == (i >= inside);
    }
    is_int(inside, (WEFT_BATCH_BYTES - PAYLOAD) / SIZE,
           "the claim has as many results as there is room for");
    is_int(inside + outside, ROOTS, "the other results are marked as too large");
    ok(ordered, "the claim has the first results");
}

/* Many nodes that come after many: the bytes of upstreams in a claim are bounded too. */
CASE(flow_claim_dense)
{
    enum { WIDE = 300 };
    struct weft_node *node = weft_new_array(f->arena, struct weft_node, (size_t)2 * WIDE);
    const char **name = weft_new_array(f->arena, const char *, (size_t)2 * WIDE);
    for (size_t i = 0; i < (size_t)2 * WIDE; i++) {
        name[i] = weft_arena_printf(f->arena, "n%zu", i);
        node[i] = (struct weft_node){.name = name[i], .spec = {.kind = "n"}, .after = name};
        node[i].after_count = i < WIDE ? 0 : WIDE;
    }
    const struct weft_flow_spec spec = {.nodes = node, .node_count = (size_t)2 * WIDE};
    struct weft_flow_submitted answer = {0};
    is_int(engine_flow_submit(f->a, "default", &spec, 1, &answer, &f->err), WEFT_OK, "submit");
    struct weft_claim_result roots = claim(f, f->a, WIDE);
    is_int(roots.count, WIDE, "all roots are claimed");
    struct weft_complete done[WIDE];
    struct weft_lease_answer ended[WIDE];
    for (size_t i = 0; i < roots.count; i++)
        done[i] = (struct weft_complete){.id = roots.item[i].id, .epoch = roots.item[i].epoch};
    is_int(engine_complete(f->a, done, roots.count, ended, &f->err), WEFT_OK, "end them");
    struct weft_claim_result first = claim(f, f->a, WIDE), rest = claim(f, f->a, WIDE);
    is_int(first.count, WEFT_BATCH_BYTES / (WIDE * WEFT_UPSTREAM_BYTES),
           "the first claim is cut at the batch bytes");
    is_int(first.count + rest.count, WIDE, "two claims get all of them");
    is_int(rest.count ? rest.item[rest.count - 1].upstream_count : 0, WIDE,
           "the last item has all its upstreams");
}

/* Members and others in one call, and the price of it. */
static void count_reads(void *context, enum weft_fault_point point, enum weft_stmt stmt)
{
    *(int *)context += point == WEFT_FAULT_BEFORE_RUN && stmt == WEFT_STMT_UPSTREAM_RESULTS;
}

CASE(flow_claim_costs)
{
    int reads = 0;
    static const struct weft_id none;
    struct weft_fault fault = {.hook = count_reads, .context = &reads};
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 20);
    (void)submit_fan(f, 3, &(struct weft_node){0});
    struct weft_engine *engine = open_faulty(f, &fault);
    const char *const kinds[] = {"job"};
    const struct weft_claim jobs = {.worker = "w", .kinds = kinds, .kind_count = 1, .max = 10};
    is_int(claim_with(f, engine, &jobs).count, 10, "ten plain jobs are claimed");
    is_int(reads, 0, "no upstreams are read for plain jobs");
    struct weft_claim_result got = claim(f, engine, 13);
    is_int(got.count, 13, "jobs and members are claimed together");
    is_int(reads, 1, "one statement for all members");
    size_t members = 0;
    bool right = true;
    for (size_t i = 0; i < got.count; i++) {
        bool member = strcmp(got.item[i].kind, "job") != 0;
        members += member;
        right &= member ? got.item[i].node != NULL
                        : same_id(&got.item[i].flow, &none) && !got.item[i].node;
    }
    ok(right && members == 3, "members have names, others have none");
    weft_engine_close(engine);
}

struct breaker {
    struct weft_fault fault;
    bool armed;
};

static void break_reads(void *context, enum weft_fault_point point, enum weft_stmt stmt)
{
    struct breaker *breaker = context;
    if (breaker->armed && point == WEFT_FAULT_BEFORE_RUN && stmt == WEFT_STMT_UPSTREAM_RESULTS)
        breaker->fault.strike_at = 1;
}

/* No claim gives a member as if it had no upstreams; the other claimed items are given. */
CASE(flow_claim_without_its_results)
{
    struct breaker breaker = {.fault = {.kind = WEFT_FAULT_FULL, .hook = break_reads}};
    breaker.fault.context = &breaker;
    (void)submit_fan(f, 1, &(struct weft_node){0});
    struct weft_claimed a = take_kind(f, "a");
    complete_bytes(f, &a, "1", 1, NULL);
    (void)submit_job(f);
    struct weft_engine *engine = open_faulty(f, &breaker.fault);
    breaker.armed = true;
    struct weft_claim_result got = claim(f, engine, 10);
    is_int(got.count, 1, "only the other one is given");
    is_str(got.item[0].kind, "job", "the plain job is given");
    breaker.armed = false;
    breaker.fault.strike_at = 0;
    weft_engine_close(engine);
    forward_ms(f, 61000);
    (void)run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY);
    struct weft_claimed end = take_kind(f, "end");
    ok(holds(find_upstream(&end, 0, "a"), "1", 1), "the next one gets it with the result");
}

static void end_roots(struct fixture *f, size_t roots)
{
    static const char *const kinds[] = {"root"};
    const struct weft_claim args = {
        .worker = "w", .kinds = kinds, .kind_count = 1, .max = 1000, .lease_ms = 600000};
    for (size_t left = roots; left > 0;) {
        struct weft_claim_result got = claim_with(f, f->a, &args);
        if (!ok(got.count > 0, "claim %zu roots", got.count))
            return;
        struct weft_complete *done = weft_new_array(f->arena, struct weft_complete, got.count);
        struct weft_lease_answer *answer =
            weft_new_array(f->arena, struct weft_lease_answer, got.count);
        for (size_t i = 0; i < got.count; i++)
            done[i] = (struct weft_complete){.id = got.item[i].id, .epoch = got.item[i].epoch};
        is_int(engine_complete(f->a, done, got.count, answer, &f->err), WEFT_OK, "end them");
        left -= got.count;
    }
}

/* A call that may leave out upstreams, as a server makes it, leaves very many of them out. */
CASE(flow_claim_apart)
{
    enum { ROOTS = 4001 };
    int reads = 0;
    struct weft_fault fault = {.hook = count_reads, .context = &reads};
    (void)submit_fan(f, ROOTS, &(struct weft_node){0});
    end_roots(f, ROOTS);
    (void)submit_fan(f, 1, &(struct weft_node){0});
    struct weft_claimed a = take_kind(f, "a");
    complete_bytes(f, &a, "1", 1, NULL);
    struct weft_engine *engine = open_faulty(f, &fault);
    const struct weft_claim args = {.worker = "w", .max = 10, .lease_ms = 600000};
    struct weft_claim_result result = {0}, *got = &result;
    struct weft_joint_call call = {.op = WEFT_OP_CLAIM,
                                   .ns = "default",
                                   .item = &args,
                                   .count = 1,
                                   .answer = &result,
                                   .arena = weft_arena_new()};
    is_int(weft_engine_alone(engine, &call, NULL), WEFT_OK, "claim");
    if (ok(got->count == 2 && got->apart, "both ends are claimed and one is incomplete")) {
        ok(got->apart[0] && got->item[0].upstream_count == 0, "the one that comes after many");
        ok(!got->apart[1] && got->item[1].upstream_count == 1, "the other has its upstream");
        is_int(reads, 1, "one statement read the upstreams");
        is_int(weft_engine_claim_rest(engine, got, call.arena, &f->err), WEFT_OK, "the rest");
        is_int(got->item[0].upstream_count, ROOTS,
               "the upstreams of the incomplete item are read on request");
        is_str(got->item[0].node, "end", "the completed item has its node name");
        is_int(got->item[1].upstream_count, 1, "the item that was complete stays as it is");
        is_int(reads, 2, "one more statement read the rest");
    }
    weft_arena_free(call.arena);
    weft_engine_close(engine);
}

/* A member whose many upstreams cannot be read is not given; the other claimed items are. */
CASE(flow_claim_apart_without_its_results)
{
    enum { ROOTS = 4001 };
    struct breaker breaker = {.fault = {.kind = WEFT_FAULT_FULL, .hook = break_reads}};
    breaker.fault.context = &breaker;
    (void)submit_fan(f, ROOTS, &(struct weft_node){0});
    end_roots(f, ROOTS);
    (void)submit_job(f);
    struct weft_engine *engine = open_faulty(f, &breaker.fault);
    breaker.armed = true;
    struct weft_claim_result got = claim(f, engine, 10);
    is_int(got.count, 1, "only the other one is given");
    is_str(got.count ? got.item[0].kind : NULL, "job", "the plain job is given");
    breaker.armed = false;
    breaker.fault.strike_at = 0;
    weft_engine_close(engine);
    forward_ms(f, 61000);
    (void)run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY);
    is_int(take_kind(f, "end").upstream_count, ROOTS, "the next one gets it with all of them");
}
