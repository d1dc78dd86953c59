/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One array of numbers holds all metrics. A counter or gauge takes one of them per label; a
 * histogram takes one per bucket (not cumulative: that is made while writing), one for what is
 * above all buckets, and one for the sum.
 */

#include "net/metrics.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "engine/scan/pass.h"
#include "net/route.h"
#include "weft/admin.h"
#include "wire/ops.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum sort { COUNTER, GAUGE, SECONDS, SIZES };
enum labels {
    NONE,
    ROUTE,
    ROUTE_CODE,
    GROUP,
    SCANNER,
    SCANNER_ROW,
    WAIT,
    WAKE,
    REFUSAL,
    EFFECT,
    PHASE
};

struct definition {
    const char *name;
    enum sort sort;
    enum labels labels;
    const char *help;
};

static const struct definition DEFINITIONS[] = {
#define X(name, text, sort, labels, help) [WEFT_METRIC_##name] = {text, sort, labels, help},
#include "net/metrics.def"
#undef X
};

/* Statuses that are counted apart; any other status counts as the last row, "other". */
static const int CODES[] = {200, 201, 202, 204, 400, 401, 403, 404, 405, 408, 409,
                            411, 413, 414, 415, 429, 431, 500, 503, 507, 0};

static const uint64_t SECONDS_BUCKETS[] = {500,     1000,     2500,     5000,    10000,   25000,
                                           50000,   100000,   250000,   500000,  1000000, 2500000,
                                           5000000, 10000000, 30000000, 60000000};
static const uint64_t SIZES_BUCKETS[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};

static const char *const WAITS[WEFT_WAIT_COUNT] = {"claim", "end", "watch", "lock"};
static const char *const WAKES[WEFT_WAKE_COUNT] = {"local", "remote", "poll"};
static const char *const REFUSALS[WEFT_REFUSAL_COUNT] = {
    [WEFT_REFUSAL_INVALID] = "invalid",
    [WEFT_REFUSAL_EXISTING_ID] = "existing_id",
};

/* In the order of enum weft_signal_effect, without NONE. */
static const char *const EFFECTS[] = {"resumed", "recorded", "buffered", "duplicate", "ignored"};

static const char *const PHASES[WEFT_CALL_PHASES] = {
    [WEFT_CALL_RESOLVED] = "resolved", [WEFT_CALL_CONNECTED] = "connected",
    [WEFT_CALL_SECURED] = "secured",   [WEFT_CALL_ANSWERED] = "first_byte",
    [WEFT_CALL_ENDED] = "total",
};

/* The labels of metrics that are not about routes. */
static const struct {
    size_t count;
    const char *name;
    const char *const *value;
} LABELS[] = {
    [NONE] = {.count = 1},
    [GROUP] = {WEFT_GROUP_COUNT, "group", weft_group_names},
    [SCANNER] = {.count = WEFT_SCANNER_COUNT},
    [SCANNER_ROW] = {.count = (size_t)WEFT_SCANNER_COUNT * WEFT_COUNTERS_MAX},
    [WAIT] = {WEFT_WAIT_COUNT, "for", WAITS},
    [WAKE] = {WEFT_WAKE_COUNT, "by", WAKES},
    [REFUSAL] = {WEFT_REFUSAL_COUNT, "reason", REFUSALS},
    [EFFECT] = {WEFT_LEN(EFFECTS), "effect", EFFECTS},
    [PHASE] = {WEFT_CALL_PHASES, "phase", PHASES},
};

struct weft_metrics {
    struct weft_route_table routes;
    size_t first[WEFT_METRIC_COUNT]; /* where the numbers of a metric begin */
    _Atomic uint64_t *number;        /* owned */
};

/* ---- Where a number is ----------------------------------------------------------------------- */

struct buckets {
    const uint64_t *limit;
    size_t count;
};

static struct buckets buckets_of(enum sort sort)
{
    static const struct buckets all[] = {
        [COUNTER] = {NULL, 0},
        [GAUGE] = {NULL, 0},
        [SECONDS] = {SECONDS_BUCKETS, WEFT_LEN(SECONDS_BUCKETS)},
        [SIZES] = {SIZES_BUCKETS, WEFT_LEN(SIZES_BUCKETS)},
    };
    return all[sort];
}

/* How many numbers one label of a metric takes. */
static size_t width_of(enum sort sort)
{
    struct buckets buckets = buckets_of(sort);
    return buckets.count ? buckets.count + 2 : 1;
}

static size_t label_count(const struct weft_metrics *metrics, enum labels labels)
{
    size_t routes = metrics->routes.count + 1; /* the last one stands for no route */
    return labels == ROUTE        ? routes
           : labels == ROUTE_CODE ? routes * WEFT_LEN(CODES)
                                  : LABELS[labels].count;
}

static _Atomic uint64_t *number_of(const struct weft_metrics *metrics, enum weft_metric which,
                                   size_t label)
{
    const struct definition *definition = &DEFINITIONS[which];
    assert(label < label_count(metrics, definition->labels));
    return &metrics->number[metrics->first[which] + label * width_of(definition->sort)];
}

/* ---- Counting -------------------------------------------------------------------------------- */

struct weft_metrics *weft_metrics_new(const struct weft_route_table *routes)
{
    struct weft_metrics *metrics = weft_alloc(1, sizeof(*metrics));
    metrics->routes = *routes;
    size_t count = 0;
    for (size_t i = 0; i < WEFT_METRIC_COUNT; i++) {
        metrics->first[i] = count;
        count += label_count(metrics, DEFINITIONS[i].labels) * width_of(DEFINITIONS[i].sort);
    }
    metrics->number = weft_alloc(count, sizeof(*metrics->number));
    return metrics;
}

void weft_metrics_free(struct weft_metrics *metrics)
{
    if (!metrics)
        return;
    free(metrics->number);
    free(metrics);
}

static void add(_Atomic uint64_t *number, uint64_t amount)
{
    atomic_fetch_add_explicit(number, amount, memory_order_relaxed);
}

void weft_metric_add(struct weft_metrics *metrics, enum weft_metric which, size_t label,
                     uint64_t amount)
{
    assert(DEFINITIONS[which].sort == COUNTER || DEFINITIONS[which].sort == GAUGE);
    add(number_of(metrics, which, label), amount);
}

void weft_metric_sub(struct weft_metrics *metrics, enum weft_metric which, size_t label,
                     uint64_t amount)
{
    assert(DEFINITIONS[which].sort == GAUGE);
    atomic_fetch_sub_explicit(number_of(metrics, which, label), amount, memory_order_relaxed);
}

void weft_metric_set(struct weft_metrics *metrics, enum weft_metric which, size_t label,
                     uint64_t value)
{
    assert(DEFINITIONS[which].sort == GAUGE);
    atomic_store_explicit(number_of(metrics, which, label), value, memory_order_relaxed);
}

void weft_metric_observe(struct weft_metrics *metrics, enum weft_metric which, size_t label,
                         uint64_t value)
{
    struct buckets buckets = buckets_of(DEFINITIONS[which].sort);
    assert(buckets.count > 0);
    _Atomic uint64_t *number = number_of(metrics, which, label);
    size_t i = 0;
    while (i < buckets.count && value > buckets.limit[i])
        i++;
    add(&number[i], 1);
    add(&number[buckets.count + 1], value);
}

void weft_metric_request(struct weft_metrics *metrics, const struct weft_route *route, int status,
                         weft_usec took_us)
{
    const struct weft_route_table *routes = &metrics->routes;
    size_t place = route ? (size_t)(route - routes->route) : routes->count, code = 0;
    while (code < WEFT_LEN(CODES) - 1 && CODES[code] != status)
        code++;
    weft_metric_add(metrics, WEFT_METRIC_HTTP_REQUESTS, place * WEFT_LEN(CODES) + code, 1);
    weft_metric_observe(metrics, WEFT_METRIC_HTTP_SECONDS, place,
                        took_us > 0 ? (uint64_t)took_us : 0);
}

static uint64_t load(const _Atomic uint64_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

uint64_t weft_metric_get(const struct weft_metrics *metrics, enum weft_metric which, size_t label)
{
    const _Atomic uint64_t *number = number_of(metrics, which, label);
    size_t width = width_of(DEFINITIONS[which].sort);
    uint64_t total = load(&number[0]);
    for (size_t i = 1; i + 1 < width; i++)
        total += load(&number[i]);
    return total;
}

/* ---- Writing --------------------------------------------------------------------------------- */

void weft_metrics_head(struct weft_buf *out, const char *name, const char *type, const char *help)
{
    weft_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void weft_metrics_put_label(struct weft_buf *out, const char *name, const char *value)
{
    weft_buf_printf(out, "%s=\"", name);
    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            weft_buf_add_char(out, '\\');
        if (*value == '\n')
            weft_buf_add_text(out, "\\n");
        else
            weft_buf_add_char(out, *value);
    }
    weft_buf_add_char(out, '"');
}

static void put_route(const struct weft_metrics *metrics, size_t place, struct weft_buf *out)
{
    bool found = place < metrics->routes.count;
    weft_metrics_put_label(out, "route", found ? metrics->routes.route[place].op->path : "none");
    weft_buf_add_char(out, ',');
    weft_metrics_put_label(out, "method", found ? metrics->routes.route[place].op->method : "any");
}

static enum weft_scanner scanner_of(size_t label)
{
    return (enum weft_scanner)(label / WEFT_COUNTERS_MAX);
}

/* NULL for a number behind the last counter of its scanner. */
static const char *counter_of(size_t label)
{
    return weft_scanner_info(scanner_of(label))->counter[label % WEFT_COUNTERS_MAX];
}

/* The labels of a number without the braces; nothing for NONE. */
static void put_labels(const struct weft_metrics *metrics, enum labels labels, size_t label,
                       struct weft_buf *out)
{
    assert(label < label_count(metrics, labels));
    if (LABELS[labels].value) {
        weft_metrics_put_label(out, LABELS[labels].name, LABELS[labels].value[label]);
    } else if (labels == ROUTE) {
        put_route(metrics, label, out);
    } else if (labels == ROUTE_CODE) {
        int code = CODES[label % WEFT_LEN(CODES)];
        put_route(metrics, label / WEFT_LEN(CODES), out);
        if (code)
            weft_buf_printf(out, ",code=\"%d\"", code);
        else
            weft_buf_add_text(out, ",code=\"other\"");
    } else if (labels == SCANNER) {
        weft_metrics_put_label(out, "scanner", weft_scanner_name((enum weft_scanner)label));
    } else if (labels == SCANNER_ROW) {
        weft_metrics_put_label(out, "scanner", weft_scanner_name(scanner_of(label)));
        weft_buf_add_char(out, ',');
        weft_metrics_put_label(out, "counter", counter_of(label));
    }
}

static void put_name(const struct weft_metrics *metrics, const struct definition *definition,
                     size_t label, const char *suffix, struct weft_buf *out)
{
    weft_buf_printf(out, "%s%s", definition->name, suffix);
    if (definition->labels != NONE) {
        weft_buf_add_char(out, '{');
        put_labels(metrics, definition->labels, label, out);
        weft_buf_add_char(out, '}');
    }
    weft_buf_add_char(out, ' ');
}

static void put_plain(const struct weft_metrics *metrics, const struct definition *definition,
                      size_t label, uint64_t value, struct weft_buf *out)
{
    put_name(metrics, definition, label, "", out);
    /* A gauge that is moved by two threads may be seen below zero for a moment. */
    if (definition->sort == GAUGE)
        weft_buf_printf(out, "%" PRId64 "\n", (int64_t)value);
    else
        weft_buf_printf(out, "%" PRIu64 "\n", value);
}

/* A limit or a sum: microseconds become seconds. */
static void put_amount(enum sort sort, uint64_t amount, struct weft_buf *out)
{
    if (sort == SECONDS)
        weft_buf_printf(out, "%.10g", (double)amount / 1e6);
    else
        weft_buf_printf(out, "%" PRIu64, amount);
}

static void put_bucket(const struct weft_metrics *metrics, const struct definition *definition,
                       size_t label, const uint64_t *limit, struct weft_buf *out)
{
    weft_buf_printf(out, "%s_bucket{", definition->name);
    put_labels(metrics, definition->labels, label, out);
    weft_buf_add_text(out, definition->labels == NONE ? "le=\"" : ",le=\"");
    if (limit)
        put_amount(definition->sort, *limit, out);
    else
        weft_buf_add_text(out, "+Inf");
    weft_buf_add_text(out, "\"} ");
}

static void put_histogram(const struct weft_metrics *metrics, const struct definition *definition,
                          size_t label, const _Atomic uint64_t *number, struct weft_buf *out)
{
    struct buckets buckets = buckets_of(definition->sort);
    uint64_t total = 0;
    for (size_t i = 0; i <= buckets.count; i++) {
        total += load(&number[i]);
        put_bucket(metrics, definition, label, i < buckets.count ? &buckets.limit[i] : NULL, out);
        weft_buf_printf(out, "%" PRIu64 "\n", total);
    }
    put_name(metrics, definition, label, "_sum", out);
    put_amount(definition->sort, load(&number[buckets.count + 1]), out);
    weft_buf_add_char(out, '\n');
    put_name(metrics, definition, label, "_count", out);
    weft_buf_printf(out, "%" PRIu64 "\n", total);
}

/* Hundreds of rows that never moved would only be in the way. */
static bool is_hidden(const struct definition *definition, size_t label, uint64_t value)
{
    if (definition->labels == SCANNER_ROW && !counter_of(label))
        return true;
    return value == 0 && (definition->labels == ROUTE || definition->labels == ROUTE_CODE ||
                          buckets_of(definition->sort).count > 0);
}

void weft_metrics_write(const struct weft_metrics *metrics, struct weft_buf *out)
{
    for (size_t i = 0; i < WEFT_METRIC_COUNT; i++) {
        const struct definition *definition = &DEFINITIONS[i];
        bool histogram = buckets_of(definition->sort).count > 0;
        weft_metrics_head(out, definition->name,
                          histogram                     ? "histogram"
                          : definition->sort == COUNTER ? "counter"
                                                        : "gauge",
                          definition->help);
        size_t labels = label_count(metrics, definition->labels);
        for (size_t label = 0; label < labels; label++) {
            const _Atomic uint64_t *number = number_of(metrics, (enum weft_metric)i, label);
            uint64_t value = weft_metric_get(metrics, (enum weft_metric)i, label);
            if (is_hidden(definition, label, value))
                continue;
            if (histogram)
                put_histogram(metrics, definition, label, number, out);
            else
                put_plain(metrics, definition, label, value, out);
        }
    }
}
