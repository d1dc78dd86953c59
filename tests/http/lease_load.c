/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Workers that do nothing but renew their leases, or report what they spend: how many calls a
 * second servers answer. A script would be slower than the servers.
 *
 *     lease_load renew|usage LANE WORKERS SECONDS SERVER...
 *
 * Claims WORKERS executions of the lane, which must be there, each on a connection of its own; the
 * connections go round the servers. Then each worker makes one call after the other: a renewal, or
 * a report of one token more than the last one. Prints one line of JSON: how many were answered
 * with success, how many were refused because a budget was used up, other answers, and the seconds.
 * Its leases stay as they are.
 */

#include "base/clock.h"
#include "cmd/bench/bench.h"
#include "wire/wire.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_MS = 600000, WAIT_MS = 10000, WORKERS_MAX = 1000 };

static atomic_uint_fast64_t good, exceeded, other;
static const char *lane;
static bool reports;
static weft_usec until_us;

struct worker {
    pthread_t thread;
    struct weft_bench_target target;
    struct weft_bench_conn conn;
    char id[WEFT_ID_TEXT];
    int64_t epoch;
    int64_t total;
};

static void fail(const char *what, const struct weft_err *err)
{
    (void)fprintf(stderr, "lease_load: %s: %s\n", what, err->text);
    exit(1);
}

static void claim(struct worker *worker, int number)
{
    struct weft_buf body;
    struct weft_bench_answer answer;
    struct weft_err err = {0};
    struct weft_json whole, items, member;
    struct weft_json_iter iter;
    weft_buf_init(&body, 1 << 20);
    weft_buf_printf(&body,
                    "{\"worker\":\"load-%d\",\"lanes\":[\"%s\"],\"lease_ms\":%d,\"wait_ms\":%d}",
                    number, lane, LEASE_MS, WAIT_MS);
    worker->conn.fd = -1;
    if (weft_bench_connect(&worker->conn, &worker->target, &err) ||
        weft_bench_call(&worker->conn, "/v1/claims", &body, &answer, &err) ||
        weft_json_check(answer.body, answer.body_size, &whole, &err))
        fail("claim", &err);
    if (!weft_wire_member(&whole, "items", &items))
        fail("claim", &err);
    weft_json_iter_init(&iter, &items);
    if (!weft_json_next(&iter) || !weft_wire_member(&iter.value, "id", &member)) {
        (void)snprintf(err.text, sizeof(err.text), "the lane has not enough work");
        fail("claim", &err);
    }
    (void)snprintf(worker->id, sizeof(worker->id), "%.*s", (int)member.size - 2, member.text + 1);
    if (!weft_wire_member(&iter.value, "epoch", &member) || !weft_json_i64(&member, &worker->epoch))
        fail("claim", &err);
    weft_buf_done(&body);
}

static bool has(const struct weft_bench_answer *answer, const char *text)
{
    return memmem(answer->body, answer->body_size, text, strlen(text)) != NULL;
}

static void *work(void *context)
{
    struct worker *worker = context;
    struct weft_buf body;
    struct weft_bench_answer answer;
    struct weft_err err = {0};
    weft_buf_init(&body, 1 << 20);
    while (weft_boot_us() < until_us) {
        weft_buf_clear(&body);
        weft_buf_printf(&body, "{\"items\":[{\"id\":\"%s\",\"epoch\":%lld", worker->id,
                        (long long)worker->epoch);
        if (reports)
            weft_buf_printf(&body, ",\"totals\":{\"tokens\":%lld}}]}",
                            (long long)worker->total + 1);
        else
            weft_buf_printf(&body, ",\"lease_ms\":%d}]}", LEASE_MS);
        if (weft_bench_call(&worker->conn, reports ? "/v1/leases/usage" : "/v1/leases/renew", &body,
                            &answer, &err)) {
            atomic_fetch_add(&other, 1);
            if (worker->conn.fd < 0 && weft_bench_connect(&worker->conn, &worker->target, &err))
                break;
        } else if (has(&answer, "\"budget_exceeded\"")) {
            atomic_fetch_add(&exceeded, 1);
        } else if (has(&answer, "\"error\"")) {
            atomic_fetch_add(&other, 1);
        } else {
            atomic_fetch_add(&good, 1);
            worker->total++;
        }
    }
    weft_bench_close(&worker->conn);
    weft_buf_done(&body);
    return NULL;
}

int main(int argc, char **argv)
{
    struct weft_err err = {0};
    long count = argc < 6 ? 0 : strtol(argv[3], NULL, 10);
    if (count < 1 || count > WORKERS_MAX) {
        (void)fprintf(stderr, "usage: lease_load renew|usage LANE WORKERS SECONDS SERVER...\n");
        return 2;
    }
    reports = strcmp(argv[1], "usage") == 0;
    lane = argv[2];
    int servers = argc - 5;
    struct worker *worker = calloc((size_t)count, sizeof(*worker));
    for (int i = 0; i < count; i++) {
        if (weft_bench_resolve(argv[5 + i % servers], &worker[i].target, &err))
            fail("server", &err);
        claim(&worker[i], i);
    }
    weft_usec began_us = weft_boot_us();
    until_us = began_us + (weft_usec)(strtod(argv[4], NULL) * 1e6);
    for (int i = 0; i < count; i++)
        if (pthread_create(&worker[i].thread, NULL, work, &worker[i]))
            return 1;
    for (int i = 0; i < count; i++)
        (void)pthread_join(worker[i].thread, NULL);
    (void)printf("{\"good\":%llu,\"exceeded\":%llu,\"other\":%llu,\"seconds\":%.3f}\n",
                 (unsigned long long)atomic_load(&good), (unsigned long long)atomic_load(&exceeded),
                 (unsigned long long)atomic_load(&other),
                 (double)(weft_boot_us() - began_us) / 1e6);
    free(worker);
    return 0;
}
