/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_SECRETS_H
#define WEFT_NET_SECRETS_H

/*
 * The secrets of outgoing HTTP calls, by namespace and name.
 *
 * They come from a folder, in which DIR/NAMESPACE/NAME is a secret of a namespace and DIR/NAME one
 * of the namespace `default`; and from variables, WEFT_SECRET_NAMESPACE__NAME and WEFT_SECRET_NAME.
 * A secret serves its own namespace only: the administrator of a tenant must not be able to send
 * that of another one to a host of his own. In the name of a folder a slash is written %2F and a
 * dot at the beginning %2E. In variables, names are as they are, without two underscores in a row
 * and without one at an end; other names need files. Where both are there, the file holds.
 *
 * Each secret lies in pages of its own: left out of core dumps, locked where the system allows it,
 * and wiped when the last holder releases it. No secret is in a log or an error.
 */

#include "base/err.h"

struct weft_endpoint_auth;
struct weft_secret;  /* opaque: immutable, counted */
struct weft_secrets; /* opaque: any thread may use it */

enum { WEFT_SECRET_MAX = 16 << 10 }; /* bytes */

struct weft_secrets *weft_secrets_new(void);
void weft_secrets_free(struct weft_secrets *secrets); /* NULL is fine; holders keep theirs */

/*
 * Takes the variables out of an environment: values are wiped where they lie, which is also what
 * /proc/PID/environ and a core dump show. Before there are threads. NULL is fine.
 */
void weft_secrets_take(struct weft_secrets *secrets, char **environment);
/*
 * Reads the folder; NULL: there is none. What is in it now replaces what was: a file that is gone
 * is gone, and one that cannot be used is left out, with an error in the log that says why.
 * WEFT_INVALID_VALUE: the folder itself cannot be read, and all stays as it was.
 */
WEFT_MUST_CHECK enum weft_rc weft_secrets_read(struct weft_secrets *secrets, const char *dir,
                                               struct weft_err *err);
/* A variable that has the name of a file counts too. */
size_t weft_secrets_count(struct weft_secrets *secrets);

/*
 * NULL: there is none. Released by weft_secret_release(). While a secret stays the same, so does
 * the pointer: a holder that made a header of it may keep the header until it gets another one.
 */
const struct weft_secret *weft_secret_get(struct weft_secrets *secrets, const char *ns,
                                          const char *name);
const char *weft_secret_text(const struct weft_secret *secret);
/* The value of the header that carries it, in memory of the same kind. */
const struct weft_secret *weft_secret_header(const struct weft_secret *secret,
                                             const struct weft_endpoint_auth *auth);
void weft_secret_release(const struct weft_secret *held); /* NULL is fine */

#endif
