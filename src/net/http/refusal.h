/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_HTTP_REFUSAL_H
#define WEFT_NET_HTTP_REFUSAL_H

#include <microhttpd.h>

/* Queues an answer of the API: MHD_queue_response() is taken by the library's own. */
enum MHD_Result weft_refusal_pass(struct MHD_Connection *connection, unsigned status,
                                  struct MHD_Response *response);

#endif
