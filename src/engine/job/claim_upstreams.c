/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The names of claimed members of flows, and the states and results of their upstreams. Only calls
 * that claimed a member read them, after the claim was committed. A replay may change an upstream
 * in between: the claimer gets the upstream as it is when it is read.
 */

#include "engine/job/claim_state.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"

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
    bool wanted;       /* the items that are apart, or the others */
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

/* The rows come in the order of the items: the upstreams of each are one stretch of the array. */
static enum weft_rc give_upstreams(struct weft_engine *engine, const struct members *members,
                                   struct weft_err *err)
{
    struct weft_rows rows = {0};
    enum weft_rc rc = read_upstreams(engine, members, &rows, err);
    struct weft_upstream *upstream =
        weft_new_array(members->arena, struct weft_upstream, rows.count + 1);
    size_t at = 0;
    for (size_t i = 0; i < rows.count && !rc; i++) {
        const struct weft_upstream_results_out *row = &weft_out_upstream_results(&rows)[i];
        while (at < members->count && weft_id_cmp(&members->item[at].id, &row->id) != 0)
            at++;
        if (at == members->count)
            return weft_fail(err, WEFT_CORRUPT, "the upstreams of a claim came out of order");
        struct weft_claimed *item = &members->item[at];
        item->node = row->node;
        if (!row->upstream.set)
            continue;
        upstream[i] = (struct weft_upstream){
            .node = row->name,
            .id = row->upstream.value,
            .state = row->state,
            .content_type = row->content_type,
            .result = row->result.data,
            .result_size = row->result.size,
            .too_large = !row->result.data && row->size.set,
        };
        if (item->upstream_count++ == 0)
            item->upstream = &upstream[i];
    }
    return rc;
}

/*
 * The upstreams of some members could not be read. A member must not run as if it came after
 * nothing: it is taken out, and its lease runs out. The other items are given, or their leases
 * would run out as well. Returns how many items are left.
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
    enum weft_rc rc = any ? give_upstreams(engine, &members, err) : WEFT_OK;
    if (!rc)
        return WEFT_OK;
    all->items = drop_members(&members, all->apart);
    return all->items > 0 ? WEFT_OK : rc;
}

/* The members of a result whose upstreams are read apart. */
static struct members members_apart(const struct weft_claim_result *result,
                                    struct weft_arena *arena)
{
    return (struct members){.item = result->item,
                            .count = result->count,
                            .apart = result->apart,
                            .wanted = true,
                            .bytes = result->bytes,
                            .arena = arena};
}

enum weft_rc weft_engine_claim_rest(struct weft_engine *engine, struct weft_claim_result *result,
                                    struct weft_arena *arena, struct weft_err *err)
{
    const struct members members = members_apart(result, arena);
    return give_upstreams(engine, &members, err);
}

enum weft_rc weft_claim_all_upstreams(struct weft_engine *engine, struct weft_claim_result *result,
                                      struct weft_arena *arena, struct weft_err *err)
{
    const struct members members = members_apart(result, arena);
    enum weft_rc rc = give_upstreams(engine, &members, err);
    if (!rc)
        return WEFT_OK;
    result->count = drop_members(&members, NULL);
    return result->count > 0 ? WEFT_OK : rc;
}
