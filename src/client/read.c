/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The calls of weft.h that read. Each answer has an arena of its own, made here and freed with the
 * answer; names in it belong to the engine, which is why answers must go before the handle does.
 */

#include "client/client.h"

#include "base/arena.h"

/* ---- Reading --------------------------------------------------------------------------------- */

enum weft_rc weft_describe(struct weft *weft, const struct weft_id *id, size_t count,
                           struct weft_page *ret_page, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, id, count, ret_page};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (rc)
        return weft_told(rc, &story, err);
    if (!ret_page)
        return weft_missing("ret_page", err);
    struct weft_arena *arena = weft_arena_new();
    struct weft_execution *item = weft_new_array(arena, struct weft_execution, count + 1);
    if (count)
        rc = weft_engine_describe(weft->engine, weft->ns, id, count, arena, item, &story);
    if (rc)
        weft_arena_free(arena);
    else
        *ret_page = (struct weft_page){.item = item, .count = count, .arena = arena};
    return weft_told(rc, &story, err);
}

enum weft_rc weft_list(struct weft *weft, const struct weft_filter *filter, uint32_t limit,
                       const char *after, struct weft_page *ret_page, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, weft, 1, ret_page};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (rc)
        return weft_told(rc, &story, err);
    struct weft_arena *arena = weft_arena_new();
    struct weft_listing listing = {.limit = limit, .after = after};
    if (filter)
        listing.filter = *filter;
    if (!listing.filter.ns)
        listing.filter.ns = weft->ns;
    struct weft_read_page page;
    rc = weft_engine_list(weft->engine, &listing, arena, &page, &story);
    if (rc)
        weft_arena_free(arena);
    else
        *ret_page = (struct weft_page){
            .item = page.item, .count = page.count, .next = page.next, .arena = arena};
    return weft_told(rc, &story, err);
}

void weft_page_free(struct weft_page *page)
{
    if (!page)
        return;
    weft_arena_free(page->arena);
    *page = (struct weft_page){0};
}

enum weft_rc weft_attempts(struct weft *weft, const struct weft_id *id,
                           struct weft_attempts *ret_attempts, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, id, 1, ret_attempts};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (rc)
        return weft_told(rc, &story, err);
    struct weft_arena *arena = weft_arena_new();
    rc = weft_engine_attempts(weft->engine, weft->ns, id, arena, ret_attempts, &story);
    if (rc)
        weft_arena_free(arena);
    else
        ret_attempts->arena = arena;
    return weft_told(rc, &story, err);
}

void weft_attempts_free(struct weft_attempts *attempts)
{
    if (!attempts)
        return;
    weft_arena_free(attempts->arena);
    *attempts = (struct weft_attempts){0};
}

static enum weft_rc read_bytes(const struct weft_given *given, enum weft_bytes_kind kind,
                               struct weft_bytes *ret_bytes, struct weft_err *err)
{
    struct weft_err story = {0};
    enum weft_rc rc = weft_check_given(given, &story);
    if (rc)
        return weft_told(rc, &story, err);
    struct weft_arena *arena = weft_arena_new();
    const struct weft_id *id = given->in;
    const struct weft_bytes_of of = {.kind = kind, .ns = given->weft->ns, .id = *id};
    rc = weft_engine_bytes(given->weft->engine, &of, arena, ret_bytes, &story);
    if (rc)
        weft_arena_free(arena);
    else
        ret_bytes->arena = arena;
    return weft_told(rc, &story, err);
}

enum weft_rc weft_result(struct weft *weft, const struct weft_id *id, struct weft_bytes *ret_bytes,
                         struct weft_err *err)
{
    const struct weft_given given = {weft, id, 1, ret_bytes};
    return read_bytes(&given, WEFT_BYTES_RESULT, ret_bytes, err);
}

enum weft_rc weft_payload(struct weft *weft, const struct weft_id *id, struct weft_bytes *ret_bytes,
                          struct weft_err *err)
{
    const struct weft_given given = {weft, id, 1, ret_bytes};
    return read_bytes(&given, WEFT_BYTES_PAYLOAD, ret_bytes, err);
}

void weft_bytes_free(struct weft_bytes *bytes)
{
    if (!bytes)
        return;
    weft_arena_free(bytes->arena);
    *bytes = (struct weft_bytes){0};
}

enum weft_rc weft_counts(struct weft *weft, const char *lane, struct weft_counts *ret_counts,
                         struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, weft, 1, ret_counts};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (rc)
        return weft_told(rc, &story, err);
    struct weft_arena *arena = weft_arena_new();
    rc = weft_engine_counts(weft->engine, weft->ns, lane, arena, ret_counts, &story);
    if (rc)
        weft_arena_free(arena);
    else
        ret_counts->arena = arena;
    return weft_told(rc, &story, err);
}

void weft_counts_free(struct weft_counts *counts)
{
    if (!counts)
        return;
    weft_arena_free(counts->arena);
    *counts = (struct weft_counts){0};
}
