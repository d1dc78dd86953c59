/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading flows. Nothing here locks, but for hops that are due (read_settled), and one snapshot is
 * not promised: a flow, its counts and its nodes are each as they were a moment ago. What a node
 * comes after never changes.
 */

#include "engine/flow/flow.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "core/capset.h"
#include "core/cursor.h"
#include "core/spec.h"
#include "engine/engine_state.h"
#include "engine/flow/flow_hold.h"
#include "engine/job/detail.h"
#include "engine/job/list.h"

#include <stdlib.h>
#include <string.h>

enum {
    PAGE_EDGES = 20000, /* upstreams that the nodes of one page name, unless one has more */
    WALK_MORE = 64,     /* flows that a list looks at beyond its limit */
    READ_ROUNDS = 20,   /* of hops that a read waits for */
};

/* ---- One flow -------------------------------------------------------------------------------- */

struct flow_call {
    const struct weft_flow_asking *asking;
    struct weft_cursor_list cursors;
    int32_t ns;
    struct weft_id after;
    struct weft_rows flow, counts, page;
};

static struct weft_flow read_flow(const struct weft_id *id, const struct weft_flow_head_out *row)
{
    return (struct weft_flow){
        .id = *id,
        .name = row->name,
        .state = row->state,
        .revision = row->revision,
        .created_us = row->created,
        .finished_us = row->finished.value,
        .cancel = row->cancel,
        .reason = row->reason,
        .node_count = row->nodes,
    };
}

static enum weft_rc hold_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    const struct flow_call *all = context;
    struct weft_flow_rows held;
    return weft_flow_hold(tx, all->asking->ns, &all->asking->flow, &held, err);
}

/* Reads one node more than the page has, to know whether there is a next page. */
static enum weft_rc flow_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct flow_call *all = context;
    const struct weft_flow_asking *asking = all->asking;
    struct weft_call call;
    all->counts = all->page = (struct weft_rows){0};
    weft_call_flow_read(&call, tx->arena)->id = asking->flow;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &all->flow, err);
    if (!rc && (all->flow.count == 0 || weft_out_flow_read(&all->flow)->namespace != all->ns))
        rc = weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no such flow");
    if (!rc && asking->counts) {
        weft_call_flow_counts(&call, tx->arena)->flow = asking->flow;
        rc = weft_tx_run(tx, &call, 1, &all->counts, err);
    }
    if (!rc && asking->limit > 0) {
        *weft_call_flow_page(&call, tx->arena) = (struct weft_flow_page_in){
            .flow = asking->flow, .after = all->after, .batch = (int64_t)asking->limit + 1};
        rc = weft_tx_run(tx, &call, 1, &all->page, err);
    }
    return rc;
}

/*
 * Reads the flow. Where its last member has ended and no hop has looked at that yet, the hops that
 * are due run first, so that a flow is not said to be open after its last end was acknowledged. To
 * hold the row for a moment is to wait for the hop of another replica. When none of that works, the
 * read returns the state of the row.
 */
static enum weft_rc read_settled(struct weft_engine *engine, struct flow_call *all,
                                 struct weft_arena *arena, struct weft_err *err)
{
    enum weft_rc settled = WEFT_OK;
    for (unsigned round = 0;; round++) {
        struct weft_tx tx = {.engine = engine, .arena = arena};
        enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_READ, flow_body, all, err);
        if (rc || settled || round == READ_ROUNDS || !weft_out_flow_read(&all->flow)->over)
            return rc;
        struct weft_err ignored = {0};
        settled = weft_flow_settle(engine, &all->asking->flow, 1, 0, &ignored);
        struct weft_tx hold = {.engine = engine, .arena = arena};
        if (!settled)
            settled = weft_tx_do(&hold, WEFT_TX_WRITE, hold_body, all, &ignored);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static struct weft_flow_node read_node(struct weft_engine *engine,
                                       const struct weft_flow_page_out *row,
                                       struct weft_arena *arena)
{
    struct weft_flow_node node = {
        .name = row->name,
        .id = row->id,
        .state = row->state,
        .attempt = row->attempt,
        .worker = weft_find_name(engine, row->worker.value),
        .started_us = row->started.value,
        .finished_us = row->finished.value,
        .reason = row->reason,
        .error_class = row->error_class,
        .error_message = row->error_message,
        .join = row->policy,
        .k = row->k,
        .on_satisfied =
            row->let_run ? WEFT_ON_SATISFIED_LET_RUN : WEFT_ON_SATISFIED_CANCEL_REMAINING,
        .fired = row->fired != WEFT_FIRED_NOT,
        .timeout_us = row->timeout.value,
        .escalated = row->escalated.set,
    };
    if (row->waitpoints) { /* names with commas, as a capset */
        const char *const *names = weft_capset_split(row->waitpoints, arena, &node.waitpoint_count);
        const char **sorted = weft_arena_dup(arena, names, node.waitpoint_count * sizeof(*names));
        qsort(sorted, node.waitpoint_count, sizeof(*sorted), by_text);
        node.waitpoints = sorted;
    }
    return node;
}

/* How many of the rows make the page: as many as were asked for, and bounded in their upstreams. */
static size_t cut_page(const struct weft_rows *rows, size_t limit)
{
    size_t count = 0;
    int64_t edges = 0;
    while (count < rows->count && count < limit) {
        edges += weft_out_flow_page(rows)[count].total;
        if (count > 0 && edges > PAGE_EDGES)
            break;
        count++;
    }
    return count;
}

/* The upstreams come in the order of the nodes: each node's names are one stretch of the array. */
static enum weft_rc read_after(struct weft_engine *engine, struct weft_flow_node *node,
                               size_t count, struct weft_arena *arena, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_upstreams_in *in = weft_call_upstreams(&call, arena, count);
    for (size_t i = 0; i < count; i++)
        in->row[i].id = node[i].id;
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    const char **name = weft_new_array(arena, const char *, rows.count + 1);
    size_t at = 0;
    for (size_t i = 0; i < rows.count; i++) {
        const struct weft_upstreams_out *row = &weft_out_upstreams(&rows)[i];
        while (at < count && weft_id_cmp(&node[at].id, &row->id) != 0)
            at++;
        if (at == count)
            return weft_fail(err, WEFT_CORRUPT, "the upstreams of a flow came out of order");
        name[i] = row->name;
        if (node[at].after_count++ == 0)
            node[at].after = &name[i];
    }
    return WEFT_OK;
}

static enum weft_rc read_nodes(struct weft_engine *engine, const struct flow_call *all,
                               struct weft_arena *arena, struct weft_flow_page *page,
                               struct weft_err *err)
{
    const struct weft_rows *rows = &all->page;
    size_t count = cut_page(rows, all->asking->limit);
    if (count == 0)
        return WEFT_OK;
    struct weft_id_list workers = {.id = weft_new_array(arena, int32_t, count)};
    for (size_t i = 0; i < count; i++)
        workers.id[workers.count++] = weft_out_flow_page(rows)[i].worker.value;
    enum weft_rc rc = weft_load_names(engine, &workers, err);
    if (rc)
        return rc;
    struct weft_flow_node *node = weft_new_array(arena, struct weft_flow_node, count);
    struct weft_detail_of *of = weft_new_array(arena, struct weft_detail_of, count);
    size_t failed = 0;
    for (size_t i = 0; i < count; i++) {
        const struct weft_flow_page_out *row = &weft_out_flow_page(rows)[i];
        node[i] = read_node(engine, row, arena);
        if (node[i].state == WEFT_STATE_FAILED && node[i].error_class)
            of[failed++] = (struct weft_detail_of){node[i].id, row->epoch, &node[i].error_detail};
    }
    if (failed > 0)
        rc = weft_details_read(engine, of, failed, arena, err);
    if (rc)
        return rc;
    page->node = node;
    page->count = count;
    if (count < rows->count)
        page->next = weft_cursor_write_id(&all->cursors, &node[count - 1].id, arena);
    return read_after(engine, node, count, arena, err);
}

enum weft_rc weft_engine_flow(struct weft_engine *engine, const struct weft_flow_asking *asking,
                              struct weft_arena *arena, struct weft_flow_page *ret_page,
                              struct weft_err *err)
{
    char flow[WEFT_ID_TEXT];
    weft_id_print(&asking->flow, flow);
    struct flow_call all = {.asking = asking,
                            .cursors = {.name = "nodes", .ns = asking->ns, .filter = flow}};
    enum weft_rc rc = weft_find_namespace(engine, asking->ns, &all.ns, err);
    if (!rc)
        rc = weft_cursor_read_id(&all.cursors, asking->after, &all.after, err);
    if (!rc)
        rc = weft_page_limit(asking->limit, err);
    if (!rc)
        rc = read_settled(engine, &all, arena, err);
    if (rc)
        return rc;
    struct weft_flow_page page = {
        .flow = read_flow(&asking->flow, &weft_out_flow_read(&all.flow)->flow_head)};
    const struct weft_flow_counts_out *row = weft_out_flow_counts(&all.counts);
    for (size_t i = 0; i < all.counts.count; i++)
        page.flow.count[row[i].state] = row[i].number;
    rc = read_nodes(engine, &all, arena, &page, err);
    if (!rc)
        *ret_page = page;
    return rc;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

/* A list under way: it looks at more and more flows at a time until its page is full. */
struct flow_walk {
    const struct weft_flow_listing *listing;
    int32_t ns;
    struct weft_flow *item;
    size_t count, limit;
    struct weft_list_scan look;
    struct weft_id_short wanted; /* with listing->id; otherwise all ids */
    struct weft_id after;        /* the last one that was looked at and decided on */
    bool at_end;
};

static bool ends_with(const struct weft_id *id, const char *suffix)
{
    char text[WEFT_ID_TEXT];
    weft_id_print(id, text);
    return strcmp(text + strlen(text) - strlen(suffix), suffix) == 0;
}

static bool fits(const struct flow_walk *walk, const struct weft_flow_list_out *row)
{
    const struct weft_flow_listing *listing = walk->listing;
    const char *name = row->flow_head.name;
    int32_t state = row->flow_head.state;
    return state >= 0 && !row->deleted.set &&
           (!listing->by_state || state == (int32_t)listing->state) &&
           (!walk->wanted.suffix[0] || ends_with(&row->id, walk->wanted.suffix)) &&
           (!listing->name || (name && strcmp(name, listing->name) == 0));
}

static enum weft_rc check_listing(const struct weft_flow_listing *listing, struct weft_err *err)
{
    enum weft_rc rc = weft_page_limit(listing->limit, err);
    if (!rc && listing->by_state && (unsigned)listing->state >= WEFT_FLOW_STATE_COUNT)
        rc = weft_invalid(err, "state", "there is no such state");
    if (!rc && listing->name)
        rc = weft_name_check(listing->name, "name", err);
    return rc;
}

static enum weft_rc walk_on(struct weft_engine *engine, struct flow_walk *walk,
                            struct weft_arena *arena, struct weft_err *err)
{
    uint32_t scan = weft_list_next_rows(&walk->look, (uint32_t)walk->limit + WALK_MORE);
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_flow_list(&call, arena) =
        (struct weft_flow_list_in){.namespace = walk->ns, .after = walk->after, .batch = scan};
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    size_t i = 0;
    bool below = false; /* the ids that are wanted */
    const struct weft_flow_list_out *row = weft_out_flow_list(&rows);
    for (; i < rows.count && walk->count < walk->limit && !below; i++) {
        walk->after = row[i].id;
        below = weft_id_cmp(&walk->after, &walk->wanted.low) < 0;
        if (below)
            break;
        if (fits(walk, &row[i]))
            walk->item[walk->count++] = read_flow(&row[i].id, &row[i].flow_head);
    }
    walk->look.looked += rows.count;
    walk->at_end = below || (rows.count < scan && i == rows.count);
    return WEFT_OK;
}

enum weft_rc weft_engine_flows(struct weft_engine *engine, const struct weft_flow_listing *listing,
                               struct weft_arena *arena, struct weft_flows *ret_flows,
                               struct weft_err *err)
{
    struct flow_walk walk = {
        .listing = listing,
        .limit = listing->limit ? listing->limit : WEFT_PAGE_DEFAULT,
        .look = {.began_us = weft_boot_us(), .allowed_us = WEFT_LOOK_US},
        .after = WEFT_ID_LAST,
    };
    const char *const filter[] = {
        listing->name, listing->id,
        listing->by_state ? weft_arena_printf(arena, "%d", (int)listing->state) : NULL};
    const struct weft_cursor_list cursors = {
        .name = "flows",
        .ns = listing->ns,
        .filter = weft_cursor_filter(filter, WEFT_LEN(filter), arena)};
    enum weft_rc rc = check_listing(listing, err);
    if (!rc && listing->id)
        rc = weft_short_read(listing->id, &walk.wanted, err);
    if (!rc && listing->id)
        walk.after = weft_id_above(&walk.wanted);
    if (!rc)
        rc = weft_cursor_read_id(&cursors, listing->after, &walk.after, err);
    if (!rc)
        rc = weft_find_namespace(engine, listing->ns, &walk.ns, err);
    if (rc)
        return rc;
    walk.item = weft_new_array(arena, struct weft_flow, walk.limit);
    while (!rc && !walk.at_end && weft_list_goes_on(&walk.look, walk.count, walk.limit))
        rc = walk_on(engine, &walk, arena, err);
    if (rc)
        return rc;
    *ret_flows = (struct weft_flows){.item = walk.item, .count = walk.count};
    if (!walk.at_end)
        ret_flows->next = weft_cursor_write_id(&cursors, &walk.after, arena);
    if (!walk.at_end && walk.count < walk.limit)
        ret_flows->looked_to_us = weft_id_time(&walk.after);
    return WEFT_OK;
}
