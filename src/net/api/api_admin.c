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
#include "engine/call.h"
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

/* ---- What they share ------------------------------------------------------------------------- */

/* Cuts the page that begins at item `first` out of a whole list. True: more items follow it. */
static bool cut(struct weft_api_page *list, size_t first, uint32_t limit)
{
    size_t left = list->count - first;
    list->item = (const char *)list->item + first * list->stride;
    list->count = left < limit ? left : limit;
    return list->count < left;
}

static const char *name_of(const struct weft_api_page *list, size_t i)
{
    return *(const char *const *)(const void *)((const char *)list->item + i * list->stride);
}

/* A page of a list by name: how long it is, and the name that it begins behind, "": none. */
struct name_page {
    uint32_t limit;
    char after[WEFT_CURSOR_PLACE_MAX + 1];
};

/* `name` is the list's, for its cursors. */
static enum weft_rc read_name_page(const struct weft_request *request, const char *name,
                                   struct name_page *ret_page, struct weft_err *err)
{
    const struct weft_cursor_list cursors = {.name = name, .ns = request->ns};
    struct weft_paging paging = {0};
    size_t size = 0;
    enum weft_rc rc = weft_api_paging(request, &paging, err);
    ret_page->after[0] = '\0';
    if (!rc && paging.after)
        rc = weft_cursor_read(&cursors, paging.after, ret_page->after, &size, err);
    ret_page->limit = paging.limit;
    return rc;
}

/*
 * Answers with a page of a list, sorted by name; the place in a cursor is the name of the last
 * item. The name of an item must be the first member of its struct. The list may begin before the
 * page, and must have an item behind it if there is one.
 */
static enum weft_rc reply_by_name(struct weft_request *request, const char *name,
                                  const struct weft_api_page *list, struct weft_err *err)
{
    const struct weft_cursor_list cursors = {.name = name, .ns = request->ns};
    struct name_page asked;
    size_t first = 0;
    enum weft_rc rc = read_name_page(request, name, &asked, err);
    if (rc)
        return rc;
    while (asked.after[0] && first < list->count && strcmp(name_of(list, first), asked.after) <= 0)
        first++;
    struct weft_api_page page = *list;
    if (cut(&page, first, asked.limit)) {
        const char *last = name_of(&page, page.count - 1);
        page.next = weft_cursor_write(&cursors, last, strlen(last), request->arena);
    }
    return weft_api_reply_page(request, &page);
}

/* ---- Lanes ----------------------------------------------------------------------------------- */

static_assert(offsetof(struct weft_lane, name) == 0, "lists and the path find the name there");

enum weft_rc weft_lanes_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_lanes lanes;
    struct weft_texts used = {0};
    struct name_page page;
    struct weft_engine *engine = request->server->engine;
    enum weft_rc rc = read_name_page(request, "lanes", &page, err);
    const struct weft_lanes_of of = {
        .ns = request->ns, .after = page.after, .most = (size_t)page.limit + 1};
    if (!rc)
        rc = weft_counts_cache_lanes(request->server->api->counts, engine, &of, request->arena,
                                     &used, err);
    if (!rc)
        rc = weft_engine_lanes_of(engine, request->ns, used.item, used.count, request->arena,
                                  &lanes, err);
    return rc ? rc
              : reply_by_name(request, "lanes", &WEFT_API_PAGE(lanes.item, lanes.count, NULL), err);
}

enum weft_rc weft_lane_read(struct weft_request *request, struct weft_err *err)
{
    request->state = (void *)(uintptr_t)weft_request_path(request, "lane");
    return weft_name_check(request->state, "lane", err);
}

enum weft_rc weft_lane_put_read(struct weft_request *request, struct weft_err *err)
{
    request->state = weft_new(request->arena, struct weft_lane);
    return weft_api_read_named(request, "lane", request->state, err);
}

enum weft_rc weft_lane_put_run(struct weft_request *request, struct weft_err *err)
{
    enum weft_rc rc =
        weft_engine_lane_put(request->server->engine, request->ns, request->state, err);
    return weft_api_reply(request, rc, request->state);
}

/* ---- Workers --------------------------------------------------------------------------------- */

static_assert(offsetof(struct weft_worker_info, name) == 0, "lists find the name there");

enum weft_rc weft_workers_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_workers workers;
    enum weft_rc rc =
        weft_engine_workers(request->server->engine, request->ns, request->arena, &workers, err);
    return rc ? rc
              : reply_by_name(request, "workers", &WEFT_API_PAGE(workers.item, workers.count, NULL),
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
 * The engine decides which tokens the token of the request reaches; a server that asks for no
 * tokens lets every client in as an admin. Secrets are in answers and nowhere else: log lines have
 * ids and names.
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

/* ---- List ------------------------------------------------------------------------------------ */

/* A token that is bound to a namespace sees the tokens of that namespace, another one sees all. */
static struct weft_cursor_list cursors_of(const struct weft_request *request)
{
    return (struct weft_cursor_list){.name = "tokens",
                                     .ns = request->ns_fixed ? request->ns : NULL};
}

/* The id behind which the page begins, 0: at the first. */
static enum weft_rc read_token_page(const struct weft_request *request,
                                    struct weft_paging *ret_paging, int32_t *ret_after,
                                    struct weft_err *err)
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
    return read_token_page(request, &paging, &after, err);
}

enum weft_rc weft_tokens_run(struct weft_request *request, struct weft_err *err)
{
    const struct weft_token_caller caller = caller_of(request);
    struct weft_paging paging;
    struct weft_tokens tokens;
    int32_t after;
    enum weft_rc rc = read_token_page(request, &paging, &after, err);
    if (!rc)
        rc = weft_engine_token_list(request->server->engine, &caller, request->arena, &tokens, err);
    if (rc)
        return rc;
    size_t first = 0;
    while (first < tokens.count && tokens.item[first].id <= after)
        first++;
    struct weft_api_page page = WEFT_API_PAGE(tokens.item, tokens.count, NULL);
    if (cut(&page, first, paging.limit)) {
        const struct weft_cursor_list cursors = cursors_of(request);
        const char *place =
            weft_arena_printf(request->arena, "%d", tokens.item[first + page.count - 1].id);
        page.next = weft_cursor_write(&cursors, place, strlen(place), request->arena);
    }
    struct weft_token *shown = weft_new_array(request->arena, struct weft_token, page.count + 1);
    memcpy(shown, page.item, page.count * sizeof(*shown));
    weft_auth_show_uses(request->server->auth, shown, page.count);
    page.item = shown;
    return weft_api_reply_page(request, &page);
}

/* ---- Create, rotate, revoke ------------------------------------------------------------------ */

/* The id of the path, and the body of a rotation. */
enum weft_rc weft_token_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_token_rotation *rotation = weft_new(request->arena, struct weft_token_rotation);
    int32_t id = 0;
    enum weft_rc rc = path_id(request, &id, err);
    if (!rc && request->route->op->takes)
        rc = weft_api_read_message(request, rotation, err);
    rotation->id = id;
    request->state = rotation;
    return rc;
}

/* Answers, goes by the new tokens from here on, and leaves a line in the log. */
enum weft_rc weft_token_run(struct weft_request *request, struct weft_err *err)
{
    const struct weft_token_caller caller = caller_of(request);
    const struct weft_op_info *op = request->route->op;
    const struct weft_token_rotation *rotation = request->state;
    struct weft_engine *engine = request->server->engine;
    struct weft_token token;
    bool creates = op == &weft_ops[WEFT_OP_TOKEN_CREATE],
         rotates = op == &weft_ops[WEFT_OP_TOKEN_ROTATE];
    enum weft_rc rc =
        creates
            ? weft_engine_token_create(engine, &caller, request->state, request->arena, &token, err)
        : rotates
            ? weft_engine_token_rotate(engine, &caller, rotation, request->arena, &token, err)
            : weft_engine_token_revoke(engine, &caller, rotation->id, request->arena, &token, err);
    if (rc)
        return rc;
    weft_server_tokens_changed(request->server);
    weft_info(creates   ? "a token was created"
              : rotates ? "a token was rotated"
                        : "a token was revoked",
              F_I64("token", token.id), F_STR("name", token.name),
              F_I64("by_token", request->token));
    weft_reply_wire(request, creates ? 201 : 200, op->gives, &token);
    return WEFT_OK;
}

/* ---- Servers and scanners -------------------------------------------------------------------- */

/*
 * The scanners of this server are shown from its memory; the scanners of other servers
 * are known from the rows that these servers write with each heartbeat.
 */

/* Where a page begins: behind this replica, and of it behind this scanner. */
struct cursor {
    bool given;
    struct weft_id replica;
    const char *scanner; /* NULL: the list is one of replicas */
};

/* "ID" or "ID/NAME": the last item of the page before. */
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
enum weft_rc weft_api_check_unbound(const struct weft_request *request, struct weft_err *err)
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
    enum weft_rc rc = weft_api_check_unbound(request, err);
    return rc ? rc : weft_api_paging(request, &paging, err);
}

static enum weft_rc read_page(const struct weft_request *request, bool scanners,
                              struct weft_paging *ret_paging, struct cursor *ret_cursor,
                              struct weft_err *err)
{
    enum weft_rc rc = weft_api_paging(request, ret_paging, err);
    return rc ? rc : read_cursor(ret_paging->after, scanners, ret_cursor, err);
}

enum weft_rc weft_replicas_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_replicas all = {0};
    struct weft_paging paging;
    struct cursor cursor;
    const struct weft_op_call call = {.op = WEFT_OP_REPLICAS, .out = &all, .arena = request->arena};
    enum weft_rc rc = weft_engine_call(request->server->engine, &call, err);
    if (!rc)
        rc = read_page(request, false, &paging, &cursor, err);
    if (rc)
        return rc;
    size_t first = 0;
    while (first < all.count && !is_behind(&cursor, &all.item[first].id))
        first++;
    struct weft_api_page page = WEFT_API_PAGE(all.item, all.count, NULL);
    if (cut(&page, first, paging.limit))
        page.next = id_text(&all.item[first + page.count - 1].id, request->arena);
    return weft_api_reply_page(request, &page);
}

/* ---- Scanners -------------------------------------------------------------------------------- */

static bool is_of(const struct weft_scanner_status *status, const struct weft_id *replica)
{
    return weft_id_cmp(&status->replica, replica) == 0;
}

/* The list as it is shown: the rows of other servers, and the scanners of this one from memory. */
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
    struct weft_paging paging;
    struct cursor cursor;
    enum weft_rc rc = weft_engine_replicas(request->server->engine, request->arena, &rows, err);
    if (!rc)
        rc = read_page(request, true, &paging, &cursor, err);
    if (rc)
        return rc;
    const struct weft_scanners all = all_scanners(request->server, &rows, request->arena);
    size_t first = 0;
    for (bool met = false;
         first < all.count && !met && !is_behind(&cursor, &all.item[first].replica); first++)
        met = is_of(&all.item[first], &cursor.replica) &&
              strcmp(all.item[first].name, cursor.scanner) == 0;
    struct weft_api_page page = WEFT_API_PAGE(all.item, all.count, NULL);
    if (cut(&page, first, paging.limit)) {
        const struct weft_scanner_status *last = &all.item[first + page.count - 1];
        page.next = weft_arena_printf(request->arena, "%s/%s",
                                      id_text(&last->replica, request->arena), last->name);
    }
    return weft_api_reply_page(request, &page);
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
    enum weft_rc rc = weft_api_check_unbound(request, err);
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
    return weft_api_reply(request, WEFT_OK, &pass);
}
