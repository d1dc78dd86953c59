/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_FAULT_STRIKE_H
#define WEFT_TESTS_FAULT_STRIKE_H

/*
 * Striking one call at the Nth thing it asks of the store, in this process or in a child that dies,
 * and running several such loops beside each other. For loops that compare what came of a struck
 * call with what came of it in peace.
 */

#include "support.h"

#include "store/fault/fault.h"

/* Whether a loop is among the arguments of the program. */
typedef bool wanted_fn(const char *name, int argc, char **argv);

/* To die before a call is to die behind the one before it. */
enum { STRIKE_KINDS = 5 };
extern const struct strike_kind {
    const char *name;
    enum weft_fault_kind kind;
} strike_kinds[STRIKE_KINDS];

struct striker {
    struct place place;
    struct weft_fault fault;
    const struct weft_driver *driver;
    struct weft_engine *clean, *faulty; /* NULL: not open */
    weft_usec now_us;                   /* on the clocks of engines that are opened */
    PGconn *raw;                        /* pg: looks whether the session of a dead child is gone */
};

void striker_init(struct striker *striker, const char *name);
void striker_done(struct striker *striker);
/* Engines are opened when they are needed. */
struct weft_engine *striker_clean(struct striker *striker);
struct weft_engine *striker_faulty(struct striker *striker);
void striker_close_engines(struct striker *striker);
/* Sets the clocks of the engines. */
void striker_set_time(struct striker *striker, weft_usec now_us);

/* What is struck. The context of a child that dies is a copy. */
typedef void strike_fn(void *context, struct weft_engine *engine);
/* Acts under a fault at the call number `at`; whether it struck before the end. */
bool strike(struct striker *striker, enum weft_fault_kind kind, uint64_t at, strike_fn *act,
            void *context);

/* What a loop has found; written by its worker. */
struct loop_finding {
    size_t bad;
    uint64_t calls; /* how many there were to be struck */
};
/* One loop: all kinds of strikes. */
typedef void loop_fn(const void *of, struct loop_finding finding[STRIKE_KINDS]);

struct loop_set {
    loop_fn *run;
    const void *first; /* an array of loops, each with its name at the start */
    size_t size, count;
    uint64_t calls_min, calls_max; /* per loop: fewer would mean that nothing was struck */
};
/* A worker per loop: most of the time goes into waiting for connections. Gives the points. */
void loop_set_run(const struct loop_set *set, wanted_fn *wanted, int argc, char **argv);

#endif
