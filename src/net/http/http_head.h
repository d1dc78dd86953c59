/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_HTTP_HTTP_HEAD_H
#define WEFT_NET_HTTP_HTTP_HEAD_H

/* The head of a request: its headers, its id, its route and its namespace. */

#include "base/base.h"
#include "weft/weft.h"

struct weft_link;
struct weft_request;

/* A header of the request, or NULL. */
const char *weft_request_header(const struct weft_request *request, const char *name);
/* Takes the id that the client sent, when it may be shown, or makes one. */
void weft_head_request_id(struct weft_link *link);
/* Finds the route, the namespace and the parameters. A failure is the answer; so is a preflight. */
WEFT_MUST_CHECK enum weft_rc weft_head_check(struct weft_link *link, struct weft_err *err);

#endif
