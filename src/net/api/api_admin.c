/* SPDX-License-Identifier: Apache-2.0 */

/* For operators: lanes, workers, tokens, the servers that share the store and their scanners. */

#include "net/api/handlers.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "core/cursor.h"
#include "core/spec.h"
#include "engine/admin/lanes.h"
#include "engine/admin/replicas.h"
#include "engine/admin/tokens.h"
#include "engine/admin/workers.h"
#include "engine/engine.h"
#include "engine/scan/pass.h"
#include "net/api/api.h"
#include "net/api/api_counts.h"
#include "net/auth.h"
#include "net/server.h"
#include "net/upkeep/roster.h"
#include "net/upkeep/supervisor.h"
#include "weft/admin.h"
#include "wire/wire.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- Lanes ----------------------------------------------------------------------------------- */

static_assert(offsetof(struct weft_lane, name) == 0, "lists find the name there");

enum weft_rc weft_lanes_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_lanes lanes;
    struct weft_texts used;
    struct weft_engine *engine = request->server->engine;
    enum weft_rc rc = weft_counts_cache_lanes(request->server->api->counts, engine, request->ns,
                                              request->arena, &used, err);
    if (!rc)
        rc = weft_engine_lanes_of(engine, request->ns, used.item, used.count, request->arena,
                                  &lanes, err);
    return rc ? rc
              : weft_api_reply_list(request, "lanes", WEFT_API_PAGE(lanes.item, lanes.count), err);
}

enum weft_rc weft_lane_read(struct weft_request *request, struct weft_err *err)
{
    request->state = (void *)(uintptr_t)weft_request_path(request, "lane");
    return weft_name_check(request->state, "lane", err);
}

enum weft_rc weft_lane_put_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_lane *lane = weft_new(request->arena, struct weft_lane);
    enum weft_rc rc = weft_lane_read(request, err);
    if (!rc)
        rc = weft_api_read_message(request, lane, err);
    if (rc)
        return rc;
    const char *name = weft_request_path(request, "lane");
    /* What GET gave may be sent back as it is. */
    if (lane->name && strcmp(lane->name, name) != 0)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "lane",
                               "the path names another lane than the body");
    lane->name = name;
    request->state = lane;
    return WEFT_OK;
}

enum weft_rc weft_lane_put_run(struct weft_request *request, struct weft_err *err)
{
    enum weft_rc rc =
        weft_engine_lane_put(request->server->engine, request->ns, request->state, err);
    if (!rc)
        weft_reply_wire(request, 200, &weft_wire_lane, request->state);
    return rc;
}

/* ---- Workers --------------------------------------------------------------------------------- */

static_assert(offsetof(struct weft_worker_info, name) == 0, "lists find the name there");

enum weft_rc weft_workers_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_workers workers;
    enum weft_rc rc =
        weft_engine_workers(request->server->engine, request->ns, request->arena, &workers, err);
    return rc ? rc
              : weft_api_reply_list(request, "workers", WEFT_API_PAGE(workers.item, workers.count),
                                    err);
}

enum weft_rc weft_goodbye_read(struct weft_request *request, struct weft_err *err)
{
    enum weft_rc rc = weft_name_check(weft_request_path(request, "worker"), "worker", err);
    return rc ? rc : weft_api_read_nothing(request, err);
}

enum weft_rc weft_goodbye_run(struct weft_request *request, struct weft_err *err)
{
    const char *worker = weft_request_path(request, "worker");
    uint64_t released = 0;
    /* First, or upkeep would write the worker again after it left the list. */
    weft_roster_forget(request->server->roster, request->ns, worker);
    enum weft_rc rc =
        weft_engine_goodbye(request->server->engine, request->ns, worker, &released, err);
    if (rc)
        return rc;
    struct weft_json_writer out;
    weft_reply_json(request, 200, &out);
    weft_json_begin_object(&out);
    weft_json_add_i64(&out, "released", (int64_t)released);
    weft_json_end_object(&out);
    return WEFT_OK;
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

/*
 * What the token of the request reaches is decided by the engine; a server that asks for no tokens
 * lets every client in as an admin. Secrets are in answers and nowhere else: log lines have ids and
 * names.
 */
static struct weft_token_caller caller_of(const struct weft_request *request)
{
    return (struct weft_token_caller){
        .rights = {.scopes = request->scopes, .ns = request->ns_fixed ? request->ns : NULL},
        .token = request->token};
}

/* A whole number from 1, as in paths and cursors. */
static bool read_number(const char *text, int32_t *ret_number)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 10 || text[digits] != '\0' || text[0] == '0')
        return false;
    long long number = strtoll(text, NULL, 10);
    *ret_number = (int32_t)number;
    return number <= INT32_MAX;
}

static enum weft_rc path_id(const struct weft_request *request, int32_t *ret_id,
                            struct weft_err *err)
{
    if (read_number(weft_request_path(request, "id"), ret_id))
        return WEFT_OK;
    return weft_fail_field(err, WEFT_INVALID_VALUE, "id",
                           "the id of a token is a whole number, as the list has it");
}

/* Answers, goes by the new tokens from here on, and leaves a line in the log. */
static void settle(struct weft_request *request, int status, const struct weft_token *token,
                   const char *what)
{
    weft_server_tokens_changed(request->server);
    weft_info(what, F_I64("token", token->id), F_STR("name", token->name),
              F_I64("by_token", request->token));
    weft_reply_wire(request, status, request->route->op->gives, token);
}

/* ---- List ------------------------------------------------------------------------------------ */

/* A token that is bound to a namespace sees the tokens of that namespace, another one sees all. */
static struct weft_cursor_list cursors_of(const struct weft_request *request)
{
    return (struct weft_cursor_list){.name = "tokens",
                                     .ns = request->ns_fixed ? request->ns : NULL};
}

/* The id behind which the page begins, 0: at the first. */
static enum weft_rc read_page(const struct weft_request *request, struct weft_paging *ret_paging,
                              int32_t *ret_after, struct weft_err *err)
{
    const struct weft_cursor_list cursors = cursors_of(request);
    char place[WEFT_CURSOR_PLACE_MAX + 1];
    size_t size = 0;
    enum weft_rc rc = weft_api_paging(request, ret_paging, err);
    *ret_after = 0;
    if (!rc && ret_paging->after)
        rc = weft_cursor_read(&cursors, ret_paging->after, place, &size, err);
    if (!rc && ret_paging->after && !read_number(place, ret_after))
        rc = weft_cursor_refuse(err);
    return rc;
}

enum weft_rc weft_tokens_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_paging paging;
    int32_t after;
    return read_page(request, &paging, &after, err);
}

enum weft_rc weft_tokens_run(struct weft_request *request, struct weft_err *err)
{
    const struct weft_token_caller caller = caller_of(request);
    struct weft_paging paging;
    struct weft_tokens tokens;
    int32_t after;
    enum weft_rc rc = read_page(request, &paging, &after, err);
    if (!rc)
        rc = weft_engine_token_list(request->server->engine, &caller, request->arena, &tokens, err);
    if (rc)
        return rc;
    size_t first = 0;
    while (first < tokens.count && tokens.item[first].id <= after)
        first++;
    size_t left = tokens.count - first, count = left < paging.limit ? left : paging.limit;
    struct weft_token *page = weft_new_array(request->arena, struct weft_token, count + 1);
    memcpy(page, tokens.item + first, count * sizeof(*page));
    weft_auth_show_uses(request->server->auth, page, count);
    const char *next = NULL;
    if (count < left) {
        const struct weft_cursor_list cursors = cursors_of(request);
        const char *place = weft_arena_printf(request->arena, "%d", page[count - 1].id);
        next = weft_cursor_write(&cursors, place, strlen(place), request->arena);
    }
    return weft_api_reply_page(request, WEFT_API_PAGE(page, count, .next = next));
}

/* ---- Create, rotate, revoke ------------------------------------------------------------------ */

enum weft_rc weft_token_create_run(struct weft_request *request, struct weft_err *err)
{
    const struct weft_token_caller caller = caller_of(request);
    struct weft_token token;
    enum weft_rc rc = weft_engine_token_create(request->server->engine, &caller, request->state,
                                               request->arena, &token, err);
    if (!rc)
        settle(request, 201, &token, "a token was created");
    return rc;
}

enum weft_rc weft_token_rotate_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_token_rotation *rotation = weft_new(request->arena, struct weft_token_rotation);
    int32_t id = 0;
    enum weft_rc rc = path_id(request, &id, err);
    if (!rc)
        rc = weft_api_read_message(request, rotation, err);
    rotation->id = id;
    request->state = rotation;
    return rc;
}

enum weft_rc weft_token_rotate_run(struct weft_request *request, struct weft_err *err)
{
    const struct weft_token_caller caller = caller_of(request);
    struct weft_token token;
    enum weft_rc rc = weft_engine_token_rotate(request->server->engine, &caller, request->state,
                                               request->arena, &token, err);
    if (!rc)
        settle(request, 200, &token, "a token was rotated");
    return rc;
}

enum weft_rc weft_token_revoke_read(struct weft_request *request, struct weft_err *err)
{
    int32_t *id = weft_new(request->arena, int32_t);
    request->state = id;
    return path_id(request, id, err);
}

enum weft_rc weft_token_revoke_run(struct weft_request *request, struct weft_err *err)
{
    const struct weft_token_caller caller = caller_of(request);
    const int32_t *id = request->state;
    struct weft_token token;
    enum weft_rc rc = weft_engine_token_revoke(request->server->engine, &caller, *id,
                                               request->arena, &token, err);
    if (!rc)
        settle(request, 200, &token, "a token was revoked");
    return rc;
}

/* ---- Servers and scanners -------------------------------------------------------------------- */

/*
 * What this server says of its own scanners comes from its memory; the scanners of other servers
 * are known from the rows that these servers write with each heartbeat.
 */

/* Where a page begins: behind this replica, and of it behind this scanner. */
struct cursor {
    bool given;
    struct weft_id replica;
    const char *scanner; /* NULL: the list is one of replicas */
};

/* "ID" or "ID/NAME": what the last item of the page before was. */
static enum weft_rc read_cursor(const char *after, bool scanners, struct cursor *ret_cursor,
                                struct weft_err *err)
{
    *ret_cursor = (struct cursor){.given = after != NULL};
    if (!after)
        return WEFT_OK;
    const char *slash = strchr(after, '/');
    size_t size = slash ? (size_t)(slash - after) : strlen(after);
    if (!weft_id_parse(after, size, &ret_cursor->replica) || (slash != NULL) != scanners)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "after",
                               "after is not a cursor that a list gave");
    ret_cursor->scanner = slash ? slash + 1 : NULL;
    return WEFT_OK;
}

/* Whether this replica comes after the cursor: the list is sorted by id, descending. */
static bool is_behind(const struct cursor *cursor, const struct weft_id *replica)
{
    return !cursor->given || weft_id_cmp(replica, &cursor->replica) < 0;
}

struct page {
    const struct weft_wire_type *type; /* of an item */
    struct weft_paging paging;
    struct cursor cursor;
    struct weft_json_writer out;
    uint32_t written;
    const char *last; /* the cursor of the last item that was written */
    bool more;
};

static enum weft_rc begin_page(struct weft_request *request, bool scanners, struct page *ret_page,
                               struct weft_err *err)
{
    *ret_page = (struct page){.type = request->route->op->gives};
    enum weft_rc rc = weft_api_paging(request, &ret_page->paging, err);
    if (!rc)
        rc = read_cursor(ret_page->paging.after, scanners, &ret_page->cursor, err);
    if (rc)
        return rc;
    weft_reply_items(request, &ret_page->out);
    return WEFT_OK;
}

/* Writes the item if there is room; `last` is its cursor. */
static void put_item(struct page *page, const void *item, const char *last)
{
    page->more = page->written == page->paging.limit;
    if (page->more)
        return;
    weft_wire_write(page->type, item, &page->out);
    page->last = last;
    page->written++;
}

static void end_page(struct page *page)
{
    weft_json_end_array(&page->out);
    weft_json_add_text(&page->out, "next", page->more ? page->last : NULL);
    weft_json_end_object(&page->out);
}

static const char *id_text(const struct weft_id *id, struct weft_arena *arena)
{
    char text[WEFT_ID_TEXT];
    weft_id_print(id, text);
    return weft_arena_strdup(arena, text);
}

/*
 * Servers and scanners belong to no namespace: a token that is bound to one may not see where they
 * run, nor start passes over the work of all.
 */
static enum weft_rc check_unbound(const struct weft_request *request, struct weft_err *err)
{
    if (!request->ns_fixed)
        return WEFT_OK;
    return weft_hint(err,
                     weft_fail(err, WEFT_FORBIDDEN,
                               "this token is bound to a namespace; servers belong to all of them"),
                     "use a token that was created without --namespace");
}

/* ---- Replicas -------------------------------------------------------------------------------- */

enum weft_rc weft_servers_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_paging paging;
    enum weft_rc rc = check_unbound(request, err);
    return rc ? rc : weft_api_paging(request, &paging, err);
}

enum weft_rc weft_replicas_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_engine *engine = request->server->engine;
    struct weft_replica_rows rows;
    struct page page;
    enum weft_rc rc = weft_engine_replicas(engine, request->arena, &rows, err);
    if (!rc)
        rc = begin_page(request, false, &page, err);
    if (rc)
        return rc;
    weft_usec now_us = weft_clock_now(weft_engine_clock(engine));
    for (size_t i = 0; i < rows.count && !page.more; i++) {
        const struct weft_replica one = weft_replica_shown(&rows.item[i], now_us);
        if (is_behind(&page.cursor, &one.id))
            put_item(&page, &one, id_text(&one.id, request->arena));
    }
    end_page(&page);
    return WEFT_OK;
}

/* ---- Scanners -------------------------------------------------------------------------------- */

static bool is_of(const struct weft_scanner_status *status, const struct weft_id *replica)
{
    return weft_id_cmp(&status->replica, replica) == 0;
}

/* The list as it is shown: what is in the rows, but of this server what it knows itself. */
static struct weft_scanners all_scanners(struct weft_server *server,
                                         const struct weft_replica_rows *rows,
                                         struct weft_arena *arena)
{
    weft_usec now_us = weft_clock_now(weft_engine_clock(server->engine));
    const struct weft_scanners known = weft_replica_scanners(rows, now_us, arena);
    const struct weft_scanner_status *own = weft_supervisor_status(server, arena);
    struct weft_scanner_status *item =
        weft_new_array(arena, struct weft_scanner_status, known.count + WEFT_SCANNER_COUNT);
    size_t count = 0, i = 0;
    for (; i < known.count && weft_id_cmp(&known.item[i].replica, &own->replica) > 0; i++)
        item[count++] = known.item[i];
    for (size_t k = 0; k < WEFT_SCANNER_COUNT; k++)
        item[count++] = own[k];
    for (; i < known.count; i++)
        if (!is_of(&known.item[i], &own->replica))
            item[count++] = known.item[i];
    return (struct weft_scanners){.item = item, .count = count};
}

enum weft_rc weft_scanners_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_replica_rows rows;
    struct page page;
    enum weft_rc rc = weft_engine_replicas(request->server->engine, request->arena, &rows, err);
    if (!rc)
        rc = begin_page(request, true, &page, err);
    if (rc)
        return rc;
    const struct weft_scanners all = all_scanners(request->server, &rows, request->arena);
    bool met = false; /* the scanner of the cursor, on its replica */
    for (size_t i = 0; i < all.count && !page.more; i++) {
        const struct weft_scanner_status *one = &all.item[i];
        if (is_behind(&page.cursor, &one->replica) || (met && is_of(one, &page.cursor.replica)))
            put_item(&page, one,
                     weft_arena_printf(request->arena, "%s/%s",
                                       id_text(&one->replica, request->arena), one->name));
        else
            met = is_of(one, &page.cursor.replica) && strcmp(one->name, page.cursor.scanner) == 0;
    }
    end_page(&page);
    return WEFT_OK;
}

/* ---- One pass -------------------------------------------------------------------------------- */

static const char *known_names(struct weft_arena *arena)
{
    const char *text = "there are:";
    for (int i = 0; i < WEFT_SCANNER_COUNT; i++)
        text = weft_arena_printf(arena, "%s%s %s", text, i ? "," : "",
                                 weft_scanner_name((enum weft_scanner)i));
    return text;
}

enum weft_rc weft_scan_read(struct weft_request *request, struct weft_err *err)
{
    enum weft_rc rc = check_unbound(request, err);
    if (rc)
        return rc;
    if (weft_scanner_find(weft_request_path(request, "name")) == WEFT_SCANNER_COUNT)
        return weft_hint(err,
                         weft_fail_field(err, WEFT_NOT_FOUND, "name", "there is no such scanner"),
                         known_names(request->arena));
    return weft_api_read_nothing(request, err);
}

enum weft_rc weft_scan_run(struct weft_request *request, struct weft_err *err)
{
    const char *name = weft_request_path(request, "name");
    struct weft_pass_report report = {0};
    weft_usec begun_us = weft_boot_us();
    enum weft_rc rc = weft_supervisor_run(request->server, weft_scanner_find(name), &report, err);
    if (rc)
        return rc;
    const struct weft_wire_pass pass = {
        .name = name,
        .handled = report.handled,
        .failed = report.failed,
        .counters = report.counter,
        .counter_count = report.counter_count,
        .more = report.more,
        .next_due_us = report.next_due_us,
        .duration_us = weft_boot_us() - begun_us,
    };
    weft_reply_wire(request, 200, &weft_wire_pass, &pass);
    return WEFT_OK;
}
