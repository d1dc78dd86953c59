/* SPDX-License-Identifier: Apache-2.0 */

#include "cmd/admin/endpoint_show.h"

#include "base/limits.h"
#include "cmd/job/show.h"

#include <inttypes.h>
#include <string.h>

static const char *const breakers[] = {"closed", "open", "half open"};

/* ---- Lists ----------------------------------------------------------------------------------- */

static void put_breaker(struct weft_table *table, const void *item)
{
    static const char *const color[] = {"32", "31", "33"};
    const struct weft_endpoint *endpoint = item;
    enum weft_endpoint_breaker breaker = endpoint->health.breaker;
    if (endpoint->health.known)
        weft_table_paint(table, color[breaker], "%s", breakers[breaker]);
    else
        weft_table_cell(table, "-");
}

#define AT(member) offsetof(struct weft_endpoint, member)
static const struct weft_column columns[] = {
    {"ENDPOINT", WEFT_LEFT, 2, weft_cell_text, AT(name)},
    {"URL", WEFT_LEFT, 1, weft_cell_text, AT(url)},
    {"SECRET", WEFT_LEFT, 3, weft_cell_text, AT(secret)},
    {"BREAKER", WEFT_LEFT, 0, put_breaker, 0},
    {"IN FLIGHT", WEFT_RIGHT, 0, weft_cell_u64, AT(health.in_flight)},
    {"WAITING", WEFT_RIGHT, 0, weft_cell_u64, AT(health.waiting)},
    {"2XX", WEFT_RIGHT, 0, weft_cell_u64, AT(health.answers[1])},
    {"4XX", WEFT_RIGHT, 0, weft_cell_u64, AT(health.answers[3])},
    {"5XX", WEFT_RIGHT, 0, weft_cell_u64, AT(health.answers[4])},
    {"FAILED", WEFT_RIGHT, 0, weft_cell_u64, AT(health.failed)},
};

enum weft_exit weft_endpoint_list(const struct weft_cli *cli, struct weft *weft)
{
    struct weft_err err = {0};
    struct weft_endpoints endpoints = {0};
    if (weft_endpoints(weft, NULL, WEFT_PAGE_MAX, NULL, &endpoints, &err))
        return weft_cli_fail(&err); /* a namespace has no more than a page of them */
    weft_cli_put_list(cli, WEFT_LIST(columns, weft_wire_endpoint, endpoints));
    weft_endpoints_free(&endpoints);
    return WEFT_EXIT_OK;
}

/* ---- One ------------------------------------------------------------------------------------- */

static void put_spans(const struct weft_cli *cli, const struct weft_endpoint *endpoint)
{
    const struct {
        const char *label;
        int64_t ms;
    } row[] = {{"connect", endpoint->connect_ms},
               {"first byte", endpoint->first_byte_ms},
               {"idle", endpoint->idle_ms},
               {"total", endpoint->total_ms},
               {"retry after", endpoint->retry_after_max_ms}};
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        weft_show_field(row[i].label, "at most %s", weft_duration_text(cli->arena, row[i].ms));
}

static void put_health(const struct weft_endpoint_health *health)
{
    char until[WEFT_AGO_TEXT] = "";
    if (!health->known)
        return;
    if (health->open_until_us)
        weft_ago(health->open_until_us, weft_wall_us(), until);
    weft_show_field("breaker", "%s%s%s", breakers[health->breaker], *until ? ", ends " : "", until);
    weft_show_field("calls now", "%" PRIu64 " in flight, %" PRIu64 " waiting", health->in_flight,
                    health->waiting);
    weft_show_field("answers",
                    "%" PRIu64 " of 2xx, %" PRIu64 " of 3xx, %" PRIu64 " of 4xx, %" PRIu64
                    " of 5xx, %" PRIu64 " failed",
                    health->answers[1], health->answers[2], health->answers[3], health->answers[4],
                    health->failed);
}

static void put_one(const struct weft_cli *cli, const struct weft_endpoint *endpoint)
{
    weft_show_text("endpoint", endpoint->name);
    weft_show_text("url", endpoint->url);
    weft_show_text("secret", endpoint->secret);
    weft_show_text("auth", endpoint->auth);
    for (size_t i = 0; i < endpoint->header_count; i++)
        weft_show_field(i ? "" : "headers", "%s: %s", endpoint->headers[i].key,
                        endpoint->headers[i].value);
    weft_show_text("private", endpoint->private_addresses ? "yes" : "no");
    weft_show_text("redirects", endpoint->redirects ? "yes" : "no");
    weft_show_text("idempotent", endpoint->idempotent ? "yes" : "no");
    weft_show_text("idempotency", endpoint->idempotency_header);
    weft_show_text("retry", endpoint->retry);
    weft_show_field("in flight", "at most %" PRId64, endpoint->max_in_flight);
    put_spans(cli, endpoint);
    weft_show_field("response", "at most %" PRId64 " bytes", endpoint->response_max);
    put_health(&endpoint->health);
}

enum weft_exit weft_endpoint_show(const struct weft_cli *cli, struct weft *weft, const char *name)
{
    struct weft_err err = {0};
    struct weft_endpoints one = {0};
    if (weft_endpoints(weft, name, 0, NULL, &one, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli))
        weft_json_out_item(&weft_wire_endpoint, &one.item[0]);
    else
        put_one(cli, &one.item[0]);
    weft_endpoints_free(&one);
    return WEFT_EXIT_OK;
}

/* ---- A call that tries it -------------------------------------------------------------------- */

/* When something happened, and how long that took since what came before. */
static void put_phase(const char *label, int64_t at_us, int64_t *before_us)
{
    char at[WEFT_AGO_TEXT], took[WEFT_AGO_TEXT];
    if (at_us == 0)
        return;
    weft_span(at_us, at);
    weft_span(at_us - *before_us, took);
    weft_show_field(label, "%s (+%s)", at, took);
    *before_us = at_us;
}

static void put_trial(const struct weft_endpoint_trial *trial)
{
    int64_t before_us = 0;
    if (trial->status)
        weft_show_field("status", "%d", trial->status);
    if (trial->error_class)
        weft_show_field("error", "%s: %s", trial->error_class,
                        trial->error_message ? trial->error_message : "");
    weft_show_field("bytes", "%" PRIu64, trial->bytes);
    put_phase("resolved", trial->resolved_us, &before_us);
    put_phase("connected", trial->connected_us, &before_us);
    put_phase("secured", trial->secured_us, &before_us);
    put_phase("first byte", trial->first_byte_us, &before_us);
    put_phase("total", trial->total_us, &before_us);
}

enum weft_exit weft_endpoint_try(const struct weft_cli *cli, struct weft *weft, const char *name)
{
    struct weft_err err = {0};
    struct weft_endpoint_trial trial = {0};
    const struct weft_endpoint_trying trying = {
        .name = name, .path = weft_cli_get(cli, "path"), .method = weft_cli_get(cli, "method")};
    if (weft_endpoint_test(weft, &trying, &trial, &err))
        return weft_cli_fail(&err);
    bool good = !trial.error_class && trial.status < 400;
    if (weft_cli_json(cli))
        weft_json_out_item(&weft_wire_endpoint_trial, &trial);
    else
        put_trial(&trial);
    weft_endpoint_trial_free(&trial);
    return good ? WEFT_EXIT_OK : WEFT_EXIT_FAILED;
}
