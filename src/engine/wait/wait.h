/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_WAIT_WAIT_H
#define WEFT_ENGINE_WAIT_WAIT_H

/*
 * Waiting: suspended executions, their waitpoints and signals.
 *
 * All of these lock the living row of the execution first and read and write the rows about it
 * under that lock, in later statements. No flow row is locked: a suspended member lives, and to
 * suspend or resume it changes nothing for its flow.
 *
 * Whether a waitpoint is open follows from the living row and is written nowhere: it is pending
 * while no suspension has taken it, open while the execution is suspended under the epoch that took
 * it, and closed from then on; one whose suspend was satisfied at once is closed. So whatever ends
 * a suspension (a signal, its timeout, an operator, a cancel, a deadline, a flow) closes its
 * waitpoints by the change of that one row.
 */

#include "core/result.h"
#include "store/store.h"
#include "weft/admin.h"

#define WEFT_JSON_TYPE "application/json" /* of a payload that names no type */

struct weft_arena;
struct weft_engine;
struct weft_live;
struct weft_waitpoint_out;

/* Suspends executions, fenced. A repeat gets the first answer again, with the same tokens. */
WEFT_MUST_CHECK enum weft_rc weft_engine_suspend(struct weft_engine *engine,
                                                 const struct weft_suspend *item, size_t count,
                                                 struct weft_arena *arena,
                                                 struct weft_suspend_result *ret_answer,
                                                 struct weft_err *err);

/* Whether an item can be asked for at all, whatever the store holds. */
WEFT_MUST_CHECK enum weft_rc weft_suspend_check(const struct weft_suspend *item,
                                                struct weft_err *err);

/* Makes pending waitpoints, fenced. The name of a pending one gives that one again. */
WEFT_MUST_CHECK enum weft_rc weft_engine_waitpoints_new(struct weft_engine *engine,
                                                        const struct weft_waitpoint_new *item,
                                                        size_t count, struct weft_arena *arena,
                                                        struct weft_waitpoint_result *ret_answer,
                                                        struct weft_err *err);

/* Sends signals; the token of each says where to. Signals of one execution keep their order. */
WEFT_MUST_CHECK enum weft_rc weft_engine_signal(struct weft_engine *engine,
                                                const struct weft_signal *item, size_t count,
                                                struct weft_arena *arena,
                                                struct weft_signal_result *ret_answer,
                                                struct weft_err *err);

/* A page about one execution, or the token of one waitpoint. */
struct weft_wait_asking {
    struct weft_id id;
    const char *ns;    /* NULL: any */
    uint32_t limit;    /* of a page */
    const char *after; /* NULL: the first page */
};
WEFT_MUST_CHECK enum weft_rc weft_engine_waitpoint_list(struct weft_engine *engine,
                                                        const struct weft_wait_asking *asking,
                                                        struct weft_arena *arena,
                                                        struct weft_waitpoints *ret_page,
                                                        struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_signal_list(struct weft_engine *engine,
                                                     const struct weft_wait_asking *asking,
                                                     struct weft_arena *arena,
                                                     struct weft_signals *ret_page,
                                                     struct weft_err *err);
/* What the execution waits for, and how it went on the last time. */
WEFT_MUST_CHECK enum weft_rc weft_engine_waiting(struct weft_engine *engine,
                                                 const struct weft_wait_asking *asking,
                                                 struct weft_arena *arena,
                                                 struct weft_waiting *ret_waiting,
                                                 struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_waitpoint_token(struct weft_engine *engine,
                                                         const struct weft_wait_asking *asking,
                                                         struct weft_arena *arena,
                                                         struct weft_waitpoint *ret_waitpoint,
                                                         struct weft_err *err);

/* ---- For the other files of this room and for claims ----------------------------------------- */

/* Whether a waitpoint takes signals now, by the living row of its execution (NULL: it has ended).
 */
enum weft_waitpoint_state weft_waitpoint_state_of(const struct weft_waitpoint_out *row,
                                                  const struct weft_live *live, weft_usec now_us);

/* A row as readers see it, with its token if `key` says so. Texts are in the arena. */
WEFT_MUST_CHECK enum weft_rc weft_waitpoint_sign(struct weft_engine *engine,
                                                 const struct weft_waitpoint_out *row,
                                                 struct weft_arena *arena,
                                                 struct weft_waitpoint *ret_waitpoint,
                                                 struct weft_err *err);

/* The last resumption of an execution and its signals, as a claim or a suspend brings them. */
struct weft_waited {
    struct weft_id id;
    int32_t epoch; /* of the suspension; negative: of a suspend that was satisfied at once; */
                   /* 0: of the last resumption */
    bool resumed;
    enum weft_resumed_by by;
    weft_usec resumed_us;
    const struct weft_signal_info *signal;
    size_t count;
    bool more;
};
/* The call that reads them, for the ids and epochs of the array. */
void weft_waited_call(struct weft_call *ret_call, const struct weft_waited *waited, size_t count,
                      struct weft_arena *arena);
/* Fills in the rest of the array, which has the order of the call. */
void weft_waited_take(struct weft_waited *waited, size_t count, const struct weft_rows *rows,
                      struct weft_arena *arena);

#endif
