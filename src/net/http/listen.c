/* SPDX-License-Identifier: Apache-2.0 */

/* The listening socket, and how many connections there may be. */

#include "net/http/listen.h"

#include "base/err.h"
#include "base/log.h"
#include "net/http/peer.h"
#include "net/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BACKLOG = 1024, HOST_MAX = 255 };

struct place {
    char host[HOST_MAX + 1]; /* "": every address */
    char port[8];
};

static bool is_port(const char *text)
{
    char *end;
    unsigned long port = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && port <= 65535;
}

static enum weft_rc split(const char *where, struct place *ret_place, struct weft_err *err)
{
    const char *colon = strrchr(where, ':');
    const char *host = where, *end = colon;
    if (colon && *where == '[') {
        host = where + 1;
        end = colon - 1;
    }
    if (!colon || end < host || (host != where && *end != ']') || (size_t)(end - host) > HOST_MAX ||
        !is_port(colon + 1))
        return weft_fail_field(err, WEFT_INVALID_VALUE, "listen",
                               "cannot listen on '%.100s': it should be HOST:PORT, like "
                               "127.0.0.1:7717 or [::1]:7717",
                               where);
    memcpy(ret_place->host, host, (size_t)(end - host));
    ret_place->host[end - host] = '\0';
    (void)snprintf(ret_place->port, sizeof(ret_place->port), "%s", colon + 1);
    return WEFT_OK;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 ==
               127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static enum weft_rc describe(int fd, struct weft_listener *ret_listener, struct weft_err *err)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    char host[NI_MAXHOST], port[NI_MAXSERV];
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0 ||
        getnameinfo((struct sockaddr *)&address, size, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return weft_fail(err, WEFT_INTERNAL, "cannot tell the address of the listening socket");
    ret_listener->fd = fd;
    ret_listener->loopback = is_loopback((struct sockaddr *)&address);
    (void)snprintf(ret_listener->address, sizeof(ret_listener->address),
                   address.ss_family == AF_INET6 ? "[%.255s]:%.8s" : "%.255s:%.8s", host, port);
    return WEFT_OK;
}

static int bind_to(const struct addrinfo *info)
{
    int on = 1;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int saved = errno;
    (void)close(fd);
    errno = saved;
    return -1;
}

enum weft_rc weft_listen(const char *where, struct weft_listener *ret_listener,
                         struct weft_err *err)
{
    struct place place = {0};
    enum weft_rc rc = split(where, &place, err);
    if (rc)
        return rc;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found;
    int failed = getaddrinfo(*place.host ? place.host : NULL, place.port, &hints, &found);
    if (failed)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "listen", "cannot listen on '%.100s': %s",
                               where, gai_strerror(failed));
    int fd = -1;
    for (const struct addrinfo *info = found; info && fd < 0; info = info->ai_next)
        fd = bind_to(info);
    int saved = errno;
    freeaddrinfo(found);
    memcpy(ret_listener->host, place.host, sizeof(place.host));
    if (fd >= 0)
        return describe(fd, ret_listener, err);
    char reason[100];
    rc = weft_fail_field(err, saved == EADDRINUSE ? WEFT_CONFLICT : WEFT_INVALID_VALUE, "listen",
                         "cannot listen on %.100s: %s", where,
                         strerror_r(saved, reason, sizeof(reason)));
    if (saved == EADDRINUSE)
        err->hint = "another server runs there: stop it, or choose another address with --listen";
    return rc;
}

/* Raises the limit of descriptors to so many, if the system allows; returns the limit. */
static uint64_t raise_limit(uint64_t wanted)
{
    struct rlimit now;
    if (getrlimit(RLIMIT_NOFILE, &now) != 0)
        return wanted; /* not known: accept() will tell */
    if (now.rlim_cur >= wanted)
        return now.rlim_cur;
    /* The hard limit may be raised by root alone; where it cannot be, what it allows is taken. */
    struct rlimit more = {.rlim_cur = wanted,
                          .rlim_max = now.rlim_max < wanted ? wanted : now.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &more) == 0)
        return wanted;
    more = (struct rlimit){.rlim_cur = now.rlim_max, .rlim_max = now.rlim_max};
    return setrlimit(RLIMIT_NOFILE, &more) == 0 ? more.rlim_cur : now.rlim_cur;
}

enum weft_rc weft_connections_fit(struct weft_server_config *config, struct weft_err *err)
{
    enum { FILES = 64, FILES_PER_THREAD = 8, FEWEST = 32 }; /* beside connections of clients */
    uint64_t files = FILES + (uint64_t)config->threads * FILES_PER_THREAD;
    uint64_t asked = config->connections, spare = weft_peers_spare(config->connections);
    uint64_t limit = raise_limit(files + asked + spare);
    if (limit >= files + asked + spare)
        return WEFT_OK;
    if (limit <= files + FEWEST)
        return weft_hint(err,
                         weft_fail_field(err, WEFT_INVALID_VALUE, "connections",
                                         "the process may have only %" PRIu64
                                         " descriptors, %" PRIu64
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
