/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_FLOW_FLOW_CHUNK_H
#define WEFT_ENGINE_FLOW_FLOW_CHUNK_H

/* How many rows one transaction of a flow touches. */

#include "engine/tx/tx.h"

struct weft_tx;

enum {
    WEFT_FLOW_CHUNK = 1000,      /* edges, or members, that one transaction touches */
    WEFT_FLOW_CHUNK_BRIEF = 125, /* the same while others wait for the only writer */
};

/* Rows for one transaction; the number does not change while the transaction runs. */
static inline size_t weft_flow_chunk(const struct weft_tx *tx)
{
    return tx->brief ? WEFT_FLOW_CHUNK_BRIEF : WEFT_FLOW_CHUNK;
}

#endif
