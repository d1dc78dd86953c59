/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Claims that wait, and wakes that come at the worst moment: while a claim looks for work. The
 * engine, the loop and the queues are stand-ins, so that the order of things is the test's: what
 * happens in the middle of a look is done by the engine's stand-in. Nothing here waits: a claim
 * that must look again is queued again before weft_claims_run() returns, or it is not at all until
 * the slow poll, a minute from here.
 */

#include "tap.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "engine/admin/workers.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/job/claim_choose.h"
#include "engine/job/claim_upstreams.h"
#include "engine/job/joint.h"
#include "engine/job/lease_watch.h"
#include "engine/job/leases.h"
#include "engine/tx/commit_effects.h"
#include "net/auth.h"
#include "net/group/claims.h"
#include "net/group/group.h"
#include "net/http/answers.h"
#include "net/http/loop.h"
#include "net/request.h"
#include "net/server.h"
#include "net/upkeep/roster.h"
#include "net/wait/wait_claims.h"
#include "net/wait/wait_ends.h"
#include "net/wait/waits.h"
#include "weft/weft.h"

#include <poll.h>
#include <stdlib.h>

enum { QUEUE_A = 1, QUEUE_B = 2, QUEUE_C = 3, ASKS_MAX = 8 };

struct stage {
    struct weft_server server;
    int64_t waiters; /* as the metric says */
    struct weft_clock *clock;
    struct weft_request request[ASKS_MAX];
    size_t requests;
    struct weft_woken during; /* the wake that comes while the next look is made; count 0: none */
    uint32_t finds;           /* how many executions the next look finds, for its first claim */
    bool fails;               /* the next look fails */
    unsigned looks;
    unsigned fits;                        /* how often a claim was held against a queue */
    struct weft_request *again[ASKS_MAX]; /* queued to look again, in order */
    size_t agains;
    unsigned answered;
    struct weft_answers answers; /* of the loop, which only some cases have */
    uint64_t reserved;           /* at the last look */
};

static struct stage *stage; /* the stand-ins have no other way to it */

/* ---- Stand-ins ------------------------------------------------------------------------------- */

void weft_metric_add(struct weft_metrics *metrics, enum weft_metric which, size_t label,
                     uint64_t amount)
{
    (void)metrics;
    (void)label;
    if (which == WEFT_METRIC_WAITERS)
        stage->waiters += (int64_t)amount;
}

void weft_metric_sub(struct weft_metrics *metrics, enum weft_metric which, size_t label,
                     uint64_t amount)
{
    (void)metrics;
    (void)label;
    if (which == WEFT_METRIC_WAITERS)
        stage->waiters -= (int64_t)amount;
}

/* Queue A has the work of lane "a", queue B that of lane "b". */
bool weft_engine_fits(struct weft_engine *engine, const struct weft_claim *claim, int32_t queue)
{
    (void)engine;
    stage->fits++;
    const char *lane = queue == QUEUE_A ? "a" : "b";
    for (size_t i = 0; i < claim->lane_count; i++)
        if (strcmp(claim->lanes[i], lane) == 0)
            return true;
    return false;
}

/* Queues A and B are in "default", queue C is in "other". */
const char *weft_engine_namespace_of(struct weft_engine *engine, int32_t queue)
{
    (void)engine;
    return queue == QUEUE_C ? "other" : "default";
}

enum weft_rc weft_engine_claim_check(const struct weft_claim *claim, struct weft_err *err)
{
    (void)claim;
    (void)err;
    return WEFT_OK;
}

void weft_engine_together(struct weft_engine *engine, const struct weft_together *calls)
{
    (void)engine;
    struct weft_claim_call *call = calls->claim;
    stage->looks++;
    stage->reserved = atomic_load(&stage->answers.reserved);
    call->result.count = stage->finds;
    call->result.item = weft_new_array(call->arena, struct weft_claimed, stage->finds + 1);
    for (uint32_t i = 0; i < stage->finds; i++)
        call->result.item[i] = (struct weft_claimed){.epoch = 1, .lane = "a", .kind = "k"};
    stage->finds = 0;
    if (stage->during.count > 0) {
        struct weft_woken woken = stage->during;
        stage->during.count = 0;
        weft_waits_wake(stage->server.waits, WEFT_WAKE_LOCAL, &woken, 1);
    }
    bool fails = stage->fails;
    stage->fails = false;
    call->rc = fails ? weft_fail(&call->err, WEFT_UNAVAILABLE, "the store is down") : WEFT_OK;
}

enum weft_rc weft_engine_claim_rest(struct weft_engine *engine, struct weft_claim_result *result,
                                    struct weft_arena *arena, struct weft_err *err)
{
    (void)engine;
    (void)result;
    (void)arena;
    return weft_fail(err, WEFT_INTERNAL, "no item of these tests is a member of a flow");
}

enum weft_rc weft_engine_put_back(struct weft_engine *engine, enum weft_put_back_kind kind,
                                  const struct weft_put_back *item, size_t count,
                                  struct weft_lease_answer *ret_answer, struct weft_err *err)
{
    (void)engine;
    (void)kind;
    (void)item;
    (void)count;
    (void)ret_answer;
    (void)err;
    abort(); /* no client hangs up here */
}

struct weft_clock *weft_engine_clock(struct weft_engine *engine)
{
    (void)engine;
    return stage->clock;
}

bool weft_roster_knows(struct weft_roster *roster, const struct weft_claim *claim)
{
    (void)roster;
    (void)claim;
    return true;
}

enum weft_rc weft_engine_meet_workers(struct weft_engine *engine, const struct weft_watch *watch,
                                      size_t count, struct weft_worker_met *ret_met,
                                      struct weft_err *err)
{
    (void)engine;
    (void)watch;
    (void)count;
    (void)ret_met;
    return weft_fail(err, WEFT_INTERNAL, "the roster of these tests knows every worker");
}

void weft_roster_seen(struct weft_roster *roster, const struct weft_claim *claim, weft_usec now_us)
{
    (void)roster;
    (void)claim;
    (void)now_us;
}

void weft_groups_put_again(struct weft_groups *groups, struct weft_request *request)
{
    (void)groups;
    if (stage->agains < ASKS_MAX)
        stage->again[stage->agains++] = request;
}

void weft_groups_look(struct weft_groups *groups)
{
    (void)groups;
}

void weft_groups_sweep(struct weft_groups *groups)
{
    (void)groups;
}

void weft_groups_do(struct weft_groups *groups, void (*fn)(struct weft_server *, void *),
                    void *context)
{
    (void)groups;
    (void)fn;
    (void)context;
    abort(); /* every answer is delivered here */
}

void weft_loop_answer(struct weft_server *server, struct weft_request **request, size_t count)
{
    (void)server;
    (void)request;
    stage->answered += (unsigned)count;
}

bool weft_loop_gone(const struct weft_request *request)
{
    (void)request;
    return false;
}

struct weft_answers *weft_loop_answers(struct weft_loop *loop)
{
    (void)loop;
    return &stage->answers;
}

void weft_loop_hold(struct weft_request *request)
{
    (void)request;
}

const char *weft_request_header(const struct weft_request *request, const char *name)
{
    (void)request;
    (void)name;
    return NULL;
}

int weft_loop_fd(const struct weft_request *request)
{
    (void)request;
    return -1; /* poll() passes over it */
}

void weft_loop_sweep(struct weft_loop *loop)
{
    (void)loop;
}

/* ---- The stage ------------------------------------------------------------------------------- */

static void set_up(struct stage *s)
{
    *s = (struct stage){0};
    stage = s;
    s->clock = weft_clock_new();
    weft_clock_set(s->clock, 1000 * WEFT_SECOND);
    s->server.waits = weft_waits_new(&s->server);
    weft_waits_start(s->server.waits);
}

static void clear(struct stage *s)
{
    weft_waits_free(s->server.waits);
    for (size_t i = 0; i < s->requests; i++) {
        weft_buf_done(&s->request[i].body);
        weft_buf_done(&s->request[i].reply.body);
        weft_arena_free(s->request[i].arena);
    }
    weft_clock_free(s->clock);
}

/* A claim of up to two of one lane that may wait for as long as claims may. */
static struct weft_request *claim_of(struct stage *s, const char *lane)
{
    struct weft_request *request = &s->request[s->requests++];
    struct weft_err err = {0};
    request->server = &s->server;
    request->arena = weft_arena_new();
    request->ns = "default";
    weft_buf_init(&request->body, 1000);
    weft_buf_printf(&request->body,
                    "{\"worker\":\"w\",\"max\":2,\"lanes\":[\"%s\"],\"wait_ms\":60000}", lane);
    ok(weft_claims_read(request, &err) == WEFT_OK, "a claim of lane %s that waits", lane);
    return request;
}

static void run(struct stage *s, struct weft_request *request)
{
    weft_claims_run(&s->server, &request, 1);
}

/* Takes the next one that was queued again, or NULL. */
static struct weft_request *next_again(struct stage *s)
{
    if (s->agains == 0)
        return NULL;
    struct weft_request *request = s->again[0];
    s->agains--;
    memmove(s->again, s->again + 1, s->agains * sizeof(struct weft_request *));
    return request;
}

static void wake(struct stage *s, int32_t queue, uint32_t count)
{
    const struct weft_woken woken = {queue, count};
    weft_waits_wake(s->server.waits, WEFT_WAKE_LOCAL, &woken, 1);
}

/* The poll sees work in a queue. */
static void poll_sees(struct stage *s, int32_t queue)
{
    const struct weft_woken woken = {queue, 1};
    weft_waits_wake(s->server.waits, WEFT_WAKE_POLL, &woken, 1);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static void test_wake_of_a_sleeper(void)
{
    struct stage s;
    set_up(&s);
    struct weft_request *request = claim_of(&s, "a");
    run(&s, request);
    is_int(s.agains, 0, "a claim that found nothing sleeps");
    wake(&s, QUEUE_B, 1);
    is_int(s.agains, 0, "work of another lane does not wake it");
    wake(&s, QUEUE_A, 1);
    ok(next_again(&s) == request, "work of its lane does");
    s.finds = 1;
    run(&s, request);
    is_int(s.answered, 1, "the woken claim finds work and is answered");
    is_int(request->reply.status, 200, "the claim is answered with 200");
    clear(&s);
}

static void test_wake_during_the_look(void)
{
    struct stage s;
    set_up(&s);
    struct weft_request *request = claim_of(&s, "a");
    s.during = (struct weft_woken){QUEUE_A, 1};
    run(&s, request);
    is_int(s.looks, 1, "a look that a wake came into, and that found nothing");
    ok(next_again(&s) == request, "a wake during a look makes the claim look again at once");
    is_int(s.answered, 0, "the claim is not answered yet");
    s.finds = 1;
    run(&s, request);
    is_int(s.looks, 2, "the second look");
    is_int(s.answered, 1, "finds what the wake was for");
    is_int(s.agains, 0, "no other claim is woken");
    is_int(s.waiters, 0, "no claim waits");
    clear(&s);
}

static void test_one_wake_one_look(void)
{
    struct stage s;
    set_up(&s);
    struct weft_request *request = claim_of(&s, "a");
    s.during = (struct weft_woken){QUEUE_A, 1};
    run(&s, request);
    ok(next_again(&s) == request, "a wake during a look makes the claim look again");
    run(&s, request);
    is_int(s.agains, 0, "the second look finds nothing and the claim sleeps");
    wake(&s, QUEUE_A, 1);
    ok(next_again(&s) == request, "the next wake finds it asleep");
    s.during = (struct weft_woken){QUEUE_A, 1};
    run(&s, request);
    ok(next_again(&s) == request, "a second wake during the look is kept as well");
    s.during = (struct weft_woken){QUEUE_B, 1};
    run(&s, request);
    is_int(s.agains, 0, "one for another lane is none of its business");
    wake(&s, QUEUE_A, 1);
    s.finds = 1;
    run(&s, next_again(&s));
    is_int(s.waiters, 0, "the claim is answered");
    clear(&s);
}

/* A took what it had seen before the wake came: the work that the wake was for is still there. */
static void test_handed_on(bool fails)
{
    struct stage s;
    set_up(&s);
    struct weft_request *a = claim_of(&s, "a"), *b = claim_of(&s, "a");
    run(&s, b);
    wake(&s, QUEUE_A, 1);
    ok(next_again(&s) == b, "b looks");
    s.during = (struct weft_woken){QUEUE_A, 1};
    s.finds = fails ? 0 : 1;
    s.fails = fails;
    run(&s, b); /* only b is on the list: it is given the wake */
    is_int(s.answered, 1, "b is answered, with %s", fails ? "an error" : "older work");
    is_int(s.agains, 0, "no other claim is there to take the wake");
    run(&s, a);
    is_int(s.agains, 0, "a looks after that, so it sees what there is");

    struct weft_request *c = claim_of(&s, "a");
    weft_waits_enter(s.server.waits, c, weft_boot_us() + 60 * WEFT_SECOND);
    wake(&s, QUEUE_A, 1);
    ok(next_again(&s) == a, "a sleeper comes before c, who looks");
    wake(&s, QUEUE_A, 1); /* a is awake now and stands before c: it is given this one */
    s.finds = fails ? 0 : 1;
    s.fails = fails;
    run(&s, a); /* hands it on to c, who is still looking */
    is_int(s.answered, 2, "a is answered");
    is_int(s.agains, 0, "c is looking and need not be woken");
    ok(weft_waits_sleep(s.server.waits, c, false), "c found nothing");
    ok(next_again(&s) == c, "c looks again at once: a handed its wake to c");
    s.finds = 1;
    run(&s, c);
    is_int(s.answered, 3, "c is answered");
    is_int(s.waiters, 0, "no claim waits");
    clear(&s);
}

/* The poll may see work that a claim was woken for and has not taken yet. */
static void test_poll_and_wake(void)
{
    struct stage s;
    set_up(&s);
    struct weft_request *a = claim_of(&s, "a"), *b = claim_of(&s, "a"), *c = claim_of(&s, "b");
    run(&s, a);
    run(&s, b);
    run(&s, c);
    wake(&s, QUEUE_A, 1);
    ok(next_again(&s) == a, "a is woken and is about to look");
    poll_sees(&s, QUEUE_A);
    is_int(s.agains, 0, "the poll sees the work that a is woken for: b sleeps on");
    poll_sees(&s, QUEUE_B);
    ok(next_again(&s) == c, "another queue is another matter");
    run(&s, a);
    ok(next_again(&s) == a, "a looked in vain, perhaps before the poll did: it looks again");
    run(&s, a);
    is_int(s.agains, 0, "a sleeps after the second look");

    wake(&s, QUEUE_A, 1);
    ok(next_again(&s) == a, "a is woken again");
    poll_sees(&s, QUEUE_A);
    poll_sees(&s, QUEUE_A);
    ok(next_again(&s) == b, "a whole poll later it has not come back: b is woken");
    run(&s, b);
    is_int(s.agains, 0, "the look of b finds nothing");
    s.finds = 1;
    run(&s, a);
    is_int(s.answered, 1, "a found something");
    ok(next_again(&s) == b, "there may be more since the poll: b looks");
    run(&s, b);
    poll_sees(&s, QUEUE_A);
    ok(next_again(&s) == b, "no claim was woken for the work: the poll wakes b");
    s.finds = 1;
    run(&s, b);
    is_int(s.answered, 2, "b is answered");
    s.finds = 1;
    run(&s, c);
    is_int(s.waiters, 0, "no claim waits");
    clear(&s);
}

/* ---- Watches --------------------------------------------------------------------------------- */

enum { WORKER_A = 11, WORKER_B = 12 };

static struct weft_request *watch_of(struct stage *s)
{
    struct weft_request *request = &s->request[s->requests++];
    request->server = &s->server;
    request->arena = weft_arena_new();
    return request;
}

/* The look of a watch in vain. True: it sleeps. */
static bool look_in_vain(struct stage *s, struct weft_request *request, int32_t worker)
{
    return weft_wait_for_leases(request, worker, weft_boot_us() + 60 * WEFT_SECOND) &&
           weft_waits_sleep_till_end(s->server.waits, request);
}

static void tell(struct stage *s, int32_t worker)
{
    weft_waits_wake_workers(s->server.waits, WEFT_WAKE_LOCAL, &worker, 1);
}

static void test_watches(void)
{
    struct stage s;
    set_up(&s);
    struct weft_request *a = watch_of(&s), *b = watch_of(&s), *claim = claim_of(&s, "a");
    ok(look_in_vain(&s, a, WORKER_A) && look_in_vain(&s, b, WORKER_B), "two watches sleep");
    run(&s, claim);
    is_int(s.waiters, 3, "beside a claim");
    wake(&s, QUEUE_A, 9);
    ok(next_again(&s) == claim, "work wakes the claim");
    ok(!next_again(&s), "work wakes no watch");
    tell(&s, WORKER_A);
    ok(next_again(&s) == a, "a lease of the first worker wakes its watch");
    ok(!next_again(&s), "a lease of the first worker wakes no other watch");
    ok(weft_wait_for_leases(a, WORKER_A, weft_boot_us() + WEFT_SECOND), "the watch looks");
    tell(&s, WORKER_A); /* in the middle of its look */
    ok(weft_waits_sleep_till_end(s.server.waits, a), "the watch found nothing");
    ok(next_again(&s) == a, "a lease told during the look makes the watch look again");
    ok(look_in_vain(&s, a, WORKER_A), "the second look finds nothing");
    ok(!next_again(&s), "the watch sleeps");
    weft_waits_stop(s.server.waits);
    ok(!weft_wait_for_leases(watch_of(&s), WORKER_A, weft_boot_us() + WEFT_SECOND),
       "a server that stops lets no watch sleep");
    weft_wait_done(a);
    weft_wait_done(b);
    weft_waits_leave(s.server.waits, claim, WEFT_WAIT_FAILED);
    is_int(s.waiters, 0, "no request waits");
    clear(&s);
}

/* A watch whose time is up is sent to answer; no look is scheduled before. */
static void test_watch_times_out(void)
{
    struct stage s;
    set_up(&s);
    struct weft_request *request = watch_of(&s);
    weft_usec until_us = weft_boot_us() + 20 * WEFT_MS;
    ok(weft_wait_for_leases(request, WORKER_A, until_us) &&
           weft_waits_sleep_till_end(s.server.waits, request),
       "a watch of 20 ms sleeps");
    weft_usec patience_us = weft_boot_us() + 10 * WEFT_SECOND;
    while (__atomic_load_n(&s.agains, __ATOMIC_ACQUIRE) == 0 && weft_boot_us() < patience_us)
        (void)poll(NULL, 0, 1);
    ok(weft_boot_us() >= until_us, "the watch is not queued before its time is up");
    ok(next_again(&s) == request, "the watch is queued when its time is up");
    ok(!weft_wait_for_leases(request, WORKER_A, until_us),
       "a watch whose time is up does not sleep again");
    weft_wait_done(request);
    clear(&s);
}

/* A wake for a queue of another namespace is not held against the claims of this one. */
static void test_namespaces(void)
{
    struct stage s;
    set_up(&s);
    struct weft_request *a = claim_of(&s, "a"), *b = claim_of(&s, "b");
    run(&s, a);
    run(&s, b);
    s.fits = 0;
    const struct weft_woken elsewhere = {QUEUE_C, 5}, here = {QUEUE_B, 1};
    weft_waits_wake(s.server.waits, WEFT_WAKE_POLL, &elsewhere, 1);
    is_int(s.fits, 0, "work of another namespace is held against no claim");
    is_int(s.agains, 0, "work of another namespace wakes no claim");
    weft_waits_wake(s.server.waits, WEFT_WAKE_POLL, &here, 1);
    is_int(s.agains, 1, "work of this one wakes its claim");
    weft_wait_done(a);
    weft_wait_done(b);
    clear(&s);
}

static void test_the_end(void)
{
    struct stage s;
    set_up(&s);
    struct weft_request *request = claim_of(&s, "a");
    weft_waits_stop(s.server.waits);
    s.during = (struct weft_woken){QUEUE_A, 1};
    run(&s, request);
    is_int(s.agains, 0, "when the server stops no claim looks again");
    is_int(s.answered, 1, "a claim is answered with nothing when the server stops");
    clear(&s);
}

/* Bounded; the list's thread puts it there. */
static bool comes_again(struct stage *s)
{
    weft_usec until_us = weft_boot_us() + 30 * WEFT_SECOND;
    while (s->agains == 0 && weft_boot_us() < until_us)
        (void)poll(NULL, 0, 5);
    return s->agains > 0;
}

/* A claim whose answer finds no room takes no lease: it waits, and looks when there is room. */
static void test_room(void)
{
    struct stage s;
    set_up(&s);
    s.server.loop = (struct weft_loop *)&s; /* any that is not NULL */
    s.answers.most = 64 << 20;
    weft_answers_take(&s.answers, "default", 32 << 20);
    struct weft_request *request = claim_of(&s, "a");
    s.finds = 1;
    run(&s, request);
    is_int(s.looks, 0, "half of the budget is full: a claim of that namespace does not look");
    is_int(s.answered, 0, "the claim is not answered");
    ok(comes_again(&s) && next_again(&s) == request, "the claim without room is queued again");
    run(&s, request);
    is_int(s.looks, 0, "there is no room yet");
    ok(comes_again(&s) && next_again(&s) == request, "the claim without room is queued again");
    ok(weft_answers_give(&s.answers, "default", 32 << 20), "the room is given back");
    run(&s, request);
    is_int(s.looks, 1, "the claim looks when there is room");
    is_int(s.reserved, 2 << 20, "the look reserved room for two payloads of any size");
    is_int(request->reply.status, 200, "the claim is answered with 200");
    is_int(atomic_load(&s.answers.all) + atomic_load(&s.answers.reserved), 0, "no room is lost");
    is_int(s.waiters, 0, "no claim waits");
    clear(&s);
}

static void test_room_that_never_comes(void)
{
    struct stage s;
    set_up(&s);
    s.server.loop = (struct weft_loop *)&s;
    s.answers.most = 64 << 20;
    weft_answers_take(&s.answers, "other", 64 << 20);
    struct weft_request *request = claim_of(&s, "a");
    weft_waits_stop(s.server.waits); /* as if its time were up */
    run(&s, request);
    is_int(s.looks, 0, "a claim without room, whose time is up, does not look");
    is_int(s.answered, 1, "the claim without room is answered");
    is_int(request->reply.status, 503, "the answer is 503");
    ok(strcmp(request->reply.header[0].name, "Retry-After") == 0 &&
           strstr(request->reply.body.data,
                  "clients have not read fill answer_bytes, 67108864 bytes"),
       "the error names the budget that is full");
    is_int(s.waiters, 0, "no claim waits");
    clear(&s);
}

int main(void)
{
    test_room();
    test_room_that_never_comes();
    test_wake_of_a_sleeper();
    test_wake_during_the_look();
    test_one_wake_one_look();
    test_handed_on(false);
    test_handed_on(true);
    test_poll_and_wake();
    test_namespaces();
    test_watches();
    test_watch_times_out();
    test_the_end();
    return tap_done();
}
