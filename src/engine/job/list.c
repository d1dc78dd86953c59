/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lists of executions, newest first. Nothing here locks.
 *
 * A cursor is the id of the last row looked at, so it stays valid whatever happens to that row; see
 * core/cursor.h for how it is written.
 *
 * A list walks the spans of its namespace (span.h), so that it takes no longer when others have
 * much. A list of the living does so only where the namespace has very many of them: otherwise all
 * are read through the indexes of their states, sorted and cut, because the ended between them may
 * be many more.
 *
 * No statement looks at more than WEFT_SCAN_MAX rows. A list whose filter fits little repeats it
 * until something fits or its time is up, and then returns how far it looked: a caller that follows
 * the cursors is never kept waiting for long, and seldom sees a page without items.
 */

#include "engine/job/list.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "core/cursor.h"
#include "core/spec.h"
#include "engine/engine_state.h"
#include "engine/job/execution_read.h"

#include <inttypes.h>

enum {
    WALK_FIRST = 64,    /* rows beyond twice the page that a list looks at first */
    LIVING_FEW = 10000, /* living executions of a namespace that a list reads and sorts */
};

/*
 * An id is made before the transaction that stores its row begins, on a clock that is never ahead
 * of the store's. A range of moments is walked as a range of ids, widened by how much the two may
 * differ; the moments themselves are compared exactly.
 */
#define ID_EARLY_US (60 * WEFT_SECOND)
#define ID_LATE_US  WEFT_SECOND

/* The filter in terms of the store. `nothing`: it names something that does not exist. */
struct resolved_filter {
    int32_t ns, lane, tenant, worker; /* 0: not given */
    const char *needle;
    struct weft_id floor;          /* no row below it fits */
    struct weft_id ceiling;        /* no row from here on fits */
    struct weft_id_short short_id; /* with filter.id */
    bool nothing;
};

enum weft_rc weft_short_read(const char *text, struct weft_id_short *ret_short,
                             struct weft_err *err)
{
    if (weft_id_short_parse(text, ret_short))
        return WEFT_OK;
    return weft_hint(
        err,
        weft_invalid(err, "id",
                     "id must be the beginning of an id, or its beginning, \"..\" and its end"),
        "give at least 4 hexadecimal digits, as in 01932c07 or 01932c075f..6789ab");
}

struct weft_id weft_id_above(const struct weft_id_short *wanted)
{
    struct weft_id above = wanted->high;
    int i = sizeof(above.byte) - 1;
    while (i >= 0 && ++above.byte[i] == 0)
        i--;
    return i >= 0 ? above : WEFT_ID_LAST;
}

/* Checks the names that the filter gives and finds their numbers in the store. */
static enum weft_rc resolve_names(struct weft_engine *engine, const struct weft_filter *filter,
                                  struct resolved_filter *out, struct weft_err *err)
{
    const struct {
        const char *field, *text;
        int32_t *id; /* NULL: it has no number */
        enum weft_name_sort sort;
    } row[] = {
        {"lane", filter->lane, &out->lane, WEFT_NAME_LANE},
        {"tenant", filter->tenant, &out->tenant, WEFT_NAME_TENANT},
        {"kind", filter->kind, NULL, 0},
        {"worker", filter->worker, &out->worker, WEFT_NAME_WORKER},
    };
    struct weft_name_want want[WEFT_LEN(row)];
    int32_t *id[WEFT_LEN(row)];
    size_t count = 0;
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < WEFT_LEN(row) && !rc; i++) {
        rc = row[i].text ? weft_name_check(row[i].text, row[i].field, err) : WEFT_OK;
        id[count] = row[i].id;
        want[count] =
            (struct weft_name_want){.sort = row[i].sort, .ns = out->ns, .text = row[i].text};
        count += row[i].text && row[i].id;
    }
    if (!rc && count > 0)
        rc = weft_intern_names(engine, false, want, count, err);
    out->nothing = out->ns == 0;
    for (size_t i = 0; i < count && !rc; i++) {
        *id[i] = want[i].id;
        out->nothing |= want[i].id == 0;
    }
    return rc;
}

/* The ids that the moments of a filter allow: an execution is created before it ends. */
static void resolve_range(const struct weft_filter *filter, struct resolved_filter *out)
{
    out->ceiling = WEFT_ID_LAST;
    if (filter->created_since_us)
        out->floor = weft_id_at(filter->created_since_us - ID_EARLY_US);
    weft_usec until_us = filter->created_until_us;
    if (filter->finished_until_us && (!until_us || filter->finished_until_us < until_us))
        until_us = filter->finished_until_us;
    if (until_us)
        out->ceiling = weft_id_at(until_us + ID_LATE_US);
    if (!filter->id)
        return;
    const struct weft_id_short *wanted = &out->short_id;
    if (weft_id_cmp(&wanted->low, &out->floor) > 0)
        out->floor = wanted->low;
    struct weft_id above = weft_id_above(wanted);
    if (weft_id_cmp(&above, &out->ceiling) < 0)
        out->ceiling = above;
}

static enum weft_rc resolve_filter(struct weft_engine *engine, const struct weft_filter *filter,
                                   struct weft_arena *arena, struct resolved_filter *out,
                                   struct weft_err *err)
{
    *out = (struct resolved_filter){0};
    enum weft_rc rc = weft_find_namespace(engine, filter->ns, &out->ns, err);
    if (!rc)
        rc = resolve_names(engine, filter, out, err);
    if (!rc && filter->tag)
        rc = weft_tag_needle(filter->tag, arena, &out->needle, err);
    if (!rc && filter->error_class)
        rc = weft_text_check(filter->error_class, WEFT_CLASS_MAX, "error_class", err);
    if (!rc && (unsigned)filter->state >= WEFT_STATE_COUNT)
        rc = weft_invalid(err, "state", "there is no such state");
    if (!rc && filter->id)
        rc = weft_short_read(filter->id, &out->short_id, err);
    resolve_range(filter, out);
    return rc;
}

enum weft_rc weft_page_limit(uint32_t limit, struct weft_err *err)
{
    if (limit <= WEFT_PAGE_MAX)
        return WEFT_OK;
    return weft_invalid(err, "limit", "limit is %u, allowed are 1 to %d", limit, WEFT_PAGE_MAX);
}

/* As the statement has them. */
enum {
    SOURCE_SPANS,
    SOURCE_LIVING,
    SOURCE_ALL_IDS,
    SOURCE_MEMBERS,
    SOURCE_LIVING_MEMBERS,
    SOURCE_ESCALATED,
};

static bool of_the_living(const struct weft_listing *listing)
{
    if (listing->source == WEFT_LIST_BY_STATE)
        return weft_state_living(listing->filter.state);
    return listing->source == WEFT_LIST_LIVING;
}

/* Where the list walks. Of the living: SOURCE_LIVING, unless there are too many. */
static int source_of(const struct weft_listing *listing)
{
    enum weft_state state = listing->filter.state;
    bool by_id = listing->filter.id || listing->filter.key; /* few spans: the ids are a range */
    if (weft_id_is_zero(&listing->filter.flow)) {
        if (listing->filter.escalated)
            return SOURCE_ESCALATED;
        bool indexed = state != WEFT_STATE_HELD; /* which no operation leads to */
        return of_the_living(listing) && indexed && !by_id ? SOURCE_LIVING : SOURCE_SPANS;
    }
    return of_the_living(listing) ? SOURCE_LIVING_MEMBERS : SOURCE_MEMBERS;
}

/* A number in a filter as a text, NULL for 0. */
static const char *number_text(int64_t number, struct weft_arena *arena)
{
    return number ? weft_arena_printf(arena, "%" PRId64, number) : NULL;
}

/* The list and filter that its cursors are bound to. */
static struct weft_cursor_list cursor_list(const struct weft_listing *listing,
                                           struct weft_arena *arena)
{
    static const char *const name[] = {
        [WEFT_LIST_BY_STATE] = "executions",
        [WEFT_LIST_LIVING] = "living executions",
        [WEFT_LIST_ENDED] = "ended executions",
    };
    const struct weft_filter *filter = &listing->filter;
    char flow[WEFT_ID_TEXT];
    weft_id_print(&filter->flow, flow);
    const char *const text[] = {
        filter->lane,
        filter->kind,
        filter->tenant,
        filter->key,
        filter->worker,
        filter->error_class,
        filter->id,
        filter->tag ? filter->tag->key : NULL,
        filter->tag ? filter->tag->value : NULL,
        number_text((int64_t)filter->state, arena),
        weft_id_is_zero(&filter->flow) ? NULL : flow,
        number_text(filter->created_since_us, arena),
        number_text(filter->created_until_us, arena),
        number_text(filter->finished_since_us, arena),
        number_text(filter->finished_until_us, arena),
        filter->escalated ? "escalated" : NULL,
    };
    return (struct weft_cursor_list){.name = name[listing->source],
                                     .ns = filter->ns,
                                     .filter = weft_cursor_filter(text, WEFT_LEN(text), arena)};
}

static void list_call(struct weft_call *call, struct weft_arena *arena,
                      const struct weft_listing *listing, const struct resolved_filter *filter)
{
    const struct weft_filter *given = &listing->filter;
    struct weft_list_in *in = weft_call_list(call, arena);
    in->namespace = filter->ns;
    in->lane = weft_unless_zero(filter->lane);
    in->tenant = weft_unless_zero(filter->tenant);
    in->state = weft_unless_zero(given->state);
    in->worker = weft_unless_zero(filter->worker);
    in->created_since = weft_unless_zero(given->created_since_us);
    in->created_until = weft_unless_zero(given->created_until_us);
    in->finished_since = weft_unless_zero(given->finished_since_us);
    in->finished_until = weft_unless_zero(given->finished_until_us);
    in->escalated = given->escalated;
    in->kind = given->kind;
    in->tag = filter->needle;
    in->error_class = given->error_class;
    in->suffix = filter->short_id.suffix[0] ? filter->short_id.suffix : NULL;
    if (!weft_id_is_zero(&given->flow))
        in->flow = weft_some_id(given->flow);
    if (listing->source != WEFT_LIST_BY_STATE)
        in->ended = weft_some(listing->source == WEFT_LIST_ENDED);
}

bool weft_list_goes_on(const struct weft_list_scan *look, size_t count, size_t limit)
{
    if (count >= limit)
        return false;
    if (look->looked < WEFT_SCAN_MAX)
        return true;
    return count == 0 && weft_boot_us() - look->began_us < look->allowed_us;
}

uint32_t weft_list_next_rows(const struct weft_list_scan *look, uint32_t first)
{
    uint64_t left = look->looked < WEFT_SCAN_MAX ? WEFT_SCAN_MAX - look->looked : WEFT_SCAN_MAX;
    uint64_t scan = look->looked ? 4 * look->looked : first;
    return (uint32_t)(scan < left ? scan : left);
}

/* A list under way: it looks at more and more rows at a time until its page is full. */
struct walk {
    struct weft_engine *engine;
    const struct weft_listing *listing;
    struct weft_arena *arena;
    struct resolved_filter filter;
    struct weft_call call;
    struct weft_read_page page;
    uint32_t limit;
    struct weft_list_scan look;
    struct weft_id after; /* the last row that was looked at */
    int source;
    bool at_end;
};

/* Narrows the range of ids to the one execution with the key of the filter. */
static enum weft_rc resolve_key(struct walk *walk, struct weft_err *err)
{
    struct resolved_filter *filter = &walk->filter;
    const char *key = walk->listing->filter.key;
    struct weft_call call;
    struct weft_rows rows;
    enum weft_rc rc = weft_text_check(key, WEFT_KEY_MAX, "key", err);
    if (rc)
        return rc;
    struct weft_key_read_in *in = weft_call_key_read(&call, walk->arena, 1);
    in->row[0].namespace = filter->ns;
    in->row[0].key = key;
    rc = weft_tx_once(walk->engine, WEFT_TX_READ, &call, walk->arena, &rows, err);
    if (rc)
        return rc;
    const struct weft_key_read_out *row = weft_out_key_read(&rows);
    filter->nothing = rows.count == 0 || weft_id_cmp(&row->id, &filter->floor) < 0 ||
                      weft_id_cmp(&row->id, &filter->ceiling) >= 0;
    if (filter->nothing)
        return WEFT_OK;
    filter->floor = row->id;
    filter->ceiling = weft_id_above(&(struct weft_id_short){.high = row->id});
    return WEFT_OK;
}

/*
 * Where spans may be missing, because a replica of the release before them wrote there or there is
 * one namespace, all ids are walked. Sets the source and the floor of this step: it does not cross
 * the ends of that stretch.
 */
static int step_source(const struct walk *walk, struct weft_id *floor)
{
    const struct weft_unspanned *gap = &walk->engine->unspanned;
    weft_usec since_us = atomic_load(&gap->since_us), until_us = atomic_load(&gap->until_us);
    *floor = walk->filter.floor;
    if (walk->source == SOURCE_SPANS && atomic_load(&gap->all))
        return SOURCE_ALL_IDS;
    if (walk->source != SOURCE_SPANS || until_us == 0)
        return walk->source;
    const struct weft_id since = weft_id_at(since_us), until = weft_id_at(until_us);
    bool above = weft_id_cmp(&walk->after, &until) > 0;
    bool inside = !above && weft_id_cmp(&walk->after, &since) > 0;
    const struct weft_id *stop = above ? &until : &since;
    if ((above || inside) && weft_id_cmp(stop, floor) > 0)
        *floor = *stop;
    return inside ? SOURCE_ALL_IDS : SOURCE_SPANS;
}

/* Where the step after this one begins; the walk is at its end when there is none. */
static void advance(struct walk *walk, const struct weft_rows *rows)
{
    const struct weft_list_in *in = weft_in_list(&walk->call);
    const struct weft_list_out *row = weft_out_list(rows);
    walk->look.looked += row->scanned > 0 ? (uint64_t)row->scanned : 1;
    if (row->scanned >= in->scan) {
        walk->after = row->last.value;
    } else if (row->bound.set) {
        /* The first row that was not looked at may be this one: begin just above it. */
        walk->after = weft_id_above(&(struct weft_id_short){.high = row->bound.value});
    } else {
        walk->at_end = weft_id_cmp(&in->floor, &walk->filter.floor) <= 0;
        walk->after = in->floor;
    }
}

static enum weft_rc walk_on(struct walk *walk, struct weft_err *err)
{
    struct weft_read_page *page = &walk->page;
    struct weft_list_in *in = weft_in_list(&walk->call);
    in->source = step_source(walk, &in->floor);
    in->after = walk->after;
    in->above = weft_id_above(&(struct weft_id_short){.high = weft_span_end(&walk->after)});
    in->scan = weft_list_next_rows(&walk->look, 2 * walk->limit + WALK_FIRST);
    in->limit = walk->limit - (uint32_t)page->count;
    struct weft_rows rows = {0};
    enum weft_rc rc = weft_read_chunk(walk->engine, &walk->call, walk->arena, &rows, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < rows.count; i++)
        if (weft_out_list(&rows)[i].execution.id.set)
            page->item[page->count++] = weft_read_execution(walk->engine, &rows, i, walk->arena);
    advance(walk, &rows);
    return WEFT_OK;
}

/* Reads engine->unspanned: once, or for each list while there is one namespace in SQLite. */
static enum weft_rc load_unspanned(struct walk *walk, struct weft_err *err)
{
    struct weft_unspanned *gap = &walk->engine->unspanned;
    struct weft_call call;
    struct weft_rows rows;
    if (atomic_load(&gap->known))
        return WEFT_OK;
    weft_call_unspanned(&call, walk->arena);
    enum weft_rc rc = weft_tx_once(walk->engine, WEFT_TX_READ, &call, walk->arena, &rows, err);
    if (rc)
        return rc;
    const struct weft_unspanned_out *row = weft_out_unspanned(&rows);
    bool all = rows.count > 0 && !row->until.set;
    if (rows.count > 0 && !all) {
        atomic_store(&gap->since_us, row->since.value);
        atomic_store(&gap->until_us, row->until.value);
    }
    atomic_store(&gap->all, all);
    atomic_store(&gap->known, !all);
    return WEFT_OK;
}

/* A list of the living walks the spans where there are too many of them to read and sort. */
static enum weft_rc choose_source(struct walk *walk, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    enum weft_rc rc = load_unspanned(walk, err);
    walk->source = source_of(walk->listing);
    if (rc || walk->source != SOURCE_LIVING)
        return rc;
    *weft_call_list_living(&call, walk->arena) =
        (struct weft_list_living_in){.namespace = walk->filter.ns,
                                     .state = weft_unless_zero(walk->listing->filter.state),
                                     .most = LIVING_FEW};
    rc = weft_tx_once(walk->engine, WEFT_TX_READ, &call, walk->arena, &rows, err);
    if (!rc && !weft_out_list_living(&rows)->few)
        walk->source = SOURCE_SPANS;
    return rc;
}

/* The walk from `after` on, until the page is full, the list at its end, or the time up. */
static enum weft_rc fill_page(struct walk *walk, struct weft_err *err)
{
    enum weft_rc rc = choose_source(walk, err);
    if (weft_id_cmp(&walk->filter.ceiling, &walk->after) < 0)
        walk->after = walk->filter.ceiling;
    list_call(&walk->call, walk->arena, walk->listing, &walk->filter);
    while (!rc && !walk->at_end && weft_list_goes_on(&walk->look, walk->page.count, walk->limit))
        rc = walk_on(walk, err);
    return rc;
}

enum weft_rc weft_engine_list(struct weft_engine *engine, const struct weft_listing *listing,
                              struct weft_arena *arena, struct weft_read_page *ret_page,
                              struct weft_err *err)
{
    uint32_t limit = listing->limit ? listing->limit : WEFT_PAGE_DEFAULT;
    struct walk walk = {.engine = engine,
                        .listing = listing,
                        .arena = arena,
                        .limit = limit,
                        .look = {.began_us = weft_boot_us(),
                                 .allowed_us = listing->look_us ? listing->look_us : WEFT_LOOK_US},
                        .after = WEFT_ID_LAST};
    const struct weft_cursor_list cursors = cursor_list(listing, arena);
    enum weft_rc rc = resolve_filter(engine, &listing->filter, arena, &walk.filter, err);
    if (!rc)
        rc = weft_cursor_read_id(&cursors, listing->after, &walk.after, err);
    if (!rc)
        rc = weft_page_limit(listing->limit, err);
    if (!rc && !walk.filter.nothing && listing->filter.key)
        rc = resolve_key(&walk, err);
    if (rc)
        return rc;
    struct weft_read_page *page = &walk.page;
    page->item = weft_new_array(arena, struct weft_execution, limit + 1);
    walk.at_end = walk.filter.nothing;
    if (!walk.at_end)
        rc = fill_page(&walk, err);
    if (!rc)
        rc = weft_read_details(engine, page->item, page->count, arena, err);
    if (rc)
        return rc;
    /* A full page goes on after its last row, a short one after the last that was looked at. */
    bool full = page->count == limit;
    if (!listing->filter.key && (!walk.at_end || full))
        page->next =
            weft_cursor_write_id(&cursors, full ? &page->item[limit - 1].id : &walk.after, arena);
    if (page->next && !full)
        page->looked_to_us = weft_id_time(&walk.after);
    *ret_page = *page;
    return WEFT_OK;
}
