/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Notices between replicas: which queues got work, which workers lost leases. They are sent by one
 * thread on a connection of its own, after the commits, many in one notice: the first at once,
 * then no sooner than 2 ms after the one before, and up to 20 ms while each is about many commits.
 * So a notice costs the writers nothing, and a busy replica sends few. They may be lost: the slow
 * poll finds everything.
 */

#include "net/wait/notice.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "engine/engine.h"
#include "net/metrics.h"
#include "net/server.h"
#include "net/upkeep/supervisor.h"
#include "net/upkeep/upkeep.h"
#include "net/wait/waits.h"
#include "store/notify.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PAUSE_FIRST_US (2 * WEFT_MS)
#define PAUSE_LAST_US  (20 * WEFT_MS)
#define RETRY_FIRST_US (100 * WEFT_MS)
#define RETRY_LAST_US  (10 * WEFT_SECOND)
enum {
    ENTRY_MAX = 24, /* bytes of a queue with its count */
    WORKER_MAX = 13,
    BUSY_ADDS = 4 /* commits in one notice */
};

static_assert(WEFT_NOTICE_QUEUES_MAX * ENTRY_MAX + WEFT_NOTICE_WORKERS_MAX * WORKER_MAX <
                  WEFT_NOTICE_TEXT_MAX,
              "all that is pending fits a notice");

struct weft_notices {
    struct weft_server *server;
    pthread_t thread;
    int poke; /* an eventfd */

    pthread_mutex_t lock;       /* over the three below */
    struct weft_notice pending; /* the next one to be sent */
    size_t adds;                /* how often something was added to it; 0: nothing is pending */
    bool stopping;

    /* The thread's. */
    struct weft_notifier *notifier;
    weft_usec sent_us, pause_us, retry_us, retry_pause_us;
    bool complained;
};

static void poke(struct weft_notices *notices)
{
    uint64_t one = 1;
    ssize_t written = write(notices->poke, &one, sizeof(one));
    (void)written; /* full means poked already */
}

/* Locks the pending notice; NULL: there is nothing to add, or the store cannot notify. */
static struct weft_notice *begin_add(struct weft_notices *notices, size_t count)
{
    if (!notices || count == 0)
        return NULL;
    pthread_mutex_lock(&notices->lock);
    return &notices->pending;
}

static void end_add(struct weft_notices *notices)
{
    bool first = notices->adds++ == 0;
    pthread_mutex_unlock(&notices->lock);
    if (first)
        poke(notices);
}

void weft_notices_add(struct weft_notices *notices, const struct weft_woken *woken, size_t count)
{
    struct weft_notice *pending = begin_add(notices, count);
    if (!pending)
        return;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < pending->queues && pending->queue[at].queue != woken[i].queue)
            at++;
        if (at == WEFT_NOTICE_QUEUES_MAX)
            pending->everything = true;
        else if (at == pending->queues)
            pending->queue[pending->queues++] = woken[i];
        else if (pending->queue[at].count < UINT32_MAX - woken[i].count)
            pending->queue[at].count += woken[i].count;
    }
    end_add(notices);
}

void weft_notices_add_workers(struct weft_notices *notices, const int32_t *worker, size_t count)
{
    struct weft_notice *pending = begin_add(notices, count);
    if (!pending)
        return;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < pending->workers && pending->worker[at] != worker[i])
            at++;
        if (at == WEFT_NOTICE_WORKERS_MAX)
            pending->everything = true;
        else if (at == pending->workers)
            pending->worker[pending->workers++] = worker[i];
    }
    end_add(notices);
}

/* ---- Sending --------------------------------------------------------------------------------- */

/* Takes all that is pending as the text of a notice; returns of how many commits. */
static size_t take_text(struct weft_notices *notices, char ret_text[WEFT_NOTICE_TEXT_MAX])
{
    pthread_mutex_lock(&notices->lock);
    struct weft_notice *pending = &notices->pending;
    size_t adds = notices->adds, size = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; i < pending->queues && !pending->everything; i++)
        size += (size_t)snprintf(ret_text + size, WEFT_NOTICE_TEXT_MAX - size, "%d:%u ",
                                 pending->queue[i].queue, pending->queue[i].count);
    for (size_t i = 0; i < pending->workers && !pending->everything; i++)
        size += (size_t)snprintf(ret_text + size, WEFT_NOTICE_TEXT_MAX - size, "w%d ",
                                 pending->worker[i]);
    if (pending->everything)
        (void)snprintf(ret_text, WEFT_NOTICE_TEXT_MAX, "*");
    pending->queues = pending->workers = notices->adds = 0;
    pending->everything = false;
    pthread_mutex_unlock(&notices->lock);
    return adds;
}

static bool is_pending(struct weft_notices *notices)
{
    pthread_mutex_lock(&notices->lock);
    bool pending = notices->adds > 0;
    pthread_mutex_unlock(&notices->lock);
    return pending;
}

static void lose_notifier(struct weft_notices *notices, const struct weft_err *err)
{
    weft_notifier_close(notices->notifier);
    notices->notifier = NULL;
    notices->retry_us = weft_boot_us() + notices->retry_pause_us;
    notices->retry_pause_us *= 2;
    if (notices->retry_pause_us > RETRY_LAST_US)
        notices->retry_pause_us = RETRY_LAST_US;
    if (!notices->complained)
        weft_warn("notices between replicas are off: work of others is seen within a second",
                  F_STR("error", err->text));
    notices->complained = true;
}

/* True when a notice was sent. */
static bool send_pending(struct weft_notices *notices)
{
    char text[WEFT_NOTICE_TEXT_MAX];
    struct weft_err err = {0};
    size_t adds = take_text(notices, text);
    if (adds == 0 || !notices->notifier)
        return false;
    notices->pause_us = adds >= BUSY_ADDS ? notices->pause_us * 2 : notices->pause_us / 2;
    if (notices->pause_us > PAUSE_LAST_US)
        notices->pause_us = PAUSE_LAST_US;
    if (notices->pause_us < PAUSE_FIRST_US)
        notices->pause_us = PAUSE_FIRST_US;
    notices->sent_us = weft_boot_us();
    if (weft_notifier_send(notices->notifier, text, &err))
        lose_notifier(notices, &err);
    return true;
}

/* ---- Receiving ------------------------------------------------------------------------------- */

/* True when digits up to `end` are a number from 1 to `most`. */
static bool read_number(const char *text, const char *end, uint32_t most, uint32_t *ret_number)
{
    uint64_t number = 0;
    if (text == end)
        return false;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9')
            return false;
        number = number * 10 + (uint64_t)(*text - '0');
        if (number > most)
            return false;
    }
    *ret_number = (uint32_t)number;
    return number > 0;
}

static void read_queue(const char *word, const char *end, struct weft_notice *notice)
{
    const char *colon = memchr(word, ':', (size_t)(end - word));
    uint32_t queue, count;
    if (colon && read_number(word, colon, INT32_MAX, &queue) &&
        read_number(colon + 1, end, UINT32_MAX, &count) && notice->queues < WEFT_NOTICE_QUEUES_MAX)
        notice->queue[notice->queues++] = (struct weft_woken){(int32_t)queue, count};
}

static void read_worker(const char *word, const char *end, struct weft_notice *notice)
{
    uint32_t worker;
    if (read_number(word, end, INT32_MAX, &worker) && notice->workers < WEFT_NOTICE_WORKERS_MAX)
        notice->worker[notice->workers++] = (int32_t)worker;
}

void weft_notice_read(const char *text, struct weft_notice *ret_notice)
{
    ret_notice->everything = ret_notice->inbox = false;
    ret_notice->queues = ret_notice->workers = 0;
    while (*text) {
        const char *end = strchrnul(text, ' ');
        size_t size = (size_t)(end - text);
        if (size == 1 && *text == '*')
            ret_notice->everything = true;
        else if (size == strlen("inbox") && memcmp(text, "inbox", size) == 0)
            ret_notice->inbox = true;
        else if (*text == 'w')
            read_worker(text + 1, end, ret_notice);
        else
            read_queue(text, end, ret_notice);
        text = *end ? end + 1 : end;
    }
}

/* Wakes the waiting claims and watches that a notice is about. */
static void receive(struct weft_notices *notices, const char *text)
{
    struct weft_server *server = notices->server;
    struct weft_notice notice;
    struct weft_err err = {0};
    weft_notice_read(text, &notice);
    if (notice.everything)
        weft_upkeep_expect(server->upkeep, 0);
    if (notice.inbox)
        weft_supervisor_wake(server->supervisor, WEFT_SCANNER_INTAKE);
    weft_server_wake_workers(server, WEFT_WAKE_REMOTE, notice.worker, notice.workers);
    if (weft_engine_heard(server->engine, notice.queue, notice.queues, &err) == WEFT_OK)
        weft_server_wake(server, WEFT_WAKE_REMOTE, notice.queue, notice.queues);
}

static void receive_all(struct weft_notices *notices)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_err err = {0};
    const char *text = "";
    while (notices->notifier && text) {
        weft_arena_reset(arena);
        if (weft_notifier_next(notices->notifier, arena, &text, &err))
            lose_notifier(notices, &err);
        else if (text)
            receive(notices, text);
    }
    weft_arena_free(arena);
}

static void open_notifier(struct weft_notices *notices)
{
    const struct weft_server_config *config = &notices->server->config;
    struct weft_err err = {0};
    if (weft_notifier_open(config->listen_url ? config->listen_url : config->store,
                           &notices->notifier, &err)) {
        notices->notifier = NULL;
        lose_notifier(notices, &err);
        return;
    }
    if (notices->complained)
        weft_info("notices between replicas are on again");
    notices->complained = false;
    notices->retry_pause_us = RETRY_FIRST_US;
    weft_upkeep_expect(notices->server->upkeep, 0); /* notices were missed */
}

/* How long to sleep: until the next notice may be sent, or the next try to connect. */
static int sleep_ms(struct weft_notices *notices)
{
    weft_usec at_us = WEFT_NEVER;
    if (!notices->notifier)
        at_us = notices->retry_us;
    else if (is_pending(notices))
        at_us = notices->sent_us + notices->pause_us;
    if (at_us == WEFT_NEVER)
        return -1;
    weft_usec left_us = at_us - weft_boot_us();
    return left_us <= 0 ? 0 : (int)((left_us + WEFT_MS - 1) / WEFT_MS);
}

static void *run_thread(void *context)
{
    struct weft_notices *notices = context;
    for (;;) {
        struct pollfd fd[2] = {
            {.fd = notices->poke, .events = POLLIN},
            {.fd = notices->notifier ? weft_notifier_fd(notices->notifier) : -1, .events = POLLIN},
        };
        (void)poll(fd, 2, sleep_ms(notices));
        uint64_t ignored;
        if (fd[0].revents && read(notices->poke, &ignored, sizeof(ignored)) < 0 && errno != EAGAIN)
            break;
        pthread_mutex_lock(&notices->lock);
        bool stopping = notices->stopping;
        pthread_mutex_unlock(&notices->lock);
        if (stopping)
            break;
        if (fd[1].revents)
            receive_all(notices);
        bool opened = !notices->notifier && weft_boot_us() >= notices->retry_us;
        if (opened)
            open_notifier(notices);
        bool rang = weft_boot_us() >= notices->sent_us + notices->pause_us && send_pending(notices);
        /* Opening and sending also read notices that have come, and our own, into the notifier: the
         * socket is not readable for them any more. Read together with the next notice, they would
         * wake claims for work that was taken long ago. */
        if (opened || rang)
            receive_all(notices);
    }
    (void)send_pending(notices);
    weft_notifier_close(notices->notifier);
    return NULL;
}

struct weft_notices *weft_notices_new(struct weft_server *server)
{
    if (weft_engine_writers(server->engine) == 1)
        return NULL; /* one file, one writer: others notice by the poll */
    struct weft_notices *notices = weft_alloc(1, sizeof(*notices));
    notices->server = server;
    notices->pause_us = PAUSE_FIRST_US;
    notices->retry_pause_us = RETRY_FIRST_US;
    notices->poke = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&notices->lock, NULL);
    weft_thread_start(&notices->thread, "weft-notice", run_thread, notices);
    return notices;
}

void weft_notices_stop(struct weft_notices *notices)
{
    if (!notices)
        return;
    pthread_mutex_lock(&notices->lock);
    notices->stopping = true;
    pthread_mutex_unlock(&notices->lock);
    poke(notices);
    pthread_join(notices->thread, NULL);
}

void weft_notices_free(struct weft_notices *notices)
{
    if (!notices)
        return;
    (void)close(notices->poke);
    pthread_mutex_destroy(&notices->lock);
    free(notices);
}
