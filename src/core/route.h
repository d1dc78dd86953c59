/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_ROUTE_H
#define WEFT_CORE_ROUTE_H

/*
 * Capabilities: opaque case-sensitive tokens. A worker may take an execution when it has every
 * token the execution asks for. A set's canonical text is its tokens, sorted, without repeats,
 * joined by commas; the empty set is the empty text.
 */

#include "base/err.h"

struct weft_arena;

/* The canonical text in the arena. WEFT_INVALID_VALUE or WEFT_TOO_LARGE for bad tokens. */
WEFT_MUST_CHECK enum weft_rc weft_route_text(const char *const *token, size_t count,
                                             struct weft_arena *arena, const char **ret_text,
                                             struct weft_err *err);
/* True when every token of `needed` is in `offered`; both canonical. */
bool weft_route_fits(const char *needed, const char *offered);
/* The same with an offer that is a plain list of tokens, in any order. */
bool weft_route_offered(const char *needed, const char *const *token, size_t count);
/* The same with the tokens of a canonical text, as weft_route_split() gives them: for long offers.
 */
bool weft_route_within(const char *needed, const char *const *token, size_t count);
/* The tokens of a canonical text, in the arena. */
const char *const *weft_route_split(const char *text, struct weft_arena *arena, size_t *ret_count);

#endif
