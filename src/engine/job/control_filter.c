/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Cancel and replay by filter: pages of the list, newest first, each steered by id (control.c).
 *
 * Replays of members of flows. Pages come newest first, so a member mostly comes before its
 * upstreams and is refused because of them. A call tries refused members again, oldest first, as
 * long as that replays others: in the end it has replayed every member that it met and whose join
 * allows it, whatever the order of ids and edges is.
 *
 * Upstreams may also lie beyond the bound of a call. Its cursor then records that members were
 * refused (`refused`), and a later one that an execution was replayed since (`changed`). A call
 * that comes to the end of the list with both gives a cursor all the same: it leads to the
 * beginning, to another pass. A pass that replays nothing after a refusal is the last one, so
 * following the cursors comes to an end, and then no member is left out whose upstreams the filter
 * fits. A later pass takes only executions that had ended when the first one began (`began_us`): a
 * member that was replayed and failed again is not replayed twice. A member is never blocked for an
 * upstream that is only going to be replayed: if the caller stopped between two calls, it would
 * wait for ever.
 */

#include "engine/job/control.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "core/cursor.h"
#include "core/spec.h"
#include "engine/engine_state.h"
#include "engine/job/execution_read.h"
#include "engine/job/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bounds of one sweep whose filter fits little: pages, and the time spent on empty ones. */
enum { SWEEP_PAGES_MAX = 200 };
#define SWEEP_EMPTY_US WEFT_SECOND

/* ---- Passes ---------------------------------------------------------------------------------- */

/* The part of a cursor before the cursor of the list itself. */
struct pass {
    weft_usec began_us; /* the first call; 0: no member has been refused */
    bool refused;       /* members, by a call before */
    bool changed;       /* something was replayed after that */
    bool later;         /* it is not the first pass */
};

/* Splits a cursor: time.flags.list; the list's own alphabet has no dot. */
static enum weft_rc read_pass(const char *after, struct pass *ret_pass, const char **ret_after,
                              struct weft_err *err)
{
    const char *dot = after ? strchr(after, '.') : NULL;
    *ret_pass = (struct pass){0};
    *ret_after = after;
    if (!dot)
        return WEFT_OK;
    char *end;
    long long began_us = strtoll(after, &end, 16);
    unsigned flags = (unsigned)(dot[1] - '0');
    if (end != dot || began_us <= 0 || began_us > WEFT_MOMENT_MAX_US || flags > 7 || dot[2] != '.')
        return weft_cursor_refuse(err);
    *ret_pass = (struct pass){
        .began_us = began_us, .refused = flags & 1, .changed = flags & 2, .later = flags & 4};
    *ret_after = dot[3] ? dot + 3 : NULL;
    return WEFT_OK;
}

static void write_pass(const struct pass *pass, const char *after, char ret_next[WEFT_CURSOR_TEXT])
{
    unsigned flags = (pass->refused ? 1U : 0) | (pass->changed ? 2U : 0) | (pass->later ? 4U : 0);
    /* The cursor of an id has 34 characters. */
    (void)snprintf(ret_next, WEFT_CURSOR_TEXT, "%llx.%u.%.44s", (long long)pass->began_us, flags,
                   after);
}

/* ---- Pages ----------------------------------------------------------------------------------- */

static bool filter_empty(const struct weft_filter *filter)
{
    return !filter->lane && !filter->kind && !filter->tenant && !filter->key && !filter->tag &&
           filter->state == WEFT_STATE_NONE && weft_id_is_zero(&filter->flow) &&
           !filter->error_class && !filter->worker && !filter->escalated &&
           !filter->created_since_us && !filter->created_until_us && !filter->finished_since_us &&
           !filter->finished_until_us;
}

/* A sweep under way. */
struct sweep {
    const struct weft_steer_all *args;
    struct weft_listing listing;
    struct weft_sweep count; /* with the cursor, which is empty before the first page */
    struct pass pass;
    const char *after;       /* of the list, where the call begins; or NULL */
    uint64_t looked;         /* executions of all pages */
    weft_usec empty_us;      /* spent on pages without items */
    struct weft_id *refused; /* members of flows that upstreams stood in the way of */
    size_t refused_count;
};

/* Steers items by id. The ids may be sweep->refused, which is written after they were read. */
static enum weft_rc steer_items(struct weft_engine *engine, struct sweep *sweep,
                                const struct weft_id *id, size_t count, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_steer *item = weft_new_array(arena, struct weft_steer, count + 1);
    struct weft_steer_result *answer = weft_new_array(arena, struct weft_steer_result, count + 1);
    const struct weft_steering steering = {.kind = sweep->args->kind,
                                           .ns = sweep->listing.filter.ns,
                                           .item = item,
                                           .count = count,
                                           .arena = arena};
    for (size_t i = 0; i < count; i++)
        item[i] = (struct weft_steer){
            .id = id[i], .reason = sweep->args->reason, .force = sweep->args->force};
    enum weft_rc rc = weft_engine_steer(engine, &steering, answer, err);
    for (size_t i = 0; i < count && !rc; i++) {
        sweep->count.changed += answer[i].changed;
        if (answer[i].rc == WEFT_CONFLICT)
            sweep->refused[sweep->refused_count++] = item[i].id;
    }
    weft_arena_free(arena);
    return rc;
}

/* Tries refused members again, as long as that replays others. */
static enum weft_rc steer_refused(struct weft_engine *engine, struct sweep *sweep,
                                  struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    uint64_t before = 0;
    while (!rc && sweep->refused_count > 0 && sweep->count.changed > before) {
        size_t count = sweep->refused_count;
        before = sweep->count.changed;
        sweep->refused_count = 0;
        rc = steer_items(engine, sweep, sweep->refused, count, err);
    }
    return rc;
}

/* Steers one page of the list, counting matches and changes. */
static enum weft_rc steer_page(struct weft_engine *engine, struct sweep *sweep,
                               struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_read_page page;
    weft_usec began_us = weft_boot_us();
    sweep->listing.after = sweep->count.next[0] ? sweep->count.next : sweep->after;
    enum weft_rc rc = weft_engine_list(engine, &sweep->listing, arena, &page, err);
    if (rc)
        goto out;
    if (page.count == 0)
        sweep->empty_us += weft_boot_us() - began_us;
    struct weft_id *id = weft_new_array(arena, struct weft_id, page.count + 1);
    for (size_t i = 0; i < page.count; i++)
        id[i] = page.item[i].id;
    rc = steer_items(engine, sweep, id, page.count, err);
    if (rc)
        goto out;
    sweep->looked += page.count;
    sweep->count.matched += sweep->pass.later ? 0 : page.count; /* each is counted once */
    sweep->count.more = page.next != NULL;
    (void)snprintf(sweep->count.next, sizeof(sweep->count.next), "%s", page.next ? page.next : "");

out:
    weft_arena_free(arena);
    return rc;
}

static enum weft_rc check_sweep(const struct weft_steer_all *args, struct weft_err *err)
{
    if (args->kind != WEFT_STEER_CANCEL && args->kind != WEFT_STEER_REPLAY)
        return weft_invalid(err, "kind", "only cancel and replay work by filter");
    if (args->filter.id)
        return weft_invalid(err, "id",
                            "a short form of an id is for lists: name the ids themselves");
    if (filter_empty(&args->filter))
        return weft_invalid(err, "filter",
                            "an empty filter would take everything: name at least one field");
    if (args->max > WEFT_SWEEP_MAX)
        return weft_invalid(err, "max", "max is %u, allowed are 1 to %d", args->max,
                            WEFT_SWEEP_MAX);
    return weft_text_check(args->reason, WEFT_REASON_MAX, "reason", err);
}

/* The call has ended: sets the cursor for the next one. */
static void end_pass(struct weft_engine *engine, struct sweep *sweep)
{
    struct pass *pass = &sweep->pass;
    char after[WEFT_CURSOR_TEXT];
    pass->changed |= pass->refused && sweep->count.changed > 0;
    if (sweep->refused_count > 0 && sweep->count.more) {
        pass->refused = true;
        if (!pass->began_us)
            pass->began_us = weft_clock_now(engine->clock);
    }
    if (!sweep->count.more && pass->changed) {
        sweep->count.more = true;
        *pass = (struct pass){.began_us = pass->began_us, .later = true};
    }
    if (!sweep->count.more || !pass->began_us)
        return;
    memcpy(after, sweep->count.next, sizeof(after));
    write_pass(pass, after, sweep->count.next);
}

static enum weft_rc begin_pass(struct sweep *sweep, struct weft_err *err)
{
    struct weft_filter *filter = &sweep->listing.filter;
    enum weft_rc rc = read_pass(sweep->args->after, &sweep->pass, &sweep->after, err);
    weft_usec until_us = sweep->pass.began_us + 1;
    if (!rc && sweep->pass.later &&
        (!filter->finished_until_us || filter->finished_until_us > until_us))
        filter->finished_until_us = until_us;
    return rc;
}

/*
 * Walks only executions that can be changed, from the newest on or from where the call before
 * ended. A cursor is an id, and ids only grow: an execution that is submitted or replayed meanwhile
 * lies behind it and is not met again in this pass.
 */
enum weft_rc weft_engine_steer_all(struct weft_engine *engine, const struct weft_steer_all *args,
                                   struct weft_sweep *ret_sweep, struct weft_err *err)
{
    struct sweep sweep = {.args = args, .listing = {.filter = args->filter}};
    enum weft_rc rc = check_sweep(args, err);
    if (!rc)
        rc = begin_pass(&sweep, err);
    if (rc)
        return rc;
    uint64_t most = args->max ? args->max : WEFT_SWEEP_MAX;
    sweep.listing.source = args->kind == WEFT_STEER_CANCEL ? WEFT_LIST_LIVING : WEFT_LIST_ENDED;
    struct weft_arena *arena = weft_arena_new();
    sweep.refused = weft_new_array(arena, struct weft_id, most);
    int pages = 0;
    do {
        uint64_t left = most - sweep.looked;
        sweep.listing.limit = left < WEFT_PAGE_MAX ? (uint32_t)left : WEFT_PAGE_MAX;
        rc = steer_page(engine, &sweep, err);
    } while (!rc && sweep.count.more && sweep.looked < most && ++pages < SWEEP_PAGES_MAX &&
             sweep.empty_us < SWEEP_EMPTY_US);
    /* The pages before it are committed: the answer counts them, and the next call meets the lock.
     */
    if (rc && err && err->cause == WEFT_CAUSE_FLOW_LOCKED && sweep.looked > 0)
        rc = WEFT_OK;
    if (!rc)
        rc = steer_refused(engine, &sweep, err);
    weft_arena_free(arena);
    if (rc)
        return rc;
    end_pass(engine, &sweep);
    *ret_sweep = sweep.count;
    return WEFT_OK;
}
