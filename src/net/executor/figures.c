/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What GET /metrics says of outgoing calls by endpoint. Labels are bounded: the first
 * WEFT_CALL_TARGETS endpoints that are called have series of their own and share one named "other"
 * beyond, and each has WEFT_CALL_CODES codes and "other". An endpoint has its series from its first
 * call until this server forgets it (weft_targets_slim()).
 *
 * All is guarded by the lock of the executor. The text is written after it is let go, from a copy.
 */

#include "net/executor/executor_state.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "net/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OTHER "other"

/* ---- Counting -------------------------------------------------------------------------------- */

void weft_figures_begun(struct weft_executor *executor, struct weft_target *target)
{
    target->in_flight++;
    executor->in_flight++;
    if (target->counts || executor->showns == WEFT_CALL_TARGETS)
        return;
    target->counts = weft_alloc(1, sizeof(*target->counts));
    executor->shown[executor->showns++] = target;
}

void weft_figures_ended(struct weft_executor *executor, struct weft_target *target)
{
    target->in_flight--;
    executor->in_flight--;
}

static void add(struct weft_call_counts *counts, const char *code)
{
    size_t at = 0;
    while (at < counts->count && strcmp(counts->item[at].code, code) != 0)
        at++;
    if (at == counts->count && at == WEFT_CALL_CODES) {
        counts->others++;
        return;
    }
    if (at == counts->count)
        (void)snprintf(counts->item[counts->count++].code, sizeof(counts->item->code), "%s", code);
    counts->item[at].count++;
}

void weft_figures_count(struct weft_executor *executor, struct weft_target *target,
                        const char *code)
{
    add(target->counts ? target->counts : &executor->others, code);
}

void weft_figures_forget(struct weft_executor *executor, struct weft_target *target)
{
    for (size_t i = 0; target->counts && i < executor->showns; i++)
        if (executor->shown[i] == target)
            executor->shown[i] = executor->shown[--executor->showns];
    free(target->counts);
    target->counts = NULL;
}

/* ---- Writing --------------------------------------------------------------------------------- */

struct figure {
    const char *ns, *name; /* in the arena; ns NULL: all other endpoints */
    struct weft_call_counts counts;
    size_t in_flight;
    bool breaks;
    enum weft_breaker_state breaker;
};

static struct figure *copy(struct weft_executor *executor, struct weft_arena *arena,
                           size_t *ret_count)
{
    weft_usec now_us = weft_boot_us();
    pthread_mutex_lock(&executor->lock);
    size_t count = executor->showns, in_flight = executor->in_flight;
    struct figure *figure = weft_new_array(arena, struct figure, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct weft_target *target = executor->shown[i];
        figure[i] = (struct figure){.ns = weft_arena_strdup(arena, target->ns),
                                    .name = weft_arena_strdup(arena, target->name),
                                    .counts = *target->counts,
                                    .in_flight = target->in_flight,
                                    .breaks = !target->own_url,
                                    .breaker = weft_breaker_look(&target->breaker, now_us)};
        in_flight -= target->in_flight;
    }
    figure[count] =
        (struct figure){.name = OTHER, .counts = executor->others, .in_flight = in_flight};
    pthread_mutex_unlock(&executor->lock);
    bool others = in_flight > 0 || figure[count].counts.count > 0;
    *ret_count = count + others;
    return figure;
}

static void put_labels(const struct figure *figure, const char *metric, struct weft_buf *out)
{
    weft_buf_printf(out, "%s{", metric);
    if (figure->ns) {
        weft_metrics_put_label(out, "namespace", figure->ns);
        weft_buf_add_char(out, ',');
    }
    weft_metrics_put_label(out, "endpoint", figure->name);
}

static void put_count(const struct figure *figure, const char *code, uint64_t count,
                      struct weft_buf *out)
{
    put_labels(figure, "weft_calls_total", out);
    weft_buf_add_char(out, ',');
    weft_metrics_put_label(out, "code", code);
    weft_buf_printf(out, "} %" PRIu64 "\n", count);
}

void weft_executor_metrics(void *context, struct weft_arena *arena, struct weft_buf *out)
{
    struct weft_executor *executor = context;
    static const int state[] = {
        [WEFT_BREAKER_CLOSED] = 0, [WEFT_BREAKER_HALF_OPEN] = 1, [WEFT_BREAKER_OPEN] = 2};
    size_t count;
    const struct figure *figure = copy(executor, arena, &count);
    weft_metrics_head(out, "weft_calls_total", "counter",
                      "Outgoing HTTP calls that ended, by endpoint and status or error class.");
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < figure[i].counts.count; k++)
            put_count(&figure[i], figure[i].counts.item[k].code, figure[i].counts.item[k].count,
                      out);
        if (figure[i].counts.others > 0)
            put_count(&figure[i], OTHER, figure[i].counts.others, out);
    }
    weft_metrics_head(out, "weft_calls_in_flight", "gauge",
                      "Outgoing HTTP calls under way, by endpoint.");
    for (size_t i = 0; i < count; i++) {
        put_labels(&figure[i], "weft_calls_in_flight", out);
        weft_buf_printf(out, "} %zu\n", figure[i].in_flight);
    }
    weft_metrics_head(out, "weft_call_breaker_state", "gauge",
                      "The breaker of an endpoint: 0 closed, 1 half-open, 2 open.");
    for (size_t i = 0; i < count; i++)
        if (figure[i].breaks) {
            put_labels(&figure[i], "weft_call_breaker_state", out);
            weft_buf_printf(out, "} %d\n", state[figure[i].breaker]);
        }
}
