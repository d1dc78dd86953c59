/* SPDX-License-Identifier: Apache-2.0 */

/* Which requests the engine threads take next: turns of namespaces, and slots of classes. */

#include "net/group/plan.h"

#include "base/limits.h"
#include "tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { THREADS = 6, ASKS = 4000 };

static const struct weft_route READ = {.op =
                                           &(const struct weft_op_info){.group = WEFT_GROUP_NONE}};
static const struct weft_route LIST = {.op =
                                           &(const struct weft_op_info){.group = WEFT_GROUP_LIST}};
static const struct weft_route HEAVY = {
    .op = &(const struct weft_op_info){.group = WEFT_GROUP_HEAVY}};
static const struct weft_route ADMIN = {
    .op = &(const struct weft_op_info){.group = WEFT_GROUP_ADMIN}};
static const struct weft_route SUBMIT = {
    .op = &(const struct weft_op_info){.group = WEFT_GROUP_SUBMIT}};
static const struct weft_route COMPLETE = {
    .op = &(const struct weft_op_info){.group = WEFT_GROUP_COMPLETE}};
static const struct weft_route CLAIM = {
    .op = &(const struct weft_op_info){.group = WEFT_GROUP_CLAIM}};
static const struct weft_route FLOW = {
    .op = &(const struct weft_op_info){.group = WEFT_GROUP_FLOW_SUBMIT}};

static const struct weft_route SUSPEND = {
    .op = &(const struct weft_op_info){.group = WEFT_GROUP_SUSPEND}};
static const struct weft_route SIGNAL = {
    .op = &(const struct weft_op_info){.group = WEFT_GROUP_SIGNAL}};
static const struct weft_route RENEW = {
    .op = &(const struct weft_op_info){.group = WEFT_GROUP_RENEW}};
static const struct weft_route USAGE = {
    .op = &(const struct weft_op_info){.group = WEFT_GROUP_USAGE}};

static struct weft_request requests[ASKS];
static size_t asks_used;

static struct weft_request *new_ask(const struct weft_route *route, const char *ns, size_t items)
{
    struct weft_request *request = &requests[asks_used++];
    *request = (struct weft_request){.route = route, .ns = ns};
    request->items.count = request->weight = items;
    return request;
}

/* ---- Turns between namespaces ---------------------------------------------------------------- */

static void fill(struct weft_fair *fair, const char *ns, size_t count, size_t items)
{
    for (size_t i = 0; i < count; i++)
        weft_fair_put(fair, new_ask(&SUBMIT, ns, items));
}

/* The namespaces of what is taken, by their first letters. */
static const char *taken(struct weft_fair *fair, struct weft_fair_limit limit)
{
    static char text[WEFT_BATCH_MAX + 1];
    struct weft_request *to[WEFT_BATCH_MAX];
    struct weft_fair_sum sum;
    size_t count = weft_fair_take(fair, &limit, to, &sum);
    for (size_t i = 0; i < count; i++)
        text[i] = to[i]->ns[0];
    text[count] = '\0';
    return text;
}

static const struct weft_fair_limit ONE = {
    .count = 1, .items = WEFT_BATCH_MAX, .bytes = WEFT_BATCH_BYTES, .share = 4};
static const struct weft_fair_limit FEW = {
    .count = 100, .items = 10, .bytes = WEFT_BATCH_BYTES, .share = 4};

static void test_turns(void)
{
    struct weft_fair fair = {0};
    fill(&fair, "a", 4, 1);
    is_str(taken(&fair, ONE), "a", "one namespace: the first come is served");
    fill(&fair, "b", 1, 1);
    fill(&fair, "c", 2, 1);
    is_int(fair.lines, 3, "three namespaces wait");
    is_str(taken(&fair, ONE), "a", "the others came later");
    is_str(taken(&fair, ONE), "b", "the second namespace is served although the first has more");
    is_str(taken(&fair, ONE), "c", "the third namespace is served third");
    is_int(weft_fair_of(&fair, "b").count, 0, "one namespace has no more");
    is_str(taken(&fair, FEW), "aca", "the rest goes together, one of each in turn");
    is_int(fair.lines + fair.all.count + fair.all.items + fair.small.count, 0, "nothing is left");
    is_str(taken(&fair, FEW), "", "nothing is taken from an empty queue");
    weft_fair_done(&fair);
}

static void test_transactions(void)
{
    struct weft_fair fair = {0};
    fill(&fair, "a", 20, 1);
    is_str(taken(&fair, FEW), "aaaaaaaaaa", "alone, a namespace fills the transaction");
    fill(&fair, "b", 2, 1);
    is_str(taken(&fair, FEW), "ababaa", "beside others it gets its share");
    is_str(taken(&fair, FEW), "aaaaaa", "a namespace alone again gets the rest");
    fill(&fair, "a", 3, 10);
    fill(&fair, "b", 3, 1);
    is_str(taken(&fair, FEW), "a", "a call that fills a transaction goes alone");
    is_str(taken(&fair, FEW), "bbb", "the small ones of another namespace are next");
    is_str(taken(&fair, FEW), "a", "the one that did not fit follows");
    fill(&fair, "b", 1, 1);
    is_str(taken(&fair, FEW), "a", "large ones go on in the order of turns");
    is_str(taken(&fair, FEW), "b", "beside a small one each");
    fill(&fair, "a", 1, 50);
    is_str(taken(&fair, FEW), "a", "one that is larger than all limits is taken all the same");
    weft_fair_done(&fair);
}

static void test_small(void)
{
    struct weft_fair fair = {0};
    struct weft_fair_limit small = FEW, large = FEW;
    small.lines = WEFT_FAIR_SMALL;
    large.lines = WEFT_FAIR_LARGE;
    large.items = WEFT_BATCH_MAX;
    fill(&fair, "a", 1, WEFT_SMALL_ITEMS);
    is_int(fair.small.count, 1, "a line within the bound is small");
    fill(&fair, "a", 1, 1);
    is_int(fair.small.count, 0, "a line beyond it is not");
    fill(&fair, "b", 2, 1);
    is_int(fair.small.items, 2, "only items of small lines are counted as such");
    is_str(taken(&fair, small), "bb", "small lines are taken without the others");
    fill(&fair, "b", 1, 1);
    is_str(taken(&fair, large), "a", "large lines are taken without the small ones");
    is_int(fair.small.count, 2, "the rest of a large line is small");
    is_str(taken(&fair, ONE), "b", "the turn is the other one's");
    is_str(taken(&fair, ONE), "a", "the turn is the first namespace's again");
    weft_fair_done(&fair);
}

/* ---- Slots ----------------------------------------------------------------------------------- */

static struct weft_request *room[THREADS * 4][WEFT_JOINT_MAX][WEFT_BATCH_MAX];
static struct weft_batch batches[THREADS * 4];
static size_t running;

static void put(struct weft_plan *plan, const struct weft_route *route, const char *ns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)weft_plan_put(plan, new_ask(route, ns, 1));
}

/* Takes what may run, as threads would; how many that are. */
static size_t run(struct weft_plan *plan, weft_usec now_us)
{
    size_t before = running;
    for (;;) {
        struct weft_batch *batch = &batches[running];
        for (size_t i = 0; i < WEFT_JOINT_MAX; i++)
            batch->part[i].request = room[running][i];
        if (!weft_plan_take(plan, now_us, batch))
            return running - before;
        running++;
    }
}

/* The last so many that were taken have run. */
static void end(struct weft_plan *plan, size_t count)
{
    for (; count > 0; count--)
        weft_plan_give_back(plan, &batches[--running], 0);
}

static void empty(struct weft_plan *plan)
{
    weft_usec now_us = 0;
    do {
        end(plan, running);
        now_us += WEFT_SECOND;
    } while (run(plan, now_us) > 0);
    is_int(plan->waiting + plan->tasks + plan->slow + plan->others + plan->writing, 0,
           "all room is given back");
    weft_plan_done(plan);
}

static void test_classes(void)
{
    struct weft_plan plan;
    weft_plan_init(&plan, THREADS, THREADS);
    put(&plan, &HEAVY, "a", 10);
    is_int(run(&plan, 0), 1, "one slot for large flows is left to other namespaces");
    put(&plan, &HEAVY, "b", 10);
    is_int(run(&plan, 0), 1, "the other slot is for any other namespace");
    put(&plan, &ADMIN, "c", 1);
    is_int(run(&plan, 0), 0, "a thread is kept for a list, and one for a task");
    put(&plan, &LIST, "a", 10);
    is_int(run(&plan, 0), 1, "one list runs");
    put(&plan, &LIST, "b", 10);
    is_int(run(&plan, 0), 0, "a second list does not run");
    plan.tasks = 2;
    is_int(run(&plan, 0), 1, "one task runs");
    is_int(run(&plan, 0), 0, "slow work leaves two threads");
    put(&plan, &SUBMIT, "b", 1);
    is_int(run(&plan, 0), 1, "the thread that is left takes a submit");
    struct weft_flow_spec spec = {.node_count = 1};
    struct weft_request *flow = new_ask(&FLOW, "b", 1);
    flow->items.item = &spec;
    (void)weft_plan_put(&plan, flow);
    is_int(run(&plan, 0), 0, "a second flow does not run");
    put(&plan, &READ, "b", 1);
    is_int(run(&plan, 0), 1, "the thread that is left takes a quick read");
    empty(&plan);
}

static void test_few_threads(void)
{
    for (uint32_t threads = 1; threads <= 3; threads++) {
        struct weft_plan plan;
        weft_plan_init(&plan, threads, 1);
        put(&plan, &HEAVY, "a", 2);
        put(&plan, &LIST, "a", 2);
        put(&plan, &READ, "a", 2);
        plan.tasks = 2;
        ok(run(&plan, 0) > 0, "%u threads: something runs", threads);
        empty(&plan);
    }
}

static void test_large_namespace(void)
{
    struct weft_plan plan;
    weft_plan_init(&plan, THREADS, THREADS);
    for (size_t i = 0; i < 5; i++)
        (void)weft_plan_put(&plan, new_ask(&SUBMIT, "a", WEFT_BATCH_MAX));
    is_int(run(&plan, 0), 1, "large submissions of a namespace go one after the other");
    put(&plan, &SUBMIT, "b", 3);
    put(&plan, &COMPLETE, "b", 1);
    is_int(run(&plan, 0), 1, "another namespace need not wait for them");
    is_int(batches[1].parts, 2, "the kinds of the namespace share a transaction");
    is_int(batches[1].part[1].count + batches[1].part[0].count, 4,
           "the transaction has all its requests");
    end(&plan, 2);
    put(&plan, &SUBMIT, "b", 1);
    for (int i = 0; i < 2; i++) {
        (void)run(&plan, WEFT_SECOND);
        put(&plan, &SUBMIT, "b", 1);
    }
    (void)run(&plan, WEFT_SECOND);
    is_int(plan.queue[WEFT_GROUP_SUBMIT].apart, 1, "the first waits for no other namespace");
    empty(&plan);
}

/* Two small calls at once, whatever their kinds; one that is held up does not count, nor a large
 * one. */
static void test_small_calls(void)
{
    struct weft_plan plan;
    weft_usec now_us = WEFT_SECOND;
    weft_plan_init(&plan, THREADS, THREADS);
    put(&plan, &SUSPEND, "a", 3);
    put(&plan, &SIGNAL, "a", 3);
    put(&plan, &RENEW, "a", 3);
    put(&plan, &SUBMIT, "b", 1);
    is_int(run(&plan, now_us), 2, "of four kinds two run at once");
    is_int(batches[1].part[0].count, 3, "a call has all requests of its kind");
    is_int(run(&plan, now_us + WEFT_MS), 0, "a millisecond later the others wait still");
    is_int(weft_plan_next_look(&plan, now_us + WEFT_MS), now_us + 12 * WEFT_MS,
           "they look when the calls are held up for longer than calls last");
    is_int(run(&plan, now_us + 12 * WEFT_MS), 2, "calls that are held up keep no other away");
    empty(&plan);

    weft_plan_init(&plan, THREADS, THREADS);
    (void)weft_plan_put(&plan, new_ask(&SUSPEND, "a", WEFT_BATCH_MAX));
    (void)weft_plan_put(&plan, new_ask(&SIGNAL, "a", WEFT_BATCH_MAX));
    put(&plan, &RENEW, "a", 3);
    put(&plan, &SUBMIT, "b", 1);
    is_int(run(&plan, now_us), 4, "large calls run beside two small ones");
    empty(&plan);

    weft_plan_init(&plan, THREADS, THREADS);
    put(&plan, &SUSPEND, "a", 1);
    (void)run(&plan, now_us);
    end(&plan, 1);
    put(&plan, &SIGNAL, "a", 1);
    put(&plan, &RENEW, "a", 1);
    is_int(run(&plan, now_us), 2, "a call that has ended gives its place back");
    empty(&plan);
}

/* What a claim weighs is what it may give: one of many does not hold up what others complete. */
static void test_large_claim(void)
{
    static const struct {
        uint32_t max;
        size_t joint; /* kinds in the call that completes */
        const char *name;
    } row[] = {
        {1, 2, "a claim of one joins"},
        {WEFT_SMALL_ITEMS, 2, "a claim of few joins"},
        {WEFT_SMALL_ITEMS + 1, 1, "a claim of more goes apart"},
        {WEFT_BATCH_MAX, 1, "a claim of a thousand goes apart"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_plan plan;
        struct weft_request *request = new_ask(&CLAIM, "a", 1);
        request->items.count = row[i].max;
        weft_plan_init(&plan, THREADS, THREADS);
        (void)weft_plan_put(&plan, request);
        put(&plan, &COMPLETE, "b", 1);
        size_t calls = run(&plan, 0), complete = 0;
        is_int(calls, 3 - row[i].joint, "%s", row[i].name);
        while (complete + 1 < calls && batches[complete].part[0].request[0]->route != &COMPLETE)
            complete++;
        is_int(batches[complete].parts, row[i].joint,
               "the transaction of b's completion has so many kinds");
        empty(&plan);
    }
}

static void test_one_writer(void)
{
    struct weft_plan plan;
    weft_plan_init(&plan, THREADS, 1);
    for (size_t i = 0; i < 5; i++)
        (void)weft_plan_put(&plan, new_ask(&SUBMIT, "a", WEFT_BATCH_MAX));
    put(&plan, &SUBMIT, "b", 3);
    is_int(run(&plan, 0), 1, "a single writer makes one call");
    is_str(batches[0].part[0].request[0]->ns, "b", "the small requests pass the large ones");
    is_int(batches[0].part[0].count, 3, "all of them share a transaction");
    put(&plan, &SUBMIT, "b", 3);
    end(&plan, 1);
    is_int(run(&plan, 0), 1, "the next call comes after the first one's end");
    is_str(batches[0].part[0].request[0]->ns, "a", "a large one has its turn after small ones");
    is_int(batches[0].part[0].count, 1, "no small request is in its transaction");
    end(&plan, 1);
    (void)run(&plan, 0);
    is_str(batches[0].part[0].request[0]->ns, "b", "small ones have theirs after a large one");
    empty(&plan);
}

/* A large call with long side work leaves its place to small ones, one such call at a time. */
static void test_side_work(void)
{
    struct weft_plan plan;
    weft_plan_init(&plan, THREADS, 1);
    for (size_t i = 0; i < 2; i++)
        (void)weft_plan_put(&plan, new_ask(&SUBMIT, "a", WEFT_BATCH_MAX));
    is_int(run(&plan, 0), 1, "a large call runs");
    put(&plan, &SUBMIT, "b", 1);
    put(&plan, &COMPLETE, "b", 1);
    is_int(run(&plan, 0), 0, "no other call writes beside a large call");
    weft_plan_side_work(&plan, &batches[0]);
    is_int(run(&plan, 0), 1, "a small call runs beside side work");
    is_str(batches[1].part[0].request[0]->ns, "b", "the small call is of another namespace");
    weft_plan_side_work(&plan, &batches[1]);
    is_int(run(&plan, 0), 0, "a second call does no side work");
    end(&plan, 1);
    is_int(run(&plan, 0), 1, "the next small call follows");
    end(&plan, 1);
    is_int(run(&plan, 0), 0, "no large call runs");
    end(&plan, 1);
    is_int(run(&plan, 0), 1, "before the first has ended");
    is_str(batches[0].part[0].request[0]->ns, "a", "the first namespace has its turn");
    empty(&plan);
    weft_plan_init(&plan, THREADS, THREADS);
    (void)weft_plan_put(&plan, new_ask(&SUBMIT, "a", WEFT_BATCH_MAX));
    is_int(run(&plan, 0), 1, "with several writers a large call runs");
    weft_plan_side_work(&plan, &batches[0]);
    is_int(plan.writing, 1, "a large call with side work keeps its place");
    empty(&plan);
}

static void put_body(struct weft_plan *plan, const char *ns)
{
    struct weft_request *request = new_ask(&SUBMIT, ns, 1);
    request->unread = true;
    (void)weft_plan_put(plan, request);
}

/* Bodies are parsed ahead of their transactions, but not all of them. */
static void test_parsed_enough(void)
{
    struct weft_plan plan;
    weft_plan_init(&plan, 6, 1);
    put_body(&plan, "a");
    put_body(&plan, "a");
    put_body(&plan, "b");
    (void)run(&plan, 0);
    is_int(plan.queue[WEFT_GROUP_PARSE].running, 2, "each namespace parses one body at a time");
    empty(&plan);

    weft_plan_init(&plan, 6, 1);
    for (size_t i = 0; i < 17; i++) /* one of them is written at once */
        (void)weft_plan_put(&plan, new_ask(&SUBMIT, "a", WEFT_BATCH_MAX));
    put_body(&plan, "a");
    put_body(&plan, "b");
    is_int(run(&plan, 0), 2, "one writes and one parses");
    is_int(plan.queue[WEFT_GROUP_PARSE].running, 1, "16 batches of a are parsed and wait");
    end(&plan, running);
    (void)run(&plan, 0);
    is_int(plan.queue[WEFT_GROUP_PARSE].running, 1, "with 15 the next body of a is parsed");
    empty(&plan);
}

/* Reads that come all the time do not decide which kind writes next. */
static void test_turns_of_writers(void)
{
    struct weft_plan plan;
    weft_plan_init(&plan, THREADS, 1);
    put(&plan, &COMPLETE, "b", 1);
    bool completed = false;
    for (int i = 0; i < 4 && !completed; i++) {
        put(&plan, &SUBMIT, "a", 1);
        (void)run(&plan, 0);
        completed = plan.queue[WEFT_GROUP_COMPLETE].running > 0;
        put(&plan, &READ, "a", 1);
        (void)run(&plan, 0);
        end(&plan, running);
    }
    ok(completed, "a completion has its turn beside submissions and reads");
    empty(&plan);
}

static void test_room(void)
{
    enum { MOST = 100 };
    struct weft_plan plan;
    weft_plan_init(&plan, THREADS, THREADS);
    put(&plan, &READ, "a", MOST);
    ok(!weft_plan_has_room(&plan, "a", MOST), "a namespace alone may fill the queues, not more");
    size_t more = 0;
    for (; weft_plan_has_room(&plan, "b", MOST); more++)
        put(&plan, &READ, "b", 1);
    ok(more > 0 && more <= MOST / 2, "another one has room all the same, in bounds");
    ok(!weft_plan_has_room(&plan, "a", MOST), "the first namespace has no room");
    char name[200][8];
    for (size_t i = 0; i < 200; i++) {
        (void)snprintf(name[i], sizeof(name[i]), "n%zu", i);
        if (weft_plan_has_room(&plan, name[i], MOST))
            put(&plan, &READ, name[i], 1);
    }
    ok(plan.waiting <= MOST + MOST / 2, "however many they are");
    empty(&plan);
}

static void walk(struct weft_plan *plan, const char *ns, int32_t token, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct weft_request *request = new_ask(&LIST, ns, 1);
        request->token = token;
        request->walks = true;
        (void)weft_plan_put(plan, request);
    }
}

/* Lists with a filter, of one token: few at once, few that wait, and tokens take turns. */
static void test_walks(void)
{
    struct weft_plan plan;
    weft_plan_init(&plan, THREADS, THREADS);
    walk(&plan, "a", 1, 10);
    is_int(run(&plan, 0), 1, "walks of a token leave a slot of its namespace");
    walk(&plan, "a", 2, 1);
    is_int(run(&plan, 0), 1, "the other slot is for another token");
    is_int(batches[1].part[0].request[0]->token, 2,
           "the walk of the other token does not wait behind the first");
    end(&plan, 1);
    put(&plan, &LIST, "a", 1);
    is_int(run(&plan, 0), 1, "a plain list runs");
    end(&plan, 1);
    walk(&plan, "b", 0, 10);
    is_int(run(&plan, 0), 1, "another namespace has its own");
    empty(&plan);

    weft_plan_init(&plan, 4 * THREADS, THREADS);
    walk(&plan, "a", 0, 10);
    is_int(run(&plan, 0), 2, "with many threads there are two walks at once");
    put(&plan, &LIST, "a", 4);
    is_int(run(&plan, 0), 4, "plain lists run in the usual number");
    empty(&plan);

    weft_plan_init(&plan, THREADS, THREADS);
    walk(&plan, "a", 1, WEFT_WALKS_WAITING);
    struct weft_request more = {.route = &LIST, .ns = "a", .token = 1, .walks = true};
    ok(!weft_plan_has_room_to_walk(&plan, &more), "the walks of a token that wait are bounded");
    more.walks = false;
    ok(weft_plan_has_room_to_walk(&plan, &more), "plain lists of the token have room");
    more.walks = true;
    more.token = 2;
    ok(weft_plan_has_room_to_walk(&plan, &more), "walks of another token have room");
    empty(&plan);
}

static void test_tokens(void)
{
    struct weft_fair fair = {0};
    const int32_t came[] = {1, 1, 1, 2, 3, 2}, wanted[] = {1, 2, 3, 1, 2, 1};
    struct weft_request *to[WEFT_BATCH_MAX];
    struct weft_fair_sum sum;
    for (size_t i = 0; i < WEFT_LEN(came); i++) {
        struct weft_request *request = new_ask(&LIST, "a", 1);
        request->token = came[i];
        weft_fair_put(&fair, request);
    }
    is_int(weft_fair_take(&fair, &FEW, to, &sum), WEFT_LEN(came), "all tokens are served");
    for (size_t i = 0; i < WEFT_LEN(came); i++)
        is_int(to[i]->token, wanted[i], "tokens of a namespace take turns: %zu", i);
    weft_fair_done(&fair);
}

/* Reads whose namespace has no room for answers wait, and the old ones of them can be taken out. */
static void test_no_room_for_answers(void)
{
    struct weft_answers answers = {.most = 100};
    struct weft_plan plan;
    struct weft_request *to[10];
    weft_plan_init(&plan, THREADS, THREADS);
    plan.answers = &answers;
    weft_answers_take(&answers, "full", 50);
    for (int i = 0; i < 4; i++) {
        struct weft_request *request = new_ask(i % 2 ? &LIST : &READ, "full", 1);
        request->queued_us = 1000 + i;
        (void)weft_plan_put(&plan, request);
    }
    struct weft_request *other = new_ask(&READ, "other", 1);
    (void)weft_plan_put(&plan, other);
    is_int(weft_plan_take_roomless(&plan, 999, to, 10), 0, "no request has waited long enough");
    is_int(weft_plan_take_roomless(&plan, 1001, to, 10), 2,
           "the first two requests have waited long enough");
    ok(to[0]->queued_us == 1000 && to[1]->queued_us == 1001, "a read and a list");
    is_int(plan.waiting, 3, "the others wait");
    is_int(weft_plan_take_roomless(&plan, 2000, to, 1), 1,
           "as many requests are taken as are asked for");
    (void)weft_answers_give(&answers, "full", 1);
    is_int(weft_plan_take_roomless(&plan, 2000, to, 10), 0,
           "no request is taken when there is room again");
    (void)weft_answers_give(&answers, "full", 49);
    plan.answers = NULL;
    is_int(weft_plan_take_roomless(&plan, 2000, to, 10), 0, "no request is taken without a budget");
    struct weft_fair_limit all = {.count = 10, .items = 10, .bytes = 10, .share = 10};
    struct weft_fair_sum sum;
    is_int(weft_fair_take(&plan.queue[WEFT_GROUP_NONE].fair, &all, to, &sum) +
               weft_fair_take(&plan.queue[WEFT_GROUP_LIST].fair, &all, to, &sum),
           2, "two are left in their queues");
    weft_plan_done(&plan);
}

struct sender {
    struct weft_answers answers;
    atomic_bool stop;
};

/* Fills the room of a namespace and frees it, over and over, as threads that send answers do. */
static void *fill_and_free(void *context)
{
    struct sender *sender = context;
    while (!sender->stop) {
        weft_answers_take(&sender->answers, "full", 50);
        (void)weft_answers_give(&sender->answers, "full", 50);
    }
    return NULL;
}

/* The room may go between the look at a queue and the taking: then nothing is taken. */
static void test_room_goes_meanwhile(void)
{
    enum { TAKES = 100000, TRIES = 100 * TAKES };
    struct sender sender = {.answers = {.most = 100}};
    struct weft_plan plan;
    pthread_t thread;
    weft_plan_init(&plan, THREADS, THREADS);
    plan.answers = &sender.answers;
    (void)weft_plan_put(&plan, new_ask(&LIST, "full", 1));
    ok(pthread_create(&thread, NULL, fill_and_free, &sender) == 0, "a thread sends answers");
    int takes = 0, empty_batches = 0;
    struct weft_batch *batch = &batches[0];
    for (size_t i = 0; i < WEFT_JOINT_MAX; i++)
        batch->part[i].request = room[0][i];
    for (int i = 0; i < TRIES && takes < TAKES; i++) {
        if (!weft_plan_take(&plan, 0, batch))
            continue;
        takes++;
        empty_batches += batch->part[0].count == 0;
        weft_plan_give_back(&plan, batch, 0);
        if (batch->part[0].count > 0)
            (void)weft_plan_put(&plan, batch->part[0].request[0]);
    }
    sender.stop = true;
    (void)pthread_join(thread, NULL);
    is_int(empty_batches, 0, "a batch that is taken has a request");
    ok(takes > 0, "a list is taken while there is room");
    is_int(plan.waiting, 1, "the list waits in its queue again");
    empty(&plan);
}

/* A call of reports begins when all clients of the last one are there, or a moment later. */
static void test_reports_gather(void)
{
    struct weft_plan plan;
    struct weft_batch *batch = &batches[0];
    weft_plan_init(&plan, THREADS, THREADS);
    for (size_t i = 0; i < WEFT_JOINT_MAX; i++)
        batch->part[i].request = room[0][i];
    for (int i = 0; i < 3; i++)
        (void)weft_plan_put(&plan, new_ask(&USAGE, "a", 1));
    ok(weft_plan_take(&plan, 1000, batch), "the first reports begin at once");
    is_int(batch->part[0].count, 3, "the first call has all that wait");
    (void)weft_plan_put(&plan, new_ask(&USAGE, "a", 1));
    ok(!weft_plan_may_run(&plan, 1000), "a second call does not run beside the first");
    weft_plan_give_back(&plan, batch, 2000);
    for (int i = 0; i < 2; i++)
        (void)weft_plan_put(&plan, new_ask(&USAGE, "a", 1));
    ok(!weft_plan_may_run(&plan, 2100), "the next call waits for the clients of the last one");
    ok(weft_plan_gathers(&plan, 2100), "a thread has to look at the time");
    is_int(weft_plan_next_look(&plan, 2100), 2500, "it looks again after half a millisecond");
    ok(weft_plan_may_run(&plan, 2500), "then the call begins with the requests that have come");
    (void)weft_plan_put(&plan, new_ask(&USAGE, "a", 1));
    ok(weft_plan_take(&plan, 2200, batch), "it begins at once when all are there");
    is_int(batch->part[0].count, 4, "the call has all that wait");
    weft_plan_give_back(&plan, batch, 3000);
    is_int(weft_plan_next_look(&plan, 3000), WEFT_NEVER, "without a request no thread looks");
    (void)weft_plan_put(&plan, new_ask(&RENEW, "a", 1));
    ok(weft_plan_may_run(&plan, 3100), "other kinds do not wait");
    empty(&plan);
}

int main(void)
{
    test_no_room_for_answers();
    test_room_goes_meanwhile();
    test_tokens();
    test_walks();
    test_turns();
    test_transactions();
    test_small();
    test_classes();
    test_few_threads();
    test_large_namespace();
    test_small_calls();
    test_large_claim();
    test_one_writer();
    test_side_work();
    test_parsed_enough();
    test_turns_of_writers();
    test_room();
    test_reports_gather();
    return tap_done();
}
