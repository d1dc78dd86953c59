/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Messages: the first byte chooses the type, the rest is JSON. An accepted message is written, read
 * and written again: both texts must be the same.
 */

#include "fuzz/fuzz.h"

#include "base/arena.h"
#include "base/buf.h"
#include "core/policy.h"
#include "wire/type.h"

static const struct weft_wire_type *const types[] = {
    &weft_wire_spec,           &weft_wire_submitted,      &weft_wire_execution,
    &weft_wire_claim,          &weft_wire_claimed,        &weft_wire_renew,
    &weft_wire_complete,       &weft_wire_failure,        &weft_wire_delay,
    &weft_wire_release,        &weft_wire_renewed,        &weft_wire_finished,
    &weft_wire_cancel,         &weft_wire_replay,         &weft_wire_priority,
    &weft_wire_deadline,       &weft_wire_filter,         &weft_wire_sweep,
    &weft_wire_attempt,        &weft_wire_lane,           &weft_wire_lane_count,
    &weft_wire_worker,         &weft_wire_replica,        &weft_wire_scanner,
    &weft_wire_pass,           &weft_wire_flow_spec,      &weft_wire_flow_submitted,
    &weft_wire_flow_growth,    &weft_wire_flow_grown,     &weft_wire_flow_cancel,
    &weft_wire_flow_cancelled, &weft_wire_flow,           &weft_wire_flow_page,
    &weft_wire_token_spec,     &weft_wire_token_rotation, &weft_wire_token,
    &weft_wire_token_made,     &weft_wire_flow_edging,    &weft_wire_flow_linked,
    &weft_wire_gate,           &weft_wire_budget,         &weft_wire_charge,
    &weft_wire_usage,          &weft_wire_reported,
};

static void write_to(const struct weft_wire_type *type, const void *item, struct weft_buf *buf)
{
    struct weft_json_writer out;
    weft_buf_init(buf, 16 << 20);
    weft_json_writer_init(&out, buf);
    weft_wire_write(type, item, &out);
    must(!buf->full);
}

/* A policy may be read that the engine refuses later; it cannot be sent again either. */
static bool is_refused_later(const struct weft_wire_type *type, const void *item,
                             struct weft_arena *arena)
{
    struct weft_rules rules;
    struct weft_err err = {0};
    const struct weft_flow_spec *flow = item;
    const struct weft_flow_growth *growth = item;
    const struct weft_node *node = NULL;
    size_t count = 0;
    if (type == &weft_wire_flow_spec) {
        node = flow->nodes;
        count = flow->node_count;
    } else if (type == &weft_wire_flow_growth) {
        node = growth->nodes;
        count = growth->node_count;
    }
    for (size_t i = 0; i < count; i++)
        if (weft_policy_resolve(node[i].spec.policy, arena, &rules, &err))
            return true;
    return type == &weft_wire_spec &&
           weft_policy_resolve(((const struct weft_spec *)item)->policy, arena, &rules, &err);
}

static void check_again(const struct weft_wire_type *type, const void *item,
                        struct weft_arena *arena)
{
    struct weft_buf first, second;
    struct weft_json value;
    struct weft_err err = {0};
    void *again = weft_arena_alloc(arena, 1, type->size);
    write_to(type, item, &first);
    must(weft_json_check(first.data, first.size, &value, &err) == WEFT_OK);
    enum weft_rc rc = weft_wire_read_answer(type, &value, arena, again, &err);
    must(rc == WEFT_OK || is_refused_later(type, item, arena));
    if (!rc) {
        write_to(type, again, &second);
        must(strcmp(first.data, second.data) == 0);
        weft_buf_done(&second);
    }
    weft_buf_done(&first);
}

/* An error object, which both sides read and write. */
static void read_error(const struct weft_json *value, struct weft_arena *arena)
{
    struct weft_err err = {0}, read = {0};
    struct weft_wire_detail detail;
    if (weft_wire_read_error(value, arena, &read, &detail, &err))
        return;
    struct weft_buf buf;
    struct weft_json_writer out;
    weft_buf_init(&buf, 1 << 20);
    weft_json_writer_init(&out, &buf);
    weft_wire_write_error(&read, &detail, &out);
    weft_buf_done(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const struct weft_wire_type *type = types[data[0] % WEFT_LEN(types)];
    struct weft_json value;
    struct weft_err err = {0};
    if (weft_json_check((const char *)data + 1, size - 1, &value, &err) ||
        value.kind != WEFT_JSON_OBJECT)
        return 0;
    struct weft_arena *arena = weft_arena_new();
    void *item = weft_arena_alloc(arena, 1, type->size);
    enum weft_rc rc = weft_wire_read(type, &value, arena, item, &err);
    must(rc == WEFT_OK || err.rc == rc);
    if (!rc)
        check_again(type, item, arena);
    rc = weft_wire_read_answer(type, &value, arena, item, &err);
    if (!rc)
        check_again(type, item, arena);
    read_error(&value, arena);
    weft_arena_free(arena);
    return 0;
}
