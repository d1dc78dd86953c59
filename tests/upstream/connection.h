/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_UPSTREAM_CONNECTION_H
#define WEFT_TESTS_UPSTREAM_CONNECTION_H

/* Between main.c, which owns the sockets and the time, and connection.c, which owns the text. */

#include "upstream/upstream.h"

/* main.c */
int64_t now_us(void);
/* The next step waits until then. */
void wait_until(struct connection *connection, int64_t wake_us);

/* connection.c: takes requests from the input as long as none is being answered. */
void take_input(struct connection *connection);

#endif
