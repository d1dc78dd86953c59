/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libmicrohttpd ends connections on which nothing happens; a client that sends or takes a byte now
 * and then would keep its connection for ever. So each stage has a limit of its own, and a
 * connection over it is shut; the loop finds it closed and frees it. A connection is shut too when
 * its client has left, takes less of its answer than send_min, or takes nothing while answers fill
 * their memory.
 *
 * A connection is a stranger until it has sent the head of a request that is let in: with a good
 * token, or at a server that wants none. When there are more connections than may be, the oldest
 * stranger between requests, or in the middle of a request that was not let in yet, is shut. So
 * silent connections, however many, do not keep other clients out. A connection whose request is
 * carried out, waits or is being answered is never shut for this. libmicrohttpd stops accepting a
 * few connections (`spare`) above the limit: a new one must be accepted before an old one can be
 * chosen.
 *
 * Strangers never take the place of a connection that was let in. But when a stranger is let in and
 * there are more such connections than may be, a connection that rests between two requests is
 * closed, as HTTP/1.1 lets a server do: of the address and the namespace that have most connections
 * the one that has rested longest. It is closed for reading only ("retired"): a request that came
 * in at the same moment is carried out and answered, and libmicrohttpd closes the connection at
 * the end of what it can read. A connection that has not rested for RESTED_US, whose client may be
 * about to send, is closed only when no connection has rested so long. When none rests at all, the
 * new connection is `extra`: its answer says that the connection ends with it, unless there is room
 * by then. So connections that were let in do not fill the spare places for good, and requests on
 * new connections, such as /healthz, are answered.
 *
 * Each address has a limit too (a v6 one together with the other addresses of its /64). A new
 * connection above it takes the place of the oldest stranger of the same address, or is shut
 * itself. This machine's own address has a limit only when one is set.
 *
 * Shutting a socket is all that happens here: on_connection() of the loop follows, and frees the
 * peer. A request that a client had sent by then may still be carried out; it gets no answer, as on
 * any connection that breaks.
 */

#include "net/http/peer.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "net/server.h"

#include <inttypes.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define LEFT_US     WEFT_SECOND        /* bytes that have arrived are read long before */
#define PROGRESS_US (10 * WEFT_SECOND) /* in which a client takes send_min of its answer */
#define STANDS_US   (2 * WEFT_SECOND)  /* it goes when memory is short and it took nothing */
#define LOITER_US   WEFT_SECOND /* a stranger that was quiet for so long goes when all is full */
#define RESTED_US   WEFT_SECOND /* a connection that rested so long makes room for a new one */

enum { RESTING_LOOKS = 1024 }; /* resting connections among which one is chosen */

/* ---- Addresses ------------------------------------------------------------------------------- */

/* An address that has connections. */
struct weft_address {
    struct weft_address *next; /* in its bucket */
    uint8_t key[16];           /* v6, v4 mapped into it */
    uint32_t peers;            /* that point here */
    uint32_t open;             /* of these peers, the ones that are not shut */
    bool loopback;
};

/* The key of an address; false: of no kind that has a limit. */
static bool read_key(const struct sockaddr *address, uint8_t ret_key[16], bool *ret_loopback)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    memset(ret_key, 0, 16);
    if (address && address->sa_family == AF_INET) {
        memcpy(ret_key, mapped, 12);
        memcpy(ret_key + 12, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    } else if (address && address->sa_family == AF_INET6) {
        const struct in6_addr *v6 =
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
        bool whole = IN6_IS_ADDR_V4MAPPED(v6) || IN6_IS_ADDR_LOOPBACK(v6);
        memcpy(ret_key, v6, whole ? 16 : 8);
    } else {
        return false;
    }
    bool v4 = memcmp(ret_key, mapped, 12) == 0;
    *ret_loopback = v4 ? ret_key[12] == 127 : memcmp(ret_key, &in6addr_loopback, 16) == 0;
    return true;
}

static struct weft_address **bucket_of(struct weft_peers *peers, const uint8_t key[16])
{
    uint64_t half[2];
    memcpy(half, key, 16);
    uint64_t hash = (half[0] ^ (half[1] * UINT64_C(0x9e3779b97f4a7c15)) ^ peers->seed) *
                    UINT64_C(0xff51afd7ed558ccd);
    return &peers->bucket[hash >> (64 - WEFT_PEERS_BUCKET_BITS)];
}

/* Under the lock. */
static struct weft_address *enter_address(struct weft_peers *peers, const struct sockaddr *address)
{
    uint8_t key[16];
    bool loopback = false;
    if (!read_key(address, key, &loopback))
        return NULL;
    struct weft_address **bucket = bucket_of(peers, key), *found = *bucket;
    while (found && memcmp(found->key, key, sizeof(key)) != 0)
        found = found->next;
    if (!found) {
        found = weft_alloc(1, sizeof(*found));
        memcpy(found->key, key, sizeof(key));
        found->loopback = loopback;
        found->next = *bucket;
        *bucket = found;
    }
    found->peers++;
    found->open++;
    return found;
}

/* Under the lock. */
static void leave_address(struct weft_peers *peers, struct weft_address *address)
{
    if (!address || --address->peers > 0)
        return;
    struct weft_address **at = bucket_of(peers, address->key);
    while (*at != address)
        at = &(*at)->next;
    *at = address->next;
    free(address);
}

/* ---- Strangers ------------------------------------------------------------------------------- */

/* Under the lock, as all in this part. */
static void unlink_stranger(struct weft_peers *peers, struct weft_peer *peer)
{
    if (!peer->stranger)
        return;
    TAILQ_REMOVE(&peers->strangers, peer, strangers);
    peer->stranger = false;
    peers->stranger_count--;
}

static void unlink_resting(struct weft_peers *peers, struct weft_peer *peer)
{
    if (peer->rests)
        TAILQ_REMOVE(&peers->resting, peer, resting);
    peer->rests = false;
}

/* The connection has been shut, or is freed: it does not count any more. */
static void leave(struct weft_peers *peers, struct weft_peer *peer)
{
    peer->shut = true;
    unlink_stranger(peers, peer);
    unlink_resting(peers, peer);
    peers->open--;
    if (peer->address)
        peer->address->open--;
    if (peer->let_in)
        peers->tenants[peer->tenant]--;
}

/* The descriptor is the loop's and open: a peer is freed before it is closed. */
static void shut(struct weft_peers *peers, struct weft_peer *peer)
{
    (void)shutdown(peer->fd, SHUT_RDWR);
    if (!peer->shut)
        leave(peers, peer);
}

/* The oldest stranger without a request under way, of this address unless that is NULL; or NULL. */
static struct weft_peer *find_stranger(struct weft_peers *peers, const struct weft_address *address)
{
    struct weft_peer *p = TAILQ_FIRST(&peers->strangers);
    while (p && (p->stage > WEFT_PEER_RECEIVING || (address && p->address != address)))
        p = TAILQ_NEXT(p, strangers);
    return p;
}

static uint32_t limit_of(const struct weft_peers *peers, const struct weft_address *address)
{
    if (peers->per_address)
        return peers->per_address;
    uint32_t quarter = peers->max / 4;
    return address->loopback ? UINT32_MAX : quarter ? quarter : 1;
}

/* A connection has come: shuts another one, or itself, if there are too many now. */
static void make_room(struct weft_peers *peers, struct weft_peer *peer)
{
    struct weft_peer *victim = NULL;
    if (peer->address && peer->address->open > limit_of(peers, peer->address))
        victim = find_stranger(peers, peer->address); /* finds itself at last */
    else if (peers->open > peers->max && peers->stranger_count > weft_peers_spare(peers->max) / 2)
        victim = find_stranger(peers, NULL);
    if (!victim)
        return;
    if (victim == peer)
        peers->refused++;
    else
        peers->evicted++;
    shut(peers, victim);
}

/* ---- Resting connections --------------------------------------------------------------------- */

static bool has_too_many(const struct weft_peers *peers)
{
    return peers->open - peers->stranger_count > peers->max;
}

/*
 * The resting connection to close, or NULL; if some have rested for RESTED_US, one of these. The
 * sum of the connections of namespace and address finds a namespace that uses many addresses as
 * well as an address that uses many namespaces; behind a proxy the address makes no difference.
 */
static struct weft_peer *find_resting(const struct weft_peers *peers, weft_usec now_us)
{
    struct weft_peer *best = NULL;
    uint64_t most = 0;
    unsigned looks = 0;
    struct weft_peer *first = TAILQ_FIRST(&peers->resting);
    weft_usec first_us = first ? first->since_us : 0;
    weft_usec rested_us = now_us - first_us >= RESTED_US ? RESTED_US : 0;
    for (struct weft_peer *p = first;
         p && looks < RESTING_LOOKS && now_us - p->since_us >= rested_us;
         p = TAILQ_NEXT(p, resting)) {
        uint64_t held = (uint64_t)peers->tenants[p->tenant] + (p->address ? p->address->open : 0);
        if (held > most) {
            most = held;
            best = p;
        }
        looks++;
    }
    return best;
}

/*
 * The loop thread may be about to read: requests that arrived before the shutdown are answered.
 * Later ones are not read at all.
 */
static void retire(struct weft_peers *peers, struct weft_peer *peer)
{
    atomic_store(&peer->retired, true);
    (void)shutdown(peer->fd, SHUT_RD);
    leave(peers, peer);
    peers->retired++;
}

void weft_peer_let_in(struct weft_peers *peers, struct weft_peer *peer, const char *ns)
{
    uint32_t tenant = weft_text_bucket(ns, WEFT_PEERS_TENANTS);
    if (peer->let_in && peer->tenant == tenant)
        return;
    pthread_mutex_lock(&peers->lock);
    if (!peer->shut) {
        if (peer->let_in)
            peers->tenants[peer->tenant]--;
        peers->tenants[tenant]++;
        unlink_stranger(peers, peer);
        if (has_too_many(peers)) {
            struct weft_peer *victim = find_resting(peers, weft_boot_us());
            if (victim)
                retire(peers, victim);
            else
                peer->extra = true;
        }
    }
    peer->tenant = tenant;
    peer->let_in = true;
    pthread_mutex_unlock(&peers->lock);
}

bool weft_peer_must_go(struct weft_peers *peers, struct weft_peer *peer)
{
    if (!peer->extra)
        return false;
    pthread_mutex_lock(&peers->lock);
    peer->extra = has_too_many(peers);
    pthread_mutex_unlock(&peers->lock);
    return peer->extra;
}

/* ---- Connections ----------------------------------------------------------------------------- */

void weft_peers_init(struct weft_peers *peers, uint32_t max, uint32_t per_address)
{
    pthread_mutex_init(&peers->lock, NULL);
    TAILQ_INIT(&peers->all);
    TAILQ_INIT(&peers->strangers);
    TAILQ_INIT(&peers->resting);
    peers->max = max;
    peers->per_address = per_address;
    peers->seed = (uint64_t)weft_boot_us(); /* not to be guessed from outside */
}

void weft_peers_done(struct weft_peers *peers)
{
    pthread_mutex_destroy(&peers->lock);
}

/*
 * Half of these are for strangers. At 10,000 new connections a second, as many as two cores accept,
 * a stranger then has some milliseconds to send the head of a request before it is shut.
 */
uint32_t weft_peers_spare(uint32_t max)
{
    uint32_t spare = max / 2 + 2;
    return spare < WEFT_SPARE_CONNECTIONS ? spare : WEFT_SPARE_CONNECTIONS;
}

/* Raises the limit of descriptors to so many, if the system allows; returns the limit. */
static uint64_t raise_limit(uint64_t wanted)
{
    struct rlimit now;
    if (getrlimit(RLIMIT_NOFILE, &now) != 0)
        return wanted; /* not known: accept() will fail if it is too low */
    if (now.rlim_cur >= wanted)
        return now.rlim_cur;
    /* Only root may raise the hard limit; elsewhere the soft limit is raised up to it. */
    struct rlimit more = {.rlim_cur = wanted,
                          .rlim_max = now.rlim_max < wanted ? wanted : now.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &more) == 0)
        return wanted;
    more = (struct rlimit){.rlim_cur = now.rlim_max, .rlim_max = now.rlim_max};
    return setrlimit(RLIMIT_NOFILE, &more) == 0 ? more.rlim_cur : now.rlim_cur;
}

enum weft_rc weft_peers_fit(struct weft_server_config *config, struct weft_err *err)
{
    enum { FILES = 64, FILES_PER_THREAD = 8, FEWEST = 32 }; /* beside connections of clients */
    uint64_t files = FILES + (uint64_t)config->threads * FILES_PER_THREAD;
    uint64_t asked = config->connections, spare = weft_peers_spare(config->connections);
    uint64_t limit = raise_limit(files + asked + spare);
    if (limit >= files + asked + spare)
        return WEFT_OK;
    if (limit <= files + FEWEST)
        return weft_hint(err,
                         weft_invalid(err, "connections",
                                      "the process may have only %" PRIu64 " descriptors, %" PRIu64
                                      " are needed without any connection",
                                      limit, files + FEWEST),
                         "raise the limit with `ulimit -n` or LimitNOFILE= of systemd");
    uint64_t left = limit - files, with_few = (left - 2) / 3 * 2; /* their spare ones are a half */
    config->connections = (uint32_t)(left > spare + with_few ? left - spare : with_few);
    weft_warn(
        "the limit of descriptors allows fewer connections; raise it with `ulimit -n` or "
        "LimitNOFILE= of systemd",
        F_U64("connections", config->connections), F_U64("asked", asked),
        F_U64("descriptors", limit));
    return WEFT_OK;
}

struct weft_peer *weft_peer_new(struct weft_peers *peers, int fd, const struct sockaddr *address)
{
    struct weft_peer *peer = weft_alloc(1, sizeof(*peer));
    peer->fd = fd;
    peer->since_us = weft_boot_us();
    pthread_mutex_lock(&peers->lock);
    TAILQ_INSERT_HEAD(&peers->all, peer, all);
    TAILQ_INSERT_TAIL(&peers->strangers, peer, strangers);
    peer->stranger = true;
    peers->stranger_count++;
    peers->open++;
    peer->address = enter_address(peers, address);
    make_room(peers, peer);
    pthread_mutex_unlock(&peers->lock);
    return peer;
}

void weft_peer_free(struct weft_peers *peers, struct weft_peer *peer)
{
    pthread_mutex_lock(&peers->lock);
    TAILQ_REMOVE(&peers->all, peer, all);
    if (!peer->shut)
        leave(peers, peer);
    leave_address(peers, peer->address);
    pthread_mutex_unlock(&peers->lock);
    free(peer);
}

void weft_peer_stage(struct weft_peers *peers, struct weft_peer *peer, enum weft_peer_stage stage)
{
    weft_usec now_us = weft_boot_us();
    pthread_mutex_lock(&peers->lock);
    peer->stage = stage;
    peer->since_us = now_us;
    unlink_resting(peers, peer);
    peer->rests = stage == WEFT_PEER_IDLE && peer->let_in && !peer->shut;
    if (peer->rests)
        TAILQ_INSERT_TAIL(&peers->resting, peer, resting);
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

/* ---- Answers that are not read --------------------------------------------------------------- */

void weft_peer_shut(struct weft_peers *peers, struct weft_peer *peer)
{
    pthread_mutex_lock(&peers->lock);
    shut(peers, peer);
    pthread_mutex_unlock(&peers->lock);
}

void weft_peer_sends(struct weft_peers *peers, struct weft_peer *peer, size_t held)
{
    weft_usec now_us = weft_boot_us();
    pthread_mutex_lock(&peers->lock);
    peer->stage = WEFT_PEER_SENDING;
    peer->since_us = peer->mark_us = now_us;
    peer->held = held;
    peer->looked = false;
    pthread_mutex_unlock(&peers->lock);
}

/* Bytes that the client's machine has acknowledged; 0 where that is not known. */
static uint64_t acked_by(const struct weft_peer *peer)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof(info);
    if (getsockopt(peer->fd, IPPROTO_TCP, TCP_INFO, &info, &size))
        return 0;
    return info.tcpi_bytes_acked;
}

/*
 * Under the lock. True when a client takes less of its answer than it must; `ret_stands`: it took
 * nothing since the last sweep. Bytes count as taken when its machine has acknowledged them: how
 * much of the answer has been sent only libmicrohttpd knows.
 */
static bool is_too_slow(const struct weft_peers *peers, struct weft_peer *peer, weft_usec now_us,
                        bool *ret_stands)
{
    uint64_t acked = acked_by(peer);
    *ret_stands = peer->looked && acked == peer->last && now_us - peer->since_us >= STANDS_US;
    if (!peer->looked || acked - peer->acked >= peers->send_min) {
        peer->acked = acked;
        peer->mark_us = peer->looked ? now_us : peer->since_us;
        peer->looked = true;
    }
    peer->last = acked;
    return now_us - peer->mark_us >= PROGRESS_US;
}

/* Under the lock: shuts slow clients, and, while memory is short, clients that take nothing. */
static uint64_t shut_slow(struct weft_peers *peers, weft_usec now_us, uint64_t excess)
{
    uint64_t slow = 0;
    for (struct weft_peer *p = TAILQ_FIRST(&peers->all); p; p = TAILQ_NEXT(p, all)) {
        bool stands = false;
        if (p->stage != WEFT_PEER_SENDING || p->shut)
            continue;
        bool goes = is_too_slow(peers, p, now_us, &stands);
        if (!goes && !(stands && excess > 0))
            continue;
        excess -= p->held < excess ? p->held : excess;
        shut(peers, p);
        slow++;
    }
    return slow;
}

/* ---- The sweep ------------------------------------------------------------------------------- */

/* Under the lock: where connections that were let in fill the server, strangers do not stay. */
static void shut_loiterers(struct weft_peers *peers, weft_usec now_us)
{
    struct weft_peer *next;
    for (struct weft_peer *p = TAILQ_FIRST(&peers->strangers); p && peers->open > peers->max;
         p = next) {
        next = TAILQ_NEXT(p, strangers);
        if (p->stage > WEFT_PEER_RECEIVING || now_us - p->since_us < LOITER_US)
            continue;
        peers->evicted++;
        shut(peers, p);
    }
}

uint64_t weft_peers_sweep(struct weft_peers *peers, uint64_t excess)
{
    weft_usec now_us = weft_boot_us();
    pthread_mutex_lock(&peers->lock);
    shut_loiterers(peers, now_us);
    uint64_t slow = shut_slow(peers, now_us, excess);
    for (struct weft_peer *p = TAILQ_FIRST(&peers->all); p; p = TAILQ_NEXT(p, all)) {
        weft_usec limit_us = peers->limit_us[p->stage];
        bool left = has_left(p, now_us);
        if (!left && (limit_us == 0 || now_us - p->since_us < limit_us))
            continue;
        slow += !left && p->stage != WEFT_PEER_IDLE;
        shut(peers, p);
        p->since_us = now_us;
    }
    const struct {
        const char *text;
        uint64_t count;
    } away[] = {
        {"too many connections: silent ones were closed", peers->evicted},
        {"too many connections: the longest idle ones were closed", peers->retired},
        {"too many connections of one address: new ones were closed", peers->refused},
    };
    peers->evicted = peers->refused = peers->retired = 0;
    pthread_mutex_unlock(&peers->lock);
    if (slow > 0)
        weft_info("slow clients were hung up on", F_U64("connections", slow));
    uint64_t all = 0;
    for (size_t i = 0; i < WEFT_LEN(away); i++) {
        if (away[i].count > 0)
            weft_warn(away[i].text, F_U64("connections", away[i].count));
        all += away[i].count;
    }
    return all;
}
