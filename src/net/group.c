/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Group commit. Requests of the same kind that wait at the same time become one call of the
 * engine, hence one transaction; nobody is answered before it has committed. There is no delay to
 * collect more: what arrives while a transaction runs goes into the next one, so groups grow by
 * themselves as the store gets slower, and a lone request does not wait.
 *
 * Each kind has a queue and a number of calls that may run at once; whoever of the threads is free
 * takes the next kind in turn that has work and room. A store with one writer gets one writing call
 * at a time. A call takes at most WEFT_BATCH_MAX items and WEFT_BATCH_BYTES, which is what one
 * transaction takes.
 *
 * The kinds of which most of the traffic is, submit, claim and complete, are taken together as long
 * as they are small, and share a transaction (lots.c). One such joint call runs while another waits
 * for the disk, but the second begins only when at least as many requests wait as the first has:
 * else whoever came first would begin with next to nothing, his commit would stand in line behind
 * the other one all the same, and all who came after him behind both. Two that are about as large
 * make the fewest commits that everybody has to wait for. One that is held up, by a lock or by the
 * network, does not count: the others need not wait for it. With a single writer there is nothing
 * to run beside a commit; there the kinds take turns.
 *
 * Errands, what the server does for itself (passes, leases to give back), are one more kind: they
 * wait for their turn like the requests, and the requests for theirs.
 */

#include "net/kinds.h"
#include "net/metrics.h"

#include "base/err.h"
#include "base/heap.h"
#include "base/limits.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Queues ---------------------------------------------------------------------------------- */

struct queue {
    struct weft_ask *first, **last;
    size_t count;
    size_t items, bytes; /* of the asks */
    uint32_t running;    /* calls under way */
};

enum {
    ERRANDS = WEFT_GROUP_COUNT, /* the turn of errands, behind those of the groups */
    TURN_COUNT,
    QUIET_RUNS = 20, /* in a few seconds: passes, and the odd request */
};

enum {
    JOINTS_MAX = 4, /* joint calls at once, of which all but two are held up */
    /*
     * What a kind may bring into a transaction that it shares. Beyond that the statements take
     * longer than the commit, and kinds do better side by side, each on its own processor.
     */
    JOIN_ITEMS_MAX = 64,
    JOIN_BYTES_MAX = 256 * 1024,
};
#define JOINT_OLD_US (20 * WEFT_MS) /* something holds the call up: others need not wait for it */

/* A joint call that is under way. */
struct joint {
    weft_usec began_us; /* boot time */
    size_t requests;    /* 0: there is none */
};

/*
 * Something else to do on an engine thread. It may write, but does not count as a call that does:
 * one that reads for long would keep all writing away from a store with one writer.
 */
struct errand {
    struct errand *next;
    void (*fn)(struct weft_server *server, void *context);
    void *context;
};

struct weft_groups {
    struct weft_server *server;
    pthread_t *thread;
    uint32_t threads;
    size_t writers; /* calls that may write at once */

    pthread_mutex_t lock; /* over all below */
    pthread_cond_t work;
    struct queue queue[WEFT_GROUP_COUNT];
    struct errand *errand, **last_errand;
    size_t waiting; /* asks in all queues */
    struct joint joint[JOINTS_MAX];
    size_t writing; /* calls that write now */
    unsigned turn;  /* the kind to look at first, or ERRANDS */
    unsigned runs;  /* batches and errands so far */
    unsigned seen;  /* runs at the last look of weft_groups_rest() */
    unsigned rests; /* how often the threads were asked to rest */
    bool stopping;
    bool ended; /* the last thread has left: nobody takes what is put now */
    uint32_t alive;
};

/* What a thread took from the queues. */
struct batch {
    struct errand *errand;              /* owned; or NULL, and it is asks: */
    struct weft_lot lot[WEFT_LOTS_MAX]; /* each with room for WEFT_BATCH_MAX */
    size_t lots;
    struct joint *joint; /* the call is one of those that are for several kinds; or NULL */
};

static size_t items_of(const struct weft_ask *ask)
{
    if (ask->unread)
        return 1;
    if (ask->route->group == WEFT_GROUP_FLOW) /* what fills a transaction are its nodes */
        return ((const struct weft_flow_spec *)ask->items.item)->node_count;
    if (ask->route->group != WEFT_GROUP_CLAIM)
        return ask->items.count;
    const struct weft_claim *claim = weft_claims_of(ask);
    return claim->max ? claim->max : 1;
}

static bool may_join(const struct weft_groups *groups, size_t group)
{
    const struct queue *queue = &groups->queue[group];
    return groups->writers > 1 && weft_kinds[group].joins && queue->items <= JOIN_ITEMS_MAX &&
           queue->bytes <= JOIN_BYTES_MAX;
}

/* What runs alone leaves some threads to the groups: slow reads must not stop the writing. */
static uint32_t calls_max(const struct weft_groups *groups, size_t group)
{
    if (group == WEFT_GROUP_NONE)
        return groups->threads > 3 ? groups->threads - 2 : 1;
    return may_join(groups, group) ? JOINTS_MAX : weft_kinds[group].calls;
}

/* True when a joint call may begin: see the rule at the top. */
static bool may_begin_joint(const struct weft_groups *groups)
{
    size_t young = 0, requests = 0, waiting = 0, running = 0;
    weft_usec now_us = weft_boot_us();
    for (size_t i = 0; i < JOINTS_MAX; i++) {
        const struct joint *joint = &groups->joint[i];
        running += joint->requests > 0;
        if (joint->requests > 0 && now_us - joint->began_us < JOINT_OLD_US) {
            young++;
            requests += joint->requests;
        }
    }
    for (size_t i = 0; i < WEFT_GROUP_COUNT; i++)
        if (may_join(groups, i))
            waiting += groups->queue[i].count;
    /* However many are held up, a thread is left for others. */
    bool room = running == 0 || (running < JOINTS_MAX && running + 1 < groups->threads);
    return room && (young == 0 || (young == 1 && waiting >= requests));
}

static bool has_room(const struct weft_groups *groups, size_t group)
{
    return groups->queue[group].count > 0 &&
           groups->queue[group].running < calls_max(groups, group);
}

static bool may_run(const struct weft_groups *groups, size_t group)
{
    return has_room(groups, group) &&
           (!weft_kinds[group].writes || groups->writing < groups->writers) &&
           (!may_join(groups, group) || may_begin_joint(groups));
}

/* Takes the first asks of a queue that fit one transaction together. Under the lock. */
static void take(struct weft_groups *groups, size_t group, struct weft_lot *lot)
{
    struct queue *queue = &groups->queue[group];
    size_t bytes = 0;
    lot->group = (enum weft_group)group;
    lot->count = lot->items = 0;
    while (queue->first && lot->count < WEFT_BATCH_MAX) {
        struct weft_ask *ask = queue->first;
        size_t items = items_of(ask);
        if (lot->count > 0 && (group == WEFT_GROUP_NONE || lot->items + items > WEFT_BATCH_MAX ||
                               bytes + ask->items.bytes > WEFT_BATCH_BYTES))
            break;
        queue->first = ask->next;
        queue->count--;
        groups->waiting--;
        lot->items += items;
        bytes += ask->items.bytes;
        lot->ask[lot->count++] = ask;
    }
    queue->items -= lot->items;
    queue->bytes -= bytes;
    if (!queue->first)
        queue->last = &queue->first;
    weft_metric_set(weft_server_metrics(groups->server), WEFT_METRIC_QUEUE_DEPTH, group,
                    queue->count);
    queue->running++;
}

/* Takes a kind, and if it joins, the other kinds that do. Under the lock. */
static void take_lots(struct weft_groups *groups, size_t group, struct batch *batch)
{
    bool joins = may_join(groups, group);
    batch->joint = NULL;
    batch->lots = 0;
    for (size_t i = 0; joins && i < WEFT_GROUP_COUNT; i++)
        if (i != group && has_room(groups, i) && may_join(groups, i))
            take(groups, i, &batch->lot[batch->lots++]);
    take(groups, group, &batch->lot[batch->lots++]);
    groups->writing += weft_kinds[group].writes;
    for (size_t i = 0; joins && !batch->joint; i++)
        if (groups->joint[i].requests == 0)
            batch->joint = &groups->joint[i];
    if (joins)
        batch->joint->began_us = weft_boot_us();
    for (size_t i = 0; joins && i < batch->lots; i++)
        batch->joint->requests += batch->lot[i].count;
}

static void take_errand(struct weft_groups *groups, struct batch *batch)
{
    batch->errand = groups->errand;
    groups->errand = batch->errand->next;
    if (!groups->errand)
        groups->last_errand = &groups->errand;
}

/* The turn that comes next; false when nothing may run now. Under the lock. */
static bool next_turn(const struct weft_groups *groups, size_t *ret_turn)
{
    for (size_t i = 0; i < TURN_COUNT; i++) {
        *ret_turn = (groups->turn + i) % TURN_COUNT;
        if (*ret_turn == ERRANDS ? groups->errand != NULL : may_run(groups, *ret_turn))
            return true;
    }
    return false;
}

/* Wakes a thread if there is something for it; it will wake the next. Under the lock. */
static void wake_one(struct weft_groups *groups)
{
    size_t turn;
    if (next_turn(groups, &turn))
        pthread_cond_signal(&groups->work);
}

/* The next batch or errand in turn; false when nothing may run now. Under the lock. */
static bool next_batch(struct weft_groups *groups, struct batch *batch)
{
    size_t turn;
    batch->errand = NULL;
    if (!next_turn(groups, &turn))
        return false;
    groups->turn = (unsigned)turn + 1;
    if (turn == ERRANDS)
        take_errand(groups, batch);
    else
        take_lots(groups, turn, batch);
    wake_one(groups);
    return true;
}

/* When what may not run now may run although nothing ends or comes. Under the lock. */
static weft_usec next_look(const struct weft_groups *groups)
{
    weft_usec next_us = WEFT_NEVER, now_us = weft_boot_us();
    for (size_t i = 0; i < JOINTS_MAX && groups->waiting > 0; i++) {
        weft_usec old_us = groups->joint[i].began_us + JOINT_OLD_US;
        if (groups->joint[i].requests > 0 && old_us > now_us && old_us < next_us)
            next_us = old_us;
    }
    return next_us;
}

/* What was taken has run: gives its room back. Under the lock. */
static void give_room(struct weft_groups *groups, const struct batch *batch)
{
    if (batch->errand)
        return;
    if (batch->joint)
        batch->joint->requests = 0;
    for (size_t i = 0; i < batch->lots; i++)
        groups->queue[batch->lot[i].group].running--;
    groups->writing -= weft_kinds[batch->lot[0].group].writes;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* One that runs alone; it may have been queued only to be read. */
static void run_alone(struct weft_server *server, struct weft_ask *ask)
{
    struct weft_err err = {0};
    enum weft_rc rc = WEFT_OK;
    if (ask->unread) {
        ask->unread = false;
        rc = weft_body_decode(ask, &err);
        if (!rc)
            rc = ask->route->read(ask, &err);
        if (!rc && !ask->reply.status && ask->route->group != WEFT_GROUP_NONE &&
            !ask->items.alone) {
            weft_groups_put_again(server->groups, ask);
            return;
        }
    }
    bool streaming = ask->reply.status && ask->reply.stream;
    if (streaming)
        rc = ask->reply.stream(ask, &ask->reply.body, &ask->reply.last, &err);
    else if (!rc && !ask->reply.status)
        rc = ask->route->run(ask, &err);
    if (rc && streaming)
        ask->reply.broken = true; /* the head has been sent: all that can be done is to stop */
    else if (rc)
        weft_reply_error(ask, &err);
    else if (!ask->reply.status && weft_waits_sleep_till_end(server->waits, ask))
        return;
    weft_wait_done(ask);
    weft_loop_answer(server, &ask, 1);
}

static void run_batch(struct weft_server *server, struct batch *batch)
{
    struct weft_metrics *metrics = weft_server_metrics(server);
    weft_usec began_us = weft_boot_us();
    for (size_t i = 0; i < batch->lots; i++) {
        const struct weft_lot *lot = &batch->lot[i];
        assert(lot->count > 0); /* only queues with work are taken from */
        weft_metric_observe(metrics, WEFT_METRIC_GROUP_ITEMS, lot->group, lot->items);
        weft_metric_observe(metrics, WEFT_METRIC_GROUP_REQUESTS, lot->group, lot->count);
    }
    if (batch->lot[0].group == WEFT_GROUP_NONE)
        run_alone(server, batch->lot[0].ask[0]);
    else
        weft_lots_run(server, batch->lot, batch->lots);
    for (size_t i = 0; i < batch->lots; i++)
        weft_metric_observe(metrics, WEFT_METRIC_GROUP_SECONDS, batch->lot[i].group,
                            (uint64_t)(weft_boot_us() - began_us));
}

static void *run_thread(void *context)
{
    struct weft_groups *groups = context;
    struct weft_ask *ask[WEFT_LOTS_MAX][WEFT_BATCH_MAX] = {0};
    struct batch batch = {0};
    unsigned rests = 0;
    for (size_t i = 0; i < WEFT_LOTS_MAX; i++)
        batch.lot[i].ask = ask[i];
    pthread_mutex_lock(&groups->lock);
    for (;;) {
        if (next_batch(groups, &batch)) {
            groups->runs++;
            pthread_mutex_unlock(&groups->lock);
            if (batch.errand)
                batch.errand->fn(groups->server, batch.errand->context);
            else
                run_batch(groups->server, &batch);
            pthread_mutex_lock(&groups->lock);
            give_room(groups, &batch);
            free(batch.errand);
        } else if (groups->stopping && groups->waiting == 0 && !groups->errand) {
            break;
        } else if (rests != groups->rests) {
            rests = groups->rests;
            pthread_mutex_unlock(&groups->lock);
            weft_heap_rest();
            pthread_mutex_lock(&groups->lock);
        } else {
            weft_cond_until(&groups->work, &groups->lock, next_look(groups));
        }
    }
    groups->ended = --groups->alive == 0;
    pthread_cond_broadcast(&groups->work);
    pthread_mutex_unlock(&groups->lock);
    return NULL;
}

bool weft_groups_rest(struct weft_groups *groups)
{
    pthread_mutex_lock(&groups->lock);
    bool quiet = groups->runs - groups->seen <= QUIET_RUNS;
    groups->seen = groups->runs;
    if (quiet) {
        groups->rests++;
        pthread_cond_broadcast(&groups->work);
    }
    pthread_mutex_unlock(&groups->lock);
    return quiet;
}

/* ---- In and out ------------------------------------------------------------------------------ */

/* Under the lock. */
static void put(struct weft_groups *groups, struct weft_ask *ask)
{
    struct queue *queue = &groups->queue[ask->unread ? WEFT_GROUP_NONE : ask->route->group];
    ask->next = NULL;
    *queue->last = ask;
    queue->last = &ask->next;
    groups->waiting++;
    queue->items += items_of(ask);
    queue->bytes += ask->items.bytes;
    weft_metric_set(weft_server_metrics(groups->server), WEFT_METRIC_QUEUE_DEPTH,
                    (size_t)(queue - groups->queue), queue->count + 1);
    queue->count++;
}

/* No thread will take it any more. A stream is cut off: nobody takes the part for the whole. */
static void turn_away(struct weft_groups *groups, struct weft_ask *ask)
{
    struct weft_err err = {0};
    if (ask->reply.stream) {
        ask->reply.broken = true;
    } else {
        (void)weft_fail(&err, WEFT_UNAVAILABLE, "the server is stopping");
        weft_reply_error(ask, &err);
    }
    weft_loop_answer(groups->server, &ask, 1);
}

void weft_groups_put_again(struct weft_groups *groups, struct weft_ask *ask)
{
    pthread_mutex_lock(&groups->lock);
    bool ended = groups->ended;
    if (!ended) {
        put(groups, ask);
        wake_one(groups);
    }
    pthread_mutex_unlock(&groups->lock);
    if (ended)
        turn_away(groups, ask);
}

static void refuse(struct weft_groups *groups, struct weft_ask *ask)
{
    struct weft_err err = {0};
    (void)weft_fail(&err, WEFT_RATE_LIMITED, "%u requests are waiting already",
                    groups->server->config.queue_max);
    err.hint =
        "the store is slower than the requests come: try again later, or send fewer, larger "
        "requests";
    weft_reply_error(ask, &err);
    weft_loop_answer(groups->server, &ask, 1);
}

void weft_groups_put(struct weft_groups *groups, struct weft_ask *first)
{
    struct weft_ask *refused = NULL;
    pthread_mutex_lock(&groups->lock);
    bool ended = groups->ended;
    while (first) {
        struct weft_ask *ask = first;
        first = ask->next;
        if (ended || groups->waiting >= groups->server->config.queue_max) {
            ask->next = refused;
            refused = ask;
        } else {
            put(groups, ask);
        }
    }
    wake_one(groups);
    pthread_mutex_unlock(&groups->lock);
    while (refused) {
        struct weft_ask *ask = refused;
        refused = ask->next;
        if (ended)
            turn_away(groups, ask);
        else
            refuse(groups, ask);
    }
}

void weft_groups_do(struct weft_groups *groups, void (*fn)(struct weft_server *, void *),
                    void *context)
{
    struct errand *errand = malloc(sizeof(*errand));
    if (!errand)
        weft_oom(sizeof(*errand));
    *errand = (struct errand){.fn = fn, .context = context};
    pthread_mutex_lock(&groups->lock);
    *groups->last_errand = errand;
    groups->last_errand = &errand->next;
    pthread_cond_signal(&groups->work);
    pthread_mutex_unlock(&groups->lock);
}

void weft_server_do(struct weft_server *server, void (*fn)(struct weft_server *, void *),
                    void *context)
{
    weft_groups_do(server->groups, fn, context);
}

size_t weft_groups_waiting(struct weft_groups *groups)
{
    pthread_mutex_lock(&groups->lock);
    size_t waiting = groups->waiting;
    pthread_mutex_unlock(&groups->lock);
    return waiting;
}

struct weft_groups *weft_groups_new(struct weft_server *server)
{
    struct weft_groups *groups = calloc(1, sizeof(*groups));
    if (!groups)
        weft_oom(sizeof(*groups));
    groups->server = server;
    groups->writers = weft_engine_writers(server->engine);
    groups->last_errand = &groups->errand;
    for (size_t i = 0; i < WEFT_GROUP_COUNT; i++)
        groups->queue[i].last = &groups->queue[i].first;
    pthread_mutex_init(&groups->lock, NULL);
    pthread_cond_init(&groups->work, NULL);
    groups->threads = groups->alive = server->config.threads;
    groups->thread = calloc(groups->threads, sizeof(*groups->thread));
    if (!groups->thread)
        weft_oom(groups->threads * sizeof(*groups->thread));
    for (uint32_t i = 0; i < groups->threads; i++)
        weft_thread_start(&groups->thread[i], "weft-engine", run_thread, groups);
    return groups;
}

void weft_groups_stop(struct weft_groups *groups)
{
    if (!groups)
        return;
    pthread_mutex_lock(&groups->lock);
    groups->stopping = true;
    pthread_cond_broadcast(&groups->work);
    pthread_mutex_unlock(&groups->lock);
    for (uint32_t i = 0; i < groups->threads; i++)
        pthread_join(groups->thread[i], NULL);
    groups->threads = 0;
}

void weft_groups_free(struct weft_groups *groups)
{
    if (!groups)
        return;
    weft_groups_stop(groups);
    while (groups->errand) {
        struct errand *errand = groups->errand;
        groups->errand = errand->next;
        errand->fn(groups->server, errand->context);
        free(errand);
    }
    pthread_cond_destroy(&groups->work);
    pthread_mutex_destroy(&groups->lock);
    free(groups->thread);
    free(groups);
}
