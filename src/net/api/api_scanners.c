/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The servers that share the store, what their scanners do, and one pass for an operator.
 *
 * What this server says of its own scanners comes from its memory; the others are known from the
 * rows they write with each heartbeat.
 */

#include "net/api/api_scanners.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "engine/admin/replicas.h"
#include "engine/engine.h"
#include "engine/scan/pass.h"
#include "net/api/api.h"
#include "net/request.h"
#include "net/server.h"
#include "net/upkeep/supervisor.h"
#include "weft/admin.h"
#include "wire/wire.h"

#include <string.h>

/* ---- Pages ----------------------------------------------------------------------------------- */

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
    *ret_page = (struct page){0};
    enum weft_rc rc = weft_api_paging(request, &ret_page->paging, err);
    if (!rc)
        rc = read_cursor(ret_page->paging.after, scanners, &ret_page->cursor, err);
    if (rc)
        return rc;
    weft_reply_items(request, &ret_page->out);
    return WEFT_OK;
}

/* Writes the item if there is room; `last` is its cursor. */
static void put_item(struct page *page, const struct weft_wire_type *type, const void *item,
                     const char *last)
{
    page->more = page->written == page->paging.limit;
    if (page->more)
        return;
    weft_wire_write(type, item, &page->out);
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

enum weft_rc weft_replicas_read(struct weft_request *request, struct weft_err *err)
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
            put_item(&page, &weft_wire_replica, &one, id_text(&one.id, request->arena));
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

enum weft_rc weft_scanners_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_paging paging;
    enum weft_rc rc = check_unbound(request, err);
    return rc ? rc : weft_api_paging(request, &paging, err);
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
            put_item(&page, &weft_wire_scanner, one,
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
    if (weft_scanner_find(weft_request_path(request, "name")) == WEFT_SCANNER_COUNT) {
        return weft_hint(err,
                         weft_fail_field(err, WEFT_NOT_FOUND, "name", "there is no such scanner"),
                         known_names(request->arena));
    }
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
