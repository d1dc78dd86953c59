/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Putting the parts of the server together and taking them apart again. The order of starting: the
 * socket (cheap to refuse) and the loop, which answers /healthz and refuses everything else; the
 * store; the parts that requests use; then `open` is set, so that the first request that is let in
 * finds them all; last the threads that work by themselves. Stopping goes the other way round.
 */

#include "net/server.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/log.h"
#include "engine/engine.h"
#include "engine/flow/flow_hold.h"
#include "engine/ready/ready.h"
#include "engine/tx/commit_effects.h"
#include "engine/wait/keys.h"
#include "net/api/api.h"
#include "net/auth.h"
#include "net/executor/executor.h"
#include "net/group/commit_work.h"
#include "net/group/group.h"
#include "net/http/authorities.h"
#include "net/http/host.h"
#include "net/http/loop.h"
#include "net/metrics.h"
#include "net/route.h"
#include "net/secrets.h"
#include "net/trial.h"
#include "net/upkeep/roster.h"
#include "net/upkeep/supervisor.h"
#include "net/upkeep/upkeep.h"
#include "net/wait/notice.h"
#include "net/wait/waits.h"
#include "weft/admin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EXTRA_CONNECTIONS = 3 }; /* to the store, for upkeep, the executor and one to spare */

static void resolve(const struct weft_server_config *given, struct weft_server *server)
{
    struct weft_server_config *config = &server->config;
    struct weft_arena *arena = server->arena;
    *config = *given;
#define TEXT(name, normally)                                                                       \
    config->name = weft_arena_strdup(arena, given->name ? given->name : (normally))
#define COPY(name)             config->name = weft_arena_strdup(arena, given->name) /* or NULL */
#define NUMBER(name, normally) config->name = given->name ? given->name : (normally)
    TEXT(store, "sqlite:weft.db");
    TEXT(listen, "127.0.0.1:7717");
    COPY(listen_url);
    COPY(tls_cert);
    COPY(tls_key);
    COPY(signing_key_file);
    COPY(secrets_dir);
    COPY(ca_file);
    COPY(cors_origin);
    COPY(host);
    NUMBER(threads, 6);
    NUMBER(connections, 4096);
    NUMBER(queue_max, 4096);
    NUMBER(namespace_queues, 100000);
    NUMBER(namespace_workers, 100000);
    NUMBER(body_bytes, 256 << 20);
    NUMBER(answer_bytes, 128 << 20);
    NUMBER(file_bytes, 200 << 20);
    NUMBER(file_requests, 50000);
    NUMBER(send_min, 16 << 10);
    NUMBER(idle_s, 75);
    NUMBER(receive_s, 30);
    NUMBER(send_s, 120);
    NUMBER(grace_s, 10);
    NUMBER(http_in_flight, 1000);
#undef TEXT
#undef COPY
#undef NUMBER
    struct weft_scanner_setting *scanners =
        weft_new_array(arena, struct weft_scanner_setting, WEFT_SCANNER_COUNT);
    weft_scanner_defaults(scanners);
    if (given->scanners)
        memcpy(scanners, given->scanners, WEFT_SCANNER_COUNT * sizeof(*scanners));
    config->scanners = scanners;
}

void weft_server_wake(struct weft_server *server, enum weft_metric_wake source,
                      const struct weft_woken *woken, size_t count)
{
    weft_waits_wake(server->waits, source, woken, count);
    if (server->executor && weft_ready_wakes_carried(server->engine, woken, count))
        weft_executor_wake(server->executor, woken, count);
}

void weft_server_wake_workers(struct weft_server *server, enum weft_metric_wake source,
                              const int32_t *worker, size_t count)
{
    weft_waits_wake_workers(server->waits, source, worker, count);
    if (server->executor && count > 0)
        weft_executor_leases(server->executor, worker, count);
}

/* What a commit of this process changed: its own waiters first, then the other replicas. */
static void on_news(void *context, const struct weft_news *news)
{
    struct weft_server *server = context;
    weft_server_wake(server, WEFT_WAKE_LOCAL, news->woken, news->count);
    weft_notices_add(server->notices, news->woken, news->count);
    weft_upkeep_expect(server->upkeep, news->due_us);
}

/* Others ended leases of these workers: wakes their watches here, and by a notice elsewhere. */
static void on_leases(void *context, const int32_t *worker, size_t count)
{
    struct weft_server *server = context;
    weft_server_wake_workers(server, WEFT_WAKE_LOCAL, worker, count);
    weft_notices_add_workers(server->notices, worker, count);
}

bool weft_server_wants_tokens(const struct weft_server *server)
{
    return server->config.tokens || !server->listener.loopback;
}

/* ---- The socket ------------------------------------------------------------------------------ */

enum { BACKLOG = 1024, HOST_MAX = 255, SEND_BUFFER = 128 << 10 };

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
        return weft_invalid(
            err, "listen",
            "cannot listen on '%.100s': it should be HOST:PORT, like 127.0.0.1:7717 or [::1]:7717",
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
    /*
     * Accepted connections inherit it. Left to itself the kernel takes up to 4 MB for each client
     * that does not read, which no budget of this process counts, and takes the time to fill them
     * from the loop thread.
     */
    int room = SEND_BUFFER;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int saved = errno;
    (void)close(fd);
    errno = saved;
    return -1;
}

/* Binds "HOST:PORT", "[V6]:PORT" or ":PORT". WEFT_INVALID_VALUE and WEFT_CONFLICT (in use). */
static enum weft_rc listen_on(const char *where, struct weft_listener *ret_listener,
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
        return weft_invalid(err, "listen", "cannot listen on '%.100s': %s", where,
                            gai_strerror(failed));
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

/* ---- Secrets ----------------------------------------------------------------------------------
 */

/*
 * A process with secrets writes no core dumps, and others of its user cannot read its memory:
 * secrets lie in pages that no dump has, but libcurl and OpenSSL have copies of those that are
 * being sent.
 */
static void seal_process(struct weft_server *server)
{
    if (weft_secrets_count(server->secrets) > 0)
        (void)prctl(PR_SET_DUMPABLE, 0);
}

static enum weft_rc read_secrets(struct weft_server *server, const char *dir, struct weft_err *err)
{
    enum weft_rc rc = weft_secrets_read(server->secrets, dir, err);
    seal_process(server);
    return rc;
}

/* Reads the authorities that outgoing calls trust, and tells those who make calls, if there are
 * any. */
static enum weft_rc read_authorities(struct weft_server *server, const char *path,
                                     struct weft_err *err)
{
    char *pem = NULL;
    enum weft_rc rc = path ? weft_authorities_read(path, &pem, err) : WEFT_OK;
    if (rc)
        return rc;
    free(server->authorities);
    server->authorities = pem;
    if (server->trials)
        weft_trials_trust(server->trials, pem);
    weft_executor_trust(server->executor, pem);
    return WEFT_OK;
}

/* ---- Starting and stopping ------------------------------------------------------------------- */

static enum weft_rc check_origins(const struct weft_server *server, struct weft_err *err)
{
    if (!server->origins.any || weft_server_wants_tokens(server))
        return WEFT_OK;
    return weft_hint(
        err,
        weft_invalid(err, "cors_origin", "without tokens '*' would let every page of the web in"),
        "require tokens with --tokens, or list the origins that may call");
}

/* The names of --host, and the name in --listen. */
static enum weft_rc read_hosts(struct weft_server *server, struct weft_err *err)
{
    const char *named = server->config.host ? server->config.host : "";
    const char *own = strchr(server->listener.host, ':') ? "" : server->listener.host;
    return weft_hosts_parse(weft_arena_printf(server->arena, "%s,%s", named, own), server->arena,
                            &server->hosts, err);
}

/* Opens the store and reads the tokens; neither is kept after a failure. */
static enum weft_rc open_store(struct weft_server *server, struct weft_err *err)
{
    const struct weft_server_config *config = &server->config;
    const struct weft_engine_config engine = {.url = config->store,
                                              .in_turn = true,
                                              .connections = config->threads + EXTRA_CONNECTIONS,
                                              .namespace_queues = config->namespace_queues,
                                              .namespace_workers = config->namespace_workers,
                                              .unused_after_us =
                                                  config->unused_names_after_s * WEFT_SECOND,
                                              .signing_key_file = config->signing_key_file,
                                              .no_migrate = config->no_migrate,
                                              .migrate_wait_s = config->migrate_wait_s};
    enum weft_rc rc = weft_engine_open(&engine, &server->engine, err);
    if (rc)
        return rc;
    bool tokens = weft_server_wants_tokens(server);
    server->auth = weft_auth_new(tokens);
    rc = weft_auth_load(server->auth, server->engine, err);
    if (rc) {
        weft_auth_free(server->auth);
        weft_engine_close(server->engine);
        server->auth = NULL;
        server->engine = NULL;
        return rc;
    }
    if (tokens && weft_auth_count(server->auth) == 0)
        weft_warn(
            "tokens are required and there are none: make the first one on the store, with "
            "`weft token create --store URL --name ME --scopes admin`");
    return WEFT_OK;
}

/* Its name as a worker says which replica it is. Without it everything else goes on. */
static void make_executor(struct weft_server *server)
{
    char id[WEFT_ID_TEXT];
    struct weft_err err = {0};
    if (server->config.no_executor)
        return;
    weft_id_print(weft_upkeep_id(server->upkeep), id);
    const struct weft_executor_config config = {
        .engine = server->engine,
        .metrics = server->metrics,
        .secrets = server->secrets,
        .worker = weft_arena_printf(server->arena, "http-%s", id),
        .in_flight = server->config.http_in_flight,
        .urls = server->config.http_urls,
    };
    if (weft_executor_new(&config, &server->executor, &err))
        weft_error("this server carries out no HTTP calls", F_STR("error", err.text));
    server->endpoint_health = server->executor ? weft_executor_health : NULL;
    weft_executor_trust(server->executor, server->authorities);
    server->endpoint_metrics = server->executor ? weft_executor_metrics : NULL;
    server->endpoint_health_context = server->executor;
    if (server->executor)
        weft_engine_on_carrier(server->engine, weft_executor_carrier, server->executor);
}

enum weft_rc weft_server_open(struct weft_server *server, struct weft_err *err)
{
    enum weft_rc rc = open_store(server, err);
    if (rc)
        return rc;
    weft_engine_hold_briefly(server->engine); /* its threads are few: waits.c waits instead */
    server->roster = weft_roster_new();
    server->waits = weft_waits_new(server, NULL);
    server->trials = weft_trials_new(server);
    weft_trials_trust(server->trials, server->authorities);
    server->supervisor = weft_supervisor_new(server);
    server->upkeep = weft_upkeep_new(server);
    make_executor(server); /* before the thread of the notices, which wakes it */
    server->notices = weft_notices_new(server);
    for (int i = 0; i < WEFT_WORK_KINDS; i++)
        server->work[i] = weft_commit_work_new(server, (enum weft_commit_work_kind)i);
    server->groups = weft_groups_new(server);
    weft_engine_on_news(server->engine, on_news, server);
    weft_engine_on_leases(server->engine, on_leases, server);
    weft_engine_on_flows(server->engine, weft_add_cascades, server);
    weft_engine_on_gates(server->engine, weft_add_admissions, server);
    weft_engine_on_budgets(server->engine, weft_add_budget_work, server);
    weft_engine_on_ended(server->engine, weft_wait_ended, server,
                         weft_waits_for_ends(server->waits));
    weft_engine_on_side_work(server->engine, weft_groups_side_work, server->groups);
    atomic_store(&server->open, true);
    weft_waits_start(server->waits);
    weft_supervisor_start(server->supervisor);
    weft_upkeep_start(server->upkeep); /* writes the row of this replica */
    if (server->executor)
        weft_executor_start(server->executor);
    return WEFT_OK;
}

enum weft_rc weft_server_listen(const struct weft_server_config *config,
                                struct weft_server **ret_server, struct weft_err *err)
{
    struct weft_server *server = weft_alloc(1, sizeof(*server));
    server->listener.fd = -1;
    server->routes = config->routes ? config->routes : &weft_routes;
    server->metrics = weft_metrics_new(server->routes);
    server->api = weft_api_new();
    server->arena = weft_arena_new();
    resolve(config, server);
    server->secrets = weft_secrets_new();
    weft_secrets_take(server->secrets, config->environment);
    enum weft_rc rc = WEFT_OK;
    if (!server->config.tls_cert != !server->config.tls_key)
        rc = weft_invalid(err, "tls_key", "a certificate and its key must be given together");
    if (!rc)
        rc = weft_origins_parse(server->config.cors_origin, server->arena, &server->origins, err);
    if (!rc)
        rc = listen_on(server->config.listen, &server->listener, err);
    if (!rc)
        rc = check_origins(server, err);
    if (!rc)
        rc = read_hosts(server, err);
    if (!rc)
        rc = read_secrets(server, server->config.secrets_dir, err);
    if (!rc)
        rc = read_authorities(server, server->config.ca_file, err);
    if (!rc)
        rc = weft_loop_start(server, err);
    if (rc) {
        weft_server_free(server);
        return rc;
    }
    if (!server->listener.loopback && !server->config.tls_cert)
        weft_warn(
            "tokens and payloads travel in the clear: serve TLS with --tls-cert and --tls-key, "
            "or let only a proxy that does reach this address",
            F_STR("url", weft_server_url(server)));
    *ret_server = server;
    return WEFT_OK;
}

const char *weft_server_url(const struct weft_server *server)
{
    return weft_loop_url(server->loop);
}

void weft_server_tokens_changed(struct weft_server *server)
{
    struct weft_err err = {0};
    if (weft_auth_load(server->auth, server->engine, &err))
        weft_warn("the tokens could not be read; the next poll does it", F_STR("error", err.text));
    weft_waits_recheck(server->waits);
}

bool weft_server_stop(struct weft_server *server)
{
    if (server->stopping)
        return true;
    server->stopping = true;
    weft_loop_quiesce(server->loop);
    if (!server->open)
        return true; /* every request was answered by the loop itself */
    weft_supervisor_quiesce(server->supervisor);
    weft_waits_stop(server->waits);
    weft_usec until_us = weft_boot_us() + server->config.grace_s * WEFT_SECOND;
    weft_executor_quiesce(server->executor, until_us);
    const struct timespec moment = {.tv_nsec = 5000000};
    while (weft_loop_in_flight(server->loop) > 0 && weft_boot_us() < until_us)
        (void)nanosleep(&moment, NULL);
    bool answered = weft_loop_in_flight(server->loop) == 0;
    if (!answered)
        weft_warn("requests are left unanswered");
    if (!weft_executor_stop(server->executor)) {
        weft_warn("outgoing calls were aborted; they are made again elsewhere");
        answered = false;
    }
    return weft_supervisor_stop(server->supervisor, until_us) && answered;
}

void weft_server_free(struct weft_server *server)
{
    if (!server)
        return;
    if (server->loop)
        (void)weft_server_stop(server);
    (void)weft_supervisor_stop(server->supervisor, 0);
    for (int i = 0; i < WEFT_WORK_KINDS; i++)
        weft_commit_work_stop(server->work[i]);
    weft_groups_stop(server->groups); /* everything queued has been answered after this */
    weft_upkeep_stop(server->upkeep); /* what wakes others ends before them */
    weft_notices_stop(server->notices);
    weft_trials_free(server->trials);
    weft_waits_free(server->waits);
    if (server->loop)
        weft_loop_stop(server->loop);
    weft_executor_free(server->executor); /* until then the loop may show its figures */
    server->executor = NULL;
    weft_groups_free(server->groups); /* releases the leases of answers that no client took */
    weft_notices_free(server->notices);
    weft_upkeep_free(server->upkeep);
    weft_supervisor_free(server->supervisor);
    for (int i = 0; i < WEFT_WORK_KINDS; i++)
        weft_commit_work_free(server->work[i]);
    weft_engine_close(server->engine);
    weft_roster_free(server->roster);
    weft_auth_free(server->auth);
    weft_api_free(server->api);
    weft_metrics_free(server->metrics);
    weft_secrets_free(server->secrets);
    free(server->authorities);
    if (server->listener.fd >= 0)
        (void)close(server->listener.fd);
    weft_arena_free(server->arena);
    free(server);
}

void weft_server_reload(struct weft_server *server, const struct weft_server_config *config)
{
    struct weft_err err = {0};
    struct weft_scanner_setting scanners[WEFT_SCANNER_COUNT];
    weft_scanner_defaults(scanners);
    weft_supervisor_set(server->supervisor, config->scanners ? config->scanners : scanners);
    if (weft_auth_load(server->auth, server->engine, &err))
        weft_warn("the tokens could not be read anew", F_STR("error", err.text));
    else
        weft_info("the tokens were read anew");
    weft_waits_recheck(server->waits);
    err = (struct weft_err){0};
    if (weft_loop_certify(server->loop, config, &err))
        weft_error("the certificate stays as it was", F_STR("error", err.text));
    else if (config->tls_cert)
        weft_info("the certificate was read anew", F_STR("file", config->tls_cert));
    err = (struct weft_err){0};
    if (weft_engine_keys_load(server->engine, config->signing_key_file, &err))
        weft_error("the signing keys stay as they were", F_STR("error", err.text));
    else if (config->signing_key_file)
        weft_info("the signing keys were read anew", F_STR("file", config->signing_key_file));
    err = (struct weft_err){0};
    if (read_secrets(server, config->secrets_dir, &err))
        weft_error("the secrets stay as they were", F_STR("error", err.text));
    else if (config->secrets_dir)
        weft_info("the secrets were read anew", F_STR("folder", config->secrets_dir),
                  F_U64("secrets", weft_secrets_count(server->secrets)));
    err = (struct weft_err){0};
    if (read_authorities(server, config->ca_file, &err))
        weft_error("the authorities that outgoing calls trust stay as they were",
                   F_STR("error", err.text));
    else if (config->ca_file)
        weft_info("the authorities that outgoing calls trust were read anew",
                  F_STR("file", config->ca_file));
}
