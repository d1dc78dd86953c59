/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Verification of an erasure: looks for its subject again, which it knows only by the hash of the
 * receipt, in everything that names a tenant or has tags. What was removed may also come back
 * without its execution, that is without anything that says whose it is; but then it refers to
 * nothing, or is in no sum, which the invariants of the store find.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "core/receipt.h"
#include "core/spec.h"
#include "core/stored.h"
#include "engine/admin/doctor.h"
#include "engine/admin/lanes.h"
#include "engine/engine_state.h"
#include "engine/erase/erase.h"

#include <string.h>

enum { TENANTS = 10000, LOOK = 10000 };

struct verification {
    struct weft_engine *engine;
    struct weft_arena *arena;
    const struct weft_erasure_read_out *row;
    uint64_t found;
};

static bool is_subject(const struct verification *verification, const char *text)
{
    char hash[WEFT_RECEIPT_HASH];
    weft_receipt_hash(verification->row->secret.data, text, hash);
    return strcmp(hash, verification->row->hash) == 0;
}

/* Executions in queues of a tenant with this name. The name itself counts where nothing that came
 * after the request uses it. */
static enum weft_rc look_for_tenant(struct verification *verification, int32_t tenant, bool named,
                                    struct weft_err *err)
{
    struct weft_erase_walk_in in = {.namespace = verification->row->namespace,
                                    .tenant = tenant,
                                    .horizon = verification->row->asked,
                                    .most = LOOK};
    uint64_t before = 0, later = 0;
    enum weft_rc rc = WEFT_OK;
    for (bool more = true; more && !rc;) {
        struct weft_arena *arena = weft_arena_new();
        struct weft_call call;
        struct weft_rows rows = {0};
        *weft_call_erase_walk(&call, arena) = in;
        rc = weft_tx_once(verification->engine, WEFT_TX_READ, &call, arena, &rows, err);
        const struct weft_erase_walk_out *row = weft_out_erase_walk(&rows);
        more = !rc && row[0].last.set;
        for (size_t i = 0; i < rows.count && !rc; i++) {
            later += row[i].id.set && row[i].later.value;
            before += row[i].id.set && !row[i].later.value;
        }
        if (more)
            in.after = row[0].last.value;
        weft_arena_free(arena);
    }
    verification->found += before + (named && before + later == 0);
    return rc;
}

static enum weft_rc verify_tenant(struct verification *verification, struct weft_err *err)
{
    const char *instead = weft_erase_instead(&verification->row->id, verification->arena);
    int32_t after = 0;
    enum weft_rc rc = WEFT_OK;
    for (bool more = true; more && !rc;) {
        struct weft_call call;
        struct weft_rows rows = {0};
        *weft_call_erase_tenants(&call, verification->arena) = (struct weft_erase_tenants_in){
            .namespace = verification->row->namespace, .after = after, .most = TENANTS};
        rc = weft_tx_once(verification->engine, WEFT_TX_READ, &call, verification->arena, &rows,
                          err);
        const struct weft_erase_tenants_out *row = weft_out_erase_tenants(&rows);
        for (size_t i = 0; i < rows.count && !rc; i++) {
            after = row[i].id;
            bool named = is_subject(verification, row[i].text);
            if (named || strcmp(row[i].text, instead) == 0)
                rc = look_for_tenant(verification, row[i].id, named, err);
        }
        more = rows.count == TENANTS;
    }
    return rc;
}

static bool has_subject(const struct verification *verification, const char *tags,
                        struct weft_arena *arena)
{
    size_t count = 0;
    const struct weft_tag *tag = tags ? weft_tags_parse(tags, arena, &count) : NULL;
    for (size_t i = 0; i < count; i++)
        if (is_subject(verification, weft_arena_printf(arena, "%s:%s", tag[i].key, tag[i].value)))
            return true;
    return false;
}

static enum weft_rc verify_tag(struct verification *verification, struct weft_err *err)
{
    struct weft_erase_tags_in in = {.most = LOOK / 10};
    enum weft_rc rc = WEFT_OK;
    for (bool more = true; more && !rc;) {
        struct weft_arena *arena = weft_arena_new();
        struct weft_call call;
        struct weft_rows rows = {0};
        *weft_call_erase_tags(&call, arena) = in;
        rc = weft_tx_once(verification->engine, WEFT_TX_READ, &call, arena, &rows, err);
        const struct weft_erase_tags_out *row = weft_out_erase_tags(&rows);
        for (size_t i = 0; i < rows.count && !rc; i++) {
            in.after = row[i].id;
            verification->found += row[i].namespace == verification->row->namespace &&
                                   row[i].created <= verification->row->asked &&
                                   has_subject(verification, row[i].tags, arena);
        }
        more = rows.count > 0;
        weft_arena_free(arena);
    }
    return rc;
}

/* ---- Verifying batches ----------------------------------------------------------------------- */

static bool is_pair(void *context, const char *key, const char *value)
{
    const struct verification *verification = context;
    if (verification->row->sort == WEFT_ERASURE_TENANT)
        return strcmp(key, WEFT_ERASE_TENANT_PAIR) == 0 && is_subject(verification, value);
    return is_subject(verification, weft_arena_printf(verification->arena, "%s:%s", key, value));
}

static enum weft_rc verify_batches(struct verification *verification, struct weft_err *err)
{
    struct weft_erase_batches_in in = {.namespace = verification->row->namespace,
                                       .most = LOOK / 10};
    enum weft_rc rc = WEFT_OK;
    for (bool more = true; more && !rc;) {
        struct weft_arena *arena = weft_arena_new();
        struct weft_call call;
        struct weft_rows rows = {0};
        *weft_call_erase_batches(&call, arena) = in;
        rc = weft_tx_once(verification->engine, WEFT_TX_READ, &call, arena, &rows, err);
        const struct weft_erase_batches_out *row = weft_out_erase_batches(&rows);
        for (size_t i = 0; i < rows.count && !rc; i++) {
            in.after = row[i].id;
            verification->found += row[i].created <= verification->row->asked &&
                                   weft_erase_pairs(row[i].metadata, arena, is_pair, verification);
        }
        more = rows.count > 0;
        weft_arena_free(arena);
    }
    return rc;
}

/* ---- Submissions by SQL, settings, broken rows ----------------------------------------------- */

static enum weft_rc verify_inbox(struct verification *verification, const char *ns,
                                 struct weft_err *err)
{
    struct weft_erase_inbox_in in = {
        .namespace = ns, .until = weft_erase_horizon(verification->row->asked), .most = LOOK / 10};
    enum weft_rc rc = WEFT_OK;
    if (verification->engine->pool.writers == 1) /* SQLite has no inbox */
        return WEFT_OK;
    for (bool more = true; more && !rc;) {
        struct weft_arena *arena = weft_arena_new();
        struct weft_call call;
        struct weft_rows rows = {0};
        *weft_call_erase_inbox(&call, arena) = in;
        rc = weft_tx_once(verification->engine, WEFT_TX_READ, &call, arena, &rows, err);
        const struct weft_erase_inbox_out *row = weft_out_erase_inbox(&rows);
        for (size_t i = 0; i < rows.count && !rc; i++) {
            in.after = row[i].id;
            verification->found += (row[i].tenant && is_subject(verification, row[i].tenant)) ||
                                   weft_erase_pairs(row[i].tags, arena, is_pair, verification);
        }
        more = rows.count > 0;
        weft_arena_free(arena);
    }
    return rc;
}

static enum weft_rc verify_settings(struct verification *verification, const char *ns,
                                    struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_lanes lanes = {0};
    weft_call_erase_budget_tenants(&call, verification->arena)->namespace =
        verification->row->namespace;
    enum weft_rc rc =
        weft_tx_once(verification->engine, WEFT_TX_READ, &call, verification->arena, &rows, err);
    for (size_t i = 0; i < rows.count && !rc; i++)
        verification->found +=
            is_subject(verification, weft_out_erase_budget_tenants(&rows)[i].tenant);
    if (!rc)
        rc = weft_engine_lanes(verification->engine, ns, verification->arena, &lanes, err);
    for (size_t i = 0; i < lanes.count && !rc; i++)
        for (size_t w = 0; w < lanes.item[i].weight_count; w++)
            verification->found += is_subject(verification, lanes.item[i].weights[w].tenant);
    return rc;
}

static enum weft_rc verify_broken(struct verification *verification, struct weft_err *err)
{
    struct weft_broken broken;
    enum weft_rc rc = weft_engine_broken(verification->engine, verification->arena, &broken, err);
    verification->found += rc ? 0 : broken.count;
    return rc;
}

static enum weft_rc verify_all(struct verification *verification, const char *ns,
                               struct weft_err *err)
{
    bool tenant = verification->row->sort == WEFT_ERASURE_TENANT;
    enum weft_rc rc = tenant ? verify_tenant(verification, err) : verify_tag(verification, err);
    if (!rc)
        rc = verify_batches(verification, err);
    if (!rc)
        rc = verify_inbox(verification, ns, err);
    if (!rc && tenant)
        rc = verify_settings(verification, ns, err);
    return rc ? rc : verify_broken(verification, err);
}

enum weft_rc weft_engine_erasure_verify(struct weft_engine *engine,
                                        const struct weft_erasure_asking *asking,
                                        struct weft_arena *arena, struct weft_erasure *ret_erasure,
                                        struct weft_err *err)
{
    struct verification verification = {.engine = engine, .arena = arena};
    enum weft_rc rc = weft_erasure_find(engine, asking, arena, &verification.row, err);
    if (rc)
        return rc;
    if (!verification.row->finished.set)
        return weft_hint(err, weft_fail(err, WEFT_CONFLICT, "the erasure is not done yet"),
                         "wait until its state is done");
    if (verification.row->secret.size != WEFT_RECEIPT_SECRET)
        return weft_fail(err, WEFT_CONFLICT, "the receipt is damaged: its secret is not whole");
    rc = verify_all(&verification, asking->ns, err);
    struct weft_call call;
    *weft_call_erasure_verified(&call, arena) =
        (struct weft_erasure_verified_in){.id = asking->id,
                                          .verified = weft_clock_now(engine->clock),
                                          .remains = (int64_t)verification.found};
    if (!rc)
        rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, err);
    return rc ? rc : weft_engine_erasure(engine, asking, arena, ret_erasure, err);
}
