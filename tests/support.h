/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_SUPPORT_H
#define WEFT_TESTS_SUPPORT_H

/*
 * Shared by the programs that break things: stores of their own, raw sessions beside the engine,
 * threads that can be stopped at a named place, and waiting for conditions with a bound.
 *
 * WEFT_TEST_STORE names the store: sqlite or pg. On PostgreSQL a program has a database of its own,
 * so that what it counts (deadlocks, locks, sessions) is its own doing, and each case a schema.
 */

#include "tap.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "core/state.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/admin.h"
#include "weft/weft.h"

#include <libpq-fe.h>
#include <pthread.h>

#define START_US ((weft_usec)1700000000 * WEFT_SECOND)

enum { PATIENCE_MS = 20000 }; /* how long a test waits for what must happen */

/* ---- The program ----------------------------------------------------------------------------- */

void tests_begin(const char *program);
int tests_end(void); /* the exit status */
bool on_pg(void);
bool soaking(void); /* WEFT_SOAK=1: take your time */
/* Whether a case is to run: it is among the arguments, or there are none. */
bool is_named(const char *name, int argc, char **argv);
/* Ends the program: nothing that follows would mean anything. */
__attribute__((noreturn, format(printf, 1, 2))) void bail_out(const char *fmt, ...);

/* ---- A store of its own ---------------------------------------------------------------------- */

struct place {
    char url[700];
    char schema[64]; /* pg */
};

void place_init(struct place *place, const char *name);
/* Every engine and session must be closed. */
void place_done(const struct place *place);
/* driver NULL: the store's own. now_us 0: the real clock. The caller closes it. */
struct weft_engine *place_open(const struct place *place, const struct weft_driver *driver,
                               weft_usec now_us);
/* The invariants of the whole store. */
void place_check(const struct place *place, const char *name);

/* ---- Raw sessions on PostgreSQL -------------------------------------------------------------- */

PGconn *raw_open(const struct place *place);
/* The word weft stands for the schema of the place. */
__attribute__((format(printf, 3, 4))) void raw_run(const struct place *place, PGconn *raw,
                                                   const char *fmt, ...);
__attribute__((format(printf, 3, 4))) int64_t raw_int(const struct place *place, PGconn *raw,
                                                      const char *fmt, ...);
/* True when the query gives a number above 0 within the bound. */
bool raw_wait(const struct place *place, PGconn *raw, const char *sql);
/* Deadlocks in the database of this program; sessions tell of them when they end. */
int64_t raw_deadlocks(const struct place *place, PGconn *raw);

/* ---- Waiting --------------------------------------------------------------------------------- */

typedef bool condition_fn(void *context);
/* Asks every millisecond; false when PATIENCE_MS have passed. */
bool wait_until(condition_fn *condition, void *context);

/* A place where one thread stands still until another lets it go. */
struct stop {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool reached, released;
};
void stop_init(struct stop *stop);
void stop_here(struct stop *stop);    /* called by the one that stops */
bool stop_reached(struct stop *stop); /* waits until it stands there */
void stop_release(struct stop *stop);

/* ---- Threads that meet an ambush ------------------------------------------------------------- */

/*
 * Acts once, when the thread it belongs to comes by: at a point of statement `stmt`, or at the
 * commit of the transaction in which that statement ran.
 */
struct ambush {
    enum weft_fault_point point;
    enum weft_stmt stmt;
    void (*act)(void *context);
    void *context;
    bool seen, sprung;
};
/* The hook to give to struct weft_fault. */
void ambush_hook(void *context, enum weft_fault_point point, enum weft_stmt stmt);
/* Lays an ambush for the calling thread; NULL takes it away. */
void ambush_lay(struct ambush *ambush);

/* act for an ambush that stops its thread: context is the stop. */
void ambush_stop(void *context);

struct task {
    pthread_t thread;
    void (*run)(void *context);
    void *context;
    struct ambush *ambush; /* or NULL */
    bool done;
};
void task_start(struct task *task);
bool task_done(void *context);         /* a condition */
bool task_finishes(struct task *task); /* waits for it */
void task_join(struct task *task);

/* ---- Short forms ----------------------------------------------------------------------------- */

/* Submits count executions like spec; each must be accepted. */
void put_work(struct weft_engine *engine, const struct weft_spec *spec, size_t count,
              struct weft_id *ret_id);
/* Claims up to max from a lane. Only ids, epochs and lease ends of the items are kept. */
size_t take_work(struct weft_engine *engine, const char *lane, uint32_t max,
                 struct weft_claimed *ret_item);
/* Pointers in the answer live in the arena. */
struct weft_execution look_at(struct weft_engine *engine, const struct weft_id *id,
                              struct weft_arena *arena);
enum weft_state state_at(struct weft_engine *engine, const struct weft_id *id);
size_t attempts_of(struct weft_engine *engine, const struct weft_id *id);
struct weft_steered steer_one(struct weft_engine *engine, enum weft_steer_kind kind,
                              const struct weft_steer *item);
/* A counter of a report; fails when it has none of that name. */
uint64_t counter_of(const struct weft_pass_report *report, const char *name);
uint64_t next_random(uint64_t *state); /* the state must not be 0 */
uint64_t splitmix64(uint64_t *state);  /* any state */

#endif
