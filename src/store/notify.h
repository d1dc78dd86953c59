/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_STORE_NOTIFY_H
#define WEFT_STORE_NOTIFY_H

/*
 * Notices between the replicas of one store: a separate connection that listens and sends on one
 * channel. A notice may be lost, and its sender does not receive it. Only PostgreSQL has notifiers;
 * the URL must bypass a pooler in transaction mode. One thread at a time.
 */

#include "base/err.h"

struct weft_notifier; /* opaque */

enum { WEFT_NOTICE_TEXT_MAX = 7000 }; /* below the 8000 bytes of NOTIFY */

/* Connects and listens. WEFT_NOT_FOUND: stores of this kind have no notifier. */
WEFT_MUST_CHECK enum weft_rc
weft_notifier_open(const char *url, struct weft_notifier **ret_notifier, struct weft_err *err);
void weft_notifier_close(struct weft_notifier *notifier); /* NULL is valid */
/* Readable when a notice may have arrived. Sending reads too: call next() after it as well. */
int weft_notifier_fd(const struct weft_notifier *notifier);
/* Sends up to WEFT_NOTICE_TEXT_MAX bytes in its own transaction, which does not wait for disk. */
WEFT_MUST_CHECK enum weft_rc weft_notifier_send(struct weft_notifier *notifier, const char *text,
                                                struct weft_err *err);
/* The next notice that has arrived, in the arena, or NULL for none. Does not wait. */
WEFT_MUST_CHECK enum weft_rc weft_notifier_next(struct weft_notifier *notifier,
                                                struct weft_arena *arena, const char **ret_text,
                                                struct weft_err *err);

#endif
