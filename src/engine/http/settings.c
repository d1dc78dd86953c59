/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Changes of endpoints lock the row that counts them first, so they come one after the other, and
 * an endpoint gets the count as its version.
 */

#include "engine/http/settings.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "core/cursor.h"
#include "core/endpoint.h"
#include "core/spec.h"
#include "engine/engine_state.h"
#include "engine/http/endpoints.h"
#include "engine/job/list.h"

#include <string.h>

enum {
    ENDPOINTS_MAX = 1000, /* of a namespace: each process keeps all of them in memory */
    HEADERS_TEXT_MAX = 6 * WEFT_HTTP_HEADERS_BYTES + 1024, /* as JSON, with everything escaped */
};

/* Bits of weft.endpoint.flags: 0031. */
enum { PRIVATE = 1, REDIRECTS = 2, IDEMPOTENT = 4 };

/* ---- Rows ------------------------------------------------------------------------------------ */

/* As JSON, in the arena. */
static const char *write_headers(const struct weft_endpoint *endpoint, struct weft_arena *arena)
{
    struct weft_buf buf;
    struct weft_json_writer out;
    weft_buf_init(&buf, HEADERS_TEXT_MAX);
    weft_json_writer_init(&out, &buf);
    weft_json_begin_object(&out);
    for (size_t i = 0; i < endpoint->header_count; i++)
        weft_json_add_text(&out, endpoint->headers[i].key, endpoint->headers[i].value);
    weft_json_end_object(&out);
    const char *text = weft_arena_strdup(arena, buf.data);
    weft_buf_done(&buf);
    return text;
}

/* The headers of a row; what is not JSON of ours is passed over. */
static const struct weft_tag *read_headers(const char *text, struct weft_arena *arena,
                                           size_t *ret_count)
{
    struct weft_json object;
    struct weft_json_iter member;
    struct weft_tag *header = weft_new_array(arena, struct weft_tag, WEFT_HTTP_HEADERS_MAX);
    *ret_count = 0;
    if (weft_json_check(text, strlen(text), &object, NULL) || object.kind != WEFT_JSON_OBJECT)
        return NULL;
    weft_json_iter_init(&member, &object);
    while (*ret_count < WEFT_HTTP_HEADERS_MAX && weft_json_next(&member)) {
        struct weft_tag *one = &header[*ret_count];
        *ret_count += !weft_json_string(&member.key, arena, &one->key, NULL) &&
                      !weft_json_string(&member.value, arena, &one->value, NULL);
    }
    return header;
}

struct weft_endpoint weft_endpoint_of_row(const struct weft_endpoint_out *row,
                                          struct weft_arena *arena)
{
    struct weft_endpoint endpoint = {
        .name = weft_arena_strdup(arena, row->name),
        .url = weft_arena_strdup(arena, row->url),
        .secret = weft_arena_strdup(arena, row->secret),
        .auth = weft_arena_strdup(arena, row->auth),
        .private_addresses = row->flags & PRIVATE,
        .redirects = row->flags & REDIRECTS,
        .idempotent = row->flags & IDEMPOTENT,
        .idempotency_header = weft_arena_strdup(arena, row->idempotency_header),
        .retry = weft_arena_strdup(arena, row->retry),
        .retry_after_max_ms = row->retry_after_max_ms,
        .max_in_flight = row->max_in_flight,
        .connect_ms = row->connect_ms,
        .first_byte_ms = row->first_byte_ms,
        .idle_ms = row->idle_ms,
        .total_ms = row->total_ms,
        .response_max = row->response_max,
        .version = (uint64_t)row->version,
    };
    endpoint.headers = read_headers(row->headers, arena, &endpoint.header_count);
    return endpoint;
}

static enum weft_rc no_endpoint(const char *name, struct weft_err *err)
{
    return weft_hint(
        err, weft_fail_field(err, WEFT_NOT_FOUND, "endpoint", "there is no endpoint '%s'", name),
        "`weft endpoint` lists them");
}

/* ---- Changing -------------------------------------------------------------------------------- */

/* A change of one endpoint: what it is to be, or how it was. */
struct changing {
    int32_t ns;
    const char *name;
    const struct weft_endpoint *wanted; /* of a put */
    struct weft_arena *arena;           /* of a removal, with the next */
    struct weft_endpoint *shown;
};

/* Locks the row that counts the changes; no other change is under way from then on. */
static enum weft_rc begin_change(struct weft_tx *tx, int64_t *ret_version, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_endpoints_changed(&call, tx->arena);
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (!rc)
        *ret_version = weft_out_endpoints_changed(&rows)->version;
    return rc;
}

static enum weft_rc check_cap(struct weft_tx *tx, const struct changing *change,
                              struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_endpoints_counted(&call, tx->arena) =
        (struct weft_endpoints_counted_in){.namespace = change->ns, .name = change->name};
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (!rc && weft_out_endpoints_counted(&rows)->endpoints >= ENDPOINTS_MAX)
        rc = weft_fail_field(err, WEFT_LIMIT_EXCEEDED, "endpoint",
                             "the namespace has %d endpoints, which is the most", ENDPOINTS_MAX);
    return rc;
}

static enum weft_rc put_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    const struct changing *change = context;
    const struct weft_endpoint *wanted = change->wanted;
    struct weft_call call;
    int64_t version = 0;
    enum weft_rc rc = begin_change(tx, &version, err);
    if (!rc)
        rc = check_cap(tx, change, err);
    if (rc)
        return rc;
    *weft_call_endpoint_put(&call, tx->arena) = (struct weft_endpoint_put_in){
        .namespace = change->ns,
        .name = wanted->name,
        .url = wanted->url,
        .secret = wanted->secret,
        .auth = wanted->auth,
        .headers = write_headers(wanted, tx->arena),
        .retry = wanted->retry,
        .idempotency_header = wanted->idempotency_header,
        .flags = (wanted->private_addresses ? PRIVATE : 0) | (wanted->redirects ? REDIRECTS : 0) |
                 (wanted->idempotent ? IDEMPOTENT : 0),
        .retry_after_max_ms = wanted->retry_after_max_ms,
        .max_in_flight = wanted->max_in_flight,
        .connect_ms = wanted->connect_ms,
        .first_byte_ms = wanted->first_byte_ms,
        .idle_ms = wanted->idle_ms,
        .total_ms = wanted->total_ms,
        .response_max = wanted->response_max,
        .version = version};
    return weft_tx_last(tx, &call, 1, NULL, err);
}

static enum weft_rc remove_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct changing *change = context;
    struct weft_call call;
    struct weft_rows rows = {0};
    int64_t version = 0;
    enum weft_rc rc = begin_change(tx, &version, err);
    if (rc)
        return rc;
    *weft_call_endpoint_remove(&call, tx->arena) =
        (struct weft_endpoint_remove_in){.namespace = change->ns, .name = change->name};
    rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (!rc && rows.count == 0)
        rc = no_endpoint(change->name, err);
    if (!rc)
        *change->shown =
            weft_endpoint_of_row(&weft_out_endpoint_remove(&rows)->endpoint, change->arena);
    return rc;
}

/* Other processes see the change with their next poll; this one reads it at once, or then. */
static enum weft_rc run_change(struct weft_engine *engine, weft_tx_body *body,
                               struct changing *change, struct weft_err *err)
{
    struct weft_err unread;
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, body, change, err);
    weft_arena_free(tx.arena);
    if (!rc)
        (void)!weft_endpoints_read(engine, &unread);
    return rc;
}

enum weft_rc weft_engine_endpoint_put(struct weft_engine *engine, const char *ns,
                                      const struct weft_endpoint *endpoint, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_endpoint wanted;
    struct weft_name_want space = {.sort = WEFT_NAME_NAMESPACE, .text = ns};
    enum weft_rc rc = weft_endpoint_resolve(endpoint, arena, &wanted, NULL, err);
    if (!rc)
        rc = weft_name_check(ns, "namespace", err);
    if (!rc)
        rc = weft_intern_names(engine, true, &space, 1, err);
    struct changing change = {.ns = space.id, .name = endpoint->name, .wanted = &wanted};
    if (!rc)
        rc = run_change(engine, put_body, &change, err);
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_engine_endpoint_remove(struct weft_engine *engine, const char *ns,
                                         const char *name, struct weft_arena *arena,
                                         struct weft_endpoint *ret_endpoint, struct weft_err *err)
{
    struct changing change = {.name = name, .arena = arena, .shown = ret_endpoint};
    enum weft_rc rc = weft_name_check(name, "endpoint", err);
    if (!rc)
        rc = weft_find_namespace(engine, ns, &change.ns, err);
    return rc ? rc : run_change(engine, remove_body, &change, err);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static enum weft_rc read_list(struct weft_engine *engine, const struct weft_endpoint_list_in *in,
                              struct weft_arena *arena, struct weft_endpoint **ret_endpoint,
                              size_t *ret_count, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_endpoint_list(&call, arena) = *in;
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    struct weft_endpoint *endpoint = weft_new_array(arena, struct weft_endpoint, rows.count + 1);
    for (size_t i = 0; i < rows.count && !rc; i++)
        endpoint[i] = weft_endpoint_of_row(&weft_out_endpoint_list(&rows)[i].endpoint, arena);
    *ret_endpoint = endpoint;
    *ret_count = rows.count;
    return rc;
}

enum weft_rc weft_engine_endpoint(struct weft_engine *engine, const char *ns, const char *name,
                                  struct weft_arena *arena, struct weft_endpoint *ret_endpoint,
                                  struct weft_err *err)
{
    struct weft_endpoint *endpoint = NULL;
    size_t count = 0;
    int32_t space = 0;
    enum weft_rc rc = weft_name_check(name, "endpoint", err);
    if (!rc)
        rc = weft_find_namespace(engine, ns, &space, err);
    const struct weft_endpoint_list_in in = {
        .namespace = space, .own = name, .after = "", .most = 1};
    if (!rc)
        rc = read_list(engine, &in, arena, &endpoint, &count, err);
    if (!rc && count == 0)
        rc = no_endpoint(name, err);
    if (!rc)
        *ret_endpoint = endpoint[0];
    return rc;
}

enum weft_rc weft_engine_endpoints(struct weft_engine *engine,
                                   const struct weft_endpoint_asking *asking,
                                   struct weft_arena *arena, struct weft_endpoints *ret_endpoints,
                                   struct weft_err *err)
{
    const struct weft_cursor_list list = {.name = "endpoints", .ns = asking->ns};
    char after[WEFT_CURSOR_PLACE_MAX + 1] = "";
    size_t limit = asking->limit ? asking->limit : WEFT_PAGE_DEFAULT, size, count = 0;
    struct weft_endpoint *endpoint = NULL;
    int32_t space = 0;
    enum weft_rc rc = weft_page_limit(asking->limit, err);
    if (!rc && asking->after)
        rc = weft_cursor_read(&list, asking->after, after, &size, err);
    if (!rc)
        rc = weft_find_namespace(engine, asking->ns, &space, err);
    const struct weft_endpoint_list_in in = {
        .namespace = space, .after = after, .most = (int64_t)limit + 1};
    if (!rc)
        rc = read_list(engine, &in, arena, &endpoint, &count, err);
    if (rc)
        return rc;
    *ret_endpoints =
        (struct weft_endpoints){.item = endpoint, .count = count < limit ? count : limit};
    if (count > limit)
        ret_endpoints->next = weft_cursor_write(&list, endpoint[limit - 1].name,
                                                strlen(endpoint[limit - 1].name), arena);
    return WEFT_OK;
}
