/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Connections and their patience. libmicrohttpd ends connections on which nothing happens; one that
 * sends or takes a byte now and then would live for ever. So each stage has a limit of its own, and
 * a connection over it is shut; the loop finds it closed and frees what it held. So is one whose
 * client has left.
 */

#include "net/link.h"

#include "base/arena.h"
#include "base/log.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#define LEFT_US WEFT_SECOND /* what has arrived is read long before */

struct weft_peer *weft_peer_new(struct weft_peers *peers, int fd)
{
    struct weft_peer *peer = calloc(1, sizeof(*peer));
    if (!peer)
        weft_oom(sizeof(*peer));
    peer->fd = fd;
    peer->since_us = weft_boot_us();
    pthread_mutex_lock(&peers->lock);
    peer->next = peers->first;
    peer->link = &peers->first;
    if (peers->first)
        peers->first->link = &peer->next;
    peers->first = peer;
    pthread_mutex_unlock(&peers->lock);
    return peer;
}

void weft_peer_free(struct weft_peers *peers, struct weft_peer *peer)
{
    pthread_mutex_lock(&peers->lock);
    *peer->link = peer->next;
    if (peer->next)
        peer->next->link = peer->link;
    pthread_mutex_unlock(&peers->lock);
    free(peer);
}

void weft_peer_stage(struct weft_peers *peers, struct weft_peer *peer, enum weft_peer_stage stage)
{
    weft_usec now_us = weft_boot_us();
    pthread_mutex_lock(&peers->lock);
    peer->stage = stage;
    peer->since_us = now_us;
    pthread_mutex_unlock(&peers->lock);
}

/*
 * True when the client closed in the middle of a request, or before one. libmicrohttpd does not see
 * that when the end came together with the last bytes, and would wait for more.
 */
static bool has_left(const struct weft_peer *peer, weft_usec now_us)
{
    struct pollfd fd = {.fd = peer->fd, .events = POLLRDHUP};
    return peer->stage <= WEFT_PEER_RECEIVING && now_us - peer->since_us >= LEFT_US &&
           poll(&fd, 1, 0) > 0;
}

void weft_peers_sweep(struct weft_peers *peers)
{
    weft_usec now_us = weft_boot_us();
    uint64_t shut = 0;
    pthread_mutex_lock(&peers->lock);
    for (struct weft_peer *p = peers->first; p; p = p->next) {
        weft_usec limit_us = peers->limit_us[p->stage];
        bool left = has_left(p, now_us);
        if (!left && (limit_us == 0 || now_us - p->since_us < limit_us))
            continue;
        /* The descriptor is the loop's and open: a peer is freed before it is closed. */
        (void)shutdown(p->fd, SHUT_RDWR);
        p->since_us = now_us;
        shut += !left && p->stage != WEFT_PEER_IDLE;
    }
    pthread_mutex_unlock(&peers->lock);
    if (shut > 0)
        weft_info("slow clients were hung up on", F_U64("connections", shut));
}
