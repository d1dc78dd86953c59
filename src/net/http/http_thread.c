/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The loop thread: it turns libmicrohttpd, and all calls into that library are made here.
 *
 * Both ways between it and the engine threads go in lots. Requests that one turn has read are
 * handed over together at its end, under one lock; answers are put on a list, and the thread is
 * poked for the first of them only. So clients that speak at the same time end up in the same
 * transaction, and a transaction of many wakes this thread once.
 */

#include "net/http/link.h"

#include "base/heap.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct weft_turns {
    struct weft_server *server;
    struct MHD_Daemon *daemon; /* borrowed */
    pthread_t thread;
    int events; /* readable when libmicrohttpd has something to do */
    int poke;   /* an eventfd */

    pthread_mutex_t lock; /* over the five below */
    struct weft_request *answered, **last;
    bool quiesce;
    bool slim; /* the thread should give memory back */
    bool ended;

    struct weft_request *fresh, **last_fresh; /* the thread's: read in this turn */
    unsigned connections;                     /* the thread's: after the turn before */
};

static void poke(struct weft_turns *turns)
{
    uint64_t one = 1;
    ssize_t written = write(turns->poke, &one, sizeof(one));
    (void)written; /* full means poked already */
}

void weft_turns_answer(struct weft_turns *turns, struct weft_request **request, size_t count)
{
    if (count == 0)
        return;
    pthread_mutex_lock(&turns->lock);
    bool first = turns->answered == NULL;
    for (size_t i = 0; i < count; i++) {
        request[i]->next = NULL;
        *turns->last = request[i];
        turns->last = &request[i]->next;
    }
    pthread_mutex_unlock(&turns->lock);
    if (first)
        poke(turns);
}

void weft_turns_hand_over(struct weft_turns *turns, struct weft_request *request)
{
    request->next = NULL;
    *turns->last_fresh = request;
    turns->last_fresh = &request->next;
}

/* What others left for this turn. */
struct left {
    struct weft_request *answered;
    bool quiesce, ended, slim;
};

static struct left take_left(struct weft_turns *turns)
{
    pthread_mutex_lock(&turns->lock);
    struct left left = {turns->answered, turns->quiesce, turns->ended, turns->slim};
    turns->answered = NULL;
    turns->last = &turns->answered;
    turns->quiesce = turns->slim = false;
    pthread_mutex_unlock(&turns->lock);
    return left;
}

static void resume(struct weft_request *request)
{
    while (request) {
        struct weft_request *next = request->next; /* from here on it is the loop's */
        MHD_resume_connection(request->link->connection);
        request = next;
    }
}

static void close_door(struct weft_turns *turns)
{
    int fd = MHD_quiesce_daemon(turns->daemon);
    if (fd >= 0)
        (void)close(fd); /* so that nobody queues up behind a closed door */
}

static void hand_over(struct weft_turns *turns)
{
    struct weft_request *fresh = turns->fresh;
    turns->fresh = NULL;
    turns->last_fresh = &turns->fresh;
    if (fresh)
        weft_groups_put(turns->server->groups, fresh);
}

/*
 * True when a connection was closed since the last turn. At its limit libmicrohttpd stops
 * listening, and listens again at the beginning of a turn: without one nobody would ever come in.
 */
static bool made_room(struct weft_turns *turns)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(turns->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    unsigned before = turns->connections;
    turns->connections = info ? info->num_connections : 0;
    return turns->connections < before;
}

static void rest(struct weft_turns *turns)
{
    if (made_room(turns))
        return;
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;
    bool bounded = MHD_get_timeout(turns->daemon, &wait_ms) == MHD_YES;
    struct pollfd fd[] = {{.fd = turns->events, .events = POLLIN},
                          {.fd = turns->poke, .events = POLLIN}};
    enum { LONGEST_MS = 60000 };
    (void)poll(fd, 2, !bounded ? -1 : wait_ms < LONGEST_MS ? (int)wait_ms : LONGEST_MS);
    uint64_t ignored;
    if (fd[1].revents && read(turns->poke, &ignored, sizeof(ignored)) < 0 && errno != EAGAIN)
        weft_error("the loop cannot be poked", F_I64("errno", errno));
}

static void *run_thread(void *context)
{
    struct weft_turns *turns = context;
    weft_log_collect();
    weft_loop_thread_begins(turns->server->loop);
    for (;;) {
        struct left left = take_left(turns);
        resume(left.answered);
        if (left.quiesce)
            close_door(turns);
        if (left.ended)
            break;
        weft_loop_turn_begins(turns->server->loop);
        (void)MHD_run(turns->daemon);
        hand_over(turns);
        weft_log_flush();
        if (left.slim)
            weft_heap_rest();
        rest(turns);
    }
    weft_log_collect_end();
    return NULL;
}

struct weft_turns *weft_turns_new(struct weft_server *server)
{
    struct weft_turns *turns = calloc(1, sizeof(*turns));
    if (!turns)
        weft_oom(sizeof(*turns));
    turns->server = server;
    turns->last = &turns->answered;
    turns->last_fresh = &turns->fresh;
    turns->poke = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&turns->lock, NULL);
    return turns;
}

void weft_turns_start(struct weft_turns *turns, struct MHD_Daemon *daemon)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    turns->daemon = daemon;
    turns->events = info ? info->epoll_fd : -1;
    weft_thread_start(&turns->thread, "weft-loop", run_thread, turns);
}

void weft_turns_quiesce(struct weft_turns *turns)
{
    pthread_mutex_lock(&turns->lock);
    turns->quiesce = true;
    pthread_mutex_unlock(&turns->lock);
    poke(turns);
}

void weft_turns_slim(struct weft_turns *turns)
{
    pthread_mutex_lock(&turns->lock);
    turns->slim = true;
    pthread_mutex_unlock(&turns->lock);
    poke(turns);
}

void weft_turns_free(struct weft_turns *turns)
{
    if (turns->daemon) {
        pthread_mutex_lock(&turns->lock);
        turns->ended = true;
        pthread_mutex_unlock(&turns->lock);
        poke(turns);
        pthread_join(turns->thread, NULL);
    }
    (void)close(turns->poke);
    pthread_mutex_destroy(&turns->lock);
    free(turns);
}
