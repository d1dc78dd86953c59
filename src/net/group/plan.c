/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each kind of request has a queue, in which namespaces take turns (fair.c), and a number of calls
 * that may run at once; a thread that is free takes the next kind in turn that has work and room. A
 * store with one writer gets one writing call at a time. A call takes at most WEFT_BATCH_MAX items
 * and WEFT_BATCH_BYTES, which is what one transaction takes.
 *
 * The kinds with most of the traffic, submit, claim and complete, are taken together as long
 * as they are small, and share a transaction (group_run.c). One such joint call runs while another
 * waits for the disk, but the second begins only when at least as many requests wait as the first
 * has: otherwise the first request to come would begin alone, its commit would wait for the other
 * one all the same, and later requests for both. A call that is held up, by a lock or by the
 * network, does not count. With a single writer nothing can run beside a commit; there the kinds
 * take turns.
 *
 * Small calls of the other kinds (suspends, signals, heartbeats) run one at a time for each kind,
 * and with the joint ones SMALL_CALLS at a time: more of them would each have fewer requests, and
 * what a transaction costs besides its rows is most of the work of a small one. Reports of usage
 * lock rows of budgets, which the calls of other replicas wait for. A call that begins without the
 * clients of the last one would wait for that lock with half of the requests; so it waits a moment
 * for them, unless all are there.
 *
 * A namespace with much to submit is served by calls of its own, beside the joint ones of the
 * others: these do not wait for its large transactions, and it does not wait for them.
 *
 * Other requests run alone, in classes with slots of their own: slots.c.
 *
 * Tasks, the work of the server itself (passes, leases to release), are one more kind and take
 * turns with the requests.
 */

#include "net/group/plan.h"

#include "net/group/slots.h"

#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TURN_COUNT = WEFT_TURN_TASKS + 1,
    SHARE = WEFT_BATCH_MAX / 4, /* of a transaction, of one namespace while others wait */
    FLOW_LARGE = 1 << 20,       /* a body of a flow: it is parsed by the thread that stores it */
    /*
     * Payload bytes of several requests in one transaction: requests that share it wait for all of
     * them, and with a single writer all others do.
     */
    SHARED_BYTES = WEFT_BATCH_BYTES / 8,
    ONE_WRITER_BYTES = WEFT_BATCH_BYTES / 16,
};
#define SMALL_CALLS  2
#define JOINT_OLD_US (12 * WEFT_MS) /* something holds the call up: others need not wait for it */
#define GATHER_US    (WEFT_MS / 2)  /* from an answer to the next request of its client */

/* The groups that may share a transaction. */
static const bool joins[WEFT_GROUP_COUNT] = {
#define FOLDED(op_, label_, joins_, ...) [WEFT_GROUP_##op_] = WEFT_JOINS_##joins_,
#define ALONE(...)
#include "wire/ops.def"
};

void weft_plan_init(struct weft_plan *plan, uint32_t threads, size_t writers)
{
    *plan = (struct weft_plan){.threads = threads, .writers = writers};
    plan->holder = weft_alloc(threads, sizeof(*plan->holder));
}

void weft_plan_done(struct weft_plan *plan)
{
    for (size_t i = 0; i < WEFT_GROUP_COUNT; i++)
        weft_fair_done(&plan->queue[i].fair);
    free(plan->holder);
}

/* ---- In -------------------------------------------------------------------------------------- */

static enum weft_group class_of(const struct weft_request *request)
{
    enum weft_group group = request->route->op->group;
    if (request->reply.status && request->reply.stream)
        return WEFT_GROUP_LIST; /* the next part */
    if (request->unread && group == WEFT_GROUP_FLOW_SUBMIT)
        return request->body.size > FLOW_LARGE ? WEFT_GROUP_HEAVY : WEFT_GROUP_PARSE;
    if (request->unread)
        return weft_group_alone(group) ? group : WEFT_GROUP_PARSE;
    return request->items.alone ? WEFT_GROUP_HEAVY : group;
}

static size_t items_of(const struct weft_request *request, enum weft_group class)
{
    if (weft_group_alone(class))
        return 1;
    if (class == WEFT_GROUP_FLOW_SUBMIT) /* its nodes fill a transaction */
        return ((const struct weft_flow_spec *)request->items.item)->node_count;
    return request->items.count;
}

enum weft_group weft_plan_put(struct weft_plan *plan, struct weft_request *request)
{
    enum weft_group class = class_of(request);
    request->weight = items_of(request, class);
    weft_fair_put(&plan->queue[class].fair, request);
    plan->waiting++;
    return class;
}

bool weft_plan_has_room(const struct weft_plan *plan, const char *ns, size_t most)
{
    size_t own = 0, lines = 1;
    if (plan->waiting < most || plan->waiting >= most + most / 2)
        return plan->waiting < most;
    for (size_t i = 0; i < WEFT_GROUP_COUNT; i++) {
        own += weft_fair_of(&plan->queue[i].fair, ns).count;
        lines += plan->queue[i].fair.lines;
    }
    /* Each namespace that waits may have a share of the half that comes on top. */
    return own < most / 2 / lines;
}

bool weft_plan_has_room_to_walk(const struct weft_plan *plan, const struct weft_request *request)
{
    return !request->walks ||
           weft_fair_like(&plan->queue[class_of(request)].fair, request) < WEFT_WALKS_WAITING;
}

/* ---- Limits ---------------------------------------------------------------------------------- */

/* Reads that came before this and find no room for their answers. */
struct roomless {
    const struct weft_answers *answers;
    weft_usec since_us;
};

static bool is_roomless(const void *context, const struct weft_request *request)
{
    const struct roomless *reads = context;
    return request->queued_us <= reads->since_us &&
           !weft_answers_has_room(reads->answers, request->ns ? request->ns : "");
}

size_t weft_plan_take_roomless(struct weft_plan *plan, weft_usec since_us, struct weft_request **to,
                               size_t most)
{
    static const enum weft_group reads[] = {WEFT_GROUP_NONE, WEFT_GROUP_LIST};
    const struct roomless context = {plan->answers, since_us};
    size_t count = 0;
    for (size_t i = 0; i < WEFT_LEN(reads) && plan->answers; i++) {
        const struct weft_fair_limit limit = {.count = most - count,
                                              .items = SIZE_MAX,
                                              .bytes = SIZE_MAX,
                                              .share = SIZE_MAX,
                                              .may = is_roomless,
                                              .context = &context};
        struct weft_fair_sum sum;
        count += weft_fair_take(&plan->queue[reads[i]].fair, &limit, to + count, &sum);
    }
    plan->waiting -= count;
    return count;
}

/* The small lines of a kind may go into a joint call. */
static bool may_join(const struct weft_plan *plan, size_t group)
{
    const struct weft_fair_sum *small = &plan->queue[group].fair.small;
    return plan->writers > 1 && joins[group] && small->count > 0 &&
           small->items <= WEFT_SMALL_ITEMS && small->bytes <= WEFT_SMALL_BYTES &&
           plan->queue[group].running < WEFT_JOINTS_MAX;
}

/* Small calls under way that nothing holds up. */
static size_t small_calls(const struct weft_plan *plan, weft_usec now_us)
{
    size_t count = 0;
    for (size_t i = 0; i < WEFT_JOINTS_MAX; i++)
        count += plan->joint[i].requests > 0 && now_us - plan->joint[i].began_us < JOINT_OLD_US;
    for (size_t i = 0; i < WEFT_GROUP_COUNT; i++)
        count += plan->queue[i].small_us && now_us - plan->queue[i].small_us < JOINT_OLD_US;
    return count;
}

/* Whether the next call of a kind alone would be small. */
static bool is_next_small(const struct weft_plan *plan, size_t group)
{
    const struct weft_fair_sum *all = &plan->queue[group].fair.all;
    return plan->writers > 1 && weft_turn_writes(group) && all->items <= WEFT_SMALL_ITEMS &&
           all->bytes <= WEFT_SMALL_BYTES;
}

/* Whether the waiting requests of a kind wait for more of them. */
static bool is_gathering(const struct weft_plan_queue *queue, weft_usec now_us)
{
    size_t count = queue->fair.all.count;
    return count > 0 && count < queue->gather && now_us < queue->gather_us;
}

bool weft_plan_gathers(const struct weft_plan *plan, weft_usec now_us)
{
    return is_gathering(&plan->queue[WEFT_GROUP_USAGE], now_us);
}

/* True when a joint call may begin: see the rule at the top. */
static bool may_begin_joint(const struct weft_plan *plan, weft_usec now_us)
{
    size_t young = 0, requests = 0, waiting = 0, running = 0;
    for (size_t i = 0; i < WEFT_JOINTS_MAX; i++) {
        const struct weft_joint *joint = &plan->joint[i];
        running += joint->requests > 0;
        if (joint->requests > 0 && now_us - joint->began_us < JOINT_OLD_US) {
            young++;
            requests += joint->requests;
        }
    }
    for (size_t i = 0; i < WEFT_GROUP_COUNT; i++)
        if (may_join(plan, i))
            waiting += plan->queue[i].fair.small.count;
    /* However many are held up, a thread is left for others. */
    bool room = running == 0 || (running < WEFT_JOINTS_MAX && running + 1 < plan->threads);
    return room && (young == 0 || (young == 1 && waiting >= requests));
}

/*
 * True when a call of this kind alone may begin. Requests that can join are left to a joint call;
 * the call waits for the joint ones of its kind that run, unless some are large and others wait.
 */
static bool may_run_apart(const struct weft_plan *plan, size_t group)
{
    const struct weft_plan_queue *queue = &plan->queue[group];
    if (queue->fair.all.count == 0)
        return false;
    const struct weft_class_of_plan of = {plan, (enum weft_group)group};
    if (weft_group_alone(of.class))
        return queue->running < weft_slots_of(plan, of.class) &&
               weft_fair_any(&queue->fair, weft_slot_is_free, &of);
    bool large = queue->fair.small.count < queue->fair.all.count;
    if ((!large && may_join(plan, group)) || (plan->side_work && queue->fair.small.count == 0))
        return false;
    bool beside = large && queue->fair.lines > 1;
    return (beside ? queue->apart : queue->running) == 0;
}

enum way { NOT_NOW, JOINTLY, APART };

/* How a kind may run now. */
static enum way way_of(const struct weft_plan *plan, size_t group, weft_usec now_us)
{
    if (plan->queue[group].fair.all.count == 0 || !weft_slot_has_thread(plan, group) ||
        (weft_turn_writes(group) && plan->writing >= plan->writers) ||
        is_gathering(&plan->queue[group], now_us))
        return NOT_NOW;
    bool full = plan->writers > 1 && small_calls(plan, now_us) >= SMALL_CALLS;
    if (may_join(plan, group) && !full && may_begin_joint(plan, now_us))
        return JOINTLY;
    return may_run_apart(plan, group) && !(full && is_next_small(plan, group)) ? APART : NOT_NOW;
}

/* The next turn of the kinds that write, or of the others. */
static enum way next_of(const struct weft_plan *plan, weft_usec now_us, bool writes,
                        size_t *ret_turn)
{
    for (size_t i = 0; i < TURN_COUNT; i++) {
        *ret_turn = (plan->turn[writes] + i) % TURN_COUNT;
        enum way way = NOT_NOW;
        if (weft_turn_writes(*ret_turn) != writes)
            continue;
        if (*ret_turn != WEFT_TURN_TASKS)
            way = way_of(plan, *ret_turn, now_us);
        else if (plan->tasks > 0 && weft_slot_has_thread(plan, WEFT_TURN_TASKS))
            way = APART;
        if (way != NOT_NOW)
            return way;
    }
    return NOT_NOW;
}

/*
 * The turn that comes next and how; NOT_NOW when nothing may run. Kinds that write have turns of
 * their own: with one writer, a read in between must not restart the round, or its first kind would
 * write for ever.
 */
static enum way next_turn(const struct weft_plan *plan, weft_usec now_us, size_t *ret_turn)
{
    enum way way = next_of(plan, now_us, !plan->wrote, ret_turn);
    return way != NOT_NOW ? way : next_of(plan, now_us, plan->wrote, ret_turn);
}

bool weft_plan_may_run(const struct weft_plan *plan, weft_usec now_us)
{
    size_t turn;
    return next_turn(plan, now_us, &turn) != NOT_NOW;
}

static void sooner(weft_usec at_us, weft_usec now_us, weft_usec *next_us)
{
    if (at_us > now_us && at_us < *next_us)
        *next_us = at_us;
}

weft_usec weft_plan_next_look(const struct weft_plan *plan, weft_usec now_us)
{
    weft_usec next_us = WEFT_NEVER;
    for (size_t i = 0; i < WEFT_JOINTS_MAX && plan->waiting > 0; i++)
        if (plan->joint[i].requests > 0)
            sooner(plan->joint[i].began_us + JOINT_OLD_US, now_us, &next_us);
    for (size_t i = 0; i < WEFT_GROUP_COUNT && plan->waiting > 0; i++) {
        if (plan->queue[i].small_us)
            sooner(plan->queue[i].small_us + JOINT_OLD_US, now_us, &next_us);
        if (is_gathering(&plan->queue[i], now_us))
            sooner(plan->queue[i].gather_us, now_us, &next_us);
    }
    return next_us;
}

/* ---- Out ------------------------------------------------------------------------------------- */

/* Takes the requests of a queue that fit one transaction together; false: none may be taken. */
static bool take(struct weft_plan *plan, size_t group, enum weft_fair_lines lines,
                 struct weft_group_part *part)
{
    struct weft_plan_queue *queue = &plan->queue[group];
    const struct weft_class_of_plan of = {plan, (enum weft_group)group};
    bool alone = weft_group_alone(of.class);
    const struct weft_fair_limit limit = {.lines = lines,
                                          .count = alone ? 1 : WEFT_BATCH_MAX,
                                          .items = WEFT_BATCH_MAX,
                                          .bytes =
                                              plan->writers > 1 ? SHARED_BYTES : ONE_WRITER_BYTES,
                                          .share = SHARE,
                                          .may = alone ? weft_slot_is_free : NULL,
                                          .context = &of};
    struct weft_fair_sum sum;
    part->group = (enum weft_group)group;
    part->count = weft_fair_take(&queue->fair, &limit, part->request, &sum);
    part->items = sum.items;
    plan->waiting -= part->count;
    queue->running += part->count > 0;
    return part->count > 0;
}

/* Takes the small lines of all kinds that join; there are some. */
static void take_jointly(struct weft_plan *plan, size_t group, weft_usec now_us,
                         struct weft_batch *batch)
{
    for (size_t i = 0; i < WEFT_GROUP_COUNT; i++)
        if (i != group && may_join(plan, i))
            batch->parts += take(plan, i, WEFT_FAIR_SMALL, &batch->part[batch->parts]);
    batch->parts += take(plan, group, WEFT_FAIR_SMALL, &batch->part[batch->parts]);
    for (size_t i = 0; !batch->joint; i++)
        if (plan->joint[i].requests == 0)
            batch->joint = &plan->joint[i];
    batch->joint->began_us = now_us;
    for (size_t i = 0; i < batch->parts; i++)
        batch->joint->requests += batch->part[i].count;
}

/*
 * The lines that a call of one kind takes. Small ones that may join are left to a joint call. With
 * one writer small and large lines take turns: a small request waits for one large transaction at
 * most, the one under way, and is in none itself.
 */
static enum weft_fair_lines lines_apart(struct weft_plan *plan, size_t group)
{
    struct weft_plan_queue *queue = &plan->queue[group];
    const struct weft_fair *fair = &queue->fair;
    if (weft_group_alone((enum weft_group)group))
        return WEFT_FAIR_ALL;
    if (may_join(plan, group))
        return WEFT_FAIR_LARGE;
    if (plan->side_work)
        return WEFT_FAIR_SMALL;
    if (plan->writers > 1 || fair->small.count == 0 || fair->small.count == fair->all.count)
        return WEFT_FAIR_ALL;
    queue->large_next = !queue->large_next;
    return queue->large_next ? WEFT_FAIR_SMALL : WEFT_FAIR_LARGE;
}

/*
 * False when nothing may be taken after all: answers are written and sent without the plan's lock,
 * so the room for a read may have gone since next_turn() looked.
 */
static bool take_apart(struct weft_plan *plan, size_t group, weft_usec now_us,
                       struct weft_batch *batch)
{
    batch->small = is_next_small(plan, group) && !plan->queue[group].small_us;
    if (!take(plan, group, lines_apart(plan, group), &batch->part[0]))
        return false;
    batch->parts = 1;
    plan->queue[group].apart++;
    if (batch->small)
        plan->queue[group].small_us = now_us;
    if (weft_turn_is_slow(group))
        batch->holder = weft_slot_hold(plan, (enum weft_group)group, batch->part[0].request[0]);
    return true;
}

bool weft_plan_take(struct weft_plan *plan, weft_usec now_us, struct weft_batch *batch)
{
    size_t turn;
    bool taken = false;
    while (!taken) {
        enum way way = next_turn(plan, now_us, &turn);
        if (way == NOT_NOW)
            return false;
        batch->task = turn == WEFT_TURN_TASKS;
        batch->parts = 0;
        batch->joint = NULL;
        batch->holder = NULL;
        batch->side_work = batch->small = false;
        if (way == JOINTLY)
            take_jointly(plan, turn, now_us, batch);
        taken = way == JOINTLY || batch->task || take_apart(plan, turn, now_us, batch);
    }
    plan->wrote = weft_turn_writes(turn);
    plan->turn[plan->wrote] = (unsigned)turn + 1;
    plan->slow += weft_turn_is_slow(turn);
    plan->others += turn != WEFT_GROUP_NONE;
    if (batch->task) {
        plan->tasks--;
        plan->tasks_running++;
    } else {
        plan->writing += weft_turn_writes(turn);
    }
    return true;
}

/*
 * One call at a time does side work, and only small lines are taken meanwhile: else the next large
 * call of the same namespace, which is likely to have the same work, would take the place and keep
 * it.
 */
void weft_plan_side_work(struct weft_plan *plan, struct weft_batch *batch)
{
    if (batch->joint)
        batch->joint->began_us = 0;
    if (batch->task || batch->joint || batch->holder || batch->side_work || plan->side_work ||
        plan->writers > 1)
        return;
    struct weft_plan_queue *queue = &plan->queue[batch->part[0].group];
    queue->running--;
    queue->apart--;
    plan->writing--;
    plan->side_work = batch->side_work = true;
}

void weft_plan_give_back(struct weft_plan *plan, const struct weft_batch *batch, weft_usec now_us)
{
    size_t turn = batch->task ? (size_t)WEFT_TURN_TASKS : (size_t)batch->part[0].group;
    plan->slow -= weft_turn_is_slow(turn);
    plan->others -= turn != WEFT_GROUP_NONE;
    if (batch->task) {
        plan->tasks_running--;
        return;
    }
    if (batch->side_work) {
        plan->side_work = false;
        return;
    }
    if (batch->holder)
        batch->holder->busy = false;
    for (size_t i = 0; i < batch->parts; i++)
        plan->queue[batch->part[i].group].running--;
    struct weft_plan_queue *usage = &plan->queue[WEFT_GROUP_USAGE];
    if (turn == WEFT_GROUP_USAGE && plan->writers > 1) {
        usage->gather = batch->part[0].count + usage->fair.all.count;
        usage->gather_us = now_us + GATHER_US;
    }
    if (batch->joint)
        batch->joint->requests = 0;
    else
        plan->queue[turn].apart--;
    if (batch->small)
        plan->queue[turn].small_us = 0;
    plan->writing -= weft_turn_writes(turn);
}
