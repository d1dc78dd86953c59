/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_STORE_NOTIFY_H
#define WEFT_STORE_NOTIFY_H

/*
 * Notices between the replicas of one store: a connection of its own that listens on one channel
 * and sends on it. A notice may be lost, and never comes back to the bell that rang it. Only
 * PostgreSQL has bells; with a pooler in transaction mode in between, the URL must lead past it.
 */

#include "base/err.h"

struct weft_arena;
struct weft_notifier; /* opaque */

enum { WEFT_BELL_TEXT_MAX = 7000 }; /* what NOTIFY carries, less a reserve */

/* Connects and listens. WEFT_NOT_FOUND: stores of this kind have no bells. */
WEFT_MUST_CHECK enum weft_rc weft_notifier_open(const char *url, struct weft_notifier **ret_bell,
                                                struct weft_err *err);
void weft_notifier_close(struct weft_notifier *bell); /* NULL is fine */
/* Readable when a notice may have come. Ringing reads too: ask for the next one after it as well.
 */
int weft_notifier_fd(const struct weft_notifier *bell);
/* Sends a notice of up to WEFT_BELL_TEXT_MAX bytes; in its own transaction, not waiting for disk.
 */
WEFT_MUST_CHECK enum weft_rc weft_notifier_ring(struct weft_notifier *bell, const char *text,
                                                struct weft_err *err);
/* The next notice that has arrived, in the arena, or NULL for none. Does not wait. */
WEFT_MUST_CHECK enum weft_rc weft_notifier_next(struct weft_notifier *bell,
                                                struct weft_arena *arena, const char **ret_text,
                                                struct weft_err *err);

#endif
