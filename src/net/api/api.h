/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_API_H
#define WEFT_NET_API_API_H

/* What the API areas (api_*.c) share: their caches for a server, and parts of their answers. */

#include "net/request.h"

#include <pthread.h>

/* The part of /metrics about the process, as it was last written: see add_figures(). */
struct weft_figures {
    pthread_mutex_t lock; /* over all below */
    struct weft_buf text;
    weft_usec written_us; /* boot time */
};

struct weft_api {
    struct weft_counts_cache *counts;
    struct weft_figures figures;
    pthread_mutex_t lock; /* over the document while it is made */
    struct weft_buf document;
};

/* The caller ends it with weft_api_free(). */
struct weft_api *weft_api_new(void);
void weft_api_free(struct weft_api *api); /* NULL is fine */
/* The OpenAPI document, made when it is first asked for. */
const struct weft_buf *weft_api_document(struct weft_api *api);

/* limit and after of a list; after is NULL or not empty. */
struct weft_paging {
    uint32_t limit;
    const char *after;
};
WEFT_MUST_CHECK enum weft_rc weft_api_paging(const struct weft_request *request,
                                             struct weft_paging *ret_paging, struct weft_err *err);

/* Until when (boot time) the wait_ms of the query lasts; 0: do not wait. */
WEFT_MUST_CHECK enum weft_rc weft_api_wait_until(const struct weft_request *request,
                                                 weft_usec *ret_until_us, struct weft_err *err);

/* {"items":[...],"next":...}: items as the operation gives them; no "next" in a list of all items
 */
struct weft_api_page {
    const void *item;
    size_t stride, count;
    const char *next;       /* NULL: this is the last page */
    weft_usec looked_to_us; /* of a short page with a next one; otherwise 0 */
};
#define WEFT_API_PAGE(item_, count_, next_)                                                        \
    (struct weft_api_page)                                                                         \
    {                                                                                              \
        .item = (item_), .stride = sizeof(*(item_)), .count = (count_), .next = (next_)            \
    }
/* Returns WEFT_OK. */
enum weft_rc weft_api_reply_page(struct weft_request *request, const struct weft_api_page *page);
/* Answers with the message that the operation gives, unless rc is a failure; returns rc. */
enum weft_rc weft_api_reply(struct weft_request *request, enum weft_rc rc, const void *message);
/* The same with 201 and where it is now; 200 for a duplicate. */
void weft_api_reply_made(struct weft_request *request, const struct weft_id *id, bool duplicate,
                         const void *message);
/* Adds "error":{...}; the detail may be NULL. */
void weft_api_put_error(const struct weft_err *error, const struct weft_wire_detail *detail,
                        struct weft_json_writer *out);
/* WEFT_FORBIDDEN for a token that is bound to a namespace: what is asked for is of the store. */
WEFT_MUST_CHECK enum weft_rc weft_api_check_unbound(const struct weft_request *request,
                                                    struct weft_err *err);
/* The body as the message that the operation takes. */
WEFT_MUST_CHECK enum weft_rc weft_api_read_message(struct weft_request *request, void *ret_message,
                                                   struct weft_err *err);
/*
 * The same for a message whose first member is its name, which the path has too, as the parameter
 * `what`: the answer of GET may be sent back as it is.
 */
WEFT_MUST_CHECK enum weft_rc weft_api_read_named(struct weft_request *request, const char *what,
                                                 void *ret_message, struct weft_err *err);
/* A body that may be missing or {}, and holds nothing. */
WEFT_MUST_CHECK enum weft_rc weft_api_read_nothing(struct weft_request *request,
                                                   struct weft_err *err);

#endif
