/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The calls of weft.h that read, and those about lanes, workers and upkeep. Each answer has an
 * arena of its own, made here and freed with the answer; names in it may belong to the engine,
 * which is why answers must go before the handle does.
 */

#include "client/client.h"

#include "base/arena.h"
#include "core/spec.h"

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
    const struct weft_via via = {.weft = weft};
    if (count)
        rc = weft->backend->describe(&via, id, count, arena, item, &story);
    if (rc)
        weft_arena_free(arena);
    else
        *ret_page = (struct weft_page){.item = item, .count = count, .arena = arena};
    return weft_told(rc, &story, err);
}

enum weft_rc weft_wait(struct weft *weft, const struct weft_id *id, int64_t wait_ms,
                       struct weft_page *ret_page, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, id, 1, ret_page};
    const struct weft_range range = {
        .field = "wait_ms", .value = wait_ms, .max = WEFT_CLIENT_WAIT_MAX_MS};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (!rc)
        rc = weft_check_range(&range, &story);
    if (rc)
        return weft_told(rc, &story, err);
    struct weft_arena *arena = weft_arena_new();
    struct weft_execution *item = weft_new(arena, struct weft_execution);
    const struct weft_via via = {.weft = weft};
    rc = weft->backend->wait(&via, id, wait_ms, arena, item, &story);
    if (rc)
        weft_arena_free(arena);
    else
        *ret_page = (struct weft_page){.item = item, .count = 1, .arena = arena};
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
    const struct weft_via via = {.weft = weft};
    rc = weft->backend->list(&via, &listing, arena, &page, &story);
    if (rc)
        weft_arena_free(arena);
    else
        *ret_page = (struct weft_page){.item = page.item,
                                       .count = page.count,
                                       .next = page.next,
                                       .arena = arena,
                                       .looked_to_us = page.looked_to_us};
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
    const struct weft_via via = {.weft = weft};
    rc = weft->backend->attempts(&via, id, arena, ret_attempts, &story);
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

static enum weft_rc read_bytes(struct weft *weft, const struct weft_id *id,
                               enum weft_bytes_kind kind, struct weft_bytes *ret_bytes,
                               struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, id, 1, ret_bytes};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (rc)
        return weft_told(rc, &story, err);
    struct weft_arena *arena = weft_arena_new();
    const struct weft_via via = {.weft = weft};
    rc = weft->backend->bytes(&via, kind, id, arena, ret_bytes, &story);
    if (rc)
        weft_arena_free(arena);
    else
        ret_bytes->arena = arena;
    return weft_told(rc, &story, err);
}

enum weft_rc weft_result(struct weft *weft, const struct weft_id *id, struct weft_bytes *ret_bytes,
                         struct weft_err *err)
{
    return read_bytes(weft, id, WEFT_BYTES_RESULT, ret_bytes, err);
}

enum weft_rc weft_payload(struct weft *weft, const struct weft_id *id, struct weft_bytes *ret_bytes,
                          struct weft_err *err)
{
    return read_bytes(weft, id, WEFT_BYTES_PAYLOAD, ret_bytes, err);
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
    const struct weft_via via = {.weft = weft};
    rc = weft->backend->counts(&via, lane, arena, ret_counts, &story);
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

/* ---- Lanes, workers, replicas ---------------------------------------------------------------- */

enum weft_rc weft_lane_put(struct weft *weft, const struct weft_lane *lane, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, lane, 1, lane};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (!rc)
        rc = weft_check_array(lane->weights, lane->weight_count, "weights", 0, &story);
    if (!rc)
        rc = weft->backend->lane_put(&(struct weft_via){.weft = weft}, lane, &story);
    return weft_told(rc, &story, err);
}

enum weft_rc weft_lane_remove(struct weft *weft, const char *lane, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, weft, 1, weft};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (!rc)
        rc = weft_name_check(lane, "lane", &story);
    if (!rc)
        rc = weft->backend->lane_remove(&(struct weft_via){.weft = weft}, lane, &story);
    return weft_told(rc, &story, err);
}

enum weft_rc weft_lanes(struct weft *weft, struct weft_lanes *ret_lanes, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, weft, 1, ret_lanes};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (rc)
        return weft_told(rc, &story, err);
    struct weft_arena *arena = weft_arena_new();
    const struct weft_via via = {.weft = weft};
    rc = weft->backend->lanes(&via, arena, ret_lanes, &story);
    if (rc)
        weft_arena_free(arena);
    else
        ret_lanes->arena = arena;
    return weft_told(rc, &story, err);
}

void weft_lanes_free(struct weft_lanes *lanes)
{
    if (!lanes)
        return;
    weft_arena_free(lanes->arena);
    *lanes = (struct weft_lanes){0};
}

enum weft_rc weft_workers(struct weft *weft, struct weft_workers *ret_workers, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, weft, 1, ret_workers};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (rc)
        return weft_told(rc, &story, err);
    struct weft_arena *arena = weft_arena_new();
    const struct weft_via via = {.weft = weft};
    rc = weft->backend->workers(&via, arena, ret_workers, &story);
    if (rc)
        weft_arena_free(arena);
    else
        ret_workers->arena = arena;
    return weft_told(rc, &story, err);
}

void weft_workers_free(struct weft_workers *workers)
{
    if (!workers)
        return;
    weft_arena_free(workers->arena);
    *workers = (struct weft_workers){0};
}

enum weft_rc weft_goodbye(struct weft *weft, const char *worker, uint64_t *ret_released,
                          struct weft_err *err)
{
    struct weft_err story = {0};
    uint64_t released = 0;
    const struct weft_given given = {weft, weft, 1, weft};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (!rc)
        rc = weft_name_check(worker, "worker", &story);
    if (!rc)
        rc = weft->backend->goodbye(&(struct weft_via){.weft = weft}, worker, &released, &story);
    if (!rc && ret_released)
        *ret_released = released;
    return weft_told(rc, &story, err);
}

enum weft_rc weft_run_pass(struct weft *weft, enum weft_scanner pass, uint32_t batch,
                           struct weft_pass_report *ret_report, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, weft, 1, ret_report};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (!rc)
        rc = weft->backend->run_pass(&(struct weft_via){.weft = weft}, pass, batch, ret_report,
                                     &story);
    return weft_told(rc, &story, err);
}

enum weft_rc weft_replicas(struct weft *weft, struct weft_replicas *ret_replicas,
                           struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, weft, 1, ret_replicas};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (rc)
        return weft_told(rc, &story, err);
    struct weft_arena *arena = weft_arena_new();
    const struct weft_via via = {.weft = weft};
    rc = weft->backend->replicas(&via, arena, ret_replicas, &story);
    if (rc)
        weft_arena_free(arena);
    else
        ret_replicas->arena = arena;
    return weft_told(rc, &story, err);
}

void weft_replicas_free(struct weft_replicas *replicas)
{
    if (!replicas)
        return;
    weft_arena_free(replicas->arena);
    *replicas = (struct weft_replicas){0};
}

enum weft_rc weft_scanners(struct weft *weft, struct weft_scanners *ret_scanners,
                           struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, weft, 1, ret_scanners};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (rc)
        return weft_told(rc, &story, err);
    struct weft_arena *arena = weft_arena_new();
    const struct weft_via via = {.weft = weft};
    rc = weft->backend->scanners(&via, arena, ret_scanners, &story);
    if (rc)
        weft_arena_free(arena);
    else
        ret_scanners->arena = arena;
    return weft_told(rc, &story, err);
}

void weft_scanners_free(struct weft_scanners *scanners)
{
    if (!scanners)
        return;
    weft_arena_free(scanners->arena);
    *scanners = (struct weft_scanners){0};
}
