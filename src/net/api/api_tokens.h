/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_API_TOKENS_H
#define WEFT_NET_API_API_TOKENS_H

/* Handlers of tokens. */

#include "net/route.h"

weft_route_fn weft_tokens_read, weft_tokens_run, weft_token_create_read, weft_token_create_run,
    weft_token_rotate_read, weft_token_rotate_run, weft_token_revoke_read, weft_token_revoke_run;

#endif
