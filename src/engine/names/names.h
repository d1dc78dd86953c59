/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_NAMES_NAMES_H
#define WEFT_ENGINE_NAMES_NAMES_H

/* Names, queues and policies as integers, cached. */

#include "base/map.h"
#include "core/capset.h"
#include "core/policy.h"
#include "core/stored.h"
#include "engine/engine.h"

#include <pthread.h>

struct weft_resolved;
struct weft_tx;

struct weft_name {
    int32_t id, sort, ns;
    const char *text;
    bool retired; /* names.lock; the name is looked up again before its id is written: unused.h */
};

/* A queue with all its names at hand. Lives as long as the engine. */
struct weft_queue {
    int32_t id, ns, lane, needs, tenant;
    int32_t family; /* the first queue met here that differs in the tenant alone: see may_serve() */
    struct weft_capset_need need; /* of capset_text */
    const char *ns_name, *lane_name, *kind, *tenant_name;
    const char *needs_text;    /* budgets and capabilities: core/capset.h */
    const char *capset_text;   /* the part of it about capabilities */
    const char *target;        /* of a kind that weft carries out itself; or NULL */
    bool carried;              /* its kind is one: see core/carried.h */
    const char *const *budget; /* the budgets that its executions name, */
    size_t budgets;            /* so many */
};

struct weft_policy_entry {
    int32_t id;
    struct weft_rules rules;
    struct weft_policy shown; /* the same, as readers get it */
};

/* What is found by which key. */
enum weft_cache {
    WEFT_CACHE_NAME,      /* (sort, namespace, text) -> weft_name */
    WEFT_CACHE_NAME_ID,   /* id -> weft_name */
    WEFT_CACHE_QUEUE,     /* the five names -> weft_queue */
    WEFT_CACHE_QUEUE_ID,  /* id -> weft_queue */
    WEFT_CACHE_FAMILY,    /* all but the tenant -> the first weft_queue */
    WEFT_CACHE_POLICY,    /* text -> weft_policy_entry */
    WEFT_CACHE_POLICY_ID, /* id -> weft_policy_entry */
    WEFT_CACHES
};

/*
 * Everything here was committed before it was cached, and is never freed. When the store changes
 * its lineage, the caches begin anew: see weft_names_suspect(). Ids of rows that are retired in the
 * store are not written from here: see unused.h.
 */
struct weft_caches {
    struct weft_arena *arena;
    struct weft_map map[WEFT_CACHES];
    struct weft_caches *before; /* owned; of the lineage before, or NULL */
};

struct weft_names {
    pthread_mutex_t lock;
    struct weft_caches now;
    weft_usec retired_seen_us; /* boot time; rows retired until then are marked here */
};

struct weft_name_want {
    enum weft_name_sort sort;
    int32_t ns; /* 0 for namespaces and routes */
    const char *text;
    int32_t id; /* the answer; 0: there is none */
};

/*
 * Ids of queues, policies or names to load; afterwards the find functions have them. A caller
 * inside a transaction must give `tx`: to ask for a second connection while holding one could wait
 * for ever.
 */
struct weft_id_list {
    int32_t *id;
    size_t count;
    struct weft_tx *tx; /* NULL: none is open in this thread */
};
void weft_names_init(struct weft_names *names);
void weft_names_done(struct weft_names *names);

/* The store has another lineage: cached rows may not exist there. */
void weft_names_suspect(struct weft_names *names);

/* A poll found that this row is retired in the store. */
void weft_names_retired(struct weft_names *names, enum weft_interned what, int32_t id);

/* A poll that began at `began_us` (boot time) has reported all retired rows. */
void weft_names_retired_seen(struct weft_names *names, weft_usec began_us);

/* Finds names; with `add`, missing names are added in a transaction of its own. */
WEFT_MUST_CHECK enum weft_rc weft_intern_names(struct weft_engine *engine, bool add,
                                               struct weft_name_want *want, size_t count,
                                               struct weft_err *err);

/*
 * The queue of each resolved spec; items with skip[i] are left out. ret_refused NULL: the limit
 * does not apply; otherwise whether a queue was refused because its namespace has as many as it
 * may: the queue of such an item is NULL.
 */
WEFT_MUST_CHECK enum weft_rc weft_intern_queues(struct weft_engine *engine,
                                                const struct weft_resolved *spec, const bool *skip,
                                                size_t count, const struct weft_queue **ret_queue,
                                                bool *ret_refused, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_intern_policies(struct weft_engine *engine,
                                                  const struct weft_resolved *spec,
                                                  const bool *skip, size_t count,
                                                  int32_t *ret_policy, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc
weft_load_queues(struct weft_engine *engine, const struct weft_id_list *list, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_load_policies(struct weft_engine *engine,
                                                const struct weft_id_list *list,
                                                struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_load_names(struct weft_engine *engine,
                                             const struct weft_id_list *list, struct weft_err *err);
const struct weft_queue *weft_find_queue(struct weft_engine *engine, int32_t id);
const struct weft_policy_entry *weft_find_policy(struct weft_engine *engine, int32_t id);
const struct weft_rules *weft_find_rules(struct weft_engine *engine, int32_t id);
const char *weft_find_name(struct weft_engine *engine, int32_t id); /* NULL for 0 */

/* The id of a namespace; 0 when there is none of that name. */
WEFT_MUST_CHECK enum weft_rc weft_find_namespace(struct weft_engine *engine, const char *ns,
                                                 int32_t *ret_id, struct weft_err *err);

/* The id of a name in a namespace, and of the namespace: sets want->ns and want->id, 0 for none.
 * `field` names the text in errors. */
WEFT_MUST_CHECK enum weft_rc weft_find_in_namespace(struct weft_engine *engine, const char *ns,
                                                    const char *field, struct weft_name_want *want,
                                                    struct weft_err *err);

#endif
