/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The row of this replica, written with every heartbeat, and what the rows of the others say: when
 * the grace of the service ends, and which scanners no replica runs.
 *
 * The grace. While no replica serves, no worker can renew, and leases run out that no worker gave
 * up. So for a while after the service comes up no lease is taken away. The service is up since the
 * earliest moment since which a living replica has served without a gap, and the grace ends
 * GRACE_US after that. A replica that starts alone begins it; one that joins others takes over
 * theirs, which is usually long past.
 *
 * Only a row that was written after this replica came up counts: its writer has served since its
 * up_since, so the service was up while this replica was away. An older row proves nothing: its
 * writer may be dead, or the store, which all share, may have been away from all of them. In that
 * case each of them notices the gap by its own poll before it writes its row again, and the row
 * then names the end of the gap (upkeep.c polls first and writes after that). So after an outage of
 * the store no row reaches back before it, and all replicas wait.
 *
 * Nothing is lost by waiting for the others' next heartbeat, WEFT_HEARTBEAT_US at most: if they are
 * there, their scanners do the work meanwhile.
 */

#include "net/upkeep/presence.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/admin/replicas.h"
#include "engine/engine.h"
#include "net/http/loop.h"
#include "net/server.h"
#include "net/upkeep/supervisor.h"
#include "wire/wire.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GRACE_US (10 * WEFT_SECOND)
enum { ROW_MAX = 1 << 20, HOST_MAX = 64, UNCOVERED_MAX = 1024 };

struct weft_presence {
    struct weft_server *server;
    struct weft_id id;
    char host[HOST_MAX + 1];
    weft_usec started_us; /* the store's time */

    /* The upkeep thread's. */
    weft_usec up_since_us; /* the store's time */
    weft_usec grace_us;    /* the store's time; when the grace ends */
    bool waiting;          /* for that */
    weft_usec beat_us;     /* boot time; the last heartbeat, 0: it is due */

    pthread_mutex_t lock; /* over the rest */
    char uncovered[UNCOVERED_MAX];
};

static weft_usec store_now(const struct weft_presence *presence)
{
    return weft_clock_now(weft_engine_clock(presence->server->engine));
}

/* ---- The grace ------------------------------------------------------------------------------- */

weft_usec weft_presence_grace(const struct weft_replica_rows *rows, const struct weft_id *self,
                              weft_usec up_since_us)
{
    weft_usec since_us = up_since_us;
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_replica_row *row = &rows->item[i];
        if (weft_id_cmp(&row->id, self) != 0 && row->seen_us > up_since_us &&
            row->up_since_us < since_us)
            since_us = row->up_since_us;
    }
    return since_us + GRACE_US;
}

void weft_presence_up(struct weft_presence *presence)
{
    presence->up_since_us = store_now(presence);
    presence->grace_us = presence->up_since_us + GRACE_US;
    presence->waiting = true;
    presence->beat_us = 0; /* write the row soon */
    weft_supervisor_hold(presence->server->supervisor, presence->grace_us);
}

static void judge(struct weft_presence *presence, const struct weft_replica_rows *rows)
{
    weft_usec grace_us = weft_presence_grace(rows, &presence->id, presence->up_since_us);
    if (grace_us < presence->grace_us) {
        presence->grace_us = grace_us;
        weft_info("another replica kept the service up");
        weft_supervisor_hold(presence->server->supervisor, grace_us);
    }
    presence->waiting = store_now(presence) < presence->grace_us;
}

/* ---- The row --------------------------------------------------------------------------------- */

static const char *write_settings(const struct weft_server *server,
                                  const struct weft_scanner_status *status, struct weft_buf *buf)
{
    const struct weft_server_config *config = &server->config;
    struct weft_json_writer out;
    weft_json_writer_init(&out, buf);
    weft_json_begin_object(&out);
    weft_json_add_text(&out, "listen", server->listener.address);
    weft_json_add_i64(&out, "threads", config->threads);
    weft_json_add_i64(&out, "connections", config->connections);
    weft_json_add_i64(&out, "queue_max", config->queue_max);
    weft_json_add_bool(&out, "tokens", config->tokens || !server->listener.loopback);
    weft_json_add_bool(&out, "tls", config->tls_cert != NULL);
    weft_json_add_array(&out, "scanners");
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        if (status[i].enabled)
            weft_json_put_text(&out, status[i].name);
    weft_json_end_array(&out);
    weft_json_end_object(&out);
    weft_buf_add_char(buf, '\0');
    return buf->data;
}

static const char *write_scanners(const struct weft_scanner_status *status, struct weft_buf *buf)
{
    struct weft_json_writer out;
    weft_json_writer_init(&out, buf);
    weft_json_begin_array(&out);
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        weft_wire_write(&weft_wire_scanner, &status[i], &out);
    weft_json_end_array(&out);
    weft_buf_add_char(buf, '\0');
    return buf->data;
}

static enum weft_rc put_row(struct weft_presence *presence, struct weft_arena *arena,
                            struct weft_err *err)
{
    struct weft_server *server = presence->server;
    const struct weft_scanner_status *status = weft_supervisor_status(server, arena);
    struct weft_buf settings, scanners;
    weft_buf_init(&settings, ROW_MAX);
    weft_buf_init(&scanners, ROW_MAX);
    const struct weft_replica_row row = {
        .id = presence->id,
        .host = presence->host,
        .pid = getpid(),
        .version = weft_version(),
        .url = weft_loop_url(server->loop),
        .started_us = presence->started_us,
        .up_since_us = presence->up_since_us,
        .settings = write_settings(server, status, &settings),
        .scanners = write_scanners(status, &scanners),
    };
    enum weft_rc rc = weft_engine_replica_put(server->engine, &row, err);
    weft_buf_done(&settings);
    weft_buf_done(&scanners);
    return rc;
}

/* Keeps which scanners no living replica runs, and logs changes. */
static void note_uncovered(struct weft_presence *presence, const struct weft_replica_rows *rows,
                           struct weft_arena *arena)
{
    const struct weft_scanners scanners = weft_replica_scanners(rows, store_now(presence), arena);
    const char *names = weft_scanners_uncovered(&scanners, arena);
    names = names ? names : "";
    pthread_mutex_lock(&presence->lock);
    bool changed = strcmp(presence->uncovered, names) != 0;
    (void)snprintf(presence->uncovered, sizeof(presence->uncovered), "%s", names);
    pthread_mutex_unlock(&presence->lock);
    if (changed && *names)
        weft_warn("no living replica runs these scanners for all work", F_STR("scanners", names));
    else if (changed)
        weft_info("every scanner is run by a living replica");
}

void weft_presence_turn(struct weft_presence *presence, struct weft_arena *arena)
{
    struct weft_err err = {0};
    struct weft_replica_rows rows;
    bool beat = !presence->beat_us || weft_boot_us() - presence->beat_us >= WEFT_HEARTBEAT_US;
    if (!beat && !presence->waiting)
        return;
    enum weft_rc rc = beat ? put_row(presence, arena, &err) : WEFT_OK;
    if (!rc)
        rc = weft_engine_replicas(presence->server->engine, arena, &rows, &err);
    if (rc) {
        weft_debug("the row of this replica was not written", F_STR("error", err.text));
        return;
    }
    if (presence->waiting)
        judge(presence, &rows);
    if (beat) {
        presence->beat_us = weft_boot_us();
        note_uncovered(presence, &rows, arena);
    }
}

/* ---- Its life -------------------------------------------------------------------------------- */

struct weft_presence *weft_presence_new(struct weft_server *server)
{
    struct weft_presence *presence = weft_alloc(1, sizeof(*presence));
    presence->server = server;
    presence->started_us = store_now(presence);
    weft_id_new(&presence->id, presence->started_us, -1);
    if (gethostname(presence->host, HOST_MAX) != 0)
        presence->host[0] = '\0';
    pthread_mutex_init(&presence->lock, NULL);
    weft_presence_up(presence);
    return presence;
}

void weft_presence_leave(struct weft_presence *presence)
{
    struct weft_err err = {0};
    if (weft_engine_replica_remove(presence->server->engine, &presence->id, &err))
        weft_debug("the row of this replica was not removed", F_STR("error", err.text));
}

void weft_presence_free(struct weft_presence *presence)
{
    if (!presence)
        return;
    pthread_mutex_destroy(&presence->lock);
    free(presence);
}

void weft_presence_sign(const struct weft_presence *presence, struct weft_scanner_status *status)
{
    status->replica = presence->id;
    status->host = presence->host;
}

const char *weft_presence_uncovered(struct weft_server *server, struct weft_arena *arena)
{
    struct weft_presence *presence = server->presence;
    pthread_mutex_lock(&presence->lock);
    const char *names =
        presence->uncovered[0] ? weft_arena_strdup(arena, presence->uncovered) : NULL;
    pthread_mutex_unlock(&presence->lock);
    return names;
}
