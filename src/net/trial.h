/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_TRIAL_H
#define WEFT_NET_TRIAL_H

/*
 * Trial calls to endpoints, for an administrator who wants to see whether one works: with the same
 * address checks, timeouts and secret as the calls of executions, but for 30 s at most. They have
 * transfers of their own, and neither a breaker nor the limits of the endpoint know of them.
 *
 * A trial outlives its request, which may go at any time: it is kept by an id of its own, with
 * which the request waits as for the end of an execution.
 */

#include "base/err.h"
#include "weft/http.h"

struct weft_server;
struct weft_trials; /* opaque: any thread may use it */

enum { WEFT_TRIAL_MS = 30000 }; /* a trial takes no longer */

struct weft_trials *weft_trials_new(struct weft_server *server);
/* Aborts what is under way. NULL is fine. Before the waits of the server go. */
void weft_trials_free(struct weft_trials *trials);

/* Authorities to trust besides the system's, as weft_crowd_trust() takes them. */
void weft_trials_trust(struct weft_trials *trials, const char *pem);

/*
 * Begins a call; *ret_id names it. WEFT_NOT_FOUND: there is no such endpoint; WEFT_INVALID_VALUE
 * names `path` or `method`; WEFT_RATE_LIMITED: too many are under way.
 */
WEFT_MUST_CHECK enum weft_rc weft_trial_begin(struct weft_trials *trials, const char *ns,
                                              const struct weft_endpoint_trying *trying,
                                              struct weft_id *ret_id, struct weft_err *err);
/* Whether it has ended; then the answer is in the arena, and the trial is forgotten. */
WEFT_MUST_CHECK bool weft_trial_take(struct weft_trials *trials, const struct weft_id *id,
                                     struct weft_arena *arena,
                                     struct weft_endpoint_trial *ret_trial);

#endif
