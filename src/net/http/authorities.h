/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_HTTP_AUTHORITIES_H
#define WEFT_NET_HTTP_AUTHORITIES_H

#include "base/err.h"

/*
 * The text of a PEM file with certificates of authorities (ca_file), to trust in outgoing calls;
 * the caller frees it. WEFT_INVALID_VALUE: it is unreadable, or there are none in it.
 */
WEFT_MUST_CHECK enum weft_rc weft_authorities_read(const char *path, char **ret_pem,
                                                   struct weft_err *err);

#endif
