/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_CALL_H
#define WEFT_ENGINE_CALL_H

/* Any operation of wire/ops.def as a call of the engine. */

#include "core/result.h"
#include "engine/engine.h"
#include "wire/ops.h"

/* All is borrowed. The row of the operation has the types of `in` and `out`. */
struct weft_op_call {
    enum weft_op op;
    const char *ns;           /* of items that name none */
    const void *in;           /* the items, or the argument */
    size_t count;             /* of items; otherwise 1 */
    void *out;                /* room for an answer to each item, or for the answer */
    struct weft_arena *arena; /* of the answer, or of errors in the answers to items */
};

/* The argument of WEFT_OP_RUN_SCANNER. */
struct weft_run_scanner {
    enum weft_scanner scanner;
    uint32_t batch; /* 0: the scanner's own */
};

/* Never waits for work or for an end: wait_ms of an item is for the caller. */
WEFT_MUST_CHECK enum weft_rc
weft_engine_call(struct weft_engine *engine, const struct weft_op_call *call, struct weft_err *err);

#endif
