/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_CAPSET_H
#define WEFT_CORE_CAPSET_H

/*
 * Capabilities: opaque case-sensitive tokens. A worker may take an execution when it has every
 * token the execution asks for. A set's canonical text is its tokens, sorted, without repeats,
 * joined by commas; the empty set is the empty text.
 */

#include "base/err.h"

/* The canonical text in the arena. WEFT_INVALID_VALUE or WEFT_TOO_LARGE for bad tokens. */
WEFT_MUST_CHECK enum weft_rc weft_capset_text(const char *const *token, size_t count,
                                              struct weft_arena *arena, const char **ret_text,
                                              struct weft_err *err);
/* True when every token of `needed` is in `offered`; both canonical. */
bool weft_capset_fits(const char *needed, const char *offered);
/* The same with an offer that is a plain list of tokens, in any order. */
bool weft_capset_offered(const char *needed, const char *const *token, size_t count);
/* The same with sorted tokens from weft_capset_split(): for long offers. */
bool weft_capset_within(const char *needed, const char *const *token, size_t count);
/*
 * A Bloom-like filter before one of the above, for claims that meet thousands of sets: the hashes
 * of the first and the last token that are needed, and a bit for the hash of each offered token.
 */
enum { WEFT_CAPSET_NUMBERS = 16384 };
struct weft_capset_need {
    uint16_t first, last; /* WEFT_CAPSET_NUMBERS: no token is needed */
};
struct weft_capset_offer {
    uint64_t bit[WEFT_CAPSET_NUMBERS / 64 + 1]; /* the last word is for WEFT_CAPSET_NUMBERS */
};
/* Both take canonical texts. */
struct weft_capset_need weft_capset_need(const char *needed);
void weft_capset_offer(const char *offered, struct weft_capset_offer *ret_offer);
/* False: the need certainly does not fit. */
static inline bool weft_capset_may_fit(struct weft_capset_need need,
                                       const struct weft_capset_offer *offer)
{
    uint64_t first = offer->bit[need.first / 64] >> (need.first % 64);
    uint64_t last = offer->bit[need.last / 64] >> (need.last % 64);
    return (first & last & 1) != 0;
}

/*
 * What a queue needs of a claim: the budgets that its executions name, the capabilities, and the
 * target of a kind that weft carries out itself (core/carried.h), as one text. With capabilities
 * alone it is their text, with budgets "BUDGETS CAPABILITIES", with a target "BUDGETS CAPABILITIES
 * TARGET". The space is in no token: a binary that does not know budgets, or targets, finds no
 * worker that fits.
 */
WEFT_MUST_CHECK enum weft_rc weft_needs_text(const char *const *budget, size_t count,
                                             const char *capset, const char *target,
                                             struct weft_arena *arena, const char **ret_text,
                                             struct weft_err *err);
/* The parts of such a text, in the arena; the target NULL: there is none. */
const char *weft_needs_capset(const char *text, struct weft_arena *arena);
const char *weft_needs_target(const char *text);
const char *const *weft_needs_budgets(const char *text, struct weft_arena *arena,
                                      size_t *ret_count);

/* The tokens of a canonical text, in the arena. */
const char *const *weft_capset_split(const char *text, struct weft_arena *arena, size_t *ret_count);

#endif
