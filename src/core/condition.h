/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_CONDITION_H
#define WEFT_CORE_CONDITION_H

/*
 * Conditions: which signals let a suspended execution go on.
 *
 * A condition is a small tree over the waitpoints of one suspension. It comes as JSON (docs/
 * waiting.md) and is stored in canonical text: equal conditions have equal texts. It is judged over
 * signals in the order of their arrival. More signals never make a satisfied condition unsatisfied,
 * so the order decides only which signal completes it. Pure.
 */

#include "base/json.h"
#include "base/map.h"

enum weft_condition_kind {
    WEFT_CONDITION_SIGNAL, /* one at a waitpoint */
    WEFT_CONDITION_ALL,
    WEFT_CONDITION_ANY,
    WEFT_CONDITION_COUNT,    /* n different waitpoints, signals or sources */
    WEFT_CONDITION_OPERATOR, /* no signal: an operator resumes */
    WEFT_CONDITION_TIMEOUT,  /* no signal: the suspension times out */
};

enum weft_count_of { WEFT_COUNT_WAITPOINTS, WEFT_COUNT_SIGNALS, WEFT_COUNT_SOURCES };

struct weft_condition {
    enum weft_condition_kind kind;
    const char *name;            /* SIGNAL, COUNT: of the signals; NULL: any */
    const uint32_t *waitpoint;   /* SIGNAL (one), COUNT: places in the list of waitpoints, sorted */
    size_t waitpoints;           /* how many */
    struct weft_condition *part; /* ALL, ANY */
    size_t parts;
    enum weft_count_of of; /* COUNT */
    uint32_t n;            /* COUNT */
    uint32_t leaf;         /* SIGNAL, COUNT: its number in the tree, from 0 */
};

/* The waitpoints of a suspension, each name once, and whether the suspension has a timeout. */
struct weft_condition_scope {
    const char *const *waitpoint;
    size_t waitpoints;
    bool has_timeout;
};

/*
 * Reads a condition; NULL or the JSON null: a signal at every waitpoint. WEFT_INVALID_VALUE and
 * WEFT_UNKNOWN_FIELD say what is wrong. The result is in the arena and borrows nothing.
 */
WEFT_MUST_CHECK enum weft_rc weft_condition_read(const struct weft_json *value,
                                                 const struct weft_condition_scope *scope,
                                                 struct weft_arena *arena,
                                                 struct weft_condition *ret_condition,
                                                 struct weft_err *err);

/* The canonical text, in the arena; it reads back as the same condition. */
const char *weft_condition_text(const struct weft_condition *condition,
                                const struct weft_condition_scope *scope, struct weft_arena *arena);

/* What a condition sees of a signal. */
struct weft_condition_signal {
    uint32_t waitpoint;        /* place in the list */
    const char *name, *source; /* NULL: none */
};

/* A condition and the signals so far. */
struct weft_condition_judge {
    const struct weft_condition *condition;
    struct weft_arena *arena;
    uint32_t *have;          /* by leaf: how many it has counted */
    struct weft_map counted; /* leaf and waitpoint, or leaf and source */
    bool satisfied;
};

/* One that has seen no signal. */
struct weft_condition_judge weft_condition_judge(const struct weft_condition *condition,
                                                 struct weft_arena *arena);

/* Adds a signal. True when some part of the condition asks for signals like it. */
bool weft_condition_add(struct weft_condition_judge *judge,
                        const struct weft_condition_signal *signal);
void weft_condition_judge_done(struct weft_condition_judge *judge);

#endif
