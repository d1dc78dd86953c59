/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_NAMES_CACHE_H
#define WEFT_ENGINE_NAMES_CACHE_H

/* The caches of interned rows, for names.c and queues.c. */

#include "base/limits.h"
#include "engine/engine_state.h"

#include <assert.h>
#include <string.h>

enum {
    WEFT_INTERN_TRIES = 3, /* a row that was removed after a look is added once more, and so on */
};

/* A key: fields one after the other, texts with their NUL. */
struct weft_cache_key {
    char byte[8 + WEFT_CAPABILITIES_BYTES + 4 * (size_t)WEFT_NAME_MAX + 16];
    size_t size;
};

static inline void weft_key_bytes(struct weft_cache_key *key, const void *field, size_t size)
{
    assert(key->size + size <= sizeof(key->byte)); /* texts were checked against their limits */
    memcpy(key->byte + key->size, field, size);
    key->size += size;
}

static inline void weft_key_int(struct weft_cache_key *key, int32_t value)
{
    weft_key_bytes(key, &value, sizeof(value));
}

static inline void weft_key_text(struct weft_cache_key *key, const char *text)
{
    weft_key_bytes(key, text, strlen(text) + 1);
}

/* The cached row with this id, also of an earlier lineage; NULL: none. Takes names.lock. */
void *weft_cache_find(struct weft_names *names, enum weft_cache cache, int32_t id);

/* A load: one of name_load, queue_load, policy_load, whose only parameter is the id. */
struct weft_load {
    struct weft_arena *arena; /* the caller frees it */
    struct weft_rows rows;    /* of the ids that `cache` does not have */
};
WEFT_MUST_CHECK enum weft_rc weft_load_unknown(struct weft_engine *engine, enum weft_stmt stmt,
                                               enum weft_cache cache,
                                               const struct weft_id_list *list,
                                               struct weft_load *ret_load, struct weft_err *err);

/* Call before an id from a cache is written: empties the caches by text if the last poll that
 * reported retired rows is long ago. */
void weft_names_check_age(struct weft_names *names);

/* These rows are wanted: they are not retired any more. */
WEFT_MUST_CHECK enum weft_rc weft_names_keep(struct weft_engine *engine, enum weft_interned what,
                                             const struct weft_id_list *list, struct weft_err *err);

#endif
