/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_UNIT_HTTP_FIXTURE_H
#define WEFT_TESTS_UNIT_HTTP_FIXTURE_H

/*
 * A server on loopback that says what a test tells it to: a script of answers in the order of
 * requests, or a function that makes them. One thread accepts, one per connection answers; all end
 * with stage_done(). The requests are remembered.
 */

#include "base/base.h"
#include "tap.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    STAGE_PATIENCE_MS = 20000,
    STAGE_TAKES_MAX = 64,
    STAGE_THREADS_MAX = 128,
    STAGE_BODY_MAX = 20 << 20
};

/* One answer. Zero: 200 with an empty object. */
struct take {
    int status;
    const char *header; /* lines, each ended by \r\n; or NULL */
    const char *body;   /* NULL: "{}" */
    const char *raw;    /* instead of all that: these bytes, and the connection is closed */
    bool hang_up;       /* read the request, say nothing, close */
    bool hold;          /* wait for stage_release() before answering */
    bool close_after;   /* answer as if to be kept alive, then close */
};

struct asked {
    char method[8];
    char path[300];
    char header[2000];
    char *body; /* owned */
    size_t body_size;
};

struct stage {
    int listener;
    char url[64];
    pthread_t acceptor, thread[STAGE_THREADS_MAX];
    size_t threads;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over, released;
    struct take take[STAGE_TAKES_MAX]; /* the last one is repeated */
    size_t takes;
    /* Instead of takes: makes the body, which must be freed; NULL: look at the takes. */
    char *(*make)(void *context, const struct asked *asked, struct take *ret_take);
    void *context;
    struct asked asked[STAGE_TAKES_MAX]; /* the first ones */
    int connections, requests, closed;
};

static inline int64_t mono_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline bool stage_over(struct stage *stage)
{
    pthread_mutex_lock(&stage->lock);
    bool over = stage->over;
    pthread_mutex_unlock(&stage->lock);
    return over;
}

/* Reads into data until it has `want` bytes, or up to the end of the head when want is 0. */
static inline bool stage_read(struct stage *stage, int fd, char *data, size_t *size, size_t want)
{
    while (want ? *size < want : !memmem(data, *size, "\r\n\r\n", 4)) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (stage_over(stage))
            return false;
        if (poll(&ready, 1, 20) <= 0)
            continue;
        ssize_t got = recv(fd, data + *size, STAGE_BODY_MAX - *size, 0);
        if (got <= 0)
            return false;
        *size += (size_t)got;
    }
    return true;
}

static inline size_t stage_length(const char *head)
{
    const char *found = strcasestr(head, "\r\nContent-Length:");
    return found ? strtoul(found + 17, NULL, 10) : 0;
}

static inline void stage_send(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        data += sent;
        size -= (size_t)sent;
    }
}

/* Notes the request and picks its answer. */
static inline struct take stage_pick(struct stage *stage, struct asked *asked, char **ret_made)
{
    struct take take = {0};
    if (stage->make)
        *ret_made = stage->make(stage->context, asked, &take);
    pthread_mutex_lock(&stage->lock);
    size_t number = (size_t)stage->requests++;
    if (!*ret_made && stage->takes > 0)
        take = stage->take[number < stage->takes ? number : stage->takes - 1];
    if (number < STAGE_TAKES_MAX) {
        stage->asked[number] = *asked;
        asked->body = NULL;
    }
    pthread_cond_broadcast(&stage->changed);
    while (take.hold && !stage->released && !stage->over)
        pthread_cond_wait(&stage->changed, &stage->lock);
    pthread_mutex_unlock(&stage->lock);
    free(asked->body);
    return take;
}

/* One request and its answer. False: the connection is over. */
static inline bool stage_serve(struct stage *stage, int fd, char *data)
{
    size_t size = 0;
    if (!stage_read(stage, fd, data, &size, 0))
        return false;
    size_t head = (size_t)((char *)memmem(data, size, "\r\n\r\n", 4) - data) + 4;
    struct asked asked = {0};
    (void)snprintf(asked.header, sizeof(asked.header), "%.*s", (int)head, data);
    (void)sscanf(asked.header, "%7s %299s", asked.method, asked.path);
    size_t length = stage_length(asked.header);
    if (!stage_read(stage, fd, data, &size, head + length))
        return false;
    asked.body = calloc(1, length + 1);
    memcpy(asked.body, data + head, length);
    asked.body_size = length;

    char *made = NULL;
    struct take take = stage_pick(stage, &asked, &made);
    if (take.hang_up) {
        free(made);
        return false;
    }
    if (take.raw) {
        stage_send(fd, take.raw, strlen(take.raw));
        return false;
    }
    const char *body = made ? made : take.body ? take.body : "{}";
    char lines[600];
    int lines_size =
        snprintf(lines, sizeof(lines),
                 "HTTP/1.1 %d Said\r\nContent-Type: application/json\r\n%sContent-Length: "
                 "%zu\r\n\r\n",
                 take.status ? take.status : 200, take.header ? take.header : "", strlen(body));
    stage_send(fd, lines, (size_t)lines_size);
    stage_send(fd, body, strlen(body));
    free(made);
    return !take.close_after;
}

struct stage_call {
    struct stage *stage;
    int fd;
};

static inline void *stage_talk(void *context)
{
    struct stage_call call = *(struct stage_call *)context;
    free(context);
    char *data = malloc(STAGE_BODY_MAX);
    while (data && stage_serve(call.stage, call.fd, data))
        ;
    free(data);
    (void)close(call.fd);
    pthread_mutex_lock(&call.stage->lock);
    call.stage->closed++;
    pthread_cond_broadcast(&call.stage->changed);
    pthread_mutex_unlock(&call.stage->lock);
    return NULL;
}

static inline void *stage_accept(void *context)
{
    struct stage *stage = context;
    while (!stage_over(stage)) {
        struct pollfd ready = {.fd = stage->listener, .events = POLLIN};
        if (poll(&ready, 1, 20) <= 0)
            continue;
        int fd = accept(stage->listener, NULL, NULL);
        if (fd < 0 || stage->threads == STAGE_THREADS_MAX)
            continue;
        const int yes = 1;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        struct stage_call *call = malloc(sizeof(*call));
        *call = (struct stage_call){stage, fd};
        pthread_mutex_lock(&stage->lock);
        stage->connections++;
        pthread_mutex_unlock(&stage->lock);
        (void)pthread_create(&stage->thread[stage->threads++], NULL, stage_talk, call);
    }
    return NULL;
}

/* A port of its own; no socket listens there before stage_open(). */
static inline void stage_init(struct stage *stage)
{
    *stage = (struct stage){0};
    pthread_mutex_init(&stage->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&stage->changed, &attr);
    pthread_condattr_destroy(&attr);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    stage->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(stage->listener, (struct sockaddr *)&at, sizeof(at)) ||
        getsockname(stage->listener, (struct sockaddr *)&at, &size)) {
        printf("Bail out! no port on loopback\n");
        exit(1); /* NOLINT(concurrency-mt-unsafe) */
    }
    (void)snprintf(stage->url, sizeof(stage->url), "http://127.0.0.1:%d", ntohs(at.sin_port));
}

static inline void stage_open(struct stage *stage)
{
    (void)listen(stage->listener, 64);
    (void)pthread_create(&stage->acceptor, NULL, stage_accept, stage);
}

static inline void stage_release(struct stage *stage)
{
    pthread_mutex_lock(&stage->lock);
    stage->released = true;
    pthread_cond_broadcast(&stage->changed);
    pthread_mutex_unlock(&stage->lock);
}

/* True when a number of the stage has come to this in time. */
static inline bool stage_wait_for(struct stage *stage, const int *number, int least)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += STAGE_PATIENCE_MS / 1000;
    int waited = 0;
    pthread_mutex_lock(&stage->lock);
    while (*number < least && waited == 0)
        waited = pthread_cond_timedwait(&stage->changed, &stage->lock, &until);
    bool there = *number >= least;
    pthread_mutex_unlock(&stage->lock);
    return there;
}

/* The same for requests. */
static inline bool stage_wait(struct stage *stage, int requests)
{
    return stage_wait_for(stage, &stage->requests, requests);
}

static inline void stage_add(struct stage *stage, struct take take)
{
    pthread_mutex_lock(&stage->lock);
    stage->take[stage->takes++] = take;
    pthread_mutex_unlock(&stage->lock);
}

/* stage_open() was called. */
static inline void stage_done(struct stage *stage)
{
    pthread_mutex_lock(&stage->lock);
    stage->over = true;
    pthread_cond_broadcast(&stage->changed);
    pthread_mutex_unlock(&stage->lock);
    (void)pthread_join(stage->acceptor, NULL);
    for (size_t i = 0; i < stage->threads; i++)
        (void)pthread_join(stage->thread[i], NULL);
    for (size_t i = 0; i < STAGE_TAKES_MAX; i++)
        free(stage->asked[i].body);
    (void)close(stage->listener);
    pthread_cond_destroy(&stage->changed);
    pthread_mutex_destroy(&stage->lock);
}

#endif
