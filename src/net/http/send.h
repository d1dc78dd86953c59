/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_HTTP_SEND_H
#define WEFT_NET_HTTP_SEND_H

/* Sending answers, on the loop thread. */

#include "net/http/link.h"

/* Queues the answer with libmicrohttpd, or an error in place of an answer that cannot be sent. */
enum MHD_Result weft_send_answer(struct weft_link *link);
/* Gives back the memory of an answer, or of the part of one that has been sent. */
void weft_send_release(struct weft_link *link);

#endif
