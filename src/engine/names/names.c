/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Interned rows: namespaces, lanes, tenants, capsets, workers; policies. Queues are in queues.c.
 *
 * A row is created in a transaction of its own, committed before its first use, and cached only
 * after that commit: no cache can hold an id that a rollback took back, and no hot transaction
 * waits for another one's new name. Rows are never changed, and an id is never used twice, so a row
 * cached under its id is never wrong. A row cached under its text is wrong once it was removed from
 * the store: unused.h says why no such id is written.
 */

#include "engine/names/names.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "core/spec.h"
#include "engine/names/cache.h"

#include <stdlib.h>

/* ---- The caches ------------------------------------------------------------------------------ */

void weft_names_init(struct weft_names *names)
{
    *names = (struct weft_names){.now.arena = weft_arena_new(), .retired_seen_us = weft_boot_us()};
    pthread_mutex_init(&names->lock, NULL);
}

static void free_caches(struct weft_caches *caches)
{
    for (size_t i = 0; i < WEFT_CACHES; i++)
        weft_map_done(&caches->map[i]);
    weft_arena_free(caches->arena);
}

void weft_names_done(struct weft_names *names)
{
    free_caches(&names->now);
    for (struct weft_caches *at = names->now.before, *next; at; at = next) {
        next = at->before;
        free_caches(at);
        free(at);
    }
    pthread_mutex_destroy(&names->lock);
}

/*
 * Restarts with empty caches. Pointers into the old ones are in use without a lock, so these are
 * kept until the engine is closed: a store changes its lineage a few times in the life of a process
 * at most.
 *
 * An operation that loaded its rows before the change goes on with them: the find functions look in
 * the old caches for ids that the new ones do not have. Code that decides whether a row must be
 * loaded, or which id is written, looks in the new caches alone.
 */
void weft_names_suspect(struct weft_names *names)
{
    struct weft_caches *before = weft_alloc(1, sizeof(*before));
    pthread_mutex_lock(&names->lock);
    *before = names->now;
    names->now = (struct weft_caches){.arena = weft_arena_new(), .before = before};
    pthread_mutex_unlock(&names->lock);
}

void *weft_cache_find(struct weft_names *names, enum weft_cache cache, int32_t id)
{
    void *value = NULL;
    pthread_mutex_lock(&names->lock);
    for (const struct weft_caches *at = &names->now; at && !value; at = at->before)
        value = weft_map_find(&at->map[cache], &id, sizeof(id));
    pthread_mutex_unlock(&names->lock);
    return value;
}

/* ---- Names ----------------------------------------------------------------------------------- */

static void name_key(struct weft_cache_key *key, int32_t sort, int32_t ns, const char *text)
{
    key->size = 0;
    weft_key_int(key, sort);
    weft_key_int(key, ns);
    weft_key_text(key, text);
}

/* Caches rows with the columns id, sort, namespace, text, retired. */
static void cache_names(struct weft_names *names, const struct weft_rows *rows)
{
    pthread_mutex_lock(&names->lock);
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_name_find_out *row = &weft_out_name_find(rows)[i];
        int32_t id = row->id;
        struct weft_name *name =
            weft_map_find(&names->now.map[WEFT_CACHE_NAME_ID], &id, sizeof(id));
        if (!name) {
            name = weft_new(names->now.arena, struct weft_name);
            name->id = id;
            name->sort = row->sort;
            name->ns = row->namespace;
            name->text = weft_arena_strdup(names->now.arena, row->text);
            weft_map_put(&names->now.map[WEFT_CACHE_NAME_ID], &id, sizeof(id), name);
        }
        name->retired = row->retired;
        struct weft_cache_key key;
        name_key(&key, name->sort, name->ns, name->text);
        const struct weft_name *known =
            weft_map_find(&names->now.map[WEFT_CACHE_NAME], key.byte, key.size);
        if (!known || known->id < id) /* of two rows with this text the first was removed */
            weft_map_put(&names->now.map[WEFT_CACHE_NAME], key.byte, key.size, name);
    }
    pthread_mutex_unlock(&names->lock);
}

/* Fills in the ids that are cached; returns how many are not. The id of a retired row counts as not
 * cached, unless `retired` allows it. */
static size_t names_from_cache(struct weft_names *names, bool retired, struct weft_name_want *want,
                               size_t count)
{
    size_t missing = 0;
    for (size_t i = 0; i < count; i++) {
        struct weft_cache_key key;
        name_key(&key, want[i].sort, want[i].ns, want[i].text);
        pthread_mutex_lock(&names->lock);
        const struct weft_name *name =
            weft_map_find(&names->now.map[WEFT_CACHE_NAME], key.byte, key.size);
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

/* Adds the names that are missing; names in `found` are wanted, so none of them stays retired. */
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
    /* A reader looks again as well: the row may have been removed and added under another id. The
     * reader then goes on with a retired row, because another row may refer to it again. */
    weft_names_check_age(&engine->names);
    if (names_from_cache(&engine->names, false, want, count) == 0)
        return WEFT_OK;
    struct weft_arena *arena = weft_arena_new();
    struct weft_rows found;
    enum weft_rc rc = find_names(engine, arena, want, count, &found, err);
    size_t missing = names_from_cache(&engine->names, !add, want, count);
    for (int try = 0; try < WEFT_INTERN_TRIES && add && missing > 0 && !rc; try++) {
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

/* ---- Retired rows: see unused.h -------------------------------------------------------------- */

void weft_names_retired_seen(struct weft_names *names, weft_usec began_us)
{
    pthread_mutex_lock(&names->lock);
    if (names->retired_seen_us < began_us)
        names->retired_seen_us = began_us;
    pthread_mutex_unlock(&names->lock);
}

void weft_names_check_age(struct weft_names *names)
{
    weft_usec now_us = weft_boot_us();
    pthread_mutex_lock(&names->lock);
    if (now_us - names->retired_seen_us > WEFT_RETIRED_SEEN_US) {
        weft_map_done(&names->now.map[WEFT_CACHE_NAME]);
        weft_map_done(&names->now.map[WEFT_CACHE_QUEUE]);
        names->now.map[WEFT_CACHE_NAME] = names->now.map[WEFT_CACHE_QUEUE] = (struct weft_map){0};
        names->retired_seen_us = now_us;
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
        if (weft_map_find(&names->now.map[WEFT_CACHE_POLICY_ID], &id, sizeof(id)))
            continue;
        const char *text = weft_arena_strdup(names->now.arena, row->text);
        struct weft_policy_entry *entry = weft_new(names->now.arena, struct weft_policy_entry);
        entry->id = id;
        struct weft_json value;
        struct weft_policy policy;
        rc = weft_json_check(text, strlen(text), &value, err);
        if (!rc)
            rc = weft_policy_parse(&value, names->now.arena, &policy, err);
        if (!rc)
            rc = weft_policy_resolve(&policy, names->now.arena, &entry->rules, err);
        if (!rc)
            entry->shown = weft_policy_of(&entry->rules);
        if (rc) {
            rc = weft_fail(err, WEFT_CORRUPT, "policy %d in the store cannot be read", id);
            break;
        }
        weft_map_put(&names->now.map[WEFT_CACHE_POLICY], text, strlen(text), entry);
        weft_map_put(&names->now.map[WEFT_CACHE_POLICY_ID], &id, sizeof(id), entry);
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
            text[i] ? weft_map_find(&names->now.map[WEFT_CACHE_POLICY], text[i], strlen(text[i]))
                    : NULL;
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

/* Keeps the ids that are not in the map, each once and in their order, and returns how many. */
static size_t only_unknown(struct weft_names *names, enum weft_cache cache,
                           const struct weft_id_list *list, int32_t *ret_id)
{
    size_t unknown = 0, count = 0;
    pthread_mutex_lock(&names->lock);
    const struct weft_map *map = &names->now.map[cache];
    for (size_t i = 0; i < list->count; i++)
        if (list->id[i] != 0 && !weft_map_find(map, &list->id[i], sizeof(list->id[i])))
            ret_id[unknown++] = list->id[i];
    pthread_mutex_unlock(&names->lock);
    qsort(ret_id, unknown, sizeof(*ret_id), weft_i32_order);
    for (size_t i = 0; i < unknown; i++)
        if (i == 0 || ret_id[i] != ret_id[i - 1])
            ret_id[count++] = ret_id[i];
    return count;
}

enum weft_rc weft_load_unknown(struct weft_engine *engine, enum weft_stmt stmt,
                               enum weft_cache cache, const struct weft_id_list *list,
                               struct weft_load *ret_load, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    int32_t *unknown = weft_new_array(arena, int32_t, list->count + 1);
    size_t count = only_unknown(&engine->names, cache, list, unknown);
    *ret_load = (struct weft_load){.arena = arena};
    if (count == 0)
        return WEFT_OK;
    struct weft_call call;
    weft_call_init(&call, arena, stmt, count);
    for (size_t i = 0; i < count; i++)
        weft_in_name_load(&call)->row[i].id = unknown[i];
    struct weft_rows *rows = &ret_load->rows;
    enum weft_rc rc = list->tx ? weft_tx_run(list->tx, &call, 1, rows, err)
                               : weft_tx_once(engine, WEFT_TX_READ, &call, arena, rows, err);
    if (!rc && rows->count != count)
        rc = weft_fail(err, WEFT_CORRUPT, "%zu of %zu interned rows are missing (%s)",
                       count - rows->count, count, weft_stmts[stmt].name);
    return rc;
}

enum weft_rc weft_load_names(struct weft_engine *engine, const struct weft_id_list *list,
                             struct weft_err *err)
{
    struct weft_load load;
    enum weft_rc rc =
        weft_load_unknown(engine, WEFT_STMT_NAME_LOAD, WEFT_CACHE_NAME_ID, list, &load, err);
    if (!rc)
        cache_names(&engine->names, &load.rows);
    weft_arena_free(load.arena);
    return rc;
}

enum weft_rc weft_load_policies(struct weft_engine *engine, const struct weft_id_list *list,
                                struct weft_err *err)
{
    struct weft_load load;
    enum weft_rc rc =
        weft_load_unknown(engine, WEFT_STMT_POLICY_LOAD, WEFT_CACHE_POLICY_ID, list, &load, err);
    if (!rc)
        rc = cache_policies(&engine->names, &load.rows, err);
    weft_arena_free(load.arena);
    return rc;
}

const struct weft_policy_entry *weft_find_policy(struct weft_engine *engine, int32_t id)
{
    return weft_cache_find(&engine->names, WEFT_CACHE_POLICY_ID, id);
}

const struct weft_rules *weft_find_rules(struct weft_engine *engine, int32_t id)
{
    const struct weft_policy_entry *entry = weft_find_policy(engine, id);
    return entry ? &entry->rules : NULL;
}

const char *weft_find_name(struct weft_engine *engine, int32_t id)
{
    const struct weft_name *name =
        id ? weft_cache_find(&engine->names, WEFT_CACHE_NAME_ID, id) : NULL;
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

enum weft_rc weft_find_in_namespace(struct weft_engine *engine, const char *ns, const char *field,
                                    struct weft_name_want *want, struct weft_err *err)
{
    enum weft_rc rc = weft_find_namespace(engine, ns, &want->ns, err);
    if (!rc)
        rc = weft_name_check(want->text, field, err);
    return rc || want->ns == 0 ? rc : weft_intern_names(engine, false, want, 1, err);
}
