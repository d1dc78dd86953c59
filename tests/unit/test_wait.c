/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests that wait, and wakes that come at the worst moment: while a claim looks for work. The
 * rest of the server is a table of functions of this test, so that the order of things is the
 * test's: run() does with a claim what claims.c does, and has wakes come in the middle of its look.
 * Nothing here waits: a claim that must look again is queued again before run() returns, or it is
 * not at all until the slow poll, a minute from here.
 */

#include "tap.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "net/metrics.h"
#include "net/request.h"
#include "net/server.h"
#include "net/wait/waits.h"

#include <poll.h>

enum { QUEUE_A = 1, QUEUE_B = 2, QUEUE_C = 3, ASKS_MAX = 8 };

struct stage {
    struct weft_server server;
    struct weft_request request[ASKS_MAX];
    struct weft_claim claim[ASKS_MAX];
    const char *lane[ASKS_MAX];
    size_t requests;
    struct weft_woken during; /* the wake that comes while the next look is made; count 0: none */
    uint32_t finds;           /* how many executions the next look finds */
    bool fails;               /* the next look fails */
    unsigned looks;
    unsigned fits;                        /* how often a claim was held against a queue */
    struct weft_request *again[ASKS_MAX]; /* queued to look again, in order */
    size_t agains;
    unsigned answered;
};

/* ---- The rest of the server ------------------------------------------------------------------ */

static void put_again(struct weft_groups *groups, struct weft_request *request)
{
    struct stage *s = (struct stage *)groups;
    if (s->agains < ASKS_MAX)
        s->again[s->agains++] = request;
}

static enum weft_rc check_token(struct weft_server *server, struct weft_request *request,
                                struct weft_err *err)
{
    (void)server;
    (void)request;
    (void)err;
    return WEFT_OK;
}

static int no_fd(const struct weft_request *request)
{
    (void)request;
    return -1; /* poll() passes over it */
}

static void sweep_groups(struct weft_groups *groups)
{
    (void)groups;
}

static void sweep_loop(struct weft_loop *loop)
{
    (void)loop;
}

/* Queue A has the work of lane "a", queue B that of lane "b". */
static bool fits(struct weft_engine *engine, const struct weft_claim *claim, int32_t queue)
{
    struct stage *s = (struct stage *)engine;
    s->fits++;
    return strcmp(claim->lanes[0], queue == QUEUE_A ? "a" : "b") == 0;
}

/* Queues A and B are in "default", queue C is in "other". */
static const char *namespace_of(struct weft_engine *engine, int32_t queue)
{
    (void)engine;
    return queue == QUEUE_C ? "other" : "default";
}

/* ---- The stage ------------------------------------------------------------------------------- */

static void set_up(struct stage *s)
{
    static const struct weft_waits_ops ops = {.put_again = put_again,
                                              .check_token = check_token,
                                              .fd = no_fd,
                                              .sweep_groups = sweep_groups,
                                              .sweep_loop = sweep_loop,
                                              .namespace_of = namespace_of,
                                              .fits = fits};
    *s = (struct stage){0};
    s->server.groups = (struct weft_groups *)s; /* what the functions above are called with */
    s->server.engine = (struct weft_engine *)s;
    s->server.metrics = weft_metrics_new(&(struct weft_route_table){0});
    s->server.waits = weft_waits_new(&s->server, &ops);
    weft_waits_start(s->server.waits);
}

static void clear(struct stage *s)
{
    weft_waits_free(s->server.waits);
    weft_metrics_free(s->server.metrics);
    for (size_t i = 0; i < s->requests; i++)
        weft_arena_free(s->request[i].arena);
}

/* As the metric says. */
static int64_t waiters(const struct stage *s)
{
    uint64_t sum = 0;
    for (size_t kind = 0; kind < WEFT_WAIT_COUNT; kind++)
        sum += weft_metric_get(s->server.metrics, WEFT_METRIC_WAITERS, kind);
    return (int64_t)sum;
}

static struct weft_request *new_request(struct stage *s)
{
    struct weft_request *request = &s->request[s->requests++];
    request->server = &s->server;
    request->arena = weft_arena_new();
    return request;
}

static const struct weft_claim *claim_in(const struct stage *s, const struct weft_request *request)
{
    return &s->claim[request - s->request];
}

/* A claim of up to two of one lane that may wait for as long as claims may. */
static struct weft_request *claim_of(struct stage *s, const char *lane)
{
    struct weft_request *request = new_request(s);
    size_t at = (size_t)(request - s->request);
    s->lane[at] = lane;
    s->claim[at] = (struct weft_claim){
        .ns = "default", .worker = "w", .max = 2, .lanes = &s->lane[at], .lane_count = 1};
    request->queued_us = weft_boot_us() + 60 * WEFT_SECOND; /* until then it waits */
    return request;
}

/* Has a claim look, as claims.c does, and answers it or puts it to sleep. */
static void run(struct stage *s, struct weft_request *request)
{
    const struct weft_claim *claim = claim_in(s, request);
    uint32_t got = s->finds;
    bool fails = s->fails;
    struct weft_woken during = s->during;
    weft_waits_enter(s->server.waits, request, claim, request->queued_us);
    s->looks++;
    s->finds = s->during.count = s->fails = 0;
    if (during.count > 0)
        weft_waits_wake(s->server.waits, WEFT_WAKE_LOCAL, &during, 1);
    if (!fails && got == 0 && weft_waits_sleep(s->server.waits, request, WEFT_NEVER))
        return;
    weft_waits_leave(s->server.waits, request,
                     fails               ? WEFT_WAIT_FAILED
                     : got >= claim->max ? WEFT_WAIT_FILLED
                                         : WEFT_WAIT_SERVED);
    s->answered++;
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
    is_int(s.looks, 2, "the claim looks a second time");
    is_int(s.answered, 1, "the second look finds the work of the wake");
    is_int(s.agains, 0, "no other claim is woken");
    is_int(waiters(&s), 0, "no claim waits");
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
    is_int(waiters(&s), 0, "the claim is answered");
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
    is_int(s.agains, 0, "a looks after the wake, so it sees the work");

    struct weft_request *c = claim_of(&s, "a");
    weft_waits_enter(s.server.waits, c, claim_in(&s, c), c->queued_us);
    wake(&s, QUEUE_A, 1);
    ok(next_again(&s) == a, "a sleeper comes before c, who looks");
    wake(&s, QUEUE_A, 1); /* a is awake now and stands before c: it is given this one */
    s.finds = fails ? 0 : 1;
    s.fails = fails;
    run(&s, a); /* hands it on to c, who is still looking */
    is_int(s.answered, 2, "a is answered");
    is_int(s.agains, 0, "c is looking and need not be woken");
    ok(weft_waits_sleep(s.server.waits, c, WEFT_NEVER), "c found nothing");
    ok(next_again(&s) == c, "c looks again at once: a handed its wake to c");
    s.finds = 1;
    run(&s, c);
    is_int(s.answered, 3, "c is answered");
    is_int(waiters(&s), 0, "no claim waits");
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
    is_int(waiters(&s), 0, "no claim waits");
    clear(&s);
}

/* ---- Watches --------------------------------------------------------------------------------- */

enum { WORKER_A = 11, WORKER_B = 12 };

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
    struct weft_request *a = new_request(&s), *b = new_request(&s), *claim = claim_of(&s, "a");
    ok(look_in_vain(&s, a, WORKER_A) && look_in_vain(&s, b, WORKER_B), "two watches sleep");
    run(&s, claim);
    is_int(waiters(&s), 3, "beside a claim");
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
    ok(!weft_wait_for_leases(new_request(&s), WORKER_A, weft_boot_us() + WEFT_SECOND),
       "a server that stops lets no watch sleep");
    weft_wait_done(a);
    weft_wait_done(b);
    weft_waits_leave(s.server.waits, claim, WEFT_WAIT_FAILED);
    is_int(waiters(&s), 0, "no request waits");
    clear(&s);
}

/* A watch whose time is up is sent to answer; no look is scheduled before. */
static void test_watch_times_out(void)
{
    struct stage s;
    set_up(&s);
    struct weft_request *request = new_request(&s);
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

/* A claim whose answer finds no room sleeps, and is queued again after a pause. */
static void test_room(void)
{
    struct stage s;
    set_up(&s);
    struct weft_request *request = claim_of(&s, "a");
    weft_usec until_us = weft_boot_us() + 30 * WEFT_SECOND;
    for (int i = 0; i < 2; i++) {
        ok(weft_waits_park(s.server.waits, request, claim_in(&s, request), until_us),
           "a claim without room for its answer sleeps");
        ok(comes_again(&s) && next_again(&s) == request, "the claim without room is queued again");
    }
    wake(&s, QUEUE_A, 1);
    ok(weft_waits_park(s.server.waits, request, claim_in(&s, request), until_us),
       "a claim that is woken sleeps when it finds no room");
    ok(comes_again(&s) && next_again(&s) == request, "the woken claim is queued again");
    s.finds = 1;
    run(&s, request);
    is_int(s.answered, 1, "the claim looks and is answered when there is room");
    is_int(waiters(&s), 0, "no claim waits");
    request = claim_of(&s, "a");
    weft_waits_stop(s.server.waits);
    ok(!weft_waits_park(s.server.waits, request, claim_in(&s, request), until_us),
       "a claim without room does not sleep when the server stops");
    weft_waits_leave(s.server.waits, request, WEFT_WAIT_FAILED);
    clear(&s);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

/* The look of a read in vain. True: it sleeps, or is queued to look again. */
static bool read_in_vain(struct stage *s, struct weft_request *request, const struct weft_id *id)
{
    return weft_wait_for_end(request, id, weft_boot_us() + 60 * WEFT_SECOND, WEFT_WAIT_NOTIFIED) &&
           weft_waits_sleep_till_end(s->server.waits, request);
}

/* Looks until it does not look by itself any more. */
static bool sleeps_for_good(struct stage *s, struct weft_request *request, const struct weft_id *id)
{
    for (int look = 0; look < 4; look++)
        if (!read_in_vain(s, request, id) || !comes_again(s) || next_again(s) != request)
            return false;
    return read_in_vain(s, request, id) && !next_again(s);
}

static void test_ends(void)
{
    struct stage s;
    struct weft_id id[3];
    set_up(&s);
    for (size_t i = 0; i < WEFT_LEN(id); i++)
        weft_id_new(&id[i], 1000, -1);
    id[1].byte[15] = id[0].byte[15]; /* the same bucket */
    struct weft_request *a = new_request(&s), *b = new_request(&s), *c = new_request(&s);
    const _Atomic size_t *ends = weft_waits_for_ends(s.server.waits);
    is_int((long long)*ends, 0, "no request waits for an end");
    ok(read_in_vain(&s, a, &id[0]) && next_again(&s) == a, "a read looks again after it is listed");
    is_int((long long)*ends, 1, "a request that looks for an end is counted");
    ok(sleeps_for_good(&s, c, &id[1]), "a read of another execution sleeps after a few looks");
    is_int((long long)*ends, 2, "a sleeping read is counted");
    ok(sleeps_for_good(&s, b, &id[0]), "a read of the first execution sleeps");
    weft_wait_ended(&s.server, &id[2], 1);
    ok(!next_again(&s), "an end that no read waits for wakes no read");
    weft_wait_ended(&s.server, id, 1);
    ok(next_again(&s) == b && !next_again(&s), "an end wakes the sleeping read of that execution");
    ok(read_in_vain(&s, a, &id[0]) && next_again(&s) == a,
       "a read that was looking when the end came looks again");
    weft_wait_done(a);
    weft_wait_done(b);
    weft_wait_done(c);
    is_int((long long)*ends, 0, "answered requests are not counted");
    is_int(waiters(&s), 0, "no request waits");
    clear(&s);
}

int main(void)
{
    test_room();
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
    test_ends();
    return tap_done();
}
