/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_SERVER_H
#define WEFT_NET_SERVER_H

/*
 * The server: an engine behind HTTP.
 *
 * Threads: the loop of libmicrohttpd (http/loop.c); N engine threads (group/group.c); one
 * for the timers of waiting requests (wait/waits.c); one for upkeep (upkeep/upkeep.c); one that
 * decides which scanner runs (upkeep/supervisor.c); one for notices between replicas
 * (wait/notice.c). Locks, each inner one taken under the outer ones before it: wait.lock, then
 * group.lock or auth.lock; all others stand alone. No query is made under any lock.
 */

#include "net/group/commit_work.h"
#include "net/http/host.h"
#include "net/metrics.h"
#include "weft/weft.h"

#include <stdatomic.h>

struct weft_woken;

/* How a replica runs one scanner. */
struct weft_scanner_setting {
    weft_usec interval_us;                   /* the longest time between two looks; 0: off */
    uint32_t batch;                          /* rows of one transaction */
    weft_usec pause_us;                      /* between two batches while there is more */
    uint8_t partition_first, partition_last; /* only ids of these; 0 and 255: all */
    char ns[129];                            /* only work of this namespace; "": of all */
};
/* Each as the table of scanners has it. */
void weft_scanner_defaults(struct weft_scanner_setting ret_setting[WEFT_SCANNER_COUNT]);

struct weft_server_config {
    const char *store;      /* sqlite:PATH or postgres://... */
    const char *listen;     /* HOST:PORT, [V6]:PORT; port 0: any */
    const char *listen_url; /* PostgreSQL: past a pooler, for LISTEN; NULL: the store's */
    const char *tls_cert;   /* PEM file; with tls_key */
    const char *tls_key;
    const char *signing_key_file; /* of signal tokens; NULL: their keys are in the store */
    const char *secrets_dir;      /* of outgoing calls: net/secrets.h; NULL: there is none */
    const char *ca_file;          /* PEM: authorities to trust besides the system's; or NULL */
    char **environment;           /* secrets are taken out of it; NULL: there are none */
    bool tokens;                  /* require them also on loopback; elsewhere they always are */
    bool no_migrate;
    uint32_t migrate_wait_s; /* as in weft_engine_config */
    uint32_t threads;        /* engine threads, each with a connection; 0: 6 */
    uint32_t connections;    /* of clients, at most; 0: 4,096 */
    uint32_t
        per_address;    /* of one address; 0: a quarter of all, this machine as many as it likes */
    uint32_t queue_max; /* requests waiting for an engine thread; 0: 4,096 */
    uint32_t namespace_queues;     /* queues of one namespace; 0: 100,000 */
    uint32_t namespace_workers;    /* names of workers of one namespace; 0: 100,000 */
    uint32_t unused_names_after_s; /* names unused for so long are removed; 0: never */
    uint64_t body_bytes;           /* all request bodies in memory at once; 0: 256 MiB */
    uint64_t answer_bytes;         /* all answers in memory at once; 0: 128 MiB */
    uint64_t file_bytes;           /* of an uploaded file; 0: 200 MiB */
    uint32_t file_requests;        /* lines of an uploaded file; 0: 50,000 */
    uint64_t send_min;             /* bytes of an answer that a client takes in 10 s; 0: 16 KiB */
    uint32_t idle_s;               /* a connection without a request is closed after; 0: 75 */
    uint32_t receive_s;            /* a request must have arrived after; 0: 30 */
    uint32_t send_s;               /* an answer must have been taken after; 0: 120 */
    uint32_t grace_s;              /* how long a stop waits for what is in flight; 0: 10 */
    bool access_log;               /* a line per request */
    const struct weft_scanner_setting *scanners; /* WEFT_SCANNER_COUNT of them; NULL: defaults */
    bool no_executor;                            /* it carries nothing out itself */
    uint32_t http_in_flight;                     /* outgoing calls at a time; 0: 1,000 */
    bool http_urls;                              /* calls may have URLs of their own */
    const char *cors_origin; /* sites whose pages may call, with commas; "*": all; NULL: none */
    const char *host; /* without tokens: names of the server besides loopback's; NULL: none */
    const struct weft_route_table *routes; /* borrowed; NULL: weft_routes */
};

/* A bound and listening socket. */
struct weft_listener {
    int fd;
    bool loopback;     /* only this machine can reach it */
    char host[256];    /* as configured; "": every address */
    char address[280]; /* "127.0.0.1:7717", as it was bound */
};

/*
 * What the part of the server that makes HTTP calls knows of an endpoint, for readers of endpoints.
 * Called on engine threads, several at a time, with *ret_health zeroed; it is to be quick.
 */
typedef void weft_endpoint_health_fn(void *context, const char *ns, const char *name,
                                     struct weft_endpoint_health *ret_health);
/* The same of all its endpoints, as metrics. Called on the loop thread too. */
typedef void weft_endpoint_metrics_fn(void *context, struct weft_arena *arena,
                                      struct weft_buf *out);

/* The parts of a server, each with its contract in the header of its name. */
struct weft_server {
    struct weft_server_config config; /* resolved: no zeros; texts are in the arena */
    struct weft_arena *arena;
    const struct weft_route_table *routes;
    struct weft_engine *engine;
    struct weft_listener listener;
    struct weft_loop *loop;
    struct weft_groups *groups;
    struct weft_waits *waits;
    struct weft_notices *notices; /* NULL: the store cannot notify */
    struct weft_secrets *secrets; /* of outgoing calls */
    char *authorities;            /* owned: those that they trust besides the system's, or NULL */
    struct weft_trials *trials;   /* of endpoints */
    struct weft_upkeep *upkeep;
    struct weft_supervisor *supervisor;
    struct weft_commit_work *work[WEFT_WORK_KINDS];
    struct weft_executor *executor; /* NULL: it carries nothing out itself */
    struct weft_auth *auth;
    struct weft_roster *roster;
    struct weft_api *api;
    struct weft_metrics *metrics;
    weft_endpoint_health_fn *endpoint_health;   /* set before `open`; NULL: zeros are shown */
    weft_endpoint_metrics_fn *endpoint_metrics; /* likewise, with the same context */
    void *endpoint_health_context;
    struct weft_origins origins; /* sites whose pages are let in; in the arena */
    struct weft_hosts hosts;     /* names of the server besides loopback's; in the arena */
    _Atomic bool open;           /* the store and all parts are; until then see http_head.c */
    _Atomic bool stopping;       /* new requests are refused */
};

/*
 * Listens, and answers: /healthz with 200, everything else with 503 until weft_server_open() has
 * opened the store. On success the caller ends it with _free(), which may not run beside _open().
 */
WEFT_MUST_CHECK enum weft_rc weft_server_listen(const struct weft_server_config *config,
                                                struct weft_server **ret_server,
                                                struct weft_err *err);
/*
 * Opens the store, migrates it, and serves from then on. After a failure it may be called again.
 * WEFT_UNAVAILABLE with WEFT_CAUSE_LOST: the store cannot be reached, which may change by itself.
 */
WEFT_MUST_CHECK enum weft_rc weft_server_open(struct weft_server *server, struct weft_err *err);
/* "http://127.0.0.1:7717": as it was bound. */
const char *weft_server_url(const struct weft_server *server);
/*
 * Stops accepting, answers waiting claims, finishes what is in flight; scanners end with the pass
 * they are in. False when the grace ran out with requests unanswered or passes under way.
 */
bool weft_server_stop(struct weft_server *server);
void weft_server_free(struct weft_server *server); /* NULL is fine */
/*
 * Reads the tokens, the certificate, its key, the signing keys and the secrets again and runs the
 * scanners as the config says now; of the rest of the config nothing changes without a restart
 * (SIGHUP).
 */
void weft_server_reload(struct weft_server *server, const struct weft_server_config *config);
/* These queues have work, or room: wakes the claims that wait for it, and the executor. */
void weft_server_wake(struct weft_server *server, enum weft_metric_wake source,
                      const struct weft_woken *woken, size_t count);
/* Others ended leases of these workers: wakes their watches, and the executor. */
void weft_server_wake_workers(struct weft_server *server, enum weft_metric_wake source,
                              const int32_t *worker, size_t count);
/* Required everywhere but on loopback, and there when the config says so. */
bool weft_server_wants_tokens(const struct weft_server *server);
/* A request of this server changed tokens: it reads them again. */
void weft_server_tokens_changed(struct weft_server *server);

#endif
