/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Starting and stopping a crowd, and what other threads may do. A call goes to the loop with the
 * fewest; from then on it belongs to the thread of that loop.
 *
 * Locks: loop->lock guards the inbox, crowd->lock what is trusted. Each stands alone.
 */

#include "fetch/crowd.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "fetch/crowd_state.h"
#include "fetch/library.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { IN_FLIGHT_DEFAULT = 1024 };

/* ---- Starting and stopping ------------------------------------------------------------------- */

static enum weft_rc open_loop(struct crowd_loop *loop, struct weft_err *err)
{
    loop->poller = epoll_create1(EPOLL_CLOEXEC);
    loop->waker = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = loop->waker};
    if (loop->poller >= 0 && loop->waker >= 0 &&
        epoll_ctl(loop->poller, EPOLL_CTL_ADD, loop->waker, &event) == 0)
        return WEFT_OK;
    return weft_fail(err, WEFT_INTERNAL, "no descriptors for outgoing calls: %s",
                     strerrordesc_np(errno));
}

static void init_loop(struct crowd_loop *loop, struct weft_crowd *crowd, size_t limit)
{
    *loop = (struct crowd_loop){.crowd = crowd, .poller = -1, .waker = -1, .limit = limit};
    pthread_mutex_init(&loop->lock, NULL);
    TAILQ_INIT(&loop->inbox);
    TAILQ_INIT(&loop->waiting);
    TAILQ_INIT(&loop->running);
}

static void close_loop(struct crowd_loop *loop)
{
    if (loop->poller >= 0)
        (void)close(loop->poller);
    if (loop->waker >= 0)
        (void)close(loop->waker);
    pthread_mutex_destroy(&loop->lock);
    weft_dues_done(&loop->dues);
    free(loop->pack);
    free(loop->file);
}

static void free_crowd(struct weft_crowd *crowd)
{
    for (size_t i = 0; i < crowd->loops; i++)
        close_loop(&crowd->loop[i]);
    free(crowd->loop);
    free(crowd->pem);
    pthread_mutex_destroy(&crowd->lock);
    free(crowd);
}

static struct weft_crowd *make_crowd(const struct weft_crowd_config *config)
{
    struct weft_crowd *crowd = weft_alloc(1, sizeof(*crowd));
    uint32_t in_flight = config->in_flight ? config->in_flight : IN_FLIGHT_DEFAULT;
    pthread_mutex_init(&crowd->lock, NULL);
    crowd->loops = config->threads ? config->threads : 1;
    if (crowd->loops > in_flight)
        crowd->loops = in_flight;
    crowd->loop = weft_alloc(crowd->loops, sizeof(struct crowd_loop));
    for (size_t i = 0; i < crowd->loops; i++)
        init_loop(&crowd->loop[i], crowd,
                  in_flight / crowd->loops + (i < in_flight % crowd->loops));
    return crowd;
}

enum weft_rc weft_crowd_start(const struct weft_crowd_config *config, struct weft_crowd **ret_crowd,
                              struct weft_err *err)
{
    enum weft_rc rc = weft_fetch_library(err);
    if (rc)
        return rc;
    struct weft_crowd *crowd = make_crowd(config);
    for (size_t i = 0; i < crowd->loops && !rc; i++)
        rc = open_loop(&crowd->loop[i], err);
    if (rc) {
        free_crowd(crowd);
        return rc;
    }
    for (size_t i = 0; i < crowd->loops; i++)
        weft_thread_start(&crowd->loop[i].thread, "weft-crowd", weft_crowd_turns, &crowd->loop[i]);
    *ret_crowd = crowd;
    return WEFT_OK;
}

void weft_crowd_trust(struct weft_crowd *crowd, const char *pem)
{
    pthread_mutex_lock(&crowd->lock);
    free(crowd->pem);
    crowd->pem = weft_strdup(pem);
    atomic_fetch_add(&crowd->trusted, 1);
    pthread_mutex_unlock(&crowd->lock);
}

void weft_crowd_stop(struct weft_crowd *crowd)
{
    if (!crowd)
        return;
    for (size_t i = 0; i < crowd->loops; i++) {
        pthread_mutex_lock(&crowd->loop[i].lock);
        crowd->loop[i].stopping = true;
        pthread_mutex_unlock(&crowd->loop[i].lock);
        weft_crowd_wake(&crowd->loop[i]);
    }
    for (size_t i = 0; i < crowd->loops; i++)
        pthread_join(crowd->loop[i].thread, NULL);
    free_crowd(crowd);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static struct crowd_loop *pick_loop(struct weft_crowd *crowd)
{
    struct crowd_loop *best = &crowd->loop[0];
    for (size_t i = 1; i < crowd->loops; i++)
        if (atomic_load_explicit(&crowd->loop[i].load, memory_order_relaxed) <
            atomic_load_explicit(&best->load, memory_order_relaxed))
            best = &crowd->loop[i];
    return best;
}

struct weft_transfer *weft_crowd_call(struct weft_crowd *crowd, const struct weft_crowd_call *call)
{
    struct crowd_loop *loop = pick_loop(crowd);
    struct weft_transfer *transfer = weft_alloc(1, sizeof(*transfer));
    transfer->call = *call;
    transfer->loop = loop;
    transfer->start_us = weft_boot_us();
    atomic_fetch_add(&crowd->in_flight, 1);
    atomic_fetch_add(&loop->load, 1);
    pthread_mutex_lock(&loop->lock);
    bool first = TAILQ_EMPTY(&loop->inbox);
    TAILQ_INSERT_TAIL(&loop->inbox, transfer, entry);
    pthread_mutex_unlock(&loop->lock);
    if (first)
        weft_crowd_wake(loop);
    return transfer;
}

void weft_crowd_abort(struct weft_crowd *crowd, struct weft_transfer *transfer)
{
    (void)crowd;
    struct crowd_loop *loop = transfer->loop;
    atomic_store(&transfer->unwanted, true);
    if (!atomic_exchange(&loop->unwanted, true))
        weft_crowd_wake(loop);
}

size_t weft_crowd_in_flight(const struct weft_crowd *crowd)
{
    return atomic_load(&crowd->in_flight);
}
