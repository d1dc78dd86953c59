/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_HTTP_HTTP_THREAD_H
#define WEFT_NET_HTTP_HTTP_THREAD_H

/* The loop thread: it runs libmicrohttpd, and all calls into that library are made on it. */

#include <stddef.h>

struct MHD_Daemon;
struct weft_http_thread; /* opaque */
struct weft_request;
struct weft_server;

struct weft_http_thread *weft_http_thread_new(struct weft_server *server);
/* Runs a daemon that has no thread of its own. */
void weft_http_thread_start(struct weft_http_thread *http, struct MHD_Daemon *daemon);
/* Ends the thread, when it was started; the daemon is still to be stopped. */
void weft_http_thread_free(struct weft_http_thread *http);
void weft_http_thread_quiesce(struct weft_http_thread *http);
void weft_http_thread_slim(struct weft_http_thread *http);
/* Requests that have been answered: from any thread. */
void weft_http_thread_answer(struct weft_http_thread *http, struct weft_request **request,
                             size_t count);
/* A suspended request goes to the engine threads when this turn ends. On the loop thread. */
void weft_http_thread_hand_over(struct weft_http_thread *http, struct weft_request *request);

#endif
