/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_GROUP_FAIR_H
#define WEFT_NET_GROUP_FAIR_H

/*
 * A queue of requests in which namespaces take turns: one FIFO for each namespace that has requests
 * waiting ("line"), and a ring of these. However many requests one namespace sends, a request of
 * another is behind at most one of them. In a line the tokens take turns in the same way, each with
 * its walks (request->walks) apart from its other requests. Pure: no lock, no clock; group.c holds
 * its lock around it.
 */

#include "net/request.h"

struct weft_fair_line; /* opaque */

enum {
    WEFT_FAIR_BUCKETS = 64,
    /*
     * A line with at most so much is small. What is beyond takes the statements longer than the
     * commit: see plan.c, which serves small lines apart from the others.
     */
    WEFT_SMALL_ITEMS = 64,
    WEFT_SMALL_BYTES = 256 * 1024,
};

/* Sums over the requests of some lines. */
struct weft_fair_sum {
    size_t count, items, bytes;
};

/* A zeroed one is empty and fine. */
struct weft_fair {
    struct weft_fair_line *next; /* of the ring: whose turn it is; NULL: empty */
    struct weft_fair_line *bucket[WEFT_FAIR_BUCKETS];
    struct weft_fair_line *spare; /* one that is not in use; or NULL */
    size_t lines;
    struct weft_fair_sum all, small; /* small: in small lines */
};

void weft_fair_done(struct weft_fair *fair); /* it is empty */

/* Puts a request behind the others of its namespace. request->weight: how many items it has. */
void weft_fair_put(struct weft_fair *fair, struct weft_request *request);
/* The requests of a namespace that wait. */
struct weft_fair_sum weft_fair_of(const struct weft_fair *fair, const char *ns);

/* How many requests wait that are of the namespace and token of this one, and walks if it is one.
 */
size_t weft_fair_like(const struct weft_fair *fair, const struct weft_request *request);

/* Whether a request, and others of its namespace and token, may be taken now. */
typedef bool weft_fair_may(const void *context, const struct weft_request *request);
/* True when some request may be taken; may NULL: all may. */
bool weft_fair_any(const struct weft_fair *fair, weft_fair_may *may, const void *context);

enum weft_fair_lines { WEFT_FAIR_ALL, WEFT_FAIR_SMALL, WEFT_FAIR_LARGE };
/* What may be taken together. */
struct weft_fair_limit {
    enum weft_fair_lines lines;
    size_t count, items, bytes;
    size_t share;       /* items of one namespace beside its first request, when several wait */
    weft_fair_may *may; /* or NULL; requests that may not are passed over */
    const void *context;
};
/*
 * Takes requests in turns, one of each namespace, as many as fit; the first one in any case. A line
 * of which nothing fitted is the first one of the next call. Says how many it took, into `to`
 * (room for limit->count), and what they are in all.
 */
size_t weft_fair_take(struct weft_fair *fair, const struct weft_fair_limit *limit,
                      struct weft_request **to, struct weft_fair_sum *ret_sum);

#endif
