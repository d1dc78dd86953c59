/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_CLI_TYPED_H
#define WEFT_CMD_CLI_TYPED_H

/* Numbers, durations, sizes and moments as people type them. */

#include "weft/weft.h"

/* What people type; false: it is not that. A duration is as in weft_cli_ms(); a size is 64KiB. */
WEFT_MUST_CHECK bool weft_number_typed(const char *text, int64_t *ret_number);
WEFT_MUST_CHECK bool weft_duration_typed(const char *text, int64_t *ret_ms);
WEFT_MUST_CHECK bool weft_size_typed(const char *text, int64_t *ret_bytes);
/* A moment that a person typed: RFC 3339, or "+5m" or "5m" from now. False: it is none of them. */
WEFT_MUST_CHECK bool weft_moment_typed(const char *text, weft_usec *ret_moment_us);
/* The same for the past: RFC 3339, or "5m" ago. */
WEFT_MUST_CHECK bool weft_past_typed(const char *text, weft_usec *ret_moment_us);

#endif
