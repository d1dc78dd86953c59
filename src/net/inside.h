/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_INSIDE_H
#define WEFT_NET_INSIDE_H

/*
 * How the parts of the server hang together; handlers need net.h alone.
 *
 * Threads: the loop of libmicrohttpd; N engine threads (group.c); one for timers of those who wait
 * (waits.c); one for upkeep (upkeep.c); one that decides which scanner runs (supervisor.c); one for
 * notices between replicas (notice.c). Locks, each
 * inner one taken under the outer ones before it: wait.lock, then group.lock or auth.lock; all
 * others stand alone. No query is made under any lock.
 */

#include "net/api/metrics.h"
#include "net/http/answers.h"
#include "net/http/host.h"
#include "net/http/origin.h"

#include <stdatomic.h>

struct weft_groups;
struct weft_waits;
struct weft_notices;
struct weft_upkeep;
struct weft_supervisor;
struct weft_presence;
struct weft_auth;
struct weft_loop;
struct weft_roster;
struct weft_flow_work;

/* ---- listen.c -------------------------------------------------------------------------------- */

/* A bound and listening socket. */
struct weft_listener {
    int fd;
    bool loopback;     /* nobody but this machine can reach it */
    char host[256];    /* as it was asked for; "": every address */
    char address[280]; /* "127.0.0.1:7717", as it was bound */
};
/* Binds "HOST:PORT", "[V6]:PORT" or ":PORT". WEFT_INVALID_VALUE and WEFT_CONFLICT (in use). */
WEFT_MUST_CHECK enum weft_rc weft_listen(const char *where, struct weft_listener *ret_listener,
                                         struct weft_err *err);
/* Lets the process have so many descriptors, if the system does; says how many it may have. */
uint64_t weft_descriptors_raise(uint64_t wanted);
/* A whole small file with a NUL behind it; the caller frees it. `field` is blamed. */
WEFT_MUST_CHECK enum weft_rc weft_read_file(const char *path, const char *field, char **ret_text,
                                            struct weft_err *err);

struct weft_server {
    struct weft_server_config config; /* resolved: no zeros; texts are in the arena */
    struct weft_arena *arena;
    struct weft_engine *engine;
    struct weft_listener listener;
    struct weft_loop *loop;
    struct weft_groups *groups;
    struct weft_waits *waits;
    struct weft_notices *notices; /* NULL: the store has no bells */
    struct weft_upkeep *upkeep;
    struct weft_supervisor *supervisor;
    struct weft_presence *presence;
    struct weft_flow_work *cascades, *drains;
    struct weft_auth *auth;
    struct weft_roster *roster;
    struct weft_api *api;
    struct weft_origins origins; /* whose pages are let in; in the arena */
    struct weft_hosts hosts;     /* names of the server besides those of loopback; likewise */
    _Atomic bool open;     /* the store is there and all parts are; until then see http_head.c */
    _Atomic bool stopping; /* new requests are refused */
};

/* Required everywhere but on loopback, and there when that was asked for. */
bool weft_server_wants_tokens(const struct weft_server *server);

/* Starts a thread with all signals blocked; there is nothing to do without it, so it must work. */
void weft_thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *),
                       void *context);

/* Waits for a signal, at most until a moment of boot time. */
void weft_cond_until(pthread_cond_t *cond, pthread_mutex_t *lock, weft_usec until_us);

enum { WEFT_SPARE_CONNECTIONS = 128 }; /* accepted above config.connections, at most; see peer.c */

/* ---- loop.c: HTTP ---------------------------------------------------------------------------- */

/* Serves on server->listener; sets server->loop before the first request comes. */
WEFT_MUST_CHECK enum weft_rc weft_loop_start(struct weft_server *server, struct weft_err *err);
const char *weft_loop_url(const struct weft_loop *loop);
/* Called by the thread that turns it, once. */
void weft_loop_thread_begins(struct weft_loop *loop);
/* The thread looks for requests once more. On that thread. */
void weft_loop_turn_begins(struct weft_loop *loop);
/*
 * Reads certificate and key anew; handshakes use them from here on. After a failure everything
 * stays as it was. Without TLS, before and in the config: WEFT_OK.
 */
WEFT_MUST_CHECK enum weft_rc weft_loop_certify(struct weft_loop *loop,
                                               const struct weft_server_config *config,
                                               struct weft_err *err);
/* Takes no new connections; those that are open may finish what they began. */
void weft_loop_quiesce(struct weft_loop *loop);
/* Asks the thread to give back memory that it does not need. */
void weft_loop_slim(struct weft_loop *loop);
/* Requests that have been read and not been answered yet. */
size_t weft_loop_in_flight(const struct weft_loop *loop);
/* Every ask must have been answered. */
void weft_loop_stop(struct weft_loop *loop);
/*
 * The asks have their replies (or their streams the next piece): hands them back to the loop, which
 * sends them.
 */
void weft_loop_answer(struct weft_server *server, struct weft_request **request, size_t count);
/* True when the client has closed its side: nobody would read the answer. */
bool weft_loop_gone(const struct weft_request *request);
int weft_loop_fd(const struct weft_request *request);
/*
 * Bytes of bodies that are kept in memory, from any thread; the request holds so many already.
 * False, and nothing is counted, when there is no room for so many more: all together have
 * body_bytes, and one namespace has three quarters of that, or one body if that is larger.
 */
WEFT_MUST_CHECK bool weft_loop_take_room(const struct weft_request *request, size_t held,
                                         size_t size);
void weft_loop_give_room(const struct weft_request *request, size_t size);
/* The memory that answers take. */
struct weft_answers *weft_loop_answers(struct weft_loop *loop);
/* Counts the reply of an ask from here on, before the loop has it. On an engine thread. */
void weft_loop_hold(struct weft_request *request);
/* Ends connections that take longer than they may; called about once a second. */
void weft_loop_sweep(struct weft_loop *loop);

/* ---- body.c ---------------------------------------------------------------------------------- */

/* Unpacks the body of an ask, if it is encoded. On an engine thread. */
WEFT_MUST_CHECK enum weft_rc weft_body_decode(struct weft_request *request, struct weft_err *err);

/* ---- group.c: engine threads ----------------------------------------------------------------- */

struct weft_groups *weft_groups_new(struct weft_server *server);
/* Waits for what is queued, then ends the threads. Asks that come later are turned away. */
void weft_groups_stop(struct weft_groups *groups);
/* After everybody who might put something in: runs the errands that came after the threads' end. */
void weft_groups_free(struct weft_groups *groups);
/*
 * Queues asks (linked by next), each by its route's group. Those that find the queues full are
 * answered `rate_limited` at once.
 */
void weft_groups_put(struct weft_groups *groups, struct weft_request *first);
/* One that was accepted before and only looks again: never refused. */
void weft_groups_put_again(struct weft_groups *groups, struct weft_request *request);
/* Something that had to wait may run now. */
void weft_groups_look(struct weft_groups *groups);
/* Answers reads that have waited too long for room for their answers; about once a second. */
void weft_groups_sweep(struct weft_groups *groups);
/* When little ran since the last call: true, and the threads give back memory they do not need. */
bool weft_groups_rest(struct weft_groups *groups);
/* The call of this thread does long work aside: see weft_engine_on_side_work(). */
void weft_groups_side_work(void *context);
size_t weft_groups_waiting(struct weft_groups *groups);
/* Runs fn on an engine thread; context is fn's to free. */
void weft_groups_do(struct weft_groups *groups, void (*fn)(struct weft_server *, void *),
                    void *context);

/* ---- claims.c -------------------------------------------------------------------------------- */

enum { WEFT_LONG_POLL_MAX_MS = 60000 };

enum weft_rc weft_claims_read(struct weft_request *request, struct weft_err *err);
/* What a grouped claim asks for, from weft_claims_read() on. */
const struct weft_claim *weft_claims_of(const struct weft_request *request);
/* Runs the claims of several asks in one call and answers each, or puts it to sleep. */
void weft_claims_run(struct weft_server *server, struct weft_request **request, size_t count);
/* The same in two steps; whoever began makes the call, if its count is not 0, and ends it. */
struct weft_claims_lot {
    struct weft_arena *arena;
    struct weft_request **request;
    struct weft_answers_room *room; /* reserved for the answers */
    size_t rooms;
    struct weft_claim_call call;
    size_t *apart; /* indexes of the asks whose answers need many upstreams, which are read last */
    size_t aparts;
};
struct weft_claims_lot *weft_claims_begin(struct weft_server *server, struct weft_request **request,
                                          size_t count);
void weft_claims_end(struct weft_server *server, struct weft_claims_lot *lot);
/* The answer of a claim was not delivered: its leases go back. On the loop thread. */
void weft_claims_undelivered(struct weft_request *request);

/* ---- waits.c: long polls --------------------------------------------------------------------- */

struct weft_waits *weft_waits_new(struct weft_server *server);
/* When the server's loop is there, which is swept from here on. */
void weft_waits_start(struct weft_waits *waits);
void weft_waits_free(struct weft_waits *waits);
/* From here on nobody sleeps any more: all are answered with what there is. */
void weft_waits_stop(struct weft_waits *waits);
/*
 * A claim that may wait is on the list from before it looks for work until it is answered, so that
 * no wake can fall between its look and its sleep.
 */
void weft_waits_enter(struct weft_waits *waits, struct weft_request *request, weft_usec until_us);
enum weft_wait_end {
    WEFT_WAIT_FILLED, /* it got all it asked for: a wake it had goes on to the next */
    WEFT_WAIT_SERVED, /* it got less than that */
    WEFT_WAIT_FAILED, /* nothing is known: a wake it had goes on */
};
void weft_waits_leave(struct weft_waits *waits, struct weft_request *request,
                      enum weft_wait_end end);
/*
 * It found nothing. False: it must not sleep (its time is up, or the server stops): the caller
 * answers it. True: the ask is the list's from here on; `soon` asks to look again in a moment.
 */
WEFT_MUST_CHECK bool weft_waits_sleep(struct weft_waits *waits, struct weft_request *request,
                                      bool soon);
/*
 * A claim finds no room for its answer: the same, and it looks again after a pause, until then. It
 * need not have been entered.
 */
WEFT_MUST_CHECK bool weft_waits_park(struct weft_waits *waits, struct weft_request *request,
                                     weft_usec until_us);
/* A run() that called weft_wait_for_end() or weft_wait_for_leases() goes to sleep; false when it
 * did not, or may not. */
WEFT_MUST_CHECK bool weft_waits_sleep_till_end(struct weft_waits *waits,
                                               struct weft_request *request);
/* The ask is about to be answered: it waits for nothing any more. */
void weft_wait_done(struct weft_request *request);
/* Tokens were read anew: asks that wait with one that is no longer good are answered. */
void weft_waits_recheck(struct weft_waits *waits);
/* There is work in these queues: wakes as many of the longest waiters as it may serve. */
void weft_waits_wake(struct weft_waits *waits, enum weft_metric_wake who,
                     const struct weft_woken *woken, size_t count);

/*
 * Whose end the sleepers wait for that do not look by themselves, in the arena: upkeep looks for
 * all of them at once. One that falls asleep after this is found a second later.
 */
size_t weft_waits_ids(struct weft_waits *waits, struct weft_arena *arena, struct weft_id **ret_id);

/* These workers, by number, have to be told of leases: their watches look again. */
void weft_waits_tell(struct weft_waits *waits, enum weft_metric_wake who, const int32_t *worker,
                     size_t count);

/* ---- notice.c: between replicas -------------------------------------------------------------- */

struct weft_notices *weft_notices_new(struct weft_server *server);
/* Ends the thread, which tells others: they must still be there. Then it may be freed. */
void weft_notices_stop(struct weft_notices *notices); /* NULL is fine */
void weft_notices_free(struct weft_notices *notices); /* NULL is fine */
/* To be told to the other replicas, soon and together with others. */
void weft_notices_add(struct weft_notices *notices, const struct weft_woken *woken, size_t count);
/* The same: these workers, by number, have to be told of leases. */
void weft_notices_add_workers(struct weft_notices *notices, const int32_t *worker, size_t count);

/* ---- upkeep.c: the slow poll and chores ------------------------------------------------------ */

#define WEFT_POLL_US WEFT_SECOND /* how often the slow poll looks */

struct weft_upkeep *weft_upkeep_new(struct weft_server *server);
void weft_upkeep_start(struct weft_upkeep *upkeep);
/* Ends the thread, which wakes others: they must still be there. Then it may be freed. */
void weft_upkeep_stop(struct weft_upkeep *upkeep);
void weft_upkeep_free(struct weft_upkeep *upkeep);
/* Something becomes due at this moment of the store's clock. */
void weft_upkeep_expect(struct weft_upkeep *upkeep, weft_usec due_us);

/* ---- supervisor.c: the passes; see net.h for what handlers need ------------------------------ */

struct weft_supervisor *weft_supervisor_new(struct weft_server *server);
void weft_supervisor_start(struct weft_supervisor *supervisor);
/* No new passes begin from here on. */
void weft_supervisor_quiesce(struct weft_supervisor *supervisor);
/*
 * The same, and waits for passes under way, at most until then (boot time); says in the log what is
 * left. False: some are still under way. The engine threads must still be there.
 */
bool weft_supervisor_stop(struct weft_supervisor *supervisor, weft_usec until_us);
void weft_supervisor_free(struct weft_supervisor *supervisor); /* NULL is fine */

/* Runs a pass; tests bring their own, before the start. */
typedef enum weft_rc weft_pass_fn(void *context, enum weft_scanner scanner,
                                  const struct weft_pass_config *config,
                                  struct weft_pass_report *ret_report, struct weft_err *err);
void weft_supervisor_use(struct weft_supervisor *supervisor, weft_pass_fn *pass, void *context);

/* The slow poll found these due times. */
void weft_supervisor_told(struct weft_supervisor *supervisor,
                          const weft_usec due_us[WEFT_SCANNER_COUNT]);
/* A notice says that this scanner has work now: see weft_schedule_heard(). */
void weft_supervisor_heard(struct weft_supervisor *supervisor, enum weft_scanner scanner);
/* No lease is taken away before this moment of the store's clock, nor is its loss counted. */
void weft_supervisor_hold(struct weft_supervisor *supervisor, weft_usec until_us);
/* Other settings hold at once. */
void weft_supervisor_set(struct weft_supervisor *supervisor,
                         const struct weft_scanner_setting setting[WEFT_SCANNER_COUNT]);

/* ---- flow_work.c: cascades and drains of flows, beside the requests -------------------------- */

/* Does a piece of the work of each flow (sorted, none twice). */
typedef enum weft_rc weft_flow_work_fn(struct weft_server *server, const struct weft_id *flow,
                                       size_t count, struct weft_err *err);
weft_flow_work_fn weft_flow_work_cascade, weft_flow_work_drain;

struct weft_flow_work *weft_flow_work_new(struct weft_server *server, weft_flow_work_fn *run,
                                          const char *failed);
/* Flows that are added from here on are left to the scanners. NULL is fine. */
void weft_flow_work_stop(struct weft_flow_work *work);
void weft_flow_work_free(struct weft_flow_work *work); /* the engine threads are gone; or NULL */
/* context is the weft_flow_work: see weft_engine_on_flows(). */
void weft_flow_work_add(void *context, const struct weft_id *flow, size_t count);

/* ---- presence.c: this replica among the others ----------------------------------------------- */

struct weft_presence *weft_presence_new(struct weft_server *server); /* needs the supervisor */
void weft_presence_free(struct weft_presence *presence);             /* NULL is fine */
/* It serves from here on, after a gap: the grace begins. On the upkeep thread, as the next two. */
void weft_presence_up(struct weft_presence *presence);
/* Writes the row when that is due, and looks at those of the others. After a poll that succeeded.
 */
void weft_presence_turn(struct weft_presence *presence, struct weft_arena *arena);
/* The row goes. */
void weft_presence_leave(struct weft_presence *presence);
/* Whose status it is; the host is borrowed. */
void weft_presence_sign(const struct weft_presence *presence, struct weft_scanner_status *status);
/* When the grace of a service ends that this replica has been part of since up_since_us. */
weft_usec weft_presence_grace(const struct weft_replica_rows *rows, const struct weft_id *self,
                              weft_usec up_since_us);

/* ---- auth.c ---------------------------------------------------------------------------------- */

struct weft_auth *weft_auth_new(bool required);
void weft_auth_free(struct weft_auth *auth);
/* Reads the tokens of the store anew. */
WEFT_MUST_CHECK enum weft_rc weft_auth_load(struct weft_auth *auth, struct weft_engine *engine,
                                            struct weft_err *err);

size_t weft_auth_count(struct weft_auth *auth); /* tokens */
/* Writes when tokens were last used, where that was last done a while ago; all: in any case. */
WEFT_MUST_CHECK enum weft_rc weft_auth_write_uses(struct weft_auth *auth,
                                                  struct weft_engine *engine, bool all,
                                                  struct weft_err *err);
/* Adds what this replica has not written yet to tokens as the store has them. */
void weft_auth_show_uses(struct weft_auth *auth, struct weft_token *token, size_t count);

/* What a request said about who it is; texts are borrowed, NULL: not said. */
struct weft_credentials {
    const char *authorization;
    const char *ns;
    struct weft_web_page page; /* where it comes from: looked at when neither side wants a token */
    weft_usec now_us;          /* the store's */
};
/* Sets ns, ns_fixed, scopes and token of the ask, or says why it may not go on. */
WEFT_MUST_CHECK enum weft_rc weft_auth_check(struct weft_auth *auth,
                                             const struct weft_credentials *given,
                                             struct weft_request *request, struct weft_err *err);
/*
 * WEFT_UNAUTHORIZED when the token of an ask that was let in was revoked or expired since then. For
 * asks that have waited: called by the thread that has the ask, or under wait.lock while it sleeps.
 */
WEFT_MUST_CHECK enum weft_rc weft_auth_again(struct weft_server *server,
                                             struct weft_request *request, struct weft_err *err);

/* ---- roster.c: workers heard of -------------------------------------------------------------- */

struct weft_roster *weft_roster_new(void);
void weft_roster_free(struct weft_roster *roster);
/* Whether the worker of the claim has claimed here before. */
bool weft_roster_knows(struct weft_roster *roster, const struct weft_claim *claim);
/* A worker has claimed. */
void weft_roster_seen(struct weft_roster *roster, const struct weft_claim *claim, weft_usec now_us);
/* A worker said goodbye: what was not written yet of it is not written any more. */
void weft_roster_forget(struct weft_roster *roster, const char *ns, const char *worker);
/* Writes those that are new or have not been written for a while. */
WEFT_MUST_CHECK enum weft_rc weft_roster_write(struct weft_roster *roster,
                                               struct weft_engine *engine, struct weft_err *err);

#endif
