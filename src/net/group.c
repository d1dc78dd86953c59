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
    uint32_t running; /* calls under way */
};

enum {
    ERRANDS = WEFT_GROUP_COUNT, /* the turn of errands, behind those of the groups */
    TURN_COUNT,
    QUIET_RUNS = 20, /* in a few seconds: passes, and the odd request */
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
    size_t writing; /* calls that write now */
    unsigned turn;  /* the kind to look at first, or ERRANDS */
    unsigned runs;  /* batches and errands so far */
    unsigned seen;  /* runs at the last look of weft_groups_rest() */
    unsigned rests; /* how often the threads were asked to rest */
    bool stopping;
};

/* What a thread took from the queues. */
struct batch {
    struct errand *errand; /* owned; or NULL, and it is asks: */
    enum weft_group group;
    struct weft_ask **ask; /* room for WEFT_BATCH_MAX */
    size_t count;
    size_t items;
};

static size_t items_of(const struct weft_ask *ask)
{
    if (ask->route->group != WEFT_GROUP_CLAIM)
        return ask->items.count;
    const struct weft_claim *claim = weft_claims_of(ask);
    return claim->max ? claim->max : 1;
}

/* What runs alone leaves some threads to the groups: slow reads must not stop the writing. */
static uint32_t calls_max(const struct weft_groups *groups, size_t group)
{
    if (group != WEFT_GROUP_NONE)
        return weft_kinds[group].calls;
    return groups->threads > 3 ? groups->threads - 2 : 1;
}

static bool may_run(const struct weft_groups *groups, size_t group)
{
    return groups->queue[group].count > 0 &&
           groups->queue[group].running < calls_max(groups, group) &&
           (!weft_kinds[group].writes || groups->writing < groups->writers);
}

/* Takes the first asks of a queue that fit one transaction together. Under the lock. */
static void take(struct weft_groups *groups, size_t group, struct batch *batch)
{
    struct queue *queue = &groups->queue[group];
    size_t bytes = 0;
    batch->group = (enum weft_group)group;
    batch->count = batch->items = 0;
    while (queue->first && batch->count < WEFT_BATCH_MAX) {
        struct weft_ask *ask = queue->first;
        size_t items = items_of(ask);
        if (batch->count > 0 &&
            (group == WEFT_GROUP_NONE || batch->items + items > WEFT_BATCH_MAX ||
             bytes + ask->items.bytes > WEFT_BATCH_BYTES))
            break;
        queue->first = ask->next;
        queue->count--;
        groups->waiting--;
        batch->items += items;
        bytes += ask->items.bytes;
        batch->ask[batch->count++] = ask;
    }
    if (!queue->first)
        queue->last = &queue->first;
    weft_metric_set(weft_server_metrics(groups->server), WEFT_METRIC_QUEUE_DEPTH, group,
                    queue->count);
    queue->running++;
    groups->writing += weft_kinds[group].writes;
}

static void take_errand(struct weft_groups *groups, struct batch *batch)
{
    batch->errand = groups->errand;
    groups->errand = batch->errand->next;
    if (!groups->errand)
        groups->last_errand = &groups->errand;
}

/* The next batch or errand in turn; false when nothing may run now. Under the lock. */
static bool next_batch(struct weft_groups *groups, struct batch *batch)
{
    batch->errand = NULL;
    for (size_t i = 0; i < TURN_COUNT; i++) {
        size_t group = (groups->turn + i) % TURN_COUNT;
        if (group == ERRANDS ? !groups->errand : !may_run(groups, group))
            continue;
        groups->turn = (unsigned)group + 1;
        if (group == ERRANDS)
            take_errand(groups, batch);
        else
            take(groups, group, batch);
        return true;
    }
    return false;
}

/* What was taken has run: gives its room back. Under the lock. */
static void give_room(struct weft_groups *groups, const struct batch *batch)
{
    if (batch->errand)
        return;
    groups->queue[batch->group].running--;
    groups->writing -= weft_kinds[batch->group].writes;
}

/* ---- Running --------------------------------------------------------------------------------- */

static void *item_at(const struct weft_items *items, const struct weft_kind *kind, size_t i)
{
    return (char *)items->item + i * kind->item_size;
}

/*
 * Leases of a token that is bound to a namespace must be of that namespace; to such a client other
 * executions do not exist.
 */
static enum weft_rc check_namespaces(struct weft_server *server, const struct weft_kind *kind,
                                     struct weft_ask *ask, struct weft_err *err)
{
    const struct weft_items *items = &ask->items;
    const char **ns = weft_new_array(ask->arena, const char *, items->count + 1);
    const struct weft_id_column ids = {items->item, kind->item_size, items->count};
    enum weft_rc rc = weft_engine_namespaces(server->engine, &ids, ns, err);
    for (size_t i = 0; i < items->count && !rc; i++)
        if (!items->err[i].rc && (!ns[i] || strcmp(ns[i], ask->ns) != 0))
            (void)weft_fail(&items->err[i], WEFT_NOT_FOUND, "there is no such execution");
    return rc;
}

/* Copies the good items of an ask behind those of the asks before it; says how many they are. */
static size_t gather(const struct weft_kind *kind, const struct weft_ask *ask, char *to)
{
    size_t count = 0;
    for (size_t i = 0; i < ask->items.count; i++) {
        if (ask->items.err[i].rc)
            continue;
        char *item = to + count++ * kind->item_size;
        memcpy(item, item_at(&ask->items, kind, i), kind->item_size);
        if (kind->item == WEFT_ITEM_SPEC)
            ((struct weft_spec *)(void *)item)->ns = ask->ns;
        else if (kind->item == WEFT_ITEM_STEER)
            ((struct weft_steer *)(void *)item)->ns = ask->ns;
    }
    return count;
}

/* Gives an ask the answers of its good items; those of the others are in items.err. */
static size_t scatter(const struct weft_kind *kind, struct weft_ask *ask, const char *from)
{
    size_t count = 0;
    char *answer = weft_arena_alloc(ask->arena, ask->items.count + 1, kind->answer_size);
    for (size_t i = 0; i < ask->items.count; i++)
        if (!ask->items.err[i].rc)
            memcpy(answer + i * kind->answer_size, from + count++ * kind->answer_size,
                   kind->answer_size);
    ask->items.answer = answer;
    return count;
}

/* One engine call for all of these. WEFT_OK: their items are answered. */
static enum weft_rc call_together(struct weft_server *server, const struct weft_kind *kind,
                                  struct weft_ask **ask, size_t count, struct weft_err *err)
{
    size_t items = 0;
    for (size_t a = 0; a < count; a++)
        items += ask[a]->items.count;
    struct weft_arena *arena = weft_arena_new();
    char *item = weft_arena_alloc(arena, items + 1, kind->item_size);
    char *answer = weft_arena_alloc(arena, items + 1, kind->answer_size);
    size_t good = 0;
    for (size_t a = 0; a < count; a++)
        good += gather(kind, ask[a], item + good * kind->item_size);
    enum weft_rc rc = good ? kind->call(server->engine, item, good, answer, err) : WEFT_OK;
    size_t at = 0;
    for (size_t a = 0; a < count && !rc; a++)
        at += scatter(kind, ask[a], answer + at * kind->answer_size);
    weft_arena_free(arena);
    return rc;
}

/* Answers asks whose items have been answered, or all of them with the failure. */
static void finish(struct weft_ask **ask, size_t count, enum weft_rc rc, const struct weft_err *err)
{
    for (size_t a = 0; a < count; a++) {
        if (rc)
            weft_reply_error(ask[a], err);
        else
            ask[a]->route->write(ask[a]);
    }
    if (count > 0)
        weft_loop_answer(ask[0]->server, ask, count);
}

/* Takes out the asks whose namespaces cannot be checked; they are answered here. */
static size_t admit(struct weft_server *server, const struct weft_kind *kind, struct weft_ask **ask,
                    size_t count)
{
    size_t kept = 0;
    for (size_t a = 0; a < count; a++) {
        struct weft_err err = {0};
        enum weft_rc rc = kind->item == WEFT_ITEM_LEASE && ask[a]->ns_fixed
                              ? check_namespaces(server, kind, ask[a], &err)
                              : WEFT_OK;
        if (rc)
            finish(&ask[a], 1, rc, &err);
        else
            ask[kept++] = ask[a];
    }
    return kept;
}

static void run_group(struct weft_server *server, struct batch *batch)
{
    const struct weft_kind *kind = &weft_kinds[batch->group];
    struct weft_err err = {0};
    size_t count = admit(server, kind, batch->ask, batch->count);
    if (count == 0)
        return;
    enum weft_rc rc = call_together(server, kind, batch->ask, count, &err);
    if (rc)
        weft_metric_add(weft_server_metrics(server), WEFT_METRIC_STORE_FAILURES, 0, 1);
    /*
     * A call that fails as a whole has written nothing. When that is not the store's fault it is
     * somebody's input that should have been refused earlier: his neighbours must not suffer.
     */
    if (rc && count > 1 && !weft_rc_retryable(rc)) {
        for (size_t a = 0; a < count; a++) {
            rc = call_together(server, kind, &batch->ask[a], 1, &err);
            finish(&batch->ask[a], 1, rc, &err);
        }
        return;
    }
    finish(batch->ask, count, rc, &err);
}

/* One that runs alone; it may have been queued only to be read. */
static void run_alone(struct weft_server *server, struct weft_ask *ask)
{
    struct weft_err err = {0};
    enum weft_rc rc = WEFT_OK;
    if (ask->unread) {
        ask->unread = false;
        rc = ask->route->read(ask, &err);
        if (!rc && !ask->reply.status && ask->route->group != WEFT_GROUP_NONE) {
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
    weft_metric_observe(metrics, WEFT_METRIC_GROUP_ITEMS, batch->group, batch->items);
    weft_metric_observe(metrics, WEFT_METRIC_GROUP_REQUESTS, batch->group, batch->count);
    assert(batch->count > 0); /* only queues with work are taken from */
    if (batch->group == WEFT_GROUP_NONE)
        run_alone(server, batch->ask[0]);
    else if (batch->group == WEFT_GROUP_CLAIM)
        weft_claims_run(server, batch->ask, batch->count);
    else
        run_group(server, batch);
    weft_metric_observe(metrics, WEFT_METRIC_GROUP_SECONDS, batch->group,
                        (uint64_t)(weft_boot_us() - began_us));
}

static void *run_thread(void *context)
{
    struct weft_groups *groups = context;
    struct weft_ask *ask[WEFT_BATCH_MAX] = {0};
    struct batch batch = {.ask = ask};
    unsigned rests = 0;
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
            /* What this call kept from running may run now, here; more than one needs another. */
            if (groups->waiting + (groups->errand ? 1 : 0) > 1)
                pthread_cond_signal(&groups->work);
        } else if (groups->stopping && groups->waiting == 0 && !groups->errand) {
            break;
        } else if (rests != groups->rests) {
            rests = groups->rests;
            pthread_mutex_unlock(&groups->lock);
            weft_heap_rest();
            pthread_mutex_lock(&groups->lock);
        } else {
            pthread_cond_wait(&groups->work, &groups->lock);
        }
    }
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

/* Under the lock. True: it is the first of its queue, so somebody may have to be woken. */
static bool put(struct weft_groups *groups, struct weft_ask *ask)
{
    struct queue *queue = &groups->queue[ask->unread ? WEFT_GROUP_NONE : ask->route->group];
    ask->next = NULL;
    *queue->last = ask;
    queue->last = &ask->next;
    groups->waiting++;
    weft_metric_set(weft_server_metrics(groups->server), WEFT_METRIC_QUEUE_DEPTH,
                    (size_t)(queue - groups->queue), queue->count + 1);
    return queue->count++ == 0 || queue == &groups->queue[WEFT_GROUP_NONE];
}

void weft_groups_put_again(struct weft_groups *groups, struct weft_ask *ask)
{
    pthread_mutex_lock(&groups->lock);
    if (put(groups, ask))
        pthread_cond_signal(&groups->work);
    pthread_mutex_unlock(&groups->lock);
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
    while (first) {
        struct weft_ask *ask = first;
        first = ask->next;
        if (groups->waiting >= groups->server->config.queue_max) {
            ask->next = refused;
            refused = ask;
        } else if (put(groups, ask)) {
            pthread_cond_signal(&groups->work);
        }
    }
    pthread_mutex_unlock(&groups->lock);
    while (refused) {
        struct weft_ask *ask = refused;
        refused = ask->next;
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
    groups->threads = server->config.threads;
    groups->thread = calloc(groups->threads, sizeof(*groups->thread));
    if (!groups->thread)
        weft_oom(groups->threads * sizeof(*groups->thread));
    for (uint32_t i = 0; i < groups->threads; i++)
        weft_thread_start(&groups->thread[i], "weft-engine", run_thread, groups);
    return groups;
}

void weft_groups_free(struct weft_groups *groups)
{
    if (!groups)
        return;
    pthread_mutex_lock(&groups->lock);
    groups->stopping = true;
    pthread_cond_broadcast(&groups->work);
    pthread_mutex_unlock(&groups->lock);
    for (uint32_t i = 0; i < groups->threads; i++)
        pthread_join(groups->thread[i], NULL);
    pthread_cond_destroy(&groups->work);
    pthread_mutex_destroy(&groups->lock);
    free(groups->thread);
    free(groups);
}
