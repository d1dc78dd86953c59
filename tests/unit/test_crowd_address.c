/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where calls may lead. This program answers look-ups of *.test by itself and sees every connect():
 * libcurl calls the functions of these names that are defined here. Connections to PUBLIC lead to
 * the upstream.
 */

#include "crowd_fixture.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>

static const char public_v4[] = "93.184.216.34", public_v6[] = "2606:2800:220:1:248:1893:25c8:1946";

static struct weft_err err;
static struct upstream upstream;
static atomic_int connects, lookups;
static _Atomic(const char *) rebound; /* what rebinds.test is now */
static atomic_bool slow_over;
enum { FILES_MAX = 4096 };
static atomic_bool diverted[FILES_MAX]; /* connections to PUBLIC */

/* ---- Names ----------------------------------------------------------------------------------- */

/* Names and what they resolve to, in this order. */
static const struct name {
    const char *name, *address[4];
} names[] = {
    {"public.test", {public_v4}},
    {"loopback.test", {"127.0.0.1"}},
    {"loopback6.test", {"::1"}},
    {"private.test", {"10.1.2.3"}},
    {"mapped.test", {"::ffff:10.0.0.1"}},
    {"metadata.test", {"169.254.169.254"}},
    {"local.test", {"fd00::1"}},
    {"all.test", {"127.0.0.1", "10.0.0.1", "::1"}},
    {"first-private.test", {"127.0.0.1", public_v4}},
    {"last-private.test", {public_v4, "127.0.0.1"}},
    {"both.test", {"::1", public_v4}},
    {"dead-public.test", {public_v6, "127.0.0.1"}},
};

static const char *const *addresses_of(const char *name, const char *ret_one[2])
{
    if (strcmp(name, "rebinds.test") == 0) {
        ret_one[0] = atomic_load(&rebound);
        return ret_one;
    }
    for (size_t i = 0; i < WEFT_LEN(names); i++)
        if (strcmp(name, names[i].name) == 0)
            return names[i].address;
    return NULL;
}

typedef int lookup_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static int look_up(const char *name, const char *service, const struct addrinfo *hints,
                   struct addrinfo **ret_list)
{
    lookup_fn *real;
    void *found = dlsym(RTLD_NEXT, "getaddrinfo");
    memcpy(&real, &found, sizeof(real));
    return real(name, service, hints, ret_list);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): not that of libc */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret_list)
{
    const char *one[2] = {NULL}, *const *address = addresses_of(name, one);
    atomic_fetch_add(&lookups, 1);
    if (strcmp(name, "slow.test") == 0) {
        while (!atomic_load(&slow_over))
            (void)poll(NULL, 0, 5);
        return EAI_NONAME;
    }
    if (!address)
        return strstr(name, ".test") ? EAI_NONAME : look_up(name, service, hints, ret_list);
    struct addrinfo numeric = *hints, **end = ret_list;
    numeric.ai_flags |= AI_NUMERICHOST;
    numeric.ai_family = AF_UNSPEC;
    for (; *address; address++) {
        if (look_up(*address, service, &numeric, end) != 0)
            abort();
        while (*end)
            end = &(*end)->ai_next;
    }
    return 0;
}

/* ---- Connections ----------------------------------------------------------------------------- */

typedef int connect_fn(int, const struct sockaddr *, socklen_t);
typedef int peer_fn(int, struct sockaddr *, socklen_t *);

static struct in_addr public_bytes(void)
{
    struct in_addr bytes;
    (void)inet_pton(AF_INET, public_v4, &bytes);
    return bytes;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): not that of libc */
int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t size)
{
    const struct sockaddr *to = address.__sockaddr__;
    connect_fn *real;
    void *found = dlsym(RTLD_NEXT, "connect");
    memcpy(&real, &found, sizeof(real));
    const struct sockaddr_in here = {.sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)upstream.port),
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (to->sa_family != AF_INET && to->sa_family != AF_INET6)
        return real(fd, to, size);
    atomic_fetch_add(&connects, 1);
    if (to->sa_family == AF_INET6) { /* the public one, and this machine may have no IPv6 */
        errno = ENETUNREACH;
        return -1;
    }
    bool public = ((const struct sockaddr_in *)to)->sin_addr.s_addr == public_bytes().s_addr;
    if (fd < FILES_MAX)
        atomic_store(&diverted[fd], public);
    return public ? real(fd, (const struct sockaddr *)&here, sizeof(here)) : real(fd, to, size);
}

/* libcurl asks who is at the other end. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): not that of libc */
int getpeername(int fd, __SOCKADDR_ARG address, socklen_t *restrict size)
{
    struct sockaddr *peer = address.__sockaddr__;
    peer_fn *real;
    void *found = dlsym(RTLD_NEXT, "getpeername");
    memcpy(&real, &found, sizeof(real));
    int rc = real(fd, peer, size);
    if (rc == 0 && fd < FILES_MAX && atomic_load(&diverted[fd]))
        ((struct sockaddr_in *)peer)->sin_addr = public_bytes();
    return rc;
}

/* ---- Refused --------------------------------------------------------------------------------- */

static const char *const refused[] = {
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0x7F.0x0.0x0.0x1",
    "0177.0.0.1",
    "017700000001",
    "0",
    "0.0.0.0",
    "10.0.0.1",
    "10.255.255.255",
    "0xa.0.0.1",
    "167772161",
    "012.1.2.3",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.1",
    "3232235521",
    "100.64.0.1",
    "100.127.255.255",
    "169.254.0.1",
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "192.0.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "168.63.129.16",
    "localhost",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:93.184.216.34]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::1]",
    "[fe80::1]",
    "[fec0::1]",
    "[fc00::1]",
    "[fd12:3456::1]",
    "[ff02::1]",
    "[100::1]",
    "[2001:db8::1]",
    "[4000::1]",
    "loopback.test",
    "loopback6.test",
    "private.test",
    "mapped.test",
    "metadata.test",
    "local.test",
    "all.test",
};

static struct weft_crowd *start(void)
{
    struct weft_crowd *crowd = NULL;
    if (weft_crowd_start(&(struct weft_crowd_config){0}, &crowd, &err) != WEFT_OK)
        abort();
    return crowd;
}

static void call_host(struct weft_crowd *crowd, const char *host, bool private_addresses,
                      struct taken *taken)
{
    char url[200];
    taken_init(taken);
    (void)snprintf(url, sizeof(url), "http://%s:%d/echo", host, upstream.port);
    struct weft_crowd_call call = plain_call(url, taken);
    call.private_addresses = private_addresses;
    (void)weft_crowd_call(crowd, &call);
    ok(await_end(taken), "%s: the call ends", host);
}

static void test_refused(void)
{
    struct weft_crowd *crowd = start();
    struct taken taken;
    atomic_store(&connects, 0);
    for (size_t i = 0; i < WEFT_LEN(refused); i++) {
        call_host(crowd, refused[i], false, &taken);
        ok(taken.end.failure == WEFT_HTTP_REFUSED && !taken.end.sent && taken.heads == 0 &&
               strstr(taken.text, "no public address"),
           "%s: %s", refused[i], taken.text);
        taken_done(&taken);
    }
    is_int(atomic_load(&connects), 0, "no connection was tried");
    weft_crowd_stop(crowd);
}

/* A private endpoint goes where it says. */
static void test_private(void)
{
    static const char *const host[] = {"127.0.0.1", "2130706433",    "0x7f.1",
                                       "0177.1",    "loopback.test", "rebinds.test"};
    struct weft_crowd *crowd = start();
    struct taken taken;
    atomic_store(&rebound, "127.0.0.1");
    for (size_t i = 0; i < WEFT_LEN(host); i++) {
        call_host(crowd, host[i], true, &taken);
        ok(taken.end.failure == WEFT_HTTP_ANSWERED && taken.status == 200, "%s: %s", host[i],
           taken.text);
        taken_done(&taken);
    }
    weft_crowd_stop(crowd);
}

/* ---- Names with several addresses, and with others the next time ------------------------------
 */

static void test_several(void)
{
    static const char *const host[] = {"public.test", "first-private.test", "last-private.test",
                                       "both.test"};
    struct weft_crowd *crowd = start();
    struct taken taken;
    for (size_t i = 0; i < WEFT_LEN(host); i++) {
        atomic_store(&connects, 0);
        call_host(crowd, host[i], false, &taken);
        ok(taken.end.failure == WEFT_HTTP_ANSWERED && taken.status == 200,
           "%s: the public address is called: %s", host[i], taken.text);
        is_int(atomic_load(&connects), 1, "%s: and no other", host[i]);
        taken_done(&taken);
    }
    call_host(crowd, "dead-public.test", false, &taken);
    ok(taken.end.failure == WEFT_HTTP_REFUSED && !taken.end.sent,
       "the private one does not stand in for a public one that is dead: %s", taken.text);
    taken_done(&taken);
    call_host(crowd, "no-such.test", false, &taken);
    ok(taken.end.failure == WEFT_HTTP_RESOLVE && !taken.end.sent, "no such name: %s", taken.text);
    taken_done(&taken);
    weft_crowd_stop(crowd);
}

/* The address that is judged is the one that is connected to: there is one look-up. */
static void test_rebinding(void)
{
    static const char *const turn[] = {public_v4, "127.0.0.1", public_v4, "169.254.169.254"};
    for (size_t i = 0; i < WEFT_LEN(turn); i++) {
        struct weft_crowd *crowd = start(); /* without what the last one remembers */
        struct taken taken;
        atomic_store(&rebound, turn[i]);
        atomic_store(&lookups, 0);
        call_host(crowd, "rebinds.test", false, &taken);
        is_int(taken.end.failure, turn[i] == public_v4 ? WEFT_HTTP_ANSWERED : WEFT_HTTP_REFUSED,
               "rebinds.test is %s now: %s", turn[i], taken.text);
        is_int(atomic_load(&lookups), 1, "looked up one time");
        taken_done(&taken);
        weft_crowd_stop(crowd);
    }
}

/* A connection that a private endpoint made is not for others. */
static void test_kept(void)
{
    struct weft_crowd *crowd = start();
    struct taken taken;
    for (int i = 0; i < 4; i++) {
        bool private_addresses = i % 2 == 0;
        call_host(crowd, "loopback.test", private_addresses, &taken);
        ok(private_addresses ? taken.end.failure == WEFT_HTTP_ANSWERED
                             : taken.end.failure == WEFT_HTTP_REFUSED && !taken.end.sent,
           "call %d: %s", i, taken.text);
        taken_done(&taken);
    }
    weft_crowd_stop(crowd);
}

/* ---- A resolver that does not answer -----------------------------------------------------------
 */

static void test_slow_lookup(void)
{
    struct weft_crowd *crowd = start();
    struct taken slow, late, other;
    char url[100] = "http://slow.test/";
    taken_init(&slow);
    taken_init(&late);
    struct weft_crowd_call call = plain_call(url, &slow);
    struct weft_transfer *transfer = weft_crowd_call(crowd, &call);
    call.context = &late;
    call.connect_ms = 200;
    (void)weft_crowd_call(crowd, &call);
    call_host(crowd, "public.test", false, &other);
    ok(other.end.failure == WEFT_HTTP_ANSWERED && !slow.ends, "others go on during a look-up");
    ok(await_end(&late) && late.end.failure == WEFT_HTTP_TIMEOUT && !late.end.sent &&
           late.end.phases.total_us < WEFT_SECOND,
       "the look-up counts as connecting: %s", late.text);
    weft_usec from_us = weft_boot_us();
    weft_crowd_abort(crowd, transfer);
    ok(await_end(&slow) && slow.end.aborted && !slow.end.sent &&
           weft_boot_us() - from_us < WEFT_SECOND / 2,
       "aborted during a look-up");
    weft_crowd_stop(crowd);
    atomic_store(&slow_over, true);
    taken_done(&slow);
    taken_done(&late);
    taken_done(&other);
    (void)poll(NULL, 0, 200); /* the threads of the two look-ups end */
}

int main(void)
{
    upstream = upstream_start();
    test_refused();
    test_private();
    test_several();
    test_rebinding();
    test_kept();
    test_slow_lookup();
    upstream_stop(&upstream);
    return tap_done();
}
