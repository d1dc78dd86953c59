/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Interned rows: namespaces, lanes, tenants, routes, workers; policies; queues.
 *
 * A row is created in a transaction of its own, committed before its first use, and cached only
 * after that commit: no cache can hold an id that a rollback took back, and no hot transaction
 * waits for another one's new name. Rows are never changed, and an id is never used twice, so what
 * is cached under an id is never wrong. What is cached under a text may be wrong once its row was
 * removed: unused.h tells why no such id is written.
 */

#include "engine/names/names.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "core/spec.h"
#include "engine/engine_state.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void weft_names_init(struct weft_names *names)
{
    *names = (struct weft_names){.arena = weft_arena_new(), .told_us = weft_boot_us()};
    pthread_mutex_init(&names->lock, NULL);
}

static void free_caches(struct weft_names *names)
{
    weft_map_done(&names->by_text);
    weft_map_done(&names->by_id);
    weft_map_done(&names->queue);
    weft_map_done(&names->queue_id);
    weft_map_done(&names->family);
    weft_map_done(&names->policy);
    weft_map_done(&names->policy_id);
    weft_arena_free(names->arena);
    pthread_mutex_destroy(&names->lock);
}

void weft_names_done(struct weft_names *names)
{
    struct weft_names *before = names->before;
    free_caches(names);
    while (before) {
        struct weft_names *next = before->before;
        free_caches(before);
        free(before);
        before = next;
    }
}

/*
 * Begins anew with empty caches. Pointers into the old ones are in use without a lock, so these are
 * kept until the engine is closed: a store changes its lineage a few times in the life of a process
 * at most. A scheme that frees unused names may free these in its own way.
 *
 * An operation that has loaded its rows before goes on with what it read: the find functions look
 * in the old caches for what the new ones do not have. What decides whether a row must be loaded,
 * or which id is written, looks in the new ones alone.
 */
void weft_names_suspect(struct weft_names *names)
{
    struct weft_names *before = weft_alloc(1, sizeof(*before));
    pthread_mutex_init(&before->lock, NULL);
    pthread_mutex_lock(&names->lock);
    before->arena = names->arena;
    before->by_text = names->by_text;
    before->by_id = names->by_id;
    before->queue = names->queue;
    before->queue_id = names->queue_id;
    before->family = names->family;
    before->policy = names->policy;
    before->policy_id = names->policy_id;
    before->before = names->before;
    names->arena = weft_arena_new();
    names->by_text = names->by_id = names->queue = names->queue_id = names->family = names->policy =
        names->policy_id = (struct weft_map){0};
    names->before = before;
    pthread_mutex_unlock(&names->lock);
}

/* A row that was removed between a look and the next is added once more, and so on. */
enum {
    TRIES = 3,
    PART_ALONE = 100, /* new queues, each with up to three names, of a transaction */
};

/* ---- Cache keys: fields one after the other, texts with their NUL
 * -------------------------------- */

#define KEY_MAX (8 + WEFT_CAPABILITIES_BYTES + 4 * (size_t)WEFT_NAME_MAX + 16)

struct cache_key {
    char byte[KEY_MAX];
    size_t size;
};

static void key_int(struct cache_key *key, int32_t value)
{
    memcpy(key->byte + key->size, &value, sizeof(value));
    key->size += sizeof(value);
}

static void key_text(struct cache_key *key, const char *text)
{
    size_t size = strlen(text) + 1;
    assert(key->size + size <= sizeof(key->byte)); /* texts were checked against their limits */
    memcpy(key->byte + key->size, text, size);
    key->size += size;
}

static void *find_key(struct weft_names *names, const struct weft_map *map,
                      const struct cache_key *key)
{
    pthread_mutex_lock(&names->lock);
    void *value = weft_map_find(map, key->byte, key->size);
    pthread_mutex_unlock(&names->lock);
    return value;
}

/* What was cached under a number, also of an earlier lineage: `map` is the offset of the map. */
static void *find_any(struct weft_names *names, size_t map, int32_t id)
{
    void *value = NULL;
    pthread_mutex_lock(&names->lock);
    for (const struct weft_names *at = names; at && !value; at = at->before)
        value = weft_map_find((const struct weft_map *)((const char *)at + map), &id, sizeof(id));
    pthread_mutex_unlock(&names->lock);
    return value;
}

/* ---- Names ----------------------------------------------------------------------------------- */

static void name_key(struct cache_key *key, int32_t sort, int32_t ns, const char *text)
{
    key->size = 0;
    key_int(key, sort);
    key_int(key, ns);
    key_text(key, text);
}

/* Caches rows with the columns id, sort, namespace, text, retired. */
static void cache_names(struct weft_names *names, const struct weft_rows *rows)
{
    pthread_mutex_lock(&names->lock);
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_name_find_out *row = &weft_out_name_find(rows)[i];
        int32_t id = row->id;
        struct weft_name *name = weft_map_find(&names->by_id, &id, sizeof(id));
        if (!name) {
            name = weft_new(names->arena, struct weft_name);
            name->id = id;
            name->sort = row->sort;
            name->ns = row->namespace;
            name->text = weft_arena_strdup(names->arena, row->text);
            weft_map_put(&names->by_id, &id, sizeof(id), name);
        }
        name->retired = row->retired;
        struct cache_key key;
        name_key(&key, name->sort, name->ns, name->text);
        const struct weft_name *known = weft_map_find(&names->by_text, key.byte, key.size);
        if (!known || known->id < id) /* of two rows with this text the first was removed */
            weft_map_put(&names->by_text, key.byte, key.size, name);
    }
    pthread_mutex_unlock(&names->lock);
}

/* Fills in the ids that are cached; returns how many are not. An id of a retired row is one that is
 * not, unless `retired` allows it. */
static size_t names_from_cache(struct weft_names *names, bool retired, struct weft_name_want *want,
                               size_t count)
{
    size_t missing = 0;
    for (size_t i = 0; i < count; i++) {
        struct cache_key key;
        name_key(&key, want[i].sort, want[i].ns, want[i].text);
        pthread_mutex_lock(&names->lock);
        const struct weft_name *name = weft_map_find(&names->by_text, key.byte, key.size);
        want[i].id = name && (retired || !name->retired) ? name->id : 0;
        pthread_mutex_unlock(&names->lock);
        missing += want[i].id == 0;
    }
    return missing;
}

/* name_find and name_add have the same parameters. */
static void name_call(struct weft_call *call, struct weft_arena *arena, enum weft_stmt stmt,
                      const struct weft_name_want *want, size_t count)
{
    size_t rows = 0;
    for (size_t i = 0; i < count; i++)
        rows += want[i].id == 0;
    weft_call_init(call, arena, stmt, rows);
    struct weft_name_find_in *in = weft_in_name_find(call);
    for (size_t i = 0, row = 0; i < count; i++) {
        if (want[i].id != 0)
            continue;
        in->row[row].sort = want[i].sort;
        in->row[row].namespace = want[i].ns;
        in->row[row++].text = want[i].text;
    }
}

static enum weft_rc find_names(struct weft_engine *engine, struct weft_arena *arena,
                               struct weft_name_want *want, size_t count,
                               struct weft_rows *ret_rows, struct weft_err *err)
{
    struct weft_call call;
    name_call(&call, arena, WEFT_STMT_NAME_FIND, want, count);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, ret_rows, err);
    if (!rc)
        cache_names(&engine->names, ret_rows);
    return rc;
}

/* Adds the names that are missing, and takes back that those in `found` were retired. */
static enum weft_rc add_names(struct weft_engine *engine, struct weft_arena *arena,
                              struct weft_name_want *want, size_t count,
                              const struct weft_rows *found, struct weft_err *err)
{
    struct weft_call call;
    struct weft_id_list retired = {.id = weft_new_array(arena, int32_t, found->count + 1)};
    const struct weft_name_find_out *row = weft_out_name_find(found);
    for (size_t i = 0; i < found->count; i++)
        if (row[i].retired)
            retired.id[retired.count++] = row[i].id;
    enum weft_rc rc = weft_names_keep(engine, WEFT_INTERNED_NAME, &retired, err);
    if (rc)
        return rc;
    name_call(&call, arena, WEFT_STMT_NAME_ADD, want, count);
    return weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, err);
}

enum weft_rc weft_intern_names(struct weft_engine *engine, bool add, struct weft_name_want *want,
                               size_t count, struct weft_err *err)
{
    /* A reader looks again as well: the row may have been removed and added under another id. It
     * then goes on with a retired row, because something may refer to it again. */
    weft_names_check_age(&engine->names);
    if (names_from_cache(&engine->names, false, want, count) == 0)
        return WEFT_OK;
    struct weft_arena *arena = weft_arena_new();
    struct weft_rows found;
    enum weft_rc rc = find_names(engine, arena, want, count, &found, err);
    size_t missing = names_from_cache(&engine->names, !add, want, count);
    for (int try = 0; try < TRIES && add && missing > 0 && !rc; try++) {
        rc = add_names(engine, arena, want, count, &found, err);
        if (!rc)
            rc = find_names(engine, arena, want, count, &found, err);
        missing = names_from_cache(&engine->names, !add, want, count);
    }
    if (!rc && add && missing > 0)
        rc = weft_fail(err, WEFT_INTERNAL, "a name that was just added cannot be found");
    weft_arena_free(arena);
    return rc;
}

/* ---- Queues ---------------------------------------------------------------------------------- */

static void queue_key(struct cache_key *key, const struct weft_resolved *spec)
{
    key->size = 0;
    key_text(key, spec->ns);
    key_text(key, spec->lane);
    key_text(key, spec->kind);
    key_text(key, spec->tenant);
    key_text(key, spec->capset);
}

/* The first queue that differs in the tenant alone; names.lock is held. */
static int32_t family_of(struct weft_names *names, struct weft_queue *queue)
{
    struct cache_key key = {.size = 0};
    key_int(&key, queue->lane);
    key_int(&key, queue->capset);
    key_text(&key, queue->kind);
    struct weft_queue *first = weft_map_find(&names->family, key.byte, key.size);
    if (!first)
        weft_map_put(&names->family, key.byte, key.size, first = queue);
    return first->id;
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
            .capset = row->route,
            .tenant = row->tenant,
        };
        queue.ns_name = weft_find_name(engine, queue.ns);
        queue.lane_name = weft_find_name(engine, queue.lane);
        queue.capset_text = queue.capset ? weft_find_name(engine, queue.capset) : "";
        queue.tenant_name = queue.tenant ? weft_find_name(engine, queue.tenant) : "";
        assert(queue.ns_name && queue.lane_name && queue.capset_text && queue.tenant_name);
        queue.need = weft_capset_need(queue.capset_text);
        struct weft_resolved parts = {.ns = queue.ns_name,
                                      .lane = queue.lane_name,
                                      .kind = row->kind,
                                      .tenant = queue.tenant_name,
                                      .capset = queue.capset_text};
        struct cache_key key;
        queue_key(&key, &parts);
        pthread_mutex_lock(&names->lock);
        struct weft_queue *kept = weft_map_find(&names->queue_id, &queue.id, sizeof(queue.id));
        if (!kept) {
            kept = weft_new(names->arena, struct weft_queue);
            queue.kind = weft_arena_strdup(names->arena, parts.kind);
            *kept = queue;
            kept->family = family_of(names, kept);
            weft_map_put(&names->queue_id, &kept->id, sizeof(kept->id), kept);
        }
        const struct weft_queue *known = weft_map_find(&names->queue, key.byte, key.size);
        if (!row->retired && (!known || known->id < kept->id))
            weft_map_put(&names->queue, key.byte, key.size, kept);
        pthread_mutex_unlock(&names->lock);
    }
}

static bool same_queue(const struct weft_resolved *a, const struct weft_resolved *b)
{
    return strcmp(a->kind, b->kind) == 0 && strcmp(a->lane, b->lane) == 0 &&
           strcmp(a->tenant, b->tenant) == 0 && strcmp(a->capset, b->capset) == 0 &&
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
        struct cache_key key;
        queue_key(&key, &spec[i]);
        ret_queue[i] = find_key(&engine->names, &engine->names.queue, &key);
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
        want[2] = (struct weft_name_want){.sort = WEFT_NAME_CAPSET, .text = gap->spec[i]->capset};
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
        rc = weft_census_room(engine, space.id, same.count, &room, err);
    if (!rc && room < same.count)
        rc = gap_names(engine, &same, false, err);
    if (!rc && room < same.count)
        rc = find_gap(engine, &same, err);
    for (size_t i = 0; i < same.count && !rc && admitted < room; i++) {
        struct cache_key key;
        queue_key(&key, same.spec[i]);
        bool exists = room < same.count && find_key(&engine->names, &engine->names.queue, &key);
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
    if (ret_refused && engine->census.most > 0) {
        size_t wanted = gap.count;
        rc = admit_gap(engine, &gap, err);
        *ret_refused = gap.count < wanted;
    }
    for (int try = 0; try < TRIES && !rc && (try == 0 || missing > 0); try++) {
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

/* ---- What is retired: see unused.h ----------------------------------------------------------- */

void weft_names_retired(struct weft_names *names, enum weft_interned what, int32_t id)
{
    pthread_mutex_lock(&names->lock);
    if (what == WEFT_INTERNED_NAME) {
        struct weft_name *name = weft_map_find(&names->by_id, &id, sizeof(id));
        if (name)
            name->retired = true;
    } else {
        const struct weft_queue *queue = weft_map_find(&names->queue_id, &id, sizeof(id));
        struct cache_key key;
        if (queue) {
            const struct weft_resolved parts = {.ns = queue->ns_name,
                                                .lane = queue->lane_name,
                                                .kind = queue->kind,
                                                .tenant = queue->tenant_name,
                                                .capset = queue->capset_text};
            queue_key(&key, &parts);
            if (weft_map_find(&names->queue, key.byte, key.size) == queue)
                weft_map_remove(&names->queue, key.byte, key.size);
        }
    }
    pthread_mutex_unlock(&names->lock);
}

void weft_names_told(struct weft_names *names, weft_usec began_us)
{
    pthread_mutex_lock(&names->lock);
    if (names->told_us < began_us)
        names->told_us = began_us;
    pthread_mutex_unlock(&names->lock);
}

void weft_names_check_age(struct weft_names *names)
{
    weft_usec now_us = weft_boot_us();
    pthread_mutex_lock(&names->lock);
    if (now_us - names->told_us > WEFT_UNUSED_TOLD_US) {
        weft_map_done(&names->by_text);
        weft_map_done(&names->queue);
        names->by_text = names->queue = (struct weft_map){0};
        names->told_us = now_us;
    }
    pthread_mutex_unlock(&names->lock);
}

enum weft_rc weft_names_keep(struct weft_engine *engine, enum weft_interned what,
                             const struct weft_id_list *list, struct weft_err *err)
{
    if (list->count == 0)
        return WEFT_OK;
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_retired_keep_in *in = weft_call_retired_keep(&call, arena, list->count);
    for (size_t i = 0; i < list->count; i++)
        in->row[i].interned = (struct weft_interned_in){.what = what, .id = list->id[i]};
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, err);
    weft_arena_free(arena);
    return rc;
}

/* ---- Policies -------------------------------------------------------------------------------- */

/* Caches policies (columns id, text). A text this binary cannot read is a damaged store. */
static enum weft_rc cache_policies(struct weft_names *names, const struct weft_rows *rows,
                                   struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    pthread_mutex_lock(&names->lock);
    for (size_t i = 0; i < rows->count && !rc; i++) {
        const struct weft_policy_find_out *row = &weft_out_policy_find(rows)[i];
        int32_t id = row->id;
        if (weft_map_find(&names->policy_id, &id, sizeof(id)))
            continue;
        const char *text = weft_arena_strdup(names->arena, row->text);
        struct weft_policy_entry *entry = weft_new(names->arena, struct weft_policy_entry);
        entry->id = id;
        struct weft_json value;
        struct weft_policy policy;
        rc = weft_json_check(text, strlen(text), &value, err);
        if (!rc)
            rc = weft_policy_parse(&value, names->arena, &policy, err);
        if (!rc)
            rc = weft_policy_resolve(&policy, names->arena, &entry->rules, err);
        if (!rc)
            entry->shown = weft_policy_of(&entry->rules);
        if (rc) {
            rc = weft_fail(err, WEFT_CORRUPT, "policy %d in the store cannot be read", id);
            break;
        }
        weft_map_put(&names->policy, text, strlen(text), entry);
        weft_map_put(&names->policy_id, &id, sizeof(id), entry);
    }
    pthread_mutex_unlock(&names->lock);
    return rc;
}

static size_t policies_from_cache(struct weft_names *names, const char *const *text, size_t count,
                                  int32_t *ret_policy)
{
    size_t missing = 0;
    pthread_mutex_lock(&names->lock);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && text[i] && text[i] == text[i - 1] && ret_policy[i - 1]) {
            ret_policy[i] = ret_policy[i - 1];
            continue;
        }
        const struct weft_policy_entry *entry =
            text[i] ? weft_map_find(&names->policy, text[i], strlen(text[i])) : NULL;
        ret_policy[i] = entry ? entry->id : 0;
        missing += text[i] && !entry;
    }
    pthread_mutex_unlock(&names->lock);
    return missing;
}

static enum weft_rc add_policies(struct weft_engine *engine, const struct weft_resolved *spec,
                                 const char *const *text, size_t count, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    size_t rows_wanted = 0;
    for (size_t i = 0; i < count; i++)
        rows_wanted += text[i] != NULL;
    struct weft_call add, find;
    struct weft_rows rows;
    struct weft_policy_add_in *add_in = weft_call_policy_add(&add, arena, rows_wanted);
    struct weft_policy_find_in *find_in = weft_call_policy_find(&find, arena, rows_wanted);
    for (size_t i = 0, row = 0; i < count; i++) {
        if (!text[i])
            continue;
        find_in->row[row].text = text[i];
        add_in->row[row].text = text[i];
        add_in->row[row].lease_us = spec[i].rules.lease_us;
        add_in->row[row++].timeout_us = spec[i].rules.attempt_timeout_us;
    }
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_WRITE, &add, arena, NULL, err);
    if (!rc)
        rc = weft_tx_once(engine, WEFT_TX_READ, &find, arena, &rows, err);
    if (!rc)
        rc = cache_policies(&engine->names, &rows, err);
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_intern_policies(struct weft_engine *engine, const struct weft_resolved *spec,
                                  const bool *skip, size_t count, int32_t *ret_policy,
                                  struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    const char **text = weft_new_array(arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (skip && skip[i])
            continue;
        /* Neighbours mostly share a policy: the text of the one before is made once. */
        bool same = i > 0 && text[i - 1] && spec[i].policy_given == spec[i - 1].policy_given;
        text[i] = same ? text[i - 1] : weft_policy_text(&spec[i].rules, arena);
    }
    enum weft_rc rc = WEFT_OK;
    if (policies_from_cache(&engine->names, text, count, ret_policy) > 0) {
        rc = add_policies(engine, spec, text, count, err);
        if (!rc && policies_from_cache(&engine->names, text, count, ret_policy) > 0)
            rc = weft_fail(err, WEFT_INTERNAL, "a policy that was just added cannot be found");
    }
    weft_arena_free(arena);
    return rc;
}

/* ---- By id ----------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    return (left > right) - (left < right);
}

/* Keeps the ids that are not in the map, each once and in their order, and returns how many. */
static size_t only_unknown(struct weft_names *names, const struct weft_map *map,
                           const struct weft_id_list *list, int32_t *ret_id)
{
    size_t unknown = 0, count = 0;
    pthread_mutex_lock(&names->lock);
    for (size_t i = 0; i < list->count; i++)
        if (list->id[i] != 0 && !weft_map_find(map, &list->id[i], sizeof(list->id[i])))
            ret_id[unknown++] = list->id[i];
    pthread_mutex_unlock(&names->lock);
    qsort(ret_id, unknown, sizeof(*ret_id), by_number);
    for (size_t i = 0; i < unknown; i++)
        if (i == 0 || ret_id[i] != ret_id[i - 1])
            ret_id[count++] = ret_id[i];
    return count;
}

/* A load under way: one of name_load, queue_load, policy_load, whose only parameter is the id. */
struct load {
    enum weft_stmt stmt;
    const struct weft_map *map;
    struct weft_arena *arena;
    struct weft_rows rows;
};

static enum weft_rc load_unknown(struct weft_engine *engine, struct load *load,
                                 const struct weft_id_list *list, struct weft_err *err)
{
    load->arena = weft_arena_new();
    int32_t *unknown = weft_new_array(load->arena, int32_t, list->count + 1);
    size_t count = only_unknown(&engine->names, load->map, list, unknown);
    if (count == 0)
        return WEFT_OK;
    struct weft_call call;
    weft_call_init(&call, load->arena, load->stmt, count);
    for (size_t i = 0; i < count; i++)
        weft_in_name_load(&call)->row[i].id = unknown[i];
    enum weft_rc rc =
        list->tx ? weft_tx_run(list->tx, &call, 1, &load->rows, err)
                 : weft_tx_once(engine, WEFT_TX_READ, &call, load->arena, &load->rows, err);
    if (!rc && load->rows.count != count)
        rc = weft_fail(err, WEFT_CORRUPT, "%zu of %zu interned rows are missing (%s)",
                       count - load->rows.count, count, weft_stmts[load->stmt].name);
    return rc;
}

enum weft_rc weft_load_names(struct weft_engine *engine, const struct weft_id_list *list,
                             struct weft_err *err)
{
    struct load load = {.stmt = WEFT_STMT_NAME_LOAD, .map = &engine->names.by_id};
    enum weft_rc rc = load_unknown(engine, &load, list, err);
    if (!rc)
        cache_names(&engine->names, &load.rows);
    weft_arena_free(load.arena);
    return rc;
}

enum weft_rc weft_load_policies(struct weft_engine *engine, const struct weft_id_list *list,
                                struct weft_err *err)
{
    struct load load = {.stmt = WEFT_STMT_POLICY_LOAD, .map = &engine->names.policy_id};
    enum weft_rc rc = load_unknown(engine, &load, list, err);
    if (!rc)
        rc = cache_policies(&engine->names, &load.rows, err);
    weft_arena_free(load.arena);
    return rc;
}

enum weft_rc weft_load_queues(struct weft_engine *engine, const struct weft_id_list *list,
                              struct weft_err *err)
{
    enum { NAMES = 4 }; /* of a queue */
    struct load load = {.stmt = WEFT_STMT_QUEUE_LOAD, .map = &engine->names.queue_id};
    enum weft_rc rc = load_unknown(engine, &load, list, err);
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
    return find_any(&engine->names, offsetof(struct weft_names, queue_id), id);
}

const struct weft_policy_entry *weft_find_policy(struct weft_engine *engine, int32_t id)
{
    return find_any(&engine->names, offsetof(struct weft_names, policy_id), id);
}

const struct weft_rules *weft_find_rules(struct weft_engine *engine, int32_t id)
{
    const struct weft_policy_entry *entry = weft_find_policy(engine, id);
    return entry ? &entry->rules : NULL;
}

const char *weft_find_name(struct weft_engine *engine, int32_t id)
{
    const struct weft_name *name =
        id ? find_any(&engine->names, offsetof(struct weft_names, by_id), id) : NULL;
    return name ? name->text : NULL;
}

enum weft_rc weft_find_namespace(struct weft_engine *engine, const char *ns, int32_t *ret_id,
                                 struct weft_err *err)
{
    enum weft_rc rc = weft_name_check(ns, "namespace", err);
    if (rc)
        return rc;
    struct weft_name_want want = {.sort = WEFT_NAME_NAMESPACE, .text = ns};
    rc = weft_intern_names(engine, false, &want, 1, err);
    *ret_id = want.id;
    return rc;
}
