/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The loop thread: it http libmicrohttpd, and all calls into that library are made here.
 *
 * Requests that one turn has read are handed to the engine threads together at its end, under one
 * lock; answers are put on a list, and only the first of them wakes the thread. So requests that
 * come at the same time end up in the same transaction, and its commit wakes this thread once.
 */

#include "net/http/http_thread.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/thread.h"
#include "net/group/group.h"
#include "net/http/link.h"
#include "net/http/tls.h"
#include "net/server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct weft_http_thread {
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

static void poke(struct weft_http_thread *http)
{
    uint64_t one = 1;
    ssize_t written = write(http->poke, &one, sizeof(one));
    (void)written; /* full means poked already */
}

void weft_http_thread_answer(struct weft_http_thread *http, struct weft_request **request,
                             size_t count)
{
    if (count == 0)
        return;
    pthread_mutex_lock(&http->lock);
    bool first = http->answered == NULL;
    for (size_t i = 0; i < count; i++) {
        request[i]->next = NULL;
        *http->last = request[i];
        http->last = &request[i]->next;
    }
    pthread_mutex_unlock(&http->lock);
    if (first)
        poke(http);
}

void weft_http_thread_hand_over(struct weft_http_thread *http, struct weft_request *request)
{
    request->next = NULL;
    *http->last_fresh = request;
    http->last_fresh = &request->next;
}

/* What others left for this turn. */
struct left {
    struct weft_request *answered;
    bool quiesce, ended, slim;
};

static struct left take_left(struct weft_http_thread *http)
{
    pthread_mutex_lock(&http->lock);
    struct left left = {http->answered, http->quiesce, http->ended, http->slim};
    http->answered = NULL;
    http->last = &http->answered;
    http->quiesce = http->slim = false;
    pthread_mutex_unlock(&http->lock);
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

static void close_door(struct weft_http_thread *http)
{
    int fd = MHD_quiesce_daemon(http->daemon);
    if (fd >= 0)
        (void)close(fd); /* so that new connections are refused at once */
}

static void hand_over(struct weft_http_thread *http)
{
    struct weft_request *fresh = http->fresh;
    http->fresh = NULL;
    http->last_fresh = &http->fresh;
    if (fresh)
        weft_groups_put(http->server->groups, fresh);
}

/*
 * True when a connection was closed since the last turn. At its limit libmicrohttpd stops
 * listening, and listens again at the beginning of a turn: without a turn no connection would be
 * accepted.
 */
static bool made_room(struct weft_http_thread *http)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    unsigned before = http->connections;
    http->connections = info ? info->num_connections : 0;
    return http->connections < before;
}

static void rest(struct weft_http_thread *http)
{
    if (made_room(http))
        return;
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;
    bool bounded = MHD_get_timeout(http->daemon, &wait_ms) == MHD_YES;
    struct pollfd fd[] = {{.fd = http->events, .events = POLLIN},
                          {.fd = http->poke, .events = POLLIN}};
    enum { LONGEST_MS = 60000 };
    (void)poll(fd, 2, !bounded ? -1 : wait_ms < LONGEST_MS ? (int)wait_ms : LONGEST_MS);
    uint64_t ignored;
    if (fd[1].revents && read(http->poke, &ignored, sizeof(ignored)) < 0 && errno != EAGAIN)
        weft_error("the loop cannot be poked", F_I64("errno", errno));
}

static void *run_thread(void *context)
{
    struct weft_http_thread *http = context;
    weft_log_collect();
    struct weft_loop *loop = http->server->loop;
    weft_tls_serve(loop->tls);
    for (;;) {
        struct left left = take_left(http);
        resume(left.answered);
        if (left.quiesce)
            close_door(http);
        if (left.ended)
            break;
        loop->read = 0;
        (void)MHD_run(http->daemon);
        hand_over(http);
        weft_log_flush();
        if (left.slim)
            weft_heap_rest();
        rest(http);
    }
    weft_log_collect_end();
    return NULL;
}

struct weft_http_thread *weft_http_thread_new(struct weft_server *server)
{
    struct weft_http_thread *http = weft_alloc(1, sizeof(*http));
    http->server = server;
    http->last = &http->answered;
    http->last_fresh = &http->fresh;
    http->poke = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&http->lock, NULL);
    return http;
}

void weft_http_thread_start(struct weft_http_thread *http, struct MHD_Daemon *daemon)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    http->daemon = daemon;
    http->events = info ? info->epoll_fd : -1;
    weft_thread_start(&http->thread, "weft-loop", run_thread, http);
}

void weft_http_thread_quiesce(struct weft_http_thread *http)
{
    pthread_mutex_lock(&http->lock);
    http->quiesce = true;
    pthread_mutex_unlock(&http->lock);
    poke(http);
}

void weft_http_thread_slim(struct weft_http_thread *http)
{
    pthread_mutex_lock(&http->lock);
    http->slim = true;
    pthread_mutex_unlock(&http->lock);
    poke(http);
}

void weft_http_thread_free(struct weft_http_thread *http)
{
    if (http->daemon) {
        pthread_mutex_lock(&http->lock);
        http->ended = true;
        pthread_mutex_unlock(&http->lock);
        poke(http);
        pthread_join(http->thread, NULL);
    }
    (void)close(http->poke);
    pthread_mutex_destroy(&http->lock);
    free(http);
}
