/* SPDX-License-Identifier: Apache-2.0 */

/* Tenants take weighted turns; within a tenant, priority and then the order of submission. */

#include "conformance.h"

#include "base/arena.h"
#include "base/limits.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/job/claim.h"
#include "engine/names/names.h"
#include "engine/ready/poll.h"
#include "engine/ready/ready.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/admin.h"
#include "weft/weft.h"

static void submit_for(struct fixture *f, const char *tenant, size_t count)
{
    (void)submit_copies(f, &(struct weft_spec){.kind = "job", .tenant = tenant}, count);
}

static size_t count_tenant(const struct weft_claim_result *got, const char *tenant)
{
    size_t count = 0;
    for (size_t i = 0; i < got->count; i++)
        count += got->item[i].tenant && strcmp(got->item[i].tenant, tenant) == 0;
    return count;
}

/* Claims `calls` times and says how many were the tenant's. */
static size_t turns_of(struct fixture *f, const char *tenant, size_t calls, uint32_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < calls; i++) {
        struct weft_claim_result got = claim(f, f->a, max);
        count += count_tenant(&got, tenant);
    }
    return count;
}

static bool between(size_t got, size_t low, size_t high)
{
    if (got < low || got > high)
        printf("# got %zu, wanted %zu to %zu\n", got, low, high);
    return got >= low && got <= high;
}

CASE(fairness_small_tenant_one_by_one)
{
    submit_for(f, "large", 1000);
    submit_for(f, "small", 10);
    ok(between(turns_of(f, "small", 4, 1), 1, 3), "the small one is among the first four");
    ok(between(turns_of(f, "small", 18, 1), 7, 9),
       "the small tenant has had its ten after about twenty claims");
    is_int(turns_of(f, "large", 20, 1), 20, "the large tenant then has all turns");
}

CASE(fairness_small_tenant_in_tens)
{
    submit_for(f, "large", 1000);
    submit_for(f, "small", 10);
    for (int i = 0; i < 2; i++)
        ok(between(turns_of(f, "small", 1, 10), 4, 6), "half of every claim is the small one's");
    is_int(claim(f, f->a, 10).count, 10, "a claim is filled when the small one has no more");
}

/* Each process keeps its own account, so what they do together is fair as well. */
CASE(fairness_over_processes)
{
    submit_for(f, "large", 1000);
    submit_for(f, "small", 40);
    size_t small = 0;
    for (size_t i = 0; i < 40; i++) {
        struct weft_claim_result got = claim(f, i % 2 ? f->a : f->b, 1);
        small += count_tenant(&got, "small");
    }
    ok(between(small, 18, 22), "two processes give the small one its half");
}

CASE(fairness_no_tenant_is_a_tenant)
{
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 100);
    submit_for(f, "acme", 100);
    ok(between(turns_of(f, "acme", 20, 1), 9, 11), "executions without a tenant share one turn");
}

static void put_weights(struct fixture *f, int32_t max_running)
{
    static const struct weft_weight weight[] = {{"light", 1}, {"heavy", 3}};
    put_lane(f, f->a,
             &(struct weft_lane){.name = "default",
                                 .max_running = max_running,
                                 .weights = weight,
                                 .weight_count = WEFT_LEN(weight)});
}

CASE(fairness_weights_one_by_one)
{
    put_weights(f, 0);
    submit_for(f, "light", 400);
    submit_for(f, "heavy", 400);
    ok(between(turns_of(f, "light", 400, 1), 90, 110), "1:3 over 400 claims of one");
}

CASE(fairness_weights_in_bulk)
{
    put_weights(f, 0);
    submit_for(f, "light", 400);
    submit_for(f, "heavy", 400);
    ok(between(turns_of(f, "light", 57, 7), 90, 110), "1:3 over 57 claims of seven");
}

CASE(fairness_weights_of_the_other_process)
{
    submit_for(f, "light", 400);
    submit_for(f, "heavy", 400);
    put_weights(f, 0);
    struct weft_engine *third = open_engine(f);
    size_t light = 0;
    for (size_t i = 0; i < 100; i++) {
        struct weft_claim_result got = claim(f, third, 1);
        light += count_tenant(&got, "light");
    }
    weft_engine_close(third);
    ok(between(light, 22, 28), "a process that starts later has the weights");
}

/* Claims up to ten from a lane with a limit of one, 80 times; says how many were the light one's.
 */
static size_t light_under_a_limit(struct fixture *f)
{
    size_t light = 0;
    for (size_t i = 0; i < 80; i++) {
        struct weft_claim_result got = claim(f, f->a, 10);
        light += count_tenant(&got, "light");
        if (got.count == 1)
            (void)complete(f, f->a, &got.item[0], NULL);
        else
            ok(false, "one at a time, not %zu", got.count);
    }
    return light;
}

/* Turns that a full lane could not honour must not be charged. */
CASE(fairness_weights_under_a_limit)
{
    put_weights(f, 1);
    submit_for(f, "light", 100);
    submit_for(f, "heavy", 100);
    ok(between(light_under_a_limit(f), 18, 22), "1:3 over 80 claims");
}

CASE(fairness_weights_under_a_limit_in_several_queues)
{
    put_weights(f, 1);
    for (size_t i = 0; i < 4; i++)
        (void)submit_copies(f,
                            &(struct weft_spec){.kind = i % 2 ? "odd" : "even",
                                                .tenant = i / 2 ? "heavy" : "light"},
                            50);
    ok(between(light_under_a_limit(f), 18, 22), "1:3 over 80 claims");
}

CASE(fairness_priority_does_not_cross_tenants)
{
    (void)submit_copies(
        f, &(struct weft_spec){.kind = "job", .tenant = "loud", .priority = INT16_MAX}, 100);
    submit_for(f, "quiet", 100);
    ok(between(turns_of(f, "quiet", 20, 1), 9, 11), "one by one");
    ok(between(turns_of(f, "quiet", 2, 10), 9, 11),
       "the quiet tenant gets half of two claims of ten");
}

/* ---- Within a tenant ------------------------------------------------------------------------- */

static const char *const gpu[] = {"gpu"};

/* Twelve of one tenant in four queues (two kinds, two routes), priorities all mixed. */
static struct weft_submitted *submit_mixed(struct fixture *f, size_t *ret_order)
{
    static const int32_t priority[] = {0, 5, 0, 9, 5, 5, -3, 0, 9, -3, 0, 5};
    static const size_t order[] = {3, 8, 1, 4, 5, 11, 0, 2, 7, 10, 6, 9};
    struct weft_spec spec[WEFT_LEN(priority)];
    for (size_t i = 0; i < WEFT_LEN(spec); i++)
        spec[i] = (struct weft_spec){.kind = i % 2 ? "odd" : "even",
                                     .tenant = "acme",
                                     .priority = priority[i],
                                     .capabilities = gpu,
                                     .capability_count = (i / 2) % 2};
    memcpy(ret_order, order, sizeof(order));
    return submit_many(f, f->a, spec, WEFT_LEN(spec));
}

static const struct weft_claim with_gpu = {
    .worker = "w", .max = 1, .capabilities = gpu, .capability_count = 1};

CASE(fairness_order_within_a_tenant_one_by_one)
{
    size_t order[12];
    struct weft_submitted *answer = submit_mixed(f, order);
    for (size_t i = 0; i < WEFT_LEN(order); i++) {
        struct weft_claim_result got = claim_with(f, i % 2 ? f->a : f->b, &with_gpu);
        ok(got.count == 1 && same_id(&got.item[0].id, &answer[order[i]].id),
           "claim %zu is number %zu", i, order[i]);
    }
}

CASE(fairness_order_within_a_tenant_in_fives)
{
    size_t order[12];
    struct weft_submitted *answer = submit_mixed(f, order);
    for (size_t at = 0; at < WEFT_LEN(order); at += 5) {
        size_t wanted = WEFT_LEN(order) - at < 5 ? WEFT_LEN(order) - at : 5, found = 0;
        struct weft_claim args = with_gpu;
        args.max = 5;
        struct weft_claim_result got = claim_with(f, f->b, &args);
        is_int(got.count, wanted, "claim at %zu: its number", at);
        for (size_t i = 0; i < got.count; i++)
            for (size_t k = at; k < at + wanted; k++)
                found += same_id(&got.item[i].id, &answer[order[k]].id);
        is_int(found, wanted, "claim at %zu: the executions whose turn it is", at);
    }
}

/* ---- Coming and going ------------------------------------------------------------------------ */

CASE(fairness_newcomer_gets_no_credit)
{
    submit_for(f, "old", 300);
    is_int(turns_of(f, "old", 100, 1), 100, "alone it has every turn");
    submit_for(f, "new", 100);
    ok(between(turns_of(f, "new", 20, 1), 9, 11), "a newcomer has half from then on, not more");
}

CASE(fairness_comeback_gets_no_credit)
{
    submit_for(f, "steady", 400);
    submit_for(f, "moody", 10);
    is_int(turns_of(f, "moody", 21, 1), 10, "the moody tenant had its ten");
    is_int(turns_of(f, "steady", 100, 1), 100, "the other works on alone");
    submit_for(f, "moody", 100);
    ok(between(turns_of(f, "moody", 20, 1), 9, 11), "back again it has half, not all it missed");
}

CASE(fairness_both_come_back)
{
    submit_for(f, "steady", 110);
    submit_for(f, "moody", 10);
    (void)turns_of(f, "moody", 120, 1);
    is_int(claim(f, f->a, 1).count, 0, "both tenants are served");
    submit_for(f, "steady", 50);
    submit_for(f, "moody", 50);
    ok(between(turns_of(f, "moody", 20, 1), 9, 11), "both tenants start with equal shares again");
}

/* ---- Many queues ----------------------------------------------------------------------------- */

/* Submits one of each kind, `kind-0` and so on, a thousand at a time. */
static void submit_kinds(struct fixture *f, const char *tenant, size_t count)
{
    struct weft_spec *spec = weft_new_array(f->arena, struct weft_spec, count);
    for (size_t i = 0; i < count; i++)
        spec[i] = (struct weft_spec){.kind = weft_arena_printf(f->arena, "kind-%zu", i),
                                     .tenant = tenant};
    for (size_t at = 0; at < count; at += WEFT_BATCH_MAX)
        (void)submit_many(f, f->a, spec + at,
                          count - at < WEFT_BATCH_MAX ? count - at : WEFT_BATCH_MAX);
}

CASE(fairness_one_kind_beside_many)
{
    submit_kinds(f, "large", 500);
    submit_for(f, "small", 100);
    ok(between(turns_of(f, "small", 40, 1), 19, 21), "half of the claims of one are the small's");
    ok(between(turns_of(f, "small", 4, 10), 19, 21),
       "half of the claims of ten are of the small tenant");
}

CASE(fairness_weights_beside_many_kinds)
{
    put_weights(f, 0);
    submit_kinds(f, "light", 300);
    submit_for(f, "heavy", 200);
    ok(between(turns_of(f, "light", 80, 1), 18, 22), "1:3 over 80 claims");
}

/* More tenants than one claim looks at: a weight holds in a round of all of them. */
CASE(fairness_weights_among_many_tenants)
{
    enum { TENANTS = 150, ROUNDS = 4 };
    put_weights(f, 0);
    submit_for(f, "heavy", 3 * ROUNDS + 1);
    for (size_t i = 0; i + 1 < TENANTS; i++)
        submit_for(f, weft_arena_printf(f->arena, "tenant-%zu", i), ROUNDS + 1);
    size_t heavy = turns_of(f, "heavy", (size_t)ROUNDS * (TENANTS + 2), 1);
    ok(between(heavy, 3 * ROUNDS - 3, 3 * ROUNDS + 1), "three turns in each round");
}

static size_t claim_until_empty(struct fixture *f, struct weft_engine *engine, const char *ns)
{
    size_t count = 0, got;
    do {
        struct weft_claim args = {.ns = ns, .worker = "w", .max = 400};
        got = claim_with(f, engine, &args).count;
        count += got;
    } while (got > 0);
    return count;
}

/* More ready queues than a look sees at once: a new process finds all of them, and each once. */
CASE(fairness_many_queues_are_all_found)
{
    enum { MANY = WEFT_HOP_QUEUES + 200 };
    submit_kinds(f, NULL, MANY);
    (void)submit_ok(f, &(struct weft_spec){.ns = "other", .kind = "job"});
    struct weft_engine *third = open_engine(f), *fourth = open_engine(f);
    is_int(claim_until_empty(f, fourth, "other"), 1, "the one of another namespace is found");
    is_int(claim_until_empty(f, third, NULL), MANY, "all of the many are found");
    is_int(claim_until_empty(f, fourth, NULL), 0, "the other process finds nothing left");
    submit_kinds(f, NULL, 10);
    is_int(claim_until_empty(f, third, NULL), 10, "new work of a known queue is found at once");
    weft_engine_close(third);
    weft_engine_close(fourth);
}

/* The poll sees a part at a time, and the lanes that claims ask for each time. */
CASE(fairness_polls_of_many_queues)
{
    enum { MANY = WEFT_HOP_QUEUES + 200 };
    struct weft_engine *third = open_engine(f);
    struct weft_poll poll = {0};
    submit_kinds(f, NULL, MANY);
    is_int(weft_engine_poll(third, f->arena, &poll, &f->err), WEFT_OK, "poll");
    is_int(poll.count, WEFT_HOP_QUEUES, "a poll tells so many at most");
    is_int(weft_engine_poll(third, f->arena, &poll, &f->err), WEFT_OK, "poll");
    is_int(poll.count, MANY - WEFT_HOP_QUEUES, "the next one tells the rest");
    struct weft_claim other = {.ns = "other", .worker = "w", .wait_ms = 1};
    is_int(claim_with(f, third, &other).count, 0, "a claim of another namespace gets nothing");
    (void)submit_ok(f, &(struct weft_spec){.ns = "other", .kind = "job"});
    is_int(weft_engine_poll(third, f->arena, &poll, &f->err), WEFT_OK, "poll");
    bool told = false;
    for (size_t i = 0; i < poll.count; i++)
        told |= weft_engine_fits(third, &other, poll.queue[i].queue);
    ok(told, "work of the lane that it asked for is in the next poll");
    is_int(claim_with(f, third, &other).count, 1, "a claim gets the work of that lane");
    weft_engine_close(third);
}

/* After a failover a number may be that of another queue: the list is read again. */
CASE(fairness_list_is_dropped_with_the_lineage)
{
    submit_for(f, "acme", 3);
    is_int(claim(f, f->b, 1).count, 1, "one is claimed, and its queue listed");
    weft_names_suspect(&f->b->names);
    weft_ready_suspect(&f->b->ready);
    is_int(f->b->ready.rings.listed.count, 0, "no queue of the lineage before is listed");
    is_int(claim(f, f->b, 5).count, 2, "a claim finds the other two");
}

/* ---- Weights while the settings are read ----------------------------------------------------- */

struct meanwhile {
    struct fixture *f;
    struct weft_engine *engine;
    enum weft_stmt stmt;
};

/* Puts weights when a statement has read the settings, and its answer is not taken in yet. */
static void put_meanwhile(void *context, enum weft_fault_point point, enum weft_stmt stmt)
{
    static const struct weft_weight weight[] = {{"large", 3}};
    struct meanwhile *meanwhile = context;
    if (point != WEFT_FAULT_AFTER_RUN || stmt != meanwhile->stmt)
        return;
    meanwhile->stmt = WEFT_STMT_COUNT;
    put_lane(meanwhile->f, meanwhile->engine,
             &(struct weft_lane){.name = "default", .weights = weight, .weight_count = 1});
}

CASE(fairness_weights_hold_when_an_older_look_ends_later)
{
    static const enum weft_stmt stmt[] = {WEFT_STMT_POLL, WEFT_STMT_LANE_SETTINGS};
    struct meanwhile meanwhile = {.f = f, .stmt = WEFT_STMT_COUNT};
    struct weft_fault fault = {.hook = put_meanwhile, .context = &meanwhile};
    meanwhile.engine = open_faulty(f, &fault);
    submit_for(f, "large", 80);
    submit_for(f, "small", 80);
    for (size_t i = 0; i < WEFT_LEN(stmt); i++) {
        struct weft_poll poll = {0};
        put_lane(f, meanwhile.engine, &(struct weft_lane){.name = "default"});
        meanwhile.stmt = stmt[i];
        is_int(stmt[i] == WEFT_STMT_POLL
                   ? weft_engine_poll(meanwhile.engine, f->arena, &poll, &f->err)
                   : weft_ready_refresh(meanwhile.engine, &f->err),
               WEFT_OK, "look");
        is_int(meanwhile.stmt, WEFT_STMT_COUNT, "weights were put meanwhile");
        struct weft_claim_result got = claim(f, meanwhile.engine, 40);
        ok(between(count_tenant(&got, "large"), 29, 31), "the weights hold for the next claim");
    }
    weft_engine_close(meanwhile.engine);
}
