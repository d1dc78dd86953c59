/* SPDX-License-Identifier: Apache-2.0 */

/*
 * HTTP: the loop thread runs libmicrohttpd, and all calls into that library are made on it.
 *
 * For each request it calls on_target() when the first line has come, on_request() once with the
 * headers, once for each piece of the body and once more at its end, and on_completed() when all is
 * over. A request that must wait for an engine thread has its connection suspended;
 * weft_loop_answer() resumes it, and on_request() is called once more to send the answer. While it
 * is suspended the loop does not touch it, so it belongs to the other thread alone.
 *
 * Requests on one connection come one after the other, so a connection has one link at a time.
 *
 * Requests that one turn has read are handed to the engine threads together at its end, under one
 * lock; answers are put into a queue, and only the first of them wakes the thread. So requests that
 * come at the same time end up in the same transaction, and its commit wakes this thread once.
 *
 * A turn sends ANSWER_TURN answers at most, and namespaces take turns among them: a commit may
 * answer a thousand requests of one namespace, which takes 20 ms, and a client that has its answer
 * sends its next request, for the same turn or the next. So a turn is short whatever one namespace
 * does, and a request of another waits for one turn to be read and for one to be answered.
 */

#include "net/http/loop.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"
#include "net/group/claims.h"
#include "net/group/group.h"
#include "net/http/link.h"
#include "net/http/tls.h"
#include "net/metrics.h"
#include "net/server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    HEADERS_MAX = 16 << 10, /* libmicrohttpd's buffer of a connection: the head of a request */
    READ_ALWAYS = 4 << 10,  /* a body of at most so many bytes is read by the loop thread */
    READ_INLINE = 32 << 10, /* such a body too, unless the turn has read READ_TURN */
    READ_TURN = 128 << 10,
    ANSWER_TURN = 64, /* answers that one turn sends */
};

static struct weft_peer *peer_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

int weft_loop_fd(const struct weft_request *request)
{
    return request->link->peer->fd;
}

bool weft_loop_gone(const struct weft_request *request)
{
    /* A retired connection, closed for reading here, looks as if its client had closed it. */
    bool retired = atomic_load(&request->link->peer->retired);
    struct pollfd fd = {.fd = weft_loop_fd(request), .events = retired ? 0 : POLLRDHUP};
    return poll(&fd, 1, 0) > 0;
}

/*
 * True when the client had closed before the answer came: the answer was sent and caused a reset. A
 * client that read its answer and then closed causes none.
 */
static bool bounced(const struct weft_request *request)
{
    struct pollfd fd = {.fd = weft_loop_fd(request)};
    return poll(&fd, 1, 0) > 0; /* POLLERR or POLLHUP: nothing else was asked for */
}

size_t weft_loop_in_flight(const struct weft_loop *loop)
{
    return atomic_load(&loop->in_flight);
}

void weft_loop_sweep(struct weft_loop *loop)
{
    weft_metric_add(loop->server->metrics, WEFT_METRIC_HTTP_TURNED_AWAY, 0,
                    weft_peers_sweep(&loop->peers, weft_answers_excess(&loop->answers)));
}

/* ---- Beginning ------------------------------------------------------------------------------- */

static size_t announced_size(const struct weft_link *link)
{
    const char *text = weft_request_header(&link->request, "Content-Length");
    return text ? (size_t)strtoull(text, NULL, 10) : 0;
}

/* The headers have come. True: go on and read the body; false: answer at once. */
static bool begin(struct weft_link *link, const char *method)
{
    struct weft_request *request = &link->request;
    struct weft_loop *loop = request->server->loop;
    struct weft_err err = {0};
    link->begun = true;
    atomic_fetch_add(&loop->in_flight, 1);
    link->method = weft_arena_strdup(request->arena, method);
    weft_head_request_id(link);
    enum weft_rc rc = weft_head_check(link, &err);
    size_t size = announced_size(link);
    if (!rc && request->route)
        rc = weft_body_begin(link, size, &err);
    if (!rc && request->route) {
        if (request->token || !weft_server_wants_tokens(request->server))
            weft_peer_let_in(&loop->peers, link->peer, request->ns);
        return true;
    }
    if (rc)
        weft_reply_error(request, &err);
    link->discard = true;
    link->close |= size > WEFT_DISCARD_MAX || link->doubtful;
    return size <= WEFT_DISCARD_MAX && !link->doubtful;
}

/* ---- What libmicrohttpd calls ---------------------------------------------------------------- */

static void *on_target(void *context, const char *target, struct MHD_Connection *connection)
{
    struct weft_loop *loop = context;
    struct weft_link *link = weft_alloc(1, sizeof(*link));
    link->connection = connection;
    link->peer = peer_of(connection);
    link->began_us = weft_boot_us();
    link->request.server = loop->server;
    link->request.link = link;
    link->request.arena = weft_arena_new();
    link->target = weft_arena_strdup(link->request.arena, target);
    link->at.target = (uintptr_t)target;
    weft_peer_stage(&loop->peers, link->peer, WEFT_PEER_RECEIVING);
    return link;
}

/*
 * Whether the body is read by this thread. Handing a small body to an engine thread costs more than
 * reading it, but all other requests wait for this thread: bodies of numbers take some 15 ms for
 * each MB, and hundreds may come in one turn. Bodies beyond that go to the engine threads, where
 * namespaces take turns.
 */
static bool reads_here(struct weft_loop *loop, const struct weft_request *request)
{
    size_t size = request->body.size;
    if (request->route->take || (request->coding && size > 0))
        return false;
    if (size > READ_ALWAYS && (size > READ_INLINE || loop->read + size > READ_TURN))
        return false;
    loop->read += size;
    return true;
}

/*
 * The request, or a piece of its body, goes to the engine threads when this turn ends. Until
 * weft_loop_answer() the connection is suspended.
 */
static void hand_over(struct weft_link *link)
{
    struct weft_request *request = &link->request;
    struct weft_loop *loop = request->server->loop;
    weft_peer_stage(&loop->peers, link->peer, WEFT_PEER_WORKING);
    MHD_suspend_connection(link->connection);
    request->next = NULL;
    *loop->last_fresh = request;
    loop->last_fresh = &request->next;
}

/* The request has come wholly: reads it, and queues it unless it is answered already. */
static void dispatch(struct weft_link *link)
{
    struct weft_request *request = &link->request;
    struct weft_server *server = request->server;
    struct weft_err err = {0};
    if (!reads_here(server->loop, request)) {
        request->unread = true;
    } else {
        enum weft_rc rc = request->route->read ? request->route->read(request, &err) : WEFT_OK;
        if (rc)
            weft_reply_error(request, &err);
        if (request->reply.status)
            return;
    }
    link->dispatched = true;
    hand_over(link);
}

/*
 * Sends the answer. One that this thread made itself (a public page, a refusal) waits for a later
 * turn, as the answers of engine threads do, when this turn has sent its share.
 */
static enum MHD_Result send_in_turn(struct weft_link *link)
{
    struct weft_request *request = &link->request;
    struct weft_loop *loop = request->server->loop;
    if (link->dispatched || link->postponed || loop->sent < ANSWER_TURN) {
        loop->sent++;
        return weft_send_answer(link);
    }
    link->postponed = true;
    weft_peer_stage(&loop->peers, link->peer, WEFT_PEER_WORKING);
    MHD_suspend_connection(link->connection);
    weft_loop_answer(request->server, &request, 1);
    return MHD_YES;
}

/* NOLINTNEXTLINE(readability-function-size): libmicrohttpd says what it passes */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **link_place)
{
    (void)context;
    (void)connection;
    (void)url;
    struct weft_link *link = *link_place;
    if (!link->begun) {
        link->at.method = (uintptr_t)method;
        link->at.version = (uintptr_t)version;
        link->needs_host = strcmp(version, MHD_HTTP_VERSION_1_0) != 0;
        return begin(link, method) ? MHD_YES : weft_send_answer(link);
    }
    if (*size > 0) {
        bool goes_on = weft_body_take(link, data, size);
        if (*size > 0) {
            link->request.more = link->request.unread = true;
            hand_over(link);
        }
        return goes_on ? MHD_YES : MHD_NO;
    }
    if (!link->dispatched && !link->request.reply.status) {
        dispatch(link);
        if (link->dispatched)
            return MHD_YES; /* from here on it may be with another thread */
    }
    return send_in_turn(link);
}

static void log_access(const struct weft_link *link, bool delivered)
{
    const struct weft_request *request = &link->request;
    /*
     * A token in a path is a secret, and the name of a gate may say whom it is about, which no
     * erasure could remove from a log: such a path is shown as the route has it.
     */
    bool secret = request->route && (strstr(request->route->op->path, "{token}") ||
                                     strstr(request->route->op->path, "{gate}"));
    const char *target = secret ? request->route->op->path : link->target;
    size_t path = strcspn(target, "?#");
    char shown[200];
    size_t size = path < sizeof(shown) ? path : sizeof(shown) - 1;
    memcpy(shown, target, size);
    shown[size] = '\0';
    weft_info("request", F_STR("method", link->method), F_STR("path", shown),
              F_I64("status", request->reply.status), F_U64("in", link->received),
              F_U64("out", link->sent_total), F_I64("us", weft_boot_us() - link->began_us),
              F_STR("ns", request->ns), F_STR("id", link->request_id),
              F_BOOL("delivered", delivered));
}

static void on_completed(void *context, struct MHD_Connection *connection, void **link_place,
                         enum MHD_RequestTerminationCode how)
{
    (void)connection;
    struct weft_loop *loop = context;
    struct weft_link *link = *link_place;
    if (!link)
        return;
    *link_place = NULL;
    struct weft_request *request = &link->request;
    bool delivered = how == MHD_REQUEST_TERMINATED_COMPLETED_OK;
    if (request->route && request->route->op->group == WEFT_GROUP_CLAIM &&
        (!delivered || bounced(request)))
        weft_claims_undelivered(request);
    if (link->begun) {
        if (loop->server->config.access_log)
            log_access(link, delivered);
        struct weft_metrics *metrics = loop->server->metrics;
        weft_metric_request(metrics, request->route, request->reply.status,
                            weft_boot_us() - link->began_us);
        weft_metric_add(metrics, WEFT_METRIC_HTTP_RECEIVED, 0, link->received);
        weft_metric_add(metrics, WEFT_METRIC_HTTP_SENT, 0, link->sent_total);
        weft_body_give_room(request, request->body.size);
        atomic_fetch_sub(&loop->in_flight, 1);
    }
    if (request->state && request->route && request->route->forget)
        request->route->forget(request);
    weft_send_release(link);
    weft_peer_stage(&loop->peers, link->peer, WEFT_PEER_IDLE);
    weft_buf_done(&request->body);
    weft_buf_done(&request->reply.body);
    weft_arena_free(request->arena);
    free(link);
}

static void on_connection(void *context, struct MHD_Connection *connection, void **peer_place,
                          enum MHD_ConnectionNotificationCode what)
{
    struct weft_loop *loop = context;
    struct weft_metrics *metrics = loop->server->metrics;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        int fd = info ? info->connect_fd : -1;
        info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        *peer_place = weft_peer_new(&loop->peers, fd, info ? info->client_addr : NULL);
        weft_metric_add(metrics, WEFT_METRIC_HTTP_CONNECTIONS, 0, 1);
        weft_metric_add(metrics, WEFT_METRIC_HTTP_ACCEPTED, 0, 1);
    } else if (*peer_place) {
        weft_peer_free(&loop->peers, *peer_place);
        weft_metric_sub(metrics, WEFT_METRIC_HTTP_CONNECTIONS, 0, 1);
        *peer_place = NULL;
    }
}

__attribute__((format(printf, 2, 0))) static void on_message(void *context, const char *fmt,
                                                             va_list args)
{
    (void)context;
    char text[300];
    (void)vsnprintf(text, sizeof(text), fmt, args);
    text[strcspn(text, "\n")] = '\0';
    weft_debug("http", F_STR("said", text));
}

/* ---- The thread ------------------------------------------------------------------------------ */

static void poke(struct weft_loop *loop)
{
    uint64_t one = 1;
    ssize_t written = write(loop->poke, &one, sizeof(one));
    (void)written; /* full means poked already */
}

void weft_loop_answer(struct weft_server *server, struct weft_request **request, size_t count)
{
    struct weft_loop *loop = server->loop;
    if (count == 0)
        return;
    pthread_mutex_lock(&loop->lock);
    bool first = loop->answered.all.count == 0;
    for (size_t i = 0; i < count; i++)
        weft_fair_put(&loop->answered, request[i]);
    pthread_mutex_unlock(&loop->lock);
    if (first)
        poke(loop);
}

/* What other threads left for this turn. */
struct left {
    struct weft_request *answered[ANSWER_TURN]; /* from here on they are the loop's */
    size_t count;
    bool more; /* answers for later turns */
    bool quiesce, ended, slim;
};

static void take_left(struct weft_loop *loop, struct left *ret_left)
{
    static const struct weft_fair_limit limit = {
        .count = ANSWER_TURN, .items = SIZE_MAX, .bytes = SIZE_MAX, .share = SIZE_MAX};
    struct weft_fair_sum sum;
    pthread_mutex_lock(&loop->lock);
    ret_left->count = weft_fair_take(&loop->answered, &limit, ret_left->answered, &sum);
    ret_left->more = loop->answered.all.count > 0;
    ret_left->quiesce = loop->quiesce;
    ret_left->ended = loop->ended;
    ret_left->slim = loop->slim;
    loop->quiesce = loop->slim = false;
    pthread_mutex_unlock(&loop->lock);
}

static void close_door(struct weft_loop *loop)
{
    int fd = MHD_quiesce_daemon(loop->daemon);
    if (fd >= 0)
        (void)close(fd); /* so that new connections are refused at once */
}

static void put_fresh(struct weft_loop *loop)
{
    struct weft_request *fresh = loop->fresh;
    loop->fresh = NULL;
    loop->last_fresh = &loop->fresh;
    if (fresh)
        weft_groups_put(loop->server->groups, fresh);
}

/*
 * True when a connection was closed since the last turn. At its limit libmicrohttpd stops
 * listening, and listens again at the beginning of a turn: without a turn no connection would be
 * accepted.
 */
static bool made_room(struct weft_loop *loop)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    unsigned before = loop->connections;
    loop->connections = info ? info->num_connections : 0;
    return loop->connections < before;
}

static void rest(struct weft_loop *loop)
{
    if (made_room(loop))
        return;
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;
    bool bounded = MHD_get_timeout(loop->daemon, &wait_ms) == MHD_YES;
    struct pollfd fd[] = {{.fd = loop->events, .events = POLLIN},
                          {.fd = loop->poke, .events = POLLIN}};
    enum { LONGEST_MS = 60000 };
    (void)poll(fd, 2, !bounded ? -1 : wait_ms < LONGEST_MS ? (int)wait_ms : LONGEST_MS);
    uint64_t ignored;
    if (fd[1].revents && read(loop->poke, &ignored, sizeof(ignored)) < 0 && errno != EAGAIN)
        weft_error("the loop cannot be poked", F_I64("errno", errno));
}

static void *run_thread(void *context)
{
    struct weft_loop *loop = context;
    weft_log_collect();
    weft_tls_serve(loop->tls);
    for (;;) {
        struct left left;
        take_left(loop, &left);
        for (size_t i = 0; i < left.count; i++)
            MHD_resume_connection(left.answered[i]->link->connection);
        if (left.quiesce)
            close_door(loop);
        if (left.ended && !left.more)
            break;
        loop->read = loop->sent = 0;
        (void)MHD_run(loop->daemon);
        put_fresh(loop);
        weft_log_flush();
        if (left.slim)
            weft_heap_rest();
        if (!left.more)
            rest(loop);
    }
    weft_log_collect_end();
    return NULL;
}

/* ---- Starting and stopping ------------------------------------------------------------------- */

static enum weft_rc start_daemon(struct weft_loop *loop, struct weft_err *err)
{
    const struct weft_server_config *config = &loop->server->config;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)weft_tls_priorities},
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)(uintptr_t)weft_tls_retrieve},
        {MHD_OPTION_END, 0, NULL},
    };
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    if (loop->tls)
        flags |= MHD_USE_TLS;
    loop->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, loop,              /* */
        MHD_OPTION_EXTERNAL_LOGGER, on_message, loop,        /* must be the first */
        MHD_OPTION_LISTEN_SOCKET, loop->server->listener.fd, /* */
        MHD_OPTION_URI_LOG_CALLBACK, on_target, loop,        /* */
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, loop,     /* */
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, loop,   /* */
        MHD_OPTION_CONNECTION_LIMIT, config->connections + weft_peers_spare(config->connections),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADERS_MAX,     /* */
        MHD_OPTION_STRICT_FOR_CLIENT, 0,                             /* http_head.c is, in JSON */
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)config->idle_s + 1, /* the sweep is first */
        MHD_OPTION_ARRAY, loop->tls ? tls : &tls[WEFT_LEN(tls) - 1], MHD_OPTION_END);
    loop->server->listener.fd = -1; /* it is libmicrohttpd's, also after a failure */
    if (loop->daemon)
        return WEFT_OK;
    return weft_fail(err, WEFT_INTERNAL, "cannot start the HTTP loop (errno %d)", errno);
}

enum weft_rc weft_loop_start(struct weft_server *server, struct weft_err *err)
{
    const struct weft_server_config *config = &server->config;
    enum weft_rc rc = weft_peers_fit(&server->config, err);
    if (rc)
        return rc;
    struct weft_loop *loop = weft_alloc(1, sizeof(*loop));
    loop->server = server;
    loop->last_fresh = &loop->fresh;
    loop->poke = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&loop->lock, NULL);
    weft_peers_init(&loop->peers, config->connections, config->per_address);
    loop->peers.limit_us[WEFT_PEER_IDLE] = config->idle_s * WEFT_SECOND;
    loop->peers.limit_us[WEFT_PEER_RECEIVING] = config->receive_s * WEFT_SECOND;
    loop->peers.limit_us[WEFT_PEER_SENDING] = config->send_s * WEFT_SECOND;
    loop->peers.send_min = config->send_min;
    loop->bodies.most = config->body_bytes;
    loop->answers.most = config->answer_bytes;
    if (config->tls_cert) {
        /* A handshake is part of the first stage, which the sweep bounds. */
        loop->tls = weft_tls_new((config->idle_s + config->receive_s + 60) * WEFT_SECOND);
        rc = weft_loop_certify(loop, config, err);
    }
    (void)snprintf(loop->url, sizeof(loop->url), "%s://%s", loop->tls ? "https" : "http",
                   server->listener.address);
    server->loop = loop; /* requests may come at once */
    if (!rc)
        rc = start_daemon(loop, err);
    if (!rc) {
        const union MHD_DaemonInfo *info =
            MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        loop->events = info ? info->epoll_fd : -1;
        loop->started = true;
        weft_thread_start(&loop->thread, "weft-loop", run_thread, loop);
    } else {
        server->loop = NULL;
        weft_loop_stop(loop);
    }
    return rc;
}

enum weft_rc weft_loop_certify(struct weft_loop *loop, const struct weft_server_config *config,
                               struct weft_err *err)
{
    bool expired = false;
    const struct weft_tls_files files = {.cert = config->tls_cert, .key = config->tls_key};
    if (!loop->tls || !files.cert || !files.key)
        return loop->tls || files.cert ? weft_fail(err, WEFT_INVALID_VALUE,
                                                   "TLS is switched on or off by a restart only")
                                       : WEFT_OK;
    enum weft_rc rc = weft_tls_load(loop->tls, &files, &expired, err);
    if (expired)
        weft_warn("the certificate has expired: clients will refuse it",
                  F_STR("file", config->tls_cert));
    return rc;
}

const char *weft_loop_url(const struct weft_loop *loop)
{
    return loop->url;
}

/* Sets a flag of the loop and has the thread look at it. */
static void order(struct weft_loop *loop, bool *flag)
{
    pthread_mutex_lock(&loop->lock);
    *flag = true;
    pthread_mutex_unlock(&loop->lock);
    poke(loop);
}

void weft_loop_quiesce(struct weft_loop *loop)
{
    order(loop, &loop->quiesce);
}

void weft_loop_slim(struct weft_loop *loop)
{
    order(loop, &loop->slim);
}

void weft_loop_stop(struct weft_loop *loop)
{
    if (loop->started) {
        order(loop, &loop->ended);
        pthread_join(loop->thread, NULL);
    }
    if (loop->daemon)
        MHD_stop_daemon(loop->daemon);
    (void)close(loop->poke);
    pthread_mutex_destroy(&loop->lock);
    weft_fair_done(&loop->answered);
    weft_peers_done(&loop->peers);
    weft_tls_free(loop->tls);
    free(loop);
}
