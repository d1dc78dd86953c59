/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_BATCH_PAYLOAD_H
#define WEFT_CORE_BATCH_PAYLOAD_H

/* The payload of the call that a line of a batch becomes: of kind `http`. Pure. */

#include "base/base.h"

struct weft_arena;
struct weft_batch_line;

/* In the arena. The path is the url without the /v1 that the base of an endpoint ends with. */
const char *weft_batch_payload(const char *endpoint, const struct weft_batch_line *line,
                               struct weft_arena *arena, size_t *ret_size);
/*
 * The same payload for another endpoint and model; all else is kept byte for byte. NULL: it is not
 * the payload of a line. Names of endpoints and models need no escapes.
 */
const char *weft_batch_payload_move(const void *payload, size_t size, const char *endpoint,
                                    const char *model, struct weft_arena *arena, size_t *ret_size);

#endif
