/* SPDX-License-Identifier: Apache-2.0 */

/* Health, readiness, metrics and the OpenAPI document. */

#include "net/api/handlers.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "engine/engine.h"
#include "engine/tx/pool.h"
#include "engine/tx/tx.h"
#include "net/api/api.h"
#include "net/api/api_counts.h"
#include "net/metrics.h"
#include "net/server.h"
#include "net/upkeep/supervisor.h"
#include "net/upkeep/upkeep.h"
#include "weft/admin.h"
#include "weft/weft.h"
#include "wire/wire.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { METRICS_MAX = 32 << 20 };
#define FRESH_US (5 * WEFT_MS)

#define ANSWERED_US (3 * WEFT_SECOND) /* the poll comes round three times */

/* why: it is not ready; warning: it is, but something is missing. Both may be NULL. */
static void reply_status(struct weft_request *request, const struct weft_err *why,
                         const char *warning)
{
    struct weft_json_writer out;
    weft_reply_json(request, why ? 503 : 200, &out);
    weft_json_begin_object(&out);
    weft_json_add_text(&out, "status", why ? "unavailable" : "ok");
    if (why)
        weft_api_put_error(why, NULL, &out);
    if (warning)
        weft_json_add_text(&out, "warning", warning);
    weft_json_end_object(&out);
    if (why)
        weft_reply_header(request, "Retry-After", "1");
}

/* Answered by the loop itself: it says that the process runs, and nothing of the store. */
enum weft_rc weft_health_read(struct weft_request *request, struct weft_err *err)
{
    (void)err;
    reply_status(request, NULL, NULL);
    return WEFT_OK;
}

/*
 * True when the store answers, as far as this process knows: it carried something out a moment ago,
 * the poll of once a second at least, and broke no connection off since. Balancers ask often, also
 * when all engine threads are busy, so no query is made.
 */
static bool store_answers(struct weft_server *server)
{
    return weft_engine_answers(server->engine, ANSWERED_US);
}

/*
 * Answered by the loop itself, from memory. Any client may ask, so the reason is one sentence: what
 * the store said in full, with hosts and names, is in the log.
 */
enum weft_rc weft_readiness_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_server *server = request->server;
    struct weft_err why = {0};
    const char *names = NULL;
    (void)err;
    if (!server->open)
        (void)weft_fail(&why, WEFT_UNAVAILABLE, "the server waits for its store");
    else if (!weft_engine_version(server->engine, &why) && !store_answers(server))
        (void)weft_fail(&why, WEFT_UNAVAILABLE, "%s", weft_rc_text(WEFT_UNAVAILABLE));
    /*
     * A server is ready although a scanner runs nowhere: submissions and claims still work, and a
     * balancer that took it away would make things worse.
     */
    if (!why.rc)
        names = weft_upkeep_uncovered(server, request->arena);
    reply_status(request, why.rc ? &why : NULL,
                 names
                     ? weft_arena_printf(request->arena,
                                         "no living replica runs this for all there is: %s", names)
                     : NULL);
    return WEFT_OK;
}

enum weft_rc weft_openapi_read(struct weft_request *request, struct weft_err *err)
{
    const struct weft_buf *document = weft_api_document(request->server->api);
    (void)err;
    weft_reply_bytes(request, document->data, document->size, "application/json");
    return WEFT_OK;
}

/* ---- Metrics --------------------------------------------------------------------------------- */

static void put_number(struct weft_buf *out, const char *name, const char *help, double value)
{
    weft_metrics_head(out, name, "gauge", help);
    weft_buf_printf(out, "%s %.17g\n", name, value);
}

static size_t count_files(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        return 0;
    while (readdir(folder)) /* NOLINT(concurrency-mt-unsafe): the stream is this call's own */
        count++;
    (void)closedir(folder);
    return count > 3 ? count - 3 : 0; /* without ".", ".." and the folder itself */
}

/* The fields of /proc/self/stat behind the name, which may hold anything. */
static void put_process(struct weft_buf *out)
{
    char text[1024] = "";
    FILE *file = fopen("/proc/self/stat", "re");
    if (file) {
        size_t size = fread(text, 1, sizeof(text) - 1, file);
        text[size] = '\0';
        (void)fclose(file);
    }
    const char *at = strrchr(text, ')');
    unsigned long long user = 0, kernel = 0, start = 0;
    long threads = 0, pages = 0;
    if (!at || sscanf(at + 1, /* NOLINT(cert-err34-c): the kernel's own numbers */
                      " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %ld "
                      "%*d %llu %*u %ld",
                      &user, &kernel, &threads, &start, &pages) != 5)
        return;
    double ticks = (double)sysconf(_SC_CLK_TCK);
    struct timespec wall = {0};
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    double age_s = (double)weft_boot_us() / 1e6 - (double)start / ticks;
    put_number(out, "process_resident_memory_bytes", "Memory in use.",
               (double)pages * (double)sysconf(_SC_PAGESIZE));
    put_number(out, "process_open_fds", "Open files and sockets.", (double)count_files());
    put_number(out, "process_threads", "Threads.", (double)threads);
    weft_metrics_head(out, "process_cpu_seconds_total", "counter", "Time on a processor.");
    weft_buf_printf(out, "process_cpu_seconds_total %.2f\n", (double)(user + kernel) / ticks);
    put_number(out, "process_start_time_seconds", "When the process began, in Unix time.",
               (double)wall.tv_sec - age_s);
}

static void put_build(struct weft_buf *out)
{
    weft_metrics_head(out, "weft_build_info", "gauge", "The version that runs.");
    weft_buf_add_text(out, "weft_build_info{");
    weft_metrics_put_label(out, "version", WEFT_VERSION);
    weft_buf_add_text(out, "} 1\n");
}

static void put_clock(const struct weft_clock *clock, struct weft_buf *out)
{
    struct timespec wall = {0};
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    weft_usec wall_us = wall.tv_sec * WEFT_SECOND + wall.tv_nsec / 1000;
    put_number(out, "weft_store_clock_offset_seconds",
               "By how much the store's clock is ahead of this machine's.",
               (double)(weft_clock_now(clock) - wall_us) / 1e6);
}

static void put_transactions(const struct weft_engine *engine, struct weft_buf *out)
{
    static const char name[] = "weft_store_transactions_total";
    static const char *const mode[] = {[WEFT_TX_READ] = "read",
                                       [WEFT_TX_WRITE] = "write",
                                       [WEFT_TX_KEYED] = "keyed",
                                       [WEFT_TX_HOT] = "hot",
                                       [WEFT_TX_BARE] = "bare"};
    weft_metrics_head(out, name, "counter",
                      "Transactions begun, tries again included; bare: of one read, as the poll.");
    for (size_t i = 0; i < WEFT_LEN(mode); i++) {
        weft_buf_printf(out, "%s{", name);
        weft_metrics_put_label(out, "mode", mode[i]);
        weft_buf_printf(out, "} %" PRIu64 "\n",
                        weft_engine_transactions(engine, (enum weft_tx_mode)i));
    }
}

static void put_scanners(struct weft_server *server, struct weft_arena *arena, struct weft_buf *out)
{
    static const struct {
        const char *name, *help;
    } gauge[] = {
        {"weft_scanner_enabled", "1 when the scanner runs on this replica."},
        {"weft_scanner_interval_seconds", "The longest time between two passes; 0 when off."},
        {"weft_scanner_last_success_timestamp_seconds",
         "When a pass last went well, in Unix time of the store; 0: not yet."},
        {"weft_scanner_lag_seconds", "Age of the oldest row that is due, as last known."},
    };
    const struct weft_scanner_status *status = weft_supervisor_status(server, arena);
    for (size_t g = 0; g < WEFT_LEN(gauge); g++) {
        weft_metrics_head(out, gauge[g].name, "gauge", gauge[g].help);
        for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++) {
            const double value[] = {status[i].enabled, (double)status[i].interval_ms / 1e3,
                                    (double)status[i].last_pass_us / 1e6,
                                    (double)status[i].lag_us / 1e6};
            weft_buf_printf(out, "%s{", gauge[g].name);
            weft_metrics_put_label(out, "scanner", status[i].name);
            weft_buf_printf(out, "} %.17g\n", value[g]);
        }
    }
}

/*
 * The figures of this process. Writing them takes the loop thread about half a millisecond, in
 * which no other request is read; a request within FRESH_US after that gets the same text again.
 */
static void add_figures(struct weft_request *request, struct weft_buf *out)
{
    struct weft_figures *figures = &request->server->api->figures;
    weft_usec now_us = weft_boot_us();
    pthread_mutex_lock(&figures->lock);
    if (figures->text.size == 0 || now_us - figures->written_us >= FRESH_US) {
        figures->written_us = now_us;
        weft_buf_clear(&figures->text);
        weft_metrics_write(request->server->metrics, &figures->text);
        put_scanners(request->server, request->arena, &figures->text);
        put_process(&figures->text);
        put_clock(weft_engine_clock(request->server->engine), &figures->text);
        put_transactions(request->server->engine, &figures->text);
        if (request->server->endpoint_metrics)
            request->server->endpoint_metrics(request->server->endpoint_health_context,
                                              request->arena, &figures->text);
    }
    weft_buf_add(out, figures->text.data, figures->text.size);
    pthread_mutex_unlock(&figures->lock);
}

/*
 * With the counts of the namespace as `counts` has them; the rest is about this process. It
 * counts the requests and the rows of all namespaces together, so a token that is bound to one of
 * them does not get it: the differences would show what the other namespaces do.
 */
static void reply_metrics(struct weft_request *request, const struct weft_buf *counts)
{
    weft_reply_bytes(request, "", 0, "text/plain; version=0.0.4; charset=utf-8");
    struct weft_buf *text = &request->reply.body;
    if (!request->ns_fixed)
        add_figures(request, text);
    put_build(text);
    weft_buf_add(text, counts->data, counts->size);
    /* Metrics are asked for when things go wrong: a store that is away is one more number. */
    put_number(text, "weft_store_up", "1 when the store answered just now.",
               store_answers(request->server));
}

/* From memory, which may have no counts; or, on an engine thread, from the store if need be. */
static enum weft_rc answer_metrics(struct weft_request *request, bool from_memory)
{
    const struct weft_counts_of of = {.ns = request->ns, .text = WEFT_COUNTS_METRICS};
    struct weft_counts_cache *cache = request->server->api->counts;
    struct weft_buf counts;
    weft_buf_init(&counts, METRICS_MAX);
    bool away = from_memory && !store_answers(request->server);
    bool known = from_memory
                     ? weft_counts_cache_glance(cache, &of, away, &counts)
                     : !weft_counts_cache_get(cache, request->server->engine, &of, &counts, NULL);
    if (known || away || !from_memory) /* without counts, if they cannot be had */
        reply_metrics(request, &counts);
    weft_buf_done(&counts);
    return WEFT_OK;
}

/*
 * The loop answers from memory. Only the first request for a namespace in a while, whose counts
 * are not kept, goes to an engine thread; from then on upkeep keeps them: see weft_counts_keep().
 * While the store is away no request does: old counts are better than none.
 */
enum weft_rc weft_metrics_read(struct weft_request *request, struct weft_err *err)
{
    (void)err;
    return answer_metrics(request, true);
}

enum weft_rc weft_metrics_run(struct weft_request *request, struct weft_err *err)
{
    (void)err;
    return answer_metrics(request, false);
}
