/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_METRICS_H
#define WEFT_NET_METRICS_H

/*
 * What the server counts about itself, in the text format of Prometheus. All there is stands in
 * metrics.def. Counting takes one atomic addition and no lock; every function is thread-safe.
 */

#include "base/base.h"
#include "net/route.h"

struct weft_buf;
struct weft_metrics; /* opaque */

enum weft_metric {
#define X(name, text, sort, labels, help) WEFT_METRIC_##name,
#include "net/metrics.def"
#undef X
    WEFT_METRIC_COUNT
};

/*
 * Most metrics are rows of numbers; `label` picks one: an enum weft_group for GROUP, an enum
 * weft_scanner for SCANNER, that times WEFT_COUNTERS_MAX plus the place of a counter in the table
 * of scanners for SCANNER_ROW, one of these for the others, 0 where there are no labels.
 */
enum weft_metric_wait {
    WEFT_WAIT_CLAIM,
    WEFT_WAIT_END,
    WEFT_WAIT_WATCH,
    WEFT_WAIT_LOCK,
    WEFT_WAIT_COUNT
};
enum weft_metric_wake { WEFT_WAKE_LOCAL, WEFT_WAKE_REMOTE, WEFT_WAKE_POLL, WEFT_WAKE_COUNT };
enum weft_metric_phase {
    WEFT_CALL_RESOLVED,
    WEFT_CALL_CONNECTED,
    WEFT_CALL_SECURED,
    WEFT_CALL_ANSWERED, /* its first byte */
    WEFT_CALL_ENDED,
    WEFT_CALL_PHASES
};
enum weft_metric_refusal { WEFT_REFUSAL_INVALID, WEFT_REFUSAL_EXISTING_ID, WEFT_REFUSAL_COUNT };

/* The routes are borrowed for its life. The caller ends it with _free(). */
struct weft_metrics *weft_metrics_new(const struct weft_route_table *routes);
void weft_metrics_free(struct weft_metrics *metrics); /* NULL is fine */

/* Counters and gauges. */
void weft_metric_add(struct weft_metrics *metrics, enum weft_metric which, size_t label,
                     uint64_t amount);
/* Gauges. */
void weft_metric_sub(struct weft_metrics *metrics, enum weft_metric which, size_t label,
                     uint64_t amount);
void weft_metric_set(struct weft_metrics *metrics, enum weft_metric which, size_t label,
                     uint64_t value);
/* Histograms: microseconds for SECONDS. */
void weft_metric_observe(struct weft_metrics *metrics, enum weft_metric which, size_t label,
                         uint64_t value);
/* One request that was answered: HTTP_REQUESTS and HTTP_SECONDS. route NULL: none was found. */
void weft_metric_request(struct weft_metrics *metrics, const struct weft_route *route, int status,
                         weft_usec took_us);
/* The value of a counter or gauge, the number of observations of a histogram. */
uint64_t weft_metric_get(const struct weft_metrics *metrics, enum weft_metric which, size_t label);

/* Appends all of them, without histograms and routes that were never met. */
void weft_metrics_write(const struct weft_metrics *metrics, struct weft_buf *out);

/* For metrics that are not counted but looked up: the two lines of a header, and label values. */
void weft_metrics_head(struct weft_buf *out, const char *name, const char *type, const char *help);
void weft_metrics_put_label(struct weft_buf *out, const char *name, const char *value);

#endif
