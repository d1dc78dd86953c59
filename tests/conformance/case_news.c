/* SPDX-License-Identifier: Apache-2.0 */

/* News: what an operation reports to its listener, and what another replica does with it. */

#include "conformance.h"

#include "base/arena.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/job/leases.h"
#include "engine/tx/commit_effects.h"
#include "weft/weft.h"

enum { HEARD_MAX = 64 };

/* All reports to the listener since the last check. */
struct ear {
    struct weft_woken woken[HEARD_MAX];
    size_t count;
    size_t calls;
    weft_usec due_us;
};

static void listen(void *context, const struct weft_news *news)
{
    struct ear *ear = context;
    ear->calls++;
    for (size_t i = 0; i < news->count && ear->count < HEARD_MAX; i++)
        ear->woken[ear->count++] = news->woken[i];
    if (news->due_us < ear->due_us)
        ear->due_us = news->due_us;
}

static void start_over(struct ear *ear)
{
    *ear = (struct ear){.due_us = WEFT_NEVER};
}

static uint32_t sum(const struct ear *ear)
{
    uint32_t total = 0;
    for (size_t i = 0; i < ear->count; i++)
        total += ear->woken[i].count;
    return total;
}

/* So many executions of one queue in one call, and something due then (WEFT_NEVER: nothing). */
static void expect(struct ear *ear, uint32_t count, weft_usec due_us, const char *what)
{
    is_int(ear->calls, 1, "%s: one call of the listener", what);
    is_int(ear->count, count > 0, "%s: the queue is named", what);
    is_int(sum(ear), count, "%s: the number of executions", what);
    is_int(ear->due_us, due_us, "%s: due", what);
    start_over(ear);
}

static void expect_silence(struct ear *ear, const char *what)
{
    is_int(ear->calls, 0, "%s: the listener is not called", what);
    start_over(ear);
}

CASE(news_of_submissions)
{
    struct ear ear;
    start_over(&ear);
    weft_engine_on_news(f->a, listen, &ear);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 10);
    expect(&ear, 10, WEFT_NEVER, "ten of one queue");
    const struct weft_spec mixed[] = {
        {.kind = "job"},
        {.kind = "other"},
        {.kind = "job"},
        {.kind = "job", .delay_ms = 5000},
        {.kind = "job", .delay_ms = 9000},
        {.kind = ""},
    };
    (void)submit_many(f, f->a, mixed, WEFT_LEN(mixed));
    ok(ear.calls == 1 && ear.count == 2 && ear.woken[0].count == 2 && ear.woken[1].count == 1,
       "a number per queue, without delayed or refused items");
    is_int(ear.due_us, f->now_us + 5 * WEFT_SECOND,
           "the news give the earliest due time of the delayed");
    start_over(&ear);
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .deadline_us = f->now_us + WEFT_SECOND});
    expect(&ear, 1, f->now_us + WEFT_SECOND, "a deadline");
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .key = "k"});
    expect(&ear, 1, WEFT_NEVER, "with a key");
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .key = "k"});
    expect_silence(&ear, "its repeat");
}

CASE(news_of_leases)
{
    struct ear ear;
    start_over(&ear);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 6);
    weft_engine_on_news(f->a, listen, &ear);
    struct weft_claim_result got = claim(f, f->a, 6);
    is_int(got.count, 6, "six leases");
    expect_silence(&ear, "a claim");
    (void)renew(f, f->a, &got.item[0]);
    expect_silence(&ear, "a renewal");
    (void)complete(f, f->a, &got.item[0], "1");
    expect_silence(&ear, "a completion in a lane without a limit");
    struct weft_lease_answer answer = fail(f, f->a, &got.item[1], "x");
    expect(&ear, 0, answer.run_at_us, "a failure with a backoff");
    (void)fail_as(f, f->a, &got.item[2], &(struct weft_failure){.retry_after_ms = -1});
    expect(&ear, 1, WEFT_NEVER, "a failure that is tried again at once");
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &got.item[3], 0);
    expect(&ear, 1, WEFT_NEVER, "a release");
    (void)put_back(f, WEFT_PUT_BACK_DELAY, &got.item[4], 2000);
    expect(&ear, 0, f->now_us + 2 * WEFT_SECOND, "a delay");
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &got.item[4], 0);
    expect_silence(&ear, "a fenced release");
}

CASE(news_of_steering)
{
    struct ear ear;
    start_over(&ear);
    struct weft_id id = submit_job(f);
    (void)claim_one(f, f->a);
    weft_engine_on_news(f->a, listen, &ear);
    (void)steer_id(f, WEFT_STEER_REVOKE, &id);
    expect(&ear, 1, WEFT_NEVER, "revoke");
    (void)steer(f, WEFT_STEER_SET_DEADLINE,
                &(struct weft_steer){.id = id, .deadline_us = f->now_us + WEFT_SECOND});
    expect(&ear, 0, f->now_us + WEFT_SECOND, "set deadline");
    (void)steer(f, WEFT_STEER_REPRIORITIZE, &(struct weft_steer){.id = id, .priority = 5});
    expect_silence(&ear, "reprioritize");
    (void)steer_id(f, WEFT_STEER_CANCEL, &id);
    expect_silence(&ear, "cancel of an execution that was not running");
    (void)steer_id(f, WEFT_STEER_REPLAY, &id);
    expect(&ear, 1, WEFT_NEVER, "replay");
}

CASE(news_of_passes)
{
    struct ear ear;
    start_over(&ear);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 3);
    (void)submit_copies(f, &(struct weft_spec){.kind = "later", .delay_ms = 1000}, 4);
    (void)claim(f, f->a, 3);
    weft_engine_on_news(f->a, listen, &ear);
    forward_ms(f, 60000);
    (void)run_pass(f, f->a, WEFT_SCANNER_DELAYED_PROMOTER);
    expect(&ear, 4, WEFT_NEVER, "promoted");
    (void)run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY);
    expect(&ear, 3, WEFT_NEVER, "lost leases");
    (void)run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY);
    expect_silence(&ear, "a pass that finds nothing");
}

CASE(news_of_the_inbox)
{
    if (strcmp(f->store, "pg") != 0)
        return;
    struct ear ear;
    start_over(&ear);
    weft_engine_on_news(f->a, listen, &ear);
    run_sql(f,
            "SELECT weft.weft_submit('job'), weft.weft_submit('job'), "
            "weft.weft_submit('job', delay_ms => 3000)");
    (void)run_pass(f, f->a, WEFT_SCANNER_INTAKE);
    expect(&ear, 2, f->now_us + 3 * WEFT_SECOND, "intake");
}

/* Two queues wait behind a limit of two; a third is in a lane that has none. */
CASE(news_of_slots)
{
    struct ear ear;
    start_over(&ear);
    put_lane(f, f->a, &(struct weft_lane){.name = "narrow", .max_running = 2});
    (void)submit_copies(f, &(struct weft_spec){.kind = "one", .lane = "narrow"}, 4);
    (void)submit_copies(f, &(struct weft_spec){.kind = "two", .lane = "narrow"}, 4);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 2);
    static const char *const narrow[] = {"narrow"};
    const struct weft_claim args = {.worker = "w", .lanes = narrow, .lane_count = 1, .max = 10};
    struct weft_claim_result got = claim_with(f, f->a, &args);
    is_int(got.count, 2, "the limit holds");
    struct weft_claimed free_lane = claim_one(f, f->a);
    weft_engine_on_news(f->a, listen, &ear);

    (void)complete(f, f->a, &free_lane, NULL);
    expect_silence(&ear, "an end in the lane without a limit");
    (void)complete(f, f->a, &got.item[0], NULL);
    ok(ear.calls == 1 && ear.count == 2 && ear.woken[0].count == 1 && ear.woken[1].count == 1,
       "a completion wakes both queues of the lane for one slot");
    start_over(&ear);
    (void)steer_id(f, WEFT_STEER_CANCEL, &got.item[1].id);
    expect_silence(&ear, "a cancel, whose worker keeps the slot");
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &got.item[1], 0);
    ok(ear.calls == 1 && ear.count == 2 && sum(&ear) == 2,
       "a worker that releases its slot wakes both queues");
    start_over(&ear);
    got = claim_with(f, f->a, &args);
    is_int(got.count, 2, "two more are claimed");
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &got.item[0], 0);
    ok(ear.calls == 1 && ear.count == 2 && sum(&ear) == 2, "a release frees one slot, not two");
    start_over(&ear);
    forward_ms(f, 60000);
    (void)run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY);
    ok(ear.calls == 1 && ear.count == 2, "an expired lease wakes both queues");
    start_over(&ear);

    put_lane(f, f->a, &(struct weft_lane){.name = "narrow", .paused = true});
    expect_silence(&ear, "a pause");
    put_lane(f, f->a, &(struct weft_lane){.name = "narrow", .max_running = 50});
    ok(ear.calls == 1 && ear.count == 2 && ear.woken[0].count >= 50,
       "a lane that was opened wakes all of its queues");
}

/* The engine that completes has never met the queue: it must learn whose lane that is. */
CASE(news_of_slots_freed_by_other_processes)
{
    struct ear ear;
    start_over(&ear);
    put_lane(f, f->a, &(struct weft_lane){.name = "default", .max_running = 1});
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 2);
    struct weft_claimed lease = claim_one(f, f->a);
    struct weft_engine *other = open_engine(f);
    weft_engine_on_news(other, listen, &ear);
    struct weft_arena *arena = weft_arena_new();
    struct weft_claim_result none;
    const struct weft_claim args = {.worker = "w"};
    is_int(weft_engine_claim(other, "default", &args, 1, arena, &none, &f->err), WEFT_OK,
           "another process looks");
    is_int(none.count, 0, "a claim of the other process finds the lane full");
    (void)complete(f, other, &lease, NULL);
    expect(&ear, 1, WEFT_NEVER, "a slot");
    weft_arena_free(arena);
    weft_engine_close(other);
}

CASE(news_heard_from_others)
{
    struct ear ear, own;
    start_over(&ear);
    start_over(&own);
    weft_engine_on_news(f->a, listen, &ear);
    weft_engine_on_news(f->b, listen, &own);
    is_int(claim(f, f->b, 1).count, 0, "b finds no work");
    (void)submit_job(f);
    is_int(weft_engine_heard(f->b, ear.woken, ear.count, &f->err), WEFT_OK, "b hears of it");
    is_int(own.calls, 0, "b does not repeat the news");
    ok(weft_engine_fits(f->b, &(struct weft_claim){.ns = "default"}, ear.woken[0].queue),
       "b knows the queue that fits the claim");
    is_int(claim(f, f->b, 1).count, 1, "b claims the execution");
    is_int(weft_engine_heard(f->b, NULL, 0, &f->err), WEFT_OK, "nothing is fine too");
    const struct weft_woken bad = {.queue = 99999, .count = 1};
    ok(weft_engine_heard(f->b, &bad, 1, &f->err) != WEFT_OK, "a queue that does not exist is not");
    is_int(claim(f, f->b, 1).count, 0, "news of an unknown queue leave claims as they were");
}

CASE(news_fits)
{
    static const char *const gpu[] = {"gpu"}, *const both[] = {"ssd", "gpu", "eu"};
    static const char *const lanes[] = {"x", "y"}, *const kinds[] = {"k", "job"};
    struct ear ear;
    start_over(&ear);
    weft_engine_on_news(f->a, listen, &ear);
    static const char *const needed[] = {"gpu", "eu"};
    (void)submit_ok(f, &(struct weft_spec){.kind = "job"});
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .lane = "y"});
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .ns = "other"});
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .tenant = "t"});
    (void)submit_ok(
        f, &(struct weft_spec){.kind = "job", .capabilities = needed, .capability_count = 2});
    const struct {
        const char *name;
        struct weft_claim claim;
        bool fits[5];
    } row[] = {
        {"plain", {.ns = "default"}, {true, false, false, true, false}},
        {"no namespace", {.ns = NULL}, {true, false, false, true, false}},
        {"lanes",
         {.ns = "default", .lanes = lanes, .lane_count = 2},
         {false, true, false, false, false}},
        {"namespace", {.ns = "other"}, {false, false, true, false, false}},
        {"kinds",
         {.ns = "default", .kinds = kinds, .kind_count = 2},
         {true, false, false, true, false}},
        {"another kind", {.ns = "default", .kinds = kinds, .kind_count = 1}, {false}},
        {"too little",
         {.ns = "default", .capabilities = gpu, .capability_count = 1},
         {true, false, false, true, false}},
        {"enough",
         {.ns = "default", .capabilities = both, .capability_count = 3},
         {true, false, false, true, true}},
    };
    is_int(ear.count, 5, "the news name five queues");
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        for (size_t q = 0; q < ear.count; q++)
            is_int(weft_engine_fits(f->a, &row[i].claim, ear.woken[q].queue), row[i].fits[q],
                   "%s, queue %zu", row[i].name, q);
    ok(!weft_engine_fits(f->a, &row[0].claim, 99999), "an unknown queue fits no claim");
}
