/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What members of flows get along with a claim: their names, and what their upstreams came to. Read
 * after the claim was committed, by nobody but those who claimed a member.
 *
 * An upstream may change in between, by a replay: then it is told as it is when it is read, as it
 * would be to a reader that came a little later.
 */

#include "engine/claim.h"

#include "base/id.h"

#include <string.h>

enum { RESULT_INLINE = 64 << 10 }; /* bytes of a result that comes along */

static enum weft_rc read_upstreams(struct weft_engine *engine, const struct weft_claiming *all,
                                   struct weft_rows *ret_rows, struct weft_err *err)
{
    size_t count = 0;
    struct weft_call call;
    weft_call_init(&call, all->out, WEFT_STMT_UPSTREAM_RESULTS, all->items);
    for (size_t i = 0; i < all->items; i++)
        if (!weft_id_is_zero(&all->item[i].flow))
            weft_set_id(&call, count++, UPSTREAM_RESULTS_IN_ID, &all->item[i].id);
    call.rows = count;
    size_t left = all->bytes < WEFT_BATCH_BYTES ? WEFT_BATCH_BYTES - all->bytes : 0;
    weft_set_i64(&call, 0, UPSTREAM_RESULTS_IN_EACH, RESULT_INLINE);
    weft_set_i64(&call, 0, UPSTREAM_RESULTS_IN_TOTAL, (int64_t)left);
    return weft_tx_once(engine, WEFT_TX_READ, &call, all->out, ret_rows, err);
}

static struct weft_upstream read_upstream(const struct weft_rows *rows, size_t i)
{
    const struct weft_cell *result = weft_get(rows, i, UPSTREAM_RESULTS_OUT_RESULT);
    return (struct weft_upstream){
        .node = weft_get_text(rows, i, UPSTREAM_RESULTS_OUT_NAME),
        .id = weft_get_id(rows, i, UPSTREAM_RESULTS_OUT_UPSTREAM),
        .state = (enum weft_state)weft_get_i64(rows, i, UPSTREAM_RESULTS_OUT_STATE),
        .content_type = weft_get_text(rows, i, UPSTREAM_RESULTS_OUT_CONTENT_TYPE),
        .result = result->null ? NULL : result->data,
        .result_size = result->null ? 0 : result->size,
        .too_large = result->null && !weft_get(rows, i, UPSTREAM_RESULTS_OUT_SIZE)->null,
    };
}

/* The rows come in the order of the items: the upstreams of each are one stretch of the array. */
static enum weft_rc give_upstreams(struct weft_claiming *all, const struct weft_rows *rows,
                                   struct weft_err *err)
{
    struct weft_upstream *upstream =
        weft_new_array(all->out, struct weft_upstream, rows->count + 1);
    size_t at = 0;
    for (size_t i = 0; i < rows->count; i++) {
        struct weft_id id = weft_get_id(rows, i, UPSTREAM_RESULTS_OUT_ID);
        while (at < all->items && weft_id_cmp(&all->item[at].id, &id) != 0)
            at++;
        if (at == all->items)
            return weft_fail(err, WEFT_CORRUPT, "the upstreams of a claim came out of order");
        struct weft_claimed *item = &all->item[at];
        item->node = weft_get_text(rows, i, UPSTREAM_RESULTS_OUT_NODE);
        if (weft_get(rows, i, UPSTREAM_RESULTS_OUT_UPSTREAM)->null)
            continue;
        upstream[i] = read_upstream(rows, i);
        if (item->upstream_count++ == 0)
            item->upstream = &upstream[i];
    }
    return WEFT_OK;
}

/* Keeps the items that are no members of flows; returns how many. */
static size_t drop_members(struct weft_claiming *all)
{
    size_t kept = 0;
    for (size_t i = 0; i < all->items; i++)
        if (weft_id_is_zero(&all->item[i].flow))
            all->item[kept++] = all->item[i];
    return kept;
}

enum weft_rc weft_claim_upstreams(struct weft_engine *engine, struct weft_claiming *all,
                                  struct weft_err *err)
{
    struct weft_rows rows;
    if (all->members == 0)
        return WEFT_OK;
    enum weft_rc rc = read_upstreams(engine, all, &rows, err);
    if (!rc)
        rc = give_upstreams(all, &rows, err);
    if (!rc)
        return WEFT_OK;
    /*
     * A member must not run as if it came after nothing: nobody gets it, and its lease runs out.
     * What else was claimed is given, or its leases would run out as well.
     */
    all->items = drop_members(all);
    return all->items > 0 ? WEFT_OK : rc;
}
