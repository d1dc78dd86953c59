/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What members of flows get along with a claim: their names, and what their upstreams came to. Read
 * after the claim was committed, by nobody but those who claimed a member.
 *
 * An upstream may change in between, by a replay: then it is told as it is when it is read, as it
 * would be to a reader that came a little later.
 */

#include "engine/job/claim_upstreams.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "engine/job/claim.h"
#include "engine/job/claim_state.h"
#include "engine/tx/tx.h"
#include "store/store.h"
#include "weft/weft.h"

#include <string.h>

enum {
    RESULT_INLINE = 64 << 10, /* bytes of a result that comes along */
    /*
     * Upstreams that the claims of a call read along, which takes some milliseconds. The others are
     * left to weft_engine_claim_rest(), so that no claim waits for the many upstreams of another.
     */
    FAN_IN_ALONG = 4000,
};

void weft_claim_add_member(struct weft_claiming *all, size_t bytes)
{
    size_t last = all->items - 1, payload = all->item[last].payload_size;
    size_t upstreams = bytes > payload ? (bytes - payload) / WEFT_UPSTREAM_BYTES : 0;
    all->members++;
    if (all->fan_in + upstreams <= FAN_IN_ALONG) {
        all->fan_in += upstreams;
        return;
    }
    if (!all->apart)
        all->apart = weft_new_array(all->out, bool, all->items_max + 1);
    all->apart[last] = true;
}

/* The members of a claim whose upstreams are read at once. */
struct members {
    struct weft_claimed *item;
    size_t count;
    const bool *apart; /* NULL: no item is */
    bool wanted;       /* those that are apart, or the others */
    size_t bytes;      /* that the items carry besides results */
    struct weft_arena *arena;
};

static bool is_wanted(const struct members *members, size_t i)
{
    return !weft_id_is_zero(&members->item[i].flow) &&
           (members->apart && members->apart[i]) == members->wanted;
}

static enum weft_rc read_upstreams(struct weft_engine *engine, const struct members *members,
                                   struct weft_rows *ret_rows, struct weft_err *err)
{
    size_t count = 0;
    struct weft_call call;
    struct weft_upstream_results_in *in =
        weft_call_upstream_results(&call, members->arena, members->count);
    for (size_t i = 0; i < members->count; i++)
        if (is_wanted(members, i))
            in->row[count++].id = members->item[i].id;
    call.rows = count;
    size_t left = members->bytes < WEFT_BATCH_BYTES ? WEFT_BATCH_BYTES - members->bytes : 0;
    in->each = RESULT_INLINE;
    in->total = (int64_t)left;
    return weft_tx_once(engine, WEFT_TX_READ, &call, members->arena, ret_rows, err);
}

static struct weft_upstream read_upstream(const struct weft_rows *rows, size_t i)
{
    const struct weft_upstream_results_out *row = &weft_out_upstream_results(rows)[i];
    return (struct weft_upstream){
        .node = row->name,
        .id = row->upstream.value,
        .state = row->state,
        .content_type = row->content_type,
        .result = row->result.data,
        .result_size = row->result.size,
        .too_large = !row->result.data && row->size.set,
    };
}

/* The rows come in the order of the items: the upstreams of each are one stretch of the array. */
static enum weft_rc give_upstreams(const struct members *members, const struct weft_rows *rows,
                                   struct weft_err *err)
{
    struct weft_upstream *upstream =
        weft_new_array(members->arena, struct weft_upstream, rows->count + 1);
    size_t at = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_upstream_results_out *row = &weft_out_upstream_results(rows)[i];
        while (at < members->count && weft_id_cmp(&members->item[at].id, &row->id) != 0)
            at++;
        if (at == members->count)
            return weft_fail(err, WEFT_CORRUPT, "the upstreams of a claim came out of order");
        struct weft_claimed *item = &members->item[at];
        item->node = row->node;
        if (!row->upstream.set)
            continue;
        upstream[i] = read_upstream(rows, i);
        if (item->upstream_count++ == 0)
            item->upstream = &upstream[i];
    }
    return WEFT_OK;
}

static enum weft_rc give_members(struct weft_engine *engine, const struct members *members,
                                 struct weft_err *err)
{
    struct weft_rows rows;
    enum weft_rc rc = read_upstreams(engine, members, &rows, err);
    return rc ? rc : give_upstreams(members, &rows, err);
}

/*
 * The upstreams of some members could not be read. A member must not run as if it came after
 * nothing: it is taken out, and its lease runs out. What else was claimed is given, or its leases
 * would run out as well. Says how many items are left.
 */
static size_t drop_members(const struct members *members, bool *apart)
{
    size_t kept = 0;
    for (size_t i = 0; i < members->count; i++) {
        if (is_wanted(members, i))
            continue;
        members->item[kept] = members->item[i];
        if (apart)
            apart[kept] = apart[i];
        kept++;
    }
    return kept;
}

enum weft_rc weft_claim_upstreams(struct weft_engine *engine, struct weft_claiming *all,
                                  struct weft_err *err)
{
    const struct members members = {.item = all->item,
                                    .count = all->items,
                                    .apart = all->apart,
                                    .bytes = all->bytes,
                                    .arena = all->out};
    bool any = false;
    for (size_t i = 0; i < all->items && all->members > 0 && !any; i++)
        any = is_wanted(&members, i);
    enum weft_rc rc = any ? give_members(engine, &members, err) : WEFT_OK;
    if (!rc)
        return WEFT_OK;
    all->items = drop_members(&members, all->apart);
    return all->items > 0 ? WEFT_OK : rc;
}

enum weft_rc weft_engine_claim_rest(struct weft_engine *engine, struct weft_claim_result *result,
                                    struct weft_arena *arena, struct weft_err *err)
{
    const struct members members = {.item = result->item,
                                    .count = result->count,
                                    .apart = result->apart,
                                    .wanted = true,
                                    .bytes = result->bytes,
                                    .arena = arena};
    return give_members(engine, &members, err);
}

enum weft_rc weft_claim_all_upstreams(struct weft_engine *engine, struct weft_claim_result *result,
                                      struct weft_arena *arena, struct weft_err *err)
{
    enum weft_rc rc = weft_engine_claim_rest(engine, result, arena, err);
    if (!rc)
        return WEFT_OK;
    const struct members members = {
        .item = result->item, .count = result->count, .apart = result->apart, .wanted = true};
    result->count = drop_members(&members, NULL);
    return result->count > 0 ? WEFT_OK : rc;
}
