/* SPDX-License-Identifier: Apache-2.0 */

/* Many calls at once: servers that misbehave, timeouts, aborts, stops, kept connections. */

#include "crowd_fixture.h"

#include "http_fixture.h"

static struct weft_err err;
static struct upstream upstream;

static struct weft_crowd *start(uint32_t threads, uint32_t in_flight)
{
    struct weft_crowd *crowd = NULL;
    const struct weft_crowd_config config = {.threads = threads, .in_flight = in_flight};
    if (weft_crowd_start(&config, &crowd, &err) != WEFT_OK)
        abort();
    return crowd;
}

/* ---- Hostile servers ------------------------------------------------------------------------- */

/* How a call may be, besides a GET. */
enum how { GET, POST, LARGE, FOLLOW };

static const struct hostile {
    const char *path;
    enum weft_http_failure failure;
    int64_t first_byte_ms, idle_ms, total_ms; /* 0: long */
    enum how how;
    int status;
} hostile[] = {
    {"/hang-up/before", WEFT_HTTP_BROKEN, 0, 0, 0, GET, 0},
    {"/hang-up/head", WEFT_HTTP_BROKEN, 0, 0, 0, GET, 0},
    {"/hang-up/body", WEFT_HTTP_BROKEN, 0, 0, 0, GET, 200},
    {"/hang-up/after", WEFT_HTTP_ANSWERED, 0, 0, 0, GET, 200},
    {"/drop/before", WEFT_HTTP_BROKEN, 0, 0, 0, POST, 0},
    {"/drop/head", WEFT_HTTP_BROKEN, 0, 0, 0, GET, 0},
    {"/drop/body", WEFT_HTTP_BROKEN, 0, 0, 0, GET, 200},
    {"/length/long", WEFT_HTTP_BROKEN, 0, 0, 0, GET, 200},
    {"/length/open", WEFT_HTTP_TIMEOUT, 0, 300, 0, GET, 200},
    {"/length/short", WEFT_HTTP_ANSWERED, 0, 0, 0, GET, 200},
    {"/length/two", WEFT_HTTP_PROTOCOL, 0, 0, 0, GET, 0},
    {"/length/word", WEFT_HTTP_PROTOCOL, 0, 0, 0, GET, 0},
    {"/length/negative", WEFT_HTTP_PROTOCOL, 0, 0, 0, GET, 0},
    {"/length/huge", WEFT_HTTP_PROTOCOL, 0, 0, 0, GET, 0},
    {"/chunked", WEFT_HTTP_ANSWERED, 0, 0, 0, GET, 200},
    {"/chunked/bad", WEFT_HTTP_PROTOCOL, 0, 0, 0, GET, 200},
    {"/chunked/huge", WEFT_HTTP_PROTOCOL, 0, 0, 0, GET, 200},
    {"/chunked/cut", WEFT_HTTP_BROKEN, 0, 0, 0, GET, 200},
    {"/head/98/10", WEFT_HTTP_ANSWERED, 0, 0, 0, GET, 200},
    {"/head/99/10", WEFT_HTTP_PROTOCOL, 0, 0, 0, GET, 0},
    {"/head/50/2000", WEFT_HTTP_PROTOCOL, 0, 0, 0, GET, 0},
    {"/head/1/90000", WEFT_HTTP_PROTOCOL, 0, 0, 0, GET, 0},
    {"/head/endless", WEFT_HTTP_PROTOCOL, 0, 0, 0, GET, 0},
    {"/head/line", WEFT_HTTP_PROTOCOL, 0, 0, 0, GET, 0},
    {"/head/nul", WEFT_HTTP_PROTOCOL, 0, 0, 0, GET, 0},
    {"/head/bytes", WEFT_HTTP_ANSWERED, 0, 0, 0, GET, 200},
    {"/body/endless", WEFT_HTTP_OVERSIZED, 0, 0, 0, GET, 200},
    {"/body/bytes", WEFT_HTTP_ANSWERED, 0, 0, 0, GET, 200},
    {"/garbage", WEFT_HTTP_PROTOCOL, 0, 0, 0, GET, 0},
    {"/garbage/status", WEFT_HTTP_PROTOCOL, 0, 0, 0, GET, 0},
    {"/garbage/short", WEFT_HTTP_BROKEN, 0, 0, 0, GET, 0},
    {"/garbage/endless", WEFT_HTTP_PROTOCOL, 0, 0, 0, GET, 0},
    {"/switch", WEFT_HTTP_PROTOCOL, 0, 0, 0, GET, 0},
    {"/silent", WEFT_HTTP_TIMEOUT, 250, 0, 0, GET, 0},
    {"/silent", WEFT_HTTP_TIMEOUT, 0, 0, 4000, GET, 0},
    {"/unread", WEFT_HTTP_TIMEOUT, 300, 0, 0, LARGE, 0},
    {"/delay/5000", WEFT_HTTP_TIMEOUT, 200, 0, 0, POST, 0},
    {"/only-continue", WEFT_HTTP_TIMEOUT, 0, 300, 0, POST, 0},
    {"/bytes/1000/1/50", WEFT_HTTP_TIMEOUT, 0, 3500, 4000, GET, 200},
    {"/bytes/20/10/2000", WEFT_HTTP_TIMEOUT, 0, 300, 0, GET, 200},
    {"/bytes/20/10/200", WEFT_HTTP_ANSWERED, 0, 8000, 0, GET, 200},
    {"/sse/chat?stall=2", WEFT_HTTP_TIMEOUT, 0, 300, 0, POST, 200},
    {"/sse/chat?stop=2", WEFT_HTTP_BROKEN, 0, 0, 0, POST, 200},
    {"/early", WEFT_HTTP_ANSWERED, 0, 0, 0, POST, 413},
    {"/gzip", WEFT_HTTP_ANSWERED, 0, 0, 0, GET, 200},
    {"/deflate", WEFT_HTTP_ANSWERED, 0, 0, 0, GET, 200},
    {"/gzip-cut", WEFT_HTTP_BROKEN, 0, 0, 0, GET, 200},
    {"/gzip-bomb", WEFT_HTTP_OVERSIZED, 0, 0, 0, GET, 200},
    {"/http10", WEFT_HTTP_ANSWERED, 0, 0, 0, GET, 200},
    {"/continue", WEFT_HTTP_ANSWERED, 0, 0, 0, POST, 200},
    {"/hints", WEFT_HTTP_ANSWERED, 0, 0, 0, GET, 200},
    {"/status/503", WEFT_HTTP_ANSWERED, 0, 0, 0, GET, 503},
    {"/redirect/2", WEFT_HTTP_ANSWERED, 0, 0, 0, GET, 302},
    {"/redirect/5", WEFT_HTTP_ANSWERED, 0, 0, 0, FOLLOW, 200},
    {"/redirect/6", WEFT_HTTP_REDIRECTED, 0, 0, 0, FOLLOW, 302},
    {"/redirect/host/", WEFT_HTTP_REDIRECTED, 0, 0, 0, FOLLOW, 302},
    {"/redirect/port/1", WEFT_HTTP_REDIRECTED, 0, 0, 0, FOLLOW, 302},
};

enum {
    LARGE_SIZE = 8 << 20,
    NEIGHBOURS = 20,
    HOSTILE = WEFT_LEN(hostile),
    ALL_NEIGHBOURS = HOSTILE * NEIGHBOURS,
    LATE_MS = 5000
};

/* A path that ends with a slash gets the port of the upstream. */
static char *url_of(const char *path)
{
    char port[16] = "", url[300];
    if (path[strlen(path) - 1] == '/')
        (void)snprintf(port, sizeof(port), "%d", upstream.port);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%d%s%s", upstream.port, path, port);
    return weft_strdup(url);
}

static struct weft_crowd_call hostile_call(const struct hostile *row, const char *url,
                                           const char *large, struct taken *taken)
{
    struct weft_crowd_call call = plain_call(url, taken);
    call.first_byte_ms = row->first_byte_ms ? row->first_byte_ms : call.first_byte_ms;
    call.idle_ms = row->idle_ms ? row->idle_ms : call.idle_ms;
    call.total_ms = row->total_ms ? row->total_ms : call.total_ms;
    call.redirects = row->how == FOLLOW;
    call.once = true;
    if (row->how == POST || row->how == LARGE) {
        call.method = "POST";
        call.body = row->how == LARGE ? large : "{\"stream\":true}";
        call.body_size = row->how == LARGE ? LARGE_SIZE : strlen(call.body);
    }
    return call;
}

static void check_hostile(const struct hostile *row, const struct taken *taken)
{
    const struct weft_crowd_end *end = &taken->end;
    int64_t least_ms = row->first_byte_ms ? row->first_byte_ms : row->idle_ms;
    least_ms = row->total_ms ? row->total_ms : least_ms;
    is_int(end->failure, row->failure, "%s: %s", row->path, taken->text);
    is_int(end->status, row->status, "%s: the status", row->path);
    ok(taken->ends == 1 && !end->aborted && end->sent, "%s: one end, sent", row->path);
    ok((end->failure == WEFT_HTTP_ANSWERED) == !end->text, "%s: a sentence for each failure",
       row->path);
    ok(taken->heads == (row->status != 0 && row->failure != WEFT_HTTP_REDIRECTED),
       "%s: the head is told once or never", row->path);
    int64_t took_ms = end->phases.total_us / 1000;
    if (row->failure == WEFT_HTTP_TIMEOUT)
        ok(took_ms >= least_ms && took_ms < least_ms + LATE_MS,
           "%s: after %" PRId64 " ms, %" PRId64, row->path, least_ms, took_ms);
}

/* All of them at once, with neighbours between them. */
static void test_hostile(uint32_t threads)
{
    static struct taken taken[HOSTILE], neighbour[ALL_NEIGHBOURS];
    char *url[HOSTILE], *ok_url = url_of("/echo"), *large = weft_alloc(LARGE_SIZE, 1);
    int files = count_descriptors();
    struct weft_crowd *crowd = start(threads, 0);
    for (size_t i = 0; i < HOSTILE; i++) {
        taken_init(&taken[i]);
        url[i] = url_of(hostile[i].path);
        const struct weft_crowd_call call = hostile_call(&hostile[i], url[i], large, &taken[i]);
        (void)weft_crowd_call(crowd, &call);
        for (size_t j = i * NEIGHBOURS; j < (i + 1) * NEIGHBOURS; j++) {
            taken_init(&neighbour[j]);
            const struct weft_crowd_call plain = plain_call(ok_url, &neighbour[j]);
            (void)weft_crowd_call(crowd, &plain);
        }
    }
    size_t well = 0;
    for (size_t i = 0; i < HOSTILE; i++) {
        ok(await_end(&taken[i]), "%s ends", hostile[i].path);
        check_hostile(&hostile[i], &taken[i]);
    }
    for (size_t i = 0; i < ALL_NEIGHBOURS; i++)
        well += await_end(&neighbour[i]) && neighbour[i].status == 200 &&
                strstr(neighbour[i].body, "\"path\":\"/echo\"") != NULL &&
                neighbour[i].end.failure == WEFT_HTTP_ANSWERED;
    is_int(well, ALL_NEIGHBOURS, "the neighbours are answered, each with its own answer");
    weft_crowd_stop(crowd);
    is_int(count_descriptors(), files, "no descriptor is left");
    for (size_t i = 0; i < HOSTILE; i++) {
        taken_done(&taken[i]);
        free(url[i]);
    }
    for (size_t i = 0; i < ALL_NEIGHBOURS; i++)
        taken_done(&neighbour[i]);
    free(large);
    free(ok_url);
}

int main(void)
{
    upstream = upstream_start();
    test_hostile(1);
    test_hostile(2);
    upstream_stop(&upstream);
    return tap_done();
}
