/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_RACE_RACE_H
#define WEFT_TESTS_RACE_RACE_H

/*
 * Races by name. Each is forced: the threads are stopped at the place where it happens, and let go
 * in the order that used to go wrong. Two engines stand for two processes; both run over the
 * driver that can stop and lose calls, and share a clock that stands still.
 */

#include "support.h"

#include "store/fault/fault.h"

struct race {
    struct place place;
    struct weft_fault fault;
    const struct weft_driver *driver;
    struct weft_engine *a, *b;
    weft_usec now_us;
    PGconn *raw; /* pg: a session beside the engines; NULL on SQLite */
};

typedef void race_fn(struct race *race);

struct race_case {
    const char *name;
    race_fn *run;
    struct race_case *next;
};
void race_register(struct race_case *test);

#define RACE(id)                                                                                   \
    static void race_##id(struct race *race);                                                      \
    __attribute__((constructor)) static void register_##id(void)                                   \
    {                                                                                              \
        static struct race_case test = {.name = #id, .run = race_##id};                            \
        race_register(&test);                                                                      \
    }                                                                                              \
    static void race_##id(struct race *race)

/* Moves the clock of both engines. */
void race_forward(struct race *race, int64_t ms);
/* Waits until another thread has come to the begin of its transaction; `calls` from before. */
bool race_begun(struct race *race, uint64_t calls);
uint64_t race_calls(struct race *race);
/* PostgreSQL met no deadlock in the database so far; both engines are opened again. */
void race_no_deadlock(struct race *race);

/*
 * Two calls meet: `slow` is stopped at a point, `fast` comes and either is through or stands where
 * it must wait for the first; then the first goes on. Returns when both are over.
 */
struct meeting {
    void (*run)(void *context);
    void *slow, *fast;
    enum weft_fault_point point;
    enum weft_stmt stmt;
};
void race_meet(struct race *race, const struct meeting *meeting);

/*
 * A gate inside a statement (pg): the scan that comes to row `id` of `live` or `outcome` waits
 * there until the gate is opened, with its snapshot taken and the rows behind `id` not yet visited.
 * See gate.c.
 */
struct gate {
    struct race *race;
    PGconn *keeper;           /* holds the gate shut */
    struct weft_engine *slow; /* its scans meet the gate */
};
void gate_shut(struct gate *gate, struct race *race, const struct weft_id *id);
bool gate_reached(struct gate *gate); /* waits until a thread stands before it */
void gate_open(struct gate *gate);
void gate_done(struct gate *gate);

#endif
