/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_UPKEEP_ROSTER_H
#define WEFT_NET_UPKEEP_ROSTER_H

/* The workers that have claimed at this replica, and when each was last written to the store. */

#include "weft/weft.h"

struct weft_engine;
struct weft_roster; /* opaque */

struct weft_roster *weft_roster_new(void);
void weft_roster_free(struct weft_roster *roster);
/* Whether the worker of the claim has claimed here before. */
bool weft_roster_knows(struct weft_roster *roster, const struct weft_claim *claim);
/* A worker has claimed. */
void weft_roster_seen(struct weft_roster *roster, const struct weft_claim *claim, weft_usec now_us);
/* A worker said goodbye: its claims that were not written yet are not written any more. */
void weft_roster_forget(struct weft_roster *roster, const char *ns, const char *worker);
/* Writes workers that are new or have not been written for a while. */
WEFT_MUST_CHECK enum weft_rc weft_roster_write(struct weft_roster *roster,
                                               struct weft_engine *engine, struct weft_err *err);

#endif
