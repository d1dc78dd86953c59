/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Settings of gates. An admission reads them under the lock of its gate, so a setting holds from
 * the next admission on; putting or removing one therefore runs an admission of all gates it is for
 * that have executions.
 */

#include "engine/limit/gates.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"
#include "core/cursor.h"
#include "core/limit.h"
#include "core/spec.h"
#include "engine/engine_state.h"
#include "engine/job/list.h"
#include "engine/limit/admit.h"

#include <stdio.h>
#include <string.h>

enum {
    OLDEST_BINARY = 28,  /* the first that records all starts: 0028 */
    CLASS_GATES = 10000, /* of a class that are counted for a reader */
    ADMITTED_AT_ONCE = 1000,
};

const char *weft_gate_class(const char *name, struct weft_arena *arena)
{
    return weft_arena_printf(arena, "%.*s", (int)strcspn(name, ":"), name);
}

/* The keys of the gates that a setting is for: from first to last. */
struct range {
    const char *first, *last;
};

static struct range range_of(int32_t ns, const char *name, struct weft_arena *arena)
{
    const char *key = weft_gate_key(ns, name, arena);
    if (strchr(name, ':'))
        return (struct range){key, key};
    /* A gate may also be called as its class alone; ';' comes after ':'. */
    return (struct range){key, weft_arena_printf(arena, "%s:\x7f", key)};
}

/* ---- Putting --------------------------------------------------------------------------------- */

/* Marks what is ready or running, so that its starts count, and admits what may begin. */
static enum weft_rc apply(struct weft_engine *engine, const struct range *range, bool window,
                          struct weft_err *err)
{
    char after[WEFT_GATE_KEY] = "";
    bool more = true;
    enum weft_rc rc = WEFT_OK;
    while (more && !rc) {
        struct weft_arena *arena = weft_arena_new();
        struct weft_call call;
        struct weft_rows rows = {0};
        *weft_call_gates_of_class(&call, arena) = (struct weft_gates_of_class_in){
            .first = range->first, .last = range->last, .after = after, .most = ADMITTED_AT_ONCE};
        rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
        const char **name = weft_new_array(arena, const char *, rows.count + 1);
        for (size_t i = 0; i < rows.count; i++)
            name[i] = weft_out_gates_of_class(&rows)[i].name;
        struct weft_gate_count_starts_in *mark =
            weft_call_gate_count_starts(&call, arena, rows.count);
        for (size_t i = 0; i < rows.count; i++)
            mark->row[i].name = name[i];
        if (!rc && window && rows.count > 0)
            rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, err);
        if (!rc)
            rc = weft_engine_admit(engine, name, rows.count, NULL, err);
        more = rows.count == ADMITTED_AT_ONCE;
        if (more)
            (void)snprintf(after, sizeof(after), "%s", name[rows.count - 1]);
        weft_arena_free(arena);
    }
    return rc;
}

enum weft_rc weft_engine_gate_put(struct weft_engine *engine, const char *ns,
                                  const struct weft_gate *gate, struct weft_err *err)
{
    const struct weft_limits *limits = &gate->limits;
    struct weft_name_want space = {.sort = WEFT_NAME_NAMESPACE, .text = ns};
    enum weft_rc rc = weft_name_check(gate->name, "gate", err);
    if (!rc)
        rc = weft_limits_check(limits, err);
    if (!rc)
        rc = weft_name_check(ns, "namespace", err);
    if (!rc)
        rc = weft_intern_names(engine, true, &space, 1, err);
    if (rc)
        return rc;
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    *weft_call_gate_put(&call, arena) =
        (struct weft_gate_put_in){.namespace = space.id,
                                  .name = gate->name,
                                  .max_running = limits->max_running,
                                  .window_limit = limits->window.limit,
                                  .window_us = limits->window.per_ms * WEFT_MS,
                                  .rate_limit = limits->rate.limit,
                                  .rate_us = limits->rate.per_ms * WEFT_MS,
                                  .rate_burst = limits->rate.burst,
                                  .oldest = OLDEST_BINARY};
    rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, err);
    const struct range range = range_of(space.id, gate->name, arena);
    if (!rc)
        rc = apply(engine, &range, limits->window.limit > 0, err);
    weft_arena_free(arena);
    return rc;
}

/* ---- Reading --------------------------------------------------------------------------------- */

#define LIMITS_OF(row)                                                                             \
    {                                                                                              \
        .max_running = (row)->max_running,                                                         \
        .window = {(row)->window_limit, (row)->window_us / WEFT_MS}, .rate = {                     \
            (row)->rate_limit,                                                                     \
            (row)->rate_us / WEFT_MS,                                                              \
            (row)->rate_burst                                                                      \
        }                                                                                          \
    }

/* Fills in what is in the gates. *ret_gates (NULL: not asked for): how many the first one has. */
static enum weft_rc count_gates(struct weft_engine *engine, int32_t ns, struct weft_gate *gate,
                                size_t count, int64_t *ret_gates, struct weft_arena *arena,
                                struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_gate_counts_in *in = weft_call_gate_counts(&call, arena, count);
    struct range *range = weft_new_array(arena, struct range, count + 1);
    in->most = CLASS_GATES;
    for (size_t i = 0; i < count; i++) {
        range[i] = range_of(ns, gate[i].name, arena);
        in->row[i].first = range[i].first;
        in->row[i].last = range[i].last;
    }
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    for (size_t r = 0; r < rows.count && !rc; r++) {
        const struct weft_gate_counts_out *row = &weft_out_gate_counts(&rows)[r];
        size_t i = 0;
        while (i < count && strcmp(range[i].first, row->first) != 0)
            i++;
        if (i == count)
            continue;
        gate[i].running = (uint64_t)row->running;
        gate[i].ready = (uint64_t)row->ready;
        gate[i].held = (uint64_t)row->held;
        gate[i].next_us = row->next.value;
        if (ret_gates)
            *ret_gates = row->gates;
    }
    return rc;
}

static enum weft_rc read_settings(struct weft_engine *engine,
                                  const struct weft_gate_settings_in *in, struct weft_arena *arena,
                                  struct weft_rows *ret_rows, struct weft_err *err)
{
    struct weft_call call;
    *weft_call_gate_settings(&call, arena) = *in;
    return weft_tx_once(engine, WEFT_TX_READ, &call, arena, ret_rows, err);
}

static enum weft_rc no_gate(const char *name, struct weft_err *err)
{
    return weft_hint(err,
                     weft_fail_field(err, WEFT_NOT_FOUND, "gate", "there is no gate '%s'", name),
                     "a gate is there while it has settings or executions that are not over");
}

enum weft_rc weft_engine_gate(struct weft_engine *engine, const char *ns, const char *name,
                              struct weft_arena *arena, struct weft_gate *ret_gate,
                              struct weft_err *err)
{
    int32_t space = 0;
    int64_t gates = 0;
    struct weft_rows rows = {0};
    struct weft_gate gate = {.name = name};
    enum weft_rc rc = weft_name_check(name, "gate", err);
    if (!rc)
        rc = weft_find_namespace(engine, ns, &space, err);
    const struct weft_gate_settings_in in = {.namespace = space,
                                             .prefix = name,
                                             .last = weft_arena_printf(arena, "%s\x01", name),
                                             .after = "",
                                             .most = 1};
    if (!rc)
        rc = read_settings(engine, &in, arena, &rows, err);
    if (!rc)
        rc = count_gates(engine, space, &gate, 1, &gates, arena, err);
    if (rc)
        return rc;
    if (rows.count == 0 && gates == 0)
        return no_gate(name, err);
    if (rows.count > 0)
        gate.limits = (struct weft_limits)LIMITS_OF(weft_out_gate_settings(&rows));
    *ret_gate = gate;
    return WEFT_OK;
}

enum weft_rc weft_engine_gate_remove(struct weft_engine *engine, const char *ns, const char *name,
                                     struct weft_arena *arena, struct weft_gate *ret_gate,
                                     struct weft_err *err)
{
    int32_t space = 0;
    struct weft_call call;
    struct weft_rows rows = {0};
    enum weft_rc rc = weft_name_check(name, "gate", err);
    if (!rc)
        rc = weft_find_namespace(engine, ns, &space, err);
    if (rc)
        return rc;
    *weft_call_gate_remove(&call, arena) =
        (struct weft_gate_remove_in){.namespace = space, .name = name};
    rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, &rows, err);
    if (!rc && rows.count == 0)
        rc = weft_fail_field(err, WEFT_NOT_FOUND, "gate", "gate '%s' has no settings", name);
    if (rc)
        return rc;
    *ret_gate = (struct weft_gate){.name = name, .limits = LIMITS_OF(weft_out_gate_remove(&rows))};
    const struct range range = range_of(space, name, arena);
    return apply(engine, &range, false, err);
}

enum weft_rc weft_engine_gates(struct weft_engine *engine, const struct weft_gate_asking *asking,
                               struct weft_arena *arena, struct weft_gates *ret_gates,
                               struct weft_err *err)
{
    const struct weft_cursor_list list = {
        .name = "gates", .ns = asking->ns, .filter = asking->prefix};
    char after[WEFT_CURSOR_PLACE_MAX + 1] = "";
    const char *prefix = asking->prefix ? asking->prefix : "";
    size_t limit = asking->limit ? asking->limit : WEFT_PAGE_DEFAULT, size;
    int32_t space = 0;
    struct weft_rows rows = {0};
    enum weft_rc rc = weft_page_limit(asking->limit, err);
    if (!rc && *prefix)
        rc = weft_name_check(prefix, "prefix", err);
    if (!rc && asking->after)
        rc = weft_cursor_read(&list, asking->after, after, &size, err);
    if (!rc)
        rc = weft_find_namespace(engine, asking->ns, &space, err);
    const struct weft_gate_settings_in in = {.namespace = space,
                                             .prefix = prefix,
                                             .last = weft_arena_printf(arena, "%s\x7f", prefix),
                                             .after = after,
                                             .most = (int64_t)limit + 1};
    if (!rc)
        rc = read_settings(engine, &in, arena, &rows, err);
    if (rc)
        return rc;
    size_t count = rows.count < limit ? rows.count : limit;
    struct weft_gate *gate = weft_new_array(arena, struct weft_gate, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct weft_gate_settings_out *row = &weft_out_gate_settings(&rows)[i];
        gate[i] = (struct weft_gate){.name = row->name, .limits = LIMITS_OF(row)};
    }
    rc = count ? count_gates(engine, space, gate, count, NULL, arena, err) : WEFT_OK;
    if (rc)
        return rc;
    *ret_gates = (struct weft_gates){.item = gate, .count = count};
    if (rows.count > limit)
        ret_gates->next =
            weft_cursor_write(&list, gate[count - 1].name, strlen(gate[count - 1].name), arena);
    return WEFT_OK;
}
