/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_LIMIT_GATES_H
#define WEFT_ENGINE_LIMIT_GATES_H

/* The settings of gates and of their classes, and what is in them. */

#include "weft/limits.h"

struct weft_engine;
struct weft_gate_look_out;
struct weft_limit_now;

struct weft_gate_asking {
    const char *ns;
    const char *prefix; /* NULL: all */
    uint32_t limit;     /* 0: the default */
    const char *after;  /* NULL: the first page */
};

/* The class of a gate: the part before the first ':'. In the arena. */
const char *weft_gate_class(const char *name, struct weft_arena *arena);

/* A row of gate_look as the limits of a gate and what they have to know. */
void weft_gate_facts(const struct weft_gate_look_out *row, weft_usec now_us,
                     struct weft_limits *ret_limits, struct weft_limit_now *ret_now);

WEFT_MUST_CHECK enum weft_rc weft_engine_gate_put(struct weft_engine *engine, const char *ns,
                                                  const struct weft_gate *gate,
                                                  struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_gate_remove(struct weft_engine *engine, const char *ns,
                                                     const char *name, struct weft_arena *arena,
                                                     struct weft_gate *ret_gate,
                                                     struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_gate(struct weft_engine *engine, const char *ns,
                                              const char *name, struct weft_arena *arena,
                                              struct weft_gate *ret_gate, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_gates(struct weft_engine *engine,
                                               const struct weft_gate_asking *asking,
                                               struct weft_arena *arena,
                                               struct weft_gates *ret_gates, struct weft_err *err);

#endif
