/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/limit/budget_rules.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "engine/engine_state.h"

#include <stdlib.h>
#include <string.h>

#define OLD_US (2500 * WEFT_MS) /* a process that polls reads them once a second */

enum {
    CLOSED_MAX = 4096, /* queues that are remembered as closed */
    NO_VERSION = 1,    /* of a store in which no budget was ever put */
    MANY = 1000000,    /* executions that a budget may let begin: they are not counted */
};

struct weft_budget_rule {
    int32_t ns;
    const char *name;
    const char *lane, *kind, *tenant; /* NULL: any */
};

struct closed_queue {
    int32_t id; /* first, for the map */
    weft_usec until_us;
};

void weft_budget_rules_init(struct weft_budget_rules *rules)
{
    *rules = (struct weft_budget_rules){.in_use = true}; /* until it is known */
    pthread_mutex_init(&rules->lock, NULL);
}

/* Under rules->lock. */
static void forget_closed(struct weft_budget_rules *rules)
{
    for (size_t i = 0; i < rules->closed.capacity; i++)
        free(rules->closed.slot[i]);
    weft_int_map_done(&rules->closed);
    rules->closed = (struct weft_int_map){0};
    atomic_store(&rules->closed_queues, 0);
}

void weft_budget_rules_done(struct weft_budget_rules *rules)
{
    forget_closed(rules);
    weft_arena_free(rules->arena);
    pthread_mutex_destroy(&rules->lock);
}

void weft_budget_rules_met(struct weft_budget_rules *rules)
{
    atomic_store(&rules->met, true);
    atomic_store(&rules->in_use, true);
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static const char *copy(struct weft_arena *arena, const char *text)
{
    return text ? weft_arena_strdup(arena, text) : NULL;
}

static int by_namespace(const void *left, const void *right)
{
    int32_t a = ((const struct weft_budget_rule *)left)->ns;
    int32_t b = ((const struct weft_budget_rule *)right)->ns;
    return (a > b) - (a < b);
}

static void keep_rules(struct weft_budget_rules *rules, const struct weft_rows *rows)
{
    const struct weft_budgets_matching_out *row = weft_out_budgets_matching(rows);
    struct weft_arena *arena = weft_arena_new();
    struct weft_budget_rule *rule = weft_new_array(arena, struct weft_budget_rule, rows->count + 1);
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (row[i].name)
            rule[count++] = (struct weft_budget_rule){.ns = row[i].namespace.value,
                                                      .name = copy(arena, row[i].name),
                                                      .lane = copy(arena, row[i].lane),
                                                      .kind = copy(arena, row[i].kind),
                                                      .tenant = copy(arena, row[i].tenant)};
    qsort(rule, count, sizeof(*rule), by_namespace);
    pthread_mutex_lock(&rules->lock);
    struct weft_arena *before = rules->arena;
    rules->arena = arena;
    rules->rule = rule;
    rules->count = count;
    rules->version = row[0].version; /* of two threads the later may bring the older: see _seen() */
    rules->read_us = weft_boot_us();
    forget_closed(rules);
    atomic_store(&rules->in_use, rules->version > NO_VERSION);
    if (atomic_load(&rules->met)) /* perhaps a moment ago */
        atomic_store(&rules->in_use, true);
    atomic_store(&rules->known, true);
    pthread_mutex_unlock(&rules->lock);
    weft_arena_free(before);
}

enum weft_rc weft_budget_rules_read(struct weft_engine *engine, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_budgets_matching(&call, arena);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (!rc)
        keep_rules(&engine->budgets, &rows);
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_budget_rules_renew(struct weft_engine *engine, struct weft_err *err)
{
    struct weft_budget_rules *rules = &engine->budgets;
    weft_usec now_us = weft_boot_us();
    pthread_mutex_lock(&rules->lock);
    bool known = rules->version != 0;
    bool old = rules->read_us == 0 || now_us - rules->read_us > OLD_US;
    if (old && known)
        rules->read_us = now_us; /* other threads need not read them too */
    pthread_mutex_unlock(&rules->lock);
    struct weft_err unused;
    enum weft_rc rc = old ? weft_budget_rules_read(engine, known ? &unused : err) : WEFT_OK;
    /* Old rules are better than no work; without any, an execution could run and never be charged.
     */
    return known ? WEFT_OK : rc;
}

void weft_budget_rules_doubt(struct weft_engine *engine)
{
    struct weft_budget_rules *rules = &engine->budgets;
    pthread_mutex_lock(&rules->lock);
    rules->read_us = 0;
    pthread_mutex_unlock(&rules->lock);
}

enum weft_rc weft_budget_rules_seen(struct weft_engine *engine, int64_t version,
                                    struct weft_err *err)
{
    struct weft_budget_rules *rules = &engine->budgets;
    pthread_mutex_lock(&rules->lock);
    bool same = rules->version == version;
    if (same)
        rules->read_us = weft_boot_us();
    pthread_mutex_unlock(&rules->lock);
    return same ? WEFT_OK : weft_budget_rules_read(engine, err);
}

bool weft_budgets_in_use(struct weft_engine *engine)
{
    struct weft_err err; /* after a failure: there may be some */
    if (!atomic_load(&engine->budgets.known))
        (void)!weft_budget_rules_read(engine, &err);
    return atomic_load(&engine->budgets.in_use);
}

static bool fits(const char *wanted, const char *is)
{
    return !wanted || strcmp(wanted, is) == 0;
}

static bool matches(const struct weft_budget_rule *rule, const struct weft_queue *queue)
{
    return rule->ns == queue->ns && fits(rule->lane, queue->lane_name) &&
           fits(rule->kind, queue->kind) && fits(rule->tenant, queue->tenant_name);
}

/* The first rule of a namespace. Under rules->lock. */
static size_t first_rule(const struct weft_budget_rules *rules, int32_t ns)
{
    size_t low = 0, high = rules->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rules->rule[middle].ns < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t weft_budgets_of(struct weft_engine *engine, const struct weft_queue *queue,
                       struct weft_arena *arena, struct weft_budget_ref **ret_ref)
{
    struct weft_budget_rules *rules = &engine->budgets;
    size_t count = 0;
    *ret_ref = NULL;
    if (!atomic_load(&rules->in_use))
        return 0;
    pthread_mutex_lock(&rules->lock);
    size_t first = first_rule(rules, queue->ns), last = first;
    while (last < rules->count && rules->rule[last].ns == queue->ns)
        last++;
    struct weft_budget_ref *ref =
        weft_new_array(arena, struct weft_budget_ref, queue->budgets + last - first + 1);
    for (size_t i = 0; i < queue->budgets; i++)
        (void)weft_budget_ref_add(ref, &count, queue->ns, queue->budget[i]);
    for (size_t i = first; i < last; i++)
        if (matches(&rules->rule[i], queue))
            (void)weft_budget_ref_add(ref, &count, queue->ns,
                                      weft_arena_strdup(arena, rules->rule[i].name));
    pthread_mutex_unlock(&rules->lock);
    *ret_ref = ref;
    return count;
}

bool weft_budgets_apply(struct weft_engine *engine, int32_t id)
{
    struct weft_budget_rules *rules = &engine->budgets;
    if (!atomic_load(&rules->in_use))
        return false;
    const struct weft_queue *queue = weft_find_queue(engine, id);
    if (!queue || queue->budgets > 0)
        return true;
    bool any = false;
    pthread_mutex_lock(&rules->lock);
    for (size_t i = first_rule(rules, queue->ns);
         i < rules->count && rules->rule[i].ns == queue->ns && !any; i++)
        any = matches(&rules->rule[i], queue);
    pthread_mutex_unlock(&rules->lock);
    return any;
}

/* ---- Closed queues --------------------------------------------------------------------------- */

void weft_budget_queue_closed(struct weft_engine *engine, int32_t queue, weft_usec for_us)
{
    struct weft_budget_rules *rules = &engine->budgets;
    pthread_mutex_lock(&rules->lock);
    if (rules->closed.count >= CLOSED_MAX)
        forget_closed(rules);
    struct closed_queue *closed = weft_int_map_find(&rules->closed, queue);
    if (!closed) {
        closed = weft_alloc(1, sizeof(*closed));
        closed->id = queue;
        weft_int_map_put(&rules->closed, closed);
    }
    closed->until_us = weft_boot_us() + for_us;
    atomic_store(&rules->closed_queues, rules->closed.count);
    pthread_mutex_unlock(&rules->lock);
}

bool weft_budget_queue_is_closed(struct weft_engine *engine, int32_t queue)
{
    struct weft_budget_rules *rules = &engine->budgets;
    if (atomic_load(&rules->closed_queues) == 0)
        return false;
    pthread_mutex_lock(&rules->lock);
    const struct closed_queue *closed = weft_int_map_find(&rules->closed, queue);
    bool is_closed = closed && weft_boot_us() < closed->until_us;
    pthread_mutex_unlock(&rules->lock);
    return is_closed;
}

void weft_budget_queues_heard(struct weft_engine *engine, const struct weft_woken *woken,
                              size_t count)
{
    struct weft_budget_rules *rules = &engine->budgets;
    if (atomic_load(&rules->closed_queues) == 0)
        return;
    pthread_mutex_lock(&rules->lock);
    for (size_t i = 0; i < count; i++) {
        struct closed_queue *closed = weft_int_map_find(&rules->closed, woken[i].queue);
        if (closed)
            closed->until_us = 0;
    }
    pthread_mutex_unlock(&rules->lock);
}

void weft_budgets_opened(struct weft_engine *engine, const int32_t *queue, size_t count)
{
    struct weft_budget_rules *rules = &engine->budgets;
    struct weft_arena *arena = weft_arena_new();
    struct weft_commit_effects news = weft_news_new(arena, weft_clock_now(engine->clock));
    for (size_t i = 0; i < count; i++)
        weft_news_of(&news, queue[i])->ready = MANY;
    pthread_mutex_lock(&rules->lock);
    for (size_t i = 0; i < rules->closed.capacity; i++) {
        const struct closed_queue *closed = rules->closed.slot[i];
        if (closed)
            weft_news_of(&news, closed->id)->ready = MANY;
    }
    forget_closed(rules);
    pthread_mutex_unlock(&rules->lock);
    if (news.count > 0)
        weft_news_tell(engine, &news);
    weft_arena_free(arena);
}
