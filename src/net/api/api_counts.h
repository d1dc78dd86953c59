/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_API_COUNTS_H
#define WEFT_NET_API_API_COUNTS_H

/* Executions by lane and state: the cache behind the handlers. */

#include "base/arena.h"
#include "base/buf.h"

struct weft_engine;
struct weft_server;

/*
 * Counts cost the store work that grows with what is in it, so they are computed at most once a
 * second, for all namespaces and lanes at once, however often clients ask.
 */
struct weft_counts_cache; /* opaque */
struct weft_counts_cache *weft_counts_cache_new(void);
void weft_counts_cache_free(struct weft_counts_cache *cache);
enum weft_counts_text { WEFT_COUNTS_JSON, WEFT_COUNTS_METRICS };
/* Whose counts, in which words. lane NULL: all lanes. */
struct weft_counts_of {
    const char *ns;
    const char *lane;
    enum weft_counts_text text;
};
/* Appends the answer of GET /v1/counts, or the executions by state for /metrics. */
WEFT_MUST_CHECK enum weft_rc weft_counts_cache_get(struct weft_counts_cache *cache,
                                                   struct weft_engine *engine,
                                                   const struct weft_counts_of *of,
                                                   struct weft_buf *out, struct weft_err *err);
/* The lanes of a namespace that have living executions, or some that ended in the last hour: the
 * first `most` lanes behind `after`. A page costs what it holds, however many lanes there are. */
struct weft_lanes_of {
    const char *ns;
    const char *after; /* "": from the first */
    size_t most;
};
struct weft_texts {
    const char *const *item; /* in their order, in the arena */
    size_t count;
};
WEFT_MUST_CHECK enum weft_rc
weft_counts_cache_lanes(struct weft_counts_cache *cache, struct weft_engine *engine,
                        const struct weft_lanes_of *of, struct weft_arena *arena,
                        struct weft_texts *ret_lanes, struct weft_err *err);
/*
 * The texts from memory, for the loop thread: no query, no wait. False, and nothing is appended,
 * when what is known is older than a few seconds, or nothing is. `old` appends it all the same.
 */
WEFT_MUST_CHECK bool weft_counts_cache_glance(struct weft_counts_cache *cache,
                                              const struct weft_counts_of *of, bool old,
                                              struct weft_buf *out);
/*
 * About once a second: has the counts computed again while metrics are being asked for, on an
 * engine thread, for weft_counts_cache_glance().
 */
void weft_counts_keep(struct weft_server *server);

#endif
