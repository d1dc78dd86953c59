/* SPDX-License-Identifier: Apache-2.0 */

/* Orders of erasure and their receipts: asking and reading. */

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "base/limits.h"
#include "core/receipt.h"
#include "core/spec.h"
#include "core/stored.h"
#include "engine/engine_state.h"
#include "engine/erase/erase.h"
#include "engine/job/list.h"

#include <string.h>

/* ---- Receipts -------------------------------------------------------------------------------- */

static void show_counts(const char *text, struct weft_arena *arena, struct weft_erasure *erasure)
{
    struct weft_json value;
    struct weft_json_iter member;
    struct weft_err err;
    int64_t number;
    struct weft_counter *count = weft_new_array(arena, struct weft_counter, WEFT_ERASE_COUNTS);
    erasure->counts = count;
    if (weft_json_check(text, strlen(text), &value, &err))
        return;
    weft_json_iter_init(&member, &value);
    while (weft_json_next(&member) && erasure->count_count < WEFT_ERASE_COUNTS)
        for (size_t i = 0; i < WEFT_ERASE_COUNTS; i++)
            if (weft_json_is(&member.key, weft_erase_counted[i]) &&
                weft_json_i64(&member.value, &number))
                count[erasure->count_count++] =
                    (struct weft_counter){.name = weft_erase_counted[i], .value = (uint64_t)number};
}

static void show(const struct weft_erasure_read_out *row, struct weft_arena *arena,
                 struct weft_erasure *ret_erasure)
{
    *ret_erasure = (struct weft_erasure){
        .id = row->id,
        .of = row->sort,
        .state = row->finished.set ? WEFT_ERASURE_DONE : WEFT_ERASURE_RUNNING,
        .subject_hash = row->hash,
        .reason = row->reason,
        .by = row->by,
        .asked_us = row->asked,
        .finished_us = row->finished.value,
        .unreached = row->finished.set ? row->left_over : NULL,
        .digest = row->digest,
        .verified_us = row->verified.value,
        .remains = (uint64_t)row->remains.value,
    };
    show_counts(row->counts, arena, ret_erasure);
}

enum weft_rc weft_erasure_find(struct weft_engine *engine, const struct weft_erasure_asking *asking,
                               struct weft_arena *arena,
                               const struct weft_erasure_read_out **ret_row, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    int32_t ns = 0;
    enum weft_rc rc = weft_find_namespace(engine, asking->ns, &ns, err);
    *weft_call_erasure_read(&call, arena) =
        (struct weft_erasure_read_in){.id = asking->id, .namespace = ns};
    if (!rc && ns != 0)
        rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    if (rows.count == 0)
        return weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no such erasure");
    *ret_row = weft_out_erasure_read(&rows);
    return WEFT_OK;
}

enum weft_rc weft_engine_erasure(struct weft_engine *engine,
                                 const struct weft_erasure_asking *asking, struct weft_arena *arena,
                                 struct weft_erasure *ret_erasure, struct weft_err *err)
{
    const struct weft_erasure_read_out *row = NULL;
    enum weft_rc rc = weft_erasure_find(engine, asking, arena, &row, err);
    if (!rc && row)
        show(row, arena, ret_erasure);
    return rc;
}

enum weft_rc weft_engine_erasures(struct weft_engine *engine,
                                  const struct weft_erasure_asking *asking,
                                  struct weft_arena *arena, struct weft_erasures *ret_erasures,
                                  struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_id after = WEFT_ID_LAST;
    int32_t ns = 0;
    uint32_t limit = asking->limit ? asking->limit : WEFT_PAGE_MAX;
    if (asking->after && !weft_id_parse(asking->after, strlen(asking->after), &after))
        return weft_invalid(err, "after", "after is not the end of a page");
    enum weft_rc rc = weft_find_namespace(engine, asking->ns, &ns, err);
    *weft_call_erasure_list(&call, arena) =
        (struct weft_erasure_list_in){.namespace = ns, .after = after, .limit = (int64_t)limit + 1};
    if (!rc && ns != 0)
        rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    size_t count = rows.count < limit ? rows.count : limit;
    struct weft_erasure *item = weft_new_array(arena, struct weft_erasure, count + 1);
    for (size_t i = 0; i < count; i++)
        show(&weft_out_erasure_read(&rows)[i], arena, &item[i]);
    *ret_erasures = (struct weft_erasures){.item = item, .count = count};
    if (rows.count > limit) {
        char *text = weft_arena_alloc(arena, 1, WEFT_ID_TEXT);
        weft_id_print(&item[count - 1].id, text);
        ret_erasures->next = text;
    }
    return WEFT_OK;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static enum weft_rc check(const struct weft_erasure_spec *spec, struct weft_err *err)
{
    if (!spec->tenant == !spec->tag)
        return weft_invalid(err, "tenant", "name a tenant or a tag, and not both");
    enum weft_rc rc = spec->tenant ? weft_name_check(spec->tenant, "tenant", err) : WEFT_OK;
    const char *colon = spec->tag ? strchr(spec->tag, ':') : NULL;
    if (!rc && spec->tag && (!colon || colon == spec->tag))
        rc = weft_invalid(err, "tag", "a tag is written KEY:VALUE");
    if (!rc && (!spec->reason || !spec->reason[0]))
        rc = weft_invalid(err, "reason", "say why: the reason stays in the receipt");
    if (!rc)
        rc = weft_text_check(spec->reason, WEFT_REASON_MAX, "reason", err);
    const char *subject = spec->tenant ? spec->tenant : colon ? colon + 1 : "";
    if (!rc && subject[0] && spec->reason && strstr(spec->reason, subject))
        rc = weft_invalid(err, "reason",
                          "the reason stays in the receipt: it must not name whom it is about");
    return rc;
}

enum weft_rc weft_engine_erase(struct weft_engine *engine, const char *ns,
                               const struct weft_erasure_spec *spec, int32_t token,
                               struct weft_arena *arena, struct weft_erasure *ret_erasure,
                               struct weft_err *err)
{
    uint8_t secret[WEFT_RECEIPT_SECRET];
    char *hash = weft_arena_alloc(arena, 1, WEFT_RECEIPT_HASH);
    struct weft_name_want space = {.sort = WEFT_NAME_NAMESPACE, .text = ns};
    enum weft_rc rc = check(spec, err);
    if (!rc)
        rc = weft_name_check(ns, "namespace", err);
    if (!rc)
        rc = weft_intern_names(engine, true, &space, 1, err);
    if (rc)
        return rc;
    const char *subject = spec->tenant ? spec->tenant : spec->tag;
    weft_usec now_us = weft_clock_now(engine->clock);
    struct weft_call call;
    struct weft_erasure_asking asking = {.ns = ns};
    weft_random(secret, sizeof(secret));
    weft_receipt_hash(secret, subject, hash);
    weft_id_new(&asking.id, now_us, -1);
    *weft_call_erasure_add(&call, arena) =
        (struct weft_erasure_add_in){.id = asking.id,
                                     .namespace = space.id,
                                     .sort = spec->tenant ? WEFT_ERASURE_TENANT : WEFT_ERASURE_TAG,
                                     .subject = subject,
                                     .secret = {secret, sizeof(secret)},
                                     .hash = hash,
                                     .reason = spec->reason,
                                     .token = token,
                                     .asked = now_us};
    rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, err);
    return rc ? rc : weft_engine_erasure(engine, &asking, arena, ret_erasure, err);
}
