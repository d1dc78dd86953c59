/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_FETCH_LIBRARY_H
#define WEFT_FETCH_LIBRARY_H

/* The start of libcurl, once for the process. */

#include "base/err.h"

/* Called before anything else of libcurl, as often as one likes. */
WEFT_MUST_CHECK enum weft_rc weft_fetch_library(struct weft_err *err);

#endif
