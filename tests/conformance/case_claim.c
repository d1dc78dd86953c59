/* SPDX-License-Identifier: Apache-2.0 */

/* Claiming: which items, in which order, and how many. Lanes are in case_lane.c. */

#include "conformance.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/limits.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/job/claim.h"
#include "engine/job/joint.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

#include <stdlib.h>

CASE(claim_order)
{
    static const int32_t priority[] = {1, 3, 2, 3, 1, 2};
    static const size_t wanted[] = {1, 3, 2, 5, 0, 4};
    struct weft_spec spec[WEFT_LEN(priority)];
    for (size_t i = 0; i < WEFT_LEN(spec); i++)
        spec[i] = (struct weft_spec){.kind = "job", .priority = priority[i]};
    struct weft_submitted *answer = submit_many(f, f->a, spec, WEFT_LEN(spec));
    struct weft_claim_result got = claim(f, f->b, 4);
    is_int(got.count, 4, "a claim of 4 gets 4");
    for (size_t i = 0; i < got.count; i++)
        ok(same_id(&got.item[i].id, &answer[wanted[i]].id), "place %zu", i);
    got = claim(f, f->a, 4);
    is_int(got.count, 2, "the next claim gets the 2 that are left");
    for (size_t i = 0; i < got.count; i++)
        ok(same_id(&got.item[i].id, &answer[wanted[4 + i]].id), "place %zu", 4 + i);
}

CASE(claim_nothing)
{
    struct weft_claim_result got = claim(f, f->a, 1000);
    ok(got.count == 0 && !got.contended, "an empty store gives nothing");
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .delay_ms = 1000});
    is_int(claim(f, f->a, 1000).count, 0, "a store with delayed work only gives nothing");
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .lane = "elsewhere"});
    is_int(claim(f, f->a, 1000).count, 0, "a store with work in other lanes only gives nothing");
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .ns = "elsewhere"});
    is_int(claim(f, f->a, 1000).count, 0,
           "a store with work in other namespaces only gives nothing");
    is_int(claim_with(f, f->a, &(struct weft_claim){.worker = "w", .ns = "elsewhere"}).count, 1,
           "a claim that names the namespace gets the execution");
}

CASE(claim_max)
{
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 1200);
    is_int(claim_with(f, f->a, &(struct weft_claim){.worker = "w"}).count, 1, "0 means 1");
    is_int(claim(f, f->a, 7).count, 7, "7 means 7");
    is_int(claim(f, f->b, 1000).count, 1000, "1,000 means 1,000");
    is_int(claim(f, f->b, 1000).count, 192, "a claim gives no more than there is");
}

static size_t count_kind(const struct weft_claim_result *got, const char *kind)
{
    size_t count = 0;
    for (size_t i = 0; i < got->count; i++)
        count += strcmp(got->item[i].kind, kind) == 0;
    return count;
}

CASE(claim_kinds)
{
    static const char *const mail_only[] = {"mail"}, *const two[] = {"sms", "mail"};
    static const char *const unknown[] = {"fax"};
    (void)submit_copies(f, &(struct weft_spec){.kind = "mail"}, 4);
    (void)submit_copies(f, &(struct weft_spec){.kind = "sms"}, 4);
    (void)submit_copies(f, &(struct weft_spec){.kind = "mailbox"}, 4);
    struct weft_claim args = {.worker = "w", .max = 2, .kinds = mail_only, .kind_count = 1};
    struct weft_claim_result got = claim_with(f, f->a, &args);
    is_int(count_kind(&got, "mail"), 2, "only the kind that was named");
    args = (struct weft_claim){.worker = "w", .max = 20, .kinds = two, .kind_count = 2};
    got = claim_with(f, f->b, &args);
    ok(got.count == 6 && count_kind(&got, "mail") == 2 && count_kind(&got, "sms") == 4,
       "a claim of two kinds gets both");
    args = (struct weft_claim){.worker = "w", .max = 20, .kinds = unknown, .kind_count = 1};
    is_int(claim_with(f, f->b, &args).count, 0, "an unknown kind gives nothing");
    got = claim(f, f->a, 20);
    ok(got.count == 4 && count_kind(&got, "mailbox") == 4, "no kind named means every kind");
}

CASE(claim_lanes)
{
    static const char *const slow[] = {"slow"}, *const both[] = {"slow", "fast"};
    (void)submit_copies(f, &(struct weft_spec){.kind = "job", .lane = "slow"}, 3);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job", .lane = "fast"}, 3);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 1);
    struct weft_claim args = {.worker = "w", .max = 2, .lanes = slow, .lane_count = 1};
    struct weft_claim_result got = claim_with(f, f->a, &args);
    is_int(got.count, 2, "a lane by name");
    is_str(got.item[0].lane, "slow", "a claim of lane slow gives items of lane slow");
    args = (struct weft_claim){.worker = "w", .max = 20, .lanes = both, .lane_count = 2};
    is_int(claim_with(f, f->b, &args).count, 4, "a claim of several lanes gets their work");
    got = claim(f, f->a, 20);
    is_int(got.count, 1, "a claim that names no lane gets the default lane");
    is_str(got.item[0].lane, "default", "the item is of the default lane");
}

CASE(claim_unmatchable_head_blocks_no_other_claim)
{
    static const char *const gpu[] = {"gpu"}, *const mail[] = {"mail"};
    (void)submit_copies(
        f,
        &(struct weft_spec){
            .kind = "mail", .priority = 100, .capabilities = gpu, .capability_count = 1},
        1500);
    (void)submit_copies(f, &(struct weft_spec){.kind = "other", .priority = 50}, 1500);
    struct weft_id id = submit_ok(f, &(struct weft_spec){.kind = "mail"});
    const struct weft_claim args = {.worker = "w", .max = 10, .kinds = mail, .kind_count = 1};
    struct weft_claim_result got = claim_with(f, f->b, &args);
    ok(got.count == 1 && same_id(&got.item[0].id, &id),
       "the one that fits is found behind 3,000 that do not");
}

CASE(claim_sees_others_work_at_once)
{
    is_int(claim(f, f->b, 1).count, 0, "nothing yet, and the list of queues is fresh");
    submit_job(f);
    is_int(claim(f, f->b, 1).count, 1, "a queue that is new to this process");
    submit_job(f);
    is_int(claim(f, f->b, 1).count, 1, "a queue that it knows");
    (void)submit_ok(f, &(struct weft_spec){.kind = "another"});
    is_int(claim(f, f->b, 5).count, 1, "a queue that is new to the process is found");
    struct weft_engine *third = open_engine(f);
    submit_job(f);
    is_int(claim(f, third, 5).count, 1, "a process that has just started");
    weft_engine_close(third);
}

/* A claim that came at a moment; how many it takes. */
static size_t claim_asked_at(struct fixture *f, weft_usec asked_us)
{
    const struct weft_claim one = {.worker = "w", .max = 1};
    struct weft_claim_result result = {0};
    struct weft_joint_call call = {.op = WEFT_OP_CLAIM,
                                   .ns = "default",
                                   .item = &one,
                                   .count = 1,
                                   .asked_us = asked_us,
                                   .answer = &result,
                                   .arena = f->arena};
    is_int(weft_engine_alone(f->b, &call, &f->err), WEFT_OK, "claim");
    return result.count;
}

/* A thousand clients that ask for work in vain cost a few queries, not a thousand. */
CASE(claim_in_vain_shares_a_look)
{
    weft_usec early_us = weft_boot_us();
    uint64_t before = f->b->ready.refreshes;
    is_int(claim_asked_at(f, 0), 0, "an empty store has no work");
    uint64_t after = f->b->ready.refreshes;
    ok(after > before, "the first claim reads the list of ready queues");
    is_int(claim_asked_at(f, early_us), 0, "a claim from before that read takes nothing");
    is_int(f->b->ready.refreshes, after, "the claim reads no list");
    submit_job(f);
    is_int(claim_asked_at(f, weft_boot_us()), 1, "a claim that came after a submission finds it");
}

/* ---- Several claims in one call -------------------------------------------------------------- */

/* True when no execution is there twice. */
static bool all_distinct(const struct weft_claim_result *got)
{
    for (size_t i = 0; i < got->count; i++)
        for (size_t k = 0; k < i; k++)
            if (same_id(&got->item[i].id, &got->item[k].id))
                return false;
    return true;
}

static size_t count_claim(const struct weft_claim_result *got, uint32_t claim)
{
    size_t count = 0;
    for (size_t i = 0; i < got->count; i++)
        count += got->item[i].claim == claim;
    return count;
}

CASE(claim_several_for_different_queues)
{
    static const char *const mail[] = {"mail"}, *const fast[] = {"fast"};
    (void)submit_copies(f, &(struct weft_spec){.kind = "mail"}, 3);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job", .lane = "fast"}, 3);
    const struct weft_claim args[] = {
        {.worker = "w0", .max = 2, .kinds = mail, .kind_count = 1},
        {.worker = "w1", .max = 5, .lanes = fast, .lane_count = 1, .lease_ms = 5000},
        {.worker = "w2", .max = 5, .ns = "absent"},
    };
    struct weft_claim_result got = claim_several(f, f->b, args, WEFT_LEN(args));
    is_int(count_claim(&got, 0), 2, "the first claim gets its max");
    is_int(count_claim(&got, 1), 3, "the second claim gets all that its lane has");
    is_int(got.count, 5, "the third claim gets nothing");
    size_t wrong = 0;
    for (size_t i = 0; i < got.count; i++) {
        bool second = got.item[i].claim == 1;
        struct weft_execution now = describe(f, &got.item[i].id);
        wrong += strcmp(now.lane, second ? "fast" : "default") != 0 ||
                 strcmp(now.worker, second ? "w1" : "w0") != 0 ||
                 now.lease_expires_us != f->now_us + (second ? 5 : 30) * WEFT_SECOND;
    }
    is_int(wrong, 0, "each for its worker, with its lease, from its lanes");
}

CASE(claim_several_for_the_same_queue)
{
    struct weft_id *id = submit_copies(f, &(struct weft_spec){.kind = "job"}, 10);
    const struct weft_claim args[] = {
        {.worker = "w0", .max = 3}, {.worker = "w1", .max = 4}, {.worker = "w2", .max = 9}};
    struct weft_claim_result got = claim_several(f, f->b, args, WEFT_LEN(args));
    is_int(got.count, 10, "everything is given out");
    ok(all_distinct(&got), "no item is given twice");
    is_int(count_claim(&got, 0), 3, "the first claim gets its max");
    is_int(count_claim(&got, 1), 4, "the second too");
    is_int(count_claim(&got, 2), 3, "the third the rest");
    size_t wrong = 0;
    for (size_t i = 0; i < got.count; i++) {
        size_t want = got.item[i].claim == 0 ? 0 : got.item[i].claim == 1 ? 3 : 7;
        for (size_t k = 0; k < i; k++)
            want += got.item[k].claim == got.item[i].claim;
        wrong += !same_id(&got.item[i].id, &id[want]);
    }
    is_int(wrong, 0, "in the order of submission");
    is_int(claim(f, f->a, 10).count, 0, "a further claim gets nothing");
}

/* Tenants and kinds make many small queues that all claims of the call compete for. */
CASE(claim_several_over_many_queues)
{
    struct weft_spec spec[60];
    for (size_t i = 0; i < WEFT_LEN(spec); i++)
        spec[i] = (struct weft_spec){.kind = weft_arena_printf(f->arena, "kind%zu", i % 4),
                                     .tenant = weft_arena_printf(f->arena, "tenant%zu", i % 5),
                                     .priority = (int32_t)(i % 3)};
    (void)submit_many(f, f->a, spec, WEFT_LEN(spec));
    const struct weft_claim args[] = {
        {.worker = "w0", .max = 25}, {.worker = "w1", .max = 25}, {.worker = "w2", .max = 25}};
    size_t given = 0;
    for (int calls = 0; calls < 10 && given < WEFT_LEN(spec); calls++) {
        struct weft_claim_result got = claim_several(f, f->b, args, WEFT_LEN(args));
        ok(all_distinct(&got), "no item is given twice in one call");
        for (uint32_t i = 0; i < WEFT_LEN(args); i++)
            ok(count_claim(&got, i) <= 25, "no claim gets more than it asked for");
        for (size_t i = 0; i < got.count; i++)
            is_int(got.item[i].epoch, 1, "the item has its first epoch");
        given += got.count;
    }
    is_int(given, WEFT_LEN(spec), "everything is given out once");
}

CASE(claim_several_is_bounded)
{
    struct weft_claim args[3] = {
        {.worker = "w0", .max = 400}, {.worker = "w1", .max = 400}, {.worker = "w2", .max = 201}};
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 10);
    struct weft_arena *arena = weft_arena_new();
    struct weft_claim_result got = {0};
    struct weft_err err = {0};
    enum weft_rc rc = weft_engine_claim(f->a, "default", args, 3, arena, &got, &err);
    is_int(rc, WEFT_TOO_LARGE, "1,001 in one call are too many");
    expect_err(&err, WEFT_TOO_LARGE, "max", "all claims together");
    weft_arena_free(arena);
    is_int(count_rows(f, &(struct weft_filter){.state = WEFT_STATE_READY}), 10,
           "all executions are still ready");
    args[2].max = 200;
    is_int(claim_several(f, f->a, args, 3).count, 10, "1,000 are fine");
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static size_t payload_bytes(const struct weft_claim_result *got)
{
    size_t bytes = 0;
    for (size_t i = 0; i < got->count; i++)
        bytes += got->item[i].payload_size;
    return bytes;
}

/* Claims until nothing comes; no answer may pass the bound by more than its last payload. */
static void expect_bounded(struct fixture *f, uint32_t max, size_t total)
{
    size_t given = 0, largest = 0;
    for (size_t count = 1; count > 0 && given <= total;) {
        struct weft_claim_result got = claim(f, f->b, max);
        if (payload_bytes(&got) > largest)
            largest = payload_bytes(&got);
        count = got.count;
        given += got.count;
    }
    is_int(given, total, "everything comes in the end");
    ok(largest <= WEFT_BATCH_BYTES + WEFT_PAYLOAD_MAX, "no claim brings more than 9 MiB: %zu KiB",
       largest / 1024);
}

CASE(claim_bytes_of_one_queue)
{
    char *payload = weft_arena_alloc(f->arena, WEFT_PAYLOAD_MAX, 1);
    memset(payload, 'x', WEFT_PAYLOAD_MAX);
    (void)submit_copies(
        f, &(struct weft_spec){.kind = "job", .payload = payload, .payload_size = WEFT_PAYLOAD_MAX},
        20);
    struct weft_claim_result got = claim(f, f->b, 20);
    ok(got.count >= 1 && got.count <= 9, "20 times 1 MiB come in parts: %zu", got.count);
    expect_bounded(f, 20, 20 - got.count);
}

CASE(claim_bytes_of_many_queues)
{
    char *payload = weft_arena_alloc(f->arena, WEFT_PAYLOAD_MAX, 1);
    struct weft_spec spec[20];
    for (size_t i = 0; i < WEFT_LEN(spec); i++)
        spec[i] = (struct weft_spec){.kind = "job",
                                     .tenant = weft_arena_printf(f->arena, "tenant%zu", i),
                                     .payload = payload,
                                     .payload_size = WEFT_PAYLOAD_MAX};
    (void)submit_many(f, f->a, spec, WEFT_LEN(spec));
    expect_bounded(f, 20, WEFT_LEN(spec));
}

/* The bound is the call's, not the round's: a queue that runs dry must not open it again. */
CASE(claim_bytes_over_rounds)
{
    char *payload = weft_arena_alloc(f->arena, WEFT_PAYLOAD_MAX, 1);
    struct weft_spec spec[17] = {{.kind = "job", .tenant = "small"}};
    for (size_t i = 1; i < WEFT_LEN(spec); i++)
        spec[i] = (struct weft_spec){.kind = "job",
                                     .tenant = "large",
                                     .payload = payload,
                                     .payload_size = WEFT_PAYLOAD_MAX / (i <= 8 ? 2 : 1)};
    (void)submit_many(f, f->a, spec, WEFT_LEN(spec));
    expect_bounded(f, 16, WEFT_LEN(spec));
}

CASE(claim_bytes_of_several_claims)
{
    char *payload = weft_arena_alloc(f->arena, WEFT_PAYLOAD_MAX, 1);
    (void)submit_copies(
        f, &(struct weft_spec){.kind = "job", .payload = payload, .payload_size = WEFT_PAYLOAD_MAX},
        20);
    const struct weft_claim args[] = {{.worker = "w0", .max = 10}, {.worker = "w1", .max = 10}};
    struct weft_claim_result got = claim_several(f, f->b, args, 2);
    ok(got.count >= 1 && payload_bytes(&got) <= WEFT_BATCH_BYTES + 2 * WEFT_PAYLOAD_MAX,
       "two claims share the bound: %zu KiB", payload_bytes(&got) / 1024);
    ok(all_distinct(&got), "no item is given twice");
    expect_bounded(f, 20, 20 - got.count);
}

/* Large payloads in many queues use up the rounds of a call before each queue had a turn. */
CASE(claim_bytes_leave_one_out)
{
    char *payload = weft_arena_alloc(f->arena, WEFT_PAYLOAD_MAX, 1);
    struct weft_spec spec[16];
    for (size_t i = 0; i < WEFT_LEN(spec); i++)
        spec[i] = (struct weft_spec){.kind = weft_arena_printf(f->arena, "kind%zu", i % 8),
                                     .lane = i < 8 ? "one" : "two",
                                     .payload = payload,
                                     .payload_size = WEFT_PAYLOAD_MAX};
    (void)submit_many(f, f->a, spec, WEFT_LEN(spec));
    const char *const one = "one", *const two = "two";
    const struct weft_claim args[] = {
        {.worker = "w0", .lanes = &one, .lane_count = 1, .max = 8},
        {.worker = "w1", .lanes = &two, .lane_count = 1, .max = 8},
    };
    struct weft_claim_result got = claim_several(f, f->b, args, 2);
    size_t second = 0;
    for (size_t i = 0; i < got.count; i++)
        second += got.item[i].claim == 1;
    ok(got.count > 0 && (second > 0 || got.contended),
       "a claim that got nothing is contended: %zu of %zu", second, got.count);
}

/* Strikes the statement that claims when it runs for the nth time. */
struct breaker {
    struct weft_fault fault;
    int nth, runs;
};

static void break_claim(void *context, enum weft_fault_point point, enum weft_stmt stmt)
{
    struct breaker *breaker = context;
    if (point == WEFT_FAULT_BEFORE_RUN && stmt == WEFT_STMT_CLAIM &&
        ++breaker->runs == breaker->nth)
        breaker->fault.strike_at = 1;
}

/*
 * Claims with one queue each get theirs in one round, and it is committed with it. Payloads so
 * large that they stand in each other's way make more rounds, in a second transaction: when that
 * one fails for good, the claim still gives the items of the first one.
 */
CASE(claim_bytes_over_transactions)
{
    enum { CLAIMS = 10 };
    char *payload = weft_arena_alloc(f->arena, WEFT_PAYLOAD_MAX, 1);
    (void)submit_copies(
        f, &(struct weft_spec){.kind = "job", .payload = payload, .payload_size = WEFT_PAYLOAD_MAX},
        (size_t)2 * CLAIMS);
    struct weft_claim args[CLAIMS];
    for (size_t i = 0; i < CLAIMS; i++)
        args[i] = (struct weft_claim){.worker = "w", .max = 1};
    struct weft_claim_result got = claim_several(f, f->b, args, CLAIMS);
    ok(got.count > 1 && all_distinct(&got), "several claims were served: %zu", got.count);
    ok(got.count == CLAIMS || got.contended, "the other claims are answered with contended");

    struct breaker breaker = {.fault = {.kind = WEFT_FAULT_FULL, .hook = break_claim}};
    breaker.fault.context = &breaker;
    struct weft_engine *engine = open_faulty(f, &breaker.fault);
    breaker.nth = 3; /* the third round, which is the second of the second transaction */
    got = claim_several(f, engine, args, CLAIMS);
    is_int(got.count, 1, "the item of the first transaction is given");
    ok(got.contended, "the claims of the failed transaction are marked contended");
    is_int(count_rows(f, &(struct weft_filter){.state = WEFT_STATE_RUNNING}),
           breaker.runs == 3 ? 5 : 0, "no execution runs without a claim that got it");
    weft_engine_close(engine);
}

/* ---- Many queues ----------------------------------------------------------------------------- */

CASE(claim_many_queues)
{
    enum { TENANTS = 200, KINDS = 2, ALL = TENANTS * KINDS };
    struct weft_spec *spec = weft_new_array(f->arena, struct weft_spec, ALL);
    for (size_t i = 0; i < ALL; i++)
        spec[i] = (struct weft_spec){
            .kind = i % KINDS ? "odd" : "even",
            .tenant = weft_arena_printf(f->arena, "tenant%zu", i / KINDS),
        };
    (void)submit_many(f, f->a, spec, ALL);
    struct weft_engine *third = open_engine(f);
    struct weft_engine *engine[] = {f->a, f->b, third};
    /* A list of that many queues is read again every 100 ms at most: until then a claim may miss.
     */
    weft_usec until_us = weft_boot_us() + 20 * WEFT_SECOND;
    size_t given = 0, twice = 0;
    for (size_t calls = 0; given < ALL && weft_boot_us() < until_us; calls++) {
        struct weft_claim_result got = claim(f, engine[calls % 3], 30);
        for (size_t i = 0; i < got.count; i++)
            twice += got.item[i].epoch != 1;
        given += got.count;
    }
    is_int(twice, 0, "no execution is given twice");
    weft_engine_close(third);
    is_int(given, ALL, "400 queues are all served, each once");
}

/* A claim looks at 64 queues: the rotation must bring it to the one queue that has much. */
CASE(claim_many_queues_with_one_large)
{
    struct weft_spec spec[300];
    for (size_t i = 0; i < 100; i++)
        spec[i] = (struct weft_spec){.kind = "job",
                                     .tenant = weft_arena_printf(f->arena, "tenant%zu", i)};
    for (size_t i = 100; i < WEFT_LEN(spec); i++)
        spec[i] = (struct weft_spec){.kind = "job", .tenant = "large"};
    (void)submit_many(f, f->a, spec, WEFT_LEN(spec));
    size_t given = 0;
    for (int dry = 0; dry < 2;) {
        size_t got = claim(f, f->b, 100).count;
        dry = got ? 0 : dry + 1;
        given += got;
    }
    is_int(given, WEFT_LEN(spec), "everything comes in the end");
}
