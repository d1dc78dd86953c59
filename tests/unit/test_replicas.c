/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two servers on one store: each waits the grace when it comes up, the second one takes over the
 * first one's, both are on the list, and one that stops leaves it.
 */

#include "server_fixture.h"
#include "tap.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/admin/replicas.h"
#include "engine/engine.h"
#include "net/server.h"
#include "net/upkeep/supervisor.h"
#include "net/upkeep/upkeep.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define PATIENCE_US (30 * WEFT_SECOND)
#define CLOSE_US    (500 * WEFT_MS)
#define GRACE_US    (10 * WEFT_SECOND)
#define EXPIRY      WEFT_SCANNER_LEASE_EXPIRY

static struct weft_server *start(const char *store, const struct weft_scanner_setting *scanners)
{
    struct weft_err err = {0};
    struct weft_server *server = NULL;
    const struct weft_server_config config = {
        .store = store, .listen = "127.0.0.1:0", .scanners = scanners};
    if (weft_server_start(&config, &server, &err)) {
        printf("Bail out! cannot start a server: %s\n", err.text);
        exit(1); /* NOLINT(concurrency-mt-unsafe) */
    }
    return server;
}

static weft_usec now_of(struct weft_server *server)
{
    return weft_clock_now(weft_engine_clock(server->engine));
}

/* When a server may take its first lease away, in the store's time. */
static weft_usec expiry_of(struct weft_server *server)
{
    struct weft_arena *arena = weft_arena_new();
    weft_usec next_us = weft_supervisor_status(server, arena)[EXPIRY].next_us;
    weft_arena_free(arena);
    return next_us;
}

static size_t count_rows(struct weft_server *server, struct weft_arena *arena,
                         struct weft_replica_rows *ret_rows)
{
    struct weft_err err = {0};
    if (weft_engine_replicas(server->engine, arena, ret_rows, &err))
        ret_rows->count = 0;
    return ret_rows->count;
}

static bool is_close(weft_usec a, weft_usec b)
{
    return a - b < CLOSE_US && b - a < CLOSE_US;
}

/* Whether it is the grace of a server that came up since then, however long that took. */
static bool is_grace(struct weft_server *server, weft_usec expiry_us, weft_usec since_boot_us)
{
    weft_usec left_us = expiry_us - now_of(server), took_us = weft_boot_us() - since_boot_us;
    return left_us < GRACE_US + CLOSE_US && left_us > GRACE_US - took_us - CLOSE_US;
}

/* What is asked for comes true before long. */
#define SOON(condition)                                                                            \
    do {                                                                                           \
        weft_usec until_us = weft_boot_us() + PATIENCE_US;                                         \
        while (!(condition) && weft_boot_us() < until_us)                                          \
            (void)poll(NULL, 0, 20);                                                               \
    } while (0)

static void test_row(struct weft_server *server, struct weft_arena *arena)
{
    struct weft_replica_rows rows;
    SOON(count_rows(server, arena, &rows) == 1);
    is_int((int64_t)count_rows(server, arena, &rows), 1, "the replica is listed");
    is_int(rows.item[0].pid, getpid(), "the row has its process");
    is_str(rows.item[0].url, weft_server_url(server), "where it listens");
    ok(strstr(rows.item[0].settings, "\"threads\":6"), "the row has its settings: %s",
       rows.item[0].settings);
    ok(strstr(rows.item[0].scanners, "\"name\":\"lease_expiry\""), "the row has its scanners");
    ok(is_close(rows.item[0].up_since_us, rows.item[0].started_us), "up since its start");
}

static void test_two(const char *store)
{
    struct weft_scanner_setting off[WEFT_SCANNER_COUNT];
    struct weft_replica_rows rows;
    struct weft_arena *arena = weft_arena_new();
    weft_usec before_us = weft_boot_us();
    struct weft_server *first = start(store, NULL);
    ok(is_grace(first, expiry_of(first), before_us), "alone: the whole grace");
    test_row(first, arena);
    SOON(!is_close(expiry_of(first), now_of(first) + GRACE_US)); /* time has passed */

    before_us = weft_boot_us();
    struct weft_server *second = start(store, NULL);
    weft_usec expiry_us = expiry_of(second);
    /* A heartbeat of the first may have come already: see below. */
    ok(is_grace(second, expiry_us, before_us) || is_close(expiry_us, expiry_of(first)),
       "the second waits as well");
    SOON(is_close(expiry_of(second), expiry_of(first)));
    ok(is_close(expiry_of(second), expiry_of(first)),
       "the second replica adopts the grace of the first");
    is_int((int64_t)count_rows(first, arena, &rows), 2, "both replicas are listed");
    ok(!weft_upkeep_uncovered(second, arena), "every scanner is covered");

    weft_scanner_defaults(off);
    off[EXPIRY].interval_us = 0;
    weft_server_reload(first, &(struct weft_server_config){.scanners = off});
    weft_server_reload(second, &(struct weft_server_config){.scanners = off});
    SOON(weft_upkeep_uncovered(second, arena) != NULL);
    is_str(weft_upkeep_uncovered(second, arena), "lease_expiry", "no replica covers lease_expiry");
    ok(weft_server_stop(first), "an orderly stop");
    weft_server_free(first);
    is_int((int64_t)count_rows(second, arena, &rows), 1, "takes it off the list");
    is_str(rows.item[0].url, weft_server_url(second), "the other one stays");
    weft_server_free(second);
    weft_arena_free(arena);
}

int main(void)
{
    char store[256];
    const char *folder = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): one thread */
    (void)snprintf(store, sizeof(store), "sqlite:%s/weft-replicas-%d.db", folder ? folder : "/tmp",
                   (int)getpid());
    test_two(store);
    static const char *const suffix[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < WEFT_LEN(suffix); i++) {
        char name[300];
        (void)snprintf(name, sizeof(name), "%s%s", store + strlen("sqlite:"), suffix[i]);
        (void)unlink(name);
    }
    return tap_done();
}
