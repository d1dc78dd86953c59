/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Queues as integers. They are interned and cached like names (names.c), and how many a namespace
 * may have is limited (census.c).
 */

#include "base/arena.h"
#include "base/err.h"
#include "core/carried.h"
#include "core/spec.h"
#include "engine/names/cache.h"

enum {
    NAMES = 4,        /* of a queue: namespace, lane, needs, tenant */
    PART_ALONE = 100, /* new queues, each with up to three names, of a transaction */
};

static void queue_key(struct weft_cache_key *key, const struct weft_resolved *spec)
{
    key->size = 0;
    weft_key_text(key, spec->ns);
    weft_key_text(key, spec->lane);
    weft_key_text(key, spec->kind);
    weft_key_text(key, spec->tenant);
    weft_key_text(key, spec->needs);
}

/* The queue with these names, or NULL. */
static struct weft_queue *find_queue(struct weft_names *names, const struct weft_resolved *spec)
{
    struct weft_cache_key key;
    queue_key(&key, spec);
    pthread_mutex_lock(&names->lock);
    struct weft_queue *queue = weft_map_find(&names->now.map[WEFT_CACHE_QUEUE], key.byte, key.size);
    pthread_mutex_unlock(&names->lock);
    return queue;
}

/* The names of a queue, as the spec of an execution in it has them. */
static struct weft_resolved names_of(const struct weft_queue *queue)
{
    return (struct weft_resolved){.ns = queue->ns_name,
                                  .lane = queue->lane_name,
                                  .kind = queue->kind,
                                  .tenant = queue->tenant_name,
                                  .needs = queue->needs_text};
}

/* The first queue that differs in the tenant alone; names.lock is held. */
static int32_t family_of(struct weft_names *names, struct weft_queue *queue)
{
    struct weft_cache_key key = {.size = 0};
    weft_key_int(&key, queue->lane);
    weft_key_int(&key, queue->needs);
    weft_key_text(&key, queue->kind);
    struct weft_queue *first =
        weft_map_find(&names->now.map[WEFT_CACHE_FAMILY], key.byte, key.size);
    if (!first)
        weft_map_put(&names->now.map[WEFT_CACHE_FAMILY], key.byte, key.size, first = queue);
    return first->id;
}

/* Keeps a queue that was not known, for as long as the engine lives; names.lock is held. */
static struct weft_queue *keep_queue(struct weft_engine *engine, const struct weft_queue *queue)
{
    struct weft_names *names = &engine->names;
    struct weft_queue *kept = weft_new(names->now.arena, struct weft_queue);
    *kept = *queue;
    kept->kind = weft_arena_strdup(names->now.arena, queue->kind);
    kept->budget = weft_needs_budgets(queue->needs_text, names->now.arena, &kept->budgets);
    kept->capset_text = weft_needs_capset(queue->needs_text, names->now.arena);
    kept->need = weft_capset_need(kept->capset_text);
    kept->target = weft_needs_target(queue->needs_text);
    kept->carried = weft_kind_is_carried(queue->kind);
    kept->family = family_of(names, kept);
    weft_map_put(&names->now.map[WEFT_CACHE_QUEUE_ID], &kept->id, sizeof(kept->id), kept);
    if (kept->budgets > 0)
        weft_budget_rules_met(&engine->budgets);
    if (kept->carried)
        atomic_store(&engine->carried_met, true);
    return kept;
}

/* Caches queues (the columns of queue_find), all of whose names are cached already. */
static void cache_queues(struct weft_engine *engine, const struct weft_rows *rows)
{
    struct weft_names *names = &engine->names;
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_queue_find_out *row = &weft_out_queue_find(rows)[i];
        struct weft_queue queue = {
            .id = row->id,
            .ns = row->namespace,
            .lane = row->lane,
            .needs = row->route,
            .tenant = row->tenant,
            .kind = row->kind,
        };
        queue.ns_name = weft_find_name(engine, queue.ns);
        queue.lane_name = weft_find_name(engine, queue.lane);
        queue.needs_text = queue.needs ? weft_find_name(engine, queue.needs) : "";
        queue.tenant_name = queue.tenant ? weft_find_name(engine, queue.tenant) : "";
        assert(queue.ns_name && queue.lane_name && queue.needs_text && queue.tenant_name);
        const struct weft_resolved parts = names_of(&queue);
        struct weft_cache_key key;
        queue_key(&key, &parts);
        pthread_mutex_lock(&names->lock);
        struct weft_queue *kept =
            weft_map_find(&names->now.map[WEFT_CACHE_QUEUE_ID], &queue.id, sizeof(queue.id));
        if (!kept)
            kept = keep_queue(engine, &queue);
        const struct weft_queue *known =
            weft_map_find(&names->now.map[WEFT_CACHE_QUEUE], key.byte, key.size);
        if (!row->retired && (!known || known->id < kept->id))
            weft_map_put(&names->now.map[WEFT_CACHE_QUEUE], key.byte, key.size, kept);
        pthread_mutex_unlock(&names->lock);
    }
}

static bool same_queue(const struct weft_resolved *a, const struct weft_resolved *b)
{
    return strcmp(a->kind, b->kind) == 0 && strcmp(a->lane, b->lane) == 0 &&
           strcmp(a->tenant, b->tenant) == 0 && strcmp(a->needs, b->needs) == 0 &&
           strcmp(a->ns, b->ns) == 0;
}

static size_t queues_from_cache(struct weft_engine *engine, const struct weft_resolved *spec,
                                const bool *skip, size_t count, const struct weft_queue **ret_queue)
{
    size_t missing = 0;
    for (size_t i = 0; i < count; i++) {
        ret_queue[i] = NULL;
        if (skip && skip[i])
            continue;
        if (i > 0 && ret_queue[i - 1] && same_queue(&spec[i], &spec[i - 1])) {
            ret_queue[i] = ret_queue[i - 1]; /* neighbours mostly share a queue */
            continue;
        }
        ret_queue[i] = find_queue(&engine->names, &spec[i]);
        missing += !ret_queue[i];
    }
    return missing;
}

/* The specs whose queue is not known yet, and the ids of the names they are made of. */
struct queue_gap {
    struct weft_arena *arena;
    const struct weft_resolved **spec;
    size_t count;
    struct weft_name_want *ns, *rest; /* rest: lane, tenant, route of each */
};

static enum weft_rc gap_names(struct weft_engine *engine, struct queue_gap *gap, bool add,
                              struct weft_err *err)
{
    gap->ns = weft_new_array(gap->arena, struct weft_name_want, gap->count);
    gap->rest = weft_new_array(gap->arena, struct weft_name_want, gap->count * 3);
    for (size_t i = 0; i < gap->count; i++)
        gap->ns[i] = (struct weft_name_want){.sort = WEFT_NAME_NAMESPACE, .text = gap->spec[i]->ns};
    enum weft_rc rc = weft_intern_names(engine, add, gap->ns, gap->count, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < gap->count; i++) {
        struct weft_name_want *want = gap->rest + 3 * i;
        want[0] = (struct weft_name_want){
            .sort = WEFT_NAME_LANE, .ns = gap->ns[i].id, .text = gap->spec[i]->lane};
        want[1] = (struct weft_name_want){
            .sort = WEFT_NAME_TENANT, .ns = gap->ns[i].id, .text = gap->spec[i]->tenant};
        want[2] = (struct weft_name_want){.sort = WEFT_NAME_CAPSET, .text = gap->spec[i]->needs};
    }
    return weft_intern_names(engine, add, gap->rest, gap->count * 3, err);
}

static void queue_call(struct weft_call *call, enum weft_stmt stmt, const struct queue_gap *gap)
{
    weft_call_init(call, gap->arena, stmt, gap->count);
    struct weft_queue_find_in *in = weft_in_queue_find(call);
    for (size_t i = 0; i < gap->count; i++) {
        in->row[i].namespace = gap->ns[i].id;
        in->row[i].lane = gap->rest[3 * i].id;
        in->row[i].kind = gap->spec[i]->kind;
        in->row[i].route = gap->rest[3 * i + 2].id;
        in->row[i].tenant = gap->rest[3 * i + 1].id;
    }
}

/* Caches the queues of the gap that there are; they are wanted, so none of them stays retired. */
static enum weft_rc find_gap(struct weft_engine *engine, const struct queue_gap *gap,
                             struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    queue_call(&call, WEFT_STMT_QUEUE_FIND, gap);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, gap->arena, &rows, err);
    struct weft_id_list retired = {.id = weft_new_array(gap->arena, int32_t, rows.count + 1)};
    const struct weft_queue_find_out *row = weft_out_queue_find(&rows);
    for (size_t i = 0; i < rows.count && !rc; i++)
        if (row[i].retired)
            retired.id[retired.count++] = row[i].id;
    if (!rc && retired.count > 0) {
        rc = weft_names_keep(engine, WEFT_INTERNED_QUEUE, &retired, err);
        if (!rc)
            rc = weft_tx_once(engine, WEFT_TX_READ, &call, gap->arena, &rows, err);
    }
    if (!rc)
        cache_queues(engine, &rows);
    return rc;
}

static enum weft_rc add_gap(struct weft_engine *engine, struct queue_gap *gap, struct weft_err *err)
{
    enum weft_rc rc = gap_names(engine, gap, true, err);
    if (rc)
        return rc;
    struct weft_call call;
    queue_call(&call, WEFT_STMT_QUEUE_ADD, gap);
    rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, gap->arena, NULL, err);
    return rc ? rc : find_gap(engine, gap, err);
}

/* Where one transaction writes at a time, other calls get their turn between parts of the gap. */
static enum weft_rc fill_gap(struct weft_engine *engine, struct queue_gap *gap,
                             struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    size_t most = engine->pool.writers == 1 ? PART_ALONE : gap->count;
    if (gap->count > most && engine->on_side_work)
        engine->on_side_work(engine->side_work_context);
    for (size_t at = 0; at < gap->count && !rc; at += most) {
        size_t left = gap->count - at;
        struct queue_gap part = {.arena = gap->arena, .spec = gap->spec + at};
        part.count = left < most ? left : most;
        rc = add_gap(engine, &part, err);
    }
    return rc;
}

/*
 * Takes queues out of the gap that would be too many for the namespace of its first item. Where
 * there is not room for all, the queues that exist are looked up first, because they are not new.
 */
static enum weft_rc admit_namespace(struct weft_engine *engine, struct queue_gap *gap,
                                    struct queue_gap *ret_admitted, struct weft_err *err)
{
    struct queue_gap same = {.arena = gap->arena}, other = *gap;
    same.spec = weft_new_array(gap->arena, const struct weft_resolved *, gap->count);
    other.count = 0;
    for (size_t i = 0; i < gap->count; i++)
        if (strcmp(gap->spec[i]->ns, gap->spec[0]->ns) == 0)
            same.spec[same.count++] = gap->spec[i];
        else
            other.spec[other.count++] = gap->spec[i];
    struct weft_name_want space = {.sort = WEFT_NAME_NAMESPACE, .text = same.spec[0]->ns};
    size_t room = 0, admitted = 0;
    enum weft_rc rc = weft_intern_names(engine, true, &space, 1, err);
    if (!rc)
        rc = weft_census_room(engine, WEFT_CENSUS_QUEUES, space.id, same.count, &room, err);
    if (!rc && room < same.count)
        rc = gap_names(engine, &same, false, err);
    if (!rc && room < same.count)
        rc = find_gap(engine, &same, err);
    for (size_t i = 0; i < same.count && !rc && admitted < room; i++) {
        bool exists = room < same.count && find_queue(&engine->names, same.spec[i]);
        if (!exists)
            ret_admitted->spec[ret_admitted->count++] = same.spec[i];
        admitted += !exists;
    }
    *gap = other;
    return rc;
}

/* Leaves in the gap the queues that their namespaces may have. */
static enum weft_rc admit_gap(struct weft_engine *engine, struct queue_gap *gap,
                              struct weft_err *err)
{
    struct queue_gap left = *gap, admitted = {.arena = gap->arena};
    admitted.spec = weft_new_array(gap->arena, const struct weft_resolved *, gap->count);
    enum weft_rc rc = WEFT_OK;
    while (left.count > 0 && !rc)
        rc = admit_namespace(engine, &left, &admitted, err);
    *gap = admitted;
    return rc;
}

enum weft_rc weft_intern_queues(struct weft_engine *engine, const struct weft_resolved *spec,
                                const bool *skip, size_t count, const struct weft_queue **ret_queue,
                                bool *ret_refused, struct weft_err *err)
{
    if (ret_refused)
        *ret_refused = false;
    weft_names_check_age(&engine->names);
    if (queues_from_cache(engine, spec, skip, count, ret_queue) == 0)
        return WEFT_OK;
    struct queue_gap gap = {.arena = weft_arena_new()};
    gap.spec = weft_new_array(gap.arena, const struct weft_resolved *, count);
    for (size_t i = 0; i < count; i++)
        if (!(skip && skip[i]) && !ret_queue[i])
            gap.spec[gap.count++] = &spec[i];
    enum weft_rc rc = WEFT_OK;
    size_t missing = 0;
    if (ret_refused && engine->census.kind[WEFT_CENSUS_QUEUES].most > 0) {
        size_t wanted = gap.count;
        rc = admit_gap(engine, &gap, err);
        *ret_refused = gap.count < wanted;
    }
    for (int try = 0; try < WEFT_INTERN_TRIES && !rc && (try == 0 || missing > 0); try++) {
        if (gap.count > 0)
            rc = fill_gap(engine, &gap, err);
        missing = queues_from_cache(engine, spec, skip, count, ret_queue);
        if (ret_refused && *ret_refused)
            break;
    }
    if (!rc && missing > 0 && !(ret_refused && *ret_refused))
        rc = weft_fail(err, WEFT_INTERNAL, "a queue that was just added cannot be found");
    weft_arena_free(gap.arena);
    return rc;
}

/* ---- By id, and retired ---------------------------------------------------------------------- */

enum weft_rc weft_load_queues(struct weft_engine *engine, const struct weft_id_list *list,
                              struct weft_err *err)
{
    struct weft_load load;
    enum weft_rc rc =
        weft_load_unknown(engine, WEFT_STMT_QUEUE_LOAD, WEFT_CACHE_QUEUE_ID, list, &load, err);
    if (!rc && load.rows.count > 0) {
        struct weft_id_list names = {.tx = list->tx};
        names.id = weft_new_array(load.arena, int32_t, load.rows.count * NAMES);
        for (size_t i = 0; i < load.rows.count; i++) {
            const struct weft_queue_load_out *row = &weft_out_queue_load(&load.rows)[i];
            names.id[names.count++] = row->namespace;
            names.id[names.count++] = row->lane;
            names.id[names.count++] = row->route;
            names.id[names.count++] = row->tenant;
        }
        rc = weft_load_names(engine, &names, err);
        if (!rc)
            cache_queues(engine, &load.rows);
    }
    weft_arena_free(load.arena);
    return rc;
}

const struct weft_queue *weft_find_queue(struct weft_engine *engine, int32_t id)
{
    return weft_cache_find(&engine->names, WEFT_CACHE_QUEUE_ID, id);
}

void weft_names_retired(struct weft_names *names, enum weft_interned what, int32_t id)
{
    pthread_mutex_lock(&names->lock);
    if (what == WEFT_INTERNED_NAME) {
        struct weft_name *name =
            weft_map_find(&names->now.map[WEFT_CACHE_NAME_ID], &id, sizeof(id));
        if (name)
            name->retired = true;
    } else {
        const struct weft_queue *queue =
            weft_map_find(&names->now.map[WEFT_CACHE_QUEUE_ID], &id, sizeof(id));
        struct weft_cache_key key;
        if (queue) {
            const struct weft_resolved parts = names_of(queue);
            queue_key(&key, &parts);
            if (weft_map_find(&names->now.map[WEFT_CACHE_QUEUE], key.byte, key.size) == queue)
                weft_map_remove(&names->now.map[WEFT_CACHE_QUEUE], key.byte, key.size);
        }
    }
    pthread_mutex_unlock(&names->lock);
}
