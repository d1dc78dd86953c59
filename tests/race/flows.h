/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_RACE_FLOWS_H
#define WEFT_TESTS_RACE_FLOWS_H

/* Shared by the races of flows: small flows drawn as text, and two calls that meet at one flow. */

#include "drawn.h"
#include "race.h"

#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

void submit(struct race *race, struct drawn *flow);
struct weft_claimed take(struct race *race, const char *name);
void is_in(struct race *race, const struct drawn *flow, const char *name, enum weft_state state);
/* Nothing may be left that a scanner would have to find. */
void nothing_left(struct race *race);

/* ---- What the two do ------------------------------------------------------------------------- */

struct doer {
    struct weft_engine *engine;
    struct drawn *flow;
    struct weft_claimed lease;
    const struct weft_node *node;
    struct weft_id grown;
    enum weft_rc rc;
    struct weft_err err;
};

void do_complete(void *context);
void do_fail(void *context);
void do_cascade(void *context);
void do_grow(void *context);
void do_cancel(void *context);
/* For weft_engine_on_flows(): leaves cascades to others. */
void do_nothing(void *context, const struct weft_id *flow, size_t count);

struct stopped {
    struct stop stop;
    struct ambush ambush;
    struct task task;
};

/* Starts the doer and waits until it stands at the place. */
void stop_at(struct stopped *stopped, enum weft_fault_point point, enum weft_stmt stmt,
             void (*run)(void *context), struct doer *doer);
void go_on(struct stopped *stopped, const struct doer *doer);
/* The other one, who must not wait for the first. */
void come_by(void (*run)(void *context), struct doer *doer);
bool only_on_pg(void);

#endif
