/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_DIRECT_H
#define WEFT_TESTS_DIRECT_H

/*
 * Calls of the engine on items, answered with the structs of weft.h. Inside, an answer points to
 * its error (core/result.h); here each holds a copy, which outlives the call. Items that were not
 * looked at, because the call failed, have answers of zeros.
 */

#include "base/arena.h"
#include "client/client.h"
#include "core/result.h"
#include "engine/flow/flow.h"
#include "engine/job/control.h"
#include "engine/job/leases.h"
#include "engine/job/submit.h"

/* Runs `call`, which is over `arena` and `result`, and gives its answers. */
#define DIRECT(kind, type, count, ret_answer, call)                                                \
    struct weft_arena *arena = weft_arena_new();                                                   \
    /* NOLINTNEXTLINE(bugprone-macro-parentheses): a type */                                       \
    type *result = weft_new_array(arena, type, (count) + 1);                                       \
    enum weft_rc rc = call;                                                                        \
    (kind)->give(result, count, ret_answer);                                                       \
    weft_arena_free(arena);                                                                        \
    return rc

static inline enum weft_rc engine_submit(struct weft_engine *engine, const char *ns,
                                         const struct weft_spec *spec, size_t count,
                                         struct weft_submitted *ret_answer, struct weft_err *err)
{
    DIRECT(&weft_answers_submit, struct weft_submit_result, count, ret_answer,
           weft_engine_submit(engine, ns, spec, count, arena, result, err));
}

static inline enum weft_rc engine_renew(struct weft_engine *engine, const struct weft_renew *item,
                                        size_t count, struct weft_lease_answer *ret_answer,
                                        struct weft_err *err)
{
    DIRECT(&weft_answers_lease, struct weft_lease_result, count, ret_answer,
           weft_engine_renew(engine, item, count, arena, result, err));
}

static inline enum weft_rc engine_complete(struct weft_engine *engine,
                                           const struct weft_complete *item, size_t count,
                                           struct weft_lease_answer *ret_answer,
                                           struct weft_err *err)
{
    DIRECT(&weft_answers_lease, struct weft_lease_result, count, ret_answer,
           weft_engine_complete(engine, item, count, arena, result, err));
}

static inline enum weft_rc engine_fail(struct weft_engine *engine, const struct weft_failure *item,
                                       size_t count, struct weft_lease_answer *ret_answer,
                                       struct weft_err *err)
{
    DIRECT(&weft_answers_lease, struct weft_lease_result, count, ret_answer,
           weft_engine_fail(engine, item, count, arena, result, err));
}

static inline enum weft_rc engine_put_back(struct weft_engine *engine, enum weft_put_back_kind kind,
                                           const struct weft_put_back *item, size_t count,
                                           struct weft_lease_answer *ret_answer,
                                           struct weft_err *err)
{
    DIRECT(&weft_answers_lease, struct weft_lease_result, count, ret_answer,
           weft_engine_put_back(engine, kind, item, count, arena, result, err));
}

static inline enum weft_rc engine_steer(struct weft_engine *engine,
                                        const struct weft_steering *steering,
                                        struct weft_steered *ret_answer, struct weft_err *err)
{
    struct weft_steering mine = *steering;
    DIRECT(&weft_answers_steer, struct weft_steer_result, mine.count, ret_answer,
           (mine.arena = mine.arena ? mine.arena : arena,
            weft_engine_steer(engine, &mine, result, err)));
}

static inline enum weft_rc engine_flow_submit(struct weft_engine *engine, const char *ns,
                                              const struct weft_flow_spec *spec, size_t count,
                                              struct weft_flow_submitted *ret_answer,
                                              struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_flow_result *result = weft_new_array(arena, struct weft_flow_result, count + 1);
    for (size_t i = 0; i < count; i++)
        result[i].node = ret_answer[i].node;
    enum weft_rc rc = weft_engine_flow_submit(engine, ns, spec, count, arena, result, err);
    weft_answers_flow.give(result, count, ret_answer);
    weft_arena_free(arena);
    return rc;
}

static inline enum weft_rc engine_flow_grow(struct weft_engine *engine,
                                            const struct weft_flow_growth *growth,
                                            struct weft_flow_submitted *ret_answer,
                                            struct weft_err *err)
{
    struct weft_flow_result result = {.node = ret_answer->node};
    enum weft_rc rc = weft_engine_flow_grow(engine, growth, &result, err);
    weft_answers_flow.give(&result, 1, ret_answer);
    return rc;
}

#endif
