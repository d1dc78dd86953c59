/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_HTTP_LOOP_H
#define WEFT_NET_HTTP_LOOP_H

/* The HTTP server: it receives requests, hands them to the engine threads and sends the answers. */

#include "weft/weft.h"

struct weft_answers;
struct weft_loop; /* opaque */
struct weft_request;
struct weft_server;
struct weft_server_config;

/* Serves on server->listener; sets server->loop before the first request comes. */
WEFT_MUST_CHECK enum weft_rc weft_loop_start(struct weft_server *server, struct weft_err *err);
const char *weft_loop_url(const struct weft_loop *loop);
/*
 * Reads certificate and key again for the next handshakes. After a failure everything stays as it
 * was. Without TLS, before and in the config: WEFT_OK.
 */
WEFT_MUST_CHECK enum weft_rc weft_loop_certify(struct weft_loop *loop,
                                               const struct weft_server_config *config,
                                               struct weft_err *err);
/* Accepts no new connections; requests on open ones are still answered. */
void weft_loop_quiesce(struct weft_loop *loop);
/* Has the loop thread give back memory that it does not need. */
void weft_loop_slim(struct weft_loop *loop);
/* Requests that have been read and not been answered yet. */
size_t weft_loop_in_flight(const struct weft_loop *loop);
/* Every request must have been answered. */
void weft_loop_stop(struct weft_loop *loop);
/*
 * The requests have their replies (or their streams the next part): hands them back to the loop
 * thread, which sends them. From any thread.
 */
void weft_loop_answer(struct weft_server *server, struct weft_request **request, size_t count);
/* True when the client has closed its side and would not read the answer. */
bool weft_loop_gone(const struct weft_request *request);
int weft_loop_fd(const struct weft_request *request);
/* The memory that answers take. */
struct weft_answers *weft_loop_answers(struct weft_loop *loop);
/* Counts the reply of a request from here on, before the loop has it. On an engine thread. */
void weft_loop_hold(struct weft_request *request);
/* Ends connections that take longer than they may; called about once a second. */
void weft_loop_sweep(struct weft_loop *loop);

#endif
