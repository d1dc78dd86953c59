/* SPDX-License-Identifier: Apache-2.0 */

/* Metrics: the counted values are written in the text format of Prometheus. */

#include "base/buf.h"
#include "net/metrics.h"
#include "tap.h"

#include <pthread.h>

static const struct weft_route ROUTES[] = {
    {.op = &(const struct weft_op_info){.method = "GET", .path = "/healthz"}},
    {.op = &(const struct weft_op_info){.method = "POST", .path = "/v1/lanes"}},
};
static const struct weft_route_table TABLE = {.route = ROUTES, .count = WEFT_LEN(ROUTES)};

static bool has_line(const struct weft_buf *text, const char *line)
{
    size_t size = strlen(line);
    const char *at = text->data;
    while ((at = strstr(at, line))) {
        if ((at == text->data || at[-1] == '\n') && at[size] == '\n')
            return true;
        at++;
    }
    return false;
}

static void test_values(void)
{
    struct weft_metrics *metrics = weft_metrics_new(&TABLE);
    struct weft_buf text;
    weft_buf_init(&text, 1 << 20);
    weft_metrics_write(metrics, &text);
    ok(has_line(&text, "weft_http_connections 0"), "a number that never moved is 0");
    ok(has_line(&text, "weft_queue_requests{group=\"submit\"} 0"),
       "a labelled number that never moved is 0");
    ok(!strstr(text.data, "weft_http_requests_total{"), "routes that were never met are left out");
    ok(!strstr(text.data, "_bucket"), "histograms without values are left out");

    weft_metric_add(metrics, WEFT_METRIC_HTTP_CONNECTIONS, 0, 3);
    weft_metric_sub(metrics, WEFT_METRIC_HTTP_CONNECTIONS, 0, 1);
    weft_metric_set(metrics, WEFT_METRIC_QUEUE_DEPTH, WEFT_GROUP_SUBMIT, 17);
    weft_metric_sub(metrics, WEFT_METRIC_WAITERS, WEFT_WAIT_END, 1);
    weft_metric_add(metrics, WEFT_METRIC_SCANNER_ROWS,
                    (size_t)WEFT_SCANNER_LEASE_EXPIRY * WEFT_COUNTERS_MAX + 2, 5);
    weft_metric_request(metrics, &ROUTES[1], 201, 700);
    weft_metric_request(metrics, &ROUTES[1], 201, 90000000);
    weft_metric_request(metrics, &ROUTES[1], 418, -5);
    weft_metric_request(metrics, NULL, 404, 1);
    weft_metric_observe(metrics, WEFT_METRIC_GROUP_ITEMS, WEFT_GROUP_CLAIM, 2);
    weft_metric_observe(metrics, WEFT_METRIC_GROUP_ITEMS, WEFT_GROUP_CLAIM, 3);
    weft_metric_observe(metrics, WEFT_METRIC_GROUP_ITEMS, WEFT_GROUP_CLAIM, 100000);
    weft_buf_clear(&text);
    weft_metrics_write(metrics, &text);

    static const char *const LINES[] = {
        "# HELP weft_http_connections Open connections of clients.",
        "# TYPE weft_http_connections gauge",
        "# TYPE weft_http_requests_total counter",
        "# TYPE weft_http_request_seconds histogram",
        "weft_http_connections 2",
        "weft_queue_requests{group=\"submit\"} 17",
        "weft_waiters{for=\"end\"} -1",
        "weft_scanner_rows_total{scanner=\"lease_expiry\",counter=\"skipped_locked\"} 5",
        "weft_http_requests_total{route=\"/v1/lanes\",method=\"POST\",code=\"201\"} 2",
        "weft_http_requests_total{route=\"/v1/lanes\",method=\"POST\",code=\"other\"} 1",
        "weft_http_requests_total{route=\"none\",method=\"any\",code=\"404\"} 1",
        "weft_http_request_seconds_bucket{route=\"/v1/lanes\",method=\"POST\",le=\"0.0005\"} 1",
        "weft_http_request_seconds_bucket{route=\"/v1/lanes\",method=\"POST\",le=\"0.001\"} 2",
        "weft_http_request_seconds_bucket{route=\"/v1/lanes\",method=\"POST\",le=\"60\"} 2",
        "weft_http_request_seconds_bucket{route=\"/v1/lanes\",method=\"POST\",le=\"+Inf\"} 3",
        "weft_http_request_seconds_sum{route=\"/v1/lanes\",method=\"POST\"} 90.0007",
        "weft_http_request_seconds_count{route=\"/v1/lanes\",method=\"POST\"} 3",
        "weft_group_items_bucket{group=\"claim\",le=\"1\"} 0",
        "weft_group_items_bucket{group=\"claim\",le=\"2\"} 1",
        "weft_group_items_bucket{group=\"claim\",le=\"5\"} 2",
        "weft_group_items_bucket{group=\"claim\",le=\"+Inf\"} 3",
        "weft_group_items_sum{group=\"claim\"} 100005",
        "weft_group_items_count{group=\"claim\"} 3",
    };
    for (size_t i = 0; i < WEFT_LEN(LINES); i++)
        ok(has_line(&text, LINES[i]), "%s", LINES[i]);
    is_int(weft_metric_get(metrics, WEFT_METRIC_GROUP_ITEMS, WEFT_GROUP_CLAIM), 3,
           "a histogram gives the number of observations");
    weft_buf_done(&text);
    weft_metrics_free(metrics);
}

static void test_labels(void)
{
    struct weft_buf text;
    weft_buf_init(&text, 1000);
    weft_metrics_put_label(&text, "lane", "a\"b\\c\nd");
    is_str(text.data, "lane=\"a\\\"b\\\\c\\nd\"", "values of labels are escaped");
    weft_buf_done(&text);
}

enum { THREADS = 4, ROUNDS = 20000 };

static void *count(void *context)
{
    for (int i = 0; i < ROUNDS; i++)
        weft_metric_request(context, &ROUTES[0], 200, i);
    return NULL;
}

static void test_threads(void)
{
    struct weft_metrics *metrics = weft_metrics_new(&TABLE);
    pthread_t thread[THREADS];
    int started = 0;
    while (started < THREADS && !pthread_create(&thread[started], NULL, count, metrics))
        started++;
    for (int i = 0; i < started; i++)
        (void)pthread_join(thread[i], NULL);
    is_int(weft_metric_get(metrics, WEFT_METRIC_HTTP_SECONDS, 0), started * ROUNDS,
           "no request of %d threads is lost", started);
    weft_metrics_free(metrics);
}

int main(void)
{
    test_values();
    test_labels();
    test_threads();
    weft_metrics_free(NULL);
    return tap_done();
}
