/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Upkeep: the slow poll, and what is written now and then.
 *
 * Once a second one statement reads everything that other replicas may have changed: queues with
 * work, the next due time of each scanner, an inbox that is not empty, changed tokens, workers
 * whose leases were ended. Wakes and notices are only hints; this poll finds what they miss.
 * Scanners with due times go by it, so an idle server makes one query a second. A due time made by
 * this process is known at once and brings the next poll forward.
 *
 * The poll also shows whether this replica is up. It was not when the store carried out nothing at
 * all for longer than a period of the poll: the store was away, or this process stood still. Then
 * the grace begins (presence.c). A poll that is only slow, while requests are answered, begins
 * none: under a load that never ends no lease would ever run out.
 */

#include "net/upkeep/upkeep.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/heap.h"
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
#include "net/metrics.h"
#include "net/server.h"
#include "net/upkeep/presence.h"
#include "net/upkeep/roster.h"
#include "net/upkeep/supervisor.h"
#include "net/wait/waits.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SOON_US  WEFT_MS /* after a due time, so that it has passed for sure */
#define GAP_US   (WEFT_POLL_US + WEFT_SECOND)
#define RETRY_US (100 * WEFT_MS) /* after a poll that failed: a short gap is no gap */
#define CHORE_US (5 * WEFT_SECOND)
enum { CHORES_A_MINUTE = 12 };
#define LARGE_US  (5 * WEFT_SECOND)  /* a connection stays large so long for the next large one */
#define UNUSED_US (60 * WEFT_SECOND) /* and open so long for the next burst */

struct weft_upkeep {
    struct weft_server *server;
    pthread_t thread;

    pthread_mutex_t lock; /* over the two below */
    pthread_cond_t news;
    weft_usec due_us; /* boot time; the next poll is not later than this */
    bool stopping;

    /* The thread's, in boot time. */
    bool failing;        /* the store does not answer */
    weft_usec chores_us; /* when the chores were last done */
    size_t idle;         /* unused memory; see weft_heap_trim() */
    unsigned chores;     /* how often they were done */
    int64_t tokens;
    bool started;
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
        weft_presence_up(upkeep->server->presence);
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
    weft_waits_wake(server->waits, WEFT_WAKE_POLL, poll.queue, poll.count);
    weft_waits_wake_workers(server->waits, WEFT_WAKE_POLL, poll.worker, poll.workers);
    look_for_ends(upkeep, arena);
    if (poll.tokens != upkeep->tokens) {
        if (weft_auth_load(server->auth, server->engine, &err) == WEFT_OK)
            upkeep->tokens = poll.tokens;
        weft_waits_recheck(server->waits);
    }
    weft_supervisor_set_due(server->supervisor, poll.due_us);
    weft_counts_keep(server);
    do_chores(upkeep);
    weft_presence_turn(server->presence, arena);
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
    pthread_mutex_init(&upkeep->lock, NULL);
    pthread_cond_init(&upkeep->news, NULL);
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
    weft_presence_leave(server->presence);
}

void weft_upkeep_free(struct weft_upkeep *upkeep)
{
    if (!upkeep)
        return;
    pthread_cond_destroy(&upkeep->news);
    pthread_mutex_destroy(&upkeep->lock);
    free(upkeep);
}
