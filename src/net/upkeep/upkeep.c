/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Upkeep: the slow poll, what is written now and then, and the row of this replica.
 *
 * Once a second one statement reads everything that other replicas may have changed: queues with
 * work, the next due time of each scanner, an inbox that is not empty, changed tokens, workers
 * whose leases were ended. Wakes and notices are only hints; this poll finds what they miss.
 * Scanners with due times go by it, so an idle server makes one query a second. A due time made by
 * this process is known at once and brings the next poll forward.
 *
 * The poll also shows whether this replica is up. It was not when the store carried out nothing at
 * all for longer than a period of the poll: the store was away, or this process stood still. Then
 * the grace begins. A poll that is only slow, while requests are answered, begins
 * none: under a load that never ends no lease would ever run out.
 *
 * The row of this replica is written with every heartbeat. The rows of the others say when the
 * grace ends, and which scanners no replica runs.
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

#include "net/upkeep/upkeep.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "base/thread.h"
#include "engine/admin/tally.h"
#include "engine/engine.h"
#include "engine/job/execution_read.h"
#include "engine/ready/poll.h"
#include "engine/tx/tx.h"
#include "net/api/api_counts.h"
#include "net/auth.h"
#include "net/group/group.h"
#include "net/http/loop.h"
#include "net/server.h"
#include "net/upkeep/roster.h"
#include "net/upkeep/supervisor.h"
#include "net/wait/waits.h"
#include "wire/wire.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOON_US  WEFT_MS /* after a due time, so that it has passed for sure */
#define GAP_US   (WEFT_POLL_US + WEFT_SECOND)
#define RETRY_US (100 * WEFT_MS) /* after a poll that failed: a short gap is no gap */
#define CHORE_US (5 * WEFT_SECOND)
#define GRACE_US (10 * WEFT_SECOND)
enum { CHORES_A_MINUTE = 12, ROW_MAX = 2 << 20, HOST_MAX = 64, UNCOVERED_MAX = 1024 };
#define LARGE_US  (5 * WEFT_SECOND)  /* a connection stays large so long for the next large one */
#define UNUSED_US (60 * WEFT_SECOND) /* and open so long for the next burst */

struct weft_upkeep {
    struct weft_server *server;
    pthread_t thread;
    struct weft_id id; /* of this replica */
    char host[HOST_MAX + 1];
    weft_usec started_us; /* the store's time */

    pthread_mutex_t lock; /* over the three below */
    pthread_cond_t news;
    weft_usec due_us; /* boot time; the next poll is not later than this */
    bool stopping;
    char uncovered[UNCOVERED_MAX]; /* scanners that no living replica runs; "": none */

    /* The thread's, in boot time. */
    bool failing;        /* the store does not answer */
    weft_usec chores_us; /* when the chores were last done */
    size_t idle;         /* unused memory; see weft_heap_trim() */
    unsigned chores;     /* how often they were done */
    int64_t tokens;
    bool started;
    weft_usec beat_us;     /* the last heartbeat, 0: it is due */
    weft_usec up_since_us; /* the store's time, as the next */
    weft_usec grace_us;    /* when the grace ends */
    bool waiting;          /* for that */
};

static weft_usec store_now(const struct weft_upkeep *upkeep)
{
    return weft_clock_now(weft_engine_clock(upkeep->server->engine));
}

void weft_upkeep_expect(struct weft_upkeep *upkeep, weft_usec due_us)
{
    if (due_us == WEFT_NEVER)
        return;
    weft_usec left_us = due_us - store_now(upkeep);
    weft_usec at_us = weft_boot_us() + (left_us > 0 ? left_us + SOON_US : 0);
    pthread_mutex_lock(&upkeep->lock);
    if (at_us < upkeep->due_us) {
        upkeep->due_us = at_us;
        pthread_cond_signal(&upkeep->news);
    }
    pthread_mutex_unlock(&upkeep->lock);
}

/* ---- The grace ------------------------------------------------------------------------------- */

weft_usec weft_upkeep_grace(const struct weft_replica_rows *rows, const struct weft_id *self,
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

/* It serves from here on, after a gap: the grace begins. */
static void come_up(struct weft_upkeep *upkeep)
{
    upkeep->up_since_us = store_now(upkeep);
    upkeep->grace_us = upkeep->up_since_us + GRACE_US;
    upkeep->waiting = true;
    upkeep->beat_us = 0; /* write the row soon */
    weft_supervisor_hold(upkeep->server->supervisor, upkeep->grace_us);
}

static void judge(struct weft_upkeep *upkeep, const struct weft_replica_rows *rows)
{
    weft_usec grace_us = weft_upkeep_grace(rows, &upkeep->id, upkeep->up_since_us);
    if (grace_us < upkeep->grace_us) {
        upkeep->grace_us = grace_us;
        weft_info("another replica kept the service up");
        weft_supervisor_hold(upkeep->server->supervisor, grace_us);
    }
    upkeep->waiting = store_now(upkeep) < upkeep->grace_us;
}

/* ---- The row --------------------------------------------------------------------------------- */

static void write_settings(const struct weft_server *server,
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
    weft_json_add_bool(&out, "tokens", weft_server_wants_tokens(server));
    weft_json_add_bool(&out, "tls", config->tls_cert != NULL);
    weft_json_add_array(&out, "carries"); /* kinds: see core/carried.h */
    if (server->executor)
        weft_json_put_text(&out, "http");
    weft_json_end_array(&out);
    weft_json_add_array(&out, "scanners");
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        if (status[i].enabled)
            weft_json_put_text(&out, status[i].name);
    weft_json_end_array(&out);
    weft_json_end_object(&out);
    weft_buf_add_char(buf, '\0');
}

static void write_scanners(const struct weft_scanner_status *status, struct weft_buf *buf)
{
    struct weft_json_writer out;
    weft_json_writer_init(&out, buf);
    weft_json_begin_array(&out);
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        weft_wire_write(&weft_wire_scanner, &status[i], &out);
    weft_json_end_array(&out);
    weft_buf_add_char(buf, '\0');
}

static enum weft_rc put_row(struct weft_upkeep *upkeep, struct weft_arena *arena,
                            struct weft_err *err)
{
    struct weft_server *server = upkeep->server;
    const struct weft_scanner_status *status = weft_supervisor_status(server, arena);
    struct weft_buf texts; /* both, each with its NUL */
    weft_buf_init(&texts, ROW_MAX);
    write_settings(server, status, &texts);
    size_t scanners = texts.size;
    write_scanners(status, &texts);
    const struct weft_replica_row row = {
        .id = upkeep->id,
        .host = upkeep->host,
        .pid = getpid(),
        .version = weft_version(),
        .url = weft_loop_url(server->loop),
        .started_us = upkeep->started_us,
        .up_since_us = upkeep->up_since_us,
        .settings = texts.data,
        .scanners = texts.data + scanners,
    };
    enum weft_rc rc = weft_engine_replica_put(server->engine, &row, err);
    weft_buf_done(&texts);
    return rc;
}

/* Keeps which scanners no living replica runs, and logs changes. */
static void note_uncovered(struct weft_upkeep *upkeep, const struct weft_replica_rows *rows,
                           struct weft_arena *arena)
{
    const struct weft_scanners scanners = weft_replica_scanners(rows, store_now(upkeep), arena);
    const char *names = weft_scanners_uncovered(&scanners, arena);
    names = names ? names : "";
    pthread_mutex_lock(&upkeep->lock);
    bool changed = strcmp(upkeep->uncovered, names) != 0;
    (void)snprintf(upkeep->uncovered, sizeof(upkeep->uncovered), "%s", names);
    pthread_mutex_unlock(&upkeep->lock);
    if (changed && *names)
        weft_warn("no living replica runs these scanners for all work", F_STR("scanners", names));
    else if (changed)
        weft_info("every scanner is run by a living replica");
}

/* Writes the row when it is due, and reads the rows of the others. After a poll that succeeded. */
static void heartbeat(struct weft_upkeep *upkeep, struct weft_arena *arena)
{
    struct weft_err err = {0};
    struct weft_replica_rows rows;
    bool beat = !upkeep->beat_us || weft_boot_us() - upkeep->beat_us >= WEFT_HEARTBEAT_US;
    if (!beat && !upkeep->waiting)
        return;
    enum weft_rc rc = beat ? put_row(upkeep, arena, &err) : WEFT_OK;
    if (!rc)
        rc = weft_engine_replicas(upkeep->server->engine, arena, &rows, &err);
    if (rc) {
        weft_debug("the row of this replica was not written", F_STR("error", err.text));
        return;
    }
    if (upkeep->waiting)
        judge(upkeep, &rows);
    if (beat) {
        upkeep->beat_us = weft_boot_us();
        note_uncovered(upkeep, &rows, arena);
    }
}

/* ---- The poll -------------------------------------------------------------------------------- */

static void note_failure(struct weft_upkeep *upkeep, const struct weft_err *err)
{
    if (!upkeep->failing)
        weft_error("the store does not answer; requests get 503 until it does",
                   F_STR("error", err->text));
    upkeep->failing = true;
    pthread_mutex_lock(&upkeep->lock);
    upkeep->due_us = weft_boot_us() + RETRY_US;
    pthread_mutex_unlock(&upkeep->lock);
}

static void note_answer(struct weft_upkeep *upkeep)
{
    weft_usec gap_us = weft_engine_gap(upkeep->server->engine);
    if (upkeep->failing)
        weft_info("the store answers again", F_I64("after_ms", gap_us / WEFT_MS));
    else if (gap_us > GAP_US)
        weft_warn("nothing was heard of the store for a while", F_I64("for_ms", gap_us / WEFT_MS));
    upkeep->failing = false;
    if (gap_us > GAP_US)
        come_up(upkeep);
}

static void do_chores(struct weft_upkeep *upkeep)
{
    struct weft_server *server = upkeep->server;
    struct weft_err err = {0};
    if (weft_engine_tally(server->engine, &err))
        weft_debug("the tally was not written", F_STR("error", err.text));
    if (weft_boot_us() - upkeep->chores_us < CHORE_US)
        return;
    upkeep->chores_us = weft_boot_us();
    if (weft_roster_write(server->roster, server->engine, &err))
        weft_debug("the workers were not written", F_STR("error", err.text));
    if (weft_auth_write_uses(server->auth, server->engine, false, &err))
        weft_debug("the last uses of tokens were not written", F_STR("error", err.text));
    weft_engine_slim(server->engine, weft_boot_us() - LARGE_US, weft_boot_us() - UNUSED_US);
    /* A trim in the middle of a burst leaves too much: once a minute all that is unused goes. */
    if (++upkeep->chores % CHORES_A_MINUTE == 0)
        upkeep->idle = 0;
    /* Only under no load: busy threads would need the memory again at once. */
    if (weft_groups_rest(server->groups)) {
        weft_loop_slim(server->loop);
        weft_heap_rest();
    }
    upkeep->idle = weft_heap_trim(upkeep->idle);
}

/*
 * Wakes reads that wait for executions which other replicas ended: one query for all of them. A
 * read that falls asleep meanwhile is woken by the next call.
 */
static void look_for_ends(struct weft_upkeep *upkeep, struct weft_arena *arena)
{
    struct weft_server *server = upkeep->server;
    struct weft_id *id, *ended;
    struct weft_err err = {0};
    size_t count = weft_waits_ids(server->waits, arena, &id), over = 0;
    if (count == 0)
        return;
    if (weft_engine_ended(server->engine, id, count, arena, &ended, &over, &err))
        weft_debug("ends were not looked for", F_STR("error", err.text));
    else if (over > 0)
        weft_wait_ended(server, ended, over);
}

static void turn(struct weft_upkeep *upkeep, struct weft_arena *arena)
{
    struct weft_server *server = upkeep->server;
    struct weft_poll poll;
    struct weft_err err = {0};
    weft_arena_reset(arena);
    if (weft_engine_poll(server->engine, arena, &poll, &err)) {
        note_failure(upkeep, &err);
        return;
    }
    note_answer(upkeep);
    weft_server_wake(server, WEFT_WAKE_POLL, poll.queue, poll.count);
    weft_server_wake_workers(server, WEFT_WAKE_POLL, poll.worker, poll.workers);
    look_for_ends(upkeep, arena);
    if (poll.tokens != upkeep->tokens) {
        if (weft_auth_load(server->auth, server->engine, &err) == WEFT_OK)
            upkeep->tokens = poll.tokens;
        weft_waits_recheck(server->waits);
    }
    weft_supervisor_set_due(server->supervisor, poll.due_us);
    weft_counts_keep(server);
    do_chores(upkeep);
    heartbeat(upkeep, arena);
}

static void *run_thread(void *context)
{
    struct weft_upkeep *upkeep = context;
    struct weft_arena *arena = weft_arena_new();
    pthread_mutex_lock(&upkeep->lock);
    while (!upkeep->stopping) {
        if (weft_boot_us() < upkeep->due_us) {
            weft_cond_until(&upkeep->news, &upkeep->lock, upkeep->due_us);
            continue;
        }
        upkeep->due_us = weft_boot_us() + WEFT_POLL_US;
        pthread_mutex_unlock(&upkeep->lock);
        turn(upkeep, arena);
        pthread_mutex_lock(&upkeep->lock);
    }
    pthread_mutex_unlock(&upkeep->lock);
    weft_arena_free(arena);
    return NULL;
}

struct weft_upkeep *weft_upkeep_new(struct weft_server *server)
{
    struct weft_upkeep *upkeep = weft_alloc(1, sizeof(*upkeep));
    upkeep->server = server;
    upkeep->tokens = -1;
    upkeep->started_us = store_now(upkeep);
    weft_id_new(&upkeep->id, upkeep->started_us, -1);
    if (gethostname(upkeep->host, HOST_MAX) != 0)
        upkeep->host[0] = '\0';
    pthread_mutex_init(&upkeep->lock, NULL);
    pthread_cond_init(&upkeep->news, NULL);
    come_up(upkeep);
    return upkeep;
}

void weft_upkeep_start(struct weft_upkeep *upkeep)
{
    upkeep->started = true;
    (void)weft_engine_gap(upkeep->server->engine); /* the gap before the start does not count */
    weft_thread_start(&upkeep->thread, "weft-upkeep", run_thread, upkeep);
}

void weft_upkeep_stop(struct weft_upkeep *upkeep)
{
    if (!upkeep || !upkeep->started)
        return;
    pthread_mutex_lock(&upkeep->lock);
    upkeep->stopping = true;
    pthread_cond_signal(&upkeep->news);
    pthread_mutex_unlock(&upkeep->lock);
    pthread_join(upkeep->thread, NULL);
    upkeep->started = false;
    struct weft_server *server = upkeep->server;
    struct weft_err err = {0};
    if (!upkeep->failing && weft_auth_write_uses(server->auth, server->engine, true, &err))
        weft_debug("the last uses of tokens were not written", F_STR("error", err.text));
    if (weft_engine_replica_remove(server->engine, &upkeep->id, &err))
        weft_debug("the row of this replica was not removed", F_STR("error", err.text));
}

void weft_upkeep_free(struct weft_upkeep *upkeep)
{
    if (!upkeep)
        return;
    pthread_cond_destroy(&upkeep->news);
    pthread_mutex_destroy(&upkeep->lock);
    free(upkeep);
}

const struct weft_id *weft_upkeep_id(const struct weft_upkeep *upkeep)
{
    return &upkeep->id;
}

/* ---- What it shows --------------------------------------------------------------------------- */

void weft_upkeep_sign(const struct weft_upkeep *upkeep, struct weft_scanner_status *status)
{
    status->replica = upkeep->id;
    status->host = upkeep->host;
}

const char *weft_upkeep_uncovered(struct weft_server *server, struct weft_arena *arena)
{
    struct weft_upkeep *upkeep = server->upkeep;
    pthread_mutex_lock(&upkeep->lock);
    const char *names = upkeep->uncovered[0] ? weft_arena_strdup(arena, upkeep->uncovered) : NULL;
    pthread_mutex_unlock(&upkeep->lock);
    return names;
}
